"""Snapshots of a checkpoint: what they hold, when they are written, their bounds, and failures."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from streams.checkpoint import snapshots as module
from streams.checkpoint.local_files import CheckpointFiles, remove_numbered
from streams.checkpoint.snapshots import MAX_SNAPSHOTS, SnapshotWriter, list_snapshots
from tests.streams.checkpoints import write_checkpoint

HOUR = 3_600_000_000
START = 498_648 * HOUR  # in the year 2026


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "checkpoint")


def folders(checkpoint: Path) -> list[str]:
    return sorted(path.name for path in (checkpoint / "snapshots").iterdir())


def test_a_snapshot_is_a_sound_checkpoint_of_its_batch(checkpoint: Path):
    SnapshotWriter(checkpoint).on_batch(4, START)
    (snapshot,) = list_snapshots(checkpoint)
    assert (snapshot.time, snapshot.batch) == (START, 4)
    assert snapshot.offsets() == {"mqtwin.events": {0: 50}, "mqtwin.reports": {0: 25}}
    files = CheckpointFiles(snapshot.directory)
    assert files.commits == [4] and files.version == 5
    blocking = [finding for finding in files.check(thorough=True) if finding.is_blocking]
    assert [finding.path for finding in blocking] == ["offsets/3"]  # which only a job would need
    assert CheckpointFiles(checkpoint).check(thorough=True) == []  # a job does not mind them


def test_a_snapshot_outlives_the_files_that_spark_removes(checkpoint: Path):
    SnapshotWriter(checkpoint).on_batch(4, START)
    (snapshot,) = list_snapshots(checkpoint)
    before = {path: path.read_bytes() for path in snapshot.directory.rglob("*") if path.is_file()}
    for folder in checkpoint.glob("state/0/[0-9]*"):
        for version in range(6):
            remove_numbered(folder, version)
        shutil.rmtree(folder / "SSTs", ignore_errors=True)
    assert before and all(path.read_bytes() == content for path, content in before.items())


def test_a_snapshot_is_written_when_event_time_enters_another_period(checkpoint: Path):
    writer = SnapshotWriter(checkpoint, 6)
    clocks = [START, START + HOUR, 0, START + 6 * HOUR + 5, START + 6 * HOUR, START + 12 * HOUR]
    for batch, clock in enumerate(clocks):
        writer.on_batch(batch, clock)
    assert [(own.time - START, own.batch) for own in list_snapshots(checkpoint)] == [
        (0, 0),
        (6 * HOUR + 5, 3),
        (12 * HOUR, 5),
    ]


def test_a_restart_continues_the_period_that_it_was_in(checkpoint: Path):
    SnapshotWriter(checkpoint, 6).on_batch(2, START + HOUR)
    again = SnapshotWriter(checkpoint, 6)
    again.on_batch(3, START + 5 * HOUR)
    again.on_batch(4, START + 7 * HOUR)
    assert [own.batch for own in list_snapshots(checkpoint)] == [2, 4]


def test_number_files_and_bytes_are_bounded(checkpoint: Path):
    writer = SnapshotWriter(checkpoint, 6)
    for number in range(3 * MAX_SNAPSHOTS):
        writer.on_batch(number % 6, START + number * 6 * HOUR)
    remaining = list_snapshots(checkpoint)
    assert len(remaining) == MAX_SNAPSHOTS == len(folders(checkpoint))
    assert remaining[-1].time == START + (3 * MAX_SNAPSHOTS - 1) * 6 * HOUR
    own = [path for path in checkpoint.rglob("*") if path.is_file() and "snapshots" not in path.parts]
    every = [path for path in checkpoint.rglob("*") if path.is_file()]
    assert len(every) <= len(own) * (1 + MAX_SNAPSHOTS)
    used = {path.stat().st_ino: path.stat().st_size for path in every}
    assert sum(used.values()) == sum(path.stat().st_size for path in own)  # they are links: no byte is there twice


def test_files_are_copied_where_there_are_no_links(checkpoint: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", refuse)
    SnapshotWriter(checkpoint).on_batch(4, START)
    (snapshot,) = list_snapshots(checkpoint)
    assert CheckpointFiles(snapshot.directory).version == 5


@pytest.mark.parametrize("harm", ["missing", "disk", "damaged"])
def test_a_failure_is_counted_and_leaves_no_part(checkpoint: Path, monkeypatch: pytest.MonkeyPatch, harm: str):
    writer = SnapshotWriter(checkpoint, 6)
    writer.on_batch(1, START)
    if harm == "missing":
        (checkpoint / "state/0/1/5.changelog").unlink()
    elif harm == "damaged":
        (checkpoint / "state/0/1/3.zip").write_bytes(b"")
    else:
        monkeypatch.setattr(module, "_link", lambda *_: (checkpoint / "full").stat())
    writer.on_batch(4, START + 6 * HOUR)
    assert writer.failures == 1
    assert [own.batch for own in list_snapshots(checkpoint)] == [1]
    writer.on_batch(5, START + 7 * HOUR)  # the next period is tried, not each batch
    assert writer.failures == 1
    monkeypatch.undo()
    write_checkpoint(checkpoint)
    writer.on_batch(5, START + 12 * HOUR)
    assert [own.batch for own in list_snapshots(checkpoint)] == [1, 5]


def test_what_a_killed_job_left_is_not_read_and_goes(checkpoint: Path):
    writer = SnapshotWriter(checkpoint, 6)
    for name in (".new", ".old"):
        (checkpoint / "snapshots" / name / "state").mkdir(parents=True)
    assert list_snapshots(checkpoint) == []
    writer.on_batch(4, START)
    assert folders(checkpoint) == [f"{START}-4"]
