"""A checkpoint that is not on this machine: on HDFS, S3 and the like, through Hadoop's FileSystem in Spark's JVM.

Where nothing can be locked there is a lease: a file `mqtwin.lease` that its owner writes anew every ten seconds. Who
finds one of another owner watches it: a lease that is not renewed for 25 seconds belongs to nobody any more. No clocks
are compared.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlparse

import msgspec
import structlog

from streams.checkpoint.files import (
    MANIFEST,
    DamagedFileError,
    Offsets,
    OffsetsFile,
    parse_initial_offsets,
    parse_offsets,
)
from streams.checkpoint.manifest import Manifest, Owner, decode_manifest
from streams.errors import one_line
from twin.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEASE = "mqtwin.lease"
RENEW_SECONDS = 10.0
STALE_SECONDS = 25.0  # two renewals and a half
PATIENCE_SECONDS = 15.0  # for the first answer of a file system
_LOOK_SECONDS = 0.5
FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
S3A_FILE_MANAGER = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
_IMPATIENT = {  # of the guard's own connection only; Spark's keeps what the user gave
    "ipc.client.connect.max.retries": "1",
    "ipc.client.connect.max.retries.on.timeouts": "1",
    "ipc.client.connect.timeout": "5000",
    "fs.s3a.attempts.maximum": "1",
    "fs.s3a.retry.limit": "1",
    "fs.s3a.connection.establish.timeout": "5000",
}
_JARS = {  # what a scheme needs beside what Spark brings
    "s3a": "org.apache.hadoop:hadoop-aws:{hadoop}",
    "abfs": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "abfss": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "gs": "com.google.cloud.bigdataoss:gcs-connector:VERSION",
}
_log = structlog.get_logger("mqtwin.stream")
_T = TypeVar("_T")


def check_scheme(location: str, conf: Mapping[str, str]) -> None:
    """Refuse, before Spark starts, a scheme that Hadoop has no file system for. UsageError."""
    scheme = urlparse(location).scheme
    if scheme in {"s3", "s3n"} and f"spark.hadoop.fs.{scheme}.impl" not in conf:
        raise UsageError(
            f"checkpoint {location}: Hadoop has no file system for {scheme}://; expected: s3a://, with the jars of "
            "hadoop-aws (operations, Scaling out)"
        )


class _Lease(msgspec.Struct, frozen=True):
    """A lease. id: of its owner's start; renewed: how often."""

    id: str
    owner: Owner
    renewed: int


class FileSystem:
    """A directory in a file system of Hadoop. Every method raises OSError with a message of one line.

    Args:
        location: the directory's URI.
        session: Spark's; its settings reach the file system.

    Raises:
        UsageError: the file system's classes are missing, or nobody answers in time.
    """

    def __init__(self, location: str, session: SparkSession) -> None:
        self._location = location
        jvm: Any = session.sparkContext._jvm  # noqa: SLF001 -- PySpark has no name for it
        self._jvm = jvm
        self._root = self._jvm.org.apache.hadoop.fs.Path(location)
        conf = self._jvm.org.apache.hadoop.conf.Configuration(session.sparkContext._jsc.hadoopConfiguration())  # noqa: SLF001
        for key, value in _IMPATIENT.items():
            conf.set(key, value)

        def connect() -> Any:
            system = self._jvm.org.apache.hadoop.fs.FileSystem.newInstance(self._root.toUri(), conf)
            system.mkdirs(self._root)
            return system

        self._system = _in_time(connect, location, self._jvm)

    def exists(self, name: str) -> bool:
        """Return True if there is such a file."""
        return bool(self._call(lambda: self._system.exists(self._path(name))))

    def names(self, name: str) -> list[str]:
        """Return the names in a directory; none if it is not there."""
        if not self.exists(name):
            return []
        return [status.getPath().getName() for status in self._call(lambda: self._system.listStatus(self._path(name)))]

    def read(self, name: str) -> bytes:
        """Read a small file. FileNotFoundError."""
        if not self.exists(name):
            raise FileNotFoundError(f"{name} is missing")

        def read() -> bytes:
            stream = self._system.open(self._path(name))
            try:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

        return self._call(read)

    def write(self, name: str, data: bytes, *, new: bool = False) -> bool:
        """Write a small file; `new`: only if it is not there yet, False if it is."""
        if new and self.exists(name):
            return False

        def write() -> None:
            stream = self._system.create(self._path(name), not new)
            try:
                stream.write(bytearray(data))
            finally:
                stream.close()

        self._call(write)
        return True

    def delete(self, name: str) -> None:
        """Delete a file, if it is there."""
        self._call(lambda: self._system.delete(self._path(name), False))

    def close(self) -> None:
        """Leave the file system."""
        self._call(self._system.close)

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name)

    def _call(self, call: Callable[[], _T]) -> _T:
        from py4j.protocol import Py4JError

        try:
            return call()
        except Py4JError as error:
            raise OSError(one_line(error)) from error


