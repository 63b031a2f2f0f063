"""Console texts without their wrappings: messages with their lines, from job log, SYSLOG, OPERLOG, SDSF and SYSPRINT.

A line of a log begins with fields, all of which but the time may be absent: SYSLOG has record type, routing codes,
system, Julian date, time, job or console and flags [IBM: z/OS MVS System Messages, the hardcopy log]; SDSF's user log
and zos_operator have system, Julian date and time; a job log time and job [published: IBM Washington Systems Center,
slides "MQ JES logs"]; others print a date and a time, or a time alone. A job log has only times of day, in local time;
its lines `---- MONDAY,     29 JAN 2024 ----` begin a day. A log is in order: where a clock is set back, a time before
the previous one belongs to the second pass of that hour. A multi-line message has a number behind its first line, and
in SYSLOG and job log before each further line, so that lines of other messages may come between. Elsewhere its lines
follow without a number, or with the same time. Of a log that is read as it is written, a message is whole when its text
says so, with its line of record type E, when another one begins and its own further lines would carry no number, or
after 5 s without a line of it.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import NamedTuple

from twin.base.listings import Line, file_lines
from twin.feeds.intake import Complaint
from twin.feeds.protocol import Page

MAX_MESSAGE_LINES = 100_000
SILENCE_US = 5_000_000  # after which a message of a log as it is written is whole
_MAX_REPORTED = 1000  # complaints about days
_OPEN_MESSAGES = 64  # of which more lines may come
_MAX_DAY_LINE = 200  # characters

_FAMILY = r"(?:CSQ[0-9A-Z]|IXC|IXL|AMQ)[0-9]{3,4}[A-Z]?"
_MESSAGE = re.compile(rf"[+\-*@ ]{{0,4}}({_FAMILY}):?(?= |$)(.*)")
_OTHER = re.compile(r"[+\-*@ ]{0,4}(\$HASP[0-9]{3,4}|[A-Z]{3,8}[0-9]{2,5}[A-Z])(?=[: ]|$)(.*)")
_RUNMQSC = re.compile(r"Starting MQSC for queue manager (\S+)\.")
_COPYRIGHT = re.compile(r"5724-[A-Z0-9]{3} ")  # in front of what runmqsc says at its start, in any language
_CAPITALS = re.compile(r"(?<![\w-])[A-Z0-9._%]{1,48}(?![\w-])")
_OWN_TIME = re.compile(r" *([0-9]{2}\.[0-9]{2}\.[0-9]{2})(?= )")  # of IXC359I, IXC360I and IXC364I, behind the id
_ECHO = re.compile(r" *[0-9]+ : ")  # of a command, by runmqsc
RUNMQSC = "RUNMQSC"  # id of the message that names the queue manager
_RESPONSE = re.compile(r"RESPONSE=(\S{1,8}) ?(.*)")
_DAY = re.compile(
    r"(?:(?<!-)-{2,} *[A-Z]+, *|CURRENT DATE IS [A-Z]+, *)([0-9]{1,2}) ([A-Z]{3}) ([0-9]{4})(?: *-{2,}|$)"
)
_PRINTED = re.compile(r" - ([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})$")  # of CSQU001I
_FIRST = re.compile(
    rf"""[ ]{{0,2}}
    (?:(?P<kind>[A-Z])[A-Z ]{{0,2}}(?P<routes>[0-9A-F]{{7}}|[0-9A-F]{{16}}|[0-9A-F]{{32}})[ ]+)?
    (?:(?P<system>(?!{_FAMILY}[ :])[A-Z$#@][A-Z0-9$#@]{{0,7}})[ ]+)?
    (?:(?P<date>[0-9]{{5}}|[0-9]{{7}}|[0-9]{{4}}[.][0-9]{{3}}|[0-9]{{4}}[-/][0-9]{{2}}[-/][0-9]{{2}})(?:T|[ ]+))?
    (?P<time>[0-9]{{2}}(?P<mark>[:.])[0-9]{{2}}(?P=mark)[0-9]{{2}})(?:[.,][0-9]{{1,9}})?(?P<offset>Z|[+-][0-9]{{2}}:?[0-9]{{2}})?
    (?=[ ]|$)(?P<rest>.*)""",
    re.VERBOSE,
)
_FLAGGED = re.compile(r" +(?:(\S{1,8}) +)?[0-9A-F]{8}(?: |$)(.*)")  # job or console, flags, text
_JOB = re.compile(r" {1,10}[A-Z]{1,3}[0-9]{4,8}(?= |$) ?(.*)")
_COMMAND = re.compile(r" *-[^-\s]")  # an echo of what an operator has said
_WORD = re.compile(r" +[A-Z0-9$#@*.-]{1,8}(?= )")  # a field before the id of a message
_MORE = re.compile(r" ?([DEL])[A-Z ]{0,2} +([0-9]{1,4}) +[0-9A-F]{8}(?: |$)(.*)")
_CONTINUED = re.compile(r" ?S {20,}(\S.*)")
_NUMBERED = re.compile(r" {0,8}([0-9]{1,3})(?= |$)(.*)")
_NUMBERED_ONLY = re.compile(r" {2,8}[0-9]{1,3}(?: {8,}|$)")  # as in a job log
_FLAGGED_NUMBER = re.compile(r" *([0-9]{1,4}) +[0-9A-F]{8}(?: |$)(.*)")
_NUMBER = re.compile(r"[0-9]{1,4}")
_MONTH_NAMES = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_HALF_DAY = timedelta(hours=12)
_HOUR = timedelta(hours=1)
_ONE_SECOND_US = 1_000_000
_DISORDER = timedelta(seconds=5)  # by which lines of one second may be out of order
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True, eq=False)
class Message:
    """A message: its id, the rest of its first line, and its further lines."""

    id: str  # "" of a line of a log without one
    place: str  # of its first line, for complaints
    head: str
    time: int | None  # microseconds since 1970; None: the text has no time
    collected: int | None = None  # time of the page with its first line
    is_local: bool = True  # its time is of the zone of the log
    body: list[str] = field(default_factory=list)
    shape: str = ""  # fields before its text; "" of none
    fields: str = ""  # words between its time and its id, where no columns show what they are
    is_numbered: bool | None = None  # whether its further lines carry its number; None: none came yet
    page: str = ""  # name of the page with its first line
    last: int = 0  # time of the page with its last line
    size: int = 0  # characters of its lines
    has_end: bool = False  # its last line is marked as that
    is_released: bool = False  # it was yielded, what follows is not read

    @property
    def words(self) -> list[str]:
        """Words of the first line; the first is the command prefix of the queue manager."""
        return self.head.split()

    @property
    def number(self) -> str | None:
        """Number behind the first line, which further lines may carry; None: there is none."""
        last = self.head.rpartition(" ")[2]
        return last if _NUMBER.fullmatch(last) else None


@dataclass(slots=True)
class ConsoleReader:
    """Reader of one text, or of a log as it is written."""

    first_day: date | None  # day of the first time, where no line has named one; None: that of the page
    zone: tzinfo  # zone of the times
    is_whole: Callable[[Message], bool] | None = None  # of a log as it is written: whether a message ends with its text
    qmgr: str | None = None  # of messages that name none; whoever reads them keeps it here
    unjoined: int = 0  # number of lines that continue a message whose first line is missing
    first_unjoined: tuple[str, str] | None = None  # place and text of the first of these
    outside: int = 0  # number of lines that are of no message, blank ones and headings among them
    size: int = 0  # characters of the messages that wait
    _place: str = ""  # of the text, for complaints
    _page: Page = field(default_factory=lambda: Page(b"", ""))
    _clock: _Clock = field(init=False)
    _numbered: dict[str, Message] = field(default_factory=dict)
    _current: Message | None = None
    _is_started: bool = False  # True behind the first line of runmqsc
    _waiting: list[Message] = field(default_factory=list)
    _changed: list[Message] = field(default_factory=list)  # by the last line

    def __post_init__(self) -> None:
        self._clock = _Clock(self.first_day or _EPOCH.date(), self.zone, is_day_known=self.first_day is not None)

    @property
    def begun_in(self) -> str:
        """Name of the page with the first line of the first message that waits; "": none does."""
        return self._waiting[0].page if self._waiting else ""

    @property
    def silent_at(self) -> int | None:
        """Time of a page from which on a message that waits is whole; None: none waits."""
        return min((message.last + SILENCE_US for message in self._waiting), default=None)

    def messages(self, page: Page) -> Iterator[Message | Complaint]:
        """Yield the messages of a whole text, in the order of their first lines, and what is wrong with its times."""
        yield from self.read(file_lines(page.data), page, page.name)
        yield from self.finish()

    def read(
        self, lines: Iterable[Line], page: Page, place: str, time: int | None = None
    ) -> Iterator[Message | Complaint]:
        """Yield the messages that are whole with some lines, and what is wrong with their times. `time`: that of the
        wrapping, for lines without one, microseconds since 1970; None: it has none.
        """
        self._page, self._place = page, place
        self._clock.begin_page(place, page.time if time is None else time)
        if time is not None:
            self._clock.now, self._clock.is_local = time, False
        for line in lines:
            self._take(line)
            yield from self._clock.wrong()
            if self.is_whole is not None:
                yield from self._ended(self.is_whole)
            while len(self._waiting) > _OPEN_MESSAGES:
                yield self._release(self._waiting[0])

    def silent(self, time: int) -> Iterator[Message]:
        """Yield the messages of which no page has had a line for a while, at the time of a page."""
        for message in [own for own in self._waiting if own.last + SILENCE_US <= time]:
            yield self._release(message)

    def whole(self) -> Iterator[Message]:
        """Yield the messages that wait: nothing more of them will come."""
        while self._waiting:
            yield self._release(self._waiting[0])

    def finish(self) -> Iterator[Message | Complaint]:
        """Yield the messages that wait at the end of a text, and what is wrong with its times."""
        yield from self.whole()
        self._clock.finish()
        yield from self._clock.wrong()

    def _ended(self, is_whole: Callable[[Message], bool]) -> Iterator[Message]:
        for message in self._changed:
            is_left = message is not self._current and message.number is None
            if not message.is_released and (is_left or message.has_end or is_whole(message)):
                yield self._release(message)
        self._changed = []
        now = self._clock.now
        if now is not None and self._waiting:
            for message in [own for own in self._waiting if own.time is not None and own.time + SILENCE_US <= now]:
                yield self._release(message)

    def _release(self, message: Message) -> Message:
        self._waiting.remove(message)
        self.size -= message.size
        message.is_released = True
        return message

    def _take(self, line: Line) -> None:
        day = _DAY.search(line.text[:_MAX_DAY_LINE])
        if day is not None:
            self.outside += 1
            self._clock.begin_day(line.number, day[1], day[2], day[3])
            return
        more = _MORE.match(line.text)
        if more is not None:
            self._join(more[2], more[3], line)
            ended = self._numbered.pop(more[2], None) if more[1] == "E" else None
            if ended is not None:
                ended.has_end = True
            return
        wrapped = _unwrap(line.text)
        if wrapped is None:
            self._take_text(line)
        else:
            self._take_wrapped(line, wrapped)

    def _take_wrapped(self, line: Line, wrapped: _Wrapped) -> None:
        """Take a line with a time: the first one of a message, or a further one with the same fields."""
        now = self._clock.time_of(line.number, wrapped)
        match = _MESSAGE.match(wrapped.text) or _OTHER.match(wrapped.text)
        if match is None:
            more = _FLAGGED_NUMBER.match(wrapped.text) or _NUMBERED.match(wrapped.text)
            if more is not None and more[1] in self._numbered:
                self._join(more[1], more[2], line)
                return
            current = self._current
            if current is not None and wrapped.is_loose and _is_further(current, wrapped, now):
                self._append(current, wrapped.text.strip().removeprefix(current.fields))
                return
        words = ("", wrapped.text) if match is None else (match[1], match[2])
        message = self._begin(line, words[0], words[1], now, wrapped.shape)
        message.fields = wrapped.fields
        if wrapped.is_several:
            message.is_numbered = True

    def _take_text(self, line: Line) -> None:
        response = _RESPONSE.match(line.text)
        text = line.text if response is None else response[2]
        match = _MESSAGE.match(text.lstrip())
        if match is not None:
            own = _OWN_TIME.match(match[2]) if match[1].startswith("IXC3") else None
            now = self._clock.now if own is None else self._clock.time_of(line.number, _clock_alone(own[1]))
            self._begin(line, match[1], match[2], now, "")
            return
        start = self._started(text)
        continued = _CONTINUED.match(text)
        if start is not None:
            self._begin(line, RUNMQSC, start, self._clock.now, "")
        elif line.is_heading or not text.strip() or _ECHO.match(text):
            self.outside += 1
        elif continued is not None and self._current is not None:
            self._continue(self._current, continued[1])
        else:
            self._take_further(line, text)

    def _started(self, text: str) -> str | None:
        """Return the queue manager of which runmqsc says that it starts, or None.

        Of a sentence in another language it is the one word beside MQSC that has no small letter.
        """
        known = _RUNMQSC.match(text)
        is_first, self._is_started = self._is_started, _COPYRIGHT.match(text) is not None
        if known is not None or not is_first:
            return None if known is None else known[1]
        words = [word.strip(".") for word in _CAPITALS.findall(text)]
        names = [word for word in words if word not in {"", "MQSC"}]
        return names[0] if len(names) == 1 and "MQSC" in words else None

    def _take_further(self, line: Line, text: str) -> None:
        more = _FLAGGED_NUMBER.match(text) or _NUMBERED.match(text)
        numbered = None if more is None else self._numbered.get(more[1])
        current = self._current
        if more is not None and numbered is not None and numbered.shape and numbered.is_numbered is not False:
            self._join(more[1], more[2], line)
        elif current is None:
            self.outside += 1
        elif current.is_numbered and _NUMBERED_ONLY.match(text):
            self._note_unjoined(line)
        else:
            if current.is_numbered is None:
                current.is_numbered = False
            self._append(current, text.strip())

    def _begin(self, line: Line, id_: str, head: str, now: int | None, shape: str) -> Message:
        """Begin a message. id_: its id; head: the rest of its first line."""
        message = Message(
            id_,
            f"{self._place}, line {line.number}",
            head.strip(),
            now,
            self._page.time,
            self._clock.is_local,
            shape=shape,
            page=self._page.name,
            last=self._page.time or 0,
        )
        if id_ == "CSQU001I":
            self._clock.print_at(message.head)
        self._waiting.append(message)
        self._grow(message, line.text)
        if self.is_whole is not None:
            self._changed += [message] if self._current is None else [self._current, message]
        self._current = message
        self._register(message)
        return message

    def _register(self, message: Message) -> None:
        """Keep a message under its number, for its further lines."""
        number = message.number
        if number is None:
            return
        self._numbered.pop(number, None)
        self._numbered[number] = message
        if len(self._numbered) > _OPEN_MESSAGES:
            del self._numbered[next(iter(self._numbered))]

    def _join(self, number: str, text: str, line: Line) -> None:
        message = self._numbered.get(number)
        if message is None:
            self._note_unjoined(line)
            return
        if not message.body:
            message.head = message.head.removesuffix(number).rstrip()
        message.is_numbered = True
        self._append(message, text.strip())

    def _note_unjoined(self, line: Line) -> None:
        self.unjoined += 1
        self.first_unjoined = self.first_unjoined or (f"{self._place}, line {line.number}", line.text)

    def _append(self, message: Message, text: str) -> None:
        if message.is_released or len(message.body) >= MAX_MESSAGE_LINES:
            self.outside += 1
            return
        message.body.append(text.strip())
        message.last = max(message.last, self._page.time or 0)
        self._grow(message, text)
        if self.is_whole is not None:
            self._changed.append(message)

    def _grow(self, message: Message, text: str) -> None:
        message.size += len(text)
        self.size += len(text)

    def _continue(self, message: Message, text: str) -> None:
        """Add the rest of a line that was too long for SYSLOG."""
        if message.is_released:
            self.outside += 1
            return
        self._grow(message, text)
        if message.body:
            message.body[-1] += " " + text.strip()
        else:
            message.head += " " + text.strip()
            self._register(message)


def _is_further(message: Message, wrapped: _Wrapped, now: int | None) -> bool:
    """Return True for a further line of a message that has its fields and time, and is not a command."""
    if message.shape != wrapped.shape or message.time is None or now is None:
        return False
    return 0 <= now - message.time <= _ONE_SECOND_US and not _COMMAND.match(wrapped.text)


class _Wrapped(NamedTuple):
    """A line of a log."""

    text: str  # the message
    shape: str  # which fields stand before it
    day: str  # date as it stands there; "" if absent
    clock: str  # time of day, HH?MM?SS
    offset: str  # its offset from UTC; "": local
    is_several: bool  # True if it is known to be the first line of several
    is_loose: bool  # True if further lines may have the same fields
    fields: str  # words before the id of a message


def _unwrap(line: str) -> _Wrapped | None:
    """Return a line of a log without the fields before its text; None: it is another line."""
    first = _FIRST.match(line)
    if first is None:
        return None
    kind, system, day, rest = first["kind"] or "", first["system"], first["date"] or "", first["rest"]
    job = _JOB.match(rest)
    flagged = _FLAGGED.match(rest)
    is_sure, text = bool(kind), ""
    if flagged is not None and (kind or day or flagged[1]):
        text, is_sure = flagged[2], True
        if flagged[1] is not None and _NUMBER.fullmatch(flagged[1]):
            text, is_sure = rest, False  # the number of a further line
    elif job is not None:
        text, is_sure = job[1], True
    else:
        text = _from_id(rest)
    is_message = _MESSAGE.match(text) is not None or _OTHER.match(text) is not None
    if not (is_sure or is_message or day or first["mark"] == ":"):
        return None
    if not is_sure and not is_message and system and not day:
        return None  # a word and a time
    shape = f"{'K' if kind else ''}{'S' if system else ''}{len(day)}{first['mark']}"
    is_loose = not kind and not (job is not None and first["mark"] == ".")
    fields = rest[: len(rest) - len(text)].strip(" +*@-") if is_message and is_loose and rest.endswith(text) else ""
    return _Wrapped(text.rstrip(), shape, day, first["time"], first["offset"] or "", kind == "M", is_loose, fields)


def _clock_alone(clock: str) -> _Wrapped:
    """Return the time of day of a message without fields in front of it."""
    return _Wrapped("", "", "", clock, "", is_several=False, is_loose=False, fields="")


def _from_id(rest: str) -> str:
    """Return a text from the id of its message on, behind at most three fields; without an id, all of it."""
    start = 0
    for _ in range(4):
        text = rest[start:]
        if _MESSAGE.match(text.lstrip()) or _OTHER.match(text.lstrip()):
            return text.lstrip()
        word = _WORD.match(rest, start)
        if word is None:
            break
        start = word.end()
    return rest


@dataclass(slots=True)
class _Clock:
    """Times of a log."""

    day: date  # day of the last line
    zone: tzinfo  # zone of the times
    is_day_known: bool = True  # False if `day` is not that of a line or an option: times are near that of their page
    place: str = ""  # of the text, for complaints
    page_time: int | None = None  # microseconds since 1970
    now: int | None = None  # time of the last line, microseconds since 1970; None: there was none
    is_local: bool = True  # of that time: no offset, nor a wrapping, says what it is in UTC
    _last: datetime | None = None
    _is_second: bool = False  # of an hour that comes twice, the second pass
    _undecided: tuple[int, datetime] | None = None  # line and time in an hour that comes twice
    _reported: set[tuple[str, str]] = field(default_factory=set)  # code and day of complaints
    _wrong: list[Complaint] = field(default_factory=list)  # complaints since the last call of `wrong`

    def wrong(self) -> list[Complaint]:
        """Return what is wrong with the times since the last call."""
        wrong, self._wrong = self._wrong, []
        return wrong

    def begin_page(self, place: str, time_us: int | None) -> None:
        """Begin a page. time_us: when it was written, microseconds since 1970."""
        self.place, self.page_time = place, time_us

    def begin_day(self, line: int, day: str, month: str, year: str) -> None:
        text = f"{day} {month} {year}"
        try:
            named = date(int(year), _MONTHS[month], int(day))
        except (ValueError, KeyError):
            self._report("bad-date", text, line, f"{text} is not a date; {self.day} stays; expected: a day there is")
            return
        if named < self.day:
            self._last = None  # another log
        self.day, self.is_day_known = named, True

    def print_at(self, head: str) -> None:
        """Take the time at which a SYSPRINT of CSQUTIL begins."""
        match = _PRINTED.search(head)
        if match is None:
            return
        try:
            moment = datetime.fromisoformat(match[1])
        except ValueError:
            return
        self.day, self._last, self.now, self.is_day_known = moment.date(), moment, self._as_us(moment), True

    def time_of(self, line: int, wrapped: _Wrapped) -> int | None:
        hour, minute, second = (int(wrapped.clock[start : start + 2]) for start in (0, 3, 6))
        if hour > 23 or minute > 59 or second > 59:
            return None
        if wrapped.day:
            self._begin_date(line, wrapped.day)
        moment = datetime.combine(self.day, time(hour, minute, second))
        if not self.is_day_known:
            moment = self._near_page(moment.time())
            self.day = moment.date()
        elif (
            self._last is not None
            and not wrapped.day
            and self._last - moment > _HALF_DAY
            and self.day < date(2100, 1, 1)
        ):
            self.day += timedelta(days=1)
            moment += timedelta(days=1)
        self.is_local = not wrapped.offset
        if wrapped.offset:
            self.now = _with_offset(moment, wrapped.offset)
        else:
            self._choose_pass(line, moment)
            self.now = self._as_us(moment)
        self._last = moment
        return self.now

    def _near_page(self, clock: time) -> datetime:
        """Return the time of day that is nearest to the time of the page."""
        written = (_EPOCH + timedelta(microseconds=self.page_time or 0)).astimezone(self.zone).replace(tzinfo=None)
        moment = datetime.combine(written.date(), clock)
        days = round((written - moment) / timedelta(days=1))
        return moment + timedelta(days=days)

    def finish(self) -> None:
        """Say which pass of an hour was taken, where the log does not."""
        if self._undecided is not None:
            line, moment = self._undecided
            text = f"{moment} comes twice in {self.zone}; the first is taken. Expected: times of before and behind"
            self._report("twice-hour", str(moment.date()), line, text)
            self._undecided = None

    def _report(self, code: str, day: str, line: int, text: str) -> None:
        """Complain once a day."""
        if (code, day) not in self._reported and len(self._reported) < _MAX_REPORTED:
            self._reported.add((code, day))
            self._wrong.append(Complaint(code, f"{self.place}, line {line}", text))

    def _begin_date(self, line: int, text: str) -> None:
        try:
            day = _date(text)
        except ValueError:
            self._report("bad-date", text, line, f"{text} is not a date; {self.day} stays; expected: a day there is")
            return
        self.day, self.is_day_known = day, True

    def _choose_pass(self, line: int, moment: datetime) -> None:
        """Choose the pass of an hour that comes twice; report a time that does not exist."""
        offsets = [self.zone.utcoffset(moment.replace(fold=fold)) for fold in (0, 1)]
        if offsets[0] == offsets[1]:
            self._is_second = False
            if self._undecided is not None:
                self.finish()
            return
        first, second = (offset or timedelta(0) for offset in offsets)
        if first < second:
            text = f"{moment} does not exist in {self.zone}; expected: the zone of the log"
            self._report("no-hour", str(moment.date()), line, text)
            return
        back = timedelta(0) if self._last is None else self._last - moment
        if _DISORDER < back < _HOUR + _DISORDER:
            self._is_second, self._undecided = True, None
        elif not self._is_second and self._undecided is None:
            self._undecided = line, moment

    def _as_us(self, moment: datetime) -> int:
        return (moment.replace(tzinfo=self.zone, fold=int(self._is_second)) - _EPOCH) // timedelta(microseconds=1)


def _date(text: str) -> date:
    """Return a date, YYDDD, YYYYDDD, YYYY.DDD, YYYY-MM-DD or with slashes. Raise ValueError if there is no such day."""
    digits = text.replace(".", "")
    if not digits.isdigit():
        return date.fromisoformat(text.replace("/", "-"))
    year, number = int(digits[:-3]) + (2000 if len(digits) == 5 else 0), int(digits[-3:])
    if not 1 <= number <= 365 + calendar.isleap(year):
        raise ValueError(f"{text}: expected: a day of {year}")
    return date(year, 1, 1) + timedelta(days=number - 1)


def _with_offset(moment: datetime, offset: str) -> int:
    """Return a time with an offset, Z or +01:00, in microseconds since 1970."""
    minutes = 0 if offset == "Z" else int(offset[1:3]) * 60 + int(offset[-2:])
    zoned = moment.replace(tzinfo=UTC) - timedelta(minutes=-minutes if offset.startswith("-") else minutes)
    return (zoned - _EPOCH) // timedelta(microseconds=1)
