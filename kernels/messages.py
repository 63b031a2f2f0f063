"""The life of a message in a store: stored, available, taken, discarded, expired.

- Storage is taken at MQPUT, before the commit; a get under syncpoint frees it at the commit. A message keeps the cost
  it was stored at. A put accepted by a full store is kept. Sources: docs/storage-model.md#puts-gets-and-units-of-work,
  docs/storage-model.md#what-a-twin-keeps.
- Expired messages are removed by a scan of the queue manager, and by gets that meet them. Until then an expired message
  holds its storage. An uncommitted one does not expire before its unit ends. Sources: [IBM: IBM MQ, MQMD Expiry] (what
  a get meets is discarded), [IBM: IBM MQ, ALTER QMGR EXPRYINT] (the scan); docs/storage-model.md#expiry.
"""

from __future__ import annotations

import numpy as np

from kernels import chains, ids, meters, storage
from kernels._compile import kernel, routine
from kernels._intrinsics import fetch
from kernels.layout import (
    AVAILABLE,
    EXPIRE,
    FREE,
    GET,
    MARK_KEYED,
    MARK_LATE,
    MARK_OVERFULL,
    MARK_PERSISTENT,
    NEVER,
    NONE,
    QUEUE_SHIFT,
    UNCOMMITTED_GET,
    UNCOMMITTED_PUT,
    Store,
    touch,
    touch_row,
)


@kernel
def _new_row(store: Store) -> int:
    scalars = store.scalars[0]
    row = scalars.message_free
    if row == NONE:
        row = scalars.message_high
        scalars.message_high += 1
    else:
        scalars.message_free = store.messages[row].next
        fetch(store.messages, scalars.message_free)
    return row


@kernel
def max_stored(store: Store, count: int) -> int:
    """Return the maximum of rows that `count` puts may need: a store keeps a limited number of messages."""
    return max(0, min(count, store.params[0].most_messages - store.scalars[0].messages))


@kernel
def is_kept(store: Store, qmgr: int, length: int, persistent: bool) -> bool:
    """Return True if a message put now is kept; otherwise it only counts as overfull.

    A store keeps a limited number of messages, and a limited number of those that did not fit (`params`), so that
    memory is bounded for any events.
    """
    scalars = store.scalars[0]
    params = store.params[0]
    if scalars.messages >= params.most_messages:
        return False
    return scalars.overfull_held < params.most_overfull or fits(store, qmgr, length, persistent)


@routine
def fits(store: Store, qmgr: int, length: int, persistent: bool) -> bool:
    """Return True if the real system would accept a put of that length now; expand the store if the put would."""
    return storage.fits(store, qmgr, length, persistent)


@kernel
def store_message(
    store: Store,
    queue: int,
    qmgr: int,
    length: int,
    priority: int,
    key: np.uint64,
    keyed: bool,
    persistent: bool,
    expires: int,
) -> int:
    """Store a message at its present cost; return its row, which is in no chain yet and not marked as written."""
    scalars = store.scalars[0]
    row = _new_row(store)
    message = store.messages[row]
    message.key = key
    message.age = scalars.ages
    message.expires = expires
    if expires != 0:
        scalars.expiring += 1
        store.params[0].expires_from = min(store.params[0].expires_from, expires)
    message.unit = NONE
    message.queue = queue
    message.length = length
    message.elems = 0
    message.block = NONE
    message.pages = 0
    message.owner = NONE
    message.priority = priority
    message.marks = (MARK_KEYED if keyed else 0) | (MARK_PERSISTENT if persistent else 0)
    if storage.charge(store, row, qmgr):
        message.marks |= MARK_OVERFULL
        scalars.overfull_puts += 1
        scalars.overfull_held += 1
    scalars.ages += 1
    scalars.messages += 1
    scalars.bytes += length
    _join_queue(store, row)
    meters.count_put(store, row, qmgr)
    touch(store.queues_dirty, queue, QUEUE_SHIFT)
    return row


@kernel
def _join_queue(store: Store, row: int) -> None:
    """Count what a message takes among that of its queue, after its storage is taken."""
    message = store.messages[row]
    owner = store.queues[message.queue]
    owner.depth += 1
    owner.bytes += message.length
    owner.elems += message.elems
    owner.pages += message.pages


