"""The jars that Spark and the embedded broker need: downloaded once, checked against SHA-256 sums before each use.

``jars.toml`` names what is wanted, ``jars.lock.toml`` every jar that follows from it with its sum. jgo downloads them
from Maven Central, or from the repositories of jgo's own configuration file where a company has a mirror
(``[repositories]``, ``central = ...``).

jgo writes a download straight to its final place and never looks at it again, so an interrupted download would stay
broken; here a jar whose sum is wrong is deleted and fetched again. All sums are computed each time: 55 MB took 75 ms,
so there is no record of "already checked" that could itself be wrong.
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
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from deploy.cache import cache_dir, make_folder
from twin.errors import MqtwinError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from jgo.maven import MavenContext

    # What jgo calls with a file's name and size; it calls what that yields with the number of bytes of each piece.
    ProgressOfFile = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]

SPARK_CONNECTOR = "spark-connector"
KAFKA_BROKER = "kafka-broker"
DOWNLOADS_AT_ONCE = 6


@dataclass(frozen=True, slots=True)
class Jar:
    """A pinned jar: ``coordinate`` is group:artifact:version, ``sha256`` its sum in hexadecimal."""

    coordinate: str
    sha256: str

    @property
    def path(self) -> Path:
        """Its place in the cache, laid out as every Maven repository is."""
        group, artifact, version = self.coordinate.split(":")
        return _folder() / Path(*group.split(".")) / artifact / version / f"{artifact}-{version}.jar"

    def is_sound(self) -> bool:
        """Whether it is in the cache with the right sum."""
        try:
            with self.path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256
        except FileNotFoundError:
            return False


def _folder() -> Path:
    return cache_dir() / "maven"


@cache
def pinned(name: str) -> tuple[Jar, ...]:
    """The jars of a set, :data:`SPARK_CONNECTOR` or :data:`KAFKA_BROKER`, in the order of their class path."""
    sets = tomllib.loads(resources.files("deploy").joinpath("jars.lock.toml").read_text(encoding="utf-8"))
    return tuple(Jar(coordinate, sha256) for coordinate, sha256 in sets[name].items())


def missing(name: str) -> list[Jar]:
    """The jars of a set that are not in the cache, or not as pinned."""
    return [jar for jar in pinned(name) if not jar.is_sound()]


def ensure_jars(name: str) -> tuple[Path, ...]:
    """The files of a set, each with the pinned sum.

    Downloads what is missing or broken, with progress on standard error. Several processes may call it at once: one
    downloads, the others wait.

    Raises:
        MqtwinError: a jar cannot be downloaded, or what is served does not have the pinned sum.
    """
    if missing(name):
        lock = _folder() / ".lock"
        make_folder(lock.parent)
        with filelock.FileLock(lock):
            wanted = missing(name)  # another process may have fetched them meanwhile
            if wanted:
                _fetch(name, wanted)
    return tuple(jar.path for jar in pinned(name))


def maven(folder: Path, progress: ProgressOfFile | None = None) -> MavenContext:
    """Maven as jgo sees it, downloading into ``folder``: Maven Central, or what jgo's own configuration file names."""
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


def _fetch(name: str, wanted: list[Jar]) -> None:
    console = Console(stderr=True)
    with _progress(console, f"{len(wanted)} jars of {name}") as progress, ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
        context = maven(_folder(), progress)
        failures = [failure for failure in pool.map(lambda jar: _fetch_one(context, jar), wanted) if failure]
    if failures:
        raise MqtwinError(
            f"{len(failures)} of the {len(wanted)} jars of {name} could not be fetched; the first: {failures[0]}"
        )


def _fetch_one(context: MavenContext, jar: Jar) -> str | None:
    """Downloads one jar; what went wrong, in one line, or None."""
    import requests

    jar.path.unlink(missing_ok=True)
    try:
        context.create_dependency(jar.coordinate).artifact.resolve()
    except (OSError, RuntimeError, requests.RequestException) as error:  # RuntimeError: no repository has it
        jar.path.unlink(missing_ok=True)
        return f"{jar.coordinate}: {' '.join(str(error).split())}"
    if jar.is_sound():
        return None
    size = jar.path.stat().st_size
    jar.path.unlink()
    return f"{jar.coordinate}: the {size:,} bytes served do not have the pinned SHA-256 {jar.sha256}"


@contextmanager
def _progress(console: Console, what: str) -> Iterator[ProgressOfFile]:
    """A bar on a terminal, a line before and after elsewhere; yields what jgo calls for each download."""
    if not console.is_terminal:
        console.print(f"fetching {what} into {_folder()}", soft_wrap=True, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"fetching {what}", total=0)

        @contextmanager
        def download(_file: str, size: int) -> Iterator[Callable[[int], None]]:
            progress.update(task, total=(progress.tasks[0].total or 0) + size)
            yield lambda count: progress.advance(task, count)

        yield download
    if not console.is_terminal:
        console.print(f"fetched {what}", soft_wrap=True, highlight=False)


def class_path(jars: Iterable[Path]) -> str:
    """The jars as Java's ``-cp`` takes them."""
    return os.pathsep.join(str(jar) for jar in jars)
