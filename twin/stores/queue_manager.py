"""The live twin of a distributed queue manager's log: records of all its queues, checkpoints, and what these truncate.

Its queue files report at ticks what they logged. Nothing is sent back to them: neither whether a put fits nor any alert
depends on how far a checkpoint truncated a file, so a queue file waits for no other, and the sizes of the files after
the checkpoints are kept here, where the checkpoints are. A unit of work over several queues has an end in each of them
(a COMMIT or BACKOUT for each queue, of the same uow and time) and one log record. The ends of the same uow that fall
into the same tick are matched: of each uow the queue with most of them counts. [assumed] Sources: [IBM: WebSphere MQ
internals, "What's the point of logging?", "Views of the Queue", "MQCMIT Walkthrough"]; docs/storage-model.md, "Queue
files"; docs/state.md, "Fields of a queue manager".
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import asdict
from typing_extensions import override

from kernels.clock import TICK
from kernels.queue_file import (
    BLOCK_BYTES,
    CHECKPOINT_AFTER,
    LOG_RECORDS,
    MIN_LOG_RECORDS,
    OVERSIZED_BLOCKS,
    OVERSIZED_PERCENT,
)
from twin.alerts.episodes import Alert
from twin.estate import QueueManagerLog
from twin.records import FileSize, QueueManagerState, StateRecord
from twin.stores.reports import LogValues, Report
from twin.stores.shared_store import SharedStore

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
