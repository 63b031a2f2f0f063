"""The cache folder, and the jars in it that Spark and the embedded broker need.

``jars.toml`` names the direct dependencies, ``jars.lock.toml`` every resulting jar with its SHA-256 sum; ``python -m
deploy.java.jars`` writes it after a change of versions. jgo downloads jars once, from Maven Central or a mirror in its
own configuration (``[repositories]``, ``central = ...``), and does not check them: this module computes all sums before
each use (75 ms for 55 MB), deletes a damaged jar and fetches it again.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import filelock
import platformdirs
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from twin.errors import MqtwinError, UsageError
from twin.outputs import write_output
from twin.units import as_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from jgo.maven import MavenContext

    # A context manager that jgo enters with a file's name and size; jgo calls its value with the bytes of each piece.
    DownloadProgress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
import tempfile

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
