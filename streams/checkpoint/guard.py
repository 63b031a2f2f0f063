"""The guard of a job's checkpoint, from the start of the job to its end.

A checkpoint on this machine is locked and checked before Spark starts, and before topics are created. Any other one
(HDFS, S3) is reached through Spark's JVM, see `streams.checkpoint.remote`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from streams.checkpoint.estates import last_estate
from streams.checkpoint.files import PARTITIONS
from streams.checkpoint.local_files import CheckpointFiles, drop_uncommitted_state
from streams.checkpoint.manifest import (
    Guard,
    LocalGuard,
    Manifest,
    check_belongs,
    check_kinds,
    check_sound,
    format_findings,
    local_directory,
    log_changed_estate,
    next_offsets,
    read_manifest,
)
from streams.checkpoint.offsets import check_offsets, describe_cluster
from streams.kafka.topics import Topics
from twin.errors import MqtwinError, UsageError
from twin.estate import Estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DATA_LOSS = "Some data may have been lost"  # start of the message of Spark's Kafka source
_log = structlog.get_logger("mqtwin.stream")


class CheckpointGuard:
    """The guard of a checkpoint, wherever it is.

    Args:
        location: the checkpoint, a path or URI of the user.
        estate: estate of the job.
        topics: topics of the job.
        conf: the user's settings of Spark.
        client: the user's settings of Kafka clients.
        tolerate: go on if Kafka has deleted records that were not read.
    """

    def __init__(
        self,
        location: str,
        *,
        estate: Estate,
        topics: Topics,
        conf: Mapping[str, str],
        client: Mapping[str, str],
        tolerate: bool,
    ) -> None:
        self._location = location
        self._estate = estate
        self._topics = topics
        self._conf = conf
        self._client = client
        self._tolerate = tolerate
        self._guard: Guard | None = None
        self.is_local = local_directory(location) is not None

    def claim(self) -> None:
        """Lock and check a checkpoint on this machine, or check the scheme of any other one. UsageError: refused."""
        directory = local_directory(self._location)
        if directory is None:
            from streams.checkpoint.remote import check_scheme

            check_scheme(self._location, self._conf)
        else:
            self._guard = LocalGuard(directory)
            self._check(self._guard)

    def claim_through(self, session: SparkSession) -> None:
        """Lease and check a checkpoint that is not on this machine. UsageError: refused."""
        if self._guard is None:
            from streams.checkpoint.remote import RemoteGuard

            self._guard = RemoteGuard(self._location, session)
            self._check(self._guard)

    def _check(self, guard: Guard) -> None:
        files, manifest = guard.files, guard.manifest
        if not files.has_begun:
            return  # a manifest may be left of a start that failed before its first batch
        check_belongs(self._location, manifest, files, self._topics, self._conf)
        if isinstance(files, CheckpointFiles):
            check_sound(self._location, files)
        check_kinds(self._location, manifest, self._estate)
        known = manifest.estates if manifest is not None else ()
        log_changed_estate(manifest, self._estate, last_estate(files.folder, known))
        offsets = next_offsets(self._location, files)
        skips = check_offsets(
            self._location,
            offsets,
            manifest.topics if manifest is not None else {},
            manifest.cluster if manifest is not None else "",
            describe_cluster(self._client, offsets),
            self._client.get("bootstrap.servers", ""),
            tolerate=self._tolerate,
        )
        for skip in skips:
            _log.warning(
                "data loss",
                topic=skip.topic,
                partition=skip.partition,
                gone=skip.deleted_records,
                goes_on_at=skip.next_offset,
                effect="what these records would have changed is missing; no record is counted twice",
            )

    @property
    def is_of_unknown_format(self) -> bool:
        """True if there is state, but no manifest that says of which format it is."""
        guard = self._guard
        return guard is not None and guard.manifest is None and guard.files.has_state

    def note_start(self, partitions: int) -> None:
        """Write the manifest of this start, and make way for a batch that will be run again.

        Args:
            partitions: partitions of the state, if it is new.
        """
        if self._guard is None:
            return
        if isinstance(self._guard.files, CheckpointFiles):
            drop_uncommitted_state(self._guard.files)
        newest = self._guard.files.newest
        frozen = newest[1].get(PARTITIONS) if newest is not None else None
        kafka = describe_cluster(self._client, self._topics.read)
        begin = next_offsets(self._location, self._guard.files).get(self._topics.events, {})
        self._guard.write(
            Manifest.of_this_start(
                self._estate,
                self._topics,
                kafka.ids,
                kafka.cluster,
                int(frozen) if frozen else partitions,
                self._guard.manifest if self._guard.files.has_begun else None,
                self._guard.note_estate(self._estate, begin),
            )
        )

    def note_skipped(self, place: str) -> None:
        """Remember, for readers of the past, a record that the job leaves out. UsageError: it cannot be written."""
        if self._guard is not None and self._guard.manifest is not None:
            self._guard.write(self._guard.manifest.with_skipped(place))

    def check_held(self) -> None:
        """Check that the checkpoint still belongs to this job. MqtwinError: another job has taken it."""
        if self._guard is not None and self._guard.taken_by:
            raise MqtwinError(
                f"checkpoint {self._location}: another mqtwin stream has taken it ({self._guard.taken_by}): this one "
                "did not renew its lease in time"
            )

    def explain(self, failure: str) -> str:
        """Return a failure of the query as one line, with its cause if that is in the checkpoint or in Kafka."""
        if _DATA_LOSS in failure:
            return (
                "Kafka deleted records before they were read, or the topic; started again, the job says which records, "
                "and what to do"
            )
        directory = local_directory(self._location)
        text = format_findings(CheckpointFiles(directory).check(thorough=False)) if directory is not None else ""
        return f"{failure}; checkpoint {self._location} is damaged: {text}" if text else failure

    def release(self) -> None:
        """Release the checkpoint for other jobs."""
        if self._guard is not None:
            self._guard.release()
            self._guard = None


def open_stopped(directory: Path) -> tuple[CheckpointFiles, Manifest | None]:
    """Return the files and the manifest of a checkpoint, for commands that only read. UsageError: it is none."""
    if not directory.is_dir():
        raise UsageError(
            f"{directory}: there is no such directory; expected: the --checkpoint of a job on this machine"
        )
    files = CheckpointFiles(directory)
    if not files.has_begun and not (directory / "state").is_dir():
        raise UsageError(f"{directory} is no checkpoint; expected: a directory with metadata, offsets and commits")
    return files, read_manifest(files.folder)
