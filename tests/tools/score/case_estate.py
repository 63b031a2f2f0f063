"""Estates of cases: small stores, drawn for the needs of a story, as TOML."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.tools.score.scenarios import Wants
from twin.estate import PageSet, QueueFile, Structure
from twin.simulation.site import Kinds

MIB = 1 << 20
SMALLEST, LARGEST = 16 * MIB, 256 * MIB  # of the store of a story

_QUEUES = ("AUDIT", "CLAIMS", "INVOICES", "LEDGER", "ORDERS", "PAYMENTS", "QUOTES", "REPLIES", "STOCK", "TRADES")
_BLOCK = 64  # KB of DSBLOCK, small like the data sets
_PAGE = 4096  # bytes
_TWO = {"two-stores", "scm-over-committed"}  # needs of at least two structures
_LIKELY = {Structure: 0.7, PageSet: 0.18, QueueFile: 0.12}  # probability by kind of store for stories that play on all


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Drawn estate without the size of the store of the story."""

    store: str  # of the story
    queue: str  # of the story
    text: Callable[[int], str]  # returns the estate with the store at a size, bytes


def draw_estate(wants: Wants, kinds: Kinds, rng: np.random.Generator) -> Drawing:
    """Draw an estate with a store of one of the kinds for the story, and others."""
    likely = np.array([_LIKELY[kind] for kind in kinds])
    kind = kinds[int(np.searchsorted(np.cumsum(likely / likely.sum()), rng.random()))] if wants == "any" else kinds[0]
    queues = [str(queue) for queue in rng.permutation(_QUEUES)]
    if kind is PageSet:
        return _page_sets(wants, queues, rng)
    return _queue_files(queues, rng) if kind is QueueFile else _structures(wants, queues, rng)


def _structures(wants: Wants, queues: list[str], rng: np.random.Generator) -> Drawing:
    """Draw a group of two or three queue managers with one to three structures, several queues in that of the story."""
    qmgrs = [f"QM{number:02}" for number in range(1, int(rng.integers(2, 4)) + 1)]
    structures = [f"APP{number}" for number in range(1, int(rng.integers(2 if wants in _TWO else 1, 4)) + 1)]
    story = str(rng.choice(structures))
    rules, smds, beside = _rules(wants, rng), _smds(wants, rng), _rules("any", rng)
    memory = float(f"{rng.uniform(0.5, 2.0):.2f}") if wants in {"scm", "scm-over-committed"} else 0.0
    owners = dict.fromkeys(queues[: int(rng.integers(2, 5))], story)
    for structure in structures:
        if structure != story:
            owners |= dict.fromkeys(queues[len(owners) : len(owners) + int(rng.integers(1, 3))], structure)

    def text(size: int) -> str:
        """Return the estate as TOML. size: size of the story's store, bytes."""
        parts = [f"schema = 1\n\n[queue_sharing_group.QSG1]\nqueue_managers = {_list(qmgrs)}\n"]
        if memory:
            parts.append(
                f"[coupling_facility.CF01]\nsize = {len(structures) * size * 8}\nscm = {round(size * memory)}\n"
            )
        for structure in structures:
            rest, room, bytes_ = (rules, smds, size) if structure == story else (beside, (8.0, None, None), SMALLEST)
            if memory and (structure == story or wants == "scm-over-committed"):
                bytes_ = size
                rest += f'coupling_facility = "CF01"\nscm_max_size = {round(size * memory)}\n'
            fixed = f'size = {bytes_}\ncf_level = 5\nds_block = "{_BLOCK}K"'
            parts.append(f'[structure."QSG1/{structure}"]\n{fixed}\n{rest}')
            parts += [f'[smds."QSG1/{structure}/{qmgr}"]\n{_room(bytes_, *room)}' for qmgr in qmgrs]
        parts += [f'[queue."QSG1/{queue}"]\nstructure = "{structure}"\n' for queue, structure in sorted(owners.items())]
        return "\n".join(parts)

    return Drawing(store=f"QSG1/{story}", queue=queues[0], text=text)


