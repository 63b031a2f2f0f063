"""Where the data of a message go at its put: into the structure, or offloaded.

Sources: seed "Specifying offload options for shared messages" (three rules, 63.75 KB always, 64K switches a rule off);
domain.md section 1 (costs: APAR PM77094; messages of 140 bytes or less save nothing; CFLEVEL 4 and 3).
"""

from __future__ import annotations

from kernels._compile import kernel
from kernels.layout import OFFLOAD_NONE, OFFLOAD_SMDS, RULE_OFF, RULES, Store
from kernels.pools import elements_of, exceeds

ALWAYS_OFFLOADED = 64_512  # bytes of data above which a message cannot stand in a structure (63 KB)
OFFLOADED_ELEMENTS = 2  # of an offloaded message [pub, PM77094]
DB2_PLACEHOLDER_ELEMENTS = 16  # CFLEVEL(4): 4 KB stay in the structure

IN_STRUCTURE, TO_DATASET, TO_DB2 = range(3)


@kernel
def rule_in_force(store: Store, rule: int) -> bool:
    """Whether offload rule 0..2 is not switched off and its threshold is exceeded now."""
    params = store.params[0]
    return params.offld_sz[rule] != RULE_OFF and exceeds(store, params.offld_th[rule])


@kernel
def highest_rule(store: Store) -> int:
    """1..3: the highest rule in force; 0: none (contract section 7, `offload_rule`)."""
    params = store.params[0]
    if params.cf_level < 5 or params.offload == OFFLOAD_NONE:
        return 0
    for rule in range(RULES - 1, -1, -1):
        if rule_in_force(store, rule):
            return rule + 1
    return 0


@kernel
def _offloaded_by_rule(store: Store, length: int) -> bool:
    params = store.params[0]
    if length <= params.offload_min_length:
        return False
    for rule in range(RULES):
        if length > params.offld_sz[rule] and rule_in_force(store, rule):
            return True
    return False


@kernel
def placement(store: Store, length: int) -> tuple[int, int]:
    """(place, elements) of a message of `length` bytes put now.

    place: IN_STRUCTURE, TO_DATASET or TO_DB2. At CFLEVEL(3) and below a longer message cannot be put at all; as a fact
    it is kept in the structure (contract section 7).
    """
    params = store.params[0]
    if params.cf_level >= 5 and params.offload != OFFLOAD_NONE:
        if length > ALWAYS_OFFLOADED or _offloaded_by_rule(store, length):
            place = TO_DATASET if params.offload == OFFLOAD_SMDS else TO_DB2
            return place, OFFLOADED_ELEMENTS
    elif params.cf_level == 4 and length > ALWAYS_OFFLOADED:
        return TO_DB2, DB2_PLACEHOLDER_ELEMENTS
    return IN_STRUCTURE, elements_of(length)


@kernel
def can_be_put(store: Store, length: int) -> bool:
    """Whether the structure takes messages of that length at all: over 63 KB needs CFLEVEL(4)."""
    params = store.params[0]
    offloads = params.cf_level == 4 or (params.cf_level >= 5 and params.offload != OFFLOAD_NONE)
    return length <= ALWAYS_OFFLOADED or offloads
