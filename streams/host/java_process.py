"""Spark's Java process: shielded from signals that are meant for this process, ended together with it.

The output of the JVM and of its Python workers goes to the log of this process. Python workers report each start and
end of a task on standard error, and the JVM reports its use of an incubator module. Written directly, these lines would
break a log of JSON lines, or the picture of the demo. Lines that log4j marks as warnings or errors keep their level.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

import structlog
from typing_extensions import override

from streams.host.resources import ScratchDirectory, crash_report, temporary_base
from twin.base.errors import MqtwinError

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkConf, SparkContext

EXIT_SECONDS = 5.0  # Java may take this long to exit by itself after its input was closed
DOCTOR = "`mqtwin doctor` says what is missing"  # end of a message
DEATH_SECONDS = 2.0  # a broken connection may precede the end of the process by this long
_LEVELS = {"ERROR": "error", "FATAL": "error", "WARN": "warning"}
_LAST_LINES = 20
# Lines that say nothing about a cause: where in the code, and what java prints after each of its errors.
_EMPTY = re.compile(
    r"\s+at |Error: (Could not create the Java Virtual Machine|A fatal exception has occurred)|WARNING: "
)


class _LaunchOptions(dict[str, Any]):
    """Options of `subprocess.Popen` for Spark's Java; the two that PySpark sets are extended here.

    Java gets a session of its own: Ctrl-C, `timeout` and `kill -- -PGID` signal the whole process group and would stop
    Java while the driver finishes its last batch. Java also ignores SIGTERM, because systemd's default KillMode signals
    every process of the service. It ends when its standard input is closed, that is, with this process.
    """

    def __init__(self, environment: Mapping[str, str], **options: Any) -> None:
        super().__init__(options, start_new_session=True)
        self._environment = environment

    def __setitem__(self, key: str, value: Any) -> None:
        if key == "preexec_fn":
            value = _ignore_sigterm_after(value)
        elif key == "env":
            value = {**value, **self._environment}
        super().__setitem__(key, value)


def _ignore_sigterm_after(inner: Callable[[], None]) -> Callable[[], None]:
    def prepare() -> None:
        inner()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # Java installs no handler for a signal that is ignored at start

    return prepare


def launch_java(conf: SparkConf, scratch: list[ScratchDirectory], environment: Mapping[str, str]) -> JavaGateway:
    """Start Spark's JVM and log its output. MqtwinError: it ended before it answered; the message has its last line."""
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    _quiet_py4j()
    reading, writing = os.pipe()
    last: deque[str] = deque(maxlen=_LAST_LINES)
    lines = os.fdopen(reading, encoding="utf-8", errors="replace")
    reader = threading.Thread(target=log_lines, args=(lines, last), name="mqtwin-java-output", daemon=True)
    try:
        reader.start()
        gateway = launch_gateway(conf, _LaunchOptions(environment, stdout=writing, stderr=writing))
    except PySparkRuntimeError as error:
        os.close(writing)
        writing = -1
        reader.join(DEATH_SECONDS)
        telling = [line for line in last if not _EMPTY.match(line)]  # the last line that says why
        why = (telling or list(last) or [""])[-1].strip() or "it printed nothing"
        raise MqtwinError(f"Spark's Java ended before it answered: {why}; {DOCTOR}") from error
    finally:
        if writing >= 0:
            os.close(writing)
    atexit.register(_end_java, gateway.proc, scratch)
    return gateway


def kill_java() -> None:
    """Kill the Java process that this process started, and wait for its end: of one that does not answer any more."""
    from pyspark import SparkContext

    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001
    if process is not None:
        process.kill()
        process.wait()


def explain_java_exit(wait_seconds: float = 0.0) -> str:
    """Return a sentence about the end of Spark's Java process; empty while it runs, or if this process started none."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway  # noqa: SLF001 -- PySpark has no other way to ask
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None:
        return ""
    try:
        status = process.wait(wait_seconds)
    except subprocess.TimeoutExpired:
        return ""
    if status == -signal.SIGABRT:  # a Java that crashes ends with this signal
        how = f"it crashed: {crash_report(temporary_base())} says where"
    else:
        how = f"signal {-status}: killed? out of memory?" if status < 0 else f"exit status {status}"
    return f"Spark's Java process {process.pid} is gone ({how})"


def _end_java(process: subprocess.Popen[bytes], scratch: list[ScratchDirectory]) -> None:
    """End Java and remove its scratch directories.

    If Spark is stopped, Java has nothing left to do and is killed: an orderly exit runs the destructors of RocksDB
    beside the threads of RocksDB, which has crashed it (SIGSEGV in DBImpl::PersistStats). Otherwise its input is
    closed, so that it stops Spark first.
    """
    from pyspark import SparkContext

    if SparkContext._active_spark_context is None:  # noqa: SLF001 -- PySpark has no other way to ask
        process.kill()
    elif process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(EXIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for directory in scratch:
        directory.remove()


def quiet_updates(context: SparkContext) -> None:
    """Make PySpark's accumulator server log a broken connection at debug level instead of printing a traceback."""
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: structlog.get_logger("mqtwin.java").debug("a connection of Java's broke")


def _quiet_py4j() -> None:
    """Send Py4J's messages about broken connections to our log at debug level; the failure itself is raised.

    Py4J also uses the root logger, which would print to standard error if it had no handler.
    """
    for logger in (logging.getLogger("py4j"), logging.getLogger()):
        if not logger.handlers:
            logger.addHandler(_ToLog())
    logging.getLogger("py4j").propagate = False


class _ToLog(logging.Handler):
    """A handler that passes records of the standard library's logging to structlog, those of Py4J at debug level."""

    @override
    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger("mqtwin.java")
        is_py4j = record.name.startswith("py4j") or "py4j" in record.pathname
        level = logging.DEBUG if is_py4j else record.levelno
        log.log(level, record.getMessage())


def log_lines(lines: TextIO, last: deque[str]) -> None:
    """Log each line until the JVM, and every process that inherited its output, has ended."""
    log = structlog.get_logger("mqtwin.java")
    with lines:
        for line in lines:
            text = line.rstrip()
            if text:
                last.append(text)
                words = text.split(maxsplit=4)[:4]  # among them is the level of log4j
                with suppress(OSError):  # nobody reads the log any more: Java must not wait for a reader
                    getattr(log, next((_LEVELS[word] for word in words if word in _LEVELS), "debug"))(text)
