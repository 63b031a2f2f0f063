"""Who may pass which door of the console: roles, names for which a proxy vouches, pages of other sites."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from deploy.cli import main
from deploy.console import app as module
from deploy.console.app import ConsoleState, new_app, stream
from deploy.console.identity import DOORS, UNNAMED, NotSignedInError, Person, Proxy, Role, Roles, needed_role
from deploy.console.model import ConsoleModel
from deploy.console.server import ConsoleServer, Listen
from tests.support.console_feed import TOPICS, FixedAnswers, page_set, state_record
from tests.support.processes import free_port
from twin.base.errors import UsageError

HOSTS = ["127.0.0.1", "mq.example"]
ROLES = Roles(viewers=("staff",), operators=("mq-ops",), approvers=("mq-leads",))
PROXY = "10.1.2.3"
TOKEN = "a-token-of-enough-characters"
ROUTES = [(route.path, min(route.methods - {"HEAD"})) for route in (*module._OF_PAGE, *module._OF_HEALTH)]
CLOSED = [(path, method) for path, method in ROUTES if needed_role(path, method) > Role.NOBODY]
POSTS = [path for path, method in ROUTES if method == "POST"]
NGINX = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")


def headers(user: str = "ann", groups: str = "staff,mq-ops") -> dict[str, str]:
    return {"X-Forwarded-User": user, "X-Forwarded-Groups": groups}


def client(peer: str = PROXY, notes: list[Any] | None = None, **options: Any) -> TestClient:
    model = ConsoleModel(TOPICS)
    model.fold([state_record(page_set("QM01/PS04", 10))])
    take = None if notes is None else notes.append
    options.setdefault("identity", Proxy([PROXY, "10.9.0.0/16"], ROLES))
    state = ConsoleState(model, HOSTS, take_note=take, answers=FixedAnswers(), **options)
    return TestClient(new_app(state), base_url="http://127.0.0.1:8470", client=(peer, 40000))


# --- doors ------------------------------------------------------------------------------------------------------------


def test_a_route_without_a_role_ends_the_import():
    rows = {row for path, method in ROUTES for row in (path, f"{method} {path}") if row in DOORS}
    assert rows | {module.TOOLS_PATH} == set(DOORS)
    assert {path for path, _ in ROUTES} <= set(DOORS)
    with pytest.raises(LookupError, match="/new has no row in DOORS; expected: the role that it needs"):
        module._door("/new", module._page)


@pytest.mark.parametrize(("path", "method"), CLOSED)
def test_who_is_signed_out_or_has_no_role_passes_no_door(path: str, method: str):
    own = client(notes=[])
    for also in {method, "HEAD"} if method == "GET" else {method}:
        answer = own.request(also, path)
        assert answer.status_code == 401
        assert also == "HEAD" or set(answer.json()) == {"detail", "sign_in"}
        assert own.request(also, path, headers=headers(groups="others")).status_code == 403
    assert own.options(path).status_code == 405  # says which methods there are, and no more
    for other in {"PUT", "DELETE", "PATCH", "GET", "POST"} - {known for route, known in ROUTES if route == path}:
        assert own.request(other, path).status_code == 405


@pytest.mark.parametrize(("path", "method"), CLOSED)
@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR, Role.APPROVER])
def test_each_role_passes_its_own_doors_and_those_below(path: str, method: str, role: Role):
    if path == "/api/events":  # which never ends
        return
    notes: list[Any] = []
    groups = {Role.VIEWER: "staff", Role.OPERATOR: "mq-ops", Role.APPROVER: "a,mq-leads"}[role]
    body = {"json": {}} if method == "POST" else {}
    answer = client(notes=notes).request(method, path, headers=headers(groups=groups), **body)
    assert (answer.status_code == 403) == (role < needed_role(path, method))
    assert answer.status_code != 401
    assert bool(notes) == (path == "/note" and role >= Role.OPERATOR)


def test_the_page_hears_who_looks_and_offers_notes_to_operators_alone():
    state = ConsoleState(ConsoleModel(TOPICS), HOSTS, take_note=list)
    viewer, operator = Person("ann", Role.VIEWER), Person("bob", Role.OPERATOR)
    pages = [{name: state.about(own)[name] for name in ("who", "role", "takes_notes")} for own in (viewer, operator)]
    assert pages == [
        {"who": "ann", "role": "viewer", "takes_notes": False},
        {"who": "bob", "role": "operator", "takes_notes": True},
    ]
    assert state.about()["takes_notes"] and state.about()["who"] is None  # as ever, with a token or on a laptop


def test_a_note_carries_the_verified_name_whatever_the_client_sends():
    notes: list[Any] = []
    own = client(notes=notes)
    for body in ({"text": "x", "who": "mallory"}, {"text": "x"}, {"text": "x", "who": None}):
        own.post("/note", json=body, headers=headers())
    assert notes == [{"text": "x", "who": "ann"}] * 3
    unverified: list[Any] = []
    client(notes=unverified, identity=None, token=TOKEN).post(
        "/note", json={"who": "bob"}, headers={"authorization": f"Bearer {TOKEN}"}
    )
    assert unverified == [{"who": "bob"}]


def test_a_stream_ends_when_who_listens_has_to_say_again_who_they_are():
    state = ConsoleState(ConsoleModel(TOPICS), HOSTS, identity=Proxy([PROXY], ROLES), period_s=0.01)

    async def events(person: Person) -> list[bytes]:
        return [event async for event in stream(state, 0, person)]

    assert asyncio.run(events(Person("ann", until=time.time() - 1)))[1:] == [b"event: again\ndata: {}\n\n"]
    assert len(asyncio.run(events(Person("ann", until=time.time() + 0.1)))) > 2
    assert not state.is_over(UNNAMED) and state.clients == 0


# --- a proxy ----------------------------------------------------------------------------------------------------------


def session(own: TestClient, sent: Any) -> tuple[int, str | None]:
    items = sent.items() if isinstance(sent, dict) else sent
    answer = own.post("/api/session", headers=[(name.encode(), value.encode("latin-1")) for name, value in items])
    own.cookies.clear()
    return answer.status_code, answer.json().get("who")


@pytest.mark.parametrize("peer", [PROXY, "10.9.255.1", f"::ffff:{PROXY}"])
def test_a_trusted_proxy_is_believed(peer: str):
    assert session(client(peer), headers()) == (200, "ann")
    assert session(client(peer), headers("Zoë@example.com".encode().decode("latin-1"), "staff")) == (
        200,
        "Zoë@example.com",
    )


@pytest.mark.parametrize("peer", ["10.1.2.4", "127.0.0.1", "::1", "10.10.0.1", "testclient", "fe80::1%eth0", ""])
def test_headers_of_anybody_else_are_ignored(peer: str):
    assert session(client(peer), headers("root", "mq-leads")) == (401, None)


def test_a_client_that_has_gone_is_not_taken_for_one_of_the_socket():
    own = client()
    own.app.state.console.identity = Proxy([PROXY], ROLES)
    gone = TestClient(own.app, base_url="http://127.0.0.1:8470", client=None)
    assert session(gone, headers("root", "mq-leads")) == (401, None)


def pairs(*items: tuple[str, str]) -> list[tuple[str, str]]:
    return [*items, ("X-Forwarded-Groups", "mq-ops")]


ATTACKS = {
    "no header": pairs(),
    "two": pairs(("X-Forwarded-User", "ann"), ("X-Forwarded-User", "root")),
    "two by case": pairs(("X-Forwarded-User", "ann"), ("x-forwarded-USER", "root")),
    "underscores": pairs(("X_Forwarded_User", "root")),
    "another header": pairs(("X-Forwarded-Preferred-Username", "root"), ("Remote-User", "root")),
    "empty": pairs(("X-Forwarded-User", "")),
    "blank": pairs(("X-Forwarded-User", "  ")),
    "control characters": pairs(("X-Forwarded-User", "ann\x1b[31m")),
    "a null": pairs(("X-Forwarded-User", "ann\x00root")),
    "written backwards": pairs(("X-Forwarded-User", "ann\u202etoor".encode().decode("latin-1"))),
    "long": pairs(("X-Forwarded-User", "a" * 65)),
    "very long": pairs(("X-Forwarded-User", "a" * 20_000)),
    "two groups": [*headers().items(), ("X-Forwarded-Groups", "mq-leads")],
    "a token of another": pairs(("Authorization", "Bearer eyJhbGciOiJub25lIn0.e30.")),
    "a session that nobody signed": pairs(("Cookie", "mqtwin-session=ann; mqtwin-console=ann")),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_headers_that_a_proxy_does_not_send_sign_nobody_in(attack: str):
    assert session(client(), ATTACKS[attack]) == (401, None)


def test_a_name_that_is_not_utf_8_is_refused():  # which the test's client cannot send
    scope = {"type": "http", "client": (PROXY, 1), "headers": [(b"x-forwarded-user", b"ann\xff")]}
    with pytest.raises(NotSignedInError, match="x-forwarded-user is not UTF-8"):
        Proxy([PROXY], ROLES).person(Request(scope))


def test_which_header_came_twice_is_named():
    answer = client().post("/api/session", headers=ATTACKS["two by case"])
    assert answer.json()["detail"] == "2 headers x-forwarded-user; expected: one, of the proxy"


@pytest.mark.parametrize("groups", ["", "*", "others", "Staff", "staffx", "mq-ops-readers", ",,", "mq ops"])
def test_a_group_without_a_role_gives_none(groups: str):
    answer = client().post("/api/session", headers=headers(groups=groups))
    assert (answer.status_code, answer.json()["detail"]) == (403, "ann has no role here; expected: viewer")


def test_everybody_may_look_where_the_settings_say_so():
    own = client(identity=Proxy([PROXY], Roles(viewers=("*",), operators=("mq-ops",))))
    assert own.post("/api/session", headers={"X-Forwarded-User": "ann"}).json()["role"] == "viewer"
    assert own.post("/api/session", headers=headers()).json()["role"] == "operator"
    assert own.post("/api/session").status_code == 401


def test_a_token_is_a_second_way_in_beside_a_proxy():
    own = client("192.0.2.1", token=TOKEN)
    bearer = {"authorization": f"Bearer {TOKEN}"}
    assert session(own, {**headers("root"), **bearer}) == (200, None)  # the token gives no name
    assert session(own, headers("root")) == (401, None)


# --- pages of other sites ---------------------------------------------------------------------------------------------

FOREIGN = {
    "cross-site": {"sec-fetch-site": "cross-site"},
    "same-site": {"sec-fetch-site": "same-site"},
    "origin": {"origin": "https://evil.example"},
    "origin null": {"origin": "null"},
    "origin like ours": {"origin": "https://mq.example.evil.example"},
    "origin with a user": {"origin": "https://mq.example@evil.example"},
    "origin of another scheme": {"origin": "file://mq.example"},
}


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("case", FOREIGN)
def test_no_page_of_another_site_posts_anything(path: str, case: str):
    notes: list[Any] = []
    answer = client(notes=notes).post(path, json={}, headers={**headers(), **FOREIGN[case]})
    assert answer.status_code == 403 and "another site" in answer.json()["detail"]
    assert notes == []


@pytest.mark.parametrize(
    "own",
    [
        {"sec-fetch-site": "same-origin", "origin": "https://renamed.example"},
        {"origin": "http://127.0.0.1:8470"},
        {"origin": "https://mq.example"},
        {},
    ],
)
def test_the_consoles_own_page_posts(own: dict[str, str]):
    assert client().post("/api/session", headers={**headers(), **own}).status_code == 200


# --- the socket, and nginx --------------------------------------------------------------------------------------------


def test_who_may_open_the_socket_is_believed_and_a_dead_one_is_replaced(tmp_path: Path):
    path = tmp_path / "console.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    listen = Listen(path=path, identity=Proxy(["unix"], ROLES))
    with ConsoleServer(ConsoleModel(TOPICS), listen) as server:
        assert server.address == f"unix:{path}" and path.stat().st_mode & 0o777 == 0o660
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url="http://localhost") as http:
            assert http.post("/api/session", headers=headers()).json()["who"] == "ann"
            assert http.post("/api/session").status_code == 401
            upgrade = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
            assert http.get("/api/events", headers=upgrade).status_code == 401
        with pytest.raises(UsageError, match="expected: a name that is free"):
            ConsoleServer(ConsoleModel(TOPICS), listen)
    assert not path.exists()
    path.write_text("a file")
    with pytest.raises(UsageError, match="expected: a name that is free"):
        ConsoleServer(ConsoleModel(TOPICS), listen)
    assert path.read_text() == "a file"


CONFIGURATION = """
{user} worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  access_log off;
  {temporary}
  map $remote_user $groups {{ ann "staff,mq-ops"; bob staff; default ""; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      auth_basic mq; auth_basic_user_file {folder}/users;
      proxy_pass {upstream};
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-User $remote_user;
      proxy_set_header X-Forwarded-Groups $groups;
      proxy_set_header Authorization "";
    }}
  }}
}}
"""


@contextmanager
def nginx(folder: Path, upstream: str) -> Iterator[str]:
    """Run an nginx that asks for a password, and yield its address."""
    port = free_port()
    (folder / "users").write_text("".join(f"{name}:{{PLAIN}}secret\n" for name in ("ann", "bob", "eve")))
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    user = "user root;" if Path("/proc/self").stat().st_uid == 0 else ""
    text = CONFIGURATION.format(folder=folder, port=port, upstream=upstream, temporary=temporary, user=user)
    (folder / "nginx.conf").write_text(text)
    command = [str(NGINX), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    with subprocess.Popen(command) as process:
        try:
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline and process.poll() is None:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
                    break
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


@pytest.mark.skipif(NGINX is None, reason="no nginx: install the package nginx-light")
@pytest.mark.parametrize("way", ["socket", "address"])
def test_behind_nginx_each_request_has_the_name_that_nginx_has_checked(tmp_path: Path, way: str):
    notes: list[Any] = []
    path = tmp_path / "console.sock"
    if way == "socket":
        listen = Listen(path=path, identity=Proxy(["unix"], ROLES))
    else:
        listen = Listen(port=0, identity=Proxy(["127.0.0.1"], ROLES))
    with ConsoleServer(ConsoleModel(TOPICS), listen, take_note=notes.append) as server:
        upstream = f"http://unix:{path}:" if way == "socket" else server.address.rstrip("/")
        with nginx(tmp_path, upstream) as address, httpx.Client(base_url=address, trust_env=False) as http:
            forged = {**headers("root", "mq-leads"), "X_Forwarded_User": "root"}
            assert http.get("/").status_code == http.post("/note", json={}, headers=forged).status_code == 401
            for name, status in (("ann", 200), ("bob", 403), ("eve", 403)):
                answer = http.post("/note", json={"who": "root", "text": "x"}, headers=forged, auth=(name, "secret"))
                assert answer.status_code == status, answer.text
            assert notes == [{"who": "ann", "text": "x"}]
            with http.stream("GET", "/api/events", auth=("bob", "secret"), headers=forged) as answer:
                first = next(line for line in answer.iter_lines() if line.startswith("data: "))
            assert '"who":"bob"' in first and '"role":"viewer"' in first


# --- options ----------------------------------------------------------------------------------------------------------

OIDC = ["--oidc-issuer", "https://id.example", "--oidc-client-id", "mqtwin", "--oidc-secret-file", "SECRET"]
LOOK = ["--viewers", "staff"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (LOOK, "roles without a sign-in; expected: --trust-proxy ADDRESS or --oidc-issuer URL, too"),
        (["--trust-proxy", PROXY], "nobody has a role; expected: --viewers GROUP, --operators GROUP or"),
        (["--trust-proxy", "proxy", *LOOK], "--trust-proxy proxy: .*; expected: an address, a network such as"),
        (["--trust-proxy", "10.0.0.1/8", *LOOK], "--trust-proxy 10.0.0.1/8: .* has host bits set; expected"),
        (["--trust-proxy", "0.0.0.0/0", *LOOK], "0.0.0.0/0 trusts everybody; expected: the address of the proxy"),
        (["--trust-proxy", "::/0", *LOOK], "::/0 trusts everybody; expected: the address of the proxy"),
        (["--trust-proxy", "unix", *LOOK], "--trust-proxy unix and --listen unix:PATH belong together"),
        (["--trust-proxy", PROXY, *LOOK, "--listen", "unix:s"], "belong together; expected: both or none"),
        (["--trust-proxy", PROXY, "--trust-proxy", "unix", *LOOK], "unix beside an address; expected: one kind"),
        (["--trust-proxy", PROXY, *LOOK, "--user-header", "X_User"], "X_User; expected: letters, digits and hyphens"),
        (["--trust-proxy", PROXY, *LOOK, "--listen", "192.0.2.1:1"], "192.0.2.1 without TLS; expected: --tls-cert"),
        (["--trust-proxy", PROXY, *LOOK, *OIDC], "--trust-proxy beside --oidc-issuer; expected: one of them"),
        ([*LOOK, *OIDC], "expected: with --oidc-client-id ID --oidc-secret-file FILE --public-address URL"),
        ([*LOOK, *OIDC, "--public-address", "http://mq.example/"], "http://mq.example/; expected: an address with"),
        ([*LOOK, *OIDC, "--public-address", "https://mq.example"], "https://mq.example; expected: with a / at its"),
        ([*OIDC, "--public-address", "https://mq.example/"], "nobody has a role; expected: --viewers"),
        (["--listen", "192.0.2.1:8470"], "--token-file FILE, or a sign-in"),
    ],
)
def test_options_that_would_let_in_the_wrong_people_are_refused(
    options: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    if "--oidc-issuer" in options:
        pytest.importorskip("authlib")
    secret = tmp_path / "secret"
    secret.write_text("hidden-from-logs\n")
    secret.chmod(0o600)
    arguments = [str(secret) if option == "SECRET" else option for option in options]
    assert main(["console", "--bootstrap-servers", "127.0.0.1:1", *arguments]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert re.search(expected, line) and "hidden-from-logs" not in line
