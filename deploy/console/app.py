"""The web application: the page, the stream of changes, the history of a store. It executes nothing, and writes nothing
but notes of people on alerts, and what they request and approve.

Changes go out as Server-Sent Events, at most one a second for each client. There is no queue: an event holds what
changed since the last one that this client took, so a slow client gets the latest state and nothing in between.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import hmac
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import msgspec
import structlog
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deploy.console.answers import Answers
from deploy.console.identity import UNNAMED, Identity, NotSignedInError, Person, Role, SignIn, needed_role
from deploy.console.model import ConsoleModel
from deploy.console.past import Past, seconds_of
from deploy.console.sites import PageModel
from twin.base.decoding import UNREADABLE
from twin.base.errors import MqtwinError, UsageError

if TYPE_CHECKING:  # it needs Kafka, which a recording does not
    from deploy.console.acts import ActDesk

MAX_CLIENTS = 64  # that receive events at a time
MAX_BODY_BYTES = 16 * 1024
TOOLS_PATH = "/mcp"
PATHS_OF_SITES = ("/", "/static/{name}", "/login", "/callback", "/logout", "/api/session", "/api/events")
PERIOD_S = 1.0  # between two events to a client
_BEAT_PERIODS = 2  # without a change, from which an event about freshness is sent
_BODY_S = 10.0  # for the body of a request
_RETRY_MS = 2_000  # after which a browser connects again

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_COOKIE = "mqtwin-console"
_OWN_FILES = {
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "chart.js": "text/javascript; charset=utf-8",
    "map.js": "text/javascript; charset=utf-8",
    "notes.js": "text/javascript; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "past.js": "text/javascript; charset=utf-8",
    "whatif.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "sites.js": "text/javascript; charset=utf-8",
    "uPlot.iife.min.js": "text/javascript; charset=utf-8",  # charts: of others, uPlot.LICENSE
    "uPlot.min.css": "text/css; charset=utf-8",
}

_log = structlog.get_logger("mqtwin.console")

Answer = Callable[[object], object]  # of the decoded body of a request. MqtwinError: it cannot be answered
_Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Tools:
    """An application for programs, in the place of the page. running: a context while it is served."""

    app: ASGIApp
    running: Callable[[], AbstractAsyncContextManager[None]]


@dataclass(slots=True)
class ConsoleState:
    """The model, the settings and the clients of an application."""

    model: PageModel
    hosts: Sequence[str]  # values of the Host header that are answered
    token: str | None = None  # of clients that do not say otherwise who they are; None: none
    is_tls: bool = False  # True if browsers see https
    identity: Identity | None = None
    answers: Answers | None = None
    past: Past | None = None
    take_note: Answer | None = None
    desk: ActDesk | None = None
    tools: Tools | None = None  # in the place of the page
    sites: Mapping[str, ConsoleState] = field(default_factory=dict)  # below their names; the page is about all of them
    name: str = ""  # below which it is served; "": it stands alone, or above others
    period_s: float = PERIOD_S  # between two events to a client
    clients: int = 0  # that receive events now
    is_stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def about(self, person: Person = UNNAMED) -> dict[str, Any]:
        """Return what the page of somebody is told about the console itself, and about them."""
        place = {"site": self.name, "above": "../"} if self.name else {}
        return {
            **place,
            "clients": self.clients,
            "what_if": self.answers is not None,
            "recording": None if self.past is None else self.past.recording,
            "has_past": self.past is not None,
            "takes_notes": self.take_note is not None and person.role >= needed_role("/note"),
            "who": person.name,
            "role": person.role.name.lower(),
            "sign_in": self.sign_in,
        }

    @property
    def sign_in(self) -> str:
        """The offer of the page to those who are signed out: token, login or reload."""
        return "token" if self.identity is None else self.identity.sign_in

    def is_over(self, person: Person) -> bool:
        """Return True once somebody has to say again who they are."""
        return self.identity is not None and self.identity.is_over(person)


def new_app(state: ConsoleState) -> Starlette:
    """Return the application."""
    middleware = [
        Middleware(_SecurityHeaders),
        Middleware(TrustedHostMiddleware, allowed_hosts=list(state.hosts), www_redirect=False),
    ]
    return _app_of(state, middleware)


def _app_of(state: ConsoleState, middleware: Sequence[Middleware] = ()) -> Starlette:
    """Return the application with the same doors for each site, which stands behind the middleware of the whole."""
    own = _OF_SITES if state.sites else _OF_PAGE if state.tools is None else _OF_TOOLS
    below = [Mount(f"/{name}", _app_of(site)) for name, site in state.sites.items()]
    app = Starlette(routes=[*own, *_OF_HEALTH, *below], middleware=middleware)
    app.state.console = state
    return app


class _SecurityHeaders:
    """Adds the headers that protect the page to every response, errors too."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name for name, _ in message["headers"]}
                caching = () if b"cache-control" in names else ((b"cache-control", b"no-store"),)
                message = {**message, "headers": [*message["headers"], *_HEADERS, *caching]}
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)


