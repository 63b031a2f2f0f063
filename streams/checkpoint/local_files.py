"""The files of a checkpoint on a local file system, and their damage: see `streams.checkpoint.files`.

Damage is found by the checksums that Hadoop writes into ``.NAME.crc`` beside each file NAME, and by what the files say
of each other. Source: Hadoop, ChecksumFileSystem ("crc", bytes per checksum, CRC-32 of each piece).
"""

from __future__ import annotations

import hashlib
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import msgspec

from streams.checkpoint.files import LOCK, PARTITIONS, BatchLogs, DamagedFileError, decode_json, split_lines
from twin.base.outputs import write_draft

_CRC_HEAD = struct.Struct(">3sxI")
_READ_BYTES = 1 << 20
_STATE_FILE = re.compile(r"(\d+)\.(changelog|zip)")
_NEEDED_FOLDERS = ("state/0/_stateSchema/", "state/0/_metadata/")  # which a query reads at each start
OPERATORS = "state/0/_metadata/v2"  # folder of Spark's metadata of the stateful operator
_RELOCATE = "start the job on what `mqtwin checkpoint relocate` makes of it"
_RESTORE = "restore it from a copy, or begin a new checkpoint (--checkpoint NEW --starting-offsets earliest)"


@dataclass(frozen=True, slots=True)
class Finding:
    """Damage of a checkpoint. The path is relative to the checkpoint; what blocks keeps the job from going on."""

    path: str
    problem: str
    remedy: str = _RESTORE
    is_blocking: bool = True

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}; {self.remedy}"


class _Query(msgspec.Struct, frozen=True):
    id: str


class _StoreInfo(msgspec.Struct, frozen=True, rename="camel"):
    num_partitions: int
    state_schema_file_paths: tuple[str, ...] = ()


class _OperatorMetadata(msgspec.Struct, frozen=True, rename="camel"):
    state_store_info: tuple[_StoreInfo, ...] = ()


class _SnapshotFile(msgspec.Struct, frozen=True, rename="camel"):
    size_bytes: int
    dfs_sst_file_name: str | None = None
    dfs_log_file_name: str | None = None


