"""Alerts and restart of the twin with automatic alter, and with the alter that storage class memory forbids.

The rules: tests/domain/test_auto_alter.py.
Sources: docs/storage-model.md (sampled every 60 s of event time; to the in-use ratio, then by 10 % up to SIZE); [IBM:
How storage class memory works with IBM MQ for z/OS] (neither manually nor automatically).
"""

from typing import Any

import pytest

from tests.naive.estates import ENTRY_AND_6_ELEMENTS, STORE
from tests.support.store_driver import GIB, NO_RULES
from tests.support.twin_driver import TwinDriver
from tests.support.workloads import MINUTE_US
from twin.conditions import CLEARED, ELEMENTS, OPENED, Condition

pytestmark = pytest.mark.uncompiled

NOT_ALTERABLE = ("not-alterable", "scm")


def open_driver(entries: int = 100, max_entries: int = 200, **fields: Any) -> TwinDriver:
    """Open a twin allocated with `entries`, which may grow to `max_entries`, at a whole minute of event time."""
    sizes = {"init_size": entries * ENTRY_AND_6_ELEMENTS, "size": max_entries * ENTRY_AND_6_ELEMENTS}
    driver = TwinDriver(**(NO_RULES | sizes | {"allow_auto_alter": True} | fields))
    driver.time += -driver.time % MINUTE_US
    return driver


def with_scm(**fields: Any) -> TwinDriver:
    """Open a twin with SCM: 100 entries of 104."""
    return open_driver(104, 208, **({"scm_max_size": GIB} | fields))


def pools(state: dict[str, Any]) -> tuple[int, int]:
    return state["ents_max"], state["elems_max"]


# -- ALLOWAUTOALT(YES)


