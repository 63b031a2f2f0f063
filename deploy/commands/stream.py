"""``mqtwin stream``, ``mqtwin checkpoint`` and ``mqtwin state``: the job, its checkpoint, and the states in it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from cyclopts import App, Parameter
from cyclopts.validators import Number

from deploy.java.jars import SPARK_CONNECTOR, ensure_jars, find_spark_java
from deploy.options.common import (
    MAX_HOURS,
    EstateFile,
    Flag,
    InputFolder,
    KafkaOptions,
    KeptFile,
    KeptFolder,
    OutputFolder,
    Repeated,
    open_estate,
    parse_settings,
    parse_time,
)
from deploy.options.feeds import Sampled, SpanChoices
from deploy.show.document import Document, Table
from deploy.show.summaries import print_usage
from deploy.show.terminal import emit, print_warnings, printable
from deploy.supervisor import NEVER, check_restart, is_supervised, reported_failure, supervise
from streams.checkpoint import relocate as stored_place
from streams.checkpoint.files import DamagedFileError, Offsets
from streams.checkpoint.guard import open_stopped
from streams.checkpoint.local_files import CheckpointFiles
from streams.checkpoint.manifest import Manifest, check_readable, running_job
from streams.checkpoint.relocate import Place
from streams.checkpoint.snapshots import HOURS
from streams.log import configure_logging
from streams.query import stored_state
from streams.query.definition import TRIGGER, JobSettings
from streams.query.job import run_job
from streams.query.past import JobPast
from streams.query.session import MASTER, check_classic, is_local
from streams.query.status import check_replaceable
from streams.query.stored_state import read_states
from twin.base.decoding import UNREADABLE
from twin.base.errors import UsageError
from twin.base.units import as_count
from twin.estate import Estate
from twin.feeds import FeedOptions
from twin.records import StateRecord
from twin.stores.headers import READ_FORMATS, STATE_FORMAT

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


# --- mqtwin checkpoint ------------------------------------------------------------------------------------------------

checkpoint = App(name="checkpoint")


@checkpoint.command
def check(directory: InputFolder, /) -> int:
    """Check every file of a checkpoint and list damaged ones with their remedies. Changes nothing.

    The exit status is 1 if a file is damaged. Copy a checkpoint from HDFS or S3 to this machine first.

    Args:
        directory: Checkpoint folder of a job, on this machine.
    """
    files, _ = open_stopped(directory)
    warn_of_job(directory)
    findings = files.check(thorough=True)
    for finding in findings:
        print(printable(str(finding)))
    if findings:
        return 1
    last = "no batch yet" if files.last_batch is None else f"last batch {files.last_batch}"
    print(f"sound: {last}, {files.size():,} bytes")
    if unverified := files.unverified():
        print(printable(f"not looked at, as they have no checksum: {', '.join(unverified)}"))
    return 0


@checkpoint.command
def describe(directory: InputFolder, /, *, json: Flag = False) -> None:
    """Show the estate, topics, stores and last batch of a checkpoint.

    Args:
        directory: Checkpoint folder of a job, on this machine.
        json: Print JSON instead of text.
    """
    files, manifest = open_stopped(directory)
    description = describe_checkpoint(directory, files, manifest)
    table = Table(("property", "value"), list(description_lines(description)))
    emit(Document(str(directory), [table], description), as_json=json)


@checkpoint.command
def migrate(directory: KeptFolder, /, *, to: str = STATE_FORMAT) -> None:
    """Show what an upgrade does with the state of a checkpoint. Changes nothing: the job migrates each store itself.

    Args:
        directory: Checkpoint folder of a stopped job, on this machine.
        to: Format of state to migrate to.
    """
    files, manifest = open_stopped(directory)
    check_readable(str(directory), manifest)
    if not files.has_state:
        raise UsageError(f"{directory} has no committed batch, and so no state; expected: one that has")
    if to != STATE_FORMAT:
        raise UsageError(
            f"--to {to}: this mqtwin writes no other format of state; expected: {STATE_FORMAT}; to go back, restore "
            "the copy of the checkpoint from before the upgrade, or name another --checkpoint for the other mqtwin"
        )
    warn_of_job(directory)
    configure_logging(level="critical")  # the error line already says what Spark would log
    older, stores = stored_state.count_older(directory, java=find_spark_java())
    if older:
        print(
            f"{older:,} of {stores:,} stores have state of format {READ_FORMATS[0]}: nothing has to be done offline: "
            f"the job writes format {STATE_FORMAT} when it next has events of a store; copy the checkpoint first, as "
            "an earlier mqtwin does not read it afterwards"
        )
    else:
        print(f"nothing to migrate: {stores:,} stores have state of format {STATE_FORMAT}")


@checkpoint.command
def repartition(
    directory: KeptFolder, /, *, partitions: Annotated[int, Parameter(validator=Number(gte=1, lte=10_000))]
) -> None:
    """Distribute the state of a checkpoint over another number of partitions, for more or fewer cores.

    Stop the job before. If the command is killed, run it again: until it has ended the job refuses the checkpoint.

    Args:
        directory: Checkpoint folder of a stopped job, on this machine.
        partitions: Number of state partitions, about the number of cores of all executors.
    """
    configure_logging(level="critical")  # the error line already says what Spark would log
    before = stored_state.repartition(directory, partitions, java=find_spark_java())
    if before == partitions:
        print(f"the state has {partitions} partitions already")
    else:
        print(f"{before} -> {partitions} state partitions")


@checkpoint.command
def relocate(
    directory: InputFolder,
    /,
    *,
    output: Annotated[OutputFolder, Parameter(name=("--output", "-o"))],
    home: str | None = None,
    topic_prefix: str | None = None,
    otlp_topic: str | None = None,
    other_cluster: Flag = False,
) -> None:
    """Copy a checkpoint so that a job can run on the copy: in another folder, with other topics or another cluster.

    The original is only read. With other topics, or in another cluster, the records must be the same at the same
    offsets, as in a copy of Kafka's disks; the next start compares the last record that was read.

    Args:
        directory: Checkpoint folder of a stopped job, on this machine, or a restored copy of it.
        output: Folder to write the copy to; there is none yet.
        home: Path or URI where the job will find the copy, if not at --output.
        topic_prefix: Prefix of the topics from now on.
        otlp_topic: Topic of the spans from now on.
        other_cluster: The topics are in another cluster.
    """
    done = stored_place.relocate(
        directory, output, home=home, prefix=topic_prefix, otlp_topic=otlp_topic, other_cluster=other_cluster
    )
    parts = [f"folder {done.homes[0]} -> {done.homes[1]}"]
    parts += [f"topic {before} -> {after}" for before, after in done.topics.items()]
    if other_cluster:
        parts.append("its cluster is not known")
    if done.has_forgotten:
        last = (
            "the next start compares the last record that was read"
            if done.is_checked
            else ("no last record is known: make sure yourself that the offsets are of the same records")
        )
        parts.append(last)
    print(
        printable(f"{output}: {'; '.join(parts)}; {as_count(done.files, 'file')} rewritten, {directory} is as it was")
    )


def warn_of_job(directory: Path) -> None:
    """Print a warning if a job runs on a checkpoint, because files that it is writing may look incomplete."""
    owner = running_job(directory)
    if owner is not None:
        print_warnings([f"a job runs on {directory} ({owner}): its files change meanwhile"])


class CheckpointDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint as `mqtwin checkpoint describe` prints it; None is unknown, of the job that none runs."""

    checkpoint: str
    topic_prefix: str | None
    topics: Mapping[str, str]  # name -> Kafka's id, "" if unknown
    cluster: str | None
    last_batch: int | None  # begun
    last_committed_batch: int | None  # finished
    offsets: Offsets  # next ones, by topic and partition
    state_partitions: int | None
    state_format: str | None
    mqtwin: str | None
    pyspark: str | None
    last_start: str | None  # wall-clock time, ISO 8601
    estate: str | None  # digest
    stores: Sequence[str] | None
    job: str | None
    bytes: int  # size of its files


