"""Protocol of a feed: pages of bytes in, events and complaints out; and the formats that have one.

- A feed never raises an error for its input: what it cannot read is a complaint, and it continues behind that. It
  yields each event that its data show, also of names that the estate lacks: `Intake.sift` puts those aside. What it
  keeps between pages is bounded, so that a page may come from a file, a topic or a server.
- Pages of one stream continue each other: a record, an object or a message may begin in one page and end in another.
"""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from enum import StrEnum
from importlib import import_module
from types import MappingProxyType
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from twin.base.errors import UsageError
from twin.base.hooks import FEEDS, WithAdded
from twin.base.listings import end_of_lines
from twin.feeds.intake import Complaint, Intake, Item
from twin.feeds.intervals import Flows, events_of, implausible, peak_error

DEFAULT_LENGTH = 1024  # bytes of a message if nothing shows them [assumed]
NOT_BY_TIME = (1 << 63) - 1  # `Feed.passed` of a feed that holds back what is not whole, whatever its time
_MAX_SAID = 10_000  # complaints that are made once


@dataclass(frozen=True, slots=True)
class Page:
    """A piece of input: a file, the answer of a server, the value of a Kafka record.

    Attributes:
        data: its bytes; of a large file a mapped copy, so that it is not in memory.
        name: what complaints call it: the file, the address, topic/partition@offset.
        time: when it was collected, microseconds since 1970, for data without a time of their own; None: not known.
        headers: headers of a Kafka record or an HTTP answer, names in lower case.
        before: microseconds since 1970; of a page that is read again after a restart: its events until then were
            returned before. 0: it is new.
        stream: what it continues, a file that grows or records of a partition and key; "": it stands alone.
    """

    data: bytes | mmap.mmap
    name: str
    time: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    before: int = 0
    stream: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedOptions:
    """Facts that the data lack, and choices of the user."""

    slice_s: float = 10.0  # seconds; counts of an interval are spread over slices of about this length
    zone: tzinfo | None = None  # of local times without an offset; None: UTC, with a complaint
    zones: Mapping[str, tzinfo] = field(default_factory=dict)  # the same of single files, by path or name
    date: str | None = None  # ISO date of the first line of texts that have only times of day
    qmgr: str | None = None  # queue manager of data that name none
    prefixes: Mapping[str, str] = field(default_factory=dict)  # command prefix -> queue manager
    flows: str = "statistics"  # source of puts and gets in SMF: "statistics" (QQST) or "accounting" (WQ)
    lpars: Mapping[str, str] = field(default_factory=dict)  # LPAR of a span -> queue manager
    emitter: str = "queue-manager"  # whose spans are taken: "queue-manager" or "application"
    sampled: float | None = None  # share of the messages that have spans, above 0; None: as their trace state says
    queue: str | None = None  # original queue of a streaming queue
    length: int | None = None  # bytes of messages whose size is not reported; None: the mean of the queue
    poll_s: float | None = None  # poll interval of mq_prometheus or mq_json; None: as values of z/OS change
    late_s: float = 30.0  # seconds by which a span may come later than younger ones

    def of_input(self, name: str) -> FeedOptions:
        """Return those of an input: a file may have a zone of its own. name: its path."""
        zone = self.zones.get(name) or self.zones.get(name.rpartition("/")[2])
        return self if zone is None else replace(self, zone=zone)