def _in_time(connect: Callable[[], Any], location: str, jvm: Any) -> Any:
    """Run `connect` for at most `PATIENCE_SECONDS`: Hadoop's clients try again for minutes."""
    answers: list[Any] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(connect())
        except BaseException as error:  # noqa: BLE001 -- it is raised by the thread that waits
            failures.append(error)

    worker = threading.Thread(target=work, daemon=True, name="checkpoint")
    worker.start()
    worker.join(PATIENCE_SECONDS)
    if answers:
        return answers[0]
    scheme = urlparse(location).scheme
    if not failures:
        raise UsageError(
            f"checkpoint {location}: nobody answers within {PATIENCE_SECONDS:.0f} s; expected: a file system that this "
            "machine reaches"
        )
    reason = one_line(failures[0])
    hadoop = str(jvm.org.apache.hadoop.util.VersionInfo.getVersion())
    if "ClassNotFoundException" in str(failures[0]) or "No FileSystem for scheme" in str(failures[0]):
        package = _JARS.get(scheme, "").format(hadoop=hadoop)
        advice = f": --conf spark.jars.packages={package}" if package else ", or it is no scheme of Hadoop's"
        raise UsageError(f"checkpoint {location}: the jars of {scheme}:// are missing{advice}") from failures[0]
    raise UsageError(f"checkpoint {location}: {reason}; expected: a file system that Spark can write") from failures[0]


class RemoteFiles:
    """What the guard reads of Spark's files in another file system."""

    def __init__(self, system: FileSystem) -> None:
        self._system = system
        self.batches = sorted(int(name) for name in system.names("offsets") if name.isdecimal())
        self.commits = sorted(int(name) for name in system.names("commits") if name.isdecimal())

    @property
    def has_begun(self) -> bool:
        """See `streams.checkpoint.files.CheckpointFiles`."""
        return bool(self.batches or self.commits)

    @cached_property
    def newest(self) -> tuple[Offsets, Mapping[str, str]] | None:
        """See `streams.checkpoint.files.CheckpointFiles`."""
        for batch in reversed(self.batches):
            try:
                file = self._offsets(batch)
            except DamagedFileError:
                continue
            return file.offsets, file.settings
        return None

    def next_offsets(self) -> Offsets:
        """See `streams.checkpoint.files.CheckpointFiles`."""
        if not self.batches:
            return {}
        last = self.batches[-1]
        begin = last if self.commits and self.commits[-1] >= last else last - 1
        if begin >= 0:
            return self._offsets(begin).offsets
        try:
            return parse_initial_offsets(self._system.read("sources/0/0"))
        except (DamagedFileError, FileNotFoundError):
            return {}

    def _offsets(self, batch: int) -> OffsetsFile:
        return parse_offsets(self._system.read(f"offsets/{batch}"))


