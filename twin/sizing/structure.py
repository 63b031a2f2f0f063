"""Structures: SIZE for a mix of messages, and number of messages that a SIZE holds.

The arithmetic is that of the twin, `kernels.pools`, `kernels.offload` and `twin.allocation`; docs/storage-model.md
states its sources. 0.75 KB per offloaded message: [IBM: Specifying offload options for shared messages].
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

DOCUMENTED_BYTES = KIB * 3 // 4  # per offloaded message [IBM: Specifying offload options for shared messages]
IN_STRUCTURE, OFFLOADED, DOCUMENTED = "in the structure", "offloaded", "by the document"
_MAX_SIZE = 1 << 60  # bytes: more than any structure


@dataclass(frozen=True, slots=True, kw_only=True)
class StructurePlan:
    """Plan of a structure for a mix."""

    data: str  # place of the data
    ratio: int | None  # elements per entry; None by the document
    entries: int
    elements: int | None  # None by the document
    bytes: int  # in use: 695 per entry and 256 per element
    size: int  # the smallest SIZE with that many of both at the ratio
    size_rounded: int  # in whole MB
    fits: int | None  # messages of the mix in the SIZE asked about


def bare_structure(size: int) -> Structure:
    """Return a structure of that SIZE at CFLEVEL(5) with IBM's default rules, for use without an estate."""
    return Structure(name="/name", queue_sharing_group="", queue_managers=(), size=size, cf_level=5)


def all_offloaded(config: Structure) -> Structure:
    """Return the structure with an offload rule of threshold 0 and size 0, which is allocated at the ratio 1:2."""
    return replace(config, offld1_th=0, offld1_sz=0)


def has_rules(config: Structure) -> bool:
    """Return True if offload rules apply: CFLEVEL(5), and OFFLOAD is not NONE."""
    return config.cf_level >= 5 and config.offload != "NONE"


def elements_of(config: Structure, length: int, *, offloaded: bool) -> int:
    """Return the elements of a message.

    Args:
        config: the structure.
        length: bytes of the message.
        offloaded: its data is offloaded if it may be; else it is in the structure if it may be.

    Raises:
        UsageError: the message is too long for CFLEVEL(3) and below.
    """
    if length > offload.ALWAYS_OFFLOADED:
        if not has_rules(config) and config.cf_level != 4:
            expected = (
                f"at most {offload.ALWAYS_OFFLOADED:,} at CFLEVEL({config.cf_level}), longer ones need CFLEVEL(4)"
            )
            raise UsageError(f"a message of {length:,} bytes: {expected}")
        return offload.OFFLOADED_ELEMENTS if has_rules(config) else offload.DB2_PLACEHOLDER_ELEMENTS
    if offloaded and length > config.offload_min_length:
        return offload.OFFLOADED_ELEMENTS
    return int(pools.elements_of(length))


def elements_of_mix(config: Structure, mix: Mix, *, offloaded: bool) -> int:
    """Return the elements of all messages of a mix. Raise UsageError."""
    return sum(part.count * elements_of(config, part.length, offloaded=offloaded) for part in mix)


def size_for(config: Structure, entries: int, elements: int) -> int:
    """Return the smallest SIZE, bytes, with that many entries and elements at the ratio of the structure."""
    ratio = allocate(config).ratio

    def is_enough(size: int) -> bool:
        has_entries, has_elements = pool_sizes(config, size, ratio)
        return has_entries >= entries and has_elements >= elements

    return bisect_left(range(_MAX_SIZE), True, key=is_enough)


def messages_that_fit(config: Structure, size: int, mix: Mix, *, offloaded: bool) -> int:
    """Return the messages, in the shares of the mix, that an empty structure of that size holds."""
    entries, elements = pool_sizes(config, size, allocate(config).ratio)
    return min(entries, elements * count_of(mix) // elements_of_mix(config, mix, offloaded=offloaded))


def round_up(size: int) -> int:
    """Round a size up to whole MB, the storage increment of a coupling facility [assumed]."""
    return -(-size // MIB) * MIB


def plan_structure(config: Structure, mix: Mix, size: int | None = None) -> tuple[StructurePlan, ...]:
    """Plan a structure for a mix: data in the structure, offloaded, offloaded at the ratio 1:2, and by the document.

    Args:
        config: the structure with ratio, CFLEVEL and SCM; its size is ignored.
        mix: the messages.
        size: bytes of a structure for which `fits` is computed.

    Raises:
        UsageError: the mix has no message, or one that cannot be put.
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
        size_rounded=round_up(least),
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
        size_rounded=round_up(needed),
        fits=None if size is None else size // DOCUMENTED_BYTES,
    )
