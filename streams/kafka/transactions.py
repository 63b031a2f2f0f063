"""The watch over open transactions, which hold back later records from a job that reads committed ones.

A partition is read up to its last stable offset, where the oldest open transaction begins. Records behind it, of the
transaction and of everybody else, are read once it has ended. A transaction whose producer is gone ends after its
`transaction.timeout.ms`, a hanging one never.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import structlog
from confluent_kafka import IsolationLevel, KafkaException
from confluent_kafka.admin import AdminClient, OffsetSpec

from streams.kafka.admin import admin_client, list_offsets, reason_of
from twin.errors import MqtwinError

ISOLATION = "isolation.level"
COMMITTED = "read_committed"
LOOK_SECONDS = 5.0  # between two questions to Kafka
STANDING_SECONDS = 60.0  # of a stable offset, until a warning: Kafka's default of transaction.timeout.ms
_ANSWER_SECONDS = 10.0
_REMEDY = "end its producer's transaction; kafka-transactions.sh finds one that hangs (find-hanging) and aborts it"

_log = structlog.get_logger("mqtwin.stream")


@dataclass(frozen=True, slots=True)
class PartitionEnd:
    """The ends of a partition. stable: the last stable offset; end: offset of the next record."""

    topic: str
    partition: int
    stable: int
    end: int

    @property
    def held_records(self) -> int:
        """Records that open transactions hold back, control records among them."""
        return max(0, self.end - self.stable)


@dataclass(frozen=True, slots=True)
class HeldRecords:
    """The records that open transactions hold back. records: in all partitions; partitions: the number of all."""

    records: int = 0
    partitions: int = 1

    @property
    def mean(self) -> float:
        """Records per partition."""
        return self.records / max(self.partitions, 1)


class TransactionWatch:
    """The last stable offsets of the topics that a job reads; a warning for one that stands still. `ends` raises
    MqtwinError if Kafka does not answer.
    """

    def __init__(
        self, ends: Callable[[], Iterable[PartitionEnd]], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._ends, self._monotonic = ends, monotonic
        self._looked_s = -LOOK_SECONDS
        self._held = HeldRecords()
        self._held_back: list[PartitionEnd] = []
        self._standing: dict[tuple[str, int], tuple[int, float]] = {}  # stable offset, and since when
        self._warned: dict[tuple[str, int], int] = {}  # stable offset of the last warning

    def look(self) -> HeldRecords:
        """Return what is held back, as of at most `LOOK_SECONDS` ago, and warn of transactions open for long.
        MqtwinError: Kafka does not answer.
        """
        now_s = self._monotonic()
        if now_s - self._looked_s < LOOK_SECONDS:
            return self._held
        self._looked_s = now_s
        ends = list(self._ends())
        self._held_back = [end for end in ends if end.held_records]
        self._held = HeldRecords(sum(end.held_records for end in self._held_back), len(ends))
        standing = {}
        for end in self._held_back:
            place = end.topic, end.partition
            stable, since_s = self._standing.get(place, (-1, now_s))
            standing[place] = end.stable, since_s if stable == end.stable else now_s
            stands_s = now_s - standing[place][1]
            if stands_s >= STANDING_SECONDS and self._warned.get(place) != end.stable:
                self._warned[place] = end.stable
                self._warn(end, open_s=round(stands_s))
        self._standing = standing
        return self._held

    def report_left(self) -> None:
        """Warn of everything that a job leaves unread at its end. MqtwinError: Kafka does not answer."""
        self._looked_s = self._monotonic() - LOOK_SECONDS
        self.look()
        for end in self._held_back:
            if self._warned.get((end.topic, end.partition)) != end.stable:
                self._warn(end)

    def _warn(self, end: PartitionEnd, **fields: int) -> None:
        _log.warning(
            "an open transaction holds back records",
            topic=end.topic,
            partition=end.partition,
            stable_offset=end.stable,
            end_offset=end.end,
            records=end.held_records,
            **fields,
            effect="they are read when it ends, and none before",
            remedy=_REMEDY,
        )


def reads_committed(kafka: Mapping[str, str]) -> bool:
    """Return True unless the user's client settings ask for uncommitted records."""
    user = {key.removeprefix("kafka."): value for key, value in kafka.items()}
    return user.get(ISOLATION, COMMITTED).lower() == COMMITTED


def watch_transactions(kafka: Mapping[str, str], topics: Iterable[str]) -> TransactionWatch | None:
    """Return the watch over topics; None if the user's settings ask for uncommitted records."""
    if not reads_committed(kafka):
        return None
    names, admin = tuple(topics), admin_client(kafka)
    return TransactionWatch(lambda: partition_ends(admin, names))


def partition_ends(admin: AdminClient, topics: Iterable[str]) -> list[PartitionEnd]:
    """Return the ends of all partitions of some topics. MqtwinError: no broker answers, or it refuses."""

    def ask(level: IsolationLevel) -> dict[tuple[str, int], int]:
        return list_offsets(admin, partitions, OffsetSpec.latest(), isolation=level, seconds=_ANSWER_SECONDS)

    try:
        partitions = {name: admin.list_topics(name, timeout=_ANSWER_SECONDS).topics[name].partitions for name in topics}
        ends = ask(IsolationLevel.READ_UNCOMMITTED)  # first: a record that comes meanwhile is not taken for a held one
        stable = ask(IsolationLevel.READ_COMMITTED)
    except KafkaException as error:
        raise MqtwinError(f"topics {', '.join(topics)}: their ends cannot be read: {reason_of(error)}") from error
    return [PartitionEnd(*place, stable.get(place, end), end) for place, end in ends.items()]
