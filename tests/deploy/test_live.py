"""The parts of a live twin as small programs: their order, restarts, logs, and the end of all."""

from __future__ import annotations

import io
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import psutil
import pytest
from typing_extensions import override

from deploy import live, supervisor
from deploy.live import Kafka, LiveFeed, LiveSettings, LiveTwin, TimedLines, free_address
from streams.kafka.topics import TopicRecord, Topics
from tests.support.alert_entries import OPENED_US, alert, topic_record
from tests.support.processes import still_alive
from twin.base.conditions import CLEARED, UPDATED
from twin.base.errors import MqtwinError, UsageError

# A command that says that it works, and ends at SIGTERM; the words behind its name are written into a file.
PART = r"""
import os, signal, sys, time
from pathlib import Path
from typing import Self
folder = Path(os.environ["MQTWIN_TEST_FOLDER"])
name, *words = sys.argv[1:]
said = {"broker": "bootstrap.servers=127.0.0.1:9", "stream": '{"event":"query started"}'}
said |= {"collect": "collecting rest", "console": "console http://127.0.0.1:8/"}
with (folder / "starts").open("a") as starts:
    starts.write(" ".join((name, *words)) + "\n")
fault = folder / f"{name}.fault"
if fault.exists():
    print(f"mqtwin: {fault.read_text()}", file=sys.stderr)
    sys.exit(int((folder / "status").read_text()))
print("mqtwin: warning: about the estate (before)", file=sys.stderr, flush=True)
print(said[name], flush=True)
if name == "collect":
    for number in range(200):
        print(f"mqtwin: warning: number {number} (odd)", file=sys.stderr, flush=True)
    print("mqtwin: https://mqweb: QM01 answers again", file=sys.stderr, flush=True)
    print("mqtwin: warning: number 200 (odd)", file=sys.stderr, flush=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
while True:
    time.sleep(0.05)
"""
STATE, ALERTS = Topics().state, Topics().alerts


class NoTopics:
    """Topics without a record."""

    def __init__(self, kafka: object, topics: object) -> None:
        self.asked = kafka, topics

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self, timeout: float) -> list[TopicRecord]:
        time.sleep(timeout)
        return []


@pytest.fixture(autouse=True)
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQTWIN_TEST_FOLDER", str(tmp_path))
    monkeypatch.setattr(live, "_PROGRAM", (sys.executable, "-c", PART))
    monkeypatch.setattr(live, "TopicReader", NoTopics)
    monkeypatch.setattr(live, "_READ_SECONDS", 0.02)
    monkeypatch.setattr(supervisor, "FIRST_WAIT_SECONDS", 0.05)


class Closed(io.StringIO):
    """An output whose reader is gone."""

    @override
    def flush(self) -> None:
        raise BrokenPipeError


class Run:
    """A live twin in the main thread, and a visitor in another one who looks at it and ends it."""

    def __init__(
        self,
        folder: Path,
        *,
        kafka: Kafka | None = None,
        listen: str | None = "127.0.0.1:0",
        feeds: tuple[LiveFeed, ...] = (),
    ) -> None:
        self.folder = folder
        self.lines: list[str] = []
        settings = LiveSettings(
            folder=folder / "site",
            estate=folder / "estate.toml",
            stores=3,
            collect=("rest", "--url=https://mqweb"),
            feeds=feeds,
            kafka=kafka,
            listen=listen,
        )
        self.twin = LiveTwin(settings, self.lines.append, time.monotonic())
        self.problem: BaseException | None = None
        self.left: list[psutil.Process] = []

    def visited_by(self, visitor: Callable[[Run], None]) -> Run:
        def visit() -> None:
            try:
                visitor(self)
            except BaseException as error:  # noqa: BLE001 -- raised again in the main thread
                self.problem = error
            self.left = running()
            os.kill(os.getpid(), signal.SIGTERM)

        thread = threading.Thread(target=visit)
        thread.start()
        self.twin.run()
        thread.join()
        if self.problem is not None:
            raise self.problem
        assert still_alive(self.left) == []
        return self

    def wait_for(self, text: str, number: int = 1) -> None:
        deadline = time.monotonic() + 30
        while sum(text in line for line in self.lines) < number:
            assert time.monotonic() < deadline, (text, self.lines)
            time.sleep(0.02)

    def starts(self) -> list[str]:
        return (self.folder / "starts").read_text().splitlines()


