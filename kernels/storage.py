"""The storage of a message in any kind of store: the only place that selects a mechanism.

- The event loop, units of work, held gets and chains are the same for every store; taking and giving back storage is
  not. `params.kind` selects the mechanism. One loop is compiled for all kinds, in which the branch costs nothing.
- Storage in a coupling facility structure is an entry, elements, and pages in a data set. A message keeps the cost it
  was stored at. A put accepted by a full store is kept. Sources: docs/storage-model.md#entries-and-elements,
  docs/storage-model.md#what-a-twin-keeps.
"""

from __future__ import annotations

from kernels import page_set, pools, queue_file, scm, smds
from kernels._compile import kernel
from kernels.layout import GET, MARK_IN_ORDER, MARK_OFFLOADED, NONE, PAGE_SET, QUEUE_FILE, STRUCTURE, Store

# --- structures -------------------------------------------------------------------------------------------------------


@kernel
def fits_structure(store: Store, qmgr: int, length: int) -> bool:
    """Return True if the real system would accept a put of that length by that queue manager now.

    Expands the data set if the put would.
    """
    place, elements = pools.placement(store, length)
    if not pools.has_room(store, elements) or not pools.can_be_put(store, length):
        return False
    return place != pools.TO_DATASET or smds.make_room(store, qmgr, smds.pages_of(store, length))


@kernel
def charge_structure(store: Store, row: int, qmgr: int) -> bool:
    """Take the storage of message `row` at its present cost; return True if it did not fit and is kept all the same."""
    scalars = store.scalars[0]
    message = store.messages[row]
    length = message.length
    place, elements = pools.placement(store, length)
    fits_pools = pools.has_room(store, elements)
    if not fits_pools and scm.on_accepted_put(store, elements):
        place, elements = pools.placement(store, length)
        fits_pools = pools.has_room(store, elements)
    overfull = not fits_pools or not pools.can_be_put(store, length)
    message.elems = elements
    if place == pools.TO_DATASET:
        pages = smds.pages_of(store, length)
        overfull |= not smds.make_room(store, qmgr, pages)
        smds.place(store, row, qmgr, pages)
    if place != pools.IN_STRUCTURE:
        message.marks |= MARK_OFFLOADED
        scalars.offloaded_messages += 1
        scalars.offloaded_bytes += length
    scalars.ents_used += 1
    scalars.elems_used += elements
    if store.scm[0].enrolled:
        scm.append_to_order(store, row)
    return overfull


@kernel
def refund_structure(store: Store, row: int) -> None:
    """Give back the storage of message `row`."""
    scalars = store.scalars[0]
    message = store.messages[row]
    if message.marks & MARK_IN_ORDER:
        scm.drop(store, row)
    scalars.ents_used -= 1
    scalars.elems_used -= message.elems
    if message.marks & MARK_OFFLOADED:
        scalars.offloaded_messages -= 1
        scalars.offloaded_bytes -= message.length
    if message.owner != NONE:
        smds.release(store, row)


# --- any kind of store ------------------------------------------------------------------------------------------------


@kernel
def has_rows(store: Store, length: int, count: int) -> bool:
    """Return True if the tables other than that of messages have rows for `count` puts of that length."""
    kind = store.params[0].kind
    if kind == STRUCTURE:
        return store.scalars[0].block_high + smds.max_rows(store, length, count) <= store.blocks.size
    if kind == PAGE_SET:
        return store.params[0].packs == 0 or store.page_use[0].high + count <= store.packed.size
    return queue_file.has_rows(store, count)


@kernel
def fits(store: Store, qmgr: int, length: int, persistent: bool) -> bool:
    """Return True if the real system would accept a put of that length now; expand the store if the put would."""
    kind = store.params[0].kind
    if kind == STRUCTURE:
        return fits_structure(store, qmgr, length)
    if kind == PAGE_SET:
        return page_set.fits(store, length)
    return queue_file.fits(store, length, persistent)


@kernel
def space_of(store: Store, length: int) -> float:
    """Return the elements, pages or blocks that a put of that length would take of the store itself, not offloaded."""
    kind = store.params[0].kind
    if kind == STRUCTURE:
        return float(pools.elements_of(length))
    if kind == PAGE_SET:
        return float(page_set.space_of(store, length))
    return float(queue_file.blocks_of(length))


@kernel
def charge(store: Store, row: int, qmgr: int) -> bool:
    """Take the storage of message `row`, whose length and marks are set; return True if it did not fit."""
    kind = store.params[0].kind
    if kind == STRUCTURE:
        return charge_structure(store, row, qmgr)
    if kind == PAGE_SET:
        return page_set.charge(store, row)
    return queue_file.charge(store, row)


@kernel
def refund(store: Store, row: int) -> None:
    """Give back the storage of message `row`."""
    kind = store.params[0].kind
    if kind == STRUCTURE:
        refund_structure(store, row)
    elif kind == PAGE_SET:
        page_set.refund(store, row)
    else:
        queue_file.refund(store, row)


@kernel
def on_operation(store: Store, row: int, unit: int, op: int) -> None:
    """Log the put, get or expiry of message `row` in `unit` (or NONE), or read a message from SCM for its get."""
    if store.params[0].kind == QUEUE_FILE:
        queue_file.log_operation(store, row, unit)
    elif op == GET and store.messages[row].marks & MARK_IN_ORDER:
        scm.on_get(store, row)


@kernel
def on_get_backed_out(store: Store, row: int) -> None:
    """Insert message `row` into the chains of SCM after its get was backed out."""
    if store.scm[0].enrolled:
        scm.on_get_backed_out(store, row)


@kernel
def on_unit_end(store: Store, unit: int, committed: bool) -> None:
    """Log the end of a unit of work that had a persistent operation, before the unit ends."""
    if store.params[0].kind == QUEUE_FILE and store.units[unit].logged == 1:
        queue_file.log_unit_end(store, unit, committed)


@kernel
def on_event_end(store: Store) -> None:
    """Adjust the store after an event.

    A held get that takes its message, or is dropped, gives back to the baseline what it had drawn down. For a queue
    file that may be more than its buffers hold.
    """
    if store.params[0].kind == QUEUE_FILE and store.scalars[0].based == 1:
        queue_file.let_grow(store)


@kernel
def on_clear(store: Store, persistent: bool) -> None:
    """Truncate a queue file after a CLEAR. `persistent`: it removed persistent messages."""
    if store.params[0].kind == QUEUE_FILE:
        queue_file.on_clear(store, persistent)


@kernel
def on_tick(store: Store, before: int, tick: int) -> None:
    """Take the checkpoint of a queue file if one is due by time. `before`: the tick acted on last."""
    if store.params[0].kind == QUEUE_FILE:
        queue_file.pass_time(store, before, tick)


@kernel
def may_hold_nonpersistent(store: Store) -> bool:
    """Return False if the store holds no nonpersistent message for certain, since none has pages or blocks."""
    params = store.params[0]
    if params.kind == PAGE_SET:
        return params.packs == 1 or store.page_use[0].nonpersistent > 0
    return params.kind != QUEUE_FILE or store.file_use[0].nonpersistent > 0


@kernel
def on_restart(store: Store) -> None:
    """Drop the nonpersistent part of the baseline after a restart of the queue manager."""
    kind = store.params[0].kind
    if kind == PAGE_SET:
        page_set.on_restart(store)
    elif kind == QUEUE_FILE:
        queue_file.on_restart(store)
