"""Processes of the job that are killed, signalled or stopped, and lost caches: alerts and states stay the same."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from streams.query.job import LOSS_VARIABLE
from tests.support.processes import free_port, send_signal, still_alive
from tests.support.profile import IS_LARGE
from tests.system.harness import Played, Stream, check_equal
from tests.system.job_process import MAX_RECORDS, PATIENCE, Command, check_clean, left_in, running
from twin.estate import Estate

pytestmark = [pytest.mark.system, pytest.mark.nightly]


@pytest.mark.ci
def test_a_job_killed_signalled_and_stopped_in_the_middle_has_the_output_of_an_undisturbed_one(
    new_stream: Callable[[Estate], Stream], every_kind: Played, temporary: Path
) -> None:
    """Stores of every kind; each job continues where the one before it ended.

    Killed are the workers, Spark's daemon, Java, all processes at once, and the driver alone. Between them the job is
    asked to stop.
    """
    published = every_kind.publish(new_stream(every_kind.estate))
    begin = partial(Command, published, every_kind.described, temporary=temporary)
    port = free_port()
    options = ("--restart", "3", "--conf", "spark.ui.enabled=true", "--conf", f"spark.ui.port={port}")
    with running(begin(*options, max_records=4)) as command:
        kill_workers_daemon_and_java(command, port, temporary)
        failed = len(command.lines)
        command.read_until("batch")
        family = command.family()
        # As systemd without KillMode=mixed. The driver gets it twice: the supervisor, in the group, passes it on.
        os.killpg(command.process.pid, signal.SIGTERM)
        send_signal(family, signal.SIGTERM)  # the driver first
        assert command.end() == 0, command.lines
    entries = [line for line in command.lines[failed:] if line.startswith("{")]
    warnings = {f"mqtwin: warning: {warning}\n" for warning in every_kind.estate.warnings}
    assert {line for line in command.lines if not line.startswith("{")} == warnings
    check_clean([json.loads(line) for line in entries], family, temporary)
    with running(begin(max_records=8)) as command:
        done = command.read_until("batch")["batch"]
        time.sleep(0.05)  # into the next batch
        command.kill()
    (left,) = left_in(temporary)
    with running(begin(max_records=8)) as command:
        assert command.read_until("batch")["batch"] >= done
        assert left not in left_in(temporary)
        command.read_until("batch")
        time.sleep(0.2)
        family = command.family()
        command.process.kill()
        assert not still_alive(family, PATIENCE)
        command.end()
    published.run(max_records=8)
    assert published.batches
    check_equal(published, every_kind.replayed)


def kill_workers_daemon_and_java(command: Command, port: int, temporary: Path) -> None:
    """Kill the processes below the driver, one kind after the other, and assert that others take their place."""
    command.read_until("batch", 2)
    left = left_in(temporary)
    check_places(command.java(), port, left)
    daemons = command.daemons()
    assert len(daemons) == 1  # of the preflight and of both stages
    workers = [worker for daemon in daemons for worker in daemon.children()]
    assert workers
    send_signal(workers)
    command.read_until("batch", 2)
    assert command.daemons() == daemons
    send_signal([*daemons, *(worker for daemon in daemons for worker in daemon.children())])
    command.read_until("batch", 2)
    assert command.daemons() and not command.daemons() & daemons
    java, family = command.java(), command.family()
    java.kill()
    assert command.read_until("restarting")["cause"] == (
        f"the stream failed: Spark's Java process {java.pid} is gone (signal 9: killed? out of memory?)"
    )
    assert not set(left) & set(left_in(temporary))
    assert not still_alive(family, PATIENCE)


def check_places(java: psutil.Process, port: int, left: list[Path]) -> None:
    """Assert that Java and Spark's UI listen on loopback, and that files and sockets are in the job's directory."""
    listening = {
        (connection.laddr.ip.removeprefix("::ffff:"), connection.laddr.port)
        for connection in java.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert {ip for ip, _ in listening} == {"127.0.0.1"}
    assert ("127.0.0.1", port) in listening
    (directory,) = left
    assert list(directory.glob("spark-*")) and list(directory.glob("blockmgr-*")) and list(directory.glob(".*.sock"))
    paths = {connection.laddr for connection in java.net_connections("unix") if connection.laddr}
    assert all(Path(path).parent == directory for path in paths)


@pytest.mark.parametrize("seed", [1, 2] if IS_LARGE else [1])
def test_caches_that_vanish_at_random_change_nothing(
    published: Stream, outage: Played, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setenv(LOSS_VARIABLE, f"0.5,{seed}")
    published.run(max_records=MAX_RECORDS)
    assert sum(batch["loaded"] for batch in published.batches) > 0
    check_equal(published, outage.replayed)
