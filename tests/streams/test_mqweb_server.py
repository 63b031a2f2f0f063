"""The server of the tests itself: it answers as IBM's pages say, and has the faults that it is told to have."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
import time

import httpx
import pytest

from tests.mqweb import NOT_IN_JSON, Certificates, MqwebServer, User
from tests.support.queue_managers import NOON, System, parse
from twin.estate import load_estate
from twin.feeds import FeedOptions, Intake, Page, make_feed

ESTATE = """
schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[queue_manager."QM.3"]
[queue_manager.QMD1]
platform = "distributed"
[structure."QSG1/APP1"]
size = "64M"
cf_level = 5
ds_block = "64K"
[smds."QSG1/APP1/QM01"]
size = "16M"
[smds."QSG1/APP1/QM02"]
size = "16M"
[queue."QSG1/ORDERS"]
structure = "APP1"
max_depth = 5000
[page_set."QM01/4"]
pages = 1080
[storage_class."QM01/PS04"]
page_set = 4
[queue."QM01/REPLIES"]
storage_class = "PS04"
[queue_file."QMD1/INVOICES"]
max_size = "2G"
"""
CSRF = {"ibm-mq-rest-csrf-token": "any"}


@pytest.fixture
def system(tmp_path):
    path = tmp_path / "estate.toml"
    path.write_text(ESTATE)
    system = System(load_estate(path))
    system.levels["QSG1/APP1"]["ents_used"] = 321
    system.levels["QSG1/APP1"]["smds"]["QM02"] = {"blocks_total": 256, "blocks_used": 41, "messages": 160}
    system.levels["QM01/PS04"] |= {"pages_unused": 1000, "pages_persistent": 70, "pages_nonpersistent": 8}
    system.levels["QMD1/INVOICES"]["file_bytes"] = (5 << 20) - 1
    orders = system.queue("QSG1", "ORDERS")
    orders.depth, orders.oldest, orders.last_put = 12, NOON - 17_500_000, NOON
    orders.getters, orders.putters, orders.uncommitted = {"QM02": 2}, {"QM01": 3}, {"QM01": 1}
    system.queue("QMD1", "INVOICES").depth = 9
    return system


@pytest.fixture
def server(system):
    with MqwebServer(system, timeout_s=0.1) as running:
        yield running


def post(server, body, *, qmgr="QM01", version="v3", headers=None, verify=True, **options):
    url = f"{server.url}/ibmmq/rest/{version}/admin/action/qmgr/{qmgr}/mqsc"
    return httpx.post(url, json=body, headers={**CSRF, **(headers or {})}, verify=verify, timeout=3.0, **options)


def text(command):
    return {"type": "runCommand", "parameters": {"command": command}}


def display(qualifier, name="*", parameters=None, response=("all",)):
    form = {"type": "runCommandJSON", "command": "display", "qualifier": qualifier, "name": name}
    return {**form, "parameters": parameters or {}, "responseParameters": list(response)}


def rows(answer):
    assert answer.status_code == 200, answer.text
    assert answer.json()["overallCompletionCode"] == 0, answer.text
    responses = answer.json()["commandResponse"]
    return [response["parameters"] for response in responses if response["reasonCode"] != 4]


def code_of(answer):
    (error,) = answer.json()["error"]
    assert error.keys() == {"type", "msgId", "message", "explanation", "action", "completionCode", "reasonCode"}
    return answer.status_code, error["msgId"]


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


# --- commands --------------------------------------------------------------------------------------------------------


def test_text_is_parsed_as_runmqsc_does():
    command = parse("dis qs(APP.*) type(queue) CURDEPTH cmdscope('QM02')")
    assert (command.verb, command.kind, command.name) == ("DISPLAY", "QSTATUS", "APP.*")
    assert (command.type, command.member, command.words["CURDEPTH"]) == ("QUEUE", "QM02", "")


def test_a_status_in_json_has_the_handles_of_the_member_that_answers(server):
    (orders,) = [row for row in rows(post(server, display("qstatus"))) if row["queue"] == "ORDERS"]
    assert (orders["curdepth"], orders["ipprocs"], orders["opprocs"], orders["uncom"]) == (12, 0, 3, "YES")
    assert (orders["msgage"], orders["lputdate"], orders["lputtime"]) == (17, "2026-11-20", "12.00.00")
    assert orders["lgetdate"] == ""
    answer = post(server, display("qstatus", "ORD*", {"cmdscope": "QM02"}, ["ipprocs"]))
    assert [own["reasonCode"] for own in answer.json()["commandResponse"]] == [4, 0]
    (orders,) = rows(answer)
    assert orders == {"queue": "ORDERS", "type": "QUEUE", "qsgdisp": "SHARED", "ipprocs": 2}
    names = [row["queue"] for row in rows(post(server, display("qstatus"), qmgr="QM02"))]
    assert "ORDERS" in names and "REPLIES" not in names


def test_usage_is_text_of_the_owner_of_its_data_sets(server):
    assert code_of(post(server, display("usage", "")))[0] == 400
    assert "USAGE" in NOT_IN_JSON
    (response,) = post(server, text("DISPLAY USAGE TYPE(ALL)")).json()["commandResponse"]
    lines = response["text"]
    assert lines[0].startswith("CSQN205I") and lines[-1].startswith("CSQ9022I QM01")
    assert any(line.split()[:4] == ["_", "4", "0", "1078"] for line in lines)
    _, of_member = post(server, text("DISPLAY USAGE TYPE(ALL) CMDSCOPE(QM02)")).json()["commandResponse"]
    assert any(line.split() == ["_APP1", "160", "256", "255", "40", "15%"] for line in of_member["text"])


def test_the_feed_reads_what_it_answers(system, server):
    """In both forms: what the twin's reader makes of the answers are the levels of the system."""
    intake = Intake(system.estate)
    feed = make_feed("rest", intake, FeedOptions())
    forms = [
        ("QM01", text("DISPLAY CFSTATUS(*) TYPE(SUMMARY)")),
        ("QM01", display("cfstatus", "*", {"type": "summary"})),
        ("QM01", text("DISPLAY USAGE TYPE(ALL)")),
        ("QMD1", text("DISPLAY QSTATUS(INVOICES) TYPE(QUEUE) ALL")),
        ("QMD1", display("qstatus", "INVOICES")),
    ]
    levels = {}
    for number, (qmgr, body) in enumerate(forms):
        answer = post(server, body, qmgr=qmgr)
        page = Page(answer.content, f"{server.url}/qmgr/{qmgr}/mqsc", NOON + number)
        for event in intake.account(feed.take(page)):
            levels[number, event["store"]] = event["measured"]
    assert not intake.complaints
    assert levels[0, "QSG1/APP1"] == levels[1, "QSG1/APP1"]
    assert levels[0, "QSG1/APP1"]["ents_used"] == 321
    assert levels[2, "QSG1/APP1"]["smds"]["QM01"] == system.levels["QSG1/APP1"]["smds"]["QM01"]
    assert levels[2, "QM01/PS04"]["pages_used"] == 78
    assert levels[3, "QMD1/INVOICES"] == levels[4, "QMD1/INVOICES"]
    assert levels[3, "QMD1/INVOICES"]["file_bytes"] == 5 << 20


