"""The files of a checkpoint directory on a local file system, and their damage. Needs neither Spark nor Kafka.

Spark keeps in it: ``metadata`` (the query's id), ``offsets/N`` (the end offsets of batch N, written before it runs),
``commits/N`` (written after it), ``sources/0/0`` (the start offsets of batch 0) and ``state/0/P/`` with the state of
partition P. Batch N reads version N and writes version N + 1, as ``VERSION.changelog`` (the changes). Some versions
also have ``VERSION.zip``, a snapshot that names files in ``SSTs``.

Source: Spark 4.2, MicroBatchExecution, OffsetSeqLog, CommitLog, RocksDBFileManager.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import msgspec

from streams.checkpoint.checksums import file_problem

Offsets = Mapping[str, Mapping[int, int]]  # topic -> partition -> offset of the next record
MANIFEST, LOCK = "mqtwin.json", "mqtwin.lock"
_STATE_FILE = re.compile(r"(\d+)\.(changelog|zip)")
_RESTORE = "restore it from a copy, or begin a new checkpoint (--checkpoint NEW --starting-offsets earliest)"


@dataclass(frozen=True, slots=True)
class Finding:
    """Damage of a checkpoint.

    Args:
        path: the file or directory, relative to the checkpoint.
        problem: the damage.
        remedy: the instruction for the operator.
        is_blocking: True if the job cannot go on correctly; False if it no longer needs the file.
    """

    path: str
    problem: str
    remedy: str = _RESTORE
    is_blocking: bool = True

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}; {self.remedy}"


class DamagedFileError(ValueError):
    """A file without the expected content; the message is the problem."""


@dataclass(frozen=True, slots=True)
class OffsetsFile:
    """A file of `offsets`: the settings that Spark froze, and the next offset of each partition."""

    settings: Mapping[str, str]
    offsets: Offsets


@dataclass(frozen=True, slots=True)
class Operator:
    """Spark's metadata of the stateful operator: the number of state partitions, and its schema files."""

    partitions: int
    schema_files: tuple[Path, ...]


def parse_offsets(data: bytes) -> OffsetsFile:
    """Read an offsets file. DamagedFileError."""
    lines = _lines(data)
    if len(lines) < 3:
        raise DamagedFileError(f"has {len(lines)} of 3 lines: it is cut off")
    return OffsetsFile(_decode_json(lines[1]).get("conf", {}), _decode_offsets(lines[2]))


def parse_initial_offsets(data: bytes) -> Offsets:
    """Read `sources/0/0`. DamagedFileError."""
    return _decode_offsets(_lines(data)[-1])


