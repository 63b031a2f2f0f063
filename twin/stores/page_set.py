"""The live twin of one page set of a z/OS queue manager.

Sources: seed "Page sets 01 to 99"; domain.md section 4; contract sections 3 and 7. What a message costs, extents and
the space map are in `kernels.page_set`.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from kernels import layout, page_set, pools
from twin.alerts.episodes import Alert
from twin.estate import MAX_PAGES, PageSet
from twin.forecast import fill_model
from twin.stores.drift import MAX_MESSAGES, excess
from twin.stores.message_store import MessageStore
from twin.stores.page_set_view import FIRED, Pages
from twin.stores.state_record import EXPAND_STATUS

_IDENTITY = frozenset({"name", "queue_manager", "psid", "queues"})
_EXPANSION = frozenset({"pages", "expand", "secondary_pages", "max_pages"})  # one of them altered: it may expand again
_EXPANDS = {"NONE": layout.EXPAND_NONE, "USER": layout.EXPAND_USER, "SYSTEM": layout.EXPAND_SYSTEM}
_ASYNCHRONOUS_FROM, _SYNCHRONOUS_FROM = 85, 95  # percent of a buffer pool in use [pub, domain.md section 4]
_NO_VOLUMES_END = 1 << 62  # pages: MQ's own limit comes first
_MAX_MEASURED = 1 << 31  # pages: what `kernels.pools.keep_persistent` can take


class PageSetTwin(MessageStore):
    """See the module. buffer_pool_pct: of its buffer pool in use, as last measured; None: not yet."""

    kind = "page_set"
    is_foreseen = True
    check_against = "Compare the page set's attributes in the estate with DISPLAY USAGE TYPE(PAGESET)"
    config: PageSet
    buffer_pool_pct: float | None = None

    def _attributes(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self.config).items() if name not in _IDENTITY}

    def _begin(self) -> None:
        use = self.tables.store.page_use
        use["filling"] = use["free"] = layout.NONE
        use["last_full"] = layout.NEVER
        self._allocate(self.config.pages)

    def _allocate(self, pages: int) -> None:
        use = self.tables.store.page_use
        use["allocated"] = pages
        use["usable"] = page_set.usable_pages(pages)

    def _own(self) -> dict[str, Any]:
        return {"buffer_pool_pct": self.buffer_pool_pct}

    def _take_over(self, header_described: dict[str, Any], attributes: dict[str, Any], own: dict[str, Any]) -> None:
        """Changed `pages` are the data set as it is now: a new one, without extents."""
        self.buffer_pool_pct = own["buffer_pool_pct"]
        changed = {name: value for name, value in self._described.items() if header_described.get(name) != value}
        self.config = replace(self.config, **(attributes | changed))
        use = self.tables.store.page_use
        if "pages" in changed:
            self._allocate(self.config.pages)
            use["expansions"] = 0
        if _EXPANSION & changed.keys():
            use["status"] = layout.NORMAL

    def _set_params(self) -> None:
        params = self.tables.store.params[0]
        params["kind"] = layout.PAGE_SET
        params["packs"] = self.config.packs
        params["expand"] = _EXPANDS[self.config.expand]
        params["secondary_pages"] = self.config.secondary_pages or 0
        params["max_pages"] = self.config.max_pages or _NO_VOLUMES_END

    def _change(self, op: int, content: dict[str, Any]) -> list[Alert]:
        if op == layout.MEASURE:
            return self._measure_pages(content)
        if op == layout.ALTER and self._takes(content):
            self._alter(content)
        else:
            self.tables.store.scalars["refused_alters"] += 1
        return []

    def _measure_pages(self, measured: dict[str, Any]) -> list[Alert]:
        """Take a measurement. One of the buffer pool alone says nothing of the page set: it is no baseline."""
        pct = measured.pop("buffer_pool_pct", None)
        if pct is not None:
            self.buffer_pool_pct = pct
        return self._measure(measured) if measured else []

    def _takes(self, changes: dict[str, Any]) -> bool:
        """Whether the page set can be as `changes` say.

        It holds at least what is used. Extents are not given back: an expanded page set keeps at least its size. Its
        volumes hold it.
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
        self._set_params()

    def _set_baseline(self, measured: dict[str, Any]) -> dict[str, Any]:
        """Keep what the real system holds beyond the model, and say it.

        Of `pages_used` alone all count as persistent: a restart takes none of them away. Where `messages` is not
        measured there are as many as pages.
        """
        scalars, use = self.tables.store.scalars[0], self.tables.store.page_use[0]
        parts = {"pages_persistent": int(use["persistent"]), "pages_nonpersistent": int(use["nonpersistent"])}
        found = {name: measured[name] for name in parts if name in measured}
        if "pages_used" in measured and len(found) < len(parts):
            other = "pages_nonpersistent" if "pages_persistent" in found else "pages_persistent"
            known = sum(found.values()) if found else parts["pages_nonpersistent"]
            found[other] = measured["pages_used"] - known
        persistent, nonpersistent = (excess(found, name, held, _MAX_MEASURED) for name, held in parts.items())
        messages = min(persistent + nonpersistent, MAX_MESSAGES)
        if "messages" in measured:
            messages = excess(measured, "messages", int(scalars["messages"]), MAX_MESSAGES)
        scalars["based"] = 1
        scalars["unmatched_then"] = scalars["unmatched_gets"]
        scalars["base_messages"] = messages
        use["base_persistent"], use["base_nonpersistent"] = persistent, nonpersistent
        return {"messages": messages, "pages_persistent": persistent, "pages_nonpersistent": nonpersistent}

    def _compare(self, measured: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
        """(model, measured, total) of the pages: of those measured, persistent, nonpersistent, all used, the worst."""
        model = self._pages()
        names = [name for name in ("pages_persistent", "pages_nonpersistent", "pages_used") if name in measured]
        if not names:
            return {}
        worst = max(names, key=lambda name: abs(model[name] - measured[name]))
        return {"pages": (model[worst], measured[worst], model["pages_total"])}

    def resource(self, name: str) -> Pages:  # noqa: ARG002 -- it has one
        """Return its pages."""
        return Pages(self.config, self.tables.store, self.tables.store.queues[: len(self.queues)])

    def rules(self, tick: int) -> fill_model.Rules:
        """What the forecast rolls forward, as it stands at a tick."""
        return fill_model.of_page_set(self.tables.store, tick)

    def _conditions(self) -> dict[int, tuple[str, str]]:
        return FIRED

    def _pages(self) -> dict[str, int]:
        """Pages as DISPLAY USAGE and SMF 115 QIS1 report them."""
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

    def _fields(self) -> dict[str, Any]:
        use = self.tables.store.page_use[0]
        return {
            **self._pages(),
            "usage_pct": self.resource("pages").usage_pct,
            "expansions": int(use["expansions"]),
            "status": EXPAND_STATUS[int(use["status"])],
            "buffer_pool": self.config.buffer_pool,
            "buffer_pool_pct": self.buffer_pool_pct,
            "buffer_pool_writes": self._writes(),
        }

    def _writes(self) -> str | None:
        """How the buffer pool writes at what was measured."""
        if self.buffer_pool_pct is None:
            return None
        if self.buffer_pool_pct >= _SYNCHRONOUS_FROM:
            return "synchronous"
        return "asynchronous" if self.buffer_pool_pct >= _ASYNCHRONOUS_FROM else "none"
