"""Alerts of storage class memory and augmented space: their opening and clearing (docs/alerts.md)."""

from typing import Any

from tests.kernels.beside import records
from tests.naive.estates import ENTRY_AND_6_ELEMENTS, STORE
from tests.support.store_driver import GIB, NO_RULES
from tests.support.twin_driver import TwinDriver
from tests.twin.test_structure_scm import on_facility
from twin.alerts.episodes import Alert
from twin.conditions import CLEARED, INFO, OPENED

BLOCK = 4096
SCM, AUGMENTED = ("scm-exhausted", "scm"), ("augmented-exhausted", "augmented")


def open_driver(**fields: Any) -> TwinDriver:
    """Open a twin of 100 entries, by default with SCM for 10 messages of 100 bytes."""
    return TwinDriver(**(NO_RULES | {"size": 104 * ENTRY_AND_6_ELEMENTS, "scm_max_size": 2 * BLOCK} | fields))


def alerts_of(driver: TwinDriver, condition: str, resource: str) -> list[Alert]:
    return [alert for alert in driver.alerts if (alert.condition, alert.resource) == (condition, resource)]


def fill(driver: TwinDriver, count: int) -> TwinDriver:
    for _ in range(count):
        driver.put(100)
    return driver


def test_scm_is_exhausted_at_the_very_put_whose_message_finds_no_room_there() -> None:
    driver = fill(open_driver(), 100)
    assert alerts_of(driver, *SCM) == []
    fill(driver, 1)
    [alert] = alerts_of(driver, *SCM)
    assert (alert.change, alert.severity, alert.time, alert.usage_pct) == (OPENED, INFO, driver.time, 100.0)
    fill(driver, 9)
    driver.put(100, reason=2192)
    assert alerts_of(driver, "full", "entries")[0].time == driver.time  # the structure fills next
    assert len(alerts_of(driver, *SCM)) == 1


def test_it_is_reported_at_the_tick_where_the_mover_meets_the_end_after_the_event() -> None:
    driver = open_driver()
    driver.put(100, count=105)
    assert alerts_of(driver, *SCM) == []
    driver.wait(25)
    [alert] = alerts_of(driver, *SCM)
    assert alert.time % 10_000_000 == 0
    assert driver.time - alert.time >= 10_000_000


def test_it_clears_when_the_next_message_would_find_room_for_ten_minutes() -> None:
    driver = fill(open_driver(), 105)
    driver.get(count=10)
    driver.wait(590)
    assert len(alerts_of(driver, *SCM)) == 1
    driver.wait(30)
    assert [alert.change for alert in alerts_of(driver, *SCM)] == [OPENED, CLEARED]


def test_it_says_what_is_used_up_who_fills_it_and_what_helps() -> None:
    driver = open_driver(coupling_facility="CF01")
    for number in range(101):
        driver.put(100, queue="B.QUEUE" if number > 50 else "A.QUEUE")
    [alert] = alerts_of(driver, *SCM)
    assert alert.cause.startswith(
        f"SCM of {STORE}: 8 KB of 8 KB in use, no room for the next message. The structure is 91.0 % full, at 100 %"
        " puts fail with 2192. B.QUEUE alone fills it: 10 messages in "
    )
    assert alert.actions[0].startswith("Start more getters on B.QUEUE")
    assert alert.actions[1].startswith("Raise SCMMAXSIZE of QSG1APP1 in the CFRM policy to ")
    assert [filler.queue for filler in alert.fillers] == ["B.QUEUE"]


def test_augmented_space_is_exhausted_before_scm_is() -> None:
    driver = open_driver(scm_max_size=GIB)
    on_facility(driver, size=driver.state()["size"] + (8 << 20) + 164, scm=GIB)
    fill(driver, 101)
    assert alerts_of(driver, *SCM) == []
    [alert] = alerts_of(driver, *AUGMENTED)
    assert (alert.severity, alert.usage_pct) == (INFO, 100.0)
    assert alert.actions[1].startswith("Free storage in CF01")


def test_what_a_structure_in_scm_can_do_where_it_fills_is_no_alter() -> None:
    driver = fill(open_driver(offld1_sz="32K"), 110)
    driver.put(100, reason=2192)
    [full] = alerts_of(driver, "full", "entries")
    assert not [action for action in full.actions if "ALTER" in action]
    assert "SETXCF START,REBUILD" in full.actions[-1]


def test_alerts_of_scm_are_the_same_again_after_a_restart_of_the_twin() -> None:
    first, second = open_driver(), open_driver()
    for driver in (first, second):
        for count in (50, 60, 5):
            driver.put(100, count=count)
            driver.alter(size="1M")
            driver.wait(15)
            if driver is second:
                driver.reopen()
    assert records(first.alerts) == records(second.alerts)
    assert [alert.change for alert in alerts_of(first, *SCM)].count(OPENED) == 1