class Feed(ABC):
    """Reader of one format. Pages come in the order of their source.

    Attributes:
        reads: what is of the format, for the complaint about a page in which nothing is.
        intake: takes facts, covered time and unknown names; what a feed yields is counted there.
        options: facts that the data lack.
        object_count: number of objects of the format so far, whatever they say.
        passed: microseconds; no event up to here is held back.
        page_latest: microseconds; the latest event of the last page that may be held back; 0: none.
        has_files: True if all pages are files, after which `finish` is called: what they show together may wait for it.
        begun_in: names of the pages, of streams, in which something begins that is not whole yet, and how much.
        announced: by store and attribute the value that an ALTER announced last, and that of the estate then.
    """

    reads: ClassVar[str]
    is_json: ClassVar[bool] = False  # its pages may be JSON, within the objects of other programs
    shows: Mapping[str, tuple[str, ...]] = MappingProxyType({})  # see `Format.shows`

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        """Start without input."""
        self.intake = intake
        self.options = options
        self.object_count = 0
        self.passed = 0
        self.page_latest = 0
        self.has_files = False
        self.begun_in: Counter[str] = Counter()
        self.announced: dict[str, dict[str, tuple[Any, Any]]] = {}
        self._complained: set[tuple[str, str]] = set()
        self._lasting: dict[str, str] = {}  # text of the complaint by subject

    @abstractmethod
    def take(self, page: Page) -> Iterable[Item]:
        """Yield the events of a page, in any order, and what is wrong or passed over in it."""

    def finish(self) -> Iterable[Item]:
        """Yield the events that were held back for later pages, at the end of the input."""
        return ()

    def whole_bytes(self, data: bytes) -> int:
        """Return where the last whole part of a stream ends, of which `data` is the beginning: a line or a record."""
        return end_of_lines(data)

    def note_begun(self, before: str, after: str) -> None:
        """Move an unfinished part from the page in which it began to the one in which it begins now; "": none."""
        if before != after:
            self.begun_in[after] += 1
            self.begun_in[before] -= 1
            for name in (before, after):
                if not name or not self.begun_in[name]:
                    del self.begun_in[name]

    def expect(self, kind: str, names: Container[str], place: str, *, also: Iterable[str] = ()) -> None:
        """Note which of the names that its kind has an object lacks.

        Args:
            kind: kind of the object, a key of `Format.shows`.
        """
        lacking = [name for name in self.shows.get(kind, ()) if name not in names]
        self.intake.soundness.note(kind, (*lacking, *also), place)

    def once(self, complaint: Complaint, subject: str = "") -> Iterator[Complaint]:
        """Yield a complaint, unless one of its code about this subject was yielded before."""
        key = (complaint.code, subject)
        if key not in self._complained and len(self._complained) < _MAX_SAID:
            self._complained.add(key)
            yield complaint

    def lasting(self, subject: str, complaint: Complaint | None) -> Iterator[Complaint]:
        """Yield a complaint about a state when it begins or changes. complaint: None when the state is over."""
        text = None if complaint is None else complaint.text
        if text == self._lasting.get(subject):
            return
        if complaint is None:
            del self._lasting[subject]
        elif subject in self._lasting or len(self._lasting) < _MAX_SAID:
            self._lasting[subject] = complaint.text
            yield complaint

    def flow_events(
        self, source: str, flows: Flows, place: str, *, is_one_length: bool = False, is_common: bool = True
    ) -> Iterator[Item]:
        """Yield the events of counts of an interval, and report its coverage.

        Impossible counts, and those of a second source of the queue, are a complaint.

        Args:
            source: data, such as "QQST".
            is_one_length: True if all messages are known to have the same length.
            is_common: True if the interval is that of all queues of the queue manager, so that its end is known.
        """
        if other := self.intake.claim(flows.qmgr, flows.queue, source):
            yield other
            return
        if wrong := implausible(flows):
            yield Complaint("bad-value", place, wrong)
            return
        stored = [puts.count for puts in flows.puts if not puts.direct]
        self.intake.cover(
            source,
            flows.qmgr,
            flows.queue,
            (flows.start, flows.end),
            puts=flows.messages,
            gets=flows.gets + flows.messages - sum(stored),
            peak_error=peak_error(flows, self.options.slice_s),
            length_error=0 if is_one_length else sum(stored),
        )
        if is_common:
            self.intake.note_reported(source, flows.qmgr, (flows.start, flows.end))
            self.intake.idle.note_read(flows.qmgr, flows.queue, flows.end, has_events=flows.has_events)
        yield from events_of(flows, self.options.slice_s)


