"""Several jobs in one console: the page about all of them, the console of each below its name, its doors."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx2 as httpx
import msgspec
import pytest
from playwright.sync_api import Browser, expect
from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from deploy.cli import main
from deploy.commands.console import SitesOptions
from deploy.console import app as module
from deploy.console.app import ConsoleState, new_app, stream
from deploy.console.identity import DOORS, Proxy, Role, needed_role
from deploy.console.model import ConsoleModel
from deploy.console.server import ConsoleServer, Listen, Site
from deploy.console.sites import MAX_LINES, SitesModel
from tests.deploy.console.test_browser import SIZES, _fits, _take_picture, opened
from tests.deploy.console.test_identity import CLOSED, HOSTS, PROXY, ROLES, headers
from tests.support.chromium import CHROMIUM
from tests.support.console_feed import (
    TOPICS,
    FixedAnswers,
    alert_event,
    alert_record,
    page_set,
    state_record,
    two_hundred_stores,
)
from tests.support.traffic import write_estate
from twin.base.errors import UsageError

FULL = "QSG1/APP000"  # of `two_hundred_stores`


def named(name: str = "", used: int = 4_000, **fields: Any) -> ConsoleModel:
    """Return the model of a site with one page set, whose records have the site's name; "": none."""
    model = ConsoleModel(TOPICS)
    model.fold([state_record(page_set("QM01/PS04", used, **({"site": name} if name else {}), **fields))])
    model.set_source(connected=True, caught_up=True, missing=[])
    return model


def busy() -> ConsoleModel:
    """Return the model of a site with 200 stores, of which one is full and three are filling."""
    model = ConsoleModel(TOPICS)
    model.fold(two_hundred_stores())
    model.set_source(connected=True, caught_up=True, missing=[])
    return model


def content(sites: SitesModel) -> dict[str, Any]:
    return dict(msgspec.json.decode(sites.changes(0)[1]))


# --- what the page shows ----------------------------------------------------------------------------------------------


def test_what_is_full_comes_first_whichever_site_it_is_of() -> None:
    stores = content(SitesModel({"test": named(used=9_900), "prod": busy()}))["stores"]
    assert [(own["site"], own["store"]) for own in stores[:2]] == [("prod", FULL), ("prod", "QSG2/APP000")]
    assert stores[0]["is_full"] is True and stores[1]["full_in_s"] == 600.0
    assert [own["site"] for own in stores[:5]] == ["prod"] * 4 + ["test"]  # by usage, where nothing fills
    assert len(stores) == MAX_LINES
    assert (stores[4]["resource"], stores[4]["pct"]) == ("pages", 99.0)


def test_stores_of_the_same_name_are_told_apart_by_their_sites() -> None:
    prod, test = named("prod"), named("test")
    test.fold([alert_record(alert_event(store="QM01/PS04", severity="critical"))])
    page = content(SitesModel({"prod": prod, "test": test}))
    assert [(own["site"], own["severity"]) for own in page["stores"]] == [("test", "critical"), ("prod", "")]
    assert [own["severities"] for own in page["sites"]] == [{"": 1}, {"critical": 1}]


def test_a_site_that_is_away_says_so_and_blanks_no_other() -> None:
    away, here = named("prod"), named("test")
    away.set_source(connected=False, caught_up=True, missing=[], problem="no Kafka answers at prod:9092")
    never = ConsoleModel(TOPICS)
    never.set_source(connected=False, caught_up=False, missing=[], problem="")
    sites = SitesModel({"prod": away, "test": here, "lab": never})
    page = content(sites)
    assert [(own["name"], own["problem"]) for own in page["sites"]] == [
        ("prod", "no Kafka answers at prod:9092"),
        ("test", ""),
        ("lab", "its Kafka has not answered yet"),
    ]
    assert {own["site"] for own in page["stores"]} == {"prod", "test"}  # as last heard
    assert sites.is_ready and sites.problem == "prod: no Kafka answers at prod:9092"


def test_records_of_another_site_than_the_one_that_was_named_are_pointed_out() -> None:
    page = content(SitesModel({"prod": named("test"), "test": named("test"), "lab": named()}))
    assert [own["problem"] for own in page["sites"]] == ["its records are those of test", "", ""]


