"""The live twin of one page set of a z/OS queue manager.

The mechanism (the pages a message takes, extents, the space map) is in `kernels.page_set`. Sources:
docs/storage-model.md, "Page sets"; docs/state.md, "Fields of a page set"; [IBM: MQ 9.2, MOVE QLOCAL] (not while the
queue is open).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal, cast

import msgspec
from msgspec.structs import asdict
from typing_extensions import override

from kernels import layout, page_set, pools
from kernels.page_set import allocated_pages
from twin.alerts import texts
from twin.alerts.episodes import Alert
from twin.alerts.texts import Facts
from twin.base.conditions import PAGES, Condition, Pool, Resource
from twin.estate import MAX_PAGES, PageSet
from twin.events import Measured
from twin.forecast.fill_model import put_units
from twin.records import Baseline, Filler, PageDemand, PageSetState, StateRecord, Step
from twin.state.arrays import Array
from twin.stores.drift import MAX_MESSAGES, SizeMeasured, excess
from twin.stores.estimate import Holding
from twin.stores.kind import copied_params
from twin.stores.measurement import holding_by_space
from twin.stores.message_store import MessageStore
from twin.stores.resources import EXPAND_STATUS, KnownBy, StoreResource, all_of, any_of, conditions_of, demand_rates
from twin.stores.resources import PAGE_SET as RESOURCES

_EXPANSION = frozenset({"pages", "expand", "secondary_pages", "max_pages"})  # attributes whose change permits expansion
_EXPANDS = {"NONE": layout.EXPAND_NONE, "USER": layout.EXPAND_USER, "SYSTEM": layout.EXPAND_SYSTEM}
_ASYNCHRONOUS_FROM, _SYNCHRONOUS_FROM = 85, 95  # percent of a buffer pool in use [IBM: Managing buffer pools]
_UNLIMITED_PAGES = 1 << 62  # volumes without a limit; MQ's own applies first
_Part = Literal["pages_persistent", "pages_nonpersistent"]
_PARTS: tuple[_Part, ...] = ("pages_persistent", "pages_nonpersistent")
_Used = Literal[_Part, "pages_used"]
_USED: tuple[_Used, ...] = (*_PARTS, "pages_used")
_MAX_MEASURED = 1 << 31  # pages: the limit of `kernels.pools.keep_persistent`


class _PageSetState(msgspec.Struct):
    """State of a page set that is in neither records nor attributes."""

    buffer_pool_pct: float | None


class PageSetTwin(MessageStore):
    """The twin of a page set. buffer_pool_pct: percent of its buffer pool in use, as last measured, or None."""

    kind = "page_set"
    identity = frozenset({"name", "queue_manager", "psid", "queues"})
    resources = RESOURCES
    conditions = conditions_of(RESOURCES)
    measurable = ("messages", "pages_used", "pages_persistent", "pages_nonpersistent")
    known_by: ClassVar[KnownBy] = {
        "messages": any_of("messages"),
        **dict.fromkeys(
            ("pages_used", "pages_unused", "usage_pct"),
            any_of("pages_used") + all_of("pages_persistent", "pages_nonpersistent"),
        ),
        "pages_persistent": any_of("pages_persistent") + all_of("pages_used", "pages_nonpersistent"),
        "pages_nonpersistent": any_of("pages_nonpersistent") + all_of("pages_used", "pages_persistent"),
    }
    config: PageSet
    buffer_pool_pct: float | None = None

    @override
    def _begin(self) -> None:
        use = self.tables.store.page_use
        use["filling"] = use["free"] = layout.NONE
        use["last_full"] = layout.NEVER
        self._allocate(self.config.pages)

    @override
    def _reserve_for_put(self, length: int, max_kept: int) -> None:
        store = self.tables.store
        if store.params[0]["packs"]:
            self.tables.reserve("packed", int(store.page_use[0]["high"]) + max_kept)

    def _allocate(self, pages: int) -> None:
        use = self.tables.store.page_use
        use["allocated"] = pages
        use["usable"] = page_set.usable_pages(pages)

    @override
    def _kind_state(self) -> _PageSetState:
        return _PageSetState(self.buffer_pool_pct)

    @override
    def _take_over(self, header_described: dict[str, Any], attributes: dict[str, Any], kind_state: msgspec.Raw) -> None:
        self.buffer_pool_pct = msgspec.msgpack.decode(kind_state, type=_PageSetState).buffer_pool_pct
        changed = {name: value for name, value in self._described.items() if header_described.get(name) != value}
        self.config = replace(self.config, **(attributes | changed))
        use = self.tables.store.page_use
        if "pages" in changed:  # the estate describes a newly allocated data set, without extents
            self._allocate(self.config.pages)
            use["expansions"] = 0
        if _EXPANSION & changed.keys():
            use["status"] = layout.NORMAL

    @override
    def set_params(self) -> None:
        params = self.tables.store.params[0]
        params["kind"] = layout.PAGE_SET
        for name, value in copied_params(self.config).items():
            params[name] = value
        params["expand"] = _EXPANDS[self.config.expand]
        params["secondary_pages"] = self.config.secondary_pages or 0
        params["max_pages"] = self.config.max_pages or _UNLIMITED_PAGES

    @override
    def _change(self, op: int, content: dict[str, Any]) -> list[Alert]:
        if op == layout.ALTER and self._can_alter(content):
            self._alter(content)
        else:
            self.tables.store.scalars["refused_alters"] += 1
        return []

    @override
    def levels_of(self, measured: Measured) -> Measured:
        pct = measured.get("buffer_pool_pct")
        if pct is None:
            return measured
        self.buffer_pool_pct = float(pct)  # as it is after a reload: 48 and 48.0 are other bytes of a state record
        self.drift.measured = sorted({*self.drift.measured, "buffer_pool_pct"})
        return cast("Measured", {name: value for name, value in measured.items() if name != "buffer_pool_pct"})

    def _can_alter(self, changes: dict[str, Any]) -> bool:
        """Return True if an ALTER is possible.

        The new size must hold the pages in use and fit on the volumes, and must not be smaller once the page set has
        expanded, as extents are not given back [assumed].
        """
        use = self.tables.store.page_use[0]
        allocated = changes.get("pages", int(use["allocated"]))
        if page_set.usable_pages(allocated) < page_set.pages_in_use(self.tables.store) and "pages" in changes:
            return False
        if allocated < use["allocated"] and use["expansions"]:
            return False
        return bool(allocated <= (changes.get("max_pages", self.config.max_pages) or MAX_PAGES))

    def _alter(self, changes: dict[str, Any]) -> None:
        self.config = replace(self.config, **changes)
        if "pages" in changes:
            self._allocate(changes["pages"])
        if _EXPANSION & changes.keys():
            self.tables.store.page_use["status"] = layout.NORMAL
        self.set_params()

    @override
    def take_sizes(self, measured: Measured) -> None:
        use, total = self.tables.store.page_use, min(measured.get("pages_total") or 0, _MAX_MEASURED)
        if total and total != use[0]["usable"]:
            if total > use[0]["usable"]:
                use["status"] = layout.NORMAL  # it has expanded
            use["allocated"], use["usable"] = allocated_pages(total), total
        if "expansions" in measured:
            use["expansions"] = measured["expansions"]

    @override
    def holding(self, measured: Measured) -> Holding | None:
        """Return the messages, by the pages in use where depths do not say, and the pages of one."""
        parts = [measured[name] for name in _PARTS if name in measured]
        used = measured.get("pages_used", sum(parts) if len(parts) == len(_PARTS) else None)
        return holding_by_space(self, measured, used, self._pages()["pages_used"])

    @override
    def known_pools(self, measured: Measured) -> list[tuple[float, float]]:
        use = self.tables.store.page_use[0]
        used = int(use["persistent"]) + int(use["nonpersistent"])
        return [(float(used), float(measured["pages_used"]))] if "pages_used" in measured else []

    @override
    def set_baseline(self, measured: Measured, holding: Holding | None = None) -> Baseline:
        """Set the baseline; return the state record's `baseline`.

        Where only `pages_used` is measured, all pages of the baseline count as persistent, so that a restart drops
        none of them. Where `messages` is not measured, the baseline has one message per page.
        """
        scalars, use = self.tables.store.scalars[0], self.tables.store.page_use[0]
        parts: dict[_Part, int] = {
            "pages_persistent": int(use["persistent"]),
            "pages_nonpersistent": int(use["nonpersistent"]),
        }
        real = {name: measured[name] for name in _PARTS if name in measured}
        if "pages_used" in measured and len(real) < len(parts):
            other: _Part = "pages_nonpersistent" if "pages_persistent" in real else "pages_persistent"
            known = sum(real.values()) if real else parts["pages_nonpersistent"]
            real[other] = measured["pages_used"] - known
        persistent, nonpersistent = (excess(real.get(name), pages, _MAX_MEASURED) for name, pages in parts.items())
        messages = min(persistent + nonpersistent, MAX_MESSAGES)
        if "messages" in measured:
            messages = excess(measured.get("messages"), int(scalars["messages"]), MAX_MESSAGES)
        scalars["based"] = 1
        scalars["unmatched_then"] = scalars["unmatched_gets"]
        scalars["base_messages"] = messages
        use["base_persistent"], use["base_nonpersistent"] = persistent, nonpersistent
        return {
            "messages": messages if "messages" in measured else None,
            "pages_persistent": persistent if "pages_persistent" in real else None,
            "pages_nonpersistent": nonpersistent if "pages_nonpersistent" in real else None,
        }

    @override
    def compare(self, measured: Measured) -> dict[Resource, tuple[int, int, int]]:
        """Return (model, measured, total) of the pages: of the measured fields, the one that differs most."""
        model = self._pages()
        gaps = {name: abs(model[name] - measured[name]) for name in _USED if name in measured}
        if not gaps:
            return {}
        worst = max(gaps, key=gaps.__getitem__)
        return {PAGES: (model[worst], measured[worst], model["pages_total"])}

    @override
    def with_usage(self, measured: Measured) -> Measured:
        if "usage_pct" not in measured or any(name in measured for name in _USED):
            return measured
        return {**measured, "pages_used": round(measured["usage_pct"] / 100 * self._pages()["pages_total"])}

    @override
    def in_use(self, measured: Measured) -> dict[Resource, tuple[float, float]]:
        total = self._pages()["pages_total"]
        parts = [measured[name] for name in _PARTS if name in measured]
        used = max(measured.get("pages_used", 0), sum(parts), total - measured.get("pages_unused", total))
        is_said = parts or "pages_used" in measured or "pages_unused" in measured
        return {PAGES: (used, total)} if is_said and total > 0 else {}

    @override
    def compare_sizes(self, measured: Measured) -> list[SizeMeasured]:
        total = measured.get("pages_total")
        return [] if total is None else [SizeMeasured(str(PAGES), "pages_total", self._pages()["pages_total"], total)]

    @override
    def own_view(self, resource: Resource) -> Pages:
        """Return the view of its pages."""
        return Pages(self.config, self.tables.store, self.tables.store.queues[: len(self.queues)])

    @override
    def displays(self) -> tuple[Step, ...]:
        return (Step("See its pages", "DISPLAY USAGE TYPE(PAGESET)"),)

    @staticmethod
    @override
    def example(qmgr: str, queue: str) -> tuple[PageSet, tuple[Resource, ...]]:
        return PageSet(name=f"{qmgr}/PS01", queue_manager=qmgr, psid=1, pages=1000, queues=(queue,)), (PAGES,)

    def _pages(self) -> dict[str, int]:
        """Return the counts of pages, named as in DISPLAY USAGE and SMF 115 QIS1."""
        store = self.tables.store
        use = store.page_use[0]
        persistent = int(use["persistent"]) + int(pools.base_left(store, int(use["base_persistent"])))
        nonpersistent = int(use["nonpersistent"]) + int(pools.base_left(store, int(use["base_nonpersistent"])))
        total = int(use["usable"])
        return {
            "pages_total": total,
            "pages_used": persistent + nonpersistent,
            "pages_persistent": persistent,
            "pages_nonpersistent": nonpersistent,
            "pages_unused": max(0, total - persistent - nonpersistent),
        }

    @override
    def _record(self, common: StateRecord) -> PageSetState:
        store = self.tables.store
        use = store.page_use[0]
        puts_per_s, pages_per_s = demand_rates(store, lambda: put_units(store), self.began)
        return PageSetState(
            **asdict(common) | self._pages() | {"limits_unknown": self._limits_unknown()},
            pages_max=int(page_set.max_usable_pages(store)),
            usage_pct=self.own_view(PAGES).usage_pct,
            expansions=int(use["expansions"]),
            status=EXPAND_STATUS[int(use["status"])],
            demand=PageDemand(puts_per_s=puts_per_s, pages_per_s=pages_per_s),
            buffer_pool=self.config.buffer_pool,
            buffer_pool_pct=self.buffer_pool_pct,
            buffer_pool_writes=self._buffer_pool_writes(),
        )

    def _limits_unknown(self) -> tuple[str, ...]:
        """Return its pages if they expand up to a limit that the estate does not describe."""
        return (str(PAGES),) if self.config.expand != "NONE" and self.config.max_pages is None else ()

    def _buffer_pool_writes(self) -> Literal["none", "asynchronous", "synchronous"] | None:
        """Return how the buffer pool writes pages at its measured usage; None before a measurement."""
        if self.buffer_pool_pct is None:
            return None
        if self.buffer_pool_pct >= _SYNCHRONOUS_FROM:
            return "synchronous"
        return "asynchronous" if self.buffer_pool_pct >= _ASYNCHRONOUS_FROM else "none"


# --- its resource ----------------------------------------------------------------------------------------------------


class Pages(StoreResource):
    """The pages of a page set."""

    _config: PageSet

    def __init__(self, config: PageSet, store: layout.Store, queues: Array) -> None:
        super().__init__(config, store, queues, PAGES, RESOURCES[Pool.PAGES])

    @property
    @override
    def is_limit_known(self) -> bool:
        return self._config.max_pages is not None

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
    def growth_in_units(self, growth: Array) -> int:
        return -(-int(growth.sum()) // page_set.PAGE_BYTES)

    @override
    def describe(self, condition: str) -> str:
        sentence = super().describe(condition)
        if condition == Condition.THRESHOLD and self._config.expand == "NONE":
            return f"{sentence}, cannot expand because of EXPAND(NONE)"
        return sentence

    @override
    def facts(self, ranked: tuple[Filler, ...]) -> Facts:
        config, use = self._config, self._store.page_use[0]
        is_none, is_missing = config.expand == "NONE", config.expand == "USER" and not config.secondary_pages
        can_retry = not is_none and not is_missing and int(use["status"]) != layout.MAXIMUM
        facts = texts.store_facts("page_set", config, self.resource, ranked)
        facts = facts.where(expand_none=is_none, extent_missing=is_missing, can_retry=can_retry)
        return facts.adding(psid=str(config.psid), expand=config.expand)
