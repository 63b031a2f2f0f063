"""What of a store the forecast rolls forward, by class of message length.

Here are stores of one resource: a page set has pages, a queue file blocks of its file; both are told with every
expansion that can still be made. A structure's rules are in `twin.forecast.structure_model`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kernels import forecast, layout, page_set, queue_file
from kernels.layout import RULES
from kernels.meter_rows import CLASSES
from twin.state.arrays import Array

MOST_DOUBT = 0.6  # of how much messages will take, as a share
_SERVED_FOR = 60  # ticks: a queue is served when a message left it in the last ten minutes


@dataclass(frozen=True, slots=True)
class Rules:
    """A store as `kernels.forecast.roll` takes it (see there), and what the numbers stand for.

    resources: names of what can be full, by the numbers of `full_of`; tides: rows of `store.tides` of each; weights:
    f8[CLASSES], what a message put takes of the store when not offloaded; doubts: f8[1 + data sets], what is not
    known of how much messages will take of the store itself and of each data set, as a share (standard deviation);
    size: of a structure, bytes now.
    """

    resources: tuple[str, ...]
    tides: tuple[int, ...]
    weights: Array
    model: Array
    classes: Array
    offload: Array
    doubts: Array
    sets: Array = field(default_factory=lambda: np.zeros((0, 2)))
    set_put: Array = field(default_factory=lambda: np.zeros((0, CLASSES)))
    set_held: Array = field(default_factory=lambda: np.zeros((0, CLASSES)))
    size: int = 0


def of_page_set(store: layout.Store, tick: int) -> Rules:
    """The rules of a page set and what it holds."""
    return _of_one("pages", store, tick, float(page_set.pages_in_use(store)), float(page_set.max_usable_pages(store)))


def of_queue_file(store: layout.Store, tick: int) -> Rules:
    """The rules of a queue file and what it holds beyond the buffers."""
    return _of_one("file", store, tick, float(queue_file.overflow(store)), float(store.params[0]["file_max"]))


def _of_one(resource: str, store: layout.Store, tick: int, used: float, most: float) -> Rules:
    stocks = stocks_of(store, 1)
    weights = put_space(stocks, np.ones(CLASSES))
    classes = np.zeros((CLASSES, forecast.COLUMNS))
    held = stocks["held"][0]
    classes[:, forecast.PUT_SPACE] = weights
    classes[:, forecast.HELD_SPACE] = np.where(held > 0, stocks["held_space"][0] / np.maximum(held, 1), weights)
    classes[:, forecast.IN_STORE] = held
    model = np.zeros(1, forecast.MODEL)
    model["ents_max"] = 1.0
    model["space"], model["space_max"] = used, max(1.0, most)
    model["served"], model["th"], model["alter_from"] = served(store, tick), np.inf, np.inf
    return Rules(
        resources=("entries", resource),
        tides=(0, 1),
        weights=weights,
        model=model,
        classes=classes,
        offload=np.zeros((1 << RULES, CLASSES)),
        doubts=np.array([doubt_of_mean(stocks["puts"][1:].sum(axis=0), weights, most - used)]),
    )


def stocks_of(store: layout.Store, sets: int) -> Array:
    """STOCK[1 + sets, CLASSES]: of the store itself, then of each data set, or queue manager that puts."""
    return store.stocks[: (sets + 1) * CLASSES].reshape(sets + 1, CLASSES)


def put_space(stocks: Array, alone: Array) -> Array:
    """f8[CLASSES]: what a message put takes of the store itself, on average. alone: the same where none were put."""
    puts, space = stocks["puts"][1:].sum(axis=0), stocks["puts_space"][1:].sum(axis=0)
    return np.where(puts > 0.5, space / np.maximum(puts, 1e-9), alone)


def doubt_of_mean(puts: Array, each: Array, room: float) -> float:
    """What is not known of the mean of what messages will take, as a share: few were put, or few still fit.

    puts, each: f8[CLASSES], how many were counted and what each takes; room: what is left.
    """
    count = float(puts.sum())
    if count < 1:
        return MOST_DOUBT
    mean = max(1e-9, float(puts @ each) / count)
    varies = float(puts @ (each - mean) ** 2) / count / mean**2
    return float(min(MOST_DOUBT, np.sqrt(varies * (1 / count + mean / max(room, mean)))))


def served(store: layout.Store, tick: int) -> float:
    """Messages of queues that somebody gets from."""
    queues = store.queues
    return float(queues["depth"][queues["got_at"] > tick - _SERVED_FOR].sum())
