"""The way to Kafka, one step after another: DNS, TCP, TLS, the protocol, the login, the rights on each topic.

A Kafka client reports most failures of these as "no answer". Each step is tried here by itself, so that the first one
that fails is named, with what would be right. Nothing is written, and no message has a secret.

Sources:
    Kafka protocol guide (ApiVersions, SaslHandshake; KIP-43: a listener with another mechanism answers with its own,
    one without a login with ILLEGAL_SASL_STATE); OpenSSL, X509_STORE_CTX_get_error.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from streams.kafka.admin import admin_client, lacking_rights, reason_of
from streams.kafka.settings import for_librdkafka

SECONDS = 5.0  # for each step on a socket
_LOGIN_SECONDS = 15.0
_API_VERSIONS, _SASL_HANDSHAKE = 18, 17
_OTHER_MECHANISM, _NO_LOGIN = 33, 34  # UNSUPPORTED_SASL_MECHANISM, ILLEGAL_SASL_STATE
_MAX_ANSWER_BYTES = 1 << 20
_TLS_ALERT = b"\x15\x03"
_OF_KAFKA = "the address of a Kafka listener"
_NOT_YET, _EXPIRED = 9, 10  # X509_V_ERR_...
_UNKNOWN = frozenset({2, 18, 19, 20, 21})
_OTHER_NAME = frozenset({62, 64})


class Step(NamedTuple):
    """A step of the way to Kafka."""

    name: str  # DNS, TCP, TLS, Kafka, SASL or ACL
    place: str  # the address, or the topic
    detail: str
    expected: str = ""  # empty if the step succeeded


class _FailedError(Exception):
    """A step failed. The arguments are its detail, and what is expected."""


def probe(kafka: Mapping[str, str], rights: Mapping[str, Sequence[str]]) -> Iterator[Step]:
    """Yield the steps of the way to each address, then the login, and rights on topics. UsageError: a wrong setting."""
    settings = for_librdkafka(kafka)
    addresses = [address.strip() for address in kafka["bootstrap.servers"].split(",")]
    is_reached = False
    for address in addresses:
        last = None
        for last in reach(address, settings):
            yield last
        is_reached |= last is not None and not last.expected
    if is_reached:
        yield from _as_client(kafka, settings, addresses, rights)


def reach(address: str, settings: Mapping[str, str]) -> Iterator[Step]:
    """Yield the steps to an address up to the first that fails. settings: those of librdkafka."""
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    connection: socket.socket | None = None
    try:
        step = "DNS"
        yield Step(step, address, ", ".join(_resolve(host, int(port))))
        step = "TCP"
        connection = _connect(host, int(port))
        yield Step(step, address, "connected")
        if protocol.endswith("SSL"):
            step = "TLS"
            connection, detail = _encrypt(connection, host, settings)
            yield Step(step, address, detail)
        step = "Kafka"
        _ask(connection, _API_VERSIONS, 0, b"", protocol)
        yield Step(step, address, "answers")
        step = "SASL"
        yield Step(step, address, _check_mechanism(connection, protocol, settings))
    except _FailedError as error:
        yield Step(step, address, *error.args)
    finally:
        if connection is not None:
            connection.close()


def _resolve(host: str, port: int) -> list[str]:
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no host name"
        raise _FailedError(f"{host} has no address: {why}", "a name that this machine resolves") from None
    return sorted({str(own[4][0]) for own in answers})


def _connect(host: str, port: int) -> socket.socket:
    try:
        connection = socket.create_connection((host, port), SECONDS)
    except TimeoutError:
        expected = "a broker that runs, and a firewall that lets this machine through"
        raise _FailedError(f"no answer in {SECONDS:g} s", expected) from None
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise _FailedError(why, "a broker that listens at this port") from None
    connection.settimeout(SECONDS)
    return connection


def _encrypt(connection: socket.socket, host: str, settings: Mapping[str, str]) -> tuple[socket.socket, str]:
    """Return the connection with TLS, and its version and certificate in words."""
    context = _tls_context(settings)
    try:
        encrypted = context.wrap_socket(connection, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        raise _FailedError(*_of_certificate(error, host, settings)) from None
    except (ssl.SSLError, OSError) as error:
        is_other = "WRONG_VERSION" in str(error) or "RECORD_LAYER" in str(error)
        detail = "what listens there does not speak TLS" if is_other else f"the handshake fails: {_reason(error)}"
        expected = "the address of a TLS listener, or security.protocol without SSL"
        raise _FailedError(detail, expected) from None
    until = (encrypted.getpeercert() or {}).get("notAfter")
    valid = "its certificate is not checked"
    if isinstance(until, str):
        valid = f"certificate valid until {time.strftime('%Y-%m-%d', time.gmtime(ssl.cert_time_to_seconds(until)))}"
    return encrypted, f"{encrypted.version()}, {valid}"


def _tls_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if settings.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    elif settings.get("ssl.endpoint.identification.algorithm", "https").lower() in ("", "none"):
        context.check_hostname = False
    authority, own = settings.get("ssl.ca.location", ""), settings.get("ssl.certificate.location", "")
    name = "ssl.truststore.location"
    try:
        if authority and authority != "probe":
            context = _trusting(authority, context)
        if own:
            name = "ssl.keystore.location"
            context.load_cert_chain(own, settings.get("ssl.key.location"), settings.get("ssl.key.password", ""))
    except OSError as error:  # also SSLError
        why = error.strerror if not isinstance(error, ssl.SSLError) else "no certificates in PEM, or another password"
        raise _FailedError(
            f"{name}={authority if name == 'ssl.truststore.location' else own}: {why}", "a PEM file"
        ) from None
    return context


def _trusting(authority: str, before: ssl.SSLContext) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = before.check_hostname, before.verify_mode
    context.load_verify_locations(authority)
    return context


def _of_certificate(error: ssl.SSLCertVerificationError, host: str, settings: Mapping[str, str]) -> tuple[str, str]:
    code = error.verify_code
    if code == _EXPIRED:
        return "the broker's certificate has expired", "a new one on the broker, or the right clock on this machine"
    if code == _NOT_YET:
        return "the broker's certificate is not yet valid", "the right clock on this machine"
    if code in _OTHER_NAME:
        return f"the broker's certificate is not for {host}", f"one that names {host}, or an address that it names"
    if code in _UNKNOWN:
        used = settings.get("ssl.ca.location")
        known = f"those of ssl.truststore.location={used}" if used else "the authorities of this machine"
        expected = "ssl.truststore.type=PEM and ssl.truststore.location of the authority that signed it"
        return f"the broker's certificate is not signed by {known}", expected
    return f"the broker's certificate: {error.verify_message}", "a certificate that is valid and trusted"


def _ask(connection: socket.socket, key: int, version: int, body: bytes, protocol: str) -> bytes:
    name = b"mqtwin"
    request = struct.pack(">hhih", key, version, 7, len(name)) + name + body
    try:
        connection.sendall(struct.pack(">i", len(request)) + request)
        head = _read(connection, 4)
        (size,) = struct.unpack(">i", head)
        if head.startswith(_TLS_ALERT) or size > _MAX_ANSWER_BYTES or size < 4:
            is_tls = head.startswith(_TLS_ALERT)
            raise _FailedError(
                "TLS is spoken there" if is_tls else "something other than Kafka answers", _other(protocol)
            )
        return _read(connection, size)[4:]
    except TimeoutError:
        raise _FailedError(f"no answer in {SECONDS:g} s", _other(protocol)) from None
    except (EOFError, OSError) as error:
        if isinstance(error, ssl.SSLError) and "CERTIFICATE_REQUIRED" in str(error).upper().replace(" ", "_"):
            expected = "ssl.keystore.type=PEM and ssl.keystore.location of this client"
            raise _FailedError("the broker asks for a certificate of the client", expected) from None
        raise _FailedError(f"the connection is closed ({_reason(error)})", _other(protocol)) from None


def _other(protocol: str) -> str:
    if protocol.endswith("SSL"):
        return f"{_OF_KAFKA}, and a certificate of the client (ssl.keystore.location) where it asks for one"
    return f"{_OF_KAFKA}, or security.protocol=SSL or SASL_SSL where it speaks TLS"


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError("at once" if not data else "in an answer")
        data += part
    return data


def _check_mechanism(connection: socket.socket, protocol: str, settings: Mapping[str, str]) -> str:
    """Return what the listener takes as a login, if it is what the settings say."""
    mechanism = settings.get("sasl.mechanism", settings.get("sasl.mechanisms", "GSSAPI")).upper()
    has_login = protocol.startswith("SASL")
    name = (mechanism if has_login else "NONE").encode()
    answer = _ask(connection, _SASL_HANDSHAKE, 1, struct.pack(">h", len(name)) + name, protocol)
    code, known = struct.unpack(">h", answer[:2])[0], _mechanisms(answer[2:])
    bare = protocol.removeprefix("SASL_")
    if code == _NO_LOGIN:
        if has_login:
            raise _FailedError("the listener takes no login", f"security.protocol={bare}, or another port")
        return "no login is asked for"
    if not has_login:
        right = f"security.protocol=SASL_{bare} and sasl.mechanism={' or '.join(known) or 'its own'}"
        raise _FailedError("the listener asks for a login", f"{right}, with user and password in --kafka-file")
    if code == _OTHER_MECHANISM:
        raise _FailedError(f"the broker does not take {mechanism}", f"sasl.mechanism={' or '.join(known)}")
    return f"{mechanism} is taken"


def _mechanisms(data: bytes) -> list[str]:
    names, place = [], 4
    for _ in range(struct.unpack(">i", data[:4])[0] if len(data) >= 4 else 0):
        (size,) = struct.unpack_from(">h", data, place)
        names.append(data[place + 2 : place + 2 + size].decode())
        place += 2 + size
    return sorted(names)


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    return str(getattr(error, "strerror", None) or error).lower()


def _as_client(
    kafka: Mapping[str, str], settings: Mapping[str, str], known: Sequence[str], rights: Mapping[str, Sequence[str]]
) -> Iterator[Step]:
    """Yield the login, the way to further brokers of the cluster if it fails, and the rights."""
    has_login = settings.get("security.protocol", "").upper().startswith("SASL")
    servers, user = kafka["bootstrap.servers"], settings.get("sasl.username", "") if has_login else ""
    refusals: list[str] = []

    def on_error(error: KafkaError) -> None:
        if error.code() == KafkaError._AUTHENTICATION:  # noqa: SLF001 -- librdkafka's own code
            refusals.append(error.str())

    admin = admin_client(kafka, on_error)
    try:
        metadata = _metadata(admin, refusals)
        if user:
            yield Step("SASL", servers, f"user {user} is logged in")
        yield from _further(metadata, settings, known)
        for topic, lacking in lacking_rights(admin, rights).items():
            yield _right(topic, rights[topic], lacking, user)
    except KafkaException as error:
        if refusals:
            detail = f"user {user} is refused: wrong name or password"
            yield Step("SASL", servers, detail, "a user of the broker, and its password")
        else:
            yield Step("Kafka", servers, reason_of(error), "a cluster that answers")


def _further(metadata: Any, settings: Mapping[str, str], known: Sequence[str]) -> Iterator[Step]:
    """Yield the step that fails on the way to a broker by the address that it names."""
    for broker in metadata.brokers.values():
        address = f"{broker.host}:{broker.port}"
        for step in reach(address, settings) if address not in known else ():
            if step.expected:
                named = f"broker {broker.id} names this address (advertised.listeners)"
                yield step._replace(detail=f"{named}: {step.detail}")


def _metadata(admin: AdminClient, refusals: Sequence[str]) -> Any:
    """Return the metadata of the cluster, or raise as soon as the login is refused. KafkaException."""
    deadline = time.monotonic() + _LOGIN_SECONDS
    while True:
        try:
            return admin.list_topics(timeout=1.0)
        except KafkaException:
            admin.poll(0)  # delivers the errors of the client
            if refusals or time.monotonic() > deadline:
                raise


def _right(topic: str, needed: Sequence[str], lack: Sequence[str] | None, user: str) -> Step:
    """Return what may be done with a topic. lack: operations that are not allowed; None: there is no such topic."""
    if lack is None:
        expected = "the topic, or an ACL that allows CREATE: `mqtwin stream` makes it"
        return Step("ACL", topic, "there is no such topic", expected)
    if lack:
        operations = " and ".join(lack)
        return Step(
            "ACL", topic, f"{operations} is refused", f"an ACL that allows {operations} to {user or 'this client'}"
        )
    return Step("ACL", topic, f"{' and '.join(needed)} is allowed")
