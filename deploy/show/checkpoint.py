"""Checkpoints as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deploy.show.terminal import print_warnings
from streams.checkpoint.files import DamagedFileError
from streams.checkpoint.local_files import CheckpointFiles
from streams.checkpoint.manifest import Manifest, running_job


def warn_of_job(directory: Path) -> None:
    """Print a warning if a job runs on a checkpoint, because files that it is writing may look incomplete."""
    owner = running_job(directory)
    if owner is not None:
        print_warnings([f"a job runs on {directory} ({owner}): its files change meanwhile"])


def describe_checkpoint(directory: Path, files: CheckpointFiles, manifest: Manifest | None) -> dict[str, Any]:
    """Return the description of a checkpoint, as `mqtwin checkpoint describe --json` prints it."""
    owner = running_job(directory)
    newest = files.newest
    try:
        partitions: int | None = files.read_operator().partitions
    except (DamagedFileError, OSError):
        partitions = None
    return {
        "checkpoint": str(directory),
        "topic_prefix": manifest.prefix if manifest is not None else None,
        "topics": dict(manifest.topics) if manifest is not None else dict.fromkeys(newest[0] if newest else (), ""),
        "cluster": manifest.cluster if manifest is not None else None,
        "last_batch": files.last_batch,
        "last_committed_batch": files.commits[-1] if files.commits else None,
        "offsets": newest[0] if newest is not None else {},
        "state_partitions": partitions,
        "state_format": manifest.state_format if manifest is not None else None,
        "mqtwin": manifest.mqtwin if manifest is not None else None,
        "pyspark": manifest.pyspark if manifest is not None else None,
        "last_start": manifest.written if manifest is not None else None,
        "estate": manifest.estate if manifest is not None else None,
        "stores": manifest.stores if manifest is not None else None,
        "job": str(owner) if owner is not None else None,
        "bytes": files.size(),
    }


def description_lines(description: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the rows of the table of a description: property, value."""
    for name, value in description.items():
        label = name.replace("_", " ")
        if name == "offsets":
            for topic, offsets in sorted(value.items()):
                for partition, offset in sorted(offsets.items()):
                    yield f"next offset of {topic}/{partition}", f"{offset:,}"
        elif name == "topics":
            for topic, topic_id in sorted(value.items()):
                yield "topic", f"{topic} (id {topic_id})" if topic_id else topic
        elif name == "stores":
            yield "stores", "unknown" if value is None else ", ".join(value)
        elif name == "job":
            yield "running job", value or "none"
        elif value is None:
            yield label, "unknown"
        else:
            yield label, f"{value:,}" if name == "bytes" else str(value)


def last_batch_text(files: CheckpointFiles) -> str:
    """Return the last batch of a checkpoint as text."""
    return "no batch yet" if files.last_batch is None else f"last batch {files.last_batch}"
