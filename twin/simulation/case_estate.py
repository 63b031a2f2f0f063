"""The estates of cases: a queue-sharing group with small structures, drawn for what a story wants, as TOML."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from twin.simulation.scenario import Wants

MIB = 1 << 20
SMALLEST, LARGEST = 16 * MIB, 256 * MIB  # of the structure that a story is about

_QUEUES = ("AUDIT", "CLAIMS", "INVOICES", "LEDGER", "ORDERS", "PAYMENTS", "QUOTES", "REPLIES", "STOCK", "TRADES")
_BLOCK = 64  # KB of DSBLOCK: small, as the data sets are


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """What was drawn, but for the size. text(bytes): the estate with a story's structure of that size.

    store, queue: what the story is about.
    """

    store: str
    queue: str
    text: Callable[[int], str]


def draw_estate(wants: Wants, rng: np.random.Generator) -> Drawing:
    """An estate of two or three queue managers with one to three structures, and several queues in the story's one."""
    qmgrs = [f"QM{number:02}" for number in range(1, int(rng.integers(2, 4)) + 1)]
    structures = [f"APP{number}" for number in range(1, int(rng.integers(2 if wants == "two-stores" else 1, 4)) + 1)]
    story = str(rng.choice(structures))
    queues = [str(queue) for queue in rng.permutation(_QUEUES)]
    rules, smds, beside = _rules(wants, rng), _smds(wants, rng), _rules("any", rng)
    owners = dict.fromkeys(queues[: int(rng.integers(2, 5))], story)
    for structure in structures:
        if structure != story:
            owners |= dict.fromkeys(queues[len(owners) : len(owners) + int(rng.integers(1, 3))], structure)

    def text(size: int) -> str:
        parts = [f"schema = 1\n\n[queue_sharing_group.QSG1]\nqueue_managers = {_list(qmgrs)}\n"]
        for structure in structures:
            here, room, bytes_ = (rules, smds, size) if structure == story else (beside, (8.0, None, None), SMALLEST)
            parts.append(
                f'[structure."QSG1/{structure}"]\nsize = {bytes_}\ncf_level = 5\nds_block = "{_BLOCK}K"\n{here}'
            )
            parts += [f'[smds."QSG1/{structure}/{qmgr}"]\n{_room(bytes_, *room)}' for qmgr in qmgrs]
        parts += [f'[queue."QSG1/{queue}"]\nstructure = "{structure}"\n' for queue, structure in sorted(owners.items())]
        return "\n".join(parts)

    return Drawing(store=f"QSG1/{story}", queue=queues[0], text=text)


def _rules(wants: Wants, rng: np.random.Generator) -> str:
    """The offload rules: IBM's defaults, others, or none."""
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
    """Size, secondary and largest size of the data sets, as multiples of the structure's size."""
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
    """Whole blocks."""
    block = _BLOCK << 10
    return max(1, round(bytes_ / block)) * block


def _list(words: list[str]) -> str:
    return "[" + ", ".join(f'"{word}"' for word in words) + "]"
