"""Compiled reading of plain events, which are almost all traffic, from JSON bytes into EVENT rows.

`scan_json` reads what it is sure of: an object with known fields of the right shape, and an operation on a queue that
the estate has. Everything else (an escape, a letter outside ASCII, a number that is not a plain integer, a repeated
name, a value out of range, another operation, bytes that are not JSON) it leaves to the exact rules,
`twin.events.rules`. They alone refuse events. So the two can differ only where this file accepts too much, and tests
compare them.
"""

# ruff: noqa: PLR1714 -- plain comparisons are what compiles

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernels._compile import kernel, routine
from kernels._intrinsics import load_word, trailing_zeros
from kernels.clock import SECOND
from kernels.index import PRIME_1, _xxh64
from kernels.layout import (
    CLEAR,
    FLAG_DIRECT,
    FLAG_HAS_MSGID,
    FLAG_HAS_UOW,
    FLAG_PERSISTENT,
    MAX_MESSAGE_BYTES,
    OPS,
    PREPARE,
    PRIORITIES,
    PUT,
)

Bytes = npt.NDArray[np.uint8]
Array = npt.NDArray[Any]
Record = Any  # one row of a structured array

TIME, QMGR, SEQ, OP, QUEUE, MSGID, COUNT, LENGTH = range(8)
PRIORITY, PERSISTENT, EXPIRY, UOW, DIRECT, REASON, STORE, ATTRIBUTES, MEASURED = range(8, 17)
NAMES = (
    *("time", "qmgr", "seq", "op", "queue", "msgid", "count", "length"),
    *("priority", "persistent", "expiry", "uow", "direct", "reason", "store", "attributes", "measured"),
)
QUEUE_OPS = OPS[: CLEAR + 1]

ABSENT, STRING, INTEGER, TRUE, FALSE = range(5)
UNSURE = -1  # the result of a function that leaves the event to the exact rules

TIME_LOW = 946_684_800_000_000  # 2000-01-01T00:00:00Z, microseconds since 1970
TIME_HIGH = 4_133_980_800_000_000  # 2101-01-01T00:00:00Z
MSGID_MAX = 48  # bytes
LENGTH_MAX = MAX_MESSAGE_BYTES
SEQ_SURE = 10**18 - 1  # the largest number of 18 digits
COUNT_MAX = 1_000_000
PRIORITY_MAX = PRIORITIES - 1
REASON_MAX = 2**31 - 1
EXPIRY_MAX = 99_999_999  # whole seconds: MQMD Expiry is at most 999,999,999 tenths [IBM: IBM MQ, MQMD Expiry]

_QUOTE, _BACKSLASH, _COMMA, _COLON, _MINUS, _PLUS, _DOT, _ZERO = (ord(c) for c in '"\\,:-+.0')
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = (ord(c) for c in "{}[]")
_T, _Z, _E, _LOWER = ord("T"), ord("Z"), ord("E"), 32
_ONES = np.uint64(0x0101010101010101)  # in each of eight letters
_HIGH_BITS = np.uint64(0x8080808080808080)
_SPACES, _QUOTES, _BACKSLASHES = (_ONES * np.uint64(letter) for letter in (32, _QUOTE, _BACKSLASH))
_MAX_DEPTH = 60  # levels of a value that is skipped


def _lookup(words: tuple[str, ...]) -> tuple[Array, Bytes, Array]:
    """Return a lookup table for words that differ in length or first letter.

    Returns:
        The number of a word, or -1, by length * 32 + letter; the bytes of all words; the offsets of the words in them.
    """
    table = np.full(16 * 32, -1, np.int8)
    for number, word in enumerate(words):
        slot = len(word) * 32 + (ord(word[0]) & 31)
        if table[slot] != -1:
            raise ValueError(f"{word} has the length and first letter of another word")
        table[slot] = number
    offsets = np.cumsum([0, *map(len, words)]).astype(np.int32)
    return table, np.frombuffer("".join(words).encode(), np.uint8), offsets


_NAME_TABLE, _NAME_BYTES, _NAME_OFFSETS = _lookup(NAMES)
_OP_TABLE, _OP_BYTES, _OP_OFFSETS = _lookup(QUEUE_OPS)
_DAYS_BEFORE = np.array([0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365], np.int64)


MEMBER = np.dtype(  # a member of an event, by its index in NAMES
    [("kind", "i8"), ("start", "i8"), ("end", "i8"), ("number", "i8")]
)

