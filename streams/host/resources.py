"""Resources of the job's processes on their host: descriptors, mappings and memory; and scratch directories.

- A job that runs for months must show a leak long before it fails, and a failure at a limit must name that limit. So
  use is compared with the limits. Figures that a system does not provide (macOS has no /proc) are left out.
- Scratch directories hold sockets, Java's temporary files and Spark's local files.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import structlog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


RENEW_SECONDS = 10.0  # between two readings of what takes milliseconds: the list of workers, counts of mappings
WARN_RATIO = 0.8
NEAR_RATIO = 0.9  # a failure with this share of a limit in use is attributed to the limit
_DEFAULT_MAX_MAPS = 65_530  # Linux's default of vm.max_map_count, for systems that do not report it
_OWN_GROUPS = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")
FDS_REMEDY = "raise LimitNOFILE= of the unit, or `ulimit -n`, and start again"
FILE_MAX_REMEDY = "raise the sysctl fs.file-max and start again"
MAPS_REMEDY = "raise the sysctl vm.max_map_count and start again"
MEMORY_REMEDY = "give the machine or container more memory, or lower spark.driver.memory"
# All names that `Resources.figures` may return, in the order of the log line.
RESOURCE_FIGURES = (
    *("jvm_fds", "worker_fds", "fds_limit"),
    *("jvm_maps", "worker_maps", "maps_limit"),
    *("jvm_rss_bytes", "worker_rss_bytes"),
    *("memory_used_bytes", "memory_limit_bytes"),
)


@dataclass(frozen=True, slots=True)
class LimitedResource:
    """A figure and its limit. `used` and `limit` are names in `Resources.figures`; the noun follows two numbers."""

    kind: str
    used: str
    limit: str
    noun: str
    remedy: str


_FDS, _MAPS, _MEMORY = "descriptors", "mappings", "memory"
LIMITED_RESOURCES = (
    LimitedResource(_FDS, "jvm_fds", "fds_limit", "descriptors of the JVM", FDS_REMEDY),
    LimitedResource(_FDS, "worker_fds", "fds_limit", "descriptors of a Python worker", FDS_REMEDY),
    LimitedResource(_MAPS, "jvm_maps", "maps_limit", "memory mappings of the JVM", MAPS_REMEDY),
    LimitedResource(_MAPS, "worker_maps", "maps_limit", "memory mappings of a Python worker", MAPS_REMEDY),
    LimitedResource(_MEMORY, "memory_used_bytes", "memory_limit_bytes", "bytes of memory", MEMORY_REMEDY),
)

# Words of an error, their meaning, the kinds of resources to report, the remedy. The first match counts.
_SHORTAGES = (
    ("Too many open files in system", "no process of this machine gets a descriptor", (), FILE_MAX_REMEDY),
    ("Too many open files", "a process has as many descriptors as it may", (_FDS,), FDS_REMEDY),
    ("Cannot allocate memory", "no more memory or mappings", (_MAPS, _MEMORY), f"{MEMORY_REMEDY}; or {MAPS_REMEDY}"),
)


def open_files_limits() -> tuple[int | None, int | None]:
    """Return the soft and the hard limit of this process's descriptors; None: unlimited."""
    soft, hard = (
        None if limit == resource.RLIM_INFINITY else limit for limit in resource.getrlimit(resource.RLIMIT_NOFILE)
    )
    return soft, hard


@cache
def map_limit() -> int | None:
    """Return the limit of memory mappings per process; None if the system does not report it."""
    return _read_number(Path("/proc/sys/vm/max_map_count"))


def max_kept_twins() -> int:
    """Return the number of twins that a worker may keep, each with a mapping: a quarter of the limit of mappings."""
    return (map_limit() or _DEFAULT_MAX_MAPS) // 4


@dataclass(frozen=True, slots=True)
class _MemoryGroup:
    """A control group with a memory limit. Limit in bytes; the file has the bytes in use."""

    limit: int
    usage: Path

    def used(self) -> int | None:
        """Return the bytes in use, without cached file pages that the kernel can drop at once."""
        usage = _read_number(self.usage)
        if usage is None:
            return None
        lines = (line.split() for line in _read_text(self.usage.with_name("memory.stat")).splitlines())
        idle = {name: int(number) for name, number in lines if name in ("inactive_file", "total_inactive_file")}
        return usage - max(idle.values(), default=0)


@cache
def _find_memory_group() -> _MemoryGroup | None:
    """Return the control group with the lowest memory limit of this process; None if none is below the machine's."""
    groups = []
    for line in _read_text(_OWN_GROUPS).splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root, limit, usage = _GROUPS, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            root, limit, usage = _GROUPS / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        own = root / path.lstrip("/")
        for folder in (own, *own.parents):
            number = _read_number(folder / limit)
            if number is not None and number < psutil.virtual_memory().total:
                groups.append(_MemoryGroup(number, folder / usage))
    return min(groups, key=lambda group: group.limit, default=None)


