"""Alerts of a structure: opening, updates and clearing (docs/alerts.md); z/OS structure full monitoring."""

from typing import Any

import msgspec
import pytest

from kernels import _compile
from tests.kernels.beside import records
from tests.naive.estates import ENTRY_AND_6_ELEMENTS, data_set
from tests.support import uncompiled
from tests.support.mutation import mutated
from tests.support.store_driver import NO_RULES
from tests.support.twin_driver import TwinDriver
from tests.support.workloads import HOUR_US, SECOND_US
from twin.alerts.episodes import Alert
from twin.conditions import CLEARED, CRITICAL, FULL, INFO, OPENED, UPDATED, WARNING
from twin.records import PART, ROOT

TICK_US = 10 * SECOND_US  # the raster of event time on which alerts are looked at
THRESHOLD, AT_FULL = ("threshold", "entries"), ("full", "entries")


def open_driver(entries: int = 100, **fields: Any) -> TwinDriver:
    """Open a twin of `entries`; messages of 100 bytes take 2 of its 6 elements an entry: entries run out first."""
    return TwinDriver(size=entries * ENTRY_AND_6_ELEMENTS, **(NO_RULES | fields))


def alerts_of(driver: TwinDriver, condition: str, resource: str) -> list[Alert]:
    return [alert for alert in driver.alerts if (alert.condition, alert.resource) == (condition, resource)]


# -- opening


def test_the_threshold_alert_opens_at_the_very_event_that_reaches_fullthreshold() -> None:
    driver = open_driver()
    driver.put(count=79)
    assert driver.alerts == []
    driver.put()
    [alert] = driver.alerts
    assert (alert.change, alert.condition, alert.resource) == (OPENED, *THRESHOLD)
    assert (alert.time, alert.usage_pct, alert.severity) == (driver.time, 80.0, INFO)


def test_it_opens_once() -> None:
    driver = open_driver()
    for _ in range(84):
        driver.put()
    thresholds = [change for change in driver.alert_changes() if change[1] != "full-forecast"]
    assert thresholds == [(OPENED, *THRESHOLD)]


def test_elements_have_a_threshold_of_their_own() -> None:
    driver = open_driver()
    driver.put(64_512, count=2)  # 508 of 600 elements
    assert driver.alert_changes() == [(OPENED, "threshold", "elements")]


def test_puts_that_succeed_where_the_model_has_no_room_update_no_alert() -> None:
    driver = open_driver()
    driver.put(count=100)
    for _ in range(40):
        driver.put()
        driver.wait(10)
    assert driver.state()["overfull_puts"] == 40
    assert alerts_of(driver, *AT_FULL) == []


def test_a_structure_is_full_at_the_first_put_that_is_refused_not_at_the_last_that_is_taken() -> None:
    driver = open_driver()
    driver.put(count=100)
    assert alerts_of(driver, *AT_FULL) == []
    driver.put(reason=2192)
    [alert] = alerts_of(driver, *AT_FULL)
    assert (alert.change, alert.time, alert.usage_pct, alert.severity) == (OPENED, driver.time, 100.0, FULL)
    assert alert.full_probability == 1.0
    driver.put(count=3)
    driver.put(reason=2192)
    assert len(alerts_of(driver, *AT_FULL)) == 1


def test_a_structure_of_which_the_elements_run_out_is_full_by_them() -> None:
    driver = open_driver()
    driver.put(64_512, count=2)
    driver.put(23_180)  # 92: 600 of 600
    driver.put(reason=2192)
    assert [alert.change for alert in alerts_of(driver, "full", "elements")] == [OPENED]


def test_puts_that_reach_both_open_both_the_lesser_first() -> None:
    driver = open_driver()
    driver.put(count=100)
    driver.put(reason=2192)
    assert [change for change in driver.alert_changes() if change[0] == OPENED] == [
        (OPENED, *THRESHOLD),
        (OPENED, *AT_FULL),
    ]
    assert [alert.severity for alert in driver.alerts] == [INFO, INFO, FULL]
    assert [alert.incident.role for alert in driver.alerts] == [ROOT, PART, ROOT]


