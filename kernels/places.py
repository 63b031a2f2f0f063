"""Places of blocks in a queue file: runs of adjacent blocks that hold data of a message, and the holes between them.

A message takes the next available free blocks, which need not be adjacent: of the free ones, those nearest to the
beginning of the file [assumed]. Runs and holes are chained in the order of the file. Holes that meet are joined, and
what is free behind the last run is no hole, so the last run ends where the content of the file does. The holes are a
pairing heap with the first one on top (see heap.py), so that taking and giving back a run takes logarithmic time,
amortised, however many blocks it has. The runs of a message are chained through `next`. Functions take the table, its
dirty pages and FILE_USE instead of the store, so that a call hands over little. Source: [IBM: WebSphere MQ internals,
"Views of the Queue"].
"""

from __future__ import annotations

from kernels._compile import kernel, routine
from kernels.layout import NONE, PLACE_SHIFT, Array, touch

# --- heap of the holes -----------------------------------------------------------------------------------------------


@kernel
def _meld(places: Array, dirty: Array, row: int, other: int) -> int:
    top = row
    below = other
    if places[other].start < places[row].start:
        top = other
        below = row
    first = places[top].child
    places[below].next = first
    places[below].prev = top
    if first != NONE:
        places[first].prev = below
        touch(dirty, first, PLACE_SHIFT)
    places[top].child = below
    touch(dirty, top, PLACE_SHIFT)
    touch(dirty, below, PLACE_SHIFT)
    return top


@routine
def _without_top(places: Array, dirty: Array, row: int) -> int:
    """Remove `row` from the top of its heap; return the new top or NONE."""
    pairs = NONE
    left = int(places[row].child)
    while left != NONE:
        right = int(places[left].next)
        following = NONE
        melded = left
        if right != NONE:
            following = int(places[right].next)
            melded = _meld(places, dirty, left, right)
        places[melded].next = pairs
        pairs = melded
        left = following
    top = NONE
    while pairs != NONE:
        following = int(places[pairs].next)
        top = pairs if top == NONE else _meld(places, dirty, top, pairs)
        pairs = following
    places[row].child = NONE
    touch(dirty, row, PLACE_SHIFT)
    if top != NONE:
        places[top].next = NONE
        places[top].prev = NONE
        touch(dirty, top, PLACE_SHIFT)
    return top


@routine
def _leave_holes(places: Array, dirty: Array, file_use: Array, row: int) -> None:
    """Remove a hole from the heap."""
    use = file_use[0]
    if row == use.holes:
        use.holes = _without_top(places, dirty, row)
        return
    hole = places[row]
    before = int(hole.prev)
    if places[before].child == row:
        places[before].child = hole.next
    else:
        places[before].next = hole.next
    touch(dirty, before, PLACE_SHIFT)
    if hole.next != NONE:
        places[hole.next].prev = before
        touch(dirty, hole.next, PLACE_SHIFT)
    rest = _without_top(places, dirty, row)
    if rest != NONE:
        _meld(places, dirty, int(use.holes), rest)


@kernel
def _join_holes(places: Array, dirty: Array, file_use: Array, row: int) -> None:
    """Add a hole to the heap."""
    use = file_use[0]
    places[row].hole = 1
    places[row].next = NONE
    places[row].prev = NONE
    places[row].child = NONE
    touch(dirty, row, PLACE_SHIFT)
    use.holes = row if use.holes == NONE else _meld(places, dirty, int(use.holes), row)


# --- rows in the order of the file -----------------------------------------------------------------------------------


@kernel
def _new_row(places: Array, dirty: Array, file_use: Array, before: int, after: int) -> int:
    """Return a new row between two neighbours, each of which may be NONE."""
    use = file_use[0]
    row = int(use.free)
    if row == NONE:
        row = int(use.high)
        use.high += 1
    else:
        use.free = places[row].next
    use.runs += 1
    places[row].hole = 0
    places[row].before = before
    places[row].after = after
    touch(dirty, row, PLACE_SHIFT)
    if before != NONE:
        places[before].after = row
        touch(dirty, before, PLACE_SHIFT)
    if after != NONE:
        places[after].before = row
        touch(dirty, after, PLACE_SHIFT)
    return row