@kernel
def _leave_queue(store: Store, row: int) -> None:
    """Count a message no longer, before its storage is given back."""
    message = store.messages[row]
    owner = store.queues[message.queue]
    owner.depth -= 1
    owner.bytes -= message.length
    owner.elems -= message.elems
    owner.pages -= message.pages


@kernel
def discard(store: Store, row: int) -> None:
    """Free a message that is in no chain any more, with its storage."""
    scalars = store.scalars[0]
    message = store.messages[row]
    scalars.messages -= 1
    scalars.bytes -= message.length
    _leave_queue(store, row)
    meters.count_removal(store, row)
    storage.refund(store, row)
    if message.marks & MARK_OVERFULL:
        scalars.overfull_held -= 1
    if message.expires != 0:
        scalars.expiring -= 1
    message.state = FREE
    message.next = scalars.message_free
    scalars.message_free = row
    touch_row(store.messages_dirty, row)
    touch(store.queues_dirty, message.queue, QUEUE_SHIFT)


@kernel
def make_uncommitted(store: Store, row: int, unit: int, state: int) -> None:
    """Add a message that is in no chain to a unit of work, as a put or a get according to `state`."""
    message = store.messages[row]
    message.state = state
    chains.append_to_unit(store, row, unit)
    store.scalars[0].uncommitted += 1
    if ids.is_unit_prepared(store, unit):
        store.scalars[0].in_doubt += 1
    store.queues[message.queue].uncommitted += 1
    if state == UNCOMMITTED_GET:
        store.queues[message.queue].uncommitted_gets += 1
    touch(store.queues_dirty, message.queue, QUEUE_SHIFT)


@kernel
def _leave_chain(store: Store, row: int) -> None:
    """Make an available message one that no get finds."""
    chains.remove(store, row)
    if store.messages[row].marks & MARK_KEYED:
        ids.leave(store, row)


@kernel
def take(store: Store, row: int, unit: int) -> None:
    """Get an available message: finally outside syncpoint (unit NONE), else until its unit ends."""
    _leave_chain(store, row)
    _hand_over(store, row, unit)


@kernel
def remove(store: Store, row: int) -> None:
    """Remove an available message that nobody gets."""
    _leave_chain(store, row)
    discard(store, row)


@kernel
def _hand_over(store: Store, row: int, unit: int) -> None:
    """Give a message that is in no chain to a get."""
    if unit == NONE:
        meters.count_get(store, store.messages[row].queue)
        discard(store, row)
    else:
        make_uncommitted(store, row, unit, UNCOMMITTED_GET)


@kernel
def make_available(store: Store, row: int, hint: int) -> int:
    """Make a message available, or give it to the held get that waits for it.

    Returns its row, or NONE if a held get took it. `hint`: see `chains.insert`.
    """
    message = store.messages[row]
    message.state = AVAILABLE
    message.unit = NONE
    keyed = message.marks & MARK_KEYED != 0
    get = ids.match_held_get(store, message.queue, message.key, keyed)
    if get == NONE:
        chains.insert(store, row, hint)
        if keyed:
            ids.enter(store, row)
        return row
    unit = store.held[get].unit
    ids.give_message(store, get)
    storage.on_operation(store, row, unit, GET)
    _hand_over(store, row, unit)
    return NONE


@kernel
def end_unit(store: Store, unit: int, committed: bool) -> None:
    """Commit or back out a unit: first its held gets, then its operations in their order.

    A commit makes its puts available and discards its gets. A backout discards its puts and returns its gets by age.
    """
    ids.release_gets_of_unit(store, unit, not committed)
    in_doubt = 1 if ids.is_unit_prepared(store, unit) else 0
    hint = NONE
    row = int(store.units[unit].head)
    while row != NONE:
        message = store.messages[row]
        following = int(message.next)
        store.scalars[0].uncommitted -= 1
        store.scalars[0].in_doubt -= in_doubt
        store.queues[message.queue].uncommitted -= 1
        if message.state == UNCOMMITTED_GET:
            store.queues[message.queue].uncommitted_gets -= 1
        touch(store.queues_dirty, message.queue, QUEUE_SHIFT)
        if (message.state == UNCOMMITTED_PUT) == committed:
            if not committed:
                storage.on_get_backed_out(store, row)
            hint = make_available(store, row, _if_in_chain(store, hint, message.priority))
        else:
            if committed:
                meters.count_get(store, message.queue)
            discard(store, row)
        row = following
    store.units[unit].head = NONE
    store.units[unit].tail = NONE


