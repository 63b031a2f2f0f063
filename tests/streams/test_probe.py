"""The way to Kafka: each step that can fail, at real sockets, and the line that names it."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from deploy.cli import main
from streams.kafka import probe
from streams.kafka.probe import Step, reach
from tests.support.processes import free_port

PASSWORD = "S3cret;of={tests}"
AUTHORITY, STRANGER = trustme.CA(), trustme.CA()
YESTERDAY = datetime.now(UTC) - timedelta(days=1)
CERTIFICATES: dict[str, Callable[[], trustme.LeafCert]] = {
    "right": lambda: AUTHORITY.issue_cert("127.0.0.1"),
    "expired": lambda: AUTHORITY.issue_cert("127.0.0.1", not_after=YESTERDAY),
    "of another host": lambda: AUTHORITY.issue_cert("broker.example"),
    "of a stranger": lambda: STRANGER.issue_cert("127.0.0.1"),
}


class Listener:
    """A listener of a broker. mechanisms: those of its logins; None: it has none."""

    def __init__(
        self,
        certificate: str = "",
        mechanisms: tuple[str, ...] | None = None,
        says: bytes = b"",
        *,
        mutual: bool = False,
    ) -> None:
        self.mechanisms, self.says = mechanisms, says
        self.context: ssl.SSLContext | None = None
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            CERTIFICATES[certificate]().configure_cert(self.context)
            if mutual:
                AUTHORITY.configure_trust(self.context)
                self.context.verify_mode = ssl.CERT_REQUIRED

    def serve(self, connection: socket.socket) -> None:
        if self.says:
            connection.recv(4096)
            connection.sendall(self.says)
            return
        if self.context is not None:
            with self.context.wrap_socket(connection, server_side=True) as encrypted:
                self.answer(encrypted)
        else:
            self.answer(connection)

    def answer(self, connection: socket.socket) -> None:
        while head := connection.recv(4):
            request = connection.recv(struct.unpack(">i", head)[0])
            (key,) = struct.unpack(">h", request[:2])
            answer = struct.pack(">hi", 0, 0) if key == 18 else self.handshake(request)
            connection.sendall(struct.pack(">i", 4 + len(answer)) + request[4:8] + answer)

    def handshake(self, request: bytes) -> bytes:
        asked = request[request.index(b"mqtwin") + 8 :].decode()
        own = self.mechanisms or ()
        code = 34 if self.mechanisms is None else 0 if asked in own else 33
        names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in own)
        return struct.pack(">hi", code, len(own)) + names


@contextmanager
def listening(listener: Listener) -> Iterator[str]:
    """A listener on a free port; yields its address."""

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return  # the end of the test
            with connection, suppress(OSError):  # the other side gave up
                listener.serve(connection)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tls") / "ca.pem"
    AUTHORITY.cert_pem.write_to_path(path)
    return path


SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
TLS_EXPECTED = "the address of a TLS listener, or security.protocol without SSL"
CASES = {  # listener, protocol, mechanism, the steps that succeed, the one that fails
    "a certificate that has expired": (
        *(Listener("expired"), "SSL", "", "DNS TCP"),
        Step("TLS", "", "certificate has expired", "a new one on the broker, or the right clock on this machine"),
    ),
    "a certificate of another host": (
        *(Listener("of another host"), "SSL", "", "DNS TCP"),
        Step("TLS", "", "certificate is not for 127.0.0.1", "one that names 127.0.0.1, or an address that it names"),
    ),
    "a certificate of an unknown authority": (
        *(Listener("of a stranger"), "SASL_SSL", "PLAIN", "DNS TCP"),
        Step("TLS", "", "is not signed by those of ssl.truststore.location=", "of the authority that signed it"),
    ),
    "TLS to a listener without": (
        *(Listener(says=b"\0\0\0\0\0\0"), "SSL", "", "DNS TCP"),
        Step("TLS", "", "does not speak TLS", TLS_EXPECTED),
    ),
    "no TLS to a listener with it": (
        *(Listener("right"), "PLAINTEXT", "", "DNS TCP"),
        Step("Kafka", "", "", "security.protocol=SSL or SASL_SSL where it speaks TLS"),
    ),
    "an alert of TLS": (
        *(Listener(says=b"\x15\x03\x03\0\x02\x02\x46"), "PLAINTEXT", "", "DNS TCP"),
        Step("Kafka", "", "TLS is spoken there", "security.protocol=SSL or SASL_SSL where it speaks TLS"),
    ),
    "a web server": (
        *(Listener(says=b"HTTP/1.1 400 Bad Request\r\n\r\n"), "PLAINTEXT", "", "DNS TCP"),
        Step("Kafka", "", "something other than Kafka answers", "the address of a Kafka listener"),
    ),
    "no certificate of this client": (
        *(Listener("right", mutual=True), "SSL", "", "DNS TCP TLS"),
        Step("Kafka", "", "", "ssl.keystore.location"),
    ),
    "a mechanism that the broker does not take": (
        *(Listener("right", SCRAM), "SASL_SSL", "PLAIN", "DNS TCP TLS Kafka"),
        Step("SASL", "", "the broker does not take PLAIN", "sasl.mechanism=SCRAM-SHA-256 or SCRAM-SHA-512"),
    ),
    "no login where one is asked for": (
        *(Listener("", ("PLAIN",)), "PLAINTEXT", "", "DNS TCP Kafka"),
        Step("SASL", "", "the listener asks for a login", "security.protocol=SASL_PLAINTEXT and sasl.mechanism=PLAIN"),
    ),
    "a login where none is taken": (
        *(Listener("right"), "SASL_SSL", "PLAIN", "DNS TCP TLS Kafka"),
        Step("SASL", "", "the listener takes no login", "security.protocol=SSL, or another port"),
    ),
}


@pytest.mark.parametrize(("listener", "protocol", "mechanism", "before", "failed"), CASES.values(), ids=CASES)
def test_the_step_that_fails_is_one_line_with_what_would_be_right(
    listener: Listener,
    protocol: str,
    mechanism: str,
    before: str,
    failed: Step,
    authority: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = {"security.protocol": protocol, "ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority)}
    if mechanism:
        settings |= {"sasl.mechanism": mechanism, "sasl.username": "ann", "sasl.password": PASSWORD}
    file = tmp_path / "kafka.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
    file.chmod(0o600)
    with listening(listener) as address:
        assert main(["doctor", "--bootstrap-servers", address, "--kafka-file", str(file)]) == 1
    output = capsys.readouterr()
    *lines, last = output.out.splitlines()
    assert [line.split()[:3] for line in lines] == [["ok", name, address] for name in before.split()]
    assert last.startswith(f"missing   {failed.name} {address}  ")
    detail, _, expected = last.partition("  -> expected: ")
    assert failed.detail in detail
    assert failed.expected in expected
    assert PASSWORD not in output.out + output.err


def test_a_name_that_there_is_not_and_a_port_where_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    [dns] = reach("broker.invalid:9092", {})
    assert (dns.name, dns.expected) == ("DNS", "a name that this machine resolves")
    assert dns.detail.startswith("broker.invalid has no address: ")
    address = f"127.0.0.1:{free_port()}"
    assert list(reach(address, {}))[1:] == [
        Step("TCP", address, "connection refused", "a broker that listens at this port")
    ]
    with ExitStack() as parts:  # a queue of connections that is full: nobody answers
        server = parts.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        address = f"127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setattr(probe, "SECONDS", 0.2)
        for _ in range(3):
            waiting = parts.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        assert list(reach(address, {}))[-1] == Step(
            "TCP", address, "no answer in 0.2 s", "a broker that runs, and a firewall that lets this machine through"
        )


def test_a_way_without_fault_says_what_it_found(authority: Path) -> None:
    settings = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(authority), "sasl.mechanism": "SCRAM-SHA-512"}
    with listening(Listener("right", SCRAM)) as address:
        steps = list(reach(address, settings))
    assert [step.name for step in steps] == ["DNS", "TCP", "TLS", "Kafka", "SASL"]
    assert not [step for step in steps if step.expected]
    assert "certificate valid until " in steps[2].detail


@pytest.mark.parametrize(
    ("settings", "detail"),
    [
        ({"ssl.ca.location": "/none/ca.pem"}, "ssl.truststore.location=/none/ca.pem: No such file or directory"),
        ({"ssl.certificate.location": __file__}, f"ssl.keystore.location={__file__}: no certificates in PEM"),
    ],
    ids=["no-authority", "no-certificate"],
)
def test_a_file_of_tls_that_is_wrong_is_named(settings: dict[str, str], detail: str) -> None:
    with listening(Listener("right")) as address:
        *_, last = reach(address, {"security.protocol": "SSL", **settings})
    assert (last.name, last.expected) == ("TLS", "a PEM file")
    assert last.detail.startswith(detail)