def running() -> list[psutil.Process]:
    """Return the processes of parts; others are of other tests, such as a broker."""
    return [own for own in psutil.Process().children(recursive=True) if "MQTWIN_TEST_FOLDER" in "".join(words_of(own))]


def words_of(process: psutil.Process) -> list[str]:
    """Return the command line of a process, empty if it has ended since it was listed."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def process_of(name: str) -> psutil.Process:
    """Return the process of a part."""
    (process,) = [own for own in running() if name in words_of(own)[3:4]]
    return process


def test_the_parts_start_in_order_and_know_each_other(tmp_path: Path) -> None:
    def visit(run: Run) -> None:
        run.wait_for("console up: http://127.0.0.1:8/")
        run.wait_for("collector up")

    run = Run(tmp_path).visited_by(visit)
    assert run.lines[0] == "broker up: 127.0.0.1:9"
    broker, *others = run.starts()
    assert broker == f"broker --data {tmp_path}/site/broker --retention-hours 168"
    by_name = {line.partition(" ")[0]: line for line in others}
    assert set(by_name) == {"stream", "collect", "console"}
    assert all("--bootstrap-servers 127.0.0.1:9" in line and "estate.toml" in line for line in others)
    assert f"--position {tmp_path}/site/position.json" in by_name["collect"]
    assert all(f"--checkpoint {tmp_path}/site/checkpoint" in by_name[name] for name in ("stream", "console"))
    assert "--tolerate-data-loss" in by_name["stream"]


def test_an_alert_of_before_is_not_the_first_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a restart the job updates alerts that are open."""
    alerts = [alert(UPDATED, 3), alert(CLEARED, 4), alert(opened_us=OPENED_US + 1), alert(opened_us=OPENED_US + 2)]
    records = [topic_record(ALERTS, own.record()) for own in alerts]
    monkeypatch.setattr(NoTopics, "read", lambda *_: [records.pop(0)] if records else [])
    run = Run(tmp_path).visited_by(lambda run: run.wait_for("all alerts: "))
    (line,) = [line for line in run.lines if line.startswith("first alert: ")]
    assert "  opened " in line


def test_a_kafka_that_is_there_is_used_and_a_console_may_be_left_out(tmp_path: Path) -> None:
    kafka = Kafka(
        words=("--bootstrap-servers=k:1", "--topic-prefix=t"), client={"bootstrap.servers": "k:1"}, prefix="t"
    )

    def visit(run: Run) -> None:
        run.wait_for("job up")
        run.wait_for("collector up")
        time.sleep(0.2)

    run = Run(tmp_path, kafka=kafka, listen=None).visited_by(visit)
    assert sorted(line.partition(" ")[0] for line in run.starts()) == ["collect", "stream"]
    assert all("--bootstrap-servers=k:1 --topic-prefix=t" in line for line in run.starts())
    assert not any("--tolerate-data-loss" in line for line in run.starts())


def test_each_feed_has_a_collector_of_its_own_that_comes_back(tmp_path: Path) -> None:
    spans = LiveFeed(name="spans", collect=("otlp", "--follow=/spans.json"))

    def visit(run: Run) -> None:
        run.wait_for("spans up")
        run.wait_for("collector up")
        (process,) = [own for own in running() if "--follow=/spans.json" in words_of(own)]
        process.kill()
        run.wait_for("spans up again")

    run = Run(tmp_path, feeds=(spans,)).visited_by(visit)
    levels, first, again = sorted(
        (own for own in run.starts() if own.startswith("collect ")), key=lambda own: "otlp" in own
    )
    assert levels.startswith("collect rest ") and "position.json" in levels
    assert first == again and first.startswith("collect otlp --follow=/spans.json --estate ")
    assert f"--position {tmp_path}/site/{spans.position} --create-topics --bootstrap-servers 127.0.0.1:9" in first
    assert "spans: it was killed by signal 9 (out of memory?); started again in 0 s" in run.lines
    assert not any("collector up again" in line for line in run.lines)
    assert (tmp_path / "site" / "logs" / "spans.log").exists()


