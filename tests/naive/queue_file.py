"""The file of one queue of a distributed queue manager: blocks and buffers, log and checkpoints.

Sources: domain.md, 5, and the document "Distributed queue manager internals", "Views of the Queue"
(`distributed-queue-manager-internals.txt`).
"""

from dataclasses import dataclass
from typing import Any

from tests.naive.baseline import NaiveBaseline, beyond
from tests.naive.clock import TICK_US
from tests.naive.pools import rounded_up
from tests.naive.private import NaivePrivateStore, in_bytes
from tests.naive.store import Event
from tests.naive.units import Message, Unit, fields_of

BLOCK_BYTES = 512
DESCRIPTOR = 364  # domain.md, 5 (an assumption there)
NONPERSISTENT_BUFFER = 128 * 1024  # bytes: the default, doubled on 64 bit
PERSISTENT_BUFFER = 256 * 1024
DEFAULTS = {
    "max_size": 2_088_960 * 1024**2,
    "file_system_size": None,
    "default_q_buffer_size": NONPERSISTENT_BUFFER,
    "default_pq_buffer_size": PERSISTENT_BUFFER,
}
CHECKPOINT_RECORDS = 10_000  # log records
CHECKPOINT_US = 30 * 60 * 1_000_000
CHECKPOINT_LEAST = 100  # log records, of a checkpoint that time brings
OVERSIZED_BYTES = 16 * 1024
OVERSIZED_PCT = 1


def blocks_of_length(length: int) -> int:
    """Blocks of a message (domain.md, 5)."""
    return rounded_up(length + DESCRIPTOR, BLOCK_BYTES)


@dataclass(eq=False, kw_only=True)
class QueueFileMessage(Message):
    """A message of a queue file."""

    blocks: int


