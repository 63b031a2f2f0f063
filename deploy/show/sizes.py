"""Plans of `mqtwin size` as tables or JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from deploy.show.table import show
from deploy.size_options import Planned
from twin.estate import format_size
from twin.sizing import Extent


def tell(
    of: Planned, plan: Any, headings: Sequence[str], lines: Iterable[Sequence[str]], warnings: Iterable[str] = ()
) -> None:
    """The plan as JSON, or its lines as a table; its warnings on standard error."""
    for warning in warnings:
        print(f"mqtwin: warning: {warning}", file=sys.stderr)
    if of.json:
        print(msgspec.json.encode(plan).decode())
    else:
        show(headings, lines, right=set(headings[1:]))


def in_words(extent: Extent) -> str:
    """A data set in the units an administrator allocates it in."""
    return f"{extent.pages:,} records, {extent.cylinders:,} cylinders, {human(extent.bytes)}"


def human(size: int) -> str:
    """Bytes to read: 4G as it is, else rounded to a tenth of a unit."""
    exact = format_size(size)
    if len(exact) <= 5:
        return exact
    for unit, shift in (("T", 40), ("G", 30), ("M", 20), ("K", 10)):
        if size >> shift:
            return f"{size / (1 << shift):.1f}{unit}"
    return exact
