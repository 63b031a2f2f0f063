"""Java that starts quickly: in tests it ends before optimised machine code would pay, and loads its classes at once.

`tests.support.class_archives` makes the archives of classes. Java ignores one that is missing or of other jars.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_COMPILER = "-XX:TieredStopAtLevel=1"
_FOLDER = Path(sys.prefix) / "class-archives"  # they are of the jars of this environment
SPARK_ARCHIVE = _FOLDER / "spark.jsa"
BROKER_ARCHIVE = _FOLDER / "broker.jsa"


def _loading(archive: Path) -> str:
    """Return the options for an archive. Java would print on standard output what it does not like about one."""
    return f'"-XX:SharedArchiveFile={archive}" -Xlog:disable'


QUICK_SPARK = {
    "SPARK_SUBMIT_OPTS": f"{_COMPILER} -XX:+UseSerialGC {_loading(SPARK_ARCHIVE)}",  # of the job's Java
    "SPARK_LAUNCHER_OPTS": f"{_COMPILER} -XX:+UseSerialGC",  # of the Java that starts it
}


@contextmanager
def quick_java() -> Iterator[None]:
    """Start any Java quickly. It says so on standard error, so this is for brokers, which write a log."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", f"{_COMPILER} {_loading(BROKER_ARCHIVE)}")
        yield