def test_a_put_that_got_2192_opens_full_whatever_the_model_thinks() -> None:
    driver = open_driver()
    driver.put(count=50)
    driver.put(reason=2192)
    [alert] = driver.alerts
    assert (alert.condition, alert.resource, alert.severity, alert.usage_pct) == ("full", "entries", FULL, 50.0)


def test_a_2192_names_the_scarcer_pool() -> None:
    driver = open_driver()
    driver.put(64_512)
    driver.put(reason=2192)
    assert driver.alert_changes() == [(OPENED, "full", "elements")]


def test_fullthreshold_0_is_not_watched_but_full_is() -> None:
    driver = open_driver(full_threshold=0)
    driver.put(count=100)
    assert driver.alert_changes() == []
    driver.put(reason=2192)
    assert driver.alert_changes() == [(OPENED, *AT_FULL)]


def test_what_a_measure_finds_is_reported_at_once() -> None:
    driver = open_driver()
    driver.measure(ents_used=85)
    assert driver.alert_changes() == [(OPENED, *THRESHOLD)]


def test_a_structure_altered_to_a_smaller_size_is_looked_at_at_once() -> None:
    driver = open_driver()
    driver.put(count=50)
    driver.alter(size=60 * ENTRY_AND_6_ELEMENTS)
    assert driver.alert_changes() == [(OPENED, *THRESHOLD)]


# -- updates


def test_an_alert_is_updated_when_usage_has_risen_by_5_points_since_its_last_record() -> None:
    driver = open_driver()
    driver.put(count=80)
    driver.put(count=4)
    driver.wait(20)
    assert len(driver.alerts) == 1
    driver.put()
    assert len(driver.alerts) == 1  # at the next tick, not at the event
    driver.wait(10)
    assert [(alert.change, alert.usage_pct) for alert in driver.alerts[1:]] == [(UPDATED, 85.0)]
    driver.wait(60)
    assert len(driver.alerts) == 2
    driver.put(count=5)
    driver.wait(10)
    assert driver.alerts[-1].usage_pct == 90.0


def test_a_page_is_updated_when_its_severity_changes_and_that_has_a_hysteresis() -> None:
    driver = open_driver()  # no put and few levels: nothing can be forecast, so the line is a page
    driver.measure(ents_used=94)
    assert driver.alerts[-1].severity == WARNING
    driver.put()
    driver.wait(10)
    assert (driver.alerts[-1].change, driver.alerts[-1].severity) == (UPDATED, CRITICAL)
    driver.get(count=5)
    driver.wait(10)
    assert len(driver.alerts) == 2  # 90 %
    driver.get()
    driver.wait(10)
    assert (driver.alerts[-1].change, driver.alerts[-1].severity, driver.alerts[-1].usage_pct) == (
        UPDATED,
        WARNING,
        89.0,
    )


# -- clearing


def test_an_alert_clears_when_usage_was_2_points_below_its_mark_for_ten_minutes() -> None:
    driver = open_driver()
    driver.put(count=80)
    driver.get(count=2)
    driver.wait(1200)
    assert len(driver.alerts) == 1  # 78 %: not below
    driver.get()
    fell = driver.time
    driver.wait(590)
    assert len(driver.alerts) == 1
    driver.wait(20)
    [_, cleared] = driver.alerts
    assert (cleared.change, cleared.condition, cleared.usage_pct) == (CLEARED, "threshold", 77.0)
    assert cleared.time % TICK_US == 0
    assert 600 * SECOND_US < cleared.time - fell <= 620 * SECOND_US


def test_a_rise_in_between_begins_the_ten_minutes_anew() -> None:
    driver = open_driver()
    driver.put(count=80)
    driver.get(count=5)
    driver.wait(590)
    driver.put(count=4)
    driver.wait(10)
    driver.get(count=4)
    driver.wait(590)
    assert len(driver.alerts) == 1
    driver.wait(30)
    assert driver.alerts[-1].change == CLEARED


