"""Page sets 01 to 99: pages of short, long and very long messages, the space map, extents.

Sources: [IBM: IBM MQ, "Page sets 01 to 99"] (sizes of headers, segments and control information); [fitted] to SMF 115
QIS1 (usable pages); [IBM: IBM MQ, DEFINE PSID] and [assumed] (expansion); docs/storage-model.md#page-sets.
"""

from __future__ import annotations

from bisect import bisect_left

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
# Sizes in bytes [IBM: IBM MQ, "Page sets 01 to 99"]
PAGE_SPACE = 4057  # of a page, for messages
HEADER = 352  # of a message descriptor
CONTROL = 20  # of the control information of a short message
SHORT = 3685  # of the data of the longest short message
SEGMENT = 4049  # of a long message per page
VERY_LONG = 4 << 20  # of the data of the longest long message, and of each piece of a longer one
VERY_LONG_PAGES = 1037  # pages per piece of 4 MB

MAP_COVERS = 16_184  # pages per page of the space map [fitted]
EXPAND_ABOVE = 90  # percent of the usable pages in use, from which it expands [assumed]
MAX_EXPANSIONS = 119  # [IBM: IBM MQ, DEFINE PSID]
MAX_PAGES = 16_777_216  # 64 GB [IBM: IBM MQ, DEFINE PSID]


