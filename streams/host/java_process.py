"""Spark's Java process: started so that signals meant for this process do not reach it, ended with this process."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import structlog

from streams.host.java_output import log_lines
from streams.host.scratch import ScratchDirectory, crash_report, temporary_base

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkConf, SparkContext

END_SECONDS = 5.0  # for Java to end by itself when its input is closed
GONE_SECONDS = 2.0  # between a connection that breaks and the end of the process that broke it


class _LaunchOptions(dict[str, Any]):
    """Options of `subprocess.Popen` for Spark's Java; PySpark adds its own two, which are extended here.

    Java gets a session of its own: Ctrl-C, `timeout` and `kill -- -PGID` reach the whole process group, and Java would
    stop under the driver's hands while the last batch is running. systemd's default KillMode reaches every process of
    the service, so Java ignores SIGTERM too. It ends when its standard input is closed, that is, with this process.
    """

    def __init__(self, environment: Mapping[str, str], **options: Any) -> None:
        super().__init__(options, start_new_session=True)
        self._environment = environment

    def __setitem__(self, key: str, value: Any) -> None:
        if key == "preexec_fn":
            value = _ignoring_sigterm(value)
        elif key == "env":
            value = {**value, **self._environment}
        super().__setitem__(key, value)


def _ignoring_sigterm(before: Callable[[], None]) -> Callable[[], None]:
    def prepare() -> None:
        before()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # Java leaves a signal alone that is ignored when it starts

    return prepare


def launch_java(conf: SparkConf, scratch: list[ScratchDirectory], environment: Mapping[str, str]) -> JavaGateway:
    """Start Spark's JVM, its output going to the log of this process.

    Args:
        conf: Spark's settings.
        scratch: directories to remove when it has ended.
        environment: variables for it, beside those of this process.
    """
    from pyspark.java_gateway import launch_gateway

    _quiet_py4j()
    reading, writing = os.pipe()
    try:
        gateway = launch_gateway(conf, _LaunchOptions(environment, stdout=writing, stderr=writing))
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    lines = os.fdopen(reading, encoding="utf-8", errors="replace")
    threading.Thread(target=log_lines, args=(lines,), name="mqtwin-java-output", daemon=True).start()
    atexit.register(_end_java, gateway.proc, scratch)
    return gateway


def gone_java(wait_seconds: float = 0.0) -> str:
    """Return how Spark's Java process has ended, as a sentence; empty while it runs, or where there is none of ours."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway  # noqa: SLF001 -- PySpark has no other way to ask
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None:
        return ""
    try:
        status = process.wait(wait_seconds)
    except subprocess.TimeoutExpired:
        return ""
    if status == -signal.SIGABRT:  # how a Java that crashes ends
        how = f"it crashed: {crash_report(temporary_base())} says where"
    else:
        how = f"signal {-status}: killed? out of memory?" if status < 0 else f"exit status {status}"
    return f"Spark's Java process {process.pid} is gone ({how})"


def _end_java(process: subprocess.Popen[bytes], scratch: list[ScratchDirectory]) -> None:
    """End Java and remove what it wrote for its lifetime.

    With Spark stopped there is nothing left for it to do, and it is killed: an orderly end runs the destructors of
    RocksDB beside RocksDB's own threads, which has crashed it (SIGSEGV in DBImpl::PersistStats). Else its input is
    closed, which lets it stop Spark first.
    """
    from pyspark import SparkContext

    if SparkContext._active_spark_context is None:  # noqa: SLF001 -- PySpark has no other way to ask
        process.kill()
    elif process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for directory in scratch:
        directory.remove()


def quiet_updates(context: SparkContext) -> None:
    """Let PySpark's server of accumulator updates log a broken connection for debugging, not print a traceback."""
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: structlog.get_logger("mqtwin.java").debug("a connection of Java's broke")


def _quiet_py4j() -> None:
    """Send what Py4J logs of broken connections to our log, for debugging; the failure itself is raised.

    It logs by way of the root logger too, which without a handler would print to standard error.
    """
    for logger in (logging.getLogger("py4j"), logging.getLogger()):
        if not logger.handlers:
            logger.addHandler(_ToLog())
    logging.getLogger("py4j").propagate = False


class _ToLog(logging.Handler):
    """Hands records of the standard library's logging to structlog: Py4J's at debug, others at their level."""

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger("mqtwin.java")
        of_py4j = record.name.startswith("py4j") or "py4j" in record.pathname
        level = logging.DEBUG if of_py4j else record.levelno
        log.log(level, record.getMessage())
