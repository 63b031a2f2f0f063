"""What Spark's JVM and the Python workers behind it write: into our log, not between its lines.

Python workers report every start and end of a task on standard error, and the JVM its use of an incubator module; a log
of JSON lines, or the demo's picture, must not be torn by that. Lines that log4j marks as warnings or errors keep their
level.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, TextIO

import structlog

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkConf

_LEVELS = {"ERROR": "error", "FATAL": "error", "WARN": "warning"}


def launch_java(conf: SparkConf) -> JavaGateway:
    """Start Spark's JVM for `conf`, its output going to the log of this process."""
    from pyspark.java_gateway import launch_gateway

    reading, writing = os.pipe()
    try:
        gateway = launch_gateway(conf, {"stdout": writing, "stderr": writing})
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    lines = os.fdopen(reading, encoding="utf-8", errors="replace")
    threading.Thread(target=_log_lines, args=(lines,), name="mqtwin-java-output", daemon=True).start()
    return gateway


def _log_lines(lines: TextIO) -> None:
    """Log every line until the JVM, and whoever inherited its output, has ended."""
    log = structlog.get_logger("mqtwin.java")
    with lines:
        for line in lines:
            text = line.rstrip()
            if text:
                getattr(log, level_of(text))(text)


def level_of(line: str) -> str:
    """The level a line of the JVM's output is logged at: what log4j says among its first words, else debug."""
    return next((_LEVELS[word] for word in line.split(maxsplit=4)[:4] if word in _LEVELS), "debug")
