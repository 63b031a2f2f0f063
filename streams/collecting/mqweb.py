"""Rounds of DISPLAY commands to queue managers through the administrative REST interface of an mqweb server.

The command server of a queue manager runs one command after another, for other users, too. So one request is made at a
time; what failed waits longer each time; and after a request without an answer, which may still be running, nothing is
asked there for as long as the server may take. A round asks what it can and never waits: what is missing comes with a
later round.

Sources:
    [IBM: MQ 9.4, POST /admin/action/qmgr/{qmgrName}/mqsc; REST API versions; Using token-based authentication with the
    REST API; Configuring the response timeout; REST API error handling]: version 3 since 9.3.0, 2 since 9.1.5, 1
    before; `runCommandJSON` since 9.1.3, without DISPLAY USAGE; a timeout of 30 s; 503 for a queue manager that does
    not run. [IBM: MQ 9.4, DISPLAY SMDS, DISPLAY SMDSCONN]: CFSTRUCT names one structure.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec
from typing_extensions import override

from streams.collecting.http import Answer, HttpClient, Requester, RequestError
from streams.collecting.sources import Position, Source
from twin.errors import UsageError
from twin.estate import Estate, Structure
from twin.feeds import Feed, Page
from twin.feeds.mqsc_objects import pairs
from twin.units import as_count

VERSIONS = (3, 2, 1)  # of the REST interface, newest first
DEADLINE_S = 35.0  # of a request: mqRestRequestTimeout, 30 s by default, and a margin
MAX_ANSWER_BYTES = 16 << 20  # of an answer; one that is larger is asked for by parts of the names
MAX_ROUND_BYTES = 128 << 20  # of the answers of a round
MAX_PATTERNS = 2_000  # into which the names of one command are cut
FIRST_WAIT_S = 10.0  # after a first failure; doubled with each further one
MAX_WAIT_S = 300.0
MAX_RETRY_AFTER_S = 3600.0  # that a server may ask for
REFUSED_S = 3600.0  # after 401, unless the password changes: more attempts would revoke the user
DEFINITIONS_S = 3600.0  # between two rounds of definitions
_MAX_ERROR_BYTES = 64 << 10  # of an answer that is not one to a command
_MAX_TEXT = 300  # characters of an error of the server
_NAME_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789./_%"  # [IBM: MQ, Rules for naming]
_MAX_NAME = 48
_NOTHING_FOUND = frozenset((2085, 3312))  # MQRC_UNKNOWN_OBJECT_NAME, MQRCCF_UNKNOWN_OBJECT_NAME
_NOTHING_FOUND_IDS = ("CSQM297I", "AMQ8147E", "AMQ8420I")
_WAIT_S = 0.2  # that `read` waits at most
_SAY_US = 3_600_000_000  # between two lines about rounds

ZOS, DISTRIBUTED = "zos", "distributed"


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A DISPLAY command.

    Args:
        qualifier: the kind of object.
        is_generic: True if it takes a name.
        parameters: further keywords and their values.
        attributes: attributes to show.
        is_text: True if the JSON form does not take it.
    """

    qualifier: str
    is_generic: bool = True
    parameters: tuple[tuple[str, str], ...] = ()
    attributes: tuple[str, ...] = ()
    is_text: bool = False

    def words(self, pattern: str, scope: str = "") -> str:
        """Return the command in words.

        Args:
            pattern: a name, or the beginning of names and `*`.
            scope: for CMDSCOPE; "" without it.
        """
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


