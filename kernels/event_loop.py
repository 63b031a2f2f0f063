"""The event loop of every store that holds messages.

An event is a fact: the real system did it (docs/events.md#operations). With `demands`, `apply` stands in for the real
system instead: puts to a queue at its MAXDEPTH are refused with 2053, puts that do not fit with 2192, gets that find
no message end with 2033.
"""

from __future__ import annotations

import numpy as np

from kernels import chains, clock, ids, index, messages, meters, scm, storage, watch
from kernels._compile import kernel, routine
from kernels._intrinsics import fetch
from kernels.layout import (
    ALTER,
    BACKOUT,
    CLEAR,
    COMMIT,
    EXPIRE,
    FLAG_DIRECT,
    FLAG_HAS_MSGID,
    FLAG_HAS_UOW,
    FLAG_PERSISTENT,
    FLOW_SHIFT,
    GET,
    HEARTBEAT,
    MARK_PERSISTENT,
    NEVER,
    NONE,
    PREPARE,
    PRIORITIES,
    PUT,
    RESTART,
    SEEN_SHIFT,
    SEEN_WORDS,
    SEQ_WINDOW,
    STRUCTURE,
    UNCOMMITTED_PUT,
    Array,
    Row,
    Store,
    touch,
)

MQRC_BACKED_OUT = 2003
MQRC_NO_MSG_AVAILABLE = 2033
MQRC_Q_FULL = 2053
MQRC_Q_SPACE_NOT_AVAILABLE = 2056  # 2192 of distributed queue managers [IBM: MQRC 2056]
MQRC_STORAGE_MEDIUM_FULL = 2192

EXPIRY_UNIT = 100_000  # microseconds: MQMD Expiry is in tenths of a second [IBM: IBM MQ, MQMD Expiry]

DONE, TICK_DUE, TICKED, CONTROL, FIRED, NO_ROOM, CLOCK_WRONG = range(7)  # why `apply` stopped

BUCKET_AHEAD, ROW_AHEAD, NEIGHBOUR_AHEAD = 24, 12, 5  # events ahead of the one applied, whose rows are prefetched
LARGE = 1 << 16  # rows from which it pays: a smaller table is in the caches, where prefetching costs a fifth


# --- numbering: duplicates and gaps ----------------------------------------------------------------------------------

# The last 4,096 numbers of each (queue manager, queue) are remembered. One of them that was not seen before is late and
# closes its gap, an older one counts as a duplicate. The rule: docs/events.md#duplicates-gaps-and-late-events.


@kernel
def _word(flow: int, number: int) -> int:
    return flow * SEEN_WORDS + (number % SEQ_WINDOW) // 64


@kernel
def _bit(number: int) -> np.uint64:
    return np.uint64(1) << np.uint64(number % 64)


@kernel
def is_duplicate(store: Store, flow: int, number: int) -> bool:
    """Return True if this number was seen before, or is older than the numbers remembered."""
    numbering = store.flows[flow]
    if numbering.started == 0 or number > numbering.highest:
        return False
    if number <= numbering.highest - SEQ_WINDOW:
        return True
    return (store.seen[_word(flow, number)] & _bit(number)) != np.uint64(0)


@kernel
def take_number(store: Store, flow: int, number: int) -> None:
    """Remember a number that is no duplicate, and count the gaps that it opens or closes."""
    numbering = store.flows[flow]
    scalars = store.scalars[0]
    if numbering.started == 0:
        numbering.started = 1
        numbering.first = number
        numbering.highest = number
        for word in range(flow * SEEN_WORDS, (flow + 1) * SEEN_WORDS):
            store.seen[word] = np.uint64(0)
    elif number > numbering.highest:
        if number > numbering.highest + 1:
            scalars.gaps += number - numbering.highest - 1
            _forget(store, flow, numbering.highest + 1, number)
        numbering.highest = number
    elif number > numbering.first:
        scalars.gaps -= 1
    word = _word(flow, number)
    store.seen[word] |= _bit(number)
    touch(store.seen_dirty, word, SEEN_SHIFT)
    touch(store.flows_dirty, flow, FLOW_SHIFT)


