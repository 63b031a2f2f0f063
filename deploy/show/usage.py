"""The table of stores from state records: the resource nearest to full, and the forecast."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from deploy.show.forecast import forecast_text
from deploy.show.table import print_table
from kernels.queue_file import LOG_RECORDS
from twin.asked import AskedStore, Refusals
from twin.units import as_text

HEADINGS = ("store", "kind", "messages", "used", "total", "unit", "usage", "forecast")
_RIGHT = frozenset({"messages", "used", "total", "usage"})
_BLOCK_BYTES = 512  # of a queue file

State = Mapping[str, Any]
Usage = tuple[float, float, str]  # used, total, unit


def print_usage(states: Iterable[State], *, stderr: bool = False) -> None:
    """Print the table, to standard error if `stderr` is true."""
    print_table(HEADINGS, usage_lines(states), _RIGHT, stderr=stderr)


def print_asked(asked: Mapping[str, AskedStore], *, stderr: bool = False) -> None:
    """Print what the recording says of each store beside what the estate given would have done."""
    headings = ("store", "", "2192", "first 2192", "2053", "gets without message")
    lines = []
    for store, outcome in asked.items():
        lines.append((store, "recorded", *_refusals(outcome.recorded), ""))
        lines.append((store, "this estate", *_refusals(outcome.asked), f"{outcome.unserved_gets:,}"))
    print_table(headings, lines, {"2192", "2053", "gets without message"}, stderr=stderr)


def _refusals(refusals: Refusals) -> tuple[str, str, str]:
    first = "none" if refusals.first_full is None else as_text(refusals.first_full)[:19] + "Z"
    return f"{refusals.full:,}", first, f"{refusals.queue_full:,}"


def usage_lines(states: Iterable[State]) -> list[Sequence[str]]:
    """Return a row of `HEADINGS` for each state record."""
    lines: list[Sequence[str]] = []
    for state in states:
        usage = _USAGE_BY_KIND[state["kind"]](state)
        used, total, unit = usage
        counts = (f"{state['messages']:,}", f"{used:,.0f}", f"{total:,.0f}")
        kind, pct = state["kind"].replace("_", " "), f"{_usage_pct(usage):.1f} %"
        lines.append((state["store"], kind, *counts, unit, pct, forecast_text(state["forecast"])))
    return lines


def _structure(state: State) -> Usage:
    entries = state["ents_used"], state["ents_max"], "entries"
    elements = state["elems_used"], state["elems_max"], "elements"
    return max(entries, elements, key=_usage_pct)


def _page_set(state: State) -> Usage:
    return state["pages_used"], state["pages_total"], "pages"


def _queue_file(state: State) -> Usage:
    """Return the blocks of the file that hold data, as in `usage_pct`."""
    used = state["file_bytes"] // _BLOCK_BYTES - state["blocks_allocated"]
    return used, state["file_max_bytes"] // _BLOCK_BYTES, "file blocks"


def _coupling_facility(state: State) -> Usage:
    return state["scm_used"], state["scm_total"], "bytes of SCM"


def _queue_manager(state: State) -> Usage:
    return state["records_to_replay"], LOG_RECORDS, "log records to a checkpoint"


def _uniform_cluster(state: State) -> Usage:
    return state["rate"], state["capacity"], "messages/s"


_USAGE_BY_KIND: Mapping[str, Callable[[State], Usage]] = {
    "structure": _structure,
    "page_set": _page_set,
    "queue_file": _queue_file,
    "coupling_facility": _coupling_facility,
    "uniform_cluster": _uniform_cluster,
    "queue_manager": _queue_manager,
}


def _usage_pct(usage: Usage) -> float:
    used, total, _ = usage
    return 100.0 * used / total if total else 0.0
