"""Topics that the job creates or finds: the times of their records, the sizes that they take."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from streams.kafka.admin import (
    _topic_settings,
    _warn_of_any_time,
    admin_client,
    check_event_log,
    prepare_topic,
    prepare_topics,
)
from streams.kafka.topics import Limits, Topics
from tests.streams.kafka_help import create
from twin.base.errors import UsageError

TYPE, AHEAD = "message.timestamp.type", "message.timestamp.after.max.ms"


@pytest.mark.parametrize(
    ("settings", "warns"),
    [
        ({TYPE: "LogAppendTime", AHEAD: "9223372036854775807"}, False),
        ({TYPE: "CreateTime", AHEAD: "9223372036854775807"}, True),  # Kafka's default before 4.0
        ({TYPE: "CreateTime", AHEAD: "3600000"}, False),  # and since
        ({TYPE: "CreateTime"}, True),  # brokers before 3.6 have one setting for both directions
        ({}, False),  # the user may not read them
    ],
    ids=["of the broker", "without a bound", "with a bound", "before 3.6", "unknown"],
)
def test_a_topic_that_takes_records_of_any_time_is_a_warning(settings: dict[str, str], warns: bool) -> None:
    with capture_logs() as logs:
        _warn_of_any_time("t", settings)
    assert [entry["topic"] for entry in logs] == ["t"] * warns


@pytest.mark.system
def test_topics_get_the_time_of_the_broker_and_one_without_a_bound_is_named(kafka: str, topic_prefix: str) -> None:
    topics, client = Topics(topic_prefix), {"bootstrap.servers": kafka}
    create(kafka, topics.events, message_timestamp_after_max_ms="9223372036854775807")
    create(kafka, topics.dlq, max_message_bytes="2000")
    with capture_logs() as logs:
        limits = prepare_topics(topics, client)
    assert [entry["topic"] for entry in logs if entry["event"] == "a topic takes records of any time"] == [
        topics.events
    ]
    admin = admin_client(client)
    for name in (topics.state, topics.alerts, topics.reports):
        assert _topic_settings(admin, name)[TYPE] == "LogAppendTime"
    assert _topic_settings(admin, topics.state)["cleanup.policy"] == "compact"
    assert (limits.smallest, limits.dlq) == (2000, 1)


def test_the_smallest_record_of_all_topics_bounds_a_batch_of_the_producer() -> None:
    topics = Topics()
    sizes = {topics.state: 100_000, topics.alerts: 50_000, topics.dlq: 70_000, topics.reports: 90_000}
    assert Limits.of_records(sizes, topics).smallest == 50_000


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_an_events_topic_that_is_compacted_is_refused(policy: str) -> None:
    with pytest.raises(UsageError, match=r"only the last ones stay; expected: cleanup\.policy=delete"):
        check_event_log("t", {"cleanup.policy": policy})


@pytest.mark.parametrize(
    ("settings", "warns"),
    [
        ({"retention.ms": "3600000"}, True),
        ({"retention.ms": "-1"}, False),
        ({"retention.ms": "604800000"}, False),
        ({}, False),
    ],
)
def test_a_short_retention_of_events_is_a_warning(settings: dict[str, str], warns: bool) -> None:
    with capture_logs() as logs:
        check_event_log("t", settings)
    assert [entry["topic"] for entry in logs] == ["t"] * warns


@pytest.mark.system
def test_events_are_not_produced_to_a_compacted_topic(kafka: str, topic_prefix: str) -> None:
    topics, client = Topics(topic_prefix), {"bootstrap.servers": kafka}
    create(kafka, topics.events, cleanup_policy="compact")
    create(kafka, topics.dlq)
    with pytest.raises(UsageError, match=f"topic {topics.events} has cleanup.policy=compact"):
        prepare_topic(topics, topics.events, client, create=False)
    assert prepare_topic(topics, topics.dlq, client, create=False)
