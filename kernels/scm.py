"""Storage class memory of a structure, SCMALGORITHM(KEYPRIORITY1): its mover, and the gets that wait for a read.

- A message that holds storage is in a chain of its priority, by age: of the structure, or of SCM. A message that a get
  has taken without a commit is in no chain, since it was read.
- Sources: [IBM: IBM MQ, "How storage class memory works with IBM MQ for z/OS"] (thresholds of 90 and 70 %,
  KEYPRIORITY1, faults); [assumed] (a test per message, bytes in SCM, bandwidth, augmented space);
  docs/storage-model.md#storage-class-memory.
"""

from __future__ import annotations

from kernels import chains, pools
from kernels._compile import kernel, routine
from kernels.layout import (
    FREE,
    MARK_IN_ORDER,
    MARK_IN_SCM,
    MARK_ORDER_LATE,
    NEVER,
    NONE,
    PRIORITIES,
    UNCOMMITTED_GET,
    Array,
    Row,
    Store,
    touch_row,
)

# --- chains by priority and age, across queues ------------------------------------------------------------------------
# There are ten chains of the structure, by priority, and ten of storage class memory. The mover takes the youngest
# message of the structure and the oldest of SCM. A message whose place in its chain is not near goes to a heap beside
# it (see chains.py). Source: [IBM: IBM MQ, "How storage class memory works with IBM MQ for z/OS"] (priority, then age,
# decides what moves).


@kernel
def _join(store: Store, ends: Row, before: int, row: int, after: int) -> None:
    """Insert `row` between its neighbours (NONE: the chain's end)."""
    link = store.order[row]
    link.prev = before
    link.next = after
    touch_row(store.order_dirty, row)
    if before == NONE:
        ends.head = row
    else:
        store.order[before].next = row
        touch_row(store.order_dirty, before)
    if after == NONE:
        ends.tail = row
    else:
        store.order[after].prev = row
        touch_row(store.order_dirty, after)


@kernel
def append_to_order(store: Store, row: int) -> None:
    """Append a message just put, the youngest of all, to the structure's chain of its priority."""
    message = store.messages[row]
    ends = store.scm_ends[int(message.priority)]
    message.marks |= MARK_IN_ORDER
    _join(store, ends, ends.tail, row, NONE)


@kernel
def _heap_of(chain: int) -> int:
    return chains.YOUNGEST if chain < PRIORITIES else chains.OLDEST


@kernel
def first_in_order(store: Store, chain: int) -> int:
    """Return the message that the mover takes next from a chain, or NONE."""
    ends = store.scm_ends[chain]
    row = ends.tail if chain < PRIORITIES else ends.head
    if ends.late == NONE:
        return int(row)
    if row == NONE or chains.comes_before(store, ends.late, row, _heap_of(chain)):
        return int(ends.late)
    return int(row)


@kernel
def enter_order(store: Store, row: int, chain: int) -> None:
    """Insert a message by its age into the chain, or into the heap beside it."""
    ends = store.scm_ends[chain]
    age = store.messages[row].age
    if ends.tail == NONE or store.messages[ends.tail].age < age:
        _join(store, ends, ends.tail, row, NONE)
        ends.finger = row
    elif store.messages[ends.head].age > age:
        _join(store, ends, NONE, row, ends.head)
        ends.finger = row
    else:
        _enter_within(store, row, chain)


@routine
def _enter_within(store: Store, row: int, chain: int) -> None:
    """Search the place of a message from both ends alternately, with the finger as one of them.

    Messages move by age and return by unit of work, so that the place of the next one is beside that of the last one.
    """
    ends = store.scm_ends[chain]
    age = store.messages[row].age
    low = ends.head
    high = ends.tail
    if ends.finger != NONE and store.messages[ends.finger].age < age:
        low = ends.finger
    elif ends.finger != NONE:
        high = ends.finger
    for _ in range(chains.MAX_STEPS):
        after = store.order[low].next
        if store.messages[after].age > age:
            _join(store, ends, low, row, after)
            ends.finger = row
            return
        low = after
        before = store.order[high].prev
        if store.messages[before].age < age:
            _join(store, ends, before, row, high)
            ends.finger = row
            return
        high = before
    link = store.order[row]
    link.next = NONE
    link.prev = NONE
    link.child = NONE
    touch_row(store.order_dirty, row)
    store.messages[row].marks |= MARK_ORDER_LATE
    ends.late = row if ends.late == NONE else chains.join_heap(store, store.order, ends.late, row, _heap_of(chain))
    store.order[ends.late].next = NONE
    store.order[ends.late].prev = NONE


@routine
def _leave_heap(store: Store, row: int, chain: int) -> None:
    ends = store.scm_ends[chain]
    if ends.late == row:
        ends.late = chains.heap_without_top(store, store.order, row, _heap_of(chain))
    else:
        chains.heap_without(store, store.order, int(ends.late), row, _heap_of(chain))
    store.messages[row].marks ^= MARK_ORDER_LATE


