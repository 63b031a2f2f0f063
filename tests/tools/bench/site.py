"""The estate that is measured: four structures that carry the traffic, and small ones that fill at a word."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from twin.estate import Estate, load_estate

QUEUE_MANAGERS = ("QM01", "QM02")
# Names that spread evenly over two and over four partitions, of the topic (murmur2) and of the state (murmur3): an
# estate of many structures does so by itself, four names by chance would not.
STORES = ("QSG1/APP1", "QSG1/APP3", "QSG1/APP5", "QSG1/APP12")
QUEUES_A_STORE = 4
ALARMS = tuple(
    f"QSG1/ALARM{number}" for number in range(1, 9)
)  # 1 MB each: one put of many messages crosses a threshold

_HEAD = """\
schema = 1

[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
"""
_STRUCTURE = """
[structure."{store}"]
size = "{size}"
cf_level = 5
offload = "SMDS"
"""
_SMDS = """
[smds."{store}/{qmgr}"]
size = "4G"
secondary = "1G"
"""
_QUEUE = """
[queue."QSG1/{queue}"]
structure = "{structure}"
"""


def queues_of(store: str) -> tuple[str, ...]:
    """The queues of a store."""
    name = store.partition("/")[2]
    return tuple(f"{name}.Q{number}" for number in range(1 if store in ALARMS else QUEUES_A_STORE))


def bench_estate(folder: Path, stores: Sequence[str] = STORES, *, idle_queues: int = 0) -> Path:
    """Return the file of an estate in a folder.

    Args:
        folder: it is written into.
        stores: that carry the traffic; those of `ALARMS` are added.
        idle_queues: queues without traffic besides.
    """
    parts = [_HEAD]
    for store in (*stores, *ALARMS):
        name = store.partition("/")[2]
        parts.append(_STRUCTURE.format(store=store, size="1M" if store in ALARMS else "64G"))
        parts += [_SMDS.format(store=store, qmgr=qmgr) for qmgr in QUEUE_MANAGERS]
        parts += [_QUEUE.format(queue=queue, structure=name) for queue in queues_of(store)]
    first = stores[0].partition("/")[2]
    parts += [_QUEUE.format(queue=f"IDLE.Q{number}", structure=first) for number in range(idle_queues)]
    path = folder / "estate.toml"
    path.write_text("".join(parts), encoding="utf-8")
    return path


def load(folder: Path) -> Estate:
    """The estate, read as a user's would be."""
    return load_estate(bench_estate(folder))
