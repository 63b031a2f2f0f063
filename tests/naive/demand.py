"""The demand of a store in a slow and obvious way: every put of a recording, accepted or refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

EDGES = (0, 140, 1024, 2048, 4096, 8192, 16_384, 32_768, 64_512, 131_072, 262_144, 1_048_576, 104_857_600)
REFUSED = (2192, 2056)
AT_MAX_DEPTH = 2053


@dataclass
class NaivePut:
    """A put. second: event time; reason: 0, or why it was refused; space: what a message would take."""

    second: int
    length: int
    count: int
    reason: int
    space: float


def class_of(length: int) -> int:
    """Return the length class of a message."""
    return next(size for size in range(12) if length <= EDGES[size + 1])


def demand(puts: Iterable[NaivePut], since: int) -> list[float]:
    """Return the messages demanded from a second on.

    By class those put or refused because storage is exhausted, then those refused at MAXDEPTH, then the space of these.
    """
    result = [0.0] * 14
    for put in puts:
        if put.second < since:
            continue
        if put.reason in (0, *REFUSED):
            result[class_of(put.length)] += put.count
        elif put.reason == AT_MAX_DEPTH:
            result[12] += put.count
            result[13] += put.count * put.space
    return result
