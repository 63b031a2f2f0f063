"""Processes of the job that are signalled or killed: it goes on, is started again, or stops cleanly."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import psutil
import pytest

from tests.support.processes import free_port, send_signal, still_alive
from tests.system.harness import Played, Stream, check_equal
from tests.system.job_process import CATCH_UP, PATIENCE, Command, check_clean, left_in, running

pytestmark = pytest.mark.system


def test_killed_workers_are_replaced_a_killed_java_is_named_and_a_signal_to_every_process_stops_the_job(
    published: Stream, outage: Played, temporary: Path
) -> None:
    port = free_port()
    options = ("--restart", "3", "--conf", "spark.ui.enabled=true", "--conf", f"spark.ui.port={port}")
    with running(Command(published, outage.described, *options, temporary=temporary)) as command:
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
        failed = len(command.lines)
        command.read_until("batch")
        family = command.family()
        # As systemd without KillMode=mixed. The driver gets it twice: the supervisor, in the group, passes it on.
        os.killpg(command.process.pid, signal.SIGTERM)
        send_signal(family, signal.SIGTERM)  # the driver first
        assert command.end() == 0, command.lines
    assert all(line.startswith("{") for line in command.lines), command.lines
    check_clean([json.loads(line) for line in command.lines[failed:]], family, temporary)
    published.run(max_records=CATCH_UP)
    check_equal(published, outage.replayed)


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
