"""``mqtwin checkpoint``."""

from __future__ import annotations

from typing import Annotated

import msgspec
from cyclopts import App, Parameter
from cyclopts.validators import Number

from deploy.java.class_archives import find_spark_java
from deploy.options.files import InputFolder, KeptFolder
from deploy.show.checkpoint import describe_checkpoint, description_lines, last_batch_text, warn_of_job
from deploy.show.terminal import print_table
from streams.checkpoint.guard import open_stopped
from streams.checkpoint.manifest import check_readable
from streams.log import configure_logging
from streams.query import stored_state
from twin.errors import UsageError
from twin.stores.headers import READ_FORMATS, STATE_FORMAT

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
        print(finding)
    if findings:
        return 1
    print(f"sound: {last_batch_text(files)}, {files.size():,} bytes")
    return 0


@checkpoint.command
def describe(directory: InputFolder, /, *, json: Annotated[bool, Parameter(negative="")] = False) -> None:
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