def describe_checkpoint(directory: Path, files: CheckpointFiles, manifest: Manifest | None) -> CheckpointDescription:
    """Return the description of a checkpoint."""
    owner = running_job(directory)
    newest = files.newest
    try:
        partitions: int | None = files.read_operator().partitions
    except (DamagedFileError, OSError):
        partitions = None
    own = {} if manifest is None else msgspec.structs.asdict(manifest)
    same = ("cluster", "state_format", "mqtwin", "pyspark", "estate", "stores")
    return CheckpointDescription(
        **{name: own.get(name) for name in same},
        checkpoint=str(directory),
        topic_prefix=own.get("prefix"),
        topics=dict(manifest.topics) if manifest is not None else dict.fromkeys(newest[0] if newest else (), ""),
        last_batch=files.last_batch,
        last_committed_batch=files.commits[-1] if files.commits else None,
        offsets=newest[0] if newest is not None else {},
        state_partitions=partitions,
        last_start=own.get("written"),
        job=str(owner) if owner is not None else None,
        bytes=files.size(),
    )


def description_lines(description: CheckpointDescription) -> Iterator[tuple[str, str]]:
    """Yield the rows of the table of a description: property, value."""
    for name in description.__struct_fields__:
        value, label = getattr(description, name), name.replace("_", " ")
        if name == "offsets":
            for topic, offsets in sorted(description.offsets.items()):
                for partition, offset in sorted(offsets.items()):
                    yield f"next offset of {topic}/{partition}", f"{offset:,}"
        elif name == "topics":
            for topic, topic_id in sorted(description.topics.items()):
                yield "topic", f"{topic} (id {topic_id})" if topic_id else topic
        elif name == "stores":
            yield "stores", "unknown" if description.stores is None else ", ".join(description.stores)
        elif name == "job":
            yield "running job", description.job or "none"
        elif value is None:
            yield label, "unknown"
        else:
            yield label, f"{value:,}" if name == "bytes" else str(value)


# --- mqtwin state -----------------------------------------------------------------------------------------------------


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