def test_a_change_at_any_site_is_sent_and_the_rest_is_a_beat() -> None:
    prod, test = named("prod"), named("test")
    sites = SitesModel({"prod": prod, "test": test})
    state = ConsoleState(sites, HOSTS, sites={"prod": ConsoleState(prod, HOSTS)}, period_s=0.01)

    async def events() -> list[bytes]:
        heard: list[bytes] = []
        async for event in stream(state, 0):
            heard.append(event)
            if len(heard) == 3:
                test.fold([state_record(page_set("QM01/PS05", 1))])
            if b"PS05" in event:
                state.is_stopping.set()
        return heard

    _, first, beat, *rest = asyncio.run(events())
    assert b"event: changes" in first and b"event: beat" in beat
    assert b"event: changes" in rest[-1] and b'"sites"' in beat


def test_the_console_of_a_site_is_below_its_name_with_its_own_stores_and_notes() -> None:
    notes: dict[str, list[Any]] = {"prod": [], "test": []}
    own = {name: named(name, used) for name, used in (("prod", 100), ("test", 200))}
    below = {
        name: ConsoleState(model, HOSTS, name=name, answers=FixedAnswers(list), take_note=notes[name].append)
        for name, model in own.items()
    }
    client = TestClient(new_app(ConsoleState(SitesModel(own), HOSTS, sites=below)), base_url="http://127.0.0.1:8470")
    assert "mqtwin sites" in client.get("/").text and "mqtwin console" in client.get("/prod/").text
    assert client.get("/prod", follow_redirects=False).headers["location"].endswith("/prod/")
    for name, pct in (("prod", 1.0), ("test", 2.0)):
        assert client.get(f"/{name}/api/history?store=QM01/PS04").json()["pct"] == {"pages": [pct]}
        assert client.get(f"/{name}/readyz").status_code == 200
        assert client.get(f"/{name}/static/console.js").status_code == 200
    assert client.post("/test/note", json={"text": "x"}).status_code == 200
    assert notes == {"prod": [], "test": [{"text": "x"}]}
    assert client.post("/prod/whatif", json={"store": "a"}).json() == ["store"]
    for path in ("/api/history", "/note", "/whatif", "/lab/", "/prod/prod/", "/prod/nothing"):
        assert client.get(path).status_code == 404
    answer = client.get("/prod/nothing")
    assert answer.headers["content-security-policy"] == module.CONTENT_SECURITY_POLICY
    assert client.get("/prod/", headers={"host": "evil.example"}).status_code == 400
    assert {name: below["prod"].about()[name] for name in ("site", "above")} == {"site": "prod", "above": "../"}


def test_the_console_is_ready_while_any_site_is_and_names_the_others() -> None:
    prod, test = named("prod"), named("test")
    below = {"prod": ConsoleState(prod, HOSTS), "test": ConsoleState(test, HOSTS)}
    state = ConsoleState(SitesModel({"prod": prod, "test": test}), HOSTS, sites=below)
    client = TestClient(new_app(state), base_url="http://127.0.0.1:8470")
    assert client.get("/readyz").json() == {"status": "ready", "unreadable": 0}
    test.set_source(connected=False, caught_up=True, missing=[], problem="no Kafka answers at test:9092")
    assert client.get("/readyz").json()["problem"] == "test: no Kafka answers at test:9092"
    assert (client.get("/prod/readyz").status_code, client.get("/test/readyz").status_code) == (200, 503)
    prod.set_source(connected=False, caught_up=True, missing=[], problem="gone")
    assert client.get("/readyz").status_code == 503


def test_the_page_loads_nothing_from_elsewhere_and_is_small() -> None:
    own = named("prod")
    state = ConsoleState(SitesModel({"prod": own}), HOSTS, sites={"prod": ConsoleState(own, HOSTS)})
    client = TestClient(new_app(state), base_url="http://127.0.0.1:8470")
    page = client.get("/").text
    files = re.findall(r'(?:src|href)="(static/[^"]+)"', page)
    assert not re.search(r"<style|<script>|\son[a-z]+=|style=|https?://", page)
    size = sum(len(client.get(f"/{name}").content) for name in files)
    assert len(files) == 4 and size < 45_000
    assert client.get("/static/sites.html").status_code == 404


# --- who may ask ------------------------------------------------------------------------------------------------------


def two_sites(notes: list[Any]) -> Starlette:
    """Return the application of two sites that are asked by a proxy."""
    own = {"prod": named("prod"), "test": named("test")}
    identity = Proxy([PROXY], ROLES)
    below = {
        name: ConsoleState(model, HOSTS, identity=identity, name=name, answers=FixedAnswers(), take_note=notes.append)
        for name, model in own.items()
    }
    state = ConsoleState(SitesModel(own), HOSTS, identity=identity, sites=below)
    return new_app(state)


