"""Page sets 01 to 99: pages of short, long and very long messages, the space map, extents.

Sources: seed "Page sets 01 to 99" (sizes of headers, segments and control information); domain.md section 4 (one short
message a page since MQ 7.0.1; usable pages, fitted to SMF 115 QIS1; expansion: assumptions stated there); contract
section 7 (at most 119 expansions).
"""

from __future__ import annotations

from kernels._compile import kernel, routine
from kernels.layout import (
    EXPAND_NONE,
    EXPAND_SYSTEM,
    FAILED,
    MARK_PERSISTENT,
    MAXIMUM,
    NONE,
    NORMAL,
    PACKED_SHIFT,
    Store,
    touch,
)
from kernels.pools import base_left, keep_persistent

PAGE_BYTES = 4096
PAGE_SPACE = 4057  # bytes of a page for messages [seed]
HEADER = 352  # message descriptor [seed]
CONTROL = 20  # control information of a short message [seed]
SHORT = 3685  # longest data of a short message [seed]
SEGMENT = 4049  # bytes of a long message on a page [seed]
VERY_LONG = 4 << 20  # longer messages are stored in pieces of 4 MB [seed]
VERY_LONG_PAGES = 1037  # of each 4 MB [seed]
MAP_COVERS = 16_184  # pages that a space map page covers [fit]
EXPAND_ABOVE = 90  # percent of the usable pages in use [param]
MOST_EXPANSIONS = 119  # contract section 7
MOST_PAGES = 16_777_216  # 64 GB [pub]


