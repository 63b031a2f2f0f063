"""Pairing heaps of messages: the highest priority on top, then the oldest.

A heap stands in the rows of an array with the fields `child`, `next` and `prev`: a row's first child, its next sibling,
and its previous sibling or, of a first child, its parent. The row on top has no siblings; what its `next` and `prev`
hold is its owner's. Entering takes constant time, leaving takes logarithmic time, amortised, whatever the order.

Source: M. Fredman, R. Sedgewick, D. Sleator, R. Tarjan: "The pairing heap: a new form of self-adjusting heap" (1986).
"""

from __future__ import annotations

from kernels._compile import kernel, routine
from kernels.layout import MESSAGE_SHIFT, NONE, Array, Store, touch


@kernel
def comes_before(store: Store, row: int, other: int) -> bool:
    """True if a get takes message `row` before message `other`: higher priority, then older."""
    message, against = store.messages[row], store.messages[other]
    if message.priority != against.priority:
        return message.priority > against.priority
    return message.age < against.age


@kernel
def _note(store: Store, row: int, paged: bool) -> None:
    """Mark what was written, where the heap stands in the table of messages itself."""
    if paged:
        touch(store.messages_dirty, row, MESSAGE_SHIFT)


@kernel
def _meld(store: Store, links: Array, row: int, other: int, paged: bool) -> int:
    top = row
    below = other
    if comes_before(store, other, row):
        top = other
        below = row
    first = links[top].child
    links[below].next = first
    links[below].prev = top
    if first != NONE:
        links[first].prev = below
        _note(store, first, paged)
    links[top].child = below
    _note(store, top, paged)
    _note(store, below, paged)
    return top


@routine
def join(store: Store, links: Array, row: int, other: int, paged: bool) -> int:
    """Join the heaps with `row` and `other` on top; the row on top of both.

    links: MESSAGE or LINK, a row a message; paged: links are the table of messages, whose pages are to be marked.
    """
    return _meld(store, links, row, other, paged)


@routine
def without_top(store: Store, links: Array, row: int, paged: bool) -> int:
    """Take `row` from the top of its heap; the row that is on top now, without `next` and `prev`, or NONE."""
    pairs = NONE
    left = int(links[row].child)
    while left != NONE:
        right = int(links[left].next)
        following = NONE
        melded = left
        if right != NONE:
            following = int(links[right].next)
            melded = _meld(store, links, left, right, paged)
        links[melded].next = pairs
        pairs = melded
        left = following
    top = NONE
    while pairs != NONE:
        following = int(links[pairs].next)
        top = pairs if top == NONE else _meld(store, links, top, pairs, paged)
        pairs = following
    links[row].child = NONE
    _note(store, row, paged)
    if top != NONE:
        links[top].next = NONE
        links[top].prev = NONE
        _note(store, top, paged)
    return top


@routine
def without(store: Store, links: Array, top: int, row: int, paged: bool) -> None:
    """Take `row`, which is not on top, out of the heap under `top`."""
    link = links[row]
    before = int(link.prev)
    if links[before].child == row:
        links[before].child = link.next
    else:
        links[before].next = link.next
    _note(store, before, paged)
    if link.next != NONE:
        links[link.next].prev = before
        _note(store, int(link.next), paged)
    rest = without_top(store, links, row, paged)
    if rest != NONE:
        _meld(store, links, top, rest, paged)