PLACE = np.dtype(  # a slot of the hash table of (queue manager, queue) pairs, free if route is -1
    [("key", "u8"), ("route", "i4"), ("qmgr", "i4"), ("queue", "i4"), ("end", "i4")],  # names[qmgr:queue], [queue:end]
    align=True,
)


@kernel
def pair_key(qmgr: np.uint64, queue: np.uint64) -> np.uint64:
    """Return the hash of a pair from the hashes of its names."""
    return qmgr * PRIME_1 + queue


@kernel
def _same(a: Bytes, a_start: int, a_end: int, b: Bytes, b_start: int, b_end: int) -> bool:
    if a_end - a_start != b_end - b_start:
        return False
    for i in range(a_end - a_start):
        if a[a_start + i] != b[b_start + i]:
            return False
    return True


@kernel
def _route(places: Array, names: Bytes, data: Bytes, qmgr: Record, queue: Record) -> int:
    """Return the route of the queue manager and queue that two members name, or UNSURE."""
    key = pair_key(_xxh64(data, qmgr.start, qmgr.end), _xxh64(data, queue.start, queue.end))
    mask = places.size - 1
    pos = int(np.int64(key & np.uint64(mask)))  # int() alone would leave it unsigned
    while places[pos].route >= 0:
        place = places[pos]
        if (
            place.key == key
            and _same(data, qmgr.start, qmgr.end, names, place.qmgr, place.queue)
            and _same(data, queue.start, queue.end, names, place.queue, place.end)
        ):
            return int(place.route)
        pos = (pos + 1) & mask
    return UNSURE


@kernel
def _word(data: Bytes, start: int, end: int, table: Array, words: Bytes, offsets: Array) -> int:
    """Return the number of the word data[start:end], or UNSURE."""
    size = end - start
    if size == 0 or size > 15:
        return UNSURE
    number = int(table[size * 32 + (data[start] & 31)])
    if number >= 0 and _same(data, start, end, words, offsets[number], offsets[number + 1]):
        return number
    return UNSURE


@kernel
def _space(data: Bytes, pos: int, end: int) -> int:
    """Return the next position from `pos` on that is not JSON white space."""
    while pos < end and (data[pos] == 32 or data[pos] == 10 or data[pos] == 13 or data[pos] == 9):
        pos += 1
    return pos


@kernel
def _special_letters(word: np.uint64) -> np.uint64:
    """Return a word whose lowest bit that is set lies in the first of eight letters that is not plain; 0: all are.

    A subtraction borrows from the letters above the first one it finds, never from those below. Source: [published: Bit
    Twiddling Hacks, "Determine if a word has a byte less than n"].
    """
    quote = word ^ _QUOTES
    backslash = word ^ _BACKSLASHES
    special = ((quote - _ONES) & ~quote) | ((backslash - _ONES) & ~backslash) | ((word - _SPACES) & ~word) | word
    return special & _HIGH_BITS


@kernel
def _string(data: Bytes, pos: int, end: int) -> int:
    """Return the position of the closing quote of the plain ASCII string that begins at `pos`, or UNSURE."""
    while pos + 8 <= end:  # eight letters at a time; the last ones by themselves
        special = _special_letters(load_word(data, pos))
        if special != 0:
            pos += trailing_zeros(special) >> 3
            return pos if data[pos] == _QUOTE else UNSURE
        pos += 8
    while pos < end:
        letter = data[pos]
        if letter == _QUOTE:
            return pos
        if letter < 32 or letter == _BACKSLASH or letter >= 128:
            return UNSURE
        pos += 1
    return UNSURE


@kernel
def _literal(data: Bytes, pos: int, end: int) -> tuple[int, int]:
    """Return the kind and the end of true, false or null at `pos`; the kind is UNSURE if it is none of them."""
    if pos + 4 <= end:
        a, b, c, d = data[pos], data[pos + 1], data[pos + 2], data[pos + 3]
        if a == 116 and b == 114 and c == 117 and d == 101:
            return TRUE, pos + 4
        if a == 110 and b == 117 and c == 108 and d == 108:
            return ABSENT, pos + 4
        if pos + 5 <= end and a == 102 and b == 97 and c == 108 and d == 115 and data[pos + 4] == 101:
            return FALSE, pos + 5
    return UNSURE, pos


