"""How a structure's attributes change: ALTER CFSTRUCT, SETXCF START,ALTER, REBUILD, a changed estate.

Pure functions: each returns what the structure is afterwards, or None where the change is refused; the twin assigns it.
Sources: docs/storage-model.md, "Alter and rebuild".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np

from kernels import layout
from kernels.clock import SECOND
from kernels.pools import AUTO_ALTER_GROWTH_PCT
from kernels.ticks import ALTER_TICKS
from twin.capacity.structures import Allocation, Usage, allocate, pool_sizes
from twin.estate import SMDS_MAX_SIZE, EstateError, Smds, Structure, parse_attributes
from twin.stores.kind import copied_params

_POLICY = frozenset({"init_size", "scm_max_size", "coupling_facility"})  # taken by REBUILD only
# Of the CFRM policy in the estate: in effect from the next allocation on [assumed: not FULLTHRESHOLD and ALLOWAUTOALT]
_PENDING = frozenset({"size", *_POLICY})
_OFFLOADS = {"NONE": layout.OFFLOAD_NONE, "SMDS": layout.OFFLOAD_SMDS, "DB2": layout.OFFLOAD_DB2}
SEEN_AFTER_US = 180 * SECOND  # at FULLTHRESHOLD, after which a measurement would show an automatic alter [assumed]
IN_LINE_PCT = 5  # percent of one pool left when the other runs out, up to which the ratio stays [assumed]
_NO_CHANGES: Mapping[str, Any] = {}
_NOT_DESCRIBED = Smds()


class Altered(NamedTuple):
    """A structure after a change. may_expand: its data sets try to expand again."""

    config: Structure
    allocation: Allocation
    may_expand: bool = False


def with_attributes(config: Structure, attributes: dict[str, Any]) -> Structure:
    """Return `config` with attributes that may change, as plain values."""
    datasets = {qmgr: Smds(**content) for qmgr, content in attributes["smds"].items()}
    return replace(config, **(attributes | {"smds": {**config.smds, **datasets}}))


def structure_params(config: Structure, allocation: Allocation) -> dict[str, int | list[int]]:
    """Return the fields of PARAMS that follow from a structure's attributes and allocation."""
    ents_max, elems_max = pool_sizes(config, *allocation)
    return copied_params(config) | {
        "kind": layout.STRUCTURE,
        "size_now": allocation.size,
        "ents_max": ents_max,
        "elems_max": elems_max,
        "offld_th": [rule.th for rule in config.rules],
        "offld_sz": [layout.RULE_OFF if rule.off else rule.sz for rule in config.rules],
        "offload": _OFFLOADS[config.offload],
    }


def alter(config: Structure, allocation: Allocation, usage: Usage, attributes: dict[str, Any]) -> Altered | None:
    """Return a structure after ALTER CFSTRUCT or SETXCF START,ALTER (`size`), which is taken or refused as a whole.

    The caller refuses a `size` while data is in SCM; the other attributes are MQ's definition, which may change. A size
    below `usage`, what it holds, is refused.
    """
    changes = _parse(config, "ALTER", attributes)
    if changes is None:
        return None
    size = changes.pop("size", None)
    if size is not None and not _fits(config, Allocation(size, allocation.ratio), usage):
        return None
    if _POLICY & changes.keys() or _reblocks_data(config, usage, changes):
        return None
    altered = allocation if size is None else allocation._replace(size=size)
    return Altered(replace(config, **changes), altered, bool(changes.get("ds_expand")))


def rebuild(
    config: Structure, usage: Usage, attributes: dict[str, Any], pending: Mapping[str, Any] = _NO_CHANGES
) -> Altered | None:
    """Return a structure after SETXCF START,REBUILD under a new policy: allocated anew, at INITSIZE, else SIZE.
    `pending`: changes of the policy that waited for it; `attributes` override them.
    """
    changes = _parse(config, "REBUILD", attributes)
    if changes is None:
        return None
    rebuilt = replace(config, **(dict(pending) | changes))
    if (rebuilt.init_size or 0) > rebuilt.size or _reblocks_data(config, usage, changes):
        return None
    return Altered(rebuilt, allocate(rebuilt), bool(changes.get("ds_expand")))


def adopt(
    config: Structure, usage: Usage, before: dict[str, Any], described: dict[str, Any], pending: Mapping[str, Any]
) -> tuple[Structure, dict[str, Any]]:
    """Return a structure with what the estate says differently since the store was last opened, and what waits.

    The rest stays as events left it. A changed DSBLOCK waits until the data sets are empty, as in the real system:
    `described`, which the header keeps, gets the old one, and the next opening asks again. A changed CFRM policy waits
    for a REBUILD, as a start of the job rebuilds nothing [IBM: How storage class memory works with IBM MQ for z/OS]. A
    data set whose queue manager has left the estate stays as it was: what it holds is there still.
    """
    if _reblocks_data(config, usage, {"ds_block": described["ds_block"]}):
        described["ds_block"] = before["ds_block"]
    changes = {name: value for name, value in described.items() if name != "smds" and before.get(name) != value}
    waiting = dict(pending) | {name: value for name, value in changes.items() if name in _PENDING}
    waiting = {name: value for name, value in sorted(waiting.items()) if getattr(config, name) != value}
    datasets = {qmgr: Smds(**content) for qmgr, content in described["smds"].items()}
    in_effect = {name: value for name, value in changes.items() if name not in _PENDING}
    return replace(config, **in_effect, smds={**config.smds, **datasets}), waiting


