"""The past of a running job: each period between two snapshots as a recording, made when the page asks for it."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from typing_extensions import override

from deploy.console.live import LiveTwins
from deploy.console.past import Mark, Moments, Past, PastTwins, Span
from kernels.clock import SECOND
from streams.query.past import JobPast
from twin.errors import UsageError
from twin.planning.moment import Moment
from twin.playback.samples import STEP
from twin.units import as_text

MAX_MOMENTS = 5_000  # of the slider; it is as wide as the screen
AFTER_US = 2 * 3600 * SECOND  # behind a period, so that its last moments show what became of their forecasts


class _Period(NamedTuple):
    """A period that is played. begin, end: event times of its moments; folder: folder of its recording."""

    begin: int
    end: int
    played: PastTwins
    folder: TemporaryDirectory[str]


class LivePast(Past):
    """The past of a running job; the present is that of its twins. One period at a time is kept.

    Args:
        source: snapshots and topic of the job.
        present: its twins of the present.
        calls: returns the moments at which people were called.
    """

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
