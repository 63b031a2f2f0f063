"""A page set of a z/OS queue manager: cost of messages, expansion, state record.

The rules: docs/storage-model.md#page-sets.
"""

from dataclasses import dataclass, field
from typing import Any

from tests.naive.baseline import NaiveBaseline
from tests.naive.estimate import Compared
from tests.naive.pools import rounded_up
from tests.naive.private import NaivePrivateStore, in_bytes
from tests.naive.store import Event
from tests.naive.units import Message, fields_of

PAGE_ROOM = 4057  # bytes of a page for messages
SHORT_LENGTH = 3685  # bytes of data of the longest short message
SHORT_HEADER = 372  # a descriptor of 352 bytes and 20 of control information
SEGMENT = 4049  # bytes of a long message per page
DESCRIPTOR = 352
LONG_LENGTH = 4 * 1024**2
VERY_LONG_PAGES = 1037  # per 4 MB of a very long message
MAP_COVERS = 16_184  # pages per page of the space map [fitted]
LARGEST_PAGE_SET = 16_777_216  # 64 GB
MAX_EXPANSIONS = 119
EXPANDS_ABOVE_PCT = 90  # [assumed]
ONE_A_PAGE_SINCE = (7, 0, 1)
DEFAULTS = {"expand": "USER", "secondary_pages": None, "max_pages": None, "version": None, "buffer_pool": 0}
OF_EXPANSION = ("pages", "expand", "secondary_pages", "max_pages")


def usable_pages(allocated: int) -> int:
    """Return the pages for messages."""
    return allocated - (1 + rounded_up(allocated, MAP_COVERS))


def whole_pages_and_record(length: int) -> tuple[int, int]:
    """Return the pages of a message's own, and the bytes of its record on another page (0: none)."""
    if length > LONG_LENGTH:
        rest = length % LONG_LENGTH
        pages, record = long_pages_and_record(rest) if rest > 0 else (0, 0)
        return length // LONG_LENGTH * VERY_LONG_PAGES + pages, record
    if length > SHORT_LENGTH:
        return long_pages_and_record(length)
    return 0, length + SHORT_HEADER


def long_pages_and_record(length: int) -> tuple[int, int]:
    """Return pages and record of a long message, or of the remainder of a very long one, however short that is."""
    pages = rounded_up(length + DESCRIPTOR, SEGMENT)
    return pages, 20 + 3 * pages


def packs(version: str | None) -> bool:
    """Return True if short messages share pages, as before 7.0.1. Assumed: an unknown version is a current one."""
    if version is None:
        return False
    return tuple(int(part) for part in version.split(".")) < ONE_A_PAGE_SINCE


@dataclass(eq=False)
class Page:
    """A page of records: short messages, and control information of long messages."""

    room: int  # bytes not used yet
    records: list["PageSetMessage"] = field(default_factory=list)  # with a record here


@dataclass(eq=False, kw_only=True)
class PageSetMessage(Message):
    """A message of a page set."""

    whole_pages: int  # of its own
    page: Page | None  # with its record