@kernel
def usable_pages(allocated: int) -> int:
    """Return the pages for messages in `allocated` 4 KB records: without the header page and the space map."""
    return max(0, allocated - 1 - (allocated + MAP_COVERS - 1) // MAP_COVERS)


def allocated_pages(usable: int) -> int:
    """Return the smallest number of allocated pages of which `usable` are usable [fitted]; not for kernels."""
    return bisect_left(range(2 * usable + 4), usable, key=usable_pages)


@kernel
def pages_of(length: int) -> tuple[int, int]:
    """Return the storage of a message with `length` bytes of data.

    Returns:
        Pages of its own, and bytes stored as a short message is: the short message itself, or the control information
        that points to the pages of a long one. The remainder of a very long message is stored as a long message is,
        however short it is [IBM: IBM MQ, "Page sets 01 to 99", Very long messages].
    """
    if length <= SHORT:
        return 0, length + HEADER + CONTROL
    pages = 0
    if length > VERY_LONG:
        pages = length // VERY_LONG * VERY_LONG_PAGES
        length %= VERY_LONG
        if length == 0:
            return pages, 0
    segments = (length + HEADER + SEGMENT - 1) // SEGMENT
    return pages + segments, CONTROL + 3 * segments


@kernel
def space_of(store: Store, length: int) -> float:
    """Return the pages of a message of that length; of one that shares its page, its part of that page."""
    pages, record = pages_of(length)
    if record == 0:
        return float(pages)
    return pages + record / PAGE_SPACE if store.params[0].packs == 1 else pages + 1.0


@kernel
def pages_in_use(store: Store) -> int:
    """Return the pages in use, including what is left of the baseline."""
    use = store.page_use[0]
    used = use.persistent + use.nonpersistent
    if use.base_persistent != 0 or use.base_nonpersistent != 0:
        used += base_left(store, use.base_persistent) + base_left(store, use.base_nonpersistent)
    return used


@kernel
def is_full(store: Store) -> bool:
    """Return True if no page is free and, if messages share pages, the one being filled has no room for any message."""
    use = store.page_use[0]
    return pages_in_use(store) >= use.usable and (store.params[0].packs == 0 or use.room < HEADER + CONTROL)


@kernel
def _new_pages(store: Store, pages: int, record: int) -> int:
    """Return the pages that a message needs beyond those in use."""
    if record == 0 or (store.params[0].packs == 1 and record <= store.page_use[0].room):
        return pages
    return pages + 1


@routine
def make_room(store: Store, new: int) -> bool:
    """Return True if `new` more pages fit, after expanding the page set for them if it may expand."""
    use = store.page_use[0]
    params = store.params[0]
    used = pages_in_use(store) + new
    while use.status == NORMAL and params.expand != EXPAND_NONE and used * 100 > EXPAND_ABOVE * use.usable:
        extent = max(1, use.allocated // 10) if params.expand == EXPAND_SYSTEM else params.secondary_pages
        if use.expansions >= MAX_EXPANSIONS:
            use.status = MAXIMUM
        elif extent == 0 or use.allocated + extent > params.max_pages:
            use.status = FAILED
        elif use.allocated + extent > MAX_PAGES:
            use.status = MAXIMUM
        else:
            use.allocated += extent
            use.usable = usable_pages(use.allocated)
            use.expansions += 1
    return used <= use.usable


@kernel
def max_usable_pages(store: Store) -> int:
    """Return the usable pages after all expansions that the page set can still make."""
    use = store.page_use[0]
    params = store.params[0]
    allocated = use.allocated
    if use.status == NORMAL and params.expand != EXPAND_NONE:
        limit = min(params.max_pages, MAX_PAGES)
        for _ in range(use.expansions, MAX_EXPANSIONS):
            extent = max(1, allocated // 10) if params.expand == EXPAND_SYSTEM else params.secondary_pages
            if allocated + extent > limit:
                break
            allocated += extent
    return usable_pages(allocated)


@kernel
def fits(store: Store, length: int) -> bool:
    """Return True if a put of that length would be accepted now; expand the page set if the put would."""
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
    """Take the pages of message `row`; return True if they did not fit, in which case the message is kept all the same.

    message.pages is set to its own pages, message.block to the row of PACKED that it shares or NONE, and message.elems
    to its bytes of the page set: its own pages, and its record on a shared page.
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
    """Store a record in the page being filled, or begin a new page. A page is persistent if any record on it is."""
    use = store.page_use[0]
    if record > use.room:
        use.filling = _take_page(store)
        use.room = PAGE_SPACE
        use.nonpersistent += 1
    page_row = use.filling
    page = store.packed[page_row]
    page.records += 1
    if persistent:
        if page.persistent == 0:
            use.nonpersistent -= 1
            use.persistent += 1
        page.persistent += 1
    use.room -= record
    store.messages[row].block = page_row
    touch(store.packed_dirty, page_row, PACKED_SHIFT)


@kernel
def _take_page(store: Store) -> int:
    use = store.page_use[0]
    page_row = use.free
    if page_row == NONE:
        page_row = use.high
        use.high += 1
    else:
        use.free = store.packed[page_row].next
    store.packed[page_row].records = 0
    store.packed[page_row].persistent = 0
    store.packed[page_row].next = NONE
    return page_row


@routine
def refund(store: Store, row: int) -> None:
    """Give back the pages of message `row`. A shared page is free when its last record is gone."""
    message = store.messages[row]
    persistent = message.marks & MARK_PERSISTENT != 0
    _count(store, persistent, -message.pages)
    if message.block != NONE:
        _unpack(store, row, persistent)


@kernel
def _unpack(store: Store, row: int, persistent: bool) -> None:
    use = store.page_use[0]
    page_row = store.messages[row].block
    page = store.packed[page_row]
    page.records -= 1
    if persistent:
        page.persistent -= 1
        if page.persistent == 0:
            use.persistent -= 1
            use.nonpersistent += 1
    if page.records == 0:
        use.nonpersistent -= 1
        if page_row == use.filling:
            use.filling = NONE
            use.room = 0
        page.next = use.free
        use.free = page_row
    store.messages[row].block = NONE
    touch(store.packed_dirty, page_row, PACKED_SHIFT)


@kernel
def on_restart(store: Store) -> None:
    """Drop the nonpersistent pages of the baseline, as a restart of the queue manager does."""
    use = store.page_use[0]
    persistent = base_left(store, use.base_persistent)
    keep_persistent(store, persistent, base_left(store, use.base_nonpersistent))
    use.base_persistent = persistent
    use.base_nonpersistent = 0
