"""Forecasts of full (docs/forecast.md). Stories of one structure, a put and a get of several messages each tick."""

import re
from typing import Any

import pytest

from tests.naive.estates import ENTRY_AND_6_ELEMENTS
from tests.support.store_driver import NO_RULES
from tests.support.twin_driver import TwinDriver
from tests.support.workloads import SECOND_US
from twin.alerts.episodes import Alert
from twin.base.conditions import CLEARED, CRITICAL, INFO, OPENED, UPDATED, WARNING
from twin.forecast.monitor import look

ENTRIES = 6000
TICK_US = 10 * SECOND_US
MINUTE_US = 60 * SECOND_US


class Story(TwinDriver):
    """A structure of 6,000 entries without offload rules."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**({"size": ENTRIES * ENTRY_AND_6_ELEMENTS, "full_threshold": 0} | NO_RULES | fields))

    def go_on(self, minutes: float, puts: int, gets: int, **fields: Any) -> None:
        """Apply a number of minutes with a number of puts and gets per tick."""
        for _ in range(round(minutes * 6)):
            self.time += TICK_US - self.time % TICK_US
            if puts:
                self.send("PUT", time=self.time + SECOND_US, count=puts, **({"length": 800} | fields))
            if gets:
                self.send("GET", time=self.time + 2 * SECOND_US, count=gets)
            self.send("HEARTBEAT", None, time=self.time + 3 * SECOND_US, store="QSG1/APP1")

    def foreseen(self) -> list[Alert]:
        return [alert for alert in self.alerts if alert.condition == "full-forecast"]

    def left(self) -> float:
        """Minutes until the entries are used up at ten a tick."""
        return (ENTRIES - self.state()["ents_used"]) / 60


class RecordedStory(Story):
    """A story that keeps its events."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self.events: list[dict[str, Any]] = []

    def apply(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        super().apply(event)


def test_nothing_is_foreseen_while_gets_keep_up() -> None:
    story = Story()
    story.go_on(60, puts=40, gets=40)
    assert story.foreseen() == []
    assert story.state()["forecast"] is None
    assert story.twin.drain_forecasts() == []


@pytest.mark.parametrize("last", [1, 2, 3, 4])
@pytest.mark.parametrize("is_busy", [True, False])
def test_a_load_that_pauses_every_four_minutes_fills_at_its_mean(last: int, is_busy: bool) -> None:
    """In a pause nothing says so but the minutes before; without them full was never, or half as far as it is."""
    story = Story()
    for _ in range(4):
        story.go_on(4, puts=20, gets=0)
        story.go_on(4, puts=0, gets=0)
    if not is_busy:
        story.go_on(4, puts=20, gets=0)
    story.go_on(last, puts=20 * is_busy, gets=0)
    store = story.twin.tables.store
    outlook = look(story.twin, int(store.scalars["tick"][0]))
    assert outlook is not None
    times = outlook.quantiles()
    assert times is not None
    assert times[1] == pytest.approx(60 * story.left(), rel=0.35)
    assert (outlook.full_of >= 0).mean() > 0.9


def test_getters_stop_and_the_alert_comes_in_time() -> None:
    story = Story()
    story.go_on(30, puts=10, gets=10)
    story.go_on(80, puts=10, gets=0)
    [opened, *updates] = story.foreseen()
    assert (opened.change, opened.resource, opened.severity) == (OPENED, "entries", INFO)
    assert opened.data().level == "watch"
    assert opened.time_to_full_s is not None
    assert 40 * 60 <= opened.time_to_full_s.p50 <= 46 * 60
    assert opened.time_to_full_s.p10 <= opened.time_to_full_s.p50 <= opened.time_to_full_s.p90
    assert opened.full_probability is not None
    assert opened.full_probability >= 0.5
    assert opened.fillers[0].queue == "A.QUEUE"
    assert all(forecast.alert_id == opened.alert_id for forecast in updates)


def test_the_forecast_is_what_will_be() -> None:
    """Within 8 %: an early fill within the horizon is likelier than a late one, so the median is a little early."""
    story = Story()
    story.go_on(30, puts=10, gets=10)
    for _ in range(8):
        story.go_on(10, puts=10, gets=0)
        forecast = story.state()["forecast"]
        assert forecast is not None
        [first, *_] = forecast["resources"]
        assert first["resource"] == "entries"
        assert abs(first["time_to_full_s"]["p50"] / 60 - story.left()) < 0.08 * story.left() + 1


def test_it_turns_critical_once_and_is_cleared_after_ten_calm_minutes() -> None:
    story = Story()
    story.go_on(30, puts=10, gets=10)
    story.go_on(93, puts=10, gets=0)
    assert [alert.severity for alert in story.foreseen()] == [INFO, WARNING, CRITICAL]
    assert [alert.change for alert in story.foreseen()] == [OPENED, UPDATED, UPDATED]
    assert len({alert.alert_id for alert in story.foreseen()}) == 1
    story.go_on(30, puts=10, gets=40)
    *_, last = story.foreseen()
    assert last.change == CLEARED
    drained = last.time - (story.time - 30 * MINUTE_US)
    assert 10 * MINUTE_US <= drained <= 13 * MINUTE_US
    assert last.time_to_full_s is None


@pytest.mark.nightly
def test_a_cycle_that_always_drained_is_known() -> None:
    story = Story()
    for _ in range(4):
        story.go_on(80, puts=10, gets=0)
        story.go_on(20, puts=10, gets=50)
    seen = len(story.foreseen())
    story.go_on(80, puts=10, gets=0)
    assert len(story.foreseen()) == seen
    story.go_on(15, puts=10, gets=0)  # this time nobody comes
    assert [alert.change for alert in story.foreseen()[seen:]][:1] == [OPENED]


def test_offload_rules_are_seen_to_stop_what_a_line_would_follow() -> None:
    """At 40 % everything over 1 KB goes to data sets: elements are used up no more, entries far later."""
    story = Story(offld1_th=40, offld1_sz=1024, forecast_horizon_s=3600)
    story.go_on(20, puts=10, gets=10, length=3900)
    story.go_on(40, puts=10, gets=0, length=3900)
    assert story.state()["elems_used"] > 0.39 * story.state()["elems_max"]
    assert story.foreseen() == []


def test_horizon_lead_and_probability_are_the_estates() -> None:
    story = Story(forecast_lead_s=1200.0, forecast_page_lead_s=480.0, forecast_probability=0.5)
    story.go_on(30, puts=10, gets=10)
    story.go_on(93, puts=10, gets=0)
    watch, page, *_ = (alert.time_to_full_s for alert in story.foreseen())
    assert watch is not None and page is not None
    assert 18 * 60 <= watch.p50 <= 20 * 60
    assert 7 * 60 <= page.p50 <= 8 * 60


def test_a_page_comes_when_a_person_has_to_act_and_a_watch_long_before() -> None:
    story = Story()
    story.go_on(30, puts=2, gets=2)
    story.go_on(480, puts=2, gets=0)
    watch, page, *_ = story.foreseen()
    assert (watch.severity, page.severity) == (INFO, WARNING)
    assert watch.time_to_full_s is not None and page.time_to_full_s is not None
    assert 70 * 60 <= watch.time_to_full_s.p50 <= 100 * 60
    assert 28 * 60 <= page.time_to_full_s.p50 <= 30 * 60


def test_the_cause_says_how_long_it_lasts_and_the_actions_what_they_change() -> None:
    story = Story(init_size=ENTRIES * ENTRY_AND_6_ELEMENTS // 2)
    story.go_on(30, puts=10, gets=10)
    story.go_on(45, puts=10, gets=0)
    [opened, *_] = story.foreseen()
    assert "% in use, full in about " in opened.cause
    assert "puts/s, no get for" in opened.cause
    assert any("(then not full within the horizon)" in action for action in opened.actions)
    assert any("SETXCF START,ALTER" in action and "instead of" in action for action in opened.actions)


def test_of_a_full_store_an_action_says_when_it_is_full_again() -> None:
    """500 messages a tick almost fill half of the structure, then puts are refused."""
    story = Story(init_size=ENTRIES * ENTRY_AND_6_ELEMENTS // 2)
    story.go_on(30, puts=10, gets=10)
    story.go_on(1, puts=500, gets=0)
    assert "full now" not in story.foreseen()[-1].cause  # no put was refused
    story.go_on(1, puts=600, gets=0, reason=2192)
    last = story.foreseen()[-1]
    assert "full now" in last.cause
    [getters] = [action for action in last.actions if action.startswith("Start more getters")]
    [expand] = [action for action in last.actions if action.startswith("Expand the structure")]
    assert "gets/s more; at the present rate it stays full)" in getters and "full again" not in getters
    assert "instead of" not in expand
    assert re.search(r"\(then full again in [5-7]\d s\)", expand)


def test_a_model_that_is_full_only_by_puts_that_were_taken_foresees_no_time() -> None:
    story = Story(init_size=ENTRIES * ENTRY_AND_6_ELEMENTS // 2)
    story.go_on(30, puts=10, gets=10)
    story.go_on(2, puts=6000, gets=0)
    assert story.foreseen() == []
    assert story.state()["forecast"] is None


@pytest.mark.parametrize("way", ["backout", "expire", "clear"])
def test_what_leaves_a_queue_without_a_get_is_no_get(way: str) -> None:
    """Puts that are backed out, messages that expire, and CLEAR say nothing about the getters."""
    story = Story()
    story.go_on(30, puts=10, gets=10)
    stopped = story.time
    for minute in range(80):
        if way == "clear":
            story.put(800)
            story.send("CLEAR") if minute < 5 else None
        else:
            undo = {"backout": ("BACKOUT", "uow"), "expire": ("EXPIRE", "msgid")}[way]
            story.put(800, **{undo[1]: f"{minute}"})
            story.send(undo[0], **{undo[1]: f"{minute}"})
        story.go_on(1, puts=10, gets=0)
    opened = story.foreseen()[0]
    minutes = round((opened.time - stopped) / MINUTE_US)
    assert minutes > 5
    assert f"puts/s, no get for {minutes} min." in opened.cause
    assert f"getters of A.QUEUE stopped {minutes} min ago" in opened.evidence


def test_each_forecast_is_handed_out_once() -> None:
    story = Story()
    story.go_on(30, puts=10, gets=10)
    story.go_on(40, puts=10, gets=0)
    forecasts = story.twin.drain_forecasts()
    assert [forecast.store for forecast in forecasts] == ["QSG1/APP1"] * len(forecasts)
    assert (
        len({forecast.time for forecast in forecasts if forecast.first})
        == sum(forecast.first for forecast in forecasts)
        > 10
    )
    assert story.twin.drain_forecasts() == []


@pytest.mark.parametrize(("puts", "teeth"), [(6, 0), (25, 0), (100, 0), (25, 4)])
def test_a_filling_that_a_line_at_80_percent_predicts_is_not_paged_later(puts: int, teeth: int) -> None:
    """Teeth of other kinds, up to 45 %, make a store known; then it fills as never before, within five hours."""
    story = Story()
    story.go_on(30, puts=4, gets=4)
    for _ in range(teeth):
        story.go_on(5, puts=90, gets=0)
        story.go_on(10, puts=1, gets=90)
    passed = None
    while story.state()["ents_used"] < ENTRIES:
        story.go_on(1, puts=puts, gets=0)
        if passed is None and story.state()["ents_used"] >= 0.8 * ENTRIES:
            passed = story.time
    paged = next(alert.time for alert in story.foreseen() if alert.severity != INFO)
    assert passed is not None
    assert paged <= passed + MINUTE_US


def first_rise() -> RecordedStory:
    """A first rise becomes half as fast: where it passes 80 %, it has gone on for three times as long as is left."""
    story = RecordedStory()
    story.go_on(20, puts=2, gets=2)
    story.go_on(50, puts=8, gets=0)
    while story.state()["ents_used"] < 0.82 * ENTRIES:
        story.go_on(1, puts=4, gets=0)
    return story


def test_a_first_rise_is_asked_once_where_it_passes_80_percent_and_paged_if_full_is_likely() -> None:
    story = first_rise()
    [page] = [alert for alert in story.foreseen() if alert.severity != INFO]
    assert page.usage_pct is not None and page.full_probability is not None and page.time_to_full_s is not None
    assert 80.0 <= page.usage_pct < 80.1
    assert 0.7 <= page.full_probability < 0.77
    assert 30 * 60 < page.time_to_full_s.p50 <= 60 * 60


def test_a_sawtooth_above_80_percent_is_paged_at_its_first_tooth_at_most() -> None:
    """The first one rises like what fills, and the second while the alert about it is open."""
    story = Story()
    for _ in range(7):
        story.go_on(10, puts=88, gets=0)
        story.go_on(10, puts=2, gets=90)
    assert len({alert.alert_id for alert in story.foreseen() if alert.severity != INFO}) == 1
    assert story.alerts[-1].change == CLEARED
    later = [alert for alert in story.foreseen() if alert.time > story.time - 109 * MINUTE_US]
    assert all(alert.time_to_full_s is None for alert in later), "from the third tooth on no time is said"


@pytest.mark.parametrize("size", [7, 400])
def test_neither_cuts_nor_restarts_change_when_it_is_asked(size: int) -> None:
    story, again = first_rise(), Story()
    for start in range(0, len(story.events), size):
        block, _ = again.decoding.block(story.events[start : start + size])
        again.alerts += again.twin.apply(block)
        if size > 100:
            again.reopen()
    assert [alert.record() for alert in again.alerts] == [alert.record() for alert in story.alerts]
