"""The console's past: a recording, of which the page shows every moment, or the past of a running job.

That of a job is a recording too: of the events between two snapshots of its checkpoint, played from the first of them.
It is made when a moment in it is requested, so that the page pays only for what it shows.
"""

from __future__ import annotations

import math
import re
import threading
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from typing_extensions import override

from deploy.console.answers import Answers, HindsightAnswer, HindsightRequest, converted, hindsight_answer
from deploy.console.model import ConsoleModel
from kernels.clock import SECOND
from streams.kafka.topics import TopicRecord, Topics
from twin.base.errors import UsageError
from twin.base.units import FIRST_SECOND, LAST_SECOND, as_microseconds, as_text
from twin.events import Reject
from twin.planning.proof import hindsight
from twin.planning.whatif import Moment, moment_of
from twin.playback.samples import STEP
from twin.playback.timeline import Timeline
from twin.records import AlertData, Change, Incidents, StateRecord, read_alert_record
from twin.stores.open import Twin

if TYPE_CHECKING:  # a recording needs neither Kafka nor Spark
    from deploy.console.live import LiveTwins
    from streams.query.past import JobPast

_SECONDS = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?")
MAX_MOMENTS = 5_000  # of the slider; it is as wide as the screen
AFTER_US = 2 * 3600 * SECOND  # behind a period, so that its last moments show what became of their forecasts


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A moment at which people would have been called."""

    time: float  # seconds since 1970
    store: str
    severity: str
    change: str  # paged, escalated or reopened
    cause: str


class Moments(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to GET /api/moments."""

    name: str  # of the recording, or of a job's events topic
    times: list[float]  # seconds since 1970, ascending
    first: float  # at which the page opens: that of the first call, else the last one
    marks: list[Mark]
    events: int = 0  # 0 of a running job
    is_live: bool = False  # True of a running job, which has a present to go back to


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """The times between which a recording has the requested moments, seconds since 1970."""

    begin: float
    end: float


class Past(Answers):
    """Past moments, and answers about them."""

    recording: str | None = None  # None: it is the past of a job, which has a present, too

    @property
    @abstractmethod
    def moments(self) -> Moments:
        """The moments. MqtwinError: they are not known now."""

    @abstractmethod
    def played(self, time_s: float) -> PastTwins:
        """Return the recording that has a time, seconds since 1970. MqtwinError: there is none; says why."""

    @override
    @contextmanager
    def moment(self, store: str, time_s: float | None) -> Iterator[Moment]:
        time_s = self.moments.times[-1] if time_s is None else time_s
        yield self.played(time_s).moment_of(store, time_s)

    @override
    def hindsight(self, content: Any) -> HindsightAnswer:
        request = converted(content, HindsightRequest)
        return self.played(request.time).hindsight_of(request)


