"""The settings of the session: measured defaults, overridden by the user."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path

import pyspark
import pytest
from pyspark import SparkConf

import streams
from streams.errors import one_line
from streams.query.session import _claim_scratch, is_local, local_cores, session_settings, with_retries


def test_the_users_settings_override_ours() -> None:
    settings = session_settings(conf={"spark.driver.memory": "6g", "spark.sql.shuffle.partitions": "7"})
    assert settings["spark.driver.memory"] == "6g"
    assert settings["spark.sql.shuffle.partitions"] == "7"


def test_the_users_java_options_are_added_to_ours() -> None:
    settings = session_settings(conf={"spark.driver.extraJavaOptions": "-Xss4m"})
    assert settings["spark.driver.extraJavaOptions"].endswith("log4j2.properties -Xss4m")


def test_jars_of_both_sides_are_used() -> None:
    settings = session_settings(jars=[Path("/a.jar"), Path("/b.jar")], conf={"spark.jars": "/c.jar"})
    assert settings["spark.jars"] == "/a.jar,/b.jar,/c.jar"


def test_local_mode_has_as_many_state_partitions_as_cores_and_stays_on_loopback() -> None:
    settings = session_settings(master="local[3]")
    assert settings["spark.sql.shuffle.partitions"] == "3"
    assert settings["spark.driver.bindAddress"] == settings["spark.driver.host"] == "127.0.0.1"


def test_a_cluster_keeps_its_own_partitions_and_addresses() -> None:
    settings = session_settings(conf={"spark.master": "spark://host:7077"}, local_checkpoint=False)
    assert "spark.driver.host" not in settings
    assert "spark.sql.shuffle.partitions" not in settings
    assert "spark.sql.streaming.checkpointFileManagerClass" not in settings


@pytest.mark.parametrize(
    ("master", "local", "cores"),
    [
        ("local", True, 1),
        ("local[2]", True, 2),
        ("local[4,2]", True, 4),
        ("local[*,4]", True, len(os.sched_getaffinity(0))),
        ("local-cluster[2,1,1024]", False, 1),
    ],
)
def test_local_masters(master: str, local: bool, cores: int) -> None:
    assert is_local(master) is local
    assert local_cores(master) == cores


@pytest.mark.parametrize(
    ("master", "retrying"),
    [
        (None, "local[*,4]"),
        ("local", "local[1,4]"),
        ("local[*]", "local[*,4]"),
        ("local[3]", "local[3,4]"),
        ("local[3,1]", "local[3,1]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_a_local_task_is_tried_four_times_unless_the_user_says_otherwise(master: str | None, retrying: str) -> None:
    assert session_settings(master=master)["spark.master"] == retrying
    if master is not None:
        assert session_settings(conf={"spark.master": master})["spark.master"] == with_retries(master) == retrying


class TestScratch:
    """The scratch directories of Java."""

    @pytest.fixture(autouse=True)
    def no_environment(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        for name in ("SPARK_LOCAL_DIRS", "SPARK_LOCAL_IP"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr("streams.query.session.temporary_base", lambda: tmp_path / "system")

    @staticmethod
    def claim(**settings: str) -> tuple[dict[str, str], dict[str, str], list[str]]:
        """Return settings and environment for Java, and the directories, which are removed again."""
        conf = SparkConf(loadDefaults=False)
        for name, value in settings.items():
            conf.set(f"spark.{name.replace('_', '.')}", value)
        scratch, environment = _claim_scratch(conf)
        for directory in scratch:
            assert directory.path.is_dir()
            directory.remove()
        return dict(conf.getAll()), environment, [str(directory.path) for directory in scratch]

    def test_local_mode_has_everything_in_the_temporary_directory(self, tmp_path: Path) -> None:
        settings, environment, (directory,) = self.claim(master="local[2,4]")
        assert Path(directory).parent.parent == tmp_path / "system"
        assert settings["spark.local.dir"] == directory
        report = Path(directory).parent / "java-crash.log"  # the directory itself is removed with the job
        options = f"-Djava.io.tmpdir={directory} -XX:ErrorFile={report}"
        assert settings["spark.driver.extraJavaOptions"] == options
        assert environment == {"SPARK_LOCAL_IP": "127.0.0.1"}

    def test_the_users_directories_hold_the_jobs(self, tmp_path: Path) -> None:
        places = [tmp_path / "a", tmp_path / "b"]
        settings, _, (temporary, *local) = self.claim(master="local", local_dir=",".join(map(str, places)))
        assert [Path(directory).parent.parent for directory in local] == places
        assert settings["spark.local.dir"] == ",".join(local)
        assert temporary in settings["spark.driver.extraJavaOptions"]

    def test_the_environment_overrides_settings(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "a"))
        monkeypatch.setenv("SPARK_LOCAL_IP", "192.0.2.1")
        _, environment, (_, local) = self.claim(master="local", local_dir=str(tmp_path / "b"))
        assert environment == {"SPARK_LOCAL_DIRS": local}
        assert Path(local).parent.parent == tmp_path / "a"

    def test_a_cluster_keeps_its_directories(self) -> None:
        settings, environment, (temporary,) = self.claim(
            master="spark://host:7077", local_dir="/data", driver_extraJavaOptions="-Xss4m"
        )
        assert settings["spark.local.dir"] == "/data"
        first, _, last = settings["spark.driver.extraJavaOptions"].split()
        assert (first, last) == (f"-Djava.io.tmpdir={temporary}", "-Xss4m")
        assert environment == {}


PYTHON_IN_JAVA = """Job aborted due to stage failure: Task 0 in stage 1.0 failed
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/x/streams/processor.py", line 107, in handleInputRows
    raise StateError("page 3 has no place")
twin.state.tables.StateError: page 3 has no place
 SQLSTATE: 38000
	at org.apache.spark.api.python.BasePythonRunner.x(PythonRunner.scala:1)
"""
JAVA_IN_PYTHON = """An error occurred while calling o1.start.
: org.apache.spark.SparkException: Query failed
	at org.apache.spark.X.y(X.scala:3)
Caused by: org.apache.kafka.common.errors.RecordTooLargeException: The message is 20000000 bytes
	at org.apache.kafka.X.y(X.java:3)
	... 3 more
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (PYTHON_IN_JAVA, "twin.state.tables.StateError: page 3 has no place"),
        (JAVA_IN_PYTHON, "RecordTooLargeException: The message is 20000000 bytes"),
        ("[ERROR] plain words\n\tat java", "[ERROR] plain words"),
        ("x" * 900, "x" * 499 + "…"),
    ],
)
def test_an_error_becomes_one_line(text: str, line: str) -> None:
    assert one_line(RuntimeError(text)) == line


def test_an_error_without_a_message_is_named_by_its_type() -> None:
    assert one_line(ValueError()) == "ValueError"


def test_classes_of_spark_that_are_named_as_text_are_in_its_jars() -> None:
    """In each supported version: `make matrix` runs this."""
    named = {
        name
        for path in Path(streams.__path__[0]).rglob("*.py")
        for name in re.findall(r'"(org\.apache\.spark\.sql\.execution[\w.]+)"', path.read_text(encoding="utf-8"))
    }
    jars = Path(pyspark.__file__).parent.glob("jars/spark-sql_*.jar")
    [classes] = [set(zipfile.ZipFile(jar).namelist()) for jar in jars]
    assert len(named) == 2
    assert not {name for name in named if f"{name.replace('.', '/')}.class" not in classes}
