"""Alerts of page sets and queue files: opening, updates and clearing (docs/alerts.md)."""

from __future__ import annotations

from typing import Any

import msgspec

from kernels.watch import CANNOT_EXPAND, FULL, THRESHOLD
from tests.kernels.beside import records
from tests.support.twin_driver import PageSetDriver, QueueFileDriver, TwinDriver
from tests.support.workloads import HOUR_US, SECOND_US
from twin.alerts.episodes import Alert
from twin.conditions import CLEARED, CRITICAL, FILE, INFO, OPENED, PAGES, UPDATED, WARNING
from twin.conditions import FULL as IS_FULL
from twin.stores.page_set import PageSetTwin
from twin.stores.queue_file import QueueFileTwin

ONE_BLOCK = 148


def alerts_of(driver: TwinDriver, condition: str) -> list[Alert]:
    return [alert for alert in driver.alerts if alert.condition == condition]


def conditions(driver: TwinDriver) -> list[tuple[str, str]]:
    return [(change, condition) for change, condition, _ in driver.alert_changes()]


# -- page sets


def test_every_bit_of_the_kernels_has_its_condition() -> None:
    assert set(PageSetTwin.conditions) == {THRESHOLD, CANNOT_EXPAND, FULL}
    assert set(QueueFileTwin.conditions) == {THRESHOLD, FULL}
    assert {resource for _, resource in PageSetTwin.conditions.values()} == {PAGES}
    assert {resource for _, resource in QueueFileTwin.conditions.values()} == {FILE}


def test_a_page_set_that_expands_brings_no_alert() -> None:
    driver = PageSetDriver(expand="SYSTEM")
    driver.put(count=1000)
    assert driver.alert_changes() == []


def test_at_expand_none_the_threshold_says_that_it_cannot_expand_and_then_it_is_full() -> None:
    driver = PageSetDriver()
    driver.put(count=88)
    assert driver.alert_changes() == []
    driver.put()  # 89 of 98: 90.8 %
    [alert] = driver.alerts
    assert (alert.change, alert.condition, alert.resource, alert.severity) == (OPENED, "threshold", "pages", INFO)
    assert "; expansion threshold 90 %, cannot expand because of EXPAND(NONE)" in alert.cause
    assert "ALTER PSID(4) EXPAND(SYSTEM)" in " ".join(alert.actions)
    driver.put(count=9)
    assert alerts_of(driver, "full") == []
    driver.put(reason=2192)
    [full] = alerts_of(driver, "full")
    assert (full.time, full.usage_pct, full.severity, full.full_probability) == (driver.time, 100.0, IS_FULL, 1.0)
    assert conditions(driver) == [(OPENED, "threshold"), (UPDATED, "threshold"), (OPENED, "full")]


def test_an_expansion_that_fails_is_reported_with_its_reason() -> None:
    driver = PageSetDriver(expand="SYSTEM", max_pages=105)
    driver.put(count=89)
    assert conditions(driver) == [(OPENED, "threshold"), (UPDATED, "threshold"), (OPENED, "cannot-expand")]
    alert = driver.alerts[-1]
    assert alert.severity == INFO
    assert "cannot expand (its volumes hold 105 pages)" in alert.cause
    assert "ALTER PSID(4) EXPAND(SYSTEM)" in [step.statement for step in alert.runbook[1].steps]
    move = alert.runbook[-1]
    assert (move.id, move.steps[0].statement) == ("move-queue", "DISPLAY USAGE TYPE(PAGESET)")
    assert move.precondition is not None and "open" in move.precondition


def test_a_page_set_without_a_secondary_extent_and_one_of_119_extents_say_so() -> None:
    driver = PageSetDriver(expand="USER")
    driver.put(count=89)
    assert "EXPAND(USER) without a secondary extent" in alerts_of(driver, "cannot-expand")[0].cause
    driver = PageSetDriver(expand="USER", secondary_pages=1)
    driver.put(count=200)
    assert "(119 expansions; the maximum is 119 or 64 GB)" in alerts_of(driver, "cannot-expand")[0].cause
    assert not any("EXPAND(" in action for action in alerts_of(driver, "cannot-expand")[0].actions)


def test_an_expansion_that_failed_at_a_limit_that_is_gone_says_so() -> None:
    driver = PageSetDriver(expand="SYSTEM", max_pages=105)
    driver.put(count=89)
    driver.alter(max_pages=None)
    driver.put(reason=2192)  # makes the alert a part of another one's incident, with its text as of now
    assert (
        alerts_of(driver, "cannot-expand")[-1]
        .cause.partition(". ")[0]
        .endswith("cannot expand (its last expansion failed)")
    )


