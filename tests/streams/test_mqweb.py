"""Rounds of commands through the REST interface of MQ: what is asked, of whom, and what follows a failure."""

from __future__ import annotations

import itertools
import json
import logging
import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest

import tests.mqweb
from streams.collecting import mqweb, mqweb_session
from streams.collecting.collect import collect
from streams.collecting.http import HttpClient
from streams.collecting.mqweb import DEFINITIONS_S, FIRST_WAIT_S, MAX_WAIT_S, NEW_QUEUES_S, Mqweb, MqwebSource
from streams.collecting.mqweb_session import DEADLINE_S, NAME_CHARACTERS, QSTATUS, REFUSED_S, parts
from streams.collecting.sources import load_position
from streams.host.signals import stop_requests
from tests.mqweb import Certificates, MqwebServer, User
from tests.streams.kafka_help import create, everything
from tests.streams.test_collect import KeepingWriter, Running, wait_for
from tests.support.queue_managers import NOON, System
from twin.base.errors import UsageError
from twin.estate import load_estate
from twin.feeds import Intake, make_feed

SECOND = 1_000_000
ESTATE = """
schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02", "QM04"]
[queue_manager."QM.3"]
[queue_manager.QMD1]
platform = "distributed"
[structure."QSG1/APP1"]
size = "64M"
cf_level = 5
[structure."QSG1/APP2"]
size = "64M"
cf_level = 3
[queue."QSG1/ORDERS"]
structure = "APP1"
[page_set."QM01/4"]
pages = 1080
[storage_class."QM01/PS04"]
page_set = 4
[queue."QM01/REPLIES"]
storage_class = "PS04"
[queue_file."QMD1/INVOICES"]
max_size = "2G"
"""
SMALLER = """
schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01"]
[structure."QSG1/APP1"]
size = "64M"
cf_level = 3
"""
SECRET = "s3cret-of-mona"


class Clock:
    """A clock that a test sets, microseconds."""

    def __init__(self):
        self.now = NOON

    def __call__(self):
        return self.now

    def pass_(self, seconds):
        self.now += round(seconds * SECOND)


class Asking:
    """A client of a server, and what it said."""

    def __init__(
        self, server, qmgrs=("QM01", "QM02", "QM04", "QM.3", "QMD1"), *, client=None, estate=True, more=(), **options
    ):
        self.complaints, self.lines, self.clock = [], [], Clock()
        self.server = server
        self.mqweb = Mqweb(
            [own.url for own in (server, *more)],
            qmgrs,
            client or HttpClient(),
            server.system.estate if estate is True else estate,
            complain=lambda *words: self.complaints.append(words),
            say=self.lines.append,
            clock=self.clock,
            **options,
        )

    def skip_waits(self):
        """Let the clock pass instead of waiting."""
        self.mqweb.sleep = lambda seconds: self.clock.pass_(max(seconds, 0.1))

    def round(self, *, definitions=False):
        """Return the pages of a round, and keep its requests."""
        self.server.requests.clear()
        return self.mqweb.definitions() if definitions else self.mqweb.levels()

    @property
    def asked(self):
        """The commands of the last round, each with the queue manager that was asked."""
        return [(request.qmgr, request.command) for request in self.server.requests if request.command]

    @property
    def new_complaints(self):
        """The codes and texts of complaints since the last look."""
        new, self.complaints = self.complaints, []
        assert all(place == self.mqweb.name for _, place, _ in new)
        return [(code, text) for code, _, text in new]


def shows(pages):
    """Return what each page shows: queue manager and command."""
    return [(page.headers["mqweb.qmgr"], page.headers["mqweb.command"].removeprefix("DISPLAY ")) for page in pages]


def qmgrs_of(pages, command="QSTATUS"):
    return [qmgr for qmgr, words in shows(pages) if words.startswith(command)]


@pytest.fixture
def system(tmp_path):
    path = tmp_path / "estate.toml"
    path.write_text(ESTATE)
    return System(load_estate(path))


@pytest.fixture
def server(system):
    with MqwebServer(system, timeout_s=0.05) as running:
        yield running


@pytest.fixture
def short_deadline(monkeypatch):
    monkeypatch.setattr(mqweb_session, "DEADLINE_S", 0.3)


# --- what is asked ---------------------------------------------------------------------------------------------------


def test_a_round_asks_a_group_once_and_each_queue_manager_for_its_own(server):
    asking = Asking(server)
    assert Mqweb([f"{server.url}/ibmmq/rest/v2/"], ["QM01"], HttpClient(), None, complain=print).name == server.url
    pages = asking.round()
    qstatus = "QSTATUS(*) TYPE(QUEUE)"
    of_member = "IPPROCS OPPROCS UNCOM LGETDATE LGETTIME LPUTDATE LPUTTIME"
    assert shows(pages) == [
        ("QM01", "CFSTATUS(*) TYPE(SUMMARY)"),
        ("QM01", "CFSTATUS(*) TYPE(SMDS)"),
        ("QM01", f"{qstatus} ALL"),
        *((qmgr, f"{qstatus} {of_member}") for qmgr in ("QM02", "QM04")),
        *((qmgr, f"{qstatus} ALL") for qmgr in ("QM.3", "QMD1")),
        *((qmgr, "USAGE TYPE(ALL)") for qmgr in ("QM01", "QM02", "QM04", "QM.3")),
        ("QMD1", "QMSTATUS ALL"),
        ("QM01", "SMDSCONN(*) CFSTRUCT(APP1)"),
    ]
    assert asking.new_complaints == []
    assert {page.headers["mqweb.round"] for page in pages} == {str(NOON)}
    assert [page.headers.get("mqweb.last") for page in pages] == [*[None] * (len(pages) - 1), "1"]
    assert {page.time for page in pages} == {NOON}
    assert pages[0].name == f"{server.url}/ibmmq/rest/v3/admin/action/qmgr/QM01/mqsc"
    assert max(server.most_at_once.values()) == 1
    assert server.open_connections <= 1  # the server may not have seen its end yet


def test_definitions_are_those_of_each_queue_manager_and_the_structures_of_a_group(server):
    pages = Asking(server).round(definitions=True)
    assert shows(pages) == [
        *((qmgr, "QMGR ALL") for qmgr in ("QM01", "QM02", "QM04", "QM.3", "QMD1")),
        ("QM01", "CFSTRUCT(*) ALL"),
        ("QM01", "SMDS(*) CFSTRUCT(APP1) ALL"),
        *((qmgr, "STGCLASS(*) ALL") for qmgr in ("QM01", "QM02", "QM04", "QM.3")),
        *((qmgr, "QLOCAL(*) QSGDISP CFSTRUCT STGCLASS MAXDEPTH") for qmgr in ("QM01", "QM02", "QM04", "QM.3")),
        ("QMD1", "QLOCAL(*) MAXDEPTH MAXFSIZE"),
    ]