_ALL = ("ALL",)
QMGR = Command(qualifier="QMGR", is_generic=False, attributes=_ALL)
CFSTRUCT = Command(qualifier="CFSTRUCT", attributes=_ALL)
STGCLASS = Command(qualifier="STGCLASS", attributes=_ALL)
QLOCAL_ZOS = Command(qualifier="QLOCAL", attributes=("QSGDISP", "CFSTRUCT", "STGCLASS", "MAXDEPTH"))
QLOCAL = Command(qualifier="QLOCAL", attributes=("MAXDEPTH", "MAXFSIZE"))
CFSTATUS = Command(qualifier="CFSTATUS", parameters=(("TYPE", "SUMMARY"),))
CFSTATUS_SMDS = Command(qualifier="CFSTATUS", parameters=(("TYPE", "SMDS"),))
QSTATUS = Command(qualifier="QSTATUS", parameters=(("TYPE", "QUEUE"),), attributes=_ALL)
USAGE = Command(qualifier="USAGE", is_generic=False, parameters=(("TYPE", "ALL"),), is_text=True)
QMSTATUS = Command(qualifier="QMSTATUS", is_generic=False, attributes=_ALL)


def _smds(qualifier: str, structure: str) -> Command:
    return Command(qualifier=qualifier, parameters=(("CFSTRUCT", structure),))


def microseconds() -> int:
    """Return the time, microseconds since 1970."""
    return time.time_ns() // 1000


# --- answers ---------------------------------------------------------------------------------------------------------


class _Response(msgspec.Struct):
    completionCode: int = 0  # noqa: N815 -- IBM's name
    reasonCode: int = 0  # noqa: N815 -- IBM's name
    parameters: dict[str, Any] = {}
    text: list[str] | str = []
    message: list[str] | str = []

    def lines(self) -> list[str]:
        """Return its lines."""
        return [line for own in (self.text, self.message) for line in ([own] if isinstance(own, str) else own)]

    def found_nothing(self) -> bool:
        return self.reasonCode in _NOTHING_FOUND or any(
            word in line for word in _NOTHING_FOUND_IDS for line in self.lines()
        )

    def fields(self) -> dict[str, str]:
        """Return values by keyword, in upper case."""
        if self.parameters:
            return {word.upper(): str(value).strip() for word, value in self.parameters.items()}
        return dict(pairs(self.lines()))


class _Error(msgspec.Struct):
    message: str = ""


class _Body(msgspec.Struct):
    """What of an answer says whether a command succeeded."""

    commandResponse: list[_Response] = []  # noqa: N815 -- IBM's name
    overallCompletionCode: int = 0  # noqa: N815 -- IBM's name
    overallReasonCode: int = 0  # noqa: N815 -- IBM's name
    error: list[_Error] = []


_decode_body = msgspec.json.Decoder(_Body).decode


class _FailureError(Exception):
    """What failed, and how it is handled.

    Args:
        code: of the complaint.
        text: what happened and what was expected, without times.
        key: what is not asked for a while: () the server, (queue manager,), or a part of it.
        least_s: seconds that it is not asked at least.
    """

    def __init__(self, code: str, text: str, key: tuple[str, ...], least_s: float = 0.0) -> None:
        super().__init__(text)
        self.code = code
        self.key = key
        self.least_s = least_s


class _TooLargeError(Exception):
    """An answer that is larger than the bound."""


class _RefusedFormError(Exception):
    """A JSON form that the server refuses; the text says why."""


@dataclass
class _Pause:
    """What failed: number of failures, since when and until when it is not asked, microseconds; the last complaint."""

    count: int = 0
    since: int = 0
    until: int = 0
    said: tuple[str, str] = ("", "")

    def is_on(self, now: int) -> bool:
        return self.since <= now < self.until  # a clock that is set back ends it


@dataclass
class _Round:
    """A round: its start, microseconds; what was asked and answered so far."""

    start: int
    requester: Requester
    pages: list[Page] = field(default_factory=list)
    bodies: list[_Body] = field(default_factory=list)
    request_count: int = 0
    byte_count: int = 0


class _About(NamedTuple):
    """What is known of a queue manager: platform, and queue-sharing group, "" without one."""

    platform: str
    group: str


# --- the client ------------------------------------------------------------------------------------------------------


