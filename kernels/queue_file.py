"""Queue files of distributed queue managers: blocks of 512 bytes, buffers before the file, log records, checkpoints.

Sources: seed "WebSphere MQ internals" (distributed-queue-manager-internals.txt: Notes "Views of the Queue", "What's the
point of logging?", "Put to a waiting getter"); domain.md section 5 (364 bytes before a message, one log record for each
persistent operation: assumptions stated there).
"""

from __future__ import annotations

from kernels._compile import kernel, routine
from kernels.clock import SECOND, TICK
from kernels.layout import MARK_PERSISTENT, NEVER, NONE, UNIT_SHIFT, Store, touch
from kernels.pools import base_left, keep_persistent

BLOCK_BYTES = 512  # of the space map [seed]
HEADER = 364  # bytes before a message's data: an MQMD version 2 [param]
LOG_RECORDS = 10_000  # log records that bring a checkpoint [seed]
LOG_RECORDS_AT_LEAST = 100  # of a checkpoint by time [seed]
CHECKPOINT_AFTER = 30 * 60 * SECOND  # [seed]
OVERSIZED_BLOCKS = 16 * 1024 // BLOCK_BYTES  # a file is cut that is oversized by 16 KB and by 1 % [seed]
OVERSIZED_PERCENT = 1
WARN_ABOVE = 90  # percent of the most the file may have [param]


@kernel
def blocks_of(length: int) -> int:
    """Blocks of a message of `length` bytes."""
    return (length + HEADER + BLOCK_BYTES - 1) // BLOCK_BYTES


@kernel
def nonpersistent_in_use(store: Store) -> int:
    """Blocks with nonpersistent data, what is left of the baseline included."""
    use = store.file_use[0]
    return use.nonpersistent + base_left(store, use.base_nonpersistent)


@kernel
def persistent_in_use(store: Store) -> int:
    """Blocks with persistent data, what is left of the baseline included."""
    use = store.file_use[0]
    return use.persistent + base_left(store, use.base_persistent)


@kernel
def _beyond(store: Store, nonpersistent: int, persistent: int) -> int:
    params = store.params[0]
    return max(0, nonpersistent - params.np_buffer) + max(0, persistent - params.p_buffer)


@kernel
def overflow(store: Store) -> int:
    """Blocks that neither buffer holds: they are in the file."""
    return _beyond(store, nonpersistent_in_use(store), persistent_in_use(store))


@kernel
def let_grow(store: Store) -> None:
    """Let the file hold what the buffers do not."""
    use = store.file_use[0]
    use.file_blocks = max(use.file_blocks, overflow(store))


@kernel
def is_full(store: Store) -> bool:
    """Whether the file is as large as it may be and every block of it holds data."""
    return overflow(store) >= store.params[0].file_max


@kernel
def fits(store: Store, length: int, persistent: bool) -> bool:
    """Whether a put of that length would be accepted now: its buffer takes it, or the file may hold the rest."""
    blocks = blocks_of(length)
    more = blocks if persistent else 0
    beyond = _beyond(store, nonpersistent_in_use(store) + blocks - more, persistent_in_use(store) + more)
    return beyond <= store.params[0].file_max or beyond == overflow(store)


@kernel
def charge(store: Store, row: int) -> bool:
    """Take the blocks of message `row`; whether it did not fit and is kept as a fact all the same.

    message.pages: its blocks. Inlined, with `refund`: measured 6.9 instead of 5.3 million puts and gets a second; of
    page sets it makes no difference.
    """
    use = store.file_use[0]
    message = store.messages[row]
    persistent = message.marks & MARK_PERSISTENT != 0
    overfull = not fits(store, message.length, persistent)
    message.pages = blocks_of(message.length)
    if persistent:
        use.persistent += message.pages
    else:
        use.nonpersistent += message.pages
    let_grow(store)
    return overfull


@kernel
def refund(store: Store, row: int) -> None:
    """Give back the blocks of message `row`: free, and allocated as long as the file is not truncated."""
    use = store.file_use[0]
    message = store.messages[row]
    if message.marks & MARK_PERSISTENT:
        use.persistent -= message.pages
    else:
        use.nonpersistent -= message.pages


@kernel
def operated(store: Store, row: int, unit: int) -> None:
    """Log the put, get or expiry of message `row`, if it is persistent. unit: in which it was done, NONE."""
    if store.messages[row].marks & MARK_PERSISTENT:
        if unit != NONE:
            store.units[unit].logged = 1
            touch(store.units_dirty, unit, UNIT_SHIFT)
        write_log(store)


@routine
def write_log(store: Store) -> None:
    """Write a log record; the 10,000th since the last checkpoint brings the next one."""
    use = store.file_use[0]
    use.log_records += 1
    use.since_checkpoint += 1
    if use.since_checkpoint >= LOG_RECORDS:
        _checkpoint(store, store.scalars[0].clock)


@kernel
def _checkpoint(store: Store, time: int) -> None:
    """Take a checkpoint; the queue had a persistent update since the last one, so its file is looked at."""
    use = store.file_use[0]
    use.checkpoints += 1
    use.since_checkpoint = 0
    use.checkpoint_at = time
    oversized = use.file_blocks - overflow(store)
    if oversized >= OVERSIZED_BLOCKS and oversized * 100 >= OVERSIZED_PERCENT * use.file_blocks:
        use.file_blocks -= oversized
        use.truncations += 1


@routine
def cleared(store: Store, persistent: bool) -> None:
    """Truncate the file after a CLEAR; persistent: it removed persistent messages, which one log record says."""
    use = store.file_use[0]
    if persistent:
        write_log(store)
    if use.file_blocks > overflow(store):
        use.file_blocks = overflow(store)
        use.truncations += 1


@kernel
def restarted(store: Store) -> None:
    """Let go of the nonpersistent blocks of the baseline, as a restart of the queue manager does."""
    use = store.file_use[0]
    persistent = persistent_in_use(store) - use.persistent
    keep_persistent(store, persistent, nonpersistent_in_use(store) - use.nonpersistent)
    use.base_persistent = persistent
    use.base_nonpersistent = 0


@routine
def pass_time(store: Store, before: int, tick: int) -> None:
    """Take the checkpoint that is due after 30 minutes, if it is, at a tick. before: the tick acted at last."""
    use = store.file_use[0]
    if use.checkpoint_at == NEVER:
        use.checkpoint_at = (before + 1) * TICK
    due = max(use.checkpoint_at + CHECKPOINT_AFTER, (before + 1) * TICK)
    due = (due + TICK - 1) // TICK * TICK
    if due <= tick * TICK and use.since_checkpoint >= LOG_RECORDS_AT_LEAST:
        _checkpoint(store, due)
