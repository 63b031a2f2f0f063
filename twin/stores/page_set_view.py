"""The resource of a page set: its pages.

Source: [IBM: MQ 9.2, MOVE QLOCAL] (not while the queue is open).
"""

from __future__ import annotations

from collections.abc import Mapping

from typing_extensions import override

from kernels import layout, page_set, watch
from twin.alerts import fillers, texts
from twin.alerts.resource_view import ResourceView
from twin.alerts.texts import NOTHING
from twin.capacity.statements import alter_page_set, display_queue
from twin.conditions import PAGES, Condition, Resource
from twin.estate import PageSet
from twin.records import Action, Filler, Step
from twin.state.arrays import Array
from twin.units import percent

FIRED: dict[int, tuple[str, Resource]] = {  # in the order in which alerts of one event are published
    watch.THRESHOLD: (Condition.THRESHOLD, PAGES),
    watch.CANNOT_EXPAND: (Condition.CANNOT_EXPAND, PAGES),
    watch.FULL: (Condition.FULL, PAGES),
}


class Pages(ResourceView):
    """The pages of a page set."""

    resource = PAGES
    unit = present = "pages"

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
    def maximum_pct(self) -> float:
        if self._config.max_pages is None:
            return self.usage_pct
        return percent(int(page_set.pages_in_use(self._store)), int(page_set.max_usable_pages(self._store)))

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
    def actions(self, ranked: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING) -> tuple[Action, ...]:
        is_at_maximum = int(self._store.page_use[0]["status"]) == layout.MAXIMUM
        return _actions(self._config, ranked, effects, is_at_maximum=is_at_maximum)


def _actions(
    config: PageSet, ranked: tuple[Filler, ...], effects: Mapping[str, str], *, is_at_maximum: bool = False
) -> tuple[Action, ...]:
    """Return the actions for the pages of a page set. is_at_maximum: it has made all its expansions."""
    actions = texts.getter_actions(ranked, effects, is_shared=False)
    psid, undo = config.psid, alter_page_set(config.psid, config.expand)
    by_system = (Step("Alter the page set", alter_page_set(psid, "SYSTEM")),)
    room = "its storage group has room"
    if config.expand == "NONE":
        summary = "Let the page set expand"
        actions.append(Action(id="ps-expand", summary=summary, precondition=room, steps=by_system, undo=undo))
    elif config.expand == "USER" and not config.secondary_pages:
        summary = "Let MQ choose the secondary extent, none is defined"
        actions.append(Action(id="ps-expand", summary=summary, precondition=room, steps=by_system, undo=undo))
    elif not is_at_maximum:
        actions.append(
            Action(
                id="volumes",
                summary="Add volumes to its storage group, then retry the expansion",
                steps=(
                    Step("Look up the name of its data set and the storage group, and add volumes to that"),
                    Step("Retry the expansion", undo),
                ),
            )
        )
    if ranked:
        queue = ranked[0].queue
        actions.append(
            Action(
                id="move-queue",
                summary=f"Move {queue} to a page set with free pages",
                precondition=f"no application has {queue} open, and it holds no uncommitted messages",
                steps=(
                    Step("Find a page set with free pages", "DISPLAY USAGE TYPE(PAGESET)"),
                    Step("Find a storage class on it; if there is none, define one", "DISPLAY STGCLASS(*) PSID"),
                    Step("Look up the storage class of the queue, for the way back", display_queue(queue, "STGCLASS")),
                    Step("Define an empty local queue LIKE it with the new storage class, and MOVE QLOCAL to it"),
                    Step("Give the queue the new storage class, and MOVE QLOCAL back"),
                ),
                risk=f"applications wait for {queue} while its messages move",
                undo="the same with the former storage class",
            )
        )
    return tuple(actions)
