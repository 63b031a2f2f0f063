"""The console's web application: every answer, who gets it, and how much of it."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager, suppress

import httpx2 as httpx
import msgspec
import pytest
from starlette.testclient import TestClient
from structlog.testing import capture_logs

from deploy.console import app as module
from deploy.console import server as server_module
from deploy.console.app import CONTENT_SECURITY_POLICY, ConsoleState, new_app, stream
from deploy.console.model import ConsoleModel
from deploy.console.server import ConsoleServer, Listen, _ConnectionErrors, read_token
from streams.kafka.topics import TopicRecord
from tests.support.console_feed import TOPICS, FixedAnswers, page_set, state_record
from twin.base.errors import UsageError

TOKEN = "a-token-of-enough-characters"
HOSTS = ["127.0.0.1", "localhost"]
PATHS = ["/", "/static/console.js", "/static/uPlot.iife.min.js", "/healthz", "/readyz", "/nothing", "/api/history"]


def new_model() -> ConsoleModel:
    model = ConsoleModel(TOPICS)
    model.fold([state_record(page_set("QM01/PS04", 10))])
    return model


def client(**options) -> TestClient:
    return TestClient(new_app(ConsoleState(new_model(), HOSTS, **options)), base_url="http://127.0.0.1:8470")


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_has_the_headers_that_protect_the_page(path):
    headers = client().get(path).headers
    assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "cache-control" in headers and "server" not in headers


def test_the_page_comes_from_this_machine_only():
    own = client()
    page = own.get("/").text
    files = re.findall(r'(?:src|href)="(static/[^"]+)"', page)
    assert len(files) == 11
    size, sent = len(page), 0
    for name in files:
        answer = own.get(f"/{name}")
        assert answer.status_code == 200
        text = answer.text.replace("http://www.w3.org/2000/svg", "")  # the name of a namespace, not an address
        text = re.sub(r"^/\*!.*?\*/", "", text, flags=re.DOTALL)
        assert not re.search(r"https?://|//[a-z]+\.[a-z]+/", text), name
        size += len(answer.content)
        sent += int(answer.headers["content-length"])
        plain = own.get(f"/{name}", headers={"accept-encoding": "identity"})
        assert "content-encoding" not in plain.headers and plain.content == answer.content
    assert "innerHTML" not in own.get("/static/console.js").text
    assert not re.search(r"<style|<script>|\son[a-z]+=|style=", page)
    assert size < 170_000 and sent < 65_000  # bytes; by gzip


def test_a_file_that_has_not_changed_is_not_sent_again():
    own = client()
    tag = own.get("/static/console.css").headers["etag"]
    assert own.get("/static/console.css", headers={"if-none-match": tag}).status_code == 304


@pytest.mark.parametrize("path", ["/static/nothing.js", "/static/..%2fapp.py", "/static/index.html"])
def test_nothing_but_the_files_of_the_page_is_served(path):
    assert client().get(path).status_code == 404


def test_a_name_that_is_not_the_consoles_is_refused():
    assert client().get("/", headers={"host": "evil.example:8470"}).status_code == 400
    assert client().get("/healthz", headers={"host": "localhost:8470"}).status_code == 200


def test_a_page_of_another_site_gets_nothing():
    notes: list[object] = []
    own = client(answers=FixedAnswers(lambda request: request), take_note=notes.append)
    headers = {"sec-fetch-site": "cross-site"}
    assert own.get("/api/history?store=QM01/PS04", headers=headers).status_code == 403
    assert own.post("/whatif", json={}, headers=headers).status_code == 403
    assert own.post("/note", json={}, headers=headers).status_code == 403 and notes == []


def test_with_a_token_data_is_for_those_who_know_it():
    own = client(token=TOKEN, is_tls=True)
    assert own.get("/").status_code == 200  # the page itself says nothing
    posts = (own.post("/whatif", json={}), own.post("/note", json={}))
    for answer in (own.get("/api/history?store=QM01/PS04"), own.get("/api/events"), *posts):
        assert answer.status_code == 401
    assert own.get("/api/history?store=QM01/PS04", headers={"authorization": "Bearer wrong"}).status_code == 401
    bearer = {"authorization": f"Bearer {TOKEN}"}
    assert own.get("/api/history?store=QM01/PS04", headers=bearer).status_code == 200


def test_a_browser_that_knows_the_token_gets_a_cookie_that_scripts_cannot_read():
    own = client(token=TOKEN, is_tls=True)
    assert own.post("/api/session").status_code == 401
    cookie = own.post("/api/session", headers={"authorization": f"Bearer {TOKEN}"}).headers["set-cookie"]
    assert TOKEN not in cookie
    for word in ("HttpOnly", "Secure", "SameSite=strict"):
        assert word in cookie
    value = cookie.partition(";")[0]
    assert own.get("/api/history?store=QM01/PS04", headers={"cookie": value}).status_code == 200
    assert own.get("/api/history?store=QM01/PS04", headers={"cookie": f"{value}0"}).status_code == 401


def test_history_of_a_store_is_columns():
    columns = client().get("/api/history?store=QM01/PS04").json()
    assert columns["pct"] == {"pages": [0.1]} and len(columns["times"]) == 1
    assert client().get("/api/history?store=QM01/PS99").status_code == 404


def test_ready_only_once_the_topics_were_read_and_while_the_broker_answers():
    model = new_model()
    own = TestClient(new_app(ConsoleState(model, HOSTS)), base_url="http://localhost")
    assert own.get("/healthz").status_code == 200 and own.get("/readyz").status_code == 503
    model.set_source(connected=True, caught_up=True, missing=[])
    assert own.get("/readyz").status_code == 200
    model.set_source(connected=False, caught_up=True, missing=[], problem="no Kafka answers")
    assert own.get("/readyz").status_code == 503


def test_what_if_takes_json_of_a_bounded_size():
    own = client(answers=FixedAnswers(lambda request: {"asked": request}))
    assert own.post("/whatif", json={"store": "QM01/PS04"}).json() == {"asked": {"store": "QM01/PS04"}}
    assert own.post("/whatif", content=b"{", headers={"content-type": "application/json"}).status_code == 400
    assert own.post("/whatif", content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
    big = b'"' + b"x" * module.MAX_BODY_BYTES + b'"'
    assert own.post("/whatif", content=big, headers={"content-type": "application/json"}).status_code == 413
    assert client().post("/whatif", json={}).status_code == 404


def test_notes_are_taken_where_there_is_somebody_to_take_them():
    own = client(take_note=lambda note: {"taken": note})
    assert own.post("/note", json={"alert_id": "a"}).json() == {"taken": {"alert_id": "a"}}
    assert own.post("/note", content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
    big = b'"' + b"x" * module.MAX_BODY_BYTES + b'"'
    assert own.post("/note", content=big, headers={"content-type": "application/json"}).status_code == 413
    refused = client().post("/note", json={})
    assert refused.status_code == 404 and "this console takes no notes" in refused.json()["detail"]


def test_a_body_of_nested_lists_is_refused_as_any_other_that_is_no_json():
    own = client(answers=FixedAnswers(lambda request: {"asked": request}))
    answer = own.post("/whatif", content=b"[" * 16_000, headers={"content-type": "application/json"})
    assert answer.status_code == 400 and answer.json()["detail"].startswith("the body is not JSON")


def test_a_defect_costs_that_request_and_one_line_of_the_log():
    def fail(_request: object) -> dict:
        raise KeyError("twin")

    with capture_logs() as lines:
        answer = client(answers=FixedAnswers(fail)).post("/whatif", json={})
    assert (answer.status_code, len(lines)) == (500, 1)
    assert lines[0]["why"] == "KeyError: 'twin'" and "twin'" not in answer.text


def test_ready_shows_the_records_that_could_not_be_read_and_why_a_what_if_has_no_answer():
    model = new_model()
    model.fold([TopicRecord(TOPICS.state, 0, b"[" * 5000, {})])
    model.set_source(connected=True, caught_up=True, missing=[])
    own = TestClient(
        new_app(ConsoleState(model, HOSTS, answers=FixedAnswers(problem_text="no topic"))), base_url="http://localhost"
    )
    assert own.get("/readyz").json() == {"status": "ready", "unreadable": 1, "what_if": "no topic"}
    model.set_source(connected=False, caught_up=False, missing=[], problem="ValueError: odd")
    answer = own.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "not ready: ValueError: odd")


def test_a_what_if_that_cannot_be_answered_says_why():
    def refuse(_request: object) -> dict:
        raise UsageError("puts = -1; expected: 0 to 100")

    answer = client(answers=FixedAnswers(refuse)).post("/whatif", json={})
    assert (answer.status_code, answer.json()["detail"]) == (422, "puts = -1; expected: 0 to 100")


# --- events -----------------------------------------------------------------------------------------------------------


def parsed(event: bytes) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in event.decode().strip().split("\n"))


async def take(events: AsyncIterator[bytes], count: int) -> list[dict[str, str]]:
    return [parsed(await anext(events)) for _ in range(count)]


def test_a_client_gets_everything_then_only_what_changed():
    async def run() -> None:
        model = new_model()
        events = stream(ConsoleState(model, HOSTS, period_s=0.01), 0)
        retry, first = await take(events, 2)
        assert "retry" in retry and first["event"] == "changes"
        assert msgspec.json.decode(first["data"])["full"]
        model.fold([state_record(page_set("QM01/PS05", 10))])
        (second,) = await take(events, 1)
        content = msgspec.json.decode(second["data"])
        assert not content["full"] and [store["store"] for store in content["stores"]] == ["QM01/PS05"]
        (beat,) = await take(events, 1)
        assert beat["event"] == "beat" and beat["id"] == second["id"]
        await events.aclose()

    asyncio.run(run())


def test_a_client_that_sleeps_gets_one_event_for_all_that_it_missed():
    async def run() -> None:
        model = new_model()
        events = stream(ConsoleState(model, HOSTS, period_s=0.01), 0)
        await take(events, 2)
        for used in range(500):  # nobody takes the events meanwhile
            model.fold([state_record(page_set("QM01/PS05", used))])
        (event,) = await take(events, 1)
        (store,) = msgspec.json.decode(event["data"])["stores"]
        assert store["fields"]["pages_used"] == 499
        (next_event,) = await take(events, 1)
        assert next_event["event"] == "beat"
        await events.aclose()

    asyncio.run(run())


def test_the_stream_ends_with_the_server():
    async def run() -> None:
        console = ConsoleState(new_model(), HOSTS, period_s=10)
        events = stream(console, 0)
        await take(events, 2)
        assert console.clients == 1
        console.is_stopping.set()
        assert [event async for event in events] == []
        assert console.clients == 0

    asyncio.run(run())


# --- the server -------------------------------------------------------------------------------------------------------


def test_a_client_resumes_where_it_was_and_begins_anew_with_another_process():
    model = new_model()
    with ConsoleServer(model, Listen(port=0)) as server, httpx.Client(base_url=server.address, trust_env=False) as http:

        def first(last_id: str) -> dict:
            with http.stream("GET", "/api/events", headers={"last-event-id": last_id}) as answer:
                lines = (line for line in answer.iter_lines() if line.startswith("data: "))
                return msgspec.json.decode(next(lines).removeprefix("data: "))

        assert first("")["full"]
        model.fold([state_record(page_set("QM01/PS05", 10))])
        resumed = first(f"{model.epoch}-{model.version - 1}")
        assert not resumed["full"] and [store["store"] for store in resumed["stores"]] == ["QM01/PS05"]
        assert first("otherprocess-3")["full"] and first("nonsense")["full"]


def test_only_so_many_clients_receive_events(monkeypatch):
    monkeypatch.setattr(module, "MAX_CLIENTS", 1)
    with (
        ConsoleServer(new_model(), Listen(port=0)) as server,
        httpx.Client(trust_env=False) as http,
        http.stream("GET", f"{server.address}api/events") as answer,
    ):
        lines = answer.iter_lines()  # kept: without a reader the client goes
        assert next(lines) == "retry: 2000"
        assert server.clients == 1
        assert http.get(f"{server.address}api/events", timeout=5).status_code == 503


@contextmanager
def half_requests(address: str, number: int) -> Iterator[list[socket.socket]]:
    """Open connections within the block that send half the head of a request."""
    port = int(address.rstrip("/").rpartition(":")[2])
    with ExitStack() as parts:
        opened = [parts.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10)) for _ in range(number)]
        for connection in opened:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127")
        yield opened


def test_clients_that_send_half_a_head_keep_nobody_out(monkeypatch):
    monkeypatch.setattr(server_module, "_MAX_CONNECTIONS", 20)
    with ConsoleServer(new_model(), Listen(port=0)) as server, half_requests(server.address, 60) as opened:
        with httpx.Client(trust_env=False) as http:
            for _ in range(5):
                assert http.get(f"{server.address}healthz", timeout=5).status_code == 200
        with suppress(ConnectionResetError):  # the oldest was closed
            assert opened[0].recv(1) == b""


def test_the_head_of_a_request_has_a_deadline(monkeypatch):
    monkeypatch.setattr(server_module, "_HEADER_S", 0.3)
    with ConsoleServer(new_model(), Listen(port=0)) as server, half_requests(server.address, 3) as opened:
        began = time.monotonic()
        with suppress(OSError):  # it may be closed in between
            while time.monotonic() < began + 5:  # a byte at a time
                opened[0].sendall(b"x")
                time.sleep(0.05)
        assert time.monotonic() - began < 4
        assert opened[1].recv(1) == opened[2].recv(1) == b""


def test_a_request_that_takes_long_to_answer_has_no_deadline(monkeypatch):
    monkeypatch.setattr(server_module, "_HEADER_S", 0.1)
    with ConsoleServer(new_model(), Listen(port=0)) as server, httpx.Client(trust_env=False) as http:
        with http.stream("GET", f"{server.address}api/events") as answer:
            lines = answer.iter_lines()
            assert next(lines) == "retry: 2000"
            time.sleep(0.3)
            assert [line for _, line in zip(range(4), lines, strict=False)]
        for _ in range(2):  # the connection stays for the next request
            assert http.get(f"{server.address}healthz").status_code == 200


def test_a_client_that_does_not_read_loses_its_place(monkeypatch):
    """Its connection stays open, and each takes one of the places of those that receive events."""
    monkeypatch.setattr(server_module, "_STALL_S", 0.3)
    monkeypatch.setattr(module, "MAX_CLIENTS", 2)
    model = new_model()
    queues = [{"name": f"{number:0480}", "depth": 1, "bytes": 1} for number in range(10)]
    model.fold([state_record(page_set(f"QM01/{number}", 1, queues=queues)) for number in range(2_000)])
    with ConsoleServer(model, Listen(port=0)) as server, ExitStack() as parts, httpx.Client(trust_env=False) as http:
        port = int(server.address.rstrip("/").rpartition(":")[2])
        for _ in range(2):
            connection = parts.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", port))
            connection.sendall(b"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        deadline = time.monotonic() + 20
        while server.clients < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        while server.clients and time.monotonic() < deadline:
            time.sleep(0.05)
        assert server.clients == 0
        with http.stream("GET", f"{server.address}api/events") as answer:
            assert answer.status_code == 200


@pytest.mark.nightly
def test_the_body_of_a_request_has_a_deadline(monkeypatch):
    monkeypatch.setattr(module, "_BODY_S", 0.2)

    def slow() -> Iterator[bytes]:
        for _ in range(100):
            yield b" "
            time.sleep(0.05)

    with (
        ConsoleServer(new_model(), Listen(port=0), FixedAnswers()) as server,
        httpx.Client(trust_env=False) as http,
    ):
        headers = {"content-type": "application/json"}
        assert http.post(f"{server.address}whatif", content=slow(), headers=headers).status_code == 408


def test_errors_of_connections_do_not_fill_the_log():
    handler, loop = _ConnectionErrors(), asyncio.new_event_loop()
    with capture_logs() as lines:
        for _ in range(1000):
            handler(loop, {"message": "socket.accept() out of system resource"})
    loop.close()
    assert len(lines) == 10 and lines[0]["why"] == "socket.accept() out of system resource"


PROGRAM = """
import resource
from deploy.console.model import ConsoleModel
from deploy.console.server import ConsoleServer, Listen
from streams.host.signals import StopRequestedError, raise_on_stop
from streams.kafka.topics import TopicRecord, Topics
from streams.log import configure_logging
configure_logging()
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
try:
    with raise_on_stop(), ConsoleServer(ConsoleModel(Topics()), Listen(port=0)) as server:
        print(server.address, resource.getrlimit(resource.RLIMIT_NOFILE)[0], flush=True)
        server.wait()
