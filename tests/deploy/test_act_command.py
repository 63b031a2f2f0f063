"""`mqtwin act` on a recording, and `mqtwin acts` that asks a console under a person's name."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from typing_extensions import override

from deploy.cli import main
from deploy.console.acts import ActView
from deploy.console.identity import Identity, Person, Role
from deploy.console.model import ConsoleModel
from deploy.console.server import ConsoleServer, Listen
from deploy.show.planning import request_document
from deploy.show.terminal import emit
from tests.support.asked_acts import ID, NOW, actions, estate, request
from tests.support.console_feed import TOPICS
from tests.support.filling import Filling
from tests.support.traffic import write_lines
from twin.base.errors import UsageError
from twin.base.units import as_text
from twin.records import Measured, Resulted

LATER = as_text(NOW + 400_000_000)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Filling, Path]:
    folder = tmp_path_factory.mktemp("site")
    filling = Filling(folder)
    return filling, write_lines(folder / "night.ndjson", filling.lines)


def act(site: tuple[Filling, Path], *words: str) -> int:
    filling, recording = site
    return main(["act", *words, "--estate", str(filling.path), "--recording", str(recording)])


def test_the_dry_run_shows_statement_target_effect_and_way_back(
    site: tuple[Filling, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    alert_id = site[0].alert().data.alert_id
    assert act(site, alert_id, "alter-size") == 0
    text = capsys.readouterr().out
    assert "SETXCF\tSETXCF START,ALTER,STRNAME=QSG1APP1,SIZE=8M" in text
    assert "on QSG1" in text and "way back: SETXCF START,ALTER,STRNAME=QSG1APP1,SIZE=4M" in text
    assert "whether it has run: D XCF,STR,STRNAME=QSG1APP1" in text and "Nothing was changed." in text
    assert re.search(r"^as it is\t\w+\t.*min", text, re.MULTILINE) and re.search(r"^with it\t", text, re.MULTILINE)
    assert act(site, alert_id, "alter-size", "--step", "1", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["statement"], record["settings"]) == (
        "SETXCF START,ALTER,STRNAME=QSG1APP1,SIZE=8M",
        {"size": 8 << 20},
    )
    assert f"hash: {record['sha256']}" in text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("x\x1b[31m", "alter-size"), "has no such alert; expected: "),
        (("ALERT", "getters"), "is not handed over; expected: ALTER CFSTRUCT"),
        (("ALERT", "alter-size", "--step", "2"), "--step 2: alter-size has 1 steps; expected: one of them"),
        (("ALERT", "alter-size", "--step", "0"), "--step"),
        (("ALERT", "alter-size", "--at", "2026-01-01T00:05:00Z"), "has no such alert; expected: "),
        (("ALERT", "alter-size", "--at", "noon"), "--at noon"),
        (("ALERT", "alter-size", "--bootstrap-servers", "127.0.0.1:1"), "expected one of --recording FILE"),
    ],
)
def test_what_cannot_be_shown_is_one_line(
    words: tuple[str, ...], expected: str, site: tuple[Filling, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    alert_id = site[0].alert().data.alert_id
    assert act(site, *(alert_id if word == "ALERT" else word for word in words)) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert expected in line and line.isprintable()


# --- mqtwin acts ------------------------------------------------------------------------------------------------------


class Passwords(Identity):
    """Names with passwords, as a proxy in front checks them."""

    sign_in = "reload"

    @override
    def person(self, request: Request) -> Person | None:
        kind, _, encoded = request.headers.get("authorization", "").partition(" ")
        if kind != "Basic":
            return None
        name, _, password = base64.b64decode(encoded).decode().partition(":")
        return Person(name, Role.APPROVER) if password == "right" else None


class Desk:
    """A desk with one request, which notes what is heard."""

    def __init__(self, folder: Path) -> None:
        self.heard: list[Any] = []
        self.problem = ""
        self.view = ActView(
            status="unknown",
            request=request(estate(folder)),
            approved_by=("bob\x1b[31m",),
            approvers=1,
            ended="",
            handed=LATER,
            result=Resulted(id=ID, sha256="0" * 64, time=LATER, status="unknown", who="runner host", text="look"),
            measured=(
                Measured(
                    id=ID,
                    sha256="0" * 64,
                    time=LATER,
                    after_s=300,
                    state_time=LATER,
                    usage_pct=71.26,
                    size=None,
                    full_s=5400.0,
                    probability=0.2,
                    alert="open",
                    done=None,
                ),
            ),
        )

    def views(self) -> list[ActView]:
        return [self.view]

    def _say(self, *heard: Any) -> ActView:
        if self.problem:
            raise UsageError(self.problem)
        self.heard.append(heard)
        return self.view

    def request(self, content: Any, who: str) -> ActView:
        return self._say("request", content, who)

    def approve(self, act_id: str, content: Any, who: str) -> ActView:
        return self._say("approve", act_id, content, who)

    def withdraw(self, act_id: str, content: Any, who: str) -> ActView:
        return self._say("withdraw", act_id, content, who)

    def result(self, act_id: str, content: Any, who: str) -> ActView:
        return self._say("result", act_id, content, who)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def asked(desk: Desk, tmp_path: Path) -> Iterator[list[str]]:
    """Options that ask a console under the name ann."""
    password = tmp_path / "password"
    password.touch(mode=0o600)
    password.write_text("right\n")
    with ConsoleServer(ConsoleModel(TOPICS), Listen(port=0, identity=Passwords()), desk=desk) as server:
        yield ["--url", server.address, "--user", "ann", "--password-file", str(password)]


def test_what_people_say_reaches_the_console_under_the_name_that_it_verifies(
    desk: Desk, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    sha256 = desk.view.request.sha256
    assert main(["acts", "request", "ALERT", "alter-size", "--minutes", "30", *asked]) == 0
    assert main(["acts", "approve", ID, sha256, *asked]) == 0
    assert main(["acts", "withdraw", ID, sha256[:12], *asked]) == 0
    assert main(["acts", "result", ID, sha256, "--status", "ok", "--comment", "seen", *asked]) == 0
    assert desk.heard == [
        ("request", {"alert_id": "ALERT", "action": "alter-size", "step": None, "minutes": 30}, "ann"),
        ("approve", ID, {"sha256": sha256}, "ann"),
        ("withdraw", ID, {"sha256": sha256}, "ann"),
        ("result", ID, {"sha256": sha256, "status": "ok", "text": "seen"}, "ann"),
    ]
    assert capsys.readouterr().out.count(f"{ID}  unknown  QM01/PS04") == 4


def test_the_list_says_what_who_and_what_became_of_it(
    asked: list[str], desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["acts", "list", *asked]) == 0
    text = capsys.readouterr().out
    for part in (
        "MQSC on QM01: ALTER PSID(4) EXPAND(SYSTEM)",
        f"hash: {desk.view.request.sha256}",
        "requested by ann at 2026-11-20 12:00",
        "approved by bob\\x1b[31m (1 of 1), expires 2026-11-20 12:15",
        "full 30 min (pages, 80 %); with it not within that time",
        "unknown by runner host: look",
        "5 min later: 71.3 % in use, full in 1.5 h by the forecast, alert open; its events do not show it",
    ):
        assert part in text, part
    assert main(["acts", "list", "--json", *asked]) == 0
    assert json.loads(capsys.readouterr().out)[0]["request"]["id"] == ID
    emit(request_document([]))
    assert capsys.readouterr().out == "nothing was requested\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["approve", ID, "abc"], "hash abc; expected: 12 digits or more"),
        (["approve", ID, "x" * 64], "expected: 12 digits or more"),
        (["approve", ID, "0" * 12], "has another hash; expected: that of mqtwin acts list"),
        (["approve", "fedcba9876543210", "0" * 12], "has another hash; expected: "),
        (["approve", "../../note", "0" * 64], "request ../../note; expected: an id of mqtwin acts list"),
        (["result", ID, "0" * 64, "--status", "done"], "done"),
        (["request", "A", "b", "--minutes", "241"], "minutes"),
    ],
)
def test_what_is_wrong_is_one_line_and_says_nothing(
    words: list[str], expected: str, desk: Desk, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["acts", *words, *asked]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert expected in line and desk.heard == []


def test_what_the_console_refuses_is_said_in_its_words(
    desk: Desk, asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.problem = "ann has requested it; expected: somebody else"
    assert main(["acts", "approve", ID, desk.view.request.sha256, *asked]) == 2
    assert "answers 422 ann has requested it; expected: somebody else" in capsys.readouterr().err
    (tmp_path / "password").write_text("wrong\n")
    assert main(["acts", "list", *asked]) == 2
    assert "answers 401 nobody is signed in; expected: a sign-in" in capsys.readouterr().err
    assert main(["acts", "list", "--url", "http://127.0.0.1:1"]) == 1
    assert "does not answer" in capsys.readouterr().err
    password = str(tmp_path / "password")
    assert main(["acts", "list", "--url", "http://mq.example", "--user", "a", "--password-file", password]) == 2
    assert "would send a secret in clear; expected: https" in capsys.readouterr().err


def test_the_runner_needs_a_list_and_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    filling = tmp_path / "estate.toml"
    estate(tmp_path)
    kafka = ["--bootstrap-servers", "127.0.0.1:1", "--estate", str(filling), "--once"]
    path = str(actions(tmp_path))
    for words, expected in (
        (["--exec", "/nowhere/x", "--actions", path], "no such program; expected: a command"),
        (["--exec", "'", "--actions", path], "expected: a command and its arguments"),
        (["--exec", "cat", "--actions", str(tmp_path / "none")], "cannot be read"),
        (["--exec", "cat"], "actions"),
    ):
        assert main(["acts", "run", *words, *kafka]) == 2
        assert expected in capsys.readouterr().err
