"""Console texts without their wrappings: messages with their lines, from job log, SYSLOG, OPERLOG and SYSPRINT.

Sources: [published: IBM Washington Systems Center, slides "MQ JES logs"] for the job log, the end of a first line and
OPERLOG; the columns of SYSLOG are [assumed]. A job log has only times of day, in local time; its lines
`---- MONDAY,     29 JAN 2024 ----` begin a day.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo

MAX_LINE_BYTES = 1 << 16
MAX_MESSAGE_LINES = 100_000
_EBCDIC = bytes([0x40, *range(0x81, 0x100)])  # blank, letters, digits
_BLANK = b"\x40"
_RECORD_LENGTHS = (133, 121, 132, 137, 80)  # of print and card files
_MAX_RECORDS = 1000  # that are looked at
_OPEN_MESSAGES = 16  # multi-line messages of which more lines may come

_MESSAGE = re.compile(r"[+\-*@ ]{0,4}((?:CSQ[0-9A-Z]|IXC|IXL|AMQ)[0-9]{3,4}[A-Z]):?(?= |$)(.*)")
_RUNMQSC = re.compile(r"Starting MQSC for queue manager (\S+)\.")
_ECHO = re.compile(r" *[0-9]+ : ")  # of a command, by runmqsc
RUNMQSC = "RUNMQSC"  # id of the message that names the queue manager
_RESPONSE = re.compile(r"RESPONSE=(\S{1,8}) ?(.*)")
_DAY = re.compile(r"-{2,} *[A-Z]+, *([0-9]{1,2}) ([A-Z]{3}) ([0-9]{4}) *-{2,}")
_JOB_LOG = re.compile(r" {0,2}([0-9]{2})\.([0-9]{2})\.([0-9]{2}) +(?:[A-Z]{1,3}[0-9]{4,8}) ?(.*)")
_SYSLOG = re.compile(
    r"[A-Z]{1,2}[CR ]? ?[0-9A-F]{7} +\S{1,8} +([0-9]{5}|[0-9]{7}) ([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)? "
    r"+(?:\S{1,8} +)?[0-9A-F]{8} ?(.*)"
)
_SYSLOG_MORE = re.compile(r"[A-Z]{1,2}[A-Z ]? +([0-9]{3}) +[0-9A-F]{8} ?(.*)")
_NUMBERED = re.compile(r" {0,8}([0-9]{1,3})(?= |$)(.*)")
_NUMBER = re.compile(r"(.*\S)  +([0-9]{1,3})$|(.*\.\.\.) +([0-9]{1,3})$")
_MONTH_NAMES = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_HALF_DAY = timedelta(hours=12)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Message:
    """A message: its id, the rest of its first line, and its further lines."""

    id: str
    line: int  # of its first line, from 1
    head: str
    time: int | None  # microseconds since 1970; None: the text has no time
    body: list[str] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        """Words of the first line; the first is the command prefix of the queue manager."""
        return self.head.split()


def messages(data: bytes | mmap.mmap, first_day: date, zone: tzinfo) -> Iterator[Message]:
    """Yield the messages of a text, in the order of their first lines.

    Args:
        data: the text, UTF-8 or EBCDIC; bytes that are neither are replaced.
        first_day: day of the first time, where no line has named one.
        zone: zone of the times.
    """
    reader = _Reader(first_day, zone)
    for number, line in _lines(data):
        yield from reader.take(number, line)
    yield from reader.finish()


def _lines(data: bytes | mmap.mmap) -> Iterator[tuple[int, str]]:
    """Yield (line number, line); a line that is far too long is cut."""
    start, number = 0, 1
    encoding = "cp037" if is_ebcdic(bytes(data[:4096])) else "utf-8"
    size = len(data)
    length = record_length(data)
    if length:
        for number, start in enumerate(range(0, size, length), 1):
            yield number, bytes(data[start : start + length]).decode(encoding).rstrip(" \0")
        return
    end_of_line = b"\x25" if encoding == "cp037" and data.find(b"\x25") >= 0 else b"\n"
    if encoding == "cp037" and end_of_line == b"\n":
        end_of_line = b"\x15"  # NEL, the end of a line in z/OS UNIX files
    while start < size:
        end = data.find(end_of_line, start)
        end = size if end < 0 else end
        text = bytes(data[start : min(end, start + MAX_LINE_BYTES)]).decode(encoding, "replace")
        yield number, text.rstrip("\r\n \0\x85\t")
        start, number = end + 1, number + 1


def is_ebcdic(head: bytes) -> bool:
    """Return True if most bytes are EBCDIC letters, digits and blanks."""
    others = len(head.translate(None, delete=_EBCDIC))
    return others < 0.2 * len(head)


def has_lines(data: bytes | mmap.mmap) -> bool:
    """Return False for EBCDIC text that has neither ends of lines nor records of one length."""
    return not is_ebcdic(bytes(data[:4096])) or _has_ends(data) or record_length(data) > 0


def record_length(data: bytes | mmap.mmap) -> int:
    """Return the length of the records of EBCDIC text without ends of lines, as a data set is in binary; 0: unknown.

    The last column of nearly all records is blank.
    """
    size = len(data)
    if not is_ebcdic(bytes(data[:4096])) or _has_ends(data):
        return 0
    for length in (length for length in _RECORD_LENGTHS if size % length == 0):
        ends = bytes(data[length - 1 : length * _MAX_RECORDS : length])
        if ends.count(_BLANK) >= 0.9 * len(ends):
            return length
    return 0


def _has_ends(data: bytes | mmap.mmap) -> bool:
    return any(data.find(end, 0, MAX_LINE_BYTES) >= 0 for end in (b"\x25", b"\x15", b"\n"))


class _Reader:
    """State between lines: the day, the messages that may get more lines."""

    def __init__(self, first_day: date, zone: tzinfo) -> None:
        self._day = first_day
        self._zone = zone
        self._last: datetime | None = None
        self._numbered: dict[str, Message] = {}  # by multi-line id
        self._current: Message | None = None
        self._waiting: list[Message] = []

    def take(self, number: int, line: str) -> Iterator[Message]:
        """Take a line; yield messages to which no more lines can belong."""
        day = _DAY.search(line)
        if day is not None and day[2] in _MONTHS:
            self._begin_day(int(day[3]), _MONTHS[day[2]], int(day[1]))
            return
        text, clock, multi = self._unwrap(line)
        if multi is not None:
            self._append(self._numbered[multi], text)
            return
        match = _MESSAGE.match(text)
        if match is None:
            start = _RUNMQSC.match(text)
            if start is not None:
                self._current = Message(RUNMQSC, number, start[1], self._last_us())
                self._waiting.append(self._current)
            elif self._current is not None and clock is None and not _ECHO.match(line):
                self._append(self._current, text)
            return
        head, multi = _without_number(match[2].strip())
        message = Message(match[1], number, head, self._last_us() if clock is None else clock)
        self._waiting.append(message)
        self._current = message
        if multi is not None:
            self._numbered.pop(multi, None)
            self._numbered[multi] = message
            if len(self._numbered) > _OPEN_MESSAGES:
                del self._numbered[next(iter(self._numbered))]
        while len(self._waiting) > _OPEN_MESSAGES:
            yield self._waiting.pop(0)

    def finish(self) -> Iterator[Message]:
        """Yield the messages that are left."""
        yield from self._waiting
        self._waiting = []

    def _unwrap(self, line: str) -> tuple[str, int | None, str | None]:
        """Return the text of a line, its time if it has one, and the id of the message that it continues."""
        response = _RESPONSE.match(line)
        if response is not None:
            return response[2].strip(), None, None
        job = _JOB_LOG.match(line)
        if job is not None:
            return job[4].strip(), self._clock(int(job[1]), int(job[2]), int(job[3])), None
        system = _SYSLOG.match(line)
        if system is not None:
            self._begin_julian_day(system[1])
            return system[5].strip(), self._clock(int(system[2]), int(system[3]), int(system[4])), None
        for pattern in (_SYSLOG_MORE, _NUMBERED):
            more = pattern.match(line)
            if more is not None and more[1] in self._numbered and self._has_numbers(more[1], pattern):
                return more[2].strip(), None, more[1]
        return line.strip(), None, None

    def _has_numbers(self, multi: str, pattern: re.Pattern[str]) -> bool:
        """Return True if the lines of a message carry its number: those of a log with times do."""
        return pattern is _SYSLOG_MORE or self._numbered[multi].time is not None

    def _append(self, message: Message, text: str) -> None:
        if len(message.body) < MAX_MESSAGE_LINES:
            message.body.append(text)

    def _begin_day(self, year: int, month: int, day: int) -> None:
        try:
            self._day = date(year, month, day)
        except ValueError:
            return  # no day of the calendar: the day stays
        self._last = None

    def _begin_julian_day(self, text: str) -> None:
        year, day = (2000 + int(text[:2]), int(text[2:])) if len(text) == 5 else (int(text[:4]), int(text[4:]))
        if 2000 <= year <= 2100 and 1 <= day <= 366:
            self._day = date(year, 1, 1) + timedelta(days=day - 1)
            self._last = None

    def _clock(self, hour: int, minute: int, second: int) -> int | None:
        """Return the time of a line; a time of day far before the last one is of the next day."""
        if hour > 23 or minute > 59 or second > 59:
            return None
        moment = datetime.combine(self._day, time(hour, minute, second))
        if self._last is not None and self._last - moment > _HALF_DAY and self._day < date(2100, 1, 1):
            self._day += timedelta(days=1)
            moment += timedelta(days=1)
        self._last = moment
        return self._last_us()

    def _last_us(self) -> int | None:
        if self._last is None:
            return None
        return (self._last.replace(tzinfo=self._zone) - _EPOCH) // timedelta(microseconds=1)


def _without_number(head: str) -> tuple[str, str | None]:
    """Return the first line without the id of a multi-line message at its end, and the id."""
    match = _NUMBER.fullmatch(head)
    if match is None:
        return head, None
    return (match[1], match[2]) if match[1] is not None else (match[3], match[4])
