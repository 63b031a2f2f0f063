"""Regimes: the bins since the last change of the flows.

A change of the mean is detected by the likelihood ratio of two means against one, at every bin of the window. The
search is a binary segmentation: bins before the clearest change are dropped, and the rest is searched again. Real
counts vary more than Poisson counts, and busy minutes follow busy ones. The variance is therefore estimated from the
bins themselves, by differences of neighbours, of which a change of the mean affects only one. Sources: [published:
Page, "Continuous inspection schemes", 1954; Truong, Oudre, Vayatis, "Selective review of offline change point detection
methods", 2020] (change points by likelihood ratio); [published: von Neumann, "Distribution of the ratio of the mean
square successive difference to the variance", 1941] (variance around a mean that moves).
"""

from __future__ import annotations

import numpy as np

from kernels._compile import kernel, routine
from kernels.clock import MINUTE_TICKS
from kernels.layout import Array
from kernels.meter_rows import BINS, CLASSES, COUNTS, DATA_SET_GETS, PUTS, REFUSED, STORE_GETS, YOUNG_GETS

MIN_BINS = 3  # on each side of a change
MIN_STANDARD_ERRORS = 5.5  # between the two means of a change
_WINDOWS = (180, 90, 45)  # bins
_MOST_CHANGES = 20  # that are counted
_FIRST_CHANGE = 0.5  # changes fewer than counted: with one there may be none for long [assumed]
SERVICE_BLOCKS = 10  # into which the bins are put to compare gets with the backlog
_MIN_SERVICE_BINS = 6  # of a block
_MIN_GOT = 100  # messages
_MIN_SWING = 1.25  # times that the backlog has grown or shrunk
_MIN_SERVICE_GAIN = 8.0  # twice the logarithm of how much more likely [assumed]
_MIN_SERVICE_RATIO = 2.0  # the same as a factor, where gets vary more than by chance

SUMMARY = np.dtype(  # of a regime
    [
        ("start", "i8"),  # its first bin
        ("net", "f8"),  # elements, pages or blocks that a bin adds on average, unoffloaded
        ("net_messages", "f8"),  # messages that a bin adds on average
        ("spread", "f8"),  # variance of what bins add
        ("wait", "f8"),  # bins from the put to the get of what does not leave soon, inf: nothing leaves
        ("got", "f8"),  # share of the messages put that are got, 0..1
        ("put", "f8"),  # messages put in a bin on average, those that did not stay included
        ("lasts", "f8"),  # bins that flows stay as they are, on average; inf: they have not changed
    ]
)

# Columns of the totals of `read_flows`
LAG = 0  # sum of the lags of the messages that left later, in puts
PUT = 1  # messages put
STAYED = 2  # messages that stayed, or would have: those refused for lack of storage
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
            were refused for lack of storage, that left later from the store itself, that left later from data sets.
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


@kernel
def _spread_of(net: Array, start: int, end: int, usual: float) -> float:
    """Return the variance of net[start:end], as `spread_of` does."""
    count = end - start
    mean, size = 0.0, 0.0
    for i in range(start, end):
        mean += net[i] / count
        size += abs(net[i]) / count
    if count > MIN_BINS:
        return max(spread(net, start, end), size * usual)
    squares = 0.0
    for i in range(start, end):
        squares += (net[i] - mean) ** 2
    return max(squares / max(1, count - 1), size * usual)


@routine
def spread_of(net: Array, usual: float) -> float:
    """Return the variance of what bins add to a store around their mean, at least that of a Poisson process.

    Args:
        net: f8[n], elements, pages or blocks that each bin adds.
        usual: what a message takes.
    """
    return _spread_of(net, 0, net.size, usual)


@routine
def service(totals: Array, held: float, blocks: Array) -> float:
    """Return the share of the messages held that is got in a bin, 0 where gets do not follow the backlog.

    Gets in proportion to the backlog are compared with gets at a constant rate, over the whole rise, by how likely they
    make what was got.

    Args:
        totals: f8[n, TOTALS], of the bins of the rise.
        held: messages held at the end.
        blocks: f8[2, SERVICE_BLOCKS], working space.
    """
    n = totals.shape[0]
    bins = n // SERVICE_BLOCKS
    first = n - bins * SERVICE_BLOCKS
    if bins < _MIN_SERVICE_BINS:
        return 0.0
    got, backlog = blocks[0], blocks[1]
    for block in range(SERVICE_BLOCKS):
        got[block], backlog[block] = 0.0, 0.0
    all_got, later = 0.0, 0.0
    for row in range(n - 1, first - 1, -1):
        net = totals[row, STAYED] - totals[row, REFUSED_PUTS] - totals[row, LEFT]
        later += net
        block = (row - first) // bins
        got[block] += totals[row, LEFT]
        all_got += totals[row, LEFT]
        backlog[block] += held - later + net / 2
    if all_got < _MIN_GOT:
        return 0.0
    whole, smallest, largest = 0.0, np.inf, 0.0
    for block in range(SERVICE_BLOCKS):
        whole += max(backlog[block], 0.0)
        smallest, largest = min(smallest, backlog[block]), max(largest, backlog[block])
    if smallest <= 0.0 or largest < _MIN_SWING * smallest:
        return 0.0
    share, mean = all_got / whole, all_got / SERVICE_BLOCKS
    in_proportion, constant = 0.0, 0.0
    for block in range(SERVICE_BLOCKS):
        in_proportion += (got[block] - share * backlog[block]) ** 2 / (share * backlog[block])
        constant += (got[block] - mean) ** 2 / mean
    return share if constant > _MIN_SERVICE_GAIN + _MIN_SERVICE_RATIO * in_proportion else 0.0


