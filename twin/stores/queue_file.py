"""The live twin of one queue of a distributed queue manager: its buffers, its file, its log records and checkpoints.

The mechanism is in `kernels.queue_file`. Sources: docs/storage-model.md, "Queue files"; docs/state.md, "Fields of a
queue file"; [IBM: MQ 10.0, Modifying IBM MQ queue files] (a larger MAXFSIZE may wait until the queue is empty).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal

import msgspec
from msgspec.structs import asdict
from typing_extensions import override

from kernels import layout, queue_file
from twin.alerts import texts
from twin.alerts.episodes import Alert
from twin.alerts.runbook import Facts
from twin.capacity.statements import display_queue_status
from twin.conditions import BLOCKS, FILE, Pool, Resource
from twin.estate import QueueFile, format_size
from twin.estate.model import QUEUE_FILE_MAX_SIZE, mqsc_name
from twin.events import Measured
from twin.forecast.fill_model import put_units
from twin.records import Baseline, BlockDemand, Filler, QueueFileState, StateRecord, Step
from twin.state.arrays import Array
from twin.stores.drift import MAX_MESSAGES, SizeMeasured, excess
from twin.stores.estimate import Holding
from twin.stores.measurement import holding_by_space
from twin.stores.message_store import MessageStore
from twin.stores.reports import LogValues, QueueFileValues, log_values, queue_file_values
from twin.stores.resources import QUEUE_FILE as RESOURCES
from twin.stores.resources import StoreResource, conditions_of, read_usage
from twin.stores.state_record import KnownBy, all_of, any_of, demand_rates
from twin.units import MIB, readable_size

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