class CheckpointFiles:
    """The files of a checkpoint directory, read only.

    Args:
        directory: the checkpoint.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.batches = _batch_numbers(directory / "offsets")
        self.commits = _batch_numbers(directory / "commits")

    @property
    def has_state(self) -> bool:
        """True if a batch was committed here."""
        return bool(self.commits)

    @property
    def has_begun(self) -> bool:
        """True if a query has run here: the checkpoint belongs to its topics."""
        return bool(self.batches or self.commits or (self.directory / "metadata").exists())

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
        return parse_offsets((self.directory / "offsets" / str(batch)).read_bytes())

    def read_operator(self) -> Operator:
        """Read Spark's metadata of the stateful operator. DamagedFileError, OSError."""
        lines = _lines((self.directory / "state" / "0" / "_metadata" / "v2" / "0").read_bytes())
        stores = _decode_json(lines[-1]).get("stateStoreInfo") or [{}]
        count, files = stores[0].get("numPartitions"), stores[0].get("stateSchemaFilePaths") or []
        if not isinstance(count, int):
            raise DamagedFileError("does not say how many partitions there are")
        return Operator(count, tuple(_path(file) for file in files))

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
            return parse_initial_offsets((self.directory / "sources" / "0" / "0").read_bytes())
        except (DamagedFileError, OSError):
            return {}  # Spark asks Kafka again

    def size(self) -> int:
        """Return the total size of all files in bytes."""
        return sum(path.stat().st_size for path in self.directory.rglob("*") if path.is_file())

    # --- damage ------------------------------------------------------------------------------------------------------

    def check(self, *, thorough: bool) -> list[Finding]:
        """Return the damage.

        Args:
            thorough: read every file; False: those that the next batch needs, and only the size of large ones.
        """
        findings = [*self._check_metadata(), *self._check_logs(thorough=thorough)]
        if not any(finding.is_blocking for finding in findings):
            findings += self._check_state(thorough=thorough)
        return findings

    def _check_metadata(self) -> Iterator[Finding]:
        path = self.directory / "metadata"
        if not self.has_begun:
            return
        problem = file_problem(path)
        if not problem:
            try:
                if not isinstance(_decode_json(path.read_text(encoding="utf-8")).get("id"), str):
                    problem = "does not say the query's id"
            except (DamagedFileError, UnicodeDecodeError, OSError) as error:
                problem = str(error)
        if problem:
            yield Finding("metadata", problem)

    def _check_logs(self, *, thorough: bool) -> Iterator[Finding]:
        last = self.last_batch
        commit = self.commits[-1] if self.commits else None
        if last is None:
            if commit is not None:
                yield Finding(f"offsets/{commit}", f"is missing, though commits/{commit} is there")
            elif any(self.directory.glob("state/*/*/*.changelog")):
                yield Finding("offsets", "has no file, though there is state")
        elif commit is not None and commit > last:
            problem = f"is missing, though commits/{commit} is there"
            yield Finding(f"offsets/{commit}", problem, self._go_back(last) or _RESTORE)
        else:
            yield from self._check_missing(last, commit)
            yield from self._check_offsets(last, thorough=thorough)
            yield from self._check_commits(last, thorough=thorough)

    def _check_missing(self, last: int, commit: int | None) -> Iterator[Finding]:
        """Yield gaps at the end of the logs. Spark runs the last batch again if its commit is missing."""
        if last > 0 and last - 1 not in self.batches:
            yield Finding(f"offsets/{last - 1}", "is missing")
        last_commit = -1 if commit is None else commit
        if last_commit < last - 1:
            name = f"commits/{last - 1}" if last_commit == last - 2 else f"commits/{last_commit + 1} to {last - 1}"
            remedy = f"nothing: batch {last} will be run again, and nothing is lost"
            yield Finding(name, "is missing", remedy, is_blocking=False)

    def _check_offsets(self, last: int, *, thorough: bool) -> Iterator[Finding]:
        for batch in self.batches:
            is_needed = batch >= last - 1
            problem = self._problem(f"offsets/{batch}", self.read_offsets, batch) if is_needed or thorough else ""
            if problem and batch == last:
                yield Finding(f"offsets/{batch}", problem, self._go_back(batch - 1) or _RESTORE)
            elif problem:
                yield Finding(f"offsets/{batch}", problem, *_consequence(is_needed=is_needed))

    def _check_commits(self, last: int, *, thorough: bool) -> Iterator[Finding]:
        for batch in self.commits:
            is_last = batch == self.commits[-1]
            problem = self._problem(f"commits/{batch}", self._read_commit, batch) if is_last or thorough else ""
            if problem:
                yield Finding(f"commits/{batch}", problem, *self._commit_consequence(batch, last, is_last=is_last))

    def _problem(self, path: str, read: Callable[[int], Any], batch: int) -> str:
        """Return the damage of a file of `offsets` or `commits`; empty for none."""
        problem = file_problem(self.directory / path)
        if not problem:
            try:
                read(batch)
            except (DamagedFileError, OSError) as error:
                problem = str(error)
        return problem

    def _read_commit(self, batch: int) -> None:
        lines = _lines((self.directory / "commits" / str(batch)).read_bytes())
        if len(lines) < 2:
            raise DamagedFileError(f"has {len(lines)} of 2 lines: it is cut off")
        _decode_json(lines[1])

    def _commit_consequence(self, batch: int, last: int, *, is_last: bool) -> tuple[str, bool]:
        """Return `remedy` and `is_blocking` of a damaged commits file. Without the last one its batch runs again."""
        if not is_last:
            return _consequence(is_needed=False)
        if batch == last:
            return f"remove commits/{batch} and commits/.{batch}.crc: the batch is run again, nothing is lost", True
        return f"remove commits/{batch} and commits/.{batch}.crc: batch {last} is next all the same", True

    def _go_back(self, batch: int) -> str:
        """Return the remedy that goes back to the end of a batch; empty if its state or offsets are missing."""
        if batch < 1 or batch not in self.batches or batch - 1 not in self.batches:
            return ""
        if self._problem(f"offsets/{batch}", self.read_offsets, batch):
            return ""
        if list(self._check_partitions(batch + 1, thorough=False)):
            return ""
        return (
            f"restore it from a copy, or go back to the end of batch {batch}: remove the files of offsets and commits "
            f"with numbers above {batch} and those of state/0/* above {batch + 1}, their .crc files too; later events "
            "are read again from Kafka"
        )

    def _check_state(self, *, thorough: bool) -> Iterator[Finding]:
        version, last = self.version, self.last_batch
        if last is None or version == 0:
            return
        yield from self._check_operator()
        findings = list(self._check_partitions(version, thorough=thorough))
        if version == last + 1 and self._is_only_last_batch(findings, version):
            remedy = f"remove commits/{last} and commits/.{last}.crc: batch {last} is run again, nothing is lost"
            findings = [replace(finding, remedy=remedy) if finding.is_blocking else finding for finding in findings]
        yield from findings
        newest = max(self._state_versions(), default=0)
        if newest > last + 1:
            yield Finding(
                f"offsets/{newest - 1}",
                f"is missing, though the state has version {newest}, which batch {newest - 1} wrote",
                f"restore it and commits/{newest - 1} from a copy, or remove the files of state/0/* with numbers above "
                f"{last + 1}, their .crc files too: the job goes on after batch {last}, and reads later events again",
            )

    def _is_only_last_batch(self, findings: list[Finding], version: int) -> bool:
        """Return True if only files of the last batch are damaged: without its commit Spark writes them again."""
        paths = [finding.path for finding in findings if finding.is_blocking]
        return (
            bool(paths)
            and all(path.endswith(f"/{version}.changelog") for path in paths)
            and not any(self.directory.glob(f"state/0/*/{version}.zip"))
            and not list(self._check_partitions(version - 1, thorough=False))
        )

    def _check_operator(self) -> Iterator[Finding]:
        path = "state/0/_metadata/v2/0"
        if not (self.directory / "state" / "0").is_dir():
            yield Finding("state/0", "is missing")
            return
        problem = file_problem(self.directory / path)
        if not problem:
            try:
                for file in self.read_operator().schema_files:
                    if not file.is_file():
                        problem = f"names {file}, which is not there: was the checkpoint moved?"
            except (DamagedFileError, OSError) as error:
                problem = str(error)
        if problem:
            remedy = "move it back to where it was, or " + _RESTORE if "moved" in problem else _RESTORE
            yield Finding(path, problem, remedy)

    def _count_partitions(self) -> int:
        """Return the number of state partitions; 0 if it is unknown."""
        try:
            return self.read_operator().partitions
        except (DamagedFileError, OSError):
            settings = self.newest[1] if self.newest is not None else {}
            return int(settings.get("spark.sql.shuffle.partitions", 0))

    def _state_versions(self) -> Iterator[int]:
        """Yield the version of each file of state."""
        for path in self.directory.glob("state/0/*/*"):
            match = _STATE_FILE.fullmatch(path.name)
            if match is not None:
                yield int(match.group(1))

    def _check_partitions(self, version: int, *, thorough: bool) -> Iterator[Finding]:
        """Yield the damage of a version of the state: in each partition a snapshot and all later changelogs."""
        if not (self.directory / "state" / "0").is_dir():
            return  # `_check_operator` reports it
        for partition in range(self._count_partitions()):
            folder = self.directory / "state" / "0" / str(partition)
            if folder.is_dir():
                yield from self._check_partition(folder, version, thorough=thorough)
            else:
                yield Finding(f"state/0/{partition}", "is missing")

    def _check_partition(self, folder: Path, version: int, *, thorough: bool) -> Iterator[Finding]:
        snapshots = [int(path.stem) for path in folder.glob("*.zip") if path.stem.isdecimal()]
        base = max((number for number in snapshots if number <= version), default=0)
        if base:
            yield from self._check_snapshot(folder / f"{base}.zip", thorough=thorough)
        needed = [f"{number}.changelog" for number in range(base + 1, version + 1)]
        for name in needed:
            problem = file_problem(folder / name)
            if problem:
                yield Finding(self._name(folder / name), problem)
        if thorough:
            for path in sorted(folder.iterdir()):
                is_other = _STATE_FILE.fullmatch(path.name) and path.name not in needed and path.name != f"{base}.zip"
                problem = file_problem(path) if is_other else ""
                if problem:
                    yield Finding(self._name(path), problem, *_consequence(is_needed=False))

    def _check_snapshot(self, path: Path, *, thorough: bool) -> Iterator[Finding]:
        """Yield the damage of a snapshot and of the files that it names."""
        problem = file_problem(path)
        if not problem:
            try:
                with zipfile.ZipFile(path) as archive:
                    lines = archive.read("metadata").decode().splitlines()
                metadata = _decode_json(lines[-1])
            except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, IndexError) as error:
                problem = f"is no snapshot: {error}"
        if problem:
            yield Finding(self._name(path), problem)
            return
        for kind, folder in (("sstFiles", "SSTs"), ("logFiles", "logs")):
            for file in metadata.get(kind) or []:
                member = path.parent / folder / str(file.get("dfsSstFileName") or file.get("dfsLogFileName"))
                size = member.stat().st_size if member.is_file() else None
                problem = ""
                if size is None:
                    problem = f"is missing, though {self._name(path)} needs it"
                elif size != file.get("sizeBytes"):
                    problem = f"has {size} bytes, not the {file.get('sizeBytes')} that {self._name(path)} says"
                elif thorough:
                    problem = file_problem(member)
                if problem:
                    yield Finding(self._name(member), problem)

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.directory))


def _consequence(*, is_needed: bool) -> tuple[str, bool]:
    """Return `remedy` and `is_blocking` of a damaged file."""
    return (_RESTORE, True) if is_needed else ("nothing: the job does not need it any more", False)


def _batch_numbers(directory: Path) -> list[int]:
    """Return the batch numbers of a log, sorted."""
    try:
        return sorted(int(path.name) for path in directory.iterdir() if path.name.isdecimal())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _lines(data: bytes) -> list[str]:
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        raise DamagedFileError("is no text") from None
    if not lines:
        raise DamagedFileError("is empty")
    if not re.fullmatch(r"v\d+", lines[0].strip(" \0")):
        raise DamagedFileError(f"begins with {lines[0][:20]!r}; expected: v1")
    return lines


def _decode_json(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise DamagedFileError(f"is cut off or damaged: {error}") from None


def _decode_offsets(text: str) -> Offsets:
    try:
        return msgspec.convert(_decode_json(text), dict[str, dict[int, int]], strict=False)
    except msgspec.ValidationError as error:
        raise DamagedFileError(f"has no offsets of Kafka: {error}") from None


def _path(uri: str) -> Path:
    return Path(unquote(urlparse(uri).path))
