"""Space of data sets: extents, and blocks or pages that messages take by next fit; and queue files.

- Data sets are allocated in units of a 3390.
- By next fit a message goes into the current bin if it fits there. Otherwise it starts a new bin and takes as many as
  it needs, and its last one becomes the current bin. Blocks of a shared message data set are filled with pages this way
  (docs/storage-model.md), and pages of a page set with records before MQ 7.0.1 [IBM: Page sets 01 to 99, Short
  messages].
- Queue files of distributed queue managers: blocks, buffers, overflow, size of the file, and memory of open queues.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from kernels import page_set, queue_file, smds
from kernels.page_set import CONTROL, EXPAND_ABOVE, MAX_PAGES, PAGE_SPACE, SHORT, VERY_LONG
from twin.base.conditions import Q_SPACE_NOT_AVAILABLE
from twin.base.errors import UsageError
from twin.base.units import CYLINDER, GIB, KIB, TRACK
from twin.estate import SMDS_MAX_SIZE, QueueFile, Structure, format_size
from twin.estate.model import DS_BLOCKS
from twin.sizing.mix import Messages, Mix, count_of

# --- extents, and next fit --------------------------------------------------------------------------------------------
# A 3390 has 15 tracks per cylinder [IBM: z/OS DFSMS, Direct access storage devices, table 1] and 12 control intervals
# of 4096 bytes per track. Real SMF 115 records agree: page sets of 540, 1,080, 50,040 or 963,720 pages are whole
# cylinders.

PAGE_BYTES = 4096
PAGES_PER_TRACK = TRACK // PAGE_BYTES


@dataclass(frozen=True, slots=True)
class Extent:
    """Space of a data set: bytes, 4 KB pages (records of its cluster), and cylinders of a 3390, rounded up."""

    bytes: int
    pages: int
    cylinders: int

    @classmethod
    def of_pages(cls, pages: int) -> Extent:
        """Return the extent of a number of 4 KB pages."""
        return cls(pages * PAGE_BYTES, pages, -(-pages * PAGE_BYTES // CYLINDER))


def extended_addressability(size: int) -> list[str]:
    """Return the warning about a VSAM data set of more than 4 GB, none below [IBM: z/OS DFSMS Using Data Sets]."""
    if size < 4 * GIB:
        return []
    return ["more than 4 GB: its SMS data class needs extended addressability, else it ends at 4 GB"]


def places(sizes: Sequence[int], counts: Sequence[int], capacity: int) -> int:
    """Return the bins of equal capacity that messages in random order take, rounded up; exact for those of one size.

    The messages that start a bin form a Markov chain: after one that leaves room, others follow until one does not fit.
    Its stationary distribution gives the bins per message. Sizes are at least 1.
    """
    total = sum(counts)
    if not total:
        return 0
    share = np.array(counts, np.float64) / total
    bins = np.array([-(-size // capacity) for size in sizes])
    until, opener = _until_next(sizes, share, capacity)
    room = bins * capacity - np.array(sizes)
    state = _stationary(opener[room])
    bins_per_message = float(state @ bins) / float(state @ until[room])
    min_bins = -(-sum(size * count for size, count in zip(sizes, counts, strict=True)) // capacity)
    return max(min_bins, math.ceil(round(total * bins_per_message, 6)))


def _until_next(
    sizes: Sequence[int], share: np.ndarray[tuple[int], np.dtype[np.float64]], capacity: int
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], np.ndarray[tuple[int, int], np.dtype[np.float64]]]:
    """Return, by the room left in a bin, f8[capacity]: the mean number of messages until a new bin starts, the one that
    starts it included; and f8[capacity, n]: the probability that it has each size.
    """
    until = np.ones(capacity)
    opener = np.zeros((capacity, len(sizes)))
    for room in range(capacity):
        for kind, size in enumerate(sizes):
            if size > room:
                opener[room, kind] += share[kind]
            else:
                until[room] += share[kind] * until[room - size]
                opener[room] += share[kind] * opener[room - size]
    return until, opener


def _stationary(
    chain: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the stationary distribution of a chain, f8[n]."""
    kinds = len(chain)
    equations = np.vstack([chain.T - np.eye(kinds), np.ones(kinds)])
    solved: np.ndarray[tuple[int], np.dtype[np.float64]] = np.linalg.lstsq(equations, np.eye(kinds + 1)[-1])[0]
    return solved


