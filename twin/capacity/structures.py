"""The size of a structure: its pools, and the SCM and augmented space that its coupling facility leaves it.

Pure functions of the estate: the twin, the forecast and `mqtwin size` compute with the same laws.

Sources: [published] IBM MQ for z/OS, capacity planning for offloading; how storage class memory works with IBM MQ for
z/OS (augmented space is never taken from a structure). [fitted] and [assumed] are marked where they stand.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from kernels import pools
from twin.estate import CouplingFacility, Estate, Structure
from twin.estate.model import FIXED_AUGMENTED

SCM_POOLS_PCT = 97  # of its pools that a structure with SCM keeps [published: fewer; assumed: 3 % fewer]
_UNBOUNDED = 1 << 62


class Allocation(NamedTuple):
    """The pools of a structure. size: bytes; ratio: elements per entry, a fraction after automatic alter."""

    size: int
    ratio: int | Fraction


class Usage(NamedTuple):
    """Contents of a structure. holds_data: True if a data set of it holds messages."""

    entries: int
    elements: int
    holds_data: bool


def allocate(config: Structure) -> Allocation:
    """Return the allocation of a new or rebuilt structure: INITSIZE, else SIZE, at the ratio its rules ask for.

    The ratio is 2 where an offload rule has threshold 0 and size 0 [published: APAR PM77094], else 6.
    """
    offloads = config.cf_level >= 5 and config.offload != "NONE"
    everything = any(rule.th == 0 and rule.sz == 0 for rule in config.rules)
    ratio = pools.RATIO_ALL_OFFLOADED if offloads and everything else pools.RATIO
    return Allocation(config.init_size or config.size, ratio)


def pool_sizes(config: Structure, size: int, ratio: int | Fraction) -> tuple[int, int]:
    """Return (entries, elements) of `size` bytes at `ratio` elements per entry.

    [fitted] to the published table of a 4 GB structure; see `kernels.pools` for what each takes.
    """
    share, shares = ratio.numerator, ratio.denominator
    entries = size * shares // (pools.ENTRY_BYTES * shares + pools.ELEMENT_BYTES * share)
    elements = entries * share // shares
    if config.scm_max_size:
        return entries * SCM_POOLS_PCT // 100, elements * SCM_POOLS_PCT // 100
    return entries, elements


def bounds(estate: Estate, config: Structure) -> tuple[int, int]:
    """Return (bytes of SCM, bytes of dynamic augmented space) that a structure may use.

    A coupling facility of which only the CFRM policy is known, or none, bounds nothing.
    """
    scm_max = config.scm_max_size or 0
    facility = estate.stores.get(config.coupling_facility or "")
    if not isinstance(facility, CouplingFacility) or facility.size is None:
        return scm_max, _UNBOUNDED
    others = [estate.stores[name] for name in facility.structures if name != config.name]
    allocated = sum(_allocated_bytes(store) for store in (*others, config) if isinstance(store, Structure))
    return min(scm_max, facility.scm or 0), max(0, facility.size - facility.dump_space - allocated)


def assured_scm(estate: Estate, config: Structure) -> int:
    """Return the bytes of SCM that are left for a structure when every structure of its facility takes its share.

    All of SCMMAXSIZE, unless the facility's SCM is over-committed; then as much less as all together lack.
    """
    scm_max = config.scm_max_size or 0
    facility = estate.stores.get(config.coupling_facility or "")
    if not isinstance(facility, CouplingFacility) or facility.size is None:
        return scm_max
    others = [estate.stores[name] for name in facility.structures if name != config.name]
    committed = scm_max + sum(store.scm_max_size or 0 for store in others if isinstance(store, Structure))
    scm = facility.scm or 0
    return scm_max if committed <= scm else scm_max * scm // committed


def room_to_grow(estate: Estate, config: Structure, size_now: int) -> int | None:
    """Return the bytes that a coupling facility has left for one of its structures to grow; None: not known.

    The others count as they are allocated at first: what they have grown by since is in the facility's state record.

    Args:
        estate: the estate.
        config: the structure.
        size_now: bytes that it has.
    """
    facility = estate.stores.get(config.coupling_facility or "")
    if not isinstance(facility, CouplingFacility) or facility.size is None:
        return None
    others = [estate.stores[name] for name in facility.structures if name != config.name]
    allocated = sum(_allocated_bytes(store) for store in others if isinstance(store, Structure))
    fixed = FIXED_AUGMENTED if config.scm_max_size is not None else 0
    return facility.size - facility.dump_space - allocated - size_now - fixed


def _allocated_bytes(config: Structure) -> int:
    """Return the bytes of its coupling facility that a structure takes, its fixed augmented space included."""
    return allocate(config).size + (FIXED_AUGMENTED if config.scm_max_size is not None else 0)
