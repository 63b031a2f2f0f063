"""Compiled reading of the events that almost all traffic consists of, straight from JSON bytes into EVENT rows.

`scan_json` takes what it is sure of: one object, known fields of the right shape, an operation on a queue that the
estate has. Whatever else it meets (an escape, a letter outside ASCII, a number that is not a plain integer, a repeated
name, a value out of range, another operation, bytes that are not JSON) it leaves to `twin.events.rules`, which alone
decides what is right: an event is never refused here. So the two can differ only where this file accepts too much;
tests hold them equal.
"""

# ruff: noqa: PLR1714 -- plain comparisons are what compiles

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernels._compile import kernel, routine
from kernels.hashing import _xxh64
from kernels.layout import FLAG_DIRECT, FLAG_HAS_MSGID, FLAG_HAS_UOW, FLAG_PERSISTENT, PUT

Bytes = npt.NDArray[np.uint8]
Array = npt.NDArray[Any]
Record = Any  # one row of a structured array

TIME, QMGR, SEQ, OP, QUEUE, MSGID, COUNT, LENGTH = range(8)
PRIORITY, PERSISTENT, UOW, DIRECT, REASON, STORE, ATTRIBUTES, MEASURED = range(8, 16)
NAMES = (
    *("time", "qmgr", "seq", "op", "queue", "msgid", "count", "length"),
    *("priority", "persistent", "uow", "direct", "reason", "store", "attributes", "measured"),
)
QUEUE_OPS = ("PUT", "GET", "COMMIT", "BACKOUT", "EXPIRE", "CLEAR")

ABSENT, STRING, INTEGER, TRUE, FALSE = range(5)
UNSURE = -1  # the answer of every function here that leaves the event to the exact rules

TIME_LOW = 946_684_800_000_000  # 2000-01-01T00:00:00Z, microseconds since 1970
TIME_HIGH = 4_133_980_800_000_000  # 2101-01-01T00:00:00Z
MSGID_MAX = 48  # bytes
LENGTH_MAX = 104_857_600  # bytes
SEQ_SURE = 10**18 - 1
COUNT_MAX = 1_000_000
PRIORITY_MAX = 9
REASON_MAX = 2**31 - 1

SECOND = 1_000_000  # microseconds

_QUOTE, _BACKSLASH, _COMMA, _COLON, _MINUS, _PLUS, _DOT, _ZERO = (ord(c) for c in '"\\,:-+.0')
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = (ord(c) for c in "{}[]")
_T, _Z, _E, _LOWER = ord("T"), ord("Z"), ord("E"), 32
_DEEPEST = 60  # levels of a value that nobody reads


def _lookup(words: tuple[str, ...]) -> tuple[Array, Bytes, Array]:
    """Words told apart by length and first letter: the word's number or -1 by length * 32 + letter; bytes; offsets."""
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


MEMBER = np.dtype([("kind", "i8"), ("start", "i8"), ("end", "i8"), ("number", "i8")])  # of an event, by NAMES

PLACE = np.dtype(  # of the hash table of (queue manager, queue) pairs; free where route is -1
    [("key", "u8"), ("route", "i4"), ("qmgr", "i4"), ("queue", "i4"), ("end", "i4")],  # names[qmgr:queue], [queue:end]
    align=True,
)


@kernel
def pair_key(qmgr: np.uint64, queue: np.uint64) -> np.uint64:
    """The hash of a pair from the hashes of its names."""
    return qmgr * np.uint64(0x9E3779B185EBCA87) + queue


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
    """The route of the queue manager and queue that two members name, or UNSURE."""
    key = pair_key(_xxh64(data, qmgr.start, qmgr.end), _xxh64(data, queue.start, queue.end))
    mask = places.size - 1
    at = int(np.int64(key & np.uint64(mask)))  # int() alone leaves it unsigned
    while places[at].route >= 0:
        place = places[at]
        if (
            place.key == key
            and _same(data, qmgr.start, qmgr.end, names, place.qmgr, place.queue)
            and _same(data, queue.start, queue.end, names, place.queue, place.end)
        ):
            return int(place.route)
        at = (at + 1) & mask
    return UNSURE


@kernel
def _word(data: Bytes, start: int, end: int, table: Array, words: Bytes, offsets: Array) -> int:
    """The number of the word data[start:end], or UNSURE."""
    size = end - start
    if size == 0 or size > 15:
        return UNSURE
    number = int(table[size * 32 + (data[start] & 31)])
    if number >= 0 and _same(data, start, end, words, offsets[number], offsets[number + 1]):
        return number
    return UNSURE


@kernel
def _space(data: Bytes, at: int, end: int) -> int:
    """The next place from `at` that is not JSON white space."""
    while at < end and (data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9):
        at += 1
    return at


@kernel
def _string(data: Bytes, at: int, end: int) -> int:
    """The closing quote of the string whose first letter stands at `at`, or UNSURE: only plain ASCII is taken."""
    while at < end:
        letter = data[at]
        if letter == _QUOTE:
            return at
        if letter < 32 or letter == _BACKSLASH or letter >= 128:
            return UNSURE
        at += 1
    return UNSURE


