"""Requests and approvals at the console: who may pass which door, what is refused, under whose name it is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from deploy.commands.console import SourceOptions, check_desk
from deploy.console.acts import ActDesk, ActView
from deploy.console.answers import Answers
from deploy.console.app import ConsoleState, new_app
from deploy.console.identity import Proxy, Roles
from deploy.console.model import ConsoleModel
from deploy.console.server import Listen
from tests.support.asked_acts import ACTIONS, ID, MemoryLog, actions
from tests.support.console_feed import TOPICS, FixedAnswers
from tests.support.filling import STORE, Filling
from twin.base.errors import MqtwinError, UsageError
from twin.base.units import as_text
from twin.planning.whatif import Moment
from twin.records import Handed, Resulted

PROXY = "10.1.2.3"
TOKEN = "a-token-of-enough-characters"
ROLES = Roles(viewers=("staff",), operators=("mq-ops",), approvers=("mq-leads",))
GROUPS = {"eve": "staff", "ann": "mq-ops", "bob": "mq-leads", "dan": "mq-leads", "mallory": "others"}
DOORS = {
    "list": ("GET", "/api/acts"),
    "request": ("POST", "/api/acts"),
    "approve": ("POST", f"/api/acts/{ID}/approve"),
    "withdraw": ("POST", f"/api/acts/{ID}/withdraw"),
    "result": ("POST", f"/api/acts/{ID}/result"),
}


class NotedDesk:
    """A desk that notes who says what."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def views(self) -> list[str]:
        self.heard.append(("list",))
        return []

    def request(self, content: Any, who: str) -> dict[str, str]:
        self.heard.append(("request", content, who))
        return {}

    def approve(self, act_id: str, content: Any, who: str) -> dict[str, str]:
        self.heard.append(("approve", act_id, content, who))
        return {}

    def withdraw(self, act_id: str, content: Any, who: str) -> dict[str, str]:
        self.heard.append(("withdraw", act_id, content, who))
        return {}

    def result(self, act_id: str, content: Any, who: str) -> dict[str, str]:
        self.heard.append(("result", act_id, content, who))
        return {}


def client(desk: Any, peer: str = PROXY, **options: Any) -> TestClient:
    options.setdefault("identity", Proxy([PROXY], ROLES))
    state = ConsoleState(ConsoleModel(TOPICS), ["127.0.0.1"], answers=FixedAnswers(), desk=desk, **options)
    return TestClient(new_app(state), base_url="http://127.0.0.1:8470", client=(peer, 40000))


def headers(who: str) -> dict[str, str]:
    return {"X-Forwarded-User": who, "X-Forwarded-Groups": GROUPS[who]}


# --- doors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("who", GROUPS)
def test_each_door_lets_those_pass_who_have_its_role(door: str, who: str) -> None:
    desk = NotedDesk()
    method, path = DOORS[door]
    body = {"json": {"who": "root"}} if method == "POST" else {}
    answer = client(desk).request(method, path, headers=headers(who), **body)
    may = {"list": {"eve", "ann", "bob", "dan"}, "approve": {"bob", "dan"}}.get(door, {"ann", "bob", "dan"})
    assert answer.status_code == (201 if door == "request" else 200) if who in may else answer.status_code == 403
    assert [own[0] for own in desk.heard] == [door] * (who in may)
    if who in may and door != "list":
        assert desk.heard[0][-1] == who, "the verified name, whatever the body says"


ATTACKS: dict[str, tuple[dict[str, Any], int]] = {
    "signed out": ({"headers": {}, "json": {}}, 401),
    "headers of anybody": ({"headers": headers("bob"), "json": {}, "peer": "10.1.2.4"}, 401),
    "two names": ({"headers": [*headers("bob").items(), ("X-Forwarded-User", "dan")], "json": {}}, 401),
    "a page of another site": ({"headers": {**headers("bob"), "sec-fetch-site": "cross-site"}, "json": {}}, 403),
    "an origin of another site": ({"headers": {**headers("bob"), "origin": "https://evil.example"}, "json": {}}, 403),
    "a form": ({"headers": headers("bob"), "data": {"a": "b"}}, 415),
    "text": ({"headers": {**headers("bob"), "content-type": "text/plain"}, "content": b"{}"}, 415),
    "no JSON": ({"headers": {**headers("bob"), "content-type": "application/json"}, "content": b"{"}, 400),
    "too large": ({"headers": headers("bob"), "json": {"a": "x" * 20_000}}, 413),
    "deep": ({"headers": {**headers("bob"), "content-type": "application/json"}, "content": b"[" * 10_000}, 400),
}


