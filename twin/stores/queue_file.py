"""The live twin of one queue of a distributed queue manager: its buffers, its file, its log records and checkpoints.

Sources: seed distributed-queue-manager-internals.txt; domain.md section 5; contract sections 3 and 7. The mechanism is
in `kernels.queue_file`.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from kernels import layout, queue_file
from twin.alerts.episodes import Alert
from twin.estate import QueueFile
from twin.forecast import fill_model
from twin.stores.drift import MAX_MESSAGES, excess
from twin.stores.message_store import MessageStore
from twin.stores.queue_file_view import FIRED, Blocks, File
from twin.stores.reports import QueueFileValues, queue_file_values

_IDENTITY = frozenset({"name", "queue_manager", "queue", "version"})
_MAX_MEASURED = 1 << 31  # blocks: what `kernels.pools.keep_persistent` can take


class QueueFileTwin(MessageStore):
    """See the module."""

    kind = "queue_file"
    is_foreseen = True
    check_against = "Compare the queue's attributes in the estate with DISPLAY QSTATUS CURDEPTH CURFSIZE CURMAXFS"
    config: QueueFile

    def _attributes(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self.config).items() if name not in _IDENTITY}

    def _begin(self) -> None:
        use = self.tables.store.file_use
        use["checkpoint_at"] = use["last_full"] = layout.NEVER

    def _own(self) -> dict[str, Any]:
        return {}

    def _take_over(self, header_described: dict[str, Any], attributes: dict[str, Any], own: dict[str, Any]) -> None:  # noqa: ARG002
        changed = {name: value for name, value in self._described.items() if header_described.get(name) != value}
        self.config = replace(self.config, **(attributes | changed))

    def _set_params(self) -> None:
        store = self.tables.store
        params = store.params[0]
        params["kind"] = layout.QUEUE_FILE
        params["np_buffer"] = self.config.default_q_buffer_size // queue_file.BLOCK_BYTES
        params["p_buffer"] = self.config.default_pq_buffer_size // queue_file.BLOCK_BYTES
        params["file_max"] = self.config.limit // queue_file.BLOCK_BYTES
        self._let_file_hold(0)  # smaller buffers may be too small for what they held

    def _let_file_hold(self, blocks: int) -> None:
        """Let the file have at least so many blocks, and those that the buffers do not hold."""
        store = self.tables.store
        use = store.file_use[0]
        use["file_blocks"] = max(int(use["file_blocks"]), blocks, int(queue_file.overflow(store)))

    def _change(self, op: int, content: dict[str, Any]) -> list[Alert]:
        """An ALTER takes effect at once: a file larger than its new MAXFSIZE takes no more until it is drained."""
        if op == layout.MEASURE:
            return self._measure(content)
        if op == layout.ALTER:
            self.config = replace(self.config, **content)
            self._set_params()
        else:
            self.tables.store.scalars["refused_alters"] += 1
        return []

    def _report_values(self) -> QueueFileValues:
        return queue_file_values(self.tables.store)

    def _at_tick(self, before: int, tick: int) -> list[Alert]:
        queue_file.pass_time(self.tables.store, before, tick)
        return []

    def _set_baseline(self, measured: dict[str, Any]) -> dict[str, Any]:
        """Keep what the real system holds beyond the model, and say it.

        Where `messages` is not measured there are as many as blocks. The file is at least as large as measured.
        """
        scalars, use = self.tables.store.scalars[0], self.tables.store.file_use[0]
        persistent = excess(measured, "blocks_persistent", int(use["persistent"]), _MAX_MEASURED)
        nonpersistent = excess(measured, "blocks_nonpersistent", int(use["nonpersistent"]), _MAX_MEASURED)
        messages = min(persistent + nonpersistent, MAX_MESSAGES)
        if "messages" in measured:
            messages = excess(measured, "messages", int(scalars["messages"]), MAX_MESSAGES)
        file_bytes = excess(measured, "file_bytes", int(use["file_blocks"]) * queue_file.BLOCK_BYTES)
        scalars["based"] = 1
        scalars["unmatched_then"] = scalars["unmatched_gets"]
        scalars["base_messages"] = messages
        use["base_persistent"], use["base_nonpersistent"] = persistent, nonpersistent
        self._let_file_hold(int(use["file_blocks"]) + -(-file_bytes // queue_file.BLOCK_BYTES))
        return {
            "messages": messages,
            "blocks_persistent": persistent,
            "blocks_nonpersistent": nonpersistent,
            "file_bytes": file_bytes,
        }

    def _compare(self, measured: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
        """(model, measured, total): blocks with data, persistent or nonpersistent, the worse; the file, in blocks too.

        The total is the blocks that there are, not those that the file may have: of 2 TB nothing is a percent.
        """
        model = self._blocks()
        found: dict[str, tuple[int, int, int]] = {}
        parts = [name for name in ("blocks_persistent", "blocks_nonpersistent") if name in measured]
        if parts:
            worse = max(parts, key=lambda name: abs(model[name] - measured[name]))
            found["blocks"] = model[worse], measured[worse], model["blocks"]
        if "file_bytes" in measured:
            found["file"] = model["file_bytes"], measured["file_bytes"], model["blocks"] * queue_file.BLOCK_BYTES
        return found

    def resource(self, name: str) -> File:
        """Return its file, or the blocks of file and buffers."""
        queues = self.tables.store.queues[: len(self.queues)]
        return (Blocks if name == Blocks.name else File)(self.config, self.tables.store, queues)

    def rules(self, tick: int) -> fill_model.Rules:
        """What the forecast rolls forward, as it stands at a tick."""
        return fill_model.of_queue_file(self.tables.store, tick)

    def _conditions(self) -> dict[int, tuple[str, str]]:
        return FIRED

    def _blocks(self) -> dict[str, int]:
        """The space map: all blocks of buffers and file by their state, and the file's bytes.

        `file_bytes` counts what is free and allocated until the file is truncated: 512 x blocks beyond the buffers.
        """
        store = self.tables.store
        params = store.params[0]
        in_file = int(store.file_use[0]["file_blocks"])
        nonpersistent, persistent = queue_file.nonpersistent_in_use(store), queue_file.persistent_in_use(store)
        blocks = int(params["np_buffer"]) + int(params["p_buffer"]) + in_file
        allocated = in_file - int(queue_file.overflow(store))
        return {
            "blocks": blocks,
            "blocks_free": blocks - allocated - int(nonpersistent) - int(persistent),
            "blocks_allocated": allocated,
            "blocks_nonpersistent": int(nonpersistent),
            "blocks_persistent": int(persistent),
            "file_bytes": in_file * queue_file.BLOCK_BYTES,
        }

    def _fields(self) -> dict[str, Any]:
        use = self.tables.store.file_use[0]
        counters = {name: int(use[name]) for name in ("log_records", "checkpoints", "truncations")}
        most = int(self.tables.store.params[0]["file_max"]) * queue_file.BLOCK_BYTES
        return {
            **self._blocks(),
            "file_max_bytes": most,
            "usage_pct": self.resource("file").usage_pct,
            **counters,
        }
