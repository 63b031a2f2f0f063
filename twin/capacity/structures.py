"""The size of a structure: its pools, the SCM and augmented space that its facility leaves it, its offload rules.

Pure functions of the estate: the twin, the forecast and `mqtwin size` compute with the same laws. Sources: [published]
IBM MQ for z/OS, capacity planning for offloading; how storage class memory works with IBM MQ for z/OS (augmented space
is never taken from a structure). [fitted] and [assumed] are marked where they stand.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from kernels import pools
from twin.estate import ALWAYS_OFFLOADED_ABOVE, RULE_OFF, Estate, OffloadRule, Structure
from twin.estate.model import FIXED_AUGMENTED, facility_of, others_of
from twin.units import KIB

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
    facility = facility_of(estate.stores, config)
    if facility is None or facility.size is None:
        return scm_max, _UNBOUNDED
    allocated = sum(map(_allocated_bytes, (*others_of(estate.stores, config, facility), config)))
    return min(scm_max, facility.scm or 0), max(0, facility.size - facility.dump_space - allocated)


def assured_scm(estate: Estate, config: Structure) -> int:
    """Return the bytes of SCM that are left for a structure when every structure of its facility takes its share.

    All of SCMMAXSIZE, unless the facility's SCM is over-committed; then as much less as all together lack.
    """
    scm_max = config.scm_max_size or 0
    facility = facility_of(estate.stores, config)
    if facility is None or facility.size is None:
        return scm_max
    committed = scm_max + sum(store.scm_max_size or 0 for store in others_of(estate.stores, config, facility))
    scm = facility.scm or 0
    return scm_max if committed <= scm else scm_max * scm // committed


def room_to_grow(estate: Estate, config: Structure, size_now: int) -> int | None:
    """Return the bytes that a coupling facility has left for one of its structures to grow; None: not known.

    The others count as they are allocated at first: what they have grown by since is in the facility's state record.
    """
    facility = facility_of(estate.stores, config)
    if facility is None or facility.size is None:
        return None
    allocated = sum(map(_allocated_bytes, others_of(estate.stores, config, facility)))
    fixed = FIXED_AUGMENTED if config.scm_max_size is not None else 0
    return facility.size - facility.dump_space - allocated - size_now - fixed


def _allocated_bytes(config: Structure) -> int:
    """Return the bytes of its coupling facility that a structure takes, its fixed augmented space included."""
    return allocate(config).size + (FIXED_AUGMENTED if config.scm_max_size is not None else 0)


# --- offload rules proposed to an administrator: always the whole set of six values ---------------------------

# [IBM: Specifying offload options for shared messages, Capacity]: a threshold for all messages is given, and "the other
# offload parameters would also need to be adjusted". A rule helps only if no other one offloads the same data earlier:
# thresholds rise and sizes fall from rule 1 to rule 3.

SOONER_TH = 70  # OFFLD3TH of the remedy that saves elements, percent [assumed]
_STEP = 10  # percent between the thresholds of two rules, as in the defaults 70, 80, 90 [IBM: the same, table]
_SIZES = (32 * KIB, 4 * KIB)  # of rules 1 and 2 by default [IBM: the same, table]


def has_rules(config: Structure) -> bool:
    """True if the structure offloads by rules: [IBM: the same] they need CFLEVEL(5)."""
    return config.cf_level >= 5 and config.offload != "NONE"


def offloads_all_by(config: Structure, threshold: int) -> bool:
    """True if some rule offloads all data at that threshold, percent, or below."""
    return any(not rule.off and rule.th <= threshold and rule.sz <= config.offload_min_length for rule in config.rules)


def with_all_offloaded_above(config: Structure, threshold: int) -> tuple[OffloadRule, ...]:
    """Return three rules of which the third offloads all data above a threshold, and the others less, earlier.

    Rules 1 and 2 keep what the structure has, as far as they can fire before rule 3. A rule for which no threshold is
    left is switched off with a size of 64K. `threshold`: OFFLD3TH, percent.
    """
    first, second, _ = config.rules
    third = OffloadRule(number=3, th=threshold, sz=0)
    first_sz = first.sz // KIB * KIB
    if not first.off and not 2 * KIB <= first_sz < ALWAYS_OFFLOADED_ABOVE:
        first_sz = _SIZES[0]
    max_sz = ALWAYS_OFFLOADED_ABOVE if first.off else first_sz
    second_sz = second.sz // KIB * KIB
    if second.off or not 0 < second_sz < max_sz:
        second_sz = _SIZES[1] if max_sz > _SIZES[1] else max_sz // 2 // KIB * KIB
    second_th = _below(threshold, second.th)
    if second_th is None:
        return OffloadRule(number=1, th=0, sz=RULE_OFF), OffloadRule(number=2, th=0, sz=RULE_OFF), third
    first_th = _below(second_th, first.th)
    if first.off or first_th is None:
        return OffloadRule(number=1, th=0, sz=RULE_OFF), OffloadRule(number=2, th=second_th, sz=second_sz), third
    return OffloadRule(number=1, th=first_th, sz=first_sz), OffloadRule(number=2, th=second_th, sz=second_sz), third


def _below(threshold: int, present: int) -> int | None:
    """Return a threshold below another: the present one if it is, else a step less; None: there is none."""
    if present < threshold:
        return present
    if threshold <= 0:
        return None
    return threshold - _STEP if threshold > _STEP else threshold // 2
