"""``mqtwin checkpoint``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter

from deploy.show.table import show
from streams.checkpoint.files import CheckpointFiles, DamagedFileError
from streams.checkpoint.guard import open_stopped
from streams.checkpoint.manifest import Manifest, running_job

checkpoint = App(name="checkpoint")


@checkpoint.command
def check(directory: Path, /) -> int:
    """Read every file of a checkpoint and list what is damaged, with the remedy. Changes nothing.

    Exit status 1 where something is damaged. A checkpoint of HDFS or S3 must be copied to this machine first.

    Args:
        directory: The --checkpoint of a job, on this machine.
    """
    files, _ = open_stopped(directory)
    warn_of_job(directory)
    findings = files.check(thorough=True)
    for finding in findings:
        print(finding)
    if findings:
        return 1
    print(f"sound: {_last_batch(files)}, {files.size():,} bytes")
    return 0


@checkpoint.command
def describe(directory: Path, /, *, json: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Show what a checkpoint belongs to and how far it is.

    Args:
        directory: The --checkpoint of a job, on this machine.
        json: One JSON object instead of a table.
    """
    files, manifest = open_stopped(directory)
    told = _description(directory, files, manifest)
    if json:
        print(msgspec.json.encode(told).decode())
    else:
        show(("what", "value"), list(_lines(told)))


def warn_of_job(directory: Path) -> None:
    """Warn that a job runs on a checkpoint: what it writes meanwhile may look unfinished."""
    owner = running_job(directory)
    if owner is not None:
        print(f"mqtwin: warning: a job runs on {directory} ({owner}): its files change meanwhile", file=sys.stderr)


def _description(directory: Path, files: CheckpointFiles, manifest: Manifest | None) -> dict[str, Any]:
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


def _lines(told: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (what, value) of a description for people."""
    for name, value in told.items():
        what = name.replace("_", " ")
        if name == "offsets":
            for topic, places in sorted(value.items()):
                for partition, offset in sorted(places.items()):
                    yield f"next of {topic}/{partition}", f"{offset:,}"
        elif name == "topics":
            for topic, topic_id in sorted(value.items()):
                yield "topic", f"{topic} (id {topic_id})" if topic_id else topic
        elif name == "stores":
            yield "stores", "unknown" if value is None else ", ".join(value)
        elif name == "job":
            yield "running job", value or "none"
        elif value is None:
            yield what, "unknown"
        else:
            yield what, f"{value:,}" if name == "bytes" else str(value)


def _last_batch(files: CheckpointFiles) -> str:
    return "no batch yet" if files.last_batch is None else f"last batch {files.last_batch}"