def test_a_cleared_alert_opens_again_under_another_id() -> None:
    driver = open_driver()
    for _ in range(3):
        driver.put(count=80)
        driver.get(count=80)
        driver.wait(660)
    assert [alert.change for alert in driver.alerts] == [OPENED, CLEARED] * 3
    assert [alert.number for alert in driver.alerts] == [0, 1] * 3
    assert len({alert.alert_id for alert in driver.alerts}) == 3


def test_full_is_over_only_five_minutes_after_the_last_2192() -> None:
    driver = open_driver(full_threshold=0)
    driver.put(count=100)
    driver.put(reason=2192)
    driver.get(count=90)
    driver.put(reason=2192)
    last = driver.time
    driver.wait(290)
    driver.wait(600)
    assert [alert.change for alert in driver.alerts] == [OPENED, UPDATED]  # puts succeed again
    driver.wait(30)
    assert driver.alerts[-1].change == CLEARED
    assert 900 * SECOND_US <= driver.alerts[-1].time - last <= 920 * SECOND_US


def test_a_small_structure_is_full_as_long_as_its_last_entry_is_taken() -> None:
    driver = open_driver(40, full_threshold=0)
    driver.put(count=40)
    driver.put(reason=2192)
    driver.wait(300)
    driver.get()
    driver.wait(1780)
    assert driver.alerts[-1].change == OPENED
    driver.wait(40)
    assert driver.alerts[-1].change == CLEARED  # 39 of 40 are 97.5 %, and one is free
    driver = TwinDriver(size=20 * (695 + 512), full_threshold=0, offld1_th=0, offld1_sz=0)
    driver.measure(ents_used=20, elems_used=40)
    [alert] = [alert for alert in driver.alerts if alert.condition == "full"]
    assert (alert.change, set(alert.resources)) == (OPENED, {"entries", "elements"})


@pytest.mark.parametrize("threshold", [1, 2, 3])
def test_a_low_fullthreshold_can_clear_too(threshold: int) -> None:
    driver = open_driver(full_threshold=threshold)
    driver.put(count=3)
    driver.get(count=3)
    driver.wait(660)
    assert [alert.change for alert in alerts_of(driver, *THRESHOLD)] == [OPENED, CLEARED]


def test_an_alert_clears_when_fullthreshold_is_altered_to_0() -> None:
    driver = open_driver()
    driver.put(count=80)
    driver.alter(full_threshold=0)
    driver.wait(660)
    assert driver.alert_changes() == [(OPENED, *THRESHOLD), (UPDATED, *THRESHOLD), (CLEARED, *THRESHOLD)]


def test_alerts_clear_however_long_nothing_happened() -> None:
    driver = open_driver()
    driver.put(count=100)
    driver.put(reason=2192)
    driver.get(count=100)
    left = driver.time
    driver.wait(20 * 3_600)
    assert not driver.twin.episodes.any_open
    assert [change for change in driver.alert_changes() if change[0] == CLEARED] == [
        (CLEARED, *THRESHOLD),
        (CLEARED, *AT_FULL),
    ]
    assert all(alert.time - left < 960 * SECOND_US for alert in driver.alerts)


def test_late_events_clear_nothing() -> None:
    driver = open_driver()
    driver.put(count=80)
    opened = driver.time
    driver.get(count=80, time=opened - HOUR_US)
    for second in range(1, 200):
        driver.send("HEARTBEAT", None, store="QSG1/APP1", time=opened - HOUR_US + second * SECOND_US)
    assert len(driver.alerts) == 1


# -- data sets


def smds_of(blocks: int = 100, **fields: Any) -> TwinDriver:
    """Open a twin whose data set of `blocks` of 8 KB, one of them space map, gets every message."""
    attributes = {key: fields.pop(key) for key in ("secondary", "max_size") if key in fields}
    smds = {"QM01": data_set(size=blocks * 8_192, **attributes), "QM02": data_set(size=8_192_000)}
    everything = {"ds_block": 8_192, "offld1_th": 0, "offld1_sz": 0, "full_threshold": 0, "smds": smds}
    return open_driver(1_000, **(everything | fields))


