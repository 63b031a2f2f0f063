"""Warnings about CFRM policies that are valid but unwise: sizes, automatic alter, what a coupling facility has.

Sources: [IBM: z/OS MVS Setting Up a Sysplex, Understanding MINSIZE/INITSIZE/SIZE correlation] (SIZE of 1.5 to 2 times
INITSIZE), [IBM: Health Checker, XCF_CF_STR_POLICYSIZE] (INITSIZE below half of SIZE), [IBM: z/OS MVS Setting Up a
Sysplex, Updating the CFRM policy] (FULLTHRESHOLD(0) switches off structure full monitoring and automatic alter),
[published] (no alter while data is in storage class memory; augmented space reduces what structures can use).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from twin.estate.model import DYNAMIC_AUGMENTED_PPM, FIXED_AUGMENTED, CouplingFacility, StoreConfig, Structure
from twin.units import MIB, format_size

_MAX_GROWTH = 2  # SIZE over INITSIZE


def structure_warnings(structure: Structure) -> Iterator[str]:
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


def facility_warnings(facility: CouplingFacility, stores: Mapping[str, StoreConfig]) -> Iterator[str]:
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
