"""Errors of an estate: invalid text (`EstateError`), and events that name unknown objects (`RoutingError`)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from twin.errors import MqtwinError, UsageError

_MAX_VALUE = 60  # characters of a wrong value that a message repeats
_MAX_MESSAGE = 2000  # characters of a message
_MAX_LISTED = 8  # names that a message lists


class EstateError(UsageError):
    """Invalid estate, or invalid attributes for one.

    The message is one line: file, line or key, value, expected value. A long message is cut in its middle.
    """

    def __init__(self, text: str) -> None:
        """Keep the beginning and the end of a long text."""
        super().__init__(
            text if len(text) <= _MAX_MESSAGE else f"{text[: _MAX_MESSAGE // 2]}...{text[-_MAX_MESSAGE // 2 :]}"
        )


class RoutingError(MqtwinError):
    """Event that names an object unknown to the estate."""


class UnknownQueueManager(RoutingError):  # noqa: N818  (says what is wrong without it)
    """The estate has no queue manager of that name."""


class UnknownQueue(RoutingError):  # noqa: N818  (says what is wrong without it)
    """The queue manager has no queue of that name with a store of the estate."""


class UnknownStore(RoutingError):  # noqa: N818  (says what is wrong without it)
    """The estate has no store of that name, or it does not concern the queue manager."""


def show(value: object) -> str:
    """Format an invalid value on one line as in TOML and JSON; a long one is cut."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value[: 2 * _MAX_VALUE] if isinstance(value, str) else value)
    if isinstance(value, str) and "'" not in value and text.startswith("'"):
        text = f'"{text[1:-1]}"'
    return text if len(text) <= _MAX_VALUE else text[: _MAX_VALUE - 3] + "..."


def did_you_mean(word: str, known: Iterable[str], closeness: float = 0.6) -> str:
    """Return "; did you mean X?" if a known word is close enough (ratio of difflib), else ""."""
    best, name = 0.0, ""
    for candidate in sorted(known):
        if 2 * len(candidate) < closeness * len(word):  # a ratio is at most twice the shorter of both lengths together
            continue
        ratio = difflib.SequenceMatcher(None, word.casefold(), candidate.casefold()).ratio()
        if ratio > best:
            best, name = ratio, candidate
    return f"; did you mean {name}?" if best >= closeness else ""


def listed(names: Iterable[str]) -> str:
    """Return up to eight names, sorted, and the number of the others."""
    ordered = sorted(names)
    more = f" and {len(ordered) - _MAX_LISTED} more" if len(ordered) > _MAX_LISTED else ""
    return ", ".join(ordered[:_MAX_LISTED]) + more