class Mqweb:
    """Rounds of commands to queue managers of one server.

    Args:
        url: address of the server, http or https, host and port.
        qmgrs: names of the queue managers to ask. Other members of their groups, by the estate, are asked through them.
        client: certificates and login.
        estate: platforms and groups before the queue managers say so; None: nothing is known.
        complain: called with the code, place and text of a failure, once until it changes.
        queues: names of queues to ask for, such as `APP*`.
        gateway: gateway queue manager through which the server reaches the others; None: its own.
        has_token: log in for a token instead of sending the password with each request.
        clock: time, microseconds since 1970.
        say: called with what is worth a line and is no failure.

    Raises:
        UsageError: a name is none of MQ.
    """

    def __init__(
        self,
        url: str,
        qmgrs: Sequence[str],
        client: HttpClient,
        estate: Estate | None,
        *,
        complain: Callable[[str, str, str], None],
        queues: str = "*",
        gateway: str | None = None,
        has_token: bool = False,
        clock: Callable[[], int] = microseconds,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.name = url.rstrip("/")
        self.clock = clock
        self._qmgrs = list(dict.fromkeys(qmgrs))
        self._client = client
        self._complain = complain
        self._say = say
        self._queues = _check_pattern(queues)
        self._has_token = has_token
        self._headers = {
            "Content-Type": "application/json;charset=utf-8",
            "Accept": "application/json",
            "ibm-mq-rest-csrf-token": "mqtwin",  # any value, but present
            **({} if gateway is None else {"ibm-mq-rest-gateway-qmgr": _check_name("--gateway", gateway)}),
        }
        if not self._qmgrs:
            raise UsageError("no queue manager to ask; expected: --qmgr QM01,QM02")
        for qmgr in self._qmgrs:
            _check_name("--qmgr", qmgr)
        if has_token and client.user is None:
            raise UsageError("--token-login needs a user; expected: --user and --password-file")
        self._version: int | None = None
        self._cookie = ""
        self._refused: object = None  # credentials that the server refused
        self._pauses: dict[tuple[str, ...], _Pause] = {}
        self._texts: set[tuple[str, str]] = set()  # (queue manager, kind) whose JSON form is refused
        self._cut: dict[tuple[str, str, str], set[str]] = {}  # patterns whose answers are too large
        self._answering: dict[str, str] = {}  # by group: the member that answered for it last
        self._about: dict[str, _About] = {}
        self._members: dict[str, list[str]] = {}  # by group, of the estate
        self._offloading: dict[str, list[str]] = {}  # by group: structures with SMDS
        self._said_at: int | None = None
        for name, config in estate.queue_managers.items() if estate is not None else ():
            self._about[name] = _About(config.platform, config.queue_sharing_group or "")
            if config.queue_sharing_group:
                self._members.setdefault(config.queue_sharing_group, []).append(name)
        for store in estate.stores.values() if estate is not None else ():
            if isinstance(store, Structure) and store.offload == "SMDS":
                group, _, structure = store.name.partition("/")
                self._offloading.setdefault(group, []).append(structure)

    def definitions(self) -> list[Page]:
        """Return the answers about definitions, in the order asked."""
        return _last(self.steps(has_definitions=True))

    def levels(self) -> list[Page]:
        """Return the answers about levels, in the order asked."""
        return _last(self.steps(has_definitions=False))

    def steps(self, *, has_definitions: bool) -> Generator[None, None, list[Page]]:
        """Ask, with a step for each request; return the answers of the round, in the order asked."""
        if self._refused is not None and self._secret() != self._refused:
            self._refused = None
            self._pauses.pop((), None)
        began_s = time.monotonic()
        with self._client.requester(DEADLINE_S) as requester:
            own = _Round(self.clock(), requester)
            yield from self._definitions(own) if has_definitions else self._levels(own)
        pages = own.pages
        if pages:
            pages[-1] = replace(pages[-1], headers={**pages[-1].headers, "mqweb.last": "1"})
        if self._said_at is None or not 0 <= own.start - self._said_at < _SAY_US:
            self._said_at = own.start
            what = "definitions" if has_definitions else "levels"
            counts = f"{as_count(own.request_count, 'request')}, {own.byte_count:,} bytes of answers"
            self._say(f"{self.name}: {what} in {time.monotonic() - began_s:.1f} s, {counts}")
        return pages

    def close(self) -> None:
        """Log out."""
        if not self._cookie:
            return
        with self._client.requester(DEADLINE_S) as requester, suppress(RequestError):  # the token ends by itself
            self._ask(requester, "DELETE", f"{self._base(self._version or VERSIONS[0])}/login", None)
        self._cookie = ""

    # --- what is asked -----------------------------------------------------------------------------------------------

    def _definitions(self, own: _Round) -> Iterator[None]:
        for qmgr in self._qmgrs:
            yield from self._learn(own, qmgr)
        for group in self._groups():
            before = len(own.bodies)
            if (yield from self._of_group(own, CFSTRUCT, group)):
                fields = [response.fields() for body in own.bodies[before:] for response in body.commandResponse]
                self._offloading[group] = [
                    own["CFSTRUCT"] for own in fields if own.get("OFFLOAD") == "SMDS" and own.get("CFSTRUCT")
                ]
            for structure in self._offloading.get(group, ()):
                yield from self._of_group(own, _smds("SMDS", structure), group)
        for shown in self._shown():
            if self._about[shown].platform == ZOS:
                yield from self._of_member(own, STGCLASS, shown)
        for shown in self._shown():
            command = QLOCAL_ZOS if self._about[shown].platform == ZOS else QLOCAL
            yield from self._of_member(own, command, shown)

    def _levels(self, own: _Round) -> Iterator[None]:
        for qmgr in self._qmgrs:
            if qmgr not in self._about:
                yield from self._learn(own, qmgr)
        for command in (CFSTATUS, CFSTATUS_SMDS):
            for group in self._groups():
                yield from self._of_group(own, command, group)
        for others in (False, True):  # members that are asked through another one may take its time: they come last
            shown = [name for name in self._shown() if (name not in self._qmgrs) == others]
            for name in shown:
                yield from self._of_member(own, QSTATUS, name)
            for name in shown:
                yield from self._of_member(own, USAGE if self._about[name].platform == ZOS else QMSTATUS, name)
            for name in shown:
                for structure in self._offloading.get(self._about[name].group, ()):
                    yield from self._of_member(own, _smds("SMDSCONN", structure), name)

    def _learn(self, own: _Round, qmgr: str) -> Iterator[None]:
        """Ask a queue manager for its platform and group."""
        before = len(own.bodies)
        yield from self._cover(own, QMGR, qmgr, qmgr)
        for body in own.bodies[before:]:
            fields: dict[str, str] = {}
            for response in body.commandResponse:
                fields = response.fields() | fields
            if "QMNAME" in fields or "PLATFORM" in fields:
                platform = ZOS if fields.get("PLATFORM") in {"MVS", "ZOS"} else DISTRIBUTED
                self._about[qmgr] = _About(platform, fields.get("QSGNAME", "") if platform == ZOS else "")

    def _groups(self) -> list[str]:
        return list(dict.fromkeys(self._about[qmgr].group for qmgr in self._asked() if self._about[qmgr].group))

    def _asked(self) -> list[str]:
        """Return the queue managers to ask of which something is known."""
        return [qmgr for qmgr in self._qmgrs if qmgr in self._about]

    def _shown(self) -> list[str]:
        """Return the queue managers whose state is asked for: those to ask, and other members of their groups."""
        others = [member for group in self._groups() for member in self._members.get(group, ())]
        return list(dict.fromkeys([*self._asked(), *others]))

    def _of_group(self, own: _Round, command: Command, group: str) -> Generator[None, None, bool]:
        """Ask one member of a group, beginning with the one that answered last; return False if none answered."""
        members = [qmgr for qmgr in self._asked() if self._about[qmgr].group == group]
        for member in sorted(members, key=lambda name: name != self._answering.get(group)):
            if (yield from self._cover(own, command, member, member)):
                self._answering[group] = member
                return True
        return False

    def _of_member(self, own: _Round, command: Command, shown: str) -> Iterator[None]:
        """Ask a queue manager, or members of its group with CMDSCOPE until one has an answer."""
        if shown in self._qmgrs:
            yield from self._cover(own, command, shown, shown)
            return
        for qmgr in self._asked():
            if self._about[qmgr].group == self._about[shown].group and (
                yield from self._cover(own, command, qmgr, shown)
            ):
                return

    def _cover(self, own: _Round, command: Command, qmgr: str, shown: str) -> Generator[None, None, bool]:
        """Ask a queue manager for all names of a command, in parts if need be; return False without a whole answer.

        Args:
            own: the round.
            command: the command.
            qmgr: queue manager to ask.
            shown: queue manager whose state it shows, by CMDSCOPE if it is another one.
        """
        key = (qmgr, shown, command.words("*"))
        cut = self._cut.setdefault(key, set())
        patterns = deque([self._queues if command.qualifier in {"QSTATUS", "QLOCAL"} else "*"])
        while patterns:
            pattern = patterns.popleft()
            if pattern in cut:
                patterns.extendleft(reversed(_parts(pattern)))
                continue
            if self._is_paused(key, self.clock()):
                return False
            yield
            try:
                self._take(own, command, pattern, qmgr, shown)
            except _TooLargeError:
                if command.is_generic and pattern.endswith("*") and len(cut) + len(patterns) < MAX_PATTERNS:
                    cut.add(pattern)
                    patterns.appendleft(pattern)
                    continue
                text = f"{command.words(pattern)} of {shown} has more than {MAX_ANSWER_BYTES:,} bytes"
                self._fail(_FailureError("too-large", f"{text}; expected: --queues with fewer names", key))
                return False
            except _FailureError as failure:
                self._fail(failure)
                return False
        for number in range(len(key) + 1):
            self._succeed(key[:number])
        return True

    # --- one request -------------------------------------------------------------------------------------------------

    def _take(self, own: _Round, command: Command, pattern: str, qmgr: str, shown: str) -> None:
        """Add the answer to a command to the round. Raise _FailureError or _TooLargeError."""
        scope = "" if shown == qmgr else shown
        whole = (qmgr, shown, command.words("*"))
        is_text = command.is_text or (qmgr, command.words("*")) in self._texts
        url, answer = self._post(own, qmgr, shown, whole, command.body(pattern, scope, is_text=is_text))
        if answer.status == HTTPStatus.BAD_REQUEST and not is_text:
            refused = _reason(answer)
            url, answer = self._post(own, qmgr, shown, whole, command.body(pattern, scope, is_text=True))
            if answer.status == HTTPStatus.OK:
                self._texts.add((qmgr, command.words("*")))
                self._say(f"{qmgr}: {command.words(pattern)} is asked as text: {refused}")
        if answer.status != HTTPStatus.OK:
            text = f"{command.words(pattern)} of {shown}: {_reason(answer)}"
            raise _FailureError("command-failed", f"{text}; expected: status 200", whole)
        own.byte_count += len(answer.body)
        body = self._judge(answer, command.words(pattern), shown, whole)
        if body is None:
            return
        own.bodies.append(body)
        headers = {
            "content-type": answer.header("content-type"),
            "mqweb.round": str(own.start),
            "mqweb.command": command.words(pattern),
            "mqweb.qmgr": shown,
        }
        own.pages.append(Page(answer.body, url, self.clock(), headers))

    def _judge(self, answer: Answer, words: str, shown: str, key: tuple[str, ...]) -> _Body | None:
        """Return an answer that shows something; None of one that found nothing. Raise _FailureError."""
        try:
            body = _decode_body(answer.body)
        except msgspec.DecodeError:
            return _Body()  # the feed says what is wrong with it
        if body.overallCompletionCode == 0:
            return body
        if any(own.completionCode == 0 and (own.parameters or own.text) for own in body.commandResponse):
            return body  # the feed takes the part, and complains about the rest
        if body.commandResponse and all(own.found_nothing() for own in body.commandResponse):
            return None
        lines = [line.strip() for own in body.commandResponse for line in own.lines()]
        text = " ".join([f"reason {body.overallReasonCode}", *lines])[:_MAX_TEXT]
        raise _FailureError("command-failed", f"{words} of {shown}: {text}; expected: reason 0", key)

    def _post(self, own: _Round, qmgr: str, shown: str, key: tuple[str, ...], content: bytes) -> tuple[str, Answer]:
        """Return address and answer, of status 200 or 400, of the newest version of the interface that there is."""
        if own.byte_count > MAX_ROUND_BYTES:
            text = (
                f"the answers of a round have more than {MAX_ROUND_BYTES:,} bytes; expected: --queues with fewer names"
            )
            raise _FailureError("too-large", text, key)
        answers: list[tuple[str, Answer]] = []
        known = [] if self._version is None else [self._version]
        for version in dict.fromkeys([*known, *VERSIONS]):
            url = f"{self._base(version)}/admin/action/qmgr/{_encoded(qmgr)}/mqsc"
            answer = self._logged_in(own, version, url, qmgr, shown, content)
            answers.append((url, answer))
            if answer.status != HTTPStatus.NOT_FOUND:
                self._version = version
                break
        url, answer = answers[-1] if answers[-1][1].status != HTTPStatus.NOT_FOUND else answers[0]
        if answer.problem:
            if len(answer.body) >= MAX_ANSWER_BYTES:
                raise _TooLargeError
            raise self._without_answer(qmgr, shown, answer.problem)
        self._check_status(answer, qmgr, shown)
        return url, answer

    def _check_status(self, answer: Answer, qmgr: str, shown: str) -> None:
        """Raise _FailureError or _TooLargeError unless the status is 200 or 400."""
        status, reason = answer.status, _reason(answer)
        key = (qmgr,) if shown == qmgr else (qmgr, shown)
        if status in {HTTPStatus.OK, HTTPStatus.BAD_REQUEST}:
            return
        if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            raise _TooLargeError
        if status == HTTPStatus.UNAUTHORIZED:
            raise self._refuse(reason)
        if status == HTTPStatus.FORBIDDEN:
            text = f"{qmgr}: {reason}; expected: a user with a role of the server and rights to the commands"
            raise _FailureError("not-authorised", text, key)
        if status == HTTPStatus.NOT_FOUND:
            text = f"{qmgr}: {reason}; expected: a queue manager of the server, and its administrative REST interface"
            raise _FailureError("not-found", text, key)
        least_s = _retry_after_s(answer.header("retry-after"), self.clock())
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.SERVICE_UNAVAILABLE:
            least_s = max(least_s, DEADLINE_S)  # the command may still be running
        raise _FailureError("no-answer", f"{shown} answers {reason}", key, least_s)

    def _logged_in(self, own: _Round, version: int, url: str, qmgr: str, shown: str, content: bytes) -> Answer:
        """Return the answer to a request after a login, which is repeated once where the token has expired."""
        try:
            if self._has_token and not self._cookie:
                answer = self._log_in(own, version)
                if answer.status == HTTPStatus.NOT_FOUND:
                    return answer
            answer = self._ask(own.requester, "POST", url, content)
            own.request_count += 1
            if answer.status == HTTPStatus.UNAUTHORIZED and self._has_token:
                self._cookie = ""
                answer = self._log_in(own, version)
                if answer.status != HTTPStatus.NOT_FOUND:
                    own.request_count += 1
                    answer = self._ask(own.requester, "POST", url, content)
        except RequestError as error:
            if error.is_sent:
                raise self._without_answer(qmgr, shown, str(error)) from None
            self._version = None  # after an upgrade there may be a newer one
            text = f"the server does not answer: {error}"
            raise _FailureError("no-answer", text, ()) from None
        except UsageError as error:  # a file of secrets that was replaced
            raise _FailureError("not-authorised", str(error), ()) from None
        return answer

    def _log_in(self, own: _Round, version: int) -> Answer:
        """Keep the token of a login. Raise _FailureError, RequestError, UsageError."""
        user, password = self._client.login() or ("", "")
        own.request_count += 1
        content = msgspec.json.encode({"username": user, "password": password})
        answer = self._ask(own.requester, "POST", f"{self._base(version)}/login", content)
        if answer.status == HTTPStatus.NOT_FOUND:
            return answer
        if answer.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.BAD_REQUEST}:
            raise self._refuse(_reason(answer))
        cookies = [value.partition(";")[0].strip() for name, value in answer.headers if name == "set-cookie"]
        self._cookie = "; ".join(cookie for cookie in cookies if cookie.startswith("LtpaToken2"))
        if not self._cookie:
            text = f"the login has no token: {_reason(answer)}; expected: a cookie LtpaToken2"
            raise _FailureError("not-authorised", text, ())
        return answer

    def _ask(self, requester: Requester, method: str, url: str, content: bytes | None) -> Answer:
        own = {"Cookie": self._cookie} if self._has_token else self._client.authorisation()
        headers = {name: value for name, value in {**self._headers, **own}.items() if value}
        return requester.ask(method, url, headers, max_bytes=MAX_ANSWER_BYTES, content=content)

    def _base(self, version: int) -> str:
        return f"{self.name}/ibmmq/rest/v{version}"

    # --- failures ----------------------------------------------------------------------------------------------------

    def _refuse(self, reason: str) -> _FailureError:
        """Return the failure of a login. A password is not sent again before it changes."""
        self._refused = self._secret()
        text = f"the server does not accept the login: {reason}; expected: another password in the file"
        return _FailureError("not-authorised", text, (), REFUSED_S if self._refused else 0.0)

    def _secret(self) -> object:
        """Return what the login rests on; None without one."""
        try:
            return self._client.authorisation() or None
        except UsageError as error:
            return str(error)

    def _without_answer(self, qmgr: str, shown: str, text: str) -> _FailureError:
        """Return the failure of a request that the queue manager may still be running."""
        if shown == qmgr:
            return _FailureError("no-answer", f"{qmgr} does not answer: {text}", (qmgr,), DEADLINE_S)
        pause = self._pauses.setdefault((qmgr,), _Pause())
        pause.since = self.clock()
        pause.until = pause.since + round(DEADLINE_S * 1e6)
        return _FailureError("no-answer", f"{shown} does not answer through {qmgr}: {text}", (qmgr, shown), DEADLINE_S)

    def _is_paused(self, key: tuple[str, ...], now: int) -> bool:
        pauses = (self._pauses.get(key[:number]) for number in range(len(key) + 1))
        return any(pause.is_on(now) for pause in pauses if pause is not None)

    def _fail(self, failure: _FailureError) -> None:
        """Note a failure; complain if it is not what was said last."""
        pause = self._pauses.setdefault(failure.key, _Pause())
        pause.count += 1
        wait_s = max(failure.least_s, min(FIRST_WAIT_S * 2 ** min(pause.count - 1, 20), MAX_WAIT_S))
        pause.since = self.clock()
        pause.until = pause.since + round(wait_s * 1e6)
        said = (failure.code, str(failure))
        if said != pause.said:
            pause.said = said
            self._complain(failure.code, self.name, str(failure))

    def _succeed(self, key: tuple[str, ...]) -> None:
        pause = self._pauses.pop(key, None)
        if pause is not None and pause.count:
            self._say(f"{self.name}: {' '.join(key[-1:]) or 'the server'} answers again")


