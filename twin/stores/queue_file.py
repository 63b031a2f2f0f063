"""The live twins of one queue of a distributed queue manager, and of the queue manager's log.

- Queue: its buffers, its file, its log records and checkpoints. The mechanism is in `kernels.queue_file`. Sources:
  docs/storage-model.md, "Queue files"; docs/state.md, "Fields of a queue file"; [IBM: MQ 10.0, Modifying IBM MQ queue
  files] (a larger MAXFSIZE may wait until the queue is empty).
- Log: records of all queues, checkpoints, and what these truncate. Sources: [IBM: WebSphere MQ internals, "What's the
  point of logging?", "Views of the Queue", "MQCMIT Walkthrough"]; docs/storage-model.md, "Queue files"; docs/state.md,
  "Fields of a queue manager".
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np
from msgspec.structs import asdict
from typing_extensions import override

from kernels import layout, queue_file
from kernels.clock import TICK
from kernels.queue_file import (
    BLOCK_BYTES,
    CHECKPOINT_AFTER,
    LOG_RECORDS,
    MIN_LOG_RECORDS,
    OVERSIZED_BLOCKS,
    OVERSIZED_PERCENT,
)
from twin.alerts import texts
from twin.alerts.episodes import Alert
from twin.alerts.texts import Facts
from twin.base.conditions import BLOCKS, FILE, Pool, Resource
from twin.base.units import MIB, readable_size
from twin.capacity import display_queue_status
from twin.estate import QueueFile, QueueManagerLog, format_size
from twin.estate.model import QUEUE_FILE_MAX_SIZE, mqsc_name
from twin.events import Measured
from twin.forecast.fill_model import put_units
from twin.records import Baseline, BlockDemand, FileSize, Filler, QueueFileState, QueueManagerState, StateRecord, Step
from twin.state.arrays import Array
from twin.stores.drift import MAX_MESSAGES, SizeMeasured, excess
from twin.stores.estimate import Holding
from twin.stores.measurement import holding_by_space
from twin.stores.message_store import MessageStore
from twin.stores.reports import LogValues, QueueFileValues, Report, log_values, queue_file_values
from twin.stores.resources import QUEUE_FILE as RESOURCES
from twin.stores.resources import KnownBy, StoreResource, all_of, any_of, conditions_of, demand_rates, read_usage
from twin.stores.shared_store import SharedStore

_MAX_ENDS = 1024  # logged ends of units between two reports that are matched with those of other queues [assumed]
_Part = Literal["blocks_persistent", "blocks_nonpersistent"]
_PARTS: tuple[_Part, ...] = ("blocks_persistent", "blocks_nonpersistent")
_MAX_MEASURED = 1 << 31  # blocks: the limit of `kernels.pools.keep_persistent`


class QueueFileTwin(MessageStore):
    """The twin of a queue file."""

    kind = "queue_file"
    identity = frozenset({"name", "queue_manager", "queue", "version"})
    resources = RESOURCES
    conditions = conditions_of(RESOURCES)
    measurable = ("messages", "blocks_persistent", "blocks_nonpersistent", "file_bytes")
    takes_in_queues: ClassVar[bool] = False
    known_by: ClassVar[KnownBy] = {
        "messages": any_of("messages"),
        "blocks_persistent": any_of("blocks_persistent"),
        "blocks_nonpersistent": any_of("blocks_nonpersistent"),
        **dict.fromkeys(
            ("blocks_free", "blocks_allocated", "usage_pct"), all_of("blocks_persistent", "blocks_nonpersistent")
        ),
        **dict.fromkeys(
            ("blocks", "file_bytes"), any_of("file_bytes") + all_of("blocks_persistent", "blocks_nonpersistent")
        ),
    }
    config: QueueFile

    @override
    def _begin(self) -> None:
        use = self.tables.store.file_use
        use["checkpoint_at"] = use["last_full"] = layout.NEVER
        use["last"] = use["holes"] = use["free"] = layout.NONE
        self.tables.reserve("ends", _MAX_ENDS)

    @override
    def _reserve_for_put(self, length: int, max_kept: int) -> None:
        self.tables.reserve("places", int(self.tables.store.file_use[0]["runs"]) + max_kept)

    @override
    def _take_over(self, header_described: dict[str, Any], attributes: dict[str, Any], kind_state: msgspec.Raw) -> None:
        changed = {name: value for name, value in self._described.items() if header_described.get(name) != value}
        self.config = replace(self.config, **(attributes | changed))

    @override
    def set_params(self) -> None:
        store = self.tables.store
        params = store.params[0]
        params["kind"] = layout.QUEUE_FILE
        params["np_buffer"] = self.config.default_q_buffer_size // queue_file.BLOCK_BYTES
        params["p_buffer"] = self.config.default_pq_buffer_size // queue_file.BLOCK_BYTES
        params["file_max"] = self.config.limit // queue_file.BLOCK_BYTES
        self._grow_file(0)  # buffers made smaller may no longer hold all of their blocks

    def _grow_file(self, min_blocks: int) -> None:
        store = self.tables.store
        use = store.file_use[0]
        use["file_blocks"] = max(int(use["file_blocks"]), min_blocks, int(queue_file.content_end(store)))

    @override
    def _change(self, op: int, content: dict[str, Any]) -> list[Alert]:
        if op == layout.ALTER:  # a file above its new MAXFSIZE takes no messages until it is drained
            self.config = replace(self.config, **content)
            self.set_params()
        else:
            self.tables.store.scalars["refused_alters"] += 1
        return []

    @override
    def _report_values(self, target: str) -> QueueFileValues | LogValues:
        values = log_values if target == self.config.queue_manager else queue_file_values
        return values(self.tables.store)

    @override
    def _on_tick(self, before: int, tick: int) -> list[Alert]:
        queue_file.pass_time(self.tables.store, before, tick)
        return []

    @override
    def holding(self, measured: Measured) -> Holding | None:
        """Return the messages, by the blocks in use where the depth does not say, and the blocks of one."""
        used = sum(measured[name] for name in _PARTS) if measured.keys() >= set(_PARTS) else None
        model, buffer = self._blocks(), int(self.tables.store.params[0]["p_buffer"])
        if used is None and measured.get("file_bytes"):
            sizes = measured["file_bytes"], model["file_bytes"]
            used, known = (size // queue_file.BLOCK_BYTES + buffer for size in sizes)
            holding, each = holding_by_space(self, measured, used, known), self.estimate.usual_space(self.tables.store)
            if holding is not None and each is not None:  # a file may have held more before
                holding = holding._replace(each=min(each, holding.each))
            return holding
        return holding_by_space(self, measured, used, sum(model[name] for name in _PARTS))

    @override
    def known_pools(self, measured: Measured) -> list[tuple[float, float]]:
        use = self.tables.store.file_use[0]
        own = {"blocks_persistent": int(use["persistent"]), "blocks_nonpersistent": int(use["nonpersistent"])}
        return [(float(own[name]), float(measured[name])) for name in _PARTS if name in measured]

    @override
    def to_take(self, measured: Measured, holding: Holding | None) -> Measured:
        """Return a measurement that is taken over; of a file of which no block was counted its size is what is in use.

        DISPLAY QSTATUS has CURFSIZE and no blocks. A file whose queue is empty has none in use, however large it is.
        """
        if measured.keys() & set(_PARTS):
            return measured
        is_sampled = self.estimate.usual_space(self.tables.store) is not None
        if self.estimate.is_partial and holding is not None and is_sampled:
            blocks = round(holding.messages * holding.each)
            known = min(blocks, int(self.tables.store.file_use[0]["nonpersistent"]))
            return {**measured, "blocks_persistent": blocks - known, "blocks_nonpersistent": known}
        if "file_bytes" in measured and not self.is_counted:
            in_file = 0 if measured.get("messages") == 0 else measured["file_bytes"] // queue_file.BLOCK_BYTES
            buffered = int(self.tables.store.params[0]["p_buffer"]) if in_file else 0
            return {**measured, "blocks_persistent": in_file + buffered, "blocks_nonpersistent": 0}
        return measured

    @override
    def take_sizes(self, measured: Measured) -> None:
        if limit := measured.get("file_max_bytes"):
            self.config = replace(self.config, max_size=limit)
            self.set_params()

    @override
    def set_baseline(self, measured: Measured, holding: Holding | None = None) -> Baseline:
        """Set the baseline; return the state record's `baseline`.

        Where `messages` is not measured, the baseline has one message per block. The file grows to at least its
        measured size.
        """
        scalars, use = self.tables.store.scalars[0], self.tables.store.file_use[0]
        persistent = excess(measured.get("blocks_persistent"), int(use["persistent"]), _MAX_MEASURED)
        nonpersistent = excess(measured.get("blocks_nonpersistent"), int(use["nonpersistent"]), _MAX_MEASURED)
        messages = min(persistent + nonpersistent, MAX_MESSAGES)
        if "messages" in measured:
            messages = excess(measured.get("messages"), int(scalars["messages"]), MAX_MESSAGES)
        added_bytes = excess(measured.get("file_bytes"), int(use["file_blocks"]) * queue_file.BLOCK_BYTES)
        before = (self.drift.baseline or {}).get("file_bytes")
        file_bytes = min(added_bytes + (before if isinstance(before, int) else 0), measured.get("file_bytes", 0))
        scalars["based"] = 1
        scalars["unmatched_then"] = scalars["unmatched_gets"]
        scalars["base_messages"] = messages
        use["base_persistent"], use["base_nonpersistent"] = persistent, nonpersistent
        self._grow_file(int(use["file_blocks"]) + -(-added_bytes // queue_file.BLOCK_BYTES))
        excesses = {
            "messages": messages,
            "blocks_persistent": persistent,
            "blocks_nonpersistent": nonpersistent,
            "file_bytes": file_bytes,
        }
        return {name: value if name in measured else None for name, value in excesses.items()}

    @override
    def compare(self, measured: Measured) -> dict[Resource, tuple[int, int, int]]:
        """Return (model, measured, total) of `blocks` (persistent or nonpersistent, whichever differs more) and `file`.

        The total is the size of buffers and file as allocated: against the largest size the file may have, up to
        2 TB, no drift would exceed the tolerance.
        """
        model = self._blocks()
        compared: dict[Resource, tuple[int, int, int]] = {}
        gaps = {name: abs(model[name] - measured[name]) for name in _PARTS if name in measured}
        if gaps:
            worse = max(gaps, key=gaps.__getitem__)
            compared[BLOCKS] = model[worse], measured[worse], model["blocks"]
        if "file_bytes" in measured:
            compared[FILE] = model["file_bytes"], measured["file_bytes"], model["blocks"] * queue_file.BLOCK_BYTES
        return compared

    @override
    def in_use(self, measured: Measured) -> dict[Resource, tuple[float, float]]:
        """Return (measured, total) of the file.

        Of blocks those count that the buffers do not hold, of the size of the file those that the twin has not seen
        become free: what the file was larger by than in the twin may all be in use.
        """
        params, total = self.tables.store.params[0], int(self.tables.store.params[0]["file_max"])
        if total <= 0:
            return {}
        used = [measured["usage_pct"] / 100 * total] if "usage_pct" in measured else []
        if all(name in measured for name in _PARTS):
            buffers = {"blocks_persistent": int(params["p_buffer"]), "blocks_nonpersistent": int(params["np_buffer"])}
            used.append(sum(max(0, measured[name] - buffers[name]) for name in _PARTS))
        elif "file_bytes" in measured and measured.get("messages") != 0:
            larger = (self.drift.baseline or {}).get("file_bytes")
            unseen = larger // queue_file.BLOCK_BYTES if isinstance(larger, int) else 0
            free = max(0, self._blocks()["blocks_allocated"] - unseen)
            used.append(measured["file_bytes"] // queue_file.BLOCK_BYTES - free)
        return {FILE: (max(0.0, *used), total)} if used else {}

    @override
    def compare_sizes(self, measured: Measured) -> list[SizeMeasured]:
        file_max_bytes = int(self.tables.store.params[0]["file_max"]) * queue_file.BLOCK_BYTES
        real = measured.get("file_max_bytes")
        return [] if real is None else [SizeMeasured(str(FILE), "file_max_bytes", file_max_bytes, real)]

    @override
    def own_view(self, resource: Resource) -> File:
        """Return the view of its file, or of the blocks of file and buffers."""
        queues = self.tables.store.queues[: len(self.queues)]
        return File(self.config, self.tables.store, queues, resource)

    @override
    def displays(self) -> tuple[Step, ...]:
        return (Step("See depth and file", display_queue_status(self.config.queue, "CURDEPTH CURFSIZE CURMAXFS")),)

    @staticmethod
    @override
    def example(qmgr: str, queue: str) -> tuple[QueueFile, tuple[Resource, ...]]:
        return QueueFile(name=f"{qmgr}/{queue}", queue_manager=qmgr, queue=queue), (FILE, BLOCKS)

    def _blocks(self) -> dict[str, int]:
        """Return the space map: blocks of buffers and file by state, and the size of the file.

        `file_bytes` includes blocks that are free and allocated; they stay in the file until it is truncated.
        """
        store = self.tables.store
        params = store.params[0]
        in_file = int(store.file_use[0]["file_blocks"])
        nonpersistent, persistent = queue_file.nonpersistent_in_use(store), queue_file.persistent_in_use(store)
        blocks = int(params["np_buffer"]) + int(params["p_buffer"]) + in_file
        allocated = in_file - int(read_usage(store)["used"][RESOURCES[Pool.FILE].row])
        return {
            "blocks": blocks,
            "blocks_free": blocks - allocated - int(nonpersistent) - int(persistent),
            "blocks_allocated": allocated,
            "blocks_nonpersistent": int(nonpersistent),
            "blocks_persistent": int(persistent),
            "file_bytes": in_file * queue_file.BLOCK_BYTES,
        }

    @override
    def _record(self, common: StateRecord) -> QueueFileState:
        store = self.tables.store
        use = store.file_use[0]
        puts_per_s, blocks_per_s = demand_rates(store, lambda: put_units(store), self.began)
        file_max_bytes = int(store.params[0]["file_max"]) * queue_file.BLOCK_BYTES
        return QueueFileState(
            **asdict(common) | self._blocks(),
            file_max_bytes=file_max_bytes,
            usage_pct=self.own_view(FILE).usage_pct,
            demand=BlockDemand(puts_per_s=puts_per_s, blocks_per_s=blocks_per_s),
            log_records=int(use["log_records"]),
            checkpoints=int(use["checkpoints"]),
            truncations=int(use["truncations"]),
        )


# --- its resources ---------------------------------------------------------------------------------------------------


class File(StoreResource):
    """The file, or the blocks of file and buffers together, where they drift.

    The file's usage is its blocks with data, as a share of the most it may have: free and allocated ones can be used
    again.
    """

    _config: QueueFile
    threshold_name = "threshold"

    def __init__(self, config: QueueFile, store: layout.Store, queues: Array, resource: Resource) -> None:
        super().__init__(config, store, queues, resource, RESOURCES[Pool(resource.pool)])

    @property
    @override
    def is_exhausted(self) -> bool:
        return bool(queue_file.is_full(self._store))

    @property
    @override
    def last_full(self) -> int:
        return int(self._store.file_use[0]["last_full"])

    @override
    def facts(self, ranked: tuple[Filler, ...]) -> Facts:
        config = self._config
        is_limited = config.file_system_size is not None and config.file_system_size <= config.max_size
        larger = min(2 * config.limit, config.file_system_size or QUEUE_FILE_MAX_SIZE, QUEUE_FILE_MAX_SIZE)
        can_grow = not is_limited and config.limit < QUEUE_FILE_MAX_SIZE
        facts = texts.store_facts("queue_file", config, self.resource, ranked)
        return facts.where(file_system_limits=is_limited, file_can_grow=can_grow).adding(
            qmgr=config.queue_manager,
            file_queue_mqsc=mqsc_name(config.queue),
            limit=format_size(config.limit),
            larger=format_size(larger),
            missing=readable_size(max(0, larger - config.limit)),
            megabytes=str(-(-larger // MIB)),
            megabytes_now=str(config.max_size // MIB),
        )


# --- the log of a queue manager ---------------------------------------------------------------------------------------
# Its queue files report at ticks what they logged. Nothing is sent back to them: neither whether a put fits nor any
# alert depends on how far a checkpoint truncated a file, so a queue file waits for no other, and the sizes of the files
# after the checkpoints are kept here, where the checkpoints are.
#
# A unit of work over several queues has an end in each of them (a COMMIT or BACKOUT for each queue, of the same uow and
# time) and one log record. The ends of the same uow that fall into the same tick are matched: of each uow the queue
# with most of them counts. [assumed]

_MAX_FILES = 10  # files of a state record


class _File(msgspec.Struct):
    """The file of a queue, as of its last report; sizes in blocks."""

    size: int = 0  # free blocks included, after every checkpoint of the queue manager
    known: int = 0  # its size by the queue file itself
    needed: int = 0  # at a checkpoint
    is_updated: bool = False  # a log record of the queue since the last checkpoint


class _LogState(msgspec.Struct):
    """State of a queue manager's log beside that of any shared store."""

    records: int = 0
    since_checkpoint: int = 0
    checkpoints: int = 0
    truncations: int = 0
    checkpoint_tick: int | None = None  # of the last checkpoint, or the first tick
    files: dict[str, _File] = {}
    counted_tick: int | None = None  # tick whose reports have been counted last
    ended: dict[int, int] = {}  # log records of the ends of each unit of work in that tick


