"""Requests to an mqweb server: DISPLAY commands in the two forms of the REST interface of MQ, and a session.

- Commands come with how an answer says that it succeeded.
- The session: version of the interface, login, and what each failure means for further requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Literal

import msgspec

from streams.collecting.http import Answer, HttpClient, Requester, RequestError
from twin.base.decoding import UNREADABLE
from twin.base.errors import UsageError
from twin.feeds.mqsc_objects import pairs

# --- commands and their answers ---------------------------------------------------------------------------------------
# Sources: [IBM: MQ 9.4, POST /admin/action/qmgr/{qmgrName}/mqsc]: `runCommandJSON` since 9.1.3, without DISPLAY USAGE,
# and `runCommand`. [IBM: MQ 9.4, DISPLAY SMDS, DISPLAY SMDSCONN]: CFSTRUCT names one structure, without generic names.
# [IBM: MQ 9.4, Rules for naming IBM MQ objects].

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


# --- session ----------------------------------------------------------------------------------------------------------
# Sources: [IBM: MQ 9.4, REST API versions]: 3 since 9.3.0, 2 since 9.1.5, 1 before. [IBM: MQ 9.4, Using token-based
# authentication with the REST API]: names of cookies begin with LtpaToken2. [IBM: MQ 9.4, POST
# /admin/action/qmgr/{qmgrName}/mqsc]: 503 for a queue manager that does not run. [IBM: MQ 9.4, REST API error
# handling].

VERSIONS = (3, 2, 1)  # of the interface, newest first
DEADLINE_S = 35.0  # of a request: mqRestRequestTimeout, 30 s by default, and a margin
MAX_ANSWER_BYTES = 16 << 20  # of an answer; one that is larger is asked for by parts of the names
MAX_RETRY_AFTER_S = 3600.0  # that a server may ask for
REFUSED_S = 3600.0  # after 401, unless the password changes: more attempts would revoke the user
_LOG_OUT_S = 1.0
_MAX_ERROR = 300  # characters of an error of the server

Reach = Literal["login", "server", "queue manager", "command"]


class FailedRequestError(Exception):
    """A request without a usable answer; the message is one line without times and secrets.

    Args:
        may_run: True if the queue manager may still run the command.
        is_elsewhere: True if the queue manager may be reached in another way: this server does not reach it.
    """

    def __init__(
        self,
        code: str,
        text: str,
        reach: Reach = "command",
        *,
        wait_s: float = 0.0,
        may_run: bool = False,
        is_elsewhere: bool = False,
    ) -> None:
        super().__init__(text)
        self.code, self.reach, self.wait_s, self.may_run, self.is_elsewhere = code, reach, wait_s, may_run, is_elsewhere


class TooLargeError(Exception):
    """An answer that is larger than the bound."""


class MqwebSession:
    """Session with a server. Nothing is sent between `open` and a request. `pace` is called before each request and
    returns when it may be made; without `gateway` the server takes its own. UsageError: a login by token without user,
    or the gateway is no name.
    """

    def __init__(
        self,
        url: str,
        client: HttpClient,
        *,
        gateway: str | None,
        has_token: bool,
        clock: Callable[[], int],
        pace: Callable[[], None] = lambda: None,
    ) -> None:
        if has_token and client.user is None:
            raise UsageError("--token-login needs a user; expected: --user and --password-file")
        self.request_count = 0
        self._url, self._client, self._has_token, self._clock, self._pace = url, client, has_token, clock, pace
        self._headers = {
            "Content-Type": "application/json;charset=utf-8",
            "Accept": "application/json",
            "ibm-mq-rest-csrf-token": "mqtwin",  # it must be present, with any value
            **({} if gateway is None else {"ibm-mq-rest-gateway-qmgr": check_name("--gateway", gateway)}),
        }
        self._version: int | None = None  # the newest that answered
        self._cookie = ""
        self._refused: str | None = None  # the login that the server refused

    def open(self) -> Requester:
        """Return a client for the requests of a round, to be closed."""
        return self._client.requester(DEADLINE_S)

    def has_new_login(self) -> bool:
        """Return True, once, if the login is another one than the server refused."""
        if self._refused is None or self._secret() == self._refused:
            return False
        self._refused = None
        return True

    def post(self, requester: Requester, qmgr: str, content: bytes) -> tuple[str, Answer]:
        """Return address and answer to a command, of status 200 or 400, by the newest version that there is.
        FailedRequestError: no answer, or another status. TooLargeError: the answer is too large.
        """
        url, answer = self._of_newest(requester, f"admin/action/qmgr/{_encoded(qmgr)}/mqsc", content)
        if len(answer.body) >= MAX_ANSWER_BYTES or answer.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            raise TooLargeError
        if answer.problem:
            raise FailedRequestError("no-answer", answer.problem, "queue manager", wait_s=DEADLINE_S, may_run=True)
        self._check_status(answer)
        return url, answer

    def _of_newest(self, requester: Requester, path: str, content: bytes) -> tuple[str, Answer]:
        """Return address and answer of the version that answered last, or of the newest one that answers."""
        known = () if self._version is None else (self._version,)
        answers = []
        for version in dict.fromkeys((*known, *VERSIONS)):
            url = f"{self._base(version)}/{path}"
            answer = self._logged_in(requester, version, url, content)
            answers.append((url, answer))
            if answer.status != HTTPStatus.NOT_FOUND:
                self._version = version
                return url, answer
        return answers[0]

    def _check_status(self, answer: Answer) -> None:
        status, reason = answer.status, reason_of(answer)
        if status in {HTTPStatus.OK, HTTPStatus.BAD_REQUEST}:
            return
        if status == HTTPStatus.UNAUTHORIZED:
            raise self._refuse(reason)
        if status == HTTPStatus.FORBIDDEN:
            text = f"{reason}; expected: a user with a role of the server, and with rights to the commands"
            raise FailedRequestError("not-authorised", text, "queue manager")
        if status == HTTPStatus.NOT_FOUND:
            text = f"{reason}; expected: a queue manager of this server, which has the administrative REST interface"
            raise FailedRequestError("not-found", text, "queue manager", is_elsewhere=True)
        wait_s = _retry_after_s(answer.header("retry-after"), self._clock())
        may_run = status >= HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.SERVICE_UNAVAILABLE
        is_elsewhere = status == HTTPStatus.SERVICE_UNAVAILABLE and not wait_s  # it does not run where this server is
        wait_s = max(wait_s, DEADLINE_S) if may_run else wait_s
        raise FailedRequestError(
            "no-answer",
            f"answers {reason}",
            "queue manager",
            wait_s=wait_s,
            may_run=may_run,
            is_elsewhere=is_elsewhere,
        )

    def _logged_in(self, requester: Requester, version: int, url: str, content: bytes) -> Answer:
        """Return the answer to a request behind a login, which is repeated once where the token has expired."""
        try:
            if self._has_token and not self._cookie:
                answer = self._log_in(requester, version)
                if answer.status == HTTPStatus.NOT_FOUND:
                    return answer
            answer = self._ask(requester, "POST", url, content)
            if answer.status == HTTPStatus.UNAUTHORIZED and self._has_token:
                self._cookie = ""
                answer = self._log_in(requester, version)
                if answer.status != HTTPStatus.NOT_FOUND:
                    answer = self._ask(requester, "POST", url, content)
        except RequestError as error:
            if error.is_sent:
                text = str(error)
                raise FailedRequestError("no-answer", text, "queue manager", wait_s=DEADLINE_S, may_run=True) from None
            self._version = None  # after an upgrade there may be a newer one
            raise FailedRequestError("no-answer", str(error), "server", is_elsewhere=True) from None
        except UsageError as error:  # a file of secrets that was replaced
            raise FailedRequestError("not-authorised", str(error), "login") from None
        return answer

    def _log_in(self, requester: Requester, version: int) -> Answer:
        """Keep the token of a login. Raise FailedRequestError, RequestError, UsageError."""
        user, password = self._client.login() or ("", "")
        content = msgspec.json.encode({"username": user, "password": password})
        answer = self._ask(requester, "POST", f"{self._base(version)}/login", content)
        if answer.status == HTTPStatus.NOT_FOUND:
            return answer
        if answer.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.BAD_REQUEST}:
            raise self._refuse(reason_of(answer))
        cookies = [value.partition(";")[0].strip() for name, value in answer.headers if name == "set-cookie"]
        self._cookie = "; ".join(cookie for cookie in cookies if cookie.startswith("LtpaToken2"))
        if not self._cookie:
            text = f"the login answers {reason_of(answer)} without a token; expected: a cookie LtpaToken2"
            raise FailedRequestError("not-authorised", text, "login")
        return answer

    def _ask(self, requester: Requester, method: str, url: str, content: bytes | None) -> Answer:
        self._pace()
        self.request_count += 1
        login = {"Cookie": self._cookie} if self._has_token else self._client.authorisation()
        headers = {name: value for name, value in {**self._headers, **login}.items() if value}
        return requester.ask(method, url, headers, max_bytes=MAX_ANSWER_BYTES, content=content)

    def _base(self, version: int) -> str:
        return f"{self._url}/ibmmq/rest/v{version}"

    def _refuse(self, reason: str) -> FailedRequestError:
        """Return the failure of a login, which is not repeated with the same password."""
        self._refused = self._secret()
        text = f"the login fails: {reason}; expected: the user and the password of a role of the server"
        if self._refused is not None:
            text += f". No further attempt for {REFUSED_S / 60:.0f} minutes unless the password changes"
        return FailedRequestError("not-authorised", text, "login", wait_s=0.0 if self._refused is None else REFUSED_S)

    def _secret(self) -> str | None:
        """Return what the login rests on; None without user and token."""
        try:
            return self._client.authorisation().get("Authorization")
        except UsageError as error:
            return str(error)

    def close(self) -> None:
        """Log out."""
        if self._cookie:
            with self._client.requester(_LOG_OUT_S) as requester, suppress(RequestError):  # a token ends by itself, too
                self._ask(requester, "DELETE", f"{self._base(self._version or VERSIONS[0])}/login", None)
            self._cookie = ""


def check_name(option: str, name: str) -> str:
    """Return the name of a queue manager. UsageError: it is none."""
    if not 0 < len(name) <= MAX_NAME or not set(name) <= set(NAME_CHARACTERS):
        raise UsageError(f"{option} {name}; expected: the name of a queue manager, such as QM01")
    return name


def _encoded(qmgr: str) -> str:
    return qmgr.replace("%", "%25").replace("/", "%2F").replace(".", "%2E")


def reason_of(answer: Answer) -> str:
    """Return status and error of an answer, as one line."""
    body = decode_answer(answer.body)
    text = "" if body is None else " ".join(" ".join(error.message for error in body.error).split())
    status = f"{answer.status} {answer.reason}".strip()
    return f"{status}: {text[:_MAX_ERROR]}" if text else status


def _retry_after_s(text: str, now: int) -> float:
    """Return the seconds of Retry-After, a number or a date; 0 without one."""
    if text.isascii() and text.isdigit():
        return min(float(text), MAX_RETRY_AFTER_S)
    try:
        moment = parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return 0.0
    return min(max(moment - now / 1e6, 0.0), MAX_RETRY_AFTER_S)
