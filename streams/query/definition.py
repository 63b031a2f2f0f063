"""The query: its settings, the topics that it reads, both stages, and the topics that it writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from streams.checkpoint.relocate import Place
from streams.checkpoint.snapshots import HOURS
from streams.errors import one_line
from streams.kafka.admin import COMMITTED, ISOLATION, partitions_of
from streams.kafka.settings import for_spark
from streams.kafka.topics import Limits, Topics
from streams.plan import PackedPlan
from streams.query.decode_stage import KAFKA_COLUMNS, decode_function
from streams.query.progress import LETTERS
from streams.query.rows import (
    BLOCK_DDL,
    CLOCK,
    FIGURES,
    FIRST_OTLP_PARTITION,
    HEARD,
    OBSERVED,
    RECORD_DDL,
    RESTARTED,
    VALUE_PIECE_BYTES,
    SourceBits,
)
from streams.query.session import SparkJava, is_local
from twin.base.errors import MqtwinError, UsageError
from twin.estate import Estate
from twin.feeds import FeedOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TRIGGER = "0 seconds"  # the next batch starts when the previous one has ended
FETCH_BYTES = 16 * 1024 * 1024  # per partition and fetch; a larger record is fetched alone
_OFFSETS = {"earliest": -2, "latest": -1}  # Spark's numbers

# Settings of Kafka's consumer and producer; the user's --kafka settings override them.
_SOURCE_SETTINGS = {
    f"kafka.{ISOLATION}": COMMITTED,  # as librdkafka by default, and so every other reader of the topic
    "kafka.max.partition.fetch.bytes": str(FETCH_BYTES),
    "kafka.fetch.max.bytes": str(4 * FETCH_BYTES),
    "kafka.max.poll.records": "10000",
}
PRODUCER_BATCH_BYTES = 16 * 1024  # Kafka's default of batch.size
# Milliseconds that a record waits for metadata of its topic; after that the task fails and is tried again.
_SINK_SETTINGS = {"kafka.compression.type": "zstd", "kafka.max.block.ms": "15000"}

# The header content-type, which is mostly the first one. Header names are case-sensitive; `lower` would load all of
# ICU, two seconds of the first batch. With a lambda (`filter`) Spark would generate no code for the frame as a whole.
CONTENT_TYPE = (
    "if(get(headers, 0).key = 'content-type', get(headers, 0).value, "
    "get(headers.value, int(array_position(headers.key, 'content-type')) - 1)) as content_type"
)

# Values in pieces, a row each: pieces times rows bound an Arrow batch, see `streams.query.session.ARROW_BATCH_RECORDS`.
_PIECES = f"explode(sequence(0, (coalesce(length(value), 0) - 1) div {VALUE_PIECE_BYTES})) as piece"
_PIECE = (
    f"if(length(value) > {VALUE_PIECE_BYTES}, "
    f"substring(value, piece * {VALUE_PIECE_BYTES} + 1, {VALUE_PIECE_BYTES}), value) as value"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """The settings of a job, as given to `mqtwin stream`.

    Args:
        trigger: minimum time between the starts of two batches, in Spark's notation ("2 seconds").
        max_records: maximum number of Kafka records per batch; 0: no limit; None: see `streams.query.preflight`.
        starting_offsets: "earliest", "latest" or Spark's JSON; only for a new checkpoint.
        fail_on_data_loss: fail if records were deleted before they were read; False: continue silently with the next.
        skip: records to leave out, see `streams.checkpoint.relocate`; the checkpoint is on this machine.
        snapshot_hours: hours of event time between two snapshots, see `streams.checkpoint.snapshots`; 0: none.
    """

    estate: Estate
    bootstrap_servers: str
    checkpoint: str
    prefix: str = "mqtwin"
    kafka: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    master: str | None = None
    trigger: str = TRIGGER
    available_now: bool = False
    max_records: int | None = None
    starting_offsets: str = "earliest"
    fail_on_data_loss: bool = True
    jars: tuple[Path, ...] = ()
    java: SparkJava | None = None
    status_file: Path | None = None
    skip: tuple[Place, ...] = ()
    otlp_topic: str | None = None
    spans: FeedOptions = field(default_factory=FeedOptions)
    snapshot_hours: float = HOURS

    @property
    def client(self) -> dict[str, str]:
        """All Kafka client settings, ``bootstrap.servers`` among them."""
        return {**self.kafka, "bootstrap.servers": self.bootstrap_servers}

    @property
    def topics(self) -> Topics:
        """Names of the topics."""
        return Topics(self.prefix, self.otlp_topic)


def start_query(
    settings: JobSettings,
    session: SparkSession,
    packed: PackedPlan,
    limits: Limits,
    explain_failure: Callable[[BaseException], str],
) -> StreamingQuery:
    """Start the query. UsageError: a setting is wrong. MqtwinError: Spark does not start the query."""
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException

    sink = {
        **_SINK_SETTINGS,
        "kafka.max.request.size": str(limits.request),
        "kafka.buffer.memory": str(max(2 * limits.request, 32 << 20)),
        # A larger batch than a topic takes is refused, and halved at batch.size again and again.
        "kafka.batch.size": str(min(PRODUCER_BATCH_BYTES, limits.smallest)),
    }
    records = twin_frame(events_frame(session, settings), packed, settings.topics.events)
    writer = records.writeStream.format("kafka").options(**{**sink, **for_spark(settings.client)})
    writer = (
        writer.option("checkpointLocation", settings.checkpoint)
        .queryName(f"{settings.prefix} twin")
        .outputMode("update")
    )
    trigger = {"availableNow": True} if settings.available_now else {"processingTime": settings.trigger}
    try:
        return writer.trigger(**trigger).start()
    except (AnalysisException, IllegalArgumentException, ValueError) as error:
        raise UsageError(f"the query does not start: {one_line(error)}") from error
    except (PySparkException, Py4JError) as error:
        raise MqtwinError(f"the query does not start: {explain_failure(error)}") from error


def events_frame(session: SparkSession, settings: JobSettings) -> DataFrame:
    """Return the topics that the job reads as a streaming frame of `KAFKA_COLUMNS`."""
    topics = settings.topics
    options = {
        **_SOURCE_SETTINGS,
        **for_spark(settings.client),
        "subscribe": ",".join(topics.read),
        "includeHeaders": "true",
        "startingOffsets": _starting_offsets(settings),
        "failOnDataLoss": str(settings.fail_on_data_loss).lower(),
        # All cores read a topic with fewer partitions than cores; the offsets of event batches restore the order.
        "minPartitions": str(session.sparkContext.defaultParallelism),
    }
    if settings.max_records:
        options["maxOffsetsPerTrigger"] = str(settings.max_records)
    source = session.readStream.format("kafka").options(**options).load()
    partition = f"if(topic = '{topics.reports}', -1 - partition, partition)"
    if topics.otlp is not None:
        partition = f"if(topic = '{topics.otlp}', {FIRST_OTLP_PARTITION} + partition, {partition})"
    frame = in_pieces(source.selectExpr("value", CONTENT_TYPE, f"{partition} as partition", "offset"))
    if is_local(session.sparkContext.master or ""):  # a task has a cost: one for each core, not for each partition
        frame = frame.coalesce(session.sparkContext.defaultParallelism)
    return frame


def in_pieces(records: DataFrame) -> DataFrame:
    """Return records of `KAFKA_COLUMNS` with values of at most `VALUE_PIECE_BYTES`: long ones in several rows."""
    return records.selectExpr("*", _PIECES).selectExpr(_PIECE, *KAFKA_COLUMNS[1:])


def _starting_offsets(settings: JobSettings) -> str:
    """Return the starting offsets of a new checkpoint, as Spark's JSON.

    The reports are read from their end: existing ones belong to the state of an earlier job.
    """
    topics, start = settings.topics, settings.starting_offsets
    offsets = {} if start in _OFFSETS else msgspec.json.decode(start)
    for name in topics.read:
        if name != topics.reports and (start in _OFFSETS or name == topics.otlp):
            first = _OFFSETS.get(start, _OFFSETS["earliest"])
            offsets.setdefault(name, dict.fromkeys(partitions_of(settings.client, name), first))
    reports = dict.fromkeys(partitions_of(settings.client, topics.reports), _OFFSETS["latest"])
    return msgspec.json.encode({topics.reports: reports, **offsets}).decode()


def twin_frame(events: DataFrame, packed: PackedPlan, source: str) -> DataFrame:
    """Return the output of the query as a frame of Kafka records: topic, key, value, headers."""
    from pyspark.sql import functions as f

    from streams.query.processor import TwinProcessor

    blocks = events.mapInArrow(decode_function(packed, source), BLOCK_DDL)
    records = blocks.groupBy("store").transformWithState(TwinProcessor(packed), RECORD_DDL, "Update", "None")
    sums = [f.sum(f.col("figures")[i]).alias(FIGURES[i]) for i in range(len(FIGURES))]
    plan = packed.unpack()
    sums += [f.max(f.col("figures")[len(FIGURES) + i]).alias(name) for i, name in enumerate((RESTARTED, CLOCK))]
    words = [f.bit_or(f.get(HEARD, f.lit(i))).alias(name) for i, name in enumerate(SourceBits(plan.estate).columns)]
    is_letter = f.col("topic") == plan.topics.dlq
    reason = f.get("headers", f.lit(0))["value"]  # the first header: `streams.query.rows.DeadLetter.headers`
    letters = [f.count_if(is_letter & (reason == f.lit(code.encode()))).alias(name) for name, code in LETTERS.items()]
    return records.observe(OBSERVED, *sums, *words, *letters).select("topic", "key", "value", "headers")
