"""Latest records for tests of surfaces: stores of every kind that fill, and the programs that read their metrics."""

from __future__ import annotations

import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deploy.metrics.collector import samples_of
from streams.kafka.topic_reader import Latest
from streams.kafka.topics import Topics
from tests.support.alert_entries import topic_record
from tests.support.mixed import MEMBERS, mixed_estate
from twin.alerts.episodes import Alert
from twin.estate import load_estate
from twin.records import StateRecord
from twin.testing import Driver


def filling(folder: Path) -> Driver:
    """Return a driver of an estate with a store of every kind, in which a page set is about to be full."""
    driver = Driver(load_estate(mixed_estate(folder)))
    for _ in range(100):
        driver.put("ORDERS", qmgr="QM01", length=9000, count=20)
        driver.put("ORDERS", qmgr="QM01", length=70_000, count=1)
        driver.put("LOCAL.REPLIES", qmgr="QM01", length=3000, count=60)
        driver.put("INVOICES", qmgr="QMD1", length=2000, count=40)
        for member in MEMBERS:
            driver.put("REQUEST", qmgr=member, length=100, count=5)
        driver.wait(minutes=1)
    pages = driver.state("QM01/PS04")
    measured = {name: getattr(pages, name) for name in ("pages_used", "pages_total", "messages")}
    driver.measure("QM01/PS04", **measured, buffer_pool_pct=40.0)
    driver.wait(minutes=1)
    return driver


def latest_of(states: Iterable[StateRecord], alerts: Iterable[Alert] = (), written_s: float | None = None) -> Latest:
    """Return the fold of state records and alerts, as if they had been read from topics, written now by default."""
    topics = Topics()
    latest = Latest(topics, derive=samples_of)
    for state in states:
        latest.apply(topic_record(topics.state, msgspec.json.encode(state), written_s))
    for alert in alerts:
        latest.apply(topic_record(topics.alerts, alert.record(), written_s))
    assert latest.unreadable == 0
    return latest


def program(name: str) -> str:
    """Return the path of a program of the distribution; skip the test without it."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"no {name} here; on Debian and Ubuntu: apt install prometheus prometheus-alertmanager")
    return path


@contextmanager
def running(command: list[str], log: Path, patience_s: float = 20.0) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program within the block; its output goes to a file. It has `patience_s` to end after SIGTERM."""
    with log.open("ab") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(patience_s)


def wait_until(is_so: Callable[[], Any], seconds: float = 30.0) -> Any:
    """Return the first true result of a function; fail after a time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            result = is_so()
        except urllib.error.HTTPError as error:  # it is up, and says that it is not ready
            error.close()
            result = None
        except OSError:  # the server is not up yet
            result = None
        if result:
            return result
        time.sleep(0.1)
    pytest.fail(f"not so after {seconds} s: {is_so}")


def fetch(url: str, body: bytes | None = None) -> Any:
    """Return the JSON of a page."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"} if body else {})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return msgspec.json.decode(answer.read() or b"null")


def status_of(url: str) -> int:
    """Return the HTTP status of a page."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