class MqwebSource(Source):
    """Rounds each `interval_s` seconds, after definitions at the start and once an hour. A missed round is skipped.

    Args:
        mqweb: the client.
        interval_s: seconds between the starts of two rounds.
    """

    def __init__(self, mqweb: Mqweb, interval_s: float) -> None:
        self.name = mqweb.name
        self._mqweb = mqweb
        self._interval = round(interval_s * 1e6)
        self._steps: Generator[None, None, list[Page]] | None = None
        self._started: int | None = None  # the last round of levels
        self._defined: int | None = None

    @override
    def read(self) -> list[Page]:
        """Make the next request of a round; return its pages behind the last one."""
        if self._steps is None:
            now = self._mqweb.clock()
            if self._defined is None or not 0 <= now - self._defined < DEFINITIONS_S * 1e6:
                self._defined = now
                self._steps = self._mqweb.steps(has_definitions=True)
            elif self._started is None or not 0 <= now - self._started < self._interval:
                late = 0 if self._started is None else (now - self._started) % self._interval
                self._started = now - late
                self._steps = self._mqweb.steps(has_definitions=False)
            else:
                time.sleep(min((self._started + self._interval - now) / 1e6, _WAIT_S))
                return []
        try:
            next(self._steps)
        except StopIteration as end:
            self._steps = None
            pages: list[Page] = end.value
            return pages
        return []

    @override
    def note_taken(self, page: Page, feed: Feed) -> None:
        pass

    @override
    def position(self, feed: Feed) -> Position:
        return Position(source=self.name, time=self._started or 0)

    @override
    def close(self) -> None:
        if self._steps is not None:
            self._steps.close()
        self._mqweb.close()


