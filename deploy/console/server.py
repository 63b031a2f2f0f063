"""The console's address, its protection, and the thread that serves it."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import resource
import socket
import stat
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import structlog
import uvicorn
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

from deploy.console import DEFAULT_PORT
from deploy.console.answers import Answers
from deploy.console.app import Answer, ConsoleState, Tools, new_app
from deploy.console.identity import Identity, Proxy
from deploy.console.model import ConsoleModel
from deploy.console.past import Past
from deploy.console.sites import PageModel
from twin.base.errors import MqtwinError, UsageError
from twin.base.outputs import read_secret

if TYPE_CHECKING:
    from deploy.console.acts import ActDesk

_MIN_TOKEN_CHARACTERS = 16
_START_SECONDS = 20.0
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_HEADER_S = 10.0  # for the head of a request to arrive
_STALL_S = 60.0  # for a client to take what waits for it
_MAX_CONNECTIONS = 512
_SPARE_DESCRIPTORS = 160  # for files, Kafka, and what is accepted before its protocol is asked: some turns of the loop
_BACKLOG = 25  # connections that are accepted in one turn of the loop

_log = structlog.get_logger("mqtwin.console")


@dataclass(frozen=True, kw_only=True)
class Listen:
    """Where a console listens, and who may ask."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT  # 0 takes a free one
    path: Path | None = None  # socket in the file system, instead of host and port
    token: str | None = None  # that clients must know; None: none
    identity: Identity | None = None
    certificate: Path | None = None  # file (PEM); None: no TLS here
    key: Path | None = None
    behind_proxy: bool = False  # a proxy in front ends TLS
    allowed_hosts: tuple[str, ...] = ()  # further names by which browsers may call it

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise UsageError("--tls-certificate and --tls-key belong together; expected: both or none")
        if isinstance(self.identity, Proxy) and self.identity.is_socket != (self.path is not None):
            raise UsageError("--trust-proxy unix and --listen unix:PATH belong together; expected: both or none")
        if self.is_local:
            return
        if self.token is None and self.identity is None:
            raise UsageError(
                f"--listen: {self.host} can be reached by others; expected: --token-file FILE, or a sign-in "
                "(--trust-proxy, --oidc-issuer)"
            )
        if self.certificate is None and not self.behind_proxy:
            raise UsageError(
                f"--listen: {self.host} without TLS; expected: --tls-certificate FILE --tls-key FILE, or --behind-proxy"
            )

    @property
    def is_local(self) -> bool:
        """True if only this machine can connect."""
        if self.path is not None:
            return True
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def hosts(self) -> list[str]:
        """The names that the Host header may have; others may be a page elsewhere that was led here (DNS rebinding)."""
        names = [*(_LOOPBACK_NAMES if self.is_local else (self.host,)), *self.allowed_hosts]
        if not self.is_local and self.host in {"0.0.0.0", "::"}:  # noqa: S104 - compared, not bound
            names += [*_LOOPBACK_NAMES, socket.gethostname(), socket.getfqdn()]
        return list(dict.fromkeys(names))

    @property
    def is_tls(self) -> bool:
        """True if browsers see https."""
        return self.certificate is not None or self.behind_proxy


@dataclass(frozen=True, kw_only=True)
class Site:
    """A job of several in one console. Attributes as of `ConsoleServer`, past for its answers, too."""

    model: ConsoleModel
    past: Past | None
    take_note: Answer


def read_token(path: Path) -> str:
    """Return the token in a file. UsageError: the file cannot be read, or others may read it, or the token is short."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise UsageError(f"--token-file {path} cannot be read: {error}; expected: a file with the token") from None
    if mode & 0o077:
        raise UsageError(f"--token-file {path} can be read by others (mode {mode:o}); expected: chmod 600 {path}")
    token = read_secret("--token-file", path)
    if len(token) < _MIN_TOKEN_CHARACTERS or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(
            f"--token-file {path}: expected one word of {_MIN_TOKEN_CHARACTERS} or more printable ASCII characters"
        )
    return token


class _Protocol(H11Protocol):
    """uvicorn's protocol with deadlines for the head of a request and for reading, and room for new connections.

    Where all connections are taken, the oldest that has not sent the head of a request yet is closed: a client that
    sends it is always answered. If none is, the new one is closed.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._deadline: asyncio.TimerHandle | None = None  # while the head of a request is awaited
        self._stall: asyncio.TimerHandle | None = None  # while the client does not read

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()
        if len(self.connections) >= (self.limit_concurrency or _MAX_CONNECTIONS):
            waiting = [own for own in self.connections if isinstance(own, _Protocol) and own.has_sent_no_head]
            min(waiting, key=_Protocol.deadline_s, default=self).abort()

    @override
    def data_received(self, data: bytes) -> None:
        self._await_head()
        requests = self.cycle
        super().data_received(data)
        if self.cycle is not requests:
            self._forget_deadline()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        self._forget_stall()
        super().connection_lost(exc)

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall = self.loop.call_later(_STALL_S, self.abort)

    @override
    def resume_writing(self) -> None:
        self._forget_stall()
        super().resume_writing()

    @property
    def has_sent_no_head(self) -> bool:
        """True while the head of a request is awaited."""
        return self._deadline is not None

    def deadline_s(self) -> float:
        """Return when it must have come, in the time of the loop."""
        return 0.0 if self._deadline is None else self._deadline.when()

    def abort(self) -> None:
        """Close the connection at once."""
        self._forget_deadline()
        self.transport.abort()

    def _await_head(self) -> None:
        """Start the deadline, unless it runs or a request is being answered."""
        if self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._deadline = self.loop.call_later(_HEADER_S, self.abort)

    def _forget_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _ConnectionErrors:
    """The exception handler of the loop: the first, second, fourth, eighth ... of its errors are a line each."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._count += 1
        if self._count & (self._count - 1) == 0:
            error = context.get("exception")
            why = str(context.get("message")) if error is None else f"{type(error).__name__}: {error}"
            _log.error("a connection failed", why=why, errors=self._count)


def _raise_descriptor_limit() -> int:
    """Raise the limit of open files to what this process may have, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard in (soft, resource.RLIM_INFINITY):
        return sys.maxsize if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


