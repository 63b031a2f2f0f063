"""Bounds of one Kafka record: how much it may decode to, and how many dead letters it may give.

They are decided from sizes that stand in front of the data, before anything of that size is allocated, and they depend
on the record alone: stream, replay and every worker refuse the same records. Source: contract section 8.
"""

from __future__ import annotations

from dataclasses import dataclass

from twin.events.reasons import EventError, Reason

MAX_ROWS = 1_000_000  # rows or lines of one record
MAX_BYTES = 128 * 1024 * 1024  # of a record's Arrow buffers once decompressed
MAX_EVENT_BYTES = 16 * 1024 * 1024  # of one JSON text or line
MAX_OBJECT_BYTES = 65_536  # of `attributes` or `measured`, as JSON
MAX_LETTERS = 1_000  # dead letters of one record, each about one event
DETAIL_CHARACTERS = 1_000  # of a dead letter's detail: Kafka headers count towards the size of a record

_FREE_ROWS, _ROWS_PER_BYTE = 10_000, 100  # an Arrow column of one value takes no bytes per row
_LETTERS_BASE, _LETTERS_RATIO = 64 * 1024, 16  # bytes of a record's rows as JSON: base + ratio * bytes of its value
_OBJECTS_BASE, _OBJECTS_RATIO = 256 * 1024, 32  # bytes of a record's attributes and measurements
_UNBOUND_BYTES = 64 * 1024 * 1024  # the same, of a piece of a recording
MIN_LETTER_BYTES = 512  # of a row as JSON, however much the rows before it took


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of dead letters. letters: per value, None: no limit; value_bytes: bytes of a dead letter's value."""

    letters: int | None = MAX_LETTERS
    value_bytes: int = MAX_EVENT_BYTES


RECORDING = Limits(letters=None)
"""Limits for a piece of a recording: its lines and rows are events of their own, not parts of one Kafka record."""


def max_rows(value_bytes: int) -> int:
    """Return how many rows a record of that size may have."""
    return min(MAX_ROWS, _FREE_ROWS + _ROWS_PER_BYTE * value_bytes)


def max_letter_bytes(value_bytes: int | None) -> int:
    """Return how many bytes the dead letters of one record may have, where they repeat rows; None: of a recording."""
    return _UNBOUND_BYTES if value_bytes is None else _LETTERS_BASE + _LETTERS_RATIO * value_bytes


def max_object_bytes(value_bytes: int | None) -> int:
    """Return how many bytes the attributes and measurements of one Arrow record may have; None: of a recording."""
    return _UNBOUND_BYTES if value_bytes is None else _OBJECTS_BASE + _OBJECTS_RATIO * value_bytes


def oversized(rows: int, longest: int, size: int, value_bytes: int) -> str | None:
    """Return why an Arrow stream of those dimensions is refused, None where it is within the bounds.

    Args:
        rows: of all its batches.
        longest: values of its longest column, nested ones included.
        size: bytes of its buffers once decompressed.
        value_bytes: bytes of the record's value.
    """
    if rows > max_rows(value_bytes):
        return f"{rows} rows in {value_bytes} bytes; expected: at most {max_rows(value_bytes)} rows"
    if size > MAX_BYTES:
        return f"{size} bytes once decompressed; expected: at most {MAX_BYTES} bytes"
    if longest > MAX_BYTES:
        return f"a column of {longest} values; expected: at most {MAX_BYTES} values"
    return None


def check_object_bytes(name: str, size: int) -> None:
    """Raise EventError (bad-value) where `attributes` or `measured` is too long."""
    if size > MAX_OBJECT_BYTES:
        raise EventError(Reason.BAD_VALUE, f"{name} has {size} bytes; right: at most {MAX_OBJECT_BYTES} bytes of JSON")