@pytest.mark.parametrize(
    ("qmgr", "line"),
    [
        ("QM04", "QM04 in the queue_managers of [queue_sharing_group.QSG1] there, as"),
        ("QM.3", '[queue_manager."QM.3"] there, as'),
        ("QMD1", '[queue_manager."QMD1"] platform = "distributed" there, as'),
    ],
)
def test_a_queue_manager_that_the_estate_lacks_is_one_complaint_with_its_line(server, tmp_path, qmgr, line):
    path = tmp_path / "smaller.toml"
    path.write_text(SMALLER)
    asking = Asking(server, (qmgr, "QM01"), estate=load_estate(path))
    for number in range(4):
        pages = asking.round(definitions=number in {0, 3})
        assert qmgrs_of(pages, "Q") == ([qmgr, "QM01", "QM01"] if number in {0, 3} else ["QM01"])
    [(code, text)] = asking.new_complaints
    assert code == "unknown-name"
    assert text.startswith(f"{qmgr} is not in the estate, so only its definition is asked for; expected: {line}")


def test_without_an_estate_the_queue_managers_say_what_they_are(server):
    asking = Asking(server, estate=None)
    assert [qmgr for qmgr, words in shows(asking.round()) if words == "QMGR ALL"] == [
        "QM01",
        "QM02",
        "QM04",
        "QM.3",
        "QMD1",
    ]
    pages = asking.round()
    assert ("QMGR ALL") not in {words for _, words in shows(pages)}
    assert qmgrs_of(pages, "CFSTATUS") == ["QM01", "QM01"]
    assert qmgrs_of(pages, "SMDSCONN") == []  # its structures come with the definitions
    asking.round(definitions=True)
    assert [qmgrs_of(asking.round(), "SMDSCONN") for _ in range(4)] == [["QM01"], ["QM02"], ["QM04"], ["QM01"]]


@pytest.mark.parametrize("is_text", [False, True])
def test_both_forms_are_answers_that_the_feed_reads(server, monkeypatch, is_text):
    refused = frozenset(("QMGR", "CFSTATUS", "CFSTRUCT", "QLOCAL", "QSTATUS", "STGCLASS", "SMDS", "SMDSCONN", "USAGE"))
    if is_text:
        monkeypatch.setattr(tests.mqweb, "NOT_IN_JSON", refused)
    server.system.levels["QSG1/APP1"]["ents_used"] = 321
    asking = Asking(server, ("QM01", "QM02"))
    intake = Intake(server.system.estate)
    feed = make_feed("rest", intake)
    events = [
        event for page in asking.round(definitions=True) + asking.round() for event in intake.sift(feed.take(page))
    ]
    measured = [event["measured"] for event in events if event.get("store") == "QSG1/APP1"]
    assert any(own.get("ents_used") == 321 for own in measured)
    assert asking.new_complaints == []
    assert [line for line in asking.lines if "as text" in line] != [] or not is_text


def test_a_form_that_is_refused_once_is_not_tried_again(server, monkeypatch):
    monkeypatch.setattr(tests.mqweb, "NOT_IN_JSON", frozenset(("QSTATUS", "USAGE")))
    asking = Asking(server, ("QM.3",))
    pages = asking.round()
    assert [request.status for request in server.requests] == [400, 200, 200]
    assert "text" in json.loads(pages[0].data)["commandResponse"][0]
    [line] = [line for line in asking.lines if "as text" in line]
    assert line.startswith(
        "QM.3: DISPLAY QSTATUS as text, because its JSON form is refused: 400 Bad Request: MQWB0119E"
    )
    asking.round()
    assert [request.status for request in server.requests] == [200, 200]
    assert asking.new_complaints == []


def test_members_that_are_not_listed_are_asked_through_one_that_is(server):
    asking = Asking(server, ("QM02", "QM01"))
    pages = asking.round()
    assert qmgrs_of(pages) == ["QM02", "QM01", "QM04"]
    assert {qmgr for qmgr, command in asking.asked if "CMDSCOPE(QM04)" in command} == {"QM02"}
    server.system.inactive.add("QM04")
    assert qmgrs_of(asking.round()) == ["QM02", "QM01"]
    assert {code for code, _ in asking.new_complaints} == {"command-failed"}
    server.system.inactive.clear()
    asking.clock.pass_(FIRST_WAIT_S + 1)
    assert qmgrs_of(asking.round()) == ["QM02", "QM01", "QM04"]
    assert any(line.startswith("QM04 by CMDSCOPE, ") and line.endswith("answers again") for line in asking.lines)


def test_another_member_answers_for_the_group_and_continues_to(server):
    asking = Asking(server, ("QM01", "QM02"))
    with server.failing("failed", command="CFSTATUS", qmgr="QM01"):
        assert qmgrs_of(asking.round(), "CFSTATUS") == ["QM02", "QM02"]
    asking.clock.pass_(60)
    assert qmgrs_of(asking.round(), "CFSTATUS") == ["QM02", "QM02"]
    assert asking.asked[0][0] == "QM02"


def test_names_of_queues_bound_what_is_asked(server):
    asking = Asking(server, ("QM01",), queues="ORD*")
    assert ("QM01", "QSTATUS(ORD*) TYPE(QUEUE) ALL") in shows(asking.round())
    asked = [words for _, words in shows(asking.round(definitions=True)) if "QLOCAL" in words]
    assert asked[0] == "QLOCAL(ORD*) QSGDISP CFSTRUCT STGCLASS MAXDEPTH"
    with pytest.raises(UsageError, match="expected: a name, or the beginning"):
        Asking(server, queues="A*B")


def test_what_is_not_there_is_no_failure(server):
    asking = Asking(server, ("QMD1", "QM.3"), queues="NONE*")
    assert qmgrs_of(asking.round(), "QSTATUS(NONE*)") in (["QM.3"], [])
    assert asking.new_complaints == []


# --- versions, names, logins -----------------------------------------------------------------------------------------


