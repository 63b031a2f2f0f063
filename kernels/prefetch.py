"""Prefetching: asking the processor for rows of large tables a few events before they are needed.

A get by id meets five rows that depend on each other: of the bucket, the link, the message and its neighbours in the
chain. Beyond some 50,000 messages held each is a miss of the caches, one after the other. What an event will touch is
known from its id, so the event loop asks for the rows of later events while it works on this one. A prefetch changes no
state and may name any row, so what happens between does not matter.
"""

from __future__ import annotations

from kernels import index
from kernels._compile import kernel
from kernels._intrinsics import fetch
from kernels.layout import FLAG_HAS_MSGID, GET, NONE, PUT, Array, Store

BUCKET_AHEAD, ROW_AHEAD, NEIGHBOUR_AHEAD = 24, 12, 5  # events ahead of the one that is applied
LARGE = 1 << 16  # buckets from which it pays: a smaller table is in the caches, where prefetching costs a fifth


@kernel
def look_ahead(store: Store, events: Array, routes: Array, base: int, i: int) -> None:
    """Prefetch what the events after events[i] will touch. `routes` and `base` are those of `event_loop.apply`."""
    mask = store.message_buckets.size - 1
    last = events.size - 1
    event = events[min(i + BUCKET_AHEAD, last)]
    if event.flags & FLAG_HAS_MSGID:
        fetch(store.message_buckets, index.mix(event.msgid, routes[event.route - base].queue) & mask)
    event = events[min(i + ROW_AHEAD, last)]
    if event.op <= GET and event.flags & FLAG_HAS_MSGID:
        bucket = store.message_buckets[index.mix(event.msgid, routes[event.route - base].queue) & mask]
        if event.op == PUT:
            fetch(store.message_links, bucket.tail)
        else:
            fetch(store.message_links, bucket.head)
            fetch(store.messages, bucket.head)
            fetch(store.messages, bucket.head + 1)
    event = events[min(i + NEIGHBOUR_AHEAD, last)]
    if event.op == GET and event.flags & FLAG_HAS_MSGID:
        row = index.first(store.message_buckets, index.mix(event.msgid, routes[event.route - base].queue))
        if row != NONE:
            message = store.messages[row]
            fetch(store.messages, message.prev)
            fetch(store.messages, message.next)
            link = store.message_links[row]
            fetch(store.message_links, link.next)
