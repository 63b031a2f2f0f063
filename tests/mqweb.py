"""An mqweb server: the administrative REST interface of simulated queue managers, with faults that a test switches on.

It follows [IBM: MQ 9.3, POST /admin/action/qmgr/{qmgrName}/mqsc; REST API error handling; POST /login; REST API
messages]: MQWB0100E without the CSRF header, MQWB0104E without credentials, MQWB0112E for a token that has expired,
MQWB0108E without a role, MQWB0009E for an unknown queue manager, 3008 where a command fails. Not seen anywhere, so
assumed: status and text of a timeout, of a command that the JSON form refuses, of an unknown version and of a queue
manager that does not run, 400 with MQWB0120E, CMDSCOPE in `parameters`, reason 4 of its first reply set as
reasonCode; of answers see `tests.support.queue_managers`.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
import select
import socket
import ssl
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import unquote

import trustme

from tests.support.queue_managers import Command, CommandError, System, parse

ROLES = frozenset(("MQWebAdmin", "MQWebAdminRO", "MQWebUser"))
NOT_IN_JSON = frozenset(
    ("ARCHIVE", "CHINIT", "GROUP", "LOG", "SECURITY", "SYSTEM", "THREAD", "TRACE", "USAGE")
)  # commands that runCommandJSON refuses
PROXY_PAGE = b"<html><head><title>Bad Gateway</title></head><body>The proxy could not reach the server.</body></html>"
_MQSC = re.compile(r"/ibmmq/rest/(v[0-9]+)/admin/action/qmgr/([^/]+)/mqsc")
_LOGIN = re.compile(r"/ibmmq/rest/(v[0-9]+)/login")
_RAW = re.compile(r"[./]")  # characters that have to be encoded in the name of a queue manager
_TIMED_OUT = (500, "MQWB0003E", "An unexpected MQ related exception occurred: no reply within the timeout.", 2, 2033)
_NOT_IN_JSON = (400, "MQWB0119E", "The command is not supported in JSON format.", 0, 0)
_MORE = 4  # reason of a first reply set: more follow
_POLL_S = 0.02  # between two looks at whether a request is still waited for
_MAX_REQUESTS = 1000  # requests

FaultKind = Literal[
    "status",  # a status, with an error of MQWB, or `body`
    "slow",  # the answer comes after some seconds
    "timeout",  # no reply of the queue manager: an error after the server's timeout
    "silent",  # nothing is ever answered
    "drip",  # a byte each `seconds`
    "cut",  # the connection ends within the body
    "truncated",  # the JSON ends within, the body as HTTP is whole
    "html",  # 200 with the page of a proxy
    "kind",  # the right body with another content type
    "redirect",
    "failed",  # the command fails as a whole
    "partial",  # half of the responses, then one that failed
]


@dataclass(frozen=True)
class Fault:
    """A fault.

    Args:
        kind: what happens instead of the answer.
        seconds: duration of "slow", and of a byte of "drip".
        status: status code of "status".
        retry_after: its header Retry-After.
        body: body of "status"; None: an error of MQWB.
        command: kind of the commands that it concerns, such as QSTATUS; "": all, logins too.
        qmgr: queue manager that it concerns, also as CMDSCOPE; "": all.
    """

    kind: FaultKind
    seconds: float = 0.0
    status: int = 503
    retry_after: str = ""
    body: bytes | None = None
    command: str = ""
    qmgr: str = ""


@dataclass(frozen=True)
class User:
    """A user of the server."""

    password: str
    roles: frozenset[str] = frozenset(("MQWebAdminRO",))


@dataclass(frozen=True)
class Request:
    """A request as it came, and its status. qmgr: as in the address, decoded; "" of a login."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    qmgr: str
    command: str  # in words; "" of a login, or of what is no command
    status: int