@kernel
def _integer(data: Bytes, pos: int, end: int) -> tuple[int, int]:
    """Return the value and the end of the integer at `pos`.

    The value is UNSURE if it is negative, has more than 18 digits or is no integer.
    """
    start = pos
    value = 0
    while pos < end and 48 <= data[pos] <= 57:
        value = value * 10 + (data[pos] - 48)
        pos += 1
    digits = pos - start
    if digits == 0 or digits > 18 or (digits > 1 and data[start] == _ZERO):
        return UNSURE, pos
    return value, pos


@kernel
def _digits_end(data: Bytes, pos: int, end: int) -> int:
    """Return the position behind one or more digits at `pos`, or UNSURE."""
    start = pos
    while pos < end and 48 <= data[pos] <= 57:
        pos += 1
    return pos if pos > start else UNSURE


@kernel
def _number_end(data: Bytes, pos: int, end: int) -> int:
    """Return the position behind the JSON number at `pos`, or UNSURE."""
    if data[pos] == _MINUS:
        pos += 1
    first = pos
    pos = _digits_end(data, pos, end)
    if pos < 0 or (data[first] == _ZERO and pos > first + 1):
        return UNSURE
    if pos < end and data[pos] == _DOT:
        pos = _digits_end(data, pos + 1, end)
    if 0 <= pos < end and data[pos] & ~_LOWER == _E:
        pos += 1
        if pos < end and (data[pos] == _PLUS or data[pos] == _MINUS):
            pos += 1
        pos = _digits_end(data, pos, end)
    return pos


@routine
def _skip(data: Bytes, pos: int, end: int) -> int:
    """Return the position behind the JSON value at `pos`, nested or not, or UNSURE."""
    depth = 0
    objects = 0  # a bit per level, the innermost lowest: 1 in an object
    while True:
        if pos >= end:
            return UNSURE
        letter = data[pos]
        is_complete = True
        if letter == _QUOTE:
            pos = _string(data, pos + 1, end) + 1
            if pos <= 0:
                return UNSURE
        elif letter == _OPEN or letter == _OPEN_LIST:
            pos = _space(data, pos + 1, end)
            if pos >= end or depth == _MAX_DEPTH:
                return UNSURE
            if data[pos] == letter + 2:  # the codes of } and ] are two above those of { and [
                pos += 1
            else:
                depth += 1
                objects = objects * 2 + (1 if letter == _OPEN else 0)
                is_complete = False
        elif letter == _MINUS or 48 <= letter <= 57:
            pos = _number_end(data, pos, end)
            if pos < 0:
                return UNSURE
        else:
            kind, pos = _literal(data, pos, end)
            if kind < 0:
                return UNSURE
        while is_complete:
            if depth == 0:
                return pos
            pos = _space(data, pos, end)
            if pos >= end:
                return UNSURE
            if data[pos] == (_CLOSE if objects & 1 else _CLOSE_LIST):
                pos += 1
                depth -= 1
                objects //= 2
            elif data[pos] == _COMMA:
                pos = _space(data, pos + 1, end)
                is_complete = False
            else:
                return UNSURE
        if objects & 1:
            pos = _value(data, pos, end)
            if pos < 0:
                return UNSURE


@kernel
def _value(data: Bytes, pos: int, end: int) -> int:
    """Return the position of the value whose name is at `pos`, or UNSURE."""
    if pos >= end or data[pos] != _QUOTE:
        return UNSURE
    pos = _string(data, pos + 1, end)
    if pos < 0:
        return UNSURE
    pos = _space(data, pos + 1, end)
    if pos >= end or data[pos] != _COLON:
        return UNSURE
    return _space(data, pos + 1, end)


@kernel
def _digits(data: Bytes, pos: int, size: int) -> int:
    """Return the number of `size` digits at `pos`, or UNSURE."""
    value = 0
    for i in range(pos, pos + size):
        digit = int(data[i]) - 48
        if digit < 0 or digit > 9:
            return UNSURE
        value = value * 10 + digit
    return value


