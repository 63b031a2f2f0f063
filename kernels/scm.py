"""Storage class memory of a structure, SCMALGORITHM(KEYPRIORITY1): what moves when, and what waits for it.

Sources: seed "How storage class memory works with IBM MQ for z/OS" (marks of 90 and 70 %, KEYPRIORITY1, faults);
domain.md section 3 (the test is made anew for each message; bytes in SCM, bandwidth, augmented space are assumptions).

A message that holds storage stands in a chain of its priority, by age: of the structure, or of SCM. One that a get took
and has not committed stands in none: it was read. One mover moves one message at a time. A message counts as moved
from the moment its movement begins; the mover is free for the next at its end (`free_at`). Between two events nothing
but the mover changes a structure, so `advance` finds the same whenever, and however often, it is asked.
"""

from __future__ import annotations

from kernels import order, pools
from kernels._compile import kernel, routine
from kernels.layout import (
    FREE,
    MARK_IN_ORDER,
    MARK_IN_SCM,
    MARK_ORDER_LATE,
    MESSAGE_SHIFT,
    NEVER,
    NONE,
    PRIORITIES,
    UNCOMMITTED_GET,
    Array,
    Store,
    touch,
)

PRESTAGE_ABOVE = 90  # percent of the structure [seed]
PREFETCH_UNTIL = 70
BLOCK_BYTES = 4096  # in which SCM is used, written and read [domain.md section 3]
ELEMENTS_A_BLOCK = 16  # 256 bytes an element, and as much for the entry [param, domain.md section 3]
NANOSECONDS = 1000  # of a microsecond: events have those, movements are shorter

NOTHING, MOVED, NO_SCM, NO_AUGMENTED = range(4)  # what the mover did; the last two: what it lacks


@kernel
def blocks_of(messages: int, elements: int) -> int:
    """4 KB blocks of so many messages, whose elements are `elements` in all: those of one are moved and read alone."""
    return (messages + int(elements) + ELEMENTS_A_BLOCK - 1) // ELEMENTS_A_BLOCK


@kernel
def bytes_in_use(store: Store) -> int:
    """Bytes of SCM in use: entries and elements of all messages in it together, in 4 KB blocks."""
    use = store.scm[0]
    return blocks_of(use.messages, use.elems) * BLOCK_BYTES


@kernel
def augmented(store: Store, used: int) -> int:
    """Bytes of dynamic augmented space for so many bytes in SCM, rounded up [param, domain.md section 3]."""
    return (used * store.params[0].aug_ppm + 999_999) // 1_000_000


