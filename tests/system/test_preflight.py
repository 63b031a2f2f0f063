"""The check of executors before the query starts, which reports on one line what is missing."""

from __future__ import annotations

import platform
import sys

import psutil
import pytest
from pyspark.sql import SparkSession

from deploy.class_archives import archive_path
from deploy.java import find_java
from streams.query import preflight
from streams.query.preflight import check_executors
from twin.errors import MqtwinError

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
