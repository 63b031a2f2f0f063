"""Estates of many small structures."""

from __future__ import annotations

from pathlib import Path

STRUCTURES_A_GROUP = 512  # as many as a coupling facility has; MQ allows 512 in a queue-sharing group


def many_stores(folder: Path, stores: int) -> tuple[Path, list[str], list[str]]:
    """Write an estate of many structures; return its file, the store names and, beside each, the name of a queue."""
    parts = ["schema = 1\n"]
    names, queues = [], []
    for number in range(stores):
        group, place = f"QS{number // STRUCTURES_A_GROUP:02}", number % STRUCTURES_A_GROUP
        qmgrs = [qmgr_of(f"{group}/"), f"Q{group[2:]}2"]
        if place == 0:
            members = ", ".join(f'"{qmgr}"' for qmgr in qmgrs)
            parts.append(f"[queue_sharing_group.{group}]\nqueue_managers = [{members}]\n")
        parts.append(f'[structure."{group}/APP{place}"]\nsize = "64M"\ncf_level = 5\noffload = "SMDS"\n')
        parts += [f'[smds."{group}/APP{place}/{qmgr}"]\nsize = "1G"\n' for qmgr in qmgrs]
        parts.append(f'[queue."{group}/Q{place}"]\nstructure = "APP{place}"\n')
        names.append(f"{group}/APP{place}")
        queues.append(f"Q{place}")
    path = folder / "estate.toml"
    path.write_text("".join(parts), encoding="utf-8")
    return path, names, queues


def qmgr_of(store: str) -> str:
    """Return the first queue manager of the store's group, by the naming of `many_stores`."""
    return f"Q{store.partition('/')[0][2:]}1"
