"""Queues: which store each has its messages in, which aliases lead to it, and so the routes of an estate.

Source: contract section 1 (a queue without a store is an error) and IBM MQ 9.2 DEFINE queues (q085690_: a queue
manager cannot open a private object whose name a shared queue has too, MQRC 2343), DEFINE QALIAS (q085700_: an alias
of another alias cannot be opened), DEFINE STGCLASS (a page set that does not exist is an error only for who puts to
it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from twin.estate.checks import Values
from twin.estate.errors import EstateError, did_you_mean, listed
from twin.estate.model import QueueFile, StoreConfig
from twin.estate.mqsc import DEFAULT_STORAGE_CLASS
from twin.estate.routes import Route, in_order
from twin.estate.sources import Sources, value


@dataclass(frozen=True, slots=True)
class LocalQueue:
    """A queue with messages of its own: shared (owner is a group) or private (owner is a queue manager)."""

    owner: str
    name: str
    where: str
    values: Values
    shared: bool
    from_mqsc: bool
    in_toml: Values  # what of `values` the TOML file says

    @property
    def key(self) -> str:
        """Its name in the estate: "QSG1/ORDERS"."""
        return f"{self.owner}/{self.name}"


@dataclass(frozen=True, slots=True)
class Alias:
    """A QALIAS of one queue manager; `target` None: it leads to no queue (a topic, or nothing)."""

    qmgr: str
    name: str
    target: str | None
    where: str


def local_queues(sources: Sources) -> list[LocalQueue]:
    """Every local queue, sorted by its key, what TOML says beating what MQSC says."""
    found: dict[tuple[str, str], LocalQueue] = {}
    for shared, owners in ((True, sources.groups), (False, sources.queue_managers)):
        for owner in owners:
            objects = sources.definitions.of("queue", ("SHARED" if shared else "QMGR", owner))
            for name, definition in objects.items():
                if definition.type == "QLOCAL":
                    found[owner, name] = LocalQueue(owner, name, definition.where, definition.values, shared, True, {})
    for key, entry in sources.entries("queue").items():
        shared = key[0] in sources.groups
        if not shared and key[0] not in sources.queue_managers:
            known = [*sources.groups, *sources.queue_managers]
            hint = did_you_mean(key[0], known) or "; describe it"
            raise EstateError(f"{entry.where}: {key[0]} is neither a queue-sharing group nor a queue manager{hint}")
        defined = found.get((key[0], key[1]))
        merged = {**(defined.values if defined else {}), **entry.values}
        found[key[0], key[1]] = LocalQueue(
            key[0], key[1], entry.where, merged, shared, defined is not None, entry.values
        )
    return [found[key] for key in sorted(found)]


def aliases(sources: Sources) -> list[Alias]:
    """Every QALIAS of every queue manager, sorted."""
    found = []
    for qmgr in sources.queue_managers:
        for name, definition in sources.definitions.of("queue", ("QMGR", qmgr)).items():
            if definition.type == "QALIAS":
                topic = value(definition.values, "target_type") == "TOPIC"
                target = None if topic else value(definition.values, "target")
                found.append(Alias(qmgr, name, str(target) if target else None, definition.where))
    return sorted(found, key=lambda alias: (alias.qmgr, alias.name))


def structure_of(queue: LocalQueue) -> str:
    """The store name of the structure of a shared queue. EstateError where it has none."""
    _refuse(queue, "storage_class", 'a shared queue has structure = "...", a CFSTRUCT of its group')
    structure = value(queue.values, "structure")
    if structure is None:
        raise EstateError(
            f"{queue.where}: shared queue {queue.key} has no store; give it a structure"
            " (structure in TOML, CFSTRUCT in MQSC)"
        )
    return f"{queue.owner}/{structure}"


def page_set_of(queue: LocalQueue, classes: Mapping[str, Values]) -> str:
    """The store name of the page set of a private queue. EstateError where it has none.

    `classes`: the storage classes of its queue manager.
    """
    _refuse(
        queue, "structure", f'a private queue has storage_class = "..."; a shared one is [queue."GROUP/{queue.name}"]'
    )
    given = queue.values.get("storage_class")
    if given is None and not queue.from_mqsc:
        raise EstateError(f'{queue.where}: queue {queue.key} has no store; give it storage_class = "..."')
    name = given.value if given is not None and given.value is not None else DEFAULT_STORAGE_CLASS
    if name not in classes:
        hint = (
            did_you_mean(name, classes)
            or f'; describe [storage_class."{queue.owner}/{name}"] or DEFINE STGCLASS({name})'
        )
        raise EstateError(
            f"{queue.where}: queue {queue.key} has no store: unknown storage class {queue.owner}/{name}{hint}"
        )
    number = value(classes[name], "page_set")
    if not isinstance(number, int):
        raise EstateError(
            f"{queue.where}: queue {queue.key} has no store: its storage class {name} has no PSID; give it one"
        )
    return f"{queue.owner}/PS{number:02d}"


def storage_classes(sources: Sources, qmgr: str) -> dict[str, Values]:
    """The storage classes of a queue manager by name, what TOML says beating what MQSC says."""
    found: dict[str, Values] = {
        name: definition.values for name, definition in sources.definitions.of("storage_class", ("QMGR", qmgr)).items()
    }
    for key, entry in sources.entries("storage_class").items():
        if key[0] == qmgr:
            found[key[1]] = {**found.get(key[1], {}), **entry.values}
    return found


def routes(
    sources: Sources, stores: Mapping[str, StoreConfig], placed: list[tuple[LocalQueue, str]]
) -> tuple[Route, ...]:
    """Every route: of each store and queue manager, and of each queue under each name a queue manager has for it.

    `placed`: every local queue and the name of its store.
    """
    found = [Route(name, qmgr) for name, store in stores.items() for qmgr in store.queue_managers]
    names: dict[tuple[str, str], tuple[str, str]] = {}  # (queue manager, name) -> (store, where)
    for queue, store in placed:
        for qmgr in sources.groups[queue.owner] if queue.shared else (queue.owner,):
            _claim(names, qmgr, queue.name, store, queue.where)
            found.append(Route(store, qmgr, queue.name, queue.name))
    for file in stores.values():
        if isinstance(file, QueueFile) and (file.queue_manager, file.queue) not in names:
            _claim(names, file.queue_manager, file.queue, file.name, file.name)
            found.append(Route(file.name, file.queue_manager, file.queue, file.queue))
    found.extend(_alias_routes(sources, names))
    return in_order(found)


def _alias_routes(sources: Sources, names: Mapping[tuple[str, str], tuple[str, str]]) -> Iterator[Route]:
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
        elif (alias.qmgr, alias.target) in by_name:
            leads_nowhere.setdefault(f"{what}, an alias itself: opens of it fail", []).append(alias.qmgr)
        elif alias.target not in sources.definitions.of("queue", ("QMGR", alias.qmgr)):
            leads_nowhere.setdefault(f"{what}, which is not described: events that name it are refused", []).append(
                alias.qmgr
            )
    sources.warnings.extend(f"{warning} ({listed(qmgrs)})" for warning, qmgrs in leads_nowhere.items())


def _claim(names: dict[tuple[str, str], tuple[str, str]], qmgr: str, name: str, store: str, where: str) -> None:
    if (qmgr, name) in names:
        raise EstateError(_clash(qmgr, name, where, names[qmgr, name][1]))
    names[qmgr, name] = store, where


def _clash(qmgr: str, name: str, where: str, other: str) -> str:
    return f"{where}: {qmgr} has {name} twice, the other at {other}: opens fail with 2343; keep one of them"


def _refuse(queue: LocalQueue, attribute: str, right: str) -> None:
    """A TOML queue must not have the attribute of the other kind; in MQSC it is valid and without effect."""
    if attribute in queue.in_toml:
        raise EstateError(f"{queue.in_toml[attribute].where}: {right}")