@kernel
def usable_pages(allocated: int) -> int:
    """Pages for messages of a page set of `allocated` 4 KB records: without the header page and the space map."""
    return max(0, allocated - 1 - (allocated + MAP_COVERS - 1) // MAP_COVERS)


@kernel
def pages_of(length: int) -> tuple[int, int]:
    """(pages of its own, bytes stored like a short message) of a message with `length` bytes of data.

    The second is the short message itself, or the control information that points to the pages of a long one.
    """
    pages = 0
    if length > VERY_LONG:
        pages = length // VERY_LONG * VERY_LONG_PAGES
        length %= VERY_LONG
        if length == 0:
            return pages, 0
    if length <= SHORT:
        return pages, length + HEADER + CONTROL
    segments = (length + HEADER + SEGMENT - 1) // SEGMENT
    return pages + segments, CONTROL + 3 * segments


@kernel
def pages_in_use(store: Store) -> int:
    """Pages in use, what is left of the baseline included."""
    use = store.page_use[0]
    used = use.persistent + use.nonpersistent
    if use.base_persistent != 0 or use.base_nonpersistent != 0:
        used += base_left(store, use.base_persistent) + base_left(store, use.base_nonpersistent)
    return used


@kernel
def is_full(store: Store) -> bool:
    """Whether no page is free and, where messages share pages, not even the shortest fits into the one being filled."""
    use = store.page_use[0]
    return pages_in_use(store) >= use.usable and (store.params[0].packs == 0 or use.room < HEADER + CONTROL)


@kernel
def _new_pages(store: Store, pages: int, record: int) -> int:
    """Pages that a message needs beyond those in use."""
    if record == 0 or (store.params[0].packs == 1 and record <= store.page_use[0].room):
        return pages
    return pages + 1


@routine
def make_room(store: Store, new: int) -> bool:
    """Whether `new` more pages fit, the page set being expanded for them where it may."""
    use = store.page_use[0]
    params = store.params[0]
    used = pages_in_use(store) + new
    while use.status == NORMAL and params.expand != EXPAND_NONE and used * 100 > EXPAND_ABOVE * use.usable:
        extent = max(1, use.allocated // 10) if params.expand == EXPAND_SYSTEM else params.secondary_pages
        if use.expansions >= MOST_EXPANSIONS:
            use.status = MAXIMUM
        elif extent == 0 or use.allocated + extent > params.max_pages:
            use.status = FAILED
        elif use.allocated + extent > MOST_PAGES:
            use.status = MAXIMUM
        else:
            use.allocated += extent
            use.usable = usable_pages(use.allocated)
            use.expansions += 1
    return used <= use.usable


@kernel
def usable_at_last(store: Store) -> int:
    """Usable pages after every expansion the page set can still make."""
    use = store.page_use[0]
    params = store.params[0]
    allocated = use.allocated
    if use.status == NORMAL and params.expand != EXPAND_NONE:
        most = min(params.max_pages, MOST_PAGES)
        for _ in range(use.expansions, MOST_EXPANSIONS):
            extent = max(1, allocated // 10) if params.expand == EXPAND_SYSTEM else params.secondary_pages
            if allocated + extent > most:
                break
            allocated += extent
    return usable_pages(allocated)


@kernel
def fits(store: Store, length: int) -> bool:
    """Whether a put of that length would be accepted now; expands the page set where the put would."""
    pages, record = pages_of(length)
    return make_room(store, _new_pages(store, pages, record))


@kernel
def _count(store: Store, persistent: bool, pages: int) -> None:
    use = store.page_use[0]
    if persistent:
        use.persistent += pages
    else:
        use.nonpersistent += pages


@routine
def charge(store: Store, row: int) -> bool:
    """Take the pages of message `row`; whether they did not fit and are kept as a fact all the same.

    message.pages: those of its own; message.block: row of PACKED of the one it shares, NONE; message.elems: bytes of
    the page set it takes, of a shared page its record.
    """
    message = store.messages[row]
    pages, record = pages_of(message.length)
    new = _new_pages(store, pages, record)
    overfull = not make_room(store, new)
    persistent = message.marks & MARK_PERSISTENT != 0
    if record > 0 and store.params[0].packs == 1:
        message.pages = pages
        message.elems = pages * PAGE_BYTES + record
        _pack(store, row, record, persistent)
    else:
        message.pages = new
        message.elems = new * PAGE_BYTES
    _count(store, persistent, message.pages)
    return overfull


@kernel
def _pack(store: Store, row: int, record: int, persistent: bool) -> None:
    """Store a short record in the page being filled, or begin a new one; a page is persistent if one record is."""
    use = store.page_use[0]
    if record > use.room:
        use.filling = _take_page(store)
        use.room = PAGE_SPACE
        use.nonpersistent += 1
    place = use.filling
    page = store.packed[place]
    page.records += 1
    if persistent:
        if page.persistent == 0:
            use.nonpersistent -= 1
            use.persistent += 1
        page.persistent += 1
    use.room -= record
    store.messages[row].block = place
    touch(store.packed_dirty, place, PACKED_SHIFT)


@kernel
def _take_page(store: Store) -> int:
    use = store.page_use[0]
    place = use.free
    if place == NONE:
        place = use.high
        use.high += 1
    else:
        use.free = store.packed[place].next
    store.packed[place].records = 0
    store.packed[place].persistent = 0
    store.packed[place].next = NONE
    return place


@routine
def refund(store: Store, row: int) -> None:
    """Give back the pages of message `row`; a shared page is free when its last record is gone."""
    message = store.messages[row]
    persistent = message.marks & MARK_PERSISTENT != 0
    _count(store, persistent, -message.pages)
    if message.block != NONE:
        _unpack(store, row, persistent)


@kernel
def _unpack(store: Store, row: int, persistent: bool) -> None:
    use = store.page_use[0]
    place = store.messages[row].block
    page = store.packed[place]
    page.records -= 1
    if persistent:
        page.persistent -= 1
        if page.persistent == 0:
            use.persistent -= 1
            use.nonpersistent += 1
    if page.records == 0:
        use.nonpersistent -= 1
        if place == use.filling:
            use.filling = NONE
            use.room = 0
        page.next = use.free
        use.free = place
    store.messages[row].block = NONE
    touch(store.packed_dirty, place, PACKED_SHIFT)


@kernel
def restarted(store: Store) -> None:
    """Let go of the nonpersistent pages of the baseline, as a restart of the queue manager does."""
    use = store.page_use[0]
    persistent = base_left(store, use.base_persistent)
    keep_persistent(store, persistent, base_left(store, use.base_nonpersistent))
    use.base_persistent = persistent
    use.base_nonpersistent = 0
