"""Options of commands that ask a console under a person's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Group, Parameter

from deploy.options.files import InputFile, SecretFile
from twin.decoding import UNREADABLE
from twin.errors import MqtwinError, UsageError

if TYPE_CHECKING:
    from streams.collecting.http import HttpClient

CONSOLE = Group("Console", sort_key=4)
_SECONDS = 60.0  # for an answer, which reads topics
_MAX_BYTES = 4 << 20  # of an answer


class _Problem(msgspec.Struct):
    """The answer to a request that is refused."""

    detail: str = ""


@Parameter(name="*", group=CONSOLE)
@dataclass(frozen=True, kw_only=True)
class AskedOptions:
    """The console that is asked, and who asks: it verifies that, the command line cannot."""

    url: Annotated[str, Parameter(help="Base URL of the console, as its users reach it.")]
    user: Annotated[str | None, Parameter(help="User, for basic authentication.")] = None
    password_file: Annotated[SecretFile | None, Parameter(help="File with the password in its first line.")] = None
    token_file: Annotated[SecretFile | None, Parameter(help="File with a bearer token in its first line.")] = None
    allow_http: Annotated[
        bool, Parameter(help="Send a password or a token by http, too, in clear to another machine.", negative="")
    ] = False
    ca_file: Annotated[InputFile | None, Parameter(help="Certificates (PEM) that sign the server's.")] = None

    def client(self) -> HttpClient:
        """Return the client. UsageError: options contradict each other, or a file cannot be read."""
        from streams.collecting.http import HttpClient

        return HttpClient(
            user=self.user, password_file=self.password_file, token_file=self.token_file, ca_file=self.ca_file
        )

    def ask(self, path: str, content: Mapping[str, Any] | None = None) -> bytes:
        """Return the answer of the console. content: what is posted; None: it is only read.

        Raises:
            UsageError: an option is wrong, or the console refuses what is asked.
            MqtwinError: it does not answer.
        """
        from streams.collecting.http import RequestError, check_url

        client = self.client()
        address = check_url(self.url, has_secret=client.has_secret and not self.allow_http).rstrip("/")
        body = None if content is None else msgspec.json.encode(content)
        headers = client.authorisation() | ({} if body is None else {"Content-Type": "application/json"})
        with client.requester(_SECONDS) as requester:
            try:
                method = "GET" if body is None else "POST"
                answer = requester.ask(method, f"{address}{path}", headers, content=body, max_bytes=_MAX_BYTES)
            except RequestError as error:
                raise MqtwinError(f"{address}{path} does not answer: {error}") from None
        if answer.status in {HTTPStatus.OK, HTTPStatus.CREATED} and not answer.problem:
            return answer.body
        try:
            detail = msgspec.json.decode(answer.body, type=_Problem).detail
        except UNREADABLE:
            detail = ""
        text = f"{address}{path} answers {answer.status} {detail or answer.problem or answer.reason}"
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise MqtwinError(text)
        raise UsageError(text if "expected" in text else f"{text}; expected: a console with --actions, and a sign-in")
