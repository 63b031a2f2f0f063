"""Metrics of mq_prometheus and mq_json about queues and page sets, as counts of intervals and measurements.

Names: [IBM: mq-metric-samples and mq-golang, metrics.txt and mqmetric]. On z/OS counts come from RESET QSTATS and have
no bytes; on distributed platforms from the publications of statistics. On z/OS a collector polls the queue manager once
per `pollInterval` and repeats the same values at each scrape or collection in between [IBM: mq-metric-samples,
exporter.go of mq_prometheus and mq_json]. So if no value of a queue manager has changed, they are not new counts until
its poll interval is over: that of the option, else the shortest time between two changes so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from kernels.json_scan import TIME_HIGH, TIME_LOW
from twin.estate import QueueFile
from twin.events import Event, Measured
from twin.feeds.intake import Complaint, Item, PassedOver, find_contradiction
from twin.feeds.intervals import Flows, Puts, events_of, net, peak_error
from twin.feeds.protocol import DEFAULT_LENGTH, Feed

MAX_COUNT = 999_999_999  # messages of an interval; RESET QSTATS counts no further [IBM: RESET QSTATS]
MAX_VALUE = 2.0**53  # exact in a double
MAX_OBJECTS = 100_000  # queues whose last interval and counters are kept
MAX_COLLECTIONS = 100_000  # times of collections that wait for the rest of their points
_LONGEST_POLL_US = 600_000_000  # poll interval until one was seen [assumed]
_EARLIEST = 0.9  # poll intervals; no poll comes sooner, but collections have times of their own
_GAP = 3  # poll intervals without a collection
MAX_KIND = 40  # characters of the kind of what is passed over
MAX_NAME = 100  # characters of a name that is passed over
OTHER_METRICS = "sample of other metrics"
UNUSED_METRICS = "value of names that are not used"
_REPEATED = "collection of unchanged values"


class Row(NamedTuple):
    """A value in the data of a source, and the field that it becomes."""

    name: str  # name of a metric, column or attribute
    field: str  # field of a MEASURE, or metric of `MetricEvents`; "scm.used" is a field in another one
    unit: int = 1  # the field's value for each 1 of the source's, such as bytes for a megabyte


def measured_of(rows: Iterable[Row], values: Mapping[str, float | None]) -> Measured:
    """Return the fields that have values; -1 and other negative ones mean no value."""
    measured: dict[str, Any] = {}
    for name, path, unit in rows:
        value = values.get(name)
        if value is not None and value >= 0:
            outer, _, inner = path.rpartition(".")
            part = measured.setdefault(outer, {}) if outer else measured
            part[inner] = int(value) * unit
    return cast("Measured", measured)


def kind_of(name: str) -> str:
    """Return the first two words of the name of a metric: what it is about."""
    return "_".join(name.split("_")[:2])[:MAX_KIND] or "?"


Names = tuple[tuple[str, ...], ...]
"""Names of a count: ways in which sources write it, each the names whose values sum to it. The first whole one counts.

