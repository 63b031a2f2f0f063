"""Puts by half hours, and the experts that predict them (docs/forecast.md, "Rates by the hour")."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.clock import HALF_HOUR_TICKS
from tests.naive import rates as naive
from tests.support.profile import examples
from tests.twin.test_alerts_forecast import Story
from twin.estate.planned import PastPuts
from twin.forecast import rises
from twin.forecast.evidence import evidence
from twin.forecast.monitor import ForecastMemory, look
from twin.forecast.rises import (
    BETWEEN,
    CHANGE,
    DAY,
    EXPERTS,
    HALF_HOURS,
    HOUR,
    LEAST_KNOWN,
    NOW,
    SPANS,
    UNKNOWN,
    WEEK_AGO,
    Puts,
    Trust,
)
from twin.state.arrays import Array

HALF_HOUR_US = 1_800_000_000


def packed(counts: list[int]) -> bytes:
    return np.array(counts, "<i4").tobytes()


def known_trust(counts: list[int]) -> Trust:
    trusted = rises.trust_rates(packed(counts))
    assert trusted is not None
    return trusted


def by_day(days: int, rng: np.random.Generator, noise: float = 0.1) -> list[int]:
    """Return days that repeat: busy at noon."""
    hours = 1000 * (1.2 + np.sin(2 * np.pi * np.arange(days * DAY) / DAY))
    return np.round(hours * np.exp(rng.normal(0, noise, hours.size))).astype(int).tolist()


def wandering(rng: np.random.Generator) -> list[int]:
    """Return six days in which every half hour differs from the one before, whatever the hour."""
    return np.round(1000 * np.exp(np.cumsum(rng.normal(0, 0.15, 6 * DAY)))).astype(int).tolist()


@settings(max_examples=examples(100), deadline=None)
@given(
    seed=st.integers(0, 2**32), size=st.integers(DAY, HALF_HOURS), unknown=st.floats(0, 0.2), level=st.floats(0, 500)
)
def test_the_experts_are_trusted_as_those_of_the_oracle(seed: int, size: int, unknown: float, level: float) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.poisson(level * rng.gamma(2, 1, size))
    counts[rng.random(size) < unknown] = UNKNOWN
    obvious = [None if count == UNKNOWN else count for count in counts.tolist()]
    trusted = rises.trust_rates(packed(counts.tolist()))
    if sum(count is not None for count in obvious) < LEAST_KNOWN:
        assert trusted is None
        return
    assert trusted is not None
    assert trusted.least == pytest.approx(naive.least_of(obvious))
    for number, span in enumerate(SPANS):
        weights, spread = naive.trust(obvious, span)
        assert trusted.weights[:, number] == pytest.approx(weights, abs=1e-9)
        assert trusted.spread[number] == pytest.approx(spread)


@settings(max_examples=examples(100), deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(1, 90), unknown=st.floats(0, 0.3), level=st.floats(0, 500))
def test_puts_wander_as_those_of_the_oracle(seed: int, size: int, unknown: float, level: float) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.poisson(level * rng.gamma(2, 1, size))
    counts[rng.random(size) < unknown] = UNKNOWN
    wandered = rises.wandering(packed(counts.tolist()))
    expected = naive.wandering([None if count == UNKNOWN else count for count in counts.tolist()])
    assert (None if wandered is None else wandered.tolist()) == (None if expected is None else pytest.approx(expected))


def test_only_stores_without_experts_have_puts_that_wander() -> None:
    for size in (1, 7, 8, LEAST_KNOWN - 1, LEAST_KNOWN, HALF_HOURS):
        counts = packed([100] * size)
        assert (rises.wandering(counts) is not None) == (8 <= size < LEAST_KNOWN)
        assert rises.wandering(counts) is None or rises.trust_rates(counts) is None


def test_puts_that_wander_widen_the_interval_and_leave_the_median_of_the_paths() -> None:
    story = Story()
    story.go_on(20, puts=20, gets=0)
    rng, view = np.random.default_rng(3), story.twin
    tick = int(view.tables.store.scalars["tick"][0])
    steady, rough = [100] * 12, (100 * np.exp(rng.normal(0, 0.5, 12))).astype(int).tolist()
    alone, calm, wild = (look(view, tick, counts) for counts in (b"", packed(steady), packed(rough)))
    assert alone is not None and calm is not None and wild is not None
    of_alone, of_calm, of_wild = (outlook.quantiles() for outlook in (alone, calm, wild))
    assert of_alone is not None and of_calm is not None and of_wild is not None
    assert np.median(wild.full_at) == pytest.approx(np.median(alone.full_at), rel=0.1)
    assert of_wild[2] / of_wild[0] > 1.5 * of_alone[2] / of_alone[0]
    assert of_calm[2] / of_calm[0] < 1.2 * of_alone[2] / of_alone[0]


def test_days_that_repeat_are_followed() -> None:
    counts = by_day(4, np.random.default_rng(1))
    trusted = known_trust(counts)
    at_midnight = rises.expected_puts(trusted, len(counts) * HALF_HOUR_TICKS, counts[-1], np.array([1.0, 8 * 360.0]))
    truth = [counts[-1], np.mean([counts[day * DAY + 16] for day in range(4)])]
    assert counts[-1] * at_midnight.factor == pytest.approx(truth, rel=0.15)
    assert trusted.weights[[HOUR, CHANGE, BETWEEN], -1].sum() > 0.9


def test_where_days_do_not_repeat_puts_stay_as_they_are() -> None:
    trusted = known_trust(wandering(np.random.default_rng(2)))
    assert trusted.weights[NOW, :2].min() > 0.8


def test_where_days_do_not_repeat_the_experts_cost_nothing() -> None:
    counts = wandering(np.random.default_rng(5))
    errors: list[list[float]] = [[], []]
    for size in range(2 * DAY, 5 * DAY, 2):
        trusted, sums = known_trust(counts[:size]), rises.sums_of_puts(np.array(counts[:size], float))
        for number, span in enumerate(SPANS[:4]):
            says = rises.predict_puts(sums, np.array([size]), span, trusted.least)[:, 0]
            came = np.log(np.mean(counts[size : size + span]))
            errors[0].append(says[NOW] - came)
            errors[1].append(float(trusted.weights[:, number] @ np.nan_to_num(says)) - came)
    of_now, of_all = (float(np.sqrt(np.mean(np.square(some)))) for some in errors)
    assert of_all < 1.05 * of_now


def test_a_week_that_repeats_is_followed_where_its_days_differ() -> None:
    rng = np.random.default_rng(3)
    week = np.repeat(rng.choice([200, 2000], 7), DAY)
    week[-DAY:] = 2000
    counts = np.concatenate([week, week[:DAY]]).tolist()
    trusted = known_trust(counts)
    assert trusted.weights[:, -1].argmax() == WEEK_AGO


@given(counts=st.lists(st.integers(0, 10_000), max_size=LEAST_KNOWN - 1))
def test_a_day_and_a_half_is_the_least_that_predicts(counts: list[int]) -> None:
    assert rises.trust_rates(packed(counts)) is None


def test_the_weights_are_together_one_and_no_time_ahead_is_undefined() -> None:
    rng = np.random.default_rng(4)
    for size in (LEAST_KNOWN, LEAST_KNOWN + 7, 3 * DAY, HALF_HOURS):
        trusted = known_trust(rng.poisson(50, size).tolist())
        assert trusted.weights.shape == (EXPERTS, len(SPANS))
        assert trusted.weights.sum(axis=0) == pytest.approx(1.0)
        ahead: Array = np.linspace(1, 8 * 360, 50)
        expected = rises.expected_puts(trusted, size * HALF_HOUR_TICKS + 100, 50.0, ahead)
        assert np.isfinite(expected.factor).all()
        assert np.isfinite(expected.spread).all()
        assert (expected.factor > 0).all()


# --- the puts that are kept ------------------------------------------------------------------------------------------


@settings(max_examples=examples(200), deadline=None)
@given(steps=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 50)), min_size=1, max_size=60))
def test_every_half_hour_has_its_puts(steps: list[tuple[int, int]]) -> None:
    puts, tick, total, by_slot = Puts(), 1_000_000_000, 0, {}
    puts.note(tick, total)
    first = tick // HALF_HOUR_TICKS
    for ticks, count in steps:
        by_slot[tick // HALF_HOUR_TICKS] = by_slot.get(tick // HALF_HOUR_TICKS, 0) + count
        total, tick = total + count, tick + ticks
        puts.note(tick, total)
    slots = range(first, tick // HALF_HOUR_TICKS)
    counts = [UNKNOWN if slot == first else by_slot.get(slot, 0) for slot in slots][-HALF_HOURS:]
    assert puts.by_half_hour() == counts


def test_a_clock_that_goes_back_forgets_what_was_later() -> None:
    puts = Puts()
    for slot in range(5):
        puts.note((1000 + slot) * HALF_HOUR_TICKS, slot * 10)
    puts.turn_back(1002 * HALF_HOUR_TICKS + 7)
    assert puts.by_half_hour() == [UNKNOWN, 10]
    puts.note(1003 * HALF_HOUR_TICKS, 60)
    assert puts.by_half_hour() == [UNKNOWN, 10, UNKNOWN]
    puts.turn_back(10 * HALF_HOUR_TICKS)
    assert puts.by_half_hour() == []


def test_a_new_store_begins_with_the_puts_of_its_history_at_their_time_of_the_week() -> None:
    week = 7 * DAY
    puts, before = Puts(), Puts()
    for slot in range(1000, 1010):
        before.note(slot * HALF_HOUR_TICKS, (slot - 1000) * 10)
    past = before.as_history()
    assert past is not None
    assert past.until == 1009 * HALF_HOUR_US
    puts.begin_with(past)
    puts.note((1011 + 5 * week) * HALF_HOUR_TICKS + 3, 0)
    assert puts.by_half_hour() == [UNKNOWN, *[10] * 8, UNKNOWN, UNKNOWN]
    puts.note((1012 + 5 * week) * HALF_HOUR_TICKS, 99)
    assert puts.by_half_hour()[-2:] == [UNKNOWN, UNKNOWN]  # the half hour under way began before


def test_eight_days_are_kept_and_no_more() -> None:
    puts = Puts()
    for slot in range(1000, 1000 + 2 * HALF_HOURS):
        puts.note(slot * HALF_HOUR_TICKS, slot)
    assert len(msgspec.msgpack.encode(puts)) < 2_000
    assert puts.by_half_hour() == [1] * HALF_HOURS


def test_a_memory_of_the_format_before_has_no_puts() -> None:
    memory = msgspec.json.decode(b'{"next_look": 5}', type=ForecastMemory)
    assert memory.puts == Puts()


# --- forecasts -------------------------------------------------------------------------------------------------------

NIGHT, DAY_PUTS = 30, 1800  # puts a half hour


def remembering(counts: Sequence[int]) -> Story:
    """Return a new store with the puts of half hours before its first event."""
    story = Story()
    until = (story.time // HALF_HOUR_US + 1) * HALF_HOUR_US
    if counts:
        story.twin.monitor.memory.puts.begin_with(PastPuts(until=until, counts=tuple(counts)))
    story.time = until
    return story


def until_hour(hours: int) -> list[int]:
    """Return the half hours of five days, busy by day; what comes next is busy for some hours, then quiet."""
    busy = [*[DAY_PUTS] * (2 * hours + 2), *[NIGHT] * (DAY - 20), *[DAY_PUTS] * (18 - 2 * hours)]
    return busy * 5


def test_a_rise_that_the_night_will_end_is_not_foreseen_to_fill() -> None:
    forecasts = []
    for counts in ([], until_hour(0)):
        story = remembering(counts)
        story.go_on(5, puts=0, gets=0)
        story.go_on(40, puts=10, gets=0)
        record = story.state()["forecast"]
        assert record is not None
        forecasts.append(record["resources"][0]["full_probability"])
    without, with_days = forecasts
    assert with_days < without / 2


def test_the_evidence_says_where_the_hours_of_earlier_days_decide() -> None:
    story = remembering(until_hour(9))
    story.go_on(5, puts=0, gets=0)
    story.go_on(90, puts=2, gets=0)
    memory, tick = story.twin.monitor.memory, int(story.twin.tables.store.scalars[0]["tick"])
    outlook = look(story.twin, tick, memory.puts.counts)
    assert outlook is not None
    [reason] = [text for text in evidence(story.twin, outlook, "A.QUEUE", tick) if text.startswith("by the hours of")]
    assert reason.startswith("by the hours of 5 earlier days, ")
    assert " times as many puts as now are expected in " in reason
    plain = look(story.twin, tick)
    assert plain is not None
    assert not any("by the hours of" in text for text in evidence(story.twin, plain, "A.QUEUE", tick))


@settings(max_examples=examples(20), deadline=None)
@given(
    counts=st.lists(st.integers(0, 5000), max_size=6),
    spans=st.lists(st.tuples(st.integers(1, 20), st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=4),
)
def test_puts_of_less_than_four_hours_change_nothing(counts: list[int], spans: list[tuple[int, int, int]]) -> None:
    twins = []
    for remembered in ([], counts):
        story = remembering(remembered)
        for minutes, puts, gets in spans:
            story.go_on(minutes, puts, gets)
        twins.append((story.state(), story.alerts, story.twin.drain_forecasts()))
    assert twins[0] == twins[1]


@settings(max_examples=examples(20), deadline=None)
@given(
    days=st.booleans(),
    spans=st.lists(st.tuples(st.integers(1, 40), st.integers(0, 15), st.integers(0, 12)), min_size=1, max_size=4),
)
def test_a_longer_horizon_changes_no_state_but_the_forecast(days: bool, spans: list[tuple[int, int, int]]) -> None:
    states = []
    for horizon_s in (3600, 8 * 3600):
        story = Story(forecast_horizon_s=horizon_s)
        if days:
            past = PastPuts(until=story.time // HALF_HOUR_US * HALF_HOUR_US, counts=tuple(until_hour(3)))
            story.twin.monitor.memory.puts.begin_with(past)
        for minutes, puts, gets in spans:
            story.go_on(minutes, puts, gets)
        state = story.state()
        forecasts = ("forecast", "forecast_scores", "alerts", "incident")
        store = story.twin.tables.store
        tables = [getattr(store, name).tobytes() for name in ("queues", "bins", "counts", "stocks", "tides", "rises")]
        puts = story.twin.monitor.memory.puts
        states.append(({name: value for name, value in state.items() if name not in forecasts}, tables, puts))
    assert states[0] == states[1]
