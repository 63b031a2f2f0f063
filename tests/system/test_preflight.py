"""The check of executors before the query starts, which reports on one line what is missing."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from deploy.java.jars import archive_path, find_java
from streams.checkpoint import remote
from streams.query import preflight
from streams.query.preflight import check_executors
from twin.base.errors import MqtwinError, UsageError

pytestmark = pytest.mark.system


def test_an_executor_with_everything_passes(spark: SparkSession) -> None:
    (local,) = check_executors(spark).values()  # local mode: one executor
    assert local.is_dir()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says what a process has mapped")
def test_java_has_mapped_the_archive_of_its_classes(spark: SparkSession) -> None:
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    java = psutil.Process(gateway.proc.pid)
    archive = archive_path("spark", find_java())
    if f"-XX:SharedArchiveFile={archive}" not in java.cmdline():
        pytest.skip("no archive of Java's classes when it started: mqtwin doctor --class-archives makes it")
    assert str(archive) in {mapping.path for mapping in java.memory_maps()}


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ({"python": "2.7.18"}, "the driver has 2.7.18: install the same"),
        ({"python": platform.python_version(), "numpy": "0.1"}, "numpy .*; the driver has 0.1: install the same"),
        ({"python": platform.python_version(), "no-such-package": "1"}, "no-such-package.*; install mqtwin there"),
    ],
    ids=["Python", "a package", "a missing package"],
)
def test_a_different_version_is_named(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, versions: dict[str, str], message: str
) -> None:
    monkeypatch.setattr(preflight, "_versions", lambda: versions)
    with pytest.raises(MqtwinError, match=rf"^executor [^\n]*{message}[^\n]*$"):
        check_executors(spark)


@pytest.fixture
def as_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "is_local", lambda _master: False)


@pytest.mark.usefixtures("as_cluster")
def test_an_executor_that_sees_the_checkpoint_passes_and_leaves_nothing_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert check_executors(spark, str(tmp_path))
    assert check_executors(spark, tmp_path.as_uri())
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("as_cluster")
@pytest.mark.parametrize("is_there", [True, False], ids=["another folder of that name", "no folder of that name"])
def test_an_executor_with_another_folder_in_place_of_the_checkpoint_is_named(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_there: bool
) -> None:
    seen, own, make = tmp_path / "driver", tmp_path / "executor", preflight._make_probe
    seen.mkdir()
    if is_there:
        own.mkdir()
    monkeypatch.setattr(preflight, "_make_probe", lambda versions, _, word: make(versions, str(own), word))
    with pytest.raises(UsageError, match=rf"^executor \S+/\d+ does not see the checkpoint {seen}: No such file[^\n]*$"):
        check_executors(spark, str(seen))
    assert not list(seen.iterdir())


@pytest.mark.usefixtures("as_cluster")
def test_an_executor_that_writes_elsewhere_is_named(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(preflight, "_answer_name", lambda word, _: f"{word}-elsewhere")
    with pytest.raises(UsageError, match=r"^the driver does not see what executor \S+ writes into checkpoint "):
        check_executors(spark, str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_file_system_of_hadoop_is_read_and_written_by_all_tasks(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    preflight._check_file_system(spark, tmp_path.as_uri())
    assert not [path for path in tmp_path.iterdir() if not path.name.endswith(".crc")]
    real = remote.FileSystem.write
    monkeypatch.setattr(remote.FileSystem, "write", lambda self, name, data: real(self, f"{name}-elsewhere", data))
    with pytest.raises(UsageError, match=r"^an executor does not see the checkpoint file:\S+ [^\n]*$"):
        preflight._check_file_system(spark, tmp_path.as_uri())
