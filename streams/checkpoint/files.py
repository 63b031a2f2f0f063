"""Spark's files of a checkpoint on any file system. Needs neither Spark nor Kafka.

Spark keeps in it: ``metadata`` (the query's id), ``offsets/N`` (the end offsets of batch N, written before it runs),
``commits/N`` (written after it), ``sources/0/0`` (the start offsets of batch 0) and ``state/0/P/`` with the state of
partition P. Batch N reads version N and writes version N + 1, as ``VERSION.changelog`` (the changes). Some versions
also have ``VERSION.zip``, a snapshot that names files in ``SSTs``.

Source:
    Spark 4.2, MicroBatchExecution, OffsetSeqLog, CommitLog, RocksDBFileManager.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

import msgspec

from twin.base.decoding import UNREADABLE

Offsets = Mapping[str, Mapping[int, int]]  # topic -> partition -> offset of the next record
_OFFSETS = dict[str, dict[int, int]]
MANIFEST, LOCK = "mqtwin.json", "mqtwin.lock"
PARTITIONS = "spark.sql.shuffle.partitions"  # of the state


_T = TypeVar("_T")


class DamagedFileError(ValueError):
    """A file without the expected content; the message is the problem."""


class _BatchMetadata(msgspec.Struct, frozen=True):
    conf: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class OffsetsFile:
    """A file of `offsets`: the settings that Spark froze, and the next offset of each partition."""

    settings: Mapping[str, str]
    offsets: Offsets


def parse_offsets(data: bytes) -> OffsetsFile:
    """Read an offsets file. DamagedFileError."""
    lines = split_lines(data)
    if len(lines) < 3:
        raise DamagedFileError(f"has {len(lines)} of 3 lines: it is cut off")
    return OffsetsFile(decode_json(lines[1], _BatchMetadata).conf, decode_json(lines[2], _OFFSETS))


def parse_initial_offsets(data: bytes) -> Offsets:
    """Read `sources/0/0`. DamagedFileError."""
    return decode_json(split_lines(data)[-1], _OFFSETS)


class Folder(Protocol):
    """The folder of a checkpoint on any file system. Names of files in it are relative, with / between parts."""

    @property
    def location(self) -> str:
        """The path or URI, as the user gave it."""

    def exists(self, name: str) -> bool:
        """Return True if there is such a file. OSError."""

    def names(self, name: str) -> list[str]:
        """Return the names in a folder below; none if it does not exist. OSError."""

    def read(self, name: str) -> bytes:
        """Return the content of a small file. FileNotFoundError, OSError."""

    def write(self, name: str, data: bytes) -> None:
        """Replace a small file. OSError."""


class BatchLogs:
    """Spark's logs of started and committed batches, on any file system. OSError: it cannot be read."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.batches = sorted(int(name) for name in folder.names("offsets") if name.isdecimal())
        self.commits = sorted(int(name) for name in folder.names("commits") if name.isdecimal())

    @property
    def has_state(self) -> bool:
        """True if a batch was committed here."""
        return bool(self.commits)

    @property
    def has_begun(self) -> bool:
        """True if a query has run here: the checkpoint belongs to its topics."""
        return bool(self.batches or self.commits or self.folder.exists("metadata"))

    @property
    def last_batch(self) -> int | None:
        """The last batch that was started."""
        return self.batches[-1] if self.batches else None

    @property
    def version(self) -> int:
        """The version of the state that the next batch reads; 0 before the first one."""
        last = self.last_batch
        if last is None:
            return 0
        return last + 1 if self.commits and self.commits[-1] >= last else last

    def read_offsets(self, batch: int) -> OffsetsFile:
        """Read the offsets file of a batch. DamagedFileError, OSError."""
        return parse_offsets(self.folder.read(f"offsets/{batch}"))

    @cached_property
    def newest(self) -> tuple[Offsets, Mapping[str, str]] | None:
        """Offsets and settings of the newest readable offsets file; None if there is none."""
        for batch in reversed(self.batches):
            try:
                file = self.read_offsets(batch)
            except (DamagedFileError, OSError):
                continue
            return file.offsets, file.settings
        return None

    def partitions_of(self, batch: int) -> int:
        """Return the number of state partitions of a batch; 0 if it is unknown. DamagedFileError, OSError."""
        return int(self.read_offsets(batch).settings.get(PARTITIONS, 0))

    @property
    def unfinished_partitions(self) -> int | None:
        """The number of state partitions of a repartition that has not ended; None where there is none.

        Its batch has another number than the one before, and is not committed. DamagedFileError: a file of these
        offsets is damaged. OSError: it cannot be read.
        """
        last = self.last_batch
        if last is None or last - 1 not in self.batches or (self.commits and self.commits[-1] >= last):
            return None
        after = self.partitions_of(last)
        return after if after != self.partitions_of(last - 1) else None

    def next_offsets(self) -> Offsets:
        """Return the start offsets of the next batch; empty before the first one.

        A batch that was started and not committed is run again, from the end of the previous one.
        """
        last = self.last_batch
        if last is None:
            return {}
        previous = last if self.commits and self.commits[-1] >= last else last - 1
        if previous >= 0:
            return self.read_offsets(previous).offsets
        try:
            return parse_initial_offsets(self.folder.read("sources/0/0"))
        except (DamagedFileError, OSError):
            return {}  # Spark asks Kafka again


def split_lines(data: bytes) -> list[str]:
    """Return the lines of a file whose first one is a version. DamagedFileError."""
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        raise DamagedFileError("is no text") from None
    if not lines:
        raise DamagedFileError("is empty")
    if not re.fullmatch(r"v\d+", lines[0].strip(" \0")):
        raise DamagedFileError(f"begins with {lines[0][:20]!r}; expected: v1")
    return lines


def decode_json(text: str, kind: type[_T]) -> _T:
    """Return the value of a JSON text. DamagedFileError."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise DamagedFileError(f"has other content than Spark writes: {error}") from None
    except UNREADABLE as error:
        raise DamagedFileError(f"is cut off or damaged: {error}") from None
