"""`mqtwin stream` as users run it: a process of its own, its exit status, its log."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from deploy.cli import main
from streams.kafka.admin import prepare_topics
from streams.kafka.topics import Topics
from tests.streams.kafka_help import everything, new_producer
from tests.support.estates import small_estate
from tests.support.processes import send_signal
from tests.system.job_process import check_clean

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 180.0  # seconds, on a busy machine
NOBODY = "127.0.0.1:9"  # the discard port: no Kafka
SECRET = "hush-4711"
LOGIN = ["sasl.mechanism=PLAIN", "sasl.username=me", f"sasl.password={SECRET}", f"ssl.key.password={SECRET}"]
STORE = "QSG1/APP1"
# As `python -m deploy`, with less patience for a Kafka that is not there.
IMPATIENT = (
    "import sys; from streams.kafka import admin; admin.TIMEOUT_SECONDS = 1.0; "
    "from deploy.cli import main; sys.exit(main())"
)


@pytest.fixture
def estate(tmp_path: Path) -> Path:
    return small_estate(tmp_path)


def kafka_settings(*settings: str) -> list[str]:
    return [argument for setting in settings for argument in ("--kafka", setting)]


def run(*arguments: str | Path, program: tuple[str, ...] = ("-m", "deploy")) -> tuple[int, str, str]:
    """Exit status, standard output, standard error of the command."""
    command = [sys.executable, *program, "stream", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, done.stdout, done.stderr


# --- what does not start ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--estate", "none.toml"], "none.toml"),
        (["--conf", "spark.local.dir"], "--conf KEY=VALUE"),
        (["--kafka", SECRET], "--kafka KEY=VALUE"),
        (["--kafka-file", "none.properties"], "none.properties"),
        (["--kafka", "security.protocol=NONE"], "security.protocol"),
        (["--kafka", "sasl.username=me", "--kafka", f"sasl.password={SECRET}"], "sasl.mechanism"),
        (["--bootstrap-servers", "localhost"], "HOST:PORT"),
        (["--topic-prefix", "a b"], "--topic-prefix"),
        (["--otlp-topic", "spans/a"], "the name of a topic"),
        (["--trigger", "soon"], "2 seconds"),
        (["--trigger", "2"], "2 seconds"),
        (["--trigger=-1 seconds"], "2 seconds"),
        (["--starting-offsets", "sometime"], "earliest, latest"),
        (["--starting-offsets", "[1]"], "earliest, latest"),
        (["--max-records", "-1"], "--max-records"),
        (["--restart", "often"], "a number of failures in a row"),
        (["--log", "xml"], "--log"),
        (["--no-such-option"], "--no-such-option"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_use_is_one_line_and_status_2_before_anything_is_started(
    arguments: list[str], message: str, estate: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sound = {"--estate": str(estate), "--checkpoint": str(tmp_path / "checkpoint"), "--bootstrap-servers": NOBODY}
    if arguments[0] in sound:
        del sound[arguments[0]]
    started_at = time.monotonic()
    status = main(["stream", *[part for pair in sound.items() for part in pair], *arguments])
    out, error = capsys.readouterr()
    assert (status, out) == (2, "")
    (line,) = error.splitlines()
    assert line.startswith("mqtwin: ") and message in line and SECRET not in line
    assert time.monotonic() - started_at < 25  # it has not waited for a Kafka
    assert not (tmp_path / "checkpoint").exists()


def test_what_must_be_said_is_asked_for(estate: Path) -> None:
    status, _, error = run("--estate", estate, "--bootstrap-servers", NOBODY)
    assert status == 2
    (line,) = error.splitlines()
    assert "--checkpoint" in line


def test_no_kafka_is_one_line_and_status_1_without_secrets(estate: Path, tmp_path: Path) -> None:
    files = ["--estate", estate, "--checkpoint", tmp_path / "checkpoint", "--bootstrap-servers", NOBODY]
    login = kafka_settings("security.protocol=SASL_PLAINTEXT", *LOGIN)
    status, out, error = run(*files, *login, program=("-c", IMPATIENT))
    assert (status, out) == (1, "")
    (line,) = error.splitlines()
    assert f"no Kafka answers at {NOBODY}" in line and SECRET not in line


def test_no_master_is_one_line_and_status_1(estate: Path, tmp_path: Path) -> None:
    files = ["--estate", estate, "--checkpoint", tmp_path / "checkpoint", "--bootstrap-servers", NOBODY]
    started_at = time.monotonic()
    status, out, error = run(*files, "--master", "spark://nohost.invalid:7077")
    assert (status, out) == (1, "")
    (line,) = error.splitlines()
    assert line.startswith("mqtwin: --master spark://nohost.invalid:7077: nobody answers (nohost.invalid:7077: ")
    assert time.monotonic() - started_at < 25


@pytest.mark.system
def test_a_kafka_that_takes_no_login_is_one_line_and_status_1_without_secrets(
    kafka: str, estate: Path, tmp_path: Path
) -> None:
    files = ["--estate", estate, "--checkpoint", tmp_path / "checkpoint", "--bootstrap-servers", kafka]
    login = kafka_settings("security.protocol=SASL_PLAINTEXT", *LOGIN)
    status, out, error = run(*files, *login, program=("-c", IMPATIENT))
    assert (status, out) == (1, "")
    (line,) = error.splitlines()
    assert line.startswith("mqtwin: no Kafka answers at ") and SECRET not in line


# --- what runs -------------------------------------------------------------------------------------------------------


class Running:
    """The command as a child in its own process group.

    entries: the lines of its log so far; lines: all of standard error.
    """

    def __init__(self, arguments: list[str], temporary: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "deploy", "stream", *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=os.environ | {"TMPDIR": str(temporary)},
        )
        self.lines: list[str] = []
        self._coming: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._coming.put(line)
        self._coming.put(None)

    def _next(self, deadline: float) -> str | None:
        line = self._coming.get(timeout=max(0.1, deadline - time.monotonic()))
        if line is not None:
            self.lines.append(line)
        return line

    @property
    def entries(self) -> list[dict[str, Any]]:
        """All lines, each of which must be a JSON object."""
        return [json.loads(line) for line in self.lines]

    def batches(self) -> list[dict[str, Any]]:
        """The batches logged so far."""
        return [entry for entry in self.entries if entry["event"] == "batch"]

    def wait_for_batches(self, count: int) -> None:
        """Wait until the log has this number of batches."""
        deadline = time.monotonic() + PATIENCE
        while len(self.batches()) < count:
            assert self._next(deadline) is not None, "".join(self.lines)

    def end(self) -> tuple[int, str]:
        """Wait for the end; return the exit status and standard output."""
        deadline = time.monotonic() + PATIENCE
        while self._next(deadline) is not None:
            pass
        self._reader.join()
        assert self.process.stdout is not None
        return self.process.wait(PATIENCE), self.process.stdout.read()


@contextmanager
def running(arguments: list[str], temporary: Path) -> Iterator[Running]:
    """A command that is gone afterwards, with all that it started. temporary: its temporary directory."""
    child = Running(arguments, temporary)
    try:
        yield child
    finally:
        if child.process.poll() is None:
            send_signal([*psutil.Process(child.process.pid).children(recursive=True)])
            child.process.kill()
        with child.process:  # closes its pipes
            child._reader.join()


def puts(first: int, count: int) -> list[bytes]:
    """Anonymous puts of 100 bytes."""
    event = {"qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 100}
    return [
        json.dumps(event | {"time": 1_795_176_000_000_000 + number, "seq": number}).encode()
        for number in range(first, first + count)
    ]


def send(kafka: str, topics: Topics, values: list[bytes]) -> None:
    prepare_topics(topics, {"bootstrap.servers": kafka})
    producer = new_producer(kafka)
    for value in values:
        producer.produce(topics.events, value, STORE.encode())
    assert producer.flush(PATIENCE) == 0


def states(kafka: str, topics: Topics) -> list[dict[str, Any]]:
    return [json.loads(message.value()) for message in everything(kafka, topics.state)]


@pytest.mark.system
@pytest.mark.nightly
@pytest.mark.ci
def test_it_stops_after_the_running_batch_and_resumes_from_its_checkpoint(
    kafka: str, topic_prefix: str, estate: Path, tmp_path: Path, temporary: Path
) -> None:
    total, later, cut = 400, 5, 4
    topics, checkpoint = Topics(topic_prefix), tmp_path / "checkpoint"
    send(kafka, topics, [*puts(0, total), b"nonsense"])
    files = ["--estate", str(estate), "--checkpoint", str(checkpoint)]
    client = ["--bootstrap-servers", kafka, "--topic-prefix", topic_prefix]
    client += kafka_settings("security.protocol=PLAINTEXT", *LOGIN)  # a login that nobody asks for
    spark = ["--master", "local[2]", "--conf", f"spark.local.dir={tmp_path / 'spark'}"]
    command = [*files, *client, *spark, "--log-level", "debug"]

    with running([*command, "--max-records", str(cut), "--trigger", "0 seconds"], temporary) as first:
        first.wait_for_batches(2)
        family = psutil.Process(first.process.pid).children(recursive=True)
        os.killpg(first.process.pid, signal.SIGINT)  # as Ctrl-C in a terminal
        assert first.end()[0] == 0
    check_clean(first.entries, family, temporary)
    done = first.batches()
    stopped = sum(batch["records"] for batch in done)
    assert 0 < stopped < total  # in the middle
    assert [batch["batch"] for batch in done] == [*range(len(done))]
    assert all(0 < batch["records"] <= cut for batch in done)
    for name in ("events", "dead_letters", "batch_ms", "state_bytes", "level", "timestamp"):
        assert name in done[0]
    job_events = [
        entry["event"] for entry in first.entries if entry["event"] in {"query started", "stopping", "stopped"}
    ]
    assert job_events == ["query started", "stopping", "stopped"]
    assert not [entry for entry in first.entries if entry["level"] == "warning"]
    assert states(kafka, topics)[-1]["messages"] == stopped  # all of its last batch is out

    send(kafka, topics, puts(total, later))
    with running([*command, "--available-now"], temporary) as second:
        status, out = second.end()
    assert (status, out) == (0, "")
    again = second.batches()
    assert again[0]["batch"] == len(done)
    assert sum(batch["records"] for batch in again) == total + 1 + later - stopped  # none left out, none again
    state = states(kafka, topics)[-1]
    whole = (total + later, total + later, 100 * (total + later))
    assert (state["events"], state["messages"], state["bytes"]) == whole
    assert (state["duplicates"], state["gaps"]) == (0, 0)
    assert [letter.value() for letter in everything(kafka, topics.dlq)] == [b"nonsense"]

    for child in (first, second):
        assert SECRET not in "".join(child.lines)
        (started,) = [entry for entry in child.entries if entry["event"] == "query started"]
        assert started["kafka"]["sasl.password"] == "***"
    written = [path for path in checkpoint.rglob("*") if path.is_file()]
    assert written and not any(SECRET.encode() in path.read_bytes() for path in written)
