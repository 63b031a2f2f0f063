"""What a queue file's twin sees of its blocks; see `twin.alerts.findings`."""

from __future__ import annotations

from collections.abc import Mapping

from kernels import queue_file, watch
from twin.alerts import fillers, texts
from twin.alerts.episodes import Filler
from twin.alerts.findings import Viewer
from twin.alerts.texts import NOTHING
from twin.conditions import Condition
from twin.state.arrays import Array

FIRED: dict[int, tuple[str, str]] = {  # in the order in which alerts of one event are published
    watch.THRESHOLD: (Condition.THRESHOLD, "file"),
    watch.FULL: (Condition.FULL, "file"),
}


class QueueFileViewer(Viewer):
    """Resources: file; blocks, of file and buffers, where they drift.

    Usage of the file is what its blocks with data are of the most it may have: those free and allocated can be used
    again.
    """

    def usage_pct(self, resource: str) -> float:
        """See `Viewer`."""
        store = self._store
        params = store.params[0]
        used, total = int(queue_file.overflow(store)), int(params["file_max"])
        if resource == "blocks":
            used = int(queue_file.nonpersistent_in_use(store)) + int(queue_file.persistent_in_use(store))
            total += int(params["np_buffer"]) + int(params["p_buffer"])
        return round(100.0 * used / max(1, total), 3)

    def mark_pct(self, condition: str, resource: str) -> float:  # noqa: ARG002 -- one is watched
        """See `Viewer`."""
        return 100.0 if condition == Condition.FULL else float(queue_file.WARN_ABOVE)

    def _exhausted(self, resource: str) -> bool:  # noqa: ARG002
        return bool(queue_file.is_full(self._store))

    def _last_full(self, resource: str) -> int:  # noqa: ARG002
        return int(self._store.file_use[0]["last_full"])

    def _can_expand(self, resource: str) -> bool:  # noqa: ARG002
        return True  # it grows block by block

    def _by_queue(self, resource: str) -> tuple[Array, Array]:  # noqa: ARG002
        return fillers.growth(self._queues, "pages"), self._queues["pages"]

    def _unit(self, resource: str) -> str:  # noqa: ARG002
        return "blocks"

    def _of(self, resource: str) -> str:
        return f"{'File blocks' if resource == 'file' else resource.capitalize()} of {self._config.name}"

    def _mark_name(self, resource: str) -> str:  # noqa: ARG002
        return "threshold"

    def _why_not(self, resource: str) -> str:  # noqa: ARG002
        return "it has no extents"

    def _actions(
        self,
        resource: str,  # noqa: ARG002 -- there is only one
        ranked: tuple[Filler, ...],
        effects: Mapping[str, str] = NOTHING,
    ) -> tuple[str, ...]:
        return texts.queue_file_actions(self._config, ranked, effects)
