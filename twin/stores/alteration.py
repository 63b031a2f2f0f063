"""What changes a structure's attributes: allocation, ALTER CFSTRUCT, SETXCF START,ALTER, REBUILD, a changed estate.

Sources: contract section 7 (size now, refusals, REBUILD); domain.md section 1 (ratios), 2 (data sets) and 3 (SCM).
Whether the structure can be altered at all, and automatic alter: `twin.stores.auto_alter`.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from kernels import layout, pools
from twin.allocation import allocate, pool_sizes
from twin.estate import SMDS_MAX_SIZE, EstateError, Smds, Structure, parse_attributes
from twin.stores import storage_class_memory

if TYPE_CHECKING:
    from twin.stores.structure import StructureTwin

_IDENTITY = frozenset({"name", "queue_sharing_group", "queue_managers", "queues"})
_POLICY = frozenset({"init_size", "scm_max_size", "coupling_facility"})  # taken by REBUILD only
_OFFLOADS = {"NONE": layout.OFFLOAD_NONE, "SMDS": layout.OFFLOAD_SMDS, "DB2": layout.OFFLOAD_DB2}


def attributes_of(config: Structure) -> dict[str, Any]:
    """What may change about a structure, as plain values."""
    return {name: value for name, value in asdict(config).items() if name not in _IDENTITY}


def with_attributes(config: Structure, attributes: dict[str, Any]) -> Structure:
    """`config` with attributes as `attributes_of` gives them."""
    datasets = {qmgr: Smds(**content) for qmgr, content in attributes["smds"].items()}
    return replace(config, **(attributes | {"smds": {**config.smds, **datasets}}))


def set_params(twin: StructureTwin) -> None:
    """Write the attributes as they are now where kernels read them."""
    config = twin.config
    params = twin.tables.store.params[0]
    params["kind"] = layout.STRUCTURE
    params["size_now"] = twin.size_now
    params["ents_max"], params["elems_max"] = pool_sizes(config, twin.size_now, twin.ratio)
    params["offld_th"] = [rule.th for rule in config.rules]
    params["offld_sz"] = [layout.RULE_OFF if rule.off else rule.sz for rule in config.rules]
    params["offload"] = _OFFLOADS[config.offload]
    for name in ("ds_block", "offload_min_length", "smds_prefix", "full_threshold", "cf_level", "ds_expand"):
        params[name] = getattr(config, name)
    storage_class_memory.set_params(twin)


def describe_dataset(dataset: Any, config: Structure, qmgr: str) -> None:
    """Fill a new row of DATASET from the estate."""
    dataset["last_full"] = layout.NEVER
    dataset["filling"] = layout.NONE
    dataset["armed"] = 0xFF
    _resize_dataset(dataset, config, qmgr)


def _resize_dataset(dataset: Any, config: Structure, qmgr: str) -> None:
    """Give a data set the size the estate describes."""
    dataset["size"] = config.smds.get(qmgr, Smds()).size
    dataset["blocks_total"] = dataset["size"] // config.ds_block
    dataset["status"] = layout.NORMAL
    _limit_dataset(dataset, config, qmgr)


def _limit_dataset(dataset: Any, config: Structure, qmgr: str) -> None:
    described = config.smds.get(qmgr, Smds())
    dataset["limit"] = (described.max_size or SMDS_MAX_SIZE) // config.ds_block
    dataset["limited"] = described.max_size is not None
    dataset["extent"] = max(1, described.secondary // config.ds_block) if described.secondary else 0


def alter(twin: StructureTwin, attributes: dict[str, Any]) -> None:
    """ALTER CFSTRUCT or SETXCF START,ALTER: applied whole, or refused whole and counted."""
    changes = _checked(twin, "ALTER", attributes)
    if changes is None:
        return
    size = changes.pop("size", None)
    if (size is not None and not _takes_size(twin, size)) or _POLICY & changes.keys() or _keeps_block(twin, changes):
        _refuse(twin)
        return
    if size is not None:
        twin.size_now = size
    _take(twin, changes)


def _takes_size(twin: StructureTwin, size: int) -> bool:
    """Whether SETXCF START,ALTER to `size` is between what is used (at least one entry) and SIZE."""
    entries, elements = pool_sizes(twin.config, size, twin.ratio)
    store = twin.tables.store
    enough = entries >= max(1, pools.entries_in_use(store)) and elements >= pools.elements_in_use(store)
    return bool(enough) and size <= twin.config.size


def _keeps_block(twin: StructureTwin, changes: dict[str, Any]) -> bool:
    """Whether a new DSBLOCK among the changes cannot be taken: a data set holds messages."""
    block = changes.get("ds_block", twin.config.ds_block)
    return bool(block != twin.config.ds_block and twin.tables.store.datasets["messages"].any())


def rebuild(twin: StructureTwin, attributes: dict[str, Any]) -> None:
    """SETXCF START,REBUILD under a new policy: pools are allocated anew, at INITSIZE, else SIZE."""
    changes = _checked(twin, "REBUILD", attributes)
    if changes is None:
        return
    config = replace(twin.config, **changes)
    if (config.init_size or 0) > config.size or _keeps_block(twin, changes):
        _refuse(twin)
        return
    twin.size_now, twin.ratio = allocate(config)
    _take(twin, changes)


def _checked(twin: StructureTwin, op: str, attributes: dict[str, Any]) -> dict[str, Any] | None:
    """The attributes as values. What input checks let through but this structure cannot take is refused."""
    try:
        return dict(parse_attributes(twin.config, op, attributes))  # type: ignore[arg-type]  # ALTER or REBUILD
    except EstateError:
        _refuse(twin)
        return None


def _refuse(twin: StructureTwin) -> None:
    twin.tables.store.scalars["refused_alters"] += 1


def _take(twin: StructureTwin, changes: dict[str, Any]) -> None:
    reblocked = changes.get("ds_block", twin.config.ds_block) != twin.config.ds_block
    twin.config = replace(twin.config, **changes)
    if reblocked:
        _reblock_datasets(twin)
    if changes.get("ds_expand"):
        twin.tables.store.datasets["status"] = layout.NORMAL
    set_params(twin)


def _reblock_datasets(twin: StructureTwin) -> None:
    """Count the data sets in blocks of the new DSBLOCK; they keep their bytes."""
    for row, qmgr in enumerate(twin.qmgrs):
        dataset = twin.tables.store.datasets[row]
        dataset["blocks_total"] = dataset["size"] // twin.config.ds_block
        _limit_dataset(dataset, twin.config, qmgr)


def adopt(twin: StructureTwin, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Take over what the estate says differently since the store was last opened; the rest stays as events left it.

    A changed DSBLOCK waits until the data sets are empty, as it would in the real system: `now`, which the header
    keeps, gets the old one, and the next opening asks again.
    """
    if _keeps_block(twin, {"ds_block": now["ds_block"]}):
        now["ds_block"] = before["ds_block"]
    changed = {name: value for name, value in now.items() if name != "smds" and before.get(name) != value}
    datasets = twin.tables.store.datasets
    described = {qmgr: Smds(**content) for qmgr, content in now["smds"].items()}
    reblocked = changed.get("ds_block", twin.config.ds_block) != twin.config.ds_block
    twin.config = replace(twin.config, **changed, smds=described)
    if reblocked:
        _reblock_datasets(twin)
    if {"size", "init_size"} & changed.keys():
        twin.size_now, twin.ratio = allocate(twin.config)
    for row, qmgr in enumerate(twin.qmgrs):
        if before["smds"].get(qmgr) != now["smds"].get(qmgr):
            _resize_dataset(datasets[row], twin.config, qmgr)
