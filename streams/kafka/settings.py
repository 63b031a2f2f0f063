"""Kafka client settings: one set of the user, translated for two clients.

A user writes the names of Kafka's own (Java) client, ``--kafka security.protocol=SASL_SSL``, which Spark's connector
takes unchanged; librdkafka has other names for credentials and certificates, into and from which they are translated. A
secret of a properties file (``--kafka-file``) does not leave its file: the settings hold a reference,
`${mqtwin:PATH:KEY}`, which Kafka's Java client resolves in Spark's driver and executors, and this module when it
creates a client of librdkafka. So no plan, log, checkpoint or process list can hold it. Sources: Kafka documentation,
"Configuration" (producer, consumer, admin) and "Configuration providers" (FileConfigProvider); librdkafka,
CONFIGURATION.md; java.util.Properties.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from twin.base.errors import UsageError

REDACTED = "***"
_SECRET = re.compile(
    r"password|passphrase|secret|jaas|token(?!\.endpoint)|credential|private.?key(?!\.(file|id|algorithm))|api.?key"
    r"|(ssl\.keystore|ssl\.key|ssl\.truststore)\.(key|pem)|basic\.auth|oauthbearer\.(config|extensions)$",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"(username|password)\s*=\s*(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\s;]+)")
_LOGIN_MODULE = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
# Names of Kafka's Java client only. librdkafka refuses names that it does not know.
_JAVA_ONLY = (
    *("config.providers", "sasl.jaas.config", "sasl.login.", "sasl.client.callback.handler.class"),
    *("ssl.truststore.", "ssl.keystore.", "ssl.enabled.protocols", "ssl.protocol", "ssl.secure.random.implementation"),
)
# The settings of a connection. Others, such as fetch sizes and batching, are not for an admin client.
_CONNECTION = (
    *("bootstrap.servers", "client.", "security.", "sasl.", "ssl.", "enable.ssl.", "socket.", "broker.address."),
    "config.providers",
)
# What mqtwin decides itself; of these Spark refuses most.
_OURS = frozenset(
    (
        *("auto.offset.reset", "enable.auto.commit", "interceptor.classes", "isolation.level", "transactional.id"),
        *("key.deserializer", "key.serializer", "value.deserializer", "value.serializer"),
    )
)
FOR_JAVA = "java:"  # begins names of a properties file that librdkafka does not have
PROVIDER = "mqtwin"  # the name under which Kafka's FileConfigProvider is configured
_PROVIDER_CLASS = "org.apache.kafka.common.config.provider.FileConfigProvider"
_REFERENCE = re.compile(r"\$\{\w+:(?P<path>[^:}]+):(?P<key>[^}]+)\}")
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(?:u(?P<code>[0-9a-fA-F]{4})|(?P<bad>u)|(?P<letter>.))", re.DOTALL)
_KEY = re.compile(r"(?P<key>(?:\\.|[^\\=:\s])*)[ \t\f]*[=:]?[ \t\f]*(?P<value>.*)", re.DOTALL)


def is_secret(key: str) -> bool:
    """Return True if the value of a client setting must not be shown."""
    return _SECRET.search(key) is not None


def redact(settings: Mapping[str, object]) -> dict[str, object]:
    """Return the settings with the values of secrets replaced, for logs and messages."""
    return {key: REDACTED if is_secret(key) else value for key, value in settings.items()}


def read_kafka_file(path: Path) -> dict[str, str]:
    """Return the settings of a properties file, with references for secrets. UsageError: as of `read_properties`."""
    properties = {key: value for key, value in read_properties(path).items() if not _is_ours(key)}
    settings = {
        _marked(key.removeprefix("kafka.")): reference(path, key) if is_secret(key) else value
        for key, value in properties.items()
    }
    if any(map(is_secret, properties)):
        settings |= provider_settings(path, settings)
    return settings


def foreign_settings(path: Path) -> list[str]:
    """Return what is passed over in a properties file, name and line: of other clients, or what mqtwin sets itself.

    Files that are handed out for copying have names of schema registries, serializers and consumers. Kafka's own client
    passes over what it does not know, and so gets them. UsageError: see `read_properties`.
    """
    lines = {_unescaped(parts["key"], path, number): number for number, parts in _properties(path)}
    foreign = [key for key in lines if _is_ours(key) or _is_unknown(key.removeprefix("kafka."))]
    return [f"{key} (line {lines[key]})" for key in foreign]


def _marked(name: str) -> str:
    return FOR_JAVA + name if _is_unknown(name) else name


def _is_ours(key: str) -> bool:
    return key.removeprefix("kafka.") in _OURS


@cache
def _is_unknown(name: str) -> bool:
    """Return True for the name of a setting that librdkafka does not have, and that is not translated for it."""
    if name.startswith((*_JAVA_ONLY, "sasl.", "ssl.")):
        return False
    from confluent_kafka import KafkaException, Producer

    try:
        Producer({name: "", "log_level": "none"})  # the second one is wrong, so that there is an error in any case
    except KafkaException as error:
        return "No such configuration property" in str(error)
    return False


def for_spark(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings as options of Spark's Kafka source and sink: prefix ``kafka.``, names of Java's client.
    UsageError: a user name has no mechanism that takes one, or JAAS cannot hold a password from a file.
    """
    java = {key.removeprefix("kafka.").removeprefix(FOR_JAVA): value for key, value in settings.items()}
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
    """Return the connection settings for confluent-kafka, with librdkafka's names. UsageError: librdkafka cannot use a
    credential: a reference cannot be resolved, or a key store is not PEM.
    """
    java = {key.removeprefix("kafka."): value for key, value in settings.items()}
    java = {key: value if key.startswith("config.") else resolve_references(value) for key, value in java.items()}
    rd = {key: value for key, value in java.items() if key.startswith(_CONNECTION) and not key.startswith(_JAVA_ONLY)}
    jaas = java.get("sasl.jaas.config")
    if jaas is not None:
        for key, value in _LOGIN.findall(jaas):
            is_quoted = value.startswith(('"', "'"))
            rd[f"sasl.{key}"] = re.sub(r"\\(.)", r"\1", value[1:-1]) if is_quoted else value
    if "ssl.truststore.location" in java:
        rd["ssl.ca.location"] = _pem_location(java, "ssl.truststore")
    if "ssl.keystore.location" in java:
        rd["ssl.certificate.location"] = rd["ssl.key.location"] = _pem_location(java, "ssl.keystore")
        if "ssl.key.password" in java:
            rd["ssl.key.password"] = java["ssl.key.password"]
    return rd


