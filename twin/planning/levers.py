"""Changes of a store that an administrator can make: of its sizes, and of what needs no storage.

A setting is an attribute as in the estate; `smds.QM01.max_size` is that of a data set.
`twin.planning.advise` searches among them.
"""

from __future__ import annotations

from collections.abc import Mapping

from twin.capacity.structures import SOONER_TH, has_rules, offloads_all_by, with_all_offloaded_above
from twin.conditions import Pool, Resource
from twin.estate import CouplingFacility, Estate, MessageStoreConfig, PageSet, Smds, Structure
from twin.estate.model import PRESTAGES_ABOVE_PCT
from twin.estate.settings import DataSetSetting, Settings
from twin.stores.message_store import MessageStore
from twin.units import MIB


def sizes(twin: MessageStore) -> Mapping[str, int]:
    """Return the sizes that can be changed, by setting: bytes, or pages of 4 KB.

    Of a data set or a page set that expands it is what its volumes hold; without such a limit it has none.
    """
    config = twin.config
    if isinstance(config, Structure):
        return _structure_sizes(twin, config)
    if isinstance(config, PageSet):
        if not _expands(config):
            return {"pages": config.pages}
        return {} if config.max_pages is None else {"max_pages": config.max_pages}
    return {} if config.max_size is None else {"max_size": int(config.max_size)}


def _structure_sizes(twin: MessageStore, config: Structure) -> dict[str, int]:
    values = {"size": config.size}
    if config.scm_max_size:
        values["scm_max_size"] = config.scm_max_size
    datasets = twin.tables.store.datasets
    for row, qmgr in enumerate(twin.qmgrs):
        if config.offload != "SMDS" or qmgr not in config.queue_managers:
            continue
        described = config.smds.get(qmgr, Smds())
        if not config.ds_expand:
            values[str(DataSetSetting(qmgr, "size"))] = max(int(datasets[row]["size"]), described.size)
        elif described.max_size is not None:
            values[str(DataSetSetting(qmgr, "max_size"))] = described.max_size
    return values


def with_size(config: MessageStoreConfig, settings: Settings, name: str, value: int) -> Settings:
    """Return settings of a store with one more. SIZE takes INITSIZE along: a rebuild allocates the latter."""
    more: Settings = {name: value}
    if isinstance(config, Structure):
        more |= _with_size_of_structure(config, name, value)
    elif isinstance(config, PageSet):
        if name == "max_pages" and value < config.pages:
            more["pages"] = value
        if name == "pages" and value > (config.max_pages or value):
            more["max_pages"] = value
    elif name == "max_size" and value > (config.file_system_size or value):
        more["file_system_size"] = value
    return {**settings, **more}


def _with_size_of_structure(config: Structure, name: str, value: int) -> Settings:
    """Return what goes along with a size of a structure or of one of its data sets."""
    if name == "size" and config.init_size is not None:
        return {"init_size": value}
    if (dataset := DataSetSetting.parse(name)) is not None:
        described = config.smds.get(dataset.qmgr, Smds())
        is_maximum = dataset.attribute == "max_size"
        if value < described.size if is_maximum else value > (described.max_size or value):
            return {_other(dataset): value}
    return {}


def without_size(settings: Settings, name: str) -> Settings:
    """Return settings without a size, and without what went along with it."""
    along = {"size": "init_size", "pages": "max_pages", "max_pages": "pages", "max_size": "file_system_size"}
    dataset = DataSetSetting.parse(name)
    left_out = {name, along.get(name) if dataset is None else _other(dataset)}
    return {key: value for key, value in settings.items() if key not in left_out}


def _other(dataset: DataSetSetting) -> str:
    """Return the setting of a data set that goes along with its size or its maximum."""
    return str(dataset._replace(attribute="max_size" if dataset.attribute == "size" else "size"))


def size_of(twin: MessageStore, resource: str | None) -> str | None:
    """Return the setting that makes a resource larger; None where there is none."""
    if resource is None:
        return None
    known, (pool, owner) = sizes(twin), Resource.parse(resource)
    names = {
        Pool.SMDS: [str(DataSetSetting(owner, attribute)) for attribute in ("max_size", "size")],
        Pool.PAGES: ["max_pages", "pages"],
        Pool.ENTRIES: ["size"],
        Pool.ELEMENTS: ["size"],
        Pool.SCM: ["scm_max_size"],
        Pool.FILE: ["max_size"],
    }.get(Pool(pool), [])
    return next((name for name in names if name in known or name == "scm_max_size"), None)


def beginnings(twin: MessageStore, estate: Estate) -> list[tuple[str, Settings]]:
    """Return the changes that a plan may begin with, by title: those that need no more storage first."""
    config = twin.config
    changes: list[tuple[str, Settings]] = []
    if isinstance(config, Structure):
        if has_rules(config) and not offloads_all_by(config, SOONER_TH):
            changes.append(("offload sooner", offload_above(config, SOONER_TH)))
        if config.offload == "SMDS" and not config.ds_expand:
            changes.append(("let data sets expand", {"ds_expand": True}))
        scm = _free_scm(config, estate)
        if scm:
            changes.append(("storage class memory", _with_scm(config, scm)))
    if isinstance(config, PageSet) and not _expands(config):
        changes.append(("let it expand", {"expand": "SYSTEM"}))
    return [*changes, ("larger", {})]


def offload_above(config: Structure, threshold: int) -> Settings:
    """Return all six offload values with which all data is offloaded above a threshold, percent."""
    rules = with_all_offloaded_above(config, threshold)
    return {f"offld{rule.number}_{name}": value for rule in rules for name, value in (("th", rule.th), ("sz", rule.sz))}


def _with_scm(config: Structure, scm: int) -> Settings:
    """Return storage class memory and what goes with it [IBM: How storage class memory works].

    What has data in it is not altered, and usage stays at 90 %, so a rule from there on would never fire.
    """
    settings: Settings = {"scm_max_size": scm}
    if config.allow_auto_alter:
        settings["allow_auto_alter"] = False
    if has_rules(config) and any(not rule.off and rule.th >= PRESTAGES_ABOVE_PCT for rule in config.rules):
        settings |= offload_above(config, SOONER_TH)
    return settings


def _free_scm(config: Structure, estate: Estate) -> int:
    """Return the SCM that a structure without any may get, bytes in whole MB: its coupling facility has it to spare."""
    facility = estate.stores.get(config.coupling_facility or "")
    if config.scm_max_size is not None or not isinstance(facility, CouplingFacility) or not facility.scm:
        return 0
    others = (estate.stores[name] for name in facility.structures)
    in_use = sum(store.scm_max_size or 0 for store in others if isinstance(store, Structure))
    return max(0, facility.scm - in_use) // MIB * MIB


def _expands(config: PageSet) -> bool:
    return config.expand == "SYSTEM" or (config.expand == "USER" and bool(config.secondary_pages))
