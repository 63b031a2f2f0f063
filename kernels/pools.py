"""Entries and data elements of a list structure: how many there are, how many are in use.

Sources: domain.md section 1 (bytes an entry and an element, ratios: calibrated against IBM MQ for z/OS: Performance on
IBM z16, p. 14; APAR PM77094); a structure is full when entries or elements run out (MQRC 2192; APAR PI21909).
"""

from __future__ import annotations

from kernels._compile import kernel
from kernels.layout import Store

ENTRY_BYTES = 695  # a list entry with its controls [fit]
ELEMENT_SHIFT = 8
ELEMENT_BYTES = 1 << ELEMENT_SHIFT  # a data element
MESSAGE_OVERHEAD = 372  # bytes MQ adds to a message's data in the structure [fit]
RATIO = 6  # elements for each entry at allocation [fit]
RATIO_ALL_OFFLOADED = 2  # where some rule has threshold 0 and size 0 [pub, PM77094]
SMALLEST_ELEMENTS = 2  # what the smallest message takes


@kernel
def elements_of(length: int) -> int:
    """Data elements of a message of `length` bytes held in the structure."""
    return (length + MESSAGE_OVERHEAD + ELEMENT_BYTES - 1) >> ELEMENT_SHIFT


@kernel
def drawn(store: Store) -> int:
    """Messages of the baseline that unmatched gets have drawn down (contract section 7, MEASURE)."""
    scalars = store.scalars[0]
    return min(max(0, scalars.unmatched_gets - scalars.unmatched_then), scalars.base_messages)


@kernel
def base_left(store: Store, measured: int) -> int:
    """What is left of a quantity of the baseline: measured - measured * drawn // messages, evenly by message.

    Taken apart such that no product leaves 64 bits (`measurement` bounds what was measured).
    """
    messages = store.scalars[0].base_messages
    if messages == 0:
        return measured
    gone = drawn(store)
    return measured - measured // messages * gone - measured % messages * gone // messages


@kernel
def keep_persistent(store: Store, persistent: int, nonpersistent: int) -> None:
    """Begin the messages of the baseline anew with those a restart leaves: their share by storage, rounded up.

    persistent, nonpersistent: what is left of the baseline's storage, pages or blocks (each at most 2**31).
    """
    scalars = store.scalars[0]
    left = scalars.base_messages - drawn(store)
    held = persistent + nonpersistent
    if held > 0:
        left = (left * persistent + held - 1) // held
    scalars.base_messages = left
    scalars.unmatched_then = scalars.unmatched_gets


@kernel
def entries_in_use(store: Store) -> int:
    """Entries in use, what is left of the baseline included."""
    scalars = store.scalars[0]
    if scalars.base_ents == 0:
        return scalars.ents_used
    return scalars.ents_used + base_left(store, scalars.base_ents)


@kernel
def elements_in_use(store: Store) -> int:
    """Elements in use, what is left of the baseline included."""
    scalars = store.scalars[0]
    if scalars.base_elems == 0:
        return scalars.elems_used
    return scalars.elems_used + base_left(store, scalars.base_elems)


@kernel
def exceeds(store: Store, percent: int) -> bool:
    """Whether usage, the larger of entries and elements, is more than `percent`; 0 is always exceeded."""
    params = store.params[0]
    return (
        percent == 0
        or entries_in_use(store) * 100 > percent * params.ents_max
        or elements_in_use(store) * 100 > percent * params.elems_max
    )


@kernel
def has_room(store: Store, elements: int) -> bool:
    """Whether one more entry with so many elements fits."""
    params = store.params[0]
    return entries_in_use(store) + 1 <= params.ents_max and elements_in_use(store) + elements <= params.elems_max
