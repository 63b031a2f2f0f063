"""Java properties files as a source of client settings, secrets among them (``--kafka-file``).

A secret does not leave its file: the settings hold a reference to it, `${mqtwin:PATH:KEY}`. Kafka's Java client, in
Spark's driver and executors, resolves the reference itself. For librdkafka it is resolved when a client is created. So
no plan, log, checkpoint or process list can hold the secret.

Sources: java.util.Properties, "load"; Kafka documentation, "Configuration providers" (FileConfigProvider).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from twin.errors import UsageError

PROVIDER = "mqtwin"  # the name under which Kafka's FileConfigProvider is configured
_PROVIDER_CLASS = "org.apache.kafka.common.config.provider.FileConfigProvider"
_REFERENCE = re.compile(r"\$\{\w+:(?P<path>[^:}]+):(?P<key>[^}]+)\}")
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(?:u(?P<code>[0-9a-fA-F]{4})|(?P<bad>u)|(?P<letter>.))", re.DOTALL)
_KEY = re.compile(r"(?P<key>(?:\\.|[^\\=:\s])*)[ \t\f]*[=:]?[ \t\f]*(?P<value>.*)", re.DOTALL)


def read_properties(path: Path) -> dict[str, str]:
    """Return the properties of a file in UTF-8, parsed as Java does; the last line of a key counts.

    Raises:
        UsageError: the file cannot be read or is not text, or an escape is incomplete. The message quotes nothing of
            the file.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; expected: a readable properties file") from error
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8; expected: a properties file, lines of KEY=VALUE") from None
    properties: dict[str, str] = {}
    for number, line in _logical_lines(text):
        parts = _KEY.fullmatch(line)
        if parts is None or not parts["key"]:
            raise UsageError(f"{path}:{number}: no key; expected: KEY=VALUE")
        properties[_unescaped(parts["key"], path, number)] = _unescaped(parts["value"], path, number)
    return properties


def reference(path: Path, key: str) -> str:
    """Return the reference to the value of a key in a properties file.

    Raises:
        UsageError: a reference cannot hold the path.
    """
    absolute = str(path.absolute())
    if re.search(r"[:}$,]", absolute):
        raise UsageError(f"{absolute}: expected: the path of a properties file without any of : }} $ ,")
    return f"${{{PROVIDER}:{absolute}:{key}}}"


def resolve_references(text: str) -> str:
    """Return the text with each ``${file:PATH:KEY}`` replaced from its properties file.

    Raises:
        UsageError: the file cannot be read, or has no such key.
    """

    def look_up(match: re.Match[str]) -> str:
        properties = read_properties(Path(match["path"]))
        if match["key"] not in properties:
            raise UsageError(f"{match['path']} has no {match['key']}; expected: a line for {match[0]}")
        return properties[match["key"]]

    return _REFERENCE.sub(look_up, text)


def has_reference(text: str) -> bool:
    """Return True if a value refers to a file."""
    return _REFERENCE.search(text) is not None


def provider_settings(path: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that make Kafka's Java client resolve `reference`.

    Args:
        path: the properties file.
        settings: those of the user; their own providers are kept.
    """
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
