"""`mqtwin collect rest` as a process onto a real Kafka: it outlives every fault of the server, and says each once."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.mqweb import Certificates, MqwebServer, User
from tests.streams.kafka_help import everything
from tests.support.queue_managers import System
from tests.support.rest_chain import ASKED, ESTATE
from twin.estate import load_estate

pytestmark = [pytest.mark.system, pytest.mark.nightly]

ROOT = Path(__file__).resolve().parents[2]
SECRET = "not in any list of processes"
STORE = "QSG1/APP1"


class Collector:
    """The process. lines: what it has printed."""

    def __init__(self, kafka, prefix, folder, url, *words):
        (folder / "password").write_text(f"{SECRET}\n")
        self._kafka, self._topic = kafka, f"{prefix}.events"
        self.lines = []
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "deploy", "collect", "rest", "--url", url, "--qmgr", ",".join(ASKED)),
                *("--interval-s", "0.5", "--resync", "--user", "ann", "--password-file", str(folder / "password")),
                *("--estate", str(folder / "estate.toml"), "--position", str(folder / "position")),
                *("--bootstrap-servers", kafka, "--topic-prefix", prefix, "--create-topics", *words),
            ],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self._reader = threading.Thread(target=lambda: self.lines.extend(map(str.rstrip, self.process.stderr)))
        self._reader.start()

    def matching(self, pattern):
        return [line for line in self.lines if re.search(pattern, line)]

    def wait(self, what, seconds=90.0):
        deadline = time.monotonic() + seconds
        while not (result := what()):
            assert self.process.poll() is None, "\n".join(self.lines)
            assert time.monotonic() < deadline, "\n".join(self.lines)
            time.sleep(0.05)
        return result

    def wait_for_level(self, used):
        """Wait until a MEASURE has a number of entries."""
        self.wait(lambda: used in levels(self._kafka, self._topic))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self._reader.join(10)
        return code

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._reader.join(10)
        self.process.stderr.close()


def levels(kafka, topic):
    try:
        events = [json.loads(message.value()) for message in everything(kafka, topic)]
    except KeyError:
        return []  # the topic is not there yet
    return [event["measured"].get("ents_used") for event in events if event.get("store") == STORE]


@contextmanager
def collecting(kafka, prefix, folder, url, *words):
    collector = Collector(kafka, prefix, folder, url, *words)
    try:
        yield collector
    finally:
        collector.end()


@pytest.fixture
def system(tmp_path):
    (tmp_path / "estate.toml").write_text(ESTATE)
    return System(load_estate(tmp_path / "estate.toml"), round(time.time() * 1e6))


def set_level(system, used):
    system.time = round(time.time() * 1e6)
    system.levels[STORE]["ents_used"] = used


def test_every_fault_of_the_server_is_said_once_and_is_over_when_it_is(kafka, topic_prefix, tmp_path, system):
    users = {"ann": User(SECRET)}
    with (
        MqwebServer(system, users=users, timeout_s=1.0) as server,
        collecting(kafka, topic_prefix, tmp_path, server.url, "--token-login") as collector,
    ):
        set_level(system, 1)
        collector.wait_for_level(1)
        assert server.logins == 1
        assert SECRET not in " ".join(psutil.Process(collector.process.pid).cmdline())

        server.end_tokens()  # no complaint: it logs in again
        set_level(system, 2)
        collector.wait_for_level(2)
        assert server.logins == 2

        server.stop()
        collector.wait(lambda: collector.matching("the server: .*refused"))
        time.sleep(12.0)  # it asks in vain once more
        assert len(collector.matching("the server: .*refused")) == 1
        set_level(system, 3)
        server.start()
        collector.wait_for_level(3)
        collector.wait(lambda: collector.matching("answers again"))

        system.inactive.add("QM02")
        collector.wait(lambda: collector.matching("QM02"))
        set_level(system, 4)
        collector.wait_for_level(4)  # the other member answers for the group
        system.inactive.clear()
        collector.wait(lambda: collector.matching("QM02: answers again"))

        with server.failing("truncated", command="CFSTATUS"):
            collector.wait(lambda: collector.matching("without whole JSON"))
        set_level(system, 5)
        collector.wait_for_level(5)
        with server.failing("slow", seconds=0.3):
            set_level(system, 6)
            collector.wait_for_level(6)

        assert collector.stop() == 0, collector.lines
        assert set(server.most_at_once.values()) == {1}
        assert server.open_connections == 0
    assert SECRET not in "".join(collector.lines)
    assert collector.matching("position in")


@pytest.mark.parametrize(
    ("certificates", "is_trusted", "text"),
    [
        (Certificates(), True, None),
        (Certificates(), False, "is not trusted"),
        (Certificates(host="elsewhere"), True, "is for another host name"),
        (Certificates(is_expired=True), True, "has expired"),
    ],
    ids=["private authority", "unknown authority", "another host", "expired"],
)
def test_a_certificate_is_accepted_or_one_line_says_why_not(
    kafka, topic_prefix, tmp_path, system, certificates, is_trusted, text
):
    words = ["--ca-file", str(certificates.write_authority(tmp_path / "ca.pem"))] if is_trusted else []
    with (
        MqwebServer(system, users={"ann": User(SECRET)}, certificates=certificates) as server,
        collecting(kafka, topic_prefix, tmp_path, server.url, *words) as collector,
    ):
        set_level(system, 7)
        if text is None:
            collector.wait_for_level(7)
        else:
            collector.wait(lambda: collector.matching(text))
            time.sleep(2.0)
            assert len(collector.matching(text)) == 1, collector.lines
            assert not collector.matching("Traceback")
        assert collector.stop() == 0, collector.lines
