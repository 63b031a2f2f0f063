"""The guard of a checkpoint on HDFS, S3 and the like, through Hadoop's FileSystem in Spark's JVM.

Such a file system has no locks. A lease takes their place: a file `mqtwin.lease` that its owner rewrites every ten
seconds. A job that finds the lease of another owner watches it, and takes it over if it is not renewed for 25 seconds.
No clocks are compared.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlparse

import msgspec
import structlog
from typing_extensions import override

from streams.checkpoint.files import BatchLogs
from streams.checkpoint.manifest import Guard, Owner
from streams.errors import one_line
from twin.base.decoding import UNREADABLE
from twin.base.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEASE = "mqtwin.lease"
RENEW_SECONDS = 10.0
STALE_SECONDS = 25.0  # two and a half intervals of renewal
PATIENCE_SECONDS = 15.0  # for the first answer of a file system
_POLL_SECONDS = 0.5
FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
S3A_FILE_MANAGER = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
_CONNECTION = {  # for the guard's own connection; Spark's has the settings of the user
    "ipc.client.connect.max.retries": "1",
    "ipc.client.connect.max.retries.on.timeouts": "1",
    "ipc.client.connect.timeout": "5000",
    "fs.s3a.attempts.maximum": "1",
    "fs.s3a.retry.limit": "1",
    "fs.s3a.connection.establish.timeout": "5000",
}
_JARS = {  # packages of a scheme that are not part of Spark
    "s3a": "org.apache.hadoop:hadoop-aws:{hadoop}",
    "abfs": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "abfss": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "gs": "com.google.cloud.bigdataoss:gcs-connector:VERSION",
}
_T = TypeVar("_T")

_log = structlog.get_logger("mqtwin.stream")


def check_scheme(location: str, conf: Mapping[str, str]) -> None:
    """Check, before Spark starts, that Hadoop has a file system for the scheme. UsageError: it has none."""
    scheme = urlparse(location).scheme
    if scheme in {"s3", "s3n"} and f"spark.hadoop.fs.{scheme}.impl" not in conf:
        raise UsageError(
            f"checkpoint {location}: Hadoop has no file system for {scheme}://; expected: s3a://, with the jars of "
            "hadoop-aws (docs/cluster.md)"
        )


class _Lease(msgspec.Struct, frozen=True):
    """A lease. id: id of one start of a job; renewed: number of renewals."""

    id: str
    owner: Owner
    renewed: int


class FileSystem:
    """A directory in a file system of Hadoop. Its methods raise OSError with a message of one line. UsageError: the
    file system's classes are missing, or it does not answer in time.
    """

    def __init__(self, location: str, session: SparkSession) -> None:
        self.location = location
        jvm: Any = session.sparkContext._jvm  # noqa: SLF001 -- PySpark has no public name for it
        self._jvm = jvm
        self._root = jvm.org.apache.hadoop.fs.Path(location)
        conf = self._jvm.org.apache.hadoop.conf.Configuration(session.sparkContext._jsc.hadoopConfiguration())  # noqa: SLF001
        for key, value in _CONNECTION.items():
            conf.set(key, value)

        def connect() -> Any:
            system = self._jvm.org.apache.hadoop.fs.FileSystem.newInstance(self._root.toUri(), conf)
            system.mkdirs(self._root)
            return system

        self._system = _call_within_patience(connect, location, self._jvm)

    def exists(self, name: str) -> bool:
        """Return True if the file exists."""
        return bool(self._call(lambda: self._system.exists(self._path(name))))

    def names(self, name: str) -> list[str]:
        """Return the file names in a directory; none if it does not exist."""
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

    def write(self, name: str, data: bytes) -> None:
        """Replace a small file."""
        self._write(name, data, is_replaced=True)

    def create(self, name: str, data: bytes) -> bool:
        """Write a new small file and return True; return False if it exists already."""
        if self.exists(name):
            return False
        self._write(name, data, is_replaced=False)
        return True

    def _write(self, name: str, data: bytes, *, is_replaced: bool) -> None:
        def write() -> None:
            stream = self._system.create(self._path(name), is_replaced)
            try:
                stream.write(bytearray(data))
            finally:
                stream.close()

        self._call(write)

    def delete(self, name: str) -> None:
        """Delete a file if it exists."""
        self._call(lambda: self._system.delete(self._path(name), False))

    def close(self) -> None:
        """Close the connection."""
        self._call(self._system.close)

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name)

    def _call(self, call: Callable[[], _T]) -> _T:
        from py4j.protocol import Py4JError

        try:
            return call()
        except Py4JError as error:
            raise OSError(one_line(error)) from error


def _call_within_patience(connect: Callable[[], Any], location: str, jvm: Any) -> Any:
    """Call `connect` and wait at most `PATIENCE_SECONDS`: Hadoop's clients retry for minutes."""
    answers: list[Any] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(connect())
        except BaseException as error:  # noqa: BLE001 -- the waiting thread reports it
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
        advice = f"--conf spark.jars.packages={package}" if package else "a scheme of Hadoop, with its jars"
        raise UsageError(
            f"checkpoint {location}: the jars of {scheme}:// are missing; expected: {advice}"
        ) from failures[0]
    raise UsageError(f"checkpoint {location}: {reason}; expected: a file system that Spark can write") from failures[0]


