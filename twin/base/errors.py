"""Errors of mqtwin. A message is one line: the fault, its place, and the expected value."""

from __future__ import annotations


class MqtwinError(Exception):
    """Failure while running. The command line prints the message as one line and exits with status 1."""


class UsageError(MqtwinError):
    """Wrong use or wrong input (an option, an estate, a recording). The command line exits with status 2."""


class CutRecordingWarning(UserWarning):
    """Warning that the end of a recording is missing and the rest was read. The command line prints it as one line."""