class NaivePageSet(NaivePrivateStore):
    """The twin of a page set.

    `described` has its attributes with their names in the estate, and the version of its queue manager.
    """

    messages: list[PageSetMessage]
    unit = "pages"
    of_baseline = ("messages", "pages_used", "pages_persistent", "pages_nonpersistent")
    groups = (("pages_used", "pages_persistent", "pages_nonpersistent"),)

    def __init__(self, described: dict[str, Any], aliases: dict[str, str] | None = None) -> None:
        super().__init__(described, DEFAULTS, aliases)
        self.allocated: int = described["pages"]
        self.expansions = 0
        self.status = "NORMAL"
        self.pages: list[Page] = []  # with at least one record
        self.filling: Page | None = None
        self.buffer_pool_pct: float | None = None

    # -- what a message costs

    def _fits(self, event: Event) -> bool:
        whole_pages, record = whole_pages_and_record(event["length"])
        new = whole_pages + (1 if record > 0 and not self._shares(record) else 0)
        return self._make_room(new)

    def _keep(self, event: Event) -> PageSetMessage:
        whole_pages, record = whole_pages_and_record(event["length"])
        message = PageSetMessage(
            **fields_of(event, self._queue(event)),
            whole_pages=whole_pages,
            page=self._page_for(record, self._shares(record)) if record > 0 else None,
        )
        if message.page is not None:
            message.page.records.append(message)
        return message

    def _shares(self, record: int) -> bool:
        """Return True if a record is placed on the page being filled; since 7.0.1 each record has a page of its own."""
        return packs(self.attributes["version"]) and self.filling is not None and record <= self.filling.room

    def _page_for(self, record: int, shares: bool) -> Page:
        """Return the page being filled, or begin a new one and leave the rest of the old one unused."""
        if not shares:
            self.filling = Page(PAGE_ROOM)
            self.pages.append(self.filling)
        assert self.filling is not None
        self.filling.room -= record
        return self.filling

    def _free(self, message: PageSetMessage) -> None:
        """Remove the record of a message. A page without records is free and no longer being filled [assumed]."""
        page = message.page
        if page is None:
            return
        page.records.remove(message)
        if not page.records:
            self.pages.remove(page)
            if self.filling is page:
                self.filling = None

    # -- expansion

    def _make_room(self, new: int) -> bool:
        """Expand the page set for a message; return True if the message fits then.

        Assumed: the pages of the new message count as used, and the page set expands as often as needed.
        """
        is_tight = True
        while is_tight and self.attributes["expand"] != "NONE" and self.status == "NORMAL":
            is_tight = (self._used() + new) * 100 > EXPANDS_ABOVE_PCT * self._total()
            if is_tight:
                self._expand()
        return self._used() + new <= self._total()

    def _expand(self) -> None:
        """Add an extent, or set the status that says why not. `max_pages` is what the volumes hold."""
        extent = max(1, self.allocated // 10)
        if self.attributes["expand"] == "USER":
            extent = self.attributes["secondary_pages"] or 0
        largest = self.attributes["max_pages"]
        if self.expansions >= MAX_EXPANSIONS:
            self.status = "MAXIMUM"
        elif extent == 0 or (largest is not None and self.allocated + extent > largest):
            self.status = "FAILED"
        elif self.allocated + extent > LARGEST_PAGE_SET:
            self.status = "MAXIMUM"
        else:
            self.allocated += extent
            self.expansions += 1

    def _largest(self) -> int:
        """Return the usable pages after every expansion that is still possible."""
        before = self.allocated, self.expansions, self.status
        while self.attributes["expand"] != "NONE" and self.status == "NORMAL":
            self._expand()
        largest = self._total()
        self.allocated, self.expansions, self.status = before
        return largest

    # -- what is in use

    def _total(self) -> int:
        return usable_pages(self.allocated)

    def _of_model(self, persistent: bool) -> int:
        """Return the pages with a persistent message, or those without one."""
        whole = sum(message.whole_pages for message in self.messages if message.persistent == persistent)
        return whole + len([page for page in self.pages if any(m.persistent for m in page.records) == persistent])

    # -- ALTER, MEASURE

    def _alter(self, attributes: dict[str, Any]) -> None:
        """Apply an ALTER PSID as a whole, or refuse it as a whole and count it [assumed].

        It is refused if the new size does not hold the used pages, gives back extents, or exceeds the volumes. After a
        change of what expansion depends on, expansion is possible again.
        """
        new = in_bytes(attributes)
        allocated = new.get("pages", self.allocated)
        too_small = "pages" in new and usable_pages(allocated) < self._used()
        gives_back = allocated < self.allocated and self.expansions > 0
        largest = (self.attributes | new)["max_pages"]
        if too_small or gives_back or allocated > (LARGEST_PAGE_SET if largest is None else largest):
            self.refused_alters += 1
            return
        self.attributes |= new
        self.allocated = allocated
        if any(name in OF_EXPANSION for name in new):
            self.status = "NORMAL"

    def _measure(self, measured: dict[str, Any]) -> None:
        """Apply a MEASURE. One of the buffer pool alone sets no baseline [assumed]."""
        of_page_set = {name: value for name, value in measured.items() if value is not None}
        if "buffer_pool_pct" in of_page_set:
            self.buffer_pool_pct = of_page_set.pop("buffer_pool_pct")
            self.measured |= {"buffer_pool_pct"}
        if of_page_set:
            super()._measure(of_page_set)

    def _space_of_kept(self, length: int) -> float:
        whole_pages, record = whole_pages_and_record(length)
        return whole_pages + (1 if record > 0 and not packs(self.attributes["version"]) else 0)

    def _space_of_refused(self, length: int) -> float:
        whole_pages, record = whole_pages_and_record(length)
        return whole_pages + record / PAGE_ROOM if packs(self.attributes["version"]) else self._space_of_kept(length)

    def _space_by(self, measured: dict[str, Any]) -> int | None:
        if measured.get("pages_used") is not None:
            return int(measured["pages_used"])
        parts = [measured.get(self._name(persistent)) for persistent in (True, False)]
        return None if None in parts else sum(parts)

    def _known_pools(self, measured: dict[str, Any]) -> list[tuple[int, int]]:
        used = self._of_model(persistent=True) + self._of_model(persistent=False)
        return [(used, measured["pages_used"])] if "pages_used" in measured else []

    def _new_baseline(self, measured: dict[str, Any]) -> NaiveBaseline:
        """Return the baseline. Assumed: used pages not known to be nonpersistent are persistent."""
        pages = dict(measured)
        used = pages.get("pages_used")
        if used is not None and "pages_persistent" not in pages:
            nonpersistent = pages.get("pages_nonpersistent", self._of_model(persistent=False))
            pages["pages_persistent"] = used - nonpersistent
        elif used is not None and "pages_nonpersistent" not in pages:
            pages["pages_nonpersistent"] = used - pages["pages_persistent"]
        return super()._new_baseline(pages)

    def _unknown(self) -> set[str]:
        """Return the fields that follow from no measurement. Two counts of pages (used, its parts) give the third."""
        names = {"pages_persistent", "pages_nonpersistent", "pages_used"}
        measured = names & self.measured
        unknown = set() if len(measured) >= 2 else names - measured
        if "pages_used" in unknown:
            unknown |= {"pages_unused", "usage_pct"}
        return unknown | ({"messages"} - self.measured)

    def _compared(self, measured: dict[str, Any]) -> Compared:
        """Return persistent, nonpersistent or all used pages, which differ most, compared with all pages."""
        names = ("pages_persistent", "pages_nonpersistent", "pages_used")
        model = self._fields()
        gaps = {name: abs(model[name] - measured[name]) for name in names if name in measured}
        worst = max(gaps, key=gaps.__getitem__, default="")
        return {"pages": (model[worst], measured[worst], self._total())} if worst else {}

    # -- the state record

    def _fields(self) -> dict[str, Any]:
        """Return the fields of a page set.

        total = unused + persistent + nonpersistent, as DISPLAY USAGE and SMF 115 QIS1 report them. Assumed: unused is 0
        if messages were kept that did not fit.
        """
        return {
            "pages_total": self._total(),
            "pages_max": self._largest(),
            "pages_used": self._used(),
            "pages_persistent": self._in_use(persistent=True),
            "pages_nonpersistent": self._in_use(persistent=False),
            "pages_unused": max(0, self._total() - self._used()),
            "usage_pct": 100.0 * self._used() / max(1, self._total()),
            "expansions": self.expansions,
            "status": self.status,
            "buffer_pool": self.attributes["buffer_pool"],
            "buffer_pool_pct": self.buffer_pool_pct,
            "buffer_pool_writes": writes_at(self.buffer_pool_pct),
        }


def writes_at(buffer_pool_pct: float | None) -> str | None:
    """Return "asynchronous" from 85 % used, "synchronous" from 95 %, or None if not measured."""
    if buffer_pool_pct is None:
        return None
    if buffer_pool_pct >= 95:
        return "synchronous"
    return "asynchronous" if buffer_pool_pct >= 85 else "none"
