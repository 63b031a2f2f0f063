"""The latest records of the topics, from a real broker, by way of the reader and of the commands that use it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from deploy.cli import main
from streams.kafka.topic_reader import OTHER_REASON, Latest, TopicReader
from streams.kafka.topics import Topics
from tests.streams.kafka_help import create, send
from tests.support.alert_entries import Receiver, alert
from tests.support.console_feed import page_set
from tests.support.surfaces import status_of, wait_until
from tests.tools.fuzz.records import nested
from twin.alerts.episodes import Alert
from twin.base.conditions import CLEARED, UPDATED

ROOT = Path(__file__).resolve().parents[2]
STATE = msgspec.json.encode(
    page_set("CF01", 0, kind="coupling_facility", time=None)
    | {"scm_total": 8, "scm_committed": 0, "scm_used": 2, "augmented": 0, "storage_free": 64, "structures": {}}
    | {"late_reports": 0}
)


def send_alerts(kafka: str, prefix: str, *alerts: Alert) -> None:
    for record in alerts:
        send(kafka, f"{prefix}.alerts", [record.record()], key=record.alert_id.encode())


def letter(reason: str) -> list[tuple[str, bytes]]:
    return [("reason", reason.encode()), ("detail", b"d")]


def read_all(reader: TopicReader, latest: Latest, seconds: float = 20.0) -> None:
    """Read to the ends of the topics."""
    deadline = time.monotonic() + seconds
    while not reader.is_caught_up or reader.missing:
        assert time.monotonic() < deadline
        for record in reader.read(0.2):
            latest.apply(record)


def test_states_alerts_and_new_dead_letters_are_folded(kafka: str, topic_prefix: str) -> None:
    topics = Topics(topic_prefix)
    for name in (topics.state, topics.alerts, topics.dlq):
        create(kafka, name)
    send(kafka, topics.state, [STATE, STATE.replace(b'used":2', b'used":4')], key=b"CF01")
    send_alerts(kafka, topic_prefix, alert(), alert(UPDATED, 1), alert(condition="threshold"))
    send(kafka, topics.dlq, [b"old"], headers=letter("not-json"))
    latest = Latest(topics)
    wanted_topics = {topics.state: None, topics.alerts: None, topics.dlq: 0}
    with TopicReader({"bootstrap.servers": kafka}, wanted_topics) as reader:
        assert not reader.is_caught_up
        read_all(reader, latest)
        entry = latest.states["CF01"]
        assert entry.state.scm_used == 4 and abs(time.time() - entry.written_s) < 300
        assert {record.alert.id[-2:] for record in latest.alerts.values()} == {"/1", "/0"}
        send(kafka, topics.dlq, [b"x", b"y"], headers=letter("not-json"))
        send(kafka, topics.dlq, [b"z"], headers=letter("of a newer job"))
        send(kafka, topics.state, [None], key=b"CF01")
        wait_until(lambda: [latest.apply(record) for record in reader.read(0.2)] and not latest.states)
        wait_until(lambda: latest.dead_letters[OTHER_REASON] or [latest.apply(r) for r in reader.read(0.2)])
    counted = {reason: count for reason, count in latest.dead_letters.items() if count}
    assert counted == {"not-json": 2, OTHER_REASON: 1}


@contextmanager
def command(kafka: str, prefix: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command of mqtwin within the block, two minutes at most, and end it by SIGTERM: its status is 0."""
    line = [sys.executable, "-m", "deploy", *arguments, "--bootstrap-servers", kafka, "--topic-prefix", prefix]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment) as process:
        guard = threading.Timer(120, process.kill)  # for a line that does not come
        guard.start()
        try:
            yield process
            assert process.poll() is None, process.stderr and process.stderr.read()
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            guard.cancel()
            process.kill()


def test_the_exporter_serves_what_is_in_the_topics(kafka: str, topic_prefix: str) -> None:
    topics = Topics(topic_prefix)
    create(kafka, topics.state)
    create(kafka, topics.alerts)
    send(kafka, topics.state, [STATE], key=b"CF01")
    send_alerts(kafka, topic_prefix, alert())
    with command(kafka, topic_prefix, "export", "--listen", "127.0.0.1:0") as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]

        def page() -> str:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return str(answer.read().decode())

        wait_until(lambda: 'mqtwin_usage_ratio{kind="coupling_facility"' in page() and "mqtwin_alert_open{" in page())
        wait_until(lambda: status_of(url.replace("/metrics", "/readyz")) == 200)
        send_alerts(kafka, topic_prefix, alert(CLEARED, 1))
        wait_until(lambda: "mqtwin_alert_open{" not in page())


