"""Vectorised decoding of events from Arrow columns.

Columns become numpy arrays, and all checks are array operations. A row that fails one, or is not a queue operation,
is left to `twin.events.rules`, which alone refuses events. Columns are found by name; a missing one is absent in every
row. Strings may be plain, large, view or dictionary-encoded, integers of any width. `time` is a timestamp of any unit
with a time zone, an integer of microseconds or an RFC 3339 string. `attributes` and `measured` are JSON text or a
struct. In a column of any other type, every value is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kernels import EVENT, FLAG_DIRECT, FLAG_HAS_MSGID, FLAG_HAS_UOW, FLAG_PERSISTENT
from kernels.index import xxh64_column
from kernels.json_scan import EXPIRY_MAX, QUEUE_OPS, TIME_HIGH, TIME_LOW, rfc3339_column
from kernels.layout import PREPARE, PUT
from twin.base.decoding import UNREADABLE
from twin.events.fields import FIELD

Array = npt.NDArray[Any]

_PAIRS_MAX = 1 << 20  # (queue manager, queue) pairs of two dictionaries that are looked up in a table of all of them


class Columns:
    """Table of n rows as arrays. `sure`, bool[n], is False for rows that are left to the exact rules."""

    def __init__(self, table: pa.Table, queue_routes: Mapping[tuple[str, str], int]) -> None:
        self.table = table
        self.rows = table.num_rows
        self.sure = np.ones(self.rows, np.bool_)
        self._queue_routes = queue_routes

    def events(self) -> Array:
        """Return EVENT[n]; a row is valid if it is `sure`."""
        out = np.zeros(self.rows, EVENT)
        out["time"] = self._time()
        out["route"] = self._routes()
        ops = self._ops()
        out["op"] = ops
        out["seq"], _ = self._integers("seq", -1)
        out["count"], counted = self._integers("count", 1)
        out["length"], measured = self._integers("length", 0)
        out["priority"], _ = self._integers("priority", 0)
        out["reason"], _ = self._integers("reason", 0)
        if measured is not None:
            self.sure &= measured | (ops != PUT)
        flags = np.zeros(self.rows, np.uint8)
        flags |= self._flag("persistent", FLAG_PERSISTENT)
        flags |= self._flag("direct", FLAG_DIRECT)
        out["msgid"], keyed = self._keys("msgid")
        out["uow"], united = self._keys("uow")
        flags |= keyed.astype(np.uint8) * np.uint8(FLAG_HAS_MSGID)
        flags |= united.astype(np.uint8) * np.uint8(FLAG_HAS_UOW)
        out["flags"] = flags
        out["expiry"] = self._expiry()
        self.sure &= (flags & FLAG_DIRECT == 0) | ((flags & (FLAG_PERSISTENT | FLAG_HAS_UOW)) == 0)
        self.sure &= united | (ops != PREPARE)
        if counted is None or counted.any():
            self.sure &= ~keyed | (out["count"] == 1)
        self._check_store()
        for name in ("attributes", "measured"):
            self._leave_to_exact_rules(column(self.table, name))
        return out

    def _leave_to_exact_rules(self, values: pa.ChunkedArray | None) -> None:
        """Leave the rows that have a value in a column to the exact rules."""
        if values is not None and values.null_count < self.rows:
            self.sure &= ~_present(values)

    def _integers(self, name: str, absent: int) -> tuple[Array, Array | None]:
        """Return an integer column, i8[n], with `absent` for missing or wrong, and bool[n], which are present, or None
        if all.
        """
        values = column(self.table, name)
        if values is None or values.null_count == self.rows:
            return np.full(self.rows, absent, np.int64), np.zeros(self.rows, np.bool_)
        if not pa.types.is_integer(values.type):
            self._leave_to_exact_rules(values)
            return np.full(self.rows, absent, np.int64), _present(values)
        present = _present(values) if values.null_count else None
        # An unsigned number beyond 63 bits turns negative, which no field takes.
        numbers = _numpy(values.cast(pa.int64(), safe=False).fill_null(absent))
        field = FIELD[name]
        wrong = (numbers < field.low) | (numbers > (field.high or 0))
        if present is not None:
            wrong &= present
        if wrong.any():
            self.sure &= ~wrong
            numbers = np.where(wrong, np.int64(absent), numbers)
        return numbers, present

    def _expiry(self) -> Array:
        """Return i8[n], tenths of a second, 0 for an absent expiry; seconds that are not whole are not sure."""
        values = column(self.table, "expiry")
        if values is None or values.null_count == self.rows:
            return np.zeros(self.rows, np.int64)
        if not (pa.types.is_integer(values.type) or pa.types.is_float64(values.type)):
            self._leave_to_exact_rules(values)
            return np.zeros(self.rows, np.int64)
        present = _present(values)
        seconds = _numpy(values.cast(pa.float64(), safe=False).fill_null(0.0))
        plain = (seconds >= 1) & (seconds <= EXPIRY_MAX) & (np.floor(seconds) == seconds)
        self.sure &= ~present | plain
        return np.where(plain & present, seconds, 0.0).astype(np.int64) * 10

    def _flag(self, name: str, bit: int) -> Array:
        values = column(self.table, name)
        if values is None or values.null_count == self.rows:
            return np.zeros(self.rows, np.uint8)
        if not pa.types.is_boolean(values.type):
            self._leave_to_exact_rules(values)
            return np.zeros(self.rows, np.uint8)
        return _numpy(values.fill_null(False)).astype(np.uint8) * np.uint8(bit)

    def _keys(self, name: str) -> tuple[Array, Array]:
        """Return the xxHash64 of each string, u8[n], 0 for an absent one, and bool[n], True if present."""
        values = column(self.table, name)
        keys = np.zeros(self.rows, np.uint64)
        present = np.zeros(self.rows, np.bool_)
        if values is None or values.null_count == self.rows:
            return keys, present
        if not is_text(values.type):
            self._leave_to_exact_rules(values)
            return keys, present
        present = _present(values)
        words, places = _words(values)
        offsets, data = _text(words)
        sizes = np.diff(offsets)
        if places is None:
            xxh64_column(offsets, data, keys)
        else:  # one more, for places that hold null
            word_keys = np.zeros(sizes.size + 1, np.uint64)
            xxh64_column(offsets, data, word_keys[:-1])
            keys, sizes = word_keys[places], np.append(sizes, 0)[places]
        keys[~present] = 0
        field = FIELD[name]
        if field.high is not None:
            self.sure &= ~present | ((sizes >= field.low) & (sizes <= field.high))
        return keys, present

    def _time(self) -> Array:
        """Return i8[n], microseconds. Rows whose time is absent, unreadable or out of range are not sure."""
        values = column(self.table, "time")
        if values is None:
            self.sure[:] = False
            return np.zeros(self.rows, np.int64)
        numbers = times(values)
        if numbers is None:
            self.sure[:] = False
            return np.zeros(self.rows, np.int64)
        self.sure &= (numbers >= TIME_LOW) & (numbers < TIME_HIGH)
        return numbers

    def _ops(self) -> Array:
        """Return u1[n], the index in OPS of operations on queues. Rows with another operation are not sure."""
        codes, words = self._codes("op")
        places = np.array([QUEUE_OPS.index(word) if word in QUEUE_OPS else -1 for word in words] + [-1], np.int64)
        ops = places[codes]
        self.sure &= ops >= 0
        return ops.astype(np.uint8)

    def _routes(self) -> Array:
        """Return i8[n], the routes of the estate. Rows without one are not sure."""
        qmgr_codes, qmgrs = self._codes("qmgr")
        queue_codes, queues = self._codes("queue")
        # Code -1, an absent value, takes one more row and column.
        pairs = (qmgr_codes + 1) * (len(queues) + 1) + (queue_codes + 1)
        if (len(qmgrs) + 1) * (len(queues) + 1) <= _PAIRS_MAX:
            table = np.full((len(qmgrs) + 1) * (len(queues) + 1), -1, np.int64)
            present = np.flatnonzero(np.bincount(pairs, minlength=1)) if pairs.size else np.zeros(0, np.int64)
            place = pairs
        else:
            present, place = np.unique(pairs, return_inverse=True)
            table = np.full(present.size, -1, np.int64)
        for i, pair in enumerate(present.tolist()):
            qmgr, queue = divmod(pair, len(queues) + 1)
            if qmgr and queue:
                slot = pair if place is pairs else i
                table[slot] = self._queue_routes.get((qmgrs[qmgr - 1], queues[queue - 1]), -1)
        routes: Array = table[place]
        self.sure &= routes >= 0
        return routes

    def _codes(self, name: str) -> tuple[Array, list[str]]:
        """Return i8[n], the index of each string among the distinct ones, -1 if absent or no string; and these."""
        values = column(self.table, name)
        if values is None or not is_text(values.type):
            self._leave_to_exact_rules(values)
            return np.full(self.rows, -1, np.int64), []
        encoded = dictionary(values)
        words = encoded.dictionary.to_pylist()
        codes = _numpy(encoded.indices.cast(pa.int64(), safe=False).fill_null(-1))
        if None in words:  # a dictionary may hold null
            codes = np.where(codes == words.index(None), np.int64(-1), codes)
        return codes, ["" if word is None else word for word in words]

    def _check_store(self) -> None:
        """Leave rows whose `store` is not a string to the exact rules, although operations on queues ignore it."""
        values = column(self.table, "store")
        if values is not None and not is_text(values.type):
            self._leave_to_exact_rules(values)


# --- columns ---------------------------------------------------------------------------------------------------------


def column(table: pa.Table, name: str) -> pa.ChunkedArray | None:
    """Return the last column of that name, as in JSON; None if there is none, or it has type null."""
    places = table.schema.get_all_field_indices(name)
    if not places or pa.types.is_null(table.schema.field(places[-1]).type):
        return None
    return table.column(places[-1])


def is_text(kind: pa.DataType) -> bool:
    """Return True for a type of strings: plain, large, view, or a dictionary of these."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _numpy(values: pa.ChunkedArray | pa.Array) -> Array:
    return np.asarray(values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy())


