"""Errors of an estate: invalid text (`EstateError`), and events that name unknown objects (`RoutingError`)."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from twin.base.errors import MqtwinError, UsageError

_MAX_VALUE = 60  # characters of a wrong value that a message repeats
_MAX_MESSAGE = 2000  # characters of a message
_MAX_LISTED = 8  # names that a message lists


class EstateError(UsageError):
    """Invalid estate, or invalid attributes for one.

    The message is one line: file, line or key, value, expected value. A long message is cut in its middle.

    Attributes:
        others: messages of the further errors of the same estate, in the order of its texts.
    """

    def __init__(self, text: str, others: tuple[str, ...] = ()) -> None:
        """Keep the beginning and the end of a long text."""
        self.others = others
        super().__init__(
            text if len(text) <= _MAX_MESSAGE else f"{text[: _MAX_MESSAGE // 2]}...{text[-_MAX_MESSAGE // 2 :]}"
        )


class Problems:
    """Errors of an estate, collected so that one check reports all of them."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Keep an EstateError of the block and continue after the block."""
        try:
            yield
        except EstateError as error:
            self.messages += [str(error), *error.others]

    def raise_all(self) -> None:
        """Raise the first error with the others beside it; do nothing if there is none."""
        messages = list(dict.fromkeys(self.messages))
        if messages:
            raise EstateError(messages[0], tuple(messages[1:]))


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
    best, name = (0.0, False), ""
    for candidate in sorted(known):
        if 2 * len(candidate) < closeness * len(word):  # a ratio is at most twice the shorter of both lengths together
            continue
        ratio = difflib.SequenceMatcher(None, word.casefold(), candidate.casefold()).ratio()
        likeness = ratio, sorted(word.casefold()) == sorted(candidate.casefold())  # OFFLDTH2 is OFFLD2TH, not OFFLD1TH
        if likeness > best:
            best, name = likeness, candidate
    return f"; did you mean {name}?" if best[0] >= closeness else ""


def known_hint(word: str, known: Collection[str]) -> str:
    """Return the end of a sentence about an unknown word: the known word that is close to it, else the known words."""
    return did_you_mean(word, known) or f"; expected: {listed(known)}"


def listed(names: Iterable[str]) -> str:
    """Return up to eight names, sorted, and the number of the others."""
    ordered = sorted(names)
    more = f" and {len(ordered) - _MAX_LISTED} more" if len(ordered) > _MAX_LISTED else ""
    return ", ".join(ordered[:_MAX_LISTED]) + more