class FeedFact(StrEnum):
    """A kind of fact about a store that feeds may show, beside what it holds."""

    CALLS = "puts and gets"
    LENGTHS = "the length of each message"
    PRIORITIES = "priorities"
    UNITS = "units of work"
    READERS = "who has queues open"


LEVELS, FLOWS, DEFINITIONS, POLICY = "levels", "flows", "definitions", "policy"  # what a first answer needs of files
Requests = Callable[[int, int], Sequence[tuple[str, str]]]  # see `Server.requests`
COMMANDS = "commands"  # `Server.requests` of queue managers that are asked by MQSC commands, one after another
ANY_TOPIC = ""  # `Format.topic` where the user names it
_MISSING: Any = None  # of a row


class Asked(NamedTuple):
    """Choices of the user about what a server is asked for."""

    url: str  # http or https, host and port
    interval_s: float  # seconds between two requests
    sysplex: str | None = None
    is_range: bool = False  # True if it is Prometheus itself, which has what was missed, too


class Server(NamedTuple):
    """How a format is asked for by HTTP."""

    interval_s: float = _MISSING  # seconds between two requests, without a choice of the user; of COMMANDS at least
    # module of this package, and function, which takes `Asked` and returns what to ask: (address, content type) of the
    # next requests, given start and end of the time since the last ones, microseconds; or COMMANDS
    requests: str = _MISSING


class Format(NamedTuple):
    """A format, in the order of docs/feeds.md.

    Attributes:
        reader: module of this package, and class; of a format that a distribution adds the class itself.
        facts: what it shows of a store beside what it holds; a test holds it against what the reader yields.
        gives: what a first answer about a site needs of it: LEVELS, FLOWS, DEFINITIONS, POLICY.
        is_file: True if `mqtwin import` takes it.
        topic: topic that its source writes by itself, or ANY_TOPIC, where `mqtwin collect` reads it through Kafka.
        server: how it is asked for, where `mqtwin collect` does.
        is_scaled: True if counts of statistics scale what it shows.
        has_true_clock: True if its times are the clock value of a record.
        shows: by kind of object the names that each of it has.
    """

    reader: str | type[Feed] = _MISSING
    facts: tuple[FeedFact, ...] = _MISSING
    gives: tuple[str, ...] = _MISSING
    is_file: bool = True
    topic: str | None = None
    server: Server | None = None
    is_scaled: bool = False
    has_true_clock: bool = False
    shows: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    @property
    def is_live(self) -> bool:
        """True if `mqtwin collect` takes it."""
        return self.topic is not None or self.server is not None

    @property
    def lacks(self) -> list[str]:
        """The parts that are missing: where it comes from, how it is read, what it shows."""
        parts = [part for part in ("reader", "facts", "gives") if getattr(self, part) is None]
        if self.server is not None:
            parts += [f"server.{part}" for part, value in self.server._asdict().items() if value is None]
        return parts if self.is_file or self.is_live else [*parts, "topic or server"]


# What each object of a sound input has, by kind. What is missing anywhere is one complaint about the whole input.
_METRICS = {
    "queue": ("puts", "gets", "depth"),
    "page set": ("pages_total", "pages_unused", "pages_persistent", "pages_nonpersistent"),
}
_EVENT_MESSAGES = {  # names as `twin.feeds.amqsevt` folds them
    "statistics queue": ("puts", "put1s", "putbytes", "gets", "msgsnotqueued", "msgsexpired", "msgspurged"),
    "accounting queue": ("puts", "put1s", "putbytes", "gets"),
    "activity trace": ("connectionid",),
    "put": ("threadid", "msgid", "msglength", "putoptions", "priority", "persistence", "compcode", "reasoncode"),
    "get": ("threadid", "msgid", "msglength", "getoptions", "compcode", "reasoncode"),
}
_SPANS = {"put span": ("message id", "priority", "persistence"), "get span": ("message id",)}  # of queue managers
_REPORTS = {  # columns of RMF
    "report CFACT": ("CFAPSTRU", "CFAPTYPE", "CFAPSYS", "CFAISTRU", "CFAICNAM", "CFAINAM"),
    "structure": ("CFAISTRS", "CFAILEL", "CFAILEM", "CFAIMAE", "CFAICUE"),
    "structure with SCM": ("CFAISSCP", "CFAISLTC", "CFAISLMC"),
    "coupling facility": ("CFOPTSD", "CFOPTSF"),
    "coupling facility with SCM": ("CFOPSCMA", "CFOPSMSC"),
}

