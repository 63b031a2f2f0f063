"""Queue files of distributed queue managers: blocks, buffers, overflow, size of the file, and memory of open queues.

Sources: [IBM: WebSphere MQ internals, In the Depths of a Queue, Views of the Queue, Tuning Queue Buffers]. The blocks
of a message are those of the twin, `kernels.queue_file`.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernels import queue_file
from twin.conditions import Q_SPACE_NOT_AVAILABLE
from twin.errors import UsageError
from twin.estate import QueueFile, format_size
from twin.sizing.mix import Messages, Mix, count_of
from twin.units import KIB

LOADED_BYTES = 60 * KIB  # memory of a loaded queue, "around 60k" [IBM]
HANDLE_BYTES = 32  # space handle of a message in its chain [IBM]
CACHED_MESSAGES = 512  # most recently used, in the message details cache [IBM]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFilePlan:
    """Plan of a queue file for a mix, and of the memory of open queues like it."""

    messages: int
    blocks: int  # of 512 bytes, of all messages
    nonpersistent_blocks: int
    persistent_blocks: int
    nonpersistent_buffer: int  # bytes
    persistent_buffer: int  # bytes
    overflow_blocks: int  # of the messages that the buffers do not hold
    file_bytes: int  # of the overflow
    max_bytes: int  # of the file
    used_pct: float  # of `max_bytes`
    queues: int  # open queues
    memory_bytes: int  # of all of them: each loaded, with its buffers and a handle a message
    warnings: tuple[str, ...]


def plan_queue_file(config: QueueFile, nonpersistent: Mix, persistent: Mix, queues: int = 1) -> QueueFilePlan:
    """Plan the file of a queue for the messages at its maximum depth. UsageError: there is no message, or no queue."""
    if queues < 1:
        raise UsageError(f"{queues} queues; expected: at least 1")
    messages = count_of((*nonpersistent, *persistent))
    blocks = [sum(_blocks_of(part) * part.count for part in mix) for mix in (nonpersistent, persistent)]
    buffers = [config.default_q_buffer_size, config.default_pq_buffer_size]
    overflow = sum(_overflow(mix, size) for mix, size in zip((nonpersistent, persistent), buffers, strict=True))
    file_bytes = overflow * queue_file.BLOCK_BYTES
    return QueueFilePlan(
        messages=messages,
        blocks=sum(blocks),
        nonpersistent_blocks=blocks[0],
        persistent_blocks=blocks[1],
        nonpersistent_buffer=buffers[0],
        persistent_buffer=buffers[1],
        overflow_blocks=overflow,
        file_bytes=file_bytes,
        max_bytes=config.limit,
        used_pct=100 * file_bytes / config.limit,
        queues=queues,
        memory_bytes=queues * (LOADED_BYTES + sum(buffers) + HANDLE_BYTES * messages),
        warnings=tuple(_warnings(config, messages, file_bytes, blocks[1], overflow)),
    )


def _blocks_of(part: Messages) -> int:
    return int(queue_file.blocks_of(part.length))


def _overflow(mix: Mix, buffer_bytes: int) -> int:
    """Return the blocks of the messages that a buffer does not hold; it holds whole ones, the shortest [assumed]."""
    room, overflow = buffer_bytes // queue_file.BLOCK_BYTES, 0
    for part in sorted(mix, key=_blocks_of):
        held = min(part.count, room // _blocks_of(part))
        room -= held * _blocks_of(part)
        overflow += (part.count - held) * _blocks_of(part)
    return overflow


def _warnings(config: QueueFile, messages: int, file_bytes: int, persistent_blocks: int, overflow: int) -> list[str]:
    warnings = []
    if file_bytes > config.limit:
        warnings.append(
            f"the file may have {format_size(config.limit)}: {Q_SPACE_NOT_AVAILABLE} comes before all messages fit"
        )
    if overflow and messages > CACHED_MESSAGES:
        warnings.append(
            f"details of the {CACHED_MESSAGES} messages used most recently are cached: a get by message identifier may"
            " read further ones from the file"
        )
    if persistent_blocks:
        warnings.append("put and get persistent messages inside syncpoint: outside, each waits until the log is forced")
    return warnings
