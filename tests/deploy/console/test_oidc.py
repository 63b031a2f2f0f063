"""Sign-in at the console by OpenID Connect, with a provider of the test: what signs somebody in, and what does not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2 as httpx
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey
from starlette.testclient import TestClient

from deploy.console import oidc as module
from deploy.console.app import ConsoleState, new_app
from deploy.console.identity import Roles
from deploy.console.model import ConsoleModel
from deploy.console.oidc import Client
from deploy.console.oidc import Provider as Identity
from deploy.console.sites import SitesModel
from tests.support.console_feed import TOPICS
from tests.support.oidc_provider import CLIENT_ID, CLIENT_SECRET, KEY, OTHER_KEY, Provider, running_provider

ADDRESS = "https://mq.example/"
ROLES = Roles(viewers=("staff",), operators=("mq-ops",), approvers=("mq-leads",))
SESSION, LOGIN = "__Host-mqtwin-session", "__Host-mqtwin-login"


@pytest.fixture(scope="module")
def served() -> Iterator[Provider]:
    with running_provider() as provider:
        yield provider


@pytest.fixture
def provider(served: Provider) -> Iterator[Provider]:
    served.claims, served.metadata, served.algorithm, served.key, served.error = {}, {}, "RS256", KEY, None
    return served


def identity_of(provider: Provider, roles: Roles = ROLES, **options: Any) -> Identity:
    client = Client(
        issuer=provider.issuer, client_id=CLIENT_ID, address=ADDRESS, **{"secret": CLIENT_SECRET, **options}
    )
    return Identity(client, roles)


def browser(identity: Identity, notes: list[Any] | None = None) -> TestClient:
    take = None if notes is None else notes.append
    state = ConsoleState(ConsoleModel(TOPICS), ["mq.example"], identity=identity, is_tls=True, take_note=take)
    return TestClient(new_app(state), base_url=ADDRESS, follow_redirects=False)


def at_provider(own: TestClient, place: str = "", site: str = "") -> str:
    """Begin a sign-in, at one of several sites if it is named; return where the provider sends the browser."""
    begun = own.get(f"{site}/login", params={"next": place})
    assert begun.status_code == 302, begun.text
    return httpx.get(begun.headers["location"], trust_env=False, follow_redirects=False).headers["location"]


def sign_in(own: TestClient, place: str = "") -> httpx.Response:
    return own.get(at_provider(own, place), headers={"sec-fetch-site": "cross-site"})


def who(own: TestClient, **options: Any) -> str | None:
    answer = own.post("/api/session", **options)
    assert answer.status_code in {200, 401}
    return answer.json().get("who")


def test_who_signs_in_has_a_name_a_role_and_a_session(provider: Provider) -> None:
    notes: list[Any] = []
    own = browser(identity_of(provider), notes)
    assert own.post("/api/session").json()["sign_in"] == "login"
    back = sign_in(own, "#/store/QSG1%2FAPP1?t=2026-11-20T01:40:00Z")
    assert (back.status_code, back.headers["location"]) == (303, f"{ADDRESS}#/store/QSG1%2FAPP1?t=2026-11-20T01:40:00Z")
    asked = provider.asked
    assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
    assert len(asked["state"]) > 20 and len(asked["nonce"]) >= 20 and asked["redirect_uri"] == f"{ADDRESS}callback"
    set_session, set_login = back.headers.get_list("set-cookie")
    for word in (f"{SESSION}=", "HttpOnly", "Secure", "SameSite=strict", "Path=/"):
        assert word in set_session
    assert f"{LOGIN}=" in set_login and "Max-Age=0" in set_login
    assert CLIENT_SECRET not in str(back.headers) + str(own.cookies)
    session = own.post("/api/session").json()
    assert (session["who"], session["role"]) == ("ann", "operator")
    own.post("/note", json={"who": "mallory", "text": "x"})
    assert notes == [{"who": "ann", "text": "x"}]
    own.post("/note", json={"who": "mallory", "text": "x"}, headers={"sec-fetch-site": "cross-site"})
    own.post("/note", json={"who": "mallory", "text": "x"}, headers={"origin": "https://evil.example"})
    assert len(notes) == 1


def test_who_signs_in_at_one_of_several_sites_comes_back_to_it_and_is_signed_in_at_all(provider: Provider) -> None:
    identity, hosts = identity_of(provider), ["mq.example"]
    models = {name: ConsoleModel(TOPICS) for name in ("prod", "test")}
    below = {
        name: ConsoleState(model, hosts, identity=identity, is_tls=True, name=name) for name, model in models.items()
    }
    above = ConsoleState(SitesModel(models), hosts, identity=identity, is_tls=True, sites=below)
    own = TestClient(new_app(above), base_url=ADDRESS, follow_redirects=False)
    back = own.get(at_provider(own, "#/alerts", "/prod"), headers={"sec-fetch-site": "cross-site"})
    assert (back.status_code, back.headers["location"]) == (303, f"{ADDRESS}prod/#/alerts")
    sessions = [f"{site}/api/session" for site in ("", "/prod", "/test")]
    assert [own.post(path).json().get("who") for path in sessions] == ["ann"] * 3
    assert own.post("/test/logout").status_code == 204
    assert [own.post(path).status_code for path in sessions] == [401] * 3


def test_the_role_comes_from_the_groups_and_without_one_nobody_passes(provider: Provider) -> None:
    cases = [
        (["staff"], "viewer", 403),
        ("mq-leads", "approver", 200),
        (["others"], None, 403),
        (None, None, 403),
        (["*"], None, 403),
    ]
    identity = identity_of(provider)
    for groups, role, status in cases:
        provider.claims = {"groups": groups}
        own = browser(identity, [])
        sign_in(own)
        assert own.post("/api/session").json().get("role") == role
        assert own.post("/note", json={}).status_code == status


def test_other_claims_may_have_name_and_groups(provider: Provider) -> None:
    provider.claims = {"upn": "ann@corp", "roles": ["mq-ops"], "groups": None}
    own = browser(identity_of(provider, user_claim="upn", groups_claim="roles"))
    sign_in(own)
    assert own.post("/api/session").json() == {"token_needed": False, "who": "ann@corp", "role": "operator"}


TOKENS: dict[str, Callable[[Provider], object]] = {
    "another key": lambda own: setattr(own, "key", OTHER_KEY),
    "no signature": lambda own: setattr(own, "algorithm", "none"),
    "signed with the client's secret": lambda own: (
        setattr(own, "algorithm", "HS256"),
        setattr(own, "key", OctKey.import_key(CLIENT_SECRET)),
    ),
    "another audience": lambda own: own.claims.update(aud="other"),
    "another audience by our party": lambda own: own.claims.update(aud="other", azp=CLIENT_ID),
    "another party": lambda own: own.claims.update(aud=[CLIENT_ID, "other"], azp="other"),
    "no audience": lambda own: own.claims.update(aud=None),
    "another issuer": lambda own: own.claims.update(iss="https://evil.example"),
    "no issuer": lambda own: own.claims.update(iss=None),
    "another nonce": lambda own: own.claims.update(nonce="n" * 20),
    "no nonce": lambda own: own.claims.update(nonce=None),
    "over": lambda own: own.claims.update(exp=int(time.time()) - 120),
    "without an end": lambda own: own.claims.update(exp=None),
    "of the future": lambda own: own.claims.update(nbf=int(time.time()) + 600),
    "without a name": lambda own: own.claims.update(preferred_username=None),
    "a name that steers terminals": lambda own: own.claims.update(preferred_username="ann\x1b[31m"),
    "a long name": lambda own: own.claims.update(preferred_username="a" * 65),
    "groups of no form": lambda own: own.claims.update(groups={"mq-leads": True}),
    "refused": lambda own: setattr(own, "error", "access_denied"),
    "a provider of another name": lambda own: own.metadata.update(issuer="https://evil.example"),
}


@pytest.mark.parametrize("case", TOKENS)
def test_a_token_that_is_wrong_in_anything_signs_nobody_in(case: str, provider: Provider) -> None:
    TOKENS[case](provider)
    own = browser(identity_of(provider))
    begun = own.get("/login")
    if begun.status_code == 302:
        target = httpx.get(begun.headers["location"], trust_env=False, follow_redirects=False).headers["location"]
        begun = own.get(target)
    assert begun.status_code == 403 and begun.text.startswith("Sign-in failed: ") and begun.text[:-1].isprintable()
    assert begun.headers["content-type"].startswith("text/plain")
    assert SESSION not in own.cookies and who(own) is None


def with_query(address: str, **changed: str | None) -> str:
    query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()} | changed
    values = {name: value for name, value in query.items() if value is not None}
    return f"{ADDRESS}callback?{urlencode(values)}"


def test_an_answer_that_this_browser_has_not_asked_for_signs_nobody_in(provider: Provider) -> None:
    identity = identity_of(provider)
    attacker, victim = browser(identity), browser(identity)
    target = at_provider(attacker)
    assert victim.get(target).status_code == 403  # an address that the attacker sends: nothing was begun here
    at_provider(victim)
    assert victim.get(target).status_code == 403  # nor with another one begun
    for changed in ({"state": "s" * 30}, {"state": None}, {"code": "c"}, {"code": None}):
        own = browser(identity)
        assert own.get(with_query(at_provider(own), **changed)).status_code == 403
        assert who(own) is None
    assert who(victim) is None
    assert attacker.get(target).status_code == 303
    assert attacker.get(target).status_code == 403  # a second time


def test_each_sign_in_makes_a_session_of_its_own(provider: Provider) -> None:
    own = browser(identity_of(provider))
    values = []
    for before in ("chosen-by-somebody-else", ""):
        target = at_provider(own)
        login = f"{LOGIN}={own.cookies[LOGIN]}"
        set_session, _ = own.get(
            target, headers={"cookie": f"{login}; {SESSION}={before or values[0]}"}
        ).headers.get_list("set-cookie")
        values.append(set_session.partition(";")[0].partition("=")[2])
    assert len({*values, "chosen-by-somebody-else"}) == 3


@pytest.mark.parametrize(
    "place",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "#/\r\nSet-Cookie: a=b",
        "@evil.example",
        ".evil.example/",
        "#",
        "#/<script>",
        "x" * 5_000,
    ],
)
def test_a_sign_in_leads_back_to_the_console_alone(place: str, provider: Provider) -> None:
    own = browser(identity_of(provider))
    assert sign_in(own, place).headers["location"] == f"{ADDRESS}#/"


def cookie(key: OctKey, algorithm: str = "HS256", **changed: Any) -> str:
    claims = {"sub": "root", "role": 3, "exp": time.time() + 600, "jti": "j"} | changed
    return jwt.encode({"alg": algorithm}, claims, key, algorithms=[algorithm])


@pytest.mark.parametrize(
    "forge",
    [
        lambda _: "eyJhbGciOiJub25lIn0.eyJzdWIiOiJyb290Iiwicm9sZSI6MywiZXhwIjo5OTk5OTk5OTk5LCJqdGkiOiJqIn0.",
        lambda _: cookie(OctKey.import_key("a-guess-of-the-key-that-is-long-enough")),
        lambda own: cookie(own._session_key, exp=time.time() - 1),
        lambda own: cookie(own._session_key, exp=None),
        lambda own: cookie(own._session_key, role="approver"),
        lambda own: cookie(own._session_key, sub=None),
        lambda own: cookie(own._session_key, "HS512"),
        lambda own: cookie(own._login_key),
        lambda own: cookie(own._session_key)[:-2],
        lambda own: cookie(own._session_key) + "x",
        lambda _: "x" * 20_000,
        lambda _: "..",
    ],
    ids=["none", "key", "over", "no end", "no role", "no name", "HS512", "login", "cut", "longer", "long", "empty"],
)
def test_a_cookie_that_the_console_has_not_signed_for_this_is_no_session(forge: Any, provider: Provider) -> None:
    identity = identity_of(provider)
    own = browser(identity)
    good = {"cookie": f"{SESSION}={cookie(identity._session_key)}"}
    assert who(own, headers=good) == "root"
    assert who(own, headers={"cookie": f"{SESSION}={forge(identity)}"}) is None


def test_a_session_outlives_a_restart_but_not_another_secret_nor_other_roles(provider: Provider) -> None:
    own = browser(identity_of(provider))
    sign_in(own)
    session = {"cookie": f"{SESSION}={own.cookies[SESSION]}"}
    assert who(browser(identity_of(provider)), headers=session) == "ann"
    assert who(browser(identity_of(provider, secret="another")), headers=session) is None
    assert who(browser(identity_of(provider, Roles(operators=("staff",)))), headers=session) is None


def test_a_sign_out_ends_the_session_also_for_a_copy_of_its_cookie(provider: Provider) -> None:
    identity = identity_of(provider)
    own = browser(identity)
    sign_in(own)
    copy = {"cookie": f"{SESSION}={own.cookies[SESSION]}"}
    assert own.post("/logout", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert own.get("/logout").status_code == 405
    assert who(own) == "ann"
    assert own.post("/logout").status_code == 204
    assert who(own) is None and who(browser(identity), headers=copy) is None
    sign_in(own)
    assert who(own) == "ann"


def test_a_provider_that_does_not_answer_is_named_and_asked_again(provider: Provider) -> None:
    gone = Provider("http://127.0.0.1:9")
    assert browser(identity_of(gone)).get("/login").status_code == 502
    provider.metadata = {"issuer": "https://evil.example"}
    own = browser(identity_of(provider))
    assert "the provider calls itself https://evil.example" in own.get("/login").text
    provider.metadata = {}
    assert sign_in(own).status_code == 303


def test_a_sign_in_has_ten_minutes(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOGIN_S", -1)
    own = browser(identity_of(provider))
    begun = own.get("/login")
    target = httpx.get(begun.headers["location"], trust_env=False, follow_redirects=False).headers["location"]
    value = begun.headers["set-cookie"].partition(";")[0]
    answer = own.get(target, headers={"cookie": value})
    assert answer.status_code == 403 and "within ten minutes" in answer.text
