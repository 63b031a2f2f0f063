"""What a message costs, whatever the kind of the store: the one place where mechanisms are chosen.

The event loop, units of work, held gets and chains are the same for every store; how storage is taken and given back
is not. `params.kind` says which mechanism it is: the branch costs nothing beside the loop, one loop is compiled.
"""

from __future__ import annotations

from kernels import page_set, queue_file, scm, smds, structure
from kernels._compile import kernel
from kernels.layout import GET, MARK_IN_ORDER, PAGE_SET, QUEUE_FILE, STRUCTURE, Store


@kernel
def has_rows(store: Store, length: int, count: int) -> bool:
    """Whether the tables beside that of the messages have rows for `count` puts of that length."""
    kind = store.params[0].kind
    if kind == STRUCTURE:
        return store.scalars[0].block_high + smds.rows_at_most(store, length, count) <= store.blocks.size
    if kind == PAGE_SET:
        return store.params[0].packs == 0 or store.page_use[0].high + count <= store.packed.size
    return True


@kernel
def fits(store: Store, qmgr: int, length: int, persistent: bool) -> bool:
    """Whether a put of that length would be accepted by the real system now; expands the store where the put would."""
    kind = store.params[0].kind
    if kind == STRUCTURE:
        return structure.fits(store, qmgr, length)
    if kind == PAGE_SET:
        return page_set.fits(store, length)
    return queue_file.fits(store, length, persistent)


@kernel
def charge(store: Store, row: int, qmgr: int) -> bool:
    """Take the storage of message `row`, whose length and marks are set; whether it did not fit (a fact is kept)."""
    kind = store.params[0].kind
    if kind == STRUCTURE:
        return structure.charge(store, row, qmgr)
    if kind == PAGE_SET:
        return page_set.charge(store, row)
    return queue_file.charge(store, row)


@kernel
def refund(store: Store, row: int) -> None:
    """Give back the storage of message `row`."""
    kind = store.params[0].kind
    if kind == STRUCTURE:
        structure.refund(store, row)
    elif kind == PAGE_SET:
        page_set.refund(store, row)
    else:
        queue_file.refund(store, row)


@kernel
def operated(store: Store, row: int, unit: int, op: int) -> None:
    """Do what the put, get or expiry of message `row` does besides: log it, read it from SCM.

    unit: in which it was done, NONE.
    """
    if store.params[0].kind == QUEUE_FILE:
        queue_file.operated(store, row, unit)
    elif op == GET and store.messages[row].marks & MARK_IN_ORDER:
        scm.got(store, row)


@kernel
def returned(store: Store, row: int) -> None:
    """Do what the backout of the get of message `row` does besides."""
    if store.scm[0].enrolled:
        scm.returned(store, row)


@kernel
def ends(store: Store, unit: int) -> None:
    """Do what the end of a unit of work does first: log it, where it had a persistent operation."""
    if store.params[0].kind == QUEUE_FILE and store.units[unit].logged == 1:
        queue_file.write_log(store)


@kernel
def settled(store: Store) -> None:
    """Do what an event brings about once it is done.

    A get held aside that finds its message, or is dropped, gives back to the baseline what it drew: of a queue file
    that may be more than its buffers hold.
    """
    if store.params[0].kind == QUEUE_FILE and store.scalars[0].based == 1:
        queue_file.let_grow(store)


@kernel
def cleared(store: Store, persistent: bool) -> None:
    """Do what a CLEAR does besides; persistent: it removed persistent messages."""
    if store.params[0].kind == QUEUE_FILE:
        queue_file.cleared(store, persistent)


@kernel
def may_hold_nonpersistent(store: Store) -> bool:
    """False if the store certainly holds no nonpersistent message: none has pages or blocks."""
    params = store.params[0]
    if params.kind == PAGE_SET:
        return params.packs == 1 or store.page_use[0].nonpersistent > 0
    return params.kind != QUEUE_FILE or store.file_use[0].nonpersistent > 0


@kernel
def restarted(store: Store) -> None:
    """Do what a restart of the queue manager does besides: what it held beyond the model is nonpersistent no more."""
    kind = store.params[0].kind
    if kind == PAGE_SET:
        page_set.restarted(store)
    elif kind == QUEUE_FILE:
        queue_file.restarted(store)
