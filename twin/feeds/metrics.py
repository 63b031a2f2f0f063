"""Metrics of mq_prometheus and mq_json about queues and page sets, as counts of intervals and measurements.

Names: [IBM: mq-metric-samples and mq-golang, metrics.txt and mqmetric]. On z/OS counts come from RESET QSTATS and have
no bytes; on distributed platforms from the publications of statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from kernels.json_scan import TIME_HIGH, TIME_LOW
from twin.estate import QueueFile
from twin.events import Event, Measured
from twin.feeds.intake import Intake
from twin.feeds.intervals import Flows, Puts, events_of, net, peak_error
from twin.feeds.protocol import FeedOptions

MAX_COUNT = 999_999_999  # messages of an interval; RESET QSTATS counts no further [IBM: RESET QSTATS]
MAX_VALUE = 2.0**53  # exact in a double
MAX_OBJECTS = 100_000  # queues whose last interval and counters are kept
_PageField = Literal["pages_total", "pages_unused", "pages_persistent", "pages_nonpersistent", "expansions"]

DEFAULT_LENGTH = 1024  # bytes of a message if nothing tells them [assumed]

PUTS = ("mqput_mqput1_count",)
PUT_BYTES = ("mqput_bytes",)
PERSISTENT = ("mqput_persistent_message_count", "mqput1_persistent_message_count")
NONPERSISTENT = ("mqput_non_persistent_message_count", "mqput1_non_persistent_message_count")
DESTRUCTIVE = ("destructive_mqget_persistent_message_count", "destructive_mqget_non_persistent_message_count")
GETS = ("mqget_count",)
EXPIRED = ("expired_messages",)
ROLLED_BACK = ("rolled_back_mqput_count",)
COUNTS = {*PUTS, *PUT_BYTES, *PERSISTENT, *NONPERSISTENT, *DESTRUCTIVE, *GETS, *EXPIRED, *ROLLED_BACK}
_DIRECT_PCT = "queue_avoided_puts_percentage"
_PAGES: Mapping[str, _PageField] = {
    "pages_total": "pages_total",
    "pages_unused": "pages_unused",
    "pages_persistent": "pages_persistent",
    "pages_nonpersistent": "pages_nonpersistent",
    "expansion_count": "expansions",
}
NAMES = {*COUNTS, *_PAGES, _DIRECT_PCT, "depth", "qfile_current_size"}  # metrics that are read
_MIB = 1 << 20

Key = tuple[str, str, str]  # "queue" or "pageset", queue manager, name


@dataclass(slots=True)
class Collected:
    """Values collected at a time by object and metric; `cumulative` names the metrics that count from the start."""

    time: int  # microseconds
    values: dict[Key, dict[str, float]] = field(default_factory=dict)
    cumulative: set[str] = field(default_factory=set)  # metrics

    def add(self, kind: str, qmgr: str, name: str, metric: str, value: float) -> None:
        """Add a value; one that is no number that an object can have is left out."""
        if not -MAX_VALUE <= value <= MAX_VALUE:
            return
        self.values.setdefault((kind, qmgr, name), {})[metric] = value


class MetricEvents:
    """Events of what was collected again and again. It keeps the time and the counters of each object.

    Args:
        source: name in tables of coverage.
        intake: intake of the feed.
        options: options of the feed.
    """

    def __init__(self, source: str, intake: Intake, options: FeedOptions) -> None:
        self._source = source
        self._intake = intake
        self._options = options
        self._times: dict[Key, int] = {}
        self._counters: dict[tuple[Key, str], float] = {}

    def events(self, collected: Collected, place: str) -> Iterator[Event]:
        """Yield the events; what is not younger than the last values of an object is left out."""
        if not TIME_LOW <= collected.time < TIME_HIGH:
            self._intake.complain("bad-time", place, f"time {collected.time}; expected: the years 2000 to 2100")
            return
        for key, values in sorted(collected.values.items()):
            last = self._times.get(key)
            if last is not None and collected.time <= last:
                self._intake.complain("again", place, f"{key[1]}/{key[2]} is not younger than before; it is left out")
                continue
            if last is None and len(self._times) >= MAX_OBJECTS:
                continue
            self._times[key] = collected.time
            if key[0] == "pageset":
                yield from self._page_set(key, values, collected.time, place)
                continue
            values = self._deltas(key, values, collected.cumulative)
            measured = list(self._queue_file(key, values, collected.time))
            if last is not None:
                yield from self._flows(key, values, (last, collected.time), place, is_measured=bool(measured))
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
    ) -> Iterator[Event]:
        _, qmgr, queue = key
        count, gets = _sum(values, PUTS), _sum(values, DESTRUCTIVE)
        gets = _sum(values, GETS) if gets is None else gets
        if (count is None and gets is None) or not self._intake.claim(qmgr, queue, self._source):
            return
        count, gets, expired = count or 0, gets or 0, _sum(values, EXPIRED) or 0
        rolled_back = _sum(values, ROLLED_BACK) or 0
        largest = max(count, gets, expired, rolled_back)
        if largest > MAX_COUNT:
            text = f"{queue}: {largest:,} messages in an interval; expected: at most {MAX_COUNT:,}"
            self._intake.complain("impossible-count", place, text)
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
            self._intake.complain("no-size", place, f"puts of {queue} without bytes, {words}")
        puts = _by_persistence(count, size or 0, _sum(values, PERSISTENT), _sum(values, NONPERSISTENT))
        direct = round(count * min(100.0, max(0.0, values.get(_DIRECT_PCT, 0.0))) / 100)
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
            self._intake.check_queue(key[1], key[2], time)
            return
        measured: Measured = {}
        if "depth" in values:
            measured["messages"] = int(values["depth"])
        if values.get("qfile_current_size", -1) >= 0:
            measured["file_bytes"] = int(values["qfile_current_size"]) * _MIB  # megabytes, rounded up
        if measured:
            yield {"time": time, "qmgr": key[1], "op": "MEASURE", "store": store, "measured": measured}

    def _page_set(self, key: Key, values: Mapping[str, float], time: int, place: str) -> Iterator[Event]:
        _, qmgr, name = key
        if not name.isascii() or not name.isdigit():
            return
        measured: Measured = {}
        for metric, field_name in _PAGES.items():
            if values.get(metric, -1) >= 0:
                measured[field_name] = int(values[metric])
        if "pages_persistent" in measured and "pages_nonpersistent" in measured:
            measured["pages_used"] = measured["pages_persistent"] + measured["pages_nonpersistent"]
        if not measured or not self._intake.is_consistent(measured, f"page set {name} of {qmgr}", place):
            return
        total = measured.get("pages_total")
        self._intake.facts.add("page_set", f"{qmgr}/{int(name)}", self._source, pages=total)
        yield {
            "time": time,
            "qmgr": qmgr,
            "op": "MEASURE",
            "store": f"{qmgr}/PS{int(name):02d}",
            "measured": measured,
        }


def _sum(values: Mapping[str, float], names: Iterable[str]) -> int | None:
    """Return the sum of those that are there, not below 0; None if none is."""
    present = [values[name] for name in names if name in values]
    return int(max(0.0, sum(present))) if present else None


def _by_persistence(count: int, size: int, persistent: int | None, nonpersistent: int | None) -> tuple[Puts, ...]:
    """Return puts split by persistence in the proportion that was counted; all nonpersistent if none was."""
    counted = (persistent or 0) + (nonpersistent or 0)
    if not counted or not persistent:
        return (Puts(count=count, bytes=size),)
    first = count * persistent // counted
    first_bytes = size * first // count if count else 0
    return (
        Puts(count=first, bytes=first_bytes, persistent=True),
        Puts(count=count - first, bytes=size - first_bytes),
    )
