"""``mqtwin stream``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from deploy.jars import SPARK_CONNECTOR, ensure_jars
from deploy.java import find_java
from deploy.options import KafkaOptions, parse_settings
from deploy.show.warnings import warned
from deploy.supervisor import NEVER, check_restart, is_supervised, reported_failure, supervise
from streams.log import configure_logging
from streams.query.job import TRIGGER, JobSettings, run_job
from streams.query.session import MASTER, is_local
from twin.errors import UsageError
from twin.estate import load_estate

_INTERVAL = re.compile(
    r"(?:interval\s+)?(?:\d+(?:\.\d+)?\s+(?:microsecond|millisecond|second|minute|hour|day|week)s?\s*)+", re.IGNORECASE
)


def stream(
    *,
    estate: Path,
    checkpoint: str,
    kafka: KafkaOptions,
    available_now: Annotated[bool, Parameter(negative="")] = False,
    trigger: str = TRIGGER,
    max_records: Annotated[int | None, Parameter(validator=Number(gte=0))] = None,
    starting_offsets: str = "earliest",
    tolerate_data_loss: Annotated[bool, Parameter(negative="")] = False,
    master: str | None = None,
    conf: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    restart: str = NEVER,
    log: Literal["auto", "text", "json"] = "auto",
    log_level: Literal["debug", "info", "warning", "error"] = "info",
) -> None:
    """The streaming job: events from Kafka into the twin of every store, alerts and state back to Kafka.

    Creates its topics where they are missing. Stops on SIGTERM or Ctrl-C after the running batch; started again on its
    checkpoint it goes on where it was.

    Args:
        estate: What exists, a TOML file.
        kafka: Where Kafka is.
        checkpoint: Folder, or any URI Spark can write, that keeps offsets and state.
        available_now: Work off what is there, then end.
        trigger: Least time between the beginnings of two batches, as Spark writes it: "2 seconds".
        max_records: At most so many Kafka records in a batch; 0: no limit. By default as many as have about 256 MB.
        starting_offsets: Where a new checkpoint begins: earliest, latest, or Spark's JSON of offsets.
        tolerate_data_loss: Go on with the next event where Kafka deleted events before they were read.
        master: Spark's master; all cores of this machine by default.
        conf: A Spark setting, KEY=VALUE; may be repeated.
        restart: After a failure start again: never, always, or until so many failures in a row.
        log: Lines for a person or JSON lines, on standard error; auto: JSON unless it is a terminal.
        log_level: The lowest level that is logged.
    """
    _check_trigger(trigger)
    _check_starting_offsets(starting_offsets)
    check_restart(restart)
    if restart != NEVER and not is_supervised():
        supervise(restart, log, log_level)
    with reported_failure():
        described = warned(load_estate(estate))
        configure_logging(json_lines=None if log == "auto" else log == "json", level=log_level)
        spark = parse_settings("--conf", conf)
        local = is_local(master or spark.get("spark.master") or MASTER)
        run_job(
            JobSettings(
                estate=described,
                bootstrap_servers=kafka.bootstrap_servers,
                checkpoint=checkpoint,
                prefix=kafka.topic_prefix,
                kafka=kafka.settings(),
                conf=spark,
                master=master,
                trigger=trigger,
                available_now=available_now,
                max_records=max_records,
                starting_offsets=starting_offsets,
                fail_on_data_loss=not tolerate_data_loss,
                jars=ensure_jars(SPARK_CONNECTOR),
                java_home=find_java().home if local else None,
            )
        )


def _check_trigger(trigger: str) -> None:
    """UsageError where it is no interval: Spark itself says so only when everything has been started."""
    if not _INTERVAL.fullmatch(trigger.strip()):
        raise UsageError(f'--trigger {trigger}: an interval is written as "2 seconds" or "1 minute 30 seconds"')


def _check_starting_offsets(text: str) -> None:
    """UsageError where it is neither a word nor a JSON object; what is in the object, Spark checks."""
    if text in {"earliest", "latest"}:
        return
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        found = None
    if not isinstance(found, dict):
        raise UsageError(
            f'--starting-offsets {text}: earliest, latest or JSON such as {{"mqtwin.events":{{"0":23}}}} is right'
        )
