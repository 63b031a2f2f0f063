"""Times and sizes as text.

Event times are RFC 3339, UTC, with microseconds. Sizes are numbers with K, M, G or T, powers of 1024. A number without
a unit is bytes in TOML and KB in a CFRM policy (`parse_size`).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
TIB = 1024 * GIB
UNITS = {"": 1, "K": KIB, "M": MIB, "G": GIB, "T": TIB}
MAX_SIZE = 2**63 - 1  # bytes; sizes are signed 64-bit numbers

TRACK = 12 * 4 * KIB  # of a 3390: 12 control intervals of 4 KB [IBM: z/OS DFSMS, Direct access storage devices]
CYLINDER = 15 * TRACK

_SIZE = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,9})?) ?([KMGT]?)", re.IGNORECASE)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def as_datetime(microseconds: int) -> datetime:
    """Convert microseconds since 1970 to an aware datetime, exactly."""
    return _EPOCH + timedelta(microseconds=microseconds)


def as_text(microseconds: int) -> str:
    """Format microseconds since 1970 as `2026-11-20T12:00:00.000123Z`: always six digits, so texts sort like times."""
    return as_datetime(microseconds).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def as_span(seconds: float) -> str:
    """Format a span of time: `45 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def as_range(low: float, high: float) -> str:
    """Format a range of spans in seconds: `24 to 31 min`, `85 s to 2 min`, `10 min` if both ends have the same text."""
    first, last = as_span(low), as_span(high)
    if first == last:
        return last
    number, unit = first.split()
    return f"{number if last.endswith(f' {unit}') else first} to {last}"


def parse_size(value: object, *, unit: str = "") -> int:
    """Return the bytes of a size.

    Args:
        value: an integer, or a string like "4G", "1.5G", "64K", "0K", "4096".
        unit: "", "K", "M", "G" or "T": unit of a number that has none; bytes in TOML, "K" in a CFRM policy.

    Raises:
        TypeError: it is neither an integer nor a string.
        ValueError: it is negative, not a whole number of bytes, or beyond 2**63 - 1.
    """
    if isinstance(value, str):
        match = _SIZE.fullmatch(value.strip())
        if match is None:
            raise ValueError("not a size")
        number = Decimal(match[1]) * UNITS[match[2].upper() or unit]
        if number != number.to_integral_value():
            raise ValueError("not a whole number of bytes")
        size = int(number)
    elif isinstance(value, int) and not isinstance(value, bool):
        size = value * UNITS[unit]
    else:
        raise TypeError("not a size")
    if not 0 <= size <= MAX_SIZE:
        raise ValueError("not a size")
    return size


def format_size(size: int) -> str:
    """Return the shortest text from which `parse_size` reads the same number of bytes: "4G", "1000"."""
    for unit in ("T", "G", "M", "K"):
        if size and size % UNITS[unit] == 0:
            return f"{size // UNITS[unit]}{unit}"
    return str(size)


def readable_size(size: int) -> str:
    """Format bytes for a reader, with three digits: `4 GB`, `1.5 TB`, `512 bytes`; powers of 1024."""
    for unit in ("T", "G", "M", "K"):
        if abs(size) >= UNITS[unit]:
            return (
                f"{size / UNITS[unit]:.3g} {unit}B" if size < 1000 * UNITS[unit] else f"{size // UNITS[unit]} {unit}B"
            )
    return f"{size} bytes"
