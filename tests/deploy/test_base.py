"""mqtwin as `pip install mqtwin` has it, without the extra `stream`: what works, and what the rest says."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from deploy import cli
from tests.mqweb import MqwebServer
from tests.support.queue_managers import System
from tests.support.traffic import lines_of, traffic, write_estate, write_lines
from tests.twin.feeds.samples import DISPLAYS, SYSPRINT
from twin import demo_estate

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
KAFKA = "--bootstrap-servers 127.0.0.1:1"
NEED_STREAM = [
    f"acknowledge QSG1/APP1/1 {KAFKA}",
    f"acted QSG1/APP1/1 alter-size {KAFKA}",
    f"judge QSG1/APP1/1 useless {KAFKA}",
    f"alerts {KAFKA}",
    f"bridge {KAFKA}",
    "broker",
    "checkpoint check .",
    f"export {KAFKA}",
    f"publish events.arrow {KAFKA}",
    f"record events.arrow {KAFKA}",
    "state .",
    f"stream {KAFKA}",
    f"console {KAFKA}",
    f"report {KAFKA} --estate ESTATE",
    f"whatif QSG1/APP1 --estate ESTATE {KAFKA}",
    "doctor --class-archives",
]
PROGRAM = """
import contextlib, io, sys
from tests.support.base import hide
hide()
"""
MAIN = """
from deploy.cli import main
for line in sys.argv[1:]:  # one process for all: most of what it costs are imports
    with contextlib.redirect_stderr(io.StringIO()) as errors, contextlib.redirect_stdout(io.StringIO()) as printed:
        status = main(line.split())
    print(repr((status, printed.getvalue(), errors.getvalue())))
"""


def run(program: str, *arguments: str) -> str:
    """Return what a program prints where the packages of the extra are hidden."""
    command = [sys.executable, "-c", PROGRAM + program, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def mqtwin(*lines: str) -> list[tuple[int, str, str]]:
    """Return the status, output and errors of each command line."""
    return [ast.literal_eval(line) for line in run(MAIN, *lines).splitlines()]


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_estate(tmp_path_factory.mktemp("estate")))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_lines(tmp_path_factory.mktemp("recording") / "t.ndjson", lines_of(traffic(2000))))


def test_each_package_of_the_extra_is_hidden_here_and_named_by_the_command():
    modules = importlib.metadata.packages_distributions()
    if "pyspark" not in modules:
        pytest.skip("needs the packages, to hide them")
    own = {Requirement(text).name for text in PROJECT["optional-dependencies"]["stream"]}
    named = {name for name in cli.STREAM_PACKAGES if own & set(modules[name])}
    assert {dist for name in named for dist in modules[name]} >= own
    assert cli.STREAM_PACKAGES - named == {"py4j", "requests"}, "pyspark and jgo bring them"
    base = {Requirement(text).name for text in PROJECT["dependencies"]}
    assert not base & own and {"numba", "numpy", "pyarrow"} <= base


def test_what_the_user_fixed_is_of_the_project():
    required = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["stream"]]
    names = {Requirement(text).name for text in required}
    assert {"pyspark", "kafka-python", "confluent-kafka", "numba", "pyarrow"} <= names
    assert PROJECT["optional-dependencies"]["all"] == ["mqtwin[stream,java,mcp,oidc,pictures]"]


def test_tests_of_the_base_are_those_that_import_none_of_these_packages(tmp_path: Path):
    head = "from deploy.cli import main\n"
    files = {
        "here": "def test_without(): pass",
        "file": "import pyspark\nNAME = 1\ndef test_of_the_file(): pass",
        "from_it": "from test_file import NAME\ndef test_of_another(): pass",
        "inside": "def test_inside(): import streams.kafka.clients",
        "command": head + "def test_command(): main(['broker'])",
        "wrong": head + "def test_wrong(): assert main(['broke']) == 0",
    }
    for name, text in files.items():
        (tmp_path / f"test_{name}.py").write_text(text, encoding="utf-8")
    options = ["-p", "no:cacheprovider", "-q", "-c", "/dev/null", "--rootdir", str(tmp_path), "--import-mode=importlib"]
    alone = ["-p", "tests.support.base", "-rs", "-o", f"pythonpath={tmp_path}"]
    command = [sys.executable, "-m", "pytest", *options, *alone, str(tmp_path)]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    assert "1 failed, 1 passed, 4 skipped" in printed, printed
    assert len(re.findall(r"^SKIPPED .*: needs \w+$", printed, re.MULTILINE)) == 4


def test_the_library_replays_asks_and_advises(estate: str, recording: str):
    program = """
