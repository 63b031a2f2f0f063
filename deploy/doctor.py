"""What this machine has of what mqtwin needs, and how to get the rest."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import psutil
from packaging.requirements import Requirement

from deploy.cache import cache_dir
from deploy.jars import KAFKA_BROKER, SPARK_CONNECTOR, missing, pinned
from deploy.java import find_java
from streams.host.resources import FDS_REMEDY, MAPS_REMEDY, map_limit, max_kept_twins, memory_limit, open_files_limits
from twin.errors import MqtwinError

PYTHONS = ((3, 11), (3, 14))  # the first supported, the first not supported: requires-python of pyproject.toml
GIB = 1024**3
ENOUGH_MEMORY = 4 * GIB  # demo: Spark's JVM 1 GB, the broker 0.5 GB, Python workers 0.3 GB each
ENOUGH_DISK = 1 * GIB
ENOUGH_CORES = 2
ENOUGH_FILES = 4096  # Spark's JVM has some 450 open, a Python worker 30, however many stores there are
ENOUGH_MAPPINGS = 65_530  # Linux's default; Spark's JVM has some 800, a worker 500 and one for each store it keeps
BASE_MEMORY = 3 * GIB  # Spark's JVM 2 GB, driver and Python workers 0.3 GB each
STORE_MEMORY = 512 * 1024  # of a small store: its mirror 0.3 MB, what two workers keep beside it 0.1 MB each

State = Literal["ok", "lacking", "missing"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: ``state`` is ``ok``, ``lacking`` (works without, or with less) or ``missing`` (needed)."""

    what: str
    state: State
    found: str
    remedy: str = ""


def examine() -> list[Finding]:
    """Looks at everything. Changes nothing and uses no network."""
    looks: tuple[Callable[[], Finding], ...] = (
        _python,
        _system,
        _packages,
        _java,
        lambda: _jars(SPARK_CONNECTOR, "Spark's Kafka connector"),
        lambda: _jars(KAFKA_BROKER, "embedded Kafka"),
        _cores,
        _memory,
        _descriptors,
        _mappings,
        _disk,
        _docker,
    )
    return [look() for look in looks]


def _python() -> Finding:
    first, beyond = PYTHONS
    good = first <= sys.version_info[:2] < beyond
    found = f"{platform.python_version()} ({sys.executable})"
    return Finding("Python", "ok" if good else "missing", found, "" if good else "use Python 3.11, 3.12 or 3.13")


def _system() -> Finding:
    found = f"{platform.system()} {platform.machine()}"
    if platform.system() == "Linux":
        return Finding("system", "ok", found)
    if platform.system() == "Darwin":
        return Finding(
            "system", "lacking", found, "works; after a kill -9 of mqtwin its broker has to be ended by hand"
        )
    return Finding("system", "missing", found, "use Linux or macOS; on Windows the Windows Subsystem for Linux")


def _packages() -> Finding:
    """Every package that the distribution asks for, at a version that it takes."""
    remedy = "pip install -c constraints.txt -e . (make test and make demo do it)"
    try:
        wanted = [Requirement(text) for text in importlib.metadata.requires("mqtwin") or ()]
    except importlib.metadata.PackageNotFoundError:
        return Finding("packages", "missing", "mqtwin is not installed in this Python", remedy)
    needed = [need for need in wanted if need.marker is None or need.marker.evaluate({"extra": ""})]
    wrong = []
    for requirement in needed:
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            wrong.append(f"{requirement.name} is not there")
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            wrong.append(f"{requirement.name} is {version}, {requirement.specifier} is needed")
    if wrong:
        return Finding("packages", "missing", "; ".join(wrong), remedy)
    return Finding("packages", "ok", f"mqtwin {importlib.metadata.version('mqtwin')} and the {len(needed)} it needs")


def _java() -> Finding:
    try:
        java = find_java()
    except MqtwinError as error:
        found, _, remedy = str(error).partition(": ")
        return Finding("Java", "missing", found, remedy)
    return Finding("Java", "ok", f"{java.release} in {java.home} ({java.origin})")


def _jars(name: str, what: str) -> Finding:
    there = len(pinned(name))
    lost = missing(name)
    if not lost:
        return Finding(what, "ok", f"{there} jars with the right SHA-256")
    found = f"{len(lost)} of {there} jars missing or broken, first {lost[0].coordinate}"
    return Finding(what, "missing", found, "fetched at the first need, or now: mqtwin doctor --fetch")


def _cores() -> Finding:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    good = cores >= ENOUGH_CORES
    return Finding("cores", "ok" if good else "lacking", str(cores), "" if good else "works, slowly: two are right")


def _memory() -> Finding:
    """Return the machine's memory, or the container's, and how many small stores have room in it."""
    total = memory_limit()
    found = f"{total / GIB:.1f} GiB, {psutil.virtual_memory().available / GIB:.1f} GiB available"
    if total >= ENOUGH_MEMORY:
        return Finding(
            "memory", "ok", f"{found}; room for some {round((total - BASE_MEMORY) // STORE_MEMORY, -3):,} small stores"
        )
    return Finding("memory", "lacking", found, f"the demo and the tests want {ENOUGH_MEMORY // GIB} GiB")


def _descriptors() -> Finding:
    """Return the limit of open files: Java raises the soft one to the hard one, and the workers inherit that."""
    soft, hard = open_files_limits()
    found = f"soft limit {_limit(soft)}, hard limit {_limit(hard)}; Java takes the hard one"
    if hard is None or hard >= ENOUGH_FILES:
        return Finding("open files", "ok", f"{found}, which is enough for any number of stores")
    return Finding("open files", "lacking", found, f"expected: {ENOUGH_FILES:,} or more; {FDS_REMEDY}")


def _mappings() -> Finding:
    """Return the limit of memory mappings: a worker has one for each store that it keeps."""
    limit = map_limit()
    if limit is None:
        return Finding("memory mappings", "ok", "no limit known")
    found = f"{limit:,} per process; a worker keeps {max_kept_twins():,} stores at hand and attaches to any others"
    if limit >= ENOUGH_MAPPINGS:
        return Finding("memory mappings", "ok", found)
    return Finding("memory mappings", "lacking", found, f"expected: {ENOUGH_MAPPINGS:,} or more; {MAPS_REMEDY}")


def _limit(number: int | None) -> str:
    return "none" if number is None else f"{number:,}"


def _disk() -> Finding:
    """Room where jars and temporary data go."""
    cache = cache_dir()
    existing = next(folder for folder in (cache, *cache.parents) if folder.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        return Finding("disk", "missing", f"{cache} cannot be written", "set MQTWIN_CACHE to a folder that can")
    free, place = min((shutil.disk_usage(place).free, str(place)) for place in (existing, tempfile.gettempdir()))
    found = f"{free / GIB:.1f} GiB free in {place}"
    if free >= ENOUGH_DISK:
        return Finding("disk", "ok", found)
    return Finding(
        "disk", "missing", found, f"{ENOUGH_DISK // GIB} GiB are needed; MQTWIN_CACHE and TMPDIR name other places"
    )


def _docker() -> Finding:
    remedy = "only for docker-compose.yml and the tests marked docker: start a Docker engine"
    question = ["docker", "version", "--format", "{{.Server.Version}}"]
    try:
        asked = subprocess.run(question, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return Finding("Docker", "lacking", "no docker command that answers", remedy)
    if asked.returncode != 0:
        return Finding("Docker", "lacking", "no engine answers", remedy)
    return Finding("Docker", "ok", f"engine {asked.stdout.strip()}")
