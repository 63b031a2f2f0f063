"""Loading an estate from its file, whose stores are composed attribute by attribute; TOML overrides MQSC and CFRM."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from twin.base.units import format_size
from twin.estate.advice import warnings
from twin.estate.attributes import LEVELS, incompatible
from twin.estate.errors import EstateError, Problems, did_you_mean, known_hint, show
from twin.estate.model import (
    ADMINISTRATION,
    ALWAYS_OFFLOADED_ABOVE,
    RULE_OFF,
    CouplingFacility,
    ForecastSettings,
    PageSet,
    QueueFile,
    QueueManagerLog,
    Smds,
    StoreConfig,
    Structure,
    UniformCluster,
    policy_name_of,
)
from twin.estate.mqsc import DEFAULT_CF_LEVEL, DEFAULT_STORAGE_CLASS
from twin.estate.planned import MAX_PLANS, Cancelled, Plan, read_history, read_plan
from twin.estate.routes import (
    Estate,
    LocalQueue,
    StorageClass,
    local_queues,
    page_set_of,
    routes,
    storage_classes,
    structure_of,
)
from twin.estate.rows import SourceValue, Values
from twin.estate.sources import Entry, Sources, gather, read_toml, value

# --- stores -----------------------------------------------------------------------------------------------------------

TOML_CF_LEVEL = 5  # of a structure described in TOML only: its default, OFFLOAD(SMDS), needs it [IBM: DEFINE CFSTRUCT]
_LEVEL_OF_NO_MESSAGES = 3  # no offload
_OF_LEVEL_5 = [name for name, row in Structure.rows.items() if row.mqsc and name not in {"cf_level", "offload"}]


def structures(sources: Sources, queues: Mapping[str, list[LocalQueue]]) -> dict[str, Structure]:
    """Return the structures by store name, with their data sets.

    They come from [structure], DEFINE CFSTRUCT and [other_structure]. What else a CFRM policy has counts at its
    coupling facility. EstateError: unknown group, coupling facility or queue manager, a structure with queues but
    without a size, or values that contradict each other.
    """
    all_structures: dict[str, Structure] = {}
    names = set()
    for key, entry in sources.entries("structure").items():
        with sources.problems.collect():
            sources.check_group(entry)
            names.add(key)
    for group in sources.groups:
        names |= {(group, name) for name in sources.definitions.objects("structure", ("SHARED", group))}
    for group, name in sorted(names):
        store = f"{group}/{name}"
        with sources.problems.collect():
            structure = _structure(sources, group, name, queues.get(store, []))
            if structure is not None:
                all_structures[store] = structure
    _check_smds(sources, all_structures, {f"{group}/{name}" for group, name in names})
    for (name,), entry in sources.entries("other_structure").items():
        with sources.problems.collect():
            all_structures[name] = _other_structure(sources, name, entry, all_structures)
    sources.warnings.extend(_unwatched(sources, all_structures))
    for store, needed_by in queues.items():
        if tuple(store.split("/")) not in names:
            queue = needed_by[0]
            define = f"DEFINE CFSTRUCT({store.split('/')[1]})"
            hint = did_you_mean(store, all_structures) or f'; describe [structure."{store}"] or {define}'
            unknown = f"{queue.where}: queue {queue.key} has no store: unknown structure {store}{hint}"
            sources.problems.messages.append(unknown)
    return all_structures


def _structure(sources: Sources, group: str, name: str, queues: list[LocalQueue]) -> Structure | None:
    store = f"{group}/{name}"
    policy_name = policy_name_of(store)
    policy = sources.policies.structures.get(policy_name)
    defined = sources.definitions.objects("structure", ("SHARED", group)).get(name)
    entry = sources.entries("structure").get((group, name))
    settings: dict[str, SourceValue] = {
        **(policy.values if policy else {}),
        **(defined.values if defined else {}),
        **(entry.values if entry else {}),
    }
    where = entry.where if entry else defined.where if defined else store
    if "size" not in settings:
        missing = (
            f"{where}: structure {store} has no size; import the CFRM policy that has STRUCTURE NAME({policy_name}),"
            f' or give size in [structure."{store}"]'
        )
        if entry or queues:
            raise EstateError(missing)
        sources.warnings.append(f"{missing}; it is left out, no queue uses it")
        return None
    if name == ADMINISTRATION:
        return _of_levels(sources, store, group, where, settings, sources.groups[group])
    ds_group = settings.pop("ds_group", None)
    values: dict[str, Any] = {attribute: setting.value for attribute, setting in settings.items()}
    values.setdefault("cf_level", DEFAULT_CF_LEVEL if defined and defined.defined else TOML_CF_LEVEL)
    if values["cf_level"] < 5:
        values.setdefault("offload", "NONE")
        ignored = [settings[attribute].where for attribute in _OF_LEVEL_5 if attribute in settings]
        if ignored:
            sources.warnings.append(f"{ignored[0]}: without effect, {store} is at CFLEVEL({values['cf_level']}), not 5")
    elif values.get("offload") == "DB2":
        for rule in (1, 2, 3):
            values.setdefault(f"offld{rule}_sz", RULE_OFF)  # [IBM: MQ 9.3, DEFINE CFSTRUCT, q085510_]
    _check_together(sources, where, settings, values)
    sources.warnings.extend(_long_messages(queues, store, values["cf_level"]))
    if defined and defined.defined and values["cf_level"] >= 5 and values.get("offload", "SMDS") == "SMDS":
        sources.warnings.extend(
            _data_set_group(ds_group, f"{where}: {store}" if entry else f"{where}: CFSTRUCT({name})")
        )
    members = sources.groups[group]
    return Structure(
        name=store,
        queue_sharing_group=group,
        queue_managers=members,
        queues=tuple(sorted(queue.name for queue in queues)),
        cfrm_policy=policy.policy if policy else None,
        smds={qmgr: _smds(sources, group, name, qmgr) for qmgr in members},
        **values,
    )


def _of_levels(
    sources: Sources, store: str, group: str, where: str, settings: dict[str, SourceValue], qmgrs: tuple[str, ...]
) -> Structure:
    """Return a structure that holds no queues. `settings` of the CFRM policy that concern messages do not count.
    EstateError: an attribute that only a structure with queues has, or values that contradict each other.
    """
    policy = sources.policies.structures.get(policy_name_of(store))
    for attribute, setting in settings.items():
        if attribute not in LEVELS and (policy is None or policy.values.get(attribute) is not setting):
            raise EstateError(f"{setting.where}: {store} holds no queues; expected: {', '.join(LEVELS)}")
    values = {attribute: setting.value for attribute, setting in settings.items() if attribute in LEVELS}
    _check_together(sources, where, settings, values)
    return Structure(
        name=store,
        queue_sharing_group=group,
        queue_managers=qmgrs,
        cfrm_policy=policy.policy if policy else None,
        cf_level=_LEVEL_OF_NO_MESSAGES,
        offload="NONE",
        **values,
    )


def _other_structure(sources: Sources, name: str, entry: Entry, known: Mapping[str, Structure]) -> Structure:
    """Return a structure of another program, which any queue manager on z/OS may report. Raise EstateError."""
    own = next((structure for structure in known.values() if structure.policy_name == name), None)
    if own is not None:
        raise EstateError(f'{entry.where}: it is the structure {own.name}; expected: [structure."{own.name}"] alone')
    if name in _facility_names(sources):
        raise EstateError(f"{entry.where}: there is a coupling facility {name} too; their names must differ")
    policy = sources.policies.structures.get(name)
    settings = {**(policy.values if policy else {}), **entry.values}
    if "size" not in settings:
        raise EstateError(
            f"{entry.where}: structure {name} has no size; import the CFRM policy that has STRUCTURE NAME({name}), or"
            " give size"
        )
    qmgrs = tuple(qmgr for qmgr, config in sources.queue_managers.items() if config.platform == "zos")
    if not qmgrs:
        raise EstateError(f"{entry.where}: no queue manager on z/OS could report it; describe one, [queue_manager]")
    return _of_levels(sources, name, "", entry.where, settings, qmgrs)


def _unwatched(sources: Sources, known: Mapping[str, Structure]) -> Iterator[str]:
    """Yield a warning for each administration structure that the CFRM policy has and the estate does not."""
    for group in sources.groups:
        store = f"{group}/{ADMINISTRATION}"
        described = sources.policies.structures.get(policy_name_of(store))
        is_in_use = any(structure.queue_sharing_group == group for structure in known.values())
        if described is not None and is_in_use and store not in known:
            yield (
                f"{group}: {policy_name_of(store)} of its CFRM policy is not watched; when it is full, queue managers"
                f' fail: describe [structure."{store}"]'
            )


def _long_messages(queues: Iterable[LocalQueue], store: str, cf_level: int) -> Iterator[str]:
    """Yield a warning for each queue that allows messages over 63 KB below CFLEVEL(5) [IBM: MQ 9.1, MQRC 2366]."""
    for queue in queues:
        max_length = queue.values.get("max_length")
        if cf_level < 5 and max_length is not None and max_length.value > ALWAYS_OFFLOADED_ABOVE:
            effect = "are stored in Db2" if cf_level == 4 else "cannot be put, with 2366"
            yield f"{max_length.where}: {store} is at CFLEVEL({cf_level}): messages over 63 KB {effect}"


def _data_set_group(ds_group: SourceValue | None, subject: str) -> Iterator[str]:
    """Yield a warning unless DSGROUP has one asterisk, for the queue manager.

    Source: [IBM: MQ 9.3, DEFINE CFSTRUCT, q085510_] (DSGROUP('dsname.prefix.*.dsname.suffix')).
    """
    if ds_group is None or not ds_group.value:
        yield f"{subject}: OFFLOAD(SMDS) without DSGROUP: it has no data sets to offload to; give DSGROUP('HLQ.*.NAME')"
    elif ds_group.value.count("*") != 1:
        yield f"{ds_group.where}: expected: one asterisk, where the name of each queue manager goes"


def _check_together(sources: Sources, where: str, settings: Values, values: Mapping[str, Any]) -> None:
    wrong = incompatible(values)
    if wrong is not None:
        attribute, right = wrong
        raise EstateError(f"{settings[attribute].where if attribute in settings else where}: {right}")
    facility = settings.get("coupling_facility")
    if facility is not None and facility.value not in _facility_names(sources):
        known = _facility_names(sources)
        hint = did_you_mean(facility.value, known) or f"; describe [coupling_facility.{facility.value}]"
        raise EstateError(f"{facility.where}: unknown coupling facility {facility.value}{hint}")


def _smds(sources: Sources, group: str, name: str, qmgr: str) -> Smds:
    entry = sources.entries("smds").get((group, name, qmgr))
    if entry is None:
        return Smds()
    values = {attribute: setting.value for attribute, setting in entry.values.items()}
    max_size = values.get("max_size")
    if max_size is not None and max_size < values["size"]:
        raise EstateError(f"{entry.values['max_size'].where}: must be at least size, {format_size(values['size'])}")
    # Without a secondary allocation, or with zero, a data set expands by about 10 % [assumed]
    return Smds(size=values["size"], secondary=values.get("secondary") or None, max_size=max_size)


def _check_smds(sources: Sources, all_structures: Mapping[str, Structure], names: Collection[str]) -> None:
    """Check that every [smds] table names a structure and a member of its group and has room for two blocks."""
    for (group, name, qmgr), entry in sources.entries("smds").items():
        with sources.problems.collect():
            _check_data_set(entry, all_structures.get(f"{group}/{name}"), f"{group}/{name}", qmgr, names)


def _check_data_set(entry: Entry, structure: Structure | None, store: str, qmgr: str, names: Collection[str]) -> None:
    if structure is None:
        if store in names:
            return
        hint = did_you_mean(store, names) or f'; describe [structure."{store}"]'
        raise EstateError(f"{entry.where}: unknown structure {store}{hint}")
    if qmgr not in structure.queue_managers:
        members = ", ".join(structure.queue_managers)
        group = structure.queue_sharing_group
        raise EstateError(f"{entry.where}: {qmgr} is not in {group}; its queue managers are {members}")
    if structure.smds[qmgr].size < 2 * structure.ds_block:
        right = f"must be at least two blocks of DSBLOCK, {format_size(2 * structure.ds_block)}"
        raise EstateError(f"{entry.values['size'].where}: {right}")


def page_sets(
    sources: Sources, queues: Mapping[str, list[LocalQueue]], page_set_places: Mapping[str, str]
) -> dict[str, PageSet]:
    """Return the page sets by store name, from [page_set] and DEFINE PSID with `pages`."""
    numbers = set()
    for key, entry in sources.entries("page_set").items():
        with sources.problems.collect():
            sources.check_qmgr(entry, "zos")
            numbers.add((key[0], key[1]))
    for entry in sources.entries("storage_class").values():
        with sources.problems.collect():
            sources.check_qmgr(entry, "zos")
    for qmgr in sources.queue_managers:
        numbers |= {(qmgr, number) for number in sources.definitions.objects("page_set", ("QMGR", qmgr))}
    all_page_sets: dict[str, PageSet] = {}
    for qmgr, number in sorted(numbers, key=lambda key: (key[0], int(key[1]))):
        store = f"{qmgr}/PS{int(number):02d}"
        with sources.problems.collect():
            page_set = _page_set(sources, qmgr, number, queues.get(store, []))
            if page_set is not None:
                all_page_sets[store] = page_set
    known = {f"{qmgr}/PS{int(number):02d}" for qmgr, number in numbers}
    for store, needed_by in queues.items():
        if store not in known:
            queue, psid = needed_by[0], int(store[-2:])
            sources.problems.messages.append(
                f"{page_set_places[store]}: queue {queue.key} has no store: its storage class leads to page set {psid},"
                f' which is not described; describe [page_set."{queue.owner}/{psid}"]'
            )
    _check_storage_classes(sources, known)
    return all_page_sets


def _page_set(sources: Sources, qmgr: str, number: str, queues: list[LocalQueue]) -> PageSet | None:
    store = f"{qmgr}/PS{int(number):02d}"
    defined = sources.definitions.objects("page_set", ("QMGR", qmgr)).get(number)
    entry = sources.entries("page_set").get((qmgr, number))
    settings = {**(defined.values if defined else {}), **(entry.values if entry else {})}
    if "pages" not in settings:
        where = entry.where if entry else defined.where if defined else store
        missing = f'{where}: page set {store} has no pages; give pages in [page_set."{qmgr}/{number}"]'
        if entry or queues:
            raise EstateError(missing)
        sources.warnings.append(f"{missing}; it is left out, no queue uses it")
        return None
    wrong = incompatible({attribute: setting.value for attribute, setting in settings.items()})
    if wrong is not None:
        raise EstateError(f"{settings[wrong[0]].where}: {wrong[1]}")
    return PageSet(
        name=store,
        queue_manager=qmgr,
        psid=int(number),
        version=sources.queue_managers[qmgr].version,
        queues=tuple(sorted(queue.name for queue in queues)),
        **{attribute: setting.value for attribute, setting in settings.items()},
    )


def _check_storage_classes(sources: Sources, known: Collection[str]) -> None:
    for (qmgr, _), entry in sources.entries("storage_class").items():
        number = value(entry.values, "page_set")
        if isinstance(number, int) and f"{qmgr}/PS{number:02d}" not in known:
            where = entry.values["page_set"].where
            sources.problems.messages.append(f'{where}: unknown page set; describe [page_set."{qmgr}/{number}"]')


def queue_files(sources: Sources, queues: Iterable[LocalQueue]) -> dict[str, QueueFile]:
    """Return the queue files by store name, from [queue_file] and QLOCAL of distributed queue managers."""
    settings: dict[tuple[str, str], dict[str, SourceValue]] = {}
    for queue in queues:
        if not queue.from_mqsc and (queue.owner, queue.name) not in sources.entries("queue_file"):
            distributed = f'{queue.where}: {queue.owner} is distributed; write [queue_file."{queue.key}"] instead'
            sources.problems.messages.append(distributed)
            continue
        settings[queue.owner, queue.name] = {"max_size": queue.values["max_size"]} if "max_size" in queue.values else {}
    for key, entry in sources.entries("queue_file").items():
        with sources.problems.collect():
            sources.check_qmgr(entry, "distributed")
            settings[key[0], key[1]] = {**settings.get((key[0], key[1]), {}), **entry.values}
    return {
        f"{qmgr}/{queue}": QueueFile(
            name=f"{qmgr}/{queue}",
            queue_manager=qmgr,
            queue=queue,
            version=sources.queue_managers[qmgr].version,
            **{attribute: setting.value for attribute, setting in values.items()},
        )
        for (qmgr, queue), values in settings.items()
    }


def coupling_facilities(sources: Sources, all_structures: Mapping[str, Structure]) -> dict[str, CouplingFacility]:
    """Return the coupling facilities by name, from [coupling_facility] and policies that a structure uses."""
    used = {structure.coupling_facility for structure in all_structures.values()}
    described = {key[0]: entry for key, entry in sources.entries("coupling_facility").items()}
    facilities = {}
    for name in _facility_names(sources):
        if name not in described and name not in used:
            continue
        settings = described[name].values if name in described else {}
        dump_space = settings.get("dump_space") or sources.policies.dump_spaces.get(name)
        on_it = [structure for structure in all_structures.values() if structure.coupling_facility == name]
        facilities[name] = CouplingFacility(
            name=name,
            size=settings["size"].value if "size" in settings else None,
            scm=(settings["scm"].value or None) if "scm" in settings else None,
            cflevel=settings["cflevel"].value if "cflevel" in settings else None,
            dump_space=0 if dump_space is None else dump_space.value,
            others=_others(sources, name, all_structures),
            structures=tuple(sorted(structure.name for structure in on_it)),
            queue_managers=tuple(sorted({qmgr for structure in on_it for qmgr in structure.queue_managers})),
        )
    return facilities


def _others(sources: Sources, facility: str, known: Mapping[str, Structure]) -> dict[str, int]:
    """Return SIZE of the structures that a CFRM policy places on a coupling facility first and that are no stores."""
    watched = {structure.policy_name for structure in known.values()}
    return {
        name: structure.values["size"].value
        for name, structure in sorted(sources.policies.structures.items())
        if name not in watched
        and value(structure.values, "coupling_facility") == facility
        and "size" in structure.values
    }


def rebuild_choices(sources: Sources, all_structures: Mapping[str, Structure]) -> dict[str, tuple[str, ...]]:
    """Return the other coupling facilities of PREFLIST of each structure, by store name, those without any left out."""
    choices = {}
    for store, structure in all_structures.items():
        policy = sources.policies.structures.get(structure.policy_name)
        others = tuple(name for name in (policy.preflist if policy else ()) if name != structure.coupling_facility)
        if others:
            choices[store] = others
    return choices


def uniform_clusters(sources: Sources) -> dict[str, UniformCluster]:
    """Return the uniform clusters by name. Raise EstateError if a coupling facility has the same name."""
    clusters = {}
    for (name,), entry in sources.entries("uniform_cluster").items():
        if name in _facility_names(sources):
            raise EstateError(f"{entry.where}: there is a coupling facility {name} too; their names must differ")
        clusters[name] = UniformCluster(
            name=name, **{attribute: setting.value for attribute, setting in entry.values.items()}
        )
    return clusters


def queue_manager_logs(sources: Sources, files: Mapping[str, QueueFile]) -> dict[str, QueueManagerLog]:
    """Return the log of each queue manager with queue files. EstateError: another store has the name of one."""
    owned: dict[str, list[str]] = {}
    for name, file in sorted(files.items()):
        owned.setdefault(file.queue_manager, []).append(name)
    others = dict.fromkeys(_facility_names(sources), "coupling facility")
    others |= {key[0]: "uniform cluster" for key in sources.entries("uniform_cluster")}
    for qmgr in owned:
        if qmgr in others:
            raise EstateError(
                f"{sources.toml.file}: queue manager {qmgr} has queue files, and there is a {others[qmgr]} {qmgr} too;"
                " expected: names that differ"
            )
    return {qmgr: QueueManagerLog(name=qmgr, queue_files=tuple(names)) for qmgr, names in owned.items()}


def _facility_names(sources: Sources) -> list[str]:
    return sorted({key[0] for key in sources.entries("coupling_facility")} | set(sources.policies.coupling_facilities))


# --- the file ---------------------------------------------------------------------------------------------------------


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