class RemoteGuard(Guard):
    """The guard of a checkpoint in another file system: a lease, and the manifest. UsageError: it cannot be reached or
    written, its jars are missing, or another job runs on it.
    """

    def __init__(self, location: str, session: SparkSession) -> None:
        self._location = location
        self._system = FileSystem(location, session)
        _choose_file_manager(location, session)
        self._stopping = threading.Event()
        self._renewer: threading.Thread | None = None
        try:
            self._lease = self._take_lease()
            super().__init__(BatchLogs(self._system))
        except OSError as error:
            raise UsageError(
                f"checkpoint {location}: {error}; expected: a directory that this user can write"
            ) from error
        self._renewer = threading.Thread(target=self._renew, daemon=True, name="checkpoint lease")
        self._renewer.start()

    def _take_lease(self) -> _Lease:
        """Take the lease, once no other job renews it. UsageError: another job does."""
        lease = _Lease(uuid.uuid4().hex, Owner.this_process(), 0)
        first = self._read_lease()
        if first is not None:
            _log.info("waiting", reason=f"a lease of {first.owner}", seconds=STALE_SECONDS)
            deadline_s = time.monotonic() + STALE_SECONDS
            while time.monotonic() < deadline_s:
                current = self._read_lease()
                if current is None:
                    break
                if current != first:
                    raise UsageError(
                        f"checkpoint {self._location}: another mqtwin stream runs on it ({current.owner}): stop it, or "
                        "name another --checkpoint"
                    )
                time.sleep(_POLL_SECONDS)
            self._system.delete(LEASE)
        data = msgspec.json.encode(lease)
        if not self._system.create(LEASE, data) or self._read_lease() != lease:
            raise UsageError(
                f"checkpoint {self._location}: another mqtwin stream has just started on it: stop one of them"
            )
        return lease

    def _read_lease(self) -> _Lease | None:
        """Return the lease, if there is one. An incomplete one is read again: its owner may be writing it."""
        for _ in range(4):
            try:
                return msgspec.json.decode(self._system.read(LEASE), type=_Lease)
            except FileNotFoundError:
                return None
            except UNREADABLE:
                time.sleep(_POLL_SECONDS)
        return None

    def _renew(self) -> None:
        while not self._stopping.wait(RENEW_SECONDS):
            try:
                lease = self._read_lease()
                if lease is not None and lease.id != self._lease.id:
                    self.taken_by = str(lease.owner)  # the job sees it, and ends
                    return
                self._lease = msgspec.structs.replace(self._lease, renewed=self._lease.renewed + 1)
                self._system.write(LEASE, msgspec.json.encode(self._lease))
            except Exception as error:  # noqa: BLE001 -- this thread never ends in silence: the next renewal may work
                _log.warning("the lease cannot be renewed", error=f"{type(error).__name__}: {error}")

    @override
    def release(self) -> None:
        self._stopping.set()
        if self._renewer is not None:
            self._renewer.join(STALE_SECONDS)
        try:
            lease = self._read_lease()
            if lease is not None and lease.id == self._lease.id:
                self._system.delete(LEASE)
            self._system.close()
        except OSError as error:  # the JVM may have ended; the lease becomes stale by itself
            _log.warning("the lease stays", error=str(error))


def _choose_file_manager(location: str, session: SparkSession) -> None:
    """Set the file manager for S3, which has no rename: a file exists once its upload is complete.

    Spark's default, which renames, is right for HDFS.
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
