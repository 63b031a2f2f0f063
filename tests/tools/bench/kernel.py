"""Speed of one core without Kafka and Spark: the kernel, decoding, packing."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.tools.bench import site
from tests.tools.bench.rig import Say
from tests.tools.bench.traffic import Traffic
from twin.estate import Estate
from twin.events import Decoder, EventBlock
from twin.events.convert import arrow_value, json_lines
from twin.state.arrays import MemoryArrays
from twin.stores.message_store import MessageStore
from twin.stores.open import open_message_store
from twin.stores.warm_up import warm

LEVELS = (10_000, 1_000_000, 10_000_000)
_PIECE = 1_000_000  # puts of a table
_BLOCK = 20_000  # events of a block
_LINES_A_RECORD = 1_000


@dataclass(frozen=True, slots=True)
class Kernel:
    """apply: million events a second by (messages held, gets in any order); pages: written a block, likewise.

    decode: million events a second by content type; pack, unpack: likewise; packed_bytes: an event.
    array_bytes: memory of a store's arrays a message, at the highest level, and page_bytes of its pages.
    """

    apply: dict[tuple[int, bool], float]
    pages: dict[tuple[int, bool], float]
    decode: dict[str, float]
    pack: float
    unpack: float
    packed_bytes: float
    array_bytes: float
    page_bytes: float


class _Counted(MemoryArrays):
    """Arrays in memory, their bytes counted."""

    def bytes(self) -> int:
        return sum(array.nbytes for array in self._arrays.values())


def measure(folder: Path, say: Say, *, quick: bool) -> Kernel:
    """Medians of single blocks, in CPU time of this process."""
    warm()
    estate = site.load(folder)
    decoder = Decoder(estate)
    decoder.warm()
    repeats = 10 if quick else 40
    apply, pages = {}, {}
    array_bytes = page_bytes = 0.0
    for held in LEVELS[: 2 if quick else 3]:
        say(f"the kernel at {held:,} messages held")
        traffic = Traffic(site.STORES[:1])
        arrays = _Counted()
        twin = open_message_store(estate, site.STORES[0], arrays)
        page_bytes = 0.0
        for _ in range(max(1, held // _PIECE)):
            for block in decoder.arrow_table(traffic.fill(min(held, _PIECE))).blocks(estate):
                twin.apply(block)
            page_bytes += sum(len(data) for _, data in twin.dirty_pages()) / held
        array_bytes = arrays.bytes() / held
        for shuffled in (False, True):
            figures = _applied(estate, decoder, twin, traffic, repeats, shuffled=shuffled)
            apply[held, shuffled], pages[held, shuffled] = figures
    say("decoding and packing")
    decode = _decoded(decoder, max(3, repeats // 4))
    block = decoder.arrow_table(Traffic(site.STORES[:1]).steady(_BLOCK)).blocks(estate)[0]
    packed = block.pack()
    return Kernel(
        apply,
        pages,
        decode,
        pack=_rate(block.pack, len(block), repeats),
        unpack=_rate(lambda: EventBlock.unpack(packed), len(block), repeats),
        packed_bytes=len(packed) / len(block),
        array_bytes=array_bytes,
        page_bytes=page_bytes,
    )


def _applied(
    estate: Estate, decoder: Decoder, twin: MessageStore, traffic: Traffic, repeats: int, *, shuffled: bool
) -> tuple[float, float]:
    """Million events a second, pages a block."""
    rates, pages = [], []
    for _ in range(repeats):
        if shuffled:
            traffic.shuffle()
        (block,) = decoder.arrow_table(traffic.steady(_BLOCK)).blocks(estate)
        began = time.process_time()
        twin.apply(block)
        rates.append(len(block) / (time.process_time() - began) / 1e6)
        pages.append(sum(1 for _ in twin.dirty_pages()))
    return statistics.median(rates), statistics.median(pages)


def _decoded(decoder: Decoder, repeats: int) -> dict[str, float]:
    table = Traffic(site.STORES).steady(_BLOCK * 5)
    lines = [text.encode() for text in json_lines(table).to_pylist()]
    records = [b"\n".join(lines[start : start + _LINES_A_RECORD]) for start in range(0, len(lines), _LINES_A_RECORD)]
    streams = [arrow_value(table.slice(start, 5_000)) for start in range(0, table.num_rows, 5_000)]
    import pyarrow as pa

    ways: dict[str, tuple[Callable[[Any], Any], Any]] = {
        "JSON": (decoder.json, pa.array(lines, pa.binary())),
        "NDJSON": (decoder.ndjson, pa.array(records, pa.binary())),
        "Arrow": (decoder.arrow, pa.array(streams, pa.binary())),
    }
    return {name: _rate(partial(decode, values), table.num_rows, repeats) for name, (decode, values) in ways.items()}


def _rate(work: Callable[[], Any], events: int, repeats: int) -> float:
    """Million events a CPU second, the median."""
    rates = []
    work()
    for _ in range(repeats):
        began = time.process_time()
        work()
        rates.append(events / (time.process_time() - began) / 1e6)
    return statistics.median(rates)