class NaiveQueueFile(NaivePrivateStore):
    """The twin of one queue file.

    `described`: its attributes as the estate names them.
    """

    messages: list[QueueFileMessage]
    unit = "blocks"

    def __init__(self, described: dict[str, Any], aliases: dict[str, str] | None = None) -> None:
        super().__init__(described, DEFAULTS, aliases)
        self.file_blocks = 0
        self.log_records = 0
        self.records_since = 0  # the last checkpoint
        self.checkpoints = 0
        self.truncations = 0
        self.checkpoint_at: int | None = None  # when the last checkpoint was, else the first tick; None: neither yet
        self.persistent_update = False  # since the last checkpoint

    # -- what a message costs

    def _fits(self, event: Event) -> bool:
        """It fits where its buffer takes it all, or the file is not larger than it may be (our reading)."""
        needed = self._needed(blocks_of_length(event["length"]), event.get("persistent", False))
        return needed == self._needed() or needed <= self._largest_file()

    def _keep(self, event: Event) -> QueueFileMessage:
        message = QueueFileMessage(**fields_of(event, self._queue(event)), blocks=blocks_of_length(event["length"]))
        self.file_blocks = max(self.file_blocks, self._needed(message.blocks, message.persistent))
        return message

    def _largest_file(self) -> int:
        """Blocks the file may have: its own limit, or the file system's where that is smaller."""
        sizes = [self.attributes["max_size"], self.attributes["file_system_size"]]
        return int(min(size for size in sizes if size is not None)) // BLOCK_BYTES

    def _free(self, message: QueueFileMessage) -> None:
        """The file keeps the blocks, free and allocated, until it is truncated."""

    def _buffer(self, persistent: bool) -> int:
        """Blocks of one of the two buffers."""
        name = "default_pq_buffer_size" if persistent else "default_q_buffer_size"
        return int(self.attributes[name]) // BLOCK_BYTES

    def _of_model(self, persistent: bool) -> int:
        return sum(message.blocks for message in self.messages if message.persistent == persistent)

    def _needed(self, coming: int = 0, persistent: bool = False) -> int:
        """Blocks of the file that hold data: what neither buffer holds (our reading), with those of a put to come."""
        needed = 0
        for kind in (True, False):
            in_use = self._in_use(kind) + (coming if kind == persistent else 0)
            needed += max(0, in_use - self._buffer(kind))
        return needed

    # -- log and checkpoints

    def _put_done(self, message: Message, unit: Unit | None) -> None:  # noqa: ARG002
        """A persistent put writes a log record."""
        if message.persistent:
            self._log()

    def _taking(self, message: Message, unit: Unit | None, operation: str) -> None:  # noqa: ARG002
        """A persistent get or expiry writes a log record, before its blocks are free (our reading)."""
        if message.persistent:
            self._log()

    def _ending(self, operations: list[tuple[str, Message]]) -> None:
        """A commit or backout writes a log record where there was a persistent operation, before it takes effect.

        The document's "MQCMIT Walkthrough": "Once the log records have been written to the disk all changes under this
        transaction are made visible".
        """
        if any(message.persistent for _, message in operations):
            self._log()

    def _cleared(self, removed: list[Message]) -> None:
        """CLEAR truncates at once, and writes one log record where it removed persistent messages."""
        self._truncate()
        if any(message.persistent for message in removed):
            self._log()

    def _log(self) -> None:
        """One more log record; the 10,000th since the last checkpoint brings the next."""
        self.log_records += 1
        self.records_since += 1
        self.persistent_update = True
        if self.records_since == CHECKPOINT_RECORDS:
            self._checkpoint(self._now())

    def _ticks(self, before: int, until: int) -> None:
        """A checkpoint at the first tick 30 minutes after the last, or later, as soon as there are 100 log records.

        Our reading: the first 30 minutes begin with the first tick after the first event.
        """
        if self.checkpoint_at is None:
            self.checkpoint_at = (before + 1) * TICK_US
        for tick in range(before + 1, until + 1):
            if self.records_since < CHECKPOINT_LEAST:
                return  # nor will the ticks to come bring one
            if tick * TICK_US - self.checkpoint_at >= CHECKPOINT_US:
                self._checkpoint(tick * TICK_US)

    def _turned_back(self, now: int) -> None:
        """The last checkpoint was now, if it was later."""
        if self.checkpoint_at is not None:
            self.checkpoint_at = min(self.checkpoint_at, now)

    def _checkpoint(self, at: int) -> None:
        """Truncate the file where it is oversized by both 1 % and 16 KB, if there was a persistent update."""
        self.checkpoints += 1
        self.checkpoint_at = at
        self.records_since = 0
        free = self.file_blocks - self._needed()
        oversized = free * BLOCK_BYTES >= OVERSIZED_BYTES and free * 100 >= OVERSIZED_PCT * self.file_blocks
        if self.persistent_update and oversized:
            self._truncate()
        self.persistent_update = False

    def _truncate(self) -> None:
        """Give the free blocks of the file back, if there are any."""
        if self.file_blocks > self._needed():
            self.truncations += 1
        self.file_blocks = self._needed()

    # -- ALTER, MEASURE

    def _alter(self, attributes: dict[str, Any]) -> None:
        """Attributes count from this event on; a file larger than it may be is a fact."""
        self.attributes |= in_bytes(attributes)

    def _new_baseline(self, measured: dict[str, Any]) -> NaiveBaseline:
        """Our reading: the file is at least as large as measured, in whole blocks."""
        blocks = super()._new_baseline(measured).shown
        file_bytes = beyond(measured, "file_bytes", self.file_blocks * BLOCK_BYTES)
        self.baseline = NaiveBaseline(blocks | {"file_bytes": file_bytes}, self.held.unmatched())
        self.file_blocks = max(self.file_blocks + rounded_up(file_bytes, BLOCK_BYTES), self._needed())
        return self.baseline

    def _compared(self, measured: dict[str, Any]) -> list[tuple[int, int, int]]:
        """Blocks with persistent data, with nonpersistent data, the file: in percent of all blocks there are."""
        model = self._fields()
        compared = [
            (model[name], measured[name], model["blocks"])
            for name in ("blocks_persistent", "blocks_nonpersistent")
            if measured.get(name) is not None
        ]
        if measured.get("file_bytes") is not None:
            compared.append((model["file_bytes"], measured["file_bytes"], model["blocks"] * BLOCK_BYTES))
        return compared

    def _has_acted(self) -> None:
        """The file holds what the buffers do not, also what comes back to the baseline (our reading)."""
        self.file_blocks = max(self.file_blocks, self._needed())

    # -- the state record

    def _fields(self) -> dict[str, Any]:
        """blocks = free + allocated + nonpersistent + persistent = those of both buffers + those of the file.

        Free blocks of the buffers are `blocks_free`, free blocks of the file `blocks_allocated` (our reading).
        """
        persistent, nonpersistent = self._in_use(persistent=True), self._in_use(persistent=False)
        return {
            "blocks": self._buffer(True) + self._buffer(False) + self.file_blocks,
            "blocks_free": max(0, self._buffer(True) - persistent) + max(0, self._buffer(False) - nonpersistent),
            "blocks_allocated": self.file_blocks - self._needed(),
            "blocks_nonpersistent": nonpersistent,
            "blocks_persistent": persistent,
            "file_bytes": self.file_blocks * BLOCK_BYTES,
            "file_max_bytes": self._largest_file() * BLOCK_BYTES,
            "usage_pct": 100.0 * self._needed() / max(1, self._largest_file()),
            "log_records": self.log_records,
            "checkpoints": self.checkpoints,
            "truncations": self.truncations,
        }
