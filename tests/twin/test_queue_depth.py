"""MAXDEPTH: a put to a queue that holds as many messages fails with 2053, before the store is full (docs/alerts.md)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.twin_driver import PageSetDriver, QueueFileDriver, TwinDriver, demands
from twin.alerts.episodes import Alert
from twin.base.conditions import CLEARED, OPENED
from twin.estate import EstateError, load_estate

QUEUE_FULL = "queue-full"
A_QUEUE = "queue/A.QUEUE"


def open_driver(max_depth: int | None, driver: TwinDriver | None = None) -> TwinDriver:
    """Return a twin whose A.QUEUE has that MAXDEPTH; None: the estate does not give it."""
    driver = driver or TwinDriver()
    depths = {driver.name: {"A.QUEUE": max_depth}} if max_depth else {}
    driver.decoding.estate = replace(driver.decoding.estate, max_depths=depths)
    driver.twin = driver.decoding.twin()
    return driver


# -- the alert


def test_a_queue_is_full_at_the_very_put_that_reaches_maxdepth() -> None:
    driver = open_driver(10)
    driver.put(count=9)
    assert driver.alerts == []
    driver.put()
    [alert] = driver.alerts
    assert (alert.change, alert.condition, alert.resource, alert.severity) == (OPENED, QUEUE_FULL, A_QUEUE, "full")
    assert (alert.usage_pct, alert.time, [filler.queue for filler in alert.fillers]) == (
        100.0,
        driver.time,
        ["A.QUEUE"],
    )
    assert "10 of MAXDEPTH(10), the next put fails with 2053" in alert.cause
    assert any("ALTER QLOCAL(A.QUEUE) QSGDISP(SHARED) MAXDEPTH(20)" in action for action in alert.actions)


@pytest.mark.parametrize("driver", [PageSetDriver, QueueFileDriver])
def test_every_kind_of_store_watches_its_queues(driver: type[TwinDriver]) -> None:
    opened = open_driver(3, driver())
    opened.put(count=3)
    assert (OPENED, QUEUE_FULL, A_QUEUE) in opened.alert_changes()


def test_a_queue_without_maxdepth_is_not_watched() -> None:
    driver = open_driver(None)
    driver.put(count=25)
    assert QUEUE_FULL not in [condition for _, condition, _ in driver.alert_changes()]


def test_other_queues_of_the_store_do_not_count() -> None:
    driver = open_driver(10)
    driver.put(count=9)
    driver.put(queue="B.QUEUE", count=9)
    assert driver.alerts == []


def test_a_put_refused_with_2053_is_counted_and_opens_the_alert() -> None:
    driver = open_driver(10)
    state = driver.put(reason=2053, count=4)
    assert (state["queue_full_puts"], state["full_puts"], state["messages"]) == (4, 0, 0)
    assert driver.alert_changes() == [(OPENED, QUEUE_FULL, A_QUEUE)]


def test_a_refused_put_opens_the_alert_although_the_estate_gives_no_maxdepth() -> None:
    driver = open_driver(None)
    driver.put(count=5)
    driver.put(reason=2053)
    [alert] = driver.alerts
    assert "5 messages, puts fail with 2053; its MAXDEPTH is not in the estate" in alert.cause


def test_an_uncommitted_put_counts_and_an_uncommitted_get_does_not() -> None:
    """CurrentQDepth: incremented by MQPUT and by the backout of an MQGET, decremented by MQGET."""
    driver = open_driver(10)
    driver.put(count=8)
    driver.get(uow="1", count=2)
    driver.put(count=3)
    assert driver.alerts == []
    driver.send("BACKOUT", uow="1")  # 11 messages
    driver.get(count=2)
    driver.put(uow="2")
    assert driver.alert_changes() == [(OPENED, QUEUE_FULL, A_QUEUE)]


def test_it_clears_ten_minutes_after_the_queue_has_room_and_five_without_a_2053() -> None:
    driver = open_driver(10)
    driver.put(count=10)
    driver.get(count=5)
    driver.wait(630)
    assert driver.alert_changes() == [(OPENED, QUEUE_FULL, A_QUEUE), (CLEARED, QUEUE_FULL, A_QUEUE)]
    driver.put(count=5)
    driver.put(reason=2053)
    driver.get(count=5)
    driver.wait(890)
    full = [change for change in driver.alert_changes() if change[1] == QUEUE_FULL]
    assert full[2:] == [(OPENED, QUEUE_FULL, A_QUEUE)]
    driver.wait(30)
    full = [change for change in driver.alert_changes() if change[1] == QUEUE_FULL]
    assert full[3:] == [(CLEARED, QUEUE_FULL, A_QUEUE)]


def test_a_restart_keeps_the_alert_and_what_is_uncommitted() -> None:
    driver = open_driver(10)
    driver.put(count=10)
    driver.get(uow="1", count=3)
    driver.reopen()
    driver.wait(630)
    assert driver.alert_changes() == [(OPENED, QUEUE_FULL, A_QUEUE), (CLEARED, QUEUE_FULL, A_QUEUE)]


# -- how long until MAXDEPTH

AHEAD = "queue-full-forecast"


def fill(driver: TwinDriver, minutes: int, puts: int, gets: int) -> None:
    """Apply puts and gets each minute."""
    for _ in range(minutes):
        driver.put(count=puts) if puts else None
        driver.get(count=gets) if gets else None
        driver.wait(60 - (driver.time // 1_000_000) % 60)


def ahead(driver: TwinDriver) -> list[Alert]:
    return [alert for alert in driver.alerts if alert.condition == AHEAD]


@pytest.mark.parametrize("kind", [TwinDriver, PageSetDriver, QueueFileDriver])
def test_a_growing_queue_is_a_watch_before_maxdepth_that_says_how_long_it_takes(kind: type[TwinDriver]) -> None:
    driver = open_driver(90, kind())
    fill(driver, 40, 1, 1)
    assert ahead(driver) == []
    began = driver.time
    fill(driver, 90, 1, 0)
    opened, *updates = ahead(driver)
    assert (opened.change, opened.resource, opened.data().level) == (OPENED, A_QUEUE, "watch")
    [full] = [alert for alert in driver.alerts if alert.condition == QUEUE_FULL]
    left_min = (full.time - opened.time) / 60e6
    assert 20 < left_min < 40  # the lead of 30 minutes, from 15 to 30 minutes of growth
    assert f"Depth of A.QUEUE: {opened.usage_pct:.1f} % of MAXDEPTH, reached in " in opened.cause
    assert "then puts fail with 2053" in opened.cause
    assert opened.time > began and {alert.change for alert in updates} == {"updated"}


def test_it_is_over_when_the_queue_has_stopped_growing() -> None:
    driver = open_driver(90)
    fill(driver, 75, 1, 0)
    assert [alert.change for alert in ahead(driver)][:1] == [OPENED]
    fill(driver, 40, 1, 1)
    assert ahead(driver)[-1].change == CLEARED
    cause = ahead(driver)[-1].cause
    assert cause.endswith("of MAXDEPTH, alert cleared. Getters of A.QUEUE have been back since 2026-11-20 13:15 UTC.")


def test_a_queue_without_maxdepth_and_one_that_grows_slowly_are_no_watch() -> None:
    for limit in (None, 100_000):
        driver = open_driver(limit)
        fill(driver, 60, 1, 0)
        assert ahead(driver) == []


def test_a_restart_changes_no_alert() -> None:
    whole, pieces = open_driver(90), open_driver(90)
    for _ in range(12):
        for driver in (whole, pieces):
            fill(driver, 10, 1, 0)
        pieces.reopen()
    assert pieces.alert_changes() == whole.alert_changes()
    assert (OPENED, AHEAD, A_QUEUE) in whole.alert_changes()


# -- demands


def test_a_demand_gets_2053_before_2192() -> None:
    driver = open_driver(10)
    events = demands(driver.decoding.estate.route_of_queue("QM01", "A.QUEUE"), [100] * 12)
    driver.twin.demand(events)
    assert [int(reason) for reason in events["reason"]] == [0] * 10 + [2053] * 2


# -- the estate

ESTATE = """\
schema = 1
[[import]]
mqsc = "qsg1.mqsc"
queue_sharing_group = "QSG1"
[queue_sharing_group.QSG1]
queue_managers = ["QM01"]
[structure."QSG1/APP1"]
size = "1M"
[queue."QSG1/AUDIT"]
structure = "APP1"
{audit}
"""
MQSC = "DEF CFSTRUCT(APP1) CFLEVEL(4)\nDEF QL(ORDERS) QSGDISP(SHARED) CFSTRUCT(APP1) MAXDEPTH(250000)\n"


def write(folder: Path, audit: str = "") -> Path:
    (folder / "qsg1.mqsc").write_text(MQSC)
    file = folder / "estate.toml"
    file.write_text(ESTATE.format(audit=audit))
    return file


def test_maxdepth_comes_from_mqsc_and_toml(tmp_path: Path) -> None:
    assert load_estate(write(tmp_path)).max_depths == {"QSG1/APP1": {"ORDERS": 250_000}}
    estate = load_estate(write(tmp_path, "max_depth = 7"))
    assert estate.max_depths == {"QSG1/APP1": {"ORDERS": 250_000, "AUDIT": 7}}


def test_max_depth_is_a_number_of_messages(tmp_path: Path) -> None:
    with pytest.raises(EstateError, match="max_depth = 0: must be an integer of 1 to 999999999"):
        load_estate(write(tmp_path, "max_depth = 0"))
