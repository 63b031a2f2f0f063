"""The resource of a page set: its pages."""

from __future__ import annotations

from collections.abc import Mapping

from typing_extensions import override

from kernels import layout, page_set, watch
from twin.alerts import fillers, texts
from twin.alerts.resource_view import ResourceView
from twin.alerts.texts import NOTHING
from twin.capacity.statements import alter_page_set, alter_queue
from twin.conditions import PAGES, Condition, Resource
from twin.estate import PageSet
from twin.records import Filler
from twin.state.arrays import Array

FIRED: dict[int, tuple[str, Resource]] = {  # in the order in which alerts of one event are published
    watch.THRESHOLD: (Condition.THRESHOLD, PAGES),
    watch.CANNOT_EXPAND: (Condition.CANNOT_EXPAND, PAGES),
    watch.FULL: (Condition.FULL, PAGES),
}


class Pages(ResourceView):
    """The pages of a page set."""

    resource = PAGES
    unit = "pages"

    def __init__(self, config: PageSet, store: layout.Store, queues: Array) -> None:
        super().__init__(store)
        self._config = config
        self._queues = queues
        self.text = f"Pages of {config.name}"

    @override
    def _read_usage_pct(self) -> float:
        usable = max(1, int(self._store.page_use[0]["usable"]))
        return round(100.0 * int(page_set.pages_in_use(self._store)) / usable, 3)

    @property
    @override
    def threshold_pct(self) -> float:
        return float(page_set.EXPAND_ABOVE)

    @property
    @override
    def is_exhausted(self) -> bool:
        return bool(page_set.is_full(self._store))

    @property
    @override
    def last_full(self) -> int:
        return int(self._store.page_use[0]["last_full"])

    @property
    @override
    def can_expand(self) -> bool:
        return int(self._store.page_use[0]["status"]) == layout.NORMAL

    @property
    @override
    def expansion_problem(self) -> str:
        use = self._store.page_use[0]
        if int(use["status"]) == layout.MAXIMUM:
            return f"{int(use['expansions'])} expansions; the maximum is {page_set.MAX_EXPANSIONS} or 64 GB"
        if self._config.expand == "USER" and not self._config.secondary_pages:
            return "EXPAND(USER) without a secondary extent"
        if self._config.max_pages is None:  # an ALTER took the limit away, and no put has tried to expand since
            return "its last expansion failed"
        return f"its volumes hold {self._config.max_pages:,} pages"

    @override
    def by_queue(self) -> tuple[Array, Array]:
        """Return growth and holdings in bytes of the page set: messages of several queues may share a page."""
        return fillers.growth(self._queues, "elems"), self._queues["elems"]

    @override
    def growth_in_units(self, growth: Array) -> int:
        return -(-int(growth.sum()) // page_set.PAGE_BYTES)

    @override
    def describe(self, condition: str) -> str:
        sentence = super().describe(condition)
        if condition == Condition.THRESHOLD and self._config.expand == "NONE":
            return f"{sentence}, cannot expand because of EXPAND(NONE)"
        return sentence

    @override
    def actions(self, ranked: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING) -> tuple[str, ...]:
        config, actions = self._config, texts.getter_actions(ranked, effects, is_shared=False)
        if config.expand == "NONE":
            actions.append(f"Let the page set expand: {alter_page_set(config.psid, 'SYSTEM')}")
        elif config.expand == "USER" and not config.secondary_pages:
            actions.append(
                f"Let MQ choose the secondary extent, none is defined: {alter_page_set(config.psid, 'SYSTEM')}"
            )
        elif int(self._store.page_use[0]["status"]) != layout.MAXIMUM:
            actions.append(
                "Add volumes to its storage group, then retry the expansion:"
                f" {alter_page_set(config.psid, config.expand)}"
            )
        if ranked:
            queue = ranked[0].queue
            actions.append(
                f"Move {queue} to a page set with free pages (DISPLAY USAGE TYPE(PAGESET)) or a new one: give that page"
                f" set a storage class OTHER, then DEFINE QLOCAL(TEMP) LIKE({queue}) STGCLASS(OTHER),"
                f" MOVE QLOCAL({queue}) TOQLOCAL(TEMP),"
                f" {alter_queue(queue, 'STGCLASS(OTHER)')}, MOVE QLOCAL(TEMP) TOQLOCAL({queue})"
            )
        return tuple(actions)
