"""Page sets 01 to 99: pages of a message, usable pages, and records and cylinders for a mix.

Sources: *Page sets 01 to 99* (short, long and very long messages, at least two pages of control information, below 1 %
as a rule); domain.md section 4 (one short message a page since IBM MQ 7.0.1, space-map pages, 64 GB, expansion).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Literal, NamedTuple

from kernels import page_set
from kernels.page_set import CONTROL, EXPAND_ABOVE, MAX_PAGES, PAGE_SPACE, SHORT, VERY_LONG
from twin.sizing.dasd import PAGE_BYTES, Extent
from twin.sizing.mix import Mix, count_of
from twin.sizing.next_fit import places

Kind = Literal["short", "long", "very long"]


class Cost(NamedTuple):
    """`pages`: whole pages; `record`: bytes stored as a short message is, 0: none."""

    pages: int
    record: int


@dataclass(frozen=True, slots=True)
class LengthPlan:
    """Messages of one length: n, c and bytes a message as the document computes them, and the pages each takes.

    pages: of its own; where messages are packed the record of `record` bytes is not among them.
    """

    length: int
    messages: int
    kind: Kind
    n: int
    c: int
    bytes: int
    pages: int
    record: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSetPlan:
    """What a mix takes in a page set. documented_records: bytes as the document computes them, divided by 4096.

    pages: in use by the messages; least: the smallest page set with so many usable; control_pages, control_pct: of
    `least`, not for messages; unexpanded: one that does not expand, because at most 90 % of what is usable is used;
    used_pct: percent of what is usable of the page set given.
    """

    packed: bool
    messages: int
    lengths: tuple[LengthPlan, ...]
    documented_records: int
    pages: int
    control_pages: int
    control_pct: float
    least: Extent
    unexpanded: Extent
    used_pct: float | None
    warnings: tuple[str, ...]


def kind_of(length: int) -> Kind:
    """Short up to 3685 bytes, long up to 4 MB, else very long."""
    if length <= SHORT:
        return "short"
    return "long" if length <= VERY_LONG else "very long"


def cost_of(length: int) -> Cost:
    """Whole pages and the record of a message, see `kernels.page_set.pages_of`."""
    pages, record = page_set.pages_of(length)
    return Cost(int(pages), int(record))


def bytes_of(length: int) -> int:
    """Bytes of a message as the document computes them: n x 4096 + c; a short message's are those on its page."""
    pages, record = cost_of(length)
    return pages * PAGE_BYTES + record


def pages_of(length: int) -> int:
    """Pages of a message since IBM MQ 7.0.1, where a short message, and a long one's control record, has its own."""
    pages, record = cost_of(length)
    return pages + (record > 0)


def usable_pages(allocated: int) -> int:
    """Pages for messages of so many allocated: one is the page set's own, and one of each 16,184 is space map."""
    return int(page_set.usable_pages(allocated))


def allocated_for(pages: int) -> int:
    """The fewest pages to allocate such that so many are usable."""
    return bisect_left(range(2 * pages + 4), pages, key=usable_pages)


def plan_page_set(mix: Mix, *, packed: bool = False, allocated: int | None = None) -> PageSetPlan:
    """A page set for the messages of the mix, all there at a time.

    packed: see `twin.estate.model.packs`; allocated: pages of a page set there is. UsageError where there is no
    message.
    """
    messages = count_of(mix)
    lengths = tuple(_length_plan(one.length, one.count, packed=packed) for one in mix)
    pages = sum(one.messages * one.pages for one in lengths)
    if packed:
        records = [one for one in lengths if one.record]
        pages += places([one.record for one in records], [one.messages for one in records], PAGE_SPACE)
    least = allocated_for(pages)
    control = least - usable_pages(least)
    return PageSetPlan(
        packed=packed,
        messages=messages,
        lengths=lengths,
        documented_records=sum(_documented_records(one) for one in lengths),
        pages=pages,
        control_pages=control,
        control_pct=100 * control / least,
        least=Extent.of_pages(least),
        unexpanded=Extent.of_pages(allocated_for(-(-pages * 100 // EXPAND_ABOVE))),
        used_pct=None if allocated is None else 100 * pages / max(1, usable_pages(allocated)),
        warnings=tuple(_warnings(least)),
    )


def _length_plan(length: int, count: int, *, packed: bool) -> LengthPlan:
    pages, record = cost_of(length)
    kind = kind_of(length)
    return LengthPlan(
        length=length,
        messages=count,
        kind=kind,
        n=0 if kind == "short" else pages,
        c=record if kind != "short" else CONTROL,
        bytes=bytes_of(length),
        pages=pages if packed else pages_of(length),
        record=record,
    )


def _documented_records(one: LengthPlan) -> int:
    """Records by the document: short messages share a page as far as whole ones fit, long ones take n x 4096 + c."""
    if one.kind == "short":
        return -(-one.messages // (PAGE_SPACE // one.record))
    return -(-one.messages * one.bytes // PAGE_BYTES)


def _warnings(pages: int) -> list[str]:
    if pages <= MAX_PAGES:
        return []
    return [f"a page set has at most {MAX_PAGES:,} pages, 64 GB: {-(-pages // MAX_PAGES)} page sets are right"]
