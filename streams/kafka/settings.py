"""Kafka client settings: given once by the user, spoken to two clients.

A user writes the names of Kafka's own (Java) client, as in Kafka's documentation: ``--kafka
security.protocol=SASL_SSL``. Spark's connector takes them as they are. confluent-kafka (librdkafka) has other names for
credentials and certificates; for these few the counterpart is put in. librdkafka's names for them are understood too,
and translated for Spark.

Sources: Kafka documentation, "Configuration" (producer, consumer, admin); librdkafka, CONFIGURATION.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from streams.kafka.properties import has_reference, provider_settings, read_properties, reference, resolve_references
from twin.errors import UsageError

REDACTED = "***"
_SECRET = re.compile(
    r"password|passphrase|secret|jaas|token(?!\.endpoint)|credential|private.?key(?!\.(file|id|algorithm))|api.?key"
    r"|(ssl\.keystore|ssl\.key|ssl\.truststore)\.(key|pem)|basic\.auth|oauthbearer\.(config|extensions)$",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"(username|password)\s*=\s*(\"(?:[^\"\\]|\\.)*\"|[^\s;]+)")
_LOGIN_MODULE = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
# Only Kafka's Java client knows these; librdkafka refuses names it does not know.
_JAVA_ONLY = (
    "config.providers",
    "sasl.jaas.config",
    "sasl.login.",
    "sasl.client.callback.handler.class",
    "ssl.truststore.",
    "ssl.keystore.",
    "ssl.enabled.protocols",
    "ssl.protocol",
    "ssl.secure.random.implementation",
)
# The settings of a client that an administrator's client (topics) shares; others (fetch sizes, batching) are not its
# business.
_CONNECTION = (
    "bootstrap.servers",
    "client.",
    "security.",
    "sasl.",
    "ssl.",
    "enable.ssl.",
    "socket.",
    "broker.address.",
    "config.providers",
)


def is_secret(key: str) -> bool:
    """True if the value of a client setting must not be shown."""
    return _SECRET.search(key) is not None


def redact(settings: Mapping[str, object]) -> dict[str, object]:
    """Return the settings with the values of secrets replaced, for logs and messages."""
    return {key: REDACTED if is_secret(key) else value for key, value in settings.items()}


def read_kafka_file(path: Path) -> dict[str, str]:
    """Return the client settings of a properties file; each secret stays there, as a reference to it.

    Raises:
        UsageError: see `streams.kafka.properties.read_properties`.
    """
    found = read_properties(path)
    settings = {
        key.removeprefix("kafka."): reference(path, key) if is_secret(key) else value for key, value in found.items()
    }
    if any(map(is_secret, found)):
        settings |= provider_settings(path, settings)
    return settings


def for_spark(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings as options of Spark's Kafka source and sink: prefixed ``kafka.``, librdkafka's names translated.

    Raises:
        UsageError: a user name without a mechanism that takes one, or a password of a file that JAAS cannot hold.
    """
    java = {key.removeprefix("kafka."): value for key, value in settings.items()}
    username, password = java.pop("sasl.username", None), java.pop("sasl.password", None)
    java.setdefault("sasl.mechanism", java.pop("sasl.mechanisms", "")) or java.pop("sasl.mechanism")
    if username is not None:
        module = _LOGIN_MODULE.get(java.get("sasl.mechanism", "").upper())
        if module is None:
            raise UsageError(
                f"--kafka sasl.username is given, sasl.mechanism is {java.get('sasl.mechanism') or 'not'}: "
                f"set sasl.mechanism to one of {', '.join(_LOGIN_MODULE)}"
            )
        java["sasl.jaas.config"] = f"{module} required username={_quoted(username)} password={_in_jaas(password)};"
    authority = java.pop("ssl.ca.location", None)
    if authority is not None:
        java |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": authority}
    return {f"kafka.{key}": value for key, value in java.items()}


def for_librdkafka(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that reach and authenticate at a broker, for confluent-kafka: Java's names translated.

    Raises:
        UsageError: a credential that librdkafka cannot be given (a file reference that cannot be read, a key store that
            is not PEM).
    """
    given = {key.removeprefix("kafka."): value for key, value in settings.items()}
    given = {key: value if key.startswith("config.") else resolve_references(value) for key, value in given.items()}
    rd = {key: value for key, value in given.items() if key.startswith(_CONNECTION) and not key.startswith(_JAVA_ONLY)}
    jaas = given.get("sasl.jaas.config")
    if jaas is not None:
        login = {key: _unquoted(value) for key, value in _LOGIN.findall(jaas)}
        rd |= {f"sasl.{key}": value for key, value in login.items()}
    if "ssl.truststore.location" in given:
        rd["ssl.ca.location"] = _pem(given, "ssl.truststore")
    if "ssl.keystore.location" in given:
        rd["ssl.certificate.location"] = rd["ssl.key.location"] = _pem(given, "ssl.keystore")
        if "ssl.key.password" in given:
            rd["ssl.key.password"] = given["ssl.key.password"]
    return rd


def _pem(settings: Mapping[str, str], store: str) -> str:
    location = settings[f"{store}.location"]
    if settings.get(f"{store}.type", "JKS").upper() != "PEM":
        raise UsageError(
            f"--kafka {store}.location={location}: only PEM is understood; set {store}.type=PEM and give a PEM file"
        )
    return location


def _in_jaas(password: str | None) -> str:
    """Return a password, or a reference to one, in quotation marks; Java puts what is in the file there as it is."""
    if password is None or not has_reference(password):
        return _quoted(password or "")
    if re.search(r'["\\]', resolve_references(password)):
        raise UsageError(
            "--kafka-file: sasl.password has a quotation mark or a backslash, which Spark's client cannot take from a "
            "file; expected: a line sasl.jaas.config=... that has both escaped"
        )
    return f'"{password}"'


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text
