"""The stores of an estate, put together attribute by attribute: TOML beats MQSC and CFRM (contract section 7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from twin.estate.attributes import incompatible
from twin.estate.checks import Given, Values
from twin.estate.errors import EstateError, did_you_mean
from twin.estate.model import CouplingFacility, PageSet, QueueFile, Smds, Structure, UniformCluster
from twin.estate.mqsc import DEFAULT_CF_LEVEL
from twin.estate.queues import LocalQueue
from twin.estate.sources import Sources
from twin.units import format_size

TOML_CF_LEVEL = 5  # of a structure that only the TOML file describes: what its default, OFFLOAD(SMDS), needs [seed]
_BELOW_5_WITHOUT_EFFECT = (*(f"offld{n}_{what}" for n in (1, 2, 3) for what in ("th", "sz")), "ds_block", "ds_expand")


def structures(sources: Sources, queues: Mapping[str, list[LocalQueue]]) -> dict[str, Structure]:
    """Every message structure by store name: those of [structure] and those of DEFINE CFSTRUCT, with their data sets.

    `queues`: its shared queues by store name. What a CFRM policy has beyond them is not MQ's, or holds no messages.
    EstateError: an unknown group, coupling facility or queue manager, a structure that queues need but no text gives
    a size, values that contradict each other.
    """
    found: dict[str, Structure] = {}
    for entry in sources.entries("structure").values():
        sources.check_group(entry)
    names = set(sources.entries("structure"))
    for group in sources.groups:
        names |= {(group, name) for name in sources.definitions.of("structure", ("SHARED", group))}
    for group, name in sorted(names):
        store = f"{group}/{name}"
        structure = _structure(sources, group, name, queues.get(store, []))
        if structure is not None:
            found[store] = structure
    _check_smds(sources, found)
    for store, needed_by in queues.items():
        if store not in found:
            queue = needed_by[0]
            define = f"DEFINE CFSTRUCT({store.split('/')[1]})"
            hint = did_you_mean(store, found) or f'; describe [structure."{store}"] or {define}'
            raise EstateError(f"{queue.where}: queue {queue.key} has no store: unknown structure {store}{hint}")
    return found


def _structure(sources: Sources, group: str, name: str, queues: list[LocalQueue]) -> Structure | None:
    store = f"{group}/{name}"
    policy_name = group.ljust(4, "@") + name  # [IBM MQ 9.2 DEFINE CFSTRUCT: padded with @ to four characters]
    policy = sources.policies.structures.get(policy_name)
    defined = sources.definitions.of("structure", ("SHARED", group)).get(name)
    entry = sources.entries("structure").get((group, name))
    given: dict[str, Given] = {
        **(policy.values if policy else {}),
        **(defined.values if defined else {}),
        **(entry.values if entry else {}),
    }
    where = entry.where if entry else defined.where if defined else store
    if "size" not in given:
        missing = (
            f"{where}: structure {store} has no size; import the CFRM policy that has STRUCTURE NAME({policy_name}),"
            f' or give size in [structure."{store}"]'
        )
        if entry or queues:
            raise EstateError(missing)
        sources.warnings.append(f"{missing}; it is left out, no queue uses it")
        return None
    values: dict[str, Any] = {attribute: one.value for attribute, one in given.items()}
    values.setdefault("cf_level", DEFAULT_CF_LEVEL if defined and defined.defined else TOML_CF_LEVEL)
    if values["cf_level"] < 5:
        values.setdefault("offload", "NONE")
        ignored = [given[attribute].where for attribute in _BELOW_5_WITHOUT_EFFECT if attribute in given]
        if ignored:
            sources.warnings.append(f"{ignored[0]}: without effect, {store} is at CFLEVEL({values['cf_level']}), not 5")
    _check_together(sources, where, given, values)
    members = sources.groups[group]
    return Structure(
        name=store,
        queue_sharing_group=group,
        queue_managers=members,
        queues=tuple(sorted(queue.name for queue in queues)),
        smds={qmgr: _smds(sources, group, name, qmgr) for qmgr in members},
        **values,
    )


def _check_together(sources: Sources, where: str, given: Values, values: Mapping[str, Any]) -> None:
    wrong = incompatible(values)
    if wrong is not None:
        attribute, right = wrong
        raise EstateError(f"{given[attribute].where if attribute in given else where}: {right}")
    facility = given.get("coupling_facility")
    if facility is not None and facility.value not in _facility_names(sources):
        known = _facility_names(sources)
        hint = did_you_mean(facility.value, known) or f"; describe [coupling_facility.{facility.value}]"
        raise EstateError(f"{facility.where}: unknown coupling facility {facility.value}{hint}")


def _smds(sources: Sources, group: str, name: str, qmgr: str) -> Smds:
    entry = sources.entries("smds").get((group, name, qmgr))
    if entry is None:
        return Smds()
    values = {attribute: one.value for attribute, one in entry.values.items()}
    most = values.get("max_size")
    if most is not None and most < values["size"]:
        raise EstateError(f"{entry.values['max_size'].where}: must be at least size, {format_size(values['size'])}")
    # No secondary allocation, or one of zero: expansion by about 10 % [param, domain.md section 2]
    return Smds(size=values["size"], secondary=values.get("secondary") or None, max_size=most)


def _check_smds(sources: Sources, found: Mapping[str, Structure]) -> None:
    """Every [smds] table must be of a structure and of a member of its group, and hold a block beside its space map."""
    for (group, name, qmgr), entry in sources.entries("smds").items():
        structure = found.get(f"{group}/{name}")
        if structure is None:
            hint = did_you_mean(f"{group}/{name}", found) or f'; describe [structure."{group}/{name}"]'
            raise EstateError(f"{entry.where}: unknown structure {group}/{name}{hint}")
        if qmgr not in structure.queue_managers:
            members = ", ".join(structure.queue_managers)
            raise EstateError(f"{entry.where}: {qmgr} is not in {group}; its queue managers are {members}")
        if structure.smds[qmgr].size < 2 * structure.ds_block:
            right = f"must be at least two blocks of DSBLOCK, {format_size(2 * structure.ds_block)}"
            raise EstateError(f"{entry.values['size'].where}: {right}")


def page_sets(sources: Sources, queues: Mapping[str, list[LocalQueue]]) -> dict[str, PageSet]:
    """Every page set by store name: those of [page_set], those of DEFINE PSID that have `pages`. EstateError."""
    for entry in sources.entries("page_set").values():
        sources.check_qmgr(entry, "zos")
    for entry in sources.entries("storage_class").values():
        sources.check_qmgr(entry, "zos")
    numbers = set(sources.entries("page_set"))
    for qmgr in sources.queue_managers:
        numbers |= {(qmgr, number) for number in sources.definitions.of("page_set", ("QMGR", qmgr))}
    found: dict[str, PageSet] = {}
    for qmgr, number in sorted(numbers, key=lambda key: (key[0], int(key[1]))):
        store = f"{qmgr}/PS{int(number):02d}"
        page_set = _page_set(sources, qmgr, number, queues.get(store, []))
        if page_set is not None:
            found[store] = page_set
    for store, needed_by in queues.items():
        if store not in found:
            queue, psid = needed_by[0], int(store[-2:])
            raise EstateError(
                f"{queue.where}: queue {queue.key} has no store: its storage class leads to page set {psid},"
                f' which is not described; describe [page_set."{queue.owner}/{psid}"]'
            )
    _check_storage_classes(sources, found)
    return found


def _page_set(sources: Sources, qmgr: str, number: str, queues: list[LocalQueue]) -> PageSet | None:
    store = f"{qmgr}/PS{int(number):02d}"
    defined = sources.definitions.of("page_set", ("QMGR", qmgr)).get(number)
    entry = sources.entries("page_set").get((qmgr, number))
    given = {**(defined.values if defined else {}), **(entry.values if entry else {})}
    if "pages" not in given:
        where = entry.where if entry else defined.where if defined else store
        missing = f'{where}: page set {store} has no pages; give pages in [page_set."{qmgr}/{number}"]'
        if entry or queues:
            raise EstateError(missing)
        sources.warnings.append(f"{missing}; it is left out, no queue uses it")
        return None
    wrong = incompatible({attribute: one.value for attribute, one in given.items()})
    if wrong is not None:
        raise EstateError(f"{given[wrong[0]].where}: {wrong[1]}")
    return PageSet(
        name=store,
        queue_manager=qmgr,
        psid=int(number),
        version=sources.queue_managers[qmgr].version,
        queues=tuple(sorted(queue.name for queue in queues)),
        **{attribute: one.value for attribute, one in given.items()},
    )


def _check_storage_classes(sources: Sources, found: Mapping[str, PageSet]) -> None:
    for (qmgr, _), entry in sources.entries("storage_class").items():
        number = entry.values["page_set"].value
        if f"{qmgr}/PS{number:02d}" not in found:
            where = entry.values["page_set"].where
            raise EstateError(f'{where}: unknown page set; describe [page_set."{qmgr}/{number}"]')


def queue_files(sources: Sources, queues: Iterable[LocalQueue]) -> dict[str, QueueFile]:
    """The file of every queue of a distributed queue manager.

    Of [queue_file], and of each QLOCAL it defines. EstateError.
    """
    given: dict[tuple[str, str], dict[str, Given]] = {}
    for queue in queues:
        if not queue.from_mqsc:
            raise EstateError(f'{queue.where}: {queue.owner} is distributed; write [queue_file."{queue.key}"] instead')
        given[queue.owner, queue.name] = {"max_size": queue.values["max_size"]} if "max_size" in queue.values else {}
    for key, entry in sources.entries("queue_file").items():
        sources.check_qmgr(entry, "distributed")
        given[key[0], key[1]] = {**given.get((key[0], key[1]), {}), **entry.values}
    return {
        f"{qmgr}/{queue}": QueueFile(
            name=f"{qmgr}/{queue}",
            queue_manager=qmgr,
            queue=queue,
            version=sources.queue_managers[qmgr].version,
            **{attribute: one.value for attribute, one in values.items()},
        )
        for (qmgr, queue), values in given.items()
    }


def coupling_facilities(sources: Sources, found: Mapping[str, Structure]) -> dict[str, CouplingFacility]:
    """Every coupling facility of [coupling_facility], and of the policies those that one of our structures is on."""
    used = {structure.coupling_facility for structure in found.values()}
    described = {key[0]: entry for key, entry in sources.entries("coupling_facility").items()}
    facilities = {}
    for name in _facility_names(sources):
        if name not in described and name not in used:
            continue
        given = described[name].values if name in described else {}
        on_it = [structure for structure in found.values() if structure.coupling_facility == name]
        facilities[name] = CouplingFacility(
            name=name,
            size=given["size"].value if "size" in given else None,
            scm=(given["scm"].value or None) if "scm" in given else None,
            structures=tuple(sorted(structure.name for structure in on_it)),
            queue_managers=tuple(sorted({qmgr for structure in on_it for qmgr in structure.queue_managers})),
        )
    return facilities


def uniform_clusters(sources: Sources) -> dict[str, UniformCluster]:
    """Every uniform cluster. EstateError where a coupling facility has the same name."""
    clusters = {}
    for (name,), entry in sources.entries("uniform_cluster").items():
        if name in _facility_names(sources):
            raise EstateError(f"{entry.where}: there is a coupling facility {name} too; their names must differ")
        clusters[name] = UniformCluster(name=name, **{attribute: one.value for attribute, one in entry.values.items()})
    return clusters


def _facility_names(sources: Sources) -> list[str]:
    return sorted({key[0] for key in sources.entries("coupling_facility")} | set(sources.policies.coupling_facilities))
