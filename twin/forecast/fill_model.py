"""The fill model: a store as the forecast rolls it forward, by length class.

Here is the model of stores with one resource, such as the pages of a page set or the blocks of a queue file. A
structure's model is in `twin.forecast.structure_model`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kernels import forecast, layout
from kernels.layout import RULES
from kernels.meter_rows import CLASSES
from twin.conditions import ENTRIES, Resource
from twin.state.arrays import Array

MAX_ERROR = 0.6  # of what messages will take, as a share
_SERVED_TICKS = 60  # ten minutes: a queue is served while a message left it in this time


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


def single_resource_model(resource: Resource, store: layout.Store, tick: int, used: float, total: float) -> FillModel:
    """Return the fill model of a store with one resource.

    Args:
        resource: the resource.
        store: the arrays.
        tick: the tick of the forecast.
        used: in use, in the unit of the store's meters.
        total: in total, with every expansion that can still be made.
    """
    stocks, weights = stocks_of(store, 1), put_units(store)
    classes = np.zeros((CLASSES, forecast.COLUMNS))
    held = stocks["held"][0]
    classes[:, forecast.PUT_SPACE] = weights
    classes[:, forecast.HELD_SPACE] = np.where(held > 0, stocks["held_space"][0] / np.maximum(held, 1), weights)
    classes[:, forecast.IN_STORE] = held
    scalars = np.zeros(1, forecast.MODEL)
    scalars["ents_max"] = 1.0
    scalars["space"], scalars["space_max"] = used, max(1.0, total)
    scalars["served"], scalars["th"], scalars["alter_from"] = served(store, tick), np.inf, np.inf
    return FillModel(
        resources=(ENTRIES, resource),
        tides=(0, 1),
        weights=weights,
        scalars=scalars,
        classes=classes,
        offload=np.zeros((1 << RULES, CLASSES)),
        doubts=np.array([doubt_of_mean(stocks["puts"][1:].sum(axis=0), weights, total - used)]),
    )


def stocks_of(store: layout.Store, sets: int) -> Array:
    """Return STOCK[1 + sets, CLASSES]: of the store, then of each data set or queue manager that puts."""
    return store.stocks[: (sets + 1) * CLASSES].reshape(sets + 1, CLASSES)


def put_space(stocks: Array, alone: Array) -> Array:
    """Return f8[CLASSES], what a message put takes of the store on average. alone: the same where none were put."""
    puts, space = stocks["puts"][1:].sum(axis=0), stocks["puts_space"][1:].sum(axis=0)
    return np.where(puts > 0.5, space / np.maximum(puts, 1e-9), alone)


def put_units(store: layout.Store) -> Array:
    """Return f8[CLASSES], the pages or blocks that a message put takes of a store with one resource."""
    return put_space(stocks_of(store, 1), np.ones(CLASSES))


def doubt_of_mean(puts: Array, each: Array, room: float) -> float:
    """Return the error of the mean of what messages will take, as a share: few were put, or few still fit.

    Args:
        puts: f8[CLASSES], messages counted.
        each: f8[CLASSES], what each takes.
        room: what is left, in the same unit.
    """
    count = float(puts.sum())
    if count < 1:
        return MAX_ERROR
    mean = max(1e-9, float(puts @ each) / count)
    variance = float(puts @ (each - mean) ** 2) / count / mean**2
    return float(min(MAX_ERROR, np.sqrt(variance * (1 / count + mean / max(room, mean)))))


def served(store: layout.Store, tick: int) -> float:
    """Return the messages on queues that somebody gets from."""
    queues = store.queues
    return float(queues["depth"][queues["got_at"] > tick - _SERVED_TICKS].sum())