The names of statistics events are those of `useStatistics`, since version 5.7.0.
"""

PERSISTENT = ("mqput_persistent_message_count", "mqput1_persistent_message_count")
NONPERSISTENT = ("mqput_non_persistent_message_count", "mqput1_non_persistent_message_count")
_DESTRUCTIVE = ("destructive_mqget_non_persistent_message_count", "destructive_mqget_persistent_message_count")
_STATISTICS_BYTES = ("put_non_persistent_message_bytes_count", "put_persistent_message_bytes_count")
PUTS: Names = (("mqput_mqput1_count",), ("mqput_message_count", "mqput1_message_count"), (*NONPERSISTENT, *PERSISTENT))
PUT_BYTES: Names = (("mqput_bytes",), ("put_message_bytes_count",), _STATISTICS_BYTES)
GETS: Names = (_DESTRUCTIVE, ("destructive_mqget_message_count",), ("mqget_count",))
EXPIRED: Names = (("expired_messages",), ("expired_message_count", "purged_message_count"), ("expired_message_count",))
ROLLED_BACK: Names = (("rolled_back_mqput_count",),)
DIRECT: Names = (("queue_avoided_put_count",),)
_DIRECT_PCT = "queue_avoided_puts_percentage"
_OF_COUNTS = (PUTS, PUT_BYTES, GETS, EXPIRED, ROLLED_BACK, DIRECT)
COUNTS = {name for names in _OF_COUNTS for way in names for name in way}
_OF_STATISTICS = {"mqput_message_count", "destructive_mqget_message_count", "put_message_bytes_count"}
_HALVES = (  # names that a source writes together
    _DESTRUCTIVE,
    _STATISTICS_BYTES,
    (NONPERSISTENT[0], PERSISTENT[0]),
    (NONPERSISTENT[1], PERSISTENT[1]),
    ("mqput_message_count", "mqput1_message_count", "expired_message_count", "purged_message_count"),
    ("mqput_bytes", "expired_messages"),
)
PAGES = (
    Row("pages_total", "pages_total"),
    Row("pages_unused", "pages_unused"),
    Row("pages_persistent", "pages_persistent"),
    Row("pages_nonpersistent", "pages_nonpersistent"),
    Row("expansion_count", "expansions"),
)
QUEUE_FILE = (
    Row("depth", "messages"),
    Row("qfile_current_size", "file_bytes", 1 << 20),  # megabytes, rounded up
)
NAMES = {
    *COUNTS,
    *PERSISTENT,
    *NONPERSISTENT,
    _DIRECT_PCT,
    *(row.name for row in (*PAGES, *QUEUE_FILE)),
}  # metrics that are read

Key = tuple[str, str, str]  # "queue" or "pageset", queue manager, name


Values = dict[Key, dict[str, float]]


@dataclass(slots=True)
class Collected:
    """Values collected at a time, by object and metric."""

    time: int  # microseconds
    place: str  # where they stand
    values: Values = field(default_factory=dict)
    cumulative: set[str] = field(default_factory=set)  # metrics that count from the start
    platforms: dict[str, bool] = field(default_factory=dict)  # True of a queue manager on z/OS, where the data say it

    def add(self, kind: str, qmgr: str, name: str, metric: str, value: float) -> None:
        """Add a value; anything but a number that an object can have is left out."""
        if not -MAX_VALUE <= value <= MAX_VALUE:
            return
        self.values.setdefault((kind, qmgr, name), {})[metric] = value

    def note_platform(self, qmgr: str, text: str) -> str:
        """Keep the platform of a queue manager, as collectors name it; return it as the estate does; "" is none."""
        if not text:
            return ""
        self.platforms[qmgr] = is_zos = text.upper() in {"ZOS", "MVS"}
        return "zos" if is_zos else "distributed"

    def merge(self, later: Collected) -> None:
        """Add the values of another part of the same collection; its own win."""
        for key, values in later.values.items():
            self.values.setdefault(key, {}).update(values)
        self.cumulative |= later.cumulative
        self.platforms |= later.platforms


class Collections:
    """Collections that wait for the rest of their points: these may come in several objects, answers or files."""

    def __init__(self) -> None:
        self._waiting: dict[int, Collected] = {}

    @property
    def latest(self) -> int:
        """Time of the youngest one that waits, microseconds; 0: none."""
        return max(self._waiting, default=0)

    def add(self, parts: Mapping[int, Collected]) -> Iterator[Collected]:
        """Take parts of collections by time, and yield those that are complete: all are younger."""
        if (parts and min(parts) > self.latest) or len(self._waiting) > MAX_COLLECTIONS:
            yield from self.rest()
        for time, part in parts.items():
            known = self._waiting.get(time)
            if known is None:
                self._waiting[time] = part
            else:
                known.merge(part)

    def rest(self) -> Iterator[Collected]:
        """Yield, and no longer hold, all of them in order of time."""
        waiting, self._waiting = self._waiting, {}
        for _, collected in sorted(waiting.items()):
            yield collected


@dataclass(slots=True)
class _Poll:
    """Values that a queue manager gave last."""

    values: Values  # by object and metric
    last: int  # when it was asked for them: the first collection that had them
    seen: int  # the last collection
    changed: int | None  # the last collection with new values, except the first one; None: there was none
    interval: int | None  # the poll interval, as far as it is known


class MetricEvents:
    """Events of what was collected again and again; `may_repeat`: the source may write earlier values again."""

    def __init__(self, feed: Feed, source: str, *, may_repeat: bool = True) -> None:
        self._source = source
        self._may_repeat = may_repeat
        self._feed, self._intake, self._options = feed, feed.intake, feed.options
        self._times: dict[Key, int] = {}
        self._counters: dict[tuple[Key, str], float] = {}
        self._polls: dict[str, _Poll] = {}  # by queue manager that repeats its values

    def events(self, collected: Collected) -> Iterator[Item]:
        """Yield the events; what is not younger than the last values of an object is left out."""
        if not TIME_LOW <= collected.time < TIME_HIGH:
            text = f"time {collected.time}; expected: the years 2000 to 2100"
            yield Complaint("bad-time", collected.place, text)
            return
        by_qmgr: dict[str, Values] = {}
        for key, values in sorted(collected.values.items()):
            by_qmgr.setdefault(key[1], {})[key] = values
        for qmgr, own in by_qmgr.items():
            if not self._repeats(qmgr, own, collected):
                yield from self._objects(own, collected.time, collected)
                continue
            for polled in self._polled(qmgr, own, collected.time):
                if isinstance(polled, PassedOver):
                    yield polled
                else:
                    yield from self._objects(polled[1], polled[0], collected)

    def notes(self) -> list[str]:
        """Return a text per queue manager whose poll interval was taken from its values."""
        return [
            f"{qmgr}: its values change every {poll.interval / 1e6:g} s at the least, taken as the poll interval of "
            "its collector; --poll-s sets another"
            for qmgr, poll in sorted(self._polls.items())
            if poll.interval is not None and self._options.poll_s is None
        ]

    def _repeats(self, qmgr: str, values: Values, collected: Collected) -> bool:
        """Return True if collections of a queue manager may have the values of an earlier one."""
        if not self._may_repeat or self._options.poll_s is not None:
            return self._may_repeat
        if any(not _OF_STATISTICS.isdisjoint(own) for own in values.values()):
            return True  # statistics events come once per STATINT
        config = None if self._intake.estate is None else self._intake.estate.queue_managers.get(qmgr)
        return collected.platforms.get(qmgr, config is not None and config.platform == "zos")

    def _polled(self, qmgr: str, values: Values, time: int) -> Iterator[tuple[int, Values] | PassedOver]:
        """Yield the time and values of each poll that a collection shows: its own, and earlier ones with equal values.

        An earlier one is certain where a collection after it, which had the old values, is followed by another such
        one, or by new values that come half an interval too late.
        """
        poll = self._polls.get(qmgr)
        if poll is None:
            interval = None if self._options.poll_s is None else round(self._options.poll_s * 1e6)
            self._polls[qmgr] = _Poll(values, time, time, None, interval)
            yield time, values
            return
        if time <= poll.seen:
            yield time, values  # a complaint follows
            return
        is_changed = _differ(values, poll.values)
        if is_changed and self._options.poll_s is not None and poll.changed is not None:
            is_changed = time - poll.last >= _EARLIEST * self._options.poll_s * 1e6
        interval = poll.interval or _LONGEST_POLL_US
        if time - poll.seen > _GAP * interval and not is_changed:
            poll.last = time  # nothing is known of the polls in a gap
        while poll.last + interval <= poll.seen and (not is_changed or 2 * (time - poll.last) >= 3 * interval):
            poll.last += interval
            yield poll.last, poll.values
        poll.seen = time
        if not is_changed:
            yield PassedOver(_REPEATED, qmgr, is_counted=True)
            added = {key: values[key] for key in values.keys() - poll.values.keys()}
            poll.values |= added
            yield time, added
            return
        if self._options.poll_s is None and poll.changed is not None:
            poll.interval = min(time - poll.changed, poll.interval or time)
        poll.values, poll.last, poll.changed = values, time, time
        yield time, values

    def _objects(self, objects: Values, time: int, collected: Collected) -> Iterator[Item]:
        for key, values in objects.items():
            last = self._times.get(key)
            if last is not None and time <= last:
                text = f"{key[1]}/{key[2]} is not younger than before; it is left out"
                yield Complaint("again", collected.place, text)
                continue
            if last is None and len(self._times) >= MAX_OBJECTS:
                continue
            self._times[key] = time
            if key[0] == "pageset":
                yield from self._page_set(key, values, time, collected.place)
                continue
            self._feed.expect("queue", _facts_of(values), collected.place, also=_missing_partners(values))
            counts = self._deltas(key, values, collected.cumulative)
            measured = list(self._queue_file(key, counts, time))
            if last is not None:
                yield from self._flows(key, counts, (last, time), collected.place, is_measured=bool(measured))
            yield from measured

    def _deltas(self, key: Key, values: Mapping[str, float], cumulative: Iterable[str]) -> dict[str, float]:
        """Return the values with counters since the last ones. A counter that is smaller began anew."""
        result = dict(values)
        for metric in set(cumulative) & values.keys():
            before = self._counters.get((key, metric))
            self._counters[key, metric] = value = values[metric]
            result[metric] = 0.0 if before is None else value - before if value >= before else value
        return result

    def _flows(
        self, key: Key, values: Mapping[str, float], interval: tuple[int, int], place: str, *, is_measured: bool
    ) -> Iterator[Item]:
        _, qmgr, queue = key
        count, gets = _sum(values, PUTS), _sum(values, GETS)
        if count is None and gets is None:
            return
        if other := self._intake.claim(qmgr, queue, self._source):
            yield other
            return
        count, gets, expired = count or 0, gets or 0, _sum(values, EXPIRED) or 0
        rolled_back = _sum(values, ROLLED_BACK) or 0
        largest = max(count, gets, expired, rolled_back)
        if largest > MAX_COUNT:
            text = f"{queue}: {largest:,} messages in an interval; expected: at most {MAX_COUNT:,}"
            yield Complaint("impossible-count", place, text)
            return
        size = _sum(values, PUT_BYTES)
        if size is None and count:
            length = self._options.length
            if length is None:
                length = DEFAULT_LENGTH
                words = f"{length} bytes each are assumed; expected: --length, or statistics"
            else:
                words = f"{length} bytes each are taken, as --length says"
            size = count * length
            text = f"puts of {queue} without bytes, {words}"
            yield from self._feed.once(Complaint("no-size", place, text), f"{qmgr}/{queue}")
        puts = _by_persistence(count, size or 0, _present(values, PERSISTENT), _present(values, NONPERSISTENT))
        direct = _direct(values, count)
        flows = Flows(
            qmgr=qmgr,
            queue=queue,
            start=interval[0],
            end=interval[1],
            puts=net(puts, rolled_back + direct),
            gets=max(0, gets - direct),
            expired=expired + max(0, rolled_back - max(0, count - direct)),
        )
        self._intake.cover(
            self._source,
            qmgr,
            queue,
            interval,
            puts=count,
            gets=gets,
            peak_error=peak_error(flows, self._options.slice_s),
            length_error=count,
        )
        self._intake.idle.note_read(qmgr, queue, interval[1], has_events=is_measured or flows.has_events)
        yield from events_of(flows, self._options.slice_s)

    def _queue_file(self, key: Key, values: Mapping[str, float], time: int) -> Iterator[Event]:
        """Yield the measurement of a queue file, the only store of which a queue's depth is all."""
        store = f"{key[1]}/{key[2]}"
        if self._intake.estate is None or not isinstance(self._intake.estate.stores.get(store), QueueFile):
            self._intake.is_known(key[1], time, queue=key[2])
            return
        measured = measured_of(QUEUE_FILE, values)
        if measured:
            yield {"time": time, "qmgr": key[1], "op": "MEASURE", "store": store, "measured": measured}

    def _page_set(self, key: Key, values: Mapping[str, float], time: int, place: str) -> Iterator[Item]:
        _, qmgr, name = key
        if not name.isascii() or not name.isdigit():
            return
        self._feed.expect("page set", values, place)
        measured = measured_of(PAGES, values)
        if "pages_persistent" in measured and "pages_nonpersistent" in measured:
            measured["pages_used"] = measured["pages_persistent"] + measured["pages_nonpersistent"]
        if not measured:
            return
        if wrong := find_contradiction(measured, f"page set {name} of {qmgr}", place):
            yield wrong
            return
        self._intake.facts.add("page_set", f"{qmgr}/{int(name)}", self._source, pages=measured.get("pages_total"))
        store = f"{qmgr}/PS{int(name):02d}"
        yield {"time": time, "qmgr": qmgr, "op": "MEASURE", "store": store, "measured": measured}