def test_the_ratio_outlasts_a_restart_of_the_twin() -> None:
    driver = open_driver()
    driver.put(100, count=60)
    driver.put(600, count=21)  # 4 elements: 81 entries, 204 elements
    state = driver.wait(60)
    entries = 100 * ENTRY_AND_6_ELEMENTS * 81 // (695 * 81 + 256 * 204)
    assert pools(state) == (entries, entries * 204 // 81)
    again = driver.reopen()
    assert again.state() == state
    bigger = again.alter(size=110 * ENTRY_AND_6_ELEMENTS)
    assert bigger["ents_max"] == 110 * ENTRY_AND_6_ELEMENTS * 81 // (695 * 81 + 256 * 204)


def test_a_threshold_that_it_relieves_alerts_nobody() -> None:
    driver = open_driver()
    driver.put(1164, count=85)
    state = driver.wait(300)
    assert driver.alert_changes() == []
    assert (state["auto_alters"], state["usage_pct"] < 80) == (1, True)


def test_a_climb_through_all_its_steps_alerts_once_when_size_does_not_suffice() -> None:
    driver = open_driver()
    for _ in range(45):
        driver.put(1164, count=4)
        driver.wait(60)
    opened = [alert for alert in driver.alerts if (alert.change, alert.condition) == (OPENED, "threshold")]
    assert [alert.resources for alert in opened] == [("elements", "entries")]
    assert all(alert.usage_pct is not None and alert.usage_pct >= 80 for alert in opened)
    assert "automatic alter" in opened[0].cause
    assert driver.state()["size"] == 200 * ENTRY_AND_6_ELEMENTS
    assert CLEARED not in [change for change, _, _ in driver.alert_changes()]


def test_what_it_was_left_to_relieve_and_could_not_is_reported_at_the_next_sample() -> None:
    driver = open_driver(max_entries=110)
    driver.put(1164, count=81)
    driver.put(1164, count=12)  # 93 of 110 at most: 84.5 %
    assert driver.alert_changes() == []
    driver.wait(60)
    [alert] = driver.alerts
    assert (alert.change, alert.condition, alert.resources) == (OPENED, "threshold", ("entries", "elements"))
    assert alert.time % MINUTE_US == 0


def test_a_restart_between_threshold_and_alter_keeps_quiet() -> None:
    driver = open_driver()
    driver.put(1164, count=85)
    driver.reopen()
    driver.put(1164)
    assert driver.wait(60)["auto_alters"] == 1
    assert driver.alert_changes() == []


def test_a_ratio_that_takes_the_other_pool_to_its_threshold_opens_its_alert() -> None:
    driver = open_driver(max_entries=100)
    driver.put(100, count=92)
    driver.put(23_180, count=3)  # 95 entries of 100; 184 and 276 elements of 600, 82 % of either afterwards
    assert driver.alerts == []
    driver.wait(60)
    [alert] = driver.alerts
    assert (alert.change, alert.condition, alert.resources) == (OPENED, "threshold", ("elements", "entries"))
    assert alert.time % MINUTE_US == 0


# -- the seed: no alter while data is in SCM


def test_while_data_is_in_scm_the_size_of_a_structure_is_not_altered() -> None:
    driver = with_scm(allow_auto_alter=False)
    driver.put(100, count=91)
    state = driver.state()
    assert (state["alterable"], state["scm"]["messages"]) == (False, 1)
    for number, change in enumerate(({"size": "200K"}, {"size": "200K", "offld1_th": 10}), start=1):
        after = driver.alter(**change)
        assert after["refused_alters"] == number
        assert (after["size"], after["offload_rule"]) == (state["size"], 0)
    assert driver.alert_changes().count((OPENED, *NOT_ALTERABLE)) == 1
    assert driver.alerts[-1].cause.count("refused at 2026-11-20 12:00 UTC.") == 2


def test_while_data_is_in_scm_alter_cfstruct_is_taken_without_an_alert() -> None:
    driver = with_scm(allow_auto_alter=False)
    driver.put(100, count=95)
    driver.wait(1)
    assert driver.state()["scm"]["messages"] == 5
    before = driver.alter(offld1_th=0, offld1_sz="1K", ds_expand=False)
    assert (before["refused_alters"], before["offload_rule"], before["alterable"]) == (0, 1, False)
    after = driver.put(20_000)
    assert after["offloaded_messages"] == 1
    assert "not-alterable" not in [alert.condition for alert in driver.alerts]


def test_the_remedy_of_elements_offloads_sooner_while_data_is_in_scm() -> None:
    driver = TwinDriver(**(NO_RULES | {"size": 1024**2, "scm_max_size": GIB}))
    driver.put(10_000, count=65)
    driver.wait(10)
    state = driver.state()
    assert (state["scm"]["messages"] > 0, state["alterable"]) == (True, False)
    actions = driver.twin.view(ELEMENTS).actions(Condition.FULL, ())
    assert [action for action in actions if "ALTER CFSTRUCT(APP1)" in action.sentence]
    assert not [action for action in actions if "START,ALTER" in action.sentence]


def test_it_is_alterable_again_when_nothing_is_in_scm_any_more() -> None:
    driver = with_scm(allow_auto_alter=False)
    driver.put(100, count=91)
    driver.alter(size="200K")
    driver.get(count=30)
    assert driver.state()["alterable"]
    assert driver.alter(size="200K")["size"] == 200 * 1024
    driver.wait(75)
    assert (CLEARED, *NOT_ALTERABLE) in driver.alert_changes()
    driver.wait(540)
    assert (CLEARED, "threshold", "entries") in driver.alert_changes()


def test_automatic_alter_is_refused_once_a_look_and_reported_once() -> None:
    driver = with_scm()
    driver.put(100, count=100)
    for minutes in range(1, 4):
        assert driver.wait(60)["refused_alters"] == minutes
    assert driver.wait(3600)["refused_alters"] == 63
    assert [alert.time % MINUTE_US for alert in driver.alerts if alert.condition == "not-alterable"] == [0]
    driver.wait(40 * 86_400)
    assert driver.wait(0)["refused_alters"] == 63 + 40 * 1440
    assert driver.state()["size"] == 104 * ENTRY_AND_6_ELEMENTS


def test_the_words_of_the_alert() -> None:
    driver = with_scm(allow_auto_alter=False)
    driver.put(100, count=95)
    driver.wait(1)
    driver.alter(size="200K")
    [alert] = [alert for alert in driver.alerts if alert.condition == "not-alterable"]
    assert alert.cause.startswith(
        f"{STORE}: alter refused, 5 messages (4 KB) are in SCM. Size and ratio of a structure with data in SCM cannot"
        " be altered, neither by SETXCF nor automatically. A.QUEUE alone"
    )
    assert alert.actions[0].startswith("Start more getters on A.QUEUE")
    assert alert.runbook[-1].summary == "Or change the CFRM policy, which a rebuild takes over"
    assert [step.statement for step in alert.runbook[-1].steps] == [
        *(None, "D XCF,POLICY,TYPE=CFRM", None),
        "SETXCF START,REBUILD,STRNAME=QSG1APP1",
    ]