class _Snapshot(msgspec.Struct, frozen=True, rename="camel"):
    sst_files: tuple[_SnapshotFile, ...] = ()
    log_files: tuple[_SnapshotFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Operator:
    """Spark's metadata of the stateful operator: the number of state partitions, and its schema files."""

    partitions: int
    schema_files: tuple[Path, ...]


class LocalFolder:
    """The folder of a checkpoint on this machine."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def location(self) -> str:
        """The path."""
        return str(self._directory)

    def exists(self, name: str) -> bool:
        """Return True if there is such a file."""
        return (self._directory / name).exists()

    def names(self, name: str) -> list[str]:
        """Return the names in a folder below; none if it does not exist."""
        try:
            return [path.name for path in (self._directory / name).iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        return (self._directory / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        """Replace a file; a reader sees the previous or the new content, and so does Spark after a crash."""
        path = self._directory / name
        path.parent.mkdir(exist_ok=True)
        draft = write_draft(path, data)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # Hadoop reads a file without checksums, too
        draft.replace(path)


class CheckpointFiles(BatchLogs):
    """The files of a checkpoint directory, read only."""

    def __init__(self, directory: Path) -> None:
        super().__init__(LocalFolder(directory))
        self.directory = directory

    @property
    def operator_file(self) -> str:
        """Name of Spark's metadata of the stateful operator, as of the last committed batch.

        Each start writes it, and a repartition; a batch that was not committed has not changed the state.
        """
        numbers = sorted(int(name) for name in self.folder.names(OPERATORS) if name.isdecimal())
        committed = self.commits[-1] if self.commits else 0
        return f"{OPERATORS}/{max((number for number in numbers if number <= committed), default=0)}"

    def read_operator(self) -> Operator:
        """Read Spark's metadata of the stateful operator. DamagedFileError, OSError."""
        lines = split_lines(self.folder.read(self.operator_file))
        stores = decode_json(lines[-1], _OperatorMetadata).state_store_info
        if not stores:
            raise DamagedFileError("does not say how many partitions there are")
        return Operator(stores[0].num_partitions, tuple(path_of(file) for file in stores[0].state_schema_file_paths))

    def files_of(self, batch: int) -> Iterator[Path]:
        """Yield the files that a checkpoint at the end of a committed batch needs, without those of checksums.
        DamagedFileError: a file that names others is damaged. OSError: it cannot be read.
        """
        yield from (self.directory / name for name in ("metadata", f"offsets/{batch}", f"commits/{batch}"))
        state = self.directory / "state" / "0"
        for folder in (state / "_metadata", state / "_stateSchema"):
            yield from (path for path in sorted(folder.rglob("[!.]*")) if path.is_file())
        for partition in range(self.read_operator().partitions):
            yield from _files_of_version(state / str(partition), batch + 1)

    def size(self) -> int:
        """Return the total size of all files in bytes."""
        return sum(path.stat().st_size for path in self.directory.rglob("*") if path.is_file())

    # --- damage ------------------------------------------------------------------------------------------------------

    def check(self, *, thorough: bool) -> list[Finding]:
        """Return the damage. Unless `thorough`, only what the next batch needs is read, and of large files the size."""
        findings = [*self._check_metadata(), *self._check_logs(thorough=thorough)]
        has_state = not any(
            finding.is_blocking for finding in findings
        )  # else which of its files are needed is unknown
        if has_state:
            findings += self._check_state(thorough=thorough)
        if thorough:
            findings += self._check_others({own.path for own in findings}, has_state=has_state)
        return findings

    def unverified(self) -> list[str]:
        """Return the names of the files of which nothing says what they should hold."""
        return [
            name
            for name, path in self._all_files()
            if not path.with_name(f".{path.name}.crc").is_file() and path.suffix != ".zip" and not _is_estate(name)
        ]

    def _all_files(self) -> Iterator[tuple[str, Path]]:
        """Yield (name, path) of all files but those of checksums and the lock."""
        for path in sorted(self.directory.rglob("*")):
            is_checksums = path.name.startswith(".") and path.suffix == ".crc"
            if path.is_file() and path.name != LOCK and not is_checksums:
                yield self._name(path), path

    def _check_others(self, known: Collection[str], *, has_state: bool) -> Iterator[Finding]:
        for name, path in self._all_files():
            if name in known or (name.startswith("state/") and not has_state):
                continue
            problem = estate_problem(path) if _is_estate(name) else file_problem(path)
            if not problem or (problem == "is empty" and not path.with_name(f".{path.name}.crc").is_file()):
                continue
            if name.startswith(_NEEDED_FOLDERS):
                yield Finding(name, problem)
            elif name.startswith("snapshots/"):
                remedy = f"remove {'/'.join(name.split('/')[:2])}: questions of the past begin with an earlier snapshot"
                yield Finding(name, problem, remedy, is_blocking=False)
            elif _is_estate(name):
                remedy = "remove it: the next start with this estate writes it again"
                yield Finding(name, problem, remedy, is_blocking=False)
            else:
                yield Finding(name, problem, *_consequence(is_needed=False))

    def _check_metadata(self) -> Iterator[Finding]:
        path = self.directory / "metadata"
        if self.has_begun:
            problem = self._problem("metadata", lambda: decode_json(path.read_text(encoding="utf-8"), _Query))
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
            problem = self._offsets_problem(batch) if is_needed or thorough else ""
            if problem and batch == last:
                yield Finding(f"offsets/{batch}", problem, self._go_back(batch - 1) or _RESTORE)
            elif problem:
                yield Finding(f"offsets/{batch}", problem, *_consequence(is_needed=is_needed))

    def _check_commits(self, last: int, *, thorough: bool) -> Iterator[Finding]:
        for batch in self.commits:
            is_last = batch == self.commits[-1]
            problem = ""
            if is_last or thorough:
                problem = self._problem(f"commits/{batch}", partial(self._read_commit, batch))
            if problem:
                yield Finding(f"commits/{batch}", problem, *self._commit_consequence(batch, last, is_last=is_last))

    def _problem(self, path: str, read: Callable[[], Any]) -> str:
        """Return the damage of a file, found by its checksums or as it is read; empty for none."""
        problem = file_problem(self.directory / path)
        if not problem:
            try:
                read()
            except (DamagedFileError, UnicodeDecodeError, OSError) as error:
                problem = str(error)
        return problem

    def _offsets_problem(self, batch: int) -> str:
        return self._problem(f"offsets/{batch}", lambda: self.read_offsets(batch))

    def _read_commit(self, batch: int) -> None:
        lines = split_lines((self.directory / "commits" / str(batch)).read_bytes())
        if len(lines) < 2:
            raise DamagedFileError(f"has {len(lines)} of 2 lines: it is cut off")
        decode_json(lines[1], dict)

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
        if self._offsets_problem(batch) or list(self._check_partitions(batch + 1, thorough=False)):
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
        path = self.operator_file
        if not (self.directory / "state" / "0").is_dir():
            yield Finding("state/0", "is missing")
            return
        problem = self._problem(path, self._read_schema_files)
        if problem:
            remedy = f"move it back to where it was, or {_RELOCATE}" if "moved" in problem else _RESTORE
            yield Finding(path, problem, remedy)

    def _read_schema_files(self) -> None:
        for file in reversed(self.read_operator().schema_files):
            if not file.is_file():
                raise DamagedFileError(f"names {file}, which is not there: was the checkpoint moved?")

    def _count_partitions(self) -> int:
        """Return the number of state partitions; 0 if it is unknown."""
        try:
            return self.read_operator().partitions
        except (DamagedFileError, OSError):
            settings = self.newest[1] if self.newest is not None else {}
            return int(settings.get(PARTITIONS, 0))

    def _state_versions(self) -> Iterator[int]:
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
        base = _base_version(folder, version)
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
        problem = file_problem(path)
        if not problem:
            try:
                members = list(_members(path))
            except DamagedFileError as error:
                problem = str(error)
        if problem:
            yield Finding(self._name(path), problem)
            return
        for member, size_bytes in members:
            size = member.stat().st_size if member.is_file() else None
            problem = ""
            if size is None:
                problem = f"is missing, though {self._name(path)} needs it"
            elif size != size_bytes:
                problem = f"has {size} bytes, not the {size_bytes} that {self._name(path)} says"
            elif thorough:
                problem = file_problem(member)
            if problem:
                yield Finding(self._name(member), problem)

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.directory))


