"""Mix of messages by length, as counts or as the backlog that arrives while there are no gets."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from twin.base.errors import UsageError
from twin.estate import parse_size
from twin.estate.attributes import MAX_DEPTH

MAX_LENGTH = 104_857_600  # bytes, 100 MB: the longest message [published]
MAX_COUNT = 10**15  # messages of one length: more is a typing error
_POWERS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True, slots=True)
class Messages:
    """`count` messages of `length` bytes, which are data and all MQ headers except the MQMD."""

    length: int
    count: int


@dataclass(frozen=True, slots=True)
class Rate:
    """`per_second` messages of `length` bytes."""

    length: int
    per_second: float


Mix = tuple[Messages, ...]


def parse_mix(texts: Iterable[str], option: str = "--messages") -> Mix:
    """Parse LENGTH or LENGTH:COUNT, COUNT 1 by default. Raise UsageError."""
    return tuple(_messages(text, option) for text in texts)


def _messages(text: str, option: str) -> Messages:
    length, colon, count = text.partition(":")
    number = parse_count(count) if colon else 1
    if number is None:
        expected = f"LENGTH:COUNT, such as 2048:1000000 or 2K:5M, COUNT from 1 to {MAX_COUNT:,}"
        raise UsageError(f"{option} {text}; expected: {expected}")
    return Messages(_length(length, option, text), number)


def parse_count(text: str) -> int | None:
    """Return a number of messages: 5000000, or 5M, with K, M and G as powers of 1000; None if it is not a number."""
    match = re.fullmatch(r"(\d{1,16}(?:\.\d{1,9})?)([KMG]?)", text.strip().upper(), re.ASCII)
    count = Decimal(match[1]) * _POWERS[match[2]] if match else Decimal(0)
    return int(count) if count == count.to_integral_value() and 0 < count <= MAX_COUNT else None


def parse_rates(texts: Iterable[str], option: str = "--rate") -> tuple[Rate, ...]:
    """Parse LENGTH:PER_SECOND. Raise UsageError."""
    rates = []
    for text in texts:
        length, _, per_second = text.partition(":")
        if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", per_second, re.ASCII) or not float(per_second):
            raise UsageError(f"{option} {text}; expected: LENGTH:PER_SECOND, such as 2048:50, more than 0 messages/s")
        rates.append(Rate(_length(length, option, text), float(per_second)))
    return tuple(rates)


def parse_seconds(text: str, option: str = "--delay") -> int:
    """Parse a span of time: 90, 90s, 30m, 2h, 1d. Raise UsageError."""
    match = re.fullmatch(r"(\d{1,9})([smhd]?)", text.strip().lower(), re.ASCII)
    if match is None:
        raise UsageError(f"{option} {text}; expected: a number of seconds, or one with s, m, h or d, such as 2h")
    return int(match[1]) * _SECONDS[match[2]]


def backlog_of(rates: Iterable[Rate], seconds: int) -> Mix:
    """Return the messages that arrive within `seconds`.

    Gets may be delayed [IBM: Page sets 01 to 99, Calculating the storage requirement for messages].
    """
    return tuple(Messages(rate.length, math.ceil(round(rate.per_second * seconds, 6))) for rate in rates if seconds)


def at_max_depth(
    queues: Collection[str], max_depths: Mapping[str, int], texts: Iterable[str], option: str = "--at-max-depth"
) -> tuple[Mix, list[str]]:
    """Return the messages of a store when each of its queues is at its MAXDEPTH, and warnings of queues without one.

    "Consider the maximum depth of all queues that map to the page set, and the average size" [IBM: Page sets 01 to 99].
    UsageError: a text is not a length, a queue is not one of the store, or a queue has no length.
    """
    lengths: dict[str, int] = {}
    default: int | None = None
    for text in texts:
        queue, equals, written = text.rpartition("=")
        if not equals:
            default = _length(written, option, text)
        elif queue in queues:
            lengths[queue] = _length(written, option, text)
        else:
            raise UsageError(f"{option} {text}: no queue {queue} of the store; expected: {', '.join(sorted(queues))}")
    missing = sorted(set(queues) - max_depths.keys())
    warnings = [f"no max_depth in the estate, so no messages counted: {', '.join(missing)}"] if missing else []
    unlimited = sorted(queue for queue, depth in max_depths.items() if depth >= MAX_DEPTH)
    if unlimited:
        text = f"MAXDEPTH({MAX_DEPTH}) is unlimited in practice, so no messages counted: {', '.join(unlimited)}"
        warnings.append(text)
    counts: dict[int, int] = {}
    for queue, depth in sorted(max_depths.items()):
        if queue in unlimited:
            continue
        length = lengths.get(queue, default)
        if length is None:
            raise UsageError(f"{option}: no length of the messages of {queue}; expected: LENGTH, or {queue}=LENGTH")
        counts[length] = counts.get(length, 0) + depth
    return tuple(Messages(length, count) for length, count in counts.items()), warnings


def count_of(mix: Mix) -> int:
    """Return the number of messages of a mix. Raise UsageError if it is 0."""
    count = sum(messages.count for messages in mix)
    if not count:
        raise UsageError("no messages; expected: how many of which length, such as 2048:1000000")
    return count


def _length(written: str, option: str, text: str) -> int:
    try:
        length = parse_size(written)
    except ValueError:
        raise UsageError(f"{option} {text}; expected: a length in bytes, or with K or M, such as 64K") from None
    if length > MAX_LENGTH:
        raise UsageError(f"{option} {text}; expected: a length of at most {MAX_LENGTH:,} bytes")
    return length
