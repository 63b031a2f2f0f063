"""The estate, its routes (the store of an event, by queue manager and queue or store), and its form in a checkpoint.

A route is identified by its index, which stands for store, queue manager and queue: event batches carry it instead of
three strings. Routes are sorted by (store, queue manager, queue, reported name), so two loads of the same estate number
them alike. HEARTBEAT and RESTART without `store` concern every store of their queue manager: docs/events.md. A saved
estate is that of the estate as checked, not of its files, which others may change; it holds no code, unlike a pickle.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

import msgspec

from twin.decoding import UNREADABLE
from twin.estate.errors import UnknownQueue, UnknownQueueManager, UnknownStore, listed, show
from twin.estate.model import (
    MessageStoreConfig,
    QueueManager,
    Site,
    StoreConfig,
    Structure,
    UniformCluster,
    structures_of,
)
from twin.estate.past_rises import History
from twin.estate.planned import Plan
from twin.estate.runbook import ActionRow
from twin.units import format_size

HEADINGS = ("store", "kind", "size", "queue managers", "queues", "details")
_KINDS: dict[str, type[StoreConfig]] = {kind.kind: kind for kind in get_args(StoreConfig)}
_MAX_BYTES = 256 << 20  # of the text: an estate of 100,000 queues has 30 MB


@dataclass(frozen=True, slots=True)
class Route:
    """Destination of an event: `queue` after resolution of a QALIAS, `reported` as in the event; None: the store."""

    store: str
    qmgr: str
    queue: str | None = None
    reported: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estate:
    """Checked estate, made by `load_estate`. It is immutable and can be pickled (Spark sends it to its workers).

    Attributes:
        source: the file it was read from.
        stores: stores by name, sorted.
        queue_managers: queue managers by name, sorted.
        routes: what events may be about, each with its store.
        max_depths: MAXDEPTH by store and queue, where given.
        warnings: what is valid but unwise, one line each.
        hosts: cores of each host, by name.
        history: past rises, by store.
        site: name and zone of the site.
        runbook: rows of the site's own runbook.
        planned: planned work, by store.
        message_stores: stores that hold messages, by name, sorted.
        structures: structures, by name, sorted.
        clusters: the uniform cluster of each member; of several the first by name.
        queue_routes: index in `routes` by queue manager and queue or alias.
        store_routes: the same by queue manager and store.
    """

    source: str
    stores: Mapping[str, StoreConfig]
    queue_managers: Mapping[str, QueueManager]
    routes: tuple[Route, ...]
    max_depths: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    hosts: Mapping[str, float] = field(default_factory=dict)
    history: History = field(default_factory=dict)
    site: Site = field(default_factory=Site)
    runbook: tuple[ActionRow, ...] = ()
    planned: Mapping[str, tuple[Plan, ...]] = field(default_factory=dict)
    message_stores: Mapping[str, MessageStoreConfig] = field(init=False, repr=False, compare=False)
    structures: Mapping[str, Structure] = field(init=False, repr=False, compare=False)
    clusters: Mapping[str, str] = field(init=False, repr=False, compare=False)
    queue_routes: Mapping[tuple[str, str], int] = field(init=False, repr=False, compare=False)
    store_routes: Mapping[tuple[str, str], int] = field(init=False, repr=False, compare=False)
    _of_qmgr: Mapping[str, tuple[int, ...]] = field(init=False, repr=False, compare=False)
    _queues_of: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        own = {name: store for name, store in self.stores.items() if isinstance(store, MessageStoreConfig)}
        object.__setattr__(self, "message_stores", own)
        object.__setattr__(self, "structures", {store.name: store for store in structures_of(own.values())})
        clusters = [store for store in self.stores.values() if isinstance(store, UniformCluster)]
        members = {qmgr: cluster.name for cluster in reversed(clusters) for qmgr in cluster.queue_managers}
        object.__setattr__(self, "clusters", members)
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
        object.__setattr__(self, "_of_qmgr", {name: tuple(names) for name, names in of_qmgr.items()})
        object.__setattr__(self, "_queues_of", {name: listed(names) for name, names in queues.items()})

    def route_of_queue(self, qmgr: str, queue: str) -> int:
        """Return the index in `routes` of an event on a queue or alias: one look-up in `queue_routes`.
        UnknownQueueManager: the estate has no such queue manager. UnknownQueue: the queue manager has no such queue
        with a store.
        """
        route = self.queue_routes.get((qmgr, queue))
        if route is not None:
            return route
        self._check_qmgr(qmgr)
        known = self._queues_of[qmgr]
        raise UnknownQueue(
            f"{qmgr} has no queue {show(queue)} with a store; "
            + (f"its queues are {known}" if known else "no queue of it is described in the estate")
        )

    def route_of_store(self, qmgr: str, store: str) -> int:
        """Return the index in `routes` of an event about a store. UnknownQueueManager: the estate has no such queue
        manager. UnknownStore: the estate has no such store, or it does not concern the queue manager.
        """
        route = self.store_routes.get((qmgr, store))
        if route is not None:
            return route
        self._check_qmgr(qmgr)
        if store in self.stores:
            raise UnknownStore(
                f"{store} does not concern {qmgr}; its queue managers are {listed(self.stores[store].queue_managers)}"
            )
        stores = listed(self.routes[index].store for index in self._of_qmgr[qmgr])
        raise UnknownStore(f"there is no store {show(store)}; those of {qmgr} are {stores or 'none'}")

    def routes_of_qmgr(self, qmgr: str) -> tuple[int, ...]:
        """Return the indices in `routes` of the stores of a queue manager. Raise UnknownQueueManager."""
        self._check_qmgr(qmgr)
        return self._of_qmgr[qmgr]

    def _check_qmgr(self, qmgr: str) -> None:
        if qmgr not in self.queue_managers:
            raise UnknownQueueManager(
                f"there is no queue manager {show(qmgr)}; the estate has {listed(self.queue_managers)}"
            )


def in_order(routes: Iterable[Route]) -> tuple[Route, ...]:
    """Sort routes in the order of their indices: the route of a store before those of its queues."""
    return tuple(sorted(routes, key=lambda route: (route.store, route.qmgr, route.queue or "", route.reported or "")))


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """Row of one store, ready to print; its fields are in the order of `HEADINGS`."""

    store: str
    kind: str
    size: str
    queue_managers: str
    queues: int
    details: str


def summary(estate: Estate) -> list[SummaryRow]:
    """Return one row per store, sorted by name."""
    return [
        SummaryRow(
            store=store.name,
            kind=store.kind.replace("_", " "),
            size="" if store.total_bytes is None else format_size(store.total_bytes),
            queue_managers=", ".join(store.queue_managers),
            queues=len(store.queues),
            details=store.details,
        )
        for store in estate.stores.values()
    ]


class _Text(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The text. stores: kind and attributes by name. A field that came later has a default, which is omitted."""

    stores: dict[str, tuple[str, Any]]
    queue_managers: dict[str, QueueManager]
    routes: tuple[Route, ...]
    max_depths: dict[str, dict[str, int]]
    hosts: dict[str, float]
    history: History
    site: Site | None = None
    runbook: tuple[ActionRow, ...] = ()
    planned: dict[str, tuple[Plan, ...]] = {}


