"""Dead letters as others read them: the headers of a record of their topic, and a line of `mqtwin replay --dlq`."""

from __future__ import annotations

from typing import Annotated

import msgspec

from twin.records.bounds import Count, Text

_Digits = Annotated[str, msgspec.Meta(pattern="^[0-9]+$")]
_Place = Annotated[str, msgspec.Meta(pattern="^(-1|[0-9]+)$")]


class LetterHeaders(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="kebab"):
    """Headers of a dead letter, whose value is the original event.

    The value is the JSON text, the line, the Arrow row as JSON, or the whole value if that is damaged or oversized. It
    is empty for many-rejected.
    """

    reason: str
    """A stable code."""
    detail: Text
    """The error, and what is expected."""
    topic: str
    """Topic of the record; for too-large the topic it was meant for."""
    partition: _Place
    """Partition of the record; -1 for too-large."""
    offset: _Place
    """Offset of the record; -1 for too-large."""
    index: _Digits
    """Line or row within the record, from 0."""
    original_length: _Digits | None = None
    """Bytes of the value before it was cut (an estimate for an Arrow row); absent if it is complete."""


class ReplayedLetter(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the file that `mqtwin replay --dlq` writes."""

    reason: str
    """A stable code."""
    detail: Text
    """The error, and what is expected."""
    index: Count
    """Line or row of the recording, from 0."""
    original_length: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Bytes of the value before it was cut; absent if it is complete."""
    value: str | None = None
    """The original event."""
    value_base64: bytes | None = None
    """The value if it is not UTF-8."""
