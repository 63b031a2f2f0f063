"""Options that several commands share."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from streams.kafka.settings import read_kafka_file
from twin.errors import UsageError

KAFKA = Group("Kafka", sort_key=1)


def parse_settings(option: str, settings: Iterable[str]) -> dict[str, str]:
    """Return the ``key=value`` items of a repeated option; the last one of a key counts, a value may hold ``=``.

    Raises:
        UsageError: an item without ``=`` or without a key. It may be a secret: the message does not repeat it.
    """
    pairs: dict[str, str] = {}
    for number, setting in enumerate(settings, 1):
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            which = "" if number == 1 else f" number {number}"
            missing = "=" if not equals else "key"
            raise UsageError(f"{option}{which} has no {missing}; expected: {option} KEY=VALUE")
        pairs[key.strip()] = value
    return pairs


def start_time(text: str) -> int:
    """Microseconds since 1970 of --start. UsageError where it is no time of an event."""
    from twin.events import EventError
    from twin.events.fields import FIELD

    try:
        return int(FIELD["time"].checked(text))
    except EventError as error:
        raise UsageError(f"--start: {error.detail}") from None


@Parameter(name="*", group=KAFKA)
@dataclass(frozen=True, kw_only=True)
class KafkaOptions:
    """What every command that meets Kafka takes.

    Raises:
        UsageError: an address that is not HOST:PORT, a prefix that no topic name may have, a setting without ``=``, a
            file of settings that cannot be read.
    """

    bootstrap_servers: Annotated[str, Parameter(help="Kafka's address, HOST:PORT; several with commas.")]
    topic_prefix: Annotated[str, Parameter(help="Beginning of every topic's name.")] = "mqtwin"
    kafka: Annotated[
        tuple[str, ...],
        Parameter(help="A setting of the Kafka client, KEY=VALUE; may be repeated.", negative=""),
    ] = ()
    kafka_file: Annotated[
        Path | None,
        Parameter(help="A properties file with settings of the Kafka client, for secrets; --kafka wins over it."),
    ] = None

    def __post_init__(self) -> None:
        for address in self.bootstrap_servers.split(","):
            host, colon, port = address.strip().rpartition(":")
            if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
                raise UsageError(f"--bootstrap-servers {address.strip()}: an address is HOST:PORT, as localhost:9092")
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,200}", self.topic_prefix):  # Kafka: at most 249 in a topic's name
            raise UsageError(
                f"--topic-prefix {self.topic_prefix}: 1 to 200 letters, digits, points, underscores, hyphens are right"
            )
        parse_settings("--kafka", self.kafka)
        if self.kafka_file is not None:
            self._check_file(self.kafka_file)

    def settings(self) -> dict[str, str]:
        """Return the settings of --kafka-file, its secrets as references to it, and of --kafka, which win."""
        given = parse_settings("--kafka", self.kafka)
        if self.kafka_file is None:
            return given
        of_file = read_kafka_file(self.kafka_file)
        of_file.pop("bootstrap.servers", None)  # the option says where Kafka is
        providers = [setting["config.providers"] for setting in (given, of_file) if "config.providers" in setting]
        return {**of_file, **given} | ({"config.providers": ",".join(providers)} if providers else {})

    def client(self) -> dict[str, str]:
        """Return the settings of a client: the address, and those of `settings`."""
        return {"bootstrap.servers": self.bootstrap_servers, **self.settings()}

    @staticmethod
    def _check_file(path: Path) -> None:
        read_kafka_file(path)
        mode = path.stat().st_mode & 0o777
        if mode & 0o044:
            _warn(f"--kafka-file {path} can be read by others (mode {mode:o}); expected: chmod 600 {path}")


def _warn(text: str) -> None:
    print(f"mqtwin: warning: {text}", file=sys.stderr)
