"""The estate that is measured: four structures that carry the traffic, and small ones that fill at a word."""

from __future__ import annotations

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
    return tuple(f"{name}.Q{number}" for number in range(QUEUES_A_STORE if store in STORES else 1))


def bench_estate(folder: Path) -> Path:
    """The estate as a file in a folder."""
    parts = [_HEAD]
    for store in (*STORES, *ALARMS):
        parts.append(_STRUCTURE.format(store=store, size="64G" if store in STORES else "1M"))
        parts += [_SMDS.format(store=store, qmgr=qmgr) for qmgr in QUEUE_MANAGERS]
        parts += [_QUEUE.format(queue=queue, structure=store.partition("/")[2]) for queue in queues_of(store)]
    path = folder / "estate.toml"
    path.write_text("".join(parts), encoding="utf-8")
    return path


def load(folder: Path) -> Estate:
    """The estate, read as a user's would be."""
    return load_estate(bench_estate(folder))