@kernel
def _forget(store: Store, flow: int, start: int, end: int) -> None:
    """Clear the bits of the numbers start..end, which are new to the window."""
    if end - start >= SEQ_WINDOW - 1:
        for word in range(flow * SEEN_WORDS, (flow + 1) * SEEN_WORDS):
            store.seen[word] = np.uint64(0)
    else:
        for number in range(start, end + 1):
            store.seen[_word(flow, number)] &= ~_bit(number)
    touch(store.seen_dirty, flow * SEEN_WORDS, SEEN_SHIFT)


@kernel
def restart_numbering(store: Store, qmgr: int, flows: int) -> None:
    """Restart every numbering of a queue manager. Numbers missing before stay in `gaps`.

    Args:
        store: arrays of the store.
        qmgr: number of the queue manager.
        flows: number of rows of FLOW in use.
    """
    for flow in range(flows):
        if store.flows[flow].qmgr == qmgr and store.flows[flow].started == 1:
            store.flows[flow].started = 0
            touch(store.flows_dirty, flow, FLOW_SHIFT)


# --- operations ------------------------------------------------------------------------------------------------------


@kernel
def _is_refused(reason: int) -> bool:
    """Return True if a put with that reason found its store or its queue full."""
    return reason in (MQRC_STORAGE_MEDIUM_FULL, MQRC_Q_SPACE_NOT_AVAILABLE, MQRC_Q_FULL)


@kernel
def _has_rows(store: Store, op: int, event: Row, count: int) -> bool:
    """Return True if the tables have rows for everything this event may add."""
    scalars = store.scalars[0]
    if scalars.unit_high + 1 > store.units.size:
        return False
    if event.reason != 0:
        return op != PUT or store.counts.size > 0 or not _is_refused(event.reason)
    if event.flags & FLAG_DIRECT:
        return True
    if op == PUT:
        if store.counts.size == 0:
            return False
        puts = messages.max_stored(store, count)
        free = scalars.message_high - scalars.messages
        enough = scalars.message_high + max(0, puts - free) <= store.messages.size
        return enough and storage.has_rows(store, event.length, puts)
    return scalars.held_high + 1 <= store.held.size


@kernel
def _put(store: Store, event: Row, queue: int, qmgr: int, unit: int, count: int) -> None:
    keyed = event.flags & FLAG_HAS_MSGID != 0
    persistent = event.flags & FLAG_PERSISTENT != 0
    expires = event.time + int(event.expiry) * EXPIRY_UNIT if event.expiry > 0 else 0  # i4 would overflow uncompiled
    for _ in range(count):
        if not messages.is_kept(store, qmgr, event.length, persistent):
            store.scalars[0].overfull_puts += 1
            continue
        row = messages.store_message(
            store, queue, qmgr, event.length, event.priority, event.msgid, keyed, persistent, expires
        )
        storage.on_operation(store, row, unit, PUT)
        if unit == NONE:
            messages.make_available(store, row, NONE)
        else:
            messages.make_uncommitted(store, row, unit, UNCOMMITTED_PUT)


@kernel
def _get(store: Store, event: Row, queue: int, unit: int, count: int) -> int:
    """Get `count` messages and hold the rest aside; return the age of the last message taken, or NONE."""
    keyed = event.flags & FLAG_HAS_MSGID != 0
    age = int(NONE)
    for i in range(count):
        row = ids.find(store, queue, event.msgid) if keyed else messages.find_next(store, queue)
        if row == NONE:
            ids.hold_get(store, event.msgid, keyed, queue, unit, count - i)
            break
        age = store.messages[row].age
        storage.on_operation(store, row, unit, GET)
        messages.take(store, row, unit)
    return age


@kernel
def _expire(store: Store, event: Row, queue: int, count: int) -> None:
    keyed = event.flags & FLAG_HAS_MSGID != 0
    for _ in range(count):
        row = ids.find(store, queue, event.msgid) if keyed else chains.oldest(store, queue)
        if row == NONE:
            return
        messages.remove_expired(store, row)


@routine
def _clear(store: Store, queue: int) -> None:
    persistent = False
    for priority in range(PRIORITIES):
        row = chains.first(store, queue, priority)
        while row != NONE:
            persistent |= store.messages[row].marks & MARK_PERSISTENT != 0
            messages.remove(store, row)
            row = chains.first(store, queue, priority)
    storage.on_clear(store, persistent)


@kernel
def _end_unit(store: Store, event: Row, queue: int, qmgr: int, committed: bool) -> None:
    unit = ids.find_unit(store, event.uow, qmgr, queue)
    if unit != NONE:
        storage.on_unit_end(store, unit, committed)
        messages.end_unit(store, unit, committed)
        ids.close_unit(store, unit)


