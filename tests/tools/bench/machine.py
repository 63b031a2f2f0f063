"""The machine and the versions that figures are of."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re

import psutil

from deploy.java.jars import KAFKA_BROKER, ensure_jars, find_java

_PACKAGES = ("pyspark", "pyarrow", "numpy", "numba", "confluent-kafka")
_GIB = 1 << 30


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe_machine() -> str:
    """Return cores, memory and system."""
    memory = psutil.virtual_memory().total / _GIB
    return f"{cores()} cores ({platform.machine()}), {memory:.0f} GB memory, {platform.system()}"


def describe_versions() -> str:
    """Return the versions of what is measured."""
    packages = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES)
    jars = [jar.name for jar in ensure_jars(KAFKA_BROKER)]
    broker = next((match[1] for jar in jars if (match := re.fullmatch(r"kafka_[\d.]+-([\d.]+)\.jar", jar))), "unknown")
    return f"Python {platform.python_version()}, Java {find_java().release}, Kafka {broker}, {packages}"
