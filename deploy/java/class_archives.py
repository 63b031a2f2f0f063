"""Archives of the classes that Java loads, with which Spark and the embedded broker start sooner.

Java writes an archive at the end of a run and maps it at the start of later ones, where it would otherwise read and
check the same classes from jars. It ignores, without a word, an archive of another Java, and one of jars with another
size or time of change: of a package that has been installed anew. So an archive's name has a hash of both.
`deploy.java.make_archives` makes them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from deploy.java.jars import KAFKA_BROKER, cache_dir, pinned
from deploy.java.runtime import Java, find_java
from streams.query.session import SparkJava

Program = Literal["spark", "broker"]
PROGRAMS: tuple[Program, ...] = ("spark", "broker")


def archive_path(program: Program, java: Java) -> Path:
    """Return the path of the archive that fits the Java and the jars of a program, whether or not it exists."""
    files = (java.home / "lib" / "modules", *_jars(program))
    return _folder() / f"{_prefix(program, java)}{_digest(java.release, *map(_version, files))}.jsa"


def outdated_archives(program: Program, java: Java) -> list[Path]:
    """Return the archives of a program in this Python environment that no longer fit its Java or its jars."""
    archives = set(_folder().glob(f"{_prefix(program, java)}*.jsa"))
    return sorted(archives - {archive_path(program, java)})


def archive_options(program: Program, java: Java) -> tuple[str, ...]:
    """Return Java's options to load the archive of a program; none if there is no archive."""
    path = archive_path(program, java)
    if not path.is_file():
        return ()
    return f"-XX:SharedArchiveFile={path}", "-Xlog:disable"  # Java would print on standard output what it ignores


def find_spark_java() -> SparkJava:
    """Return the Java of Spark's driver, which loads the archive of its classes if there is one; see `find_java`."""
    java = find_java()
    return SparkJava(java.home, archive_options("spark", java))


def missing_archives(java: Java) -> list[Program]:
    """Return the programs without an archive."""
    return [program for program in PROGRAMS if not archive_path(program, java).is_file()]


def _folder() -> Path:
    return cache_dir() / "class-archives"


def _prefix(program: Program, java: Java) -> str:
    return f"{program}-{_digest(str(java.home), sys.prefix)}-"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _jars(program: Program) -> Iterable[Path]:
    """Return the jars on the class path of a program."""
    if program == "broker":
        return [jar.path for jar in pinned(KAFKA_BROKER)]
    spec = importlib.util.find_spec("pyspark")
    home = os.environ.get("SPARK_HOME") or (spec and spec.origin and Path(spec.origin).parent)
    return sorted(Path(home).glob("jars/*.jar")) if home else ()


def _version(file: Path) -> str:
    """Return what Java compares of a file: its size and its time of change in seconds."""
    try:
        status = file.stat()
    except OSError:
        return f"{file}: none"
    return f"{file}: {status.st_size} {int(status.st_mtime)}"
