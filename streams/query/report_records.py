"""Records of the reports topic: reports of stores to those they share, and marks (schemas/report.schema.json).

The topic is internal: the job writes one JSON record per source and batch, keyed by the shared store, and reads it back
in a later batch. A mark says whether the job has read all events that existed, or reads a backlog: a shared store waits
for a source that says nothing by minutes of event time (`twin.stores.reports.Frontier`), but in a backlog its events
may come hours behind those of another partition, so that it waits for all. Only the driver knows which it is, and sends
each shared store a record among its reports, so that the result is a function of records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Annotated

import msgspec
import structlog

from streams.kafka.clients import deliver
from streams.kafka.topics import Topics
from streams.query.rows import BatchReport
from twin.base.decoding import UNREADABLE
from twin.base.errors import MqtwinError
from twin.estate import Estate
from twin.stores.reports import Report, Tick, Values

CONTENT_TYPE = "application/json"
REPORTS_PER_RECORD = 1000  # about 150 KB

_EXPECTED = "expected: a record that the job itself wrote"
_SETTINGS = {"enable.idempotence": True, "partitioner": "murmur2_random"}  # the partition that the job's reports take

_log = structlog.get_logger("mqtwin.stream")


class ReportError(ValueError):
    """An invalid record; the message has the problem and what is expected."""


class ReportFields(msgspec.Struct, frozen=True, omit_defaults=True):
    """A report of a source, which holds from `tick` to `passed`."""

    tick: Tick
    """Tick of the values, the first one after the events that led to them: event time since 1970 in units of 10 s."""
    passed: Tick
    """The last tick at which the values are still valid."""
    values: Values | None
    """The values; null: the source no longer shares the store."""
    turns: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0
    """Number of times that the source's clock has gone back; absent: 0. Ticks restart each time."""


class ReportRecord(msgspec.Struct, frozen=True):
    """The reports of one store to a shared store in one batch."""

    store: str
    """Name of the shared store, the key of the record."""
    source: str
    """Name of the store that reports."""
    reports: Annotated[list[ReportFields], msgspec.Meta(min_length=1)]
    """The reports in the order of their ticks."""


class ReadMark(msgspec.Struct, frozen=True):
    """A mark: from its position on, all events that existed have been read, or a backlog is being read."""

    store: str
    """Name of the shared store, the key of the record."""
    caught_up: bool
    """True: all events that existed have been read; a source that says nothing is waited for by minutes. False: a
    backlog is read; every source is waited for."""


class _AnyRecord(msgspec.Struct, frozen=True):
    caught_up: bool | None = None


_decoder = msgspec.json.Decoder(ReportRecord)
_mark_decoder = msgspec.json.Decoder(ReadMark)
_any_decoder = msgspec.json.Decoder(_AnyRecord)


