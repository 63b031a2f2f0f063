"""The estate, its routes and queues, and its form in a checkpoint.

- Routes: the store of an event, by queue manager and queue or store. A route is identified by its index: event batches
  carry it instead of three strings. Routes are sorted by (store, queue manager, queue, reported name), so two loads of
  the same estate number them alike. HEARTBEAT and RESTART without `store` concern every store of their queue manager:
  docs/events.md.
- A saved estate is that of the estate as checked, not of its files, which others may change; it holds no code, unlike a
  pickle.
- Queues: the store that holds the messages of each, and the aliases that resolve to it. A queue without a store is an
  error: docs/estate.md.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import msgspec

from twin.base.decoding import UNREADABLE
from twin.base.units import format_size
from twin.estate.errors import EstateError, UnknownQueue, UnknownQueueManager, UnknownStore, did_you_mean, listed, show
from twin.estate.model import (
    MessageStoreConfig,
    QueueFile,
    QueueManager,
    Site,
    StoreConfig,
    Structure,
    UniformCluster,
    structures_of,
)
from twin.estate.mqsc import DEFAULT_STORAGE_CLASS
from twin.estate.planned import History, Plan
from twin.estate.rows import Values
from twin.estate.runbook import ActionRow
from twin.estate.sources import Sources, value

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


# --- queues, and the routes that they make ----------------------------------------------------------------------------
# Sources: [IBM: MQ 9.2, DEFINE queues, q085690_] (a queue manager cannot open a private object that has the name of a
# shared queue, MQRC 2343), [IBM: MQ 9.2, DEFINE QALIAS, q085700_] (an alias of an alias cannot be opened), [IBM: MQ
# 9.2, DEFINE QREMOTE] (a message for a remote queue goes to the transmission queue XMITQ, else to the one named
# RQMNAME), [IBM: MQ 9.2, DEFINE STGCLASS] (a page set that does not exist is an error only for the application that
# puts to it).


@dataclass(frozen=True, slots=True)
class LocalQueue:
    """Local queue: shared (its owner is a group) or private (its owner is a queue manager)."""

    owner: str
    name: str
    where: str
    values: Values
    shared: bool
    from_mqsc: bool
    in_toml: Values  # those of `values` that are in the TOML file

    @property
    def key(self) -> str:
        """Name in the estate: "QSG1/ORDERS"."""
        return f"{self.owner}/{self.name}"


@dataclass(frozen=True, slots=True)
class StorageClass:
    """Storage class of a queue manager."""

    where: str  # file and line
    values: Values


@dataclass(frozen=True, slots=True)
class Alias:
    """QALIAS of a queue manager; `target` is None if it resolves to no queue (a topic, or nothing)."""

    qmgr: str
    name: str
    target: str | None
    where: str


def local_queues(sources: Sources) -> list[LocalQueue]:
    """Return the local queues sorted by key; TOML overrides MQSC."""
    queues: dict[tuple[str, str], LocalQueue] = {}
    for shared, owners in ((True, sources.groups), (False, sources.queue_managers)):
        for owner in owners:
            objects = sources.definitions.objects("queue", ("SHARED" if shared else "QMGR", owner))
            for name, definition in objects.items():
                if definition.type == "QLOCAL":
                    queues[owner, name] = LocalQueue(owner, name, definition.where, definition.values, shared, True, {})
    for key, entry in sources.entries("queue").items():
        shared = key[0] in sources.groups
        if not shared and key[0] not in sources.queue_managers:
            known = [*sources.groups, *sources.queue_managers]
            hint = did_you_mean(key[0], known) or "; describe it"
            raise EstateError(f"{entry.where}: {key[0]} is neither a queue-sharing group nor a queue manager{hint}")
        defined = queues.get((key[0], key[1]))
        merged = {**(defined.values if defined else {}), **entry.values}
        queues[key[0], key[1]] = LocalQueue(
            key[0], key[1], entry.where, merged, shared, defined is not None, entry.values
        )
    return [queues[key] for key in sorted(queues)]


def aliases(sources: Sources) -> list[Alias]:
    """Return the aliases of all queue managers, sorted."""
    result = []
    for qmgr in sources.queue_managers:
        for name, definition in sources.definitions.objects("queue", ("QMGR", qmgr)).items():
            if definition.type == "QALIAS":
                topic = value(definition.values, "target_type") == "TOPIC"
                target = None if topic else value(definition.values, "target")
                result.append(Alias(qmgr, name, str(target) if target else None, definition.where))
    return sorted(result, key=lambda alias: (alias.qmgr, alias.name))


def structure_of(queue: LocalQueue) -> str:
    """Return the store name of the structure of a shared queue. Raise EstateError if it has none."""
    _refuse(queue, "storage_class", 'a shared queue has structure = "...", a CFSTRUCT of its group')
    structure = value(queue.values, "structure")
    if structure is None:
        raise EstateError(
            f"{queue.where}: shared queue {queue.key} has no store; give it a structure"
            " (structure in TOML, CFSTRUCT in MQSC)"
        )
    return f"{queue.owner}/{structure}"


def page_set_of(queue: LocalQueue, classes: Mapping[str, StorageClass]) -> str:
    """Return the store name of the page set of a private queue. EstateError: it has no page set."""
    _refuse(
        queue, "structure", f'a private queue has storage_class = "..."; a shared one is [queue."GROUP/{queue.name}"]'
    )
    source_value = queue.values.get("storage_class")
    if source_value is None and not queue.from_mqsc:
        raise EstateError(f'{queue.where}: queue {queue.key} has no store; give it storage_class = "..."')
    name = source_value.value if source_value is not None and source_value.value is not None else DEFAULT_STORAGE_CLASS
    structure = queue.values.get("structure")
    is_shared_by_name = structure is not None and structure.value is not None
    if is_shared_by_name and structure is not None and (name not in classes or "page_set" not in classes[name].values):
        raise EstateError(
            f"{structure.where}: without QSGDISP(SHARED) {queue.key} is a private queue, which has no page set; add it"
        )
    if name not in classes:
        hint = (
            did_you_mean(name, classes)
            or f'; describe [storage_class."{queue.owner}/{name}"] or DEFINE STGCLASS({name})'
        )
        raise EstateError(
            f"{queue.where}: queue {queue.key} has no store: unknown storage class {queue.owner}/{name}{hint}"
        )
    number = value(classes[name].values, "page_set")
    if not isinstance(number, int):
        raise EstateError(
            f"{classes[name].where}: STGCLASS({name}) has no PSID, so queue {queue.key} has no store; give it one"
        )
    return f"{queue.owner}/PS{number:02d}"


def storage_classes(sources: Sources, qmgr: str) -> dict[str, StorageClass]:
    """Return the storage classes of a queue manager by name; TOML overrides MQSC."""
    classes = {
        name: StorageClass(definition.where, definition.values)
        for name, definition in sources.definitions.objects("storage_class", ("QMGR", qmgr)).items()
    }
    for key, entry in sources.entries("storage_class").items():
        if key[0] == qmgr:
            before = classes[key[1]].values if key[1] in classes else {}
            classes[key[1]] = StorageClass(entry.where, {**before, **entry.values})
    return classes


def routes(
    sources: Sources, stores: Mapping[str, StoreConfig], placed: list[tuple[LocalQueue, str]]
) -> tuple[Route, ...]:
    """Return the routes: by store and queue manager, and by queue manager and each name it has for a queue."""
    result = [Route(name, qmgr) for name, store in stores.items() for qmgr in store.queue_managers]
    names: dict[tuple[str, str], tuple[str, str]] = {}  # (queue manager, name) -> (store, where)
    for queue, store in placed:
        for qmgr in sources.groups[queue.owner] if queue.shared else (queue.owner,):
            _claim(names, qmgr, queue.name, store, queue.where)
            result.append(Route(store, qmgr, queue.name, queue.name))
    for file in stores.values():
        if isinstance(file, QueueFile) and (file.queue_manager, file.queue) not in names:
            _claim(names, file.queue_manager, file.queue, file.name, file.name)
            result.append(Route(file.name, file.queue_manager, file.queue, file.queue))
    remotes = {(route.qmgr, str(route.reported)): route for route in _remote_routes(sources, names)}
    result.extend(remotes.values())
    result.extend(_alias_routes(sources, names, remotes))
    return in_order(result)


def _alias_routes(
    sources: Sources, names: Mapping[tuple[str, str], tuple[str, str]], remotes: Mapping[tuple[str, str], Route]
) -> Iterator[Route]:
    leads_nowhere: dict[str, list[str]] = {}  # warning -> queue managers
    all_aliases = aliases(sources)
    by_name = {(alias.qmgr, alias.name) for alias in all_aliases}
    for alias in all_aliases:
        if (alias.qmgr, alias.name) in names:
            raise EstateError(_clash(alias.qmgr, alias.name, alias.where, names[alias.qmgr, alias.name][1]))
        if alias.target is None:
            continue
        what = f"{alias.where}: alias {alias.name} leads to {alias.target}"
        if (alias.qmgr, alias.target) in names:
            yield Route(names[alias.qmgr, alias.target][0], alias.qmgr, alias.target, alias.name)
        elif (alias.qmgr, alias.target) in remotes:
            yield replace(remotes[alias.qmgr, alias.target], reported=alias.name)
        elif (alias.qmgr, alias.target) in by_name:
            leads_nowhere.setdefault(f"{what}, an alias itself: opens of it fail", []).append(alias.qmgr)
        elif alias.target not in sources.definitions.objects("queue", ("QMGR", alias.qmgr)):
            leads_nowhere.setdefault(f"{what}, which is not described: events that name it are refused", []).append(
                alias.qmgr
            )
    sources.warnings.extend(f"{warning} ({listed(qmgrs)})" for warning, qmgrs in leads_nowhere.items())


def _remote_routes(sources: Sources, names: Mapping[tuple[str, str], tuple[str, str]]) -> Iterator[Route]:
    """Yield the routes of remote definitions to their transmission queues, where the estate has these."""
    for qmgr in sources.queue_managers:
        for name, definition in sorted(sources.definitions.objects("queue", ("QMGR", qmgr)).items()):
            if definition.type != "QREMOTE" or (qmgr, name) in names:
                continue
            attributes = ("transmission_queue", "remote_queue_manager")
            targets = (value(definition.values, attribute) for attribute in attributes)
            target = str(next(filter(None, targets), ""))
            if (qmgr, target) in names:
                yield Route(names[qmgr, target][0], qmgr, target, name)


def _claim(names: dict[tuple[str, str], tuple[str, str]], qmgr: str, name: str, store: str, where: str) -> None:
    if (qmgr, name) in names:
        raise EstateError(_clash(qmgr, name, where, names[qmgr, name][1]))
    names[qmgr, name] = store, where


def _clash(qmgr: str, name: str, where: str, other: str) -> str:
    return f"{where}: {qmgr} has {name} twice, the other at {other}: opens fail with 2343; keep one of them"


def _refuse(queue: LocalQueue, attribute: str, right: str) -> None:
    """Raise EstateError if a TOML queue has the attribute of the other kind; in MQSC that has no effect."""
    if attribute in queue.in_toml:
        raise EstateError(f"{queue.in_toml[attribute].where}: {right}")