class PastTwins(Past):
    """A recording, and answers about each of its moments."""

    def __init__(self, timeline: Timeline, span: Span | None = None) -> None:
        self._timeline = timeline
        self.recording = timeline.recording.name
        self._topics = Topics()
        self._letters = [_letter(self._topics, timeline.recording.name, reject) for reject in timeline.rejects]
        self._end = self._folded(timeline.times[-1], everything=True)
        self._span = span or Span(begin=timeline.times[0] / SECOND, end=timeline.times[-1] / SECOND)
        marks = _marks(timeline)
        called = round(marks[0].time * SECOND) if marks else timeline.times[-1]
        first = next((own for own in timeline.times if own >= called), timeline.times[-1])
        self._moments = Moments(
            name=timeline.recording.name,
            times=[time / SECOND for time in timeline.times],
            first=first / SECOND,
            marks=marks,
            events=timeline.events,
        )

    @property
    @override
    def moments(self) -> Moments:
        return self._moments

    @override
    def played(self, time_s: float) -> PastTwins:
        return self

    def states(self, time_us: int, store: str | None) -> list[StateRecord]:
        """Return the state records as of a time, by store: exactly those of a replay up to it. Without a name, of all
        that have had an event by then. UsageError: the store is not in the estate, or has had no event by then.
        """
        timeline = self._timeline
        if store is not None:
            return [self._twin(store, time_us).state()]
        twins = [timeline.twin_at(name, time_us) for name in sorted(timeline.estate.stores)]
        return [twin.state() for twin in twins if twin is not None]

    def model_at(self, time_s: float) -> ConsoleModel:
        """Return what the page shows of the last moment until a time, seconds since 1970."""
        return self._folded(self._timeline.sample_before(round(time_s * SECOND)), everything=False)

    def history(self, store: str) -> dict[str, object] | None:
        """Return the usage of a store over the whole recording as columns; None for a store without samples."""
        columns = self._end.history(store)
        return None if columns is None else {**columns, "span": self._span}

    def moment_of(self, store: str, time_s: float) -> Moment:
        """Return a store at the last moment until a time, seconds since 1970. UsageError: there is none; says why."""
        twin = self._twin(store, self._timeline.sample_before(round(time_s * SECOND)))
        return moment_of(self._timeline.estate, twin)

    def hindsight_of(self, request: HindsightRequest) -> HindsightAnswer:
        """Return what settings from a moment on would have changed. UsageError: as `twin.hindsight`."""
        time = self._timeline.sample_before(round(request.time * SECOND))
        self._twin(request.store, time)
        answer = hindsight(self._timeline, request.store, time, request.set)
        return hindsight_answer(answer, self._timeline.estate.site.clock)

    def _twin(self, store: str, time_us: int) -> Twin:
        if store not in self._timeline.estate.stores:
            raise UsageError(f"{store}: the estate has no such store; expected: a store of the overview")
        twin = self._timeline.twin_at(store, time_us)
        if twin is None:
            raise UsageError(f"{store}: no event of it until then; expected: a later time")
        return twin

    def _folded(self, time: int, *, everything: bool) -> ConsoleModel:
        """Return the model of a moment, microseconds; everything: with all samples until then, for the history."""
        timeline, topics = self._timeline, self._topics
        model = ConsoleModel(topics, clock=lambda: time / SECOND, zone=timeline.estate.site.clock)
        states = (
            [(sampled, record) for sampled, _, record in timeline.samples() if sampled <= time]
            if everything
            else [(time, record) for record in timeline.states(time).values()]
        )
        alerts = [] if everything else [(alert.time, alert.record()) for alert in timeline.alerts_until(time)]
        records = [TopicRecord(topics.state, own // 1000, record, {}) for own, record in states]
        records += [TopicRecord(topics.alerts, own // 1000, record, {}) for own, record in alerts]
        model.fold(records + self._letters)
        model.set_source(connected=True, caught_up=True, missing=[])
        return model


def _letter(topics: Topics, recording: str, reject: Reject) -> TopicRecord:
    """Return a dead letter as in its topic; its offset is the line or row."""
    places = {"topic": recording, "partition": "0", "offset": str(reject.index), "index": "0"}
    headers = {"reason": str(reject.reason), "detail": reject.detail, **places}
    return TopicRecord(topics.dlq, 0, reject.value, headers)


def _marks(timeline: Timeline) -> list[Mark]:
    """Return the calls of a recording in order of time; puts that succeed again, and what is over, call nobody."""
    incidents = Incidents()
    marks = []
    for alert in timeline.alerts:
        for change in incidents.take(read_alert_record(alert.record())):
            if change.is_notice and change.change not in (Change.OVER, Change.RECOVERED):
                root = change.incident.root.data
                marks.append(mark_of(alert.time / SECOND, root, str(change.change)))
    return marks


def mark_of(time_s: float, root: AlertData, change: str = str(Change.PAGED)) -> Mark:
    """Return the mark of a call."""
    return Mark(time=time_s, store=root.store, severity=root.severity, change=change, cause=root.cause)


def seconds_of(text: str) -> float:
    """Return a time of the page, RFC 3339 with its zone or seconds, as seconds. UsageError: it is neither."""
    try:
        seconds = as_microseconds(text) / SECOND
    except ValueError:
        seconds = float(text) if _SECONDS.fullmatch(text) else math.nan
    if not FIRST_SECOND <= seconds <= LAST_SECOND:  # not a number is no time either
        raise UsageError(
            f"time {text[:40]}; expected: RFC 3339 with its zone, such as 2026-11-20T01:34:00Z, or seconds since 1970"
        )
    return seconds


class _Period(NamedTuple):
    """A period that is played. begin, end: event times of its moments; folder: folder of its recording."""

    begin: int
    end: int
    played: PastTwins
    folder: TemporaryDirectory[str]


class LivePast(Past):
    """The past of a running job; the present is that of its twins. One period at a time is kept."""

    def __init__(self, source: JobPast, present: LiveTwins, calls: Callable[[], list[Mark]]) -> None:
        self._source, self._present, self._calls = source, present, calls
        self._lock = threading.Lock()
        self._period: _Period | None = None

    @property
    @override
    def moments(self) -> Moments:
        begins, now = self._source.begins(), self._present.now_us
        if not begins or now <= begins[0]:
            raise UsageError(f"{self._reach(begins)}; expected: a job with events, and --checkpoint FOLDER")
        span = now - begins[0]
        step = STEP * max(1, -(-span // (STEP * MAX_MOMENTS)))
        times = [*range(begins[0], now, step), now]
        first = begins[0] / SECOND
        return Moments(
            name=self._source.topics.events,
            times=[time / SECOND for time in times],
            first=now / SECOND,
            marks=[mark for mark in self._calls() if mark.time >= first],
            is_live=True,
        )

    @override
    def played(self, time_s: float) -> PastTwins:
        time = round(time_s * SECOND)
        with self._lock:
            period = self._period
            if period is None or not period.begin <= time <= period.end:
                self._period = period = None  # one at a time
                self._period = period = self._play(time)
            return period.played

    @override
    @contextmanager
    def moment(self, store: str, time_s: float | None) -> Iterator[Moment]:
        if time_s is None:
            with self._present.moment(store, None) as moment:
                yield moment
        else:
            yield self.played(time_s).moment_of(store, time_s)

    @override
    def problem(self) -> str:
        return self._present.problem()

    def _play(self, time: int) -> _Period:
        begins, now = self._source.begins(), self._present.now_us
        place = bisect_right(begins, time)
        if not place or time > now:
            raise UsageError(f"{as_text(time)}: {self._reach(begins)}; expected: a time between")
        begin, following = begins[place - 1], begins[place] if place < len(begins) else None
        end = now if following is None else following - 1
        folder = TemporaryDirectory(prefix="mqtwin-past-")
        timeline = self._source.timeline(begin, min(end + AFTER_US, now), Path(folder.name))
        return _Period(begin, end, PastTwins(timeline, Span(begin=begin / SECOND, end=end / SECOND)), folder)

    def _reach(self, begins: list[int]) -> str:
        topic, now = self._source.topics.events, self._present.now_us
        if not begins:
            return f"Kafka has deleted the begin of {topic}, and there is no snapshot"
        reach = f"from {as_text(begins[0])} to {as_text(now)}" if now > 0 else "no event yet"
        return f"snapshots and topic {topic} have {reach}"