def test_the_newest_version_that_answers_is_taken_and_asked_for_again_after_an_upgrade(server):
    server.versions = ("v1", "v2")
    asking = Asking(server, ("QM.3",))

    def paths():
        return [request.path.split("/")[3] for request in server.requests]

    asking.round()
    assert paths() == ["v3", "v2", "v2"]
    asking.round()
    assert paths() == ["v2", "v2"]
    server.versions = ("v3",)
    asking.round()
    assert paths() == ["v2", "v3", "v3"]
    server.versions = ("v1", "v2")
    asking.round()
    assert set(paths()) == {"v3", "v2"}
    server.stop()
    asking.round()
    server.versions = ("v1", "v2", "v3")
    server.start()
    asking.clock.pass_(FIRST_WAIT_S)
    asking.round()
    assert paths() == ["v3", "v3"]
    assert [code for code, _ in asking.new_complaints] == ["no-answer"]


def test_a_name_is_encoded_and_a_gateway_is_named(system):
    with MqwebServer(system, gateway="QMGW") as server:
        asking = Asking(server, ("QM.3",), gateway="QMGW")
        assert qmgrs_of(asking.round()) == ["QM.3"]
        assert server.requests[0].path.endswith("/qmgr/QM%2E3/mqsc")
        assert server.requests[0].headers["ibm-mq-rest-gateway-qmgr"] == "QMGW"
    assert mqweb_session._encoded("A/B%C.D") == "A%2FB%25C%2ED"


@pytest.fixture
def password(tmp_path):
    path = tmp_path / "password"
    path.write_text(f"{SECRET}\n")
    return path


@pytest.fixture
def guarded(system):
    with MqwebServer(system, users={"mona": User(SECRET)}) as running:
        yield running


def test_basic_authentication_and_tokens_are_logins(guarded, password):
    client = HttpClient(user="mona", password_file=password)
    assert Asking(guarded, ("QM.3",), client=client).round()
    assert guarded.logins == 0
    asking = Asking(guarded, ("QM.3",), client=client, has_token=True)
    assert asking.round() and asking.round()
    assert guarded.logins == 1
    guarded.end_tokens()
    assert len(asking.round()) == 2
    assert guarded.logins == 2
    assert [request.status for request in guarded.requests] == [401, 204, 200, 200]
    asking.mqweb.close()
    assert guarded.requests[-1].path.endswith("/login") and guarded.requests[-1].status == 204
    assert asking.new_complaints == []
    with pytest.raises(UsageError, match="expected: --user and --password-file"):
        Asking(guarded, has_token=True)


@pytest.mark.parametrize("has_token", [False, True])
def test_a_refused_password_is_sent_once_until_it_changes(guarded, password, has_token, caplog):
    caplog.set_level(logging.DEBUG)
    password.write_text("wrong-word\n")
    asking = Asking(
        guarded, ("QM01", "QM.3"), client=HttpClient(user="mona", password_file=password), has_token=has_token
    )
    for _ in range(3):
        assert asking.round() == []
        asking.clock.pass_(MAX_WAIT_S + 1)
    assert guarded.statuses[401] == 1
    [(code, text)] = asking.new_complaints
    assert (code, text.partition(" the REST")[0][:40]) == ("not-authorised", "the server: the login fails: 401 Unautho")
    assert text.endswith(". No further attempt for 60 minutes unless the password changes")
    password.write_text(f"{SECRET}\n")
    assert asking.round() != []
    assert "the server: answers again" in asking.lines
    password.write_text("wrong-word\n")
    asking.mqweb.close()
    guarded.end_tokens()
    asking.round()
    refusals = guarded.statuses[401]
    asking.clock.pass_(REFUSED_S + 1)
    asking.round()
    assert guarded.statuses[401] > refusals
    everything = repr((asking.lines, text, caplog.text))
    assert SECRET not in everything and "wrong-word" not in everything
    password.unlink()
    asking.clock.pass_(REFUSED_S + 1)
    asking.round()
    assert any("--password-file" in text for _, text in asking.new_complaints)


def test_a_user_without_a_role_is_a_complaint_about_each_queue_manager(system, password):
    with MqwebServer(system, users={"mona": User(SECRET, frozenset())}) as server:
        asking = Asking(server, ("QM01", "QM.3"), client=HttpClient(user="mona", password_file=password))
        assert asking.round() == []
        assert [(code, text.partition(":")[0]) for code, text in asking.new_complaints] == [
            ("not-authorised", "QM01"),
            ("not-authorised", "QM.3"),
        ]


def test_a_client_certificate_is_a_login(system, tmp_path):
    certificates = Certificates(asks_client=True)
    authority = certificates.write_authority(tmp_path / "ca.pem")
    certificate, key = certificates.write_client(tmp_path, "mona")
    with MqwebServer(system, users={"mona": User("")}, certificates=certificates) as server:
        client = HttpClient(ca_file=authority, client_cert=certificate, client_key=key)
        assert Asking(server, ("QM.3",), client=client).round()
        asking = Asking(server, ("QM.3",), client=HttpClient(ca_file=authority))
        assert asking.round() == []
        assert [code for code, _ in asking.new_complaints] == ["not-authorised"]
    for options in ({"client_cert": key}, {"client_key": key}, {"client_cert": tmp_path / "none"}):
        with pytest.raises(UsageError, match="expected: "):
            HttpClient(**options)


@pytest.mark.parametrize(
    ("certificates", "is_trusted", "text"),
    [
        (Certificates(), False, "its authority is unknown; expected: --ca-file"),
        (Certificates(host="elsewhere"), True, "is for another host name; expected: a name of the certificate"),
        (Certificates(is_expired=True), True, "has expired; expected: a renewed one"),
    ],
)
def test_a_certificate_that_is_not_accepted_is_one_plain_line(system, tmp_path, certificates, is_trusted, text):
    authority = certificates.write_authority(tmp_path / "ca.pem") if is_trusted else None
    with MqwebServer(system, certificates=certificates) as server:
        asking = Asking(server, client=HttpClient(ca_file=authority))
        assert asking.round() == []
        asking.clock.pass_(MAX_WAIT_S)
        assert asking.round() == []
        [(code, line)] = asking.new_complaints
        assert code == "no-answer" and text in line and "\n" not in line
        assert "_ssl" not in line


# --- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("short_deadline")
def test_one_that_hangs_is_left_alone_and_costs_the_others_its_deadline(server):
    asking = Asking(server)
    server.fail("silent", qmgr="QM01")
    assert qmgrs_of(asking.round()) == ["QM02", "QM04", "QM.3", "QMD1"]
    assert asking.new_complaints == [("no-answer", "QM01: no whole answer within 0.3 s")]
    assert len([qmgr for qmgr, _ in asking.asked if qmgr == "QM01"]) <= 1
    server.heal()
    assert "QM01" not in qmgrs_of(asking.round())
    assert "QM01" not in [qmgr for qmgr, _ in asking.asked]
    asking.clock.pass_(FIRST_WAIT_S)
    assert "QM01" in qmgrs_of(asking.round())
    assert "QM01: answers again" in asking.lines
    assert asking.new_complaints == []


