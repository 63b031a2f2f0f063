"""HTTP requests of collectors and bridges: one deadline for the whole of a request, and answers of bounded size.

A server may send a byte now and then, or without end: neither holds up a request beyond its deadline, nor fills memory.
"""

from __future__ import annotations

import base64
import math
import ssl
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import httpcore
import httpx
import msgspec
from typing_extensions import override

from twin.errors import UsageError
from twin.outputs import read_secret

DEADLINE_S = 60.0  # of a request for a page, whose answer may be large
MAX_BYTES = 256 << 20  # of an answer
_REASON_CHARACTERS = 200
_PIECE_BYTES = 4096  # that are written with one look at the clock


class RequestError(Exception):
    """A request that failed; the message is one line without secrets."""


class Answer(msgspec.Struct, frozen=True):
    """An answer.

    Args:
        status: status code of HTTP, with its words in `reason`.
        reason: see above.
        kind: content type.
        body: the bytes as they were sent, at most as many as asked for, and no more than came in time.
        problem: why the body is not whole; empty if it is.
    """

    status: int
    reason: str
    kind: str
    body: bytes
    problem: str


class _Network(httpcore.NetworkBackend):
    """The network of a client that makes one request at a time: each wait ends at the deadline of the request.

    httpx has timeouts for each wait alone, which a server can begin anew with each byte.
    """

    def __init__(self) -> None:
        self._network = httpcore.SyncBackend()
        self.ends_s = math.inf  # of the request, monotonic

    def left_s(self) -> float:
        """Return the seconds until the deadline. ReadTimeout: it has passed."""
        left_s = self.ends_s - time.monotonic()
        if left_s <= 0:
            raise httpcore.ReadTimeout
        return left_s

    @override
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        return _Stream(self._network.connect_tcp(host, port, self.left_s(), local_address, socket_options), self)

    @override
    def sleep(self, seconds: float) -> None:
        self._network.sleep(min(seconds, self.left_s()))


class _Stream(httpcore.NetworkStream):
    """A connection of such a network."""

    def __init__(self, stream: httpcore.NetworkStream, network: _Network) -> None:
        self._stream = stream
        self._network = network

    @override
    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._network.left_s())

    @override
    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PIECE_BYTES):
            self._stream.write(buffer[start : start + _PIECE_BYTES], self._network.left_s())

    @override
    def close(self) -> None:
        self._stream.close()

    @override
    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, self._network.left_s()), self._network)

    @override
    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class Requester:
    """A client for one request at a time. It follows no redirects, which could lead to an address nobody checked.

    A context manager.

    Args:
        deadline_s: seconds for the whole of a request, from connecting to the last byte of the answer.
        verify: certificates; True: those of the system.
        has_proxies: use the proxies of the environment.
    """

    def __init__(self, deadline_s: float, *, verify: ssl.SSLContext | bool = True, has_proxies: bool = True) -> None:
        self._deadline_s = deadline_s
        self._network = _Network()
        self._client = httpx.Client(verify=verify, trust_env=has_proxies, timeout=deadline_s)
        for transport in (self._client._transport, *self._client._mounts.values()):  # noqa: SLF001 -- httpx has no other way
            if isinstance(transport, httpx.HTTPTransport):
                transport._pool._network_backend = self._network  # noqa: SLF001

    def ask(
        self, method: str, url: str, headers: Mapping[str, str], *, max_bytes: int, content: bytes | None = None
    ) -> Answer:
        """Return the answer to a request.

        Args:
            method: GET or POST.
            url: http or https.
            headers: in addition to those of HTTP.
            max_bytes: maximum size of the answer's body; beyond it the connection is closed.
            content: the body of the request.

        Raises:
            RequestError: no status came in time; the message does not name the address.
        """
        self._network.ends_s = time.monotonic() + self._deadline_s
        sent = {"Accept-Encoding": "identity", **headers}
        try:
            with self._client.stream(method, url, headers=sent, content=content) as answer:
                body, problem = bytearray(), ""
                try:
                    for part in answer.iter_raw():
                        body += part
                        if len(body) > max_bytes:
                            problem = f"more than {max_bytes} bytes"
                            break
                except httpx.HTTPError as error:
                    problem = self._text(error)
                kind = answer.headers.get("content-type", "")
                return Answer(answer.status_code, answer.reason_phrase, kind, bytes(body[:max_bytes]), problem)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise RequestError(self._text(error)) from None

    def _text(self, error: Exception) -> str:
        if isinstance(error, httpx.TimeoutException):
            return f"no whole answer within {self._deadline_s:g} s"
        return " ".join(str(error).split())[:_REASON_CHARACTERS] or type(error).__name__

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, kw_only=True)
class HttpClient:
    """Requests to one server.

    Args:
        user: for basic authentication.
        password_file: its first line is the password; read at each request, so that it can be changed.
        token_file: its first line is a bearer token; likewise.
        ca_file: certificates in PEM that sign the server's; None: those of the system.
    """

    user: str | None = None
    password_file: Path | None = None
    token_file: Path | None = None
    ca_file: Path | None = None
    _context: ssl.SSLContext = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Read the certificates.

        Raises:
            UsageError: options contradict each other, or a file cannot be read.
        """
        if (self.user is None) != (self.password_file is None):
            raise UsageError("--user and --password-file belong together; expected: both or none")
        if self.user is not None and self.token_file is not None:
            raise UsageError("--user and --token-file; expected: one of them")
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(f"--ca-file {self.ca_file}: {error}; expected: certificates in PEM") from None
        object.__setattr__(self, "_context", context)
        self._authorisation()

    def get(self, url: str, accept: str) -> tuple[bytes, str]:
        """Return the body and content type of an answer.

        Args:
            url: http or https.
            accept: content type to ask for.

        Raises:
            RequestError: no whole answer in time, a status other than 200, or more than MAX_BYTES.
            UsageError: a file of secrets cannot be read.
        """
        place = url.partition("?")[0]
        with Requester(DEADLINE_S, verify=self._context, has_proxies=False) as requester:
            try:
                answer = requester.ask("GET", url, {"Accept": accept, **self._authorisation()}, max_bytes=MAX_BYTES)
            except RequestError as error:
                raise RequestError(f"{place} does not answer: {error}") from None
        if answer.status != HTTPStatus.OK:
            raise RequestError(f"{place} answers {answer.status} {answer.reason}")
        if answer.problem:
            raise RequestError(f"{place} does not answer as a whole: {answer.problem}")
        return answer.body, answer.kind

    def _authorisation(self) -> dict[str, str]:
        if self.token_file is not None:
            return bearer(self.token_file)
        if self.user is not None and self.password_file is not None:
            secret = f"{self.user}:{read_secret('--password-file', self.password_file)}".encode()
            return {"Authorization": f"Basic {base64.b64encode(secret).decode()}"}
        return {}


def bearer(path: Path) -> dict[str, str]:
    """Return the header of a bearer token. UsageError: the file of ``--token-file`` cannot be read, or has none."""
    token = read_secret("--token-file", path)
    if not token.isascii():
        raise UsageError(f"--token-file {path} has a token that no header takes; expected: ASCII characters")
    return {"Authorization": f"Bearer {token}"}


def check_url(text: str, login: str = "--user and --password-file") -> str:
    """Return an address.

    Args:
        text: the address.
        login: the options for credentials.

    Raises:
        UsageError: it is none of http or https, or has credentials, which a process list would show.
    """
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise UsageError(f"--url {text}; expected: http://HOST:PORT or https://HOST:PORT")
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"--url has credentials; expected: {login}")
    return text
