"""The resources of a queue file: the file, and the blocks of file and buffers together.

Source: [IBM: MQ 10.0, Modifying IBM MQ queue files] (a larger MAXFSIZE may wait until the queue is empty).
"""

from __future__ import annotations

from collections.abc import Mapping

from typing_extensions import override

from kernels import layout, queue_file, watch
from twin.alerts import fillers, texts
from twin.alerts.resource_view import ResourceView
from twin.alerts.texts import NOTHING
from twin.capacity.statements import alter_max_file_size, display_queue_status
from twin.conditions import BLOCKS, FILE, Condition, Resource
from twin.estate import QueueFile, format_size
from twin.estate.model import QUEUE_FILE_MAX_SIZE
from twin.records import Action, Filler, Step
from twin.state.arrays import Array
from twin.units import MIB, percent, readable_size

FIRED: dict[int, tuple[str, Resource]] = {  # in the order in which alerts of one event are published
    watch.THRESHOLD: (Condition.THRESHOLD, FILE),
    watch.FULL: (Condition.FULL, FILE),
}


class File(ResourceView):
    """The file: its blocks with data, as a share of the most it may have. Free and allocated ones can be used again."""

    resource = FILE
    unit = "blocks"
    threshold_name = "threshold"

    def __init__(self, config: QueueFile, store: layout.Store, queues: Array) -> None:
        super().__init__(store)
        self._config = config
        self._queues = queues
        self.text = f"File blocks of {config.name}"

    @override
    def _read_usage_pct(self) -> float:
        return percent(int(queue_file.overflow(self._store)), max(1, int(self._store.params[0]["file_max"])))

    @property
    @override
    def threshold_pct(self) -> float:
        return float(queue_file.WARN_ABOVE)

    @property
    @override
    def is_exhausted(self) -> bool:
        return bool(queue_file.is_full(self._store))

    @property
    @override
    def last_full(self) -> int:
        return int(self._store.file_use[0]["last_full"])

    @override
    def by_queue(self) -> tuple[Array, Array]:
        return fillers.growth(self._queues, "pages"), self._queues["pages"]

    @override
    def actions(self, ranked: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING) -> tuple[Action, ...]:
        return _actions(self._config, ranked, effects)


class Blocks(File):
    """The blocks of file and buffers, where they drift."""

    resource = BLOCKS

    def __init__(self, config: QueueFile, store: layout.Store, queues: Array) -> None:
        super().__init__(config, store, queues)
        self.text = f"Blocks of {config.name}"

    @override
    def _read_usage_pct(self) -> float:
        params = self._store.params[0]
        used = int(queue_file.nonpersistent_in_use(self._store)) + int(queue_file.persistent_in_use(self._store))
        return percent(used, max(1, int(params["file_max"]) + int(params["np_buffer"]) + int(params["p_buffer"])))


def _actions(config: QueueFile, ranked: tuple[Filler, ...], effects: Mapping[str, str]) -> tuple[Action, ...]:
    """Return the actions for the file of a queue."""
    actions = texts.getter_actions(ranked, effects, is_shared=False)
    if config.file_system_size is not None and config.file_system_size <= config.max_size:
        summary = f"Enlarge the file system of {config.queue_manager} beyond {format_size(config.limit)}"
        actions.append(Action(id="file-system", summary=summary))
    elif config.limit < QUEUE_FILE_MAX_SIZE:
        larger = min(2 * config.limit, config.file_system_size or QUEUE_FILE_MAX_SIZE, QUEUE_FILE_MAX_SIZE)
        actions.append(
            Action(
                id="max-file-size",
                summary=f"Raise the maximum size of the queue file from {format_size(config.limit)} to"
                f" {format_size(larger)}",
                precondition=f"its file system has {readable_size(larger - config.limit)} free",
                steps=(
                    Step("Alter the queue", alter_max_file_size(config.queue, -(-larger // MIB))),
                    Step(
                        "See that CURMAXFS has followed; if not, the queue must first be empty once",
                        display_queue_status(config.queue, "CURFSIZE CURMAXFS"),
                    ),
                ),
                undo=alter_max_file_size(config.queue, config.max_size // MIB),
            )
        )
    return tuple(actions)
