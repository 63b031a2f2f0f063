"""All figures of a run, and the machine they are of."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import platform
import re
from dataclasses import dataclass, field

import psutil

from deploy.jars import KAFKA_BROKER, ensure_jars
from deploy.java import find_java
from tests.bench.backlog import Backlog
from tests.bench.calibration import Calibration
from tests.bench.forecasts import Forecasts
from tests.bench.kernel import Kernel
from tests.bench.latency import Latency
from tests.bench.restart import Restart
from tests.bench.throughput import Way

_PACKAGES = ("pyspark", "pyarrow", "pandas", "numpy", "numba", "confluent-kafka")
_GIB = 1 << 30


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _machine() -> str:
    memory = psutil.virtual_memory().total / _GIB
    return f"{cores()} cores ({platform.machine()}), {memory:.0f} GB memory, {platform.system()}"


def _versions() -> str:
    packages = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES)
    jars = [jar.name for jar in ensure_jars(KAFKA_BROKER)]
    broker = next((match[1] for jar in jars if (match := re.fullmatch(r"kafka_[\d.]+-([\d.]+)\.jar", jar))), "unknown")
    return f"Python {platform.python_version()}, Java {find_java().release}, Kafka {broker}, {packages}"


@dataclass(slots=True)
class Report:
    """A run. What was not asked for is None. load: of the machine before it began, processes that wanted a core."""

    command: str
    quick: bool
    date: str = field(default_factory=lambda: dt.datetime.now(dt.UTC).date().isoformat())
    machine: str = field(default_factory=_machine)
    versions: str = field(default_factory=_versions)
    load: float = field(default_factory=lambda: os.getloadavg()[0])
    seconds: float = 0.0
    calibrations: list[Calibration] = field(default_factory=list)
    kernel: Kernel | None = None
    mechanisms: dict[str, dict[int, float]] | None = None
    throughput: list[Way] | None = None
    forecasts: Forecasts | None = None
    backlog: Backlog | None = None
    latency: Latency | None = None
    restart: Restart | None = None

    def way(self, name: str) -> Way | None:
        """The figures of a content type."""
        return next((way for way in self.throughput or () if way.name == name), None)
