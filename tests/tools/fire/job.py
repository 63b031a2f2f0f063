"""`mqtwin stream` as a process of its own, with its log read as it comes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import psutil

from twin.base.errors import MqtwinError

ROOT = Path(__file__).resolve().parents[3]
START_SECONDS = 240.0
STOP_SECONDS = 120.0


class JobProcess:
    """One life of the job.

    Args:
        options: options of `mqtwin stream`.
        log: the file that its standard error is appended to.
        on_entry: called from a thread with each entry of its log.
        environment: variables of its environment beside those here.
    """

    def __init__(
        self,
        options: Sequence[str],
        log: Path,
        on_entry: Callable[[dict[str, Any]], None],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        command = [sys.executable, "-m", "deploy", "stream", "--log", "json", *options]
        self._process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
        )
        self._log = log
        self._on_entry = on_entry
        self._reader = threading.Thread(target=self._read, name="job-log", daemon=True)
        self.is_ready = threading.Event()
        self.last_line = ""
        self._reader.start()

    @property
    def pid(self) -> int:
        """The driver's process id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """True while the driver lives."""
        return self._process.poll() is None

    def wait_until_ready(self) -> None:
        """Return when the query has started. MqtwinError: it ended before."""
        until = time.monotonic() + START_SECONDS
        while not self.is_ready.wait(0.2):
            if not self.is_running or time.monotonic() > until:
                raise MqtwinError(f"the job did not start: {self.last_line}")

    def family(self) -> list[psutil.Process]:
        """The driver and all it has started."""
        with contextlib.suppress(psutil.NoSuchProcess):
            driver = psutil.Process(self.pid)
            return [driver, *driver.children(recursive=True)]
        return []

    def kill(self) -> None:
        """SIGKILL to the driver and all it has started, at once."""
        family = self.family()
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()
        psutil.wait_procs(family[1:], timeout=30)
        self._reader.join(10)

    def stop(self) -> int:
        """SIGTERM to the driver; return its exit status."""
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(STOP_SECONDS)
        self._reader.join(10)
        return status

    def _read(self) -> None:
        assert self._process.stderr is not None
        with self._log.open("ab") as log, self._process.stderr as lines:
            for line in lines:
                log.write(line)
                log.flush()
                self.last_line = line.decode(errors="replace").strip()
                if not line.startswith(b"{"):
                    continue
                entry = msgspec.json.decode(line)
                if entry["event"] == "query started":
                    self.is_ready.set()
                self._on_entry(entry)
