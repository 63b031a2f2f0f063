"""Page sets 01 to 99: pages of a message, usable pages, and records and cylinders for a mix.

Sources: [IBM: Page sets 01 to 99] (short, long and very long messages; at least two pages of control information,
usually below 1 %). One short message per page since MQ 7.0.1, space-map pages and expansion: docs/storage-model.md.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Literal, NamedTuple

from kernels import page_set
from kernels.page_set import CONTROL, EXPAND_ABOVE, MAX_PAGES, PAGE_SPACE, SHORT, VERY_LONG
from twin.sizing.data_sets import PAGE_BYTES, Extent, extended_addressability, places
from twin.sizing.mix import Mix, count_of

Kind = Literal["short", "long", "very long"]


class Cost(NamedTuple):
    """Pages of a message."""

    pages: int  # whole pages
    record: int  # bytes that are stored like a short message; 0: none


@dataclass(frozen=True, slots=True)
class LengthPlan:
    """Plan for messages of one length."""

    length: int  # bytes
    messages: int
    kind: Kind
    n: int  # of the document's n x 4096 + c
    c: int
    bytes: int  # per message, n x 4096 + c
    pages: int  # per message; with packed messages without the page of the record
    record: int  # bytes that are stored like a short message; 0: none


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSetPlan:
    """Plan of a page set for a mix."""

    packed: bool  # short messages share pages
    messages: int
    lengths: tuple[LengthPlan, ...]
    documented_records: int  # bytes as in the document, divided by 4096
    pages: int  # in use by the messages
    control_pages: int  # of `least`, not usable for messages
    control_pct: float
    least: Extent  # the smallest page set that holds the mix
    unexpanded: Extent  # one that does not expand: at most 90 % of the usable pages are in use
    used_pct: float | None  # of the usable pages of an existing page set
    warnings: tuple[str, ...]


def kind_of(length: int) -> Kind:
    """Return the kind of a message: short up to 3685 bytes, long up to 4 MB, else very long."""
    if length <= SHORT:
        return "short"
    return "long" if length <= VERY_LONG else "very long"


def cost_of(length: int) -> Cost:
    """Return the whole pages and the record of a message; see `kernels.page_set.pages_of`."""
    pages, record = page_set.pages_of(length)
    return Cost(int(pages), int(record))


def bytes_of(length: int) -> int:
    """Return the bytes of a message as in the document, n x 4096 + c; of a short one, its bytes on a page."""
    pages, record = cost_of(length)
    return pages * PAGE_BYTES + record


def pages_of(length: int) -> int:
    """Return the pages of a message since MQ 7.0.1: short messages and control records have a page each."""
    pages, record = cost_of(length)
    return pages + (record > 0)


def usable_pages(allocated: int) -> int:
    """Return the usable ones of allocated pages: one is control information, and one of each 16,184 is space map."""
    return int(page_set.usable_pages(allocated))


def allocated_for(pages: int) -> int:
    """Return the smallest number of allocated pages of which `pages` are usable."""
    return bisect_left(range(2 * pages + 4), pages, key=usable_pages)


def plan_page_set(mix: Mix, *, packed: bool = False, allocated: int | None = None) -> PageSetPlan:
    """Plan a page set that holds all messages of a mix at once.

    Args:
        mix: the messages.
        packed: short messages share pages; see `twin.estate.model.packs`.
        allocated: pages of an existing page set.

    Raises:
        UsageError: the mix has no message.
    """
    messages = count_of(mix)
    lengths = tuple(_length_plan(part.length, part.count, packed=packed) for part in mix)
    pages = sum(plan.messages * plan.pages for plan in lengths)
    if packed:
        with_record = [plan for plan in lengths if plan.record]
        pages += places([plan.record for plan in with_record], [plan.messages for plan in with_record], PAGE_SPACE)
    least = allocated_for(pages)
    control = least - usable_pages(least)
    return PageSetPlan(
        packed=packed,
        messages=messages,
        lengths=lengths,
        documented_records=sum(map(_documented_records, lengths)),
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


def _documented_records(plan: LengthPlan) -> int:
    """Return the records as in the document: short messages share a page, long ones take n x 4096 + c bytes."""
    if plan.kind == "short":
        return -(-plan.messages // (PAGE_SPACE // plan.record))
    return -(-plan.messages * plan.bytes // PAGE_BYTES)


def _warnings(pages: int) -> list[str]:
    if pages <= MAX_PAGES:
        return extended_addressability(pages * PAGE_BYTES)
    number = -(-pages // MAX_PAGES)
    return [f"a page set has at most {MAX_PAGES:,} pages, 64 GB; expected: {number} page sets"]
