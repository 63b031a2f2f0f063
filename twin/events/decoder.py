"""Decoder of the events topic and of recordings: event rows and dead letters. Described in docs/events.md.

Two ways lead to the same rows. The fast way decodes almost all traffic, in compiled loops over whole batches
(`kernels.json_scan`) or array operations over Arrow columns (`arrow_columns`). All other events are left to the exact
rules (`rules`), one by one, and only these refuse an event, so a bad value costs no other event. A record beyond the
bounds of `refusals` is refused as a whole before it is decoded; records are decoded in pieces, so that memory does not
grow with the size of a decoded batch. Ids become 64-bit keys (xxHash64). Two different ids among n messages of a queue
share a key with probability n * n / 2**65: 3 in a million for ten million messages. A get by message id could then take
the other message.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kernels import EVENT
from kernels.index import xxh64_bytes
from kernels.json_scan import MEMBER, PLACE, pair_key, scan_json
from twin.estate import Estate, as_estate
from twin.events import arrow_columns
from twin.events.convert import RowTexts, object_field, rows_as_fields
from twin.events.decoded import Array, Decoded, Exact, RejectLog, assemble, describe_failure, merge, one_line
from twin.events.fields import FIELDS, OBJECTS
from twin.events.refusals import MAX_EVENT_BYTES, MAX_ROWS, RECORDING, Limits, Reason, show
from twin.events.rules import Accepted, Fields, Rules, parse
from twin.events.values import Group, Spans, Values, as_binary, lines, read_streams, scan, too_many_lines, whole_values

JSON = "application/json"
NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
CONTENT_TYPES = (JSON, NDJSON, ARROW)

_EXACT_ROWS = 8_192  # rows of a table that are converted to Python at a time
_PIECE_BYTES = 64 * 1024 * 1024  # of memory that a piece of a batch of records may take, unless it is one record
_BYTES_PER_BYTE = 20  # of memory: a line of two bytes becomes a row of 56 and its origin
_BYTES_PER_ROW = 100
_ALWAYS_NEEDED = tuple(field.name for field in FIELDS if field.name in ("time", "qmgr", "op"))
_SHORT_LINE = 64  # bytes: up to this length, reasons are cached for a record whose rejects are only counted
_SHORT_LINES = 4_096


class Decoder:
    """Decoder for one estate. It raises no error about the content of a value: refused events are in `rejects`."""

    def __init__(self, estate: Estate | str | Path, limits: Limits | None = None) -> None:
        """Prepare the look-up tables.

        Args:
            limits: limits of the dead letters of a Kafka record; `twin.events.refusals` has the bounds of its content.
        """
        estate = as_estate(estate)
        self._rules = Rules(estate)
        self._limits = limits or Limits()
        self._queue_routes = {
            (route.qmgr, route.reported): number
            for number, route in enumerate(estate.routes)
            if route.reported is not None
        }
        self._places, self._names = _hash_table(self._queue_routes)

    def warm(self) -> None:
        """Load the kernels of decoding, which `twin.stores.warm_up.warm` compiles under a lock."""
        self.ndjson([b"{}"])
        self.arrow([b""])
        self.arrow_table(pa.table({"time": [""], "msgid": [""]}))

    def records(self, values: Values, content_types: Values) -> Decoded:
        """Decode records of mixed content types in their order.

        Args:
            values: n values.
            content_types: n headers `content-type`; null is JSON, parameters (`; charset=utf-8`) are ignored.
        """
        return merge(list(self.pieces(values, content_types)))

    def pieces(self, values: Values, content_types: Values) -> Iterator[Decoded]:
        """Decode like `records`, in pieces of consecutive records whose memory is bounded."""
        binary = as_binary(values)
        headers = as_binary(content_types).dictionary_encode()
        kinds = [content_type(header) for header in headers.dictionary.to_pylist()] + [JSON]
        # A null header is -1, the last of `kinds`.
        numbers = headers.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        distinct = list(dict.fromkeys(kinds))
        of_value = np.array([distinct.index(kind) for kind in kinds])[numbers]
        cuts = _cuts(binary, of_value == distinct.index(ARROW) if ARROW in distinct else None)
        for start, stop in pairwise(cuts):
            pieces = []
            for number, kind in enumerate(distinct):
                places = start + np.flatnonzero(of_value[start:stop] == number)
                if not places.size:
                    continue
                whole = places.size == stop - start
                own = binary.slice(start, stop - start) if whole else binary.take(pa.array(places))
                if kind in CONTENT_TYPES:
                    decoded = {JSON: self.json, NDJSON: self.ndjson, ARROW: self.arrow}[kind](own)
                else:
                    decoded = unknown_content_type(own, kind, self._limits)
                pieces.append(_moved(decoded, places))
            yield merge(pieces)

    def json(self, values: Values, limits: Limits | None = None) -> Decoded:
        """Decode one event per value. A null value is a dead letter (not-json)."""
        return self._texts(whole_values(as_binary(values)), RejectLog(limits or self._limits))

    def ndjson(self, values: Values, limits: Limits | None = None) -> Decoded:
        """Decode one event per line; empty lines are skipped but counted in `index`.

        Args:
            values: values of any number of lines; a piece of a recording has no limit of lines.
            limits: limits of dead letters; by default those of this decoder.
        """
        binary = as_binary(values)
        log = RejectLog(limits or self._limits)
        skipped = {} if log.limits.letters is None else too_many_lines(binary, MAX_ROWS)
        for record, count in skipped.items():
            detail = f"{count} lines; expected: at most {MAX_ROWS} lines"
            log.add_buffer(record, 0, Reason.OVERSIZED, detail, binary[record].as_buffer())
        return self._texts(lines(binary, [*skipped]), log)

    def arrow(self, values: Values, limits: Limits | None = None) -> Decoded:
        """Decode one Arrow IPC stream per value. Batches before a damage are kept."""
        binary = as_binary(values)
        groups, damages = read_streams(binary)
        log = RejectLog(limits or self._limits, np.diff(arrow_columns.buffers_of(binary)[0]))
        pieces = [piece for group in groups for piece in self._group(group, binary, log)]
        for damage in damages:
            log.add_buffer(damage.record, damage.rows, damage.reason, damage.detail, damage.value)
        decoded = merge(pieces)
        decoded.rejects = log.rejects()
        return decoded

    def arrow_table(self, table: pa.Table | pa.RecordBatch) -> Decoded:
        """Decode one event per row, record 0, index the row. The table must pass `Table.validate(full=True)`."""
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        log = RejectLog(RECORDING)
        record, index = np.zeros(table.num_rows, np.int32), np.arange(table.num_rows, dtype=np.int64)
        decoded = self._table(table, record, index, log)
        decoded.rejects = log.rejects()
        return decoded

    def _group(self, group: Group, binary: pa.LargeBinaryArray, log: RejectLog) -> Iterator[Decoded]:
        """Decode batches of one schema. If that fails, decode value by value, so that only the bad one is refused."""
        records = sorted(set(group.record))
        rows = [batch.num_rows for batch in group.batches]
        try:
            record = np.repeat(np.array(group.record, np.int32), rows)
            start = np.repeat(np.array(group.first, np.int64) - np.cumsum([0, *rows[:-1]]), rows)
            index = start + np.arange(start.size)
            decoded = self._table(pa.Table.from_batches(group.batches), record, index, log)
        except Exception as error:  # noqa: BLE001  # whatever a value makes Arrow raise: see the letter's detail
            log.forget(records)
            if len(records) == 1:
                detail = f"{one_line(error)}; expected: one whole Arrow IPC stream"
                log.add_buffer(records[0], 0, Reason.BAD_ARROW, detail, binary[records[0]].as_buffer())
                return
            for number in records:
                yield from self._group(group.of_record(number), binary, log)
        else:
            yield decoded

    def _table(self, table: pa.Table, record: Array, index: Array, log: RejectLog) -> Decoded:
        """Decode a table. record, i4[rows], and index, i8[rows], are the origins of its rows."""
        columns = arrow_columns.Columns(table, self._queue_routes)
        events = columns.events()
        is_fast = columns.sure.view(np.uint8)
        exact = Exact()
        doubtful = np.flatnonzero(is_fast == 0)
        for start in range(0, doubtful.size, _EXACT_ROWS):
            places = doubtful[start : start + _EXACT_ROWS]
            if log.is_full(int(record[places[-1]])):
                places = _count_missing(table, places, record, index, log)
            if places.size:
                self._exact_rows(table, places, record, index, exact, log)
        return assemble(events, is_fast, record, index, exact)

    def _texts(self, spans: Spans, log: RejectLog) -> Decoded:
        count = spans.starts.size
        events = np.zeros(count, EVENT)
        is_fast = np.zeros(count, np.uint8)
        members = np.zeros(len(FIELDS), MEMBER)
        scan_json(spans.data, spans.starts, spans.ends, self._places, self._names, members, events, is_fast)
        sizes = spans.ends - spans.starts
        is_fast[sizes > MAX_EVENT_BYTES] = 0
        exact = Exact()
        reasons: dict[bytes, Reason] = {}  # of short lines
        for place in np.flatnonzero(is_fast == 0).tolist():
            record, index = int(spans.record[place]), int(spans.index[place])
            if sizes[place] > MAX_EVENT_BYTES:
                if log.admit(record, index, Reason.OVERSIZED):
                    detail = f"an event of {sizes[place]} bytes; expected: at most {MAX_EVENT_BYTES} bytes"
                    cut = spans.beginning(place, log.limits.value_bytes)
                    log.append(record, index, Reason.OVERSIZED, detail, cut, int(sizes[place]))
                continue
            text = spans.text(place)
            if log.is_full(record) and text in reasons:
                log.count(record, index, index, reasons[text], 1)
                continue
            try:
                exact.add(place, self._rules.apply(parse(text)))
            except Exception as error:  # noqa: BLE001  # the letter names what no rule foresees
                reason, detail = describe_failure(error)
                log.add(record, index, reason, detail, text)
                if len(text) <= _SHORT_LINE and len(reasons) < _SHORT_LINES:
                    reasons[text] = reason
        exact.rejects = log.rejects()
        return assemble(events, is_fast, spans.record, spans.index, exact)

    def _exact_rows(
        self, table: pa.Table, places: Array, record: Array, index: Array, exact: Exact, log: RejectLog
    ) -> None:
        rows = arrow_columns.rows_at(table, places)
        refused: list[tuple[int, Reason, str]] = []
        for row, fields in enumerate(rows_as_fields(rows)):
            place = int(places[row])
            number = int(record[place])
            try:
                exact.add(place, self._accept_row(fields, number, log))
            except Exception as error:  # noqa: BLE001  # the letter names what no rule foresees
                reason, detail = describe_failure(error)
                if log.admit(number, int(index[place]), reason):
                    refused.append((row, reason, detail))
        if not refused:
            return
        texts = RowTexts(arrow_columns.rows_at(rows, np.array([row for row, _, _ in refused])))
        for i, (row, reason, detail) in enumerate(refused):
            place = int(places[row])
            number = int(record[place])
            value, length = texts.text(i, log.row_limit(number))
            log.append_row(number, int(index[place]), reason, detail, value, length)

    def _accept_row(self, fields: dict[str, Any], record: int, log: RejectLog) -> Accepted:
        objects = {name: object_field(name, fields[name]) for name in OBJECTS if name in fields}
        accepted = self._rules.apply(Fields(**fields | objects))
        if accepted.extra is not None:
            log.check_objects(record, len(accepted.extra))
        return accepted


def content_type(header: bytes | str | None) -> str:
    """Return the content type of a header in lower case without parameters; JSON without a header."""
    if header is None:
        return JSON
    text = header.decode("utf-8", "replace") if isinstance(header, bytes) else header
    return text.partition(";")[0].strip().lower()


def unknown_content_type(values: Values, name: str, limits: Limits | None = None) -> Decoded:
    """Return dead letters for records of an unknown content type."""
    detail = f"the content-type is {show(name)}; expected: {', '.join(CONTENT_TYPES)}, or none"
    log = RejectLog(limits or Limits())
    for record, value in enumerate(as_binary(values)):
        buffer = value.as_buffer() if value.is_valid else pa.py_buffer(b"")
        log.add_buffer(record, 0, Reason.UNKNOWN_CONTENT_TYPE, detail, buffer)
    decoded = merge([])
    decoded.rejects = log.rejects()
    return decoded


def _cuts(values: pa.LargeBinaryArray, is_arrow: Array | None) -> list[int]:
    """Return the indexes at which a batch of values is cut into pieces, beginning and end included."""
    offsets, _ = arrow_columns.buffers_of(values)
    costs = np.diff(offsets) * _BYTES_PER_BYTE
    if is_arrow is not None and is_arrow.any():
        scanned = scan(values)
        inside = is_arrow.copy()
        inside[[*scanned.refusals()]] = False
        costs = costs + np.where(inside, scanned.rows * _BYTES_PER_ROW + scanned.sizes, 0)
    if costs.sum() <= _PIECE_BYTES:
        return [0, len(values)]
    cuts, total = [0], 0
    for record, cost in enumerate(costs.tolist()):
        if total and total + cost > _PIECE_BYTES:
            cuts.append(record)
            total = 0
        total += cost
    return [*cuts, len(values)]


def _count_missing(table: pa.Table, places: Array, record: Array, index: Array, log: RejectLog) -> Array:
    """Count rows without time, queue manager or operation in values that are full; return the other places."""
    missing, left = np.zeros(places.size, np.bool_), np.ones(places.size, np.bool_)
    rows = arrow_columns.rows_at(table, places)
    for name in _ALWAYS_NEEDED:
        values = arrow_columns.column(rows, name)
        missing |= True if values is None else ~np.asarray(values.is_valid())
    for number in filter(log.is_full, np.unique(record[places]).tolist()):
        counted = missing & (record[places] == number)
        indexes = index[places[counted]]
        if indexes.size:
            log.count(number, int(indexes[0]), int(indexes[-1]), Reason.MISSING_FIELD, indexes.size)
            left &= ~counted
    return places[left]


def _moved(decoded: Decoded, places: Array) -> Decoded:
    """Return the result with value k renumbered to places[k]."""
    decoded.record = places.astype(np.int32)[decoded.record]
    decoded.rejects = [reject.moved_to(int(places[reject.record]), reject.index) for reject in decoded.rejects]
    return decoded


def _hash_table(routes: dict[tuple[str, str], int]) -> tuple[Array, Array]:
    """Return the hash table for `kernels.json_scan`: PLACE[2**k], at most half full, and the bytes of all names."""
    size = 16
    while size < 2 * len(routes):
        size *= 2
    places = np.zeros(size, PLACE)
    places["route"] = -1
    names = bytearray()
    for (qmgr, queue), route in routes.items():
        start, middle, end = len(names), len(names) + len(qmgr.encode()), len(names) + len((qmgr + queue).encode())
        names += (qmgr + queue).encode()
        key = pair_key(_key(qmgr), _key(queue))
        slot = int(key) & (size - 1)
        while places[slot]["route"] >= 0:
            slot = (slot + 1) & (size - 1)
        places[slot] = (key, route, start, middle, end)
    return places, np.frombuffer(names + b"\0", np.uint8).copy()  # writable, as it will be after pickling


def _key(name: str) -> np.uint64:
    return np.uint64(xxh64_bytes(np.frombuffer(name.encode() + b"\0", np.uint8)[:-1]))
