"""Snapshots of the state, every few hours of event time, in a checkpoint on this machine: for questions of the past.

A snapshot is a checkpoint of its own in ``snapshots/TIME-BATCH``: the files of one committed batch, from which Spark's
state can be read as from the checkpoint itself (`streams.query.stored_state`). Spark never changes these files, it
only removes them, so they are linked and not copied: a snapshot costs no work in the stream, and only the bytes that
Spark would have removed by now. Its offsets are those of the batch, so it is exact whichever batch it is.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import structlog

from streams.checkpoint.files import DamagedFileError, Offsets
from streams.checkpoint.local_files import CheckpointFiles
from twin.base.units import as_text

FOLDER = "snapshots"
HOURS = 6.0  # of event time between two: what has to be read again for a question stays a matter of seconds
MAX_SNAPSHOTS = 28  # seven days of six hours: Kafka keeps events for seven days by default, and a snapshot needs those
_HOUR_US = 3_600_000_000
_DRAFT, _REMOVED = ".new", ".old"
_NO_LINKS = frozenset((errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS))

_log = structlog.get_logger("mqtwin.stream")


class Snapshot(NamedTuple):
    """A snapshot."""

    time: int  # latest event time of all stores in it, microseconds since 1970
    batch: int
    directory: Path  # a checkpoint

    def offsets(self) -> Offsets:
        """Return the offset of the next record of each partition. DamagedFileError, OSError."""
        return CheckpointFiles(self.directory).read_offsets(self.batch).offsets


def list_snapshots(checkpoint: Path) -> list[Snapshot]:
    """Return the snapshots of a checkpoint on this machine, the oldest first."""
    snapshots = []
    for path in (checkpoint / FOLDER).glob("*-*"):
        time_us, _, batch = path.name.partition("-")
        if time_us.isdecimal() and batch.isdecimal():
            snapshots.append(Snapshot(int(time_us), int(batch), path))
    return sorted(snapshots)


class SnapshotWriter:
    """The writer of snapshots, one each time that the latest event time enters another period of `hours`."""

    def __init__(self, checkpoint: Path, hours: float = HOURS) -> None:
        self._checkpoint = checkpoint
        self._period_us = round(hours * _HOUR_US)
        newest = list_snapshots(checkpoint)[-1:]
        self._time = newest[0].time if newest else 0
        self._last_period = self._time // self._period_us if newest else -1
        self.failures = 0  # to write a snapshot; the stream does not need them

    def on_batch(self, batch: int, clock_us: int) -> None:
        """Write a snapshot of a committed batch if it is due; a failure is logged and counted. The clock is the latest
        event time of the stores with events in it; 0: none is known.
        """
        self._time = max(self._time, clock_us)
        period = self._time // self._period_us
        if not self._time or period <= self._last_period:
            return
        self._last_period = period  # after a failure the next period is tried, not each batch
        began = time.monotonic()
        try:
            files = self._write(Snapshot(self._time, batch, self._folder / f"{self._time}-{batch}"))
            self._remove_oldest()
        except (OSError, DamagedFileError) as error:
            self.failures += 1
            _log.warning(
                "no snapshot",
                batch=batch,
                failures=self.failures,
                why=str(error),
                effect="questions of the past begin with an earlier one, and read more events",
            )
            return
        ms = round(1000 * (time.monotonic() - began))
        _log.info("snapshot", event_time=as_text(self._time), batch=batch, files=files, ms=ms)

    @property
    def _folder(self) -> Path:
        return self._checkpoint / FOLDER

    def _write(self, snapshot: Snapshot) -> int:
        draft = self._folder / _DRAFT
        shutil.rmtree(draft, ignore_errors=True)
        count = 0
        for path in _with_checksums(CheckpointFiles(self._checkpoint).files_of(snapshot.batch)):
            target = draft / path.relative_to(self._checkpoint)
            target.parent.mkdir(parents=True, exist_ok=True)
            _link(path, target)
            count += 1
        draft.replace(snapshot.directory)
        return count

    def _remove_oldest(self) -> None:
        """Remove the oldest snapshots beyond `MAX_SNAPSHOTS`; a reader sees each of them as a whole or not at all."""
        removed = self._folder / _REMOVED
        shutil.rmtree(removed, ignore_errors=True)
        for snapshot in list_snapshots(self._checkpoint)[:-MAX_SNAPSHOTS]:
            snapshot.directory.replace(removed)
            shutil.rmtree(removed)


def _with_checksums(paths: Iterator[Path]) -> Iterator[Path]:
    for path in paths:
        yield path
        checksums = path.with_name(f".{path.name}.crc")
        if checksums.exists():
            yield checksums


def _link(path: Path, target: Path) -> None:
    """Link a file that is never changed, or copy it where the file system has no links."""
    try:
        os.link(path, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copy2(path, target)