def test_after_a_request_without_an_answer_nothing_is_asked_for_as_long_as_it_may_run(server):
    asking = Asking(server, ("QM.3",))
    server.fail("timeout", times=1, qmgr="QM.3")
    assert asking.round() == []
    asking.clock.pass_(DEADLINE_S - 1)
    assert asking.round() == [] and asking.asked == []
    asking.clock.pass_(1)
    assert asking.round() != []


def test_a_command_that_is_not_answered_twice_in_a_row_is_asked_in_parts_until_the_next_definitions(server):
    """It may have more queues than the server has time for."""
    server.system.system_queues = ("AA1", "AA2", "b.c")
    asking = Asking(server, ("QM.3",))
    for times in (1, 2):
        server.fail("timeout", times=1, command="QSTATUS")
        assert qmgrs_of(asking.round()) == []
        assert len([line for line in asking.lines if "in parts" in line]) == times - 1
        asking.clock.pass_(MAX_WAIT_S)
    assert asking.lines[-1] == (
        "QM.3, DISPLAY QSTATUS(*) TYPE(QUEUE) ALL: 2 requests in a row without an answer; it is asked in parts"
    )
    for _ in range(2):
        answers = [json.loads(page.data)["commandResponse"] for page in asking.round()[:-1]]
        assert [own["parameters"]["queue"] for answer in answers for own in answer] == ["AA1", "AA2", "b.c"]
        assert ("QM.3", "DISPLAY QSTATUS(*) TYPE(QUEUE) ALL") not in asking.asked
    server.fail("timeout", times=1, command="QLOCAL")
    asking.round(definitions=True)
    asking.clock.pass_(MAX_WAIT_S)
    assert qmgrs_of(asking.round(), "QSTATUS(*)") == ["QM.3"]
    server.fail("timeout", times=1, command="QLOCAL")
    asking.round(definitions=True)
    asking.clock.pass_(MAX_WAIT_S)
    pages = asking.round(definitions=True)
    assert qmgrs_of(pages, "QLOCAL(A*)") == ["QM.3"]
    assert qmgrs_of(pages, "QLOCAL(*)") == []


def test_one_answer_between_two_that_do_not_come_cuts_nothing(server):
    asking = Asking(server, ("QM.3",))
    for _ in range(3):
        server.fail("timeout", times=1, command="QSTATUS")
        assert qmgrs_of(asking.round()) == []
        asking.clock.pass_(MAX_WAIT_S)
        assert qmgrs_of(asking.round(), "QSTATUS(*)") == ["QM.3"]


def stopped_collection(asking, position, seconds):
    """Collect until a stop after some seconds; return how long it took, and the source."""
    intake = Intake(asking.server.system.estate)
    source = MqwebSource(asking.mqweb, 30.0, load_position(position, asking.mqweb.name))
    with stop_requests() as stop:
        timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGTERM))
        timer.start()
        began_s = time.monotonic()
        collect(
            source,
            make_feed("rest", intake),
            intake,
            KeepingWriter(),
            position,
            stop=stop.is_set,
            leaving=stop.leaving,
            on_complaint=print,
        )
    source.close()
    timer.join()
    return time.monotonic() - began_s


def test_a_stop_does_not_wait_for_an_answer_and_a_restart_leaves_the_queue_manager_alone(server, tmp_path):
    server.fail("silent", qmgr="QM.3")
    asking, position = Asking(server, ("QM.3", "QMD1")), tmp_path / "position.json"
    assert stopped_collection(asking, position, 0.3) < 2
    assert load_position(position, asking.mqweb.name).busy == {"QM.3": NOON + round(DEADLINE_S * SECOND)}
    server.heal()
    again = Asking(server, ("QM.3", "QMD1"))
    server.requests.clear()
    again.clock.pass_(DEADLINE_S - 1)
    stopped_collection(again, position, 0.3)
    assert {qmgr for qmgr, _ in again.asked} == {"QMD1"}
    again.clock.pass_(2)
    assert "QM.3" in qmgrs_of(again.round())


@pytest.mark.usefixtures("short_deadline")
def test_a_member_that_hangs_behind_another_does_not_hold_it_up_for_longer(server):
    asking = Asking(server, ("QM01", "QM02"))
    server.fail("silent", qmgr="QM04")
    assert qmgrs_of(asking.round()) == ["QM01", "QM02"]
    assert asking.new_complaints == [("no-answer", "QM04 by CMDSCOPE: no whole answer within 0.3 s")]
    start_s = time.monotonic()
    for _ in range(20):  # its own waits grow, those of the members that are asked do not
        asking.clock.pass_(5)
        assert qmgrs_of(asking.round()) == ["QM01", "QM02"]
    assert time.monotonic() - start_s < 10 * 0.3
    server.heal()
    asking.clock.pass_(MAX_WAIT_S)
    assert qmgrs_of(asking.round())[:3] == ["QM01", "QM02", "QM04"]


@pytest.mark.parametrize(
    ("status", "retry_after", "wait_s"), [(429, "90", 90), (503, "", FIRST_WAIT_S), (503, "120", 120)]
)
def test_a_busy_server_is_left_alone_for_as_long_as_it_asks(server, status, retry_after, wait_s):
    asking = Asking(server, ("QM.3", "QMD1"))
    server.fail("status", status=status, retry_after=retry_after, qmgr="QM.3")
    assert qmgrs_of(asking.round()) == ["QMD1"]
    [(code, text)] = asking.new_complaints
    assert code == "no-answer" and text.startswith(f"QM.3: answers {status} ")
    asking.clock.pass_(wait_s - 1)
    asking.round()
    assert "QM.3" not in [qmgr for qmgr, _ in asking.asked]
    asking.clock.pass_(1)
    asking.round()
    assert [qmgr for qmgr, _ in asking.asked].count("QM.3") == 1
    assert asking.new_complaints == []  # it is the same failure


