"""When the alerts of storage class memory and augmented space open and clear: contract.md, 4 and 7."""

from typing import Any

from tests.kernels.beside import records
from tests.kernels.told import GIB, NO_RULES, Told
from tests.naive.estates import ENTRY_AND_6_ELEMENTS, STORE
from tests.twin.test_structure_scm import on_facility
from twin.alerts.episodes import Alert
from twin.conditions import CLEARED, CRITICAL, OPENED

BLOCK = 4096
SCM, AUGMENTED = ("scm-exhausted", "scm"), ("augmented-exhausted", "augmented")


def told_of(**fields: Any) -> Told:
    """A twin of 100 entries, with SCM for 10 messages of 100 bytes unless told otherwise."""
    return Told(**(NO_RULES | {"size": 104 * ENTRY_AND_6_ELEMENTS, "scm_max_size": 2 * BLOCK} | fields))


def of(told: Told, condition: str, resource: str) -> list[Alert]:
    return [alert for alert in told.alerts if (alert.condition, alert.resource) == (condition, resource)]


def fill(told: Told, count: int) -> Told:
    for _ in range(count):
        told.put(100)
    return told


def test_scm_is_exhausted_at_the_very_put_whose_message_finds_no_room_there() -> None:
    told = fill(told_of(), 100)
    assert of(told, *SCM) == []
    fill(told, 1)
    [alert] = of(told, *SCM)
    assert (alert.change, alert.severity, alert.time, alert.usage_pct) == (OPENED, CRITICAL, told.time, 100.0)
    assert of(fill(told, 9), "full", "entries")[0].time == told.time  # the structure fills next
    assert len(of(told, *SCM)) == 1


def test_it_is_told_at_the_tick_where_the_mover_meets_the_end_after_the_event() -> None:
    told = told_of()
    told.put(100, count=105)
    assert of(told, *SCM) == []
    told.wait(25)
    [alert] = of(told, *SCM)
    assert alert.time % 10_000_000 == 0
    assert told.time - alert.time >= 10_000_000


def test_it_clears_when_the_next_message_would_find_room_for_a_minute() -> None:
    told = fill(told_of(), 105)
    told.get(count=10)
    told.wait(50)
    assert len(of(told, *SCM)) == 1
    told.wait(30)
    assert [alert.change for alert in of(told, *SCM)] == [OPENED, CLEARED]


def test_it_says_what_is_used_up_who_fills_it_and_what_helps() -> None:
    told = told_of(coupling_facility="CF01")
    for number in range(101):
        told.put(100, queue="B.QUEUE" if number > 50 else "A.QUEUE")
    [alert] = of(told, *SCM)
    assert alert.cause.startswith(
        f"SCM of {STORE}: 8 KB of 8 KB in use, no room for the next message. The structure is 91.0 % full, at 100 %"
        " puts fail with 2192. B.QUEUE: 100 % of the growth of 10 messages in the last "
    )
    assert alert.actions[0].startswith("Start more getters on B.QUEUE")
    assert alert.actions[1].startswith("Raise SCMMAXSIZE of QSG1APP1 in the CFRM policy (do not over-commit")
    assert [filler.queue for filler in alert.fillers] == ["B.QUEUE"]


def test_augmented_space_is_exhausted_before_scm_is() -> None:
    told = told_of(scm_max_size=GIB)
    on_facility(told, size=told.state()["size"] + (8 << 20) + 164, scm=GIB)
    fill(told, 101)
    assert of(told, *SCM) == []
    [alert] = of(told, *AUGMENTED)
    assert (alert.severity, alert.usage_pct) == (CRITICAL, 100.0)
    assert alert.actions[1].startswith("Free storage in CF01")


def test_what_a_structure_in_scm_can_do_where_it_fills_is_no_alter() -> None:
    told = fill(told_of(offld1_sz="32K"), 110)
    [full] = of(told, "full", "entries")
    assert not [action for action in full.actions if "ALTER" in action]
    assert "SETXCF START,REBUILD" in full.actions[-1]


def test_alerts_of_scm_are_the_same_again_after_a_restart_of_the_twin() -> None:
    first, second = told_of(), told_of()
    for told in (first, second):
        for count in (50, 60, 5):
            told.put(100, count=count)
            told.alter(size="1M")
            told.wait(15)
            if told is second:
                told.again()
    assert records(first.alerts) == records(second.alerts)
    assert len(of(first, *SCM)) == 1
