"""What a message costs a coupling facility structure: an entry, elements, and its place in a data set.

Sources: domain.md sections 1 and 2; contract section 7 (a message keeps the cost it was stored at; a put accepted in a
full store is kept).
"""

from __future__ import annotations

from kernels import offload, order, pools, scm, smds
from kernels._compile import kernel
from kernels.layout import MARK_IN_ORDER, MARK_OFFLOADED, NONE, Store


@kernel
def fits(store: Store, qmgr: int, length: int) -> bool:
    """Whether a put of that length by that queue manager would be accepted by the real system now.

    Expands the data set where the put would.
    """
    place, elements = offload.placement(store, length)
    if not pools.has_room(store, elements) or not offload.can_be_put(store, length):
        return False
    return place != offload.TO_DATASET or smds.make_room(store, qmgr, smds.pages_of(store, length))


@kernel
def charge(store: Store, row: int, qmgr: int) -> bool:
    """Take what message `row` costs now; whether it did not fit and is kept as a fact all the same."""
    scalars = store.scalars[0]
    message = store.messages[row]
    length = message.length
    place, elements = offload.placement(store, length)
    overfull = not pools.has_room(store, elements) or not offload.can_be_put(store, length)
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
    """Give back what message `row` took."""
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