class SavedEstateError(ValueError):
    """Bytes that are no saved estate; the message is the problem."""


def save_estate(estate: Estate) -> tuple[str, bytes]:
    """Return (digest, bytes) of an estate. Two that treat every event alike have one digest, wherever their files are.

    Its warnings and the name of its file are left out.
    """
    text = _Text(
        stores={name: (store.kind, msgspec.to_builtins(store)) for name, store in estate.stores.items()},
        queue_managers=dict(estate.queue_managers),
        routes=estate.routes,
        max_depths={store: dict(depths) for store, depths in estate.max_depths.items()},
        hosts=dict(estate.hosts),
        history=estate.history,
        site=None if estate.site == Site() else estate.site,
        runbook=estate.runbook,
        planned=dict(estate.planned),
    )
    encoded = msgspec.json.encode(text)
    return hashlib.sha256(encoded).hexdigest(), zlib.compress(encoded)


def read_saved_estate(data: bytes, source: str) -> Estate:
    """Return a saved estate. source: its name in errors. SavedEstateError: no saved estate, or of another version."""
    try:
        unpacked = zlib.decompressobj().decompress(data, _MAX_BYTES)
        text = msgspec.json.decode(unpacked, type=_Text)
        stores = {name: msgspec.convert(own, _KINDS[kind]) for name, (kind, own) in text.stores.items()}
    except (zlib.error, *UNREADABLE, KeyError) as error:
        raise SavedEstateError(f"{source}: no estate that this version reads ({error})") from None
    return Estate(
        source=source,
        stores=stores,
        queue_managers=text.queue_managers,
        routes=text.routes,
        max_depths=text.max_depths,
        hosts=text.hosts,
        history=text.history,
        site=text.site or Site(),
        runbook=text.runbook,
        planned=text.planned,
    )