@pytest.mark.parametrize("door", [door for door, (method, _) in DOORS.items() if method == "POST"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_no_attack_passes_a_door(door: str, attack: str) -> None:
    desk = NotedDesk()
    options, status = dict(ATTACKS[attack][0]), ATTACKS[attack][1]
    answer = client(desk, options.pop("peer", PROXY)).post(DOORS[door][1], **options)
    assert (answer.status_code, desk.heard) == (status, [])


@pytest.mark.parametrize("door", [door for door, (method, _) in DOORS.items() if method == "POST"])
def test_who_knows_a_token_has_no_name_and_says_nothing(door: str) -> None:
    desk = NotedDesk()
    for options in ({"identity": None, "token": TOKEN}, {"identity": None}, {"token": TOKEN}):
        own = client(desk, "127.0.0.1", **options)
        answer = own.post(DOORS[door][1], json={"who": "bob"}, headers={"authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == 403 and not desk.heard
    assert "nobody has verified who asks" in client(desk, identity=None).post("/api/acts", json={}).json()["detail"]


@pytest.mark.parametrize("door", DOORS)
def test_without_a_list_there_is_no_door(door: str) -> None:
    method, path = DOORS[door]
    answer = client(None).request(method, path, headers=headers("bob"))
    assert answer.status_code == 404
    assert answer.json()["detail"] == "nothing is requested here; expected: mqtwin console --actions FILE"


@pytest.mark.parametrize("act_id", ["..%2f..%2fnote", "a/b", "%00", "x" * 2000, "'; DROP TABLE acts; --"])
def test_an_id_of_any_form_is_data(act_id: str) -> None:
    desk = NotedDesk()
    answer = client(desk).post(f"/api/acts/{act_id}/approve", json={}, headers=headers("bob"))
    assert answer.status_code in {200, 404, 405}
    assert all(own[0] == "approve" for own in desk.heard)


def test_a_console_with_a_list_needs_a_sign_in_and_twins(tmp_path: Path) -> None:
    path = actions(tmp_path)
    signed_in = Listen(identity=Proxy([PROXY], ROLES))
    for listen, source, expected in (
        (Listen(), SourceOptions(estate=path), "without a sign-in; expected: --trust-proxy ADDRESS or --oidc-issuer"),
        (Listen(token=TOKEN), SourceOptions(estate=path), "without a sign-in"),
        (signed_in, SourceOptions(), "expected: with --bootstrap-servers and --estate"),
        (signed_in, SourceOptions(recording=path, estate=path), "expected: with --bootstrap-servers and --estate"),
    ):
        with pytest.raises(UsageError, match=expected):
            check_desk(path, listen, source)
    check_desk(path, signed_in, SourceOptions(estate=path))
    path.chmod(0o640)
    with pytest.raises(UsageError, match="can be used by others"):
        check_desk(path, signed_in, SourceOptions(estate=path))


# --- what is requested ------------------------------------------------------------------------------------------------


class Twins(Answers):
    """The twin of a structure that fills."""

    def __init__(self, filling: Filling) -> None:
        self._filling = filling

    @contextmanager
    def moment(self, store: str, time_s: float | None) -> Iterator[Moment]:
        """Return its moment."""
        assert (store, time_s) == (STORE, None)
        yield self._filling.moment


@pytest.fixture(scope="module")
def filling(tmp_path_factory: pytest.TempPathFactory) -> Filling:
    return Filling(tmp_path_factory.mktemp("filling"))


class Site:
    """A desk with a clock, over a topic in memory."""

    def __init__(self, folder: Path, filling: Filling, text: str = ACTIONS) -> None:
        self.log, self.actions, self.filling = MemoryLog(), actions(folder, text), filling
        self.alert = filling.alert()
        self.log.states = {STORE: filling.state(STORE)}
        self.log.alerts = {self.alert.data.alert_id: self.alert}
        self.time_s = filling.time / 1e6 + 5
        self.desk = ActDesk(self.log, Twins(filling), self.actions, lambda: self.time_s)  # type: ignore[arg-type]

    def request(self, **fields: Any) -> ActView:
        return self.desk.request({"alert_id": self.alert.data.alert_id, "action": "alter-size", **fields}, "ann")


@pytest.fixture
def site(tmp_path: Path, filling: Filling) -> Site:
    return Site(tmp_path, filling)


def hash_body(view: ActView, **fields: Any) -> dict[str, Any]:
    return {"sha256": view.request.sha256, **fields}


def test_a_request_has_the_statement_and_its_predicted_effect(site: Site) -> None:
    view = site.request()
    own = view.request
    assert (own.statement, own.target) == ("SETXCF START,ALTER,STRNAME=QSG1APP1,SIZE=8M", "QSG1")
    assert (own.who, view.status, view.approvers) == ("ann", "requested", 1)
    assert own.before.p50 is not None and (own.after.p50 is None or own.after.p50 > own.before.p50)
    assert own.expires == as_text(round(site.time_s * 1e6) + 900_000_000)
    assert site.log.records == [own] and site.desk.views() == [view]
    view = site.desk.approve(own.id, hash_body(view), "bob")
    assert (view.status, view.approved_by) == ("approved", ("bob",))


REQUESTS: dict[str, tuple[Callable[[Site], object], dict[str, Any], str]] = {
    "no object": (lambda _: None, {"minutes": "x"}, "the body: "),
    "too long": (lambda _: None, {"minutes": 241}, "the body: "),
    "who": (lambda _: None, {"who": "bob"}, "the body: "),
    "statement": (lambda _: None, {"statement": "CLEAR QLOCAL(A)"}, "the body: "),
    "alert": (lambda _: None, {"alert_id": "x\x1b[31m"}, "the topic has no such alert"),
    "action": (lambda _: None, {"action": "getters"}, "is not handed over; expected: ALTER CFSTRUCT"),
    "step": (lambda _: None, {"step": 7}, "--step 7: alter-size has 1 steps"),
    "old": (lambda site: setattr(site, "time_s", site.time_s + 60), {}, "old; expected: at most 60 s"),
    "ahead": (lambda site: setattr(site, "time_s", site.time_s - 120), {}, "ahead of this clock; expected: clocks"),
    "no state": (lambda site: site.log.states.clear(), {}, "has no state; expected: "),
    "not allowed": (lambda site: site.actions.write_text(""), {}, "setxcf-alter of QSG1/APP1 is not allowed"),
    "bounds": (
        lambda site: site.actions.write_text(ACTIONS.replace('"8M"', '"7M"')),
        {},
        "size = 8388608; expected: 1M to 7M, its bounds",
    ),
    "window": (
        lambda site: site.actions.write_text(f'{ACTIONS}windows = ["Sun 03:00-03:01"]\n'),
        {},
        "is not allowed now; expected: Sun 03:00-03:01",
    ),
    "open to others": (lambda site: site.actions.chmod(0o644), {}, "can be used by others"),
}


@pytest.mark.parametrize("case", REQUESTS)
def test_a_request_that_is_refused_leaves_nothing(case: str, site: Site) -> None:
    prepare, fields, expected = REQUESTS[case]
    prepare(site)
    with pytest.raises(UsageError, match=re.escape(expected)) as error:
        site.request(**fields)
    assert site.log.records == [] and str(error.value).isprintable()


@pytest.mark.parametrize("condition", ["drift", "source-silent"])
def test_a_store_in_doubt_is_not_changed(condition: str, site: Site) -> None:
    data = msgspec.structs.replace(site.alert.data, alert_id="other", condition=condition)
    site.log.alerts["other"] = msgspec.structs.replace(site.alert, data=data)
    with pytest.raises(UsageError, match=f"{condition} of QSG1/APP1 is open since"):
        site.request()


def test_an_alert_that_has_been_written_by_somebody_else_gets_no_statement_through(site: Site) -> None:
    runbook = msgspec.to_builtins(site.alert.data.runbook)
    for action in runbook:
        for step in action["steps"]:
            step["statement"] = "SETXCF START,ALTER,STRNAME=QSG1APP1,SIZE=8M\nSETXCF FORCE,STR,STRNAME=QSG1APP1"
    data = msgspec.convert({**msgspec.to_builtins(site.alert.data), "runbook": runbook}, type(site.alert.data))
    site.log.alerts = {data.alert_id: msgspec.structs.replace(site.alert, data=data)}
    with pytest.raises(UsageError, match="is not handed over; expected: ALTER"):
        site.request()


def test_no_more_requests_in_an_hour_than_the_list_says(site: Site) -> None:
    for _ in range(2):
        site.request()
        site.time_s += 1
    with pytest.raises(UsageError, match="2 setxcf-alter requested in the last hour; expected: 2"):
        site.request()


def test_who_requests_does_not_approve_and_a_hash_of_something_else_does_not_count(site: Site) -> None:
    view = site.request()
    own = view.request
    for who, body, expected in (
        ("ann", hash_body(view), "ann has requested it; expected: somebody else"),
        ("Ann", hash_body(view), "Ann has requested it; expected: somebody else"),
        ("bob", {"sha256": "0" * 64}, "is of something else; expected: "),
        ("bob", {"sha256": own.sha256[:12]}, "the body: "),
        ("bob", {}, "the body: "),
        ("bob", {**hash_body(view), "who": "eve"}, "the body: "),
    ):
        with pytest.raises(UsageError, match=re.escape(expected)):
            site.desk.approve(own.id, body, who)
    with pytest.raises(UsageError, match="there is none of this id; expected: one of mqtwin acts list"):
        site.desk.approve("0" * 16, hash_body(view), "bob")
    site.time_s += 900
    with pytest.raises(UsageError, match="it expires at"):
        site.desk.approve(own.id, hash_body(view), "bob")
    assert site.log.records == [own]


def test_an_approval_after_the_list_has_changed_is_refused(site: Site) -> None:
    view = site.request()
    site.actions.write_text("")
    with pytest.raises(UsageError, match="is not allowed"):
        site.desk.approve(view.request.id, hash_body(view), "bob")
    assert site.desk.views()[0].approvers is None


def test_a_clock_that_has_gone_back_takes_nothing(site: Site) -> None:
    view = site.request()
    site.time_s -= 61
    for take in (site.desk.approve, site.desk.withdraw):
        with pytest.raises(UsageError, match=r"this clock is .* behind the last record of the topic"):
            take(view.request.id, hash_body(view), "bob")


def test_what_was_withdrawn_or_handed_over_takes_nothing_more(site: Site) -> None:
    view = site.request()
    withdrawn = site.desk.withdraw(view.request.id, hash_body(view), "ann")
    assert (withdrawn.status, withdrawn.ended) == ("withdrawn", "withdrawn by ann")
    for take in (site.desk.approve, site.desk.withdraw):
        with pytest.raises(UsageError, match="withdrawn; expected: "):
            take(view.request.id, hash_body(view), "bob")
    with pytest.raises(UsageError, match="is withdrawn; expected: one whose result is not known"):
        site.desk.result(view.request.id, hash_body(view, status="ok"), "bob")


def test_a_person_says_what_became_of_an_unknown_one(site: Site) -> None:
    view = site.request()
    own, now = view.request, as_text(round(site.time_s * 1e6))
    site.desk.approve(own.id, hash_body(view), "bob")
    site.log.write(Handed(id=own.id, sha256=own.sha256, time=now, runner="host", token="0" * 32))
    site.log.write(
        Resulted(id=own.id, sha256=own.sha256, time=now, status="unknown", who="runner host", text="look by: D XCF")
    )
    with pytest.raises(UsageError, match="is unknown; expected: one whose result is not known"):
        site.desk.result(own.id, hash_body(view, status="unknown"), "ann")
    heard = site.desk.result(own.id, hash_body(view, status="ok", text=" SIZE is\n8M "), "ann")
    assert heard.status == "ok" and heard.result is not None
    assert (heard.result.who, heard.result.text) == ("ann", "SIZE is 8M")
    with pytest.raises(UsageError, match="is ok; expected: "):
        site.desk.result(own.id, hash_body(view, status="failed"), "bob")


def test_another_record_that_comes_first_is_said(site: Site) -> None:
    view = site.request()
    site.log.on_write = lambda record: site.log.records.append(msgspec.structs.replace(record))
    with pytest.raises(MqtwinError, match="another record came first") as error:
        site.log.write(Handed(id=view.request.id, sha256="0" * 64, time=view.request.time, runner="b", token="0" * 32))
    assert "expected: read it again" in str(error.value)


def test_people_at_the_console_request_approve_and_read_it(site: Site) -> None:
    own = client(site.desk)
    body = {"alert_id": site.alert.data.alert_id, "action": "alter-size", "minutes": 30}
    answer = own.post("/api/acts", json=body, headers=headers("ann"))
    assert answer.status_code == 201
    request = answer.json()["request"]
    path, sha256 = f"/api/acts/{request['id']}/approve", {"sha256": request["sha256"]}
    refused = own.post(path, json=sha256, headers=headers("ann"))
    assert refused.status_code == 403, "an operator"
    assert own.post(path, json={"sha256": "0" * 64}, headers=headers("bob")).status_code == 422
    assert own.post(path, json=sha256, headers=headers("bob")).json()["approved_by"] == ["bob"]
    [listed] = own.get("/api/acts", headers=headers("eve")).json()
    assert (listed["status"], listed["request"]["who"]) == ("approved", "ann")


def test_an_approver_who_requests_needs_another_approver(site: Site) -> None:
    own = client(site.desk)
    body = {"alert_id": site.alert.data.alert_id, "action": "alter-size"}
    request = own.post("/api/acts", json=body, headers=headers("bob")).json()["request"]
    path, sha256 = f"/api/acts/{request['id']}/approve", {"sha256": request["sha256"]}
    answer = own.post(path, json=sha256, headers=headers("bob"))
    assert answer.status_code == 422 and "bob has requested it" in answer.json()["detail"]
    assert own.post(path, json=sha256, headers=headers("dan")).status_code == 200