# --- who may ask ------------------------------------------------------------------------------------------------------


def _cookie_of(token: str) -> str:
    """Return the cookie of a browser that knows the token; it does not reveal the token."""
    return hmac.new(token.encode(), b"mqtwin console", hashlib.sha256).hexdigest()


def _knows_token(request: Request, token: str) -> bool:
    kind, _, credentials = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return hmac.compare_digest(credentials.strip().encode(), token.encode())
    return hmac.compare_digest(request.cookies.get(_COOKIE, "").encode(), _cookie_of(token).encode())


def _console(request: Request) -> ConsoleState:
    state: ConsoleState = request.app.state.console
    return state


def _person(request: Request) -> Person:
    """Return who asks. NotSignedInError: they do not say, or in a way that is not believed."""
    console = _console(request)
    if console.identity is not None:
        person = console.identity.person(request)
        if person is not None:
            return person
    elif console.token is None:
        return UNNAMED
    if console.token is not None and _knows_token(request, console.token):
        return UNNAMED
    if console.identity is None:
        raise NotSignedInError("no valid token; expected: Authorization: Bearer TOKEN, the line of --token-file")
    raise NotSignedInError("nobody is signed in; expected: a sign-in")


def _is_own_page(request: Request) -> bool:
    """Return False if a page of another site asks. Browsers say so by one header or, older ones, by another."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in {"same-origin", "none"}
    origin = request.headers.get("origin")
    if origin is None:
        return True
    host = re.fullmatch(r"https?://([^/?#@]*?)(:[0-9]+)?", origin)
    own = {*_console(request).hosts, re.sub(r":[0-9]+$", "", request.headers.get("host", ""))}
    return host is not None and host[1] in own


def _door(path: str, handler: _Handler, method: str = "GET") -> Route:
    """Return a route for those who have the role of its row, and for pages of this server. LookupError: it has none."""
    needed = needed_role(path, method)

    async def checked(request: Request) -> Response:
        if (method == "POST" or needed > Role.NOBODY) and not _is_own_page(request):
            return _problem(403, "a page of another site asked; expected: the console's own page")
        if needed > Role.NOBODY:
            console = _console(request)
            try:
                person = request.state.person = _person(request)
            except NotSignedInError as error:
                answer = _json({"detail": str(error), "sign_in": console.sign_in}, 401)
                if console.token is not None:
                    answer.headers["www-authenticate"] = "Bearer"
                return answer
            if person.role < needed:
                return _json(_refusal(person, needed) | {"sign_in": console.sign_in}, 403)
        return await handler(request)

    return Route(path, checked, methods=[method])


def _refusal(person: Person, needed: Role) -> dict[str, str]:
    who = person.name or "this client"
    has = "has no role" if person.role is Role.NOBODY else f"is a {person.role.name.lower()}"
    return {"detail": f"{who} {has} here; expected: {needed.name.lower()}", "who": who}


def _problem(status: int, detail: str) -> Response:
    return _json({"detail": detail}, status)


def _json(content: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, media_type="application/json")


# --- files ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    packed: bytes  # by gzip
    media_type: str
    tag: str


@cache
def _files() -> dict[str, _File]:
    """Return every file that a page may ask for, and the pages, by name."""
    own = resources.files("deploy").joinpath("console", "static")
    types = {**dict.fromkeys(("index.html", "sites.html"), "text/html; charset=utf-8"), **_OWN_FILES}
    contents = {name: own.joinpath(name).read_bytes() for name in types}
    return {
        name: _File(
            content, gzip.compress(content, mtime=0), types[name], f'W/"{hashlib.sha256(content).hexdigest()[:24]}"'
        )
        for name, content in contents.items()
    }


def _file_response(request: Request, name: str) -> Response:
    file = _files()[name]
    headers = {"etag": file.tag, "cache-control": "no-cache", "vary": "accept-encoding"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    headers["content-type"] = file.media_type
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(file.content, headers=headers)
    return Response(file.packed, headers={**headers, "content-encoding": "gzip"})


async def _page(request: Request) -> Response:
    return _file_response(request, "sites.html" if _console(request).sites else "index.html")


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _OWN_FILES:
        return _problem(404, f"{name[:80]}: no such file")
    return _file_response(request, name)


# --- data -------------------------------------------------------------------------------------------------------------


async def _session(request: Request) -> Response:
    """Answer a browser that knows the token with a cookie, since it cannot send a header with every request."""
    console, person = _console(request), request.state.person
    response = _json({"token_needed": console.token is not None, "who": person.name, "role": person.role.name.lower()})
    if console.token is not None and person.name is None:
        cookie = _cookie_of(console.token)
        response.set_cookie(_COOKIE, cookie, httponly=True, samesite="strict", secure=console.is_tls)
    return response


async def _events(request: Request) -> Response:
    console = _console(request)
    if console.clients >= MAX_CLIENTS:
        return _problem(503, f"{MAX_CLIENTS} clients receive events already; expected: fewer")
    since = _version_of(request.headers.get("last-event-id", ""), console.model.epoch)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    content = stream(console, since, request.state.person)
    return StreamingResponse(content, media_type="text/event-stream", headers=headers)


async def stream(console: ConsoleState, since: int, person: Person = UNNAMED) -> AsyncIterator[bytes]:
    """Yield Server-Sent Events for one client until the server stops, or until it has to say again who it is. `since`
    is the version that the client has, 0: none.
    """
    model = console.model
    console.clients += 1
    try:
        yield f"retry: {_RETRY_MS}\n\n".encode()
        idle = 0
        while not console.is_stopping.is_set():
            if console.is_over(person):
                yield b"event: again\ndata: {}\n\n"
                return
            if model.version > since or since <= 0:
                since, content = model.changes(since, console.about(person))
                since = max(since, 1)
                yield _event("changes", content, f"{model.epoch}-{since}")
                idle = 0
            elif idle >= _BEAT_PERIODS:
                yield _event("beat", model.beat(console.about(person)), f"{model.epoch}-{since}")
                idle = 0
            idle += 1
            try:
                await asyncio.wait_for(console.is_stopping.wait(), console.period_s)
            except TimeoutError:
                continue
    finally:
        console.clients -= 1


def _event(name: str, content: bytes, event_id: str) -> bytes:
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (event_id.encode(), name.encode(), content)


def _version_of(event_id: str, epoch: str) -> int:
    """Return the version in the id of an event; 0 for an id of another process, or none."""
    own, _, version = event_id.partition("-")
    return int(version) if own == epoch and version.isascii() and version.isdigit() and len(version) < 16 else 0


async def _history(request: Request) -> Response:
    console = _console(request)
    store, time, past = request.query_params.get("store", ""), request.query_params.get("t"), console.past
    if past is None or (time is None and past.recording is None):
        assert isinstance(console.model, ConsoleModel)
        return _columns(store, console.model.history(store))
    asked = past.moments.first if time is None else None

    def read(past: Past) -> Response:
        return _columns(store, past.played(seconds_of(time or "") if asked is None else asked).history(store))

    return await _from_past(request, read)


def _columns(store: str, columns: dict[str, Any] | None) -> Response:
    if columns is None:
        return _problem(404, f"store={store[:80]}: no state record yet; expected: a store of the overview")
    return _json(columns)


async def _moments(request: Request) -> Response:
    return await _from_past(request, lambda past: _json(past.moments))


async def _moment(request: Request) -> Response:
    """Answer with everything as of a moment, in the form of the first event of a stream."""
    console = _console(request)

    def read(past: Past) -> Response:
        time_s = seconds_of(request.query_params.get("t", ""))
        played = past.played(time_s)
        extra = {**console.about(request.state.person), "recording": played.moments.name}
        return Response(played.model_at(time_s).changes(0, extra)[1], media_type="application/json")

    return await _from_past(request, read)


async def _state(request: Request) -> Response:
    """Answer with the state records as of a time, exactly."""

    def read(past: Past) -> Response:
        time_s, store = seconds_of(request.query_params.get("at", "")), request.query_params.get("store")
        return _json(past.played(time_s).states(round(time_s * 1_000_000), store))

    return await _from_past(request, read)


async def _from_past(request: Request, read: Callable[[Past], Response]) -> Response:
    past = _console(request).past
    if past is None:
        return _no_past()
    try:
        return await run_in_threadpool(read, past)
    except UsageError as error:
        return _problem(400, str(error))
    except MqtwinError as error:
        return _problem(503, str(error))


def _no_past() -> Response:
    return _problem(404, "this console shows the present; expected: mqtwin console --recording FILE, or --estate FILE")


async def _question(request: Request) -> Response:
    answers = _console(request).answers
    if answers is None:
        return _problem(404, "this console answers no questions; expected: mqtwin console --estate FILE")
    return await _asked(request, answers.what_if if request.url.path.endswith("/whatif") else answers.advise)


async def _hindsight(request: Request) -> Response:
    past = _console(request).past
    return _no_past() if past is None else await _asked(request, past.hindsight)


async def _note(request: Request) -> Response:
    take_note = _console(request).take_note
    if take_note is None:
        return _problem(404, "this console takes no notes; expected: mqtwin console --bootstrap-servers HOST:PORT")
    person = request.state.person

    def take(content: object) -> object:
        if person.name is not None and isinstance(content, dict):  # whatever name the client sends
            content = {**content, "who": person.name}
        return take_note(content)

    return await _asked(request, take)


async def _acts(request: Request) -> Response:
    desk = _console(request).desk
    return _no_desk() if desk is None else await _answered(lambda _: desk.views(), None)


async def _request_act(request: Request) -> Response:
    response = await _desk_answer(request, lambda desk, content, who: desk.request(content, who))
    if response.status_code == 200:
        response.status_code = 201
    return response


def _of_act(verb: str) -> _Handler:
    """Return what answers people who approve a request, withdraw it or say its result."""

    async def handler(request: Request) -> Response:
        act_id = request.path_params["id"]
        return await _desk_answer(request, lambda desk, content, who: getattr(desk, verb)(act_id, content, who))

    return handler


async def _desk_answer(request: Request, say: Callable[[ActDesk, object, str], object]) -> Response:
    """Return the answer to what somebody requests, approves or says, under the name that is verified."""
    desk, who = _console(request).desk, request.state.person.name
    if desk is None:
        return _no_desk()
    if who is None:
        return _problem(403, "nobody has verified who asks; expected: a sign-in (--trust-proxy, --oidc-issuer)")
    return await _asked(request, lambda content: say(desk, content, who))


def _no_desk() -> Response:
    return _problem(404, "nothing is requested here; expected: mqtwin console --actions FILE")


async def _asked(request: Request, answer: Answer) -> Response:
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        return _problem(415, "expected: content-type application/json")
    try:
        content = msgspec.json.decode(await _body(request))
    except _BodyError as error:
        return _problem(error.status, str(error))
    except UNREADABLE as error:
        return _problem(400, f"the body is not JSON: {error}")
    return await _answered(answer, content)


class _BodyError(Exception):
    """A body that does not come, or not in time; the text is for the client."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


