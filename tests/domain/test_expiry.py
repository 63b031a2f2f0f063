"""Expiry: an expired message holds its storage until a scan, a get that meets it, or an EXPIRE (docs/events.md)."""

import pytest

from tests.support.store_driver import Open, StoreDriver
from tests.support.workloads import SECOND_US, START_US

SCAN = 300  # seconds; START_US is the time of a scan


def held(driver: StoreDriver) -> tuple[int, int]:
    """Return (messages, those of them that have expired)."""
    state = driver.state()
    return state["messages"], state["expired_held"]


def advance(driver: StoreDriver, seconds: float) -> StoreDriver:
    """Let the time be that many seconds after the start."""
    driver.send("HEARTBEAT", None, time=START_US + int(seconds * SECOND_US))
    return driver


def test_the_start_is_the_time_of_a_scan() -> None:
    assert START_US % (SCAN * SECOND_US) == 0


def test_an_expired_message_of_a_queue_file_goes_at_the_scan_every_five_minutes(queue_file: Open) -> None:
    """WebSphere MQ internals: "Message Expiry scanner - approximately every 5 minutes"."""
    driver = queue_file()
    driver.put(expiry=60)  # at 1 s
    driver.put(expiry=299.1)  # at 2 s: it expires after the scan
    driver.put()
    assert held(advance(driver, 60)) == (3, 0)
    assert held(advance(driver, 61)) == (3, 1)
    assert held(advance(driver, 299)) == (3, 1)
    assert held(advance(driver, 300)) == (2, 0)
    assert held(advance(driver, 599)) == (2, 1)
    assert held(advance(driver, 86_400)) == (1, 0)


def test_on_zos_nothing_scans_by_default(page_set: Open) -> None:
    driver = page_set()
    driver.put(expiry=1)
    assert held(advance(driver, 86_400)) == (1, 1)
    assert driver.state()["pages_used"] == 1


@pytest.mark.parametrize(("interval", "gone"), [(20, 20), (30, 30), (25, 30), (300, 300), (4, 10)])
def test_the_interval_of_the_queue_manager_counts_and_the_next_tick_acts(
    page_set: Open, interval: float, gone: int
) -> None:
    driver = page_set(expiry_interval_s=interval)
    driver.put(expiry=4)  # at 1 s
    assert held(advance(driver, gone - 1)) == (1, 1)
    assert held(advance(driver, gone)) == (0, 0)


def test_an_interval_of_0_switches_the_scan_off(queue_file: Open) -> None:
    driver = queue_file(expiry_interval_s=0)
    driver.put(expiry=1)
    assert held(advance(driver, 86_400)) == (1, 1)


def test_a_get_of_any_message_removes_the_expired_ones_that_it_meets(page_set: Open) -> None:
    driver = page_set()
    driver.put(1, expiry=1, priority=5)
    driver.put(2, expiry=1)
    driver.put(4)
    driver.put(8, expiry=1)
    driver.put(16)
    assert held(advance(driver, 60)) == (5, 3)
    assert driver.get()["bytes"] == 8 + 16
    assert driver.get()["bytes"] == 0
    assert driver.state()["unmatched_gets"] == 0


def test_a_get_by_id_that_succeeded_found_its_message(page_set: Open) -> None:
    driver = page_set()
    driver.put(1, expiry=1, msgid="m1")
    advance(driver, 60)
    assert driver.get(msgid="m1")["messages"] == 0
    assert driver.state()["unmatched_gets"] == 0


def test_an_uncommitted_message_does_not_expire_before_its_unit_ends(queue_file: Open) -> None:
    driver = queue_file()
    driver.put(uow="U", expiry=1)
    assert held(advance(driver, 300)) == (1, 1)
    driver.send("COMMIT", uow="U")
    assert held(driver) == (1, 1)
    assert held(advance(driver, 600)) == (0, 0)


def test_the_expiry_of_a_persistent_message_is_logged(queue_file: Open) -> None:
    driver = queue_file()
    driver.put(persistent=True, expiry=1, count=3)
    assert advance(driver, 300).state()["log_records"] == 6


def test_log_records_of_a_scan_bring_a_checkpoint(queue_file: Open) -> None:
    driver = queue_file()
    driver.put(20_000, persistent=True, expiry=2000, count=60)
    assert advance(driver, 2000).state()["checkpoints"] == 0
    state = advance(driver, 2200).state()
    assert (state["log_records"], state["checkpoints"], state["messages"]) == (120, 1, 0)


def test_an_expire_event_takes_a_message_as_before(page_set: Open) -> None:
    driver = page_set()
    driver.put(expiry=600)
    assert driver.send("EXPIRE")["messages"] == 0


@pytest.mark.parametrize(("expiry", "last_second"), [(0.05, 0.1), (0.1, 0.1), (1.23, 1.3), (2, 2)])
def test_expiry_counts_in_tenths_of_a_second(page_set: Open, expiry: float, last_second: float) -> None:
    driver = page_set()
    driver.put(expiry=expiry)  # at 1 s
    assert held(advance(driver, 1 + last_second - 0.001)) == (1, 0)
    assert held(advance(driver, 1 + last_second)) == (1, 1)
