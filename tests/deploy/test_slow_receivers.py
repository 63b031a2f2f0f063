"""Servers that answer too much, or too slowly: real sockets for the requests of bridges and collectors."""

from __future__ import annotations

import gzip
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from structlog.testing import capture_logs

from deploy import bridge as delivery
from deploy.bridge import AlertmanagerBridge
from streams.collecting import http
from streams.collecting.http import HttpClient, Requester, RequestError
from tests.support.alert_entries import entry
from tests.support.surfaces import wait_until

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
BOMB = gzip.compress(bytes(64 << 20))
DEADLINE_S = 0.5
Reply = Callable[[socket.socket], None]


def endless_body(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    chunk = b"10000\r\n" + bytes(0x10000) + b"\r\n"
    while True:
        connection.sendall(chunk)


def gzip_bomb(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB)


def dripping_head(connection: socket.socket) -> None:
    drip(connection, HEAD * 100)


def dripping_body(connection: socket.socket) -> None:
    connection.sendall(HEAD.replace(b"200 OK", b"503 Busy") + b"Content-Length: 1000\r\n\r\n")
    drip(connection, bytes(1000))


def drip(connection: socket.socket, content: bytes) -> None:
    for number in content:
        connection.sendall(bytes([number]))
        time.sleep(0.05)


@contextmanager
def serving(*replies: Reply) -> Iterator[tuple[str, list[bytes]]]:
    """Serve within the block: the replies in their order, then 200. Yield address and what was received first."""
    received: list[bytes] = []
    waiting = list(replies)

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            received.append(connection.recv(65536))
            reply = waiting.pop(0) if waiting else None
            if reply is None:
                connection.sendall(HEAD + b"Content-Length: 0\r\nConnection: close\r\n\r\n")
            else:
                reply(connection)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", received
        listener.shutdown(socket.SHUT_RDWR)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_MIN_WAIT_S", 0.01)
    monkeypatch.setattr(delivery, "_MAX_WAIT_S", 0.02)
    monkeypatch.setattr(http, "DEADLINE_S", DEADLINE_S)


@pytest.mark.parametrize("reply", [endless_body, gzip_bomb])
def test_a_peer_that_answers_too_much_has_the_alerts_and_takes_no_memory(reply: Reply) -> None:
    tracemalloc.start()
    try:
        with serving(reply) as (url, received), AlertmanagerBridge([url]) as bridge:
            bridge.apply([entry()])
            wait_until(lambda: received and not bridge.counts()["peers_waited_for"])
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
    assert len(received) == 1
    assert b"accept-encoding: identity" in received[0].lower()


@pytest.mark.parametrize("reply", [dripping_head, dripping_body])
def test_a_peer_that_drips_is_left_at_the_deadline_tried_again_and_logged(
    reply: Reply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "TIMEOUT_S", DEADLINE_S)
    with capture_logs() as lines, serving(reply) as (url, received), AlertmanagerBridge([url]) as bridge:
        began = time.monotonic()
        bridge.apply([entry()])
        wait_until(lambda: len(received) == 2 and not bridge.counts()["peers_waited_for"])
        assert time.monotonic() - began < 10 * DEADLINE_S
    (line,) = [line for line in lines if line["event"] == "not delivered, trying again"]
    assert ("no whole answer within 0.5 s" in line["why"]) == (reply is dripping_head)


def test_a_peer_that_drips_does_not_stop_its_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "TIMEOUT_S", DEADLINE_S)
    with serving(dripping_head, endless_body) as (url, received), AlertmanagerBridge([url], resend_s=0.1) as bridge:
        bridge.apply([entry()])
        wait_until(lambda: len(received) >= 4)


def test_a_receiver_that_reads_nothing_is_left_at_the_deadline() -> None:
    def read_nothing(_connection: socket.socket) -> None:
        time.sleep(5)

    with serving(read_nothing) as (url, _), Requester(DEADLINE_S) as client:
        began = time.monotonic()
        with pytest.raises(RequestError, match=r"no whole answer within 0\.5 s"):
            client.ask("POST", url, {}, content=bytes(50 << 20), max_bytes=100)
        assert time.monotonic() - began < 4


def test_a_collector_does_not_wait_for_a_server_that_drips() -> None:
    with serving(dripping_head) as (url, _), pytest.raises(RequestError, match=r"no whole answer within 0\.5 s"):
        HttpClient().get(url, "text/plain")


def test_a_collector_takes_no_page_that_has_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_BYTES", 1 << 20)
    monkeypatch.setattr(http, "DEADLINE_S", 30)
    with serving(endless_body) as (url, _), pytest.raises(RequestError, match="more than 1048576 bytes"):
        HttpClient().get(url, "text/plain")


def test_a_proxy_of_the_environment_has_the_deadline_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(dripping_head) as (url, received), monkeypatch.context() as environment:
        environment.setenv("HTTP_PROXY", url)
        environment.delenv("NO_PROXY", raising=False)
        environment.delenv("no_proxy", raising=False)
        with Requester(DEADLINE_S) as client, pytest.raises(RequestError, match=r"within 0\.5 s"):
            client.ask("POST", "http://hooks.example/x", {}, content=b"{}", max_bytes=100)
    assert received[0].startswith(b"POST http://hooks.example/x ")


def test_no_proxy_names_the_addresses_that_are_asked_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as (url, received), Requester(DEADLINE_S) as client:
        monkeypatch.setenv("HTTP_PROXY", "http://user:pass%40word@127.0.0.1:1")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert client.ask("GET", f"{url}/a b?c=\u00e4", {}, max_bytes=100).status == 200
    assert received[0].startswith(b"GET /a%20b?c=%C3%A4 HTTP/1.1\r\n")


def test_a_proxy_has_its_own_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as (url, received), Requester(DEADLINE_S) as client:
        monkeypatch.setenv("HTTP_PROXY", url.replace("//", "//user:pass%40word@"))
        monkeypatch.delenv("no_proxy", raising=False)
        client.ask("GET", "http://hooks.example/x", {}, max_bytes=100)
    assert b"\r\nproxy-authorization: basic dxnlcjpwyxnzqhdvcmq=\r\n" in received[0].lower()