async def _body(request: Request) -> bytes:
    """Return the body of a request. _BodyError: it is too large, or slow."""
    body = b""
    try:
        async with asyncio.timeout(_BODY_S):
            async for part in request.stream():
                body += part
                if len(body) > MAX_BODY_BYTES:
                    raise _BodyError(413, f"the body is larger than {MAX_BODY_BYTES} bytes")
    except TimeoutError:
        raise _BodyError(408, f"the body has not come within {_BODY_S:g} s") from None
    return body


async def _answered(answer: Answer, content: object) -> Response:
    try:
        return _json(await run_in_threadpool(answer, content))
    except MqtwinError as error:
        return _problem(422, str(error))
    except Exception as error:  # noqa: BLE001 -- a defect costs this request, and one line of the log
        _log.error("a question failed", why=f"{type(error).__name__}: {error}")
        return _problem(500, "a defect of mqtwin console; its log says which")


# --- sign-in ----------------------------------------------------------------------------------------------------------


async def _sign_in(request: Request) -> Response:
    """Send a browser to where it signs in, take it back from there, or sign it out."""
    identity, step = _console(request).identity, request.url.path.rpartition("/")[2]
    if not isinstance(identity, SignIn):
        return _problem(404, "nobody signs in here; expected: mqtwin console --oidc-issuer URL")
    if step == "logout":
        return identity.logout(request)
    return await (identity.login if step == "login" else identity.callback)(request)