@kernel
def leave_order(store: Store, row: int, chain: int) -> None:
    """Remove a message from its chain, or from the heap beside it; the caller marks the message as written."""
    if store.messages[row].marks & MARK_ORDER_LATE:
        _leave_heap(store, row, chain)
        return
    link = store.order[row]
    ends = store.scm_ends[chain]
    if ends.finger == row:
        ends.finger = link.prev if link.prev != NONE else link.next
    if link.prev == NONE:
        ends.head = link.next
    else:
        store.order[link.prev].next = link.next
        touch_row(store.order_dirty, link.prev)
    if link.next == NONE:
        ends.tail = link.prev
    else:
        store.order[link.next].prev = link.prev
        touch_row(store.order_dirty, link.next)


# --- storage class memory, augmented space ----------------------------------------------------------------------------

# Percent of the structure in use [IBM: IBM MQ, "How storage class memory works with IBM MQ for z/OS"]
PRESTAGE_ABOVE = 90
PREFETCH_UNTIL = 70

BLOCK_BYTES = 4096  # unit in which SCM is used, written and read [assumed]
ELEMENTS_PER_BLOCK = 16  # 256 bytes per element, and as much per entry [assumed]
NANOSECONDS = 1000  # per microsecond: event times are in microseconds, movements are shorter

_ALL_OF_IT = 1 << 62  # bytes: more than any SCMMAXSIZE

NOTHING, MOVED, NO_SCM, NO_AUGMENTED = range(4)  # results of the mover; the last two are what it lacks


@kernel
def blocks_of(messages: int, elements: int) -> int:
    """Return the 4 KB blocks of `messages` messages with `elements` elements in total."""
    return (messages + int(elements) + ELEMENTS_PER_BLOCK - 1) // ELEMENTS_PER_BLOCK


@kernel
def messages_in_use(store: Store) -> int:
    """Return the messages in SCM, with those that only a measurement shows."""
    return max(0, store.scm[0].messages + store.params[0].scm_base_messages)


@kernel
def elements_in_use(store: Store) -> int:
    """Return the elements of these messages."""
    return max(0, store.scm[0].elems + store.params[0].scm_base_elems)


@kernel
def bytes_in_use(store: Store) -> int:
    """Return the bytes of SCM in use: entries and elements of all messages in it together, in 4 KB blocks."""
    return blocks_of(messages_in_use(store), elements_in_use(store)) * BLOCK_BYTES


@kernel
def augmented_bytes(store: Store, used: int) -> int:
    """Return the bytes of dynamic augmented space for `used` bytes of SCM, rounded up [assumed]."""
    return (used * store.params[0].aug_ppm + 999_999) // 1_000_000


@kernel
def bound(store: Store) -> int:
    """Return the bytes of SCM that the structure may use by itself: SCMMAXSIZE, or of over-committed SCM its share.

    Puts may have shown that others leave it more, or less, than the share (`on_accepted_put`, `on_refused_put`).
    """
    params = store.params[0]
    known = store.scm[0].bound
    return params.scm_max if known == 0 or params.scm_most <= params.scm_max else min(known, params.scm_most)


