"""HTTP requests of collectors and bridges: one deadline for the whole of a request, and answers of bounded size.

A server may send a byte now and then, or without end: neither holds up a request beyond its deadline, nor fills memory.
"""

from __future__ import annotations

import base64
import ipaddress
import math
import ssl
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx
import msgspec
from typing_extensions import override

from twin.base.errors import UsageError
from twin.base.outputs import read_secret

DEADLINE_S = 60.0  # of a request for a page, whose answer may be large
MAX_BYTES = 256 << 20  # of an answer
_REASON_CHARACTERS = 200
_PIECE_BYTES = 4096  # that are written with one look at the clock
_IDLE_S = 5.0  # seconds that a connection is kept for another request
_HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "mqtwin"}
_FAILURES = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
)
_BEFORE = (  # failures before a request is sent
    httpcore.ConnectError,
    httpcore.ConnectTimeout,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
    httpx.InvalidURL,
)
_UNTRUSTED = "the certificate of the server is not trusted"
_CERTIFICATES = {  # what is wrong with a certificate, by OpenSSL's code of X509_V_ERR
    9: "the certificate of the server is not yet valid; expected: a clock that is right, or another certificate",
    10: "the certificate of the server has expired; expected: a renewed one",
    18: f"{_UNTRUSTED}: it is self-signed; expected: --ca-file with it",
    19: f"{_UNTRUSTED}: its authority is unknown; expected: --ca-file with the certificate of the authority",
    20: f"{_UNTRUSTED}: its authority is unknown; expected: --ca-file with the certificate of the authority",
    62: "the certificate of the server is for another host name; expected: a name of the certificate in the address",
    64: "the certificate of the server is for another address; expected: a name of the certificate in the address",
}


class RequestError(Exception):
    """A request that failed; the message is a line without secrets. is_sent: False if no server can have seen it."""

    def __init__(self, text: str, *, is_sent: bool = True) -> None:
        super().__init__(text)
        self.is_sent = is_sent


class Answer(msgspec.Struct, frozen=True):
    """An answer. Names of headers are in lower case. The body has at most as many bytes as requested and what arrived
    in time; `problem` says why it is not whole.
    """

    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    problem: str

    def header(self, name: str) -> str:
        """Return the first value of a header; empty if it is missing."""
        return next((value for own, value in self.headers if own == name), "")


class _Network(httpcore.NetworkBackend):
    """The network of a client that makes one request at a time: each wait ends at the deadline of the request.

    httpcore has timeouts for each wait alone, which a server can begin anew with each byte.
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
    def __init__(self, stream: httpcore.NetworkStream, network: _Network) -> None:
        self._stream, self._network = stream, network

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

    A context manager. `deadline_s` is for the whole of a request, from connecting to the last byte of the answer.
    """

    def __init__(self, deadline_s: float, *, context: ssl.SSLContext | None = None, has_proxies: bool = True) -> None:
        self._deadline_s = deadline_s
        self._context = context or ssl.create_default_context()
        self._has_proxies = has_proxies
        self._network = _Network()
        self._pools: dict[str | None, httpcore.ConnectionPool] = {}  # by proxy

    def ask(
        self, method: str, url: str, headers: Mapping[str, str], *, max_bytes: int, content: bytes | None = None
    ) -> Answer:
        """Return the answer to a request. Beyond `max_bytes` of body the connection is closed. RequestError: no status
        came in time; the message does not name the address.
        """
        self._network.ends_s = time.monotonic() + self._deadline_s
        try:
            address = httpx.URL(url)
            pool = self._pool(_proxy_of(address) if self._has_proxies else None)
            target = httpcore.URL(
                scheme=address.raw_scheme, host=address.raw_host, port=address.port, target=address.raw_path
            )
            with pool.stream(method, target, headers=list({**_HEADERS, **headers}.items()), content=content) as answer:
                body, problem = bytearray(), ""
                try:
                    for part in answer.iter_stream():
                        body += part
                        if len(body) > max_bytes:
                            problem = f"more than {max_bytes} bytes"
                            break
                except _FAILURES as error:
                    problem = self._text(error)
                own = tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in answer.headers)
                reason = answer.extensions.get("reason_phrase", b"").decode("ascii", "replace")
                return Answer(answer.status, reason, own, bytes(body[:max_bytes]), problem)
        except (*_FAILURES, httpx.InvalidURL) as error:
            raise RequestError(self._text(error), is_sent=not isinstance(error, _BEFORE)) from None

    def _pool(self, proxy: str | None) -> httpcore.ConnectionPool:
        if proxy not in self._pools:
            own = None if proxy is None else httpx.URL(proxy)
            auth = (own.username, own.password) if own is not None and own.username else None
            self._pools[proxy] = httpcore.ConnectionPool(
                ssl_context=self._context,
                proxy=None if own is None else httpcore.Proxy(str(own.copy_with(userinfo=b"")), auth=auth),
                keepalive_expiry=_IDLE_S,
                network_backend=self._network,
            )
        return self._pools[proxy]

    def _text(self, error: Exception) -> str:
        if isinstance(error, httpcore.TimeoutException):
            return f"no whole answer within {self._deadline_s:g} s"
        cause = error.args[0] if error.args else None
        if isinstance(cause, ssl.SSLCertVerificationError) and cause.verify_code in _CERTIFICATES:
            return _CERTIFICATES[cause.verify_code]
        return " ".join(str(error).split())[:_REASON_CHARACTERS] or type(error).__name__

    def close(self) -> None:
        """Close the connections."""
        for pool in self._pools.values():
            pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _proxy_of(address: httpx.URL) -> str | None:
    """Return the proxy that the environment names for an address, by HTTP_PROXY and others; None: there is none."""
    proxies = getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(address.host):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


