"""Reports as records of the reports topic: JSON, one record for a source and batch, key = the shared store.

The topic is the job's own: it writes what stores report to those they share, and reads it back in a later batch. What a
record says is in schemas/report.schema.json.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Annotated

import msgspec

from twin.estate import Estate
from twin.stores.reports import Report, Tick, Values

CONTENT_TYPE = "application/json"
REPORTS_A_RECORD = 1000  # about 150 KB

_SHARED = ("coupling_facility", "uniform_cluster")


class ReportError(ValueError):
    """A record that is no reports; the message says what would be right."""


class _Reported(msgspec.Struct, frozen=True, omit_defaults=True):
    tick: Tick
    passed: Tick
    values: Values | None
    turns: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0


class _Record(msgspec.Struct, frozen=True):
    store: str
    source: str
    reports: Annotated[list[_Reported], msgspec.Meta(min_length=1)]


_decoder = msgspec.json.Decoder(_Record)


def report_records(reports: Iterable[Report], limit: int) -> Iterator[tuple[bytes, bytes]]:
    """(key, value) of records for reports of one source, in order; none longer than `limit` bytes if it can be."""
    for target, made in groupby(reports, key=lambda report: report.target):
        yield from _records(target, list(made), limit)


def _records(target: str, reports: list[Report], limit: int) -> Iterator[tuple[bytes, bytes]]:
    for start in range(0, len(reports), REPORTS_A_RECORD):
        piece = reports[start : start + REPORTS_A_RECORD]
        told = [_Reported(report.tick, report.passed, report.values, report.turns) for report in piece]
        value = msgspec.json.encode(_Record(store=target, source=piece[0].source, reports=told))
        if len(value) > limit and len(piece) > 1:
            middle = len(piece) // 2
            yield from _records(target, piece[:middle], limit)
            yield from _records(target, piece[middle:], limit)
        else:
            yield target.encode(), value


def read_reports(value: bytes | None, estate: Estate) -> list[Report]:
    """The reports of a record, in its order.

    ReportError: not JSON, not of the shape, ticks that do not grow, a store that is not shared or not in the estate.
    """
    try:
        record = _decoder.decode(value or b"")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReportError(f"{error}; right: what the job itself writes") from None
    shared, source = estate.stores.get(record.store), estate.stores.get(record.source)
    if shared is None or shared.kind not in _SHARED:
        raise ReportError(f"store is {record.store}; right: a coupling facility or uniform cluster of the estate")
    if source is None or source.kind in _SHARED:
        raise ReportError(f"source is {record.source}; right: a store of the estate that holds messages")
    last = None
    for one in record.reports:
        if one.passed < one.tick or (last is not None and (one.turns, one.tick) <= last):
            after = None if last is None else last[1]
            raise ReportError(f"ticks {one.tick} to {one.passed} come after {after}; right: ticks that grow")
        last = (one.turns, one.passed)
    return [
        Report(
            target=record.store,
            source=record.source,
            tick=one.tick,
            passed=one.passed,
            values=one.values,
            turns=one.turns,
        )
        for one in record.reports
    ]


_reports = msgspec.msgpack.Decoder(list[Report])


def pack_reports(reports: list[Report]) -> bytes:
    """The payload of a row of reports on its way from the decode stage to the processor."""
    return msgspec.msgpack.encode(reports)


def unpack_reports(payload: bytes) -> list[Report]:
    """What `pack_reports` packed."""
    return _reports.decode(payload)
