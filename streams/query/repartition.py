"""Another number of state partitions for a checkpoint, by Spark's own offline repartition.

Spark adds a batch that reads no records: it has the offsets of the last committed batch, and writes every key of the
state into the partition that is the right one of the new number. Until that batch is committed, the state before it is
untouched; a command that was killed is run again. Source: Spark 4.2, OfflineStateRepartitionRunner, StateRewriter.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from streams.checkpoint.guard import open_stopped
from streams.checkpoint.local_files import OPERATORS, CheckpointFiles, drop_uncommitted_state, remove_numbered
from streams.checkpoint.manifest import LocalGuard, check_readable, check_sound
from streams.errors import one_line
from streams.query.session import SparkJava, open_session
from twin.errors import MqtwinError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def repartition(
    directory: Path, partitions: int, *, java: SparkJava | None = None, session: SparkSession | None = None
) -> int:
    """Distribute the state of a checkpoint over another number of partitions, and return the number before.

    Args:
        directory: the checkpoint, on which no job runs.
        partitions: their new number; that of the state changes nothing.
        java: see `streams.query.session.open_session`.
        session: session to use; None: a temporary one.

    Raises:
        UsageError: a job runs on it, it is damaged or of a format that is not read, or was never committed.
        MqtwinError: Spark fails; the checkpoint is as it was, or the same command continues.
    """
    open_stopped(directory)
    guard = LocalGuard(directory)
    try:
        files, location = CheckpointFiles(directory), str(directory)
        check_readable(location, guard.manifest)
        check_sound(location, files)
        if not files.has_state:
            raise UsageError(f"checkpoint {location} has no committed batch, and so no state; expected: one that has")
        unfinished = files.unfinished_partitions
        if unfinished not in (None, partitions):
            raise UsageError(
                f"--partitions {partitions}: the repartition of checkpoint {location} to {unfinished} has not ended: "
                f"give --partitions {unfinished} first"
            )
        before = files.partitions_of(files.commits[-1])
        if before != partitions:
            if unfinished is None:
                _drop_uncommitted(files)
            _run(directory, partitions, java, session)
        if guard.manifest is not None and guard.manifest.partitions != partitions:
            guard.write(msgspec.structs.replace(guard.manifest, partitions=partitions))
        return before
    finally:
        guard.release()


def _drop_uncommitted(files: CheckpointFiles) -> None:
    """Remove a batch that was started and not committed; its records are read again.

    Its state goes first: state without its offsets would be damage. So does the operator's metadata, which the first
    batch of a start has: Spark would not write that of the repartition over it.
    """
    last = files.last_batch
    if last is None or last <= files.commits[-1]:
        return
    drop_uncommitted_state(files)
    for name in (OPERATORS, "offsets"):
        remove_numbered(files.directory / name, last)


def _run(directory: Path, partitions: int, java: SparkJava | None, session: SparkSession | None) -> None:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    is_own = session is None
    session = session or open_session(name="mqtwin checkpoint", java=java)
    try:
        _ = session.streams  # creates the coordinator of state stores
        manager = session._streamingCheckpointManager  # noqa: SLF001 -- PySpark has no public name for it
        manager.repartition(str(directory.resolve()), partitions)
    except (PySparkException, Py4JError) as error:
        raise MqtwinError(
            f"checkpoint {directory}: its repartition failed: {one_line(error)}; the same command continues it"
        ) from error
    finally:
        if is_own:
            session.stop()
