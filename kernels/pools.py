"""Entries and data elements of a list structure, and the placement of data: there, or offloaded.

- Entries and elements: [fitted] to [IBM: IBM MQ for z/OS: Performance on IBM z16, p. 14] (bytes per entry and element);
  [IBM: APAR PM77094] (ratio); [IBM: MQRC 2192; APAR PI21909] (a structure is full when entries or elements run out);
  docs/storage-model.md#entries-and-elements.
- Placement of the data of a message at its put: [IBM: IBM MQ, "Specifying offload options for shared messages"] (the
  three offload rules, 63.75 KB, 64K); [IBM: APAR PM77094] (costs); [IBM: IBM MQ, DEFINE CFSTRUCT] (CFLEVEL 3 and 4);
  docs/storage-model.md#offloading.
"""

from __future__ import annotations

from kernels._compile import kernel
from kernels.layout import OFFLOAD_NONE, OFFLOAD_SMDS, RULE_OFF, RULES, Store

ENTRY_BYTES = 695  # of SIZE per list entry with its controls [fitted]
ELEMENT_SHIFT = 8
ELEMENT_BYTES = 1 << ELEMENT_SHIFT  # per data element
MESSAGE_OVERHEAD = 372  # bytes that MQ adds to the data of a message in the structure [fitted]
RATIO = 6  # elements per entry at allocation [fitted]
RATIO_ALL_OFFLOADED = 2  # elements per entry if an offload rule has threshold 0 and size 0 [IBM: APAR PM77094]
SMALLEST_ELEMENTS = 2  # elements of the smallest message
AUTO_ALTER_GROWTH_PCT = 10  # growth of SIZE per minute by ALLOWAUTOALT(YES) [assumed]


@kernel
def elements_of(length: int) -> int:
    """Return the data elements of a message of `length` bytes held in the structure."""
    return (length + MESSAGE_OVERHEAD + ELEMENT_BYTES - 1) >> ELEMENT_SHIFT


@kernel
def drawn_messages(store: Store) -> int:
    """Return the messages of the baseline that unmatched gets have removed (docs/events.md#measurements)."""
    scalars = store.scalars[0]
    return min(max(0, scalars.unmatched_gets - scalars.unmatched_then), scalars.base_messages)


@kernel
def base_left(store: Store, measured: int) -> int:
    """Return what is left of a quantity of the baseline: measured - measured * drawn // messages.

    The product is computed in parts, so that it does not exceed 64 bits: the events' fields bound `measured`.
    """
    messages = store.scalars[0].base_messages
    if messages == 0:
        return measured
    removed = drawn_messages(store)
    return measured - measured // messages * removed - measured % messages * removed // messages


@kernel
def keep_persistent(store: Store, persistent: int, nonpersistent: int) -> None:
    """Reduce the messages of the baseline to those a restart leaves: their share of the storage, rounded up.

    Args:
        store: arrays of the store.
        persistent: pages or blocks left of the persistent baseline, at most 2**31.
        nonpersistent: pages or blocks left of the nonpersistent baseline, at most 2**31.
    """
    scalars = store.scalars[0]
    left = scalars.base_messages - drawn_messages(store)
    total = persistent + nonpersistent
    if total > 0:
        left = (left * persistent + total - 1) // total
    scalars.base_messages = left
    scalars.unmatched_then = scalars.unmatched_gets


@kernel
def entries_in_use(store: Store) -> int:
    """Return the entries in use, including what is left of the baseline."""
    scalars = store.scalars[0]
    if scalars.base_ents == 0:
        return scalars.ents_used
    return scalars.ents_used + base_left(store, scalars.base_ents)


@kernel
def elements_in_use(store: Store) -> int:
    """Return the elements in use, including what is left of the baseline."""
    scalars = store.scalars[0]
    if scalars.base_elems == 0:
        return scalars.elems_used
    return scalars.elems_used + base_left(store, scalars.base_elems)


@kernel
def exceeds(store: Store, percent: int) -> bool:
    """Return True if usage, the larger of entries and elements, is more than `percent`; 0 is always exceeded."""
    params = store.params[0]
    return (
        percent == 0
        or entries_in_use(store) * 100 > percent * params.ents_max
        or elements_in_use(store) * 100 > percent * params.elems_max
    )


@kernel
def has_room(store: Store, elements: int) -> bool:
    """Return True if an entry with `elements` elements fits."""
    params = store.params[0]
    return entries_in_use(store) + 1 <= params.ents_max and elements_in_use(store) + elements <= params.elems_max


# --- placement --------------------------------------------------------------------------------------------------------

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