@pytest.mark.parametrize(
    ("qualifier", "count"),
    [("qmgr", 1), ("qlocal", 4), ("cfstruct", 1), ("stgclass", 2), ("smds", 2), ("smdsconn", 2), ("cfstatus", 1)],
)
def test_the_definitions_are_those_of_the_estate(server, qualifier, count):
    assert len(rows(post(server, display(qualifier)))) == count
    words = f"DISPLAY {qualifier} ALL" if qualifier == "qmgr" else f"DISPLAY {qualifier}(*) ALL"
    (response,) = post(server, text(words)).json()["commandResponse"]
    assert len(response["text"]) == count + 2


def test_distributed_queue_managers_know_no_structures_and_have_a_log(server):
    answer = post(server, display("cfstatus"), qmgr="QMD1").json()
    assert (answer["overallCompletionCode"], answer["overallReasonCode"]) == (2, 3008)
    (status,) = rows(post(server, display("qmstatus"), qmgr="QMD1"))
    assert status["status"] == "RUNNING" and status["logutil"] == 12
    (response,) = post(server, text("DISPLAY QSTATUS(INV*)"), qmgr="QMD1").json()["commandResponse"]
    assert response["text"][0].startswith("AMQ8450I: Display queue status details.   QUEUE(INVOICES)   TYPE(QUEUE)")


