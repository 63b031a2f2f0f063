"""The topics: their names, the largest record that each takes, and their records as surfaces take them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import structlog

DEFAULT_PREFIX = "mqtwin"
READ, WRITE, CREATE, DESCRIBE = "READ", "WRITE", "CREATE", "DESCRIBE"  # operations on a topic, as Kafka names them
# Kafka's default of message.max.bytes: 1 MiB and the 12 bytes of a log entry's head.
BROKER_DEFAULT_MAX_MESSAGE_BYTES = 1_048_588
RESERVED_BYTES = 8 * 1024  # of a record beside its value: batch and record heads, key, headers (reason, detail, source)
_MAX_REASON = 200  # characters of the reason in the log

_T = TypeVar("_T")

_log = structlog.get_logger("mqtwin.topics")


class _Name:
    """The name of a topic behind the prefix of `Topics`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, topics: Topics, _: object = None) -> str:
        return f"{topics.prefix}.{self._name}"


@dataclass(frozen=True, slots=True)
class Topics:
    """Names of the topics: ``<prefix>.events`` in; ``.state``, ``.alerts`` and ``.dlq`` out.

    ``.reports`` is internal: the job writes the reports of stores to those they share, and reads them back. ``.notes``
    is for people, ``.acts`` for changes that they request: the job reads neither. `otlp` is the topic of an
    OpenTelemetry collector, which the job reads too.
    """

    prefix: str = DEFAULT_PREFIX
    otlp: str | None = None

    events = _Name("events")  # written by producers, key = store
    state = _Name("state")  # state records, compacted, key = store
    alerts = _Name("alerts")  # compacted, key = alert id
    dlq = _Name("dlq")  # dead letters
    reports = _Name("reports")  # of stores to those they share, key = the shared store
    notes = _Name("notes")  # of people on alerts, key = alert id
    acts = _Name("acts")  # changes that people request, and what became of them, key = id of the request

    @property
    def out(self) -> tuple[str, str, str, str]:
        """The topics that the job writes."""
        return (self.state, self.alerts, self.dlq, self.reports)

    @property
    def read(self) -> tuple[str, ...]:
        """The topics that the job reads."""
        return (self.events, self.reports, *((self.otlp,) if self.otlp is not None else ()))

    @property
    def rights(self) -> dict[str, tuple[str, ...]]:
        """The operations that the job needs, by topic."""
        return {**dict.fromkeys(self.read, (READ,)), **dict.fromkeys(self.out, (WRITE,)), self.reports: (READ, WRITE)}


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest value of a record, in bytes, of each topic that the job writes.

    smallest: the smallest ``max.message.bytes`` of these topics.
    """

    state: int
    alerts: int
    dlq: int
    reports: int = BROKER_DEFAULT_MAX_MESSAGE_BYTES - RESERVED_BYTES
    smallest: int = BROKER_DEFAULT_MAX_MESSAGE_BYTES

    @classmethod
    def of_records(cls, records: Mapping[str, int], topics: Topics) -> Limits:
        """Return the limits for ``max.message.bytes`` of each topic."""
        sizes = [records[topic] for topic in topics.out]
        return replace(cls(*(max(1, size - RESERVED_BYTES) for size in sizes)), smallest=min(sizes))

    @property
    def request(self) -> int:
        """The request size that the sink's producer needs, in bytes: the largest record with key and headers."""
        return max(self.state, self.alerts, self.dlq, self.reports) + RESERVED_BYTES


class TopicRecord(NamedTuple):
    """A record of a topic."""

    topic: str  # its full name
    written_ms: int  # since 1970, never later than that of reading; that of reading if the record has none
    value: bytes | None  # None for a tombstone
    headers: dict[str, str]
    key: bytes = b""  # empty if there is none


class RecordGuard:
    """The one way in which surfaces take a record: one that cannot be taken costs itself and nothing else."""

    def __init__(self) -> None:
        self.unreadable = 0  # records that could not be taken

    def take(self, record: TopicRecord, fold: Callable[[TopicRecord], _T]) -> _T | None:
        """Return what `fold` returns of a record; None if it raises, which is counted and logged.

        The log gets the first, second, fourth, eighth ... of them, so nobody can fill it.
        """
        try:
            return fold(record)
        except Exception as error:  # noqa: BLE001 -- who may write to a topic decides what its records hold: nesting raises RecursionError, numbers OverflowError, odd fields TypeError
            self.unreadable += 1
            if self.unreadable & (self.unreadable - 1) == 0:
                why = " ".join(f"{type(error).__name__}: {error}".split())[:_MAX_REASON]
                key = record.key[:_MAX_REASON].decode(errors="replace")
                _log.warning("record unreadable", topic=record.topic, key=key, why=why, unreadable=self.unreadable)
            return None
