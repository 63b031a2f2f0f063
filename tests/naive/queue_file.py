"""The file of a queue of a distributed queue manager: blocks, buffers, log and checkpoints.

The rules: docs/storage-model.md#queue-files.
"""

from dataclasses import dataclass
from itertools import count, filterfalse, islice
from typing import Any

from tests.naive.baseline import NaiveBaseline, beyond
from tests.naive.clock import TICK_US
from tests.naive.estimate import Compared
from tests.naive.pools import rounded_up
from tests.naive.private import NaivePrivateStore, in_bytes
from tests.naive.store import Event
from tests.naive.units import Message, Unit, fields_of

BLOCK_BYTES = 512
DESCRIPTOR = 364  # bytes before the data of a message [assumed]
NONPERSISTENT_BUFFER = 128 * 1024  # bytes by default, on 64 bit
PERSISTENT_BUFFER = 256 * 1024
DEFAULTS = {
    "max_size": 2_088_960 * 1024**2,
    "file_system_size": None,
    "default_q_buffer_size": NONPERSISTENT_BUFFER,
    "default_pq_buffer_size": PERSISTENT_BUFFER,
}
CHECKPOINT_RECORDS = 10_000  # log records
CHECKPOINT_US = 30 * 60 * 1_000_000
PARTS = ("blocks_persistent", "blocks_nonpersistent")
MIN_CHECKPOINT_RECORDS = 100  # log records without which time brings no checkpoint
OVERSIZED_BYTES = 16 * 1024
OVERSIZED_PCT = 1


def blocks_of_length(length: int) -> int:
    """Return the blocks of a message."""
    return rounded_up(length + DESCRIPTOR, BLOCK_BYTES)


@dataclass(eq=False, kw_only=True)
class QueueFileMessage(Message):
    """A message of a queue file. places: numbers of its blocks of the file; none: it is in a buffer."""

    blocks: int
    places: tuple[int, ...]


