"""Processes of the job that are signalled or killed: it stops cleanly, goes on, or reports the cause on one line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka.admin import AdminClient

from tests.support.processes import free_port, send_signal, still_alive
from tests.system.harness import Played, Stream, check_equal
from tests.system.test_crash import CATCH_UP, MAX_RECORDS, NewStream

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
PATIENCE = 600.0  # seconds, on a busy machine
SOME_RECORDS = 3  # per batch, so that there are still some batches after a failure in the second one


@pytest.fixture
def published(new_stream: NewStream, outage: Played) -> Stream:
    """A stream whose events topic holds the outage."""
    return outage.publish(new_stream(outage.estate))


class Command:
    """`mqtwin stream` in its own process group; `lines` are its lines on standard error so far."""

    def __init__(
        self,
        stream: Stream,
        estate: Path,
        *options: str,
        temporary: Path | None = None,
        max_records: int = MAX_RECORDS,
        master: str = "local[2]",
    ) -> None:
        command = [sys.executable, "-m", "deploy", "stream", "--estate", str(estate)]
        command += ["--checkpoint", str(stream.checkpoint), "--bootstrap-servers", stream.servers]
        command += ["--topic-prefix", stream.prefix, "--master", master, "--log", "json"]
        command += ["--max-records", str(max_records), *options]
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            start_new_session=True,
            env=os.environ | {"TMPDIR": str(temporary)} if temporary else None,
        )

    def read_until(self, event: str, count: int = 1) -> dict[str, Any]:
        """Read its log up to the `count`-th entry of an event, and return that entry."""
        assert self.process.stderr is not None
        deadline = time.monotonic() + PATIENCE
        for line in self.process.stderr:
            assert time.monotonic() < deadline, self.lines
            self.lines.append(line)
            if line.startswith("{") and json.loads(line)["event"] == event:
                count -= 1
                if count == 0:
                    return json.loads(line)
        raise AssertionError(f"it ended with {self.process.wait(PATIENCE)}: {''.join(self.lines)}")

    def family(self) -> list[psutil.Process]:
        """Return all its descendants."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def java(self) -> psutil.Process:
        """Return Spark's Java process: the oldest of that name, as what Java forks bears it until it executes."""
        return min((process for process in self.family() if name_of(process) == "java"), key=psutil.Process.create_time)

    def daemons(self) -> set[psutil.Process]:
        """Return Spark's Python daemons, the parents of workers."""
        return {process for process in self.java().children() if "python" in name_of(process)}

    def end(self) -> int:
        """Wait for its end and return its exit status."""
        _, rest = self.process.communicate(timeout=PATIENCE)
        self.lines += rest.splitlines(keepends=True)
        return self.process.returncode

    def error_line(self) -> str:
        """Return its output beside the log, which must be one line."""
        others = [line for line in self.lines if not line.startswith("{")]
        assert len(others) == 1, "".join(others)
        return others[0].rstrip()


def name_of(process: psutil.Process) -> str:
    """Return the name of a process, empty if it has ended since it was listed."""
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


@contextmanager
def running(command: Command) -> Iterator[Command]:
    """Run a command, and kill it with all its descendants at the end."""
    try:
        yield command
    finally:
        if command.process.poll() is None:
            send_signal(command.family())
            command.process.kill()
            command.end()


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A temporary directory whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="mq-", dir="/tmp") as folder:
        yield Path(folder)


def left_in(temporary: Path) -> list[Path]:
    """Return the scratch directories of jobs that remain."""
    return list(temporary.glob("mqtwin-*/job-*"))