@routine
def _prepare(store: Store, event: Row, queue: int, qmgr: int) -> None:
    unit = ids.find_unit(store, event.uow, qmgr, queue)
    if unit != NONE:
        ids.prepare_unit(store, unit)


@routine
def _restart(store: Store, qmgr: int, flows: int) -> None:
    """Back out the units of a queue manager that are not in doubt [IBM: WebSphere MQ internals, "Undo Phase"]."""
    unit = int(store.scalars[0].unit_head)
    while unit != NONE:
        following = int(store.units[unit].next)
        if store.units[unit].qmgr == qmgr and not ids.is_unit_prepared(store, unit):
            storage.on_unit_end(store, unit, False)
            messages.end_unit(store, unit, False)
            ids.close_unit(store, unit)
        unit = following
    if store.params[0].kind != STRUCTURE:
        messages.drop_nonpersistent(store)
        storage.on_restart(store)
    restart_numbering(store, qmgr, flows)


@routine
def _refuse(store: Store, event: Row, queue: int, qmgr: int) -> None:
    """Set the reason of a demand to that of the real system."""
    if event.op == PUT and event.reason == 0 and not event.flags & FLAG_DIRECT:
        if watch.is_at_max_depth(store, queue):
            event.reason = MQRC_Q_FULL
        elif not messages.fits(store, qmgr, event.length, event.flags & FLAG_PERSISTENT != 0):
            event.reason = MQRC_STORAGE_MEDIUM_FULL
    elif event.op == GET and event.reason == 0:
        if event.flags & FLAG_HAS_MSGID:
            row = ids.find(store, queue, event.msgid)
            while row != NONE and messages.has_expired(store, row):
                messages.remove_expired(store, row)
                row = ids.find(store, queue, event.msgid)
        else:
            row = messages.find_next(store, queue)
        if row == NONE:
            event.reason = MQRC_NO_MSG_AVAILABLE


@kernel
def _put_or_get(store: Store, event: Row, queue: int, qmgr: int) -> int:
    """Apply a PUT or GET that succeeded; return the age of the message that a get took, or NONE."""
    unit = NONE
    direct = event.op == PUT and event.flags & FLAG_DIRECT != 0
    if event.flags & FLAG_HAS_UOW and not direct:
        unit = ids.find_or_open_unit(store, event.uow, qmgr, queue)
    if event.op == GET:
        store.scalars[0].gets += event.count
        return _get(store, event, queue, unit, event.count)
    store.scalars[0].puts += event.count
    if not direct:
        _put(store, event, queue, qmgr, unit, event.count)
    return int(NONE)


@routine
def _act_rarely(store: Store, event: Row, queue: int, qmgr: int, flows: int) -> None:
    """Apply an accepted event other than a PUT or GET that succeeded, COMMIT, BACKOUT and HEARTBEAT."""
    op = event.op
    if op == PUT:
        if event.reason == MQRC_Q_FULL:
            watch.on_full_queue(store, queue, event.length, event.count)
        elif _is_refused(event.reason):
            watch.on_refused_put(store, queue, qmgr, event.length, event.count)
    elif event.reason != 0:
        return
    elif op == PREPARE:
        _prepare(store, event, queue, qmgr)
    elif op == EXPIRE:
        _expire(store, event, queue, event.count)
    elif op == CLEAR:
        _clear(store, queue)
    elif op == RESTART:
        _restart(store, qmgr, flows)


@kernel
def _act(store: Store, event: Row, queue: int, qmgr: int, flows: int) -> int:
    """Apply one accepted event; return the age of the message that a get took, or NONE.

    Only what a working queue does all the time is inlined: a call hands over every array of the store.
    """
    op = event.op
    if op <= GET and event.reason == 0:
        return _put_or_get(store, event, queue, qmgr)
    if op <= BACKOUT and (event.reason == 0 or (op == COMMIT and event.reason == MQRC_BACKED_OUT)):
        _end_unit(store, event, queue, qmgr, op == COMMIT and event.reason == 0)
    elif op != HEARTBEAT:
        _act_rarely(store, event, queue, qmgr, flows)
    return int(NONE)


# --- the loop --------------------------------------------------------------------------------------------------------


