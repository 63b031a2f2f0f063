"""A command that gets each alert on its standard input: mail, a webhook, a message on the console of z/OS.

The environment has the brief of the alert, MQTWIN_BRIEF, at most three lines. One alert is in flight at a time, in the
order of the topic. A command that fails or hangs is started again, after growing pauses, and given up after some
attempts, so that one alert does not hold back all others.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress

import structlog

from deploy.show.terminal import printable
from twin.errors import UsageError
from twin.records import AlertRecord

BRIEF_VARIABLE = "MQTWIN_BRIEF"
_MAX_BRIEF = 2_000  # characters
_TIMEOUT_S = 60.0  # of one attempt
_PAUSES_S = (1.0, 5.0, 15.0, 60.0)  # before each further attempt
_LOOK_S = 0.1  # between two looks at the size of the output
_MAX_OUTPUT = 500  # characters of the command's output in the log
_MAX_PRINTED = 64 * 1024  # bytes of the output of one that succeeded
_MAX_OUTPUT_BYTES = 16 << 20  # with which it has failed

_log = structlog.get_logger()


class AlertCommand:
    """The command of ``mqtwin alerts --exec``.

    Attributes:
        undelivered: Alerts given up after the last attempt.
    """

    def __init__(
        self, command: str, *, timeout_s: float = _TIMEOUT_S, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Split a command as a shell would, and find its program.

        Args:
            command: Command and arguments; no shell runs it.
            timeout_s: Time after which an attempt is ended and has failed.
            sleep: Waits between attempts.

        Raises:
            UsageError: The command is empty, a quote is open, or there is no such program.
        """
        try:
            self._arguments = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"--exec {command}: {error}; expected: a command and its arguments") from None
        program = shutil.which(self._arguments[0]) if self._arguments else None
        if program is None:
            raise UsageError(f"--exec {command!r}: no such program; expected: a command and its arguments")
        self._timeout_s = timeout_s
        self._sleep = sleep
        self.undelivered = 0

    def deliver(self, alert: AlertRecord) -> bool:
        """Run the command with an alert as JSON on its standard input until it ends with 0; False: given up."""
        brief = "\n".join(printable(line) for line in alert.data.brief)[:_MAX_BRIEF]
        for attempt, pause_s in enumerate((*_PAUSES_S, None), 1):
            problem = self._run(alert.line.encode() + b"\n", brief)
            if problem is None:
                _log.info("alert delivered", id=alert.id, attempt=attempt)
                return True
            if pause_s is not None:
                _log.warning("alert not delivered yet", id=alert.id, attempt=attempt, why=problem, again_in_s=pause_s)
                self._sleep(pause_s)
        self.undelivered += 1
        _log.error("alert given up", id=alert.id, attempts=len(_PAUSES_S) + 1, why=problem)
        return False

    def _run(self, value: bytes, brief: str) -> str | None:
        """Run the command once; return what went wrong, None if it ended with 0. Its output goes to standard error."""
        try:
            with tempfile.TemporaryFile() as alert_file, tempfile.TemporaryFile() as output:
                alert_file.write(value)
                alert_file.seek(0)
                with subprocess.Popen(
                    self._arguments,
                    stdin=alert_file,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, BRIEF_VARIABLE: brief},
                ) as child:
                    try:
                        problem = self._wait(child, output.fileno())
                    finally:
                        child.kill()  # one that has ended is left alone
                output.seek(0)
                text = output.read(_MAX_PRINTED).decode(errors="replace")
        except OSError as error:
            return f"it cannot be started: {error.strerror}"
        if problem is None and child.returncode == 0:
            print(text, end="", file=sys.stderr, flush=True)
            return None
        return problem or f"exit status {child.returncode}: {' '.join(text.split())[:_MAX_OUTPUT]}"

    def _wait(self, child: subprocess.Popen[bytes], output: int) -> str | None:
        """Wait until the command has ended; return why it must be ended, None if it has.

        Its output is a file and not a pipe: processes that it leaves behind may hold a pipe open long after its end.
        """
        deadline_s = time.monotonic() + self._timeout_s
        while time.monotonic() < deadline_s:
            with suppress(subprocess.TimeoutExpired):
                child.wait(min(_LOOK_S, self._timeout_s))
                return None
            if os.fstat(output).st_size > _MAX_OUTPUT_BYTES:
                return f"more than {_MAX_OUTPUT_BYTES >> 20} MB of output"
        return f"no end after {self._timeout_s:g} s"
