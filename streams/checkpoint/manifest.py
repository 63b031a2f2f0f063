"""A guard before the checkpoint: whose it is, that it is sound, and that no other job runs on it.

It looks before Spark starts, in a fraction of a second, and refuses with one line. Beside Spark's files it keeps two of
its own, which Spark ignores: ``mqtwin.json``, what the checkpoint belongs to, and ``mqtwin.lock``, locked (flock) while
a job runs.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.metadata
import os
import pickle
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlparse

import msgspec
import structlog

from streams.checkpoint.files import LOCK, MANIFEST, CheckpointFiles, DamagedFileError, Finding, Offsets
from streams.kafka.topics import Topics
from twin.errors import UsageError
from twin.estate import Estate
from twin.stores.open import STATE_FORMAT

PARTITIONS = "spark.sql.shuffle.partitions"
_MAX_FINDINGS = 3  # in an error's line
_log = structlog.get_logger("mqtwin.stream")


class Owner(msgspec.Struct, frozen=True):
    """The process that runs a job on a checkpoint. since: wall-clock time, ISO 8601."""

    pid: int
    host: str
    since: str

    @classmethod
    def this_process(cls) -> Owner:
        """Return this process as an owner."""
        return cls(os.getpid(), socket.gethostname(), _now())

    def __str__(self) -> str:
        return f"pid {self.pid} on {self.host} since {self.since}"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a checkpoint belongs to, as `mqtwin.json` says it.

    Args:
        topics: the topics read, with Kafka's ids of them ("" where the broker tells none).
        cluster: Kafka's id of the cluster; "" where the broker tells none.
        estate: a digest of the estate of the last start; stores: its stores.
        state_format: see `twin.stores.open.STATE_FORMAT`.
        partitions: of the state.
        written: wall-clock time of the last start.
    """

    mqtwin: str
    pyspark: str
    state_format: str
    prefix: str
    topics: dict[str, str]
    cluster: str
    estate: str
    stores: list[str]
    partitions: int
    written: str
    format: int = 1

    @classmethod
    def of_this_start(
        cls, estate: Estate, topics: Topics, ids: Mapping[str, str], cluster: str, partitions: int
    ) -> Manifest:
        """Return the manifest of a job that starts now."""
        return cls(
            mqtwin=importlib.metadata.version("mqtwin"),
            pyspark=importlib.metadata.version("pyspark"),
            state_format=STATE_FORMAT,
            prefix=topics.prefix,
            topics={name: ids.get(name, "") for name in (topics.events, topics.reports)},
            cluster=cluster,
            estate=hashlib.sha256(pickle.dumps(estate, protocol=5)).hexdigest(),
            stores=sorted(estate.stores),
            partitions=partitions,
            written=_now(),
        )


class Files(Protocol):
    """What the guard reads of Spark's files, wherever they are."""

    @property
    def has_begun(self) -> bool:
        """True if a query has run here."""

    @property
    def newest(self) -> tuple[Offsets, Mapping[str, str]] | None:
        """Offsets and settings of the newest readable offsets file; None if there is none."""

    def next_offsets(self) -> Offsets:
        """Return where the next batch begins to read. DamagedFileError, OSError."""


class Guard(Protocol):
    """A checkpoint that this process has for itself until `release`."""

    @property
    def files(self) -> Files:
        """Spark's files."""

    @property
    def manifest(self) -> Manifest | None:
        """What the checkpoint belongs to, where it says so."""

    def write(self, manifest: Manifest) -> None:
        """Note what the checkpoint belongs to from now on."""

    def release(self) -> None:
        """Let other jobs have the checkpoint."""


def local_directory(location: str) -> Path | None:
    """Return the directory of a checkpoint on this machine (no scheme, or ``file``); None for any other."""
    parts = urlparse(location)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return Path(location) if not parts.scheme else None


