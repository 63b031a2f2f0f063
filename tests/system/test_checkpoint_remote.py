"""A checkpoint behind Hadoop's FileSystem: lease, manifest, offsets, and messages about unreachable ones."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from streams.checkpoint import remote
from streams.checkpoint.guard import CheckpointGuard
from streams.checkpoint.local_files import CheckpointFiles
from streams.checkpoint.manifest import Manifest
from streams.checkpoint.remote import LEASE, RemoteGuard
from streams.kafka.topics import Topics
from tests.streams.checkpoints import write_checkpoint
from tests.support.estates import small_estate
from tests.support.surfaces import wait_until
from tests.system.harness import Played, Stream, check_equal
from tests.system.job_process import Command, running
from twin.base.errors import MqtwinError, UsageError
from twin.estate import Estate, load_estate

pytestmark = pytest.mark.system


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases that are renewed, and become stale, in a fraction of the time."""
    monkeypatch.setattr(remote, "RENEW_SECONDS", 0.3)
    monkeypatch.setattr(remote, "STALE_SECONDS", 3.0)


@pytest.mark.usefixtures("quick")
def test_a_lease_is_held_only_while_it_is_renewed(spark: SparkSession, tmp_path: Path) -> None:
    directory = write_checkpoint(tmp_path / "cp")
    location = directory.as_uri()
    first = RemoteGuard(location, spark)
    assert first.manifest is None
    assert first.files.newest == CheckpointFiles(directory).newest
    assert first.files.next_offsets() == CheckpointFiles(directory).next_offsets()
    manifest = Manifest.of_this_start(load_estate(small_estate(tmp_path)), Topics(), {}, "", 2)
    first.write(manifest)
    with pytest.raises(UsageError, match=r"another mqtwin stream runs on it \(pid "):
        RemoteGuard(location, spark)
    lease = (directory / LEASE).read_bytes()
    first.release()
    assert not (directory / LEASE).exists()
    with_crc = directory / f".{LEASE}.crc"
    with_crc.unlink(missing_ok=True)
    (directory / LEASE).write_bytes(lease)  # as a killed job leaves it
    started = time.monotonic()
    second = RemoteGuard(location, spark)
    assert time.monotonic() - started > 2.9
    assert second.manifest == manifest
    second.release()


@pytest.mark.usefixtures("quick")
def test_a_job_whose_checkpoint_another_has_taken_ends(spark: SparkSession, tmp_path: Path) -> None:
    directory = write_checkpoint(tmp_path / "cp")
    estate = load_estate(small_estate(tmp_path))
    settings = {"estate": estate, "topics": Topics(), "conf": {}, "client": {}, "tolerate": False}
    guard = CheckpointGuard(directory.as_uri(), **settings)
    held = RemoteGuard(directory.as_uri(), spark)
    guard._guard = held
    guard.check_held()
    lease = msgspec.json.decode((directory / LEASE).read_bytes())
    (directory / f".{LEASE}.crc").unlink(missing_ok=True)
    (directory / LEASE).write_bytes(msgspec.json.encode(lease | {"id": "another"}))
    wait_until(lambda: bool(held.taken_by))
    with pytest.raises(MqtwinError, match=r"another mqtwin stream has taken it \(pid "):
        guard.check_held()
    guard.release()


@pytest.mark.parametrize(
    ("location", "message"),
    [
        (
            "s3a://bucket/cp",
            r"the jars of s3a:// are missing; expected: --conf spark\.jars\.packages=.*:hadoop-aws:3\.",
        ),
        ("hdfs://nohost.invalid/cp", "nohost"),
        ("nosuch://host/cp", "the jars of nosuch:// are missing; expected: a scheme of Hadoop"),
    ],
)
def test_an_unreachable_checkpoint_is_one_line_within_15_seconds(
    spark: SparkSession, location: str, message: str
) -> None:
    started = time.monotonic()
    with pytest.raises(UsageError, match=message) as refused:
        RemoteGuard(location, spark)
    assert time.monotonic() - started < 20
    assert "\n" not in str(refused.value)


_S3_JARS, _S3_ENDPOINT = "MQTWIN_TEST_S3_JARS", "MQTWIN_TEST_S3_ENDPOINT"


@pytest.mark.nightly
@pytest.mark.skipif(
    not {_S3_JARS, _S3_ENDPOINT} <= os.environ.keys(),
    reason=f"{_S3_JARS} (the folder of the jars of docs/cluster.md) and {_S3_ENDPOINT} (a server with a bucket "
    "named mqtwin, and keys of AWS in the environment) are not set: the jars are 690 MB",
)
def test_a_killed_job_resumes_from_s3(new_stream: Callable[[Estate], Stream], every_kind: Played) -> None:
    stream = every_kind.publish(new_stream(every_kind.estate))
    jars = ",".join(str(path) for path in sorted(Path(os.environ[_S3_JARS]).glob("*.jar")))
    settings = {
        "spark.jars": jars,
        "spark.hadoop.fs.s3a.endpoint": os.environ[_S3_ENDPOINT],
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    begin = partial(Command, stream, every_kind.described, *options, checkpoint=f"s3a://mqtwin/{stream.prefix}")
    with running(begin(max_records=16)) as command:
        command.read_until("batch", 3)
        command.kill()
    with running(begin("--available-now", max_records=64)) as command:
        assert command.end() == 0, command.lines
    check_equal(stream, every_kind.replayed)