def test_retry_after_is_a_number_or_a_date_within_bounds():
    seconds = mqweb_session._retry_after_s
    assert seconds("17", NOON) == 17
    assert seconds("Fri, 20 Nov 2026 12:00:40 GMT", NOON) == 40
    assert seconds("Fri, 20 Nov 2026 11:00:40 GMT", NOON) == 0
    assert seconds("999999999", NOON) == mqweb_session.MAX_RETRY_AFTER_S
    assert [seconds(text, NOON) for text in ("", "soon", "-1", "²")] == [0, 0, 0, 0]


def test_waits_double_up_to_a_bound(server):
    asking = Asking(server, ("QM.3",))
    server.fail("status", status=503)
    times = []
    for second in range(1800):
        asking.round()
        if asking.server.requests:
            times.append(second)
        asking.clock.pass_(1)
    assert [later - earlier for earlier, later in itertools.pairwise(times)] == [10, 20, 40, 80, 160, *[300] * 4]
    assert len(asking.new_complaints) == 1


def test_a_command_that_fails_costs_only_itself(server):
    asking = Asking(server, ("QM01",))
    with server.failing("failed", command="USAGE"):
        assert qmgrs_of(asking.round()) == ["QM01", "QM02", "QM04"]
    own = [text for code, text in asking.new_complaints if code == "command-failed"]
    assert (
        own[0]
        == "QM01, DISPLAY USAGE TYPE(ALL): reason 3008 CSQN206I the command server is stopping; expected: reason 0"
    )
    assert len(own) == 3
    asking.clock.pass_(FIRST_WAIT_S)
    asking.round()
    assert "QM01, DISPLAY USAGE TYPE(ALL): answers again" in asking.lines


def test_a_part_of_an_answer_is_passed_on_to_the_feed(server):
    asking = Asking(server, ("QM.3",))
    with server.failing("partial", command="QSTATUS"):
        pages = asking.round()
    assert qmgrs_of(pages) == ["QM.3"]
    assert asking.new_complaints == []
    intake = Intake(server.system.estate)
    list(intake.sift(make_feed("rest", intake).take(pages[0])))
    assert intake.counts["command-failed"] == 1


@pytest.mark.usefixtures("short_deadline")
@pytest.mark.parametrize("kind", ["cut", "truncated", "html", "kind", "redirect", "drip"])
def test_what_is_no_answer_never_ends_the_rounds(server, kind):
    asking = Asking(server, ("QM01", "QMD1"))
    with server.failing(kind, qmgr="QM01", **({"seconds": 0.1} if kind == "drip" else {})):
        pages = asking.round()
    assert "QMD1" in qmgrs_of(pages)
    intake = Intake(server.system.estate)
    feed = make_feed("rest", intake)
    for page in pages:
        list(intake.sift(feed.take(page)))
    if kind != "kind":  # the right answer, whatever it calls itself
        assert asking.new_complaints or intake.counts
    asking.clock.pass_(MAX_WAIT_S)
    assert "QM01" in qmgrs_of(asking.round())


def test_the_page_of_a_proxy_is_one_complaint_about_each_queue_manager(server):
    asking = Asking(server, ("QM01", "QMD1"))
    with server.failing("html"):
        for _ in range(5):
            assert asking.round() == []
            asking.clock.pass_(30)
    codes_and_texts = asking.new_complaints
    assert [code for code, _ in codes_and_texts] == ["no-answer"] * 2
    assert "text/html" in codes_and_texts[0][1]
    asking.clock.pass_(MAX_WAIT_S)
    assert {"QM01", "QMD1"} <= set(qmgrs_of(asking.round()))
    assert asking.new_complaints == []


def test_an_answer_that_is_cut_within_is_one_complaint_about_the_command(server):
    asking = Asking(server, ("QMD1",))
    with server.failing("truncated", command="QSTATUS"):
        for _ in range(5):
            assert "QSTATUS" not in " ".join(words for _, words in shows(asking.round()))
            asking.clock.pass_(30)
    ((code, text),) = asking.new_complaints
    assert code == "no-answer" and "QSTATUS" in text and "bytes" in text


def test_a_queue_manager_that_the_server_does_not_have_is_named(server):
    asking = Asking(server, ("QM99", "QM.3"), estate=None)
    assert qmgrs_of(asking.round()) == ["QM.3"]
    [(code, text)] = asking.new_complaints
    assert code == "not-found"
    assert text.startswith("QM99: 404 Not Found: MQWB0009E: Could not query the queue manager 'QM99'.")


def test_a_server_that_is_away_is_one_complaint_and_one_line_when_it_is_back(server):
    asking = Asking(server)
    server.stop()
    for _ in range(3):
        assert asking.round() == []
        asking.clock.pass_(MAX_WAIT_S)
    [(code, text)] = asking.new_complaints
    assert code == "no-answer" and text.startswith("the server: ")
    server.start()
    assert asking.round() != []
    assert asking.lines.count("the server: answers again") == 1


# --- ways ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def lpars(system):
    """Two servers, each of which reaches the queue managers of its LPAR: QM04 is of a third one."""
    first = MqwebServer(system, reaches=frozenset(("QM01", "QM.3")))
    with first, MqwebServer(system, reaches=frozenset(("QM02", "QMD1"))) as second:
        yield first, second


def asked_of(server):
    return {(request.qmgr, request.status) for request in server.requests if request.command}


@pytest.mark.parametrize("has_estate", [True, False])
@pytest.mark.parametrize("qmgrs", [("QM01", "QM02", "QM04"), ("QM04", "QM02", "QM01")])
def test_a_member_that_the_server_does_not_reach_is_asked_with_cmdscope(lpars, has_estate, qmgrs):
    server, _ = lpars
    asking = Asking(server, qmgrs, estate=True if has_estate else None)
    if not has_estate:
        asking.round(definitions=True)
    assert sorted(qmgrs_of(asking.round())) == ["QM01", "QM02", "QM04"]
    assert asking.new_complaints == []
    texts = sorted(line for line in asking.lines if "otherwise" in line)
    assert [text.partition(": ")[0] for text in texts] == ["QM02", "QM04"]
    assert texts[0].startswith("QM02: 404 Not Found: MQWB0009E: Could not query the queue manager 'QM02'.")
    assert texts[0].endswith(". It is asked otherwise: QM02 by CMDSCOPE, through QM01")
    for _ in range(3):
        assert sorted(qmgrs_of(asking.round())) == ["QM01", "QM02", "QM04"]
        assert {status for _, status in asked_of(server)} == {200}
        asking.clock.pass_(FIRST_WAIT_S / 4)
    assert len([line for line in asking.lines if "otherwise" in line]) == 2


