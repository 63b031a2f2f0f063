"""Dead letters of a batch: long values are cut, and rejects beyond the limit of a record are only counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from twin.events.decoded import Array, Reject
from twin.events.refusals import (
    DETAIL_CHARACTERS,
    MIN_LETTER_BYTES,
    EventError,
    Limits,
    Reason,
    max_letter_bytes,
    max_object_bytes,
)


@dataclass(slots=True)
class _Rest:
    """Rejects of one record beyond its limit of dead letters."""

    first: int
    last: int
    reasons: Counter[Reason] = field(default_factory=Counter)


class RejectLog:
    """Dead letters of some values. Rejects of a value must come in the order of their index."""

    def __init__(self, limits: Limits, value_bytes: Array | None = None) -> None:
        """Start an empty log.

        Args:
            limits: limits of dead letters.
            value_bytes: size of each value, which bounds the size of its rows as JSON; None for a recording.
        """
        self.limits = limits
        self._value_bytes = value_bytes
        self._rejects: list[Reject] = []
        self._counts: dict[int, int] = {}
        self._rests: dict[int, _Rest] = {}
        self._letter_bytes: dict[int, int] = {}  # left
        self._object_bytes: dict[int, int] = {}

    def is_full(self, record: int) -> bool:
        """True if further rejects of that value are only counted."""
        return self.limits.letters is not None and self._counts.get(record, 0) >= self.limits.letters

    def admit(self, record: int, index: int, reason: Reason) -> bool:
        """Count a reject; True if it becomes a dead letter of its own, which the caller then appends."""
        if self.is_full(record):
            self.count(record, index, index, reason, 1)
            return False
        self._counts[record] = self._counts.get(record, 0) + 1
        return True

    def count(self, record: int, first: int, last: int, reason: Reason, number: int) -> None:
        """Count rejects of a value that is full."""
        rest = self._rests.setdefault(record, _Rest(first, last))
        rest.first, rest.last = min(rest.first, first), max(rest.last, last)
        rest.reasons[reason] += number

    def append(self, record: int, index: int, reason: Reason, detail: str, value: bytes, length: int) -> None:
        """Append an admitted dead letter. length: length of its value before it was cut."""
        cut = value[: self.limits.value_bytes]
        self._rejects.append(Reject(record, index, reason, detail[:DETAIL_CHARACTERS], cut, length))

    def add(self, record: int, index: int, reason: Reason, detail: str, value: bytes) -> None:
        """Admit a reject and append its dead letter."""
        if self.admit(record, index, reason):
            self.append(record, index, reason, detail, value, len(value))

    def add_buffer(self, record: int, index: int, reason: Reason, detail: str, value: pa.Buffer) -> None:
        """Admit a reject and append its dead letter; only the kept part of the value is copied."""
        if self.admit(record, index, reason):
            cut = value.slice(0, min(value.size, self.limits.value_bytes)).to_pybytes()
            self.append(record, index, reason, detail, cut, value.size)

    def row_limit(self, record: int) -> int:
        """Return the maximum bytes of the next row of a value as JSON."""
        left = self._letter_bytes.get(record)
        if left is None:
            left = self._letter_bytes[record] = max_letter_bytes(self._bytes_of(record))
        return min(self.limits.value_bytes, max(MIN_LETTER_BYTES, left))

    def append_row(self, record: int, index: int, reason: Reason, detail: str, value: bytes, length: int) -> None:
        """Append an admitted dead letter whose value is a row as JSON, at most `row_limit` bytes."""
        self._letter_bytes[record] -= len(value)
        self.append(record, index, reason, detail, value, length)

    def check_objects(self, record: int, size: int) -> None:
        """Raise EventError (oversized) if attributes and measurements of a value are too large together."""
        limit = max_object_bytes(self._bytes_of(record))
        total = self._object_bytes.get(record, 0) + size
        if total > limit:
            raise EventError(
                Reason.OVERSIZED,
                f"attributes and measured of one record take over {limit} bytes; expected: at most that",
            )
        self._object_bytes[record] = total

    def forget(self, records: Iterable[int]) -> None:
        """Drop all rejects of some values."""
        dropped = set(records)
        self._rejects = [reject for reject in self._rejects if reject.record not in dropped]
        for record in dropped:
            self._counts.pop(record, None)
            self._rests.pop(record, None)
            self._letter_bytes.pop(record, None)
            self._object_bytes.pop(record, None)

    def rejects(self) -> list[Reject]:
        """Return all dead letters by value and index, with one more for each value beyond its limit."""
        more = [
            Reject(record, rest.first, Reason.MANY_REJECTED, _describe(rest), b"")
            for record, rest in self._rests.items()
        ]
        return sorted(self._rejects + more, key=lambda reject: (reject.record, reject.index))

    def _bytes_of(self, record: int) -> int | None:
        return None if self._value_bytes is None else int(self._value_bytes[record])


def describe_failure(error: Exception) -> tuple[Reason, str]:
    """Return the reason and detail of an event whose decoding raised an exception."""
    if isinstance(error, EventError):
        return error.reason, error.detail
    return Reason.UNDECODABLE, f"{one_line(error)}; expected: an event that the rules can be applied to"


def one_line(error: BaseException) -> str:
    """Return an exception's name and text on one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _describe(rest: _Rest) -> str:
    by_count = sorted(rest.reasons.items(), key=lambda entry: (-entry[1], entry[0]))
    reasons = ", ".join(f"{count} {reason}" for reason, count in by_count)
    return (
        f"{sum(rest.reasons.values())} further events of this record were refused, index {rest.first} to {rest.last}: "
        f"{reasons}; the record itself is still in its topic"
    )
