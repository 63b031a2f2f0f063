"""The storage of a message in a coupling facility structure: an entry, elements, and pages in a data set.

A message keeps the cost it was stored at. A put accepted by a full store is kept. Sources:
docs/storage-model.md#entries-and-elements, docs/storage-model.md#what-a-twin-keeps.
"""

from __future__ import annotations

from kernels import offload, order, pools, scm, smds
from kernels._compile import kernel
from kernels.layout import MARK_IN_ORDER, MARK_OFFLOADED, NONE, Store


@kernel
def fits(store: Store, qmgr: int, length: int) -> bool:
    """Return True if the real system would accept a put of that length by that queue manager now.

    Expands the data set if the put would.
    """
    place, elements = offload.placement(store, length)
    if not pools.has_room(store, elements) or not offload.can_be_put(store, length):
        return False
    return place != offload.TO_DATASET or smds.make_room(store, qmgr, smds.pages_of(store, length))


@kernel
def charge(store: Store, row: int, qmgr: int) -> bool:
    """Take the storage of message `row` at its present cost; return True if it did not fit and is kept all the same."""
    scalars = store.scalars[0]
    message = store.messages[row]
    length = message.length
    place, elements = offload.placement(store, length)
    fits_pools = pools.has_room(store, elements)
    if not fits_pools and scm.on_accepted_put(store, elements):
        place, elements = offload.placement(store, length)
        fits_pools = pools.has_room(store, elements)
    overfull = not fits_pools or not offload.can_be_put(store, length)
    message.elems = elements
    if place == offload.TO_DATASET:
        pages = smds.pages_of(store, length)
        overfull |= not smds.make_room(store, qmgr, pages)
        smds.place(store, row, qmgr, pages)
    if place != offload.IN_STRUCTURE:
        message.marks |= MARK_OFFLOADED
        scalars.offloaded_messages += 1
        scalars.offloaded_bytes += length
    scalars.ents_used += 1
    scalars.elems_used += elements
    if store.scm[0].enrolled:
        order.append(store, row)
    return overfull


@kernel
def refund(store: Store, row: int) -> None:
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
