"""The variance of a bin around a moving mean; bins read and summed as by the oracle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import meter_rows, regime
from kernels.layout import Array
from tests.naive.regime import BINS, CLASSES, NaiveBin, cumulate, read_flows
from tests.support.profile import examples

pytestmark = pytest.mark.uncompiled


@pytest.mark.parametrize(
    ("series", "variance"),
    [
        ([], 0.0),
        ([7.0], 0.0),
        ([1.0, 5.0], 0.0),  # one jump, which is the largest
        ([1.0, 5.0, 3.0], 2.0),  # jumps of 2 and 4: 2 * 2 / 2
        ([4.0, 4.0, 4.0, 9.0, 4.0], 25.0 / 6),  # 0 + 0 + 25, without the other 25, of three jumps
    ],
    ids=str,
)
def test_the_variance_is_that_of_the_jumps_without_the_largest(series: list[float], variance: float) -> None:
    assert regime.spread(np.array(series), 0, len(series)) == pytest.approx(variance)


def random_bins(rng: np.random.Generator, until: int) -> list[NaiveBin]:
    """Return bins of ticks before `until`, some of them missing."""
    return [
        NaiveBin(tick, int(rng.integers(0, 500)), *rng.integers(0, 90, (5, CLASSES)).tolist())
        for tick in range(max(0, until - BINS + 1), until)
        if rng.integers(0, 4)
    ]


def as_tables(bins: list[NaiveBin]) -> tuple[Array, Array]:
    """Return the tables `bins` and `counts` of a store with these bins."""
    table, counts = np.zeros(BINS, meter_rows.BIN), np.zeros((BINS, meter_rows.COUNTS), np.int32)
    table["tick"] = -1
    for past in bins:
        row = past.tick % BINS
        table[row]["tick"], table[row]["lag"] = past.tick, past.lag
        counts[row, meter_rows.PUTS :][:CLASSES] = past.put
        counts[row, meter_rows.YOUNG_GETS :][:CLASSES] = past.young
        counts[row, meter_rows.STORE_GETS :][:CLASSES] = past.near
        counts[row, meter_rows.DATA_SET_GETS :][:CLASSES] = past.far
        counts[row, meter_rows.REFUSED] = past.refused
    return table, counts.ravel()


@settings(max_examples=examples(100), deadline=None)
@given(seed=st.integers(0, 2**32), until=st.integers(1, 1000), long=st.integers(0, 500))
def test_bins_are_read_as_by_the_oracle(seed: int, until: int, long: int) -> None:
    bins = random_bins(np.random.default_rng(seed), until)
    flows, totals = np.empty((BINS, 3 * CLASSES)), np.empty((BINS, regime.TOTALS))
    n = regime.read_flows(*as_tables(bins), max(0, until - long), until, flows, totals)
    assert np.hstack([flows[:n], totals[:n]]).tolist() == read_flows(bins, max(0, until - long), until)


def test_bins_of_a_store_without_a_put_are_empty() -> None:
    table, _ = as_tables(random_bins(np.random.default_rng(1), 50))
    flows, totals = np.empty((BINS, 3 * CLASSES)), np.empty((BINS, regime.TOTALS))
    n = regime.read_flows(table, np.zeros(0, np.int32), 0, 50, flows, totals)
    assert n > 20
    assert not flows[:n].any()
    assert totals[:n].tolist() == [[lag, 0.0, 0.0, 0.0, 0.0] for lag in table["lag"][table["tick"] >= 0].tolist()]


@settings(max_examples=examples(100), deadline=None)
@given(seed=st.integers(0, 2**32), bins=st.integers(1, 40), more=st.integers(1, 50))
def test_bins_are_summed_as_by_the_oracle_to_the_last_bit(seed: int, bins: int, more: int) -> None:
    rng = np.random.default_rng(seed)
    flows = rng.poisson(3, (bins, 5)) * 1.0
    slope = rng.normal(0, 0.1, 5) * rng.integers(0, 2, 5)
    sums = np.empty((1 + bins + more, 5))
    regime.cumulate(flows, slope, sums)
    assert sums.tolist() == cumulate(flows.tolist(), slope.tolist(), bins + more)