# --- shared message data sets ----------------------------------------------------------------------------------------

# The arithmetic is that of the twin, `kernels.smds`; docs/storage-model.md states its sources.


@dataclass(frozen=True, slots=True, kw_only=True)
class SmdsPlan:
    """Plan of a data set for a mix."""

    ds_block: int  # bytes of a block
    messages: int  # offloaded
    pages: int  # 4 KB pages in use
    data_blocks: int  # blocks of these pages, messages in random order
    map_blocks: int  # of `least`
    least: Extent  # the smallest data set that holds the mix
    unexpanded: Extent  # one that does not expand: at most 90 % of its blocks are in use
    used_pct: dict[str, float]  # of the blocks of each data set of the estate, by queue manager
    warnings: tuple[str, ...]


def plan_smds(config: Structure, mix: Mix, ds_block: int | None = None) -> SmdsPlan:
    """Plan the data set of one queue manager for the messages it puts. `ds_block`: bytes; None: DSBLOCK of the
    structure. UsageError: no message of the mix is long enough to be offloaded, or DSBLOCK is invalid.
    """
    config = replace(config, ds_block=ds_block or config.ds_block)
    if format_size(config.ds_block) not in DS_BLOCKS:
        raise UsageError(f"DSBLOCK({format_size(config.ds_block)}); expected: {', '.join(DS_BLOCKS)}")
    count_of(mix)
    offloaded = [part for part in mix if part.length > config.offload_min_length]
    if not offloaded:
        raise UsageError(f"no message is offloaded; expected: lengths above {config.offload_min_length} bytes")
    pages = [int(smds.pages_of_length(part.length, config.smds_prefix)) for part in offloaded]
    counts = [part.count for part in offloaded]
    data = places(pages, counts, config.ds_block // smds.PAGE_BYTES)
    least = _with_map(data, 100, config.ds_block)
    return SmdsPlan(
        ds_block=config.ds_block,
        messages=sum(counts),
        pages=sum(count * each for count, each in zip(counts, pages, strict=True)),
        data_blocks=data,
        map_blocks=least - data,
        least=_extent(least, config.ds_block),
        unexpanded=_extent(_with_map(data, smds.EXPAND_ABOVE, config.ds_block), config.ds_block),
        used_pct={qmgr: _used_pct(data, data_set.size, config.ds_block) for qmgr, data_set in config.smds.items()},
        warnings=tuple(_smds_warnings(config, least * config.ds_block, sum(part.count for part in mix) - sum(counts))),
    )


def _with_map(data: int, percent: int, ds_block: int) -> int:
    """Return the smallest number of blocks of which data and space map take at most `percent`."""
    total = 0
    while True:
        used = data + int(smds.map_blocks(total, ds_block))
        needed = -(-used * 100 // percent)
        if needed <= total:
            return total
        total = needed


def _used_pct(data: int, size: int, ds_block: int) -> float:
    total = size // ds_block
    return 100 * (data + int(smds.map_blocks(total, ds_block))) / total


def _extent(blocks: int, ds_block: int) -> Extent:
    return Extent.of_pages(blocks * (ds_block // smds.PAGE_BYTES))


def _smds_warnings(config: Structure, size: int, short: int) -> list[str]:
    warnings = []
    if short:
        warnings.append(f"{short:,} messages of at most {config.offload_min_length} bytes are not offloaded")
    if size > SMDS_MAX_SIZE:
        warnings.append(f"{format_size(SMDS_MAX_SIZE)} is the most a data set may have: 2192 comes before all fit")
    return warnings + extended_addressability(size)


# --- page sets -------------------------------------------------------------------------------------------------------

# [IBM: Page sets 01 to 99] (short, long and very long messages; at least two pages of control information, usually
# below 1 %). One short message per page since MQ 7.0.1, space-map pages and expansion: docs/storage-model.md.


Kind = Literal["short", "long", "very long"]


class Cost(NamedTuple):
    """Pages of a message."""

    pages: int  # whole pages
    record: int  # bytes that are stored like a short message; 0: none


@dataclass(frozen=True, slots=True)
class LengthPlan:
    """Plan for messages of one length."""

    length: int  # bytes
    messages: int
    kind: Kind
    n: int  # of the document's n x 4096 + c
    c: int
    bytes: int  # per message, n x 4096 + c
    pages: int  # per message; with packed messages without the page of the record
    record: int  # bytes that are stored like a short message; 0: none


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSetPlan:
    """Plan of a page set for a mix."""

    packed: bool  # short messages share pages
    messages: int
    lengths: tuple[LengthPlan, ...]
    documented_records: int  # bytes as in the document, divided by 4096
    pages: int  # in use by the messages
    control_pages: int  # of `least`, not usable for messages
    control_pct: float
    least: Extent  # the smallest page set that holds the mix
    unexpanded: Extent  # one that does not expand: at most 90 % of the usable pages are in use
    used_pct: float | None  # of the usable pages of an existing page set
    warnings: tuple[str, ...]


def kind_of(length: int) -> Kind:
    """Return the kind of a message: short up to 3685 bytes, long up to 4 MB, else very long."""
    if length <= SHORT:
        return "short"
    return "long" if length <= VERY_LONG else "very long"


def cost_of(length: int) -> Cost:
    """Return the whole pages and the record of a message; see `kernels.page_set.pages_of`."""
    pages, record = page_set.pages_of(length)
    return Cost(int(pages), int(record))


def bytes_of(length: int) -> int:
    """Return the bytes of a message as in the document, n x 4096 + c; of a short one, its bytes on a page."""
    pages, record = cost_of(length)
    return pages * PAGE_BYTES + record


def pages_of(length: int) -> int:
    """Return the pages of a message since MQ 7.0.1: short messages and control records have a page each."""
    pages, record = cost_of(length)
    return pages + (record > 0)


def usable_pages(allocated: int) -> int:
    """Return the usable ones of allocated pages: one is control information, and one of each 16,184 is space map."""
    return int(page_set.usable_pages(allocated))


def allocated_for(pages: int) -> int:
    """Return the smallest number of allocated pages of which `pages` are usable."""
    return bisect_left(range(2 * pages + 4), pages, key=usable_pages)


def plan_page_set(mix: Mix, *, packed: bool = False, allocated: int | None = None) -> PageSetPlan:
    """Plan a page set that holds all messages of a mix at once. `packed`: short messages share pages
    (`twin.estate.model.packs`); `allocated`: pages of an existing page set. UsageError: the mix has no message.
    """
    messages = count_of(mix)
    lengths = tuple(_length_plan(part.length, part.count, packed=packed) for part in mix)
    pages = sum(plan.messages * plan.pages for plan in lengths)
    if packed:
        with_record = [plan for plan in lengths if plan.record]
        pages += places([plan.record for plan in with_record], [plan.messages for plan in with_record], PAGE_SPACE)
    least = allocated_for(pages)
    control = least - usable_pages(least)
    return PageSetPlan(
        packed=packed,
        messages=messages,
        lengths=lengths,
        documented_records=sum(map(_documented_records, lengths)),
        pages=pages,
        control_pages=control,
        control_pct=100 * control / least,
        least=Extent.of_pages(least),
        unexpanded=Extent.of_pages(allocated_for(-(-pages * 100 // EXPAND_ABOVE))),
        used_pct=None if allocated is None else 100 * pages / max(1, usable_pages(allocated)),
        warnings=tuple(_page_set_warnings(least)),
    )


def _length_plan(length: int, count: int, *, packed: bool) -> LengthPlan:
    pages, record = cost_of(length)
    kind = kind_of(length)
    return LengthPlan(
        length=length,
        messages=count,
        kind=kind,
        n=0 if kind == "short" else pages,
        c=record if kind != "short" else CONTROL,
        bytes=bytes_of(length),
        pages=pages if packed else pages_of(length),
        record=record,
    )


def _documented_records(plan: LengthPlan) -> int:
    """Return the records as in the document: short messages share a page, long ones take n x 4096 + c bytes."""
    if plan.kind == "short":
        return -(-plan.messages // (PAGE_SPACE // plan.record))
    return -(-plan.messages * plan.bytes // PAGE_BYTES)


def _page_set_warnings(pages: int) -> list[str]:
    if pages <= MAX_PAGES:
        return extended_addressability(pages * PAGE_BYTES)
    number = -(-pages // MAX_PAGES)
    return [f"a page set has at most {MAX_PAGES:,} pages, 64 GB; expected: {number} page sets"]


# --- queue files ------------------------------------------------------------------------------------------------------
# Sources: [IBM: WebSphere MQ internals, In the Depths of a Queue, Views of the Queue, Tuning Queue Buffers]. The blocks
# of a message are those of the twin, `kernels.queue_file`.

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
