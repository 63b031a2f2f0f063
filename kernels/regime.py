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
from kernels.layout import Array
from kernels.meter_rows import BINS, CLASSES, COUNTS, DATA_SET_GETS, PUTS, REFUSED, STORE_GETS, YOUNG_GETS

MIN_BINS = 3  # on each side of a change
MIN_STANDARD_ERRORS = 5.5  # between the two means of a change


# Columns of the totals of `read_flows`
LAG = 0  # sum of the lags of the messages that left later, in puts
PUT = 1  # messages put
STAYED = 2  # messages that stayed, or would have: those refused for want of storage
LEFT = 3  # messages that left later
REFUSED_PUTS = 4  # messages among STAYED that were refused
TOTALS = 5


@routine
def read_flows(bins: Array, counts: Array, since: int, until: int, flows: Array, totals: Array) -> int:
    """Read the bins of ticks since..until-1, as far back as the ring has them; return their number n.

    Args:
        bins: BIN[BINS] of the store.
        counts: i4[BINS * COUNTS] of the store, or empty: no put so far.
        since: first tick.
        until: tick behind the last one.
        flows: f8[BINS, 3 * CLASSES], rows 0..n-1 written: messages by class that stayed (puts minus young gets) or
            were refused for want of storage, that left later from the store itself, that left later from data sets.
        totals: f8[BINS, TOTALS], rows 0..n-1 written: of all classes.
    """
    n = 0
    for tick in range(max(since, until - BINS + 1), until):
        row = int(tick % BINS)
        if bins[row].tick != tick:
            continue
        flows[n] = 0.0
        totals[n] = 0.0
        totals[n, LAG] = bins[row].lag
        if counts.size > 0:
            _read_bin(counts, row * COUNTS, flows[n], totals[n])
        n += 1
    return n


@kernel
def _read_bin(counts: Array, first: int, flows: Array, totals: Array) -> None:
    """Read one bin, whose counts begin at `first`, into its rows of flows and of totals."""
    for size in range(CLASSES):
        put = counts[first + PUTS + size]
        refused = counts[first + REFUSED[size]]
        stayed = put - counts[first + YOUNG_GETS + size] + refused
        near, far = counts[first + STORE_GETS + size], counts[first + DATA_SET_GETS + size]
        flows[size], flows[CLASSES + size], flows[2 * CLASSES + size] = stayed, near, far
        totals[PUT] += put
        totals[STAYED] += stayed
        totals[LEFT] += near + far
        totals[REFUSED_PUTS] += refused


@routine
def cumulate(flows: Array, slope: Array, sums: Array) -> None:
    """Sum the bins of a regime as they would be had they run at its end along a line all the time.

    Args:
        flows: f8[n, lanes], the bins.
        slope: f8[lanes], change from bin to bin.
        sums: f8[1 + m, lanes], written: the sums of the bins before each. Behind the last bin the first comes again.
    """
    n = flows.shape[0]
    sums[0] = 0.0
    for place in range(sums.shape[0] - 1):
        row = place % n
        ahead = n - 0.5 - row
        for lane in range(flows.shape[1]):
            sums[place + 1, lane] = sums[place, lane] + (flows[row, lane] + slope[lane] * ahead)


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
