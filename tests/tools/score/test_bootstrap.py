"""Figures from recordings drawn again."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from tests.support.profile import examples
from twin.reporting.tuning import LEAST_RECORDINGS, RESAMPLES, Resamples, figure

COUNT = 40
VALUES = st.lists(st.lists(st.floats(0, 100), max_size=4), min_size=LEAST_RECORDINGS, max_size=COUNT)


def drawn_again(drawn: Resamples, row: int) -> list[int]:
    """Return the recordings of a resample."""
    return np.repeat(np.arange(drawn.weights.shape[1]), drawn.weights[row].astype(int)).tolist()


@settings(max_examples=examples(30))
@given(VALUES, st.sampled_from([0.1, 0.5, 0.9]))
def test_a_quantile_is_that_of_the_values_drawn(values, rank):
    drawn = Resamples(len(values), 20)
    with_all = [value for own in values for value in own]
    result = drawn.quantile(values, rank)
    if not with_all:
        assert result == (None, None)
        return
    assert result.value == pytest.approx(np.quantile(with_all, rank))
    flat = [[value for i in drawn_again(drawn, row) for value in values[i]] for row in range(1, 21)]
    quantiles = [np.quantile(own, rank) for own in flat if own]
    assert result.bounds is not None
    assert result.bounds == pytest.approx(np.quantile(quantiles, [0.025, 0.975], method="inverted_cdf"))


def test_a_ratio_is_that_of_the_sums_drawn():
    rng = np.random.default_rng(1)
    parts, wholes = rng.integers(0, 5, COUNT), rng.integers(5, 9, COUNT)
    drawn = Resamples(COUNT, RESAMPLES)
    result = drawn.ratio(parts, wholes)
    ratios = [parts[rows].sum() / wholes[rows].sum() for i in range(RESAMPLES) for rows in [drawn_again(drawn, i + 1)]]
    assert result.value == parts.sum() / wholes.sum()
    assert result.bounds == pytest.approx(np.quantile(ratios, [0.025, 0.975], method="inverted_cdf"))
    assert drawn.ratio(parts, wholes * 0) == (None, None)


def test_a_median_of_infinite_values_is_infinite():
    values = [[np.inf, 1.0]] * LEAST_RECORDINGS
    assert Resamples(LEAST_RECORDINGS + 1).quantile([*values, [np.inf]], 0.5).value == np.inf


def test_the_same_recordings_give_the_same_interval_and_few_give_none():
    assert (Resamples(30, 5).weights == Resamples(30, 5).weights).all()
    assert Resamples(30, 5).weights.sum(axis=1).tolist() == [30] * 6
    assert Resamples(LEAST_RECORDINGS - 1, 5).weights.shape[0] == 1
    assert figure(np.array([0.5])) == (0.5, None)


def test_nine_of_ten_intervals_and_more_contain_the_truth():
    rng = np.random.default_rng(2)
    hits = 0
    for _ in range(100):
        bounds = Resamples(100, RESAMPLES).ratio(rng.random(100) < 0.3, np.ones(100)).bounds
        assert bounds is not None
        hits += bounds.low <= 0.3 <= bounds.high
    assert hits >= 90
