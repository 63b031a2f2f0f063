"""The console's past: a recording, of which the page shows every moment, without Kafka and Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import msgspec
from typing_extensions import override

from deploy.console.answers import Answers
from deploy.console.model import ConsoleModel
from streams.kafka.topic_reader import TopicRecord
from streams.kafka.topics import Topics
from twin.errors import UsageError
from twin.events import Reject
from twin.planning.moment import Moment, moment_of
from twin.playback.timeline import Timeline
from twin.records import Change, Incidents, read_alert_record

_MICROSECONDS = 1_000_000


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A moment at which people would have been called.

    Attributes:
        time: seconds since 1970.
        store: the store.
        severity: severity of the incident's root.
        change: what became of the incident: paged, escalated, reopened.
        cause: cause of the root.
    """

    time: float
    store: str
    severity: str
    change: str
    cause: str


class Moments(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to GET /api/moments.

    Attributes:
        name: name of the recording.
        times: moments that can be asked for, seconds since 1970, ascending.
        first: the moment at which the page opens: that of the first call, else the last one.
        marks: calls, in order of time.
        events: number of events.
    """

    name: str
    times: list[float]
    first: float
    marks: list[Mark]
    events: int


class PastTwins(Answers):
    """A recording, and answers about each of its moments.

    Args:
        timeline: the recording, played.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._topics = Topics()
        self._letters = [_letter(self._topics, timeline.recording.name, reject) for reject in timeline.rejects]
        self._end = self._folded(timeline.times[-1], everything=True)
        marks = _marks(timeline)
        first = timeline.times[-1] if not marks else self._sample_after(round(marks[0].time * _MICROSECONDS))
        self.moments = Moments(
            name=timeline.recording.name,
            times=[time / _MICROSECONDS for time in timeline.times],
            first=first / _MICROSECONDS,
            marks=marks,
            events=timeline.events,
        )

    def model_at(self, time_s: float) -> ConsoleModel:
        """Return what the page shows of the last moment until a time, seconds since 1970."""
        return self._folded(self._timeline.sample_before(round(time_s * _MICROSECONDS)), everything=False)

    def history(self, store: str) -> dict[str, object] | None:
        """Return the usage of a store over the whole recording as columns; None for a store without samples."""
        return self._end.history(store)

    @override
    @contextmanager
    def moment(self, store: str, time_s: float | None) -> Iterator[Moment]:
        timeline = self._timeline
        time = timeline.times[-1] if time_s is None else timeline.sample_before(round(time_s * _MICROSECONDS))
        if store not in timeline.estate.stores:
            raise UsageError(f"{store}: the estate has no such store; expected: a store of the overview")
        twin = timeline.twin_at(store, time)
        if twin is None:
            raise UsageError(f"{store}: no event of it until then; expected: a later time")
        yield moment_of(timeline.estate, twin)

    def _sample_after(self, time: int) -> int:
        """Return the first moment from a time on, microseconds."""
        return next((own for own in self._timeline.times if own >= time), self._timeline.times[-1])

    def _folded(self, time: int, *, everything: bool) -> ConsoleModel:
        """Return the model of a moment, microseconds; everything: with all samples until then, for the history."""
        timeline, topics = self._timeline, self._topics
        model = ConsoleModel(topics, clock=lambda: time / _MICROSECONDS)
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
    """Return the calls of a recording in order of time; an incident that is over calls nobody."""
    incidents = Incidents()
    marks = []
    for alert in timeline.alerts:
        for change in incidents.take(read_alert_record(alert.record())):
            if change.is_notice and change.change is not Change.OVER:
                root = change.incident.root.data
                marks.append(
                    Mark(
                        time=alert.time / _MICROSECONDS,
                        store=root.store,
                        severity=root.severity,
                        change=str(change.change),
                        cause=root.cause,
                    )
                )
    return marks


def seconds_of(text: str) -> float:
    """Return a time of the page, RFC 3339 or seconds since 1970, in seconds. UsageError: it is neither."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise UsageError(f"t = {text[:40]}: no time; expected: such as 2026-11-20T01:34:00Z") from None
