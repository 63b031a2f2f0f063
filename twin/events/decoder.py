"""Records of the events topic, and recordings, into rows of events and dead letters.

Source: contract section 2 (content types, fields), section 5 (dead letters), section 7.

Two ways lead to the same rows. The fast one takes what almost all traffic consists of, in compiled loops over whole
batches (`kernels.json_scan`) or array operations over Arrow columns (`_arrow`). What it does not take, the exact rules
(`rules`) look at one by one, and they alone refuse an event. So one bad value costs nothing but itself.

Ids become 64-bit keys (xxHash64). Two different ids among n messages of a queue share a key with probability
n * n / 2**65: 3 in a million for ten million messages; a get by message id could then take the other message.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kernels import EVENT
from kernels.hashing import xxh64_bytes
from kernels.json_scan import MEMBER, PLACE, pair_key, scan_json
from twin.estate import Estate
from twin.events import _arrow
from twin.events._ipc import Damage, read_streams
from twin.events._lines import Spans, Values, as_binary, lines, whole_values
from twin.events.decoded import Array, Decoded, Exact, Reject, assembled, merged
from twin.events.fields import FIELDS, shown
from twin.events.reasons import EventError, Reason
from twin.events.rules import Fields, Rules, parse

JSON = "application/json"
NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
CONTENT_TYPES = (JSON, NDJSON, ARROW)

_EXACT_ROWS = 8_192  # rows of a table that become Python values at a time


class Decoder:
    """Decodes for one estate. Raises nothing for what is in a value: what cannot be taken is in `rejects`."""

    def __init__(self, estate: Estate) -> None:
        self._rules = Rules(estate)
        self._queue_routes = {
            (route.qmgr, route.reported): number
            for number, route in enumerate(estate.routes)
            if route.reported is not None
        }
        self._places, self._names = _hash_table(self._queue_routes)

    def warm(self) -> None:
        """Load from disk, or compile, all compiled code of decoding; under `kernels._compile.compile_lock`."""
        self.ndjson([b"{}"])
        self.arrow_table(pa.table({"time": [""], "msgid": [""]}))

    def records(self, values: Values, content_types: Values) -> Decoded:
        """Records of mixed content, each by its header `content-type` (null: JSON), in the order given.

        values and content_types: as many. Parameters of a content type (`; charset=utf-8`) are ignored.
        """
        binary = as_binary(values)
        headers = as_binary(content_types).dictionary_encode()
        kinds = [content_type(header) for header in headers.dictionary.to_pylist()] + [JSON]
        # A null header is -1, the last of `kinds`.
        numbers = headers.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        distinct = list(dict.fromkeys(kinds))
        of_value = np.array([distinct.index(kind) for kind in kinds])[numbers]
        pieces = []
        for number, kind in enumerate(distinct):
            places = np.flatnonzero(of_value == number)
            if not places.size:
                continue
            own = binary if places.size == len(binary) else binary.take(pa.array(places))
            if kind in CONTENT_TYPES:
                decoded = {JSON: self.json, NDJSON: self.ndjson, ARROW: self.arrow}[kind](own)
            else:
                decoded = unknown_content_type(own, kind)
            pieces.append(_moved(decoded, places))
        return merged(pieces)

    def json(self, values: Values) -> Decoded:
        """One event a value. A null value is a dead letter (not-json)."""
        return self._texts(whole_values(as_binary(values)))

    def ndjson(self, values: Values) -> Decoded:
        """Events one a line in each value; empty lines are skipped but counted in `index`."""
        return self._texts(lines(as_binary(values)))

    def arrow(self, values: Values) -> Decoded:
        """An Arrow IPC stream in each value. Of a damaged one, the batches before the damage are kept."""
        groups, damages = read_streams(as_binary(values))
        pieces = []
        for group in groups:
            decoded = self.arrow_table(pa.Table.from_batches(group.batches))
            rows = [batch.num_rows for batch in group.batches]
            record = np.repeat(np.array(group.record, np.int32), rows)
            start = np.repeat(np.array(group.first, np.int64) - np.cumsum([0, *rows[:-1]]), rows)
            decoded.rejects = [
                Reject(int(record[r.index]), int(start[r.index]) + r.index, r.reason, r.detail, r.value)
                for r in decoded.rejects
            ]
            decoded.record = record[decoded.index]
            decoded.index = start[decoded.index] + decoded.index
            pieces.append(decoded)
        pieces.append(_damaged(damages))
        return merged(pieces)

    def arrow_table(self, table: pa.Table | pa.RecordBatch) -> Decoded:
        """A row an event; record is 0, index the row. The table must be sound: `Table.validate(full=True)`."""
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        columns = _arrow.Columns(table, self._queue_routes)
        events = columns.events()
        taken = columns.sure.view(np.uint8)
        exact = Exact()
        doubtful = np.flatnonzero(taken == 0)
        for start in range(0, doubtful.size, _EXACT_ROWS):
            self._exact_rows(table, doubtful[start : start + _EXACT_ROWS], exact)
        rows = np.arange(table.num_rows, dtype=np.int64)
        return assembled(events, taken, np.zeros(rows.size, np.int32), rows, exact)

    def _texts(self, spans: Spans) -> Decoded:
        count = spans.starts.size
        events = np.zeros(count, EVENT)
        taken = np.zeros(count, np.uint8)
        members = np.zeros(len(FIELDS), MEMBER)
        scan_json(spans.data, spans.starts, spans.ends, self._places, self._names, members, events, taken)
        exact = Exact()
        for place in np.flatnonzero(taken == 0).tolist():
            text = spans.text(place)
            try:
                exact.add(place, self._rules.taken(parse(text)))
            except EventError as error:
                record, index = int(spans.record[place]), int(spans.index[place])
                exact.rejects.append(Reject(record, index, error.reason, error.detail, text))
        return assembled(events, taken, spans.record, spans.index, exact)

    def _exact_rows(self, table: pa.Table, places: Array, exact: Exact) -> None:
        rows = _arrow.rows_at(table, places)
        values = None
        for at, fields in enumerate(_arrow.rows_as_fields(rows)):
            place = int(places[at])
            try:
                exact.add(place, self._rules.taken(Fields(**fields)))
            except EventError as error:
                if values is None:
                    values = _arrow.rows_as_values(rows)
                value = _arrow.row_as_json(values[at])
                exact.rejects.append(Reject(0, place, error.reason, error.detail, value))


def content_type(header: bytes | str | None) -> str:
    """A header's content type in lower case without parameters; JSON where there is no header."""
    if header is None:
        return JSON
    text = header.decode("utf-8", "replace") if isinstance(header, bytes) else header
    return text.partition(";")[0].strip().lower()