def memory_limit() -> int:
    """Return the bytes of memory of this machine, or of the container if that has less."""
    group = _find_memory_group()
    return group.limit if group is not None else int(psutil.virtual_memory().total)


def memory_used() -> int:
    """Return the bytes in use by all processes, of those in `memory_limit`."""
    group = _find_memory_group()
    used = group.used() if group is not None else None
    memory = psutil.virtual_memory()
    return used if used is not None else int(memory.total - memory.available)


def _read_text(path: Path) -> str:
    """Return the content of a system file; empty if it cannot be read."""
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _read_number(path: Path) -> int | None:
    text = _read_text(path).strip()
    return int(text) if text.isdecimal() else None


def count_open_files(pid: int) -> int:
    """Return the number of open descriptors of a process. psutil.Error: the process has ended."""
    with contextlib.suppress(OSError):
        count = os.stat(f"/proc/{pid}/fd").st_size  # noqa: PTH116 -- the count itself since Linux 6.2, before that 0
        if count:
            return count
    return int(psutil.Process(pid).num_fds())


def count_mappings(pid: int) -> int | None:
    """Return the number of memory mappings of a process; None if the system does not report it."""
    try:
        return Path(f"/proc/{pid}/maps").read_bytes().count(b"\n")
    except OSError:
        return None


class Resources:
    """Resource use of Spark's JVM and of the Python workers that it has started on this machine.

    On a cluster the JVM is that of the driver; executors are not measured.
    """

    def __init__(self, jvm: int) -> None:
        self._jvm = jvm
        self._log = structlog.get_logger("mqtwin.stream")
        self._workers: list[int] = []
        self._maps: dict[str, int] = {}
        self._fds_limit: int | None = None
        self._renewed = -RENEW_SECONDS
        self._warned: set[str] = set()
        self._last: dict[str, int] = {}

    def figures(self) -> dict[str, int]:
        """Return the current figures; those of workers are the maximum over all workers.

        Counts of mappings are up to `RENEW_SECONDS` old.
        """
        if time.monotonic() - self._renewed >= RENEW_SECONDS:
            self._renew()
        figures = {"memory_used_bytes": memory_used(), "memory_limit_bytes": memory_limit()}
        if self._fds_limit is not None:
            figures["fds_limit"] = self._fds_limit
        for name, processes in (("jvm", [self._jvm]), ("worker", self._workers)):
            uses = [use for pid in processes if (use := _measure_process(pid)) is not None]
            if uses:
                figures[f"{name}_fds"] = max(fds for fds, _ in uses)
                figures[f"{name}_rss_bytes"] = max(rss for _, rss in uses)
        figures |= self._maps
        self._last |= figures  # the last figures of a process remain after its end
        return {name: figures[name] for name in RESOURCE_FIGURES if name in figures}

    def warn_once(self, figures: Mapping[str, int]) -> None:
        """Log a warning if more than `WARN_RATIO` of a limit is in use, once per figure."""
        for row in LIMITED_RESOURCES:
            if row.used not in self._warned and _is_beyond(WARN_RATIO, row, figures):
                self._warned.add(row.used)
                self._log.warning("a limit is near", uses=_describe_use(row, figures), do=row.remedy)

    def shortage(self, error: BaseException) -> str:
        """Return the limit that an error of the job comes from, as a suffix of its message; empty if from none.

        Spark may report only that it cannot load state. Then the current figures decide, or those of the last batch if
        the JVM has ended.
        """
        self.figures()
        text = _collect_text(error)
        for words, meaning, kinds, remedy in _SHORTAGES:
            if words in text:
                uses = [_describe_use(row, self._last) for row in LIMITED_RESOURCES if row.kind in kinds]
                return f"; {', '.join((meaning, *filter(None, uses)))}: {remedy}"
        for row in LIMITED_RESOURCES:
            if row.kind != _MEMORY and _is_beyond(NEAR_RATIO, row, self._last):
                return f"; its cause may be a limit, {_describe_use(row, self._last)} are in use: {row.remedy}"
        return ""

    def _renew(self) -> None:
        self._renewed = time.monotonic()
        with contextlib.suppress(psutil.Error):
            jvm = psutil.Process(self._jvm)
            command = jvm.cmdline()  # also that of a copy of the JVM that is about to start a program
            children = jvm.children(recursive=True)
            self._workers = [child.pid for child in children if _command_line(child) not in (command, None)]
            self._fds_limit = _read_fds_limit(jvm)
        counts = {
            "jvm_maps": [count_mappings(self._jvm)],
            "worker_maps": [count_mappings(pid) for pid in self._workers],
        }
        known = {name: [count for count in each if count is not None] for name, each in counts.items()}
        self._maps = {name: max(each) for name, each in known.items() if each}
        limit = map_limit()
        if limit is not None:
            self._maps["maps_limit"] = limit