@kernel
def _drop_row(places: Array, dirty: Array, file_use: Array, row: int) -> None:
    """Take a row out of the file."""
    use = file_use[0]
    before, after = int(places[row].before), int(places[row].after)
    if before != NONE:
        places[before].after = after
        touch(dirty, before, PLACE_SHIFT)
    if after != NONE:
        places[after].before = before
        touch(dirty, after, PLACE_SHIFT)
    use.runs -= 1
    places[row].next = use.free
    use.free = row
    touch(dirty, row, PLACE_SHIFT)


# --- taking and giving back ------------------------------------------------------------------------------------------


@kernel
def _next_run(places: Array, dirty: Array, file_use: Array, blocks: int) -> int:
    """Take at most `blocks` blocks of the first hole, or behind the last run if there is none; return their row."""
    use = file_use[0]
    first = int(use.holes)
    if first == NONE:
        row = _new_row(places, dirty, file_use, int(use.last), NONE)
        places[row].start = use.end
        places[row].count = blocks
        use.last = row
        use.end += blocks
        return row
    if places[first].count <= blocks:
        use.holes = _without_top(places, dirty, first)
        places[first].hole = 0
        return first
    row = _new_row(places, dirty, file_use, int(places[first].before), first)
    places[row].start = places[first].start
    places[row].count = blocks
    places[first].start += blocks  # it is still the first of the holes
    places[first].count -= blocks
    return row


@routine
def take(places: Array, dirty: Array, file_use: Array, blocks: int) -> int:
    """Take the next free blocks of the file for a message. It adds one row at most.

    Args:
        places: PLACE[n], at least one row more than are in use.
        dirty: u1[pages] of `places`.
        file_use: FILE_USE[1].
        blocks: number of blocks, at least 1.

    Returns:
        The first row of the chain of its runs.
    """
    head = tail = NONE
    while blocks > 0:
        row = _next_run(places, dirty, file_use, blocks)
        blocks -= places[row].count
        places[row].next = NONE
        touch(dirty, row, PLACE_SHIFT)
        if tail == NONE:
            head = row
        else:
            places[tail].next = row
            touch(dirty, tail, PLACE_SHIFT)
        tail = row
    return head


@kernel
def _give_back_last(places: Array, dirty: Array, file_use: Array, row: int) -> None:
    """Let the content of the file end before its last run, and before the hole in front of that, if there is one."""
    use = file_use[0]
    before = int(places[row].before)
    use.end = places[row].start
    _drop_row(places, dirty, file_use, row)
    if before != NONE and places[before].hole == 1:
        _leave_holes(places, dirty, file_use, before)
        use.end = places[before].start
        row = before
        before = int(places[row].before)
        _drop_row(places, dirty, file_use, row)
    use.last = before


@kernel
def _give_back_run(places: Array, dirty: Array, file_use: Array, row: int) -> None:
    """Make a run that is not the last a hole, joined with those beside it."""
    before, after = int(places[row].before), int(places[row].after)
    if before != NONE and places[before].hole == 1:
        places[before].count += places[row].count
        touch(dirty, before, PLACE_SHIFT)
        _drop_row(places, dirty, file_use, row)
        row = before
    else:
        _join_holes(places, dirty, file_use, row)
    if places[after].hole == 1:
        _leave_holes(places, dirty, file_use, after)
        places[row].count += places[after].count
        touch(dirty, row, PLACE_SHIFT)
        _drop_row(places, dirty, file_use, after)


@routine
def give_back(places: Array, dirty: Array, file_use: Array, row: int) -> int:
    """Give back the blocks of a message, whose chain of runs begins with `row`; return their number."""
    blocks = 0
    while row != NONE:
        following = int(places[row].next)
        blocks += int(places[row].count)
        if places[row].after == NONE:
            _give_back_last(places, dirty, file_use, row)
        else:
            _give_back_run(places, dirty, file_use, row)
        row = following
    return blocks