import twin
from twin.planning.whatif import what_if
estate, recording = sys.argv[1:]
replayed = twin.replay(recording, estate)
moment = twin.at_moment(recording, twin.load_estate(estate), "QSG1/APP1", None)
twin.what_if(moment, {"size": "2M"})
print(len(replayed.states), not {"pyspark", "pandas", "kafka", "confluent_kafka"} & sys.modules.keys())
"""
    assert run(program, estate, recording) == "3 True\n"


@pytest.mark.nightly
@pytest.mark.ci
def test_commands_of_recordings_work(estate: str, recording: str):
    lines = [
        f"replay {recording} --estate {estate}",
        f"whatif QSG1/APP1 --estate {estate} --recording {recording} --set size=2M",
        f"report --estate {estate} --recording {recording}",
        "size structure --messages 2048:1000000",
        f"estate check {estate}",
        "doctor",
    ]
    for line, (status, _, errors) in zip(lines, mqtwin(*lines), strict=True):
        assert status == 0, (line, errors)


@pytest.mark.nightly
@pytest.mark.ci
def test_advice_works(estate: str, recording: str):
    [(status, printed, _)] = mqtwin(f"advise QSG1/APP1 --estate {estate} --recording {recording}")
    assert status == 0 and "Plan 1" in printed


@pytest.mark.nightly
@pytest.mark.ci
def test_the_console_of_a_recording_answers(estate: str, recording: str):
    program = """
from contextlib import ExitStack
from pathlib import Path
from urllib.request import urlopen
from deploy.commands.console import play_recording, server_of
from deploy.console.server import Listen
from twin.estate import load_estate
with server_of(play_recording(Path(sys.argv[2]), load_estate(sys.argv[1])), Listen(port=0)) as server:
    for name in ("", "static/uPlot.iife.min.js", "api/moments"):
        print(urlopen(server.address + name).status)
"""
    assert run(program, estate, recording) == "200\n200\n200\n"


@pytest.mark.nightly
@pytest.mark.ci
def test_files_of_a_site_are_read(tmp_path: Path):
    joblog = tmp_path / "qm01.joblog"
    joblog.write_text(DISPLAYS + SYSPRINT, encoding="utf-8")
    [(status, _, errors)] = mqtwin(f"start {joblog} -o {tmp_path / 'site'} --no-console --group QSG1=QM01,QM02")
    assert status == 0, errors
    assert (tmp_path / "site" / "estate.toml").is_file()


@pytest.mark.nightly
@pytest.mark.ci
def test_queue_managers_are_asked_once(tmp_path: Path):
    with MqwebServer(System(demo_estate())) as server:
        words = f"start --live {server.url} --qmgr QM01,QM02 --once -o {tmp_path / 'site'}"
        [(status, printed, errors)] = mqtwin(words)
    assert status == 0, errors
    assert "QSG1/APP1" in printed


def test_what_needs_kafka_or_spark_says_so_in_one_line(estate: str):
    lines = [line.replace("ESTATE", estate) for line in NEED_STREAM]
    for line, (status, printed, errors) in zip(lines, mqtwin(*lines), strict=True):
        assert (status, printed) == (2, ""), line
        complaint = errors.splitlines()[-1]  # a warning about the estate may be before it
        assert complaint.startswith("mqtwin: this needs Kafka or Spark, and "), line
        assert complaint.endswith(" is not installed; expected: pip install 'mqtwin[stream]'")
