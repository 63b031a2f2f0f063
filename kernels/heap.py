"""Pairing heaps of messages: the highest priority on top, then the oldest, or in some heaps the youngest.

A heap is stored in the rows of an array with the fields `child`, `next` and `prev`: a row's first child, its next
sibling, and its previous sibling or, for a first child, its parent. The row on top has no siblings, so its `next` and
`prev` are free for the owner of the heap. Inserting takes constant time and removing takes logarithmic time, amortised,
in any order. Source: [published: Fredman, Sedgewick, Sleator, Tarjan, "The pairing heap: a new form of self-adjusting
heap", 1986].
"""

from __future__ import annotations

from kernels._compile import kernel, routine
from kernels.layout import NONE, Array, Store, touch_row

OF_CHAIN, OLDEST, YOUNGEST = range(3)
"""Kinds of heaps: beside a chain of MESSAGE; beside one of ORDER, with the oldest or the youngest on top."""

MAX_STEPS = 16  # from each end of a chain to the place of a late message, which otherwise goes to the heap beside it


@kernel
def comes_before(store: Store, row: int, other: int, which: int) -> bool:
    """Return True if message `row` belongs above message `other`: a higher priority, then older, or younger."""
    message, against = store.messages[row], store.messages[other]
    if message.priority != against.priority:
        return message.priority > against.priority
    return (message.age < against.age) != (which == YOUNGEST)


@kernel
def _note(store: Store, row: int, which: int) -> None:
    """Mark `row` as written."""
    if which == OF_CHAIN:
        touch_row(store.messages_dirty, row)
    else:
        touch_row(store.order_dirty, row)


@kernel
def _meld(store: Store, links: Array, row: int, other: int, which: int) -> int:
    top = row
    below = other
    if comes_before(store, other, row, which):
        top = other
        below = row
    first = links[top].child
    links[below].next = first
    links[below].prev = top
    if first != NONE:
        links[first].prev = below
        _note(store, first, which)
    links[top].child = below
    _note(store, top, which)
    _note(store, below, which)
    return top


@routine
def join(store: Store, links: Array, row: int, other: int, which: int) -> int:
    """Join the heaps with `row` and `other` on top; return the row on top of both.

    `links` is MESSAGE or ORDER, according to `which`.
    """
    return _meld(store, links, row, other, which)


@routine
def without_top(store: Store, links: Array, row: int, which: int) -> int:
    """Remove `row` from the top of its heap; return the new top, without `next` and `prev`, or NONE."""
    pairs = NONE
    left = int(links[row].child)
    while left != NONE:
        right = int(links[left].next)
        following = NONE
        melded = left
        if right != NONE:
            following = int(links[right].next)
            melded = _meld(store, links, left, right, which)
        links[melded].next = pairs
        pairs = melded
        left = following
    top = NONE
    while pairs != NONE:
        following = int(links[pairs].next)
        top = pairs if top == NONE else _meld(store, links, top, pairs, which)
        pairs = following
    links[row].child = NONE
    _note(store, row, which)
    if top != NONE:
        links[top].next = NONE
        links[top].prev = NONE
        _note(store, top, which)
    return top


@routine
def without(store: Store, links: Array, top: int, row: int, which: int) -> None:
    """Remove `row`, which is not on top, from the heap under `top`."""
    link = links[row]
    before = int(link.prev)
    if links[before].child == row:
        links[before].child = link.next
    else:
        links[before].next = link.next
    _note(store, before, which)
    if link.next != NONE:
        links[link.next].prev = before
        _note(store, int(link.next), which)
    rest = without_top(store, links, row, which)
    if rest != NONE:
        _meld(store, links, top, rest, which)
