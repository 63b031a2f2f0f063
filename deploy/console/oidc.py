"""Sign-in by OpenID Connect: authorization code with PKCE, state and nonce, by authlib, and the session that follows.

The session is a signed cookie. Its key comes from the client's secret and from the settings: it outlives a restart, is
the same in each console of a site, and ends when somebody changes who has which role.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2
import msgspec
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.starlette_client import OAuth
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from typing_extensions import override

from deploy.console.identity import NotSignedInError, Person, Role, Roles, SignIn, checked_name
from streams.collecting.http import check_url
from twin.base.errors import UsageError

_SESSION_S = 8 * 3600  # a shift
_LOGIN_S = 600  # to sign in at the provider
_LEEWAY_S = 60  # between the clocks of provider and console
_TIMEOUT_S = 10.0
_SIGNATURES = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
_PLACE = re.compile(r"#/[A-Za-z0-9/%?=&:._~+-]{0,500}")  # in the page: all that may follow the console's own address


class _Session(msgspec.Struct, frozen=True):
    """The content of the session's cookie, by the names of JWT. sub: who."""

    sub: str
    role: int
    exp: float
    jti: str


class _Login(msgspec.Struct, frozen=True):
    """The content of the cookie between the console and the provider. state: what authlib has to find again."""

    state: dict[str, Any]
    place: str
    exp: float


_Content = TypeVar("_Content", bound=msgspec.Struct)


@dataclass(frozen=True, kw_only=True)
class Client:
    """The console, as a client of a provider."""

    issuer: str
    client_id: str
    secret: str
    address: str  # the console's own, as browsers use it
    user_claim: str = "preferred_username"
    groups_claim: str = "groups"

    def __post_init__(self) -> None:
        for option, url in (("--oidc-issuer", self.issuer), ("--public-address", self.address)):
            try:
                check_url(url, has_secret=True)
            except UsageError:
                raise UsageError(f"{option} {url}; expected: an address with https, or of this machine") from None
        if not self.address.endswith("/"):
            raise UsageError(f"--public-address {self.address}; expected: with a / at its end")


