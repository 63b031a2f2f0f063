"""Structures: SIZE for a mix of messages, the threshold of the third rule, administration structures, and SCM.

- The third rule offloads all messages from its threshold. The arithmetic is that of the twin, `kernels.pools` and
  `twin.capacity`; docs/storage-model.md states its sources. 0.75 KB per offloaded message: [IBM: Specifying offload
  options for shared messages].
- Storage class memory for a backlog beyond the structure: SCMMAXSIZE, and augmented space in the coupling facility.
  Source: [IBM: How storage class memory works with IBM MQ for z/OS] (90 %, over-committing, augmented space, fewer
  entries and elements). The constants of `twin.capacity` are assumed and agree with IBM's published example.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from kernels import pools
from kernels.scm import BLOCK_BYTES, PRESTAGE_ABOVE, blocks_of
from twin.base.errors import UsageError
from twin.base.units import KIB, MIB
from twin.capacity import (
    allocate,
    alter_rules,
    has_rules,
    pool_sizes,
    rebuild,
    structure_sizes,
    with_all_offloaded_above,
)
from twin.estate import Structure, format_size
from twin.estate.advice import ENTRIES_PER_QMGR, MAX_QMGRS, NEWEST_CFLEVEL, PUBLISHED, PublishedSizes, published_for
from twin.estate.model import ADMINISTRATION, DYNAMIC_AUGMENTED_PPM, FIXED_AUGMENTED
from twin.sizing.mix import Mix, count_of

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
    """Return the elements of a message of `length` bytes, offloaded if it may be, else in the structure if it may be.
    UsageError: the message is too long for CFLEVEL(3) and below.
    """
    if length > pools.ALWAYS_OFFLOADED:
        if not has_rules(config) and config.cf_level != 4:
            raise UsageError(
                f"a message of {length:,} bytes; expected: at most {pools.ALWAYS_OFFLOADED:,} at"
                f" CFLEVEL({config.cf_level}), longer ones need CFLEVEL(4)"
            )
        return pools.OFFLOADED_ELEMENTS if has_rules(config) else pools.DB2_PLACEHOLDER_ELEMENTS
    if offloaded and length > config.offload_min_length:
        return pools.OFFLOADED_ELEMENTS
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
    """Return (messages, elements) when an empty structure of `size` bytes has taken messages of the mix until its first
    2192.

    Each offload rule works from its threshold on; between two thresholds the mix takes entries and elements evenly.
    Data sets have room.
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
    The size of `config` is ignored: `fits` and `fits_initially` are computed for `size` and `init_size`, bytes.
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
    """Return the advice to offload everything and rebuild, if more then fit; counts that are all 1 are shares."""
    rebuilt = rebuilt_for_offload(config, mix, size)
    fits = int(fill_by_rules(config, size, mix)[0])
    is_known = any(part.count > 1 for part in mix)
    if rebuilt is None or (is_known and count_of(mix) <= fits):
        return []
    condition = f"{rebuilt:,} fit instead of {fits:,} if all data is offloaded and the data sets have room"
    return [f"{condition}: {offload_all_commands(config)}"]


# --- threshold of the third rule -------------------------------------------------------------------------------------

# [IBM: Specifying offload options for shared messages, Selecting which shared queue messages are offloaded: Capacity]
# (1M messages, 10G: "92% or lower", "not more than 90% of the maximum structure space", "around 80%", and the example
# of 1 million messages and 4 GB: 18.75 %, OFFLD3TH(80)).


_MB = 10**6  # the document divides 1,000,000 x 0.75 KB = 768 MB by a SIZE of 4,096 MB
_AIM = 90  # percent of SIZE: "it may be better ... to aim to use not more than 90%"
_AROUND = 80  # OFFLD3TH of both published examples, percent
_BESIDE_SCM = 80  # the highest OFFLD3TH in tens that pre-staging, which begins above 90 %, leaves a chance to fire
_LAST_ELEMENTS = 254  # of the longest message in a structure, which may come just before the threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdPlan:
    """Plan of OFFLD3TH for a backlog. Shares are percent of SIZE."""

    backlog: int  # messages
    size: int  # bytes
    needed: int  # bytes, 0.75 KB per message
    documented_pct: float  # as in the document, MB of 10^6 bytes divided by MB of SIZE
    exact_pct: float  # bytes divided by bytes
    latest: int  # the document's "or lower": 100 minus documented_pct
    aim: int
    aimed: float  # `aim` minus exact_pct
    threshold: int  # `aim` minus documented_pct, rounded down to a ten as in the document
    ents_pct: float  # of the entries of the twin
    elems_pct: float  # of the elements of the twin
    pools_latest: int | None  # the highest OFFLD3TH above which the backlog fits, whatever was put before; None: none
    mqsc: str | None  # command by which the backlog fits by the pools, too; None: at this size there is none
    warnings: tuple[str, ...]


