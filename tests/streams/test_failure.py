"""The cause of a failure, which Spark's own text often hides behind its consequences."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from streams.query import job
from streams.query.job import explain

pytestmark = pytest.mark.nightly

STATE = "[CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT] Error writing state store files. SQLSTATE: 58030"
KILLED = """Job aborted due to stage failure: Task 0 in stage 7.0 failed 4 times
Caused by: java.io.IOException: Stream closed
	at java.base/java.lang.ProcessBuilder$NullInputStream.read
"""
RAISED = """Job aborted due to stage failure
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/x/streams/processor.py", line 107, in handleInputRows
OSError: Broken pipe
Caused by: java.io.EOFException: end
"""


def explained(text: str, checkpoint: str = "", *directories: Path) -> str:
    return explain(
        RuntimeError(text),
        checkpoint=checkpoint,
        directories=directories,
        kafka={},
        topics={"a": ("WRITE",), "b": ("READ",)},
    )


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil._ntuple_diskusage(2_000_000_000, 1_999_000_000, 1_000_000)
    monkeypatch.setattr(job.shutil, "disk_usage", lambda _: usage)


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_is_named_with_its_free_space(tmp_path: Path) -> None:
    place = tmp_path / "checkpoint"
    line = f"disk full: {place}: 1.0 of 2,000 MB free; make room: started again, the job continues where it was"
    assert explained(STATE, str(place)) == line
    assert explained(STATE, f"file://{place}") == line
    assert explained("java.io.IOException: No space left on device", "hdfs://nn/checkpoint", place) == line
    assert (
        explained("twin.state.tables.StateError: page 3 has no place", str(place))
        == "twin.state.tables.StateError: page 3 has no place"
    )


def test_a_disk_with_room_is_not_blamed(tmp_path: Path) -> None:
    assert explained(STATE, str(tmp_path)) == STATE
    assert explained("x: No space left on device") == "disk full: x: No space left on device"


def test_a_worker_is_reported_as_killed_unless_it_raised() -> None:
    assert explained(KILLED) == "a Python worker was killed (out of memory?): IOException: Stream closed"
    assert explained(RAISED) == "OSError: Broken pipe"


def test_deleted_topics_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Caused by: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host it"
    monkeypatch.setattr(job, "missing_topics", lambda _, names: [name for name in names if name == "b"])
    assert explained(text) == "deleted in Kafka while the job ran: topic b; starting again creates it anew"
    monkeypatch.setattr(job, "missing_topics", lambda *_: [])
    assert explained(text) == "UnknownTopicOrPartitionException: This server does not host it"
