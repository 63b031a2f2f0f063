"""DISPLAY commands in the two forms of the REST interface of MQ, and how an answer says that it succeeded.

Sources:
    [IBM: MQ 9.4, POST /admin/action/qmgr/{qmgrName}/mqsc]: `runCommandJSON` since 9.1.3, without DISPLAY USAGE, and
    `runCommand`. [IBM: MQ 9.4, DISPLAY SMDS, DISPLAY SMDSCONN]: CFSTRUCT names one structure, without generic names.
    [IBM: MQ 9.4, Rules for naming IBM MQ objects].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from twin.decoding import UNREADABLE
from twin.errors import UsageError
from twin.feeds.mqsc_objects import pairs

NAME_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789./_%"
MAX_NAME = 48
_NOTHING_FOUND = frozenset((2085, 3312))  # MQRC_UNKNOWN_OBJECT_NAME, MQRCCF_UNKNOWN_OBJECT_NAME
_NOTHING_FOUND_IDS = ("CSQM297I", "AMQ8147E", "AMQ8420I")
_ALL = ("ALL",)


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A DISPLAY command."""

    qualifier: str
    is_generic: bool = True
    parameters: tuple[tuple[str, str], ...] = ()
    attributes: tuple[str, ...] = ()
    is_text: bool = False

    def words(self, pattern: str, scope: str = "") -> str:
        """Return the command in words. pattern: a name, or the beginning of names and `*`; scope: "": no CMDSCOPE."""
        parameters = [*self.parameters, *([("CMDSCOPE", scope)] if scope else [])]
        name = f"({pattern})" if self.is_generic else ""
        words = [f"DISPLAY {self.qualifier}{name}", *(f"{word}({value})" for word, value in parameters)]
        return " ".join([*words, *self.attributes])

    def body(self, pattern: str, scope: str, *, is_text: bool) -> bytes:
        """Return the body of a request, see `words`; is_text: as text."""
        if is_text:
            command = self.words(pattern, scope)
            return msgspec.json.encode({"type": "runCommand", "parameters": {"command": command}})
        parameters = {word.lower(): value for word, value in self.parameters}
        body: dict[str, Any] = {"type": "runCommandJSON", "command": "display", "qualifier": self.qualifier.lower()}
        if self.is_generic:
            body["name"] = pattern
        if scope:
            parameters["cmdscope"] = scope
        if parameters:
            body["parameters"] = parameters
        if self.attributes:
            body["responseParameters"] = [attribute.lower() for attribute in self.attributes]
        return msgspec.json.encode(body)


QMGR = Command(qualifier="QMGR", is_generic=False, attributes=_ALL)
CFSTRUCT = Command(qualifier="CFSTRUCT", attributes=_ALL)
STGCLASS = Command(qualifier="STGCLASS", attributes=_ALL)
QLOCAL_ZOS = Command(qualifier="QLOCAL", attributes=("QSGDISP", "CFSTRUCT", "STGCLASS", "MAXDEPTH"))
QLOCAL = Command(qualifier="QLOCAL", attributes=("MAXDEPTH", "MAXFSIZE"))
CFSTATUS = Command(qualifier="CFSTATUS", parameters=(("TYPE", "SUMMARY"),))
CFSTATUS_SMDS = Command(qualifier="CFSTATUS", parameters=(("TYPE", "SMDS"),))
QSTATUS = Command(qualifier="QSTATUS", parameters=(("TYPE", "QUEUE"),), attributes=_ALL)
# Of a further member of a group: what differs from the others, whose answers show all of a shared queue. An application
# may have put or got here alone, so both times are asked for.
_OF_MEMBER = ("IPPROCS", "OPPROCS", "UNCOM", "LGETDATE", "LGETTIME", "LPUTDATE", "LPUTTIME")
QSTATUS_MEMBER = Command(qualifier="QSTATUS", parameters=(("TYPE", "QUEUE"),), attributes=_OF_MEMBER)
QSTATUS_PRIVATE = Command(
    qualifier="QSTATUS", parameters=(("TYPE", "QUEUE"),), attributes=(*_OF_MEMBER, "CURDEPTH", "MSGAGE")
)
USAGE = Command(qualifier="USAGE", is_generic=False, parameters=(("TYPE", "ALL"),), is_text=True)
QMSTATUS = Command(qualifier="QMSTATUS", is_generic=False, attributes=_ALL)


