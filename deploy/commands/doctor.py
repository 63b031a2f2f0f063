"""``mqtwin doctor``: requirements of mqtwin, what this machine has, and how to get the rest."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import psutil
from packaging.requirements import Requirement
from rich.console import Console
from rich.table import Table
from rich.text import Text

from deploy.java.jars import (
    KAFKA_BROKER,
    SPARK_CONNECTOR,
    cache_dir,
    ensure_jars,
    find_java,
    missing,
    missing_archives,
    pinned,
)
from deploy.options.common import Flag, KafkaOptions
from deploy.show.summaries import warm_kernels
from deploy.show.terminal import Wrapped
from streams.host.resources import FDS_REMEDY, MAPS_REMEDY, map_limit, max_kept_twins, memory_limit, open_files_limits
from streams.log import configure_logging
from twin.base.errors import MqtwinError
from twin.base.units import as_count

PYTHONS = ((3, 11), (3, 14))  # the first supported, the first unsupported: requires-python of pyproject.toml
GIB = 1024**3
MIN_MEMORY_BYTES = 4 * GIB  # the demo: Spark's JVM 1 GB, the broker 0.5 GB, Python workers 0.3 GB each
MIN_DISK_BYTES = 1 * GIB
MIN_CORES = 2
MIN_FILES = 4096  # Spark's JVM has about 450 open, a Python worker 30, for any number of stores
MIN_MAPPINGS = 65_530  # Linux's default; Spark's JVM has about 800, a worker 500 and one per cached store
BASE_MEMORY_BYTES = 3 * GIB  # Spark's JVM 2 GB, driver and Python workers 0.3 GB each
STORE_MEMORY_BYTES = 512 * 1024  # a small store: its mirror 0.3 MB, and 0.1 MB in each of two workers
_STYLES = {"ok": "green", "optional": "cyan", "lacking": "yellow", "missing": "bold red"}

State = Literal["ok", "optional", "lacking", "missing"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    subject: str
    state: State
    detail: str
    remedy: str = ""  # empty if it is ok


def doctor(
    *,
    kafka: KafkaOptions | None = None,
    fetch: Flag = False,
    class_archives: Flag = False,
) -> int:
    """Check the prerequisites and name what is missing.

    With --bootstrap-servers: check the way to Kafka instead, from the name of a broker to the rights of `mqtwin stream`
    on each topic. The exit status is 0 if nothing needed is missing, else 1.

    Args:
        kafka: Kafka connection to check.
        fetch: First do what else the first use does: fetch missing jars, and compile the kernels.
        class_archives: First make missing archives of Java's classes, with which Spark and the embedded broker start
            some seconds sooner. This takes half a minute, and 240 MB of disk.
    """
    if fetch:
        if has_stream():
            ensure_jars(SPARK_CONNECTOR)
            ensure_jars(KAFKA_BROKER)
        warm_kernels(Console(stderr=True))
    if class_archives:
        from deploy.java.make_archives import make_archives

        configure_logging(level="warning")
        print("making archives of Java's classes", file=sys.stderr)
        try:
            make_archives()
        except MqtwinError as error:  # they save time, and nothing needs them
            print(f"no archives of Java's classes: {error}", file=sys.stderr)
    findings = examine() if kafka is None else reach_kafka(kafka)
    print_findings(findings)
    return 1 if any(finding.state == "missing" for finding in findings) else 0


def print_findings(findings: Sequence[Finding]) -> None:
    """Print a table on a terminal, elsewhere one line per finding, columns separated by two or more spaces."""
    console = Console()
    if not console.is_terminal:
        for finding in findings:
            remedy = f"  -> {finding.remedy}" if finding.remedy else ""
            print(f"{finding.state:<8}  {finding.subject:<23}  {finding.detail}{remedy}")
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for finding in findings:
        # Text, not str: rich would take brackets in a path for markup.
        details = Text(finding.detail, overflow="fold")
        if finding.remedy:
            details.append(f"\n-> {finding.remedy}", style="bold")
        table.add_row(Text(finding.state, style=_STYLES[finding.state]), Text(finding.subject), Wrapped(details))
    console.print(table)


def examine() -> list[Finding]:
    """Run all checks. They change nothing and use no network."""
    checks: tuple[Callable[[], Finding], ...] = (
        _python,
        _system,
        _packages,
        *(_OF_STREAM if has_stream() else (_stream,)),
        _cores,
        _memory,
        _descriptors,
        _mappings,
        _disk,
        _docker,
    )
    return [check() for check in checks]


def reach_kafka(kafka: KafkaOptions) -> list[Finding]:
    """Return the steps of the way to Kafka, those of an address up to the first that fails. UsageError."""
    from streams.kafka.probe import probe

    return [
        Finding(
            f"{step.name} {step.place}",
            "missing" if step.expected else "ok",
            step.detail,
            f"expected: {step.expected}" if step.expected else "",
        )
        for step in probe(kafka.client(), kafka.topics.rights)
    ]


def has_stream() -> bool:
    """Return True if anything of the extra `stream` is installed: then all of it is wanted."""
    return any(importlib.util.find_spec(name) is not None for name in ("pyspark", "confluent_kafka"))


def _stream() -> Finding:
    return Finding("Kafka and Spark", "optional", "not installed: recordings only", "pip install 'mqtwin[stream]'")


def _python() -> Finding:
    first, first_unsupported = PYTHONS
    is_supported = first <= sys.version_info[:2] < first_unsupported
    detail = f"{platform.python_version()} ({sys.executable})"
    if is_supported:
        return Finding("Python", "ok", detail)
    return Finding("Python", "missing", detail, "use Python 3.11, 3.12 or 3.13")


def _system() -> Finding:
    detail = f"{platform.system()} {platform.machine()}"
    if platform.system() == "Linux":
        return Finding("system", "ok", detail)
    if platform.system() == "Darwin":
        return Finding("system", "lacking", detail, "works; after a kill -9 of mqtwin, end its broker by hand")
    return Finding("system", "missing", detail, "use Linux or macOS; on Windows, use the Windows Subsystem for Linux")


def _packages() -> Finding:
    remedy = "pip install -c constraints.txt -e '.[stream]' (make test and make demo do that)"
    try:
        requirements = [Requirement(text) for text in importlib.metadata.requires("mqtwin") or ()]
    except importlib.metadata.PackageNotFoundError:
        return Finding("packages", "missing", "mqtwin is not installed in this Python", remedy)
    extras = ("", "stream") if has_stream() else ("",)
    needed = [
        requirement
        for requirement in requirements
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras)
    ]
    problems = []
    for requirement in needed:
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            problems.append(f"{requirement.name} is not installed")
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            problems.append(f"{requirement.name} is {version}, needed: {requirement.specifier}")
    if problems:
        return Finding("packages", "missing", "; ".join(problems), remedy)
    return Finding("packages", "ok", f"mqtwin {importlib.metadata.version('mqtwin')} and {len(needed)} dependencies")


def _java() -> Finding:
    try:
        java = find_java()
    except MqtwinError as error:
        detail, _, remedy = str(error).partition(": ")
        return Finding("Java", "missing", detail, remedy)
    return Finding("Java", "ok", f"{java.release} in {java.home} ({java.origin})")


def _class_archives() -> Finding:
    subject = "Java's classes"
    try:
        absent = missing_archives(find_java())
    except MqtwinError:
        return Finding(subject, "optional", "no Java, so no archive of its classes", "install a Java first")
    if not absent:
        return Finding(subject, "ok", "archives that Spark and the broker load at once")
    detail = f"no archive for {' and '.join(absent)}: each start takes some seconds longer"
    return Finding(subject, "optional", detail, "mqtwin doctor --class-archives, half a minute and 240 MB of disk")


def _jars(name: str, subject: str) -> Finding:
    count = len(pinned(name))
    absent = missing(name)
    if not absent:
        return Finding(subject, "ok", f"{as_count(count, 'jar')} with the right SHA-256")
    detail = f"{len(absent)} of {as_count(count, 'jar')} missing or damaged, the first: {absent[0].coordinate}"
    return Finding(subject, "missing", detail, "fetched at first use, or now with: mqtwin doctor --fetch")


_OF_STREAM: tuple[Callable[[], Finding], ...] = (
    _java,
    _class_archives,
    lambda: _jars(SPARK_CONNECTOR, "Spark's Kafka connector"),
    lambda: _jars(KAFKA_BROKER, "embedded Kafka"),
)


def _cores() -> Finding:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cores >= MIN_CORES:
        return Finding("cores", "ok", str(cores))
    return Finding("cores", "lacking", str(cores), f"works, but slowly; expected: {MIN_CORES} or more")


def _memory() -> Finding:
    """Check the memory of the machine or container, and estimate the number of small stores that fit in it."""
    total = memory_limit()
    detail = f"{total / GIB:.1f} GiB, {psutil.virtual_memory().available / GIB:.1f} GiB available"
    if total >= MIN_MEMORY_BYTES:
        stores = round((total - BASE_MEMORY_BYTES) // STORE_MEMORY_BYTES, -3)
        return Finding("memory", "ok", f"{detail}; room for about {stores:,} small stores")
    return Finding("memory", "lacking", detail, f"the demo and the tests need {MIN_MEMORY_BYTES // GIB} GiB")


def _descriptors() -> Finding:
    """Check the limit of open files. Java raises the soft limit to the hard limit, and the workers inherit it."""
    soft, hard = open_files_limits()
    detail = f"soft limit {_limit(soft)}, hard limit {_limit(hard)}; Java uses the hard limit"
    if hard is None or hard >= MIN_FILES:
        return Finding("open files", "ok", f"{detail}: enough for any number of stores")
    return Finding("open files", "lacking", detail, f"expected: {MIN_FILES:,} or more; {FDS_REMEDY}")


def _mappings() -> Finding:
    """Check the limit of memory mappings. A worker has one per cached store."""
    limit = map_limit()
    if limit is None:
        return Finding("memory mappings", "ok", "no known limit")
    detail = f"{limit:,} per process; a worker caches {max_kept_twins():,} stores and attaches to the others"
    if limit >= MIN_MAPPINGS:
        return Finding("memory mappings", "ok", detail)
    return Finding("memory mappings", "lacking", detail, f"expected: {MIN_MAPPINGS:,} or more; {MAPS_REMEDY}")


def _limit(number: int | None) -> str:
    return "none" if number is None else f"{number:,}"


def _disk() -> Finding:
    cache = cache_dir()
    existing = next(folder for folder in (cache, *cache.parents) if folder.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        return Finding("disk", "missing", f"{cache} cannot be written", "set MQTWIN_CACHE to a writable folder")
    free, place = min((shutil.disk_usage(place).free, str(place)) for place in (existing, tempfile.gettempdir()))
    detail = f"{free / GIB:.1f} GiB free in {place}"
    if free >= MIN_DISK_BYTES:
        return Finding("disk", "ok", detail)
    remedy = f"expected: {MIN_DISK_BYTES // GIB} GiB or more; set MQTWIN_CACHE or TMPDIR to another disk"
    return Finding("disk", "missing", detail, remedy)


def _docker() -> Finding:
    remedy = "start a Docker engine; needed only for docker-compose.yml and the tests marked docker"
    command = ["docker", "version", "--format", "{{.Server.Version}}"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return Finding("Docker", "optional", "the docker command does not answer", remedy)
    if answer.returncode != 0:
        return Finding("Docker", "optional", "the engine does not answer", remedy)
    return Finding("Docker", "ok", f"engine {answer.stdout.strip()}")
