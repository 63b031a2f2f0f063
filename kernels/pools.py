"""Entries and data elements of a list structure, and those in use.

Sources: [fitted] to [IBM: IBM MQ for z/OS: Performance on IBM z16, p. 14] (bytes per entry and element);
[IBM: APAR PM77094] (ratio); [IBM: MQRC 2192; APAR PI21909] (a structure is full when entries or elements run out);
docs/storage-model.md#entries-and-elements.
"""

from __future__ import annotations

from kernels._compile import kernel
from kernels.layout import Store

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
