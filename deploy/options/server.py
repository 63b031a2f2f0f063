"""Options of servers that are asked by HTTP."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter
from cyclopts.validators import Number
from typing_extensions import override

from deploy.options.common import MAX_SECONDS, Flag
from deploy.options.files import InputFile, SecretFile
from twin.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from streams.collecting.http import HttpClient
    from streams.collecting.mqweb import Mqweb
    from twin.estate import Estate

SERVER = Group("Server", sort_key=4)


def qmgr_names(text: str | None) -> list[str]:
    """Return the names of --qmgr, with commas between them. UsageError: there is none."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if not names:
        raise UsageError("no queue manager to ask; expected: --qmgr QM01,QM02")
    return names


@Parameter(name="*", group=SERVER)
@dataclass(frozen=True, kw_only=True)
class MqwebOptions:
    """The REST interface of queue managers (mqweb), and what is asked there.

    Args:
        queues: Names of queues to ask for, such as 'APP*', for rest.
        gateway: Gateway queue manager through which the server reaches the others, for rest.
        interval_s: Seconds between two requests. Default: 60; 30 for prometheus; rest: 30 to 300, by the site's size.
        max_commands_per_minute: Ceiling of requests in any minute, for rest.
        user: User, for basic authentication.
        password_file: File with the password in its first line.
        token_login: Log in for a token, instead of sending the password each time, for rest.
        allow_http: Send a password or a token by http, too, in clear to another machine.
        client_cert: Certificate of this client (PEM).
        client_key: Its private key (PEM), not encrypted.
        ca_file: Certificates (PEM) that sign the server's.
    """

    queues: str = "*"
    gateway: str | None = None
    interval_s: Annotated[float | None, Parameter(validator=Number(gte=0.1, lte=MAX_SECONDS))] = None
    max_commands_per_minute: Annotated[int | None, Parameter(validator=Number(gte=1, lte=100_000))] = None
    user: str | None = None
    password_file: SecretFile | None = None
    token_login: Flag = False
    allow_http: Flag = False
    client_cert: InputFile | None = None
    client_key: SecretFile | None = None
    ca_file: InputFile | None = None

    def client(self) -> HttpClient:
        """Return the client for its requests. UsageError: options contradict each other, a file cannot be read."""
        from streams.collecting.http import HttpClient

        return HttpClient(
            user=self.user,
            password_file=self.password_file,
            ca_file=self.ca_file,
            client_cert=self.client_cert,
            client_key=self.client_key,
        )

    def address(self, url: str) -> str:
        """Return the address of a server. UsageError: it is none, or a secret would be sent there in clear."""
        from streams.collecting.http import check_url

        return check_url(url, has_secret=not self.allow_http and self.client().has_secret)

    def mqweb(
        self,
        url: str,
        qmgr: str | None,
        estate: Estate | None,
        complain: Callable[[str, str, str], None],
        say: Callable[[str], None] = lambda _: None,
    ) -> Mqweb:
        """Return the client of queue managers. UsageError: an option is wrong."""
        from streams.collecting.mqweb import Mqweb

        return Mqweb(
            [self.address(own) for own in url.split(",")],
            qmgr_names(qmgr),
            self.client(),
            estate,
            complain=complain,
            queues=self.queues,
            gateway=self.gateway,
            has_token=self.token_login,
            max_per_minute=self.max_commands_per_minute,
            say=say,
        )


@Parameter(name="*", group=SERVER)
@dataclass(frozen=True, kw_only=True)
class ServerOptions(MqwebOptions):
    """The server of formats that are asked for by HTTP.

    Args:
        url: Base URL of the server, http or https.
        sysplex: Name of the sysplex, for dds.
        query_range: The server is Prometheus itself: ask for what was missed, too.
        token_file: File with a bearer token in its first line.
    """

    url: str | None = None
    sysplex: str | None = None
    query_range: Flag = False
    token_file: SecretFile | None = None

    @override
    def client(self) -> HttpClient:
        return replace(super().client(), token_file=self.token_file)