@kernel
def max_bytes(store: Store) -> int:
    """Return the bytes of SCM that may be used: `bound` or less, if augmented space is scarce; at least 1."""
    params = store.params[0]
    limit = bound(store)
    if params.aug_ppm > 0:
        limit = min(limit, params.aug_max // params.aug_ppm * 1_000_000)
    return max(1, limit)


# --- messages --------------------------------------------------------------------------------------------------------


@kernel
def _count_out(store: Store, row: int) -> None:
    """Count a message from the structure into SCM; thresholds apply to the rest [IBM: z/OS, SMF 74.4]."""
    scalars = store.scalars[0]
    use = store.scm[0]
    message = store.messages[row]
    message.marks |= MARK_IN_SCM
    scalars.ents_used -= 1
    scalars.elems_used -= message.elems
    use.messages += 1
    use.elems += message.elems
    touch_row(store.messages_dirty, row)


@kernel
def _count_in(store: Store, row: int) -> None:
    """Count a message from SCM into the structure."""
    scalars = store.scalars[0]
    use = store.scm[0]
    message = store.messages[row]
    message.marks ^= MARK_IN_SCM
    scalars.ents_used += 1
    scalars.elems_used += message.elems
    use.messages -= 1
    use.elems -= message.elems
    if use.messages == 0:
        use.bound = 0  # what was given back others may have taken
    touch_row(store.messages_dirty, row)


@kernel
def drop(store: Store, row: int) -> None:
    """Remove a message from its chain, from SCM without a fault, as CLEAR, EXPIRE and the backout of a put do."""
    message = store.messages[row]
    if message.marks & MARK_IN_SCM:
        leave_order(store, row, PRIORITIES + int(message.priority))
        _count_in(store, row)
    else:
        leave_order(store, row, int(message.priority))
    message.marks ^= MARK_IN_ORDER
    touch_row(store.messages_dirty, row)


@kernel
def on_get(store: Store, row: int) -> None:
    """Give a message to a get. Reading one from SCM is a fault, for which the get waits."""
    message = store.messages[row]
    if message.marks & MARK_IN_SCM:
        use = store.scm[0]
        use.faults += 1
        use.fault_wait_us += blocks_of(1, message.elems) * store.params[0].read_us
    drop(store, row)


@kernel
def on_get_backed_out(store: Store, row: int) -> None:
    """Insert a message whose get was backed out into the structure's chain, by its age."""
    message = store.messages[row]
    message.marks |= MARK_IN_ORDER
    enter_order(store, row, int(message.priority))
    touch_row(store.messages_dirty, row)


# --- the mover -------------------------------------------------------------------------------------------------------
# One mover moves one message at a time. A message counts as moved from the moment its movement begins, and the mover is
# free for the next one at its end (`free_at`). Between two events only the mover changes a structure, so the result of
# `advance` does not depend on when and how often it is called.


@kernel
def _would_prestage(store: Store, elements: int) -> bool:
    """Return True if an entry with `elements` elements more would exceed the pre-staging threshold."""
    params = store.params[0]
    return (pools.entries_in_use(store) + 1) * 100 > PRESTAGE_ABOVE * params.ents_max or (
        pools.elements_in_use(store) + elements
    ) * 100 > PRESTAGE_ABOVE * params.elems_max


@kernel
def _least_likely(store: Store) -> int:
    """Return the message of the structure least likely to be got next, of the lowest priority and put last, or NONE."""
    for priority in range(PRIORITIES):
        row = first_in_order(store, priority)
        if row != NONE:
            return row
    return NONE


@kernel
def _bytes_with(store: Store, row: int) -> int:
    """Return the bytes of SCM in use once a message of the structure is in it too."""
    elements = elements_in_use(store) + store.messages[row].elems
    return blocks_of(messages_in_use(store) + 1, elements) * BLOCK_BYTES


@kernel
def _lacks(store: Store, row: int) -> int:
    """Return what has no room for a message: NO_SCM, NO_AUGMENTED, else NOTHING."""
    used = _bytes_with(store, row)
    if used > bound(store):
        return NO_SCM
    if augmented_bytes(store, used) > store.params[0].aug_max:
        return NO_AUGMENTED
    return NOTHING


@routine
def lacking(store: Store) -> int:
    """Return what keeps the mover from pre-staging now: NO_SCM, NO_AUGMENTED, else NOTHING."""
    row = _least_likely(store)
    if row == NONE or not pools.exceeds(store, PRESTAGE_ABOVE):
        return NOTHING
    return _lacks(store, row)


@kernel
def _prestage(store: Store, now: int) -> int:
    """Begin to move out the message least likely to be got next."""
    use = store.scm[0]
    row = _least_likely(store)
    if row == NONE:
        return NOTHING
    lack = _lacks(store, row)
    if lack != NOTHING:
        return lack
    priority = int(store.messages[row].priority)
    leave_order(store, row, priority)
    enter_order(store, row, PRIORITIES + priority)
    _count_out(store, row)
    use.prestaged += 1
    use.free_at = now + blocks_of(1, store.messages[row].elems) * store.params[0].stage_ns
    return MOVED


@kernel
def _prefetch(store: Store, now: int) -> int:
    """Begin to bring back the message most likely to be got next, of the highest priority and the oldest.

    A message that would take the structure above the pre-staging threshold stays: it would go back and forth for ever.
    """
    use = store.scm[0]
    priority = PRIORITIES - 1
    row = first_in_order(store, PRIORITIES + priority)
    while row == NONE:
        priority -= 1
        row = first_in_order(store, PRIORITIES + priority)
    elements = store.messages[row].elems
    if _would_prestage(store, elements):
        return NOTHING
    leave_order(store, row, PRIORITIES + priority)
    enter_order(store, row, priority)
    _count_in(store, row)
    use.prefetched += 1
    use.free_at = now + blocks_of(1, elements) * store.params[0].fetch_ns
    return MOVED


@kernel
def _step(store: Store, now: int) -> int:
    """Begin the movement that is due at `now`, at which the mover is free."""
    use = store.scm[0]
    use.free_at = NEVER
    if pools.exceeds(store, PRESTAGE_ABOVE):
        return _prestage(store, now)
    if use.messages > 0 and not pools.exceeds(store, PREFETCH_UNTIL):
        return _prefetch(store, now)
    return NOTHING


@routine
def _run(store: Store, now: int) -> None:
    while store.scm[0].free_at != NEVER and store.scm[0].free_at <= now:
        _step(store, store.scm[0].free_at)


@kernel
def advance(store: Store, now: int) -> None:
    """Let the mover work until `now`, nanoseconds since 1970."""
    if store.scm[0].free_at != NEVER and store.scm[0].free_at <= now:
        _run(store, now)


@kernel
def begin(store: Store, now: int) -> int:
    """Begin the movement that is due at `now`, in nanoseconds, if the mover is free; return what it did or lacks.

    Only events and attributes change what is due, so this is called after each of them, and at ticks.
    """
    if store.scm[0].free_at != NEVER:
        return NOTHING
    return _step(store, now)


@kernel
def is_due(store: Store) -> bool:
    """Return True if the mover is free and usage is beyond one of its thresholds, so that `begin` has to be called."""
    use = store.scm[0]
    if use.free_at != NEVER:
        return False
    return pools.exceeds(store, PRESTAGE_ABOVE) or (use.messages > 0 and not pools.exceeds(store, PREFETCH_UNTIL))


# --- over-committed SCM: what puts show ------------------------------------------------------------------------------


@routine
def is_share_used(store: Store) -> bool:
    """Return True if nothing but its share keeps the mover from its work: others may leave the structure more."""
    params = store.params[0]
    if store.scm[0].enrolled == 0 or bound(store) >= params.scm_most or not pools.exceeds(store, PRESTAGE_ABOVE):
        return False
    row = _least_likely(store)
    if row == NONE:
        return False
    used = _bytes_with(store, row)
    return bound(store) < used <= params.scm_most and augmented_bytes(store, used) <= params.aug_max


@kernel
def _has_made_room(store: Store, elements: int) -> bool:
    """Move messages out until an entry with `elements` elements fits; return True if any was moved."""
    use = store.scm[0]
    prestaged, free_at = use.prestaged, use.free_at
    if use.enrolled == 1:
        while not pools.has_room(store, elements) and pools.exceeds(store, PRESTAGE_ABOVE):
            if _prestage(store, 0) != MOVED:
                break
        use.free_at = free_at  # the movement under way
    return bool(use.prestaged > prestaged)


@routine
def on_accepted_put(store: Store, elements: int) -> bool:
    """Note that a put for which the structure has no room was accepted; return True if the structure has more room now.

    The mover has made room: the puts of a count came one by one within its interval. With its share used up, it has
    moved on all the same: others leave the structure more. How much nothing says, so SCMMAXSIZE counts from now on, and
    the mover has done by now what it would have done [assumed].
    """
    use = store.scm[0]
    if not is_share_used(store):
        return _has_made_room(store, elements)
    use.bound = _ALL_OF_IT
    while pools.exceeds(store, PRESTAGE_ABOVE) and _prestage(store, 0) == MOVED:
        pass
    use.free_at = NEVER
    return True


@routine
def on_refused_put(store: Store, elements: int) -> None:
    """Note that a put with `elements` elements got 2192.

    Where it fits by the model, and the mover would have to make room, the facility has no more SCM than is in use.
    """
    params = store.params[0]
    use = store.scm[0]
    if use.messages == 0 or params.scm_most <= params.scm_max:
        return
    if pools.has_room(store, elements) and _would_prestage(store, elements):
        use.bound = min(bound(store), bytes_in_use(store))


# --- with SCM, without ----------------------------------------------------------------------------------------------


@routine
def enrol(store: Store, by_age: Array) -> None:
    """Add SCM to a structure: insert every message into its chain.

    The table of ORDER must have a row for each row of MESSAGE.

    Args:
        store: arrays of the store.
        by_age: i8[...], rows of MESSAGE from the oldest to the youngest, free rows included.
    """
    use = store.scm[0]
    use.enrolled = 1
    use.free_at = NEVER
    for chain in range(2 * PRIORITIES):
        ends = store.scm_ends[chain]
        ends.head = NONE
        ends.tail = NONE
        ends.finger = NONE
        ends.late = NONE
    for row in by_age:
        if store.messages[row].state not in (FREE, UNCOMMITTED_GET):
            append_to_order(store, row)
            touch_row(store.messages_dirty, row)


@routine
def bring_back(store: Store) -> None:
    """Remove SCM from a structure: its messages come back, so the structure may hold more than fits."""
    for row in range(store.scalars[0].message_high):
        message = store.messages[row]
        if message.marks & MARK_IN_ORDER:
            if message.marks & MARK_IN_SCM:
                _count_in(store, row)
            message.marks ^= MARK_IN_ORDER
            if message.marks & MARK_ORDER_LATE:
                message.marks ^= MARK_ORDER_LATE
            touch_row(store.messages_dirty, row)
