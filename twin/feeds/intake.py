"""Intake of feeds: accounting of what they read, and which of their events the estate can take.

A feed yields events, complaints and objects that it passes over. `Intake` counts them by input and keeps what else a
feed reports: facts about the estate, covered time and unknown names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from twin.base.units import as_count, as_text
from twin.estate import Estate, RoutingError
from twin.events import Event, EventError
from twin.events.fields import FIELD, Measured, check_measured, contradiction
from twin.feeds.facts import EstateFacts, is_dynamic
from twin.feeds.intervals import IdleStores

DYNAMIC = "event of dynamic queues"
DYNAMIC_QUEUES = "dynamic queues"  # in place of their names in what was covered: each is a new one
OF_SYSTEM = "event of queues of the system"
MAX_EXAMPLES = 20  # complaints that are kept of one code; the others are counted
MAX_GAPS = 100  # that are kept of a source and queue manager
GAP_US = 60_000_000  # by which intervals may be apart without a gap [assumed]
MAX_NAMES = 10_000  # unknown names and coverages that are kept
MAX_KINDS = 1_000  # of objects that are passed over; all others are one more
_SHOWN_KINDS = 10
_SEND = "Send that line, without what is confidential, to the issues of mqtwin, so that it will be read"
_MAX_WORDS = 2_000  # characters of a complaint
_SYSTEM = "SYSTEM."  # begins the names of queues that MQ itself defines

# Codes of complaints about what is not understood, each of one line or object, and whether `Feed.object_count` has it.
NOT_UNDERSTOOD: Mapping[str, bool] = {
    "not-understood": False,
    "unjoined": False,
    "foreign": False,
    "truncated": False,
    "segments": False,
    "bad-json": False,
    "unreadable": False,
    "no-lines": False,
    "nothing-read": False,
    "no-report": False,
    "no-list": True,
    "bad-report": True,
    "bad-row": True,
    "damaged": True,
    "bad-value": True,
    "bad-time": True,
    "inconsistent": True,
    "impossible-count": True,
}
_ENOUGH, _ENOUGH_CALLS = 20, 1000  # objects of a kind, and calls, before a live input is said to lack something
NOT_UNDERSTOOD_SHARE = 0.1  # of an input; from here on the last line of a command says so

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # characters that end a line or move the cursor
_CHECKED = ("time", "count", "length", "msgid", "priority", "reason")


@dataclass(frozen=True, slots=True)
class Complaint:
    """Something wrong with the input.

    Attributes:
        code: stable name, such as "truncated".
        place: page and byte, line or index.
        text: the value and what is expected.
        number: number of such lines or objects, of which this is the first.
    """

    code: str
    place: str
    text: str
    number: int = 1

    def __str__(self) -> str:
        return f"{self.place}: {self.text} ({self.code})"


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Objects that say nothing that is used."""

    name: str  # name of all such objects, with the word that has a plural first, such as "record of other types"
    kind: str  # kind of these, such as "SMF 30"
    number: int = 1  # number of these
    size: int = 0  # bytes of them all
    is_counted: bool = False  # True if `Feed.object_count` has them, too


Item = Event | Complaint | PassedOver
"""Anything that a feed yields."""


@dataclass(slots=True)
class Coverage:
    """Time that one source has reported about one queue or store of a queue manager."""

    source: str
    qmgr: str
    name: str  # queue or store
    start: int  # microseconds since 1970
    end: int
    intervals: int = 0
    longest_us: int = 0  # interval
    covered_us: int = 0  # sum of the intervals
    puts: int = 0
    gets: int = 0
    peak_error: int = 0  # messages; with steady rates no peak is wrong by more: the largest number of puts of a slice
    length_error: int = 0  # data elements of 256 bytes; no sum of elements put is wrong by more

    @property
    def gaps_us(self) -> int:
        """Time between start and end that no interval covers; 0 of single calls, which have no interval."""
        if not self.longest_us:
            return 0
        return max(0, self.end - self.start - self.covered_us)


@dataclass(slots=True)
class Reported:
    """Time for which a source has reported the queues of a queue manager, busy or not."""

    start: int  # microseconds since 1970
    end: int
    gaps: list[tuple[int, int]] = field(default_factory=list)  # start and end of what no interval has reported so far

    def add(self, start: int, end: int) -> None:
        """Add an interval, which closes gaps and may leave a new one before or after it."""
        if self.gaps:
            left = [piece for low, high in self.gaps for piece in ((low, min(high, start)), (max(low, end), high))]
            self.gaps = [(low, high) for low, high in left if high - low > GAP_US]
        for low, high in ((self.end, start), (end, self.start)):
            if high - low > GAP_US and len(self.gaps) < MAX_GAPS:
                self.gaps.append((low, high))
        self.start, self.end = min(self.start, start), max(self.end, end)