@kernel
def bytes_at_most(store: Store) -> int:
    """Bytes of SCM that may be used: SCMMAXSIZE, or what there is dynamic augmented space for; at least 1."""
    params = store.params[0]
    most = params.scm_max
    if params.aug_ppm > 0:
        most = min(most, params.aug_max // params.aug_ppm * 1_000_000)
    return max(1, most)


# --- a message's way -------------------------------------------------------------------------------------------------


@kernel
def _count_out(store: Store, row: int) -> None:
    """Count a message from the structure into SCM; thresholds look at what is left [pub, SMF 74.4]."""
    scalars = store.scalars[0]
    use = store.scm[0]
    message = store.messages[row]
    message.marks |= MARK_IN_SCM
    scalars.ents_used -= 1
    scalars.elems_used -= message.elems
    use.messages += 1
    use.elems += message.elems
    touch(store.messages_dirty, row, MESSAGE_SHIFT)


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
    touch(store.messages_dirty, row, MESSAGE_SHIFT)


@kernel
def drop(store: Store, row: int) -> None:
    """Take a message out of its chain, from SCM without a fault: CLEAR, EXPIRE, a put backed out."""
    message = store.messages[row]
    if message.marks & MARK_IN_SCM:
        order.leave(store, row, PRIORITIES + int(message.priority))
        _count_in(store, row)
    else:
        order.leave(store, row, int(message.priority))
    message.marks ^= MARK_IN_ORDER
    touch(store.messages_dirty, row, MESSAGE_SHIFT)


@kernel
def got(store: Store, row: int) -> None:
    """Let a get have the message; one in SCM is read while it waits: a fault [seed]."""
    message = store.messages[row]
    if message.marks & MARK_IN_SCM:
        use = store.scm[0]
        use.faults += 1
        use.fault_wait_us += blocks_of(1, message.elems) * store.params[0].read_us
    drop(store, row)


@kernel
def returned(store: Store, row: int) -> None:
    """Enter a message whose get was backed out: into the structure's chain, at its age."""
    message = store.messages[row]
    message.marks |= MARK_IN_ORDER
    order.enter(store, row, int(message.priority))
    touch(store.messages_dirty, row, MESSAGE_SHIFT)


# --- the mover -------------------------------------------------------------------------------------------------------


@kernel
def _above_mark_with(store: Store, elements: int) -> bool:
    """Whether the structure would be above the mark of pre-staging with one more entry and so many elements."""
    params = store.params[0]
    return (pools.entries_in_use(store) + 1) * 100 > PRESTAGE_ABOVE * params.ents_max or (
        pools.elements_in_use(store) + elements
    ) * 100 > PRESTAGE_ABOVE * params.elems_max


@kernel
def _least_likely(store: Store) -> int:
    """The message of the structure that is least likely to be got next: the lowest priority, put last; NONE: none."""
    for priority in range(PRIORITIES):
        row = order.first(store, priority)
        if row != NONE:
            return row
    return NONE


@kernel
def _lacks(store: Store, row: int) -> int:
    """What there is no room in for a message: NO_SCM, NO_AUGMENTED, else NOTHING."""
    params = store.params[0]
    use = store.scm[0]
    used = blocks_of(use.messages + 1, use.elems + store.messages[row].elems) * BLOCK_BYTES
    if used > params.scm_max:
        return NO_SCM
    if augmented(store, used) > params.aug_max:
        return NO_AUGMENTED
    return NOTHING


@routine
def lacking(store: Store) -> int:
    """What keeps the mover from pre-staging now: NO_SCM, NO_AUGMENTED, else NOTHING; changes nothing."""
    row = _least_likely(store)
    if row == NONE or not pools.exceeds(store, PRESTAGE_ABOVE):
        return NOTHING
    return _lacks(store, row)


@kernel
def _prestage(store: Store, at: int) -> int:
    """Begin to move out the message least likely to be got next."""
    use = store.scm[0]
    row = _least_likely(store)
    if row == NONE:
        return NOTHING
    lack = _lacks(store, row)
    if lack != NOTHING:
        return lack
    priority = int(store.messages[row].priority)
    order.leave(store, row, priority)
    order.enter(store, row, PRIORITIES + priority)
    _count_out(store, row)
    use.prestaged += 1
    use.free_at = at + blocks_of(1, store.messages[row].elems) * store.params[0].stage_ns
    return MOVED


@kernel
def _prefetch(store: Store, at: int) -> int:
    """Begin to bring back the message most likely to be got next: the highest priority, the oldest.

    Not one that would take the structure above the mark of pre-staging: it would go back and forth for ever.
    """
    use = store.scm[0]
    priority = PRIORITIES - 1
    row = order.first(store, PRIORITIES + priority)
    while row == NONE:
        priority -= 1
        row = order.first(store, PRIORITIES + priority)
    elements = store.messages[row].elems
    if _above_mark_with(store, elements):
        return NOTHING
    order.leave(store, row, PRIORITIES + priority)
    order.enter(store, row, priority)
    _count_in(store, row)
    use.prefetched += 1
    use.free_at = at + blocks_of(1, elements) * store.params[0].fetch_ns
    return MOVED


@kernel
def _step(store: Store, at: int) -> int:
    """Let the mover, free at `at`, begin the movement that is due."""
    use = store.scm[0]
    use.free_at = NEVER
    if pools.exceeds(store, PRESTAGE_ABOVE):
        return _prestage(store, at)
    if use.messages > 0 and not pools.exceeds(store, PREFETCH_UNTIL):
        return _prefetch(store, at)
    return NOTHING


@routine
def _run(store: Store, now: int) -> None:
    while store.scm[0].free_at != NEVER and store.scm[0].free_at <= now:
        _step(store, store.scm[0].free_at)


@kernel
def advance(store: Store, now: int) -> None:
    """Let the mover do what it does until `now`, nanoseconds since 1970."""
    if store.scm[0].free_at != NEVER and store.scm[0].free_at <= now:
        _run(store, now)


@kernel
def begin(store: Store, now: int) -> int:
    """Let the mover, if it is free, begin what is due at `now` (nanoseconds since 1970); what it did or lacks.

    Only events and attributes change what is due: it is asked after each of them, and at ticks.
    """
    if store.scm[0].free_at != NEVER:
        return NOTHING
    return _step(store, now)


@kernel
def is_due(store: Store) -> bool:
    """Whether the mover is free and stands at one of its marks: whether `begin` is worth calling."""
    use = store.scm[0]
    if use.free_at != NEVER:
        return False
    return pools.exceeds(store, PRESTAGE_ABOVE) or (use.messages > 0 and not pools.exceeds(store, PREFETCH_UNTIL))


# --- with SCM, without ----------------------------------------------------------------------------------------------


@routine
def enrol(store: Store, by_age: Array) -> None:
    """Begin to have SCM: every message into its chain. by_age: i8[...], rows in the order of their age, free ones too.

    The table of ORDER must have a row for each of MESSAGE.
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
            order.append(store, row)
            touch(store.messages_dirty, row, MESSAGE_SHIFT)


@routine
def bring_back(store: Store) -> None:
    """Have SCM no more: what is in it comes back into the structure, which may then hold more than it can."""
    for row in range(store.scalars[0].message_high):
        message = store.messages[row]
        if message.marks & MARK_IN_ORDER:
            if message.marks & MARK_IN_SCM:
                _count_in(store, row)
            message.marks ^= MARK_IN_ORDER
            if message.marks & MARK_ORDER_LATE:
                message.marks ^= MARK_ORDER_LATE
            touch(store.messages_dirty, row, MESSAGE_SHIFT)
