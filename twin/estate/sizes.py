"""Sizes as administrators write them: a number with K, M, G or T, powers of 1024.

Source: contract section 1 ("Sizes: integers (bytes) or strings with K, M, G, T") and section 7 ("CFRM numbers without a
unit are KB, as in a real policy; TOML numbers without a unit are bytes").
"""

from __future__ import annotations

import re
from decimal import Decimal

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
TIB = 1024 * GIB
UNITS = {"": 1, "K": KIB, "M": MIB, "G": GIB, "T": TIB}
MAX_SIZE = 2**63 - 1  # bytes; sizes are kept in signed 64-bit numbers

_SIZE = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,9})?) ?([KMGT]?)", re.IGNORECASE)


def parse_size(value: object, *, unit: str = "") -> int:
    """Bytes of a size: an integer, or a string like "4G", "1.5G", "64K", "0K", "4096".

    `unit` ("", "K", "M", "G", "T") is that of a number without one: bytes in TOML, "K" in a CFRM policy.
    TypeError where it is neither; ValueError where it is negative, no whole number of bytes, or beyond 2**63 - 1.
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
    """The shortest text that `parse_size` reads back as the same number of bytes.

    4294967296 -> "4G", 1000 -> "1000".
    """
    for unit in ("T", "G", "M", "K"):
        if size and size % UNITS[unit] == 0:
            return f"{size // UNITS[unit]}{unit}"
    return str(size)