@dataclass(slots=True)
class Peak:
    """Largest numbers of entries and elements of a structure that a source has seen: lower bounds of the real peak."""

    store: str
    time: int = 0  # of the largest number of elements; microseconds since 1970
    entries: int = 0
    elements: int = 0
    full: int = 0  # number of times that the structure was full


@dataclass(slots=True)
class PassedCount:
    """Objects of one name that were passed over: their number by kind, and their bytes."""

    kinds: Counter[str] = field(default_factory=Counter)
    bytes: int = 0


@dataclass(slots=True)
class InputCount:
    """Lines or objects of an input: each is read, passed over or not understood."""

    name: str
    objects: int = 0  # of the format, as `Feed.object_count` has them
    within: int = 0  # number of these that were passed over or not understood
    passed_over: int = 0
    not_understood: int = 0
    first: Complaint | None = None  # about the first that is not understood
    excerpt: str = ""  # its beginning, where the input is text

    @property
    def is_mostly_read(self) -> bool:
        """False if so much is not understood that the last line of a command says so."""
        return self.first is None or self.not_understood <= NOT_UNDERSTOOD_SHARE * self.total

    @property
    def read(self) -> int:
        """Number read, whether or not the estate knows their names."""
        return max(0, self.objects - self.within)

    @property
    def total(self) -> int:
        """Number of all."""
        return self.read + self.passed_over + self.not_understood

    def line(self) -> str:
        """Return the text of the counts: `day.json: 45 lines or objects: 33 read, 12 passed over, 0 not understood`."""
        text = f"{self.read:,} read, {self.passed_over:,} passed over, {self.not_understood:,} not understood"
        return f"{self.name}: {_objects(self.total)}: {text}"

    def line_for_not_understood(self) -> str:
        """Return the text of what is not understood: how much, the first such line, and where to send it."""
        text = f"{self.name}: {self.not_understood:,} of {_objects(self.total)} not understood"
        if self.first is not None:
            text += f"; the first, {self.first.place}: {self.excerpt or self.first.text}"
        return f"{text}. {_SEND}"


@dataclass(slots=True)
class _Kind:
    """Objects of a kind: their number, and how many lack each name."""

    total: int = 0
    lacking: Counter[str] = field(default_factory=Counter)
    place: str = ""  # of the first that lacks one


