"""Requests to stop that interrupt each other, or the wait for one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from streams.host.signals import StopRequestedError, stop_requests

ROOT = Path(__file__).resolve().parents[2]
# A handler runs between two instructions of the main thread: here while that holds the lock of the event, as `wait`
# does for a moment, and a handler that another signal interrupts.
DURING_WAIT = """
import signal
from streams.host.signals import stop_requests

with stop_requests() as stop:
    with stop._cond:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
    print(stop.wait(10), stop.is_set())
"""


def test_a_signal_during_the_wait_for_one_stops_the_job():
    """Without care such a job waits for ever, as `Event.set` waits for the lock that its own thread holds."""
    done = subprocess.run(
        [sys.executable, "-c", DURING_WAIT], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("True True\n", "", 0)


def test_a_request_is_seen_at_once_and_by_whoever_waits():
    with stop_requests() as stop:
        assert not stop.is_set()
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
        assert stop.wait(10)


def test_a_block_that_waits_is_left_at_a_request_and_not_entered_after_it():
    with stop_requests() as stop:
        with stop.leaving():
            pass
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
        began_s = time.monotonic()
        with pytest.raises(StopRequestedError), stop.leaving():
            time.sleep(10)
        assert time.monotonic() - began_s < 5
        with pytest.raises(StopRequestedError), stop.leaving():
            pytest.fail("it was entered")
        assert stop.is_set()


def test_a_second_signal_ends_the_process(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("streams.host.signals._SAME_REQUEST_SECONDS", -1)
    with stop_requests():
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(SystemExit) as ended:
            signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 128 + signal.SIGTERM


@pytest.mark.parametrize(("before", "stops"), [(signal.SIG_DFL, True), (signal.SIG_IGN, False)])
def test_a_hang_up_stops_unless_nohup_has_it_ignored(before: signal.Handlers, stops: bool):
    earlier = signal.signal(signal.SIGHUP, before)  # whatever the tests themselves run under
    try:
        with stop_requests() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert stop.is_set() == stops
    finally:
        signal.signal(signal.SIGHUP, earlier)
