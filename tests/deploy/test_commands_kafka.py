"""`mqtwin publish`, `record` and `alerts` against a real broker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from deploy.cli import main
from streams.kafka import clients
from tests.streams.kafka_help import create, everything, header, send
from tests.streams.test_subscribe import values
from tests.support.traffic import BAD_LINES, lines_of, traffic, write_estate, write_lines
from twin.events import ARROW, NDJSON


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_estate(tmp_path_factory.mktemp("estate"))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(tmp_path_factory.mktemp("recording") / "t.ndjson", [*lines_of(traffic(500)), *BAD_LINES])


def errors(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("mqtwin: warning: ")]


def replayed(recording: Path, estate: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> bytes:
    capsysbinary.readouterr()
    assert main(["replay", str(recording), "--estate", str(estate), "--alerts", "-", "--state", "-"]) == 0
    return capsysbinary.readouterr().out


@pytest.mark.parametrize(
    ("name", "kind", "group_by"),
    [("json", None, "store"), ("ndjson", NDJSON, "store"), ("arrow", ARROW, "store"), ("arrow", ARROW, "partition")],
)
def test_published_and_recorded_again_a_recording_replays_to_the_same(
    name: str,
    kind: str | None,
    group_by: str,
    estate: Path,
    recording: Path,
    kafka: str,
    topic_prefix: str,
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    client = ["--bootstrap-servers", kafka, "--topic-prefix", topic_prefix, "--kafka", "client.id=me"]
    options = ["--content-type", name, "--group-by", group_by, "--create-topics"]
    assert main(["publish", str(recording), "--estate", str(estate), *client, *options]) == 0
    message = capsysbinary.readouterr().err.decode().splitlines()[-1]
    assert "events in " in message and f"{len(BAD_LINES)} records of no store" in message
    assert {header(m) for m in everything(kafka, f"{topic_prefix}.events") if m.key() != b"?"} == {kind}
    again = tmp_path / "again.ndjson.zst"
    assert main(["record", "-o", str(again), *client]) == 0
    assert " events of " in capsysbinary.readouterr().err.decode()
    assert replayed(again, estate, capsysbinary) == replayed(recording, estate, capsysbinary)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--speed", "1", "--rate", "1"], "one of them"),
        (["--speed", "0"], "--speed"),
        (["--group-by", "partition"], "ndjson or arrow"),
        (["--content-type", "xml"], "--content-type"),
        (["--kafka", "linger.ms=soon"], "--kafka"),
        (["--kafka", "no.such.setting=1"], "no.such.setting"),
        (["--topic-prefix", "a b"], "--topic-prefix"),
    ],
)
def test_wrong_use_of_publish_is_one_line_and_status_2(
    arguments: list[str], message: str, estate: Path, recording: Path, kafka: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["publish", str(recording), "--estate", str(estate), "--bootstrap-servers", kafka, *arguments]) == 2
    (line,) = errors(capsys.readouterr().err)
    assert message in line


def test_publishing_to_a_topic_that_does_not_exist_is_wrong_use(
    estate: Path, recording: Path, kafka: str, topic_prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    client = ["--bootstrap-servers", kafka, "--topic-prefix", topic_prefix]
    assert main(["publish", str(recording), "--estate", str(estate), *client]) == 2
    (line,) = errors(capsys.readouterr().err)
    assert f"topic {topic_prefix}.events does not exist" in line and "--create-topics" in line
    assert f"{topic_prefix}.events" not in AdminClient({"bootstrap.servers": kafka}).list_topics(timeout=10).topics


@pytest.mark.parametrize("command", ["publish", "record", "alerts"])
def test_no_kafka_is_one_line_and_status_1_without_secrets(
    command: str,
    estate: Path,
    recording: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(clients, "CONNECT_SECONDS", 0.5)
    first = {
        "publish": [str(recording), "--estate", str(estate)],
        "record": ["-o", str(tmp_path / "o.ndjson")],
        "alerts": [],
    }
    login = [
        "--kafka",
        "sasl.username=me",
        "--kafka",
        "sasl.password=hush",
        "--kafka",
        "security.protocol=SASL_PLAINTEXT",
    ]
    login += ["--kafka", "sasl.mechanism=PLAIN"]
    assert main([command, *first[command], "--bootstrap-servers", "127.0.0.1:9", *login]) == 1
    out, err = capsys.readouterr()
    (line,) = errors(err)
    assert "no Kafka answers at 127.0.0.1:9" in line and "hush" not in out + err


def test_alerts_are_plain_lines_when_piped(kafka: str, topic_prefix: str, capsys: pytest.CaptureFixture[str]) -> None:
    create(kafka, f"{topic_prefix}.alerts")
    send(kafka, f"{topic_prefix}.alerts", values(0, 1, 0))
    client = ["--bootstrap-servers", kafka, "--topic-prefix", topic_prefix, "--from-beginning", "--until-idle", "1.5"]
    assert main(["alerts", *client]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0] == (
        "2026-11-20T12:00:00.000000Z  opened   warning   QSG1/APP1  entries  threshold  81.5%  "
        "81.5 % of the entries are in use.  [ORDERS 75%]"
    )
    assert main(["alerts", *client, "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["data"]["usage_pct"] for record in records] == [81.5, 81.5]


@pytest.mark.parametrize("no_color", [False, True])
def test_alerts_have_colour_on_a_terminal_unless_it_is_not_wanted(
    no_color: bool, kafka: str, topic_prefix: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")  # rich takes it for a terminal
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    create(kafka, f"{topic_prefix}.alerts")
    send(kafka, f"{topic_prefix}.alerts", values(0))
    client = ["--bootstrap-servers", kafka, "--topic-prefix", topic_prefix, "--from-beginning", "--until-idle", "1.5"]
    assert main(["alerts", *client]) == 0
    out = capsys.readouterr().out
    assert "ALTER CFSTRUCT(APP1)" in out
    assert ("\x1b[33m" in out) != no_color


def test_following_is_ended_by_a_signal_and_the_recording_is_whole(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    create(kafka, f"{topic_prefix}.events")
    send(kafka, f"{topic_prefix}.events", [b'{"n":1}'])
    out = tmp_path / "out.ndjson.zst"
    command = [sys.executable, "-m", "deploy", "record", "-o", str(out), "--bootstrap-servers", kafka]
    with subprocess.Popen(
        [*command, "--topic-prefix", topic_prefix, "--follow"],
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        guard = threading.Timer(60, process.kill)
        guard.start()
        while not out.exists() and process.poll() is None:
            threading.Event().wait(0.05)
        threading.Event().wait(1)
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        message = process.stderr.read().decode()
        status = process.wait()
        guard.cancel()
    assert status == 0 and message.startswith("1 event of 1 record, ")
    from twin.recordings.files import open_recording

    assert [line for chunk in open_recording(out) for line in chunk.lines()] == [b'{"n":1}']