def test_a_data_set_that_expands_as_it_should_raises_no_alert() -> None:
    driver = smds_of()
    assert driver.put(8_192, count=300)["smds"]["QM01"]["blocks_total"] > 300
    assert driver.alerts == []


def test_a_data_set_that_may_not_expand_raises_its_threshold_and_then_full() -> None:
    driver = smds_of(ds_expand=False)
    driver.put(8_192, count=89)
    assert driver.alerts == []
    driver.put(8_192)
    assert driver.alert_changes() == [(OPENED, "threshold", "smds/QM01")]
    driver.put(8_192, count=9)
    driver.put(8_192, reason=2192)
    assert driver.alert_changes()[-1] == (OPENED, "full", "smds/QM01")
    assert driver.alerts[-1].usage_pct == 100.0


def test_full_of_a_data_set_opens_whatever_its_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_compile._Kernel, "__call__", uncompiled._call)
    with mutated("kernels.watch", "smds.blocks_in_use(store, dataset) * 100 > smds.EXPAND_ABOVE * total", "False"):
        driver = smds_of(ds_expand=False)
        driver.put(8_192, count=99)
        assert driver.alerts == []
        driver.put(8_192, reason=2192)
    assert driver.alert_changes() == [(OPENED, "full", "smds/QM01")]


def test_a_data_set_that_cannot_expand_says_so_at_the_very_event() -> None:
    driver = smds_of(max_size=100 * 8_192)
    driver.put(8_192, count=89)
    assert driver.alerts == []
    driver.put(8_192)
    threshold, cannot_expand = ("threshold", "smds/QM01"), ("cannot-expand", "smds/QM01")
    assert driver.alert_changes() == [(OPENED, *threshold), (UPDATED, *threshold), (OPENED, *cannot_expand)]
    assert [alert.incident.role for alert in driver.alerts] == [ROOT, PART, ROOT]
    assert driver.alerts[-1].severity == INFO
    assert driver.alerts[-1].time == driver.time
    assert "FAILED" in driver.alerts[-1].cause


def test_cannot_expand_clears_when_expansion_is_possible_again() -> None:
    driver = smds_of(max_size=100 * 8_192)
    driver.put(8_192, count=90)
    driver.alter(ds_expand=True)
    driver.get(count=20)
    driver.wait(660)
    assert (CLEARED, "cannot-expand", "smds/QM01") in driver.alert_changes()
    assert (CLEARED, "threshold", "smds/QM01") in driver.alert_changes()


def test_full_of_a_data_set_clears_when_there_is_room_again() -> None:
    driver = smds_of(ds_expand=False)
    driver.put(8_192, count=99)
    driver.put(8_192, reason=2192)
    driver.get(count=90)
    driver.wait(960)
    assert [change for change in driver.alert_changes() if change[0] == CLEARED] == [
        (CLEARED, "threshold", "smds/QM01"),
        (CLEARED, "full", "smds/QM01"),
    ]


def test_a_2192_of_a_message_that_needs_the_data_set_names_the_data_set() -> None:
    driver = smds_of(ds_expand=False)
    driver.put(8_192, count=95)
    driver.put(65_536, reason=2192)
    assert driver.alert_changes()[-1] == (OPENED, "full", "smds/QM01")
    driver.put(65_536, qmgr="QM02", reason=2192)
    assert driver.alert_changes()[-1] == (UPDATED, "full", "smds/QM01")
    assert driver.alerts[-1].resources == ("smds/QM01", "entries")  # there was room in QM02's


def test_what_a_measure_finds_in_a_data_set_is_reported_at_once() -> None:
    driver = smds_of(ds_expand=False)
    driver.measure(smds={"QM01": {"blocks_used": 95}})
    assert driver.alert_changes() == [(OPENED, "threshold", "smds/QM01")]


# -- drift


