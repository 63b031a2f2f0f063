"""Bounds of one Kafka record: the size of its decoded form, and the number of its dead letters.

They are checked with sizes that precede the data, before memory of that size is allocated. They depend on the record
alone, so stream, replay and every worker refuse the same records. Described in docs/events.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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
MIN_LETTER_BYTES = 512  # of a row as JSON, whatever the size of the rows before it


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of dead letters."""

    letters: int | None = MAX_LETTERS  # per value; None: no limit
    value_bytes: int = MAX_EVENT_BYTES  # of the value of a dead letter


RECORDING = Limits(letters=None)
"""Limits for a piece of a recording: its lines and rows are events of their own, not parts of one Kafka record."""


def max_rows(value_bytes: int) -> int:
    """Return the maximum number of rows of a record of that size."""
    return min(MAX_ROWS, _FREE_ROWS + _ROWS_PER_BYTE * value_bytes)


def max_letter_bytes(value_bytes: int | None) -> int:
    """Return the maximum bytes of the rows in the dead letters of one record; None: of a recording."""
    return _UNBOUND_BYTES if value_bytes is None else _LETTERS_BASE + _LETTERS_RATIO * value_bytes


def max_object_bytes(value_bytes: int | None) -> int:
    """Return the maximum bytes of the attributes and measurements of one Arrow record; None: of a recording."""
    return _UNBOUND_BYTES if value_bytes is None else _OBJECTS_BASE + _OBJECTS_RATIO * value_bytes


def oversized(rows: int, longest: int, size: int, value_bytes: int) -> str | None:
    """Return the reason to refuse an Arrow stream of those dimensions, or None.

    Args:
        rows: number of rows of all its batches.
        longest: number of values of its longest column, nested ones included.
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


def maybe_oversized(rows: npt.NDArray[Any], longest: npt.NDArray[Any], sizes: npt.NDArray[Any]) -> list[int]:
    """Return the indexes of the streams that `oversized` may refuse, of usual traffic none. Arguments: i8[n] each."""
    return np.flatnonzero((rows > _FREE_ROWS) | (longest > MAX_BYTES) | (sizes > MAX_BYTES)).tolist()


def check_object_bytes(name: str, size: int) -> None:
    """Raise EventError (bad-value) if `attributes` or `measured` is too long."""
    if size > MAX_OBJECT_BYTES:
        raise EventError(
            Reason.BAD_VALUE, f"{name} has {size} bytes; expected: at most {MAX_OBJECT_BYTES} bytes of JSON"
        )
