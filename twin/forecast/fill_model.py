"""The fill model: a store as the forecast rolls it forward, by length class.

Here is the model of stores with one resource, such as the pages of a page set or the blocks of a queue file. A
structure's model is in `twin.forecast.structure_model`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kernels import fill, forecast, in_use, layout, resources
from kernels.layout import RULES
from kernels.meter_rows import CLASSES
from twin.conditions import ENTRIES, Resource
from twin.state.arrays import Array

_ONE_EACH, _NEVER_OFFLOADED = np.ones(CLASSES), np.zeros((1 << RULES, CLASSES))


@dataclass(frozen=True, slots=True)
class FillModel:
    """A store as `kernels.forecast.roll` takes it, and its resources.

    Attributes:
        resources: what can be full, by the numbers of `full_of`.
        tides: row of `store.tides` of each.
        weights: f8[CLASSES], elements, pages or blocks that a message put takes when not offloaded.
        scalars, classes, offload, sets, set_put, set_held: as `kernels.forecast.roll` takes them.
        doubts: f8[1 + data sets], standard deviation of what messages will take of the store and of each data set, as a
            share of it.
        size: size of a structure, bytes allocated.
    """

    resources: tuple[Resource, ...]
    tides: tuple[int, ...]
    weights: Array
    scalars: Array
    classes: Array
    offload: Array
    doubts: Array
    sets: Array = field(default_factory=lambda: np.zeros((0, 2)))
    set_put: Array = field(default_factory=lambda: np.zeros((0, CLASSES)))
    set_held: Array = field(default_factory=lambda: np.zeros((0, CLASSES)))
    size: int = 0


def single_resource_model(resource: Resource, store: layout.Store, tick: int) -> FillModel:
    """Return the fill model of a store with one resource, with every expansion that can still be made.

    Args:
        resource: the resource.
        store: the arrays.
        tick: the tick of the forecast.
    """
    read, _ = read_fill(store, tick, 1, _ONE_EACH, np.zeros(1, forecast.MODEL), _NEVER_OFFLOADED)
    return FillModel(
        resources=(ENTRIES, resource),
        tides=(resources.ENTRIES, resources.SPACE),
        weights=read.weights,
        scalars=read.scalars,
        classes=read.classes,
        offload=read.offload,
        doubts=read.doubts[:1],
    )


def read_fill(
    store: layout.Store, tick: int, owners: int, alone: Array, scalars: Array, offload: Array
) -> tuple[fill.Fill, int]:
    """Return what `kernels.fill.read` read, and the number of data sets used. Arguments as there, and of its `Fill`."""
    sets = store.datasets.size
    read = fill.Fill(
        np.empty(CLASSES),
        scalars,
        np.empty((CLASSES, forecast.COLUMNS)),
        offload,
        np.empty(1 + sets),
        np.empty((sets, 2)),
        np.empty((sets, CLASSES)),
        np.empty((sets, CLASSES)),
        np.empty(sets, np.int64),
        np.empty(1, in_use.USAGE),
        np.empty(sets, in_use.DATASET_USAGE),
    )
    return read, fill.read(store, tick, owners, alone, read)


def put_space(store: layout.Store, owners: int, alone: Array) -> Array:
    """Return f8[CLASSES], what a message put takes of the store on average, not offloaded.

    Args:
        store: the arrays.
        owners: data sets, or queue managers that put.
        alone: f8[CLASSES], the same where none were put.
    """
    weights = np.empty(CLASSES)
    fill.weigh(store.stocks, owners, alone, weights)
    return weights


def put_units(store: layout.Store) -> Array:
    """Return f8[CLASSES], the pages or blocks that a message put takes of a store with one resource."""
    return put_space(store, 1, _ONE_EACH)
