"""Single Arrow rows as fields for the exact rules, and as JSON text of bounded length.

A value of a few bytes in a column may expand to many: a word of a dictionary, a run, nested lists. Values are therefore
converted to Python within a budget of bytes, and bytes beyond it are only counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from twin.events.arrow_columns import as_object, column, is_text, plain
from twin.events.fields import FIELDS, Kind
from twin.events.refusals import MAX_OBJECT_BYTES, SHOWN_CHARACTERS, UnsupportedValue, check_object_bytes

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
