"""Health of the exporter and, with a status file, of the job."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from streams.query.status import JobStatus

_UNITS = {"microsecond": 1e-6, "millisecond": 1e-3, "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
_UNITS |= {"week": 7 * 86400.0}
_TRIGGERS = 10  # missed triggers after which the job counts as dead
_MAX_READ_SILENCE_S = 60.0  # of the loop that reads Kafka; a look-up of a topic may take ten seconds


def trigger_seconds(text: str) -> float:
    """Return the seconds of an interval in Spark's notation, such as "1 minute 30 seconds"."""
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([\d.]+)\s+([a-z]+?)s?\b", text.lower()))


class Health:
    """Liveness and readiness.

    Args:
        status: returns the job's status; None if there is none.
        has_status: True if the exporter was given a status file.
        is_caught_up: True once the exporter has read its topics to their ends.
        missing: returns the names of topics that it needs and that do not exist yet.
        unreadable: returns the number of records of the topics that could not be read.
        max_beat_s: seconds without a batch or idle beat after which the job counts as dead; at least ten triggers.
        wall: wall clock, seconds since 1970.
        monotonic: monotonic clock, seconds.
    """

    def __init__(
        self,
        status: Callable[[], JobStatus | None],
        *,
        has_status: bool,
        is_caught_up: Callable[[], bool],
        missing: Callable[[], Sequence[str]] = tuple,
        unreadable: Callable[[], int] = lambda: 0,
        max_beat_s: float = 120.0,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._status = status
        self._has_status = has_status
        self._is_caught_up = is_caught_up
        self._missing = missing
        self._unreadable = unreadable
        self._max_beat_s = max_beat_s
        self._wall = wall
        self._monotonic = monotonic
        self._read_s = monotonic()

    def on_read(self) -> None:
        """Record that the exporter has just read its topics."""
        self._read_s = self._monotonic()

    def not_live(self) -> list[str]:
        """Return the reasons why exporter or job count as dead; none if both are alive."""
        reasons = []
        silent_s = self._monotonic() - self._read_s
        if silent_s > _MAX_READ_SILENCE_S:
            reasons.append(f"the exporter has not read Kafka for {silent_s:.0f} s")
        if self._has_status:
            status = self._status()
            if status is None:
                reasons.append("the job has no status file")
            else:
                age_s = self._wall() - status.beat_s
                limit_s = max(self._max_beat_s, _TRIGGERS * trigger_seconds(status.trigger))
                if age_s > limit_s:
                    reasons.append(f"the job's last beat was {age_s:.0f} s ago, limit {limit_s:.0f} s")
        return reasons

    def not_ready(self) -> list[str]:
        """Return the reasons why the metrics are not current; none if they are."""
        reasons = self.not_live()
        if not self._is_caught_up():
            reasons.append("the exporter has not read its topics to their ends")
        reasons += [f"{topic} does not exist yet" for topic in self._missing()]
        status = self._status() if self._has_status else None
        if status is not None and status.behind is None:
            reasons.append("the job has not finished a batch")
        if status is not None and status.behind:
            reasons.append(f"the job is {status.behind} records per partition behind")
        return reasons

    def notes(self) -> list[str]:
        """Return what readiness tells in any case: how many records could not be read; nothing if all could."""
        count = self._unreadable()
        return [f"{count} records of the topics are neither states nor alerts"] if count else []