def test_a_member_that_does_not_run_is_one_complaint_until_it_does(server):
    asking = Asking(server, ("QM01", "QM02", "QM04"))
    server.system.inactive.add("QM02")
    for _ in range(8):
        assert qmgrs_of(asking.round()) == ["QM01", "QM04"]
        asking.clock.pass_(MAX_WAIT_S)
    [(code, text)] = asking.new_complaints
    assert code == "no-answer" and text.startswith("QM02: answers 503 Service Unavailable: MQWB0010E")
    assert "; QM02 by CMDSCOPE: reason 3008 CSQN132E" in text
    server.system.inactive.clear()
    asking.clock.pass_(MAX_WAIT_S)
    assert qmgrs_of(asking.round()) == ["QM01", "QM02", "QM04"]
    assert "QM02: answers again" in asking.lines


def test_each_queue_manager_is_asked_at_the_server_that_reaches_it(lpars):
    first, second = lpars
    asking = Asking(first, more=(second,))
    assert asking.mqweb.name == f"{first.url},{second.url}"
    assert qmgrs_of(asking.round()) == ["QM01", "QM02", "QM04", "QM.3", "QMD1"]
    assert asking.new_complaints == []
    for own in lpars:
        own.requests.clear()
    assert qmgrs_of(asking.round()) == ["QM01", "QM02", "QM04", "QM.3", "QMD1"]
    assert asked_of(first) == {("QM01", 200), ("QM.3", 200)}
    assert asked_of(second) == {("QM02", 200), ("QMD1", 200)}


def test_with_a_server_down_its_members_are_asked_through_another(lpars):
    first, second = lpars
    asking = Asking(first, ("QM01", "QM02"), more=(second,))
    asking.round()
    asking.lines.clear()
    first.stop()
    for _ in range(3):
        assert sorted(qmgrs_of(asking.round())) == ["QM01", "QM02", "QM04"]
        assert asked_of(second) >= {("QM02", 200)}
        asking.clock.pass_(MAX_WAIT_S)
    [(code, text)] = asking.new_complaints
    assert code == "no-answer" and text.startswith(f"the server {first.url}: ")
    first.start()
    asking.clock.pass_(MAX_WAIT_S)
    first.requests.clear()
    assert "QM01" in qmgrs_of(asking.round())
    assert ("QM01", 200) in asked_of(first)


def test_a_refused_password_is_sent_to_one_of_several_servers(system, password):
    password.write_text("wrong-word\n")
    users = {"mona": User(SECRET)}
    with MqwebServer(system, users=users) as first, MqwebServer(system, users=users) as second:
        client = HttpClient(user="mona", password_file=password)
        asking = Asking(first, ("QM01", "QM02"), client=client, more=(second,))
        for _ in range(3):
            assert asking.round() == []
            asking.clock.pass_(MAX_WAIT_S + 1)
        assert (first.statuses[401], second.statuses[401]) == (1, 0)
        password.write_text(f"{SECRET}\n")
        assert asking.round() != []


# --- cost ------------------------------------------------------------------------------------------------------------


def site(folder, members, offloading, structures, queues):
    """Return the system of a group: `offloading` of its structures have data sets."""
    names = [f"QM{number:02d}" for number in range(members)]
    lines = ["schema = 1", "[queue_sharing_group.QSG1]", f"queue_managers = {json.dumps(names)}"]
    for number in range(structures):
        level = 5 if number < offloading else 3
        lines += [f'[structure."QSG1/S{number:03d}"]', 'size = "64M"', f"cf_level = {level}"]
    for number in range(queues):
        lines += [f'[queue."QSG1/Q{number:04d}"]', f'structure = "S{number % structures:03d}"']
    path = folder / "site.toml"
    path.write_text("\n".join(lines))
    return System(load_estate(path))


@pytest.mark.parametrize(
    ("size", "requests", "interval_s", "ceiling", "slower_s"),
    [
        ((3, 1, 4, 40), 9, 30, 10, 60),
        ((12, 20, 200, 100), 50, 30, 60, 60),
        ((12, 200, 200, 400), 266, 150, 60, 270),
        ((12, 20, 200, 5000), 50, 180, 50, 180),
    ],
)
def test_the_interval_follows_from_commands_and_queues(tmp_path, size, requests, interval_s, ceiling, slower_s):
    system = site(tmp_path, *size)
    with MqwebServer(system) as server:
        qmgrs = tuple(system.estate.queue_managers)
        asking = Asking(server, qmgrs)
        if size[-1] <= 100:
            asking.round()
            assert asking.mqweb.cost[0] == requests
        assert asking.mqweb.usual_interval_s == interval_s
        assert Asking(server, qmgrs, max_per_minute=ceiling).mqweb.usual_interval_s == slower_s
        source = MqwebSource(asking.mqweb, None)
        beginning = (
            f"a round each {interval_s} s, by the number of commands and queues, and the ceiling; --interval-s sets"
        )
        assert [line[: len(beginning)] for line in asking.lines if "a round each" in line] == [beginning] * (
            interval_s > 30
        )
        source.close()


def test_all_connections_to_data_sets_are_asked_for_in_ten_rounds(tmp_path):
    with MqwebServer(site(tmp_path, 3, 5, 5, 5)) as server:
        asking = Asking(server, ("QM00", "QM01", "QM02"))
        rounds = [[own for own in shows(asking.round()) if own[1].startswith("SMDSCONN")] for _ in range(10)]
        assert {len(own) for own in rounds} == {2}
        assert len({own for each in rounds for own in each}) == 15


def test_all_of_a_queue_is_asked_for_once_a_group(server):
    """Depth and age are the same in all members; handles, and who read and wrote when, are each member's own."""
    orders = server.system.queue("QSG1", "ORDERS")
    orders.depth, orders.oldest, orders.getters, orders.last_put = 7, NOON - 9 * SECOND, {"QM04": 2}, NOON - SECOND
    asking = Asking(server, ("QM01", "QM02", "QM04"))
    for _ in range(2):  # the first member answers, or does not
        pages = asking.round()
        asked = [words for _, words in shows(pages) if words.startswith("QSTATUS")]
        assert [words.endswith(" ALL") for words in asked] == [True] + [False] * (len(asked) - 1)
        intake = Intake(server.system.estate)
        events = [event for page in pages for event in intake.sift(make_feed("rest", intake).take(page))]
        feed = make_feed("rest", intake)
        events = [event for page in pages for event in intake.sift(feed.take(page))]
        [queue] = [own for event in events for own in event["measured"].get("queues", ()) if own["name"] == "ORDERS"]
        assert (queue["depth"], queue["getters"], queue["oldest_s"]) == (7, 2, 9)
        server.fail("failed", command="QSTATUS", qmgr="QM01")


