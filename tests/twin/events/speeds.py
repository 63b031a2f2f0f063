"""Speed of decoding, packing and converting events on one core: python -m tests.twin.events.speeds [EVENTS].

CPU time, the best of five, so that a busy machine does not show.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from tests.twin.events.samples import ESTATE, MQSC
from twin.estate import Estate, load_estate
from twin.events import ARROW, NDJSON, Decoder, EventBlock, to_table
from twin.events.convert import arrow_value, json_lines, lines_table
from twin.recordings.files import SUFFIXES, RecordingWriter, open_recording


def traffic(count: int) -> Iterator[dict[str, Any]]:
    """Puts and gets in turn, ids of 40 digits, half of them in units of work: 186 bytes of JSON on average."""
    chance = np.random.default_rng(20261121)
    for n in range(count):
        event = {
            "time": f"2026-11-20T12:00:{n // 1_000_000 % 60:02}.{n % 1_000_000:06}Z",
            "qmgr": f"QM0{n % 2 + 1}",
            "seq": n // 6,
            "op": ("PUT", "GET")[n % 2],
            "queue": ("ORDERS", "PAYMENTS", "AUDIT")[n % 3],
            "msgid": chance.bytes(20).hex(),
            "persistent": n % 4 == 0,
            "priority": 4,
        }
        if n % 2 == 0:
            event["length"] = int(chance.integers(100, 30_000))
        if n % 4 < 2:
            event["uow"] = chance.bytes(4).hex()
        yield event


def measured(name: str, count: int, do: Callable[[], Any], more: str = "") -> None:
    do()
    best = 1e9
    for _ in range(5):
        start = time.process_time()
        do()
        best = min(best, time.process_time() - start)
    print(f"{name:48} {count / best / 1e6:7.2f} million a second  {best / count * 1e9:7.0f} ns an event  {more}")


def described(folder: Path) -> Estate:
    (folder / "qsg1.mqsc").write_text(MQSC)
    (folder / "estate.toml").write_text(ESTATE)
    return load_estate(folder / "estate.toml")


def main(count: int, folder: Path) -> None:
    estate = described(folder)
    decoder = Decoder(estate)
    lines = [msgspec.json.encode(event) for event in traffic(count)]
    table = to_table(traffic(count))
    values = pa.array(lines, pa.binary())
    measured("JSON, one event a value", count, lambda: decoder.json(values), f"{values.nbytes / count:.0f} bytes each")
    headers = pa.nulls(count, pa.string())
    measured("JSON, through records()", count, lambda: decoder.records(values, headers))
    batches = pa.array([b"\n".join(lines[n : n + 1000]) for n in range(0, count, 1000)])
    measured("NDJSON, 1,000 a value", count, lambda: decoder.ndjson(batches))
    for rows in (5000, 100):
        records = pa.array([arrow_value(table.slice(n, rows)) for n in range(0, count, rows)])
        bytes_each = f"{records.nbytes / count:.0f} bytes each"
        measured(
            f"Arrow, dictionaries, {rows} a value", count, lambda records=records: decoder.arrow(records), bytes_each
        )
    mixed = pa.array([values[0].as_py(), batches[0].as_py(), records[0].as_py()] * 100)
    kinds = [None, NDJSON, ARROW] * 100
    measured("records() of three kinds in turn", 1101 * 100, lambda: decoder.records(mixed, kinds))
    tiny = values[:10]
    measured("JSON, batches of 10", 10, lambda: decoder.json(tiny))
    nested = pa.array([line[:-1] + b',"tags":{"a":[1,2.5,null]}}' for line in lines])
    measured("JSON with a nested unknown field", count, lambda: decoder.json(nested))
    exact = pa.array([line.replace(b"ORDERS", b"\\u004fRDERS") for line in lines[:20_000] if b"ORDERS" in line])
    measured("JSON, all by the exact rules", len(exact), lambda: decoder.json(exact))
    decoded = decoder.arrow_table(table)
    measured("blocks, two stores", count, lambda: decoded.blocks(estate))
    for size in (count, 5000, 100):
        block = EventBlock("QSG1/APP1", decoded.events[:size].copy(), {})
        packed = block.pack()
        measured(f"pack, {size} events", size, block.pack, f"{len(packed) / size:.1f} bytes an event")
        measured(f"unpack, {size} events", size, lambda packed=packed: EventBlock.unpack(packed))
    measured("json_lines (table to JSON)", count, lambda: json_lines(table))
    measured("lines_table (accepted JSON to table)", count, lambda: lines_table(lines))
    for suffix in SUFFIXES:
        path = folder / f"r{suffix}"
        measured(f"write {suffix}", count, lambda path=path: write(path, table))
        size_each = f"{path.stat().st_size / count:.0f} bytes each"
        read = lambda path=path: [chunk.decode(decoder) for chunk in open_recording(path)]  # noqa: E731  # one use
        measured(f"read and decode {suffix}", count, read, size_each)


def write(path: Path, table: pa.Table) -> None:
    with RecordingWriter(path) as writer:
        writer.write(table)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000, Path(folder))
