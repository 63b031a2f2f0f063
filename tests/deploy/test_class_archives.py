"""Archives of Java's classes: one per program, Java and Python environment, and no option where there is none."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.java import make_archives
from deploy.java.class_archives import PROGRAMS, archive_options, archive_path, missing_archives, outdated_archives
from deploy.java.make_archives import make_archives as make
from deploy.java.runtime import Java
from twin.errors import MqtwinError

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


def create(program: str) -> Path:
    path = archive_path(program, JAVA)  # type: ignore[arg-type]
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
    assert outdated_archives("spark", JAVA) == sorted([before, again])


def test_an_archive_that_no_longer_fits_is_removed(jars: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    before, broker = create("spark"), create("broker")
    os.utime(jars[0], (0, 0))
    monkeypatch.setattr(make_archives, "_run", lambda folder, _: (folder / "spark.jsa").touch())
    make()
    assert not before.exists()
    assert broker.exists()
    assert archive_path("spark", JAVA).exists()


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


def test_archives_appear_whole(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    def run(folder: Path, java: Java) -> None:
        for program in PROGRAMS:
            (folder / f"{program}.jsa").write_text(f"{program} of {java.release}")
        assert missing_archives(JAVA) == list(PROGRAMS)  # while Java writes, no other process loads them

    monkeypatch.setattr(make_archives, "_run", run)
    make()
    assert archive_path("broker", JAVA).read_text() == "broker of 17.0.15"
    assert len(list((cache / "class-archives").glob("*.jsa"))) == 2
