"""Mix of messages by length, as counts or as the backlog that arrives while there are no gets."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from twin.errors import UsageError
from twin.estate import parse_size

MAX_LENGTH = 104_857_600  # bytes, 100 MB: the longest message [published]
_MAX_COUNT = 10**15  # messages of one length: more is a typing error
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
    if colon and not (count.isascii() and count.isdigit() and 0 < int(count[:16]) <= _MAX_COUNT):
        raise UsageError(f"{option} {text}: LENGTH:COUNT is right, as 2048:1000000, COUNT from 1 to {_MAX_COUNT:,}")
    return Messages(_length(length, option, text), int(count or 1))


def parse_rates(texts: Iterable[str], option: str = "--rate") -> tuple[Rate, ...]:
    """Parse LENGTH:PER_SECOND. Raise UsageError."""
    rates = []
    for text in texts:
        length, _, per_second = text.partition(":")
        if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", per_second, re.ASCII) or not float(per_second):
            raise UsageError(f"{option} {text}: LENGTH:PER_SECOND is right, as 2048:50, more than 0 messages/s")
        rates.append(Rate(_length(length, option, text), float(per_second)))
    return tuple(rates)


def parse_seconds(text: str, option: str = "--delay") -> int:
    """Parse a span of time: 90, 90s, 30m, 2h, 1d. Raise UsageError."""
    match = re.fullmatch(r"(\d{1,9})([smhd]?)", text.strip().lower(), re.ASCII)
    if match is None:
        raise UsageError(f"{option} {text}: a number of seconds, or one with s, m, h, d is right, as 2h")
    return int(match[1]) * _SECONDS[match[2]]


def backlog_of(rates: Iterable[Rate], seconds: int) -> Mix:
    """Return the messages that arrive within `seconds`.

    Gets may be delayed [IBM: Page sets 01 to 99, Calculating the storage requirement for messages].
    """
    return tuple(Messages(rate.length, math.ceil(round(rate.per_second * seconds, 6))) for rate in rates if seconds)


def count_of(mix: Mix) -> int:
    """Return the number of messages of a mix. Raise UsageError if it is 0."""
    count = sum(messages.count for messages in mix)
    if not count:
        raise UsageError("no messages: say how many of which length, as 2048:1000000")
    return count


def _length(written: str, option: str, text: str) -> int:
    try:
        length = parse_size(written)
    except ValueError:
        raise UsageError(f"{option} {text}: a length is right: bytes, or a number with K or M, as 64K") from None
    if length > MAX_LENGTH:
        raise UsageError(f"{option} {text}: a message has at most {MAX_LENGTH:,} bytes")
    return length
