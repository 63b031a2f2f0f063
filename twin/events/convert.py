"""Conversion of public events between dictionaries, JSON lines and Arrow tables.

- The fields are described in docs/events.md. An absent field is absent in a dictionary and null in a table.
  `attributes` and `measured` are JSON text in a table.
- Single Arrow rows become fields for the exact rules, and JSON text of bounded length.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from kernels.json_scan import TIME_HIGH, TIME_LOW
from twin.base.units import as_text
from twin.events import arrow_columns
from twin.events.arrow_columns import as_object, column, is_text, plain
from twin.events.fields import FIELD, FIELDS, OBJECTS, Kind
from twin.events.refusals import (
    MAX_OBJECT_BYTES,
    SHOWN_CHARACTERS,
    EventError,
    Reason,
    UnsupportedValue,
    check_object_bytes,
)
from twin.events.rules import parse

ARROW_SCHEMA = pa.schema([(field.name, field.arrow) for field in FIELDS])
"""Columns of an event: content type `application/vnd.apache.arrow.stream`, and `.arrow` recordings."""

_ESCAPED = r'["\\\x00-\x1f]'  # characters that JSON escapes within a string


class Words:
    """Distinct strings of the dictionary-encoded columns of a growing table: an IPC file only appends to them."""

    def __init__(self, first: tuple[str, ...] = ()) -> None:
        """Start with the words `first` in each column. A file needs one: it cannot append to an empty dictionary."""
        self._first = first
        self._places: dict[str, dict[str, int]] = {}

    def encode(self, name: str, values: pa.ChunkedArray, kind: pa.DictionaryType) -> pa.DictionaryArray:
        """Return the column with indexes into all words so far. Raise pa.ArrowInvalid if the index overflows."""
        places = self._places.setdefault(name, {word: place for place, word in enumerate(self._first)})
        encoded = arrow_columns.dictionary(values)
        mapped = [None if w is None else places.setdefault(w, len(places)) for w in encoded.dictionary.to_pylist()]
        indices = pa.array(mapped, pa.int64()).take(encoded.indices).cast(kind.index_type)
        return pa.DictionaryArray.from_arrays(indices, pa.array(places, kind.value_type))


def to_table(events: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Convert events to a table of ARROW_SCHEMA. Unknown fields are dropped, null is absent. EventError: a field has an
    invalid type or value; the message starts with the number of the event, from 0.
    """
    columns: dict[str, list[Any]] = {field.name: [] for field in FIELDS}
    for number, event in enumerate(events):
        for field in FIELDS:
            value = event.get(field.name)
            if field.name == "plan" and event.get("op") != "PLAN":
                value = None  # an unknown field
            if value is not None:
                try:
                    value = field.checked(value)
                except EventError as error:
                    raise EventError(error.reason, f"event {number}: {error.detail}") from None
                if field.kind is Kind.OBJECT:
                    value = msgspec.json.encode(value).decode()
            columns[field.name].append(value)
    return pa.table({name: pa.array(values, ARROW_SCHEMA.field(name).type) for name, values in columns.items()})


def lines_table(lines: Iterable[bytes]) -> pa.Table:
    """Convert JSON texts that a Decoder has accepted to a table of ARROW_SCHEMA, without the checks of `to_table`."""
    events = [parse(line) for line in lines]
    columns: dict[str, Any] = {name: [getattr(event, name) for event in events] for name in FIELD}
    read = arrow_columns.text_times(pa.chunked_array([[str(time) for time in columns["time"]]], pa.string()))
    columns["time"] = [
        time if time >= TIME_LOW else FIELD["time"].checked(sent)  # an integer, or a text left to the exact rules
        for time, sent in zip(read.tolist(), columns["time"], strict=True)
    ]
    for name in OBJECTS:
        columns[name] = [v if v is None else msgspec.json.encode(v).decode() for v in columns[name]]
    return pa.table({name: pa.array(values, ARROW_SCHEMA.field(name).type) for name, values in columns.items()})


def from_table(table: pa.Table) -> list[dict[str, Any]]:
    """Convert the rows of a table to events: known columns only, times as RFC 3339 text. Inverse of `to_table`.

    Invalid values are kept, in the nearest form that JSON has.
    """
    rows: list[dict[str, Any]] = [{} for _ in range(table.num_rows)]
    for field in FIELDS:
        values = arrow_columns.column(table, field.name)
        if values is None:
            continue
        for row, value in zip(rows, _public(values, field.kind), strict=True):
            if value is not None:
                row[field.name] = value
    return rows


