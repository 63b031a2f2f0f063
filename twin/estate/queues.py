"""Queues: the store that holds the messages of each, the aliases that resolve to it, and the routes of an estate.

Sources: [IBM: MQ 9.2, DEFINE queues, q085690_] (a queue manager cannot open a private object that has the name of a
shared queue, MQRC 2343), [IBM: MQ 9.2, DEFINE QALIAS, q085700_] (an alias of an alias cannot be opened), [IBM: MQ 9.2,
DEFINE QREMOTE] (a message for a remote queue goes to the transmission queue XMITQ, else to the one named RQMNAME),
[IBM: MQ 9.2, DEFINE STGCLASS] (a page set that does not exist is an error only for the application that puts to it). A
queue without a store is an error: docs/estate.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from twin.estate.checks import Values
from twin.estate.errors import EstateError, did_you_mean, listed
from twin.estate.model import QueueFile, StoreConfig
from twin.estate.mqsc import DEFAULT_STORAGE_CLASS
from twin.estate.routes import Route, in_order
from twin.estate.sources import Sources, value


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