def _present(values: pa.ChunkedArray) -> Array:
    """Return bool[n]: True for rows with a value."""
    return _numpy(values.is_valid())  # also where the place in a dictionary holds null


def dictionary(values: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return a text column as one dictionary array."""
    if pa.types.is_dictionary(values.type):
        try:
            combined = values.combine_chunks()
        except pa.ArrowInvalid:  # the dictionaries together need a wider index
            combined = pa.chunked_array([_widened(chunk) for chunk in values.chunks]).combine_chunks()
        if isinstance(combined, pa.DictionaryArray):
            return combined
        values = values.cast(values.type.value_type)  # without any chunk
    encoded = values.cast(pa.large_string()).combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return encoded


def _widened(values: pa.DictionaryArray) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(values.indices.cast(pa.int64(), safe=False), values.dictionary)


def _words(values: pa.ChunkedArray) -> tuple[pa.ChunkedArray, Array | None]:
    """Split a dictionary column into its words and their index in each row, i8[n], -1 for null.

    Another column is returned as it is, with None. A word may be long and occur in every row, so work per word must not
    be done per row.
    """
    if not pa.types.is_dictionary(values.type):
        return values, None
    encoded = dictionary(values)
    return pa.chunked_array([encoded.dictionary]), _numpy(encoded.indices.cast(pa.int64(), safe=False).fill_null(-1))


def _text(values: pa.ChunkedArray) -> tuple[Array, Array]:
    """Return offsets, i8[n + 1], and bytes, u1[...], of a text column without a dictionary."""
    combined = values.cast(pa.large_string()).combine_chunks()
    return buffers_of(combined)


def buffers_of(values: pa.Array) -> tuple[Array, Array]:
    """Return offsets, i8[n + 1], and bytes, u1[...], of large strings or binaries; both read-only and aligned."""
    _, offset_buffer, data_buffer = values.buffers()
    if not len(values) or offset_buffer is None:
        offsets = np.zeros(1, np.int64)
    else:
        offsets = np.frombuffer(offset_buffer, np.int64, len(values) + 1, values.offset * 8)
    data = np.zeros(0, np.uint8)
    if data_buffer is not None and data_buffer.size:
        data = np.frombuffer(data_buffer, np.uint8)
    offsets = np.require(offsets, requirements="A")
    # Compiled code is made for one kind of array: read-only.
    offsets.flags.writeable = False
    data.flags.writeable = False
    return offsets, data


def times(values: pa.ChunkedArray) -> Array | None:
    """Return i8[n], microseconds, 0 for an absent or unreadable time; None if the type holds no times."""
    kind = values.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        numbers = values.cast(pa.int64())
        if kind.unit in ("s", "ms"):
            factor = 1_000_000 if kind.unit == "s" else 1_000
            numbers = _numpy(numbers.fill_null(0))
            bound = TIME_HIGH // factor
            return np.where(np.abs(numbers) <= bound, numbers, 0) * np.int64(factor)
        numbers = _numpy(numbers.fill_null(0))
        return numbers // 1_000 if kind.unit == "ns" else numbers
    if pa.types.is_integer(kind):
        return _numpy(values.cast(pa.int64(), safe=False).fill_null(0))
    return text_times(values) if is_text(kind) else None


def text_times(values: pa.ChunkedArray) -> Array:
    """Return i8[n], microseconds of RFC 3339 texts, 0 for an absent one, -1 for one left to the exact rules."""
    words, places = _words(values)
    offsets, data = _text(words)
    out = np.zeros(len(words), np.int64)
    rfc3339_column(offsets, data, out)
    if places is not None:
        out = np.append(out, 0)[places]
    out[~_present(values)] = 0
    return out


# --- values ----------------------------------------------------------------------------------------------------------


def as_object(value: Any) -> Any:
    """Return the object of a JSON text or struct; any other value as it is."""
    if isinstance(value, str):
        try:
            return msgspec.json.decode(value)
        except UNREADABLE:
            return value
    return _without_null(value)


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_null(inner) for name, inner in value.items() if inner is not None}
    return value


def plain(values: pa.ChunkedArray) -> list[Any]:
    """Return a column as Python values: numbers, strings and nested values, times and decimals as text."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return [value for chunk in values.chunks for value in _dictionary_values(chunk)]
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        values = values.cast(pa.timestamp(kind.unit, "UTC"))
        return [text if text is None else text.replace(" ", "T") for text in values.cast(pa.string()).to_pylist()]
    try:
        if pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
            values = values.cast(pa.int64() if pa.types.is_duration(kind) else pa.string())
        return list(values.to_pylist())
    except (ValueError, OverflowError, pa.ArrowException):  # times without a Python value, or without a text in Arrow
        return [repr(value) if value.is_valid else None for value in values]
    except KeyError:  # month_interval, day_time_interval: pyarrow has no class for their values
        return [f"a value of type {kind}" if is_valid else None for is_valid in values.is_valid().to_pylist()]


def _dictionary_values(values: pa.DictionaryArray) -> list[Any]:
    """Return the values of the rows; equal ones are the same object."""
    words = plain(pa.chunked_array([values.dictionary]))
    return [place if place is None else words[place] for place in values.indices.to_pylist()]


def rows_at(table: pa.Table, places: Array) -> pa.Table:
    """Return rows of a table in the order of `places`."""
    try:
        return table.take(pa.array(places))
    except pa.ArrowException:  # a type without take, or dictionaries too large for one
        return pa.concat_tables([table.slice(int(place), 1) for place in places])
