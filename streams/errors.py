"""Causes of failures inside Spark, on one line."""

from __future__ import annotations

import errno
import re

LIMIT = 500

_PYTHON = re.compile(r"^(?:[\w.]*(?:Error|Exception|Interrupt|Exit)|twin\.\S+|streams\.\S+): (?P<message>.+)$")
_JAVA = re.compile(r"^(?:Caused by: |: )(?P<name>[\w.$]*(?:Exception|Error|Throwable)): (?P<message>.+)$")
_TRACE = re.compile(r"^\s+at |^\s*\.\.\. \d+ more|^\s*File \"|^Traceback ")


def one_line(error: BaseException | str) -> str:
    """Return the cause of an error on one line of at most `LIMIT` characters.

    Spark wraps a failure of a Python worker into Java exceptions whose text carries the Python traceback, and a failure
    of the JVM into a Python exception whose text carries the Java one. The innermost message is what helps: the last
    line of a Python traceback, else the last ``Caused by:``.
    """
    lines = str(error).strip().splitlines()
    if not lines:
        return type(error).__name__
    python = [line.strip() for line in lines if _PYTHON.match(line.strip()) and not line.lstrip().startswith("py4j.")]
    java = [match for line in lines if (match := _JAVA.match(line.strip()))]
    if python:
        text = python[-1]
    elif java:
        text = f"{java[-1]['name'].rpartition('.')[2]}: {java[-1]['message']}"
    else:
        text = next((line.strip() for line in lines if line.strip() and not _TRACE.match(line)), lines[0].strip())
    return text if len(text) <= LIMIT else text[: LIMIT - 1] + "…"


# What a system lacks for a while: a restart may find it again.
_PASSING = frozenset(
    {
        *(errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EIO, errno.ESTALE),
        errno.EFBIG,  # a limit of the process, which its administrator raises
    }
)
_PASSING_TEXT = re.compile(  # of Java and of `tempfile`, which pass on no number
    r"No space left on device|Disk quota exceeded|File too large|Cannot allocate memory|Too many open files"
    r"|Input/output error|OutOfMemoryError|No usable temporary directory",
    re.IGNORECASE,
)


def is_passing(error: BaseException) -> bool:
    """Return True if an error, or one that led to it, is a lack of room, memory or the like, which may pass."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in _PASSING:
            return True
        if isinstance(cause, MemoryError) or _PASSING_TEXT.search(str(cause)):
            return True
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return False
