"""Loading an estate from its file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path

from twin.estate.advice import warnings
from twin.estate.errors import EstateError, Problems, known_hint, show
from twin.estate.model import ForecastSettings, StoreConfig
from twin.estate.mqsc import DEFAULT_STORAGE_CLASS
from twin.estate.past_rises import read_history
from twin.estate.planned import MAX_PLANS, Cancelled, Plan, read_plan
from twin.estate.queues import (
    LocalQueue,
    StorageClass,
    local_queues,
    page_set_of,
    routes,
    storage_classes,
    structure_of,
)
from twin.estate.routes import Estate
from twin.estate.sources import Sources, gather, read_toml, value
from twin.estate.stores import (
    coupling_facilities,
    page_sets,
    queue_files,
    queue_manager_logs,
    rebuild_choices,
    structures,
    uniform_clusters,
)


def as_estate(estate: Estate | str | PathLike[str]) -> Estate:
    """Return an estate, loaded where `estate` is its file. Raises as `load_estate`."""
    return estate if isinstance(estate, Estate) else load_estate(estate)


def load_estate(path: str | PathLike[str]) -> Estate:
    """Load the estate of a TOML file, with the CFRM and MQSC texts that it imports.

    `warnings` of the estate name what is valid but unwise. The file is described in docs/estate.md.

    Raises:
        EstateError: the estate is invalid or has no store. One line: file, line (MQSC, CFRM) or key (TOML), value,
            expected value; `others` has those of further errors. Errors in the texts are told before those of what
            the texts describe together, which may only follow from them.

    Examples:
        >>> estate = twin.load_estate("estate.toml")
        >>> estate.stores["QSG1/APP1"].queues
        ('ORDERS', 'ORDERS.REPLY', 'PAYMENTS')
    """
    file = Path(path)
    toml = read_toml(file)
    sources = gather(toml)
    problems = sources.problems
    problems.raise_all()
    shared, private, distributed = _by_kind(sources, local_queues(sources))
    in_structures = _by_store(shared, structure_of, problems)
    classes = {qmgr: storage_classes(sources, qmgr) for qmgr in sources.queue_managers}
    in_page_sets = _by_store(private, lambda queue: page_set_of(queue, classes[queue.owner]), problems)
    all_structures = structures(sources, in_structures)
    all_files = queue_files(sources, distributed)
    stores: dict[str, StoreConfig] = {
        **all_structures,
        **page_sets(sources, in_page_sets, _page_set_places(in_page_sets, classes)),
        **all_files,
        **queue_manager_logs(sources, all_files),
        **coupling_facilities(sources, all_structures),
        **uniform_clusters(sources),
    }
    problems.raise_all()
    if not stores:
        raise EstateError(
            f"{file}: it describes no store; describe a structure, page set, queue file or uniform cluster"
        )
    stores = {name: _with_choice(sources, config) for name, config in sorted(stores.items())}
    planned = _planned(sources, stores)
    problems.raise_all()
    holding = [*in_structures.items(), *in_page_sets.items()]
    placed = [(queue, store) for store, queues in holding for queue in queues]
    placed += [(queue, queue.key) for queue in distributed]
    described = {(f"{group}/{name}", qmgr) for group, name, qmgr in sources.entries("smds")}
    persistent = {queue.key: bool(value(queue.values, "default_persistent")) for queue in distributed}
    choices = rebuild_choices(sources, all_structures)
    return Estate(
        source=str(file),
        stores=stores,
        queue_managers=sources.queue_managers,
        routes=routes(sources, stores, placed),
        max_depths=_max_depths(placed),
        warnings=(*sources.warnings, *warnings(stores, described, sources.queue_managers, persistent, choices)),
        history={} if toml.history is None else read_history(toml.history),
        site=toml.site,
        runbook=toml.runbook,
        planned=planned,
        hosts={name: entry.values["cores"].value for (name,), entry in sorted(sources.entries("host").items())},
    )


def _with_choice(sources: Sources, config: StoreConfig) -> StoreConfig:
    """Return a store with the choice of the table [alerts] where it has none of its own; errors are collected."""
    if not isinstance(config, ForecastSettings):
        return config
    own = (config.needless_per_saved, config.policy)
    if None not in own:
        wrong = "needless_per_saved and policy are the same choice; keep one of them"
        sources.problems.messages.append(f"{sources.toml.file}: {config.name}: {wrong}")
    return replace(config, needless_per_saved=sources.toml.needless) if own == (None, None) else config


def _planned(sources: Sources, stores: Mapping[str, StoreConfig]) -> dict[str, tuple[Plan, ...]]:
    """Return the plans of the file by store, in its order; errors are collected."""
    by_store: dict[str, list[Plan]] = {}
    for place, table in enumerate(sources.toml.planned):
        where = f"{sources.toml.file}: planned[{place}]"
        with sources.problems.collect():
            name = table.get("store")
            if not isinstance(name, str) or name not in stores:
                raise EstateError(
                    f"{where}: store = {show(name)}: no store of the estate{known_hint(str(name), stores)}"
                )
            try:
                plan = read_plan({key: value for key, value in table.items() if key != "store"}, stores[name])
            except EstateError as wrong:
                raise EstateError(f"{where}: {wrong}") from None
            if isinstance(plan, Cancelled):
                raise EstateError(f"{where}: cancelled is of PLAN events; expected: no table")
            own = by_store.setdefault(name, [])
            if any(other.id == plan.id for other in own):
                raise EstateError(f"{where}: id = {show(plan.id)}: another plan of {name} has it")
            if len(own) == MAX_PLANS:
                raise EstateError(f"{where}: {name} has {MAX_PLANS} plans already; expected: no more of one store")
            own.append(plan)
    return {name: tuple(own) for name, own in sorted(by_store.items())}


def _by_kind(sources: Sources, queues: list[LocalQueue]) -> tuple[list[LocalQueue], list[LocalQueue], list[LocalQueue]]:
    """Return (shared queues, private queues on z/OS, queues of distributed queue managers)."""
    shared: list[LocalQueue] = []
    private: list[LocalQueue] = []
    distributed: list[LocalQueue] = []
    for queue in queues:
        if queue.shared:
            shared.append(queue)
        elif sources.queue_managers[queue.owner].platform == "zos":
            private.append(queue)
        else:
            distributed.append(queue)
    return shared, private, distributed


def _max_depths(placed: Iterable[tuple[LocalQueue, str]]) -> dict[str, dict[str, int]]:
    """Return MAXDEPTH by store and queue, of the queues whose texts give it.

    What DEFINE QLOCAL leaves out stays unknown: IBM's default, 999,999,999 on z/OS, limits nothing, and a queue of a
    distributed queue manager (5,000) mostly has the limit of SYSTEM.DEFAULT.LOCAL.QUEUE, which no text shows.
    """
    by_store: dict[str, dict[str, int]] = {}
    for queue, store in placed:
        max_depth = value(queue.values, "max_depth")
        if isinstance(max_depth, int):
            by_store.setdefault(store, {})[queue.name] = max_depth
    return by_store


def _by_store(
    queues: Iterable[LocalQueue], store_of: Callable[[LocalQueue], str], problems: Problems
) -> dict[str, list[LocalQueue]]:
    by_store: dict[str, list[LocalQueue]] = {}
    for queue in queues:
        with problems.collect():
            by_store.setdefault(store_of(queue), []).append(queue)
    return by_store


def _page_set_places(
    in_page_sets: Mapping[str, list[LocalQueue]], classes: Mapping[str, Mapping[str, StorageClass]]
) -> dict[str, str]:
    """Return the place at which a storage class leads to a page set, by store name."""
    places = {}
    for store, queues in in_page_sets.items():
        named = value(queues[0].values, "storage_class") or DEFAULT_STORAGE_CLASS
        places[store] = classes[queues[0].owner][str(named)].values["page_set"].where
    return places
