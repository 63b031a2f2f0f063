"""History of an estate: past rises of its stores and puts of their last days, with which their twins begin.

`mqtwin warm` learns it from a recording; the key `history` of an estate file names it (docs/estate.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from twin.decoding import UNREADABLE
from twin.estate.errors import EstateError

SCHEMA = 1


class PastRise(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rise of what a store held in all, or of one data set, as its meters saw it (`kernels.meter_rows.RISE`)."""

    began: int  # began, ended: event time, microseconds since 1970
    ended: int
    # low, top: utilisation at its beginning and end: entries and elements of all messages as shares of those of the
    # structure, added up; else the share of the store, or of the data set, in use
    low: float
    top: float
    usage: float  # largest share of a resource in use at its end
    refused: int  # puts with 2192 during the rise
    puts: int  # messages put during the rise
    stayed: int  # messages more at its end than at its beginning
    data_set: str = ""  # queue manager whose far smaller data set it was; "": of the store in all


class PastPuts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Messages put to a store by half hours, refused ones included (`twin.forecast.rates`)."""

    until: int  # end of the last half hour, event time, microseconds since 1970
    counts: tuple[int, ...]  # messages in each half hour, oldest first; -1: not known


class StoreHistory(msgspec.Struct, frozen=True):
    """Memory that a new store begins with. rises: in order of time."""

    rises: tuple[PastRise, ...] = ()
    puts: PastPuts | None = None


History = Mapping[str, StoreHistory]
"""Memory of each store, by name."""


class _File(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    schema: int
    stores: dict[str, tuple[PastRise, ...]]
    puts: dict[str, PastPuts] = {}


def read_history(path: Path) -> dict[str, StoreHistory]:
    """Read a history. EstateError: it cannot be read, or is not a history."""
    try:
        content = msgspec.json.decode(path.read_bytes(), type=_File)
    except OSError as wrong:
        raise EstateError(f"{path}: cannot be read ({wrong.strerror}); expected: a file of `mqtwin warm`") from None
    except UNREADABLE as wrong:
        raise EstateError(f"{path}: {wrong}; expected: a file of `mqtwin warm`") from None
    if content.schema != SCHEMA:
        raise EstateError(f"{path}: schema {content.schema}; expected: {SCHEMA}")
    names = sorted(content.stores | content.puts)
    return {name: StoreHistory(content.stores.get(name, ()), content.puts.get(name)) for name in names}


def history_text(history: History) -> bytes:
    """Return the file of a history, JSON."""
    names = sorted(history)
    content = _File(
        schema=SCHEMA,
        stores={name: history[name].rises for name in names},
        puts={name: puts for name in names if (puts := history[name].puts) is not None},
    )
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"
