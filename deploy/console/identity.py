"""Who asks the console, and what they may do: roles, the doors that need them, names for which a proxy vouches."""

from __future__ import annotations

import ipaddress
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum

from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import override

from twin.base.errors import UsageError
from twin.records import NOTE_CHARACTERS

EVERYBODY = "*"  # in the place of a group: all who are signed in
SOCKET = "unix"  # in the place of an address: who may open the console's socket
_STREAM_S = 900.0  # for which the word of a proxy about who listens holds
_HEADER_NAME = re.compile(r"[a-z0-9-]{1,64}")
_MAX_NAME = NOTE_CHARACTERS["who"]

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Role(IntEnum):
    """Allowed acts; each role has those of the ones before it."""

    NOBODY = 0
    VIEWER = 1
    OPERATOR = 2
    APPROVER = 3


# Which role each path of the console needs, in this place alone: a path without a row ends the import of the console.
# Where its methods need different ones, the others have rows with the method in front.
DOORS = {
    "/": Role.NOBODY,  # the page itself says nothing
    "/static/{name}": Role.NOBODY,
    "/healthz": Role.NOBODY,
    "/readyz": Role.NOBODY,
    "/login": Role.NOBODY,
    "/callback": Role.NOBODY,
    "/logout": Role.NOBODY,
    "/api/session": Role.VIEWER,
    "/api/events": Role.VIEWER,
    "/api/history": Role.VIEWER,
    "/api/moments": Role.VIEWER,
    "/api/at": Role.VIEWER,
    "/api/state": Role.VIEWER,
    "/whatif": Role.VIEWER,
    "/advise": Role.VIEWER,
    "/hindsight": Role.VIEWER,
    "/mcp": Role.VIEWER,
    "/note": Role.OPERATOR,
    "/api/acts": Role.VIEWER,
    "POST /api/acts": Role.OPERATOR,
    "/api/acts/{id}/approve": Role.APPROVER,
    "/api/acts/{id}/withdraw": Role.OPERATOR,
    "/api/acts/{id}/result": Role.OPERATOR,
}


def needed_role(path: str, method: str = "GET") -> Role:
    """Return the role that a path needs. LookupError: it has no row."""
    row = f"{method} {path}" if f"{method} {path}" in DOORS else path
    if row not in DOORS:
        raise LookupError(f"{path} has no row in DOORS; expected: the role that it needs")
    return DOORS[row]


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who asks."""

    name: str | None = None  # verified; None: nobody has verified one
    role: Role = Role.OPERATOR
    until: float = float("inf")  # when they must say again who they are, seconds since 1970
    session: str = ""  # id; "": none


UNNAMED = Person()  # who knows the token, or uses the machine of a console without one


class NotSignedInError(Exception):
    """Somebody says who they are in a way that is not believed; the text is for them."""


class Identity(ABC):
    """A way in which people say who they are."""

    sign_in: str  # what the page offers to those who are signed out: login, or reload

    @abstractmethod
    def person(self, request: Request) -> Person | None:
        """Return who asks; None: they do not say. NotSignedInError: they say it in a way that is not believed."""

    def is_over(self, person: Person) -> bool:
        """Return True once somebody has to say again who they are."""
        return time.time() >= person.until


class SignIn(Identity):
    """A way that leads browsers to another server and back."""

    @abstractmethod
    async def login(self, request: Request) -> Response:
        """Send a browser there."""

    @abstractmethod
    async def callback(self, request: Request) -> Response:
        """Take a browser that comes back."""

    @abstractmethod
    def logout(self, request: Request) -> Response:
        """End the session of a browser."""


@dataclass(frozen=True, kw_only=True)
class Roles:
    """Roles of groups, or of EVERYBODY."""

    viewers: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    approvers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (self.viewers or self.operators or self.approvers):
            raise UsageError("nobody has a role; expected: --viewers GROUP, --operators GROUP or --approvers GROUP")

    def highest(self, groups: Collection[str]) -> Role:
        """Return the highest role of somebody who is in groups."""
        own = {EVERYBODY, *groups}
        for role, names in ((Role.APPROVER, self.approvers), (Role.OPERATOR, self.operators)):
            if own.intersection(names):
                return role
        return Role.VIEWER if own.intersection(self.viewers) else Role.NOBODY


def checked_name(text: str) -> str:
    """Return a name that is verified. NotSignedInError: it cannot stand in a note."""
    if not text.isprintable() or text != " ".join(text.split()) or not 1 <= len(text) <= _MAX_NAME:
        raise NotSignedInError(f"the name of who is signed in; expected: 1 to {_MAX_NAME} printable characters")
    return text


class Proxy(Identity):
    """Names in headers of a proxy in front. They are believed from its addresses alone. UsageError: something is none
    of these, or everybody would be trusted.
    """

    sign_in = "reload"

    def __init__(
        self,
        trusted: Sequence[str],
        roles: Roles,
        user_header: str = "X-Forwarded-User",
        groups_header: str = "X-Forwarded-Groups",
    ) -> None:
        self._is_socket = SOCKET in trusted
        self._networks = [_network(text) for text in trusted if text != SOCKET]
        self._roles = roles
        self._user, self._groups = (
            _header("--user-header", user_header),
            _header("--groups-header", groups_header),
        )
        if self._is_socket and self._networks:
            raise UsageError(f"--trust-proxy {SOCKET} beside an address; expected: one kind")

    @property
    def is_socket(self) -> bool:
        """True if who may open the socket is trusted."""
        return self._is_socket

    @override
    def person(self, request: Request) -> Person | None:
        if not self._trusts(request):
            return None
        name = _only(request, self._user)
        if name is None:
            return None
        groups = [group.strip() for group in (_only(request, self._groups) or "").split(",")]
        role = self._roles.highest([group for group in groups if group and group != EVERYBODY])
        return Person(checked_name(name), role, time.time() + _STREAM_S)

    def _trusts(self, request: Request) -> bool:
        """Return True if the other end of the connection is the proxy. On the socket each one is."""
        if self._is_socket:
            return True
        if request.client is None:  # gone already
            return False
        try:
            address = ipaddress.ip_address(request.client.host.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)  # an IPv4 client of a socket for both
        return any((mapped or address) in network for network in self._networks)


def _network(text: str) -> _Network:
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise UsageError(
            f"--trust-proxy {text}: {error}; expected: an address, a network such as 10.1.2.0/28, or {SOCKET}"
        ) from None
    if network.prefixlen == 0:
        raise UsageError(f"--trust-proxy {text} trusts everybody; expected: the address of the proxy")
    return network


def _header(option: str, name: str) -> str:
    if not _HEADER_NAME.fullmatch(name.lower()):
        raise UsageError(f"{option} {name}; expected: letters, digits and hyphens")
    return name.lower()


def _only(request: Request, name: str) -> str | None:
    """Return the value of a header; None: there is none. NotSignedInError: there are several, or it is not UTF-8."""
    values = [value for key, value in request.scope["headers"] if key == name.encode()]
    if len(values) > 1:
        raise NotSignedInError(f"{len(values)} headers {name}; expected: one, of the proxy")
    try:
        return values[0].decode() if values else None
    except UnicodeDecodeError:
        raise NotSignedInError(f"header {name} is not UTF-8; expected: the proxy's") from None
