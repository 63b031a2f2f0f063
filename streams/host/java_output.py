"""Forwarding of the output of Spark's JVM, and of its Python workers, to the log of this process.

Python workers report each start and end of a task on standard error, and the JVM reports its use of an incubator
module. Written directly, these lines would break a log of JSON lines, or the picture of the demo. Lines that log4j
marks as warnings or errors keep their level.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TextIO

import structlog

_LEVELS = {"ERROR": "error", "FATAL": "error", "WARN": "warning"}


def log_lines(lines: TextIO) -> None:
    """Log each line until the JVM, and every process that inherited its output, has ended."""
    log = structlog.get_logger("mqtwin.java")
    with lines:
        for line in lines:
            text = line.rstrip()
            if text:
                with suppress(
                    OSError
                ):  # nobody reads the log any more: Java must not wait for a reader because of that
                    getattr(log, parse_level(text))(text)


def parse_level(line: str) -> str:
    """Return the level to log a line of the JVM at: the level of log4j among its first words, else debug."""
    return next((_LEVELS[word] for word in line.split(maxsplit=4)[:4] if word in _LEVELS), "debug")
