"""Structures: SIZE for so many messages, and how many messages a SIZE holds.

Sources: domain.md section 1 (entries, elements, ratios); *Specifying offload options for shared messages* (0.75 KB an
offloaded message). The arithmetic is that of the twin: `kernels.pools`, `kernels.offload`, `twin.allocation`.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace

from kernels import offload, pools
from twin.allocation import allocate, pool_sizes
from twin.errors import UsageError
from twin.estate import Structure
from twin.sizing.mix import Mix, count_of
from twin.units import KIB, MIB

DOCUMENTED_BYTES = KIB * 3 // 4  # 0.75 KB "still" in the structure [seed, Selecting which shared messages ...]
IN_STRUCTURE, OFFLOADED, DOCUMENTED = "in the structure", "offloaded", "by the document"
_LARGEST = 1 << 60  # bytes: more than any structure


@dataclass(frozen=True, slots=True, kw_only=True)
class StructurePlan:
    """What a mix needs where its data stand as `data` says. `ratio`, `elements`: None in the documents' own figure.

    bytes: 695 an entry and 256 an element, those in use; size: the least SIZE with so many of both at the ratio;
    size_rounded: in whole MB; fits: messages of the mix that the SIZE given holds, None where none was given.
    """

    data: str
    ratio: int | None
    entries: int
    elements: int | None
    bytes: int
    size: int
    size_rounded: int
    fits: int | None


def bare_structure(size: int) -> Structure:
    """A structure of that SIZE at CFLEVEL(5) with IBM's default rules, where no estate describes one."""
    return Structure(name="/name", queue_sharing_group="", queue_managers=(), size=size, cf_level=5)


def all_offloaded(config: Structure) -> Structure:
    """The structure with a rule of threshold 0 and size 0, which gives the ratio 1:2 at allocation."""
    return replace(config, offld1_th=0, offld1_sz=0)


def has_rules(config: Structure) -> bool:
    """Whether offload rules work: CFLEVEL(5), and OFFLOAD is not NONE."""
    return config.cf_level >= 5 and config.offload != "NONE"


def elements_of(config: Structure, length: int, *, offloaded: bool) -> int:
    """Elements of a message of `length` bytes whose data stand in the structure as far as they may, or are offloaded.

    UsageError where CFLEVEL(3) and below cannot hold it.
    """
    if length > offload.ALWAYS_OFFLOADED:
        if not has_rules(config) and config.cf_level != 4:
            right = f"at most {offload.ALWAYS_OFFLOADED:,} at CFLEVEL({config.cf_level}), longer ones need CFLEVEL(4)"
            raise UsageError(f"a message of {length:,} bytes: {right}")
        return offload.OFFLOADED_ELEMENTS if has_rules(config) else offload.DB2_PLACEHOLDER_ELEMENTS
    if offloaded and length > config.offload_min_length:
        return offload.OFFLOADED_ELEMENTS
    return int(pools.elements_of(length))


def elements_of_mix(config: Structure, mix: Mix, *, offloaded: bool) -> int:
    """Elements of all messages of a mix. UsageError."""
    return sum(one.count * elements_of(config, one.length, offloaded=offloaded) for one in mix)


def size_for(config: Structure, entries: int, elements: int) -> int:
    """The least SIZE, bytes, that has so many entries and elements at the ratio of the structure's allocation."""
    ratio = allocate(config).ratio

    def enough(size: int) -> bool:
        has_entries, has_elements = pool_sizes(config, size, ratio)
        return has_entries >= entries and has_elements >= elements

    return bisect_left(range(_LARGEST), True, key=enough)


def messages_that_fit(config: Structure, size: int, mix: Mix, *, offloaded: bool) -> int:
    """Messages of the mix, in its shares, that an empty structure of that size takes before entries or elements end."""
    entries, elements = pool_sizes(config, size, allocate(config).ratio)
    return min(entries, elements * count_of(mix) // elements_of_mix(config, mix, offloaded=offloaded))


def rounded(size: int) -> int:
    """A size in whole MB, rounded up: what an administrator writes, and a CF's increment of storage [param]."""
    return -(-size // MIB) * MIB


def plan_structure(config: Structure, mix: Mix, size: int | None = None) -> tuple[StructurePlan, ...]:
    """What the mix needs in the structure, offloaded, offloaded at the ratio 1:2, and by the documents' 0.75 KB.

    `config` gives ratio, CFLEVEL and SCM, not the size; `size`, bytes: also say how many messages it holds.
    UsageError where there is no message, or one that cannot be put.
    """
    plans = [_plan(config, mix, size, offloaded=False)]
    if has_rules(config):
        plans.append(_plan(config, mix, size, offloaded=True))
        if allocate(config).ratio != pools.RATIO_ALL_OFFLOADED:
            plans.append(_plan(all_offloaded(config), mix, size, offloaded=True))
        plans.append(_documented(mix, size))
    return tuple(plans)


def _plan(config: Structure, mix: Mix, size: int | None, *, offloaded: bool) -> StructurePlan:
    entries = count_of(mix)
    elements = elements_of_mix(config, mix, offloaded=offloaded)
    least = size_for(config, entries, elements)
    return StructurePlan(
        data=OFFLOADED if offloaded else IN_STRUCTURE,
        ratio=int(allocate(config).ratio),
        entries=entries,
        elements=elements,
        bytes=pools.ENTRY_BYTES * entries + pools.ELEMENT_BYTES * elements,
        size=least,
        size_rounded=rounded(least),
        fits=None if size is None else messages_that_fit(config, size, mix, offloaded=offloaded),
    )


def _documented(mix: Mix, size: int | None) -> StructurePlan:
    entries = count_of(mix)
    needed = entries * DOCUMENTED_BYTES
    return StructurePlan(
        data=DOCUMENTED,
        ratio=None,
        entries=entries,
        elements=None,
        bytes=needed,
        size=needed,
        size_rounded=rounded(needed),
        fits=None if size is None else size // DOCUMENTED_BYTES,
    )