def _differ(values: Values, earlier: Values) -> bool:
    """Return True if a value of an object differs. One that is missing in a scrape, or new, is no difference."""
    return any(
        value != before.get(metric, value)
        for key, metrics in values.items()
        if (before := earlier.get(key)) is not None
        for metric, value in metrics.items()
    )


def _sum(values: Mapping[str, float], names: Names) -> int | None:
    """Return a count, not below 0: by the first whole way of writing it, else by what is there; None: nothing."""
    whole = next((way for way in names if all(name in values for name in way)), None)
    return _present(values, whole or next((way for way in names if any(name in values for name in way)), ()))


def _present(values: Mapping[str, float], names: Iterable[str]) -> int | None:
    """Return the sum of the values that are present and not negative; None if there are none."""
    present = [values[name] for name in names if name in values]
    return int(max(0.0, sum(present))) if present else None


def _direct(values: Mapping[str, float], count: int) -> int:
    """Return the puts that went to a waiting getter: a count in statistics, a percentage in publications."""
    direct = _sum(values, DIRECT)
    if direct is None:
        direct = round(count * min(100.0, max(0.0, values.get(_DIRECT_PCT, 0.0))) / 100)
    return min(direct, count)


def _facts_of(values: Mapping[str, float]) -> set[str]:
    """Return what the names of a queue's values show of it, as `Format.shows` has it."""
    counts = {"puts": PUTS, "gets": GETS}
    facts = {what for what, names in counts.items() if any(name in values for way in names for name in way)}
    return facts | ({"depth"} & values.keys())


def _missing_partners(values: Mapping[str, float]) -> Iterator[str]:
    """Yield the names that are missing where a source has written others that belong to them."""
    for names in _HALVES:
        missing = [name for name in names if name not in values]
        if len(missing) < len(names):
            yield from missing


def _by_persistence(count: int, size: int, persistent: int | None, nonpersistent: int | None) -> tuple[Puts, ...]:
    """Return puts split by persistence in the proportion that was counted; all nonpersistent if none was."""
    counted = (persistent or 0) + (nonpersistent or 0)
    if not counted or not persistent:
        return (Puts(count=count, bytes=size),)
    first = count * persistent // counted
    first_bytes = size * first // count if count else 0
    return (Puts(count=first, bytes=first_bytes, persistent=True), Puts(count=count - first, bytes=size - first_bytes))