@kernel
def _if_in_chain(store: Store, row: int, priority: int) -> int:
    """Return `row` if it is in the chain of available messages of that priority, else NONE."""
    if row == NONE or store.messages[row].state != AVAILABLE or store.messages[row].priority != priority:
        return NONE
    return NONE if store.messages[row].marks & MARK_LATE else row


@kernel
def find_next(store: Store, queue: int) -> int:
    """Return the available message of the queue that the next get takes, or NONE.

    What has expired and comes before it is removed, as by the get that meets it.
    """
    while True:
        priority = chains.highest_priority(store, queue)
        if priority == NONE:
            return NONE
        row = chains.first(store, queue, priority)
        if not has_expired(store, row):
            return row
        remove_expired(store, row)


@routine
def remove_expired(store: Store, row: int) -> None:
    """Remove an available message that has expired, as by the get that meets it."""
    storage.on_operation(store, row, NONE, EXPIRE)
    remove(store, row)


@kernel
def has_expired(store: Store, row: int) -> bool:
    """Return True if a message has expired by the store's clock."""
    expires = store.messages[row].expires
    return bool(expires != 0 and expires <= store.scalars[0].clock)


@routine
def drop_nonpersistent(store: Store) -> None:
    """Discard every nonpersistent message, as a restart of its queue manager does.

    Units in doubt are the only ones that are open, and lose theirs: the log has only persistent messages.
    """
    if not storage.may_hold_nonpersistent(store):
        return
    for row in range(store.scalars[0].message_high):
        message = store.messages[row]
        if message.state == FREE or message.marks & MARK_PERSISTENT:
            continue
        if message.state == AVAILABLE:
            remove(store, row)
            continue
        chains.remove_from_unit(store, row)
        store.scalars[0].uncommitted -= 1
        store.scalars[0].in_doubt -= 1
        store.queues[message.queue].uncommitted -= 1
        discard(store, row)


# --- expiry -----------------------------------------------------------------------------------------------------------

_NEVER_SOON = 1 << 62  # behind every time


@routine
def scan_expired(store: Store, time: int) -> None:
    """Remove every available message that has expired by `time`, microseconds."""
    if store.params[0].expires_from > time:
        return
    earliest = _NEVER_SOON
    for row in range(store.scalars[0].message_high):
        message = store.messages[row]
        if message.state == FREE or message.expires == 0:
            continue
        if message.state == AVAILABLE and message.expires <= time:
            remove_expired(store, row)
        else:
            earliest = min(earliest, message.expires)
    store.params[0].expires_from = earliest


@routine
def next_expiry(store: Store, time: int) -> int:
    """Return a time before which no available message expires, microseconds; NEVER: none does.

    Where it is not after `time`, it is when the first one expires or has expired: an uncommitted message that has
    expired must not let a scan seem due for ever.
    """
    earliest = store.params[0].expires_from
    if earliest > time:
        return NEVER if earliest == _NEVER_SOON else int(earliest)
    earliest = _NEVER_SOON
    for row in range(store.scalars[0].message_high):
        message = store.messages[row]
        if message.state == AVAILABLE and message.expires != 0:
            earliest = min(earliest, message.expires)
    return NEVER if earliest == _NEVER_SOON else int(earliest)


@routine
def count_expired(store: Store) -> int:
    """Return the messages that hold storage although they have expired by the store's clock."""
    params, clock = store.params[0], store.scalars[0].clock
    count, earliest = 0, _NEVER_SOON
    if store.scalars[0].expiring == 0 or params.expires_from > clock:
        return count
    for row in range(store.scalars[0].message_high):
        message = store.messages[row]
        if message.state != FREE and message.expires != 0:
            earliest = min(earliest, message.expires)
            count += message.expires <= clock
    params.expires_from = earliest
    return count