@kernel
def _literal(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Kind and end of true, false or null at `at`; kind UNSURE where it is none of them."""
    if at + 4 <= end:
        a, b, c, d = data[at], data[at + 1], data[at + 2], data[at + 3]
        if a == 116 and b == 114 and c == 117 and d == 101:
            return TRUE, at + 4
        if a == 110 and b == 117 and c == 108 and d == 108:
            return ABSENT, at + 4
        if at + 5 <= end and a == 102 and b == 97 and c == 108 and d == 115 and data[at + 4] == 101:
            return FALSE, at + 5
    return UNSURE, at


@kernel
def _integer(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Value and end of the integer at `at`; value UNSURE where it is negative, of more than 18 digits or no integer."""
    start = at
    value = 0
    while at < end and 48 <= data[at] <= 57:
        value = value * 10 + (data[at] - 48)
        at += 1
    digits = at - start
    if digits == 0 or digits > 18 or (digits > 1 and data[start] == _ZERO):
        return UNSURE, at
    return value, at


@kernel
def _digits_end(data: Bytes, at: int, end: int) -> int:
    """The place behind one or more digits at `at`, or UNSURE."""
    start = at
    while at < end and 48 <= data[at] <= 57:
        at += 1
    return at if at > start else UNSURE


@kernel
def _number_end(data: Bytes, at: int, end: int) -> int:
    """The place behind the JSON number at `at`, or UNSURE."""
    if data[at] == _MINUS:
        at += 1
    first = at
    at = _digits_end(data, at, end)
    if at < 0 or (data[first] == _ZERO and at > first + 1):
        return UNSURE
    if at < end and data[at] == _DOT:
        at = _digits_end(data, at + 1, end)
    if 0 <= at < end and data[at] & ~_LOWER == _E:
        at += 1
        if at < end and (data[at] == _PLUS or data[at] == _MINUS):
            at += 1
        at = _digits_end(data, at, end)
    return at


@routine
def _skipped(data: Bytes, at: int, end: int) -> int:
    """The place behind the JSON value at `at`, however nested, or UNSURE."""
    depth = 0
    objects = 0  # a bit for each level, the innermost lowest: 1 in an object
    while True:
        if at >= end:
            return UNSURE
        letter = data[at]
        ended = True
        if letter == _QUOTE:
            at = _string(data, at + 1, end) + 1
            if at <= 0:
                return UNSURE
        elif letter == _OPEN or letter == _OPEN_LIST:
            at = _space(data, at + 1, end)
            if at >= end or depth == _DEEPEST:
                return UNSURE
            if data[at] == letter + 2:  # } and ] stand two places behind { and [
                at += 1
            else:
                depth += 1
                objects = objects * 2 + (1 if letter == _OPEN else 0)
                ended = False
        elif letter == _MINUS or 48 <= letter <= 57:
            at = _number_end(data, at, end)
            if at < 0:
                return UNSURE
        else:
            kind, at = _literal(data, at, end)
            if kind < 0:
                return UNSURE
        while ended:
            if depth == 0:
                return at
            at = _space(data, at, end)
            if at >= end:
                return UNSURE
            if data[at] == (_CLOSE if objects & 1 else _CLOSE_LIST):
                at += 1
                depth -= 1
                objects //= 2
            elif data[at] == _COMMA:
                at = _space(data, at + 1, end)
                ended = False
            else:
                return UNSURE
        if objects & 1:
            at = _value(data, at, end)
            if at < 0:
                return UNSURE


@kernel
def _value(data: Bytes, at: int, end: int) -> int:
    """The place of the value whose name stands at `at`, or UNSURE."""
    if at >= end or data[at] != _QUOTE:
        return UNSURE
    at = _string(data, at + 1, end)
    if at < 0:
        return UNSURE
    at = _space(data, at + 1, end)
    if at >= end or data[at] != _COLON:
        return UNSURE
    return _space(data, at + 1, end)


@kernel
def _digits(data: Bytes, at: int, size: int) -> int:
    """The number of `size` digits at `at`, or UNSURE."""
    value = 0
    for i in range(at, at + size):
        digit = int(data[i]) - 48
        if digit < 0 or digit > 9:
            return UNSURE
        value = value * 10 + digit
    return value


@kernel
def _days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a day of the Gregorian calendar, or UNSURE where there is no such day."""
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
def rfc3339(data: Bytes, at: int, end: int) -> int:
    """Microseconds since 1970 of the RFC 3339 date-time data[at:end], or UNSURE (section 5.6; no leap seconds).

    Digits of the second beyond the sixth are cut off.
    """
    if end - at < 20:
        return UNSURE
    year, month, day = _digits(data, at, 4), _digits(data, at + 5, 2), _digits(data, at + 8, 2)
    hour, minute, second = _digits(data, at + 11, 2), _digits(data, at + 14, 2), _digits(data, at + 17, 2)
    if year < 1970 or hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return UNSURE
    if data[at + 4] != _MINUS or data[at + 7] != _MINUS or data[at + 13] != _COLON or data[at + 16] != _COLON:
        return UNSURE
    days = _days(year, month, day)
    if days < 0 or data[at + 10] | _LOWER != _T | _LOWER:
        return UNSURE
    at += 19
    micros = 0
    if data[at] == _DOT:
        at += 1
        start = at
        scale = 100_000
        while at < end and 48 <= data[at] <= 57:
            micros += (data[at] - 48) * scale
            scale //= 10
            at += 1
        if at == start or at == end:
            return UNSURE
    offset = 0
    if at + 1 == end:
        if data[at] | _LOWER != _Z | _LOWER:
            return UNSURE
    else:
        if at + 6 != end or data[at + 3] != _COLON or (data[at] != _PLUS and data[at] != _MINUS):
            return UNSURE
        hours, minutes = _digits(data, at + 1, 2), _digits(data, at + 4, 2)
        if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
            return UNSURE
        offset = (hours * 60 + minutes) * (60 if data[at] == _PLUS else -60)
    return (days * 86_400 + hour * 3_600 + minute * 60 + second - offset) * SECOND + micros


@routine
def rfc3339_column(offsets: Array, data: Bytes, out: Array) -> None:
    """`rfc3339` of each string of an Arrow column: offsets i8[n + 1], data u1[...]; out i8[n], written."""
    for i in range(out.size):
        out[i] = rfc3339(data, offsets[i], offsets[i + 1])


@kernel
def _members(data: Bytes, at: int, end: int, members: Array) -> bool:
    """Cut one flat JSON object data[at:end] into its known members; False where the exact rules must look.

    members MEMBER[16] is written, by place in NAMES: start and end of strings, number of integers.
    """
    for name in range(members.size):
        members[name].kind = ABSENT
    seen = 0
    at = _space(data, at, end)
    if at >= end or data[at] != _OPEN:
        return False
    at = _space(data, at + 1, end)
    while True:
        if at >= end or data[at] != _QUOTE:
            return False
        stop = _string(data, at + 1, end)
        if stop < 0:
            return False
        name = _word(data, at + 1, stop, _NAME_TABLE, _NAME_BYTES, _NAME_OFFSETS)
        at = _space(data, stop + 1, end)
        if at >= end or data[at] != _COLON:
            return False
        at = _space(data, at + 1, end)
        if at >= end:
            return False
        start = at
        stop = at
        number = 0
        if name < 0:
            kind = ABSENT
            at = _skipped(data, at, end)
            if at < 0:
                return False
        elif data[at] == _QUOTE:
            kind = STRING
            start = at + 1
            stop = _string(data, start, end)
            if stop < 0:
                return False
            at = stop + 1
        elif 48 <= data[at] <= 57:
            kind = INTEGER
            number, at = _integer(data, at, end)
            if number < 0:
                return False
        else:
            kind, at = _literal(data, at, end)
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
        at = _space(data, at, end)
        if at >= end:
            return False
        if data[at] == _CLOSE:
            return _space(data, at + 1, end) == end
        if data[at] != _COMMA:
            return False
        at = _space(data, at + 1, end)


@kernel
def _number(member: Record, low: int, high: int, default: int) -> int:
    """The integer of a member if it lies in low..high, `default` where it is absent, else UNSURE - 1."""
    if member.kind == ABSENT:
        return default
    if member.kind != INTEGER or member.number < low or member.number > high:
        return UNSURE - 1
    return int(member.number)


@kernel
def _flag(member: Record, bit: int) -> int:
    """`bit` where the member is true, 0 where it is false or absent, else UNSURE."""
    if member.kind == STRING or member.kind == INTEGER:
        return UNSURE
    return bit if member.kind == TRUE else 0


@kernel
def _row(data: Bytes, members: Array, places: Array, names: Bytes, event: Record) -> bool:
    """Write one event from its members; False where the exact rules must look."""
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
    if seq < -1 or count < 0 or length < 0 or priority < 0 or reason < 0 or persistent < 0 or direct < 0:
        return False
    if op == PUT and members[LENGTH].kind == ABSENT:
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
    return bool(event.route >= 0)


@routine
def scan_json(
    data: Bytes, starts: Array, ends: Array, places: Array, names: Bytes, members: Array, events: Array, taken: Array
) -> None:
    """Read the JSON events data[starts[i]:ends[i]], as far as they are plain.

    data u1[...]; starts and ends i8[n], bytes; places PLACE[2**k] and names u1[...]: the estate's queues; members
    MEMBER[16]: working space; events EVENT[n], written where taken; taken u1[n], written: 1 where the row stands, 0
    where the exact rules must look.
    """
    for i in range(starts.size):
        taken[i] = _members(data, starts[i], ends[i], members) and _row(data, members, places, names, events[i])
