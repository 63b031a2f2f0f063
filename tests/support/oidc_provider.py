"""A provider of OpenID Connect for tests: one user, signed in already, whose tokens can be made wrong."""

from __future__ import annotations

import base64
import hashlib
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

import uvicorn
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.support.processes import free_port

CLIENT_ID, CLIENT_SECRET = "mqtwin", "the-secret-of-the-client"
KEY, OTHER_KEY = (RSAKey.generate_key(2048, {"kid": "1"}, auto_kid=False) for _ in range(2))


@dataclass
class Provider:
    """The provider, and what is wrong with it.

    Attributes:
        issuer: its address.
        claims: further claims of the ID token, or others; None: without this one.
        metadata: further metadata, or others.
        algorithm: JWS name of the signature's; none: no signature.
        key: the key of the signature.
        error: what it answers instead of a code.
        asked: what it was asked for a code.
    """

    issuer: str
    claims: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    algorithm: str = "RS256"
    key: Any = field(default_factory=lambda: KEY)
    error: str | None = None
    asked: dict[str, str] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def app(self) -> Starlette:
        """Return the application."""
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._about),
                Route("/jwks", self._keys),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
            ]
        )

    def _about(self, _: Request) -> Response:
        paths = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "jwks"}
        addresses = {name: f"{self.issuer}/{path}" for name, path in paths.items()}
        offered = {"id_token_signing_alg_values_supported": ["none", "HS256", "RS256"]}
        return JSONResponse({"issuer": self.issuer, **addresses, **offered, **self.metadata})

    def _keys(self, _: Request) -> Response:
        return JSONResponse({"keys": [{**KEY.as_dict(private=False), "kid": "1"}]})

    def _authorize(self, request: Request) -> Response:
        self.asked = dict(request.query_params)
        code = secrets.token_urlsafe(16)
        self.codes[code] = self.asked
        answer = {"error": self.error, "error_description": "no\x1b[31m"} if self.error else {"code": code}
        return RedirectResponse(f"{self.asked['redirect_uri']}?{urlencode({**answer, 'state': self.asked['state']})}")

    async def _token(self, request: Request) -> Response:
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        asked = self.codes.pop(form.get("code", ""), None)
        login = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        is_right = asked is not None and request.headers.get("authorization") == f"Basic {login}"
        if not is_right or asked["code_challenge"] != challenge.decode().rstrip("="):
            return JSONResponse({"error": "invalid_grant"}, 400)
        return JSONResponse({"access_token": "a", "token_type": "Bearer", "id_token": self._id_token(asked["nonce"])})

    def _id_token(self, nonce: str) -> str:
        now = int(time.time())
        own = {"iss": self.issuer, "aud": CLIENT_ID, "sub": "u1", "iat": now, "exp": now + 300, "nonce": nonce}
        person = {"preferred_username": "ann", "groups": ["mq-ops"]}
        claims = {name: value for name, value in {**own, **person, **self.claims}.items() if value is not None}
        if self.algorithm == "none":
            head = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
            text = jwt.encode({"alg": "HS256"}, claims, OctKey.import_key("x" * 32)).split(".")[1]
            return f"{head}.{text}."
        return jwt.encode({"alg": self.algorithm, "kid": "1"}, claims, self.key)


@contextmanager
def running_provider() -> Iterator[Provider]:
    """Serve a provider within the block."""
    port = free_port()
    provider = Provider(f"http://127.0.0.1:{port}")
    config = uvicorn.Config(provider.app(), port=port, log_config=None, lifespan="off", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield provider
    finally:
        server.should_exit = True
        thread.join(timeout=10)