except StopRequestedError:
    print("stopped")
"""


@pytest.mark.nightly
def test_few_descriptors_and_many_slow_clients_neither_stop_it_nor_fill_the_log():
    command = [sys.executable, "-c", PROGRAM.format(soft=128, hard=256)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address, limit = process.stdout.readline().split()
        assert limit == "256"  # the soft limit was raised
        with half_requests(address, 300), httpx.Client(trust_env=False) as http:
            for _ in range(5):
                assert http.get(f"{address}healthz", timeout=8).status_code == 200
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "stopped\n")
    assert len(err.splitlines()) < 20, err


def test_a_signal_ends_the_console_without_a_traceback():
    command = [sys.executable, "-c", PROGRAM.format(soft=128, hard=256)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "stopped\n", "")


def test_a_port_that_is_taken_is_named():
    with ConsoleServer(new_model(), Listen(port=0)) as server:
        port = int(server.address.rstrip("/").rpartition(":")[2])
        with pytest.raises(UsageError, match=rf"--listen 127.0.0.1:{port}: .*in use; expected: a free address"):
            ConsoleServer(new_model(), Listen(port=port))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"host": "0.0.0.0"}, "--token-file FILE"),
        ({"host": "192.0.2.1", "token": TOKEN}, "--behind-proxy"),
        ({"certificate": "c.pem"}, "both or none"),
    ],
)
def test_an_address_that_others_reach_needs_a_token_and_tls(options, expected):
    with pytest.raises(UsageError, match=re.escape(expected)):
        Listen(**options)


def test_an_address_that_others_reach_is_allowed_with_both():
    assert Listen(host="192.0.2.1", token=TOKEN, behind_proxy=True, allowed_hosts=("mq.example",)).hosts == [
        "192.0.2.1",
        "mq.example",
    ]


@pytest.mark.parametrize(
    ("content", "mode", "expected"),
    [("short", 0o600, "16 or more"), (TOKEN, 0o644, "chmod 600"), (f"{TOKEN} {TOKEN}", 0o600, "one word")],
)
def test_a_token_file_must_be_private_and_long_enough(tmp_path, content, mode, expected):
    path = tmp_path / "token"
    path.write_text(content, encoding="utf-8")
    path.chmod(mode)
    with pytest.raises(UsageError, match=expected):
        read_token(path)


def test_a_token_file_may_end_with_a_line_end(tmp_path):
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n", encoding="utf-8")
    path.chmod(0o600)
    assert read_token(path) == TOKEN


def test_tls_with_a_certificate_of_its_own(tmp_path):
    import ssl

    import trustme

    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    key.write_bytes(certificate.private_key_pem.bytes())
    chain.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    with ConsoleServer(new_model(), Listen(port=0, certificate=chain, key=key)) as server:
        assert server.address.startswith("https://")
        assert httpx.get(f"{server.address}healthz", verify=trust, trust_env=False).json() == {"status": "alive"}
    with pytest.raises(UsageError, match="--tls-certificate"):
        ConsoleServer(new_model(), Listen(port=0, certificate=key, key=chain))