def _base_version(folder: Path, version: int) -> int:
    """Return the last version of a state partition up to one that has a snapshot of Spark's; 0 if there is none."""
    numbers = [int(path.stem) for path in folder.glob("*.zip") if path.stem.isdecimal()]
    return max((number for number in numbers if number <= version), default=0)


def _files_of_version(folder: Path, version: int) -> Iterator[Path]:
    """Yield the files of a version of a state partition: a snapshot of Spark's with its members, later changelogs."""
    base = _base_version(folder, version)
    if base:
        yield folder / f"{base}.zip"
        yield from (path for path, _ in _members(folder / f"{base}.zip"))
    yield from (folder / f"{number}.changelog" for number in range(base + 1, version + 1))


def _members(path: Path) -> Iterator[tuple[Path, int]]:
    """Yield (path, size in bytes) of the files that a snapshot of Spark's names. DamagedFileError, OSError."""
    try:
        with zipfile.ZipFile(path) as archive:
            lines = archive.read("metadata").decode().splitlines()
        snapshot = decode_json(lines[-1], _Snapshot)
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, IndexError) as error:
        raise DamagedFileError(f"is no snapshot: {error}") from None
    for files, folder in ((snapshot.sst_files, "SSTs"), (snapshot.log_files, "logs")):
        for file in files:
            yield path.parent / folder / str(file.dfs_sst_file_name or file.dfs_log_file_name), file.size_bytes


def drop_uncommitted_state(files: CheckpointFiles) -> None:
    """Remove the state that a batch wrote which was not committed, and which therefore will be run again.

    Spark's file manager for this machine does not replace a file that exists: it would keep a changelog that was cut,
    or that an estate which has been changed since then has led to.
    """
    last = files.last_batch
    if last is not None and files.version == last:
        for folder in files.directory.glob("state/0/[0-9]*"):
            remove_numbered(folder, last + 1)


def remove_numbered(folder: Path, number: int) -> None:
    """Remove the files of a number in a folder of Spark's, with their checksum files and drafts."""
    for path in (*folder.glob(f"{number}*"), *folder.glob(f".{number}.*"), *folder.glob(f"..{number}.*")):
        if path.name.lstrip(".").partition(".")[0] == str(number):
            path.unlink()


def _consequence(*, is_needed: bool) -> tuple[str, bool]:
    return (_RESTORE, True) if is_needed else ("nothing: the job does not need it any more", False)


def path_of(uri: str) -> Path:
    """Return the path in a URI of Hadoop."""
    return Path(unquote(urlparse(uri).path))


def _is_estate(name: str) -> bool:
    return re.fullmatch(r"estates/[0-9a-f]{64}", name) is not None


def estate_problem(path: Path) -> str:
    """Return the damage of a saved estate, found by its name; empty for none."""
    try:
        digest = hashlib.sha256(zlib.decompress(path.read_bytes())).hexdigest()
    except zlib.error as error:
        return f"is no saved estate: {error}"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return "" if digest == path.name else "is another estate than its name says"


def file_problem(path: Path) -> str:
    """Return the damage of a file of the checkpoint, found by its checksums; empty for none."""
    try:
        if path.stat().st_size == 0:
            return "is empty"
        checksums = path.with_name(f".{path.name}.crc")
        if checksums.is_file():
            return _crc_problem(path, checksums)
        return _zip_problem(path) if path.suffix == ".zip" else ""
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _crc_problem(path: Path, checksums: Path) -> str:
    """Return the damage of a file, found by Hadoop's checksums; empty for none."""
    data = checksums.read_bytes()
    if len(data) < _CRC_HEAD.size or data[:3] != b"crc":
        return f"has a damaged checksum file {checksums.name}"
    chunk_bytes = _CRC_HEAD.unpack_from(data)[1]
    expected = data[_CRC_HEAD.size :]
    size = path.stat().st_size
    if chunk_bytes <= 0 or len(expected) != 4 * -(-size // chunk_bytes):
        return f"has {size} bytes, another size than its checksum file {checksums.name} says: it is cut or changed"
    chunks_per_read = max(1, _READ_BYTES // chunk_bytes)
    i = 0
    with path.open("rb") as file:
        while data := file.read(chunks_per_read * chunk_bytes):
            for start in range(0, len(data), chunk_bytes):
                checksum = int.from_bytes(expected[4 * i : 4 * i + 4], "big")
                if zlib.crc32(data[start : start + chunk_bytes]) != checksum:
                    return f"does not match its checksum file {checksums.name}, from byte {i * chunk_bytes} on"
                i += 1
    return ""


def _zip_problem(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            member = archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        return f"is not a sound archive: {error}"
    return f"is damaged: member {member} has a wrong checksum" if member else ""