@kernel
def _prefetch(store: Store, events: Array, routes: Array, base: int, i: int) -> None:
    """Ask the processor for the rows that the events after events[i] will touch, which their ids say.

    A get by id meets five rows that depend on each other, each a miss of the caches beyond some 50,000 messages held.
    A prefetch changes no state and may name any row. `routes` and `base` are those of `apply`.
    """
    mask = store.message_buckets.size - 1
    last = events.size - 1
    event = events[min(i + BUCKET_AHEAD, last)]
    if event.flags & FLAG_HAS_MSGID:
        fetch(store.message_buckets, index.mix(event.msgid, routes[event.route - base].queue) & mask)
    event = events[min(i + ROW_AHEAD, last)]
    if event.op <= GET and event.flags & FLAG_HAS_MSGID:
        first = index.first(store.message_buckets, index.mix(event.msgid, routes[event.route - base].queue))
        fetch(store.message_links, first)
        if event.op == GET:
            fetch(store.messages, first)
            fetch(store.messages, first + 1)
    event = events[min(i + NEIGHBOUR_AHEAD, last)]
    if event.op <= GET and event.flags & FLAG_HAS_MSGID:
        row = index.first(store.message_buckets, index.mix(event.msgid, routes[event.route - base].queue))
        if row != NONE:
            link = store.message_links[row]
            fetch(store.message_links, link.next)
            if event.op == GET:
                message = store.messages[row]
                fetch(store.messages, message.prev)
                fetch(store.messages, message.next)


@routine
def apply(
    store: Store, events: Array, routes: Array, base: int, start: int, flows: int, demands: bool, ages: Array
) -> tuple[int, int]:
    """Apply events[start:] until one needs the twin.

    Args:
        store: arrays of the store.
        events: EVENT[n], in the store's order.
        routes: ROUTE[m], of the route numbers from `base` on.
        base: first route number.
        start: index of the first event to apply.
        flows: number of rows of FLOW in use.
        demands: True to refuse what the real system would refuse.
        ages: i8[n], written with `demands`: age of the message that each get took, or NONE.

    Returns:
        The index of the next event, and the reason to stop there. DONE: all events are applied. TICK_DUE: the next
        event moves the clock over a tick that is not quiet (`kernels.watch`), and that comes first. TICKED: it moves
        the clock over a quiet tick, which is passed, and the twin has to judge first. CONTROL: the next event is
        accepted and counted, the twin applies it. FIRED: the event before fired conditions. NO_ROOM: tables must grow
        before the next event. CLOCK_WRONG: the clock must go back (`kernels.watch.turn_back`) before the next event.
    """
    scalars = store.scalars[0]
    is_large = store.messages.size > LARGE
    for i in range(start, events.size):
        if is_large:
            _prefetch(store, events, routes, base, i)
        event = events[i]
        op = event.op
        route = routes[event.route - base]
        numbered = event.seq >= 0 and op <= CLEAR
        if numbered and is_duplicate(store, route.flow, event.seq):
            scalars.duplicates += 1
            continue
        if clock.turns_back(store, event.time):
            return i, CLOCK_WRONG
        if clock.is_tick_due(store, event.time):
            tick = clock.clock_after(store, event.time) // clock.TICK
            if scalars.tick == NEVER:
                scalars.tick = tick
                meters.begin_first_bin(store, tick)
            else:
                passed = watch.pass_quietly(store, tick)
                if passed != watch.PASSED:
                    return i, TICK_DUE if passed == watch.NEEDS_TWIN else TICKED
        if op <= GET and not _has_rows(store, op, event, event.count):
            return i, NO_ROOM
        if numbered:
            take_number(store, route.flow, event.seq)
        clock.move_clock(store, event.time)
        scalars.events += 1
        enrolled = store.scm[0].enrolled == 1
        if enrolled:
            scm.advance(store, scalars.clock * scm.NANOSECONDS)
        if op >= ALTER:
            return i, CONTROL
        if demands:
            _refuse(store, event, route.queue, route.qmgr)
        age = _act(store, event, route.queue, route.qmgr, flows)
        if demands:
            ages[i] = age
        storage.on_event_end(store)
        fired = op == PUT and watch.look(store, route.qmgr)
        if op == PUT and watch.look_at_queue(store, route.queue):
            fired = True
        if enrolled and scm.is_due(store) and watch.move(store, scalars.clock * scm.NANOSECONDS):
            fired = True
        if fired:
            return i + 1, FIRED
    return events.size, DONE
