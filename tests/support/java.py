"""Java that starts quickly: in tests it ends before optimised machine code would pay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_COMPILER = "-XX:TieredStopAtLevel=1"

QUICK_SPARK = {
    "SPARK_SUBMIT_OPTS": f"{_COMPILER} -XX:+UseSerialGC",  # of the job's Java
    "SPARK_LAUNCHER_OPTS": f"{_COMPILER} -XX:+UseSerialGC",  # of the Java that starts it
}


@contextmanager
def quick_java() -> Iterator[None]:
    """Start any Java quickly. It says so on standard error, so this is for brokers, which write a log."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", _COMPILER)
        yield