@kernel
def _days(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to a day of the Gregorian calendar, or UNSURE if there is no such day."""
    if month < 1 or month > 12 or day < 1:
        return UNSURE
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    size = _DAYS_BEFORE[month + 1] - _DAYS_BEFORE[month]
    if day > size + (1 if leap and month == 2 else 0):
        return UNSURE
    past = year - 1
    days = past * 365 + past // 4 - past // 100 + past // 400 - 719_162
    return int(days + _DAYS_BEFORE[month] + (1 if leap and month > 2 else 0) + day - 1)


@kernel
def rfc3339(data: Bytes, pos: int, end: int) -> int:
    """Return the microseconds since 1970 of the date-time data[pos:end], or UNSURE.

    Digits of the second beyond the sixth are cut off. Leap seconds are UNSURE. Source: [published: RFC 3339, section
    5.6].
    """
    if end - pos < 20:
        return UNSURE
    year, month, day = _digits(data, pos, 4), _digits(data, pos + 5, 2), _digits(data, pos + 8, 2)
    hour, minute, second = _digits(data, pos + 11, 2), _digits(data, pos + 14, 2), _digits(data, pos + 17, 2)
    if year < 1970 or hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return UNSURE
    if data[pos + 4] != _MINUS or data[pos + 7] != _MINUS or data[pos + 13] != _COLON or data[pos + 16] != _COLON:
        return UNSURE
    days = _days(year, month, day)
    if days < 0 or data[pos + 10] | _LOWER != _T | _LOWER:
        return UNSURE
    pos += 19
    micros = 0
    if data[pos] == _DOT:
        pos += 1
        start = pos
        scale = 100_000
        while pos < end and 48 <= data[pos] <= 57:
            micros += (data[pos] - 48) * scale
            scale //= 10
            pos += 1
        if pos == start or pos == end:
            return UNSURE
    offset = 0
    if pos + 1 == end:
        if data[pos] | _LOWER != _Z | _LOWER:
            return UNSURE
    else:
        if pos + 6 != end or data[pos + 3] != _COLON or (data[pos] != _PLUS and data[pos] != _MINUS):
            return UNSURE
        hours, minutes = _digits(data, pos + 1, 2), _digits(data, pos + 4, 2)
        if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
            return UNSURE
        offset = (hours * 60 + minutes) * (60 if data[pos] == _PLUS else -60)
    return (days * 86_400 + hour * 3_600 + minute * 60 + second - offset) * SECOND + micros


@routine
def rfc3339_column(offsets: Array, data: Bytes, out: Array) -> None:
    """Read each string of an Arrow column with `rfc3339`.

    Args:
        offsets: i8[n + 1], bytes.
        data: u1[...].
        out: i8[n], written: microseconds since 1970, or UNSURE.
    """
    for i in range(out.size):
        out[i] = rfc3339(data, offsets[i], offsets[i + 1])


@kernel
def _members(data: Bytes, pos: int, end: int, members: Array) -> bool:
    """Cut the flat JSON object data[pos:end] into its known members; return False if the exact rules must read it.

    `members`, MEMBER[17] by index in NAMES, is written: start and end of strings, number of integers.
    """
    for name in range(members.size):
        members[name].kind = ABSENT
    seen = 0
    pos = _space(data, pos, end)
    if pos >= end or data[pos] != _OPEN:
        return False
    pos = _space(data, pos + 1, end)
    while True:
        if pos >= end or data[pos] != _QUOTE:
            return False
        stop = _string(data, pos + 1, end)
        if stop < 0:
            return False
        name = _word(data, pos + 1, stop, _NAME_TABLE, _NAME_BYTES, _NAME_OFFSETS)
        pos = _space(data, stop + 1, end)
        if pos >= end or data[pos] != _COLON:
            return False
        pos = _space(data, pos + 1, end)
        if pos >= end:
            return False
        start = pos
        stop = pos
        number = 0
        if name < 0:
            kind = ABSENT
            pos = _skip(data, pos, end)
            if pos < 0:
                return False
        elif data[pos] == _QUOTE:
            kind = STRING
            start = pos + 1
            stop = _string(data, start, end)
            if stop < 0:
                return False
            pos = stop + 1
        elif 48 <= data[pos] <= 57:
            kind = INTEGER
            number, pos = _integer(data, pos, end)
            if number < 0:
                return False
        else:
            kind, pos = _literal(data, pos, end)
            if kind < 0:
                return False
        if name >= 0:
            if seen & (1 << name):
                return False
            seen |= 1 << name
            member = members[name]
            member.kind = kind
            member.start = start
            member.end = stop
            member.number = number
        pos = _space(data, pos, end)
        if pos >= end:
            return False
        if data[pos] == _CLOSE:
            return _space(data, pos + 1, end) == end
        if data[pos] != _COMMA:
            return False
        pos = _space(data, pos + 1, end)


@kernel
def _number(member: Record, low: int, high: int, default: int) -> int:
    """Return the integer of a member if it lies in low..high, `default` if it is absent, else UNSURE - 1."""
    if member.kind == ABSENT:
        return default
    if member.kind != INTEGER or member.number < low or member.number > high:
        return UNSURE - 1
    return int(member.number)


@kernel
def _flag(member: Record, bit: int) -> int:
    """Return `bit` if the member is true, 0 if it is false or absent, else UNSURE."""
    if member.kind == STRING or member.kind == INTEGER:
        return UNSURE
    return bit if member.kind == TRUE else 0


@kernel
def _row(data: Bytes, members: Array, places: Array, names: Bytes, event: Record) -> bool:
    """Write an event from its members; return False if the exact rules must read it."""
    if members[QMGR].kind != STRING or members[OP].kind != STRING or members[QUEUE].kind != STRING:
        return False
    op = _word(data, members[OP].start, members[OP].end, _OP_TABLE, _OP_BYTES, _OP_OFFSETS)
    time = UNSURE
    if members[TIME].kind == STRING:
        time = rfc3339(data, members[TIME].start, members[TIME].end)
    elif members[TIME].kind == INTEGER:
        time = members[TIME].number
    if op < 0 or time < TIME_LOW or time >= TIME_HIGH:
        return False
    seq = _number(members[SEQ], 0, SEQ_SURE, -1)
    count = _number(members[COUNT], 1, COUNT_MAX, 1)
    length = _number(members[LENGTH], 0, LENGTH_MAX, 0)
    priority = _number(members[PRIORITY], 0, PRIORITY_MAX, 0)
    reason = _number(members[REASON], 0, REASON_MAX, 0)
    persistent = _flag(members[PERSISTENT], FLAG_PERSISTENT)
    direct = _flag(members[DIRECT], FLAG_DIRECT)
    expiry = _number(members[EXPIRY], 1, EXPIRY_MAX, 0)
    if seq < -1 or count < 0 or length < 0 or priority < 0 or reason < 0 or persistent < 0 or direct < 0 or expiry < 0:
        return False
    if op == PUT and members[LENGTH].kind == ABSENT:
        return False
    if direct and (persistent or members[UOW].kind != ABSENT):
        return False
    if op == PREPARE and members[UOW].kind == ABSENT:
        return False
    if members[STORE].kind > STRING or members[ATTRIBUTES].kind != ABSENT or members[MEASURED].kind != ABSENT:
        return False
    flags = persistent | direct
    msgid = members[MSGID]
    uow = members[UOW]
    if msgid.kind > STRING or uow.kind > STRING:
        return False
    event.msgid = 0
    event.uow = 0
    if msgid.kind == STRING:
        if msgid.end == msgid.start or msgid.end - msgid.start > MSGID_MAX or count != 1:
            return False
        event.msgid = _xxh64(data, msgid.start, msgid.end)
        flags |= FLAG_HAS_MSGID
    if uow.kind == STRING:
        event.uow = _xxh64(data, uow.start, uow.end)
        flags |= FLAG_HAS_UOW
    event.route = _route(places, names, data, members[QMGR], members[QUEUE])
    event.time = time
    event.seq = seq
    event.length = length
    event.count = count
    event.reason = reason
    event.op = op
    event.priority = priority
    event.flags = flags
    event.pad = 0
    event.expiry = expiry * 10
    return bool(event.route >= 0)


@routine
def scan_json(
    data: Bytes, starts: Array, ends: Array, places: Array, names: Bytes, members: Array, events: Array, sure: Array
) -> None:
    """Read the JSON events data[starts[i]:ends[i]] that are plain.

    Args:
        data: u1[...].
        starts: i8[n], byte at which an event begins.
        ends: i8[n], byte behind an event.
        places: PLACE[2**k], the estate's queues.
        names: u1[...], bytes of the names that `places` refers to.
        members: MEMBER[17], working space.
        events: EVENT[n], written if the event is plain.
        sure: u1[n], written: 1 if the row of `events` is written, 0 if the exact rules must read the event.
    """
    for i in range(starts.size):
        sure[i] = _members(data, starts[i], ends[i], members) and _row(data, members, places, names, events[i])
