"""What state records say of their stores, whatever the kind: the resource that is nearest to its end, and
what is foreseen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from deploy.show.forecast import in_words

HEADINGS = ("store", "kind", "messages", "used", "total", "of", "usage", "forecast")
RIGHT = frozenset({"messages", "used", "total", "usage"})
_BLOCK = 512  # bytes of a queue file's block

State = Mapping[str, Any]
Usage = tuple[float, float, str]  # used, total, what of


def _structure(state: State) -> Usage:
    entries = state["ents_used"], state["ents_max"], "entries"
    elements = state["elems_used"], state["elems_max"], "elements"
    return max(entries, elements, key=_pct)


def _page_set(state: State) -> Usage:
    return state["pages_used"], state["pages_total"], "pages"


def _queue_file(state: State) -> Usage:
    """Blocks of the file with data, as `usage_pct` counts them."""
    return state["file_bytes"] // _BLOCK - state["blocks_allocated"], state["file_max_bytes"] // _BLOCK, "file blocks"


def _coupling_facility(state: State) -> Usage:
    return state["scm_used"], state["scm_total"], "bytes of SCM"


def _uniform_cluster(state: State) -> Usage:
    return state["rate"], state["capacity"], "messages/s"


_OF_KIND: Mapping[str, Callable[[State], Usage]] = {
    "structure": _structure,
    "page_set": _page_set,
    "queue_file": _queue_file,
    "coupling_facility": _coupling_facility,
    "uniform_cluster": _uniform_cluster,
}


def _pct(usage: Usage) -> float:
    used, total, _ = usage
    return 100.0 * used / total if total else 0.0


def lines(states: Iterable[State]) -> list[Sequence[str]]:
    """A line of `HEADINGS` for each state record."""
    found: list[Sequence[str]] = []
    for state in states:
        usage = _OF_KIND[state["kind"]](state)
        used, total, of = usage
        counts = (f"{state['messages']:,}", f"{used:,.0f}", f"{total:,.0f}")
        kind, pct = state["kind"].replace("_", " "), f"{_pct(usage):.1f} %"
        found.append((state["store"], kind, *counts, of, pct, in_words(state["forecast"])))
    return found
