"""One Spark for all system tests; a stream of its own for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deploy.jars import SPARK_CONNECTOR, ensure_jars
from deploy.java import find_java
from streams.session import open_session
from tests.system.harness import Stream
from twin.estate import Estate


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session as the job opens it."""
    session = open_session(
        master="local[2]",
        jars=ensure_jars(SPARK_CONNECTOR),
        java_home=find_java().home,
        conf={"spark.local.dir": str(tmp_path_factory.mktemp("spark"))},
    )
    yield session
    session.stop()


@pytest.fixture
def new_stream(spark: SparkSession, kafka: str, topic_prefix: str, tmp_path: Path) -> Callable[[Estate], Stream]:
    """Makes the test's streams, each with topics and a checkpoint of its own."""
    made: list[Stream] = []

    def new(estate: Estate) -> Stream:
        number = len(made)
        made.append(Stream(spark, kafka, f"{topic_prefix}-{number}", estate, tmp_path / f"checkpoint-{number}"))
        return made[-1]

    return new
