"""What the job's processes use of what the system allows them: descriptors, memory mappings, memory.

A job that runs for months must show a leak long before it dies of it, and when it dies of a limit, the message must
name that limit. Figures that a system does not give (macOS has no /proc) are left out.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import structlog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RENEW_SECONDS = 10.0  # between two looks at what costs milliseconds: the list of workers, numbers of mappings
WARN_RATIO = 0.8
NEAR_RATIO = 0.9  # a failure this near a limit is taken to be of it
_USUAL_MAPS = 65_530  # Linux's default of vm.max_map_count, where the system does not tell
_OWN_GROUPS = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")
FDS_REMEDY = "raise LimitNOFILE= of the unit, or `ulimit -n`, and start again"
FILE_MAX_REMEDY = "raise the sysctl fs.file-max and start again"
MAPS_REMEDY = "raise the sysctl vm.max_map_count and start again"
MEMORY_REMEDY = "give the machine or container more memory, or lower spark.driver.memory"
# All that `Resources.figures` may tell, in the order of the log line.
RESOURCE_FIGURES = (
    *("jvm_fds", "worker_fds", "fds_limit"),
    *("jvm_maps", "worker_maps", "maps_limit"),
    *("jvm_rss_bytes", "worker_rss_bytes"),
    *("memory_used_bytes", "memory_limit_bytes"),
)


@dataclass(frozen=True, slots=True)
class _Limited:
    """A resource that runs out.

    Args:
        kind: descriptors, mappings, memory.
        used: its figure in `Resources.figures`.
        limit: the figure it is held against.
        what: its name behind two numbers.
        remedy: what to do when it runs out.
    """

    kind: str
    used: str
    limit: str
    what: str
    remedy: str


_FDS, _MAPS, _MEMORY = "descriptors", "mappings", "memory"
_LIMITED = (
    _Limited(_FDS, "jvm_fds", "fds_limit", "descriptors of the JVM", FDS_REMEDY),
    _Limited(_FDS, "worker_fds", "fds_limit", "descriptors of a Python worker", FDS_REMEDY),
    _Limited(_MAPS, "jvm_maps", "maps_limit", "memory mappings of the JVM", MAPS_REMEDY),
    _Limited(_MAPS, "worker_maps", "maps_limit", "memory mappings of a Python worker", MAPS_REMEDY),
    _Limited(_MEMORY, "memory_used_bytes", "memory_limit_bytes", "bytes of memory", MEMORY_REMEDY),
)

# Words of an error -> what they mean, the kinds of resources to be told of, what to do. The first one found counts.
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
    """Return how many memory mappings a process may have; None where the system does not tell."""
    return _number(Path("/proc/sys/vm/max_map_count"))


def max_kept_twins() -> int:
    """Return how many twins a worker may keep, each with a memory mapping: a quarter of what the system allows."""
    return (map_limit() or _USUAL_MAPS) // 4


@dataclass(frozen=True, slots=True)
class _MemoryGroup:
    """A control group with a limit of memory. limit: bytes. usage: the file that tells the bytes used."""

    limit: int
    usage: Path

    def used(self) -> int | None:
        """Return the bytes in use, without pages of files that can be given back at once."""
        usage = _number(self.usage)
        if usage is None:
            return None
        lines = (line.split() for line in _text(self.usage.with_name("memory.stat")).splitlines())
        idle = {name: int(number) for name, number in lines if name in ("inactive_file", "total_inactive_file")}
        return usage - max(idle.values(), default=0)


@cache
def _memory_group() -> _MemoryGroup | None:
    """Return the control group that bounds this process's memory; None where none is below the machine's."""
    groups = []
    for line in _text(_OWN_GROUPS).splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root, limit, usage = _GROUPS, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            root, limit, usage = _GROUPS / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        own = root / path.lstrip("/")
        for folder in (own, *own.parents):
            number = _number(folder / limit)
            if number is not None and number < psutil.virtual_memory().total:
                groups.append(_MemoryGroup(number, folder / usage))
    return min(groups, key=lambda group: group.limit, default=None)


def memory_limit() -> int:
    """Return the bytes of memory of this machine, or of the container where that has less."""
    group = _memory_group()
    return group.limit if group is not None else psutil.virtual_memory().total


def memory_used() -> int:
    """Return the bytes of `memory_limit` that are in use by whomever."""
    group = _memory_group()
    used = group.used() if group is not None else None
    memory = psutil.virtual_memory()
    return used if used is not None else memory.total - memory.available


def _text(path: Path) -> str:
    """Return the content of a file of the system; empty where it cannot be read."""
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def count_open_files(pid: int) -> int:
    """Return how many descriptors a process has open. psutil.Error: it is gone."""
    with contextlib.suppress(OSError):
        count = os.stat(f"/proc/{pid}/fd").st_size  # noqa: PTH116 -- the number itself, since Linux 6.2; 0 before
        if count:
            return count
    return psutil.Process(pid).num_fds()


def count_mappings(pid: int) -> int | None:
    """Return how many memory mappings a process has; None where the system does not tell."""
    try:
        return Path(f"/proc/{pid}/maps").read_bytes().count(b"\n")
    except OSError:
        return None


class Resources:
    """What the job's processes use: Spark's JVM, and the Python workers that it has started on this machine.

    On a cluster the JVM is the driver's; what executors use is not known here.

    Args:
        jvm: process id of the JVM.
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
        """Return the figures of this moment; a worker's are those of the worker with the most.

        Mappings are as they were at most `RENEW_SECONDS` ago.
        """
        if time.monotonic() - self._renewed >= RENEW_SECONDS:
            self._renew()
        figures = {"memory_used_bytes": memory_used(), "memory_limit_bytes": memory_limit()}
        if self._fds_limit is not None:
            figures["fds_limit"] = self._fds_limit
        for name, processes in (("jvm", [self._jvm]), ("worker", self._workers)):
            uses = [use for pid in processes if (use := _use(pid)) is not None]
            if uses:
                figures[f"{name}_fds"] = max(fds for fds, _ in uses)
                figures[f"{name}_rss_bytes"] = max(rss for _, rss in uses)
        figures |= self._maps
        self._last |= figures  # what a process used last is kept when it is gone
        return {name: figures[name] for name in RESOURCE_FIGURES if name in figures}

    def warn_once(self, figures: Mapping[str, int]) -> None:
        """Log a warning when more than `WARN_RATIO` of a limit is in use, once for each."""
        for row in _LIMITED:
            if row.used not in self._warned and _is_beyond(WARN_RATIO, row, figures):
                self._warned.add(row.used)
                self._log.warning("a limit is near", uses=_told(row, figures), do=row.remedy)

    def shortage(self, error: BaseException) -> str:
        """Return what an error of the job has to do with limits, to be put behind its text; empty where nothing.

        Spark may say no more than that it cannot load state: then the figures of this moment tell, or those of the last
        batch where the JVM is gone.
        """
        self.figures()
        text = _whole_text(error)
        for words, meaning, kinds, remedy in _SHORTAGES:
            if words in text:
                uses = [_told(row, self._last) for row in _LIMITED if row.kind in kinds]
                return f"; {', '.join((meaning, *filter(None, uses)))}: {remedy}"
        for row in _LIMITED:
            if row.kind != _MEMORY and _is_beyond(NEAR_RATIO, row, self._last):
                return f"; its cause may be a limit, {_told(row, self._last)} are in use: {row.remedy}"
        return ""

    def _renew(self) -> None:
        self._renewed = time.monotonic()
        with contextlib.suppress(psutil.Error):
            jvm = psutil.Process(self._jvm)
            self._workers = [child.pid for child in jvm.children(recursive=True)]
            self._fds_limit = _fds_limit(jvm)
        counts = {
            "jvm_maps": [count_mappings(self._jvm)],
            "worker_maps": [count_mappings(pid) for pid in self._workers],
        }
        self._maps = {name: max(known) for name, of in counts.items() if (known := [n for n in of if n is not None])}
        limit = map_limit()
        if limit is not None:
            self._maps["maps_limit"] = limit


