"""A column of an event batch in the encoding that `twin.events.decoded` describes, number by number."""

from __future__ import annotations

import struct
from itertools import pairwise

_HEAD = struct.Struct("<BBqq")
_CONSTANT, _PLAIN, _STEPS, _SPARSE = range(4)


def packed(values: list[int]) -> bytes:
    """Return head and numbers of a column, at least one. values: as signed integers of 64 bits."""
    low = min(values)
    if low == max(values):
        return _HEAD.pack(_CONSTANT, 0, 0, low)
    steps = [_wrapped(after - before) for before, after in pairwise(values)]
    encodings = [(_PLAIN, 0, b"", values), (_STEPS, values[0], b"", steps)]
    present = [value for value in values if value]
    bits = _bits(values)
    if len(bits) + len(present) < min(len(numbers) * _width(numbers) for _, _, _, numbers in encodings):
        encodings.append((_SPARSE, len(present), bits, present))
    kind, first, bits, numbers = min(encodings, key=lambda each: len(each[2]) + len(each[3]) * _width(each[3]))
    width, low = _width(numbers), min(numbers)
    tail = b"".join((number - low).to_bytes(width, "little") for number in numbers)
    return _HEAD.pack(kind, width, first, low) + bits + tail


def _wrapped(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def _width(numbers: list[int]) -> int:
    return next(width for width in (1, 2, 4, 8) if max(numbers) - min(numbers) < 256**width)


def _bits(values: list[int]) -> bytes:
    text = "".join("01"[value != 0] for value in values)
    text += "0" * (-len(text) % 8)
    return bytes(int(text[start : start + 8], 2) for start in range(0, len(text), 8))