class Soundness:
    """Counts of what the objects of the inputs lack of that which `Format.shows` names, and of puts and gets."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()  # number of single calls, by PUT and GET
        self._kinds: dict[str, _Kind] = {}
        self._known: set[tuple[str, str]] = set()

    def note(self, kind: str, lacking: Iterable[str], place: str) -> None:
        """Count an object of a kind, and the names that it lacks."""
        own = self._kinds.setdefault(kind, _Kind())
        own.total += 1
        for name in lacking:
            own.place = own.place or place
            own.lacking[name] += 1

    def complaints(self, *, is_end: bool) -> Iterator[Complaint]:
        """Yield what is missing and was not said yet. is_end: False if more will come."""
        for kind, own in self._kinds.items():
            if own.total < _ENOUGH and not is_end:
                continue
            new = {name: count for name, count in own.lacking.items() if (kind, name) not in self._known}
            self._known |= {(kind, name) for name in new}
            if new:
                names = ", ".join(f"{count:,} without {name}" for name, count in sorted(new.items()))
                text = f"{as_count(own.total, kind)}: {names}, so it is not known; expected: each has it"
                yield Complaint("lacks", own.place, text)
        if len(self.calls) == 1 and ("", "") not in self._known and (is_end or self.calls.total() >= _ENOUGH_CALLS):
            self._known.add(("", ""))
            [(op, count)] = self.calls.items()
            has, lacks = ("put", "get") if op == "PUT" else ("get", "put")
            yield Complaint("one-sided", "input", f"{as_count(count, has)}, and no {lacks} at all; expected: both")


@dataclass(slots=True)
class UnknownName:
    """A queue manager, queue or store that the estate lacks."""

    qmgr: str
    queue: str | None
    store: str | None
    events: int = 0
    first: int = 0  # microseconds since 1970

    @property
    def label(self) -> str:
        """Its queue manager, where that is known, and its name."""
        return "/".join(filter(None, (self.qmgr, self.queue or self.store)))


@dataclass(slots=True)
class Intake:
    """Accounting of feeds, one for all pages and feeds of a command."""

    estate: Estate | None = None  # None to learn what is there (`mqtwin estate import`): then no name is unknown
    resync: bool = False  # every MEASURE asks for a resync: of stores whose puts and gets nothing reports
    facts: EstateFacts = field(default_factory=EstateFacts)
    counts: Counter[str] = field(default_factory=Counter)  # of complaints by code
    complaints: list[Complaint] = field(default_factory=list)
    latest: dict[str, Complaint] = field(default_factory=dict)  # complaint by code
    unknown: dict[tuple[str, str], UnknownName] = field(default_factory=dict)
    unplaced: set[tuple[str, str]] = field(default_factory=set)  # owner and queue, see `note_unplaced`
    coverage: dict[tuple[str, str, str], Coverage] = field(default_factory=dict)
    reported: dict[tuple[str, str], Reported] = field(default_factory=dict)  # by source and queue manager
    notes: list[str] = field(default_factory=list)  # what else a feed has to say, a line each
    passed_over: dict[str, PassedCount] = field(default_factory=dict)  # by the name of such objects
    inputs: list[InputCount] = field(default_factory=list)  # in their order
    peaks: dict[str, Peak] = field(default_factory=dict)  # by store
    soundness: Soundness = field(default_factory=Soundness)
    events: int = 0  # number that `sift` let through
    aside: int = 0  # number that it put aside
    idle: IdleStores = field(init=False)
    _sources: dict[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.idle = IdleStores(self.estate)

    def complain(self, code: str, place: str, text: str, *, number: int = 1) -> None:
        """Report something wrong with the input; see `Complaint`. Control characters are escaped: it stays one line."""
        complaint = Complaint(code, _one_line(place), _one_line(text))
        if code in NOT_UNDERSTOOD and self.inputs:
            self._count_not_understood(complaint, number)
        self.latest[code] = complaint
        if self.counts[code] < MAX_EXAMPLES:
            self.complaints.append(self.latest[code])
        self.counts[code] += number

    def begin_input(self, name: str) -> None:
        """Count what follows for another input: a file, a topic or a server. Names are unique."""
        if not self.inputs or self.inputs[-1].name != name:
            self.inputs.append(InputCount(name))

    def count_objects(self, number: int) -> None:
        """Count objects of the format, of those that `Feed.object_count` has, for the present input."""
        self.inputs[-1].objects += number

    def _count_not_understood(self, complaint: Complaint, number: int) -> None:
        own = self.inputs[-1]
        if complaint.code == "nothing-read" and (own.not_understood or own.passed_over):
            return  # it is about these
        own.not_understood += number
        own.within += number * NOT_UNDERSTOOD[complaint.code]
        own.first = own.first or complaint

    def lines_for_inputs(self) -> list[str]:
        """Return a text per input: how much of it was read, passed over and not understood."""
        lines = [_CONTROL.sub(_escaped, own.line()) for own in self.inputs[:MAX_EXAMPLES]]
        return [*lines, *([f"{len(self.inputs) - len(lines):,} more inputs"] if len(lines) < len(self.inputs) else [])]

    def lines_for_not_understood(self) -> list[str]:
        """Return a text per input of which more than a tenth is not understood, with the first such line."""
        own_lines = [own for own in self.inputs if not own.is_mostly_read]
        return [_CONTROL.sub(_escaped, own.line_for_not_understood()) for own in own_lines[:MAX_EXAMPLES]]

    def pass_over(self, passed: PassedOver) -> None:
        """Count objects that say nothing that is used, for the present input."""
        self._note_passed(passed)
        if self.inputs:
            self.inputs[-1].passed_over += passed.number
            self.inputs[-1].within += passed.number * passed.is_counted

    def _note_passed(self, passed: PassedOver) -> None:
        entry = self.passed_over.setdefault(passed.name, PassedCount())
        kind = passed.kind if passed.kind in entry.kinds or len(entry.kinds) < MAX_KINDS else "another kind"
        entry.kinds[kind] += passed.number
        entry.bytes += passed.size

    def claim(self, qmgr: str, queue: str, source: str) -> Complaint | None:
        """Return a complaint if another source already reports puts and gets of a queue: two count them twice."""
        first = self._sources.setdefault((qmgr, queue), source)
        if first == source:
            return None
        text = f"puts and gets of {queue} of {qmgr} come from {first} already; those of {source} are left out"
        return Complaint("two-sources", f"{qmgr}/{queue}", text)

    def cover(
        self,
        source: str,
        qmgr: str,
        name: str,
        interval: tuple[int, int],
        *,
        puts: int = 0,
        gets: int = 0,
        peak_error: int = 0,
        length_error: int = 0,
    ) -> None:
        """Report that a source, such as "QQST", has told what happened in an interval."""
        start, end = interval
        if is_dynamic(name) and (self.estate is None or (qmgr, name) not in self.estate.queue_routes):
            name = DYNAMIC_QUEUES
        key = (source, qmgr, name)
        entry = self.coverage.get(key)
        if entry is None:
            if len(self.coverage) >= MAX_NAMES:
                return
            entry = self.coverage[key] = Coverage(source, qmgr, name, start, end)
        entry.start, entry.end = min(entry.start, start), max(entry.end, end)
        entry.intervals += 1
        entry.longest_us = max(entry.longest_us, end - start)
        entry.covered_us += end - start
        entry.puts += puts
        entry.gets += gets
        entry.peak_error = max(entry.peak_error, peak_error)
        entry.length_error += length_error

    def note_reported(self, source: str, qmgr: str, interval: tuple[int, int]) -> None:
        """Keep that a source has reported the queues of a queue manager for an interval; arguments as of `cover`."""
        if (source, qmgr) in self.reported or len(self.reported) < MAX_NAMES:
            self.reported.setdefault((source, qmgr), Reported(*interval)).add(*interval)

    def note_peak(self, store: str, time: int, entries: int, elements: int, full: int) -> None:
        """Keep a peak of a structure; 0 means that none was observed, not that it was empty."""
        if not (entries or elements or full) or (store not in self.peaks and len(self.peaks) >= MAX_NAMES):
            return
        peak = self.peaks.setdefault(store, Peak(store))
        if elements >= peak.elements:
            peak.time = time
        peak.entries, peak.elements = max(peak.entries, entries), max(peak.elements, elements)
        peak.full += full

    def account(self, items: Iterable[Item]) -> Iterator[Event]:
        """Yield the events of what a feed yields; count everything else."""
        for item in items:
            if isinstance(item, Complaint):
                self.complain(item.code, item.place, item.text, number=item.number)
            elif isinstance(item, PassedOver):
                self.pass_over(item)
            else:
                yield item

    def sift(
        self, items: Iterable[Item], aside: Callable[[Event], None] | None = None, *, is_end: bool = False
    ) -> Iterator[Event]:
        """Yield the events that the estate can take, and the heartbeats of idle stores, in no order of time."""
        for event in self.account(items):
            error = _wrong(event)
            if error is not None:
                self.complain(f"event-{error.reason}", str(event.get("qmgr")), error.detail)
            elif self.is_known(event["qmgr"], event["time"], queue=event.get("queue"), store=event.get("store")):
                self.events += 1
                yield with_resync(event) if self.resync and event["op"] == "MEASURE" else event
            else:
                self.aside += 1
                if aside is not None:
                    aside(event)
        for heartbeat in self.idle.heartbeats(is_end=is_end):
            self.events += 1
            yield heartbeat

    def is_known(self, qmgr: str, time: int, *, queue: str | None = None, store: str | None = None) -> bool:
        """Return True if the estate has a name; count one that it lacks. Arguments as of `note_unknown`."""
        if self.estate is None:
            return True
        try:
            if queue is not None:
                self.estate.route_of_queue(qmgr, queue)
            elif store is not None:
                self.estate.route_of_store(qmgr, store)
            else:
                self.estate.routes_of_qmgr(qmgr)
        except RoutingError:
            self.note_unknown(qmgr, time, queue=queue, store=store)
            return False
        return True

    def group_of(self, qmgr: str) -> str | None:
        """Return the queue-sharing group of a queue manager: that of the estate, else the one seen; or None."""
        config = None if self.estate is None else self.estate.queue_managers.get(qmgr)
        return (config.queue_sharing_group if config else None) or self.facts.group_of(qmgr)

    def note_unknown(self, qmgr: str, time: int, *, queue: str | None = None, store: str | None = None) -> None:
        """Count a name that the estate lacks, but for dynamic queues and those of the system. `qmgr` "": not known."""
        if queue is not None and is_passed_over(queue):  # each dynamic name is a new one
            self._note_passed(PassedOver(OF_SYSTEM if queue.startswith(_SYSTEM) else DYNAMIC, qmgr or "?"))
            return
        entry = self.unknown.get((qmgr, queue or store or ""))
        if entry is None:
            if len(self.unknown) >= MAX_NAMES:
                return
            entry = self.unknown[qmgr, queue or store or ""] = UnknownName(qmgr, queue, store, 0, time)
        entry.events += 1
        entry.first = min(entry.first, time)

    def note_unplaced(self, qmgr: str, queue: str) -> None:
        """Keep the name of a queue that the estate lacks, and whose definition was not seen."""
        if len(self.unplaced) < MAX_NAMES:
            self.unplaced.add((self.group_of(qmgr) or qmgr, queue))

    def lines_for_passed_over(self) -> list[str]:
        """Return a text per name of objects that were passed over: their number, bytes and kinds."""
        return [_passed_line(name, passed) for name, passed in sorted(self.passed_over.items())]

    def lines_for_unknown(self) -> list[str]:
        """Return a text per unknown name: what it is, how often, and the lines for the estate that would take it."""
        return [self._line_for(unknown) for _, unknown in sorted(self.unknown.items())]

    def _line_for(self, unknown: UnknownName) -> str:
        events = f"{as_count(unknown.events, 'event')} from {as_text(unknown.first)}"
        return _CONTROL.sub(_escaped, f"{unknown.label}: {events}; add {self.estate_line(unknown)}")

    def estate_line(self, unknown: UnknownName) -> str:
        """Return the lines for the estate, joined by blanks, that would take a name, with what was seen of it."""
        config = None if self.estate is None else self.estate.queue_managers.get(unknown.qmgr)
        platform = config.platform if config else None
        group = self.group_of(unknown.qmgr)
        return self.facts.line_for(unknown.qmgr, unknown.queue, unknown.store, platform, group)


def is_passed_over(queue: str) -> bool:
    """Return True for a queue of the system, and for a dynamic one."""
    return queue.startswith(_SYSTEM) or is_dynamic(queue)


def find_contradiction(measured: Mapping[str, Any], store: str, place: str) -> Complaint | None:
    """Return a complaint about fields of a MEASURE that contradict each other, or None."""
    text = contradiction(measured)
    return None if text is None else Complaint("inconsistent", place, f"{store}: {text}")


def with_resync(event: Event) -> Event:
    """Return a MEASURE that asks for a resync; one without levels, of facts of queues alone, as it is."""
    if event["measured"].keys() <= {"queues", "asked"}:
        return event
    measured: Measured = {**event["measured"], "resync": True}
    return {**event, "measured": measured}


def _wrong(event: Event) -> EventError | None:
    values: Mapping[str, object] = event
    try:
        for name in _CHECKED:
            if name in values:
                FIELD[name].checked(values[name])
        if event["op"] == "MEASURE" and "measured" in event:
            check_measured(event["measured"])
    except EventError as error:
        return error
    return None


def _passed_line(name: str, passed: PassedCount) -> str:
    number = passed.kinds.total()
    kinds = [f"{count:,} of {kind}" for kind, count in passed.kinds.most_common(_SHOWN_KINDS)]
    if len(passed.kinds) > len(kinds):
        kinds.append(f"{len(passed.kinds) - len(kinds):,} more kinds")
    size = f", {passed.bytes:,} bytes" if passed.bytes else ""
    return _CONTROL.sub(_escaped, f"{number:,} {_plural(name, number)}{size} ({', '.join(kinds)})")


def _objects(number: int) -> str:
    return f"{number:,} line{'s' * (number != 1)} or object{'s' * (number != 1)}"


def _plural(name: str, number: int) -> str:
    """Return the name of objects, whose words before "of" have a plural with s."""
    first, middle, rest = name.partition(" of ")
    return name if number == 1 else f"{first}s{middle}{rest}"


def _one_line(text: str) -> str:
    return _CONTROL.sub(_escaped, text[:_MAX_WORDS])


def _escaped(match: re.Match[str]) -> str:
    return ascii(match[0])[1:-1]