@pytest.mark.parametrize("is_refused", [False, True])
def test_the_ceiling_of_commands_a_minute_is_never_passed(server, monkeypatch, is_refused):
    if is_refused:  # each command is then asked for twice
        monkeypatch.setattr(tests.mqweb, "NOT_IN_JSON", frozenset(("QSTATUS", "CFSTATUS", "SMDSCONN", "USAGE")))
    asking, times = Asking(server, max_per_minute=7), []
    asking.skip_waits()
    monkeypatch.setattr(server, "note", lambda *_: times.append(asking.clock.now))
    for number in range(3):
        assert asking.round(definitions=number == 1)
    assert len(times) > 30
    assert all(later - earlier >= 60 * SECOND for earlier, later in zip(times, times[7:], strict=False))
    assert asking.new_complaints == []


def test_a_round_that_takes_longer_than_its_interval_is_said_once_an_hour(server):
    asking = Asking(server, ("QM.3",))
    asking.skip_waits()
    source = MqwebSource(asking.mqweb, 30.0)

    def rounds(number, request_s):
        asking.lines.clear()
        for _ in range(number):
            while not source.read():
                asking.clock.pass_(request_s)
        return [re.sub(r"[0-9,]+ bytes", "N bytes", line) for line in asking.lines if "longer" in line]

    assert rounds(3, 5) == []
    text = (
        "a round took 50 s, longer than its interval of 30 s: 2 requests, N bytes of answers; expected: --interval-s 50"
    )
    assert rounds(4, 25) == [f"{text} or more, or --queues with fewer names"]
    assert rounds(4, 25) == []
    asking.clock.pass_(3600)
    assert len(rounds(4, 25)) == 1


# --- bounds ----------------------------------------------------------------------------------------------------------


def test_the_parts_of_a_pattern_are_all_names_that_it_has():
    assert parts("*") == [f"{character}*" for character in NAME_CHARACTERS]
    assert parts("AB*")[:2] == ["AB", "ABA*"]
    assert parts(f"{'A' * 48}*") == ["A" * 48]
    assert len(NAME_CHARACTERS) == len(set(NAME_CHARACTERS)) == 66


def test_a_large_answer_is_asked_for_in_parts_and_nothing_is_missing(server, monkeypatch):
    names = [f"{first}{number:02}" for first in ("AA", "AB", "b.c") for number in range(20)] + ["A"]
    server.system.system_queues = tuple(names)
    monkeypatch.setattr(mqweb_session, "MAX_ANSWER_BYTES", 6000)
    asking = Asking(server, ("QM.3",))
    pages = asking.round()
    seen = [own["parameters"]["queue"] for page in pages[:-1] for own in json.loads(page.data)["commandResponse"]]
    assert sorted(seen) == sorted(names)
    assert asking.new_complaints == []
    assert len(pages) > 3
    first = len(server.requests)
    assert shows(asking.round()) == shows(pages)
    assert len(server.requests) < first  # what was too large is not asked for again
    asking.round(definitions=True)
    asking.round()
    assert len(server.requests) == first


def test_one_name_that_is_too_large_is_a_complaint_and_the_others_are_there(server, monkeypatch):
    server.system.system_queues = ("A", "B")
    asking = Asking(server, ("QM.3",))
    size = len(asking.round()[0].data) // 2
    server.system.system_queues = ("A" * 5, "A.B", "B")
    monkeypatch.setattr(mqweb_session, "MAX_ANSWER_BYTES", size + 60)
    server.system.queue("QM.3", "A" * 5).depth = 10**100
    pages = asking.round()
    seen = [own["parameters"]["queue"] for page in pages[:-1] for own in json.loads(page.data)["commandResponse"]]
    assert seen == ["A.B", "B"]
    [(code, text), *_] = asking.new_complaints  # DISPLAY USAGE is larger, too
    assert code == "too-large"
    assert text.startswith("QM.3, DISPLAY QSTATUS(AAAAA) TYPE(QUEUE) ALL: an answer of more than")


def test_the_bytes_of_a_round_are_bounded(server, monkeypatch):
    asking = Asking(server)
    assert len(asking.round()) > 5
    monkeypatch.setattr(mqweb, "MAX_ROUND_BYTES", 1000)
    assert len(asking.round()) in {1, 2, 3}
    asking.round()
    assert [code for code, _ in asking.new_complaints] == ["too-large"]
    monkeypatch.undo()
    assert len(asking.round()) > 5
    assert asking.new_complaints == []


def test_the_number_of_parts_is_bounded(server, monkeypatch):
    server.system.system_queues = tuple(f"{'A' * 20}{number:03}" for number in range(50))
    monkeypatch.setattr(mqweb_session, "MAX_ANSWER_BYTES", 6000)
    monkeypatch.setattr(mqweb, "MAX_PATTERNS", 200)
    asking = Asking(server, ("QM.3",))
    asking.round()
    assert [code for code, _ in asking.new_complaints] == ["too-large"]
    assert len(server.requests) < 300


# --- rounds ----------------------------------------------------------------------------------------------------------


def test_definitions_come_first_and_each_hour_and_missed_rounds_are_skipped(server):
    asking = Asking(server, ("QM.3",))
    asking.skip_waits()
    source = MqwebSource(asking.mqweb, 30.0)
    times = []

    def next_round():
        while not (pages := source.read()):
            pass
        times.append((asking.clock.now - NOON) / SECOND)
        return {words.partition("(")[0] for _, words in shows(pages)}

    assert next_round() == {"QMGR ALL", "STGCLASS", "QLOCAL"}  # definitions come first
    assert next_round() == next_round() == {"QSTATUS", "USAGE TYPE"}
    asking.clock.pass_(75)  # a slow round, or a suspended machine
    next_round()
    next_round()
    assert times[:3] == pytest.approx([0, 0, 30], abs=0.2)
    assert times[3:] == pytest.approx([105, 120], abs=0.2)
    asking.clock.pass_(DEFINITIONS_S)
    assert "QLOCAL" in next_round()
    asking.clock.pass_(-86_400)  # the clock is set back
    next_round()
    assert source.position(make_feed("rest", Intake())).source == server.url
    source.close()


