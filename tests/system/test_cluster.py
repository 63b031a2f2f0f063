"""A standalone cluster of Spark: what its hosts do not share, and executors that are killed, freeze or cannot start."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer

import psutil
import pytest

from streams.checkpoint.files import PARTITIONS
from tests.support.estates import small_estate
from tests.support.spark_cluster import HOST, PATIENCE, cluster
from tests.system.harness import Played, Stream, check_equal
from tests.system.job_process import Command, name_of, running

pytestmark = [pytest.mark.system, pytest.mark.nightly]

ROOT = Path(__file__).resolve().parents[2]
BATCH_RECORDS = 8  # so that the recording of an outage is some batches


def settings(*others: str) -> list[str]:
    """Return options of a job on a cluster that reads what there is. others: settings of Spark."""
    pairs = f"spark.driver.host={HOST}", f"spark.executorEnv.PYTHONPATH={ROOT}", *others
    return [*(word for pair in pairs for word in ("--conf", pair)), "--available-now"]


def stream(folder: Path, kafka: str, prefix: str, master: str, *others: str) -> tuple[int, str]:
    """Return exit status and last line of a job on a cluster."""
    estate, checkpoint = small_estate(folder), folder / "checkpoint"
    places = ["--estate", str(estate), "--checkpoint", str(checkpoint), "--bootstrap-servers", kafka]
    command = [sys.executable, "-m", "deploy", "stream", *places, "--topic-prefix", prefix, "--master", master]
    done = subprocess.run(
        [*command, *settings(*others)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, done.stderr.splitlines()[-1]


def executors(folder: Path) -> list[psutil.Process]:
    """Return the executors of a worker. folder: its folder."""
    family = psutil.Process().children(recursive=True)
    return [process for process in family if name_of(process) == "java" and Path(process.cwd()).is_relative_to(folder)]


@contextmanager
def on_two_workers(
    published: Stream, outage: Played, folder: Path, *others: str, tries: int = 1
) -> Iterator[tuple[Command, Path]]:
    """Run a job on two workers to its end within the block, and assert that its output is that of a replay.

    Yields the job, and the folder of the second worker. Arguments as of `cluster` and `settings`.
    """
    with cluster(folder, (), (), tries=tries) as master:
        options = settings(f"{PARTITIONS}=2", *others)
        job = Command(published, outage.described, *options, max_records=BATCH_RECORDS, master=master)
        with running(job) as command:
            command.read_until("batch")
            yield command, folder / "work-1"
            assert command.end() == 0, command.lines
    check_equal(published, outage.replayed)


def test_two_workers_that_share_only_the_checkpoint_lose_an_executor_and_are_equal_to_a_replay(
    published: Stream, outage: Played, tmp_path: Path
) -> None:
    with on_two_workers(published, outage, tmp_path) as (command, worker):
        (killed,) = executors(worker)
        killed.kill()
        command.read_until("batch", 2)
    assert all(any((tmp_path / f"work-{number}").glob("app-*/*/stderr")) for number in range(2))
    assert len(list(worker.glob("app-*/*"))) == 2  # it was replaced


def test_an_executor_that_freezes_and_wakes_writes_nothing(published: Stream, outage: Played, tmp_path: Path) -> None:
    """It is declared lost while it stands still; its tasks run on the other one, and what it does awake is refused."""
    lost_soon = ("spark.network.timeout=10s", "spark.network.timeoutInterval=5s", "spark.executor.heartbeatInterval=2s")
    with on_two_workers(published, outage, tmp_path, *lost_soon) as (command, worker):
        (frozen,) = executors(worker)
        frozen.suspend()
        command.read_until("batch", 2)
        if frozen.is_running():  # unless Spark's worker has killed it
            frozen.resume()
    assert len(list(worker.glob("app-*/*"))) == 2  # it was replaced


def test_copies_of_slow_tasks_change_nothing(published: Stream, outage: Played, tmp_path: Path) -> None:
    """With speculative execution, while Python of one executor stands still again and again.

    Spark kills a stateful Python task whose copy was faster, and its executor ends with it.
    """
    eager = ("spark.speculation=true", "spark.speculation.quantile=0.1", "spark.speculation.multiplier=1.1")
    patient = ("spark.speculation.minTaskRuntime=0ms", "spark.task.maxFailures=20")
    with on_two_workers(published, outage, tmp_path, *eager, *patient, tries=20) as (command, worker):
        for _ in range(2):  # there are three batches
            for executor in executors(worker):
                for python in executor.children(recursive=True):
                    with suppress(psutil.NoSuchProcess):
                        python.suspend()
                        Timer(5.0, resume, (python,)).start()
            command.read_until("batch")


def resume(process: psutil.Process) -> None:
    """Let a process go on, unless it has ended."""
    with suppress(psutil.NoSuchProcess):
        process.resume()


def test_a_checkpoint_that_a_host_has_for_itself_is_refused(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    checkpoint, other = tmp_path / "checkpoint", tmp_path / "other"
    checkpoint.mkdir()
    other.mkdir()
    mount = f'mount --bind {other} {checkpoint} && exec "$@"'
    inside = ("unshare", "--mount", "sh", "-c", mount, "sh")
    if sys.platform != "linux" or subprocess.run([*inside, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no mount namespace of its own here: it takes Linux, and root")
    with cluster(tmp_path, (), inside) as master:
        status, line = stream(tmp_path, kafka, topic_prefix, master)
    assert re.match(rf"mqtwin: executor \S+/\d+ does not see the checkpoint {checkpoint}: No such file ", line), line
    assert status == 2
    assert not list(other.iterdir())


def test_executors_that_cannot_start_are_named_with_their_logs(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    with cluster(tmp_path, ()) as master:
        broken = "spark.executor.extraJavaOptions=-XX:MaxMetaspaceSize=little"
        status, line = stream(tmp_path, kafka, topic_prefix, master, broken)
    assert re.match(r"mqtwin: .*: its executors failed .* stderr in the folder work/", line), line
    assert status == 1
