"""Options that several commands share, those that name files among them.

A command says by the type of a file option what it reads and what it writes. Before a command runs, `check_files`
refuses an output that would replace one of its inputs or another output.
"""

from __future__ import annotations

import inspect
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from cyclopts import Group, Parameter

from deploy.show.document import ZONE
from deploy.show.terminal import command_line, print_warnings, printable
from streams.kafka.settings import foreign_settings, read_kafka_file
from twin.base.errors import UsageError
from twin.base.hooks import SINKS, WithAdded
from twin.base.outputs import is_same_file, is_stream
from twin.base.units import event_time, zone_of
from twin.records import AlertRecord

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from streams.kafka.topics import Topics
    from twin.estate import Estate


# --- files ------------------------------------------------------------------------------------------------------------

_READ_BY_OTHERS = stat.S_IRGRP | stat.S_IROTH


@dataclass(frozen=True, kw_only=True)
class FileUse:
    """The way in which a command uses the file or folder that an option names."""

    is_written: bool = False  # otherwise it is read
    is_folder: bool = False
    is_secret: bool = False  # nobody else should read it
    path_of: Callable[[Any], Path | None] = Path  # path in the value of the option; None: it names no file
    parts_of: Callable[[Path], tuple[Path, ...]] = lambda _: ()  # further files that are read with it


class NamedFile(NamedTuple):
    """A file or folder that an argument of a command names."""

    option: str
    use: FileUse
    path: Path


def texts_of(estate: Path) -> tuple[Path, ...]:
    """Return the files that an estate imports; none if it cannot be read, which whoever loads it reports."""
    from twin.estate.errors import EstateError
    from twin.estate.sources import read_toml

    try:
        return tuple(text.path for text in read_toml(estate).imports)
    except EstateError:
        return ()


def _file_or_hyphen(_: Any, value: str | None) -> None:
    if value is not None and value.startswith("-") and value != "-":
        raise ValueError(f"{value} is an option; expected: a file, or - for standard output")


def _unless_hyphen(value: str) -> Path | None:
    return None if value == "-" else Path(value)


def _input_or_hyphen(_: Any, value: Path | None) -> None:
    if value is not None and str(value).startswith("-") and str(value) != "-":
        raise ValueError(f"{value} is an option; expected: a file, or - for standard input")


InputFile = Annotated[Path, FileUse()]
InputOrHyphen = Annotated[
    Path,
    FileUse(path_of=lambda value: _unless_hyphen(str(value))),
    Parameter(allow_leading_hyphen=True, validator=_input_or_hyphen),
]
SecretFile = Annotated[Path, FileUse(is_secret=True)]
InputFolder = Annotated[Path, FileUse(is_folder=True)]
EstateFile = Annotated[Path, FileUse(parts_of=texts_of)]
OutputFile = Annotated[Path, FileUse(is_written=True)]  # written by `twin.base.outputs`, so that it stays on failure
OutputFolder = Annotated[Path, FileUse(is_written=True, is_folder=True)]
KeptFile = Annotated[Path, FileUse(is_written=True)]  # replaced again and again by a command that runs for long
KeptFolder = Annotated[Path, FileUse(is_written=True, is_folder=True)]
OutputOrHyphen = Annotated[
    str,
    FileUse(is_written=True, path_of=_unless_hyphen),
    Parameter(allow_leading_hyphen=True, validator=_file_or_hyphen),
]


