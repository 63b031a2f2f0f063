"""``mqtwin checkpoint``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter
from cyclopts.validators import Number

from deploy.java.class_archives import find_spark_java
from deploy.options.common import Flag
from deploy.options.files import InputFolder, KeptFolder, OutputFolder
from deploy.show.document import Document, Table
from deploy.show.terminal import emit, print_warnings, printable
from streams.checkpoint import relocate as stored_place
from streams.checkpoint.files import DamagedFileError, Offsets
from streams.checkpoint.guard import open_stopped
from streams.checkpoint.local_files import CheckpointFiles
from streams.checkpoint.manifest import Manifest, check_readable, running_job
from streams.log import configure_logging
from streams.query import stored_state
from twin.errors import UsageError
from twin.stores.headers import READ_FORMATS, STATE_FORMAT
from twin.units import as_count

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