def test_an_alter_that_lets_it_expand_clears_cannot_expand() -> None:
    driver = PageSetDriver(expand="USER")
    driver.put(count=89)
    driver.alter(expand="SYSTEM")
    driver.wait(20)
    driver.wait(600)
    assert (CLEARED, "cannot-expand") in conditions(driver)
    assert (CLEARED, "threshold") not in conditions(driver)  # it expands at the next put
    driver.put()
    driver.wait(20)
    driver.wait(600)
    assert (CLEARED, "threshold") in conditions(driver)


def test_a_page_set_is_full_for_the_shortest_message_only_when_its_last_page_is_filled() -> None:
    driver = PageSetDriver(version="6.0")
    driver.put(3313, count=98)  # 3,685 bytes each: 372 are left, what the shortest takes
    assert not driver.twin.view(PAGES).has_no_room
    driver.put(0)
    assert driver.twin.view(PAGES).has_no_room


def test_a_2192_opens_full_and_it_clears_ten_minutes_after_five_without_a_2192() -> None:
    driver = PageSetDriver()
    driver.put(count=50)
    driver.put(reason=2192)
    [alert] = driver.alerts
    assert (alert.condition, alert.resource, alert.usage_pct) == ("full", "pages", 51.02)
    assert alert.cause.startswith("Pages of QM01/PS04: 51.0 % in use by the twin, but puts fail with 2192.")
    driver.wait(590)
    assert len(driver.alerts) == 1
    driver.wait(300)
    assert [alert.change for alert in driver.alerts] == [OPENED, UPDATED]  # puts succeed again
    driver.wait(30)
    assert [alert.change for alert in driver.alerts] == [OPENED, UPDATED, CLEARED]
    assert driver.alerts[-1].alert_id == alert.alert_id
    driver.put(reason=2192)
    assert driver.alerts[-1].change == OPENED
    assert driver.alerts[-1].alert_id != alert.alert_id


def test_a_threshold_is_updated_as_it_gets_worse_and_clears_two_points_below_the_mark() -> None:
    driver = PageSetDriver()
    driver.measure(pages_used=89)  # no put and few levels: nothing can be forecast, so it is a page
    driver.put(count=6)
    driver.wait(10)
    assert [(alert.change, alert.severity) for alert in driver.alerts] == [(OPENED, WARNING), (UPDATED, CRITICAL)]
    driver.get(count=8)  # 87: 88.8 %
    driver.wait(120)
    assert driver.alerts[-1].severity == WARNING
    driver.get()  # 86: 87.8 %
    driver.wait(10)
    driver.wait(610)
    assert driver.alerts[-1].change == UPDATED  # as it is measured it is watched from 80 %
    driver.wait(2 * HOUR_US / SECOND_US)
    driver.wait(10)
    driver.wait(610)
    assert driver.alerts[-1].change == CLEARED
    driver.put(count=4)
    assert driver.alerts[-1].change == OPENED


def test_the_queue_that_fills_the_pages_is_named_also_where_pages_are_shared() -> None:
    driver = PageSetDriver(queues=2, version="6.0")
    driver.put(0, queue="A.QUEUE", count=100)  # 372 bytes each, 10 a page
    driver.put(4049 * 80 - 352, queue="B.QUEUE")
    [alert] = driver.alerts
    ours, theirs = 100 * 372, 80 * 4096 + 20 + 3 * 80
    shares = {filler.queue: filler.share for filler in alert.fillers}
    assert shares == {"B.QUEUE": round(theirs / (ours + theirs), 4), "A.QUEUE": round(ours / (ours + theirs), 4)}
    assert "B.QUEUE fills it most: 90 % of 90 pages" in alert.cause


def test_the_queue_that_grew_is_named_not_the_one_that_holds_most() -> None:
    driver = PageSetDriver(queues=2)
    driver.put(queue="B.QUEUE", count=80)
    driver.wait(HOUR_US / SECOND_US)
    driver.put(queue="A.QUEUE", count=9)
    [alert] = driver.alerts
    assert [(filler.queue, filler.share) for filler in alert.fillers] == [("A.QUEUE", 1.0)]


def test_what_a_measure_finds_is_reported_at_once_and_drift_after_three() -> None:
    driver = PageSetDriver()
    driver.measure(pages_used=95, messages=95)
    assert conditions(driver) == [(OPENED, "threshold")]
    driver = PageSetDriver()
    driver.put(count=50)
    driver.measure(pages_used=50)
    for _ in range(3):  # so few more are calls under way, no sample
        driver.measure(pages_used=58)
    [alert] = alerts_of(driver, "drift")
    assert alert.resource == "pages"
    assert "DISPLAY USAGE TYPE(PAGESET)" in alert.actions[-1]
    driver.measure(pages_used=50)
    assert alerts_of(driver, "drift")[-1].change == CLEARED


def test_what_nothing_reports_is_no_drift() -> None:
    driver = PageSetDriver()
    for pages in (95, 50, 50, 50):
        state = driver.measure(pages_used=pages, messages=pages)
    assert (state["pages_used"], state["drift_pct"]) == (50, 0)
    assert not alerts_of(driver, "drift")


