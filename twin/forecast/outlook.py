"""The forecast: when will a store be full, and how sure is that?

The store's own rules are rolled forward over futures drawn from the present regime (kernels/forecast.py). How long a
rise goes on is asked of past rises of the same resource; where none is like it, of the rule that what has risen for
long goes on for long.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import msgspec
import numpy as np

from kernels import forecast, resources
from kernels.clock import TICK
from kernels.layout import Store
from kernels.meter_rows import CLASSES, RISES
from twin.forecast.fill_model import Rules
from twin.forecast.flows import PATHS, Futures, Regime, futures
from twin.state.arrays import Array

SECONDS = TICK // 1_000_000  # of a bin
_ALIKE = 2.5  # rises are alike when one is at most so many times as fast as the other
_OTHER = 0.5  # rises of a kind not seen yet, as prior count beside those seen
_SAME = 4.0  # a climb is of one piece with the present pace when that is at most so many times as fast, or as slow
_SPREAD = (
    0.04  # standard deviation of how long like rises last, as a share of it, at least; and where only one is known
)
_SPREAD_OF_ONE = 0.12


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What was foreseen of one resource. time: microseconds of event time.

    p10, p50, p90: seconds until it is full, should it become so; None: not within the horizon. probability: that it is
    full within the horizon; first: no other resource of the store is likely to be full before.
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
    """Paths of a store from one moment. full_at: f8[PATHS], seconds, inf; full_of: i8[PATHS], resource or -1.

    weights: f8[PATHS], the chance that the rise goes on until then. drawn: the futures it was rolled over; horizon:
    ticks; net: what a tick adds to the store, unoffloaded.
    """

    rules: Rules
    drawn: Futures
    horizon: int
    net: float
    full_at: Array
    full_of: Array
    weights: Array

    @property
    def probability(self) -> float:
        """That any resource is full within the horizon."""
        return float(self.weights[self.full_of >= 0].sum()) / self.full_at.size

    def of(self, resource: int) -> float:
        """The probability that this resource is the first to be full."""
        return float(self.weights[self.full_of == resource].sum()) / self.full_at.size

    @property
    def first(self) -> int:
        """The resource most likely to be full first; -1: none on any path."""
        if not (self.full_of >= 0).any():
            return -1
        return int(np.argmax([self.of(at) for at in range(len(self.rules.resources))]))

    def quantiles(self, resource: int | None = None) -> tuple[float, float, float] | None:
        """Seconds until full (p10, p50, p90) on the paths that become full, of one resource or of any."""
        chosen = self.full_of >= 0 if resource is None else self.full_of == resource
        if not chosen.any():
            return None
        at, weights = self.full_at[chosen], self.weights[chosen]
        order = np.argsort(at, kind="stable")
        passed = np.cumsum(weights[order])
        places = (np.searchsorted(passed, passed[-1] * share) for share in (0.1, 0.5, 0.9))
        p10, p50, p90 = (float(at[order[min(int(place), at.size - 1)]]) for place in places)
        return p10, p50, p90


def look_ahead(store: Store, name: str, rules: Rules, now: Regime, tick: int, horizon: int) -> Outlook:
    """Roll a store forward from a tick. horizon: ticks. The same arguments give the same outlook."""
    rules.model["wait"], rules.model["served_share"] = now.wait, now.got
    drawn = futures(now, rules.weights, horizon, seed_of(name, tick), rules.doubts)
    full_at, full_of = roll(rules, drawn)
    full_at = full_at * drawn.pace
    full_at = np.where(full_at <= horizon, full_at, np.inf)
    full_of = np.where(np.isfinite(full_at), full_of, resources.NOTHING_FULL)
    weights = np.zeros(PATHS)
    for resource in np.unique(full_of[full_of >= 0]).tolist():
        chosen = full_of == resource
        weights[chosen] = goes_on(store, rules, now, resource, tick, full_at[chosen])
    return Outlook(rules, drawn, horizon, now.net, full_at * SECONDS, full_of, weights)


def seed_of(store: str, tick: int) -> int:
    """64 bits that stand for a store at a tick."""
    return int.from_bytes(hashlib.blake2b(f"{store}\0{tick}".encode(), digest_size=8).digest(), "big")


def roll(rules: Rules, drawn: Futures) -> tuple[Array, Array]:
    """(ticks until full or inf, resource or -1) of every path. Classes that neither come nor are held are left out."""
    flowing = np.abs(drawn.cumulated).sum(axis=0).reshape(3, CLASSES).sum(axis=0)
    held = rules.classes[:, forecast.IN_STORE] + rules.classes[:, forecast.IN_DATA_SETS]
    some = np.flatnonzero(flowing + held + drawn.mix)
    lanes = np.concatenate([some, CLASSES + some, 2 * CLASSES + some])
    classes = rules.classes[some]
    classes[:, forecast.MIX] = drawn.mix[some]
    model = forecast.Model(
        scalars=rules.model,
        classes=classes,
        offload=np.ascontiguousarray(rules.offload[:, some]),
        sets=rules.sets,
        set_put=np.ascontiguousarray(rules.set_put[:, some]),
        set_held=np.ascontiguousarray(rules.set_held[:, some]),
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


def goes_on(store: Store, rules: Rules, now: Regime, resource: int, tick: int, ahead: Array) -> Array:
    """f8[n]: the chance that the rise of a resource goes on for `ahead` more ticks, f8[n].

    Past rises of what the store holds that were about as fast as it is now say how long such a rise lasts; one that
    ended in 2192 says that it goes on. Beside them stands a rise as none of them: what has risen for long goes on for
    long.
    """
    pace = _pace(rules, now)
    tide = store.tides[resources.TOTAL_TIDE]
    own = store.tides[rules.tides[resource]]
    own_pace = _room(rules, resource) / max(1.0, float(np.median(ahead)))
    come = max(_since(tide, pace, now, tick), _since(own, own_pace, now, tick))
    unknown = come / (come + ahead)
    rises = store.rises[resources.TOTAL_TIDE * RISES : (resources.TOTAL_TIDE + 1) * RISES][: int(tide["rises"])]
    lasted = np.maximum(1, rises["ended"] - rises["began"]).astype(float)
    paces = (rises["top"] - rises["low"]) / lasted
    alike = (paces < _ALIKE * pace) & (paces * _ALIKE > pace)
    if not alike.any():
        return np.asarray(unknown)
    went_on, lasted = int((rises["refused"][alike] > 0).sum()), lasted[alike & (rises["refused"] == 0)]
    spread = max(_SPREAD, float(lasted.std() / lasted.mean())) if lasted.size > 1 else _SPREAD_OF_ONE
    since = max(1, tick - int(tide["began"]))
    until_now = _last(lasted, spread, np.array([float(since)])).sum() + went_on
    until_full = _last(lasted, spread, since + ahead).sum(axis=0) + went_on
    return np.asarray(np.minimum(1.0, (until_full + _OTHER * unknown) / (until_now + _OTHER)))


def _pace(rules: Rules, now: Regime) -> float:
    """What a tick adds to what the store holds, as `kernels.shares` measures it."""
    model = rules.model[0]
    space = now.net / float(model["space_max"])
    return space + now.net_messages / float(model["ents_max"]) if model["counts_ents"] else space


def _room(rules: Rules, resource: int) -> float:
    return max(1e-6, 1.0 - usage(rules, resource))


def _since(tide: Array, pace: float, now: Regime, tick: int) -> float:
    """Ticks for which something has risen at its present pace."""
    since = max(1, tick - int(tide["began"]))
    before = (float(tide["top"]) - float(tide["low"])) / since if tide["rising"] else 0.0
    return float(since if _SAME * pace > before > pace / _SAME else min(since, now.bins.shape[0]))


def _last(lasted: Array, spread: float, ticks: Array) -> Array:
    """f8[rises, n]: the chance that a rise like each of those lasts for longer than each number of ticks."""
    apart = (lasted[:, None] + 1.5 - ticks) / (spread * lasted[:, None] + 1.0)
    return np.asarray(1.0 / (1.0 + np.exp(np.clip(-1.7 * apart, -50.0, 50.0))))


def usage(rules: Rules, resource: int) -> float:
    """The share of a resource in use."""
    model = rules.model[0]
    if resource == resources.ENTRIES:
        return float(model["ents"] / model["ents_max"])
    if resource == resources.SPACE:
        return float(model["space"] / model["space_max"])
    if resource == resources.FIRST_DATA_SET + rules.sets.shape[0]:
        return float((model["scm_ents"] + model["scm_space"]) / max(1.0, float(model["scm_max"])))
    used, most = rules.sets[resource - resources.FIRST_DATA_SET]
    return float(used / max(1.0, most))