def guarded(notes: list[Any], peer: str = PROXY) -> TestClient:
    """Return a client of two sites."""
    return TestClient(two_sites(notes), base_url="http://127.0.0.1:8470", client=(peer, 40000))


def test_a_site_has_the_doors_of_a_console_and_the_page_above_has_fewer() -> None:
    routes = two_sites([]).routes
    mounts = {route.path: route for route in routes if isinstance(route, Mount)}
    assert mounts.keys() == {"/prod", "/test"}
    console = [(route.path, route.methods) for route in (*module._OF_PAGE, *module._OF_HEALTH)]
    for mount in mounts.values():
        assert [(own.path, own.methods) for own in mount.routes if isinstance(own, Route)] == console
        assert len(mount.routes) == len(console)
    above = {route.path for route in routes if isinstance(route, Route)}
    assert above == {*module.PATHS_OF_SITES, "/healthz", "/readyz"} and above < DOORS.keys()


@pytest.mark.parametrize("below", ["", "/prod"])
@pytest.mark.parametrize(("path", "method"), CLOSED)
def test_who_is_signed_out_or_has_no_role_passes_no_door_of_a_site(below: str, path: str, method: str) -> None:
    if not below and path not in module.PATHS_OF_SITES:
        return
    client = guarded([])
    assert client.request(method, below + path).status_code == 401
    assert client.request(method, below + path, headers=headers(groups="others")).status_code == 403
    assert guarded([], "10.1.2.4").request(method, below + path, headers=headers()).status_code == 401
    foreign = {**headers(), "sec-fetch-site": "cross-site"}
    assert client.request(method, below + path, headers=foreign).status_code == 403


@pytest.mark.parametrize(("path", "method"), CLOSED)
@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR, Role.APPROVER])
def test_each_role_passes_its_own_doors_of_a_site(path: str, method: str, role: Role) -> None:
    if path == "/api/events":  # which never ends
        return
    notes: list[Any] = []
    groups = {Role.VIEWER: "staff", Role.OPERATOR: "mq-ops", Role.APPROVER: "a,mq-leads"}[role]
    body = {"json": {"who": "mallory"}} if method == "POST" else {}
    answer = guarded(notes).request(method, f"/test{path}", headers=headers(groups=groups), **body)
    assert (answer.status_code == 403) == (role < needed_role(path, method)) and answer.status_code != 401
    assert notes == ([{"who": "ann"}] if path == "/note" and role >= Role.OPERATOR else [])


def test_a_token_that_is_given_once_opens_every_site() -> None:
    token = "a-token-of-enough-characters"
    own = {"prod": Site(model=named("prod"), past=None, take_note=list)}
    sites = SitesModel({"prod": own["prod"].model})
    with (
        ConsoleServer(sites, Listen(port=0, token=token), sites=own) as server,
        httpx.Client(base_url=server.address, trust_env=False) as http,
    ):
        assert http.get("prod/api/history?store=QM01/PS04").status_code == 401
        assert http.post("api/session", headers={"authorization": f"Bearer {token}"}).status_code == 200
        assert http.get("prod/api/history?store=QM01/PS04").status_code == 200
        with http.stream("GET", "prod/api/events") as answer:
            lines = answer.iter_lines()  # kept: its end would be that of the answer
            first = next(line for line in lines if line.startswith("data: "))
            assert '"site":"prod"' in first and server.clients == 1


# --- options ----------------------------------------------------------------------------------------------------------


def estate_of(folder: Path, name: str) -> Path:
    """Return an estate that has the name of a site; "": none."""
    path = write_estate(folder)
    if name:
        path.write_text(f'{path.read_text(encoding="utf-8")}\n[site]\nname = "{name}"\n', encoding="utf-8")
    return path