def test_each_part_that_dies_comes_back_at_its_address(tmp_path: Path) -> None:
    names = {"broker": "broker", "job": "stream", "collector": "collect", "console": "console"}

    def visit(run: Run) -> None:
        run.wait_for("console up")
        run.wait_for("collector up")
        for name, command in names.items():
            process_of(command).kill()
            run.wait_for(f"{name} up again")

    run = Run(tmp_path).visited_by(visit)
    killed = [line for line in run.lines if "killed by signal 9" in line]
    assert killed == [f"{name}: it was killed by signal 9 (out of memory?); started again in 0 s" for name in names]
    assert run.starts()[4:][0].endswith("--listen 127.0.0.1:9")
    assert run.starts()[-1].endswith("--listen 127.0.0.1:8")


def test_a_part_that_is_used_wrongly_ends_all_with_its_words(tmp_path: Path) -> None:
    (tmp_path / "collect.fault").write_text("--position is of another server")
    (tmp_path / "status").write_text("2")
    run = Run(tmp_path)
    with pytest.raises(UsageError, match=r"^collector: --position is of another server; see .*collector\.log$"):
        run.twin.run()
    assert [words_of(own)[-12:] for own in running()] == []


def test_a_part_that_never_works_ends_all_after_three_starts(tmp_path: Path) -> None:
    (tmp_path / "broker.fault").write_text("there is no Java")
    (tmp_path / "status").write_text("1")
    run = Run(tmp_path)
    with pytest.raises(MqtwinError, match=r"^broker: there is no Java; failures in a row: 3"):
        run.twin.run()
    assert [line.partition(" ")[0] for line in run.starts()] == ["broker"] * 3


def test_a_part_that_has_worked_is_started_again_after_wrong_use(tmp_path: Path) -> None:
    def visit(run: Run) -> None:
        run.wait_for("collector up")
        (tmp_path / "status").write_text("2")
        (tmp_path / "collect.fault").write_text("the file of certificates is missing")
        process_of("collect").kill()
        run.wait_for("collector: the file of certificates is missing; started again")
        (tmp_path / "collect.fault").unlink()
        run.wait_for("collector up again")

    run = Run(tmp_path)
    run.visited_by(visit)
    assert [line.partition(" ")[0] for line in run.starts()].count("collect") >= 3  # the first, the wrong one, the last


def test_of_many_warnings_of_a_code_three_are_shown_and_the_log_has_all_within_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_LOG_BYTES", 3000)
    log = tmp_path / "site" / "logs" / "collector.log"

    def visit(run: Run) -> None:
        run.wait_for("number 200 (odd)")
        deadline = time.monotonic() + 20
        while "number 200" not in log.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.02)

    run = Run(tmp_path).visited_by(visit)
    lines = [line for line in run.lines if "number" in line]
    assert lines[:2] == ["collector: number 0 (odd)", "collector: number 1 (odd)"]
    assert lines[2:] == [f"collector: number 2 (odd); further ones are in {log}", "collector: number 200 (odd)"]
    assert "collector: https://mqweb: QM01 answers again" in run.lines
    assert not any("(before)" in line for line in run.lines)
    assert all(path.stat().st_size <= 3000 for path in log.parent.glob("collector.log*"))
    assert len(list(log.parent.glob("collector.log*"))) == 2


def test_a_second_signal_kills_what_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deaf = PART.replace("lambda *_: sys.exit(0)", "signal.SIG_IGN")
    monkeypatch.setattr(live, "_PROGRAM", (sys.executable, "-c", deaf))

    def visit(run: Run) -> None:
        run.wait_for("console up")
        threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGTERM)).start()

    began = time.monotonic()
    with pytest.raises(SystemExit):
        Run(tmp_path).visited_by(visit)
    assert time.monotonic() - began < live._STOP_SECONDS
    assert [words_of(own)[-12:] for own in running()] == []


def test_lines_have_a_time_and_survive_a_closed_output(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    say = TimedLines()
    say("broker up\x1b")
    assert capsys.readouterr().out[8:] == "Z  broker up\\x1b\n"
    monkeypatch.setattr(sys, "stdout", Closed())
    say("nobody reads this")


def test_a_port_that_is_taken_is_replaced_by_any_free_one() -> None:
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        own.listen()
        assert free_address("127.0.0.1", own.getsockname()[1]) == "127.0.0.1:0"
    assert free_address("::1", 0) == "[::1]:0"
