"""Contents of random ALTER, REBUILD and MEASURE events, by kind of store: each from three small integers."""

from collections.abc import Callable
from typing import Any

from tests.naive.estates import BLOCK_SIZES, ENTRY_AND_6_ELEMENTS, LEVELS, RULE_SIZES, THRESHOLDS, pick
from tests.naive.private_estates import EXPANDS, SECONDARY_PAGES, Private
from twin.estate.model import Structure

CHANGED_ENTRIES = (20, 21, 30, 50, 100, 200, 400)

Changes = dict[str, Any]


def of_structure(config: Structure, op: str, what: int, first: int, second: int) -> Changes:
    """Return the content of an event that changes a structure."""
    if op == "ALTER":
        return {"attributes": _altered_structure(config, what, first, second)}
    if op == "REBUILD":
        return {"attributes": _rebuilt_structure(what, first, second)}
    return {"measured": _measured_structure(config, what, first, second)}


def with_facts(changes: Callable[..., Changes]) -> Callable[..., Changes]:
    """Return the contents with facts of queues in half of the MEASURE events, in a sixth of them alone."""

    def changed(config: Any, op: str, what: int, first: int, second: int) -> Changes:
        content: Changes = changes(config, op, what, first, second)
        if op == "MEASURE" and second % 2:
            measured = {} if second % 6 == 1 else content["measured"]
            queues = [_fact(name, what, first, place) for place, name in enumerate((*config.queues, "UNKNOWN"))]
            content = {"measured": {**measured, "queues": queues, "asked": list(config.queue_managers[:1])}}
        return content

    return changed


def _fact(queue: str, what: int, first: int, place: int) -> Changes:
    fact: Changes = {"name": queue, "getters": None if (what + place) % 7 == 0 else max(0, first % 5 - 2)}
    if first % 3:
        fact["depth"] = first * (1 + place)
    return fact


