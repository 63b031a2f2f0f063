"""Warnings about an estate that is valid but unwise, one line each; listed in docs/estate.md.

Source: [IBM: MQ 9.2, DEFINE PSID] (EXPAND(USER) without a secondary extent cannot expand).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from twin.estate.model import (
    ALWAYS_OFFLOADED_ABOVE,
    SMDS_MAX_SIZE,
    CouplingFacility,
    OffloadRule,
    PageSet,
    StoreConfig,
    Structure,
)
from twin.estate.policy_advice import facility_warnings, structure_warnings
from twin.units import format_size


def warnings(stores: Mapping[str, StoreConfig], described_smds: Collection[tuple[str, str]]) -> Iterator[str]:
    """Yield the warnings of every store in the order of the mapping.

    Args:
        stores: stores by name.
        described_smds: (store name, queue manager) of each shared message data set that the estate describes.
    """
    for store in stores.values():
        if isinstance(store, Structure):
            yield from _structure(store, described_smds)
            yield from structure_warnings(store)
        elif isinstance(store, PageSet):
            yield from _page_set(store)
        elif isinstance(store, CouplingFacility):
            yield from _coupling_facility(store, stores)
            yield from facility_warnings(store, stores)


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