_METRICS_PAGES = "prometheus:metric_requests"
_FLOWS = (FeedFact.CALLS, FeedFact.LENGTHS, FeedFact.PRIORITIES)

FORMATS: Mapping[str, Format] = {
    "smf": Format("smf:SmfFeed", (FeedFact.CALLS, FeedFact.READERS), (FLOWS,), topic=ANY_TOPIC, has_true_clock=True),
    "display": Format("display:DisplayFeed", (FeedFact.READERS,), (LEVELS,), topic=ANY_TOPIC),
    "rest": Format("rest:RestFeed", (FeedFact.READERS,), (LEVELS, DEFINITIONS), server=Server(30.0, COMMANDS)),
    "amqsevt": Format(
        "amqsevt:AmqsevtFeed", (*_FLOWS, FeedFact.UNITS), (FLOWS, POLICY), topic=ANY_TOPIC, shows=_EVENT_MESSAGES
    ),
    "otlp": Format("otlp:OtlpFeed", _FLOWS, (FLOWS,), topic="otlp_spans", is_scaled=True, shows=_SPANS),
    "dds": Format("rmf:DdsFeed", (), (LEVELS,), server=Server(60.0, "rmf:dds_requests"), shows=_REPORTS),
    "rmf": Format("rmf_print:RmfFeed", (), (LEVELS,)),
    "m3": Format(
        "rmf:M3Feed", (), (), server=Server(60.0, _METRICS_PAGES), shows={"coupling facility": ("size", "free storage")}
    ),
    "prometheus": Format(
        "prometheus:PrometheusFeed",
        (FeedFact.CALLS,),
        (LEVELS, FLOWS),
        server=Server(30.0, _METRICS_PAGES),
        shows=_METRICS,
    ),
    "mq_json": Format(
        "prometheus:MqJsonFeed", (FeedFact.CALLS,), (LEVELS, FLOWS, POLICY), topic=ANY_TOPIC, shows=_METRICS
    ),
    "odp": Format("odp:OdpFeed", (FeedFact.CALLS,), (LEVELS, FLOWS), topic=ANY_TOPIC),
    "connect": Format("connect:ConnectFeed", _FLOWS, (), is_file=False, topic=ANY_TOPIC),
}
for _name, _format in FORMATS.items():
    if _format.lacks:
        raise TypeError(f"format {_name} lacks {', '.join(_format.lacks)}; expected: a row of FORMATS with every part")


def _check(added: Format) -> str:
    is_whole = isinstance(added, Format) and not added.lacks
    return "" if is_whole else "twin.feeds.protocol.Format with reader, facts and gives"


FORMATS = WithAdded(FEEDS, FORMATS, _check)


def formats_with(fact: FeedFact) -> tuple[str, ...]:
    """Return the formats that show a fact."""
    return tuple(name for name, own in FORMATS.items() if fact in own.facts)


def formats_for(need: str) -> tuple[str, ...]:
    """Return the formats that give what a first answer needs."""
    return tuple(name for name, own in FORMATS.items() if need in own.gives)


def requests_to(server: Server, asked: Asked) -> Requests:
    """Return what to ask a server. UsageError: an option is missing."""
    requests: Requests = _load(server.requests)(asked)
    return requests