def test_what_is_not_there_fails_as_a_command(server):
    answer = post(server, display("qlocal", "NONE"), qmgr="QMD1").json()
    (response,) = answer["commandResponse"]
    assert (answer["overallReasonCode"], response["reasonCode"]) == (3008, 2085)
    assert response["message"] == ["AMQ8147E: IBM MQ object NONE not found."]
    assert code_of(post(server, display("qstatus", response=["nonsense"]))) == (400, "MQWB0120E")
    assert post(server, display("qstatus", "*", {"cmdscope": "QM09"})).json()["overallReasonCode"] == 3008
    assert post(server, text("DELETE QLOCAL(ORDERS)")).json()["overallCompletionCode"] == 2
    assert code_of(post(server, {"type": "runCommand"}))[0] == 400


def test_an_inactive_member_is_neither_asked_nor_answers(system, server):
    system.inactive.add("QM02")
    assert post(server, display("qstatus", "*", {"cmdscope": "QM02"})).json()["overallReasonCode"] == 3008
    assert code_of(post(server, display("qmgr"), qmgr="QM02"))[0] == 503
    assert len(rows(post(server, display("qmgr", "", {"cmdscope": "*"})))) == 1


# --- the interface ---------------------------------------------------------------------------------------------------


def test_what_the_pages_of_ibm_ask_for_is_asked_for(server):
    url = f"{server.url}/ibmmq/rest/v3/admin/action/qmgr/QM01/mqsc"
    assert code_of(httpx.post(url, json=display("qmgr"))) == (403, "MQWB0100E")
    assert code_of(post(server, display("qmgr"), qmgr="QM09")) == (404, "MQWB0009E")
    assert code_of(post(server, display("qmgr"), qmgr="QM.3")) == (404, "MQWB0009E")
    assert rows(post(server, display("qmgr"), qmgr="QM%2E3"))[0]["qmname"] == "QM.3"
    assert httpx.get(url).status_code == 405


def test_only_configured_versions_and_gateways_exist(system):
    with MqwebServer(system, versions=("v1", "v2"), gateway="QMGW") as server:
        assert post(server, display("qmgr")).status_code == 404
        answer = post(server, display("qmgr"), version="v2", headers={"ibm-mq-rest-gateway-qmgr": "QMGW"})
        assert rows(answer) and answer.headers["ibm-mq-rest-gateway-qmgr"] == "QMGW"
        assert rows(post(server, display("qmgr"), version="v1"))
        headers = {"ibm-mq-rest-gateway-qmgr": "QMXX"}
        assert code_of(post(server, display("qmgr"), version="v1", headers=headers)) == (404, "MQWB0009E")


def test_users_passwords_roles_and_tokens_that_end(system):
    now = [0.0]
    users = {"mona": User("s3cret"), "otto": User("pw", frozenset(("MFTWebAdmin",)))}
    with MqwebServer(system, users=users, token_s=60.0, clock=lambda: now[0]) as server:
        assert code_of(post(server, display("qmgr"))) == (401, "MQWB0104E")
        assert code_of(post(server, display("qmgr"), headers=basic("mona", "other"))) == (401, "MQWB0104E")
        assert code_of(post(server, display("qmgr"), headers=basic("otto", "pw"))) == (403, "MQWB0108E")
        assert rows(post(server, display("qmgr"), headers=basic("mona", "s3cret")))
        login = f"{server.url}/ibmmq/rest/v3/login"
        assert httpx.post(login, json={"username": "mona", "password": "no"}).status_code == 401
        answer = httpx.post(login, json={"username": "mona", "password": "s3cret"})
        (name,) = answer.cookies
        assert answer.status_code == 204 and name.startswith("LtpaToken2_") and server.logins == 1
        headers = {"Cookie": f"{name}={answer.cookies[name]}"}
        assert rows(post(server, display("qmgr"), headers=headers))
        assert httpx.delete(login, headers=headers).status_code == 204
        assert code_of(post(server, display("qmgr"), headers=headers)) == (401, "MQWB0112E")
        answer = httpx.post(login, json={"username": "mona", "password": "s3cret"})
        headers = {"Cookie": f"{name}={answer.cookies[name]}"}
        assert rows(post(server, display("qmgr"), headers=headers))
        now[0] = 61.0
        assert code_of(post(server, display("qmgr"), headers=headers)) == (401, "MQWB0112E")