def _public(values: pa.ChunkedArray, kind: Kind) -> list[Any]:
    if kind is Kind.OBJECT:
        return [arrow_columns.as_object(value) for value in arrow_columns.plain(values)]
    if kind is Kind.TIME and pa.types.is_timestamp(values.type) and values.type.unit == "us" and values.type.tz:
        numbers = values.cast(pa.int64()).to_pylist()
        return [as_text(n) if n is not None and TIME_LOW <= n < TIME_HIGH else n for n in numbers]
    return arrow_columns.plain(values)


def conform(table: pa.Table, words: Words | None = None) -> pa.Table:
    """Convert a table to ARROW_SCHEMA, without unknown columns. EventError: not possible without loss (wrong-type)."""
    words = words or Words()
    columns = []
    for field in ARROW_SCHEMA:
        values = arrow_columns.column(table, field.name)
        try:
            columns.append(_conformed_column(values, field, table.num_rows, words))
        except (pa.ArrowException, ValueError) as error:
            kind = values.type if values is not None else None
            raise EventError(
                Reason.WRONG_TYPE, f"column {field.name} is {kind}: {error}; expected: {field.type}"
            ) from None
    return pa.table(columns, schema=ARROW_SCHEMA)


def _conformed_column(values: pa.ChunkedArray | None, field: pa.Field, rows: int, words: Words) -> Any:
    if values is None:
        if pa.types.is_dictionary(field.type):
            return words.encode(field.name, pa.chunked_array([pa.nulls(rows, pa.string())]), field.type)
        return pa.nulls(rows, field.type)
    if pa.types.is_dictionary(field.type):
        if not arrow_columns.is_text(values.type):
            raise ValueError("not text")
        return words.encode(field.name, values, field.type)
    if FIELD[field.name].kind is Kind.OBJECT and not arrow_columns.is_text(values.type):
        return pa.array(map(_object_text, values.to_pylist()), pa.string())
    if field.name == "time":
        return _conformed_time(values)
    same = pa.types.is_boolean(values.type) == pa.types.is_boolean(field.type)
    same &= not pa.types.is_floating(values.type) or pa.types.is_floating(field.type)
    if not same or arrow_columns.is_text(values.type) != arrow_columns.is_text(field.type):
        raise ValueError("another kind of value")
    return values.cast(field.type)


def _conformed_time(values: pa.ChunkedArray) -> Any:
    if pa.types.is_timestamp(values.type):
        if values.type.tz is None:
            raise ValueError("no time zone")
        return values.cast(FIELD["time"].arrow, safe=False)
    numbers = arrow_columns.times(values)
    if numbers is None or (numbers < 0).any():
        raise ValueError("not all are times")
    return pa.array(numbers, mask=~np.asarray(values.is_valid())).cast(FIELD["time"].arrow)


# --- JSON lines ------------------------------------------------------------------------------------------------------


