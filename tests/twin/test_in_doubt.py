"""The alert about units of work that have been in doubt for long (docs/alerts.md)."""

import pytest

from tests.support.twin_driver import PageSetDriver, QueueFileDriver, TwinDriver
from tests.support.workloads import SECOND_US, START_US

IN_DOUBT = ("in-doubt", "units")


@pytest.mark.parametrize("open_driver", [TwinDriver, PageSetDriver, QueueFileDriver])
def test_it_opens_at_the_tick_at_which_a_unit_has_been_in_doubt_for_30_minutes(open_driver: type[TwinDriver]) -> None:
    driver = open_driver()
    driver.put(uow="XA", persistent=True, count=3)
    driver.put(persistent=True)
    driver.send("PREPARE", uow="XA")  # at 3 s
    driver.wait(1790)
    assert driver.alerts == []
    driver.wait(3 * 3600)
    assert driver.alert_changes() == [("opened", *IN_DOUBT)]
    alert = driver.alerts[0]
    assert (alert.time, alert.severity, alert.usage_pct) == (START_US + 1810 * SECOND_US, "warning", 75.0)
    assert alert.cause == (
        f"{driver.name}: 3 messages of 1 unit of work in doubt, the oldest, of QM01, prepared 30 min ago and neither"
        " committed nor backed out."
    )


def test_it_clears_when_the_unit_has_ended_and_a_restart_is_no_end() -> None:
    driver = QueueFileDriver()
    driver.put(uow="XA", persistent=True)
    driver.send("PREPARE", uow="XA")
    driver.wait(1800)
    driver.wait(10)
    driver.send("RESTART", None)
    driver.wait(3600)
    assert driver.alert_changes() == [("opened", *IN_DOUBT)]
    driver.send("COMMIT", uow="XA")
    driver.wait(80)
    assert driver.alert_changes() == [("opened", *IN_DOUBT), ("cleared", *IN_DOUBT)]
    assert driver.alerts[-1].cause.endswith("in doubt for 30 min or longer, alert cleared.")


def test_it_is_updated_when_more_of_the_store_is_in_doubt() -> None:
    driver = TwinDriver()
    driver.put(count=10)
    driver.put(uow="A")
    driver.send("PREPARE", uow="A")
    driver.wait(1820)
    driver.put(uow="B", count=9)
    driver.send("PREPARE", uow="B")
    driver.wait(10)
    assert driver.alert_changes() == [("opened", *IN_DOUBT), ("updated", *IN_DOUBT)]
    assert driver.alerts[-1].cause.startswith(f"{driver.name}: 10 messages of 2 units of work in doubt")
    assert driver.alerts[-1].usage_pct == 50.0


def test_a_unit_without_messages_in_the_store_opens_none() -> None:
    driver = PageSetDriver()
    driver.put(uow="XA", persistent=False)
    driver.send("PREPARE", uow="XA")
    driver.send("RESTART", None)
    driver.wait(7200)
    assert driver.alerts == []


def test_it_outlasts_a_restart_of_the_twin() -> None:
    driver = QueueFileDriver()
    driver.put(uow="XA", persistent=True, expiry=40_000)
    driver.send("PREPARE", uow="XA")
    state = driver.wait(60)
    assert driver.reopen().state() == state
    driver.wait(1800)
    driver.reopen().wait(60)
    assert driver.alert_changes() == [("opened", *IN_DOUBT)]
    assert driver.reopen().send("BACKOUT", uow="XA")["in_doubt"] == 0


def test_the_action_names_the_commands_of_the_platform() -> None:
    for driver, command in ((QueueFileDriver(), "rsvmqtrn -m QM01"), (PageSetDriver(), "RESOLVE INDOUBT")):
        driver.put(uow="XA", persistent=True)
        driver.send("PREPARE", uow="XA")
        driver.wait(1820)
        assert command in driver.alerts[0].actions[0]
