"""Warnings about an estate that is valid but unwise, one line each; listed in docs/estate.md.

They concern its stores, the CFRM policy (sizes, automatic alter, what a coupling facility has), and what the five
documents advise.

Sources: [IBM: MQ 9.2, DEFINE PSID] (EXPAND(USER) without a secondary extent cannot expand), [IBM: z/OS MVS Setting Up a
Sysplex, Understanding MINSIZE/INITSIZE/SIZE correlation] (SIZE of 1.5 to 2 times INITSIZE), [IBM: Health Checker,
XCF_CF_STR_POLICYSIZE] (INITSIZE below half of SIZE), [IBM: z/OS MVS Setting Up a Sysplex, Updating the CFRM policy]
(FULLTHRESHOLD(0) switches off structure full monitoring and automatic alter), [IBM: IBM Z 9175-ME1, CFCC Level 26
Coupling Facility] (no Virtual Flash Memory), [published] (no alter while data is in
storage class memory; augmented space reduces what structures can use), [IBM: Specifying offload options for shared
messages], [IBM: How storage class memory works with IBM MQ for z/OS], [IBM: WebSphere MQ internals, distributed].
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

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
)
from twin.units import MIB, format_size

_MAX_GROWTH = 2  # SIZE over INITSIZE
MAX_QUEUE_SIZE = 2_097_151 * MIB  # [IBM: WebSphere MQ internals, Tuning Queue Buffers: maxQSize]
_CF_LEVEL_5_FROM = (7, 1)  # [IBM: Specifying offload options, Selecting where the messages are stored]


def warnings(
    stores: Mapping[str, StoreConfig],
    described_smds: Collection[tuple[str, str]],
    queue_managers: Mapping[str, QueueManager],
    default_persistent: Mapping[str, bool],
) -> Iterator[str]:
    """Yield the warnings of every store in the order of the mapping, then the advice of the documents in that order.

    Args:
        stores: stores by name.
        described_smds: (store name, queue manager) of each shared message data set that the estate describes.
        queue_managers: queue managers by name.
        default_persistent: True for each queue file whose queue has DEFPSIST(YES), by store name.
    """
    for store in stores.values():
        if isinstance(store, Structure):
            yield from _structure(store, described_smds)
            yield from _structure_policy(store)
        elif isinstance(store, PageSet):
            yield from _page_set(store)
        elif isinstance(store, CouplingFacility):
            yield from _coupling_facility(store, stores)
            yield from _facility_policy(store, stores)
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
    scm_max_sizes = {}
    for name in store.structures:
        structure = stores[name]
        if isinstance(structure, Structure) and structure.scm_max_size is not None:
            scm_max_sizes[name] = structure.scm_max_size
    total, available = sum(scm_max_sizes.values()), store.scm or 0
    if total > 0 and not available and store.size is not None:
        yield (
            f"{store.name}: it has no SCM, so SCMMAXSIZE of {', '.join(scm_max_sizes)} only takes 3 % of the entries"
            f" and elements; give scm in [coupling_facility.{store.name}]"
        )
    elif total > available and store.size is not None:
        yield (
            f"{store.name}: SCM is over-committed: {', '.join(scm_max_sizes)} may use {format_size(total)}, it has"
            f" {format_size(available)}; 2192 may come unexpectedly"
        )


def _structure_policy(structure: Structure) -> Iterator[str]:
    """Yield the warnings about the policy of one structure."""
    name, init_size = structure.name, structure.init_size
    if init_size is not None and structure.size > _MAX_GROWTH * init_size:
        sizes = f"SIZE {format_size(structure.size)} is more than twice INITSIZE {format_size(init_size)}"
        yield f"{name}: {sizes}: controls for SIZE take much of INITSIZE; IBM recommends 1.5 to 2 times"
    if structure.full_threshold == 0:
        off = " and ALLOWAUTOALT(YES) does nothing" if structure.allow_auto_alter else ""
        yield f"{name}: FULLTHRESHOLD(0): its fullness is not monitored, no `threshold` alert opens{off}"
        return
    if not structure.allow_auto_alter:
        return
    rule = next((rule for rule in structure.rules if not rule.off), None)
    if structure.offload != "NONE" and rule is not None and structure.full_threshold > rule.th > 0:
        yield (
            f"{name}: ALLOWAUTOALT(YES) with FULLTHRESHOLD({structure.full_threshold}) above"
            f" OFFLD{rule.number}TH({rule.th}): it offloads messages before it grows; set FULLTHRESHOLD below {rule.th}"
            " to grow first"
        )


def _facility_policy(facility: CouplingFacility, stores: Mapping[str, StoreConfig]) -> Iterator[str]:
    """Yield the warnings about what a coupling facility has for its structures.

    Args:
        facility: the coupling facility.
        stores: all stores by name.
    """
    structures = [store for name in facility.structures if isinstance(store := stores[name], Structure)]
    total = sum(structure.size for structure in structures)
    if facility.size is not None and total > facility.size:
        yield (
            f"{facility.name}: its structures may grow to {format_size(total)}, it has {format_size(facility.size)}:"
            " not all of them can reach their SIZE"
        )
    if facility.size is not None:
        yield from _augmented_space(facility, structures, facility.size)
    with_scm = [structure.name for structure in structures if structure.scm_max_size is not None]
    if (facility.cflevel or 0) >= NO_SCM_FROM_CFLEVEL:
        for name in with_scm:
            yield (
                f"{facility.name}: CFLEVEL {facility.cflevel} has no storage class memory, so {name} cannot have its"
                " SCMMAXSIZE: find its size without, and the steps, by"
                f" mqtwin advise --leave-scm {name} --recording FILE --estate FILE"
            )
    if with_scm and facility.size is None:
        yield (
            f"{facility.name}: the SCM of {', '.join(with_scm)} cannot be checked for over-commitment: the estate does"
            f" not say how much there is; give scm in [coupling_facility.{facility.name}]"
        )


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
        if isinstance(store, Structure):
            yield from _offload(store)
            yield from _levels(store, queue_managers)
            yield from _scm(store)
        elif isinstance(store, QueueFile):
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
