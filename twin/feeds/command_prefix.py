"""Queue managers of command prefixes: the word behind the id of a message of MQ for z/OS.

A prefix has one to eight characters, of which the first may be any of . ( * & + - | ! ; $ ) % _ ? ' " = @ # and those
that code pages make of them, such as ] and [ [IBM: MQ 9.4, Defining command prefix strings]. It often ends with the
name of its queue manager, of one to four capitals and digits, but need not. Names of modules have eight letters.
"""

from __future__ import annotations

import re

from twin.feeds.intake import Intake
from twin.feeds.protocol import FeedOptions

_NAME = re.compile(r"[A-Z][A-Z0-9]{0,3}")
_MARKS = re.compile(r"^[^A-Za-z0-9]+|[^A-Za-z0-9]+$")
_PAIR = re.compile(r"[A-Z][A-Z0-9]{1,19}\(")  # KEY(VALUE), where a message has no prefix
_NONE = re.compile(r"[A-Z]+=|CSQ[A-Z0-9]{5}$|.*[a-z]")  # COUNT=, a module, a word of the text


def without_prefix(head: str) -> tuple[str, str]:
    """Return the command prefix of a message, "" if it has none, and the rest of its first line."""
    prefix, _, rest = head.partition(" ")
    if _PAIR.match(prefix) or _NONE.match(prefix):
        return "", head
    return prefix, rest


class CommandPrefixes:
    """Queue managers by command prefix: those that the user names, that the text shows, else those of the estate."""

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        """Start with the prefixes of the user."""
        self._intake = intake
        self._known = dict(options.prefixes)
        self._assumed: dict[str, str] = {}  # queue manager of a prefix that nothing has shown

    def learn(self, prefix: str, qmgr: str, place: str) -> None:
        """Keep the queue manager of a prefix that a message shows. What the user says counts more."""
        if not prefix or not qmgr or prefix in self._known:
            return
        self._known[prefix] = qmgr
        earlier = self._assumed.get(prefix, qmgr)
        if earlier != qmgr:
            text = f"the command prefix {prefix} was taken for {earlier} before; expected: --prefix '{prefix}={qmgr}'"
            self._intake.complain("no-prefix", place, text)

    def qmgr_of(self, prefix: str, current: str | None, place: str) -> str | None:
        """Return the queue manager of a prefix; None, with a complaint, if it is not known.

        Args:
            prefix: the prefix.
            current: queue manager of the text, as far as known.
            place: for complaints.
        """
        if not prefix:
            return current
        if prefix in self._known:
            return self._known[prefix]
        estate = self._intake.estate
        name = _MARKS.sub("", prefix)
        if estate is not None:
            known = next((own for own in (prefix, name) if own in estate.queue_managers), current)
            if known:
                return known
        elif not _NAME.fullmatch(name) and current:
            return current
        example = min(estate.queue_managers, default="QM01") if estate is not None else "QM01"
        is_name = _NAME.fullmatch(name) is not None
        if (estate is not None or not is_name) and prefix not in self._assumed:
            what = f"is taken for {name}, which the estate lacks" if is_name else "names no queue manager"
            text = f"the command prefix {prefix} {what}; expected: --prefix '{prefix}={example}'"
            self._intake.complain("no-prefix", place, text)
        self._assumed[prefix] = name if is_name else ""
        return name if is_name else None