def test_what_events_lack_is_said_before_it_is_corrected() -> None:
    """Measurements correct a sample; by how much, the state says, and nobody is alerted."""
    driver = PageSetDriver()
    driver.put(count=10)
    for pages in (10, 30, 50, 70):
        state = driver.measure(pages_used=pages, messages=pages)
    assert (state["pages_used"], round(state["drift_pct"])) == (70, -20)
    assert not alerts_of(driver, "drift")


def test_a_restart_that_takes_the_messages_away_clears() -> None:
    driver = PageSetDriver()
    driver.put(count=98)
    driver.put(reason=2192)
    driver.send("RESTART", None, store="QM01/PS04")
    driver.wait(10)
    driver.wait(910)
    assert sorted(conditions(driver))[:2] == [(CLEARED, "full"), (CLEARED, "threshold")]
    assert not driver.twin.episodes.any_open


# -- queue files


def test_a_file_that_nears_its_maximum_is_reported_and_then_it_is_full() -> None:
    driver = QueueFileDriver(max_size=100 * 512)
    driver.put(ONE_BLOCK, count=8 + 90)
    assert driver.alert_changes() == []
    driver.put(ONE_BLOCK)
    [alert] = driver.alerts
    assert (alert.condition, alert.resource, alert.usage_pct, alert.severity) == ("threshold", "file", 91.0, INFO)
    assert alert.cause.startswith(
        "File blocks of QM01/A.QUEUE: 91.0 % in use; threshold 90 %. A.QUEUE alone fills it: "
    )
    assert "ALTER QLOCAL(A.QUEUE) MAXFSIZE(1)" in " ".join(alert.actions)
    driver.put(ONE_BLOCK, count=9)
    driver.put(ONE_BLOCK, reason=2056)
    assert [change for change in conditions(driver) if change[0] == OPENED] == [(OPENED, "threshold"), (OPENED, "full")]
    driver.get(count=60)
    driver.wait(10)
    driver.wait(910)
    assert conditions(driver)[-2:] == [(CLEARED, "threshold"), (CLEARED, "full")]


def test_where_the_file_system_is_the_limit_it_is_what_helps() -> None:
    driver = QueueFileDriver(file_system_size=100 * 512)
    driver.put(ONE_BLOCK, count=8 + 91)
    assert "Enlarge the file system of QM01 beyond 50K" in driver.alerts[0].actions


def test_free_and_allocated_blocks_do_not_count_as_used() -> None:
    driver = QueueFileDriver(max_size=100 * 512)
    driver.put(ONE_BLOCK, count=8 + 89)
    driver.get(count=80)
    driver.put(ONE_BLOCK, count=20)
    assert driver.alert_changes() == []


def test_a_queue_file_that_drifts_names_blocks_or_file() -> None:
    driver = QueueFileDriver()
    driver.put(ONE_BLOCK, count=40)
    driver.measure(messages=40)
    for _ in range(3):
        driver.measure(blocks_nonpersistent=60)
    [alert] = driver.alerts
    assert (alert.condition, alert.resource) == ("drift", "blocks")
    assert "QM01/A.QUEUE, blocks: the twin is 35.7 % of the total below the measurement" in alert.cause


# -- what must not matter


def test_alerts_are_the_same_after_a_restart_of_the_program() -> None:
    def story(driver: Any, again: bool) -> list[bytes]:
        for step in ("put", "put", "get", "wait", "wait", "wait", "put"):
            if step == "put":
                driver.put(2000, count=95, persistent=True)
            elif step == "get":
                driver.get(count=120)
            else:
                driver.wait(400)
            if again:
                driver.reopen()
        return records(driver.alerts)

    for make in (lambda: PageSetDriver(version="6.0"), PageSetDriver, lambda: QueueFileDriver(max_size=700 * 512)):
        expected = story(make(), again=False)
        assert len(expected) >= 3
        assert story(make(), again=True) == expected
        assert all(msgspec.json.decode(record)["data"]["cause"] for record in expected)


def test_a_rise_that_fills_nothing_within_the_horizon_names_the_file_not_entries() -> None:
    driver = QueueFileDriver(max_size=10 << 20, forecast_horizon_s=7200.0)
    forecasts: list[dict[str, Any]] = []
    for _ in range(90):  # 20 of 20,480 blocks each tick: full after 2.6 hours, the horizon is two
        driver.time += 10 * SECOND_US
        driver.put(ONE_BLOCK, count=20, persistent=True)
        forecast = driver.state()["forecast"]
        forecasts += [] if forecast is None else forecast["resources"]
    assert min(each["full_probability"] for each in forecasts) == 0.0
    assert {each["resource"] for each in forecasts} == {"file"}