def _page_sets(wants: Wants, queues: list[str], rng: np.random.Generator) -> Drawing:
    """Draw a queue manager with two page sets; that of the story has several queues."""
    story, other = (int(number) for number in rng.choice(np.arange(1, 10), 2, replace=False))
    story_queues = int(rng.integers(2, 5))
    owners = dict.fromkeys(queues[:story_queues], story) | dict.fromkeys(queues[story_queues : story_queues + 2], other)
    expand = "NONE" if wants == "no-expansion" else str(rng.choice(["SYSTEM", "USER", "NONE"]))
    secondary, max_ratio = float(rng.choice([0.1, 0.25])), float(rng.choice([1.3, 2.0, 3.0]))

    def text(size: int) -> str:
        """Return the estate as TOML. size: size of the story's store, bytes."""
        parts = ['schema = 1\n\n[queue_manager.QM01]\nplatform = "zos"\nversion = "9.4"\n']
        for psid, bytes_ in ((story, size), (other, SMALLEST)):
            pages = bytes_ // _PAGE
            more = f"secondary_pages = {round(pages * secondary)}\nmax_pages = {round(pages * max_ratio)}\n"
            parts.append(
                f'[page_set."QM01/{psid}"]\npages = {pages}\nexpand = "{expand}"\nbuffer_pool = 3\n'
                f"{'' if expand == 'NONE' else more}\n"
                f'[storage_class."QM01/CLASS{psid}"]\npage_set = {psid}\n'
            )
        parts += [f'[queue."QM01/{queue}"]\nstorage_class = "CLASS{psid}"\n' for queue, psid in sorted(owners.items())]
        return "\n".join(parts)

    return Drawing(store=f"QM01/PS{story:02}", queue=queues[0], text=text)


def _queue_files(queues: list[str], rng: np.random.Generator) -> Drawing:
    """Draw a distributed queue manager with two to four queues."""
    names = sorted(queues[: int(rng.integers(2, 5))])

    def text(size: int) -> str:
        """Return the estate as TOML. size: size of the story's store, bytes."""
        parts = ['schema = 1\n\n[queue_manager.QMD1]\nplatform = "distributed"\nversion = "9.4"\n']
        parts += [f'[queue_file."QMD1/{name}"]\nmax_size = {size}\n' for name in names]
        return "\n".join(parts)

    return Drawing(store=f"QMD1/{queues[0]}", queue=queues[0], text=text)


def _rules(wants: Wants, rng: np.random.Generator) -> str:
    """Draw offload rules: IBM's defaults, others, or none."""
    kind = rng.choice(["default", "random", "off"], p=[0.4, 0.35, 0.25])
    if kind == "off" and wants != "rules":
        return "".join(f'offld{number}_sz = "64K"\n' for number in (1, 2, 3))
    if kind == "default":
        return ""
    ths = np.sort(rng.choice(np.arange(40, 96, 5), 3, replace=False))
    sizes = np.sort(rng.choice([0, 1, 2, 4, 8, 16, 32, 48], 3, replace=False))[::-1]
    return "".join(
        f'offld{number}_th = {th}\noffld{number}_sz = "{size}K"\n'
        for number, th, size in zip((1, 2, 3), ths, sizes, strict=True)
    )


def _smds(wants: Wants, rng: np.random.Generator) -> tuple[float, float | None, float | None]:
    """Draw size, secondary and maximum size of the data sets, as multiples of the size of the structure."""
    kind = {"fixed-smds": "fixed", "rules": "roomy"}.get(wants) or str(rng.choice(["fixed", "growing", "roomy"]))
    size = float(rng.choice([1.0, 2.0, 4.0] if wants == "fixed-smds" else [0.25, 0.5, 1.0, 2.0]))
    if kind == "fixed":
        return size, None, size
    if kind == "growing":
        return size, size * float(rng.choice([0.1, 0.25, 0.5])), size * float(rng.choice([1.5, 2.0, 4.0]))
    return 8.0, 1.0, 64.0


def _room(structure: int, size: float, secondary: float | None, largest: float | None) -> str:
    lines = [f"size = {_blocks(structure * size)}"]
    lines += [] if secondary is None else [f"secondary = {_blocks(structure * secondary)}"]
    lines += [] if largest is None else [f"max_size = {_blocks(structure * largest)}"]
    return "\n".join(lines) + "\n"


def _blocks(bytes_: float) -> int:
    """Round to whole blocks."""
    block = _BLOCK << 10
    return max(1, round(bytes_ / block)) * block


def _list(words: list[str]) -> str:
    return "[" + ", ".join(f'"{word}"' for word in words) + "]"