def plan_threshold(config: Structure, backlog: int, aim: int | None = None) -> ThresholdPlan:
    """Plan OFFLD3TH of a structure for `aim`, percent of SIZE that may be in use in the end; None: as in the published
    examples, 90, but 100 where only that leaves "around 80%". UsageError: 0.75 KB per message exceed `aim`.
    """
    size = config.init_size or config.size
    needed = backlog * DOCUMENTED_BYTES
    documented = 100 * (needed / _MB) / (size / MIB)
    if aim is None:
        aim = 100 if _round_down_to_ten(_AIM - documented) < _AROUND <= _round_down_to_ten(100 - documented) else _AIM
    if documented > aim:
        least = format_size(round_up(-(-needed * MIB * 100 // (_MB * aim))))
        raise UsageError(
            f"{backlog:,} messages need {documented:.2f} % of {format_size(size)}, more than {aim} %; expected:"
            f" SIZE({least}) or more"
        )
    threshold = _round_down_to_ten(aim - documented)
    if config.scm_max_size:
        threshold = min(threshold, _BESIDE_SCM)
    pools_pct = _pools(config, size, backlog)
    command = _command(config, size, backlog, threshold, pools_pct[2])
    warnings = _threshold_warnings(config, aim, threshold, documented, pools_pct[2], has_command=command is not None)
    return ThresholdPlan(
        backlog=backlog,
        size=size,
        needed=needed,
        documented_pct=documented,
        exact_pct=100 * needed / size,
        latest=int(100 - documented),
        aim=aim,
        aimed=aim - 100 * needed / size,
        threshold=threshold,
        ents_pct=pools_pct[0],
        elems_pct=pools_pct[1],
        pools_latest=pools_pct[2],
        mqsc=command,
        warnings=tuple(warnings),
    )


def _round_down_to_ten(share: float) -> int:
    """Round down to a ten, as the document does; below ten to a whole number, since 0 has another meaning."""
    return int(share) // 10 * 10 or int(share)


def _pools(config: Structure, size: int, backlog: int) -> tuple[float, float, int | None]:
    """Return the percent of entries and elements of offloaded messages, and the highest threshold that leaves both.

    The message that crosses the threshold was put below it: 1 entry and up to 254 elements.
    """
    entries, elements = pool_sizes(config, size, allocate(config).ratio)
    if not entries:
        raise UsageError(f"SIZE({format_size(size)}) holds no message; expected: a larger one")
    used_elements = backlog * pools.OFFLOADED_ELEMENTS
    spare_entries = (entries - backlog - 1) * 100 // entries
    spare_elements = (elements - used_elements - _LAST_ELEMENTS) * 100 // elements
    latest = min(spare_entries, spare_elements)
    return 100 * backlog / entries, 100 * used_elements / elements, latest if latest >= 0 else None


def _command(config: Structure, size: int, backlog: int, threshold: int, pools_latest: int | None) -> str | None:
    """Return the command by which the backlog fits: an earlier threshold, or everything offloaded and a rebuild."""
    if pools_latest is not None:
        return alter_rules(config, with_all_offloaded_above(config, min(threshold, pools_latest)))
    entries, elements = pool_sizes(config, size, pools.RATIO_ALL_OFFLOADED)
    fits = backlog <= entries and backlog * pools.OFFLOADED_ELEMENTS <= elements
    return offload_all_commands(config) if fits and has_rules(config) else None


def _threshold_warnings(
    config: Structure, aim: int, threshold: int, documented: float, pools_latest: int | None, *, has_command: bool
) -> list[str]:
    warnings = []
    if aim > _AIM and threshold + documented > _AIM:
        warnings.append(
            f"OFFLD3TH({threshold}) would use {threshold + documented:.2f} % of SIZE, as in the document's example of"
            f" 4 GB; --aim {_AIM} leaves room, OFFLD3TH({_round_down_to_ten(_AIM - documented)})"
        )
    if config.allow_auto_alter and config.full_threshold:
        warnings.append(
            f"ALLOWAUTOALT(YES): from FULLTHRESHOLD({config.full_threshold}) on the ratio follows the messages that"
            " stand there, just before all take 1 entry and 2 elements. In the published case of 4 GB it makes things"
            " worse: 34 to 59 % fewer messages of 2 to 4 KB fit before the first 2192"
        )
    if config.cf_level < 5:
        warnings.append(f"offload rules need CFLEVEL(5), this structure is at CFLEVEL({config.cf_level})")
    if pools_latest is None or pools_latest < threshold:
        ratio = allocate(config).ratio
        if pools_latest is not None:
            remedy = (
                f"Use OFFLD3TH({pools_latest}) or lower at the ratio 1:{ratio}, as the command does, or a larger SIZE"
            )
        elif has_command:
            remedy = (
                f"No threshold is low enough at the ratio 1:{ratio}: offload everything and rebuild, as the command"
                " does, or use a larger SIZE"
            )
        else:
            remedy = f"No threshold is low enough at the ratio 1:{ratio}: use a larger SIZE"
        warnings.append(
            "if the structure already holds messages of up to 1,164 bytes, entries run out first, in spite of the"
            f" document's threshold of {threshold}. {remedy}"
        )
    return warnings


# --- administration structures ---------------------------------------------------------------------------------------

# The figures and their sources are in `twin.estate.advice`. SIZE is twice INITSIZE, the most that
# [IBM: Health Checker, XCF_CF_STR_POLICYSIZE] takes without an exception.


_GROWTH = 2  # SIZE over INITSIZE


@dataclass(frozen=True, slots=True)
class PublishedSize:
    """Least size, bytes, by a document, for a number of queue managers that is `listed`, or between two of it."""

    from_cflevel: int
    bytes: int
    listed: bool
    source: str


@dataclass(frozen=True, slots=True)
class AdministrationPlan:
    """Plan of an administration structure; sizes in bytes."""

    queue_managers: int  # number of queue managers of the group that CSQ5PQSG has added
    cflevel: int | None  # level of the coupling facility; None: not known
    entries: int  # list entries that must fit
    published: tuple[PublishedSize, ...]  # the least size by each document
    init_size: int  # the least size at the level, with the error of its chart, in whole MB
    size: int
    cfrm: str  # the parts of the STRUCTURE statement
    warnings: tuple[str, ...]  # what to know about the figures, one per line


def plan_administration(
    queue_managers: int, cflevel: int | None = None, config: Structure | None = None
) -> AdministrationPlan:
    """Plan the administration structure of a queue-sharing group. A CFLEVEL that is not known takes the largest
    figures; the sizes of `config`, the structure of an estate, are compared. UsageError: there is no such number of
    queue managers.
    """
    if not 1 <= queue_managers <= MAX_QMGRS:
        raise UsageError(f"{queue_managers} queue managers; expected: 1 to {MAX_QMGRS} of a queue-sharing group")
    chosen = published_for(cflevel)
    init_size = round_up(chosen.least(queue_managers) + chosen.error)
    size = _GROWTH * init_size
    name = f"QSG1{ADMINISTRATION}" if config is None else config.policy_name
    return AdministrationPlan(
        queue_managers=queue_managers,
        cflevel=cflevel,
        entries=ENTRIES_PER_QMGR * queue_managers,
        published=tuple(
            PublishedSize(
                sizes.from_cflevel, sizes.least(queue_managers), sizes.is_listed(queue_managers), sizes.source
            )
            for sizes in PUBLISHED
        ),
        init_size=init_size,
        size=size,
        cfrm=" ".join(structure_sizes(name, size, init_size, None)),
        warnings=tuple(_administration_warnings(queue_managers, cflevel, chosen, init_size, config)),
    )


def _administration_warnings(
    queue_managers: int, cflevel: int | None, chosen: PublishedSizes, init_size: int, config: Structure | None
) -> Iterator[str]:
    if cflevel is None:
        yield f"CFLEVEL is not known: the figures of CFLEVEL {chosen.from_cflevel} are taken; give --cflevel (D CF)"
    elif cflevel > NEWEST_CFLEVEL:
        published = f"the figures of CFLEVEL {NEWEST_CFLEVEL} are taken; ask CFSizer"
        yield f"nothing is published for CFLEVEL {cflevel}: {published}"
    elif cflevel < chosen.from_cflevel:
        yield f"nothing is published for CFLEVEL {cflevel}: the figures of CFLEVEL {chosen.from_cflevel} are taken"
    if not chosen.is_listed(queue_managers):
        listed = ", ".join(map(str, chosen.kilobytes))
        yield f"{chosen.source} has {listed} queue managers: {queue_managers} are on the line between two"
    if config is not None and (config.init_size or config.size) < init_size:
        has = format_size(config.init_size or config.size)
        yield f"{config.name} is allocated with {has}, less than {format_size(init_size)}"


# --- storage class memory ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ScmPlan:
    """Plan of SCM for a backlog in a structure. Sizes in bytes."""

    data: str
    size: int
    ents_without: int  # pools of that SIZE without SCM
    elems_without: int
    ents_max: int  # pools with SCM
    elems_max: int
    in_structure: int  # messages that stay, up to 90 %
    in_scm: int  # the other messages
    scm_used: int
    scm_max_size: int  # scm_used in whole MB; 0: no SCM is needed
    aug_fixed: int  # augmented space
    aug_dynamic: int
    cf_storage: int  # SIZE and augmented space
    cfrm: str
    warnings: tuple[str, ...]


def scm_bytes(messages: int, elements: int) -> int:
    """Return the bytes of SCM of messages with `elements` in all: 256 each, the sum in 4 KB blocks."""
    return int(blocks_of(messages, elements)) * BLOCK_BYTES


def plan_scm(
    config: Structure, mix: Mix, scm_total: int | None = None, committed: int = 0, *, offloaded: bool = False
) -> ScmPlan:
    """Plan SCM for the part of a backlog that the structure does not hold: bytes of the coupling facility in all, and
    SCMMAXSIZE of its other structures. UsageError: the structure holds no message, or the mix has none.
    """
    size, ratio = allocate(config)
    ents_without, elems_without = pool_sizes(replace(config, scm_max_size=None), size, ratio)
    ents_max, elems_max = pool_sizes(replace(config, scm_max_size=1), size, ratio)
    if not ents_max:
        raise UsageError(f"SIZE({format_size(size)}) holds no message; expected: a larger one")
    messages, elements = count_of(mix), elements_of_mix(config, mix, offloaded=offloaded)
    room = ents_max * PRESTAGE_ABOVE // 100, elems_max * PRESTAGE_ABOVE // 100
    in_structure = min(messages, room[0], room[1] * messages // elements)
    in_scm = messages - in_structure
    scm_used = scm_bytes(in_scm, -(-in_scm * elements // messages))
    scm_max_size = round_up(scm_used)
    aug_dynamic = -(-scm_used * DYNAMIC_AUGMENTED_PPM // 1_000_000)
    statement = structure_sizes(config.policy_name, config.size, config.init_size, scm_max_size)
    return ScmPlan(
        data=OFFLOADED if offloaded else IN_STRUCTURE,
        size=size,
        ents_without=ents_without,
        elems_without=elems_without,
        ents_max=ents_max,
        elems_max=elems_max,
        in_structure=in_structure,
        in_scm=in_scm,
        scm_used=scm_used,
        scm_max_size=scm_max_size,
        aug_fixed=FIXED_AUGMENTED,
        aug_dynamic=aug_dynamic,
        cf_storage=size + FIXED_AUGMENTED + aug_dynamic,
        cfrm=" ".join(statement) if scm_max_size else "",
        warnings=tuple(_warnings(scm_max_size, scm_total, committed)),
    )


def _warnings(scm_max_size: int, scm_total: int | None, committed: int) -> list[str]:
    if not scm_max_size or scm_total is None or scm_max_size + committed <= scm_total:
        return []
    beside = f" beside {format_size(committed)} of other structures" if committed else ""
    available = f"there are {format_size(scm_total)}"
    return [
        f"SCM would be over-committed: {format_size(scm_max_size)}{beside}, {available}; 2192 may come unexpectedly"
    ]
