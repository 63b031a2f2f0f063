"""Warnings about an estate that is valid but unwise, one line each; listed in docs/estate.md.

They concern its stores, the CFRM policy (sizes, automatic alter, the storage of a coupling facility), and the advice of
the five documents.

Sources:
    [IBM: MQ 9.2, DEFINE PSID] (EXPAND(USER) without a secondary extent cannot expand),
    [IBM: z/OS MVS Setting Up a Sysplex, Understanding MINSIZE/INITSIZE/SIZE correlation] (SIZE of 1.5 to 2 times
    INITSIZE), [IBM: Health Checker, XCF_CF_STR_POLICYSIZE] (INITSIZE below half of SIZE),
    [IBM: Health Checker, XCF_CF_STR_MAXSPACE, XCF_CF_STR_MAXSCM, XCF_CF_MEMORY_UTILIZATION] (sum of SIZE, augmented and
    dump space above the storage; sum of SCMMAXSIZE above the SCM; storage in use from which a facility may be unable to
    take over what another one loses), [IBM: z/OS MVS Setting Up a Sysplex, Updating the CFRM policy] (FULLTHRESHOLD(0)
    switches off structure full monitoring and automatic alter),
    [IBM: IBM Z 9175-ME1, CFCC Level 26 Coupling Facility] (no Virtual Flash Memory), [published] (no alter while data
    is in storage class memory; augmented space reduces what structures can use),
    [IBM: Specifying offload options for shared messages], [IBM: How storage class memory works with IBM MQ for z/OS],
    [IBM: WebSphere MQ internals, distributed].
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from twin.base.units import KIB, MIB, format_size
from twin.estate.model import (
    ALWAYS_OFFLOADED_ABOVE,
    DYNAMIC_AUGMENTED_PPM,
    FIXED_AUGMENTED,
    NO_SCM_FROM_CFLEVEL,
    PRESTAGES_ABOVE_PCT,
    SMDS_MAX_SIZE,
    CouplingFacility,
    OffloadRule,
    PageSet,
    QueueFile,
    QueueManager,
    StoreConfig,
    Structure,
    facility_of,
    structures_of,
)

# --- size of an administration structure, by the number of queue managers, as IBM has published it --------------------
# Sources: [IBM: WebSphere MQ V6, Concepts and Planning, Table 19] for CFLEVEL 9: "for higher levels of CFCC, they
# probably need to be larger"; [IBM: IBM MQ for z/OS: Performance on IBM z16, CSQ_ADMIN by queue managers] for CFLEVEL
# 21 to 24 and for 25, read off a chart to half a megabyte; [IBM: CSQE022E Structure CSQ_ADMIN unusable, swg21264321]
# for the list entries, which are counted for the queue managers that CSQ5PQSG has added, also for those that are down.

ENTRIES_PER_QMGR = 1000  # list entries that it must have room for [IBM: swg21264321]
MAX_QMGRS = 32  # of the published sizes
NEWEST_CFLEVEL = 25  # of the published sizes


class PublishedSizes(NamedTuple):
    """Least sizes for the coupling facilities of some levels."""

    from_cflevel: int  # the first level
    source: str  # the document, in words
    kilobytes: Mapping[int, int]  # size by number of queue managers
    error: int  # bytes by which a size may be wrong

    def is_listed(self, qmgrs: int) -> bool:
        """Return True if the document has that number of queue managers."""
        return qmgrs in self.kilobytes

    def least(self, qmgrs: int) -> int:
        """Return the least size for a number of queue managers, bytes; between two that are listed on their line."""
        listed = sorted(self.kilobytes.items())
        pieces = list(pairwise(listed))
        (low, small), (high, large) = next((piece for piece in pieces if qmgrs <= piece[1][0]), pieces[-1])
        return -(-KIB * (small * (high - low) + (large - small) * (qmgrs - low)) // (high - low))


PUBLISHED = (
    PublishedSizes(
        9,
        "WebSphere MQ V6 Concepts and Planning, Table 19",
        {1: 2560, 2: 3328, 4: 4608, 8: 7680, 16: 13568, 31: 24832},
        0,
    ),
    PublishedSizes(21, "Performance on IBM z16, chart", {1: 14300, 8: 20500, 16: 28700, 32: 43000}, MIB // 2),
    PublishedSizes(25, "Performance on IBM z16, chart", {1: 22500, 8: 28700, 16: 35800, 32: 51200}, MIB // 2),
)


def published_for(cflevel: int | None) -> PublishedSizes:
    """Return the sizes for a facility: of its level, else of the next one published; None takes the largest."""
    if cflevel is None:
        return PUBLISHED[-1]
    covering = (sizes for sizes, after in pairwise(PUBLISHED) if cflevel < after.from_cflevel)
    fitting = next(covering, PUBLISHED[-1])
    # Between CFLEVEL 9 and 21 nothing is published: the older figure would be too small.
    return PUBLISHED[1] if fitting is PUBLISHED[0] and cflevel > fitting.from_cflevel else fitting


# --- warnings ---------------------------------------------------------------------------------------------------------

_MAX_GROWTH = 2  # SIZE over INITSIZE
_MAX_UTILIZATION_PCT = 60  # MAXUTILIZATION(60%) [IBM: Health Checker, XCF_CF_MEMORY_UTILIZATION]
_ADMIN_CFLEVEL = 21  # of a facility whose level is not known: its administration structure is not warned of in vain
_NO_CHOICES: Mapping[str, tuple[str, ...]] = {}
MAX_QUEUE_SIZE = 2_097_151 * MIB  # [IBM: WebSphere MQ internals, Tuning Queue Buffers: maxQSize]
_CF_LEVEL_5_FROM = (7, 1)  # [IBM: Specifying offload options, Selecting where the messages are stored]


def warnings(
    stores: Mapping[str, StoreConfig],
    described_smds: Collection[tuple[str, str]],
    queue_managers: Mapping[str, QueueManager],
    default_persistent: Mapping[str, bool],
    rebuild_choices: Mapping[str, tuple[str, ...]] = _NO_CHOICES,
) -> Iterator[str]:
    """Yield the warnings of every store in the order of the mapping, then the advice of the documents in that order.
    `default_persistent`: whether the queue has DEFPSIST(YES), by store of queue files.
    """
    for store in stores.values():
        match store:
            case Structure():
                yield from _structure(store, described_smds) if store.holds_queues else _administration(store, stores)
                yield from _structure_policy(store)
            case PageSet():
                yield from _page_set(store)
            case CouplingFacility():
                yield from _coupling_facility(store, stores)
                yield from _facility_policy(store, stores)
                yield from _white_space(store, stores, rebuild_choices)
    yield from document_advice(stores, queue_managers, default_persistent)


def _structure(store: Structure, described_smds: Collection[tuple[str, str]]) -> Iterator[str]:
    if store.offload == "SMDS":
        missing = [qmgr for qmgr in store.queue_managers if (store.name, qmgr) not in described_smds]
        if missing:
            yield (
                f"{store.name}: OFFLOAD(SMDS), but the data sets of {', '.join(missing)} are not described:"
                f' {format_size(SMDS_MAX_SIZE)} assumed; describe [smds."{store.name}/{missing[0]}"]'
            )
    else:
        unused = [qmgr for qmgr in store.queue_managers if (store.name, qmgr) in described_smds]
        if unused:
            yield f"{store.name}: OFFLOAD({store.offload}) does not use the data sets described for {', '.join(unused)}"
    if store.offload != "NONE":
        for rule in store.rules:
            reason = _never_fires(rule, store.rules)
            if reason:
                n, sz = rule.number, format_size(rule.sz)
                yield f"{store.name}: offload rule {n}, OFFLD{n}TH({rule.th}) OFFLD{n}SZ({sz}), {reason}"
    if not store.queues:
        yield f"{store.name}: no queue of the estate is in it"


def _administration(store: Structure, stores: Mapping[str, StoreConfig]) -> Iterator[str]:
    """Yield the warning about an administration structure that is too small for its queue managers."""
    if not store.is_administration:
        return
    facility = facility_of(stores, store)
    cflevel = None if facility is None else facility.cflevel
    published, qmgrs = published_for(cflevel or _ADMIN_CFLEVEL), len(store.queue_managers)
    least = published.least(qmgrs) - published.error
    size = store.size if store.allow_auto_alter else store.init_size or store.size
    if size < least:
        word = "SIZE" if store.allow_auto_alter or store.init_size is None else "INITSIZE"
        yield (
            f"{store.name}: {word} {format_size(size)} is below the {format_size(-(-least // MIB) * MIB)} that"
            f" {qmgrs} queue managers need at CFLEVEL {published.from_cflevel} ({published.source}): they may not start"
            " (CSQE022E); see mqtwin size structure --admin"
        )


def _never_fires(rule: OffloadRule, rules: tuple[OffloadRule, ...]) -> str:
    """Return the reason why a rule that is on never offloads anything; "" if it can."""
    if rule.off:
        return ""
    if rule.th >= 100:
        return "can never fire: a structure is never more than 100 % full"
    if rule.sz >= ALWAYS_OFFLOADED_ABOVE:
        return "can never fire: data of more than 63 KB is always offloaded"
    for other in rules:
        same = (other.th, other.sz) == (rule.th, rule.sz)
        sooner = other.th <= rule.th and other.sz <= rule.sz and not same
        if not other.off and (sooner or (same and other.number < rule.number)):
            return f"can never fire: rule {other.number} offloads all of that already"
    return ""


def _page_set(store: PageSet) -> Iterator[str]:
    if store.expand == "NONE":
        yield f"{store.name}: EXPAND(NONE), puts fail with 2192 when it is full; consider EXPAND(SYSTEM)"
    elif store.expand == "USER" and not store.secondary_pages:
        yield f"{store.name}: EXPAND(USER) without secondary_pages cannot expand; give them, or EXPAND(SYSTEM)"


def _coupling_facility(store: CouplingFacility, stores: Mapping[str, StoreConfig]) -> Iterator[str]:
    on_it = structures_of(stores[name] for name in store.structures)
    scm_max_sizes = {own.name: own.scm_max_size for own in on_it if own.scm_max_size is not None}
    total, available = sum(scm_max_sizes.values()), store.scm or 0
    if total > 0 and not available and store.size is not None:
        yield (
            f"{store.name}: it has no SCM, so SCMMAXSIZE of {', '.join(scm_max_sizes)} only takes 3 % of the entries"
            f" and elements; give scm in [coupling_facility.{store.name}]"
        )
    elif total > available and store.size is not None:
        yield (
            f"{store.name}: SCM is over-committed: {', '.join(scm_max_sizes)} may use {format_size(total)}, it has"
            f" {format_size(available)}; 2192 may come unexpectedly (health check XCF_CF_STR_MAXSCM)"
        )


def _structure_policy(structure: Structure) -> Iterator[str]:
    name, init_size = structure.name, structure.init_size
    if init_size is not None and structure.size > _MAX_GROWTH * init_size:
        sizes = f"SIZE {format_size(structure.size)} is more than twice INITSIZE {format_size(init_size)}"
        yield (
            f"{name}: {sizes}: controls for SIZE take much of INITSIZE; IBM recommends 1.5 to 2 times"
            " (health check XCF_CF_STR_POLICYSIZE)"
        )
    if structure.full_threshold == 0:
        off = " and ALLOWAUTOALT(YES) does nothing" if structure.allow_auto_alter else ""
        yield f"{name}: FULLTHRESHOLD(0): its fullness is not monitored, no `threshold` alert opens{off}"
        return
    if not structure.allow_auto_alter:
        return
    rule = next((rule for rule in structure.rules if not rule.off), None)
    if structure.offload != "NONE" and rule is not None and structure.full_threshold > rule.th > 0:
        yield (
            f"risk: {name} offloads at {rule.th} %, before automatic alter enlarges it at {structure.full_threshold} %;"
            f" set FULLTHRESHOLD below OFFLD{rule.number}TH({rule.th}) to grow first"
        )


def _facility_policy(facility: CouplingFacility, stores: Mapping[str, StoreConfig]) -> Iterator[str]:
    structures = structures_of(stores[name] for name in facility.structures)
    if facility.size is not None:
        augmented = list(_augmented_space(facility, structures, facility.size))
        yield from _promises(facility, structures, facility.size, is_said=bool(augmented))
        yield from augmented
    with_scm = [structure.name for structure in structures if structure.scm_max_size is not None]
    if (facility.cflevel or 0) >= NO_SCM_FROM_CFLEVEL:
        for name in with_scm:
            yield (
                f"{facility.name}: CFLEVEL {facility.cflevel} has no storage class memory, so {name} cannot have its"
                " SCMMAXSIZE: find its size without, and the steps, by"
                f" mqtwin advise {name} --set scm_max_size=0 --recording FILE --estate FILE"
            )
    if with_scm and facility.size is None:
        yield (
            f"{facility.name}: the SCM of {', '.join(with_scm)} cannot be checked for over-commitment: the estate does"
            f" not say how much there is; give scm in [coupling_facility.{facility.name}]"
        )


def _promises(facility: CouplingFacility, structures: list[Structure], size: int, *, is_said: bool) -> Iterator[str]:
    """Yield where the storage of a coupling facility is promised twice, or has no white space. `is_said`: a warning
    says already that augmented space takes too much.
    """
    own, others = sum(structure.size for structure in structures), sum(facility.others.values())
    with_scm = [structure for structure in structures if structure.scm_max_size is not None]
    scm = min(facility.scm or 0, sum(structure.scm_max_size or 0 for structure in with_scm))
    fixed = FIXED_AUGMENTED * len(with_scm)
    parts = {
        f"{len(facility.others)} more of its CFRM policy to": others,
        "augmented space to": fixed + -(-scm * DYNAMIC_AUGMENTED_PPM // 1_000_000),
        "dump space is": facility.dump_space,
    }
    if own + (others + facility.dump_space if is_said else sum(parts.values())) > size:
        further = "".join(f", {name} {format_size(-(-part // MIB) * MIB)}" for name, part in parts.items() if part)
        yield (
            f"{facility.name}: its structures may grow to {format_size(own)}{further}, it has {format_size(size)}:"
            " not all of them can reach their SIZE (health check XCF_CF_STR_MAXSPACE)"
        )
    used = sum(structure.init_size or structure.size for structure in structures) + fixed + facility.dump_space
    if used * 100 > _MAX_UTILIZATION_PCT * size and used <= size:
        yield (
            f"{facility.name}: {100 * used // size} % of {format_size(size)} is taken when its structures are"
            f" allocated, above {_MAX_UTILIZATION_PCT} % little is left for structures to grow or to move here"
            " (health check XCF_CF_MEMORY_UTILIZATION)"
        )


def _white_space(
    facility: CouplingFacility, stores: Mapping[str, StoreConfig], rebuild_choices: Mapping[str, tuple[str, ...]]
) -> Iterator[str]:
    """Yield the structures that find no room when a coupling facility fails: each goes to the next of its PREFLIST.

    As many as fit are placed, in the order of their names, at the size at which they are allocated.
    """
    on_it = structures_of(stores[name] for name in facility.structures)
    sizes = {store.name: store.init_size or store.size for store in on_it if rebuild_choices.get(store.name)}
    left: dict[str, int] = {}
    homeless = []
    for name, needed in sizes.items():
        known = [other for other in rebuild_choices[name] if _free(other, stores) is not None]
        if len(known) < len(rebuild_choices[name]):
            continue  # a coupling facility whose size is not known may have room
        rooms = {other: left.setdefault(other, _free(other, stores) or 0) for other in known}
        choice = next((other for other, room in rooms.items() if needed <= room), None)
        if choice is None:
            homeless.append(name)
        else:
            left[choice] -= needed
    if homeless:
        others = ", ".join(sorted({choice for name in homeless for choice in rebuild_choices[name]}))
        yield (
            f"{facility.name}: if it fails, {', '.join(homeless)} cannot be rebuilt: {others} of their PREFLIST have no"
            " white space for them (health check XCF_CF_MEMORY_UTILIZATION)"
        )


def _free(name: str, stores: Mapping[str, StoreConfig]) -> int | None:
    """Return the bytes that a coupling facility has left when its structures are allocated; None: not known."""
    facility = stores.get(name)
    if not isinstance(facility, CouplingFacility) or facility.size is None:
        return None
    own = structures_of(stores[name] for name in facility.structures)
    fixed = FIXED_AUGMENTED * sum(store.scm_max_size is not None for store in own)
    return facility.size - fixed - facility.dump_space - sum(store.init_size or store.size for store in own)


def _augmented_space(facility: CouplingFacility, structures: list[Structure], size: int) -> Iterator[str]:
    """Yield what keeps augmented space from the real storage of a coupling facility of `size` bytes."""
    with_scm = [structure for structure in structures if structure.scm_max_size is not None]
    allocated = sum(structure.init_size or structure.size for structure in structures)
    fixed = FIXED_AUGMENTED * len(with_scm)
    if not with_scm or allocated > size:
        return
    if allocated + fixed > size:
        yield (
            f"{facility.name}: its structures take {format_size(allocated)} and {format_size(fixed)} of fixed augmented"
            f" space for SCM, it has {format_size(size)}: not all of them fit"
        )
        return
    scm = min(facility.scm or 0, sum(structure.scm_max_size or 0 for structure in with_scm))
    dynamic, left = -(-scm * DYNAMIC_AUGMENTED_PPM // 1_000_000), size - allocated - fixed
    if dynamic > left:
        usable = left * 1_000_000 // DYNAMIC_AUGMENTED_PPM
        yield (
            f"{facility.name}: dynamic augmented space, {DYNAMIC_AUGMENTED_PPM / 10_000:g} % of SCM, may reach"
            f" {format_size(-(-dynamic // MIB) * MIB)}, {format_size(left)} are left: 2192 comes at"
            f" {format_size(usable)} of SCM"
        )


def document_advice(
    stores: Mapping[str, StoreConfig],
    queue_managers: Mapping[str, QueueManager],
    default_persistent: Mapping[str, bool],
) -> Iterator[str]:
    """Yield the advice that the documents give about every store; arguments as of `warnings`."""
    for store in stores.values():
        match store:
            case Structure():
                yield from _offload(store)
                yield from _levels(store, queue_managers)
                yield from _scm(store)
            case QueueFile():
                yield from _queue_file(store, persistent=default_persistent.get(store.name, False))


def _offload(store: Structure) -> Iterator[str]:
    if store.offload == "DB2":
        yield (
            f"{store.name}: OFFLOAD(DB2) is supported primarily for migration; for messages of more than 63 KB"
            " OFFLOAD(SMDS) performs significantly better"
        )
    first, second, third = store.rules
    if store.offload != "NONE" and second.off and not first.off and not third.off and first.th < third.th:
        yield (
            f"{store.name}: offload rule 2 is off, so at {third.th} % usage the ratio of entries to elements changes"
            f" all at once; rule 2 between OFFLD1TH({first.th}) and OFFLD3TH({third.th}) cushions that"
        )


def _levels(store: Structure, queue_managers: Mapping[str, QueueManager]) -> Iterator[str]:
    if store.cf_level < 5:
        return
    versions = {name: queue_managers[name].version for name in store.queue_managers if name in queue_managers}
    older = {name: text for name, text in versions.items() if text is not None and _parse(text) < _CF_LEVEL_5_FROM}
    if older:
        named = ", ".join(f"{name} ({text})" for name, text in older.items())
        yield (
            f"{store.name}: CFLEVEL({store.cf_level}), but {named} cannot connect to it: all queue managers of the"
            " group must be at version 7.1 or higher"
        )


def _parse(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _scm(store: Structure) -> Iterator[str]:
    if store.scm_max_size is None:
        return
    if store.allow_auto_alter:
        yield (
            f"{store.name}: ALLOWAUTOALT(YES) beside SCM: while data is in SCM the structure cannot be altered, neither"
            " manually nor automatically"
        )
    if store.offload == "NONE":
        return
    for rule in store.rules:
        if not rule.off and PRESTAGES_ABOVE_PCT <= rule.th < 100:
            yield (
                f"{store.name}: offload rule {rule.number}, OFFLD{rule.number}TH({rule.th})"
                f" OFFLD{rule.number}SZ({format_size(rule.sz)}), can never fire while SCM has room: pre-staging holds"
                f" usage at {PRESTAGES_ABOVE_PCT} %; expected: a threshold below that"
            )


def _queue_file(store: QueueFile, *, persistent: bool) -> Iterator[str]:
    if store.max_size > MAX_QUEUE_SIZE:
        yield (
            f"{store.name}: max_size {format_size(store.max_size)} is more than a queue file can have,"
            f" {format_size(MAX_QUEUE_SIZE)}"
        )
    if persistent:
        yield (
            f"{store.name}: DEFPSIST(YES): put and get its persistent messages inside syncpoint; outside, each waits"
            " until the log is forced"
        )