def unknown_content_type(values: Values, name: str) -> Decoded:
    """Dead letters for records of a content type that the contract does not name."""
    detail = f"the content-type is {shown(name)}; right: {', '.join(CONTENT_TYPES)}, or none"
    decoded = merged([])
    decoded.rejects = [
        Reject(record, 0, Reason.UNKNOWN_CONTENT_TYPE, detail, value or b"")
        for record, value in enumerate(as_binary(values).to_pylist())
    ]
    return decoded


def _damaged(damages: Sequence[Damage]) -> Decoded:
    decoded = merged([])
    decoded.rejects = [Reject(d.record, d.rows, Reason.BAD_ARROW, d.detail, d.value) for d in damages]
    return decoded


def _moved(decoded: Decoded, places: Array) -> Decoded:
    """The same, value k being value places[k] of a longer list."""
    decoded.record = places.astype(np.int32)[decoded.record]
    decoded.rejects = [Reject(int(places[r.record]), r.index, r.reason, r.detail, r.value) for r in decoded.rejects]
    return decoded


def _hash_table(routes: dict[tuple[str, str], int]) -> tuple[Array, Array]:
    """The pairs as `kernels.json_scan` looks them up: PLACE[2**k], at most half full, and the bytes of all names."""
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
        at = int(key) & (size - 1)
        while places[at]["route"] >= 0:
            at = (at + 1) & (size - 1)
        places[at] = (key, route, start, middle, end)
    return places, np.frombuffer(names + b"\0", np.uint8).copy()  # writable, as it will be after pickling


def _key(name: str) -> np.uint64:
    return np.uint64(xxh64_bytes(np.frombuffer(name.encode() + b"\0", np.uint8)[:-1]))