class RemoteGuard:
    """The guard of a checkpoint in another file system: a lease, and the manifest.

    Args:
        location: the checkpoint's URI.
        session: Spark's.

    Raises:
        UsageError: it cannot be reached or written, its jars are missing, or another job runs on it.
    """

    def __init__(self, location: str, session: SparkSession) -> None:
        self._location = location
        self._system = FileSystem(location, session)
        _choose_file_manager(location, session)
        self._stopping = threading.Event()
        self._renewer: threading.Thread | None = None
        try:
            self._lease = self._take()
            self.files = RemoteFiles(self._system)
            data = self._system.read(MANIFEST) if self._system.exists(MANIFEST) else None
        except OSError as error:
            raise UsageError(
                f"checkpoint {location}: {error}; expected: a directory that this user can write"
            ) from error
        self.manifest = decode_manifest(data, f"{location}/{MANIFEST}") if data is not None else None
        self._renewer = threading.Thread(target=self._renew, daemon=True, name="checkpoint lease")
        self._renewer.start()

    def _take(self) -> _Lease:
        """Take the lease, once nobody renews it."""
        own = _Lease(uuid.uuid4().hex, Owner.this_process(), 0)
        found = self._read_lease()
        if found is not None:
            _log.info("waiting", reason=f"a lease of {found.owner}", seconds=STALE_SECONDS)
            until = time.monotonic() + STALE_SECONDS
            while time.monotonic() < until:
                now = self._read_lease()
                if now is None:
                    break
                if now != found:
                    raise UsageError(
                        f"checkpoint {self._location}: another mqtwin stream runs on it ({now.owner}): stop it, or "
                        "name another --checkpoint"
                    )
                time.sleep(_LOOK_SECONDS)
            self._system.delete(LEASE)
        data = msgspec.json.encode(own)
        if not self._system.write(LEASE, data, new=True) or self._read_lease() != own:
            raise UsageError(
                f"checkpoint {self._location}: another mqtwin stream has just started on it: stop one of them"
            )
        return own

    def _read_lease(self) -> _Lease | None:
        """Return the lease that is there; one that is being written counts as none only if it stays so."""
        for _ in range(4):
            try:
                return msgspec.json.decode(self._system.read(LEASE), type=_Lease)
            except FileNotFoundError:
                return None
            except msgspec.DecodeError:
                time.sleep(_LOOK_SECONDS)
        return None

    def _renew(self) -> None:
        while not self._stopping.wait(RENEW_SECONDS):
            try:
                found = self._read_lease()
                if found is not None and found.id != self._lease.id:
                    _log.error("another job took the checkpoint", owner=str(found.owner))
                    return
                self._lease = msgspec.structs.replace(self._lease, renewed=self._lease.renewed + 1)
                self._system.write(LEASE, msgspec.json.encode(self._lease))
            except OSError as error:
                _log.warning("the lease cannot be renewed", error=str(error))

    def write(self, manifest: Manifest) -> None:
        """See `streams.checkpoint.manifest.Guard`."""
        try:
            self._system.write(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
        except OSError as error:
            raise UsageError(f"checkpoint {self._location} cannot be written: {error}") from error

    def release(self) -> None:
        """See `streams.checkpoint.manifest.Guard`."""
        self._stopping.set()
        if self._renewer is not None:
            self._renewer.join(STALE_SECONDS)
        try:
            found = self._read_lease()
            if found is not None and found.id == self._lease.id:
                self._system.delete(LEASE)
            self._system.close()
        except OSError as error:  # the JVM may have gone: the lease grows stale by itself
            _log.warning("the lease stays", error=str(error))


def _choose_file_manager(location: str, session: SparkSession) -> None:
    """Use the file manager that S3 needs: it has no rename, so a file is there when its upload is complete.

    Spark's own choice, which renames, is right for HDFS.
    """
    from py4j.protocol import Py4JError

    if urlparse(location).scheme != "s3a" or session.conf.get(FILE_MANAGER, None):
        return
    jvm: Any = session.sparkContext._jvm  # noqa: SLF001
    try:
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        jvm.java.lang.Class.forName(S3A_FILE_MANAGER, False, loader)
    except Py4JError:
        _log.warning(
            "S3 without its file manager",
            effect="a batch's files are renamed, which S3 does not do at once",
            remedy="add org.apache.spark:spark-hadoop-cloud_2.13 to --conf spark.jars.packages",
        )
    else:
        session.conf.set(FILE_MANAGER, S3A_FILE_MANAGER)