@dataclass(frozen=True)
class Certificates:
    """Certificates of a server, and of its clients, of a private authority.

    Args:
        host: name in the server's certificate.
        is_expired: it has ended an hour ago.
        asks_client: clients may show a certificate; its common name is a user.
    """

    host: str = "localhost"
    is_expired: bool = False
    asks_client: bool = False
    authority: trustme.CA = field(default_factory=trustme.CA)

    def write_authority(self, path: Path) -> Path:
        """Write the certificate of the authority in PEM."""
        self.authority.cert_pem.write_to_path(path)
        return path

    def write_client(self, folder: Path, user: str) -> tuple[Path, Path]:
        """Write a certificate and key of a client; return their files."""
        issued = self.authority.issue_cert(f"{user}@example.com", common_name=user)
        certificate, key = folder / f"{user}.pem", folder / f"{user}.key"
        issued.cert_chain_pems[0].write_to_path(certificate)
        issued.private_key_pem.write_to_path(key)
        return certificate, key

    def context(self) -> ssl.SSLContext:
        """Return the context of the server."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        now = datetime.now(UTC)
        end = now - timedelta(hours=1) if self.is_expired else now + timedelta(days=1)
        self.authority.issue_cert(self.host, not_before=now - timedelta(days=2), not_after=end).configure_cert(context)
        if self.asks_client:
            self.authority.configure_trust(context)
            context.verify_mode = ssl.CERT_OPTIONAL
        return context


class MqwebServer:
    """A server on a free port, while it is used as a context; `stop` and `start` are an outage, on the same port.

    Args:
        system: the queue managers. `lock` may be held to change several things of it at once.
        users: by name; None: no security at all.
        versions: versions of the interface that exist.
        gateway: queue manager through which all are reached; None: they are of the server's own.
        reaches: queue managers that the server reaches, those of its LPAR; None: all.
        certificates: those of HTTPS; None: HTTP.
        token_s: seconds for which a token is valid.
        timeout_s: mqRestRequestTimeout, which is 30 s in IBM's.
        clock: seconds, for the tokens.

    Attributes:
        requests: the last ones.
        statuses: number of requests by status, of all.
        most_at_once: highest number of requests that one queue manager had at a time, by its name.
        logins: number of tokens given.
        rounds: number of answers to DISPLAY CFSTATUS TYPE(SUMMARY), which a round has once a group.
        bytes_sent: bytes of all answers.
    """

    def __init__(
        self,
        system: System,
        *,
        users: Mapping[str, User] | None = None,
        versions: tuple[str, ...] = ("v1", "v2", "v3"),
        gateway: str | None = None,
        reaches: frozenset[str] | None = None,
        certificates: Certificates | None = None,
        token_s: float = 7200.0,
        timeout_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.system = system
        self.lock = threading.Lock()
        self.requests: deque[Request] = deque(maxlen=_MAX_REQUESTS)
        self.statuses: Counter[int] = Counter()
        self.most_at_once: Counter[str] = Counter()
        self.logins = 0
        self.rounds = 0
        self.bytes_sent = 0
        self.users = users
        self.versions = versions
        self.gateway = gateway
        self.reaches = reaches
        self.timeout_s = timeout_s
        self.token_s = token_s
        self._clock = clock
        self._context = None if certificates is None else certificates.context()
        self._faults: list[tuple[Fault, int | None]] = []
        self._at_once: Counter[str] = Counter()
        self._tokens: dict[str, tuple[str, float]] = {}  # user and end, by token
        self._cookie = f"LtpaToken2_{time.time_ns()}"
        self._numbers = itertools.count(1)
        self._sockets: set[socket.socket] = set()
        self._port = 0
        self._listener: _Listener | None = None
        self._thread: threading.Thread | None = None

    # --- life --------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Listen, after `stop` on the same port. Tokens of before are not known any more."""
        self._tokens.clear()
        self._listener = _Listener(self, ("127.0.0.1", self._port))
        self._port = self._listener.server_address[1]
        if self._context is not None:
            self._listener.socket = self._context.wrap_socket(
                self._listener.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._listener.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def stop(self) -> None:
        """Close the port and all connections; do nothing if it is not running."""
        listener, self._listener = self._listener, None
        if listener is None or self._thread is None:
            return
        listener.shutdown()
        self._thread.join()
        listener.server_close()
        with self.lock:
            left = list(self._sockets)
        for connection in left:
            _close(connection)

    @property
    def url(self) -> str:
        """Address without a path."""
        return f"{'http' if self._context is None else 'https'}://localhost:{self._port}"

    @property
    def open_connections(self) -> int:
        """Number of connections that clients have open."""
        return len(self._sockets)

    # --- faults ------------------------------------------------------------------------------------------------------

    def fail(self, kind: FaultKind, *, times: int | None = None, **details: Any) -> None:
        """Switch a fault on, before others. times: number of requests that it concerns; None: until `heal`."""
        with self.lock:
            self._faults.insert(0, (Fault(kind, **details), times))

    def heal(self) -> None:
        """Switch all faults off; silent requests end without an answer."""
        with self.lock:
            self._faults.clear()

    @contextmanager
    def failing(self, kind: FaultKind, **details: Any) -> Iterator[None]:
        """Have a fault while the block runs."""
        self.fail(kind, **details)
        try:
            yield
        finally:
            self.heal()

    def end_tokens(self) -> None:
        """End all tokens."""
        with self.lock:
            self._tokens.clear()

    def fault_of(self, qmgrs: set[str], command: str) -> Fault | None:
        """Return the fault that concerns a request, counting it."""
        with self.lock:
            for place, (fault, times) in enumerate(self._faults):
                if fault.qmgr not in {"", *qmgrs} or fault.command not in {"", command}:
                    continue
                if times is not None:
                    self._faults[place : place + 1] = [(fault, times - 1)] if times > 1 else []
                return fault
        return None

    def has_faults(self) -> bool:
        """Return True while a fault is on."""
        return bool(self._faults)

    # --- security ----------------------------------------------------------------------------------------------------

    def new_token(self, user: str) -> str:
        """Return the cookie of a new token."""
        token = base64.b64encode(f"{user} {next(self._numbers)} of this server".encode()).decode().rstrip("=")
        with self.lock:
            self.logins += 1
            self._tokens[token] = user, self._clock() + self.token_s
        secure = "" if self._context is None else " Secure;"
        return f"{self._cookie}={token}; Path=/;{secure} HttpOnly; SameSite=Strict"

    def end_token(self, token: str) -> None:
        """End a token, if there is one."""
        with self.lock:
            self._tokens.pop(token, None)

    def user_of_token(self, token: str) -> str | None:
        """Return the user of a valid token, or None."""
        with self.lock:
            user, end = self._tokens.get(token, ("", 0.0))
        return user if user and self._clock() < end else None

    def is_known(self, user: str, password: str) -> bool:
        """Return True for a user and the password."""
        known = (self.users or {}).get(user)
        return known is not None and known.password == password

    # --- counts ------------------------------------------------------------------------------------------------------

    def count(self, qmgr: str, step: int) -> None:
        """Count a request of a queue manager that begins, 1, or that is answered, -1."""
        with self.lock:
            self._at_once[qmgr] += step
            self.most_at_once[qmgr] = max(self.most_at_once[qmgr], self._at_once[qmgr])

    def note(self, request: Request, size: int) -> None:
        """Keep a request, with the bytes of its answer."""
        with self.lock:
            self.requests.append(request)
            self.statuses[request.status] += 1
            self.bytes_sent += size
            self.rounds += request.status == 200 and request.command.startswith("DISPLAY CFSTATUS(*) TYPE(SUMMARY)")

    def opened(self, connection: socket.socket, *, is_open: bool) -> None:
        """Keep a connection, or forget it."""
        with self.lock:
            (self._sockets.add if is_open else self._sockets.discard)(connection)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, server: MqwebServer, address: tuple[str, int]) -> None:
        self.mqweb = server
        super().__init__(address, _Handler)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        self.mqweb.opened(request, is_open=True)
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.mqweb.opened(request, is_open=False)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: clients that go away, or trust no certificate, are what is tested."""


class _RefusedError(Exception):
    """The answer to a request that is refused: status, id of the message, text, completion and reason code."""

    def __init__(self, status: int, code: str, text: str, completion: int = 0, reason: int = 0) -> None:
        super().__init__(text)
        self.status = status
        error = {
            "type": "rest",
            "msgId": code,
            "message": f"{code}: {text}",
            "explanation": "The REST API request cannot be completed.",
            "action": "Resubmit the request after a correction.",
            "completionCode": completion,
            "reasonCode": reason,
        }
        self.body = json.dumps({"error": [error]}).encode()


class _GoneError(Exception):
    """Nobody waits for the answer any more, or none is given."""


@dataclass(frozen=True)
class _Asked:
    """Content of a request. qmgr: "" of a login."""

    body: bytes
    qmgr: str
    command: Command | None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Listener
    timeout = 60.0  # of an idle connection
    disable_nagle_algorithm = True  # else each answer waits 40 ms for the acknowledgement of its headers
    _is_counted = False

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        self._asked = _Asked(b"", "", None)
        self._more = {}
        self._send(405, _RefusedError(405, "MQWB0106E", "The method is not allowed.").body)

    def do_DELETE(self) -> None:
        """Log out."""
        self._asked, self._more = _Asked(b"", "", None), {}
        is_login = _LOGIN.fullmatch(self.path) is not None
        for cookie in SimpleCookie(self.headers.get("Cookie", "")).values() if is_login else ():
            self.server.mqweb.end_token(cookie.value)
        self._send(204 if is_login else 405, b"")

    def do_POST(self) -> None:
        mqweb = self.server.mqweb
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        login, mqsc = _LOGIN.fullmatch(path), _MQSC.fullmatch(path)
        qmgr = "" if mqsc is None else unquote(mqsc[2])
        command, error = (None, None) if mqsc is None else _command_of(body)
        self._asked = _Asked(body, qmgr, command)

        def answer() -> bytes:
            if login is not None and login[1] in mqweb.versions:
                return self._login(body)
            if mqsc is None or mqsc[1] not in mqweb.versions:
                raise _RefusedError(404, "MQWB0105E", f"The resource {path} does not exist.")
            self._check(mqsc[2], qmgr)
            if error is not None or command is None:
                raise error or _RefusedError(400, "MQWB0117E", "The body of the request is not valid.")
            return _run(mqweb, qmgr, command, body, fault)

        members = {qmgr} if command is None or not command.member else {qmgr, command.member}
        fault = mqweb.fault_of(members, "" if command is None else command.kind)
        mqweb.count(qmgr, 1)
        self._is_counted = True
        try:
            if fault is None or not self._fail(fault):
                self._answer(answer, fault)
        finally:
            self._end_count()

    def _end_count(self) -> None:
        """Count the request as answered, before the client can have the answer and ask again."""
        if self._is_counted:
            self._is_counted = False
            self.server.mqweb.count(self._asked.qmgr, -1)

    # --- checks ------------------------------------------------------------------------------------------------------

    def _check(self, raw: str, qmgr: str) -> None:
        """Raise _RefusedError for a request that is refused before its command is looked at."""
        mqweb = self.server.mqweb
        user = self._user()
        if "ibm-mq-rest-csrf-token" not in self.headers:
            raise _RefusedError(
                403, "MQWB0100E", "The CSRF header 'ibm-mq-rest-csrf-token' was omitted from the request."
            )
        if mqweb.users is not None and not mqweb.users[user].roles & ROLES:
            needed = "'MQWebAdmin', 'MQWebAdminRO', 'MQWebUser'"
            text = f"The authenticated principal '{user}' is not granted access to any of the required roles: {needed}."
            raise _RefusedError(403, "MQWB0108E", text)
        gateway = self.headers.get("ibm-mq-rest-gateway-qmgr")
        unknown = _RAW.search(raw) is not None or mqweb.system.qmgr(qmgr) is None
        unknown = unknown or (mqweb.reaches is not None and qmgr not in mqweb.reaches)
        if unknown or (gateway or mqweb.gateway) != mqweb.gateway:
            text = f"Could not query the queue manager '{qmgr}'."
            raise _RefusedError(404, "MQWB0009E", text, 2, 2058)
        if qmgr in mqweb.system.inactive:
            raise _RefusedError(503, "MQWB0010E", f"The queue manager '{qmgr}' is not running.", 2, 2059)

    def _user(self) -> str:
        """Return the user of a request. _RefusedError: there is none."""
        mqweb = self.server.mqweb
        if mqweb.users is None:
            return ""
        certificate = self.connection.getpeercert() if isinstance(self.connection, ssl.SSLSocket) else None
        names = [value for part in (certificate or {}).get("subject", ()) for key, value in part if key == "commonName"]
        if names and names[0] in mqweb.users:
            return names[0]
        cookies = SimpleCookie(self.headers.get("Cookie", ""))
        for name, cookie in cookies.items():
            if name.startswith("LtpaToken2"):
                user = mqweb.user_of_token(cookie.value)
                if user is None:
                    text = f"The '{name}' authentication token cookie failed verification."
                    raise _RefusedError(401, "MQWB0112E", text)
                return user
        kind, _, secret = self.headers.get("Authorization", "").partition(" ")
        if kind.lower() == "basic":
            user, _, password = base64.b64decode(secret).decode("utf-8", "replace").partition(":")
            if mqweb.is_known(user, password):
                return user
        raise _RefusedError(401, "MQWB0104E", f"The REST API request to '{self.path}' is not authenticated.")

    def _login(self, body: bytes) -> bytes:
        """Give a token; there is no body then."""
        mqweb = self.server.mqweb
        try:
            login = json.loads(body)
            user, password = str(login["username"]), str(login["password"])
        except (ValueError, KeyError, TypeError):
            raise _RefusedError(400, "MQWB0117E", "The body has no username and password.") from None
        if not mqweb.is_known(user, password):
            raise _RefusedError(401, "MQWB0104E", f"The REST API request to '{self.path}' is not authenticated.")
        self._more["Set-Cookie"] = mqweb.new_token(user)
        return b""

    # --- answers -----------------------------------------------------------------------------------------------------

    def _answer(self, answer: Callable[[], bytes], fault: Fault | None) -> None:
        """Send an answer, or why there is none."""
        self._more: dict[str, str] = {}
        try:
            data = answer()
            status = 200 if data else 204
        except _RefusedError as refused:
            status, data = refused.status, refused.body
        self._send(status, data, fault)

    def _send(self, status: int, data: bytes, fault: Fault | None = None, kind: str = "") -> None:
        """Send an answer as the fault has it, and keep the request."""
        what = None if fault is None else fault.kind
        if what == "truncated":
            data = data[: len(data) * 2 // 3]
        self._note(status, len(data))
        self._end_count()
        self.send_response(status, HTTPStatus(status).phrase)
        usual = "text/plain; charset=utf-8" if what == "kind" else "application/json; charset=utf-8"
        self.send_header("Content-Type", kind or usual)
        self.send_header("Content-Length", str(len(data)))
        gateway = self.server.mqweb.gateway
        if gateway is not None:
            self._more["ibm-mq-rest-gateway-qmgr"] = gateway
        for name, value in self._more.items():
            self.send_header(name, value)
        self.end_headers()
        if what == "cut":
            self.wfile.write(data[: len(data) // 2])
            self.close_connection = True
        elif what == "drip" and fault is not None:
            for place in range(len(data)):
                self.wfile.write(data[place : place + 1])
                self._wait(fault.seconds)
        else:
            self.wfile.write(data)

    def _note(self, status: int, size: int) -> None:
        asked = self._asked
        words = "" if asked.command is None else _words(asked.command)
        self.server.mqweb.note(Request(self.path, dict(self.headers), asked.body, asked.qmgr, words, status), size)

    def _fail(self, fault: Fault) -> bool:
        """Do what a fault does instead of an answer; return False if an answer follows."""
        self._more = {}
        mqweb = self.server.mqweb
        if fault.kind == "status":
            if fault.retry_after:
                self._more["Retry-After"] = fault.retry_after
            usual = _RefusedError(fault.status, "MQWB0000E", "An unexpected exception occurred.").body
            self._send(fault.status, usual if fault.body is None else fault.body)
        elif fault.kind == "timeout":
            self._wait(mqweb.timeout_s)
            refused = _RefusedError(*_TIMED_OUT)
            self._send(refused.status, refused.body)
        elif fault.kind == "silent":
            while mqweb.has_faults():
                self._wait(_POLL_S)
            self._note(0, 0)
            self.close_connection = True
        elif fault.kind == "html":
            self._send(200, PROXY_PAGE, kind="text/html")
        elif fault.kind == "redirect":
            self._more["Location"] = f"{mqweb.url}/elsewhere"
            self._send(302, b"")
        else:
            self._wait(fault.seconds if fault.kind == "slow" else 0.0)
            return False
        return True

    def _wait(self, seconds: float) -> None:
        """Wait; _GoneError: the client has closed the connection."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            readable, _, _ = select.select([self.connection], [], [], min(left, _POLL_S))
            if readable and not _has_data(self.connection):
                self.close_connection = True
                raise _GoneError


