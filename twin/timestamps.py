"""Event time as text: RFC 3339, UTC, microseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def as_datetime(microseconds: int) -> datetime:
    """Microseconds since 1970 as an aware datetime; exact."""
    return _EPOCH + timedelta(microseconds=microseconds)


def as_text(microseconds: int) -> str:
    """Microseconds since 1970 as `2026-11-20T12:00:00.000123Z`: always six digits, so that texts sort as times do."""
    return as_datetime(microseconds).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def as_span(seconds: float) -> str:
    """A span of time in words a person reads at a glance: `45 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def as_range(low: float, high: float) -> str:
    """A span of time that is not sure, in words: `24 to 31 min`, `85 s to 2 min`, `10 min` where both read alike."""
    first, last = as_span(low), as_span(high)
    if first == last:
        return last
    number, unit = first.split()
    return f"{number if last.endswith(f' {unit}') else first} to {last}"
