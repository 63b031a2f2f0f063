"""Routes: which store an event belongs to, found by its queue manager and queue, or its queue manager and store.

A route is a number, small and stable for one estate, that says store, queue manager and queue: blocks of events carry
it instead of three strings. The order is that of (store, queue manager, queue, reported name), so that two loads of
the same estate number alike. Source: contract sections 1 (store names are the keys of everything) and 7 (HEARTBEAT
and RESTART without `store` concern every store of that queue manager).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from twin.estate.errors import UnknownQueue, UnknownQueueManager, UnknownStore, listed, shown
from twin.estate.model import QueueManager, StoreConfig


@dataclass(frozen=True, slots=True)
class Route:
    """Where an event goes. `queue` is resolved through its QALIAS, `reported` is the name in the event.

    Both None: the store itself.
    """

    store: str
    qmgr: str
    queue: str | None = None
    reported: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estate:
    """What exists, checked. Made by `load_estate`; immutable; pickles (it goes to Spark workers)."""

    source: str  # the file it was read from
    stores: Mapping[str, StoreConfig]  # by store name, sorted
    queue_managers: Mapping[str, QueueManager]  # by name, sorted
    routes: tuple[Route, ...]
    warnings: tuple[str, ...] = ()  # sound but unwise, one line each
    queue_routes: Mapping[tuple[str, str], int] = field(init=False, repr=False, compare=False)
    store_routes: Mapping[tuple[str, str], int] = field(init=False, repr=False, compare=False)
    _of_qmgr: Mapping[str, tuple[int, ...]] = field(init=False, repr=False, compare=False)
    _queues_of: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """The look-up tables, from the routes."""
        by_queue: dict[tuple[str, str], int] = {}
        by_store: dict[tuple[str, str], int] = {}
        of_qmgr: dict[str, list[int]] = {name: [] for name in self.queue_managers}
        queues: dict[str, list[str]] = {name: [] for name in self.queue_managers}
        for index, route in enumerate(self.routes):
            if route.reported is None:
                by_store[route.qmgr, route.store] = index
                of_qmgr[route.qmgr].append(index)
            else:
                by_queue[route.qmgr, route.reported] = index
                queues[route.qmgr].append(route.reported)
        object.__setattr__(self, "queue_routes", by_queue)
        object.__setattr__(self, "store_routes", by_store)
        object.__setattr__(self, "_of_qmgr", {name: tuple(found) for name, found in of_qmgr.items()})
        object.__setattr__(self, "_queues_of", {name: listed(found) for name, found in queues.items()})

    def route_of_queue(self, qmgr: str, queue: str) -> int:
        """The number in `routes` for an event of that queue manager on the queue of that name (an alias is resolved).

        UnknownQueueManager, UnknownQueue. One dictionary look-up (also open to callers as `queue_routes`).
        """
        found = self.queue_routes.get((qmgr, queue))
        if found is not None:
            return found
        self._check_qmgr(qmgr)
        known = self._queues_of[qmgr]
        raise UnknownQueue(
            f"{qmgr} has no queue {shown(queue)} with a store; "
            + (f"its queues are {known}" if known else "no queue of it is described in the estate")
        )

    def route_of_store(self, qmgr: str, store: str) -> int:
        """The number in `routes` for an event of that queue manager about the store itself.

        UnknownQueueManager; UnknownStore where there is none of that name, or where it does not concern the queue
        manager.
        """
        found = self.store_routes.get((qmgr, store))
        if found is not None:
            return found
        self._check_qmgr(qmgr)
        if store in self.stores:
            raise UnknownStore(
                f"{store} does not concern {qmgr}; its queue managers are {listed(self.stores[store].queue_managers)}"
            )
        stores = listed(self.routes[index].store for index in self._of_qmgr[qmgr])
        raise UnknownStore(f"there is no store {shown(store)}; those of {qmgr} are {stores or 'none'}")

    def routes_of_qmgr(self, qmgr: str) -> tuple[int, ...]:
        """The routes (store, qmgr, None) of every store that concerns that queue manager. UnknownQueueManager."""
        self._check_qmgr(qmgr)
        return self._of_qmgr[qmgr]

    def _check_qmgr(self, qmgr: str) -> None:
        if qmgr not in self.queue_managers:
            raise UnknownQueueManager(
                f"there is no queue manager {shown(qmgr)}; the estate has {listed(self.queue_managers)}"
            )


def in_order(routes: Iterable[Route]) -> tuple[Route, ...]:
    """The routes in the order that numbers them: a store's own before those of its queues."""
    return tuple(sorted(routes, key=lambda route: (route.store, route.qmgr, route.queue or "", route.reported or "")))
