"""Outcomes of forecasts and pages: the live scores of a store, held against a list of everything that happened."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.clock import SECOND, TICK
from tests.naive.estates import ENTRY_AND_6_ELEMENTS, data_set
from tests.naive.outcomes import DAY_US, NaiveAlert, NaiveOutcomes, NaiveTurn
from tests.support.profile import examples
from tests.support.twin_driver import TwinDriver
from tests.twin.test_alerts_forecast import MINUTE_US, SECOND_US, RecordedStory, Story
from tests.twin.test_forecast_levels import LARGE, level_fed
from twin.alerts.episodes import Alert
from twin.base.conditions import CLEARED, CRITICAL, FULL, INFO, OPENED, UPDATED, WARNING
from twin.forecast.outcomes import HORIZONS, WINDOW_DAYS, Outcomes, spread_of
from twin.records import ForecastScores

START = 20_000 * DAY_US
MAX_BYTES = 10_000  # of the state of a store with looks all day for a month


class StubOutlook:
    """An outlook of a thousand paths.

    Args:
        chances: thousandths of them that are full within each horizon, rising.
        times: its quantiles, seconds.
    """

    horizon = 720

    def __init__(self, chances: list[int], times: tuple[float, float, float] | None) -> None:
        self.full_at = np.full(1000, np.inf)
        for horizon, chance in reversed(list(zip(HORIZONS, chances, strict=False))):
            self.full_at[:chance] = horizon
        self.weights = np.ones(1000)
        self.times = times
        if len(chances) < len(HORIZONS):
            self.horizon = HORIZONS[len(chances)] // 10 - 1

    def quantiles(self) -> tuple[float, float, float] | None:
        return self.times


def alert_of(naive: NaiveAlert) -> Alert:
    return Alert(
        change=naive.change,
        number=0,
        alert_id=naive.alert_id,
        severity=naive.severity,
        store="QSG1/APP1",
        resource="entries",
        condition=naive.condition,
        time=naive.time,
        usage_pct=None,
        time_to_full_s=None,
        full_probability=None,
        fillers=(),
        cause="",
    )


def as_json(scores: ForecastScores | None) -> dict[str, Any] | None:
    decoded: dict[str, Any] | None = msgspec.json.decode(msgspec.json.encode(scores))
    return decoded


class Both:
    """Outcomes of a store and those of the oracle, with one clock."""

    def __init__(self) -> None:
        self.outcomes, self.naive, self.time = Outcomes(), NaiveOutcomes(), START

    def look(self, chances: list[int], times: tuple[int, int, int] | None) -> None:
        self.time -= self.time % TICK
        self.naive.look(self.time, chances, times)
        outlook: Any = StubOutlook(chances, times)
        self.outcomes.note_look(outlook, self.time // TICK, is_likely=times is not None)

    def alert(self, condition: str, change: str, severity: str, number: int = 0) -> None:
        record = NaiveAlert(self.time, f"{condition}/{number}", condition, change, severity)
        self.naive.events.append(record)
        self.outcomes.note_alert(alert_of(record))

    def turn_back(self, seconds: int) -> None:
        self.naive.events.append(NaiveTurn(self.time, self.time - seconds * SECOND))
        self.outcomes.turn_back(self.time, self.time - seconds * SECOND)
        self.time -= seconds * SECOND

    def check(self) -> dict[str, Any] | None:
        scores = as_json(self.outcomes.scores(self.time))
        assert scores == self.naive.scores(self.time)
        return scores


chances = st.lists(st.integers(0, 1000), min_size=1, max_size=4).map(sorted)
times = st.none() | st.lists(st.integers(0, 6000), min_size=3, max_size=3).map(lambda t: tuple(sorted(t)))
looks = st.tuples(st.just("look"), chances, times)
alerts = st.tuples(
    st.just("alert"),
    st.sampled_from(["full", "full", "full-forecast", "full-forecast", "queue-full", "threshold", "drift"]),
    st.sampled_from([OPENED, UPDATED, CLEARED]),
    st.sampled_from([INFO, WARNING, CRITICAL, FULL]),
    st.integers(0, 1),
)
waits = st.tuples(st.just("wait"), st.sampled_from([1, 10, 200, 299, 300, 600, 900, 3600, 7200, 40_000, 900_000]))
turns = st.tuples(st.just("turn"), st.sampled_from([30, 900, 8000, 100_000, 900_000]))
steps = st.lists(looks | looks | looks | alerts | alerts | waits | waits | turns, min_size=20, max_size=120)


@settings(max_examples=examples(800), deadline=None)
@given(story=steps, restart=st.integers(0, 120))
def test_scores_are_those_of_a_list_of_every_look_and_alert(story: list[tuple[Any, ...]], restart: int) -> None:
    both = Both()
    for number, (kind, *values) in enumerate(story):
        if kind == "look":
            both.time += 40 * SECOND
            both.look(*values)
        elif kind == "alert":
            both.alert(*values)
        elif kind == "wait":
            both.time += values[0] * SECOND
        else:
            both.turn_back(values[0])
        if number == restart:
            both.outcomes = msgspec.msgpack.decode(msgspec.msgpack.encode(both.outcomes), type=Outcomes)
        if number % 10 == 0:
            both.check()
    both.check()
    assert both.outcomes.scores(both.time + 40 * DAY_US) is None


def test_a_full_at_the_very_end_of_a_horizon_is_within_it() -> None:
    for after, came in ((0, 1), (1, 0)):
        both = Both()
        both.look([500], None)
        both.time += 900 * SECOND + after
        both.alert("full", OPENED, FULL)
        scores = both.check()
        assert scores is not None and scores["horizons"][0]["full"] == came


def test_probabilities_are_summed_by_fifths_and_scored_against_climatology() -> None:
    both = Both()
    for chance, is_full in ((100, False), (199, False), (200, True), (1000, True)):
        both.look([chance], None)
        both.time += 600 * SECOND
        if is_full:
            both.alert("full", OPENED, FULL)
        both.time += 600 * SECOND
    scores = both.outcomes.scores(both.time)
    assert scores is not None and as_json(scores) == both.check()
    [score] = scores.horizons
    assert [(own.looks, own.full, own.predicted) for own in score.bins] == [(2, 0, 0.1495), (1, 1, 0.2), (1, 1, 1.0)]
    assert score.brier == pytest.approx((0.1**2 + 0.199**2 + 0.8**2) / 4, abs=1e-6)
    assert score.climatology == 0.25
    assert score.skill == pytest.approx(1 - 4 * score.brier)


def test_thirty_days_count_to_the_day() -> None:
    both = Both()
    both.look([500], None)
    both.time += DAY_US
    both.look([100], None)
    both.time += (WINDOW_DAYS - 2) * DAY_US
    scores = both.outcomes.scores(both.time)
    assert scores is not None and (scores.days, scores.horizons[0].looks) == (30, 2)
    both.time += DAY_US
    scores = both.outcomes.scores(both.time)
    assert scores is not None and (scores.days, scores.horizons[0].looks) == (30, 1)
    both.time += DAY_US
    assert both.outcomes.scores(both.time) is None


# --- pages -----------------------------------------------------------------------------------------------------------


def pages(*records: tuple[float, str, str, str]) -> tuple[int, int, int]:
    """Return (right, late, false) pages of records of (minute, condition, change, severity), an hour later."""
    both = Both()
    for minute, condition, change, severity in records:
        both.time = START + round(minute * MINUTE_US)
        both.alert(condition, change, severity)
    both.time += 60 * MINUTE_US
    scores = both.check()
    return (0, 0, 0) if scores is None else tuple(scores["pages"].values())


CALL = (0, "full-forecast", OPENED, WARNING)


def test_a_page_is_right_from_five_minutes_before_full_and_late_after_that() -> None:
    assert pages(CALL, (5, "full", OPENED, FULL)) == (1, 0, 0)
    assert pages(CALL, (4.99, "full", OPENED, FULL)) == (0, 1, 0)
    assert pages((0, "full", OPENED, FULL)) == (0, 1, 0)
    assert pages((0, "queue-full", OPENED, FULL)) == (1, 0, 0)


def test_a_page_during_which_nothing_was_refused_is_false_once_it_is_over() -> None:
    over = (20, "full-forecast", CLEARED, WARNING)
    assert pages(CALL) == (0, 0, 0)
    assert pages(CALL, over) == (0, 0, 1)
    assert pages(CALL, over, (29, "full", OPENED, FULL)) == (1, 0, 0)  # within ten minutes it is the same page
    assert pages(CALL, over, (30, "full", OPENED, FULL)) == (0, 1, 1)


def test_a_watch_and_what_says_nothing_about_filling_are_no_pages() -> None:
    assert pages((0, "full-forecast", OPENED, INFO), (9, "full-forecast", CLEARED, INFO)) == (0, 0, 0)
    assert pages((0, "drift", OPENED, WARNING), (9, "drift", CLEARED, WARNING)) == (0, 0, 0)
    late = [(0, "full-forecast", OPENED, INFO), (8, "full-forecast", UPDATED, WARNING), (9, "full", OPENED, FULL)]
    assert pages(*late) == (0, 1, 0)


# --- intervals -------------------------------------------------------------------------------------------------------


def fill_often(predicted: float, true: float, fillings: int, seed: int, each: int = 3) -> tuple[Outcomes, list[bool]]:
    """Return the outcomes of fillings, and of each interval whether it contained the time of full.

    Args:
        predicted: standard deviation of the logarithm of the time, as the forecast has it.
        true: the same in truth.
        fillings: their number.
        seed: that of the random numbers.
        each: looks a filling.
    """
    rng, outcomes, time, inside = np.random.default_rng(seed), Outcomes(), START, []
    for _ in range(fillings):
        time += DAY_US // 8
        full_at = time + 3600 * SECOND
        for number in range(each):
            tick = (full_at - (each - number) * 600 * SECOND) // TICK
            left = (full_at - tick * TICK) / SECOND
            p50 = left / math.exp(rng.normal(0, true))
            quantiles = (p50 * math.exp(-1.2816 * predicted), p50, p50 * math.exp(1.2816 * predicted))
            outlook: Any = StubOutlook([500, 500, 500, 500], quantiles)
            outcomes.note_look(outlook, tick, is_likely=True)
            p10, _, p90 = outcomes.widen(quantiles)
            inside.append(p10 <= left <= p90)
        outcomes.note_alert(alert_of(NaiveAlert(full_at, str(time), "full", OPENED, FULL)))
    return outcomes, inside


@pytest.mark.parametrize(("predicted", "low", "high"), [(0.12, 0.3, 0.5), (0.5, 0.95, 1.0)])
def test_coverage_comes_nearer_to_four_fifths_where_it_is_off(predicted: float, low: float, high: float) -> None:
    outcomes, inside = fill_often(predicted, 0.3, 200, 1)
    raw = float(np.mean(np.abs(np.random.default_rng(2).normal(0, 0.3, 100_000)) <= 1.2816 * predicted))
    assert low < raw <= high
    corrected = float(np.mean(inside[60:]))
    assert abs(corrected - 0.8) < 0.07 < abs(raw - 0.8)
    scores = outcomes.scores(START + 26 * DAY_US)
    assert scores is not None and abs(scores.intervals.coverage - 0.8) < 0.1 and scores.intervals.width != 1.0


def test_coverage_stays_where_it_is_right() -> None:
    assert float(np.mean(fill_often(0.3, 0.3, 200, 3)[1][60:])) == pytest.approx(0.8, abs=0.07)


@pytest.mark.parametrize(("fillings", "each"), [(3, 6), (4, 4), (19, 1)])
def test_too_few_intervals_or_fillings_change_nothing(fillings: int, each: int) -> None:
    outcomes, _ = fill_often(0.05, 0.5, fillings, 4, each)
    assert outcomes.width == 1.0 and outcomes.reason == ""
    assert outcomes.widen((60.0, 90.0, 120.0)) == (60.0, 90.0, 120.0)


def test_a_correction_is_bounded_and_says_what_it_is_made_of() -> None:
    outcomes, _ = fill_often(0.05, 0.5, 8, 5, 5)
    assert outcomes.width == 3.0
    assert outcomes.widen((50.0, 100.0, 200.0)) == (12.5, 100.0, 800.0)
    spreads = [spread for filling in outcomes.spreads for spread in filling]
    inside = sum(spread <= 100 for spread in spreads)
    assert outcomes.reason == f"intervals widened by 3.0: {inside} of the last 40 were inside"
    outcomes, _ = fill_often(2.0, 0.1, 8, 5, 5)
    assert outcomes.width == 0.5 and outcomes.reason == "intervals narrowed by 0.5: 40 of the last 40 were inside"
    assert outcomes.widen((25.0, 100.0, 400.0)) == (50.0, 100.0, 200.0)
    assert outcomes.widen((0.0, 0.0, 0.0)) == (0.0, 0.0, 0.0)


# --- bounds ----------------------------------------------------------------------------------------------------------


def test_the_state_is_bounded() -> None:
    rng, outcomes, time, sizes = np.random.default_rng(6), Outcomes(), START, []
    for number in range(40 * 288):
        time += 300 * SECOND
        outlook: Any = StubOutlook(sorted(rng.integers(0, 1001, 4).tolist()), (900.0, 5000.0, 7000.0))
        outcomes.note_look(outlook, time // TICK, is_likely=True)
        if number % 61 == 60:
            for change in (OPENED, CLEARED):
                outcomes.note_alert(alert_of(NaiveAlert(time, "QSG1/APP1/full/entries", "full", change, FULL)))
        if number % 12 == 0:
            sizes.append(len(msgspec.msgpack.encode(outcomes)))
    assert len(outcomes.looks) <= 25 and len(outcomes.days) == WINDOW_DAYS
    assert max(len(filling) for filling in outcomes.spreads) <= 12 and len(outcomes.spreads) == 8
    assert sizes[-1] <= max(sizes) < MAX_BYTES


# --- a store ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def spied(monkeypatch: pytest.MonkeyPatch) -> NaiveOutcomes:
    """Every look, alert and turn of the clock of the store of a test, as the oracle takes them."""
    naive = NaiveOutcomes()
    note_look, note_alert, turn_back = Outcomes.note_look, Outcomes.note_alert, Outcomes.turn_back
    note_full = Outcomes.note_full

    def on_look(self: Outcomes, outlook: Any, tick: int, *, is_likely: bool) -> None:
        reached = [horizon for horizon in HORIZONS if horizon <= outlook.horizon * 10]
        weights = [outlook.weights[outlook.full_at <= horizon].sum() for horizon in reached]
        quantiles = outlook.quantiles() if is_likely else None
        naive.look(
            tick * TICK,
            [round(1000 * float(weight) / outlook.full_at.size) for weight in weights],
            None if quantiles is None else tuple(round(seconds) for seconds in quantiles),
        )
        note_look(self, outlook, tick, is_likely=is_likely)

    def on_alert(self: Outcomes, alert: Alert, situation: str = "") -> None:
        naive.events.append(NaiveAlert(alert.time, alert.alert_id, alert.condition, alert.change, alert.severity))
        note_alert(self, alert, situation)

    def on_full(self: Outcomes, time: int) -> None:
        if not any(isinstance(event, NaiveAlert) and event.time == time for event in naive.events):
            naive.events.append(NaiveAlert(time, "", "full", OPENED, INFO))
        note_full(self, time)

    def on_turn(self: Outcomes, before: int, now: int) -> None:
        naive.events.append(NaiveTurn(before, now))
        turn_back(self, before, now)

    monkeypatch.setattr(Outcomes, "note_look", on_look)
    monkeypatch.setattr(Outcomes, "note_alert", on_alert)
    monkeypatch.setattr(Outcomes, "note_full", on_full)
    monkeypatch.setattr(Outcomes, "turn_back", on_turn)
    return naive


def scores_of(driver: TwinDriver) -> dict[str, Any] | None:
    scores: dict[str, Any] | None = driver.state()["forecast_scores"]
    return scores


SMALL = {"size": 450 * ENTRY_AND_6_ELEMENTS}


def fill_and_drain(story: Story, rate: int) -> None:
    """Let a store fill at a rate of puts a tick, refuse a put, and be emptied."""
    story.go_on(10, puts=10, gets=10)
    while story.state()["usage_pct"] < 99:
        story.go_on(1, puts=rate, gets=0)
    story.send("PUT", time=story.time + SECOND_US, length=800, reason=2192)
    story.send("CLEAR", time=story.time + 2 * SECOND_US)
    story.go_on(20, puts=10, gets=10)


def test_a_store_scores_itself_as_a_list_of_its_looks_and_alerts(spied: NaiveOutcomes) -> None:
    story = Story(**SMALL)
    assert scores_of(story) is None
    for rate in (2, 3, 5):
        fill_and_drain(story, rate)
        assert scores_of(story) == spied.scores(int(story.twin.clock))
    story.go_on(18, puts=3, gets=0)
    story.go_on(30, puts=5, gets=20)  # a rise that ends
    scores = scores_of(story)
    assert scores == spied.scores(int(story.twin.clock))
    assert scores is not None and all(0 < own["full"] < own["looks"] for own in scores["horizons"][:2])
    assert sum(scores["pages"].values()) >= 3
    published = [alert for alert in story.alerts if alert.condition == "full" and alert.change == OPENED]
    assert len(published) == 3
    assert [event.alert_id for event in spied.events if isinstance(event, NaiveAlert) and event.alert_id] == [
        alert.alert_id for alert in story.alerts
    ]


def test_however_events_are_cut_and_whenever_the_store_is_opened_again_the_scores_are_the_same() -> None:
    story = RecordedStory(**SMALL)
    for rate in (3, 5):
        fill_and_drain(story, rate)
    story.go_on(18, puts=3, gets=0)
    for size in (7, 1000, len(story.events)):
        other = Story(**SMALL)
        for start in range(0, len(story.events), size):
            block, _ = other.decoding.block(story.events[start : start + size])
            other.alerts += other.twin.apply(block)
            if size == 1000:
                other.reopen()
        assert other.state() == story.state()
        assert other.twin.monitor.memory.outcomes == story.twin.monitor.memory.outcomes
        assert [alert.record() for alert in other.alerts] == [alert.record() for alert in story.alerts]
    scores = scores_of(story)
    assert scores is not None and scores["horizons"]


def test_a_clock_that_goes_back_forgets_what_came_after(spied: NaiveOutcomes) -> None:
    story = Story(**SMALL)
    fill_and_drain(story, 5)
    story.go_on(20, puts=3, gets=0)
    waiting = len(story.twin.monitor.memory.outcomes.looks)
    story.time -= 26 * 60 * MINUTE_US
    story.twin.tables.store.scalars["support"] = 1
    story.go_on(2, puts=5, gets=5)
    assert any(isinstance(event, NaiveTurn) for event in spied.events) and waiting > 0
    assert all(look.tick * TICK <= story.twin.clock for look in story.twin.monitor.memory.outcomes.looks)
    assert scores_of(story) is None
    fill_and_drain(story, 6)
    assert scores_of(story) == spied.scores(int(story.twin.clock)) is not None


def test_a_store_that_only_measurements_feed_scores_itself_too(spied: NaiveOutcomes) -> None:
    driver = TwinDriver(**LARGE)
    level_fed(driver, lambda minute: min(1.0, 0.012 * minute), 90)
    assert "full" in {condition for _, condition, _ in driver.alert_changes()}
    scores = scores_of(driver)
    assert scores == spied.scores(int(driver.twin.clock))
    assert scores is not None and scores["intervals"]["count"] > 5 and scores["horizons"][-1]["full"] > 10


def test_a_data_set_beyond_its_blocks_is_full_though_no_put_was_refused() -> None:
    rules = {"offld1_th": 0, "offld1_sz": 0, "ds_expand": False, "smds": {"QM01": data_set(size=8 << 20)}}
    driver = TwinDriver(**LARGE, **rules)
    for _ in range(170):
        driver.put(9000, count=6)
        state = driver.wait(9)
    assert state["smds"]["QM01"]["blocks_used"] > state["smds"]["QM01"]["blocks_max"] and state["full_puts"] == 0
    scores = scores_of(driver)
    assert scores is not None and 0 < scores["horizons"][0]["full"] < scores["horizons"][-1]["full"]
    assert scores["intervals"]["count"] > 0 and driver.twin.monitor.memory.outcomes.looks == []


def test_no_look_is_noted_while_a_store_is_full() -> None:
    story = Story(**SMALL)
    fill_and_drain(story, 5)
    story.go_on(20, puts=3, gets=0)
    assert story.twin.monitor.memory.outcomes.looks
    while story.state()["usage_pct"] < 99:
        story.go_on(1, puts=5, gets=0)
    story.send("PUT", time=story.time + SECOND_US, length=800, reason=2192)
    for _ in range(20):
        story.go_on(1, puts=5, gets=5)
        assert story.twin.monitor.memory.outcomes.looks == []


def test_without_forecasts_nothing_is_scored() -> None:
    story = Story(**SMALL)
    story.twin.monitor.enabled = False
    fill_and_drain(story, 5)
    assert scores_of(story) is None and story.twin.monitor.memory.outcomes == Outcomes()


def test_state_written_before_scores_were_kept_is_read() -> None:
    story = Story(**SMALL)
    fill_and_drain(story, 5)
    header = msgspec.msgpack.decode(story.twin.header())
    del header["forecasts"]["outcomes"]
    pages = dict(story.twin.dirty_pages())
    story.twin = story.decoding.twin(None, msgspec.msgpack.encode(header), pages.items())
    assert scores_of(story) is None
    fill_and_drain(story, 5)
    assert scores_of(story) is not None


def test_published_intervals_are_corrected_and_the_evidence_says_so() -> None:
    """The times of the alert and of the state record; whether and when alerts open stays as it is."""
    plain, corrected = Story(**SMALL), Story(**SMALL)
    outcomes, _ = fill_often(0.05, 0.5, 8, 5, 5)
    corrected.twin.monitor.memory.outcomes.spreads = outcomes.spreads
    for story in (plain, corrected):
        story.go_on(20, puts=10, gets=10)
        story.go_on(18, puts=3, gets=0)
    times, wider = (story.state()["forecast"]["resources"][0]["time_to_full_s"] for story in (plain, corrected))
    assert wider["p50"] == times["p50"]
    assert wider["p90"] / wider["p50"] == pytest.approx((times["p90"] / times["p50"]) ** 3, rel=0.01)
    assert wider["p10"] / wider["p50"] == pytest.approx((times["p10"] / times["p50"]) ** 3, rel=0.01)
    assert [(a.time, a.change, a.severity) for a in plain.alerts] == [
        (a.time, a.change, a.severity) for a in corrected.alerts
    ]
    before, after = (story.foreseen()[0] for story in (plain, corrected))
    assert after.evidence == (*before.evidence, outcomes.reason)
    assert after.time_to_full_s is not None and before.time_to_full_s is not None
    assert after.time_to_full_s.p10 < before.time_to_full_s.p10 and before.time_to_full_s.p90 < after.time_to_full_s.p90


@pytest.mark.nightly
@pytest.mark.parametrize(("deviation", "is_off"), [(2.5, True), (0.0, False)])
def test_intervals_of_a_store_whose_rates_change_come_nearer_to_four_fifths(
    deviation: float, is_off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rate of puts is another every ten minutes, its logarithm with a deviation; a forecast knows the present."""
    rng, story = np.random.default_rng(1), Story(**SMALL)
    spreads: list[tuple[int, int]] = []  # of each interval, percent: spread and width
    note_full = Outcomes.note_full

    def on_full(self: Outcomes, time: int) -> None:
        spreads.extend(
            (spread_of(look.times, (time - look.tick * TICK) / SECOND), look.width) for look in self.looks if look.times
        )
        note_full(self, time)

    monkeypatch.setattr(Outcomes, "note_full", on_full)
    for _ in range(16):
        story.go_on(5, puts=10, gets=10)
        minute, puts = 0, 0
        while story.state()["usage_pct"] < 99:  # full is when a put is refused: as soon as there is no room
            puts = puts if minute % 10 else max(1, round(3 * float(rng.lognormal(0, deviation))))
            story.go_on(1, puts=puts, gets=0)
            minute += 1
        story.send("PUT", time=story.time + SECOND_US, length=800, reason=2192)
        story.send("CLEAR", time=story.time + 2 * SECOND_US)
        story.go_on(15, puts=10, gets=10)
    later = spreads[len(spreads) // 2 :]
    raw = sum(spread <= 100 for spread, _ in later) / len(later)
    corrected = sum(spread <= width for spread, width in later) / len(later)
    if is_off:
        assert raw < 0.65 and abs(corrected - 0.8) < abs(raw - 0.8) - 0.15
        assert any(reason.startswith("intervals widened by") for alert in story.foreseen() for reason in alert.evidence)
    else:
        assert raw == corrected and 0.7 <= raw <= 0.9
