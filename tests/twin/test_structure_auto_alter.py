"""Automatic alter beyond the scripts of `tests/cases/stores`: a climb by many samples, remedies of a view.

Sources: docs/storage-model.md (sampled every 60 s of event time; to the in-use ratio, then by 10 % up to SIZE); [IBM:
How storage class memory works with IBM MQ for z/OS] (neither manually nor automatically).
"""

from typing import Any

import pytest

from tests.naive.estates import ENTRY_AND_6_ELEMENTS
from tests.support.store_driver import GIB, NO_RULES
from tests.support.twin_driver import TwinDriver
from tests.support.workloads import MINUTE_US
from twin.base.conditions import CLEARED, ELEMENTS, OPENED, Condition

pytestmark = pytest.mark.uncompiled


def open_driver(entries: int = 100, max_entries: int = 200, **fields: Any) -> TwinDriver:
    """Open a twin allocated with `entries`, which may grow to `max_entries`, at a whole minute of event time."""
    sizes = {"init_size": entries * ENTRY_AND_6_ELEMENTS, "size": max_entries * ENTRY_AND_6_ELEMENTS}
    driver = TwinDriver(**(NO_RULES | sizes | {"allow_auto_alter": True} | fields))
    driver.time += -driver.time % MINUTE_US
    return driver


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


def test_the_remedy_of_elements_offloads_sooner_while_data_is_in_scm() -> None:
    driver = TwinDriver(**(NO_RULES | {"size": 1024**2, "scm_max_size": GIB}))
    driver.put(10_000, count=65)
    driver.wait(10)
    state = driver.state()
    assert (state["scm"]["messages"] > 0, state["alterable"]) == (True, False)
    actions = driver.twin.view(ELEMENTS).actions(Condition.FULL, ())
    assert [action for action in actions if "ALTER CFSTRUCT(APP1)" in action.sentence]
    assert not [action for action in actions if "START,ALTER" in action.sentence]
