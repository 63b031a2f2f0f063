"""HTTP requests of a collector: basic authentication or a bearer token, both from files, and verified TLS."""

from __future__ import annotations

import base64
import http.client
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from twin.errors import UsageError

TIMEOUT_S = 30.0
MAX_BYTES = 256 << 20  # of an answer
_REASON_CHARACTERS = 200


class RequestError(Exception):
    """A request that failed; the message is one line without secrets."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Redirects are errors: the authorisation would go to another address."""

    def redirect_request(self, *_: object) -> None:
        """Refuse the redirect; `urlopen` raises the status as an error."""


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
            RequestError: no answer, a status other than 200, or more than MAX_BYTES.
            UsageError: a file of secrets cannot be read.
        """
        request = urllib.request.Request(url, headers={"Accept": accept, **self._authorisation()})  # noqa: S310 -- checked by `check_url`
        opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=self._context), _NoRedirect(), urllib.request.ProxyHandler({})
        )
        try:
            with opener.open(request, timeout=TIMEOUT_S) as answer:
                body = answer.read(MAX_BYTES + 1)
                kind = answer.headers.get("content-type", "")
        except urllib.error.HTTPError as error:
            with error:
                raise RequestError(f"{_without_query(url)} answers {error.code} {error.reason}") from None
        except (OSError, http.client.HTTPException) as error:
            reason = " ".join(str(getattr(error, "reason", error) or type(error).__name__).split())
            raise RequestError(f"{_without_query(url)} does not answer: {reason[:_REASON_CHARACTERS]}") from None
        if len(body) > MAX_BYTES:
            raise RequestError(f"{_without_query(url)} answers with more than {MAX_BYTES} bytes")
        return body, kind

    def _authorisation(self) -> dict[str, str]:
        if self.token_file is not None:
            return {"Authorization": f"Bearer {_first_line('--token-file', self.token_file)}"}
        if self.user is not None and self.password_file is not None:
            secret = f"{self.user}:{_first_line('--password-file', self.password_file)}".encode()
            return {"Authorization": f"Basic {base64.b64encode(secret).decode()}"}
        return {}


def check_url(text: str) -> str:
    """Return an address. UsageError: it is none of http or https, or has a user, which would be shown."""
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise UsageError(f"--url {text}; expected: http://HOST:PORT or https://HOST:PORT")
    if parts.username is not None or parts.password is not None:
        raise UsageError("--url has a user; expected: --user and --password-file")
    return text


def _first_line(option: str, path: Path) -> str:
    try:
        line = path.read_text(encoding="utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{option} {path} cannot be read: {error}; expected: a file with one line") from None
    if not line or not line.isprintable():
        raise UsageError(f"{option} {path} has no secret in its first line; expected: a file with one line")
    return line


def _without_query(url: str) -> str:
    return url.partition("?")[0]
