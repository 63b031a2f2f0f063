"""Alerts about the pace of storage class memory: the mover, and gets that wait (docs/alerts.md)."""

import pytest

from tests.naive.estates import ENTRY_AND_6_ELEMENTS
from tests.support.store_driver import GIB, MIB, NO_RULES
from tests.support.twin_driver import TwinDriver
from twin.stores.structure_view import mover_rate

OVERRUN, WAIT = ("scm-overrun", "scm"), ("fault-wait", "scm")


def open_driver(entries: int, **fields: object) -> TwinDriver:
    size = -(-entries * 100 // 97) * ENTRY_AND_6_ELEMENTS
    return TwinDriver(**(NO_RULES | {"size": size, "scm_max_size": GIB} | fields))


@pytest.mark.parametrize(("length", "rate"), [(2048, 122_070), (100, 122_070), (32_768, 13_563)])
def test_the_mover_takes_122070_messages_of_2_kb_per_second(length: int, rate: int) -> None:
    """500 MB/s in blocks of 4 KB: 2 KB take 1 of them, 32 KB 9."""
    driver = open_driver(1000)
    driver.put(length, count=5)
    assert int(mover_rate(driver.twin.tables.store)) == rate


def test_puts_faster_than_the_mover_open_an_alert_that_clears_when_it_keeps_up() -> None:
    driver = open_driver(10_000, scm_prestage_rate=MIB)  # 256 messages/s
    for _ in range(12):
        driver.put(100, count=250)
    assert driver.alerts == []
    for _ in range(33):
        driver.put(100, count=300)
    opened = [alert for alert in driver.alerts if alert.condition == OVERRUN[0]]
    assert [(alert.change, alert.severity) for alert in opened] == [("opened", "critical")]
    assert "grows by 300 messages/s, the mover takes 256 messages/s" in opened[0].cause
    assert driver.state()["ents_used"] / driver.state()["ents_max"] > 0.9
    driver.wait(630)
    assert ("cleared", *OVERRUN) in driver.alert_changes()


def test_gets_as_fast_as_the_puts_leave_the_mover_nothing_to_do() -> None:
    driver = open_driver(10_000, scm_prestage_rate=MIB)
    driver.put(100, count=9_500)
    driver.wait(20)
    alerts = len(driver.alerts)
    for _ in range(30):
        driver.put(100, count=1000)
        driver.get(count=1000)
    assert ("opened", *OVERRUN) not in driver.alert_changes()[alerts:]


def test_gets_that_wait_for_a_tenth_of_the_time_open_an_alert() -> None:
    driver = open_driver(100, scm_read_us=100_000)
    for number in range(200):
        driver.put(100, msgid=f"m{number}")
    driver.wait(60)
    assert driver.state()["scm"]["messages"] > 100
    start = len(driver.alerts)
    for number in range(199, 159, -1):  # the newest ones, one a second: 10 a tick wait for 1 s together
        driver.get(msgid=f"m{number}")
    assert WAIT not in [(alert.condition, alert.resource) for alert in driver.alerts[start:]]
    for number in range(159, 139, -1):
        driver.time -= 500_000
        driver.get(msgid=f"m{number}")
    driver.wait(10)
    waits = [alert for alert in driver.alerts[start:] if alert.condition == WAIT[0]]
    assert [(alert.change, alert.severity) for alert in waits] == [("opened", "info")]
    driver.wait(660)
    assert driver.alert_changes()[-1] == ("cleared", *WAIT)


def test_the_counters_outlast_a_restart_of_the_twin() -> None:
    whole, pieces = (open_driver(1000, scm_prestage_rate=MIB) for _ in range(2))
    for second in range(60):
        for driver in (whole, pieces):
            driver.put(100, count=300)
        if second % 7 == 3:
            pieces.reopen()
    assert pieces.alert_changes() == whole.alert_changes() != []
