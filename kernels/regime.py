"""Regimes: since when do flows run as they run now?

A change of the mean is looked for by the likelihood ratio of two means against one, over every place of the window
(binary segmentation: what is before the clearest change is forgotten, then again). Real counts vary more than Poisson
counts, and busy minutes follow busy ones; the variance is therefore taken from the bins themselves, from neighbours,
which a change of the mean disturbs only once.

Sources: Page 1954 and the survey of Truong, Oudre, Vayatis 2020 (change points by likelihood ratio); the mean squared
successive difference is von Neumann's estimate of a variance around a mean that moves.
"""

from __future__ import annotations

from kernels._compile import kernel, routine
from kernels.layout import Array, Store
from kernels.meter_rows import AWAY, BINS, CLASSES, COUNTS, KEPT, PUTS, YOUNG

LEAST = 3  # bins on each side of a change
CLEAR = 5.5  # standard errors that a change must be beyond
MINUTE = 6  # bins


@routine
def read_flows(store: Store, since: int, until: int, flows: Array, lags: Array) -> int:
    """Fill flows[0..n) from the bins of ticks since..until-1, as far back as the ring has them; n.

    flows: f8[BINS, 3 * CLASSES], messages by class: those that stayed (puts less what left young), and those that left
    later, from the store itself and from data sets; lags: f8[BINS, 2], puts since theirs of those that left later, in
    all, and puts.
    """
    n = 0
    for tick in range(max(since, until - BINS + 1), until):
        row = int(tick % BINS)
        if store.bins[row].tick != tick:
            continue
        at = row * COUNTS
        puts = 0
        for size in range(CLASSES):
            flows[n, size] = store.counts[at + PUTS + size] - store.counts[at + YOUNG + size]
            flows[n, CLASSES + size] = store.counts[at + KEPT + size]
            flows[n, 2 * CLASSES + size] = store.counts[at + AWAY + size]
            puts += store.counts[at + PUTS + size]
        lags[n, 0] = store.bins[row].lag
        lags[n, 1] = puts
        n += 1
    return n


@kernel
def _spread(series: Array, start: int, end: int, width: int) -> float:
    """Variance of a bin around a mean that moves, from sums over `width` neighbours; its largest jump left out."""
    total = 0.0
    largest = 0.0
    before = 0.0
    count = 0
    at = end
    while at - width >= start:
        value = 0.0
        for place in range(at - width, at):
            value += series[place]
        if at != end:
            jump = (value - before) ** 2
            total += jump
            largest = max(largest, jump)
            count += 1
        before = value
        at -= width
    if count < 2:
        return 0.0
    return (total - largest) / (2.0 * (count - 1) * width)


@routine
def spread(series: Array, start: int, end: int) -> float:
    """Variance of a bin of series[start:end], such that the mean of n bins has a variance of this by n.

    The larger of what bins and what minutes say: where busy minutes follow each other, bins alone say too little.
    """
    by_bin = _spread(series, start, end, 1)
    if end - start < 5 * MINUTE:
        return by_bin
    return max(by_bin, _spread(series, start, end, MINUTE))


@kernel
def _clearest(series: Array, start: int, end: int, least_spread: float, found: Array) -> None:
    """Where two means fit best: found[0] squared standard errors apart, found[1] the place; kept where no better."""
    variance = max(spread(series, start, end), least_spread)
    total = 0.0
    for at in range(start, end):
        total += series[at]
    if variance <= 0.0:
        return
    left = 0.0
    for at in range(start, end):
        size = at - start
        if size >= LEAST and end - at >= LEAST:
            apart = left / size - (total - left) / (end - at)
            score = apart * apart / (variance * (1.0 / size + 1.0 / (end - at)))
            if score > found[0]:
                found[0] = score
                found[1] = at
        left += series[at]


@routine
def regime_start(series: Array, n: int, units: Array, found: Array) -> int:
    """The bin since which all series run at one mean each.

    series: f8[k, >= n]; units: f8[k], the least step of each series (its Poisson variance is mean * unit); found:
    f8[2], room to work in.
    """
    start = 0
    while True:
        found[0] = CLEAR * CLEAR
        found[1] = -1.0
        for one in range(series.shape[0]):
            mean = 0.0
            for at in range(start, n):
                mean += abs(series[one, at])
            _clearest(series[one], start, n, mean / max(1, n - start) * units[one], found)
        if found[1] < 0:
            return start
        start = int(found[1])