# --- tools of programs ------------------------------------------------------------------------------------------------


class _Asked(Response):
    """The answer of another application to a request whose body has been read."""

    def __init__(self, app: ASGIApp, body: bytes) -> None:
        super().__init__()
        self._app, self._body = app, body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_read = False

        async def body_first() -> Message:
            nonlocal is_read
            if is_read:
                return await receive()
            is_read = True
            return {"type": "http.request", "body": self._body, "more_body": False}

        await self._app(scope, body_first, send)


async def _tools(request: Request) -> Response:
    tools = _console(request).tools
    assert tools is not None
    try:
        return _Asked(tools.app, await _body(request))
    except _BodyError as error:
        return _problem(error.status, str(error))


# --- health -----------------------------------------------------------------------------------------------------------


async def _healthz(_: Request) -> Response:
    return _json({"status": "alive"})


async def _readyz(request: Request) -> Response:
    console = _console(request)
    model, problem = console.model, "" if console.answers is None else console.answers.problem()
    content: dict[str, Any] = {"status": "ready", "unreadable": model.unreadable}
    if not model.is_ready:
        content["status"] = f"not ready: {model.problem or 'the topics are being read, or no broker answers'}"
    elif model.problem:
        content["problem"] = model.problem
    if problem:
        content["what_if"] = problem
    return _json(content, 200 if model.is_ready else 503)


_OF_PAGE = [
    _door("/", _page),
    _door("/static/{name}", _static),
    _door("/login", _sign_in),
    _door("/callback", _sign_in),
    _door("/logout", _sign_in, "POST"),
    _door("/api/session", _session, "POST"),
    _door("/api/events", _events),
    _door("/api/history", _history),
    _door("/api/moments", _moments),
    _door("/api/at", _moment),
    _door("/api/state", _state),
    _door("/whatif", _question, "POST"),
    _door("/advise", _question, "POST"),
    _door("/hindsight", _hindsight, "POST"),
    _door("/note", _note, "POST"),
    _door("/api/acts", _acts),
    _door("/api/acts", _request_act, "POST"),
    _door("/api/acts/{id}/approve", _of_act("approve"), "POST"),
    _door("/api/acts/{id}/withdraw", _of_act("withdraw"), "POST"),
    _door("/api/acts/{id}/result", _of_act("result"), "POST"),
]
_OF_SITES = [door for door in _OF_PAGE if door.path in PATHS_OF_SITES]
_OF_TOOLS = [_door(TOOLS_PATH, _tools, "POST")]
_OF_HEALTH = [_door("/healthz", _healthz), _door("/readyz", _readyz)]
