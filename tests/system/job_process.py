"""`mqtwin stream` as processes of their own, for tests that signal or kill them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.support.processes import send_signal, still_alive
from tests.system.harness import Stream

ROOT = Path(__file__).parents[2]
PATIENCE = 600.0  # seconds, on a busy machine
MAX_RECORDS = 1  # per batch, so that the recording of an outage is some dozen batches
CATCH_UP = 4  # per batch, where what matters has happened and the rest of the recording follows


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
        checkpoint: str = "",
    ) -> None:
        """Start it. checkpoint: another one than that of the stream."""
        command = [sys.executable, "-m", "deploy", "stream", "--estate", str(estate)]
        command += ["--checkpoint", checkpoint or str(stream.checkpoint), "--bootstrap-servers", stream.servers]
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

    def kill(self) -> None:
        """Send SIGKILL to the driver and to all its descendants, at once."""
        family = self.family()
        self.process.kill()
        send_signal(family)
        assert not still_alive(family, PATIENCE)
        self.end()


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
            command.kill()


def left_in(temporary: Path) -> list[Path]:
    """Return the scratch directories of jobs that remain."""
    return list(temporary.glob("mqtwin-*/job-*"))


def check_clean(entries: list[dict[str, Any]], family: list[psutil.Process], temporary: Path) -> None:
    """Assert that a job that has ended had stopped as asked and left nothing behind.

    Spark may report tasks of signalled workers as retried.

    Args:
        entries: its log since its start.
        family: its processes as it was asked.
        temporary: its temporary directory.
    """
    own = [entry for entry in entries if "spark ERROR" not in entry["event"] and entry["level"] != "debug"]
    assert [entry["event"] for entry in own if entry["event"] != "batch"][-2:] == ["stopping", "stopped"], own[-20:]
    assert not [entry for entry in own if entry["level"] == "error"]
    assert not still_alive(family, PATIENCE)
    assert [path for path in temporary.rglob("*") if not path.name.startswith(("mqtwin-", "hsperfdata"))] == []
