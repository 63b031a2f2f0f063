"""The errors of mqtwin: every one says in one line what was wrong, where, and what would be right."""

from __future__ import annotations


class MqtwinError(Exception):
    """Something failed while running. The command line prints the message as one line and ends with exit status 1."""


class UsageError(MqtwinError):
    """Wrong use or wrong input (an option, an estate, a recording). The command line ends with exit status 2."""


class CutRecordingWarning(UserWarning):
    """The end of a recording is missing; what is there was read. The command line shows it as one line."""
