"""Disks that fill and topics that are deleted under a job: its end names them, and a later job continues."""

from __future__ import annotations

import gc
import itertools
import re
import shutil
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkConf
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from deploy.cli import main
from deploy.java.jars import find_spark_java
from streams.host.java_process import launch_java
from tests.streams.kafka_help import delete
from tests.support.estates import small_estate
from tests.system.harness import Played, Stream, check_equal
from tests.system.job_process import CATCH_UP, MAX_RECORDS
from twin.base.errors import MqtwinError, UsageError

pytestmark = [pytest.mark.system, pytest.mark.nightly]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 32 MiB and 2,000 files."""
    mount_point = tmp_path / "small"
    mount_point.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32m,nr_inodes=2000", "mqtwin-test", str(mount_point)],
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


def fill_with_files(folder: Path) -> None:
    """Make empty files until the disk takes no other one."""
    folder.mkdir()
    with pytest.raises(OSError, match="No space left"):  # noqa: PT012
        for number in itertools.count():
            (folder / str(number)).touch()


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


@pytest.mark.parametrize(
    ("fill_disk", "free"), [(fill, r"\d\.\d of 34 MB"), (fill_with_files, r"\d+ of 2,000 files \(inodes\)")]
)
def test_a_full_disk_is_named_and_a_later_job_resumes_when_there_is_room(
    published: Stream, outage: Played, small_disk: Path, fill_disk: Callable[[Path], None], free: str
) -> None:
    published.checkpoint, filler = small_disk / "checkpoint", small_disk / "filler"
    cause = failure(published, lambda: fill_disk(filler), {})
    assert re.fullmatch(
        rf"the .*: disk full: {published.checkpoint}: {free} free; make room: started again, .*", cause
    ), cause
    shutil.rmtree(filler) if filler.is_dir() else filler.unlink()
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


def test_a_start_on_a_full_disk_has_the_status_that_a_supervisor_restarts(
    small_disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(small_disk / "filler")
    estate, checkpoint = small_estate(tmp_path), small_disk / "checkpoint"
    checkpoint.mkdir()
    command = ["stream", "--estate", str(estate), "--checkpoint", str(checkpoint)]
    assert main([*command, "--bootstrap-servers", "127.0.0.1:9"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert re.match(rf"mqtwin: checkpoint {checkpoint} cannot be written: No space left on device; ", line), line


def test_a_java_that_ends_before_it_answers_is_a_failure_with_its_last_words() -> None:
    conf = SparkConf(loadDefaults=False).set("spark.driver.extraJavaOptions", "-XX:MaxMetaspaceSize=little")
    home = find_spark_java().home
    environment = {"JAVA_HOME": str(home)} if home is not None else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # PySpark leaves the pipe to a Java that has ended open
        with pytest.raises(MqtwinError, match=r"^Spark's Java ended .*: \S[^\n]*MaxMetaspaceSize=little") as failed:
            launch_java(conf, [], environment)
        message, is_usage = str(failed.value), isinstance(failed.value, UsageError)
        del failed
        gc.collect()
    assert not is_usage
    assert "\n" not in message


def test_java_logs_a_line_for_each_error_with_the_cause_where_there_is_one(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    java_log = jvm.org.apache.logging.log4j.LogManager.getLogger("a.b.Name")
    with capture_logs() as logs:
        java_log.error("without a message", jvm.java.lang.IllegalStateException())
        java_log.error("with one", jvm.java.lang.IllegalStateException("the cause"))
        java_log.error("plain")
        deadline = time.monotonic() + 60
        while len(logs) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
    texts = [re.sub(r"^\S+ \S+ ", "", entry["event"]) for entry in logs]
    assert texts == [
        "spark ERROR Name: without a message",
        "spark ERROR Name: with one the cause",
        "spark ERROR Name: plain",
    ]
