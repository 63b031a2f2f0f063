"""Forecast of a store whose puts and gets nothing reports, from the levels that were measured.

Each resync leaves a level of each resource. The levels since the last fall are extended (`twin.forecast.outlook`),
with errors drawn for each path. It is unknown how earlier rises ended, as nothing is metered between two measurements:
a rise is expected to last as long again as it has lasted so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec
import numpy as np

from kernels import futures, meter_rows, regime
from kernels.clock import MINUTE_TICKS, TICK
from kernels.meter_rows import BINS, CLASSES, RISE
from twin.base.conditions import ENTRIES, Resource
from twin.forecast.fill_model import FillModel, ForecastView
from twin.forecast.flows import PATHS, READ, Reading
from twin.forecast.outlook import MIN_LEVELS, SECONDS, Extension, Outlook, known_levels, last_fall, seed_of, usage
from twin.forecast.rises import Past, Rise, chance_to_last
from twin.state.arrays import Array

MAX_LEVELS = 90  # that are kept: an hour and a half of RMF's minutes
_STALE_GAPS = 5  # usual times between two levels, after which the last one says nothing about now [assumed]
_FOOT = 0.02  # of a rise, that its foot is high
_SAME = 4  # levels [assumed]
_STEP = 0.009  # share by which a level in whole percents falls at least
_MIN_GAPS = 3  # levels, from which the usual time between two is known
_NO_PAST = Past(np.zeros(0, RISE), np.zeros((2, 0)))


class Levels(msgspec.Struct, kw_only=True):
    """Measured levels of a store, oldest first."""

    ticks: list[int] = []  # ticks of the measurements
    shares: dict[str, list[float]] = {}  # share in use at each tick since a resource is there, by its name
    totals: dict[str, float] = {}  # what each held when they were last in use as shares of it
    takeovers: int = 0  # number of the last measurements in a row that were taken over

    @property
    def known(self) -> int:
        """Number of levels that can be extended, of the present rise where there is one; at most `MIN_LEVELS`."""
        enough = min(MIN_LEVELS, len(self.ticks))  # fewer are of a resource that is new, beside which others are known
        return min((known_levels(shares) for shares in self.shares.values() if len(shares) >= enough), default=0)

    @property
    def rise_began(self) -> int:
        """Tick of the last level at the foot of the rise of what has risen most; 0: no level is known."""
        rises = [(shares[-1] - shares[last_fall(shares)], shares) for shares in self.shares.values() if shares]
        if not rises:
            return 0
        rise, shares = max(rises)
        line = shares[-1] - (1.0 - _FOOT) * rise
        return next((tick for tick, share in zip(self.ticks[::-1], shares[::-1], strict=False) if share <= line), 0)

    def are_recent(self, tick: int) -> bool:
        """Return True if the last level is not old, by the usual time between two."""
        if len(self.ticks) < _MIN_GAPS:
            return True
        return tick - self.ticks[-1] <= _STALE_GAPS * float(np.median(np.diff(self.ticks)))

    def crossed_at(self, resource: str, line: float, now: int, share: float) -> int:
        """Return when a resource passed a line, a share, since the last level; `now`, microseconds, if no level is
        below.
        """
        before = self.shares.get(resource, [])
        if not before or not before[-1] < line <= share:
            return now
        measured_at = self.ticks[-1] * TICK
        return round(measured_at + (now - measured_at) * (line - before[-1]) / (share - before[-1]))

    def rescale(self, fill: FillModel) -> None:
        """Rescale the levels to shares of the present totals of the fill model."""
        totals = totals_of(fill)
        for name, total in totals.items():
            before = self.totals.get(name, total)
            if name in self.shares and before != total:
                self.shares[name] = [level * before / total for level in self.shares[name]]
        self.totals = totals

    def note(
        self, tick: int, fill: FillModel, beyond: Mapping[str, float] = MappingProxyType({}), *, is_taken: bool = True
    ) -> None:
        """Add the levels of a store that has just been measured; a second one of the same tick replaces the first."""
        used = {str(resource): usage(fill, number) for number, resource in enumerate(fill.resources)}
        levels = {name: share + beyond.get(name, 0.0) for name, share in used.items()}
        self.rescale(fill)
        self.takeovers = self.takeovers + 1 if is_taken else 0
        if self.ticks and tick < self.ticks[-1]:
            self.ticks, self.shares = [], {}
        if self.ticks and tick == self.ticks[-1]:
            self.ticks.pop()
            for shares in self.shares.values():
                shares.pop()
        self.ticks = [*self.ticks, tick][-MAX_LEVELS:]
        self.shares = {name: [*self.shares.get(name, []), level][-MAX_LEVELS:] for name, level in levels.items()}


def look_ahead(
    name: str, fill: FillModel, levels: Levels, tick: int, horizon: int, reading: Reading = READ
) -> Outlook | None:
    """Return the outlook of a store from its levels; None where they do not rise, too few do, or the last is old."""
    levels.rescale(fill)
    shares = {number: levels.shares.get(str(resource), []) for number, resource in enumerate(fill.resources)}
    fits = {
        number: fit
        for number in shares
        if (fit := Extension.fit(levels.ticks[-len(shares[number]) :], shares[number])) is not None
    }
    if not fits or not levels.are_recent(tick):
        return None
    doubts = np.empty((PATHS, 3))
    futures.normal(np.uint64(seed_of(name, tick)), doubts[: PATHS // 2])
    doubts[PATHS // 2 :] = -doubts[: PATHS // 2]
    full_at, full_of = _first_full(fits, _limits(fill), doubts, tick - levels.ticks[-1], horizon)
    first = max(fits.values(), key=lambda fit: fit.slope)
    rise = Rise(float(max(1, first.age)), first.low, first.height, 1.0)
    filled = np.flatnonzero(full_of >= 0)
    chances = chance_to_last(rise, _NO_PAST, first.slope, first.age, full_at[filled])
    weights = np.zeros(PATHS)
    weights[filled] = reading.unread + (1.0 - reading.unread) * chances
    return Outlook(fill, None, horizon, 0.0, full_at * SECONDS, full_of, weights, rise, _NO_PAST, 0.0, first, reading)


def totals_of(fill: FillModel) -> dict[str, float]:
    """Return the total of each resource of a fill model, data sets with every expansion; that of SCM may be 0."""
    row, sets = fill.scalars[0], fill.sets[:, 1].tolist()
    totals = [float(row["ents_max"]), float(row["space_max"]), *sets, float(row["scm_max"])]
    return {str(name): max(1.0, total) for name, total in zip(fill.resources, totals, strict=False)}


def _limits(fill: FillModel) -> dict[int, float]:
    """Return the sizes to which automatic alter can raise pools, relative to the present ones, by number."""
    row = fill.scalars[0]
    grows = np.isfinite(row["alter_from"]) and 0 < row["size"] < row["size_max"]
    return dict.fromkeys((meter_rows.ENTRIES, meter_rows.SPACE), float(row["size_max"] / row["size"])) if grows else {}


def _first_full(
    fits: Mapping[int, Extension], limits: Mapping[int, float], doubts: Array, waited: int, horizon: int
) -> tuple[Array, Array]:
    """Return (ticks until full or inf, resource or -1) of every path; `limits` of `_limits`, `doubts` of `full_at`."""
    full_at, full_of = np.full(PATHS, np.inf), np.full(PATHS, meter_rows.NOTHING_FULL)
    for number, fit in fits.items():
        ticks = np.maximum(0.0, fit.full_at(doubts, limits.get(number, 1.0)) - waited)
        sooner = (ticks < full_at) & (ticks <= horizon)
        full_at, full_of = np.where(sooner, ticks, full_at), np.where(sooner, number, full_of)
    return full_at, full_of


# --- resources that empty ---------------------------------------------------------------------------------------------

# Since when gets have exceeded puts, by the last minutes and not by the regime. Refused puts count as puts: they come
# again. Of a store whose puts and gets nothing reports the measured levels say it.


_LOWER = 0.5  # of the fall so far, by which what came before its peak was lower [assumed]
_RECENT_TICKS = 5 * MINUTE_TICKS  # up to the last put or get, in which gets have to exceed puts [assumed]


def falling_since(
    view: ForecastView, levels: Levels, resource: Resource, tick: int, *, is_by_levels: bool
) -> int | None:
    """Return the tick since which a resource empties, or None. `is_by_levels`: they say how it fills, not its flows."""
    if is_by_levels:
        return fall_of(levels.ticks, levels.shares.get(str(resource), []))
    store = view.tables.store
    flows, totals = np.empty((BINS, 3 * CLASSES)), np.empty((BINS, regime.TOTALS))
    since = tick - BINS + 1
    ticks = np.sort(store.bins["tick"][(store.bins["tick"] >= since) & (store.bins["tick"] < tick)])
    n = regime.read_flows(store.bins, store.counts, since, tick, flows, totals)
    flows, totals, ticks = flows[:n], totals[:n], ticks[:n]
    busy = np.flatnonzero((totals[:, regime.PUT] + totals[:, regime.LEFT] + totals[:, regime.REFUSED_PUTS]) > 0)
    if not busy.size:
        return None
    last = int(ticks[busy[-1]])
    recent = ticks > last - _RECENT_TICKS
    added = totals[:, regime.STAYED] - totals[:, regime.LEFT]
    if added[recent].sum() >= 0:
        return None
    stayed, near, far = flows[:, :CLASSES], flows[:, CLASSES : 2 * CLASSES], flows[:, 2 * CLASSES :]
    if resource != ENTRIES and ((stayed - near - far)[recent] @ view.fill_model(tick).weights).sum() >= 0:
        return None  # many small messages go, a few large ones come
    held = np.concatenate(([0.0], np.cumsum(added - totals[:, regime.REFUSED_PUTS])))
    return int(np.append(ticks, last + 1)[last_peak(held.tolist())])


def last_peak(held: list[float]) -> int:
    """Return where the present fall began: at its highest place, before which it was lower by half of the fall."""
    now, peak, place = held[-1], held[-1], len(held) - 1
    for i in range(len(held) - 2, -1, -1):
        if held[i] > peak:
            peak, place = held[i], i
        elif peak - held[i] > _LOWER * (peak - now) > 0:
            break
    return place


def fall_of(ticks: list[int], shares: list[float]) -> int | None:
    """Return the tick of the level from which levels fall; None: the last one is not lower than the one before it.

    Behind a fall of a percent up to `_SAME` equal levels are one, as SIZEUSED is a whole percentage.
    """
    before = next((share for share in shares[-2 : -_SAME - 2 : -1] if share != shares[-1]), None)
    if before is None or shares[-1] > before or (shares[-2] == shares[-1] and before - shares[-1] < _STEP):
        return None
    return ticks[-len(shares) :][last_peak(shares)]
