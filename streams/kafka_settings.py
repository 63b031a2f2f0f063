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

from twin.errors import UsageError

REDACTED = "***"
_SECRET = re.compile(
    r"password|secret|jaas|token|(ssl\.keystore|ssl\.key|ssl\.truststore)\.(key|pem)|basic\.auth", re.IGNORECASE
)
_LOGIN = re.compile(r"(username|password)\s*=\s*(\"(?:[^\"\\]|\\.)*\"|[^\s;]+)")
_FILE_REFERENCE = re.compile(r"\$\{\w+:(?P<path>[^:}]+):(?P<key>[^}]+)\}")
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


def redact(settings: Mapping[str, object]) -> dict[str, object]:
    """The settings with the values of secrets replaced, for logs and messages."""
    return {key: REDACTED if _SECRET.search(key) else value for key, value in settings.items()}


def for_spark(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings as options of Spark's Kafka source and sink: prefixed ``kafka.``, librdkafka's names translated.

    Raises:
        UsageError: a user name without a mechanism that takes one.
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
        java["sasl.jaas.config"] = f"{module} required username={_quoted(username)} password={_quoted(password or '')};"
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
    rd = {key: value for key, value in given.items() if key.startswith(_CONNECTION) and not key.startswith(_JAVA_ONLY)}
    jaas = given.get("sasl.jaas.config")
    if jaas is not None:
        login = {key: _unquoted(value) for key, value in _LOGIN.findall(_resolved(jaas))}
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


def _resolved(jaas: str) -> str:
    """The JAAS text with ``${file:PATH:KEY}`` replaced from the properties file, as Kafka's FileConfigProvider does."""

    def look_up(found: re.Match[str]) -> str:
        try:
            lines = Path(found["path"]).read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise UsageError(
                f"--kafka sasl.jaas.config: {found['path']}: {error.strerror}; it must be a readable properties file"
            ) from error
        for line in lines:
            key, _, value = line.partition("=")
            if key.strip() == found["key"]:
                return value.strip()
        raise UsageError(f"--kafka sasl.jaas.config: {found['path']} has no line {found['key']}=...")

    return _FILE_REFERENCE.sub(look_up, jaas)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text