def report_records(reports: Iterable[Report], limit: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield (key, value) of the records for a source's reports, in order. Only one report may exceed `limit` bytes."""
    for target, group in groupby(reports, key=lambda report: report.target):
        yield from _records(target, list(group), limit)


def _records(target: str, reports: list[Report], limit: int) -> Iterator[tuple[bytes, bytes]]:
    for start in range(0, len(reports), REPORTS_PER_RECORD):
        piece = reports[start : start + REPORTS_PER_RECORD]
        fields = [ReportFields(report.tick, report.passed, report.values, report.turns) for report in piece]
        value = msgspec.json.encode(ReportRecord(store=target, source=piece[0].source, reports=fields))
        if len(value) > limit and len(piece) > 1:
            middle = len(piece) // 2
            yield from _records(target, piece[:middle], limit)
            yield from _records(target, piece[middle:], limit)
        else:
            yield target.encode(), value


def read_mark(store: str, *, caught_up: bool) -> bytes:
    """Return the value of a mark for a shared store."""
    return msgspec.json.encode(ReadMark(store, caught_up))


def read_record(value: bytes | None, estate: Estate) -> list[Report] | ReadMark:
    """Return the mark of a record, or its reports in its order. Raise ReportError as `read_reports`."""
    try:
        is_mark = _any_decoder.decode(value or b"").caught_up is not None
        mark = _mark_decoder.decode(value or b"") if is_mark else None
    except UNREADABLE as error:
        raise ReportError(f"{error}; {_EXPECTED}") from None
    if mark is None:
        return read_reports(value, estate)
    _check_shared(mark.store, estate)
    return mark


def _check_shared(name: str, estate: Estate) -> None:
    shared = estate.stores.get(name)
    if shared is None or shared.holds_messages:
        raise ReportError(
            f"store is {name}; expected: a coupling facility, uniform cluster or distributed queue manager"
            " of the estate"
        )


def read_reports(value: bytes | None, estate: Estate) -> list[Report]:
    """Return the reports of a record, in its order. ReportError: the record is not JSON or not of the schema, its ticks
    do not increase, or a store is not in the estate or not of the right kind.
    """
    try:
        record = _decoder.decode(value or b"")
    except UNREADABLE as error:
        raise ReportError(f"{error}; {_EXPECTED}") from None
    _check_shared(record.store, estate)
    if record.source not in estate.message_stores:
        raise ReportError(f"source is {record.source}; expected: a store of the estate that holds messages")
    previous: tuple[int, int] | None = None
    for fields in record.reports:
        if fields.passed < fields.tick or (previous is not None and (fields.turns, fields.tick) <= previous):
            tick = None if previous is None else previous[1]
            raise ReportError(
                f"ticks {fields.tick} to {fields.passed} come after {tick}; expected: ticks that increase"
            )
        previous = (fields.turns, fields.passed)
    return [
        Report(
            target=record.store,
            source=record.source,
            tick=fields.tick,
            passed=fields.passed,
            values=fields.values,
            turns=fields.turns,
        )
        for fields in record.reports
    ]


_reports = msgspec.msgpack.Decoder(list[Report])


def pack_reports(reports: list[Report]) -> bytes:
    """Return the payload of a row of reports, which goes from the decode stage to the processor."""
    return msgspec.msgpack.encode(reports)


def unpack_reports(payload: bytes | memoryview) -> list[Report]:
    """Return the reports of a payload; see `pack_reports`."""
    return _reports.decode(payload)


class ReadMarks:
    """Writer of marks to the shared stores of an estate."""

    def __init__(self, estate: Estate, kafka: Mapping[str, str], topics: Topics) -> None:
        self.stores = [name for name, store in estate.stores.items() if not store.holds_messages]
        self._kafka, self._topics = kafka, topics
        self._last_mark: bool | None = None

    def tell(self, *, caught_up: bool) -> None:
        """Write whether all events that existed have been read, unless the last marks say the same. MqtwinError: Kafka
        does not take the records.
        """
        if not self.stores or caught_up == self._last_mark:
            return
        marks = {store: read_mark(store, caught_up=caught_up) for store in self.stores}
        headers = {"content-type": CONTENT_TYPE.encode()}
        deliver(self._kafka, self._topics.reports, marks, _SETTINGS, headers=headers)
        self._last_mark = caught_up

    def on_batch(self, report: BatchReport) -> None:
        """Write the marks that have changed with a batch.

        A failure is logged, and tried again after the next batch: until then shared stores wait for longer.
        """
        caught_up = has_read_all(report, self._topics)
        if caught_up is None:
            return
        try:
            self.tell(caught_up=caught_up)
        except MqtwinError as error:
            _log.warning("shared stores are not told that the job has caught up", why=str(error))


def has_read_all(report: BatchReport, topics: Topics) -> bool | None:
    """Return True if a batch has read all events that existed at its start; None where Spark did not ask for their end.
    The topic of reports does not count.
    """
    ends, latest = report.end_offsets, report.latest_offsets
    names = [name for name in topics.read if name != topics.reports]
    if not all(name in latest for name in names):
        return None
    return all(
        ends.get(name, {}).get(number, -1) >= offset for name in names for number, offset in latest[name].items()
    )