def _last(steps: Generator[None, None, list[Page]]) -> list[Page]:
    """Return what a generator returns at its end."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            pages: list[Page] = end.value
            return pages


def _parts(pattern: str) -> list[str]:
    """Return the patterns that cover the names of a pattern that ends in `*`, the name without it among them."""
    beginning = pattern[:-1]
    longer = [f"{beginning}{character}*" for character in _NAME_CHARACTERS] if len(beginning) < _MAX_NAME else []
    return ([beginning] if beginning else []) + longer


def _check_name(option: str, name: str) -> str:
    if not 0 < len(name) <= _MAX_NAME or not set(name) <= set(_NAME_CHARACTERS):
        raise UsageError(f"{option} {name}; expected: names of queue managers, such as QM01")
    return name


def _check_pattern(pattern: str) -> str:
    name = pattern.removesuffix("*")
    if not pattern or len(name) > _MAX_NAME or not set(name) <= set(_NAME_CHARACTERS):
        raise UsageError(f"--queues {pattern}; expected: a name, or the beginning of names and *, such as 'APP*'")
    return pattern


def _encoded(qmgr: str) -> str:
    """Return the name of a queue manager in an address."""
    return qmgr.replace("%", "%25").replace("/", "%2F").replace(".", "%2E")


def _reason(answer: Answer) -> str:
    """Return status and error of an answer, as one line."""
    text = ""
    with suppress(msgspec.DecodeError):
        text = " ".join(" ".join(error.message for error in _decode_body(answer.body[:_MAX_ERROR_BYTES]).error).split())
    status = f"{answer.status} {answer.reason}".strip()
    return f"{status}: {text[:_MAX_TEXT]}" if text else status


def _retry_after_s(text: str, now: int) -> float:
    """Return the seconds of Retry-After, a number or a date; 0 without one."""
    if text.isascii() and text.isdigit():
        return min(float(text), MAX_RETRY_AFTER_S)
    try:
        at = parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return 0.0
    return min(max(at - now / 1e6, 0.0), MAX_RETRY_AFTER_S)


__all__ = ["Command", "Mqweb", "MqwebSource"]
