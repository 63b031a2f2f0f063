"""``python -m deploy.supervisor FAILURES LOG LEVEL COMMAND...``: restarts of a command that fails.

`mqtwin stream --restart` becomes this program, so that the process that waits for months is small: it imports neither
Spark nor numba. The command is a child in a session of its own, so a stop signal reaches it once, from here. Each
restart logs the failure that the command reported (`reported_failure`). If this process is killed, the child is killed
too. `mqtwin start --live` supervises several commands, each in a thread of its own (:mod:`deploy.live`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO, NoReturn

import structlog

from streams.errors import is_passing
from streams.host.signals import STOP_SIGNALS, StopRequest
from streams.log import configure_logging
from twin.base.errors import MqtwinError, UsageError

VARIABLE = "MQTWIN_SUPERVISED"  # environment variable of the command: the descriptor to which it writes its failure
ALWAYS, NEVER = "always", "never"
FIRST_WAIT_SECONDS = 1.0  # doubled after each failure in a row
MAX_WAIT_SECONDS = 300.0
GOOD_SECONDS = 3600.0  # a run of this length ends a row of failures
_WRONG_USE = 2
_CAUSE_BYTES = 4096  # a pipe buffers this much without a reader
_LINE_BYTES = 64 * 1024  # of output without an end of line that are one line
_OUTPUT_SECONDS = 2.0  # for the output of a command that has ended: another process may have inherited it
_ERROR, _WARNING = "mqtwin: ", "mqtwin: warning: "


def is_supervised() -> bool:
    """Return True in a process that a supervisor started."""
    return VARIABLE in os.environ


def supervise(restart: str, log: str, log_level: str) -> NoReturn:
    """Replace this process by a supervisor that runs the same command line."""
    module = ["-m", "deploy.supervisor", restart, log, log_level]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *module, sys.executable, *sys.orig_argv[1:]])  # noqa: S606 -- the command is our own


def check_restart(text: str) -> None:
    """Raise UsageError unless `text` is never, always or a positive number."""
    if text not in {ALWAYS, NEVER} and not (text.isascii() and text.isdigit() and int(text) > 0):
        raise UsageError(f"--restart {text}; expected: {NEVER}, {ALWAYS}, or a number of failures in a row, 1 or more")


@contextmanager
def reported_failure() -> Iterator[None]:
    """Report a failure within the block to the supervisor, which logs it. Without a supervisor, raise it as usual.

    A UsageError stays one, as no restart helps, unless the system lacks room, memory or the like: that may pass.
    """
    try:
        yield
    except MqtwinError as error:
        if isinstance(error, UsageError) and not is_passing(error):
            raise
        if not is_supervised() or os.environ.get("MQTWIN_DEBUG", "") == "1":
            raise MqtwinError(str(error)) from error
        os.write(int(os.environ[VARIABLE]), str(error).encode()[:_CAUSE_BYTES])
        raise SystemExit(1) from error


class Supervisor:
    """A process that runs a command and restarts it after failures. It gives up after `max_failures` in a row; None:
    never. Each line of the command goes to `on_line`, without its end, in another thread; without it the command writes
    where this process does. `on_restart` gets the cause and the seconds until the restart, which are logged without it.
    """

    def __init__(
        self,
        command: Callable[[], Sequence[str]],
        max_failures: int | None,
        *,
        name: str = "the job",
        on_line: Callable[[str], None] | None = None,
        on_restart: Callable[[str, float], None] | None = None,
    ) -> None:
        self.is_up = False  # set by its owner when the command works: from then on it never gives up, each end fails
        self._command, self._max_failures, self._name, self._on_line = command, max_failures, name, on_line
        self._on_restart = on_restart
        self._last_error = ""
        self._stop = StopRequest()
        self._child: subprocess.Popen[bytes] | None = None
        self._log = structlog.get_logger("mqtwin.supervisor")

    @property
    def pid(self) -> int | None:
        """The process id of the command; None while it does not run."""
        child = self._child
        return None if child is None else child.pid

    def run(self) -> int:
        """Run the command until it succeeds, is used wrongly or is asked to stop, and return its exit status.
        UsageError: It was used wrongly, and said why on a line that `on_line` got. MqtwinError: There were too many
        failures in a row. The message is the last cause.
        """
        failures = 0
        while True:
            started = time.monotonic()
            status, cause = self._run_command()
            if self._stop.is_set() and (status < 0 or self.is_up):  # stopped before it handled signals
                return max(status, 0)
            if status == _WRONG_USE and self._last_error and not self.is_up:
                raise UsageError(cause)
            if status in {0, _WRONG_USE} and not self.is_up:
                return status
            if self._stop.is_set():
                raise MqtwinError(cause)
            failures = 1 if time.monotonic() - started >= GOOD_SECONDS else failures + 1
            if self._max_failures is not None and failures > self._max_failures and not self.is_up:
                raise MqtwinError(f"{cause}; failures in a row: {failures}, --restart {self._max_failures}: given up")
            wait = min(MAX_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** min(failures - 1, 30))
            if self._on_restart is not None:
                self._on_restart(cause, wait)
            else:
                self._log.warning("restarting", cause=cause, failures=failures, wait_seconds=wait)
            if self._stop.wait(wait):
                return 0

    def request_stop(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """Ask the command to stop, and do not restart it. A signal handler, too."""
        self._stop.request()
        child = self._child
        if child is not None:
            child.terminate()

    def kill(self) -> None:
        """Kill the command; after `request_stop` it is not restarted."""
        child = self._child
        if child is not None:
            child.kill()

    def _run_command(self) -> tuple[int, str]:
        """Run the command to its end. Return its exit status, negative after a signal, and the cause of a failure."""
        self._last_error = ""
        read_end, write_end = os.pipe()
        output = None if self._on_line is None else subprocess.PIPE
        try:
            wrapper = [sys.executable, "-I", "-S", str(Path(__file__).with_name("_child.py")), str(os.getpid())]
            child = self._child = subprocess.Popen(
                [*wrapper, *self._command()],
                env={**os.environ, VARIABLE: str(write_end)},
                pass_fds=(write_end,),
                start_new_session=True,
                stdin=None if output is None else subprocess.DEVNULL,
                stdout=output,
                stderr=None if output is None else subprocess.STDOUT,
            )
            if self._stop.is_set():  # the request came during the start
                child.terminate()
            reader = threading.Thread(target=self._read_lines, args=(child.stdout,), daemon=True)
            reader.start()
            status = child.wait()
            self._child = None
            reader.join(_OUTPUT_SECONDS)
            os.set_blocking(read_end, False)
            cause = _read(read_end) or self._last_error
        finally:
            os.close(read_end)
            os.close(write_end)
        if status < 0:
            cause = f"{self._name} was killed by signal {-status}{' (out of memory?)' * (status == -signal.SIGKILL)}"
        return status, cause or f"{self._name} ended with status {status}"

    def _read_lines(self, output: IO[bytes] | None) -> None:
        """Pass on the lines of the command, and keep its last error."""
        if output is None or self._on_line is None:
            return
        with output:
            while data := output.readline(_LINE_BYTES):
                line = data.decode(errors="replace").rstrip()
                if line.startswith(_ERROR) and not line.startswith(_WARNING):
                    self._last_error = line.removeprefix(_ERROR)
                self._on_line(line)


def _read(descriptor: int) -> str:
    try:
        return os.read(descriptor, _CAUSE_BYTES).decode(errors="replace")
    except BlockingIOError:  # the command has written nothing
        return ""


def main() -> int:
    """Run the supervisor with the arguments from `supervise`."""
    restart, log, log_level, *command = sys.argv[1:]
    configure_logging(json_lines=None if log == "auto" else log == "json", level=log_level)
    supervisor = Supervisor(lambda: command, None if restart == ALWAYS else int(restart))
    for number in STOP_SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP
            signal.signal(number, supervisor.request_stop)
    try:
        return supervisor.run()
    except MqtwinError as error:
        print("mqtwin:", error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
