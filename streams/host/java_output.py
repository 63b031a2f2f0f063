"""What Spark's JVM and the Python workers behind it write: into our log, not between its lines.

Python workers report every start and end of a task on standard error, and the JVM its use of an incubator module; a log
of JSON lines, or the demo's picture, must not be torn by that. Lines that log4j marks as warnings or errors keep their
level.
"""

from __future__ import annotations

from typing import TextIO

import structlog

_LEVELS = {"ERROR": "error", "FATAL": "error", "WARN": "warning"}


def log_lines(lines: TextIO) -> None:
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