def test_drift_opens_at_the_third_measurement_in_a_row_beyond_the_tolerance() -> None:
    driver = open_driver()
    driver.put(count=50)
    driver.measure(ents_used=50)
    for _ in range(2):
        driver.measure(ents_used=44)
    driver.measure(ents_used=45)  # 5 %: not beyond
    for _ in range(2):
        driver.measure(ents_used=44)
    assert driver.alerts == []
    driver.measure(ents_used=44)
    [alert] = driver.alerts
    assert (alert.change, alert.condition, alert.resource, alert.severity) == (OPENED, "drift", "entries", INFO)
    driver.measure(ents_used=20)
    driver.wait(600)
    assert len(driver.alerts) == 1
    driver.measure(ents_used=50)
    assert driver.alert_changes()[1:] == [(CLEARED, "drift", "entries")]


def test_the_tolerance_is_an_attribute() -> None:
    driver = open_driver(drift_tolerance_pct=1.0)
    driver.put(count=50)
    for _ in range(3):
        driver.measure(ents_used=48)
    assert driver.alert_changes() == [(OPENED, "drift", "entries")]


def test_two_drifts_have_two_ids_even_where_the_clock_stands_still() -> None:
    driver = open_driver()
    driver.put(count=50)
    for _ in range(2):
        for used in (42, 42, 42, 50):  # so few more or fewer are no sample
            driver.send("MEASURE", None, store="QSG1/APP1", measured={"ents_used": used}, time=driver.time)
    for _ in range(4):
        driver.measure(ents_used=42)
    opened = [alert.alert_id for alert in driver.alerts if alert.change == OPENED]
    assert len(opened) == len(set(opened)) == 2


# -- fillers


def test_the_queue_that_filled_the_structure_is_named_first_not_the_one_that_got_2192() -> None:
    driver = open_driver()
    driver.put(queue="B.QUEUE", count=40)
    driver.wait(3_600)
    driver.put(queue="A.QUEUE", count=45)
    driver.put(queue="B.QUEUE", count=15)
    driver.put(queue="B.QUEUE", reason=2192)
    [alert] = alerts_of(driver, *AT_FULL)
    assert [(filler.queue, filler.share) for filler in alert.fillers] == [("A.QUEUE", 0.75), ("B.QUEUE", 0.25)]
    assert "A.QUEUE" in alert.cause
    assert any("A.QUEUE" in action for action in alert.actions)


def test_growth_of_the_first_seconds_counts() -> None:
    driver = open_driver()
    driver.put(queue="B.QUEUE", count=30)
    driver.wait(20)
    driver.put(queue="A.QUEUE", count=50)
    assert [filler.queue for filler in driver.alerts[0].fillers] == ["A.QUEUE", "B.QUEUE"]
    assert [filler.share for filler in driver.alerts[0].fillers] == [0.625, 0.375]


def test_growth_of_a_young_recording_names_the_span_that_was_recorded() -> None:
    driver = open_driver()
    driver.put(queue="B.QUEUE")
    driver.wait(240)
    driver.reopen()
    driver.put(queue="A.QUEUE", count=79)
    assert "A.QUEUE fills it most: 99 % of 80 entries in 4 min" in driver.alerts[0].cause


def test_growth_is_of_half_an_hour_at_most() -> None:
    driver = open_driver()
    driver.put(queue="B.QUEUE")
    driver.wait(3_600)
    driver.put(queue="A.QUEUE", count=79)
    span = driver.time % (900 * SECOND_US) // (60 * SECOND_US) + 15
    assert f"A.QUEUE alone fills it: 79 entries in {span} min" in driver.alerts[0].cause


def test_a_queue_that_shrinks_is_no_filler() -> None:
    driver = open_driver()
    driver.put(queue="B.QUEUE", count=40)
    driver.wait(3_600)
    driver.get(queue="B.QUEUE", count=10)
    driver.put(queue="A.QUEUE", count=50)
    assert [(filler.queue, filler.share) for filler in driver.alerts[0].fillers] == [("A.QUEUE", 1.0)]


