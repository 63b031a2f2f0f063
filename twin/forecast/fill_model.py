"""The fill model: a store as the forecast rolls it forward, by length class; and what the forecast reads of a twin.

`kernels.futures` reads the model from the arrays; here is what attributes of a structure say. A rule size within a
class offloads the share of the class above it; lengths are taken as even in their logarithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from kernels import forecast, futures, layout, meter_rows, meters, pools
from kernels.layout import RULES
from kernels.meter_rows import CLASSES
from kernels.pools import ELEMENT_BYTES, MESSAGE_OVERHEAD
from twin.base.conditions import AUGMENTED, ELEMENTS, ENTRIES, SCM, Pool, Resource
from twin.capacity import SCM_POOLS_PCT, SOONER_TH, has_rules, with_all_offloaded_above
from twin.estate import Structure
from twin.state.arrays import Array

if TYPE_CHECKING:
    from twin.alerts.episodes import Episodes
    from twin.alerts.findings import Viewer
    from twin.alerts.readers import Readers
    from twin.base.conditions import Resource
    from twin.estate import MessageStoreConfig
    from twin.state.tables import Tables


_ONE_EACH, _NEVER_OFFLOADED = np.ones(CLASSES), np.zeros((1 << RULES, CLASSES))


@dataclass(frozen=True, slots=True)
class FillModel:
    """A store as `kernels.forecast.roll` takes it, and its resources."""

    resources: tuple[Resource, ...]  # what can be full, by the numbers of `full_of`
    tides: tuple[int, ...]  # row of `store.tides` of each
    weights: Array  # f8[CLASSES], elements, pages or blocks that a message put takes when not offloaded
    scalars: Array  # scalars, classes, offload, sets, set_put, set_held: as `kernels.forecast.roll` takes them
    classes: Array
    offload: Array
    doubts: Array  # f8[1 + data sets], standard deviation of what messages will take of each, as a share
    sets: Array = field(default_factory=lambda: np.zeros((0, 2)))
    set_put: Array = field(default_factory=lambda: np.zeros((0, CLASSES)))
    set_held: Array = field(default_factory=lambda: np.zeros((0, CLASSES)))
    size: int = 0  # size of a structure, bytes allocated


def single_resource_model(resource: Resource, store: layout.Store, tick: int) -> FillModel:
    """Return the fill model of a store with one resource, with every expansion that can still be made."""
    read, _ = read_fill(store, tick, 1, _ONE_EACH, np.zeros(1, forecast.MODEL), _NEVER_OFFLOADED)
    return FillModel(
        resources=(ENTRIES, resource),
        tides=(meter_rows.ENTRIES, meter_rows.SPACE),
        weights=read.weights,
        scalars=read.scalars,
        classes=read.classes,
        offload=read.offload,
        doubts=read.doubts[:1],
    )


def read_fill(
    store: layout.Store, tick: int, owners: int, alone: Array, scalars: Array, offload: Array
) -> tuple[futures.Fill, int]:
    """Return what `kernels.futures.read_fill` read, and the number of data sets used. Arguments as of it and `Fill`."""
    sets = store.datasets.size
    read = futures.Fill(
        np.empty(CLASSES),
        scalars,
        np.empty((CLASSES, forecast.COLUMNS)),
        offload,
        np.empty(1 + sets),
        np.empty((sets, 2)),
        np.empty((sets, CLASSES)),
        np.empty((sets, CLASSES)),
        np.empty(sets, np.int64),
    )
    return read, futures.read_fill(store, tick, owners, alone, read)


def put_space(store: layout.Store, owners: int, alone: Array) -> Array:
    """Return f8[CLASSES], the average storage of a message put and not offloaded; `alone`: where none were put."""
    weights = np.empty(CLASSES)
    futures.weigh_stocks(store.stocks, owners, alone, weights)
    return weights


def put_units(store: layout.Store) -> Array:
    """Return f8[CLASSES], the pages or blocks that a message put takes of a store with one resource."""
    return put_space(store, 1, _ONE_EACH)


# --- structures -------------------------------------------------------------------------------------------------------


def structure_model(
    store: layout.Store, config: Structure, qmgrs: Sequence[str], tick: int, *, alters: bool
) -> FillModel:
    """Return the fill model of a structure at a tick; `alters`: z/OS is expected to alter it at FULLTHRESHOLD."""
    params, scalars = store.params[0], np.zeros(1, forecast.MODEL)
    alter_from = config.full_threshold / 100 if alters else 0
    row = scalars[0]
    row["alter_from"], row["size_max"] = alter_from if alter_from > 0 else np.inf, config.size
    row["per_byte"] = SCM_POOLS_PCT / 100 if config.scm_max_size else 1.0
    read, count = read_fill(store, tick, len(qmgrs), _alone, scalars, _offloaded(params))
    used = read.rows[:count].tolist()
    return FillModel(
        resources=(
            ENTRIES,
            ELEMENTS,
            *(Resource(Pool.SMDS, qmgrs[row]) for row in used),
            _scarce(store.usage[meter_rows.SCM]),
        ),
        tides=(meter_rows.ENTRIES, meter_rows.SPACE, *(meter_rows.DATA_SETS + row for row in used), meter_rows.SCM),
        weights=read.weights,
        scalars=scalars,
        classes=read.classes,
        offload=read.offload,
        doubts=read.doubts[: 1 + count],
        sets=read.sets[:count],
        set_put=read.set_put[:count],
        set_held=read.set_held[:count],
        size=int(params["size_now"]),
    )


def put_elements(store: layout.Store, qmgrs: int, used: float) -> Array:
    """Return f8[CLASSES], the elements that a message put takes as the offload rules in force place it."""
    away = _offloaded(store.params[0])[futures.rules_in_force(store.params, used)]
    near = put_space(store, qmgrs, _alone)
    return np.asarray((1 - away) * near + away * pools.OFFLOADED_ELEMENTS)


def _scarce(of_scm: Array) -> Resource:
    """Return the resource that bounds SCM: its own bound, or storage for dynamic augmented space."""
    return SCM if of_scm["maximum"] >= of_scm["total"] else AUGMENTED


def offloading_sooner(model: FillModel, config: Structure) -> FillModel | None:
    """Return the model under the offload rules that `twin.alerts.texts.pool_facts` proposes; None: no offloading."""
    if not has_rules(config):
        return None
    scalars = model.scalars.copy()
    rules = with_all_offloaded_above(config, SOONER_TH)
    scalars["th"] = [np.inf if rule.off else -1.0 if rule.th == 0 else rule.th / 100 for rule in rules]
    table = _offloaded_by(tuple(rule.sz for rule in rules), config.offload_min_length)
    return replace(model, scalars=scalars, offload=table)


def _middle(size: int) -> int:
    """Return the middle length of a class, bytes."""
    return int(np.sqrt(max(1, meters.EDGES[size]) * meters.EDGES[size + 1]))


_alone = np.array([float(-(-(_middle(size) + MESSAGE_OVERHEAD) // ELEMENT_BYTES)) for size in range(CLASSES)])


def _offloaded(params: Array) -> Array:
    """Return f8[2**RULES, CLASSES], the share of the puts of a class that is offloaded, by the rules in force."""
    if params["offload"] == layout.OFFLOAD_NONE or params["cf_level"] < 4:
        return np.zeros((1 << RULES, CLASSES))
    return _offloaded_by(tuple(params["offld_sz"].tolist()), int(params["offload_min_length"]))


@lru_cache(maxsize=1024)
def _offloaded_by(rule_sizes: tuple[int, ...], min_length: int) -> Array:
    table = np.zeros((1 << RULES, CLASSES))
    for mask in range(1 << RULES):
        sizes = [rule_sizes[rule] for rule in range(RULES) if mask >> rule & 1]
        least = max(min(sizes), min_length) if sizes else pools.ALWAYS_OFFLOADED
        table[mask] = [_above(size, min(least, pools.ALWAYS_OFFLOADED)) for size in range(CLASSES)]
    return table


def _above(size: int, least: int) -> float:
    """Return the share of a class that is longer than `least` bytes."""
    low, high = meters.EDGES[size], meters.EDGES[size + 1]
    if least <= low:
        return 1.0
    if least >= high:
        return 0.0
    return float((np.log(high) - np.log(least)) / (np.log(high) - np.log(max(1, low))))


# --- the part of a store twin that its forecast reads -----------------------------------------------------------------


class LastDrift(Protocol):
    """How far a store's model was from its last measurement."""

    @property
    def pct(self) -> float | None:
        """Model minus measurement, in percent of the resource; None: nothing was measured."""

    @property
    def resource(self) -> str | None:
        """The resource that differed most; None: nothing was measured."""


class ForecastView(Protocol):
    """A store as its forecast sees it."""

    @property
    def name(self) -> str:
        """The store's name."""

    @property
    def config(self) -> MessageStoreConfig:
        """The estate entry, with the attributes that ALTER left."""

    @property
    def tables(self) -> Tables:
        """The arrays."""

    @property
    def queues(self) -> list[str]:
        """Names of the queues by row."""

    @property
    def readers(self) -> Readers:
        """Facts about who reads the queues."""

    @property
    def episodes(self) -> Episodes:
        """The open alerts."""

    @property
    def drift(self) -> LastDrift:
        """The drift of the last measurement."""

    def beyond_pct(self, resource: Resource) -> float:
        """Return the points by which a resource was measured to be fuller than in the twin; 0: it was not."""

    def nearly_full(self) -> Resource | None:
        """Return a resource that was measured to be nearly full and rising, and still is; None: there is none."""

    def fill_model(self, tick: int) -> FillModel:
        """Return the fill model as of a tick."""

    def viewer(self) -> Viewer:
        """Return findings about the store as it is."""