def json_lines(table: pa.Table) -> pa.Array:
    """Return the rows of a table of ARROW_SCHEMA as JSON texts, an array of large strings; keys in schema order.

    Without escapes, one core converts about 2 million rows per second.
    """
    times = table.column("time")
    if times.null_count or _needs_escape(table):
        texts = [msgspec.json.encode(event).decode() for event in from_table(table)]
        return pa.array(texts, pa.large_string())
    # Arrow formats times with a zone twenty times slower, so the zone is dropped first.
    naive = times.cast(pa.int64()).cast(pa.timestamp("us")).cast(pa.large_string())
    written = pc.replace_substring(naive, " ", "T")
    pieces: list[Any] = [pc.binary_join_element_wise(_large('{"time":"'), written, _large('Z"'), _large(""))]
    for field in ARROW_SCHEMA:
        values = table.column(field.name)
        if field.name == "time" or values.null_count == table.num_rows:
            continue
        name = f',"{field.name}":'
        if FIELD[field.name].kind is Kind.OBJECT:  # the original text may break the line, or the JSON
            values = pa.chunked_array([pa.array(map(_object_text, values.to_pylist()), pa.large_string())])
            pieces.append(pc.binary_join_element_wise(_large(name), values, _large("")))
        elif pa.types.is_dictionary(field.type):
            encoded = arrow_columns.dictionary(values)
            pieces.append(_quoted(name, encoded.dictionary.cast(pa.large_string())).take(encoded.indices))
        elif pa.types.is_string(field.type):
            pieces.append(_quoted(name, values.cast(pa.large_string())))
        else:
            pieces.append(pc.binary_join_element_wise(_large(name), values.cast(pa.large_string()), _large("")))
    joined = pc.binary_join_element_wise(*pieces, _large("}"), _large(""), null_handling="replace", null_replacement="")
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def _object_text(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(arrow_columns.as_object(value)).decode()


def _needs_escape(table: pa.Table) -> bool:
    for name in ("qmgr", "op", "queue", "msgid", "uow", "store"):
        values = table.column(name)
        texts = arrow_columns.dictionary(values).dictionary if pa.types.is_dictionary(values.type) else values
        if pc.any(pc.match_substring_regex(texts, _ESCAPED)).as_py():
            return True
    return False


def _quoted(before: str, values: Any) -> Any:
    """Return before"value" for each string; null for null."""
    return pc.binary_join_element_wise(_large(before + '"'), values, _large('"'), _large(""))


def _large(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def arrow_value(table: pa.Table) -> bytes:
    """Return the value of a record of content type `application/vnd.apache.arrow.stream`.

    Columns without a value are dropped, and dictionaries hold only words in use.
    """
    columns = {}
    for name, values in zip(table.column_names, table.columns, strict=True):
        if values.null_count == table.num_rows:
            continue
        if pa.types.is_dictionary(values.type):
            columns[name] = Words().encode(name, values.cast(values.type.value_type), values.type)
        else:
            columns[name] = values.combine_chunks()
    batch = pa.record_batch(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


# --- single Arrow rows ------------------------------------------------------------------------------------------------
# A value of a few bytes in a column may expand to many: a word of a dictionary, a run, nested lists. Values are
# therefore converted to Python within a budget of bytes, and bytes beyond it are only counted.

_SMALL_BYTES = 1 << 20  # text columns up to this size are converted to Python as a whole
_NUMBER_BYTES = 8
_OFFSET_BYTES = {pa.string().id: 4, pa.binary().id: 4, pa.large_string().id: 8, pa.large_binary().id: 8}
_MAX_DEPTH = 100  # of nested values; Arrow itself reads 64


@dataclass(slots=True)
class Budget:
    """Bytes left to use, and bytes that were left out."""

    left: int
    lost: int = 0

    def take(self, size: int) -> int:
        """Use up to `size` bytes and return their number."""
        used = min(size, max(0, self.left))
        self.left -= used
        self.lost += size - used
        return used


class RowTexts:
    """Rows of a table as JSON texts."""

    def __init__(self, table: pa.Table) -> None:
        self._columns = [
            (name, plain(column) if _is_small(column) else cells(column))
            for name, column in zip(table.column_names, table.columns, strict=True)
        ]

    def text(self, row: int, limit: int) -> tuple[bytes, int]:
        """Return the JSON of a row, up to `limit` bytes, and the length of all of it, approximate if it is cut."""
        budget = Budget(limit)
        values: dict[str, Any] = {}
        for name, known in self._columns:
            value = known[row]
            if value is None or budget.take(len(name)) < len(name):
                continue
            if isinstance(value, Cell):
                value = value.python(budget)
            elif isinstance(value, str):
                value = value[: budget.take(len(value))]
            else:
                budget.take(_NUMBER_BYTES)
            if value is not None:
                values[name] = value
        text = msgspec.json.encode(values, enc_hook=repr)
        return text[:limit], len(text) + budget.lost


class Cell(NamedTuple):
    """Value of an array, not yet converted to Python."""

    values: pa.Array
    place: int

    def python(self, budget: Budget, depth: int = _MAX_DEPTH) -> Any:
        """Return the value as for JSON, as much of it as the budget allows; None for null."""
        values, place = self
        if isinstance(values, pa.DictionaryArray):
            word = values.indices[place].as_py()
            return None if word is None else Cell(values.dictionary, word).python(budget, depth)
        kind = values.type
        width = _OFFSET_BYTES.get(kind.id)
        if width is not None and not values.slice(place, 1).null_count:  # a scalar would copy all of a long text
            _, offsets, data = values.buffers()
            ends = offsets.slice((values.offset + place) * width, 2 * width).to_pybytes()
            start, end = (int.from_bytes(part, "little") for part in (ends[:width], ends[width:]))
            text = data.slice(start, budget.take(end - start)).to_pybytes() if end > start else b""
            return text.decode(errors="ignore") if is_text(kind) else text
        try:
            scalar = values[place]
        except NotImplementedError:  # month_interval, day_time_interval: pyarrow has no scalar of them
            return f"a value of type {kind}"
        return _as_python(scalar, budget, depth)

    def short_text(self, limit: int) -> str | None:
        """Return the beginning of the value's text; None for null."""
        budget = Budget(limit)
        value = self.python(budget)
        return None if value is None else str(value) + ("..." if budget.lost else "")


def cells(values: pa.ChunkedArray) -> list[Cell]:
    """Return the values of a column."""
    return [Cell(chunk, place) for chunk in values.chunks for place in range(len(chunk))]


def _as_python(scalar: pa.Scalar, budget: Budget, depth: int) -> Any:
    while isinstance(scalar, (pa.DictionaryScalar, pa.RunEndEncodedScalar, pa.ExtensionScalar, pa.UnionScalar)):
        scalar = scalar.value
    if scalar is None or not scalar.is_valid or depth == 0:
        return None
    if isinstance(scalar, (pa.StringScalar, pa.BinaryScalar)):  # their large and view forms are subclasses
        buffer = scalar.as_buffer()
        data = buffer.slice(0, budget.take(buffer.size)).to_pybytes()
        return data.decode(errors="ignore") if is_text(scalar.type) else data
    if isinstance(scalar, pa.StructScalar):
        return _struct(scalar, budget, depth)
    if isinstance(scalar, pa.ListScalar):  # lists of every kind, and maps
        return _list(scalar, budget, depth)
    budget.take(_NUMBER_BYTES)
    try:
        return scalar.as_py()
    except (ValueError, OverflowError, pa.ArrowException):  # times without a Python value
        return repr(scalar)


def _list(scalar: pa.ListScalar, budget: Budget, depth: int) -> list[Any]:
    items = []
    values = scalar.values
    for number in range(len(values)):
        if budget.left <= 0:
            budget.lost += int(values.slice(number).nbytes)
            break
        budget.take(1)
        items.append(Cell(values, number).python(budget, depth - 1))
    return [list(item.values()) for item in items] if isinstance(scalar, pa.MapScalar) else items


def _struct(scalar: pa.StructScalar, budget: Budget, depth: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for number in range(scalar.type.num_fields):
        inner = scalar.type.field(number)
        if budget.take(len(inner.name)) < len(inner.name):
            continue
        try:
            fields[inner.name] = _as_python(scalar[number], budget, depth - 1)
        except NotImplementedError:  # as in Cell
            fields[inner.name] = f"a value of type {inner.type}"
    return fields


def _is_small(values: pa.ChunkedArray) -> bool:
    """Return True if all values of a column together are small once expanded."""
    kind = values.type
    if kind.num_fields or isinstance(kind, pa.BaseExtensionType):
        return False
    if pa.types.is_dictionary(kind):
        return is_text(kind) and sum(chunk.dictionary.nbytes for chunk in values.chunks) <= _SMALL_BYTES
    if is_text(kind):
        return not pa.types.is_string_view(kind) and values.nbytes <= _SMALL_BYTES
    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind))


# --- fields ----------------------------------------------------------------------------------------------------------


def rows_as_fields(table: pa.Table) -> list[dict[str, Any]]:
    """Return the known fields of each row for the exact rules, without nulls; objects as for `object_field`."""
    rows: list[dict[str, Any]] = [{} for _ in range(table.num_rows)]
    for field in FIELDS:
        values = column(table, field.name)
        if values is None:
            continue
        for row, value in zip(rows, _field_values(values, field.kind), strict=True):
            if value is not None:
                row[field.name] = value
    return rows


def object_field(name: str, value: Any) -> Any:
    """Convert `attributes`, `measured` or `plan` of `rows_as_fields` to an object. EventError: it is too long
    (bad-value).
    """
    if isinstance(value, str):
        check_object_bytes(name, len(value))
    elif isinstance(value, Cell):
        budget = Budget(MAX_OBJECT_BYTES)
        value = value.python(budget)
        if budget.lost:
            check_object_bytes(name, MAX_OBJECT_BYTES + budget.lost)
    return as_object(value)


def _field_values(values: pa.ChunkedArray, kind: Kind) -> list[Any]:
    if kind is Kind.TIME and pa.types.is_timestamp(values.type):
        if values.type.tz is None:
            return _unsupported(values, "without a time zone")
        numbers = values.cast(pa.int64()).to_pylist()
        scale = {"s": 1_000_000, "ms": 1_000, "us": 1}.get(values.type.unit)
        return [n if n is None else n * scale if scale else n // 1_000 for n in numbers]
    if pa.types.is_integer(values.type) or is_text(values.type) or pa.types.is_boolean(values.type):
        return plain(values)
    if kind is Kind.NUMBER and pa.types.is_floating(values.type):
        return plain(values)
    if kind is Kind.OBJECT:
        return [
            cell if is_valid else None
            for cell, is_valid in zip(cells(values), values.is_valid().to_pylist(), strict=True)
        ]
    return _unsupported(values, "")


def _unsupported(values: pa.ChunkedArray, why: str) -> list[Any]:
    """Return the values of a column whose type no field accepts."""
    what = f"in a column of type {str(values.type)[:SHOWN_CHARACTERS]} {why}".rstrip()
    if _is_small(values):
        texts = [value if value is None else str(value) for value in plain(values)]
    else:
        texts = [cell.short_text(SHOWN_CHARACTERS) for cell in cells(values)]
    return [text if text is None else UnsupportedValue(f"{text[: SHOWN_CHARACTERS + 3]} {what}") for text in texts]