def _pem_location(settings: Mapping[str, str], store: str) -> str:
    location = settings[f"{store}.location"]
    if settings.get(f"{store}.type", "JKS").upper() != "PEM":
        raise UsageError(
            f"--kafka {store}.location={location}: only PEM is understood; set {store}.type=PEM and give a PEM file"
        )
    return location


def _in_jaas(password: str | None) -> str:
    """Return a password, or a reference to one, in quotation marks. Java inserts a referenced value without escapes."""
    if password is None or not _REFERENCE.search(password):
        return _quoted(password or "")
    if re.search(r'["\\]', resolve_references(password)):
        raise UsageError(
            "--kafka-file: sasl.password has a quotation mark or a backslash, which Spark's client cannot take from a "
            "file; expected: a line sasl.jaas.config=... that has both escaped"
        )
    return f'"{password}"'


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def read_properties(path: Path) -> dict[str, str]:
    """Return the properties of a file in UTF-8, parsed as Java does; the last line of a key counts. UsageError: the
    file cannot be read or is not text, or an escape is incomplete. The message quotes nothing of the file.
    """
    return {
        _unescaped(parts["key"], path, number): _unescaped(parts["value"], path, number)
        for number, parts in _properties(path)
    }


def _properties(path: Path) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the number of the line, key and value, as they are written. UsageError: see `read_properties`."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; expected: a readable properties file") from error
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8; expected: a properties file, lines of KEY=VALUE") from None
    for number, line in _logical_lines(text):
        parts = _KEY.fullmatch(line)
        if parts is None or not parts["key"]:
            raise UsageError(f"{path}:{number}: no key; expected: KEY=VALUE")
        yield number, parts


def reference(path: Path, key: str) -> str:
    """Return the reference to the value of a key in a properties file. UsageError: a reference cannot hold the path."""
    absolute = str(path.absolute())
    if re.search(r"[:}$,]", absolute):
        raise UsageError(f"{absolute}: expected: the path of a properties file without any of : }} $ ,")
    return f"${{{PROVIDER}:{absolute}:{key}}}"


def resolve_references(text: str) -> str:
    """Return the text with each ``${file:PATH:KEY}`` replaced from its file. UsageError: it lacks the key."""

    def look_up(match: re.Match[str]) -> str:
        properties = read_properties(Path(match["path"]))
        if match["key"] not in properties:
            raise UsageError(f"{match['path']} has no {match['key']}; expected: a line for {match[0]}")
        return properties[match["key"]]

    return _REFERENCE.sub(look_up, text)


def provider_settings(path: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that make Kafka's Java client resolve `reference`. Providers in the settings are kept."""
    others = [name for name in settings.get("config.providers", "").split(",") if name.strip()]
    return {
        "config.providers": ",".join([*others, PROVIDER]),
        f"config.providers.{PROVIDER}.class": _PROVIDER_CLASS,
        f"config.providers.{PROVIDER}.param.allowed.paths": str(path.absolute()),
    }


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (number of the first line, logical line): continued lines joined, comments and empty lines left out."""
    parts: list[str] = []
    first = 0
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        stripped = line.lstrip(" \t\f")
        if not parts:
            if not stripped or stripped[0] in "#!":
                continue
            first = number
        backslashes = len(stripped) - len(stripped.rstrip("\\"))
        if backslashes % 2:
            parts.append(stripped[:-1])
            continue
        yield first, "".join((*parts, stripped))
        parts = []
    if parts:
        yield first, "".join(parts)


def _unescaped(text: str, path: Path, number: int) -> str:
    def replace(match: re.Match[str]) -> str:
        if match["bad"]:
            raise UsageError(f"{path}:{number}: \\u without four hexadecimal digits; expected: such as \\u00e9")
        if match["code"]:
            return chr(int(match["code"], 16))
        return _CONTROL.get(match["letter"], match["letter"])

    # Two escapes may be the surrogates of one character.
    return _ESCAPE.sub(replace, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
