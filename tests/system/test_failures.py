"""Disks that fill and topics that are deleted under a job: its end names them, and a later job goes on."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.streams.kafka_help import delete
from tests.system.harness import Played, Stream, check_equal
from tests.system.job_process import CATCH_UP, MAX_RECORDS
from twin.errors import MqtwinError

pytestmark = pytest.mark.system


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 32 MiB."""
    mount_point = tmp_path / "small"
    mount_point.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32m", "mqtwin-test", str(mount_point)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small disk here: {mounted.stderr.strip()}")
    yield mount_point
    subprocess.run(["umount", "--lazy", str(mount_point)], check=True)


def fill(path: Path) -> None:
    """Write a file until the disk is full."""
    with path.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):  # noqa: PT012
        while True:
            file.write(bytes(1 << 12))


def failure(stream: Stream, interfere: Callable[[], Any], kafka: dict[str, str]) -> str:
    """Interfere with a job after its first batch of some dozen, and return the message with which it ends.

    kafka: client settings of the job.
    """
    batches: list[dict[str, Any]] = []

    def on_batch(batch: dict[str, Any]) -> None:
        batches.append(batch)
        if len(batches) == 1:
            interfere()

    with pytest.raises(MqtwinError) as error:
        stream.run(max_records=MAX_RECORDS, kafka=kafka, on_batch=on_batch)
    return str(error.value)


def test_a_full_disk_is_named_and_a_later_job_goes_on_when_there_is_room(
    published: Stream, outage: Played, small_disk: Path
) -> None:
    published.checkpoint, filler = small_disk / "checkpoint", small_disk / "filler"
    cause = failure(published, lambda: fill(filler), {})
    assert re.fullmatch(
        rf"the .*: disk full: {published.checkpoint}: \d\.\d of 34 MB free; make room: started again, .*", cause
    ), cause
    filler.unlink()
    published.run(max_records=CATCH_UP)
    check_equal(published, outage.replayed)


def test_a_deleted_topic_is_named_and_a_later_job_creates_it_again(published: Stream, outage: Played) -> None:
    topic = published.topics.alerts
    cause = failure(published, lambda: delete(published.servers, topic), {"max.block.ms": "500"})
    assert cause == (
        f"the stream failed: deleted in Kafka while the job ran: topic {topic}; starting again creates it anew"
    )
    published.run(max_records=CATCH_UP)
    assert published.states() == outage.replayed.states
    assert published.alerts()