def smds(structure: str) -> Command:
    """Return the command for the data sets of a structure."""
    return Command(qualifier="SMDS", parameters=(("CFSTRUCT", structure),), attributes=_ALL)


def smds_connections(structure: str) -> Command:
    """Return the command for the connections of a queue manager to the data sets of a structure."""
    return Command(qualifier="SMDSCONN", parameters=(("CFSTRUCT", structure),))


def check_pattern(pattern: str) -> str:
    """Return a pattern of names. UsageError: it is none."""
    name = pattern.removesuffix("*")
    if not pattern or len(name) > MAX_NAME or not set(name) <= set(NAME_CHARACTERS):
        raise UsageError(f"--queues {pattern}; expected: a name, or the beginning of names and *, such as 'APP*'")
    return pattern


def parts(pattern: str) -> list[str]:
    """Return the patterns that cover the names of a pattern that ends in `*`, the name without it among them."""
    beginning = pattern[:-1]
    longer = [f"{beginning}{character}*" for character in NAME_CHARACTERS] if len(beginning) < MAX_NAME else []
    return ([beginning] if beginning else []) + longer


class Response(msgspec.Struct):
    """A response to a command, in an answer."""

    completionCode: int = 0  # noqa: N815 -- IBM's name
    reasonCode: int = 0  # noqa: N815 -- IBM's name
    parameters: dict[str, Any] = {}
    text: list[str] | str = []
    message: list[str] | str = []

    def lines(self) -> list[str]:
        """Return its lines."""
        return [line for own in (self.text, self.message) for line in ([own] if isinstance(own, str) else own)]

    def has_found_nothing(self) -> bool:
        """Return True if there is no object of this name."""
        words = " ".join(self.lines())
        return self.reasonCode in _NOTHING_FOUND or any(own in words for own in _NOTHING_FOUND_IDS)

    def fields(self) -> dict[str, str]:
        """Return values by keyword, in upper case."""
        if self.parameters:
            return {word.upper(): str(value).strip() for word, value in self.parameters.items()}
        return dict(pairs(self.lines()))


class _Error(msgspec.Struct):
    message: str = ""


class AnswerBody(msgspec.Struct):
    """Success or failure in the body of an answer; what it shows is read by the feed."""

    commandResponse: list[Response] = []  # noqa: N815 -- IBM's name
    overallCompletionCode: int = 0  # noqa: N815 -- IBM's name
    overallReasonCode: int = 0  # noqa: N815 -- IBM's name
    error: list[_Error] = []

    def has_objects(self) -> bool:
        """Return True if at least a part of the command succeeded."""
        if not self.overallCompletionCode:
            return True
        return any(not own.completionCode and (own.parameters or own.text) for own in self.commandResponse)

    def has_found_nothing(self) -> bool:
        """Return True if the command failed because there are no such objects."""
        return bool(self.commandResponse) and all(own.has_found_nothing() for own in self.commandResponse)

    def failure(self) -> str:
        """Return the reason and the messages, as one line."""
        lines = [line.strip() for own in self.commandResponse for line in own.lines()]
        return " ".join([f"reason {self.overallReasonCode}", *lines])

    def objects(self) -> Iterator[dict[str, str]]:
        """Yield the values of each response by keyword."""
        for response in self.commandResponse:
            yield response.fields()


_decode = msgspec.json.Decoder(AnswerBody).decode


def decode_answer(data: bytes) -> AnswerBody | None:
    """Return the body of an answer; None if it has not its form."""
    try:
        return _decode(data)
    except UNREADABLE:
        return None
