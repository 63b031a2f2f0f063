"""One Spark for all system tests, a stream of its own for each; recordings, made and replayed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deploy.jars import SPARK_CONNECTOR, ensure_jars
from deploy.java import find_java
from streams.query.session import open_session
from tests.support.estates import small_estate
from tests.support.mixed import mixed_estate, mixed_recording
from tests.system.harness import Played, Stream, foreseen
from twin.conditions import CLEARED, OPENED, UPDATED
from twin.estate import Estate, load_estate
from twin.simulation import make_scenario, simulate


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


@pytest.fixture(scope="session")
def outage(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """A getter outage that goes through every offload rule to 2192 and back."""
    folder = tmp_path_factory.mktemp("outage")
    described, recording = small_estate(folder), folder / "outage.arrow"
    outcome = simulate(make_scenario("getter-outage"), load_estate(described), recording, seed=5)
    assert outcome.first_full is not None
    played = Played.of(described, recording)
    conditions = {(alert.condition, alert.resource.partition("/")[0]) for alert in played.replayed.alerts}
    assert {("threshold", "elements"), ("full", "smds")} <= conditions
    assert foreseen(played.replayed)["QSG1/APP1"] >= {OPENED, UPDATED, CLEARED}
    return played


@pytest.fixture(scope="session")
def every_kind(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """SCM that two structures share, a page set, a queue file, a uniform cluster, each with a story of its own."""
    folder = tmp_path_factory.mktemp("mixed")
    described = mixed_estate(folder)
    played = Played.of(described, mixed_recording(folder, load_estate(described)))
    assert {state["kind"] for state in played.replayed.states.values()} == {
        *("structure", "page_set", "queue_file", "coupling_facility", "uniform_cluster")
    }
    conditions = {(alert.store, alert.condition) for alert in played.replayed.alerts}
    assert {("CF01", "scm-overcommitted"), ("QM01/PS04", "full"), ("QMD1/INVOICES", "full")} <= conditions
    assert {store for store, condition in conditions if condition == "capacity"} == {"UC01"}
    assert foreseen(played.replayed).keys() == {"QSG1/APP1", "QM01/PS04", "QMD1/INVOICES"}
    return played
