"""Which rows of a store's tables are whose: queue managers, queues, numberings.

A row that was given once stays its owner's, also when the estate no longer has that one: messages point to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from kernels import layout
from twin.estate import Route
from twin.state.arrays import Array
from twin.state.tables import Tables


class Names(msgspec.Struct):
    """What the numbers of a store's rows stand for; rows are only ever added."""

    qmgrs: list[str] = []
    queues: list[str] = []
    flows: list[tuple[str, str]] = []  # queue manager, queue as events name it


def give_rows(tables: Tables, names: Names, routes: Sequence[Route]) -> tuple[Names, Array]:
    """Give every route of a store its rows: queue manager, queue, numbering.

    The names with those that are new, kept in `tables` too; ROUTE[len(routes)] for the kernels.
    """
    numbers = np.full(len(routes), layout.NONE, layout.ROUTE)
    qmgrs = {name: row for row, name in enumerate(names.qmgrs)}
    queues = {name: row for row, name in enumerate(names.queues)}
    flows = {name: row for row, name in enumerate(names.flows)}
    for place, route in zip(numbers, routes, strict=True):
        place["qmgr"] = qmgrs.setdefault(route.qmgr, len(qmgrs))
        if route.queue is not None and route.reported is not None:
            place["queue"] = queues.setdefault(route.queue, len(queues))
            place["flow"] = flows.setdefault((route.qmgr, route.reported), len(flows))
    given = Names(list(qmgrs), list(queues), list(flows))
    if given != names:
        tables.set_names(msgspec.msgpack.encode(given))
        _fill_new(tables, names, given)
    return given, numbers


def _fill_new(tables: Tables, before: Names, names: Names) -> None:
    """Fill the rows of queues and numberings beyond those there were."""
    tables.reserve("queues", len(names.queues))
    tables.reserve("chains", len(names.queues) * layout.PRIORITIES)
    tables.reserve("flows", len(names.flows))
    tables.reserve("seen", len(names.flows) * layout.SEEN_WORDS)
    queues, flows = slice(len(before.queues), len(names.queues)), slice(len(before.flows), len(names.flows))
    for field in ("keyed_head", "keyed_tail", "any_head", "any_tail"):
        tables.store.queues[field][queues] = layout.NONE
    tables.store.chains[queues.start * layout.PRIORITIES : queues.stop * layout.PRIORITIES] = layout.NONE
    qmgrs = {name: row for row, name in enumerate(names.qmgrs)}
    tables.store.flows["qmgr"][flows] = [qmgrs[qmgr] for qmgr, _ in names.flows[flows]]
    for dirty in ("queues_dirty", "chains_dirty", "flows_dirty"):
        getattr(tables.store, dirty)[:] = 1