class Provider(SignIn):
    """A provider of OpenID Connect."""

    sign_in = "login"

    def __init__(self, client: Client, roles: Roles) -> None:
        self._own, self._roles = client, roles
        self._is_tls = client.address.startswith("https:")
        # With the prefix no other host of the domain can set it, by which a visitor would act for somebody else.
        prefix = "__Host-" if self._is_tls else ""
        self._session_cookie, self._login_cookie = f"{prefix}mqtwin-session", f"{prefix}mqtwin-login"
        self._session_key, self._login_key = self._key("session"), self._key("login")
        self._ended: dict[str, float] = {}  # sessions that were signed out of, with their ends
        self._app = OAuth().register(
            "provider",
            client_id=client.client_id,
            client_secret=client.secret,
            server_metadata_url=client.issuer.rstrip("/") + "/.well-known/openid-configuration",
            client_kwargs={
                "scope": "openid profile email",
                "code_challenge_method": "S256",
                "timeout": _TIMEOUT_S,
            },
        )

    def _key(self, use: str) -> OctKey:
        settings = repr((use, self._own.issuer, self._own.client_id, self._own.address, self._roles))
        return OctKey.import_key(hmac.digest(self._own.secret.encode(), settings.encode(), hashlib.sha256))

    @override
    def person(self, request: Request) -> Person | None:
        value = request.cookies.get(self._session_cookie)
        if not value:
            return None
        session = _read(value, self._session_key, _Session)
        if session is None or session.jti in self._ended:
            raise NotSignedInError("the session is over; expected: a new sign-in")
        return Person(session.sub, Role(session.role), session.exp, session.jti)

    @override
    def is_over(self, person: Person) -> bool:
        return super().is_over(person) or person.session in self._ended

    @override
    async def login(self, request: Request) -> Response:
        """Send a browser to the provider, with a cookie by which it is known when it comes back."""
        place = _PLACE.fullmatch(request.query_params.get("next", ""))
        state: dict[str, Any] = {}
        request.scope["session"] = state
        try:
            await self._load()
            answer: Response = await self._app.authorize_redirect(request, f"{self._own.address}callback")
        except Exception as error:  # noqa: BLE001 -- a provider may answer with anything
            return _failed(error)
        below = request.scope.get("root_path", "").removeprefix("/")  # of several sites the one that asks
        back = (f"{below}/" if below else "") + ("#/" if place is None else place[0])
        login = _Login(state, back, time.time() + _LOGIN_S)
        self._set(answer, self._login_cookie, _written(login, self._login_key), _LOGIN_S, "lax")
        return answer

    @override
    async def callback(self, request: Request) -> Response:
        """Take a browser that comes back from the provider: a new session, whatever it had before."""
        login = _read(request.cookies.get(self._login_cookie, ""), self._login_key, _Login)
        if login is None:
            return _failed(NotSignedInError("this browser has not begun it within ten minutes"))
        request.scope["session"] = login.state
        try:
            await self._load()
            expected = {"iss": self._own.issuer, "aud": self._own.client_id}
            options = {name: {"essential": True, "value": value} for name, value in expected.items()}
            token = await self._app.authorize_access_token(request, claims_options=options, leeway=_LEEWAY_S)
            claims = token["userinfo"]
            name = checked_name(str(claims[self._own.user_claim]))
            groups = _groups_in(claims.get(self._own.groups_claim))
        except Exception as error:  # noqa: BLE001 -- as above
            return _failed(error)
        session = _Session(name, self._roles.highest(groups), time.time() + _SESSION_S, secrets.token_urlsafe(16))
        answer = RedirectResponse(self._own.address + login.place, 303)
        self._set(answer, self._session_cookie, _written(session, self._session_key), _SESSION_S, "strict")
        self._set(answer, self._login_cookie, "", 0, "lax")
        return answer

    @override
    def logout(self, request: Request) -> Response:
        """End the session of a browser, also for who has a copy of its cookie."""
        session = _read(request.cookies.get(self._session_cookie, ""), self._session_key, _Session)
        if session is not None:
            now = time.time()
            self._ended = {own: end for own, end in self._ended.items() if end > now} | {session.jti: session.exp}
        answer = Response(status_code=204)
        self._set(answer, self._session_cookie, "", 0, "strict")
        return answer

    async def _load(self) -> None:
        """Read what the provider says of itself, once. ValueError: it is another one than that of the settings."""
        metadata = await self._app.load_server_metadata()
        if metadata.get("issuer") != self._own.issuer:
            other = str(metadata.get("issuer"))[:200]
            metadata.clear()
            raise ValueError(f"the provider calls itself {other}; expected: {self._own.issuer}")
        offered = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
        # Some offer none, which is no signature, or HS256, by the secret.
        metadata["id_token_signing_alg_values_supported"] = [name for name in offered if name in _SIGNATURES]

    def _set(self, answer: Response, name: str, value: str, seconds: int, same_site: Any) -> None:
        answer.set_cookie(name, value, seconds, path="/", secure=self._is_tls, httponly=True, samesite=same_site)


def _written(content: msgspec.Struct, key: OctKey) -> str:
    return jwt.encode({"alg": "HS256"}, msgspec.to_builtins(content), key)


def _read(text: str, key: OctKey, kind: type[_Content]) -> _Content | None:
    """Return the content of a cookie; None: it is not one of ours, or over."""
    try:
        claims = jwt.decode(text, key, algorithms=["HS256"]).claims
        jwt.JWTClaimsRegistry(exp={"essential": True}).validate(claims)
        return msgspec.convert(claims, kind)
    except (JoseError, ValueError, TypeError):  # msgspec's is a ValueError
        return None


def _groups_in(claim: Any) -> Collection[str]:
    """Return the groups of a claim, which is a list or one name. ValueError: it is neither."""
    groups = [] if claim is None else [claim] if isinstance(claim, str) else claim
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        raise ValueError("the claim of groups; expected: a list of names")
    return [group for group in groups if group != "*"]


def _failed(error: Exception) -> Response:
    """Return why nobody is signed in, for the browser of who tried."""
    status = 502 if isinstance(error, httpx2.HTTPError) else 403
    known = isinstance(error, AuthlibBaseError | JoseError | NotSignedInError | ValueError | httpx2.HTTPError)
    why = str(error) if known else f"an answer that nobody expected ({type(error).__name__})"
    text = "".join(letter if letter.isprintable() else " " for letter in why)[:300]
    return PlainTextResponse(f"Sign-in failed: {text}.\n", status)
