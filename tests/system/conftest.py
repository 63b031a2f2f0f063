"""One Spark session for all system tests, a stream for each test, and recordings that are made and replayed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deploy.java.jars import SPARK_CONNECTOR, ensure_jars, find_spark_java
from streams.query.session import open_session
from tests.support.estates import small_estate
from tests.support.mixed import mixed_estate, mixed_recording
from tests.system.harness import Played, Stream, forecast_changes
from twin.base.conditions import CLEARED, OPENED, UPDATED
from twin.estate import Estate, load_estate
from twin.simulation import make_scenario, simulate


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session, opened as the job opens it."""
    session = open_session(
        master="local[2]",
        jars=ensure_jars(SPARK_CONNECTOR),
        java=find_spark_java(),
        conf={"spark.local.dir": str(tmp_path_factory.mktemp("spark"))},
    )
    yield session
    session.stop()


@pytest.fixture
def new_stream(spark: SparkSession, kafka: str, topic_prefix: str, tmp_path: Path) -> Callable[[Estate], Stream]:
    """A factory of streams, each with its own topics and checkpoint."""
    streams: list[Stream] = []

    def new(estate: Estate) -> Stream:
        number = len(streams)
        streams.append(Stream(spark, kafka, f"{topic_prefix}-{number}", estate, tmp_path / f"checkpoint-{number}"))
        return streams[-1]

    return new


@pytest.fixture
def published(new_stream: Callable[[Estate], Stream], outage: Played) -> Stream:
    """A stream whose events topic holds the outage."""
    return outage.publish(new_stream(outage.estate))


@pytest.fixture(scope="session")
def outage(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """A getter outage that passes every offload rule up to reason 2192, and back."""
    folder = tmp_path_factory.mktemp("outage")
    described, recording = small_estate(folder), folder / "outage.arrow"
    outcome = simulate(make_scenario("getter-outage"), load_estate(described), recording, seed=5)
    assert outcome.first_full is not None
    played = Played.replay(described, recording)
    conditions = {(alert.condition, alert.resource.partition("/")[0]) for alert in played.replayed.alerts}
    assert {("threshold", "elements"), ("full", "smds")} <= conditions
    assert forecast_changes(played.replayed)["QSG1/APP1"] >= {OPENED, UPDATED, CLEARED}
    return played


@pytest.fixture(scope="session")
def every_kind(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """SCM that two structures share, a page set, a queue file and its log, a uniform cluster: an incident in each."""
    folder = tmp_path_factory.mktemp("mixed")
    described = mixed_estate(folder)
    played = Played.replay(described, mixed_recording(folder, load_estate(described)))
    assert {state.kind for state in played.replayed.states.values()} == {
        *("structure", "page_set", "queue_file", "queue_manager", "coupling_facility", "uniform_cluster")
    }
    conditions = {(alert.store, alert.condition) for alert in played.replayed.alerts}
    assert {("CF01", "scm-overcommitted"), ("QM01/PS04", "full"), ("QMD1/INVOICES", "full")} <= conditions
    assert {store for store, condition in conditions if condition == "capacity"} == {"UC01"}
    assert forecast_changes(played.replayed).keys() == {"QSG1/APP1", "QM01/PS04", "QMD1/INVOICES"}
    return played