@pytest.mark.nightly
def test_a_record_of_somebody_else_ends_neither_console_nor_alerts(
    kafka: str, topic_prefix: str, capfd: pytest.CaptureFixture[str]
) -> None:
    topics = Topics(topic_prefix)
    for name in (topics.state, topics.alerts):
        create(kafka, name)
        send(kafka, name, [nested(b'{"store":"x","kind":"structure"}', 3000)])
    send_alerts(kafka, topic_prefix, alert())
    line = [sys.executable, "-m", "deploy", "console", "--bootstrap-servers", kafka, "--topic-prefix", topic_prefix]
    with subprocess.Popen(
        [*line, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        guard = threading.Timer(120, process.kill)
        guard.start()
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1]
            wait_until(lambda: status_of(f"{url}readyz") == 200)
            with urllib.request.urlopen(f"{url}readyz", timeout=10) as answer:
                assert msgspec.json.decode(answer.read()) == {"status": "ready", "unreadable": 2}
            send(kafka, topics.state, [msgspec.json.encode(page_set("QM01/PS04", 10))], key=b"QM01/PS04")
            wait_until(lambda: status_of(f"{url}api/history?store=QM01/PS04") == 200)
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
            assert process.stderr is not None
            assert "Traceback" not in process.stderr.read()
        finally:
            guard.cancel()
            process.kill()
    client = ["--bootstrap-servers", kafka, "--topic-prefix", topic_prefix]
    assert main(["alerts", *client, "--from-beginning", "--until-idle", "1.5"]) == 0
    out, err = capfd.readouterr()
    assert out.count("\n") == 1 and "1 records of" in err and "RecursionError" in err


def test_without_topics_exporter_and_bridge_say_what_they_wait_for(kafka: str, topic_prefix: str) -> None:
    """A mistyped --topic-prefix looks the same."""
    with command(kafka, topic_prefix, "export", "--listen", "127.0.0.1:0") as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        assert process.stderr.readline().startswith(f"mqtwin: waiting for {topic_prefix}.state, {topic_prefix}.alerts,")
        assert status_of(url.replace("/metrics", "/healthz")) == 200
        assert status_of(url.replace("/metrics", "/readyz")) == 503
        create(kafka, f"{topic_prefix}.state")
        wait_until(lambda: status_of(url.replace("/metrics", "/readyz")) == 200)
    with command(kafka, topic_prefix, "bridge", "alertmanager", "--url", "http://127.0.0.1:9/hush") as process:
        assert process.stderr is not None
        line = msgspec.json.decode(process.stderr.readline())
        assert (line["event"], line["topics"]) == ("waiting for topics", [f"{topic_prefix}.alerts"])
        line = msgspec.json.decode(process.stderr.readline())
        assert (line["event"], line["reads"]) == ("bridging", f"{topic_prefix}.alerts")
        assert line["sends_to"] == ["http://127.0.0.1:9"]


def test_alertmanager_gets_the_open_alerts_only_once_the_topic_is_read(kafka: str, topic_prefix: str) -> None:
    """The beginning of the topic has an alert open that has cleared further on."""
    create(kafka, f"{topic_prefix}.alerts")
    send_alerts(kafka, topic_prefix, alert(), alert(condition="threshold"), alert(CLEARED, 1))
    with Receiver.run() as receiver:
        with command(kafka, topic_prefix, "bridge", "alertmanager", "--url", receiver.url):
            wait_until(lambda: receiver.requests)
            send_alerts(kafka, topic_prefix, alert(CLEARED, 1, condition="threshold"))
            wait_until(lambda: len(receiver.requests) == 2)
        first, second = receiver.json()
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    assert {sent["annotations"]["condition"]: sent["endsAt"] > now for sent in first} == {
        "threshold": True,
        "full-forecast": False,
    }
    assert not [sent for sent in second if sent["endsAt"] > now]