def _load(name: str) -> Any:
    """Return what a module of this package has: `module:name`."""
    module, _, own = name.partition(":")
    return getattr(import_module(f"twin.feeds.{module}"), own)


def make_feed(name: str, intake: Intake, options: FeedOptions | None = None) -> Feed:
    """Return the feed of a format. UsageError: there is no such format."""
    if name not in FORMATS:
        raise UsageError(f"{name}: no such format; expected: {', '.join(sorted(FORMATS))}")
    reader = FORMATS[name].reader
    feed: Feed = (_load(reader) if isinstance(reader, str) else reader)(intake, options or FeedOptions())
    feed.shows = FORMATS[name].shows
    return feed


# --- records in segments, and objects over several lines --------------------------------------------------------------
# Each stream keeps at most one that begins in a page and ends in a later one. What waits is bounded by its number, its
# bytes and its age by the times of the pages of its partition: the same pages in the same order give the same events,
# however far other partitions are read.

_MAX_STREAMS = 1000
_MAX_BYTES = 64 << 20
_MAX_AGE_US = 600 * 1_000_000


class Begun(Protocol):
    """A record or object that has begun in a stream."""

    begun_in: str  # name of the page in which it begins; "": nothing has begun that is not whole

    @property
    def size(self) -> int:
        """Bytes of it."""

    def give_up(self) -> Iterator[Complaint]:
        """Forget it, with a complaint if there is anything."""


_Begun = TypeVar("_Begun", bound=Begun)
_Item = TypeVar("_Item")


class Streams(Generic[_Begun]):
    """Records and objects that have begun, by stream of a feed; `make` returns what a stream keeps."""

    def __init__(self, feed: Feed, make: Callable[[], _Begun]) -> None:
        self._feed = feed
        self._make = make
        self._begun: dict[str, OrderedDict[str, tuple[int, _Begun]]] = {}  # by partition and stream: time, and what
        self._number = self._bytes = 0  # of these

    def take(self, page: Page, read: Callable[[_Begun], Iterator[_Item]]) -> Iterator[_Item | Complaint]:
        """Yield what is whole with a page: `read` yields it, given what has begun in pages before."""
        partition, time = partition_of(page.stream), page.time or 0
        own = self._begun.get(partition, OrderedDict())
        begun = own.pop(page.stream)[1] if page.stream in own else self._make()
        before, size = begun.begun_in, begun.size
        yield from read(begun)
        if not page.stream:
            yield from begun.give_up()
        self._note(before, begun.begun_in, begun.size - size)
        if begun.begun_in:
            self._begun.setdefault(partition, own)[page.stream] = time, begun
        while own and next(iter(own.values()))[0] < time - _MAX_AGE_US:
            yield from self._give_up(partition)
        while self._bytes > _MAX_BYTES or self._number > _MAX_STREAMS:
            oldest = {name: next(iter(others.values()))[0] for name, others in self._begun.items() if others}
            yield from self._give_up(min(oldest, key=lambda name: oldest[name]))

    def finish(self) -> Iterator[Complaint]:
        """Give up everything that has begun."""
        for partition, own in self._begun.items():
            while own:
                yield from self._give_up(partition)

    def _give_up(self, partition: str) -> Iterator[Complaint]:
        """Give up what has begun in the stream of a partition that has been silent for longest."""
        _, (_, begun) = self._begun[partition].popitem(last=False)
        self._note(begun.begun_in, "", -begun.size)
        yield from begun.give_up()

    def _note(self, before: str, after: str, more: int) -> None:
        """Move an unfinished part from the page in which it began to the one in which it begins now, with its bytes."""
        self._bytes += more
        self._number += bool(after) - bool(before)
        self._feed.note_begun(before, after)


def partition_of(stream: str) -> str:
    """Return a stream without its key: streams of one topic and partition have that in common."""
    return "/".join(stream.split("/", 2)[:2])
