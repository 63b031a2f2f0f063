"""Refusals: the reasons of dead letters, and the bounds of one Kafka record.

The codes of reasons are public (header `reason`, docs/events.md): codes may be added, not renamed. A record is bounded
by the size of its decoded form and by the number of its dead letters. The bounds are checked with sizes that precede
the data, before memory of that size is allocated, and depend on the record alone, so stream, replay and every worker
refuse the same records.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

import msgspec
import numpy as np
import numpy.typing as npt

SHOWN_CHARACTERS = 80  # maximum length of a wrong value in a detail
MAX_ROWS = 1_000_000  # rows or lines of one record
MAX_BYTES = 128 * 1024 * 1024  # of a record's Arrow buffers once decompressed
MAX_EVENT_BYTES = 16 * 1024 * 1024  # of one JSON text or line
MAX_OBJECT_BYTES = 65_536  # of `attributes`, `measured` or `plan`, as JSON
MAX_LETTERS = 1_000  # dead letters of one record, each about one event
DETAIL_CHARACTERS = 1_000  # of a dead letter's detail: Kafka headers count towards the size of a record

_FREE_ROWS, _ROWS_PER_BYTE = 10_000, 100  # an Arrow column of one value takes no bytes per row
_LETTERS_BASE, _LETTERS_RATIO = 64 * 1024, 16  # bytes of a record's rows as JSON: base + ratio * bytes of its value
_OBJECTS_BASE, _OBJECTS_RATIO = 256 * 1024, 32  # bytes of a record's attributes and measurements
_UNBOUND_BYTES = 64 * 1024 * 1024  # the same, of a piece of a recording
MIN_LETTER_BYTES = 512  # of a row as JSON, whatever the size of the rows before it


class Reason(StrEnum):
    """Code of a dead letter, with its sentence."""

    sentence: str

    def __new__(cls, code: str, sentence: str) -> Self:
        """Make a code, which is a string, with its sentence."""
        reason = str.__new__(cls, code)
        reason._value_ = code
        reason.sentence = sentence
        return reason

    NOT_JSON = "not-json", "The bytes are not one JSON text in UTF-8."
    NOT_AN_OBJECT = "not-an-object", "The JSON text is not an object."
    MISSING_FIELD = "missing-field", "A field that the operation needs is absent or null."
    WRONG_TYPE = "wrong-type", "A field has the wrong type."
    BAD_VALUE = "bad-value", "A field has a value outside its range, or one that contradicts another field."
    BAD_TIME = "bad-time", "The time is not RFC 3339, or lies outside the years 2000 to 2100."
    UNKNOWN_OP = "unknown-op", "The operation is unknown."
    UNKNOWN_QUEUE_MANAGER = "unknown-queue-manager", "The estate has no such queue manager."
    UNKNOWN_QUEUE = "unknown-queue", "The queue manager has no such queue with a store in the estate."
    UNKNOWN_STORE = "unknown-store", "The estate has no such store, or it does not concern that queue manager."
    UNKNOWN_CONTENT_TYPE = "unknown-content-type", "The record's content-type is unknown."
    BAD_ARROW = "bad-arrow", "The bytes are not, or not to their end, an Arrow IPC stream."
    OVERSIZED = "oversized", "The record decodes to more rows or bytes than one record may, or the event is too long."
    UNDECODABLE = (
        "undecodable",
        "Decoding or applying the event failed with an unexpected error, which the detail names.",
    )
    MANY_REJECTED = (
        "many-rejected",
        "More events of the record were refused than its limit of dead letters; the detail counts them.",
    )
    BAD_ATTRIBUTES = "bad-attributes", "The attributes of an ALTER, REBUILD or NOTE do not fit the store."
    BAD_PLAN = "bad-plan", "The plan of a PLAN does not fit the store, or is not read."
    IMPOSSIBLE_DIRECT = (
        "impossible-direct",
        "A put to a waiting getter inside syncpoint, or of a persistent message on z/OS, which MQ does not make.",
    )
    UNREADABLE_SPANS = "unreadable-spans", "A record of the OpenTelemetry topic is no request with spans."
    BAD_REPORT = "bad-report", "A record of the reports topic was not written by the job."
    TOO_LARGE = "too-large", "An alert or a state record is larger than its topic accepts."


class EventError(ValueError):
    """Event that is refused, with its reason; the message names the value and the expected value."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class UnsupportedValue:
    """Value of an Arrow column whose type no field accepts; `text` describes it."""

    text: str


def show(value: object) -> str:
    """Format a wrong value as JSON on one line; a long one is cut."""
    if isinstance(value, UnsupportedValue):
        return value.text
    if isinstance(value, str):
        value = value[:SHOWN_CHARACTERS]  # with its quotes longer than the result
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError):  # a Python value without a JSON form, from an Arrow column
        text = repr(value)
    except RecursionError:
        text = "nested too deep to show"
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 3] + "..."


# --- bounds -----------------------------------------------------------------------------------------------------------


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
    """Return the reason to refuse an Arrow stream, of `size` bytes decompressed, of those dimensions, or None."""
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
    """Raise EventError (bad-value) if `attributes`, `measured` or `plan` is too long."""
    if size > MAX_OBJECT_BYTES:
        raise EventError(
            Reason.BAD_VALUE, f"{name} has {size} bytes; expected: at most {MAX_OBJECT_BYTES} bytes of JSON"
        )