class ConsoleServer:
    """A console that is being served, from a thread of its own. A context manager. Without `answers` there is no what-
    if, without `past` only the present, without `take_note` and `desk` nothing is written. `tools` are served in the
    place of the page. With `sites`, consoles by the first part of their addresses, the page is about all of them.
    UsageError: the port is taken, or the TLS files cannot be used. MqtwinError: the chart library cannot be fetched, or
    the server does not start.
    """

    def __init__(
        self,
        model: PageModel,
        listen: Listen,
        answers: Answers | None = None,
        past: Past | None = None,
        take_note: Answer | None = None,
        tools: Tools | None = None,
        sites: Mapping[str, Site] | None = None,
        desk: ActDesk | None = None,
    ) -> None:
        new_state = partial(
            ConsoleState,
            hosts=listen.hosts,
            token=listen.token,
            is_tls=listen.is_tls,
            identity=listen.identity,
            is_stopping=asyncio.Event(),
        )
        below = {
            name: new_state(site.model, answers=site.past, past=site.past, take_note=site.take_note, name=name)
            for name, site in (sites or {}).items()
        }
        self._state = new_state(
            model, answers=answers, past=past, take_note=take_note, tools=tools, sites=below, desk=desk
        )
        self._listen = listen
        config = uvicorn.Config(
            new_app(self._state),
            log_config=None,
            log_level="error",
            access_log=False,
            lifespan="off",
            http=_Protocol,
            backlog=_BACKLOG,
            limit_concurrency=min(_MAX_CONNECTIONS, max(16, _raise_descriptor_limit() - _SPARE_DESCRIPTORS)),
            ws="none",
            server_header=False,
            proxy_headers=False,
            ssl_certfile=listen.certificate,
            ssl_keyfile=listen.key,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=2,
            h11_max_incomplete_event_size=32 * 1024,
        )
        try:
            config.load()
        except (OSError, ValueError) as error:
            raise UsageError(
                f"--tls-certificate {listen.certificate}: {error}; expected: a PEM file, and its key in --tls-key"
            ) from None
        self._socket = _bound(listen)
        self._server = uvicorn.Server(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._has_ended = threading.Event()
        self._problem = ""
        self._thread = threading.Thread(target=self._run, name="mqtwin-console", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if self._has_ended.is_set() or time.monotonic() > deadline:
                raise MqtwinError(f"the console at {self.address} does not start{self._problem}")
            time.sleep(0.02)

    @property
    def address(self) -> str:
        """The address for a browser, or of the socket for a proxy."""
        if self._listen.path is not None:
            return f"unix:{self._listen.path}"
        host, port = self._socket.getsockname()[:2]
        name = f"[{host}]" if ":" in host else host
        return f"http{'s' if self._listen.certificate else ''}://{name}:{port}/"

    @property
    def clients(self) -> int:
        """Number of clients that receive events now."""
        return self._state.clients + sum(site.clients for site in self._state.sites.values())

    def _run(self) -> None:
        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            self._loop.set_exception_handler(_ConnectionErrors())
            async with nullcontext() if self._state.tools is None else self._state.tools.running():
                await self._server.serve(sockets=[self._socket])

        try:
            asyncio.run(serve())
        except Exception as error:  # noqa: BLE001 -- `wait` reports it
            self._problem = f": {type(error).__name__}: {error}"
        finally:
            self._has_ended.set()

    def wait(self) -> None:
        """Wait until the server ends by itself. MqtwinError: it did.

        It waits for an event, as a signal that interrupts `Thread.join` leaves the thread marked as ended.
        """
        while not self._has_ended.wait(timeout=1):
            pass
        raise MqtwinError(f"the console at {self.address} has ended{self._problem}")

    def close(self) -> None:
        """Stop serving."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._state.is_stopping.set)
        self._server.should_exit = True
        self._has_ended.wait(timeout=10)
        self._socket.close()
        if self._listen.path is not None:
            self._listen.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _bound(listen: Listen) -> socket.socket:
    if listen.path is not None:
        return _bound_to_file(listen.path)
    host, port = listen.host, listen.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise UsageError(f"--listen {host}:{port}: {error.strerror or error}; expected: a free address") from None
    return bound


def _bound_to_file(path: Path) -> socket.socket:
    """Return a socket in the file system, for this user and its group; one that a dead console has left is replaced."""
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.is_socket() and bound.connect_ex(str(path)) == errno.ECONNREFUSED:
            path.unlink()
        bound.close()
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        bound.bind(str(path))
        path.chmod(0o660)
    except OSError as error:
        bound.close()
        raise UsageError(f"--listen unix:{path}: {error.strerror or error}; expected: a name that is free") from None
    return bound
