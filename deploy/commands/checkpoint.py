"""``mqtwin checkpoint``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from deploy.show.checkpoint import description, last_batch, lines, warn_of_job
from deploy.show.table import show
from streams.checkpoint.guard import open_stopped

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
    print(f"sound: {last_batch(files)}, {files.size():,} bytes")
    return 0


@checkpoint.command
def describe(directory: Path, /, *, json: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Show what a checkpoint belongs to and how far it is.

    Args:
        directory: The --checkpoint of a job, on this machine.
        json: One JSON object instead of a table.
    """
    files, manifest = open_stopped(directory)
    told = description(directory, files, manifest)
    if json:
        print(msgspec.json.encode(told).decode())
    else:
        show(("what", "value"), list(lines(told)))
