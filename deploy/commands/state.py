"""``mqtwin state``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from deploy.commands.checkpoint import warn_of_job
from deploy.java.class_archives import find_spark_java
from deploy.options.common import Flag, KafkaOptions, open_estate, parse_time
from deploy.options.files import EstateFile, InputFolder
from deploy.show.summaries import print_usage
from deploy.show.terminal import print_warnings
from streams.checkpoint.guard import open_stopped
from streams.log import configure_logging
from streams.query.past import JobPast
from streams.query.stored_state import read_states
from twin.errors import UsageError
from twin.estate import Estate
from twin.records import StateRecord


def state(
    *,
    estate: EstateFile,
    checkpoint: InputFolder | None = None,
    time: Annotated[str | None, Parameter(name="--at")] = None,
    kafka: KafkaOptions | None = None,
    store: str | None = None,
    json: Flag = False,
) -> None:
    """Print the state records in a checkpoint after its last committed batch, without Kafka, or as of a past time.

    A past time needs Kafka: the state is exactly that of a replay of all events up to it, by the last snapshot before
    it and the events since. On a terminal this is a table, elsewhere JSON lines, as in the state topic.

    Args:
        estate: Estate file (TOML) of the job; a checkpoint has neither names nor sizes.
        checkpoint: Checkpoint folder of a job, on this machine; for a past time its snapshots.
        time: Past moment, RFC 3339, such as 2026-11-20T02:10Z.
        kafka: Kafka connection, for a past time.
        store: Print only this store, such as QSG1/APP1.
        json: Print JSON lines instead of text, on a terminal too.
    """
    loaded_estate = open_estate(estate)
    if store is not None and store not in loaded_estate.stores:
        raise UsageError(f"--store {store}: not in {estate}; expected: {', '.join(sorted(loaded_estate.stores))}")
    if (time is None) != (kafka is None):
        raise UsageError("--at and --bootstrap-servers belong together; expected: both, or --checkpoint alone")
    states: Iterable[StateRecord]
    if time is not None and kafka is not None:
        states = _past(time, kafka, loaded_estate, checkpoint, store)
    elif checkpoint is not None:
        states = _last(checkpoint, loaded_estate, store)
    else:
        raise UsageError("state: no source; expected: --checkpoint FOLDER, or --at TIME --bootstrap-servers HOST:PORT")
    if json or not sys.stdout.isatty():
        for record in states:
            print(msgspec.json.encode(record).decode(), flush=True)
    else:
        print_usage(states)


def _last(checkpoint: Path, estate: Estate, store: str | None) -> Iterator[StateRecord]:
    files, manifest = open_stopped(checkpoint)
    if not files.commits:
        raise UsageError(f"{checkpoint} has no committed batch; expected: one that a job has written events into")
    warn_of_job(checkpoint)
    unknown_stores = sorted(set(manifest.stores) - estate.stores.keys()) if manifest is not None else []
    if unknown_stores:
        print_warnings([f"not in the estate, so not shown: {', '.join(unknown_stores)}"])
    configure_logging(level="critical")  # the error line already says what Spark would log
    return read_states(checkpoint, estate, store, java=find_spark_java())


def _past(
    time: str, kafka: KafkaOptions, estate: Estate, checkpoint: Path | None, store: str | None
) -> Iterable[StateRecord]:
    time_us = parse_time("--at", time)
    if checkpoint is not None:
        open_stopped(checkpoint)
    configure_logging(level="critical")
    past = JobPast(
        kafka=kafka.client(),
        topics=kafka.topics,
        estate=estate,
        checkpoint=checkpoint,
        java=find_spark_java(),
        warn=lambda text: print_warnings([text]),
    )
    return past.states(time_us, store).values()