def resources_of(session: SparkSession) -> Resources:
    """Return the resources of the processes of a Spark session that runs in this process."""
    jvm = session.sparkContext._jvm  # noqa: SLF001 -- the JVM itself knows its process id
    return Resources(int(jvm.java.lang.ProcessHandle.current().pid()))  # type: ignore[union-attr]


def _is_beyond(ratio: float, row: _Limited, figures: Mapping[str, int]) -> bool:
    return row.used in figures and row.limit in figures and figures[row.used] > ratio * figures[row.limit]


def _told(row: _Limited, figures: Mapping[str, int]) -> str:
    """Return "N of LIMIT descriptors"; empty where that is not known."""
    if row.used not in figures or row.limit not in figures:
        return ""
    return f"{figures[row.used]:,} of {figures[row.limit]:,} {row.what}"


def _fds_limit(process: psutil.Process) -> int | None:
    """Return a process's limit of descriptors; its children inherit it. Java raises it to the hard limit itself."""
    if not hasattr(process, "rlimit"):  # not on macOS
        return open_files_limits()[0]
    soft, _ = process.rlimit(psutil.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def _use(pid: int) -> tuple[int, int] | None:
    """Return a process's descriptors and resident bytes; None where it is gone."""
    try:
        return count_open_files(pid), psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return None


def _whole_text(error: BaseException | None) -> str:
    """Return everything an error and its causes say, the stack traces of Java included."""
    parts = []
    while error is not None:
        parts += [str(error), str(getattr(error, "_stackTrace", ""))]
        error = getattr(error, "_cause", None) or error.__cause__
    return "\n".join(parts)
