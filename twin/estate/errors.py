"""The errors of an estate: wrong text (`EstateError`), and events that name what is not in it (`RoutingError`)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from twin.errors import MqtwinError, UsageError

_SHOWN = 60  # characters of a wrong value that a message repeats
_LONGEST = 2000  # characters of a message
_LISTED = 8  # names that a message lists


class EstateError(UsageError):
    """An estate, or attributes for it, that cannot be right.

    One line with file, line or key, value, what would be right; a line of a million letters is cut in its middle.
    """

    def __init__(self, text: str) -> None:
        """Keep the beginning and the end of a long text."""
        super().__init__(text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}...{text[-_LONGEST // 2 :]}")


class RoutingError(MqtwinError):
    """An event that names something the estate does not have; the message says what would be right."""


class UnknownQueueManager(RoutingError):  # noqa: N818  (says what is wrong without it)
    """No such queue manager in the estate."""


class UnknownQueue(RoutingError):  # noqa: N818  (says what is wrong without it)
    """That queue manager has no such queue with a store of the estate."""


class UnknownStore(RoutingError):  # noqa: N818  (says what is wrong without it)
    """No such store in the estate, or one that does not concern that queue manager."""


def shown(value: object) -> str:
    """A wrong value on one line, cut where it is long, in the words of TOML and JSON."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value[: 2 * _SHOWN] if isinstance(value, str) else value)
    if isinstance(value, str) and "'" not in value and text.startswith("'"):
        text = f'"{text[1:-1]}"'
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def did_you_mean(word: str, known: Iterable[str], closeness: float = 0.6) -> str:
    """The words "; did you mean X?" where a known word is that close to it (difflib's ratio), else the empty string."""
    best, name = 0.0, ""
    for candidate in sorted(known):
        if 2 * len(candidate) < closeness * len(word):  # a ratio is at most twice the shorter of both lengths together
            continue
        ratio = difflib.SequenceMatcher(None, word.casefold(), candidate.casefold()).ratio()
        if ratio > best:
            best, name = ratio, candidate
    return f"; did you mean {name}?" if best >= closeness else ""


def listed(names: Iterable[str]) -> str:
    """The names sorted, at most eight of them and how many more there are."""
    ordered = sorted(names)
    more = f" and {len(ordered) - _LISTED} more" if len(ordered) > _LISTED else ""
    return ", ".join(ordered[:_LISTED]) + more
