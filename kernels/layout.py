"""The arrays of a store: event rows, tables, counters.

Everything that a kernel reads or writes is a numpy structured array, and the state of a store is exactly the bytes of
these arrays. Tables are cut into pages of a fixed number of rows. A kernel that writes a row marks its page dirty
(`touch`), in tables of messages the row itself (`touch_row`). Only what is dirty goes to the state store at the end of
a batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernels._compile import Uniform, kernel
from kernels.meter_rows import BINS

Array = npt.NDArray[Any]
Row = Any  # a row of a structured array, whose fields kernels read and write as attributes

# --- events ----------------------------------------------------------------------------------------------------------

OPS = (
    *("PUT", "GET", "COMMIT", "BACKOUT", "PREPARE", "EXPIRE", "CLEAR"),
    *("RESTART", "HEARTBEAT", "ALTER", "REBUILD", "MEASURE"),
)
PUT, GET, COMMIT, BACKOUT, PREPARE, EXPIRE, CLEAR, RESTART, HEARTBEAT, ALTER, REBUILD, MEASURE = range(len(OPS))

FLAG_PERSISTENT = 1
FLAG_DIRECT = 2
FLAG_HAS_MSGID = 4
FLAG_HAS_UOW = 8

MAX_MESSAGE_BYTES = 104_857_600  # 100 MB [IBM: IBM MQ, MAXMSGL]

EVENT = np.dtype(
    [
        ("time", "i8"),  # microseconds since 1970, UTC
        ("msgid", "u8"),  # xxHash64 of the message id, or 0
        ("uow", "u8"),  # xxHash64 of the id of the unit of work, or 0
        ("seq", "i8"),  # or -1
        ("route", "i4"),  # index in the estate's routes: store, queue manager and queue
        ("length", "i4"),  # bytes
        ("count", "i4"),
        ("reason", "i4"),  # MQRC
        ("op", "u1"),  # index in OPS
        ("priority", "u1"),
        ("flags", "u1"),
        ("pad", "u1"),
        ("expiry", "i4"),  # tenths of a second from its put until the message expires; 0: never
    ],
    align=True,
)

# --- tables ----------------------------------------------------------------------------------------------------------

NONE = -1  # no row, such as at the end of a chain

FREE, AVAILABLE, UNCOMMITTED_PUT, UNCOMMITTED_GET = range(4)  # states of a row of MESSAGE

MARK_KEYED = 1  # the message has an id; while available it is in the index
MARK_PERSISTENT = 2
MARK_OFFLOADED = 4
MARK_IN_ORDER = 8  # the message is in a chain of ORDER, of the structure or of storage class memory
MARK_IN_SCM = 16  # its chain of ORDER is that of storage class memory
MARK_LATE = 32  # it is available, in the heap beside the chain of its queue and priority
MARK_OVERFULL = 64  # it did not fit when it was put
MARK_ORDER_LATE = 128  # it is in the heap beside its chain of ORDER


def _with_alias(dtype: np.dtype[Any], alias: str, name: str) -> np.dtype[Any]:
    """Return `dtype` with the second name `alias` for its field `name`."""
    fields = dict(dtype.fields or {})
    fields[alias] = fields[name]
    described: Any = {
        "names": list(fields),
        "formats": [field[0] for field in fields.values()],
        "offsets": [field[1] for field in fields.values()],
        "itemsize": dtype.itemsize,
    }
    return np.dtype(described, align=True)


_MESSAGE = np.dtype(
    [
        ("key", "u8"),  # xxHash64 of the message id
        ("age", "i8"),  # number of its put among all puts of the store
        ("expires", "i8"),  # time at which it expires, microseconds; 0: never
        ("next", "i4"),  # chain or heap of its queue and priority (available), of its unit (uncommitted); free list
        ("prev", "i4"),
        ("unit", "i4"),  # row of UNIT while uncommitted; shares its bytes with `child`, used in a heap (see chains.py)
        ("queue", "i4"),
        ("length", "i4"),  # bytes
        ("elems", "i4"),  # data elements charged at its put; in a page set bytes
        ("block", "i4"),  # its last BLOCK, unless it fills that up; the PACKED that it shares; its first PLACE; NONE
        ("pages", "i4"),  # 4 KB pages in the data set or page set, shared ones excluded; blocks in a queue file
        ("owner", "i2"),  # data set (row of DATASETS)
        ("priority", "u1"),
        ("state", "u1"),
        ("marks", "u1"),
    ],
    align=True,
)
MESSAGE = _with_alias(_MESSAGE, "child", "unit")

HELD = np.dtype(
    [
        ("key", "u8"),
        ("age", "i8"),  # number among all held gets
        ("held_at", "i8"),  # the clock when it was held, microseconds
        ("next", "i4"),  # chain of its queue, oldest first; free list
        ("prev", "i4"),
        ("unit_next", "i4"),  # chain of its unit
        ("unit_prev", "i4"),
        ("unit", "i4"),
        ("queue", "i4"),
        ("count", "i4"),  # messages it still waits for; 1 for a get by id
        ("keyed", "u1"),
        ("used", "u1"),
    ],
    align=True,
)

UNIT = np.dtype(
    [
        ("key", "u8"),  # xxHash64 of the id of the unit of work
        ("opened", "i8"),  # number among all units opened
        ("prepared_at", "i8"),  # the clock at its PREPARE, microseconds, since which it is in doubt; NEVER
        ("qmgr", "i4"),
        ("queue", "i4"),
        ("head", "i4"),  # its uncommitted messages, in the order of the operations
        ("tail", "i4"),
        ("held_head", "i4"),  # its held gets
        ("held_tail", "i4"),
        ("next", "i4"),  # chain of all open units, oldest first; free list
        ("prev", "i4"),
        ("used", "u1"),
        ("logged", "u1"),  # 1: it has a persistent operation, so its end writes a log record
    ],
    align=True,
)

QUEUE = np.dtype(
    [
        ("depth", "i8"),  # messages that hold storage, uncommitted ones included
        ("bytes", "i8"),
        ("elems", "i8"),  # sum over its messages
        ("pages", "i8"),
        ("depth_then", "i8"),  # the same at the last sample, for growth
        ("elems_then", "i8"),
        ("pages_then", "i8"),
        ("depth_before", "i8"),  # the same at the sample before the last
        ("elems_before", "i8"),
        ("pages_before", "i8"),
        ("uncommitted", "i8"),
        ("uncommitted_gets", "i8"),  # of them got and not yet committed, which CURDEPTH leaves out
        ("max_depth", "i8"),  # MAXDEPTH; 0: not known
        ("last_full", "i8"),  # time of the last put refused with 2053, or NEVER
        ("keyed_head", "i4"),  # held gets by message id, oldest first
        ("keyed_tail", "i4"),
        ("any_head", "i4"),  # held gets of any message, oldest first
        ("any_tail", "i4"),
        ("puts", "i8"),  # messages stored or refused so far
        ("gets", "i8"),  # messages removed by gets so far
        ("puts_then", "i8"),  # the same at the last sample
        ("gets_then", "i8"),
        ("puts_before", "i8"),  # the same at the sample before the last
        ("gets_before", "i8"),
        ("got_at", "i8"),  # tick at which a get last removed a message
        ("armed", "u1"),  # conditions that may fire (see watch.py)
        ("fired", "u1"),
    ],
    align=True,
)

PRIORITIES = 10
CHAIN = np.dtype(  # row queue * PRIORITIES + priority
    [("head", "i4"), ("tail", "i4"), ("late", "i4")]  # late: top of the heap of late messages
)

FLOW = np.dtype([("first", "i8"), ("highest", "i8"), ("qmgr", "i4"), ("started", "u1")], align=True)
SEQ_WINDOW = 4096  # numbers remembered per (queue manager, queue), docs/events.md#duplicates-gaps-and-late-events
SEEN_WORDS = SEQ_WINDOW // 64
SEEN = np.dtype("u8")  # SEEN_WORDS rows per flow, one bit per number

BLOCK = np.dtype([("pages", "i4"), ("next", "i4")])  # a block that messages may share: pages in use, free list

NORMAL, FAILED, MAXIMUM = range(3)  # expansion [IBM: IBM MQ, DISPLAY CFSTATUS TYPE(SMDS), EXPANDST]

DATASET = np.dtype(
    [
        ("size", "i8"),  # bytes, expansions included
        ("blocks_total", "i8"),  # map blocks included
        ("blocks_data", "i8"),  # data blocks in use
        ("pages", "i8"),
        ("messages", "i8"),
        ("limit", "i8"),  # blocks it may grow to
        ("extent", "i8"),  # blocks of an expansion; 0: a tenth of the present blocks
        ("base_blocks", "i8"),  # baseline, as set by the first MEASURE
        ("base_pages", "i8"),
        ("base_messages", "i8"),
        ("last_full", "i8"),  # time of the last put refused because this data set was full
        ("filling", "i4"),  # block being filled, NONE
        ("room", "i4"),  # pages left in it
        ("status", "u1"),
        ("limited", "u1"),  # 1: the limit is that of the volumes, not of the product
        ("armed", "u1"),  # conditions that may fire (see watch.py)
        ("fired", "u1"),
    ],
    align=True,
)

ORDER = np.dtype(  # place of a message by priority and age, in the structure or in SCM, in a chain or in a heap
    [("next", "i4"), ("prev", "i4"), ("child", "i4")]
)
ORDERS = 2 * PRIORITIES  # chains of ORDER: of the structure by priority, then of SCM by priority
ORDER_ENDS = np.dtype(  # finger: row inserted last; late: top of the heap of late messages
    [("head", "i4"), ("tail", "i4"), ("finger", "i4"), ("late", "i4")]
)

SCM_USE = np.dtype(  # use of storage class memory by a structure, as SMF 74.4 reports it
    [
        ("messages", "i8"),  # in SCM, an entry each
        ("elems", "i8"),
        ("prestaged", "i8"),  # messages moved out so far
        ("prefetched", "i8"),  # messages brought back so far
        ("faults", "i8"),  # gets of a message in SCM
        ("fault_wait_us", "i8"),  # total wait of these gets
        ("free_at", "i8"),  # end of the movement under way, nanoseconds since 1970; NEVER: nothing moves
        ("bound", "i8"),  # bytes that puts have shown to be there for it; 0: they have shown nothing
        ("enrolled", "u1"),  # 1: the structure has SCM, and its messages are in the chains of ORDER
    ],
    align=True,
)

PACKED = np.dtype([("records", "i4"), ("persistent", "i4"), ("next", "i4")])  # a page of short messages, free list

PAGE_USE = np.dtype(  # pages of a page set, as DISPLAY USAGE and SMF 115 QIS1 report them
    [
        ("allocated", "i8"),  # 4 KB records of the data set, space map included
        ("usable", "i8"),  # pages of them for messages
        ("persistent", "i8"),  # pages with a persistent message
        ("nonpersistent", "i8"),
        ("expansions", "i8"),
        ("base_persistent", "i8"),  # baseline, as set by the first MEASURE
        ("base_nonpersistent", "i8"),
        ("last_full", "i8"),  # time of the last put refused
        ("filling", "i4"),  # row of PACKED being filled, NONE
        ("room", "i4"),  # bytes left in it
        ("free", "i4"),  # head of the free list of PACKED
        ("high", "i4"),  # rows of PACKED ever used
        ("status", "u1"),
    ],
    align=True,
)

PLACE = np.dtype(  # adjacent blocks of a queue file, which hold data of a message or are a hole between such blocks
    [
        ("start", "i8"),  # number of its first block in the file
        ("count", "i8"),
        ("before", "i4"),  # its neighbours in the file
        ("after", "i4"),
        ("next", "i4"),  # chain of its message; heap of the holes; free list
        ("prev", "i4"),  # heap of the holes
        ("child", "i4"),
        ("hole", "u1"),
    ],
    align=True,
)

FILE_USE = np.dtype(  # blocks, log and checkpoints of a queue file
    [
        ("nonpersistent", "i8"),  # blocks of 512 bytes that hold data
        ("persistent", "i8"),
        ("file_nonpersistent", "i8"),  # of them, those that have a place in the file
        ("file_persistent", "i8"),
        ("end", "i8"),  # blocks of the file up to the last one that holds data
        ("file_blocks", "i8"),  # blocks of the file, free ones included
        ("log_records", "i8"),
        ("since_checkpoint", "i8"),  # log records since the last checkpoint
        ("checkpoints", "i8"),
        ("truncations", "i8"),
        ("checkpoint_at", "i8"),  # time of the last checkpoint, or of the first tick; NEVER: no tick yet
        ("base_nonpersistent", "i8"),  # baseline, as set by the first MEASURE
        ("base_persistent", "i8"),
        ("last_full", "i8"),  # time of the last put refused
        ("reported", "i8"),  # log records up to the last report to the queue manager
        ("ended", "i8"),  # rows of `ends` in use: logged ends of units since that report
        ("last", "i4"),  # row of PLACE at the end of the file, NONE
        ("holes", "i4"),  # row of PLACE of the first hole, NONE
        ("free", "i4"),  # head of the free list of PLACE
        ("high", "i4"),  # rows of PLACE ever used
        ("runs", "i4"),  # rows of PLACE in use
    ],
    align=True,
)

NEVER = np.iinfo(np.int64).min  # the time of something that has not happened

SCALARS = np.dtype(
    [
        ("clock", "i8"),
        ("far", "i8"),  # time of the previous event if it was too far ahead, else NEVER
        ("back", "i8"),  # latest time of the events that contradict the clock (see clock.py), or NEVER
        ("support", "i8"),  # events that agree with the clock minus those that contradict it
        ("tick", "i8"),  # ticks done: clock // TICK
        ("turns", "i8"),  # number of times the clock went back
        ("ages", "i8"),  # puts so far
        ("holds", "i8"),  # gets held so far
        ("opens", "i8"),  # units opened so far
        ("messages", "i8"),
        ("bytes", "i8"),
        ("uncommitted", "i8"),
        ("ents_used", "i8"),
        ("elems_used", "i8"),
        ("offloaded_messages", "i8"),
        ("offloaded_bytes", "i8"),
        ("events", "i8"),
        ("duplicates", "i8"),
        ("gaps", "i8"),
        ("unmatched_gets", "i8"),
        ("full_puts", "i8"),
        ("queue_full_puts", "i8"),
        ("overfull_puts", "i8"),
        ("overfull_held", "i8"),  # messages stored that did not fit when they were put
        ("refused_alters", "i8"),
        ("puts", "i8"),  # messages put since the last report, including those put to a waiting getter
        ("gets", "i8"),  # gets since the last report
        ("unmatched_then", "i8"),  # unmatched_gets when the baseline was set
        ("base_messages", "i8"),  # baseline, as set by the first MEASURE
        ("base_ents", "i8"),
        ("base_elems", "i8"),
        ("last_full_ents", "i8"),  # times of the last puts refused because entries, or elements, were used up
        ("last_full_elems", "i8"),
        ("message_free", "i4"),  # head of the free list
        ("message_high", "i4"),  # rows ever used
        ("held_free", "i4"),
        ("held_high", "i4"),
        ("held_open", "i4"),
        ("unit_free", "i4"),
        ("unit_high", "i4"),
        ("unit_head", "i4"),  # open units, oldest first
        ("unit_tail", "i4"),
        ("expiring", "i4"),  # messages that expire
        ("prepared", "i4"),  # units in doubt
        ("in_doubt", "i4"),  # messages of these units
        ("block_free", "i4"),
        ("block_high", "i4"),
        ("bin", "i4"),  # row of `bins` being filled (see meters.py)
        ("young_from", "i8"),  # `ages` of five minutes ago: messages put since are young (see meters.py)
        ("steady_from", "i8"),  # tick from which bins of flow are valid; NEVER: no tick yet
        ("armed", "u4"),  # conditions that may fire (see watch.py)
        ("fired", "u4"),
        ("based", "u1"),  # 1: a baseline is set
    ],
    align=True,
)

OFFLOAD_NONE, OFFLOAD_SMDS, OFFLOAD_DB2 = range(3)
EXPAND_NONE, EXPAND_USER, EXPAND_SYSTEM = range(3)
RULES = 3
RULE_OFF = 65_536  # OFFLDnSZ(64K), with which an offload rule is not in effect

STRUCTURE, PAGE_SET, QUEUE_FILE = range(3)  # kinds of stores that hold messages

NOTED = 64  # half hours whose puts and shares a store notes for its twin, before it stops for that

PARAMS = np.dtype(
    [
        ("kind", "i8"),
        ("most_messages", "i8"),  # maximum of messages stored, and of those among them that did not fit
        ("most_overfull", "i8"),
        ("trust", "i8"),  # support of a clock that has just jumped, in events (see clock.py)
        ("size_now", "i8"),  # bytes allocated
        ("ents_max", "i8"),
        ("elems_max", "i8"),
        ("ds_block", "i8"),  # bytes
        ("offload_min_length", "i8"),
        ("smds_prefix", "i8"),
        ("offld_th", "i8", (RULES,)),  # percent
        ("offld_sz", "i8", (RULES,)),  # bytes
        ("full_threshold", "i8"),  # percent, 0: off
        ("cf_level", "i4"),
        ("offload", "i4"),
        ("ds_expand", "u1"),
        ("scm_max", "i8"),  # bytes of SCM the structure may use, of over-committed SCM its share; 0: none
        ("scm_most", "i8"),  # bytes up to which puts may show that others leave it more than its share
        ("aug_max", "i8"),  # bytes the coupling facility has for its dynamic augmented space
        ("aug_ppm", "i8"),  # dynamic augmented space in millionths of the SCM in use
        ("scm_base_messages", "i8"),  # measured in SCM beyond those of events, below 0: fewer (twin/stores/estimate.py)
        ("scm_base_elems", "i8"),
        ("stage_ns", "i8"),  # nanoseconds to pre-stage a block of 4 KB, and to pre-fetch one
        ("fetch_ns", "i8"),
        ("read_us", "i8"),  # microseconds to read a block of 4 KB synchronously
        ("packs", "u1"),  # page set: 1: short messages share pages, as before MQ 7.0.1
        ("expand", "u1"),  # page set: EXPAND_NONE, EXPAND_USER, EXPAND_SYSTEM
        ("secondary_pages", "i8"),
        ("max_pages", "i8"),  # pages that the volumes hold, or more than MQ's own limit
        ("np_buffer", "i8"),  # queue file: blocks of the nonpersistent buffer, and of the persistent one
        ("p_buffer", "i8"),
        ("file_max", "i8"),  # queue file: maximum of blocks
        ("queues", "i8"),  # rows of QUEUE in use
        ("limits", "u1"),  # 1: a queue has a MAXDEPTH
        ("lead_s", "f8"),  # seconds before MAXDEPTH from which the twin judges
        ("scan_us", "i8"),  # microseconds between two scans for expired messages; 0: none
        ("expires_from", "i8"),  # no message held expires before that time; not described, but kept by kernels.messages
        ("alters", "u1"),  # structure: 1: z/OS may alter it automatically
        ("attended", "u1"),  # 1: the twin has something to do at every tick (see watch.py)
        ("seen_full_puts", "i8"),  # puts refused with 2192 as of the last tick
        ("look_from", "i8"),  # tick from which the twin looks ahead at a rise
        ("look_rise", "f8"),  # least share of a resource that such a rise has climbed
        ("look_pace", "f8"),  # times the pace of a rise at which it may continue
        ("look_ticks", "f8"),  # horizon within which it may fill the resource
        ("has_outlook", "u1"),  # 1: the twin remembers an outlook, which ends with the rise
        ("due_from", "i8"),  # tick from which the twin has something to do, whether anything rises or not
        ("share", "f8"),  # share in use of the fullest resource but SCM, as of the last tick; kept by kernels.meters
        ("low", "f8"),  # the least of these shares since the twin last took them, inf: none; and the largest
        ("high", "f8"),
        ("noted", "i8"),  # half hours that began since the twin last took their puts; kept by kernels.watch
        ("noted_ticks", "i8", (NOTED,)),  # first tick of each that was acted on
        ("noted_puts", "i8", (NOTED,)),  # messages put before it, refused ones included
        ("noted_shares", "f8", (NOTED, 3)),  # share, low and high as of it
        ("bins_counted", "u1", (BINS,)),  # by bin: 0: its counts are all 0; kept by kernels.meters, 1 at first
    ],
    align=True,
)

USAGE = np.dtype(  # of a resource at one moment, written by meters.py; rows are numbered in meter_rows.py
    [
        ("used", "i8"),  # entries, elements, pages, blocks or bytes, what is left of the baseline included
        ("total", "i8"),  # of its present size
        ("maximum", "i8"),  # of its size after all expansions that can still be made
        ("held", "i8"),  # messages in it, or of a resource of the store itself in the store
        ("pages", "i8"),  # 4 KB pages in use of a data set
        ("grown_from", "i8"),  # of a data set: blocks and limit of which `grown` was worked out (see smds.py)
        ("grown_limit", "i8"),
        ("grown", "i8"),
    ]
)

ROUTE = np.dtype([("flow", "i4"), ("qmgr", "i4"), ("queue", "i4")])  # of a route number of events, local to the store

BUCKET = np.dtype("i4")  # of an index: its first row
_LINK = np.dtype(  # of an index, for a row in a bucket
    [
        ("next", "i4"),  # chain of its bucket
        ("mixed", "i4"),  # hash; if others share its id, ~ the root of their tree (see ids.py)
    ]
)
LINK = _with_alias(_with_alias(_LINK, "left", "next"), "right", "mixed")  # left, right: for a row in such a tree


class _Arrays(NamedTuple):
    """The fields of `Store`."""

    messages: Array
    held: Array
    units: Array
    queues: Array
    chains: Array
    flows: Array
    seen: Array
    blocks: Array
    order: Array
    packed: Array
    places: Array
    ends: Array
    bins: Array
    counts: Array
    stocks: Array
    tides: Array
    rises: Array
    datasets: Array
    usage: Array
    scm: Array
    scm_ends: Array
    page_use: Array
    file_use: Array
    scalars: Array
    params: Array
    message_buckets: Array
    message_links: Array
    held_buckets: Array
    held_links: Array
    unit_buckets: Array
    unit_links: Array
    messages_dirty: Array
    held_dirty: Array
    units_dirty: Array
    queues_dirty: Array
    chains_dirty: Array
    flows_dirty: Array
    seen_dirty: Array
    blocks_dirty: Array
    order_dirty: Array
    packed_dirty: Array
    places_dirty: Array
    ends_dirty: Array
    bins_dirty: Array
    counts_dirty: Array
    stocks_dirty: Array
    tides_dirty: Array
    rises_dirty: Array


class Store(Uniform, _Arrays):
    """All arrays of a store, as kernels take them. Tables may have more rows than are used.

    Tables: messages MESSAGE, held HELD, units UNIT, queues QUEUE, chains CHAIN, flows FLOW, seen SEEN, blocks BLOCK,
    order ORDER (a row per message, if there is SCM), packed PACKED, places PLACE, ends u8 (keys of units of work, see
    queue_file.py); bins BIN, counts i4, stocks STOCK, tides TIDE, rises RISE (see meter_rows.py). Arrays of fixed size:
    datasets DATASET, a row per queue manager; usage USAGE, which is not kept, a row per resource; scm_ends
    ORDER_ENDS[ORDERS]; of one row each: scm SCM_USE, page_use PAGE_USE, file_use FILE_USE, scalars SCALARS, params
    PARAMS. Indexes: `*_buckets` BUCKET[2**k], `*_links` LINK, a row per row of the table. `*_dirty` u1[pages]: 1 for
    pages written since the last snapshot; messages_dirty, order_dirty u1[rows / 8]: a bit per row, the lowest first. A
    store uses the arrays that its kind needs; the others keep their initial contents.
    """

    __slots__ = ()


# Rows per page, as powers of two: pages of about 8 KB. A state call costs as much as writing 5 KB, so smaller pages are
# not cheaper.
HELD_SHIFT = 7
UNIT_SHIFT = 7
QUEUE_SHIFT = 6
CHAIN_SHIFT = 9
FLOW_SHIFT = 8
SEEN_SHIFT = 10
BLOCK_SHIFT = 10
PACKED_SHIFT = 10
PLACE_SHIFT = 8
END_SHIFT = 10


@kernel
def touch(dirty: Array, row: int, shift: int) -> None:
    """Mark the page of `row` as written."""
    dirty[row >> shift] = 1


@kernel
def touch_row(dirty: Array, row: int) -> None:
    """Mark `row` as written, in a bit map."""
    dirty[row >> 3] |= 1 << (row & 7)
