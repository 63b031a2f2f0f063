"""Options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Group, Parameter

from twin.errors import UsageError

KAFKA = Group("Kafka", sort_key=1)


def parse_settings(option: str, settings: Iterable[str]) -> dict[str, str]:
    """The ``key=value`` items of a repeated option; the last one of a key counts, a value may hold ``=``.

    Raises:
        UsageError: an item without ``=`` or without a key.
    """
    pairs: dict[str, str] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{option} {setting}: a setting is written key=value")
        pairs[key.strip()] = value
    return pairs


@Parameter(name="*", group=KAFKA)
@dataclass(frozen=True, kw_only=True)
class KafkaOptions:
    """What every command that meets Kafka takes.

    Raises:
        UsageError: an address that is not HOST:PORT, a prefix that no topic name may have, a setting without ``=``.
    """

    bootstrap_servers: Annotated[str, Parameter(help="Kafka's address, HOST:PORT; several with commas.")]
    topic_prefix: Annotated[str, Parameter(help="Beginning of every topic's name.")] = "mqtwin"
    kafka: Annotated[
        tuple[str, ...],
        Parameter(help="A setting of the Kafka client, KEY=VALUE; may be repeated.", negative=""),
    ] = ()

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

    def client(self) -> dict[str, str]:
        """The settings for a client: the address, and what --kafka gives."""
        return {"bootstrap.servers": self.bootstrap_servers, **parse_settings("--kafka", self.kafka)}