@dataclass(frozen=True, kw_only=True)
class HttpClient:
    """Requests to one server. Files are in PEM; a secret is the first line of its file, read at each request, so that
    it can be changed. Without `ca_file` the system's certificates count; a key without a file of its own is in
    `client_cert`, not encrypted.
    """

    user: str | None = None
    password_file: Path | None = None
    token_file: Path | None = None
    ca_file: Path | None = None
    client_cert: Path | None = None
    client_key: Path | None = None
    _context: ssl.SSLContext = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Read the certificates. UsageError: options contradict each other, or a file cannot be read."""
        if (self.user is None) != (self.password_file is None):
            raise UsageError("--user and --password-file belong together; expected: both or none")
        if self.user is not None and self.token_file is not None:
            raise UsageError("--user and --token-file; expected: one of them")
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(f"--ca-file {self.ca_file}: {error}; expected: certificates in PEM") from None
        if self.client_cert is not None:
            try:
                context.load_cert_chain(self.client_cert, self.client_key, password="")  # never ask on the terminal
            except (OSError, ssl.SSLError, ValueError) as error:
                files = f"--client-cert {self.client_cert}"
                files += "" if self.client_key is None else f" --client-key {self.client_key}"
                text = f"{files}: {error}; expected: a certificate and its private key in PEM, not encrypted"
                raise UsageError(text) from None
        elif self.client_key is not None:
            raise UsageError("--client-key belongs to a certificate; expected: --client-cert")
        object.__setattr__(self, "_context", context)
        self.authorisation()

    def get(self, url: str, accept: str) -> tuple[bytes, str]:
        """Return the body and content type of an answer. RequestError: no whole answer in time, a status other than
        200, or more than MAX_BYTES. UsageError: a file of secrets cannot be read.
        """
        place = url.partition("?")[0]
        with self.requester(DEADLINE_S) as requester:
            try:
                answer = requester.ask("GET", url, {"Accept": accept, **self.authorisation()}, max_bytes=MAX_BYTES)
            except RequestError as error:
                raise RequestError(f"{place} does not answer: {error}") from None
        if answer.status != HTTPStatus.OK:
            raise RequestError(f"{place} answers {answer.status} {answer.reason}")
        if answer.problem:
            raise RequestError(f"{place} does not answer as a whole: {answer.problem}")
        return answer.body, answer.header("content-type")

    @property
    def has_secret(self) -> bool:
        """True if it sends a password or a token."""
        return self.user is not None or self.token_file is not None

    def requester(self, deadline_s: float) -> Requester:
        """Return a client for several requests with these certificates. Each has `deadline_s`."""
        return Requester(deadline_s, context=self._context, has_proxies=False)

    def authorisation(self) -> dict[str, str]:
        """Return the header of a login with each request; none without one. UsageError: a file cannot be read."""
        if self.token_file is not None:
            return bearer(self.token_file)
        login = self.login()
        if login is None:
            return {}
        return {"Authorization": f"Basic {base64.b64encode(':'.join(login).encode()).decode()}"}

    def login(self) -> tuple[str, str] | None:
        """Return user and password; None without them. UsageError: the file cannot be read."""
        if self.user is None or self.password_file is None:
            return None
        return self.user, read_secret("--password-file", self.password_file)


def bearer(path: Path) -> dict[str, str]:
    """Return the header of a bearer token. UsageError: the file of ``--token-file`` cannot be read, or has none."""
    token = read_secret("--token-file", path)
    if not token.isascii():
        raise UsageError(f"--token-file {path} has a token that no header takes; expected: ASCII characters")
    return {"Authorization": f"Bearer {token}"}


def check_url(text: str, login: str = "--user and --password-file", *, has_secret: bool = False) -> str:
    """Return an address. With `has_secret` a password or a token is sent there: by https, or within this machine.
    UsageError: it is neither http nor https, or has credentials, which a process list would show, or is http where a
    secret would be sent in clear.
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
    if has_secret and parts.scheme == "http" and not _is_this_machine(parts.hostname or ""):
        raise UsageError(f"--url {text} would send a secret in clear; expected: https, or --allow-http")
    return text


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
