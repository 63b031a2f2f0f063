"""Assignment of the rows of a store's tables to queue managers, queues and flows (sequences of event numbers).

A row keeps its owner, also after the owner has left the estate: messages refer to it.
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
    """Owners of the rows of a store, by row; rows are only added."""

    qmgrs: list[str] = []
    queues: list[str] = []
    flows: list[tuple[str, str]] = []  # queue manager, queue as events name it


def give_rows(tables: Tables, names: Names, routes: Sequence[Route]) -> tuple[Names, Array]:
    """Assign rows (queue manager, queue, flow) to every route of a store.

    Args:
        tables: tables of the store, which keep the names too.
        names: names so far.
        routes: n routes of the store.

    Returns:
        The names with the new ones, and ROUTE[n] for the kernels.
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
    all_names = Names(list(qmgrs), list(queues), list(flows))
    if all_names != names:
        tables.set_names(msgspec.msgpack.encode(all_names))
        _fill_new(tables, names, all_names)
    return all_names, numbers


def _fill_new(tables: Tables, before: Names, names: Names) -> None:
    """Initialise the rows of new queues and flows."""
    tables.reserve("queues", len(names.queues))
    tables.reserve("chains", len(names.queues) * layout.PRIORITIES)
    tables.reserve("flows", len(names.flows))
    tables.reserve("seen", len(names.flows) * layout.SEEN_WORDS)
    queues, flows = slice(len(before.queues), len(names.queues)), slice(len(before.flows), len(names.flows))
    for field in ("keyed_head", "keyed_tail", "any_head", "any_tail"):
        tables.store.queues[field][queues] = layout.NONE
    tables.store.queues["last_full"][queues] = layout.NEVER
    tables.store.queues["armed"][queues] = 0xFF
    tables.store.chains[queues.start * layout.PRIORITIES : queues.stop * layout.PRIORITIES] = layout.NONE
    qmgrs = {name: row for row, name in enumerate(names.qmgrs)}
    tables.store.flows["qmgr"][flows] = [qmgrs[qmgr] for qmgr, _ in names.flows[flows]]
    for dirty in ("queues_dirty", "chains_dirty", "flows_dirty"):
        getattr(tables.store, dirty)[:] = 1
