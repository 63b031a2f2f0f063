"""Checkpoints as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from deploy.show.terminal import print_warnings
from streams.checkpoint.files import DamagedFileError, Offsets
from streams.checkpoint.local_files import CheckpointFiles
from streams.checkpoint.manifest import Manifest, running_job


def warn_of_job(directory: Path) -> None:
    """Print a warning if a job runs on a checkpoint, because files that it is writing may look incomplete."""
    owner = running_job(directory)
    if owner is not None:
        print_warnings([f"a job runs on {directory} ({owner}): its files change meanwhile"])


class CheckpointDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint as `mqtwin checkpoint describe` prints it; None is unknown, of the job that none runs.

    Attributes:
        checkpoint: its folder.
        topic_prefix: prefix of the names of the topics.
        topics: the topics read -> Kafka's id, "" if unknown.
        cluster: Kafka's id of the cluster.
        last_batch: number of the last batch that was begun.
        last_committed_batch: number of the last batch that was finished.
        offsets: next offset by partition, by topic.
        state_partitions: number of partitions of the state.
        state_format: format of the state.
        mqtwin: version that wrote it.
        pyspark: version that wrote it.
        last_start: wall-clock time of the job's last start, ISO 8601.
        estate: digest of the estate.
        stores: names of the stores of the estate.
        job: the job that runs on it.
        bytes: size of its files.
    """

    checkpoint: str
    topic_prefix: str | None
    topics: Mapping[str, str]
    cluster: str | None
    last_batch: int | None
    last_committed_batch: int | None
    offsets: Offsets
    state_partitions: int | None
    state_format: str | None
    mqtwin: str | None
    pyspark: str | None
    last_start: str | None
    estate: str | None
    stores: Sequence[str] | None
    job: str | None
    bytes: int


def describe_checkpoint(directory: Path, files: CheckpointFiles, manifest: Manifest | None) -> CheckpointDescription:
    """Return the description of a checkpoint."""
    owner = running_job(directory)
    newest = files.newest
    try:
        partitions: int | None = files.read_operator().partitions
    except (DamagedFileError, OSError):
        partitions = None
    return CheckpointDescription(
        checkpoint=str(directory),
        topic_prefix=manifest.prefix if manifest is not None else None,
        topics=dict(manifest.topics) if manifest is not None else dict.fromkeys(newest[0] if newest else (), ""),
        cluster=manifest.cluster if manifest is not None else None,
        last_batch=files.last_batch,
        last_committed_batch=files.commits[-1] if files.commits else None,
        offsets=newest[0] if newest is not None else {},
        state_partitions=partitions,
        state_format=manifest.state_format if manifest is not None else None,
        mqtwin=manifest.mqtwin if manifest is not None else None,
        pyspark=manifest.pyspark if manifest is not None else None,
        last_start=manifest.written if manifest is not None else None,
        estate=manifest.estate if manifest is not None else None,
        stores=manifest.stores if manifest is not None else None,
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


def last_batch_text(files: CheckpointFiles) -> str:
    """Return the last batch of a checkpoint as text."""
    return "no batch yet" if files.last_batch is None else f"last batch {files.last_batch}"
