"""Structures: SIZE for a mix of messages, and number of messages that a SIZE holds.

The arithmetic is that of the twin, `kernels.pools`, `kernels.offload` and `twin.capacity.structures`;
docs/storage-model.md states its sources. 0.75 KB per offloaded message: [IBM: Specifying offload options for shared
messages].
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import pairwise

from kernels import offload, pools
from twin.capacity.statements import alter_rules, rebuild
from twin.capacity.structures import allocate, has_rules, pool_sizes, with_all_offloaded_above
from twin.errors import UsageError
from twin.estate import Structure
from twin.sizing.mix import Mix, count_of
from twin.units import KIB, MIB

DOCUMENTED_BYTES = KIB * 3 // 4  # per offloaded message [IBM: Specifying offload options for shared messages]
IN_STRUCTURE, OFFLOADED, DOCUMENTED = "in the structure", "offloaded", "by the document"
BY_RULES = "by its rules"
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
    fits_initially: int | None = None  # the same in INITSIZE, where it is below SIZE


def bare_structure(size: int) -> Structure:
    """Return a structure of that SIZE at CFLEVEL(5) with IBM's default rules, for use without an estate."""
    return Structure(name="/NAME", queue_sharing_group="", queue_managers=(), size=size, cf_level=5)


def all_offloaded(config: Structure) -> Structure:
    """Return the structure with an offload rule of threshold 0 and size 0, which is allocated at the ratio 1:2."""
    return replace(config, offld1_th=0, offld1_sz=0)


def offload_all_commands(config: Structure) -> str:
    """Return the commands that offload all data from now on and allocate the structure at the ratio 1:2."""
    alter = alter_rules(config, with_all_offloaded_above(config, 0))
    return f"{alter}, then {rebuild(config.policy_name)}"


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
            raise UsageError(
                f"a message of {length:,} bytes; expected: at most {offload.ALWAYS_OFFLOADED:,} at"
                f" CFLEVEL({config.cf_level}), longer ones need CFLEVEL(4)"
            )
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


def fill_by_rules(config: Structure, size: int, mix: Mix, limit: float = math.inf) -> tuple[float, float]:
    """Return (messages, elements) when an empty structure has taken messages of the mix until its first 2192.

    Each offload rule works from its threshold on; between two thresholds the mix takes entries and elements evenly.
    Data sets have room.

    Args:
        config: the structure, with its rules.
        size: bytes allocated.
        mix: the messages, which come in these shares.
        limit: messages after which to stop.
    """
    ents_max, elems_max = pool_sizes(config, size, allocate(config).ratio)
    rules = [rule for rule in config.rules if not rule.off] if has_rules(config) else []
    edges = sorted({rule.th for rule in rules} | {0, 100})
    messages = elements = 0.0
    for low, high in pairwise(edges):
        least = min((rule.sz for rule in rules if rule.th <= low), default=None)
        each = _elements_per_message(config, mix, least)
        room = min(high / 100 * ents_max - messages, (high / 100 * elems_max - elements) / each)
        room = max(0.0, min(room, limit - messages))
        messages, elements = messages + room, elements + room * each
    return messages, elements


def _elements_per_message(config: Structure, mix: Mix, least: int | None) -> float:
    """Return the mean elements of a message. least: data of more bytes is offloaded; None: by no rule."""
    elements = sum(
        part.count * elements_of(config, part.length, offloaded=least is not None and part.length > least)
        for part in mix
    )
    return elements / count_of(mix)


def round_up(size: int) -> int:
    """Round a size up to whole MB, the storage increment of a coupling facility [assumed]."""
    return -(-size // MIB) * MIB


def plan_structure(
    config: Structure, mix: Mix, size: int | None = None, init_size: int | None = None
) -> tuple[StructurePlan, ...]:
    """Plan a structure for a mix: all in the structure, all offloaded, at the ratio 1:2, by the document, by its rules.

    Args:
        config: the structure with rules, ratio, CFLEVEL and SCM; its size is ignored.
        mix: the messages.
        size: bytes of a structure for which `fits` is computed.
        init_size: bytes for which `fits_initially` is computed.

    Raises:
        UsageError: the mix has no message, or one that cannot be put.
    """
    plans = _plans(config, mix, size)
    if init_size is None:
        return plans
    initially = [plan.fits for plan in _plans(config, mix, init_size)]
    return tuple(replace(plan, fits_initially=fits) for plan, fits in zip(plans, initially, strict=True))


def rebuilt_for_offload(config: Structure, mix: Mix, size: int) -> int | None:
    """Return the messages that fit with a rule of threshold 0 and size 0 after a rebuild; None if no more than now."""
    if not has_rules(config) or allocate(config).ratio == pools.RATIO_ALL_OFFLOADED:
        return None
    now, rebuilt = (int(fill_by_rules(rules, size, mix)[0]) for rules in (config, all_offloaded(config)))
    return rebuilt if rebuilt > now else None


def _plans(config: Structure, mix: Mix, size: int | None) -> tuple[StructurePlan, ...]:
    plans = [_plan(config, mix, size, offloaded=False)]
    if has_rules(config):
        plans.append(_plan(config, mix, size, offloaded=True))
        if allocate(config).ratio != pools.RATIO_ALL_OFFLOADED:
            plans.append(_plan(all_offloaded(config), mix, size, offloaded=True))
        plans += [_documented(mix, size), _plan_by_rules(config, mix, size)]
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


def _plan_by_rules(config: Structure, mix: Mix, size: int | None) -> StructurePlan:
    entries = count_of(mix)
    elements_of_mix(config, mix, offloaded=False)  # refuses what cannot be put
    least = bisect_left(range(_MAX_SIZE), True, key=lambda tried: fill_by_rules(config, tried, mix)[0] >= entries)
    elements = round(fill_by_rules(config, least, mix, entries)[1])
    return StructurePlan(
        data=BY_RULES,
        ratio=int(allocate(config).ratio),
        entries=entries,
        elements=elements,
        bytes=pools.ENTRY_BYTES * entries + pools.ELEMENT_BYTES * elements,
        size=least,
        size_rounded=round_up(least),
        fits=None if size is None else int(fill_by_rules(config, size, mix)[0]),
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


def rebuild_advice(config: Structure, mix: Mix, size: int) -> list[str]:
    """Return the advice to offload everything and rebuild, where more messages fit then and are asked for.

    Args:
        config: the structure.
        mix: the messages; the counts are only shares if all are 1.
        size: bytes allocated.
    """
    rebuilt = rebuilt_for_offload(config, mix, size)
    fits = int(fill_by_rules(config, size, mix)[0])
    is_known = any(part.count > 1 for part in mix)
    if rebuilt is None or (is_known and count_of(mix) <= fits):
        return []
    condition = f"{rebuilt:,} fit instead of {fits:,} if all data is offloaded and the data sets have room"
    return [f"{condition}: {offload_all_commands(config)}"]
