"""Options that several commands share."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_type_hints

from cyclopts import Group, Parameter

from deploy.options.files import SecretFile, option_name
from deploy.show.document import ZONE
from deploy.show.terminal import command_line, print_warnings, printable
from streams.kafka.settings import foreign_settings, read_kafka_file
from twin.errors import UsageError
from twin.hooks import SINKS, WithAdded
from twin.records import AlertRecord
from twin.units import event_time, zone_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from streams.kafka.topics import Topics
    from twin.estate import Estate

Flag = Annotated[bool, Parameter(negative="")]
Repeated = Annotated[tuple[str, ...], Parameter(negative="", show_default=False)]
KAFKA = Group("Kafka", sort_key=1)
TOKENS: ContextVar[tuple[str, ...]] = ContextVar("TOKENS", default=())  # arguments of mqtwin, to print the next command
MAX_HOURS = 8784.0  # a year: more is a slip, and overflows somewhere
MAX_SECONDS = 3600 * MAX_HOURS


def open_estate(path: Path) -> Estate:
    """Return the estate of a file, and print its warnings; what follows is printed in the zone of its site.

    UsageError: the file or a text that it imports is wrong.
    """
    from twin.estate import load_estate

    estate = load_estate(path)
    ZONE.set(estate.site.clock)
    print_warnings(estate.warnings)
    return estate


def parse_zone(text: str) -> tzinfo:
    """Return the zone of --zone. UsageError: there is none of that name."""
    try:
        return zone_of(text)
    except ValueError as error:
        raise UsageError(f"--zone {error}") from None


def words_of(options: DataclassInstance) -> tuple[str, ...]:
    """Return the arguments of a command line that give a class of options these values, those of defaults left out."""
    hints = get_type_hints(type(options), include_extras=True)
    words: list[str] = []
    for own in fields(options):
        value, name = getattr(options, own.name), option_name(own.name, hints[own.name])
        if value != own.default:
            values = value if isinstance(value, tuple) else (value,)
            words += (name if each is True else f"{name}={each}" for each in values)
    return tuple(words)


def parse_settings(option: str, settings: Iterable[str]) -> dict[str, str]:
    """Return the ``key=value`` items of a repeated option. The last value of a key counts; a value may contain ``=``.
    UsageError: An item has no ``=`` or no key. The message does not repeat the item: it may be a secret.
    """
    pairs: dict[str, str] = {}
    for number, setting in enumerate(settings, 1):
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            position = "" if number == 1 else f" number {number}"
            missing = "=" if not equals else "key"
            raise UsageError(f"{option}{position} has no {missing}; expected: {option} KEY=VALUE")
        pairs[key.strip()] = value
    return pairs


def parse_address(text: str) -> tuple[str, int]:
    """Return host and port of --listen; an IPv6 address stands in brackets. UsageError: `text` is not HOST:PORT."""
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isascii() and port.isdigit() and int(port) < 65536):
        raise UsageError(f"--listen {text}; expected: HOST:PORT, such as 127.0.0.1:9746")
    return host.strip("[]"), int(port)


def parse_time(option: str, text: str) -> int:
    """Return the time of an option, such as --at, in microseconds since 1970. UsageError: `text` is no such time."""
    try:
        return event_time(text)
    except ValueError as error:
        raise UsageError(f"{option} {error}") from None


@Parameter(name="*", group=KAFKA)
@dataclass(frozen=True, kw_only=True)
class KafkaOptions:
    """Options of every command that connects to Kafka. UsageError: An address is not HOST:PORT, the prefix is not valid
    in topic names, a setting has no ``=``, or the file of settings cannot be read.

    Args:
        bootstrap_servers: Kafka addresses, HOST:PORT, separated by commas.
        topic_prefix: Prefix of all topic names.
        kafka: Kafka client setting, KEY=VALUE; may be repeated.
        kafka_file: Properties file with Kafka client settings, for secrets; --kafka overrides it.
    """

    bootstrap_servers: str
    topic_prefix: str = "mqtwin"
    kafka: Repeated = ()
    kafka_file: SecretFile | None = None

    def __post_init__(self) -> None:
        for address in self.bootstrap_servers.split(","):
            host, colon, port = address.strip().rpartition(":")
            if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
                raise UsageError(f"--bootstrap-servers {address.strip()}; expected: HOST:PORT, such as localhost:9092")
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,200}", self.topic_prefix):  # Kafka: up to 249 in a topic name
            raise UsageError(
                f"--topic-prefix {self.topic_prefix}; expected: 1 to 200 letters, digits, points, underscores, hyphens"
            )
        parse_settings("--kafka", self.kafka)
        if self.kafka_file is not None:
            self._check_file(self.kafka_file)

    def settings(self) -> dict[str, str]:
        """Return the settings of --kafka-file, with references for its secrets, overridden by those of --kafka."""
        from_options = parse_settings("--kafka", self.kafka)
        if self.kafka_file is None:
            return from_options
        from_file = read_kafka_file(self.kafka_file)
        from_file.pop("bootstrap.servers", None)  # the address comes from --bootstrap-servers
        sources = (from_options, from_file)
        providers = [source["config.providers"] for source in sources if "config.providers" in source]
        return {**from_file, **from_options} | ({"config.providers": ",".join(providers)} if providers else {})

    @property
    def topics(self) -> Topics:
        """The names of the topics."""
        from streams.kafka.topics import Topics

        return Topics(self.topic_prefix)

    def client(self) -> dict[str, str]:
        """Return all client settings: the address, and those of `settings`."""
        return {"bootstrap.servers": self.bootstrap_servers, **self.settings()}

    @staticmethod
    def _check_file(path: Path) -> None:
        read_kafka_file(path)
        passed = foreign_settings(path)
        if passed:
            _warn(f"--kafka-file {path}: passed over are settings of other clients: {', '.join(passed)}")
        mode = path.stat().st_mode & 0o777
        if mode & 0o044:
            right = command_line(["chmod", "600", str(path)])
            _warn(f"--kafka-file {path} can be read by others (mode {mode:o}); expected: {right}")


def record_events(kafka: KafkaOptions, folder: Path) -> Path:
    """Record the events topic up to its present end in a file of a folder; return its path."""
    from streams.kafka.record import record

    path = folder / "events.ndjson.zst"
    record(path, kafka.client(), kafka.topics)
    return path


def _warn(text: str) -> None:
    print(printable(f"mqtwin: warning: {text}"), file=sys.stderr)


Sink = Callable[[str], AbstractContextManager[Callable[[AlertRecord], object]]]


def _check(sink: Sink) -> str:
    return "" if callable(sink) else "a function of a text that returns a context manager"


ADDED_SINKS: WithAdded[Sink] = WithAdded(SINKS, {}, _check)


@contextmanager
def open_sink(words: str | None) -> Iterator[Callable[[AlertRecord], object]]:
    """Yield what takes each alert record. words: NAME or NAME:TEXT; None: nothing does. UsageError: no such sink."""
    if words is None:
        yield lambda _: None
        return
    name, _, text = words.partition(":")
    if name not in ADDED_SINKS:
        there_are = ", ".join(ADDED_SINKS) or "one that a distribution adds, docs/hooks.md: none is installed"
        raise UsageError(f"--sink {name}: no such sink; expected: {there_are}")
    with ADDED_SINKS[name](text) as deliver:
        yield deliver
