"""Puts by half hours, and the experts that foretell them (docs/forecast.md, "Rates by the hour")."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.clock import HALF_HOUR_TICKS
from tests.naive import rates as naive
from tests.support.profile import examples
from twin.forecast import rates
from twin.forecast.monitor import ForecastMemory
from twin.forecast.rates import BETWEEN, CHANGE, DAY, EXPERTS, HOUR, KEPT, NOW, SPANS, UNKNOWN, WEEK_AGO, Puts, Trust
from twin.state.arrays import Array

HALF_HOUR_US = 1_800_000_000


def packed(counts: list[int]) -> bytes:
    return np.array(counts, "<i4").tobytes()


def known_trust(counts: list[int]) -> Trust:
    trusted = rates.trust(packed(counts))
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
@given(seed=st.integers(0, 2**32), size=st.integers(DAY, KEPT), unknown=st.floats(0, 0.2), level=st.floats(0, 500))
def test_the_experts_are_trusted_as_those_of_the_oracle(seed: int, size: int, unknown: float, level: float) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.poisson(level * rng.gamma(2, 1, size))
    counts[rng.random(size) < unknown] = UNKNOWN
    obvious = [None if count == UNKNOWN else count for count in counts.tolist()]
    trusted = rates.trust(packed(counts.tolist()))
    if sum(count is not None for count in obvious) < DAY:
        assert trusted is None
        return
    assert trusted is not None
    assert trusted.least == pytest.approx(naive.least_of(obvious))
    for number, span in enumerate(SPANS):
        weights, spread = naive.trust(obvious, span)
        assert trusted.weights[:, number] == pytest.approx(weights, abs=1e-9)
        assert trusted.spread[number] == pytest.approx(spread)


def test_days_that_repeat_are_followed() -> None:
    counts = by_day(4, np.random.default_rng(1))
    trusted = known_trust(counts)
    at_midnight = rates.expected(trusted, len(counts) * HALF_HOUR_TICKS, counts[-1], np.array([1.0, 8 * 360.0]))
    truth = [counts[-1], np.mean([counts[day * DAY + 16] for day in range(4)])]
    assert counts[-1] * at_midnight.factor == pytest.approx(truth, rel=0.15)
    assert trusted.weights[[HOUR, CHANGE, BETWEEN], -1].sum() > 0.9


def test_where_days_do_not_repeat_puts_stay_as_they_are() -> None:
    trusted = known_trust(wandering(np.random.default_rng(2)))
    assert trusted.weights[NOW, :2].min() > 0.8


def test_where_days_do_not_repeat_the_experts_cost_nothing() -> None:
    counts = wandering(np.random.default_rng(5))
    errors: list[list[float]] = [[], []]
    for size in range(2 * DAY, 5 * DAY):
        trusted, sums = known_trust(counts[:size]), rates.sums_of(np.array(counts[:size], float))
        for number, span in enumerate(SPANS[:4]):
            says = rates.foretold(sums, np.array([size]), span, trusted.least)[:, 0]
            came = np.log(np.mean(counts[size : size + span]))
            errors[0].append(says[NOW] - came)
            errors[1].append(float(trusted.weights[:, number] @ np.nan_to_num(says)) - came)
    of_now, of_all = (float(np.sqrt(np.mean(np.square(some)))) for some in errors)
    assert of_all < 1.03 * of_now


def test_a_week_that_repeats_is_followed_where_its_days_differ() -> None:
    rng = np.random.default_rng(3)
    week = np.repeat(rng.choice([200, 2000], 7), DAY)
    week[-DAY:] = 2000
    counts = np.concatenate([week, week[:DAY]]).tolist()
    trusted = known_trust(counts)
    assert trusted.weights[:, -1].argmax() == WEEK_AGO


@given(counts=st.lists(st.integers(0, 10_000), max_size=DAY - 1))
def test_less_than_a_day_foretells_nothing(counts: list[int]) -> None:
    assert rates.trust(packed(counts)) is None


def test_the_weights_are_together_one_and_no_time_ahead_is_undefined() -> None:
    rng = np.random.default_rng(4)
    for size in (DAY, DAY + 7, 3 * DAY, KEPT):
        trusted = known_trust(rng.poisson(50, size).tolist())
        assert trusted.weights.shape == (EXPERTS, len(SPANS))
        assert trusted.weights.sum(axis=0) == pytest.approx(1.0)
        ahead: Array = np.linspace(1, 8 * 360, 50)
        expected = rates.expected(trusted, size * HALF_HOUR_TICKS + 100, 50.0, ahead)
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
    counts = [UNKNOWN if slot == first else by_slot.get(slot, 0) for slot in slots][-KEPT:]
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
    for slot in range(1000, 1000 + 2 * KEPT):
        puts.note(slot * HALF_HOUR_TICKS, slot)
    assert len(msgspec.msgpack.encode(puts)) < 2_000
    assert puts.by_half_hour() == [1] * KEPT


def test_a_memory_of_the_format_before_has_no_puts() -> None:
    memory = msgspec.json.decode(b'{"next_look": 5}', type=ForecastMemory)
    assert memory.puts == Puts()