def test_elements_are_filled_by_large_messages_entries_by_many() -> None:
    driver = open_driver()
    driver.put(100, queue="B.QUEUE", count=70)
    driver.put(64_512, queue="A.QUEUE")
    driver.put(20_000, queue="A.QUEUE", count=2)
    [elements] = alerts_of(driver, "threshold", "elements")
    assert (elements.fillers[0].queue, elements.resources) == ("A.QUEUE", ("elements",))
    driver.wait(20)
    driver.put(100, queue="B.QUEUE", count=10)
    assert alerts_of(driver, *THRESHOLD)[0].fillers[0].queue == "B.QUEUE"


def test_a_data_set_is_filled_by_what_its_own_queue_manager_puts() -> None:
    driver = smds_of(ds_expand=False)
    driver.put(8_192, queue="A.QUEUE", qmgr="QM02", count=500)
    driver.put(8_192, queue="B.QUEUE", qmgr="QM01", count=60)
    driver.put(8_192, queue="A.QUEUE", qmgr="QM01", count=39)
    driver.put(8_192, queue="A.QUEUE", qmgr="QM01", reason=2192)
    [alert] = alerts_of(driver, "full", "smds/QM01")
    assert [(filler.queue, filler.share) for filler in alert.fillers] == [("B.QUEUE", 0.6061), ("A.QUEUE", 0.3939)]


# -- what others rely on


def test_a_second_run_over_the_same_events_gives_the_same_records() -> None:
    def run() -> list[bytes]:
        driver = open_driver()
        for _ in range(3):
            driver.put(count=100)
            driver.put(reason=2192)
            driver.get(count=100)
            driver.wait(1200)
        return records(driver.alerts)

    first = run()
    assert first == run()
    ids = [msgspec.json.decode(record)["id"] for record in first]
    # threshold, full; threshold as a part of the incident; puts succeed again; both cleared
    assert len(ids) == len(set(ids)) == 18


def test_open_alerts_outlast_a_restart_of_the_twin() -> None:
    driver = open_driver()
    driver.put(count=80)
    driver.reopen().put(count=6)
    driver.wait(10)
    driver.reopen().get(count=20)
    driver.reopen().wait(660)
    assert [alert.change for alert in driver.alerts] == [OPENED, UPDATED, CLEARED]
    assert len({alert.alert_id for alert in driver.alerts}) == 1


# -- lengths that are means


def test_messages_of_counts_make_the_elements_an_interval() -> None:
    driver = open_driver()
    driver.put(64_512)
    state = driver.put(64_512, msgid="a")
    assert state["elems_low"] == state["elems_used"] == state["elems_high"] == 508
    [alert] = driver.alerts
    assert alert.evidence == ()
    driver = open_driver()
    state = driver.put(64_512, count=2)
    assert (state["elems_low"], state["elems_used"], state["elems_high"]) == (506, 508, 510)
    [alert] = driver.alerts
    [reason] = alert.evidence
    assert reason == (
        "2 messages held are known from counts with a mean length: 506 to 510 elements are in use, 84.3 to 85.0 %"
    )


def test_the_interval_is_that_of_the_real_lengths() -> None:
    """Ten lengths between 1 and 2,000 bytes, and the same messages as counted by statistics."""
    lengths = [1, 1, 255, 256, 257, 700, 1_200, 1_500, 1_999, 2_000]
    single, counted = open_driver(1_000), open_driver(1_000)
    for length in lengths:
        elements = single.put(length)["elems_used"]
    mean, longer = divmod(sum(lengths), len(lengths))
    counted.put(mean, count=len(lengths) - longer)
    state = counted.put(mean + 1, count=longer)
    assert state["elems_low"] <= elements <= state["elems_high"]
    assert state["elems_high"] - state["elems_low"] == 2 * len(lengths)


def test_the_interval_is_of_the_queues_with_counts_and_closes_when_they_are_empty() -> None:
    driver = open_driver()
    driver.put(count=3)
    driver.put(msgid="b", queue="B.QUEUE")
    state = driver.reopen().state()
    assert (state["elems_high"] - state["elems_used"], state["messages"]) == (3, 4)
    for _ in range(3):
        state = driver.get()
    assert (state["elems_low"], state["elems_high"], state["messages"]) == (2, 2, 1)
