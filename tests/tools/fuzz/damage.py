"""Damages of a page: bytes, pieces of other pages, values of JSON."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from random import Random

import msgspec

MAX_DAMAGES = 4  # of a page
PIECES = (
    *(b"0", b"-1", b"9" * 30, b"1e999", b"NaN", b"null", b'""', b"[]", b"{}"),
    *(b"\xff" * 4, b"\0" * 8, b"[" * 50),
)
VALUES = (None, -1, 0, 1.5, 2**63, 1e300, "", "x", "-5", "1e400", "NaN", True, [], {}, [[]], {"a": []}, "9" * 50)


def damaged(rng: Random, page: bytes, others: Sequence[bytes]) -> bytes:
    """Return a page with one to four damages; of every second JSON page values are replaced instead of bytes.

    Args:
        rng: source of chance.
        page: the page.
        others: pages of which pieces are put in.
    """
    if rng.random() < 0.5:
        try:
            return _other_values(rng, msgspec.json.decode(page))
        except (msgspec.DecodeError, UnicodeDecodeError):  # not JSON
            pass
    data = bytearray(page)
    for _ in range(rng.randint(1, MAX_DAMAGES)):
        _damage(rng, data, others)
    return bytes(data)


def _damage(rng: Random, data: bytearray, others: Sequence[bytes]) -> None:
    """Change bytes of `data` in one place."""
    first = rng.randrange(len(data) + 1)
    last = min(len(data), first + rng.choice((1, 1, 2, 8, 200)))
    match rng.randrange(8):
        case 0:
            data[first:last] = rng.randbytes(last - first)
        case 1:
            del data[first:last]
        case 2:
            del data[first:]
        case 3:
            data[first:first] = data[first:last]
        case 4:
            data[first:first] = rng.choice(PIECES)
        case 5:
            data[first:last] = rng.choice(PIECES)
        case 6:
            other = rng.choice(others)
            start = rng.randrange(len(other))
            data[first:first] = other[start : start + 300]
        case _:
            for place in range(first, last):
                data[place] ^= 1 << rng.randrange(8)


def _other_values(rng: Random, content: object) -> bytes:
    """Return JSON with one to three values replaced by others, anywhere in it."""
    for _ in range(rng.randint(1, 3)):
        parent, key, node = None, None, content
        while isinstance(node, dict | list) and node and rng.random() < 0.9:
            parent, key = node, rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
            node = parent[key]
        if parent is not None:
            parent[key] = copy.deepcopy(rng.choice(VALUES))
    return msgspec.json.encode(content)
