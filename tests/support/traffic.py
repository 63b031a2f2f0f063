"""A small estate of two structures, and recordings of traffic in it that fill them and drain them again."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from twin.recordings.files import RecordingWriter

ESTATE = """
schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[queue_manager.QM01]
platform = "zos"
[queue_manager.QM02]
platform = "zos"
[structure."QSG1/APP1"]
size = "1M"
cf_level = 5
offload = "SMDS"
[structure."QSG1/APP2"]
size = "512K"
cf_level = 5
offload = "SMDS"
[smds."QSG1/APP1/QM01"]
size = "16M"
[smds."QSG1/APP1/QM02"]
size = "16M"
[smds."QSG1/APP2/QM01"]
size = "16M"
[smds."QSG1/APP2/QM02"]
size = "16M"
[queue."QSG1/ORDERS"]
structure = "APP1"
[queue."QSG1/BILLS"]
structure = "APP2"
[page_set."QM01/4"]
pages = 1000
[storage_class."QM01/DEFAULT"]
page_set = 4
[queue."QM01/LOCAL"]
storage_class = "DEFAULT"
"""

STORE_OF = {
    (qmgr, queue): store
    for qmgr in ("QM01", "QM02")
    for queue, store in (("ORDERS", "QSG1/APP1"), ("BILLS", "QSG1/APP2"))
}
START_US = 1_795_176_000_000_000  # 2026-11-20T12:00:00Z
SECOND_US = 1_000_000
BAD_LINES = (
    b'{"time":',
    b'["PUT"]',
    b'{"time":1795176000000000,"qmgr":"QM01","op":"PUT","queue":"ORDERS"}',
    b'{"time":1795176000000000,"qmgr":"QM01","op":"PUT","queue":"ORDERZ","length":1}',
    b'{"time":1795176000000000,"qmgr":"QM01","op":"PUT","queue":"LOCAL","length":-1}',
    b"caf\xe9",
)


def write_estate(folder: Path) -> Path:
    """Write the estate to a file in a folder and return its path."""
    path = folder / "estate.toml"
    path.write_text(ESTATE, encoding="utf-8")
    return path


def traffic(count: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Yield `count` events: four of five are puts at first, gets later; with some heartbeats, units of work, ALTERs and
    restarts.
    """
    chance = random.Random(seed)
    seq: dict[tuple[str, str], int] = {}
    held: dict[str, list[str]] = {"ORDERS": [], "BILLS": []}
    for number in range(count):
        qmgr, queue = chance.choice(("QM01", "QM02")), chance.choice(("ORDERS", "BILLS"))
        event: dict[str, Any] = {"time": START_US + number * SECOND_US // 2, "qmgr": qmgr}
        if number % 97 == 96:
            yield event | {"op": "HEARTBEAT"}
            continue
        if number % 401 == 400:
            yield event | {"op": "ALTER", "store": "QSG1/APP1", "attributes": {"offld1_th": chance.randrange(101)}}
            continue
        if number % 887 == 886:
            seq = {flow: number for flow, number in seq.items() if flow[0] != qmgr}
            yield event | {"op": "RESTART"}
            continue
        event["seq"] = seq[qmgr, queue] = seq.get((qmgr, queue), -1) + 1
        event["queue"] = queue
        if chance.random() < (0.8 if number < count // 2 else 0.1):
            msgid = f"{chance.getrandbits(160):040x}"
            held[queue].append(msgid)
            yield event | {
                "op": "PUT",
                "msgid": msgid,
                "length": chance.choice((100, 900, 3000, 70_000)),
                "priority": 4,
            }
        elif held[queue]:
            yield event | {"op": "GET", "msgid": held[queue].pop(chance.randrange(len(held[queue])))}
        else:
            yield event | {"op": "GET"}


def lines_of(events: Iterable[Mapping[str, Any]]) -> list[bytes]:
    """Events as JSON lines."""
    return [json.dumps(event, separators=(",", ":")).encode() for event in events]


def write_recording(path: Path, events: Iterable[Mapping[str, Any]]) -> Path:
    """Events as a recording."""
    with RecordingWriter(path) as writer:
        writer.write(list(events))
    return path


def write_lines(path: Path, lines: Iterable[bytes]) -> Path:
    """Lines, right or wrong, as an NDJSON recording."""
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path
