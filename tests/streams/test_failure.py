"""A failure is told by its cause: what Spark says is often only what came of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from streams.query import failure
from streams.query.failure import explain

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


def told(text: str, checkpoint: str = "", *directories: Path) -> str:
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
    monkeypatch.setattr(failure.shutil, "disk_usage", lambda _: usage)


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_is_named_with_what_is_free(tmp_path: Path) -> None:
    place = tmp_path / "checkpoint"
    line = f"disk full: {place}: 1.0 of 2,000 MB free; make room: started again, the job goes on where it was"
    assert told(STATE, str(place)) == line
    assert told(STATE, f"file://{place}") == line
    assert told("java.io.IOException: No space left on device", "hdfs://nn/checkpoint", place) == line
    assert (
        told("twin.state.tables.StateError: page 3 has no place", str(place))
        == "twin.state.tables.StateError: page 3 has no place"
    )


def test_a_disk_with_room_is_not_blamed(tmp_path: Path) -> None:
    assert told(STATE, str(tmp_path)) == STATE
    assert told("x: No space left on device") == "disk full: x: No space left on device"


def test_a_killed_worker_is_named_one_that_raised_is_not() -> None:
    assert told(KILLED) == "a Python worker was killed (out of memory?): IOException: Stream closed"
    assert told(RAISED) == "OSError: Broken pipe"


def test_topics_that_are_gone_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Caused by: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host it"
    monkeypatch.setattr(failure, "missing_topics", lambda _, names: [name for name in names if name == "b"])
    assert told(text) == "deleted in Kafka while the job ran: topic b; starting again creates it anew"
    monkeypatch.setattr(failure, "missing_topics", lambda *_: [])
    assert told(text) == "UnknownTopicOrPartitionException: This server does not host it"