class QueueManagerTwin(SharedStore[QueueManagerLog, LogValues]):
    """The twin of the log of a distributed queue manager."""

    kind = "queue_manager"
    takes = LogValues
    settling_ticks = 0

    @override
    def _restore(self, kind_state: bytes) -> None:
        self._log = msgspec.msgpack.decode(kind_state, type=_LogState) if kind_state else _LogState()

    @override
    def _kind_state(self) -> bytes:
        return msgspec.msgpack.encode(self._log)

    @override
    def _on_report(self, report: Report, values: LogValues) -> None:
        log = self._log
        if log.counted_tick != report.tick:
            log.counted_tick, log.ended = report.tick, {}
        records = values.records
        for unit, ends in Counter(np.frombuffer(values.ends, "<u8").tolist()).items():
            records += max(0, ends - log.ended.get(unit, 0))
            log.ended[unit] = max(ends, log.ended.get(unit, 0))
        log.records += records
        log.since_checkpoint += records
        file = log.files.setdefault(report.source, _File())
        file.is_updated |= values.records > 0 or bool(values.ends)
        if values.file < file.known:  # it was truncated: by a CLEAR, or a checkpoint that its own records brought
            file.size = min(file.size, values.file)
        elif values.file > file.known:
            file.size = values.file
        file.size = max(file.size, values.in_file)
        file.known, file.needed = values.file, values.at_checkpoint

    @override
    def _on_source_left(self, source: str) -> None:
        self._log.files.pop(source, None)

    @override
    def _can_alter(self, changes: dict[str, Any]) -> bool:
        return False

    # --- checkpoints -----------------------------------------------------------------------------------------------

    @override
    def _due_tick(self) -> int | None:
        log = self._log
        if log.checkpoint_tick is None or log.since_checkpoint < MIN_LOG_RECORDS:
            return None
        return log.checkpoint_tick + CHECKPOINT_AFTER // TICK

    @override
    def _on_turn_back(self, now: int) -> None:
        if self._log.checkpoint_tick is not None:
            self._log.checkpoint_tick = min(self._log.checkpoint_tick, now // TICK)

    @override
    def _check_conditions(self, now: int) -> list[Alert]:
        """Take the checkpoints that are due: a queue manager's log has no condition of an alert."""
        log, tick = self._log, now // TICK
        if log.checkpoint_tick is None:
            log.checkpoint_tick = tick
        due_tick = self._due_tick()
        if log.since_checkpoint >= LOG_RECORDS:
            log.checkpoints += log.since_checkpoint // LOG_RECORDS
            self._checkpoint(tick, log.since_checkpoint % LOG_RECORDS)
        elif due_tick is not None and tick >= due_tick:
            log.checkpoints += 1
            self._checkpoint(tick, 0)
        return []

    def _checkpoint(self, tick: int, records: int) -> None:
        """Take a checkpoint of the queues with a log record since the last one; records: those written after it."""
        log = self._log
        log.checkpoint_tick, log.since_checkpoint = tick, records
        for file in log.files.values():
            if not file.is_updated:
                continue
            oversized = file.size - file.needed
            if oversized >= OVERSIZED_BLOCKS and oversized * 100 >= OVERSIZED_PERCENT * file.size:
                file.size = file.needed
                log.truncations += 1
            file.size = max(file.size, file.needed)
            file.is_updated = False

    @override
    def _record(self, common: StateRecord) -> QueueManagerState:
        log = self._log
        has_reports = bool(log.files)
        largest = sorted(log.files.items(), key=lambda entry: (-entry[1].size, entry[0]))[:_MAX_FILES]
        return QueueManagerState(
            **asdict(common),
            log_records=log.records,
            checkpoints=log.checkpoints,
            records_to_replay=log.since_checkpoint if has_reports else None,
            truncations=log.truncations,
            file_bytes=sum(file.size for file in log.files.values()) * BLOCK_BYTES if has_reports else None,
            files=tuple(FileSize(name=name.partition("/")[2], bytes=file.size * BLOCK_BYTES) for name, file in largest),
            late_reports=self._state.late_reports,
        )