def assumed_sets(config: Structure, qmgrs: Sequence[str]) -> set[str]:
    """Return the queue managers whose data set is not described, so that its size is assumed."""
    return {qmgr for qmgr in qmgrs if config.smds.get(qmgr, _NOT_DESCRIBED) == _NOT_DESCRIBED}


def describe_dataset(dataset: np.void, config: Structure, qmgr: str) -> None:
    """Fill a new row of DATASET from the estate."""
    dataset["last_full"] = layout.NEVER
    dataset["filling"] = layout.NONE
    dataset["armed"] = 0xFF
    resize_dataset(dataset, config, qmgr)


def resize_dataset(dataset: np.void, config: Structure, qmgr: str) -> None:
    """Give a row of DATASET the size that the estate describes."""
    dataset["size"] = config.smds.get(qmgr, _NOT_DESCRIBED).size
    dataset["status"] = layout.NORMAL
    reblock_dataset(dataset, config, qmgr)


def reblock_dataset(dataset: np.void, config: Structure, qmgr: str) -> None:
    """Count a row of DATASET in blocks of the structure's DSBLOCK; it keeps its bytes."""
    described = config.smds.get(qmgr, _NOT_DESCRIBED)
    dataset["blocks_total"] = dataset["size"] // config.ds_block
    dataset["limit"] = (described.max_size or SMDS_MAX_SIZE) // config.ds_block
    dataset["limited"] = described.max_size is not None
    dataset["extent"] = max(1, described.secondary // config.ds_block) if described.secondary else 0


def _fits(config: Structure, allocation: Allocation, usage: Usage) -> bool:
    """Return True if an allocation is between what is used (at least one entry) and SIZE."""
    entries, elements = pool_sizes(config, *allocation)
    return entries >= max(1, usage.entries) and elements >= usage.elements and allocation.size <= config.size


def _reblocks_data(config: Structure, usage: Usage, changes: dict[str, Any]) -> bool:
    """Return True if the changes have a new DSBLOCK while a data set holds messages."""
    return usage.holds_data and changes.get("ds_block", config.ds_block) != config.ds_block


def _parse(config: Structure, op: Literal["ALTER", "REBUILD"], attributes: dict[str, Any]) -> dict[str, Any] | None:
    """Return the attributes as values; None where input checks let through what this structure cannot take."""
    try:
        return dict(parse_attributes(config, op, attributes))
    except EstateError:
        return None


# --- ALLOWAUTOALT(YES): what z/OS alters of a structure that fills ----------------------------------------------------

# [published] z/OS, Setting Up a Sysplex: automatic alter from FULLTHRESHOLD on; the ratio stays where it is "in line"
# with the one in use (Conditions preventing a system-initiated alter). [assumed] a sample every 60 s of event time, to
# the ratio in use, then by 10 % up to SIZE; in line is what servers of CICS coupling facility data tables take so,
# ALTERELEMPC(5) and ALTERENTRYPC(5).


def count_samples(before: int, tick: int) -> int:
    """Return how many times the structure is sampled after the tick `before`, up to `tick`."""
    return tick // ALTER_TICKS - before // ALTER_TICKS


def is_at_threshold(config: Structure, allocation: Allocation, usage: Usage) -> bool:
    """Return True if entries or elements in use reach FULLTHRESHOLD of an allocation (0: never)."""
    threshold = config.full_threshold
    if threshold == 0:
        return False
    ents_max, elems_max = pool_sizes(config, *allocation)
    return usage.entries * 100 >= threshold * ents_max or usage.elements * 100 >= threshold * elems_max


def _next_ratio(config: Structure, allocation: Allocation, usage: Usage) -> Fraction:
    """Return the ratio in use, or the allocated one where both are in line: z/OS alters no ratio for a small drift."""
    ents_max, elems_max = pool_sizes(config, *allocation)
    less, more = sorted((usage.entries * elems_max, usage.elements * ents_max))  # shares in use, times both totals
    if less == 0 or (more - less) * 100 <= IN_LINE_PCT * more:
        return Fraction(allocation.ratio)
    return Fraction(usage.elements, usage.entries)


def can_relieve(config: Structure, allocation: Allocation, usage: Usage) -> bool:
    """Return True if automatic alter takes what is in use below FULLTHRESHOLD, by ratio and SIZE, in time."""
    largest = Allocation(max(allocation.size, config.size), _next_ratio(config, allocation, usage))
    return not is_at_threshold(config, largest, usage)


def next_allocation(config: Structure, allocation: Allocation, usage: Usage) -> Allocation:
    """Return the allocation that automatic alter gives a structure at its threshold."""
    ratio = _next_ratio(config, allocation, usage)
    size = allocation.size
    if is_at_threshold(config, Allocation(size, ratio), usage):
        size = max(size, min(config.size, size + size * AUTO_ALTER_GROWTH_PCT // 100))
    return Allocation(size, ratio)
