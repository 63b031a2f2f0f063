"""Placement of the data of a message at its put: in the structure, or offloaded.

Sources: [IBM: IBM MQ, "Specifying offload options for shared messages"] (the three offload rules, 63.75 KB, 64K);
[IBM: APAR PM77094] (costs); [IBM: IBM MQ, DEFINE CFSTRUCT] (CFLEVEL 3 and 4); docs/storage-model.md#offloading.
"""

from __future__ import annotations

from kernels._compile import kernel
from kernels.layout import OFFLOAD_NONE, OFFLOAD_SMDS, RULE_OFF, RULES, Store
from kernels.pools import elements_of, exceeds

ALWAYS_OFFLOADED = 64_512  # bytes of data above which a message cannot be held in a structure (63 KB)
OFFLOADED_ELEMENTS = 2  # elements of an offloaded message [IBM: APAR PM77094]
DB2_PLACEHOLDER_ELEMENTS = 16  # at CFLEVEL(4) 4 KB stay in the structure [IBM: IBM MQ, DEFINE CFSTRUCT]

IN_STRUCTURE, TO_DATASET, TO_DB2 = range(3)


@kernel
def rule_in_force(store: Store, rule: int) -> bool:
    """Return True if offload rule 0..2 is not switched off and its threshold is exceeded now."""
    params = store.params[0]
    return params.offld_sz[rule] != RULE_OFF and exceeds(store, params.offld_th[rule])


@kernel
def highest_rule(store: Store) -> int:
    """Return the number 1..3 of the highest offload rule in force, or 0."""
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
    """Return the place and the elements of a message of `length` bytes put now.

    The place is IN_STRUCTURE, TO_DATASET or TO_DB2. At CFLEVEL(3) and below a message over 63 KB cannot be put; if an
    event says that it was, it is kept in the structure.
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
    """Return True if the structure takes messages of that length: over 63 KB needs CFLEVEL(4)."""
    params = store.params[0]
    offloads = params.cf_level == 4 or (params.cf_level >= 5 and params.offload != OFFLOAD_NONE)
    return length <= ALWAYS_OFFLOADED or offloads