def test_https_with_a_private_authority_and_certificates_of_clients(system, tmp_path):
    certificates = Certificates(asks_client=True)
    with MqwebServer(system, users={"mona": User("s3cret")}, certificates=certificates) as server:
        context = ssl.create_default_context(cafile=certificates.write_authority(tmp_path / "ca.pem"))
        assert code_of(post(server, display("qmgr"), verify=context))[0] == 401
        context.load_cert_chain(*certificates.write_client(tmp_path, "mona"))
        assert rows(post(server, display("qmgr"), verify=context))
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            post(server, display("qmgr"))
    for wrong in (Certificates(host="elsewhere"), Certificates(is_expired=True)):
        context = ssl.create_default_context(cafile=wrong.write_authority(tmp_path / "ca.pem"))
        with MqwebServer(system, certificates=wrong) as server, pytest.raises(httpx.ConnectError, match="certificate"):
            post(server, display("qmgr"), verify=context)


# --- faults ----------------------------------------------------------------------------------------------------------


def test_each_fault_is_what_it_says_and_heals(server):
    with server.failing("status", status=429, retry_after="7"):
        answer = post(server, display("qmgr"))
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "7")
    with server.failing("timeout"):
        assert post(server, display("qmgr")).status_code == 500
    with server.failing("html"):
        assert post(server, display("qmgr")).headers["Content-Type"] == "text/html"
    with server.failing("kind"):
        assert post(server, display("qmgr")).headers["Content-Type"].startswith("text/plain")
    with server.failing("redirect"):
        assert post(server, display("qmgr")).status_code == 302
    with server.failing("truncated"), pytest.raises(json.JSONDecodeError):
        post(server, display("qmgr")).json()
    with server.failing("cut"), pytest.raises(httpx.RemoteProtocolError):
        post(server, display("qmgr"))
    with server.failing("failed"):
        assert post(server, display("qmgr")).json()["overallReasonCode"] == 3008
    with server.failing("partial"):
        responses = post(server, display("qlocal")).json()["commandResponse"]
        assert [response["reasonCode"] for response in responses] == [0, 0, 2071]
    with server.failing("drip", seconds=0.0001):
        assert rows(post(server, display("qmgr")))
    with server.failing("slow", seconds=0.05):
        assert rows(post(server, display("qmgr")))
    assert rows(post(server, display("qmgr")))


def test_a_fault_concerns_some_commands_of_some_members_some_times(server):
    server.fail("status", command="QSTATUS", qmgr="QM02", times=1)
    assert rows(post(server, display("qstatus")))
    assert post(server, display("qstatus", "*", {"cmdscope": "QM02"})).status_code == 503
    assert rows(post(server, display("qstatus", "*", {"cmdscope": "QM02"})))


def test_requests_that_nobody_waits_for_any_more_are_no_longer_counted(server):
    server.fail("silent", qmgr="QM01")
    body = json.dumps(display("qmgr")).encode()
    head = f"POST /ibmmq/rest/v3/admin/action/qmgr/QM01/mqsc HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    for _ in range(2):
        with socket.create_connection(("localhost", int(server.url.rpartition(":")[2]))) as client:
            client.sendall(head.encode() + body)
            wait_until(lambda: server.open_connections == 1)
        wait_until(lambda: server.open_connections == 0)
    assert server.most_at_once["QM01"] == 1

    def ask():
        with pytest.raises(httpx.HTTPError):
            post(server, display("qmgr"))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    wait_until(lambda: server.most_at_once["QM01"] == 2)
    server.heal()
    for thread in threads:
        thread.join()


def test_an_outage_is_over_on_the_same_port(server):
    url = server.url
    client = httpx.Client()
    address = f"{url}/ibmmq/rest/v3/admin/action/qmgr/QM01/mqsc"
    assert client.post(address, json=display("qmgr"), headers=CSRF).status_code == 200
    assert server.open_connections == 1
    server.stop()
    wait_until(lambda: server.open_connections == 0)
    with pytest.raises(httpx.HTTPError):
        client.post(address, json=display("qmgr"), headers=CSRF)
    server.start()
    assert server.url == url
    assert client.post(address, json=display("qmgr"), headers=CSRF).status_code == 200
    client.close()


def wait_until(condition):
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)
