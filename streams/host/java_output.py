"""Forwarding of the output of Spark's JVM, and of its Python workers, to the log of this process.

Python workers report each start and end of a task on standard error, and the JVM reports its use of an incubator
module. Written directly, these lines would break a log of JSON lines, or the picture of the demo. Lines that log4j
marks as warnings or errors keep their level.
"""

from __future__ import annotations

import re
from collections import deque
from contextlib import suppress
from typing import TextIO

import structlog

_LEVELS = {"ERROR": "error", "FATAL": "error", "WARN": "warning"}


LAST_LINES = 20
# Lines that say nothing about a cause: where in the code, and what java prints after each of its errors.
_EMPTY = re.compile(
    r"\s+at |Error: (Could not create the Java Virtual Machine|A fatal exception has occurred)|WARNING: "
)


def log_lines(lines: TextIO, last: deque[str] | None = None) -> None:
    """Log each line until the JVM, and every process that inherited its output, has ended.

    Args:
        lines: the output.
        last: receives the lines.
    """
    log = structlog.get_logger("mqtwin.java")
    with lines:
        for line in lines:
            text = line.rstrip()
            if text:
                if last is not None:
                    last.append(text)
                with suppress(OSError):  # nobody reads the log any more: Java must not wait for a reader
                    getattr(log, parse_level(text))(text)


def last_words(last: deque[str]) -> str:
    """Return the last line of a JVM that has ended which says why; empty if it has printed nothing."""
    telling = [line for line in last if not _EMPTY.match(line)]
    return (telling or list(last) or [""])[-1].strip()


def parse_level(line: str) -> str:
    """Return the level to log a line of the JVM at: the level of log4j among its first words, else debug."""
    return next((_LEVELS[word] for word in line.split(maxsplit=4)[:4] if word in _LEVELS), "debug")
