"""Regimes: the bins since the last change of the flows.

A change of the mean is detected by the likelihood ratio of two means against one, at every bin of the window. The
search is a binary segmentation: bins before the clearest change are dropped, and the rest is searched again. Real
counts vary more than Poisson counts, and busy minutes follow busy ones. The variance is therefore estimated from the
bins themselves, by differences of neighbours, of which a change of the mean affects only one.

Sources: [published: Page, "Continuous inspection schemes", 1954; Truong, Oudre, Vayatis, "Selective review of offline
change point detection methods", 2020] (change points by likelihood ratio); [published: von Neumann, "Distribution of
the ratio of the mean square successive difference to the variance", 1941] (variance around a mean that moves).
"""

from __future__ import annotations

from kernels._compile import kernel, routine
from kernels.clock import MINUTE_TICKS
from kernels.layout import Array, Store
from kernels.meter_rows import BINS, CLASSES, COUNTS, DATA_SET_GETS, PUTS, STORE_GETS, YOUNG_GETS

MIN_BINS = 3  # on each side of a change
MIN_STANDARD_ERRORS = 5.5  # between the two means of a change


@kernel
def _counted(store: Store, lane: int) -> int:
    """Return a count of a bin; a store without a put so far has none."""
    return store.counts[lane] if store.counts.size > 0 else 0


@routine
def read_flows(store: Store, since: int, until: int, flows: Array, lags: Array) -> int:
    """Read the bins of ticks since..until-1, as far back as the ring has them; return their number n.

    Args:
        store: arrays of the store.
        since: first tick.
        until: tick behind the last one.
        flows: f8[BINS, 3 * CLASSES], rows 0..n-1 written: messages by class that stayed (puts minus young gets), that
            left later from the store itself, that left later from data sets.
        lags: f8[BINS, 2], rows 0..n-1 written: sum of the lags of the messages that left later, in puts, and puts.
    """
    n = 0
    for tick in range(max(since, until - BINS + 1), until):
        row = int(tick % BINS)
        if store.bins[row].tick != tick:
            continue
        first = row * COUNTS
        puts = 0
        for size in range(CLASSES):
            flows[n, size] = _counted(store, first + PUTS + size) - _counted(store, first + YOUNG_GETS + size)
            flows[n, CLASSES + size] = _counted(store, first + STORE_GETS + size)
            flows[n, 2 * CLASSES + size] = _counted(store, first + DATA_SET_GETS + size)
            puts += _counted(store, first + PUTS + size)
        lags[n, 0] = store.bins[row].lag
        lags[n, 1] = puts
        n += 1
    return n


@kernel
def _spread(series: Array, start: int, end: int, width: int) -> float:
    """Return the variance of a bin around a moving mean, from sums of `width` bins, without the largest jump."""
    total = 0.0
    largest = 0.0
    before = 0.0
    count = 0
    stop = end
    while stop - width >= start:
        value = 0.0
        for i in range(stop - width, stop):
            value += series[i]
        if stop != end:
            jump = (value - before) ** 2
            total += jump
            largest = max(largest, jump)
            count += 1
        before = value
        stop -= width
    if count < 2:
        return 0.0
    return (total - largest) / (2.0 * (count - 1) * width)


@routine
def spread(series: Array, start: int, end: int) -> float:
    """Return the variance of a bin of series[start:end]; the mean of n bins has an n-th of it.

    It is the larger of the estimates from bins and from minutes: if busy minutes follow each other, bins alone
    underestimate it.
    """
    by_bin = _spread(series, start, end, 1)
    if end - start < 5 * MINUTE_TICKS:
        return by_bin
    return max(by_bin, _spread(series, start, end, MINUTE_TICKS))


@kernel
def _clearest(series: Array, start: int, end: int, min_variance: float, best: Array) -> None:
    """Find the bin at which two means fit best.

    Args:
        series: f8[n].
        start: first bin.
        end: bin behind the last one.
        min_variance: lower bound of the variance of a bin.
        best: f8[2], overwritten by a better result: squared standard errors between the means, and the bin.
    """
    variance = max(spread(series, start, end), min_variance)
    total = 0.0
    for i in range(start, end):
        total += series[i]
    if variance <= 0.0:
        return
    left = 0.0
    for i in range(start, end):
        size = i - start
        if size >= MIN_BINS and end - i >= MIN_BINS:
            apart = left / size - (total - left) / (end - i)
            score = apart * apart / (variance * (1.0 / size + 1.0 / (end - i)))
            if score > best[0]:
                best[0] = score
                best[1] = i
        left += series[i]


@routine
def regime_start(series: Array, n: int, units: Array, best: Array) -> int:
    """Return the first bin from which each series has a constant mean.

    Args:
        series: f8[k, >= n].
        n: number of bins.
        units: f8[k], smallest step of each series; its Poisson variance is mean * unit.
        best: f8[2], working space.
    """
    start = 0
    while True:
        best[0] = MIN_STANDARD_ERRORS * MIN_STANDARD_ERRORS
        best[1] = -1.0
        for row in range(series.shape[0]):
            mean = 0.0
            for i in range(start, n):
                mean += abs(series[row, i])
            _clearest(series[row], start, n, mean / max(1, n - start) * units[row], best)
        if best[1] < 0:
            return start
        start = int(best[1])