def test_a_site_is_a_name_its_kafka_and_the_prefix_of_its_topics(tmp_path: Path) -> None:
    secret = tmp_path / "client.properties"
    secret.write_text("security.protocol=SSL\n", encoding="utf-8")
    secret.chmod(0o600)
    estate = estate_of(tmp_path, "prod")
    options = SitesOptions(
        site=("prod=a:9092,b:9092/bank", "test-2=c:1"), site_estate=(estate,), site_kafka_file=(f"prod={secret}",)
    )
    prod, test = options.sources()
    assert (prod.name, prod.kafka.bootstrap_servers, prod.kafka.topic_prefix) == ("prod", "a:9092,b:9092", "bank")
    assert prod.estate == estate and prod.kafka.client()["security.protocol"] == "SSL"
    assert (test.name, test.kafka.topic_prefix, test.estate) == ("test-2", "mqtwin", None)
    assert "security.protocol" not in test.kafka.client()
    assert SitesOptions().sources() == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--site", "prod"], "--site prod; expected: NAME=BOOTSTRAP/PREFIX"),
        (["--site", "a b=c:1"], "--site a b=c:1; expected: NAME=BOOTSTRAP/PREFIX, the name of letters"),
        (["--site", "../x=c:1"], "expected: NAME=BOOTSTRAP/PREFIX, the name of letters"),
        (["--site", "api=c:1"], "api is taken; expected: another name"),
        (["--site", "a=c:1", "--site", "a=d:1"], "--site a=d:1: a is taken; expected: another name"),
        (["--site", "a=c"], "--site a: --bootstrap-servers c; expected: HOST:PORT"),
        (["--site", "a=c:1/b d"], "--site a: --topic-prefix b d; expected: 1 to 200 letters"),
        (["--site", "a=c:1", "--site-kafka-file", "b=f"], "--site-kafka-file of site b; expected: a"),
        (["--site-estate", "ESTATE"], "--site-estate of site prod; expected: --site NAME=BOOTSTRAP/PREFIX, too"),
        (["--site", "a=c:1", "--site-estate", "ESTATE"], "--site-estate of site prod; expected: a"),
        (["--site", "a=c:1", "--site-estate", "UNNAMED"], "--site-estate of site without a name; expected: a"),
        (["--site", "a=c:1", "--bootstrap-servers", "d:1"], "--site beside another source; expected: --site, "),
        (["--site", "a=c:1", "--zone", "UTC"], "--site beside another source; expected: --site, "),
    ],
)
def test_options_of_sites_that_are_wrong_are_one_line(
    options: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("prod", ""):
        folder = tmp_path / (name or "unnamed")
        folder.mkdir()
        words = "ESTATE" if name else "UNNAMED"
        options = [str(estate_of(folder, name)) if own == words else own for own in options]
    assert main(["console", *options]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert expected in line


def test_an_estate_for_each_site_is_named_once() -> None:
    with pytest.raises(UsageError, match="expected: NAME=FILE"):
        SitesOptions(site=("a=c:1",), site_kafka_file=("a=",)).sources()


# --- in a browser -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install the package chromium")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.nightly
def test_the_page_leads_to_the_store_of_a_site_and_back_on_every_screen(browser: Browser, scheme: str) -> None:
    own = {name: Site(model=model, past=None, take_note=list) for name, model in (("prod", busy()), ("test", named()))}
    sites = SitesModel({name: site.model for name, site in own.items()})
    with ConsoleServer(sites, Listen(port=0), sites=own) as server:
        for size in SIZES:
            own["test"].model.set_source(connected=True, caught_up=True, missing=[])
            with opened(browser, server.address, size, scheme, "") as page:
                expect(page.locator("h1")).to_have_text(f"prod {FULL} is full")
                expect(page.locator("#sites h3")).to_have_text(["prod", "test"])
                expect(page.locator("#stores h3").first).to_have_text(f"prod {FULL}")
                expect(page.locator("#stores .card").first).to_contain_text("Full now")
                assert _fits(page)
                _take_picture(page, size, f"{scheme}-sites")
                own["test"].model.set_source(
                    connected=False, caught_up=True, missing=[], problem="no Kafka answers at test:9092"
                )
                expect(page.locator("#banner")).to_have_text("test: no Kafka answers at test:9092")
                expect(page.locator("#sites .card").nth(1)).to_contain_text("1 store: nothing calls, as last heard")
                expect(page.locator("h1")).to_have_text(f"prod {FULL} is full")
                assert _fits(page)
                _take_picture(page, size, f"{scheme}-sites-away")
                page.locator("#stores h3 a").first.click()
                expect(page.locator(".brand")).to_have_text("mqtwin prod")
                expect(page.locator(".hero .big")).to_have_text("Full now")
                expect(page).to_have_title(re.compile(r"- mqtwin prod$"))
                page.locator(".brand").click()
                expect(page.locator("h1")).to_have_text(f"prod {FULL} is full")