def _rules(first: int, second: int) -> Changes:
    n = 1 + first % 3
    size = pick(RULE_SIZES, first // 3)
    return {f"offld{n}_th": pick(THRESHOLDS, second), f"offld{n}_sz": size if first % 2 else _as_text(size)}


def _altered_structure(config: Structure, what: int, first: int, second: int) -> Changes:
    entries = pick((*CHANGED_ENTRIES, 1000), first)
    cf_level, offload = pick(LEVELS, first)
    kinds: tuple[Callable[[], Changes], ...] = (
        lambda: _rules(first, second),
        lambda: {"size": entries * ENTRY_AND_6_ELEMENTS + second},
        lambda: {"size": config.size + second % 2},
        lambda: {"ds_expand": first % 2 == 0},
        lambda: {"ds_block": _as_text(pick(BLOCK_SIZES, first))},
        lambda: {"cf_level": cf_level, "offload": offload},
        lambda: {"init_size": entries * ENTRY_AND_6_ELEMENTS},
        lambda: {"scm_max_size": "8M", "offld1_th": 0},
        lambda: {"ds_expand": True, "size": entries * ENTRY_AND_6_ELEMENTS} | _rules(second, first),
        lambda: {"full_threshold": 60},
    )
    altered: Changes = pick(kinds, what)()
    return altered


def _rebuilt_structure(what: int, first: int, second: int) -> Changes:
    size = pick(CHANGED_ENTRIES, first) * ENTRY_AND_6_ELEMENTS
    kinds: tuple[Changes, ...] = (
        {},
        {"size": size, "init_size": size},
        {"size": 2 * size, "init_size": size + second},
        {"scm_max_size": "8M"},
        _rules(first, second),
        {"size": size, "init_size": size} | _rules(second, first),
    )
    rebuilt: Changes = pick(kinds, what)
    return rebuilt


def _measured_structure(config: Structure, what: int, first: int, second: int) -> Changes:
    measured: Changes = {}
    if what % 4 != 3:
        measured["ents_used"] = 7 * first
    if what % 5 != 4:
        measured["elems_used"] = 25 * first + second
    if what % 3 == 1:
        measured["messages"] = 5 * second
    if what % 2 == 1:
        qmgr = pick(config.queue_managers, first)
        measured["smds"] = {qmgr: {"blocks_used": second, "pages_used": 2 * second, "messages": first}}
    return measured


def of_scm(config: Structure, op: str, what: int, first: int, second: int) -> Changes:
    """Return the content of an event that changes a structure with storage class memory."""
    entries = pick(CHANGED_ENTRIES, first)
    if op == "MEASURE":
        scm = {"scm": {"used": 4096 * second}} if what % 3 == 0 else {}
        return {"measured": _measured_structure(config, what, first % 8, second) | scm}
    if op == "REBUILD":
        rebuilt: tuple[Changes, ...] = (
            {},
            {"scm_max_size": None},
            {"scm_max_size": _as_text(4096 * (1 + second))},
            {"scm_max_size": 4096 * (1 + first) + second},
            {"size": entries * ENTRY_AND_6_ELEMENTS, "init_size": None},
            {"scm_max_size": "1M", "allow_auto_alter": first % 2 == 0},
        )
        return {"attributes": pick(rebuilt, what)}
    altered: tuple[Changes, ...] = (
        {"allow_auto_alter": first % 2 == 0},
        {"full_threshold": pick((80, 0, 50, 10), first)},
        {"size": entries * ENTRY_AND_6_ELEMENTS + second},
        _rules(first, second),
        {"scm_max_size": "8M"},
    )
    return {"attributes": pick(altered, what)}


def of_page_set(config: Private, op: str, what: int, first: int, second: int) -> Changes:
    """Return the content of an event that changes a page set; a REBUILD of one is a dead letter."""
    if op == "MEASURE":
        return {"measured": _measured_private("pages", what, first, second)}
    pages = config.attributes["pages"]
    kinds: tuple[Changes, ...] = (
        {"expand": pick(EXPANDS, first)},
        {"secondary_pages": pick(SECONDARY_PAGES, first)},
        {"expand": "USER", "secondary_pages": 1 + second},
        {"max_pages": pick((None, pages, pages + 10 * second, 16_777_216), first)},
        {"max_pages": None, "expand": "SYSTEM"},
        {"buffer_pool": first},
        {"pages": pages + second - 3},
        {"pages": pages + 50, "expand": "USER", "secondary_pages": first},
    )
    return {"attributes": pick(kinds, what)}


def of_queue_file(config: Private, op: str, what: int, first: int, second: int) -> Changes:  # noqa: ARG001
    """Return the content of an event that changes a queue file; a REBUILD of one is a dead letter."""
    if op == "MEASURE":
        return {"measured": _measured_private("blocks", what, first, second)}
    kinds: tuple[Changes, ...] = (
        {"max_size": 512 * (1 + first * second)},
        {"max_size": _as_text(1024 * (1 + first))},
        {"file_system_size": pick((None, 1, 2048 * (1 + second), "1T"), first)},
        {"max_size": "2T", "file_system_size": None},
    )
    return {"attributes": pick(kinds, what)}


def _measured_private(unit: str, what: int, first: int, second: int) -> Changes:
    """Persistent and nonpersistent pages or blocks, all pages in use or the file's size, messages: some of them."""
    measured: Changes = {}
    if unit == "pages" and what == 29:
        return {"buffer_pool_pct": 3 * first}
    if what % 3 != 2:
        measured[f"{unit}_persistent"] = 2 * first
    if what % 4 != 3:
        measured[f"{unit}_nonpersistent"] = first + second
    if what % 5 == 4:
        measured |= {"pages_used": 3 * first + second} if unit == "pages" else {"file_bytes": 300 * first * second}
    if what % 2 == 1:
        measured["messages"] = 3 * second
    if unit == "pages" and what % 7 == 6:
        measured["buffer_pool_pct"] = 80 + first / 2
    return measured


def _as_text(size: int) -> int | str:
    return f"{size // 1024}K" if size % 1024 == 0 else size
