"""A relocated checkpoint: the job resumes in another folder, with topics of other names, and ends as a replay does."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from streams.checkpoint.relocate import relocate
from streams.query.stored_state import read_states
from tests.checkpoints.archives import Opened, newest_archive, unpack
from tests.streams.kafka_help import new_producer
from tests.system.harness import PATIENCE, Stream, check_equal, read_topic
from twin.base.errors import UsageError
from twin.playback.replays import replay

pytestmark = [pytest.mark.system, pytest.mark.nightly]


def copy_topics(servers: str, partitions: dict[str, int], before: str, after: str) -> dict[str, int]:
    """Copy topics under another prefix, each record at its offset; return the partitions of the copies."""
    copies = {name.replace(before, after): count for name, count in partitions.items()}
    topics = [NewTopic(name, count) for name, count in copies.items()]
    admin = AdminClient({"bootstrap.servers": servers})  # futures complete only while the client exists
    for future in admin.create_topics(topics).values():
        future.result()
    producer = new_producer(servers)
    for name in partitions:
        for record in read_topic(servers, name):
            headers: list[tuple[str, str | bytes | None]] = [
                (key, text.encode()) for key, text in record.headers.items()
            ]
            producer.produce(name.replace(before, after), record.value, record.key, record.partition, headers=headers)
            producer.poll(0)
    assert producer.flush(PATIENCE) == 0
    return copies


def test_a_job_resumes_from_a_relocated_checkpoint(
    kafka: str, spark: SparkSession, topic_prefix: str, tmp_path: Path
) -> None:
    opened = unpack(newest_archive(), tmp_path / "contents", kafka, spark)
    contents, first = opened.contents, opened.stream
    copies = copy_topics(kafka, dict(contents.partitions), contents.prefix, topic_prefix)
    otlp = contents.otlp.replace(contents.prefix, topic_prefix)
    target = tmp_path / "moved"
    done = relocate(first.checkpoint, target, prefix=topic_prefix, otlp_topic=otlp)
    assert set(done.topics.values()) == {f"{topic_prefix}.events", f"{topic_prefix}.reports", otlp}
    first.checkpoint.rename(tmp_path / "elsewhere")  # nothing may lead to the original

    stream = Stream(spark, kafka, topic_prefix, first.estate, target, otlp_topic=otlp)
    assert len(list(read_states(target, stream.estate, session=spark))) == len(stream.estate.stores)
    written = stream.alerts()
    renamed = msgspec.structs.replace(contents, prefix=topic_prefix, otlp=otlp, partitions=copies)
    moved = Opened(renamed, opened.folder, stream)
    with pytest.raises(UsageError, match="belongs to topic"):
        Stream(spark, kafka, contents.prefix, first.estate, target, otlp_topic=contents.otlp).run()
    moved.send_rest()
    stream.run(max_records=300)
    check_equal(stream, replay(moved.whole(), stream.estate), written)
