"""``mqtwin checkpoint``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from deploy.show.checkpoint import describe_checkpoint, description_lines, last_batch_text, warn_of_job
from deploy.show.terminal import print_table
from streams.checkpoint.guard import open_stopped

checkpoint = App(name="checkpoint")


@checkpoint.command
def check(directory: Path, /) -> int:
    """Check every file of a checkpoint and list damaged ones with their remedies. Changes nothing.

    The exit status is 1 if a file is damaged. Copy a checkpoint from HDFS or S3 to this machine first.

    Args:
        directory: Checkpoint folder of a job, on this machine.
    """
    files, _ = open_stopped(directory)
    warn_of_job(directory)
    findings = files.check(thorough=True)
    for finding in findings:
        print(finding)
    if findings:
        return 1
    print(f"sound: {last_batch_text(files)}, {files.size():,} bytes")
    return 0


@checkpoint.command
def describe(directory: Path, /, *, json: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Show the estate, topics, stores and last batch of a checkpoint.

    Args:
        directory: Checkpoint folder of a job, on this machine.
        json: Print one JSON object instead of a table.
    """
    files, manifest = open_stopped(directory)
    description = describe_checkpoint(directory, files, manifest)
    if json:
        print(msgspec.json.encode(description).decode())
    else:
        print_table(("property", "value"), list(description_lines(description)))