def check_files(command: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Check the files that the arguments of a command name, before it runs. Arguments that are not given may be left
    out. UsageError: An output is an input or another output, or cannot be a file or folder of that name.
    """
    named = list(named_files(command, arguments))
    inputs = [own for own in named if not own.use.is_written]
    outputs = [own for own in named if own.use.is_written]
    for place, output in enumerate(outputs):
        _check_place(output)
        for other in inputs:
            for path in (other.path, *other.use.parts_of(other.path)):
                if is_same_file(output.path, path):
                    named_by = "" if path == other.path else f", which {other.path} names"
                    text = f"{output.option} {output.path} is an input ({other.option}{named_by})"
                    raise UsageError(f"{text}; expected: another name")
        for other in outputs[:place]:
            if is_same_file(output.path, other.path):
                options = f"{other.option} and {output.option}"
                raise UsageError(f"{options} {output.path}: two outputs in one file; expected: a file for each")


def open_secrets(command: Callable[..., Any], arguments: Mapping[str, Any]) -> list[str]:
    """Return a warning for each file of secrets that others may read. Arguments as of `check_files`."""
    warnings = []
    for own in named_files(command, arguments):
        with suppress(OSError):  # whoever reads it reports that
            mode = stat.S_IMODE(own.path.stat().st_mode) if own.use.is_secret else 0
            if mode & _READ_BY_OTHERS:
                text = f"{own.option} {own.path} can be read by others (mode {mode:o})"
                warnings.append(f"{text}; expected: chmod 600 {own.path}")
    return warnings


def named_files(command: Callable[..., Any], arguments: Mapping[str, Any]) -> Iterator[NamedFile]:
    """Yield the files and folders that arguments of a command name."""
    parameters = inspect.signature(command).parameters
    hints = get_type_hints(command, include_extras=True)
    for name, value in arguments.items():
        kind = parameters[name].kind
        is_positional = kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
        option = name.upper() if is_positional else option_name(name, hints[name])
        for item in value if kind is inspect.Parameter.VAR_POSITIONAL else (value,):
            yield from _files_in(option, hints[name], item)


def option_name(parameter: str, annotation: Any) -> str:
    """Return the name of an option by its parameter and type."""
    own = [extra.name for extra in getattr(annotation, "__metadata__", ()) if isinstance(extra, Parameter)]
    names = [text for name in own for text in ((name,) if isinstance(name, str) else name or ())]
    return next((text for text in names if text.startswith("--")), f"--{parameter.strip('_').replace('_', '-')}")


def _files_in(option: str, annotation: Any, value: Any) -> Iterator[NamedFile]:
    if value is None:
        return
    if get_origin(annotation) is Annotated:
        inner, *extras = get_args(annotation)
        use = next((extra for extra in extras if isinstance(extra, FileUse)), None)
        if use is None or isinstance(value, tuple):
            repeated = inner if use is None else tuple[Annotated[str, use], ...]
            yield from _files_in(option, repeated, value)
        elif (path := use.path_of(value)) is not None:
            yield NamedFile(option, use, path)
    elif is_dataclass(annotation) and isinstance(annotation, type):
        hints = get_type_hints(annotation, include_extras=True)
        for field in fields(annotation):
            hint = hints[field.name]
            yield from _files_in(option_name(field.name, hint), hint, getattr(value, field.name))
    elif get_origin(annotation) is tuple:
        for item in value:
            yield from _files_in(option, get_args(annotation)[0], item)
    else:
        for own in get_args(annotation):  # X | None
            yield from _files_in(option, own, value)


def _check_place(output: NamedFile) -> None:
    """Raise UsageError if an output cannot be what its name is already, or has no folder."""
    path, text = output.path, f"{output.option} {output.path}"
    if output.use.is_folder:
        if path.exists() and not path.is_dir():
            raise UsageError(f"{text} is a file; expected: a folder")
    elif path.is_dir():
        raise UsageError(f"{text} is a folder; expected: a file")
    elif not is_stream(path):
        if not path.absolute().parent.is_dir():
            raise UsageError(f"{text}: its folder does not exist; expected: a file in a folder that exists")
        if not all(os.access(place, os.W_OK) for place in (path.absolute().parent, path) if place.exists()):
            raise UsageError(f"{text} may not be written; expected: a file and a folder that may be")


# --- other options ----------------------------------------------------------------------------------------------------

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
