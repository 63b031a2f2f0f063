"""What a page set's twin sees of its pages; see `twin.alerts.findings`."""

from __future__ import annotations

from collections.abc import Mapping

from kernels import layout, page_set, watch
from twin.alerts import fillers, texts
from twin.alerts.episodes import Filler
from twin.alerts.findings import Viewer
from twin.alerts.texts import NOTHING
from twin.state.arrays import Array

FIRED = {  # in the order in which alerts of one event are published
    watch.THRESHOLD: ("threshold", "pages"),
    watch.CANNOT_EXPAND: ("cannot-expand", "pages"),
    watch.FULL: ("full", "pages"),
}
EXPAND_STATUS = {layout.NORMAL: "NORMAL", layout.FAILED: "FAILED", layout.MAXIMUM: "MAXIMUM"}


class PageSetViewer(Viewer):
    """Its one resource: pages."""

    def usage_pct(self, resource: str) -> float:  # noqa: ARG002 -- there is one
        """See `Viewer`."""
        usable = max(1, int(self._store.page_use[0]["usable"]))
        return round(100.0 * page_set.pages_in_use(self._store) / usable, 3)

    def mark_pct(self, condition: str, resource: str) -> float:  # noqa: ARG002
        """See `Viewer`."""
        return 100.0 if condition == "full" else float(page_set.EXPAND_ABOVE)

    def _exhausted(self, resource: str) -> bool:  # noqa: ARG002
        return bool(page_set.is_full(self._store))

    def _last_full(self, resource: str) -> int:  # noqa: ARG002
        return int(self._store.page_use[0]["last_full"])

    def _can_expand(self, resource: str) -> bool:  # noqa: ARG002
        return int(self._store.page_use[0]["status"]) == layout.NORMAL

    def _by_queue(self, resource: str) -> tuple[Array, Array]:  # noqa: ARG002
        """In bytes of the page set: messages of several queues may share a page."""
        return fillers.growth(self._queues, "elems"), self._queues["elems"]

    def _filled(self, resource: str, ranked: tuple[Filler, ...], grown: Array) -> str:
        return super()._filled(resource, ranked, -(-grown.sum(keepdims=True) // page_set.PAGE_BYTES))

    def _unit(self, resource: str) -> str:
        return resource

    def _of(self, resource: str) -> str:
        return f"{resource} of {self._config.name}"

    def _mark_name(self, resource: str) -> str:  # noqa: ARG002
        return "mark for expansion"

    def _what(self, condition: str, resource: str, usage: float) -> str:
        what = super()._what(condition, resource, usage)
        if condition == "threshold" and self._config.expand == "NONE":
            return f"{what} and EXPAND(NONE) lets it not expand"
        return what

    def _why_not(self, resource: str) -> str:  # noqa: ARG002
        use = self._store.page_use[0]
        if int(use["status"]) == layout.MAXIMUM:
            return f"it has {int(use['expansions'])} expansions of at most {page_set.MAX_EXPANSIONS} and at most 64 GB"
        if self._config.expand == "USER" and not self._config.secondary_pages:
            return "EXPAND(USER) without a secondary extent"
        return f"its volumes hold {self._config.max_pages:,} pages"

    def _actions(
        self,
        resource: str,  # noqa: ARG002 -- there is only one
        ranked: tuple[Filler, ...],
        effects: Mapping[str, str] = NOTHING,
    ) -> tuple[str, ...]:
        return texts.page_set_actions(
            self._config, int(self._store.page_use[0]["status"]) == layout.MAXIMUM, ranked, effects
        )