def measure_session(session: SparkSession) -> Resources:
    """Return the resources of the processes of a Spark session of this process."""
    jvm: Any = session.sparkContext._jvm  # noqa: SLF001 -- the JVM itself knows its process id
    return Resources(int(jvm.java.lang.ProcessHandle.current().pid()))


def _is_beyond(ratio: float, row: LimitedResource, figures: Mapping[str, int]) -> bool:
    return row.used in figures and row.limit in figures and figures[row.used] > ratio * figures[row.limit]


def _describe_use(row: LimitedResource, figures: Mapping[str, int]) -> str:
    """Return "N of LIMIT descriptors"; empty if either is not known."""
    if row.used not in figures or row.limit not in figures:
        return ""
    return f"{figures[row.used]:,} of {figures[row.limit]:,} {row.noun}"


def _read_fds_limit(process: psutil.Process) -> int | None:
    """Return a process's limit of descriptors, which its children inherit. Java itself raises it to the hard limit."""
    if not hasattr(process, "rlimit"):  # macOS does not have it
        return open_files_limits()[0]
    soft, _ = process.rlimit(psutil.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else int(soft)


def _command_line(process: psutil.Process) -> list[str] | None:
    """Return a process's command line; None if it has ended."""
    try:
        return list(process.cmdline())
    except psutil.Error:
        return None


def _measure_process(pid: int) -> tuple[int, int] | None:
    """Return a process's number of descriptors and resident bytes; None if it has ended."""
    try:
        return count_open_files(pid), psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return None


def _collect_text(error: BaseException | None) -> str:
    """Return the messages of an error and its causes, the stack traces of Java included."""
    parts = []
    while error is not None:
        parts += [str(error), str(getattr(error, "_stackTrace", ""))]
        error = getattr(error, "_cause", None) or error.__cause__
    return "\n".join(parts)


# --- scratch directories ----------------------------------------------------------------------------------------------
# A process that is killed removes nothing. A job therefore writes its temporary files into directories
# ``<base>/mqtwin-<user>/job-<random>``, and its driver holds a lock (flock) on each of them as long as it lives. The
# next job of the same user on the same base removes every directory that is not locked.

_PREFIX = "job-"
_CRASH_REPORT = "java-crash.log"
# The path of a Unix socket has at most 108 bytes (104 on macOS), its final zero included. Spark appends
# /.<uuid>.sock, 43 bytes.
MAX_SOCKET_DIRECTORY_BYTES = (104 if sys.platform == "darwin" else 108) - 1 - 43


class ScratchDirectory:
    """A directory of this process, locked until `remove` or the end of the process."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path, self._lock = path, lock

    @classmethod
    def claim(cls, base: Path) -> ScratchDirectory:
        """Create and lock a directory below `base`, and remove those of jobs that have ended. OSError: it cannot be
        created, or the user's directory in `base` belongs to another user.
        """
        root = _user_directory(base)
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = root.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
            raise PermissionError(errno.EPERM, "belongs to another user", str(root))
        with _locked(root):  # no other job sees the directory before it is locked
            _remove_abandoned(root)
            path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
            return cls(path, _lock(path, wait=False))

    def remove(self) -> None:
        """Remove the directory and its contents; what cannot be removed is left to the next job."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def base_of(directory: Path) -> Path:
    """Return the base of a scratch directory; any other directory itself. It outlives the job."""
    root = directory.parent
    if directory.name.startswith(_PREFIX) and root == _user_directory(root.parent):
        return root.parent
    return directory


def temporary_base() -> Path:
    """Return the system's temporary directory, or ``/tmp`` if paths of sockets would become too long."""
    base = Path(tempfile.gettempdir())
    path = _user_directory(base) / f"{_PREFIX}{'x' * 8}"
    return base if len(os.fsencode(path)) <= MAX_SOCKET_DIRECTORY_BYTES else Path("/tmp")  # noqa: S108 -- it is short


def crash_report(base: Path) -> Path:
    """Return the crash report of Java: one file per user, outside the scratch directories, so that it outlives them."""
    return _user_directory(base) / _CRASH_REPORT


def _user_directory(base: Path) -> Path:
    return base / f"mqtwin-{os.getuid()}"


def _remove_abandoned(root: Path) -> None:
    for directory in root.glob(f"{_PREFIX}*"):
        try:
            lock = _lock(directory, wait=False)
        except OSError:  # it is in use, or was removed meanwhile
            continue
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)


def _lock(directory: Path, *, wait: bool) -> int:
    """Lock a directory and return the descriptor that holds the lock. BlockingIOError: another process has it."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    descriptor = _lock(directory, wait=True)
    try:
        yield
    finally:
        os.close(descriptor)
