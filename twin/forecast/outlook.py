"""The outlook of a store: when it will be full, and how probable that is.

The store's own rules are rolled forward over futures drawn from the present regime (`kernels.forecast`). How long a
rise goes on is estimated from past rises of the same resource; where none is like it, a rise is expected to go on for
as long as it has lasted.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from kernels import forecast, resources
from kernels.clock import TICK
from kernels.layout import Store
from kernels.meter_rows import CLASSES, RISES
from twin.forecast.fill_model import FillModel
from twin.forecast.flows import PATHS, Futures, Regime, futures
from twin.state.arrays import Array

SECONDS = TICK // 1_000_000  # of a bin
_MAX_PACE_RATIO = 2.5  # rises are alike while their paces stay within this factor
_UNSEEN_RISES = 0.5  # prior count of rises of a kind not seen yet, beside those seen
_MAX_SLOPE_RATIO = 4.0  # a rise is the same rise while its slope stays within this factor
_MIN_SPREAD = 0.04  # standard deviation of how long like rises last, as a share of it
_SPREAD_OF_ONE = 0.12  # the same where only one rise is known


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """The prediction for one resource.

    Attributes:
        time: event time, microseconds.
        p10, p50, p90: seconds until it is full, if it fills; None: not within the horizon.
        probability: that it is full within the horizon.
        first: True if no other resource of the store is likely to be full before.
    """

    store: str
    time: int
    resource: str
    usage_pct: float
    p10: float | None
    p50: float | None
    p90: float | None
    probability: float
    first: bool


@dataclass(frozen=True, slots=True)
class Outlook:
    """Paths of a store from one moment on.

    Attributes:
        fill: the fill model that was rolled forward.
        drawn: the futures it was rolled over.
        horizon: ticks.
        net: elements, pages or blocks that a tick adds to the store, unoffloaded.
        full_at: f8[PATHS], seconds until full, inf.
        full_of: i8[PATHS], the resource that is full first, -1: none.
        weights: f8[PATHS], probability that the rise goes on until then.
    """

    fill: FillModel
    drawn: Futures
    horizon: int
    net: float
    full_at: Array
    full_of: Array
    weights: Array

    @property
    def probability(self) -> float:
        """Probability that any resource is full within the horizon."""
        return float(self.weights[self.full_of >= 0].sum()) / self.full_at.size

    def probability_of(self, resource: int) -> float:
        """Return the probability that this resource is the first to be full."""
        return float(self.weights[self.full_of == resource].sum()) / self.full_at.size

    @property
    def first(self) -> int:
        """Resource most likely to be full first; -1: none on any path."""
        if not (self.full_of >= 0).any():
            return -1
        return int(np.argmax([self.probability_of(number) for number in range(len(self.fill.resources))]))

    def quantiles(self, resource: int | None = None) -> tuple[float, float, float] | None:
        """Return the seconds until full (p10, p50, p90) on the paths that fill one resource, or any; None: no path."""
        chosen = self.full_of >= 0 if resource is None else self.full_of == resource
        if not chosen.any():
            return None
        full_at, weights = self.full_at[chosen], self.weights[chosen]
        order = np.argsort(full_at, kind="stable")
        passed = np.cumsum(weights[order])
        places = (np.searchsorted(passed, passed[-1] * share) for share in (0.1, 0.5, 0.9))
        p10, p50, p90 = (float(full_at[order[min(int(place), full_at.size - 1)]]) for place in places)
        return p10, p50, p90


def look_ahead(store: Store, name: str, fill: FillModel, now: Regime, tick: int, horizon: int) -> Outlook:
    """Return the outlook of a store from a tick on; the same arguments give the same outlook.

    Args:
        store: the arrays.
        name: the store's name, from which the random numbers come.
        fill: its fill model.
        now: its present regime.
        tick: the present.
        horizon: ticks.
    """
    scalars = fill.scalars.copy()
    scalars["wait"], scalars["served_share"] = now.wait, now.got
    fill = replace(fill, scalars=scalars)
    drawn = futures(now, fill.weights, horizon, seed_of(name, tick), fill.doubts)
    full_at, full_of = roll(fill, drawn)
    full_at = full_at * drawn.pace
    full_at = np.where(full_at <= horizon, full_at, np.inf)
    full_of = np.where(np.isfinite(full_at), full_of, resources.NOTHING_FULL)
    weights = np.zeros(PATHS)
    for resource in np.unique(full_of[full_of >= 0]).tolist():
        chosen = full_of == resource
        weights[chosen] = goes_on(store, fill, now, resource, tick, full_at[chosen])
    return Outlook(fill, drawn, horizon, now.net, full_at * SECONDS, full_of, weights)


def seed_of(store: str, tick: int) -> int:
    """Return 64 bits made of a store and a tick."""
    return int.from_bytes(hashlib.blake2b(f"{store}\0{tick}".encode(), digest_size=8).digest(), "big")


def roll(fill: FillModel, drawn: Futures) -> tuple[Array, Array]:
    """(ticks until full or inf, resource or -1) of every path. Classes that neither come nor are held are left out."""
    flowing = np.abs(drawn.cumulated).sum(axis=0).reshape(3, CLASSES).sum(axis=0)
    held = fill.classes[:, forecast.IN_STORE] + fill.classes[:, forecast.IN_DATA_SETS]
    some = np.flatnonzero(flowing + held + drawn.mix)
    lanes = np.concatenate([some, CLASSES + some, 2 * CLASSES + some])
    classes = fill.classes[some]
    classes[:, forecast.MIX] = drawn.mix[some]
    model = forecast.Model(
        scalars=fill.scalars,
        classes=classes,
        offload=np.ascontiguousarray(fill.offload[:, some]),
        sets=fill.sets,
        set_put=np.ascontiguousarray(fill.set_put[:, some]),
        set_held=np.ascontiguousarray(fill.set_held[:, some]),
    )
    flows = forecast.Flows(
        cumulated=np.ascontiguousarray(drawn.cumulated[:, lanes]),
        bins=drawn.bins,
        trend=np.ascontiguousarray(drawn.trend[:, lanes]),
        lengths=drawn.lengths,
        starts=drawn.starts,
        extra=drawn.extra,
        larger=drawn.larger,
        block=drawn.block,
    )
    scratch = forecast.new_scratch(model, flows)
    forecast.roll(model, flows, scratch)
    return scratch.full_at, scratch.full_of


def goes_on(store: Store, fill: FillModel, now: Regime, resource: int, tick: int, ahead: Array) -> Array:
    """Return f8[n], the probability that the rise of a resource goes on for `ahead` more ticks, f8[n].

    Past rises of what the store holds, about as fast as the present one, give how long such a rise lasts; one that
    ended in 2192 counts as one that goes on. Beside them stands a prior: a rise goes on for as long as it has lasted.
    """
    pace = _pace(fill, now)
    tide = store.tides[resources.TOTAL_TIDE]
    own = store.tides[fill.tides[resource]]
    own_pace = _room(fill, resource) / max(1.0, float(np.median(ahead)))
    lasted_so_far = max(_ticks_risen(tide, pace, now, tick), _ticks_risen(own, own_pace, now, tick))
    prior = lasted_so_far / (lasted_so_far + ahead)
    rises = store.rises[resources.TOTAL_TIDE * RISES : (resources.TOTAL_TIDE + 1) * RISES][: int(tide["rises"])]
    lasted = np.maximum(1, rises["ended"] - rises["began"]).astype(float)
    paces = (rises["top"] - rises["low"]) / lasted
    alike = (paces < _MAX_PACE_RATIO * pace) & (paces * _MAX_PACE_RATIO > pace)
    if not alike.any():
        return np.asarray(prior)
    went_on, lasted = int((rises["refused"][alike] > 0).sum()), lasted[alike & (rises["refused"] == 0)]
    spread = max(_MIN_SPREAD, float(lasted.std() / lasted.mean())) if lasted.size > 1 else _SPREAD_OF_ONE
    since = max(1, tick - int(tide["began"]))
    until_now = _outlasts(lasted, spread, np.array([float(since)])).sum() + went_on
    until_full = _outlasts(lasted, spread, since + ahead).sum(axis=0) + went_on
    return np.asarray(np.minimum(1.0, (until_full + _UNSEEN_RISES * prior) / (until_now + _UNSEEN_RISES)))


def _pace(fill: FillModel, now: Regime) -> float:
    """Return what a tick adds to what the store holds, as `kernels.shares` measures it."""
    scalars = fill.scalars[0]
    space = now.net / float(scalars["space_max"])
    return space + now.net_messages / float(scalars["ents_max"]) if scalars["counts_ents"] else space


def _room(fill: FillModel, resource: int) -> float:
    return max(1e-6, 1.0 - usage(fill, resource))


def _ticks_risen(tide: Array, pace: float, now: Regime, tick: int) -> float:
    """Return the ticks for which a resource has risen at its present pace."""
    since = max(1, tick - int(tide["began"]))
    before = (float(tide["top"]) - float(tide["low"])) / since if tide["rising"] else 0.0
    return float(since if _MAX_SLOPE_RATIO * pace > before > pace / _MAX_SLOPE_RATIO else min(since, now.bins.shape[0]))


def _outlasts(lasted: Array, spread: float, ticks: Array) -> Array:
    """Return f8[rises, n], the probability that a rise like each lasts for longer than each number of ticks."""
    apart = (lasted[:, None] + 1.5 - ticks) / (spread * lasted[:, None] + 1.0)
    return np.asarray(1.0 / (1.0 + np.exp(np.clip(-1.7 * apart, -50.0, 50.0))))


def usage(fill: FillModel, resource: int) -> float:
    """Return the share of a resource in use."""
    scalars = fill.scalars[0]
    if resource == resources.ENTRIES:
        return float(scalars["ents"] / scalars["ents_max"])
    if resource == resources.SPACE:
        return float(scalars["space"] / scalars["space_max"])
    if resource == resources.FIRST_DATA_SET + fill.sets.shape[0]:
        return float((scalars["scm_ents"] + scalars["scm_space"]) / max(1.0, float(scalars["scm_max"])))
    used, total = fill.sets[resource - resources.FIRST_DATA_SET]
    return float(used / max(1.0, total))
