"""The status file of a job: one JSON object, replaced at each batch and idle beat, read by `mqtwin export`.

Spark's figures of a batch are in the log only. The file has the same figures, sums since the start of the job and the
time of the last beat, so that another process sees if the job runs. It never grows, and a reader never sees half of it.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import structlog

from twin.base.decoding import UNREADABLE
from twin.base.errors import UsageError
from twin.base.outputs import replace_file
from twin.base.units import as_span

MAX_BEAT_S = 120.0  # without a batch or idle beat, after which a job counts as dead; at least ten triggers
_TRIGGERS = 10
_UNITS = {"microsecond": 1e-6, "millisecond": 1e-3, "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
_UNITS |= {"week": 7 * 86400.0}
_MAX_BYTES = 64 * 1024  # of a status file; a real one has 2 KB
_SUMS = ("records", "events", "alerts", "dead_letters")

_log = structlog.get_logger("mqtwin.stream")


class JobStatus(msgspec.Struct, kw_only=True):
    """The content of a status file. Times are seconds since 1970, wall clock. A beat is a batch, or a trigger that
    found nothing to read. Sums are since the start; `behind` is in records per partition, None if not known.
    """

    started_s: float
    beat_s: float
    trigger: str = "0 seconds"
    batches: int = 0
    sums: dict[str, int] = {}
    dead_letter_reasons: dict[str, int] = {}
    batch_s: float | None = None
    figures: dict[str, Any] = {}
    behind: int | None = None


class StatusFile:
    """The writer of a status file. UsageError: the file cannot be written."""

    def __init__(self, path: Path, trigger: str = "0 seconds", *, wall: Callable[[], float] = time.time) -> None:
        self._path, self._wall = path, wall
        self._lock = threading.Lock()  # Spark calls listeners from a thread of its own
        self._has_failed = False
        self.status = JobStatus(started_s=wall(), beat_s=wall(), trigger=trigger, sums=dict.fromkeys(_SUMS, 0))
        try:
            self._replace()
        except OSError as error:
            raise UsageError(
                f"--status-file {path}: {error.strerror}; expected: a file in an existing folder that can be written"
            ) from error

    def on_batch(self, figures: Mapping[str, Any]) -> None:
        """Record the end of a batch with its figures."""
        with self._lock:
            status = self.status
            status.batch_s = status.beat_s = self._wall()
            status.batches += 1
            for name in _SUMS:
                status.sums[name] += figures.get(name, 0)
            for reason, count in figures.get("dead_letter_reasons", {}).items():
                status.dead_letter_reasons[reason] = status.dead_letter_reasons.get(reason, 0) + count
            status.figures = dict(figures)
            status.behind = figures.get("behind")
            self._write()

    def on_idle(self, behind: int = 0) -> None:
        """Record a trigger that found nothing to read. behind: records per partition held back by open transactions."""
        with self._lock:
            self.status.beat_s = self._wall()
            self.status.behind = behind
            self._write()

    def _write(self) -> None:
        """Replace the file. An error is logged once: the job does not depend on the file."""
        try:
            self._replace()
        except OSError as error:
            if not self._has_failed:
                _log.warning("the status file cannot be written", path=str(self._path), why=str(error))
            self._has_failed = True
        else:
            self._has_failed = False

    def _replace(self) -> None:
        replace_file(self._path, msgspec.json.encode(self.status) + b"\n", is_synced=False)


def check_replaceable(path: Path) -> None:
    """Raise UsageError if there is a file that is not a status file, of this release or another one."""
    try:
        content = path.read_bytes() if path.is_file() else b""
        is_own = not content or isinstance(msgspec.json.decode(content), dict)
    except (OSError, *UNREADABLE):
        is_own = False
    if not is_own:
        raise UsageError(f"--status-file {path} has something else; expected: a file of mqtwin stream, or a new name")


def trigger_seconds(text: str) -> float:
    """Return the seconds of an interval in Spark's notation, such as "1 minute 30 seconds"."""
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([\d.]+)\s+([a-z]+?)s?\b", text.lower()))


def beat_limit_s(status: JobStatus, max_beat_s: float = MAX_BEAT_S) -> float:
    """Return the seconds since its last beat after which a job counts as dead. It is at least `max_beat_s`."""
    return max(max_beat_s, _TRIGGERS * trigger_seconds(status.trigger))


def stopped_text(path: Path, now_s: float) -> str:
    """Return that the job of a status file has stopped, and since when; empty while it runs."""
    status = read_status(path)
    if status is None:
        return f"The job has no status file {path}: it was never started, or without --status-file"
    age_s = now_s - status.beat_s
    return f"The job has stopped: its last sign was {as_span(age_s)} ago" if age_s > beat_limit_s(status) else ""


def read_status(path: Path) -> JobStatus | None:
    """Return the content of a status file; None if there is no file, or it is not a status file."""
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_MAX_BYTES), type=JobStatus)
    except (OSError, *UNREADABLE):
        return None
