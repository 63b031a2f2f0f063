"""The topics: their names, and the largest record that each takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

DEFAULT_PREFIX = "mqtwin"
READ, WRITE, CREATE, DESCRIBE = "READ", "WRITE", "CREATE", "DESCRIBE"  # operations on a topic, as Kafka names them
# Kafka's default of message.max.bytes: 1 MiB and the 12 bytes of a log entry's head.
BROKER_DEFAULT_MAX_MESSAGE_BYTES = 1_048_588
RESERVED_BYTES = 8 * 1024  # of a record beside its value: batch and record heads, key, headers (reason, detail, source)


@dataclass(frozen=True, slots=True)
class Topics:
    """Names of the topics: ``<prefix>.events`` in; ``.state``, ``.alerts`` and ``.dlq`` out.

    ``.reports`` is internal: the job writes the reports of stores to those they share, and reads them back. ``.notes``
    is for people: the job never reads it.

    Args:
        prefix: prefix of these names.
        otlp: topic of an OpenTelemetry collector, which the job reads beside them; None: there is none.
    """

    prefix: str = DEFAULT_PREFIX
    otlp: str | None = None

    @property
    def events(self) -> str:
        """Events, written by producers, key = store."""
        return f"{self.prefix}.events"

    @property
    def state(self) -> str:
        """State records, compacted, key = store."""
        return f"{self.prefix}.state"

    @property
    def alerts(self) -> str:
        """Alerts, compacted, key = alert id."""
        return f"{self.prefix}.alerts"

    @property
    def dlq(self) -> str:
        """Dead letters."""
        return f"{self.prefix}.dlq"

    @property
    def reports(self) -> str:
        """Reports of stores to those they share, key = the shared store."""
        return f"{self.prefix}.reports"

    @property
    def notes(self) -> str:
        """Notes of people on alerts, key = alert id."""
        return f"{self.prefix}.notes"

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