class NaiveQueueFile(NaivePrivateStore):
    """The twin of a queue file. `described` has its attributes with their names in the estate."""

    messages: list[QueueFileMessage]
    unit = "blocks"
    of_baseline = ("messages", "blocks_persistent", "blocks_nonpersistent", "file_bytes")
    groups = (("blocks_persistent",), ("blocks_nonpersistent",))
    takes_in_queues = False
    scan_interval_us = 300_000_000  # "approximately every 5 minutes"

    def __init__(self, described: dict[str, Any], aliases: dict[str, str] | None = None) -> None:
        super().__init__(described, DEFAULTS, aliases)
        self.file_blocks = 0
        self.blocks_in_use: set[int] = set()  # the places of all messages
        self.first_free = 0  # or an earlier place: all before it are in use
        self.blocks_held = {True: 0, False: 0}  # of persistent and of nonpersistent messages
        self.blocks_placed = {True: 0, False: 0}  # those of them that have a place
        self.log_records = 0
        self.records_since = 0  # log records since the last checkpoint
        self.checkpoints = 0
        self.truncations = 0
        self.checkpoint_at: int | None = None  # time of the last checkpoint, or of the first tick
        self.persistent_update = False  # since the last checkpoint

    # -- what a message costs

    def _fits(self, event: Event) -> bool:
        """Return True if the buffer takes all of a message, or the file does not exceed its limit [assumed]."""
        spilled = self._spilled(event)
        return spilled == 0 or self._in_file() + spilled <= self._largest_file()

    def _keep(self, event: Event) -> QueueFileMessage:
        places = self._next_free_blocks(self._spilled(event))
        blocks = blocks_of_length(event["length"])
        self.file_blocks = max(self.file_blocks, *(place + 1 for place in places), self._in_file() + len(places))
        self.blocks_in_use.update(places)
        self.first_free = max([self.first_free, *(place + 1 for place in places)])
        message = QueueFileMessage(**fields_of(event, self._queue(event)), blocks=blocks, places=places)
        self.blocks_held[message.persistent] += blocks
        self.blocks_placed[message.persistent] += len(places)
        return message

    def _spilled(self, event: Event) -> int:
        """Return the blocks of a put in the file: none if its buffer has room for the message, else all.

        Source: [IBM: WebSphere MQ internals, "MQPUT Walkthrough"]: "If there is space, the message will be allocated in
        one of the queue buffers, otherwise it will be allocated in the queue file".
        """
        persistent = event.get("persistent", False)
        blocks = blocks_of_length(event["length"])
        return 0 if self._in_memory(persistent) + blocks <= self._buffer(persistent) else blocks

    def _next_free_blocks(self, number: int) -> tuple[int, ...]:
        """Return the places of the next available free blocks of the file, from its beginning [assumed].

        Source: [IBM: WebSphere MQ internals, "Views of the Queue"]: they "may not be adjacent to each other [...] - the
        next available free block will be allocated".
        """
        return tuple(islice(filterfalse(self.blocks_in_use.__contains__, count(self.first_free)), number))

    def _largest_file(self) -> int:
        """Return the maximum of blocks of the file: its own limit or that of the file system, the smaller one."""
        sizes = [self.attributes["max_size"], self.attributes["file_system_size"]]
        return int(min(size for size in sizes if size is not None)) // BLOCK_BYTES

    def _free(self, message: QueueFileMessage) -> None:
        """Keep the blocks of a message allocated until the file is truncated; puts may take them."""
        self.blocks_in_use.difference_update(message.places)
        self.first_free = min([self.first_free, *message.places])
        self.blocks_held[message.persistent] -= message.blocks
        self.blocks_placed[message.persistent] -= len(message.places)

    def _buffer(self, persistent: bool) -> int:
        """Return the blocks of one of the two buffers."""
        name = "default_pq_buffer_size" if persistent else "default_q_buffer_size"
        return int(self.attributes[name]) // BLOCK_BYTES

    def _of_model(self, persistent: bool) -> int:
        return self.blocks_held[persistent]

    def _in_memory(self, persistent: bool) -> int:
        """Return the blocks that have no place in the file: of messages put into the buffer, and of the baseline."""
        return self._in_use(persistent) - self.blocks_placed[persistent]

    def _in_file(self) -> int:
        """Return the blocks of the file that hold data: those with a place, and what the buffers do not hold."""
        beyond = sum(max(0, self._in_memory(kind) - self._buffer(kind)) for kind in (True, False))
        return beyond + len(self.blocks_in_use)

    def _content_end(self, more: int = 0) -> int:
        """Return the blocks of the file up to the last one in use, with `more` blocks of data.

        Blocks without a place are where they need the fewest blocks [assumed].
        """
        last = max(self.blocks_in_use, default=-1)
        return max(last + 1, self._in_file() + more)

    def _needed_at_checkpoint(self) -> int:
        """Return the blocks that a checkpoint leaves in the file: its content, and persistent data of the buffer."""
        return self._content_end(more=min(self._in_memory(True), self._buffer(True)))

    # -- log and checkpoints

    def _put_done(self, message: Message, unit: Unit | None) -> None:
        """Write a log record for a persistent put."""
        super()._put_done(message, unit)
        if message.persistent:
            self._log()

    def _taking(self, message: Message, unit: Unit | None, operation: str) -> None:  # noqa: ARG002
        """Write a log record for a persistent get or expiry, before its blocks are free [assumed]."""
        if message.persistent:
            self._log()

    def _ending(self, operations: list[tuple[str, Message]], *, committed: bool) -> None:
        """Write a log record for the end of a unit with a persistent operation, before the end takes effect.

        Before it, a unit that is undone writes a compensation record for each persistent operation. Source: [IBM:
        WebSphere MQ internals, "Undo Phase"].

        Source: [IBM: WebSphere MQ internals, "MQCMIT Walkthrough"]: "Once the log records have been written to the disk
        all changes under this transaction are made visible".
        """
        logged = [message for _, message in operations if message.persistent]
        if logged and not committed:
            for _ in logged:
                self._log()
        if logged:
            self._log()

    def _cleared(self, removed: list[Message]) -> None:
        """Truncate the file at once, and write a log record if persistent messages were removed."""
        self._truncate()
        if any(message.persistent for message in removed):
            self._log()

    def _log(self) -> None:
        """Write a log record. The 10,000th since the last checkpoint brings the next one."""
        self.log_records += 1
        self.records_since += 1
        self.persistent_update = True
        if self.records_since == CHECKPOINT_RECORDS:
            self._checkpoint(self._now())

    def _rests(self) -> bool:
        is_calm = self.checkpoint_at is not None and self.records_since < MIN_CHECKPOINT_RECORDS
        return super()._rests() and is_calm

    def _at_tick(self, tick: int) -> None:
        """Take a checkpoint at the first tick 30 minutes after the last one, or later, once there are 100 log records.

        Assumed: the first 30 minutes begin with the first tick after the first event.
        """
        if self.checkpoint_at is None:
            self.checkpoint_at = tick * TICK_US
        is_late = tick * TICK_US - self.checkpoint_at >= CHECKPOINT_US
        if is_late and self.records_since >= MIN_CHECKPOINT_RECORDS:
            self._checkpoint(tick * TICK_US)

    def _turned_back(self, now: int) -> None:
        """Take a later time of the last checkpoint as of now."""
        if self.checkpoint_at is not None:
            self.checkpoint_at = min(self.checkpoint_at, now)

    def _checkpoint(self, time: int) -> None:
        """Take a checkpoint; truncate a file with persistent updates that is oversized by both 1 % and 16 KB.

        Source: [IBM: WebSphere MQ internals, "What's the point of logging?"]: "Every now and again the log and data are
        brought into line. This point of consistency is called a checkpoint": persistent data is then in the file.
        """
        self.checkpoints += 1
        self.checkpoint_at = time
        self.records_since = 0
        required = self._needed_at_checkpoint()
        free = self.file_blocks - required
        oversized = free * BLOCK_BYTES >= OVERSIZED_BYTES and free * 100 >= OVERSIZED_PCT * self.file_blocks
        if self.persistent_update and oversized:
            self.truncations += 1
            self.file_blocks = required
        self.file_blocks = max(self.file_blocks, required)
        self.persistent_update = False

    def _truncate(self) -> None:
        """Give the free blocks of the file back, if there are any."""
        if self.file_blocks > self._content_end():
            self.truncations += 1
        self.file_blocks = self._content_end()

    # -- ALTER, MEASURE

    def _alter(self, attributes: dict[str, Any]) -> None:
        """Attributes count from this event on; a file larger than it may be is a fact."""
        self.attributes |= in_bytes(attributes)

    def _space_of_kept(self, length: int) -> float:
        return blocks_of_length(length)

    def _space_by(self, measured: dict[str, Any]) -> int | None:
        """Return the blocks, else those of the file and of the buffer of persistent messages."""
        if all(measured.get(name) is not None for name in PARTS):
            return sum(measured[name] for name in PARTS)
        return int(measured["file_bytes"]) // BLOCK_BYTES + self._buffer(True) if measured.get("file_bytes") else None

    def _space_of_model(self, measured: dict[str, Any]) -> int:
        counts = all(measured.get(name) is not None for name in PARTS)
        return self._used() if counts else self.file_blocks + self._buffer(True)

    def _known_pools(self, measured: dict[str, Any]) -> list[tuple[int, int]]:
        own = zip(PARTS, (True, False), strict=True)
        return [(self._of_model(kind), measured[name]) for name, kind in own if name in measured]

    def _take_over(self, measured: dict[str, Any], held: float) -> None:
        """Take over a measurement; one without blocks has those of its messages, or of the file as large as it is."""
        blocks, usual = None, self._usual_space()
        if not measured.keys() & set(PARTS) and usual:
            used = self._space_by(measured)
            counts = super(NaivePrivateStore, self)._messages_by(measured)
            each = usual
            if counts is not None and used and counts >= 20:
                each = max(1.0, used / counts)
            blocks = round(held * (min(each, usual) if measured.get("file_bytes") else each))
            free = min(blocks, self._of_model(persistent=False))
        elif not measured.keys() & set(PARTS) and "file_bytes" in measured and not self.has_operated:
            in_file = 0 if measured.get("messages") == 0 else measured["file_bytes"] // BLOCK_BYTES
            blocks, free = in_file + (self._buffer(True) if in_file else 0), 0
        if blocks is not None:
            measured = measured | {PARTS[0]: blocks - free, PARTS[1]: free}
            self.measured |= set(PARTS)
        super()._take_over(measured, held)

    def _new_baseline(self, measured: dict[str, Any]) -> NaiveBaseline:
        """Return the baseline. Assumed: the file is at least as large as measured, in whole blocks."""
        before = 0 if self.baseline is None else self.baseline.fields["file_bytes"]
        of_blocks = super()._new_baseline(measured)
        file_bytes = beyond(measured, "file_bytes", self.file_blocks * BLOCK_BYTES)
        known = of_blocks.known | ({"file_bytes"} if measured.get("file_bytes") is not None else set())
        file_part = min(before + file_bytes, measured.get("file_bytes") or 0)
        fields = of_blocks.fields | {"file_bytes": file_part}
        self.baseline = NaiveBaseline(fields, self.held.unmatched(), known)
        self.file_blocks = max(self.file_blocks + rounded_up(file_bytes, BLOCK_BYTES), self._content_end())
        return self.baseline

    def _unknown(self) -> set[str]:
        """Return the fields that follow from no measurement: the blocks of a file are known with both of its parts."""
        parts = {"blocks_persistent", "blocks_nonpersistent"}
        unknown = ({"messages"} | parts) - self.measured
        if not parts <= self.measured:
            unknown |= {"blocks_free", "blocks_allocated", "usage_pct"}
            if "file_bytes" not in self.measured:
                unknown |= {"blocks", "file_bytes"}
        return unknown

    def _compared(self, measured: dict[str, Any]) -> Compared:
        """Return blocks with persistent or nonpersistent data, which differ more, and the file, compared with all."""
        model, compared = self._fields(), Compared()
        gaps = {name: abs(model[name] - measured[name]) for name in PARTS if measured.get(name) is not None}
        if gaps:
            worse = max(gaps, key=gaps.__getitem__)
            compared["blocks"] = model[worse], measured[worse], model["blocks"]
        if measured.get("file_bytes") is not None:
            compared["file"] = model["file_bytes"], measured["file_bytes"], model["blocks"] * BLOCK_BYTES
        return compared

    def _has_acted(self) -> None:
        """Extend the file to its last block in use, with what returns to the baseline [assumed]."""
        self.file_blocks = max(self.file_blocks, self._content_end())

    # -- the state record

    def _fields(self) -> dict[str, Any]:
        """Return the fields of a queue file.

        blocks = free + allocated + nonpersistent + persistent = blocks of both buffers + blocks of the file. Free
        blocks of the buffers are `blocks_free`, free blocks of the file are `blocks_allocated` [assumed].
        """
        persistent, nonpersistent = self._in_use(persistent=True), self._in_use(persistent=False)
        in_buffers = persistent + nonpersistent - self._in_file()
        return {
            "blocks": self._buffer(True) + self._buffer(False) + self.file_blocks,
            "blocks_free": self._buffer(True) + self._buffer(False) - in_buffers,
            "blocks_allocated": self.file_blocks - self._in_file(),
            "blocks_nonpersistent": nonpersistent,
            "blocks_persistent": persistent,
            "file_bytes": self.file_blocks * BLOCK_BYTES,
            "file_max_bytes": self._largest_file() * BLOCK_BYTES,
            "usage_pct": 100.0 * self._in_file() / max(1, self._largest_file()),
            "log_records": self.log_records,
            "checkpoints": self.checkpoints,
            "truncations": self.truncations,
        }
