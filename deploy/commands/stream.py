"""``mqtwin stream``."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from deploy.java.class_archives import find_spark_java
from deploy.java.jars import SPARK_CONNECTOR, ensure_jars
from deploy.options.common import MAX_HOURS, Flag, KafkaOptions, Repeated, open_estate, parse_settings
from deploy.options.feeds import Sampled, SpanChoices
from deploy.options.files import EstateFile, KeptFile
from deploy.supervisor import NEVER, check_restart, is_supervised, reported_failure, supervise
from streams.checkpoint.skip import Place
from streams.checkpoint.snapshots import HOURS
from streams.log import configure_logging
from streams.query.definition import TRIGGER, JobSettings
from streams.query.job import run_job
from streams.query.session import MASTER, check_classic, is_local
from streams.query.status import check_replaceable
from twin.decoding import UNREADABLE
from twin.errors import UsageError
from twin.feeds import FeedOptions

_SPAN_DEFAULTS = SpanChoices()
_MIN_SNAPSHOT_HOURS = 0.01
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")  # [Kafka: org.apache.kafka.common.internals.Topic]
_INTERVAL = re.compile(
    r"(?:interval\s+)?(?:\d+(?:\.\d+)?\s+(?:microsecond|millisecond|second|minute|hour|day|week)s?\s*)+", re.IGNORECASE
)


def stream(
    *,
    estate: EstateFile,
    checkpoint: str,
    kafka: KafkaOptions,
    available_now: Flag = False,
    trigger: str = TRIGGER,
    max_records: Annotated[int | None, Parameter(validator=Number(gte=0))] = None,
    starting_offsets: str = "earliest",
    tolerate_data_loss: Flag = False,
    skip: Repeated = (),
    master: str | None = None,
    conf: Repeated = (),
    restart: str = NEVER,
    status_file: KeptFile | None = None,
    snapshot_hours: float = HOURS,
    otlp_topic: str | None = None,
    qmgr: str | None = None,
    sampled: Sampled = None,
    spans: SpanChoices = _SPAN_DEFAULTS,
    log: Literal["auto", "text", "json"] = "auto",
    log_level: Literal["debug", "info", "warning", "error"] = "info",
) -> None:
    """Run the streaming job: events from Kafka to the twin of each store, alerts and states back to Kafka.

    Creates missing topics. On SIGTERM or Ctrl-C it stops after the running batch. A restart on the same checkpoint
    continues where it stopped.

    Args:
        estate: Estate file (TOML).
        kafka: Kafka connection.
        checkpoint: Folder, or any URI that Spark can write, for offsets and state.
        available_now: Process the events available now, then stop.
        trigger: Minimum interval between the starts of two batches, in Spark's notation: "2 seconds".
        max_records: Maximum Kafka records per batch; 0: no limit. Default: as many as make up about 256 MB.
        starting_offsets: Start of a new checkpoint: earliest, latest, or Spark's JSON of offsets.
        tolerate_data_loss: Continue with the next event if Kafka deleted events before they were read.
        skip: Record that ends the job, TOPIC/PARTITION/OFFSET, to become a dead letter; may be repeated.
        master: Spark master. Default: all cores of this machine.
        conf: Spark setting, KEY=VALUE; may be repeated.
        restart: Restart after a failure: never, always, or a number of failures in a row after which it gives up.
        status_file: File for the figures of the last batch, for `mqtwin export`; replaced at each batch.
        snapshot_hours: Hours of event time between two snapshots of the state, for `mqtwin state --at`; 0: none.
        otlp_topic: Topic of an OpenTelemetry collector, to be read beside the events; docs/feeds.md.
        qmgr: Queue manager of spans that name none.
        spans: OpenTelemetry spans.
        log: Format of the log on standard error; auto: JSON unless that is a terminal.
        log_level: Lowest level to log.
    """
    if not _INTERVAL.fullmatch(trigger.strip()):  # Spark itself would check it only after the start
        raise UsageError(f'--trigger {trigger}; expected: an interval such as "2 seconds" or "1 minute 30 seconds"')
    _check_starting_offsets(starting_offsets)
    skipped = tuple(map(Place.parse, skip))
    check_restart(restart)
    spark_settings = parse_settings("--conf", conf)
    check_classic(master, spark_settings)
    if not (snapshot_hours == 0 or _MIN_SNAPSHOT_HOURS <= snapshot_hours <= MAX_HOURS):
        expected = f"0, or from {_MIN_SNAPSHOT_HOURS:g} to {MAX_HOURS:g}"
        raise UsageError(f"--snapshot-hours {snapshot_hours:g}; expected: {expected}")
    if otlp_topic is not None and not _TOPIC.fullmatch(otlp_topic):
        raise UsageError(f"--otlp-topic {otlp_topic}; expected: the name of a topic, letters, digits, . _ -")
    if status_file is not None:
        check_replaceable(status_file)
    if restart != NEVER and not is_supervised():
        supervise(restart, log, log_level)
    with reported_failure():
        loaded_estate = open_estate(estate)
        configure_logging(json_lines=None if log == "auto" else log == "json", level=log_level)
        is_local_master = is_local(master or spark_settings.get("spark.master") or MASTER)
        run_job(
            JobSettings(
                estate=loaded_estate,
                bootstrap_servers=kafka.bootstrap_servers,
                checkpoint=checkpoint,
                prefix=kafka.topic_prefix,
                kafka=kafka.settings(),
                conf=spark_settings,
                master=master,
                trigger=trigger,
                available_now=available_now,
                max_records=max_records,
                starting_offsets=starting_offsets,
                fail_on_data_loss=not tolerate_data_loss,
                skip=skipped,
                jars=ensure_jars(SPARK_CONNECTOR),
                java=find_spark_java() if is_local_master else None,
                status_file=status_file,
                snapshot_hours=snapshot_hours,
                otlp_topic=otlp_topic,
                spans=spans.complete(FeedOptions(qmgr=qmgr, sampled=sampled)),
            )
        )


def _check_starting_offsets(text: str) -> None:
    """Raise UsageError unless `text` is earliest, latest or a JSON object, whose content Spark checks."""
    if text in {"earliest", "latest"}:
        return
    try:
        offsets = msgspec.json.decode(text)
    except UNREADABLE:
        offsets = None
    if not isinstance(offsets, dict):
        raise UsageError(
            f'--starting-offsets {text}; expected: earliest, latest or JSON such as {{"mqtwin.events":{{"0":23}}}}'
        )