# --- commands --------------------------------------------------------------------------------------------------------


def _command_of(body: bytes) -> tuple[Command | None, _RefusedError | None]:
    """Return the command of a request, or what is wrong with it; both of one that the JSON form refuses."""
    try:
        form = json.loads(body)
        if form["type"] == "runCommand":
            return parse(form["parameters"]["command"]), None
        words = {word.upper(): str(value) for word, value in form.get("parameters", {}).items()}
        words |= {word.upper(): "" for word in form.get("responseParameters", ())}
        kind = str(form["qualifier"]).upper()
        command = Command(str(form["command"]).upper(), kind, form.get("name", "*"), words)
        is_command = form["type"] == "runCommandJSON"
    except (ValueError, KeyError, TypeError, AttributeError):
        is_command = False
    if not is_command:
        return None, _RefusedError(400, "MQWB0117E", "The body of the request is not valid.")
    is_refused = command.kind in NOT_IN_JSON or (command.kind == "CONN" and command.type not in {"", "CONN"})
    return command, _RefusedError(*_NOT_IN_JSON) if is_refused else None


def _run(mqweb: MqwebServer, qmgr: str, command: Command, body: bytes, fault: Fault | None) -> bytes:
    """Return the body of the answer to a command. _RefusedError: an attribute is not displayable."""
    is_json = json.loads(body)["type"] == "runCommandJSON"
    what = None if fault is None else fault.kind
    try:
        with mqweb.lock:
            responses = _responses(mqweb.system, qmgr, command, is_json=is_json, is_failing=what == "failed")
        is_whole = True
    except CommandError as error:
        if error.is_attribute and is_json:
            raise _RefusedError(400, "MQWB0120E", error.message) from None
        responses, is_whole = [{"completionCode": 2, "reasonCode": error.reason, "message": [error.message]}], False
    if what == "partial":
        failure = {"completionCode": 2, "reasonCode": 2071, "message": ["CSQM086E not enough storage"]}
        responses, is_whole = [*responses[: len(responses) // 2], failure], False
    overall = {"overallCompletionCode": 0 if is_whole else 2, "overallReasonCode": 0 if is_whole else 3008}
    return json.dumps({"commandResponse": responses, **overall}).encode()


def _responses(system: System, qmgr: str, command: Command, *, is_json: bool, is_failing: bool) -> list[dict[str, Any]]:
    done = {"completionCode": 0, "reasonCode": 0}
    if is_failing:
        raise CommandError(3008, "CSQN206I the command server is stopping")
    if command.verb != "DISPLAY":
        raise CommandError(2035, "the user may only display")
    sent = [{**done, "reasonCode": _MORE, "text": lines} for lines in system.sent(qmgr, command)]
    if is_json:
        rows = system.rows(qmgr, command)
        return [*sent, *({**done, "parameters": {word.lower(): row[word] for word in row}} for row in rows)]
    return [*sent, *({**done, "text": lines} for lines in system.texts(qmgr, command))]


def _words(command: Command) -> str:
    """Return a command in words: DISPLAY QSTATUS(*) TYPE(QUEUE) ALL."""
    rest = [f"{word}({value})" if value else word for word, value in command.words.items()]
    name = "" if command.kind in {"QMGR", "USAGE", "QMSTATUS"} else f"({command.name})"
    return " ".join((command.verb, f"{command.kind}{name}", *rest))


def _has_data(connection: socket.socket) -> bool:
    """Return False where the other side has closed a connection."""
    if isinstance(connection, ssl.SSLSocket):
        connection.settimeout(0.0)
        try:
            return bool(connection.recv(1))
        except (ssl.SSLError, OSError) as error:
            return isinstance(error, ssl.SSLWantReadError)
        finally:
            connection.settimeout(_Handler.timeout)
    return bool(connection.recv(1, socket.MSG_PEEK))


def _close(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it is closed
