"""Another number of state partitions: the state of a stopped job is redistributed, and the job continues."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from streams.checkpoint.files import PARTITIONS
from streams.checkpoint.local_files import CheckpointFiles
from streams.query.stored_state import read_states, repartition
from tests.checkpoints.archives import newest_archive, unpack
from tests.support.processes import send_signal, still_alive
from tests.system.harness import check_equal
from twin.base.errors import UsageError
from twin.playback.replays import replay

pytestmark = [pytest.mark.system, pytest.mark.nightly]

ROOT = Path(__file__).parents[2]
PATIENCE = 240.0  # seconds, on a busy machine


def repartition_and_kill(directory: Path, partitions: int, batch: int) -> None:
    """Run the command, and kill it with its Java once the first state of its batch is written."""
    command = [sys.executable, "-m", "deploy", "checkpoint", "repartition", str(directory)]
    process = subprocess.Popen([*command, "--partitions", str(partitions)], cwd=ROOT)
    deadline = time.monotonic() + PATIENCE
    while not any(directory.glob(f"state/0/*/{batch + 1}.zip")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    send_signal(family)
    process.wait()
    assert not still_alive(family, PATIENCE)


def test_a_job_resumes_with_more_and_with_fewer_partitions(kafka: str, spark: SparkSession, tmp_path: Path) -> None:
    """From 4 partitions to 8, killed half way and run again, then to 2; the result is that of a replay."""
    opened = unpack(newest_archive(), tmp_path / "contents", kafka, spark)
    stream, directory = opened.stream, opened.stream.checkpoint
    written, before = stream.alerts(), list(read_states(directory, stream.estate, session=spark))
    opened.send_rest(0, 2)

    batch = CheckpointFiles(directory).commits[-1] + 1
    repartition_and_kill(directory, 8, batch)
    files = CheckpointFiles(directory)
    assert (files.unfinished_partitions, files.commits[-1]) == (8, batch - 1)
    assert not [finding for finding in files.check(thorough=False) if finding.is_blocking]
    assert list(read_states(directory, stream.estate, session=spark)) == before
    with pytest.raises(UsageError, match=r"its repartition to 8 .* --partitions 8"):
        stream.run()
    with pytest.raises(UsageError, match="give --partitions 8 first"):
        repartition(directory, 2, session=spark)

    assert repartition(directory, 8, session=spark) == 4
    files = CheckpointFiles(directory)
    drafts = [finding for finding in files.check(thorough=True) if finding.path.endswith(".tmp")]  # of the killed one
    assert (files.read_operator().partitions, files.check(thorough=True)) == (8, drafts)
    assert list(read_states(directory, stream.estate, session=spark)) == before
    assert repartition(directory, 8, session=spark) == 8
    stream.run(max_records=300)

    drop_last_commit(directory)
    assert repartition(directory, 2, session=spark) == 8
    opened.send_rest(1, 2)
    stream.run(max_records=300)
    files = CheckpointFiles(directory)
    assert files.newest is not None and files.newest[1][PARTITIONS] == "2"
    assert files.check(thorough=True) == []
    check_equal(stream, replay(opened.whole(), stream.estate), written)


def drop_last_commit(directory: Path) -> None:
    """Leave the checkpoint as a job that was killed at the end of a batch: the batch is run again."""
    last = CheckpointFiles(directory).commits[-1]
    for name in (str(last), f".{last}.crc"):
        (directory / "commits" / name).unlink()