def read_manifest(directory: Path) -> Manifest | None:
    """Read `mqtwin.json`; None if there is none, as in checkpoints of versions before it. UsageError: unreadable."""
    path = directory / MANIFEST
    try:
        return decode_manifest(path.read_bytes(), str(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; expected: a file that this user can read") from error


def decode_manifest(data: bytes, name: str) -> Manifest:
    """Read a manifest; `name` is that of its file, for the error. UsageError: it is none."""
    try:
        return msgspec.json.decode(data, type=Manifest)
    except msgspec.DecodeError as error:
        raise UsageError(
            f"{name}: {error}; remove it if the checkpoint is yours: the next start writes it anew"
        ) from error


def running_job(directory: Path) -> Owner | None:
    """Return the job that runs on a checkpoint of this machine; None if none does."""
    path = directory / LOCK
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_owner(file)
    finally:
        os.close(file)
    return None


class LocalGuard:
    """The guard of a checkpoint in a directory of this machine.

    Args:
        directory: the checkpoint; made where missing.

    Raises:
        UsageError: it cannot be made or written, or another job runs on it.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._is_ours = not directory.exists()
        self._lock = _lock(directory)
        try:
            self.manifest = read_manifest(directory)
            self.files = CheckpointFiles(directory)
        except BaseException:
            self.release()
            raise

    def write(self, manifest: Manifest) -> None:
        """See `Guard`."""
        path = self._directory / MANIFEST
        beside = path.with_name(f".{MANIFEST}.new")
        try:
            with beside.open("wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except OSError as error:
            raise UsageError(f"checkpoint {self._directory} cannot be written: {error.strerror}") from error

    def release(self) -> None:
        """See `Guard`. A directory that was made for a job that then did not start is removed."""
        if self._lock < 0:
            return
        if self._is_ours and [path.name for path in self._directory.glob("*")] == [LOCK]:
            with contextlib.suppress(OSError):  # it stays where it cannot be removed: empty, it harms nobody
                (self._directory / LOCK).unlink()
                self._directory.rmdir()
        os.close(self._lock)
        self._lock = -1


def check_belongs(
    location: str, manifest: Manifest | None, files: Files, topics: Topics, conf: Mapping[str, str]
) -> None:
    """Refuse a checkpoint of other topics, of another format of state, or with other frozen settings of Spark.

    Args:
        location: the checkpoint, as the user gave it.
        manifest: what it belongs to, where it says so.
        files: Spark's files; the last offsets name the topics.
        topics: those of the job.
        conf: the user's settings of Spark.

    Raises:
        UsageError: with what to do.
    """
    if manifest is not None and manifest.state_format != STATE_FORMAT:
        raise UsageError(
            f"checkpoint {location} has state of format {manifest.state_format}, written by mqtwin {manifest.mqtwin}; "
            f"this mqtwin ({importlib.metadata.version('mqtwin')}) reads format {STATE_FORMAT}: "
            f"install mqtwin {manifest.mqtwin}, or name another --checkpoint"
        )
    newest = files.newest
    found = newest[0] if newest is not None else manifest.topics if manifest is not None else {}
    if found and topics.events not in found:
        events = next((name for name in found if name.endswith(".events")), ", ".join(sorted(found)))
        raise UsageError(
            f"checkpoint {location} belongs to topic {events}, not {topics.events}: "
            f"give --topic-prefix {events.removesuffix('.events')}, or name another --checkpoint"
        )
    frozen = newest[1] if newest is not None else {}
    for key, value in conf.items():
        if key in frozen and frozen[key] != value:
            raise UsageError(
                f"--conf {key}={value}: checkpoint {location} was begun with {frozen[key]}, which no restart changes: "
                f"leave the setting out, or name another --checkpoint"
            )


def check_sound(location: str, files: CheckpointFiles) -> None:
    """Refuse a damaged checkpoint. UsageError names the file and the remedy."""
    findings = files.check(thorough=False)
    for finding in findings:
        if not finding.blocks:
            _log.warning("checkpoint", path=finding.path, problem=finding.problem, remedy=finding.remedy)
    text = in_one_line(findings)
    if text:
        raise UsageError(f"checkpoint {location} is damaged: {text}")


def log_changed_estate(manifest: Manifest | None, estate: Estate) -> None:
    """Log the stores that the checkpoint knows and the estate no longer describes."""
    gone = sorted(set(manifest.stores) - set(estate.stores)) if manifest is not None else []
    if gone:
        _log.warning(
            "stores are no longer described",
            stores=gone,
            effect="their events become dead letters; what they held stays in the checkpoint",
        )


def next_offsets(location: str, files: Files) -> Offsets:
    """Return where the next batch begins to read. UsageError: the file that says it is damaged."""
    try:
        return files.next_offsets()
    except (DamagedFileError, OSError) as error:
        raise UsageError(f"checkpoint {location}: its last offsets file {error}") from error


def in_one_line(findings: list[Finding]) -> str:
    """Return the findings that stop the job, for one line; empty if there are none."""
    blocking = [finding for finding in findings if finding.blocks]
    told = " | ".join(str(finding) for finding in blocking[:_MAX_FINDINGS])
    rest = len(blocking) - _MAX_FINDINGS
    return f"{told} | and {rest} more: `mqtwin checkpoint check` lists them" if rest > 0 else told


def _lock(directory: Path) -> int:
    """Lock a checkpoint for this process; returns the file descriptor that holds the lock."""
    try:
        if directory.exists() and not directory.is_dir():
            raise UsageError(f"checkpoint {directory} is a file; expected: a directory, or a path that is free")
        directory.mkdir(parents=True, exist_ok=True)
        file = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UsageError(
            f"checkpoint {directory} cannot be written: {error.strerror}; expected: a directory of this user, "
            "on a disk with room"
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.truncate(file, 0)
        os.write(file, msgspec.json.encode(Owner.this_process()) + b"\n")
    except BlockingIOError:
        owner = _read_owner(file)
        os.close(file)
        raise UsageError(
            f"checkpoint {directory}: another mqtwin stream runs on it ({owner}): stop it, or name another --checkpoint"
        ) from None
    except OSError as error:
        os.close(file)
        raise UsageError(f"checkpoint {directory} cannot be written: {error.strerror}") from error
    return file


def _read_owner(file: int) -> Owner:
    try:
        return msgspec.json.decode(os.pread(file, 4096, 0), type=Owner)
    except msgspec.DecodeError:  # it has just begun
        return Owner(0, "unknown host", "a moment ago")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