def test_a_signal_to_the_whole_job_stops_it_cleanly(published: Stream, outage: Played, temporary: Path) -> None:
    def begin() -> Command:
        return Command(published, outage.described, temporary=temporary)

    with running(begin()) as command:
        command.read_until("batch", 2)
        family = command.family()
        command.process.kill()  # only the driver; the others notice
        assert not still_alive(family)
        command.end()
        (left,) = left_in(temporary)
    with running(begin()) as command:
        command.read_until("batch")
        assert left not in left_in(temporary)
        # As systemd without KillMode=mixed, and as `timeout`, which signals its command and then the group.
        send_signal(command.family(), signal.SIGTERM)
        command.process.terminate()
        os.killpg(command.process.pid, signal.SIGTERM)
        check_clean(command, temporary)
    with running(begin()) as command:
        command.read_until("batch")
        os.killpg(command.process.pid, signal.SIGINT)  # as Ctrl-C in a terminal
        check_clean(command, temporary)
    published.run(max_records=CATCH_UP)
    check_equal(published, outage.replayed)


def check_clean(command: Command, temporary: Path) -> None:
    """Assert that it ends with 0 and leaves nothing behind. Spark may report tasks of signalled workers as retried."""
    family = command.family()
    assert command.end() == 0, command.lines
    entries = [json.loads(line) for line in command.lines]
    own = [entry for entry in entries if "spark ERROR" not in entry["event"]]
    assert [entry["event"] for entry in own if entry["event"] != "batch"][-2:] == ["stopping", "stopped"]
    assert not [entry for entry in own if entry["level"] == "error"]
    assert not still_alive(family)
    assert [path for path in temporary.rglob("*") if not path.name.startswith(("mqtwin-", "hsperfdata"))] == []


def test_killed_python_workers_are_replaced_and_a_killed_java_is_reported_on_one_line(
    published: Stream, outage: Played, temporary: Path
) -> None:
    port = free_port()
    page = ("--conf", "spark.ui.enabled=true", "--conf", f"spark.ui.port={port}")
    with running(Command(published, outage.described, *page, temporary=temporary)) as command:
        command.read_until("batch", 2)
        check_places(command.java(), port, left_in(temporary))
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
        assert command.end() == 1
        assert command.error_line() == (
            f"mqtwin: the stream failed: Spark's Java process {java.pid} is gone (signal 9: killed? out of memory?)"
        )
        assert not still_alive(family)
        assert left_in(temporary) == []
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


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 32 MiB."""
    mount_point = tmp_path / "small"
    mount_point.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32m", "mqtwin-test", str(mount_point)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small disk here: {mounted.stderr.strip()}")
    yield mount_point
    subprocess.run(["umount", "--lazy", str(mount_point)], check=True)


def fill(path: Path) -> None:
    """Write a file until the disk is full."""
    with path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 12))


def test_a_full_disk_is_named_and_the_job_goes_on_when_there_is_room(
    published: Stream, outage: Played, small_disk: Path
) -> None:
    published.checkpoint, filler = small_disk / "checkpoint", small_disk / "filler"
    options = ("--restart", "always", "--available-now")
    with running(Command(published, outage.described, *options, max_records=SOME_RECORDS)) as command:
        command.read_until("batch")
        with pytest.raises(OSError, match="No space left"):
            fill(filler)
        entry = command.read_until("restarting")
        filler.unlink()
        assert re.fullmatch(
            rf"the .*: disk full: {published.checkpoint}: \d\.\d of 34 MB free; make room: started again, .*",
            entry["cause"],
        )
        assert command.end() == 0, command.lines
    check_equal(published, outage.replayed)


def test_a_deleted_topic_is_named_and_created_again(published: Stream, outage: Played) -> None:
    topic = published.topics.alerts
    options = ("--kafka", "max.block.ms=500", "--restart", "3", "--available-now")
    one_attempt = "local[2,1]"  # of a task, since another one would not find the topic either
    admin = AdminClient({"bootstrap.servers": published.servers})
    begun = Command(published, outage.described, *options, max_records=SOME_RECORDS, master=one_attempt)
    with running(begun) as command:
        command.read_until("batch")
        admin.delete_topics([topic])[topic].result()
        entry = command.read_until("restarting")
        assert entry["cause"] == (
            f"the stream failed: deleted in Kafka while the job ran: topic {topic}; starting again creates it anew"
        ), "".join(command.lines[-8:])
        assert command.end() == 0, command.lines
    assert published.states() == outage.replayed.states
    assert published.alerts()