def test_definitions_are_asked_for_sooner_where_a_queue_comes_up_that_the_estate_lacks(server):
    asking = Asking(server, ("QM.3",))
    asking.skip_waits()
    source, feed = MqwebSource(asking.mqweb, 30.0), make_feed("rest", Intake())

    def next_definitions():
        begin = asking.clock.now
        while True:
            while not (pages := source.read()):
                pass
            for page in pages:
                source.note_taken(page, feed)
            if "QLOCAL" in {words.partition("(")[0] for _, words in shows(pages)}:
                return (asking.clock.now - begin) / SECOND

    next_definitions()
    feed.intake.note_unplaced("QM.3", "NEW")
    assert next_definitions() == pytest.approx(NEW_QUEUES_S, abs=31)
    assert next_definitions() == pytest.approx(DEFINITIONS_S, abs=31)
    source.close()


def test_a_round_is_a_line_an_hour_with_the_number_of_its_events(server):
    asking = Asking(server, ("QM01", "QM02", "QM04"))
    asking.skip_waits()
    source, intake = MqwebSource(asking.mqweb, 30.0), Intake(server.system.estate)
    feed = make_feed("rest", intake)

    def next_rounds(number):
        for _ in range(number):
            while not (pages := source.read()):
                pass
            source.note_events([event for page in pages for event in intake.sift(feed.take(page))])
        return [re.sub(r"[0-9,.]+ (s|bytes)", r"N \1", line) for line in asking.lines]

    assert next_rounds(4) == [
        "definitions in N s: 11 requests, N bytes of answers, no event",
        "levels in N s: 9 requests, N bytes of answers, 3 MEASUREs",
    ]
    server.stop()
    asking.clock.pass_(DEFINITIONS_S)
    asking.lines.clear()
    assert not any(source.read() for _ in range(2))
    assert next_rounds(0) == ["definitions in N s: 1 request, N bytes of answers, no event"]


def test_a_stop_within_a_round_is_seen_after_one_request(server):
    asking = Asking(server)
    source = MqwebSource(asking.mqweb, 30.0)
    source.read()
    before = len(server.requests)
    assert source.read() == []
    assert len(server.requests) == before + 1
    source.close()
    assert asking.complaints == []


@pytest.mark.usefixtures("short_deadline")
def test_many_rounds_and_faults_leave_no_connection_and_no_state(server):
    faults = [("status", {"status": 503}), ("cut", {}), ("redirect", {}), ("failed", {}), ("html", {}), ("partial", {})]
    asking = Asking(server, ("QM01", "QM.3", "QMD1"), queues="A*")
    server.system.system_queues = tuple(f"A{number}" for number in range(40))
    counts = []
    for number in range(120):
        kind, details = faults[number % len(faults)]
        if number % 3:
            with server.failing(kind, qmgr=("QM01", "QM.3")[number % 2], times=2, **details):
                asking.round(definitions=number % 10 == 0)
        if number % 40 == 20:
            server.stop()
            asking.round()
            server.start()
        asking.clock.pass_(MAX_WAIT_S)
        asking.round()
        counts.append((len(list(Path("/proc/self/fd").iterdir())), len(asking.mqweb._pauses), len(asking.mqweb._cut)))
    descriptors, pauses, cut = zip(*counts, strict=True)
    assert max(descriptors[60:]) <= max(descriptors[:60]) + 4  # the server closes some a little later
    assert max(pauses) <= 3 and max(cut) < 40
    assert len(asking.round()) == 13  # pages of proxies instead of definitions have not made it forget structures
    assert max(server.most_at_once.values()) == 1


@pytest.mark.system
@pytest.mark.nightly
def test_a_killed_collector_goes_on_and_announces_each_change_once(server, kafka, topic_prefix, tmp_path):
    (tmp_path / "estate.toml").write_text(ESTATE)
    (tmp_path / "altered.toml").write_text(ESTATE.replace("cf_level = 5", "cf_level = 5\noffld1_th = 60"))
    as_before, altered = server.system.estate, load_estate(tmp_path / "altered.toml")
    create(kafka, f"{topic_prefix}.events")
    words = ("rest", "--url", server.url, "--qmgr", "QM01,QM02", "--interval-s", "1", "--resync")
    position = tmp_path / "position.json"

    def events(op):
        every = [json.loads(message.value()) for message in everything(kafka, f"{topic_prefix}.events")]
        return [event for event in every if event["op"] == op and event["store"] == "QSG1/APP1"]

    def run_and_kill(number):
        running = Running(kafka, topic_prefix, words, tmp_path / "estate.toml", position)
        before = len(events("MEASURE"))
        saved = position.read_bytes() if position.is_file() else b""
        wait_for(lambda: len(events("MEASURE")) >= before + 3 and position.is_file(), running)
        wait_for(lambda: position.read_bytes() != saved, running)
        assert running.end(number) == (-number if number == signal.SIGKILL else 0), running.text
        return [event["attributes"] for event in events("ALTER")]

    server.system.estate = altered
    assert run_and_kill(signal.SIGKILL) == [{"offld1_th": 60}]
    assert run_and_kill(signal.SIGKILL) == [{"offld1_th": 60}]
    server.system.estate = as_before
    assert run_and_kill(signal.SIGKILL) == [{"offld1_th": 60}, {"offld1_th": 70}]
    assert run_and_kill(signal.SIGTERM) == [{"offld1_th": 60}, {"offld1_th": 70}]
    times = [event["time"] for event in events("MEASURE")]
    assert times == sorted(set(times))


def test_the_limits_are_said_in_the_docs():
    text = (Path(__file__).resolve().parents[2] / "docs" / "feeds-rest.md").read_text()
    section = text.partition("\n## How much the server is asked\n")[2].partition("\n## ")[0]
    for value in (
        f"{DEADLINE_S:g} s",
        f"{FIRST_WAIT_S:g} s",
        f"{MAX_WAIT_S:g} s",
        f"{mqweb_session.MAX_ANSWER_BYTES >> 20} MiB",
        f"{mqweb.MAX_ROUND_BYTES >> 20} MiB",
        f"{mqweb.MAX_PATTERNS:,}",
    ):
        assert value in section, value


def test_the_two_forms_of_a_command_say_the_same():
    assert mqweb_session.USAGE.body("*", "QM02", is_text=True) == (
        b'{"type":"runCommand","parameters":{"command":"DISPLAY USAGE TYPE(ALL) CMDSCOPE(QM02)"}}'
    )
    assert json.loads(QSTATUS.body("A*", "QM02", is_text=False)) == {
        "type": "runCommandJSON",
        "command": "display",
        "qualifier": "qstatus",
        "name": "A*",
        "parameters": {"type": "QUEUE", "cmdscope": "QM02"},
        "responseParameters": ["all"],
    }
