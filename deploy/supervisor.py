"""Starts a command again when it fails: ``python -m deploy.supervisor FAILURES LOG LEVEL COMMAND...``.

`mqtwin stream --restart` becomes this program, so that what waits for months is small: it imports neither Spark nor
numba. The command is a child in a session of its own: stop signals reach it once, from here. A failure that the
command reports (`reported_failure`) is logged with each restart. The child is killed when this process is.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

import structlog

from streams.log import configure_logging
from twin.errors import MqtwinError, UsageError

VARIABLE = "MQTWIN_SUPERVISED"  # in the command's environment: the descriptor for its failure
ALWAYS, NEVER = "always", "never"
FIRST_WAIT_SECONDS = 1.0  # doubled with each failure in a row
MAX_WAIT_SECONDS = 300.0
GOOD_SECONDS = 3600.0  # a command that ran so long begins a new row
_WRONG_USE = 2
_CAUSE_BYTES = 4096  # a pipe takes that much without a reader


def is_supervised() -> bool:
    """Return True in a process that a supervisor started."""
    return VARIABLE in os.environ


def supervise(restart: str, log: str, log_level: str) -> NoReturn:
    """Become the supervisor of this very command line. `restart`, `log`, `log_level`: see `mqtwin stream`."""
    module = ["-m", "deploy.supervisor", restart, log, log_level]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *module, sys.executable, *sys.orig_argv[1:]])  # noqa: S606 -- itself


def check_restart(text: str) -> None:
    """UsageError where it is neither a word nor a number."""
    if text not in {ALWAYS, NEVER} and not (text.isascii() and text.isdigit() and int(text) > 0):
        raise UsageError(f"--restart {text}: expected: {NEVER}, {ALWAYS}, or how many failures in a row, from 1")


@contextmanager
def reported_failure() -> Iterator[None]:
    """Within it a failure goes to the supervisor, which logs it; without one it is raised as ever."""
    try:
        yield
    except UsageError:  # starting again does not help: said as ever
        raise
    except MqtwinError as error:
        if not is_supervised() or os.environ.get("MQTWIN_DEBUG", "") == "1":
            raise
        os.write(int(os.environ[VARIABLE]), str(error).encode()[:_CAUSE_BYTES])
        raise SystemExit(1) from error


class Supervisor:
    """Runs a command, again and again. max_failures: in a row, then it gives up; None: it never does."""

    def __init__(self, command: Sequence[str], max_failures: int | None) -> None:
        self._command = command
        self._max_failures = max_failures
        self._stop = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._log = structlog.get_logger("mqtwin.supervisor")

    def run(self) -> int:
        """Return the exit status: the command's when it ends well, was used wrongly, or was asked to stop.

        Raises:
            MqtwinError: too many failures in a row; the message is the last cause.
        """
        failures = 0
        while True:
            began = time.monotonic()
            status, cause = self._run_once()
            if status in {0, _WRONG_USE} or (self._stop.is_set() and status < 0):  # stopped before it could listen
                return max(status, 0)
            if self._stop.is_set():
                raise MqtwinError(cause)
            failures = 1 if time.monotonic() - began >= GOOD_SECONDS else failures + 1
            if self._max_failures is not None and failures > self._max_failures:
                raise MqtwinError(f"{cause}; failures in a row: {failures}, --restart {self._max_failures}: given up")
            wait = min(MAX_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** min(failures - 1, 30))
            self._log.warning("restarting", cause=cause, failures=failures, wait_seconds=wait)
            if self._stop.wait(wait):
                return 0

    def request_stop(self, _number: int, _frame: FrameType | None) -> None:
        """Ask the command to stop, and start it no more: a signal handler."""
        self._stop.set()
        if self._child is not None:
            self._child.terminate()

    def _run_once(self) -> tuple[int, str]:
        """Run the command to its end. Returns its exit status, negative after a signal, and why it failed."""
        reading, writing = os.pipe()
        try:
            guard = [sys.executable, "-I", "-S", str(Path(__file__).with_name("_child.py")), str(os.getpid())]
            self._child = subprocess.Popen(
                [*guard, *self._command],
                env={**os.environ, VARIABLE: str(writing)},
                pass_fds=(writing,),
                start_new_session=True,
            )
            if self._stop.is_set():  # asked to while it was being started
                self._child.terminate()
            status = self._child.wait()
            self._child = None
            os.set_blocking(reading, False)
            cause = _read(reading)
        finally:
            os.close(reading)
            os.close(writing)
        if status < 0:
            cause = f"the job was killed by signal {-status}{' (out of memory?)' * (status == -signal.SIGKILL)}"
        return status, cause or f"the job ended with status {status}"


def _read(descriptor: int) -> str:
    try:
        return os.read(descriptor, _CAUSE_BYTES).decode(errors="replace")
    except BlockingIOError:  # nothing was written
        return ""


def main() -> int:
    """Run the supervisor; its arguments come from `supervise`."""
    restart, log, log_level, *command = sys.argv[1:]
    configure_logging(json_lines=None if log == "auto" else log == "json", level=log_level)
    supervisor = Supervisor(command, None if restart == ALWAYS else int(restart))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, supervisor.request_stop)
    try:
        return supervisor.run()
    except MqtwinError as error:
        print("mqtwin:", error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