@routine
def settle(flows: Array, totals: Array, weights: Array, series: Array, work: Array, summary: Array) -> None:
    """Find where the present regime begins among bins, and sum it up.

    It begins at the bin since which flows run along one line, if that holds for long, else at one mean.

    Args:
        flows: f8[n, 3 * CLASSES], as `read_flows` writes them.
        totals: f8[n, TOTALS], likewise.
        weights: f8[CLASSES], elements, pages or blocks that a message put takes.
        series: f8[8, n], working space.
        work: f8[6], working space.
        summary: SUMMARY[1], written.
    """
    n = flows.shape[0]
    own, units, best = summary[0], work[:4], work[4:]
    space, messages = 0.0, 0.0
    for row in range(n):
        stay, leave = 0.0, 0.0
        for size in range(CLASSES):
            stay += flows[row, size] * weights[size]
            leave += (flows[row, CLASSES + size] + flows[row, 2 * CLASSES + size]) * weights[size]
        series[0, row], series[1, row] = stay, leave
        series[2, row], series[3, row] = totals[row, STAYED], totals[row, LEFT]
        space += stay + leave
        messages += totals[row, STAYED] + totals[row, LEFT]
    usual = space / max(1.0, messages)
    units[0], units[1], units[2], units[3] = usual, usual, 1.0, 1.0
    start = _start(series, n, units, best)
    own.lasts = _lasting(series[:4], start, n, units, best)
    count = n - start
    lag, put, stayed, left = 0.0, 0.0, 0.0, 0.0
    own.net = 0.0
    for row in range(start, n):
        net = series[0, row] - series[1, row]
        series[4, row] = net
        own.net += net
        lag += totals[row, LAG]
        put += totals[row, PUT]
        stayed += totals[row, STAYED]
        left += totals[row, LEFT]
    own.start = start
    own.net /= count
    own.net_messages = (stayed - left) / count
    own.spread = _spread_of(series[4], start, n, usual)
    own.put = put / count
    own.wait = lag / left / own.put if left > 0 and put > 0 else np.inf
    own.got = min(1.0, left / stayed) if stayed > 0 else 1.0


@kernel
def _lasting(series: Array, start: int, n: int, units: Array, best: Array) -> float:
    """Return the bins that flows stay as they are, on average, inf where they have not changed.

    The changes before the present regime are found as it was, from its beginning backwards.

    Args:
        series: f8[4, >= n].
        start: bin with which the present regime begins.
        n: number of bins.
        units: f8[4], as of `regime_start`.
        best: f8[2], working space.
    """
    changes, end = 0, start
    while end > 0 and changes < _MOST_CHANGES:
        changes += 1
        end = regime_start(series, end, units, best) if end > 2 * MIN_BINS else 0
    return n / (changes - _FIRST_CHANGE) if changes > 0 else np.inf


@kernel
def _start(series: Array, n: int, units: Array, best: Array) -> int:
    """Return the bin with which the present regime begins. The last four rows of `series` are overwritten."""
    for number in range(-1, len(_WINDOWS)):
        window = n if number < 0 else _WINDOWS[number]
        if number >= 0 and window >= n:
            continue
        for row in range(4):
            _detrend(series[row], n - window, window, series[4 + row])
        if regime_start(series[4:], window, units, best) == 0:
            return n - window
    return int(regime_start(series[:4], n, units, best))


@kernel
def _detrend(series: Array, first: int, count: int, rest: Array) -> None:
    """Write f8[count], what a series from a bin on has besides a line through the middle."""
    middle, squares, slope = (count - 1) / 2, 0.0, 0.0
    for i in range(count):
        squares += (i - middle) ** 2
        slope += series[first + i] * (i - middle)
    slope /= max(1.0, squares)
    for i in range(count):
        rest[i] = series[first + i] - slope * (i - middle)
