"""The part that a site knows of a simulated night: all events or a sample of them, beside measurements.

A recording with events and measurements (`twin.simulation.system`) is thinned: of a sample by message every call of
a message is there or none, of one by call each for itself. Samples have no `seq` and no units of work, as spans have
none.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twin.recordings.files import RecordingWriter, open_recording

_DEPTHS = {"depth", "uncommitted"}
_FACTS = {"getters", "putters", "last_get", "last_put", "oldest_s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """The feeds of a site.

    Attributes:
        share: share of the messages, or calls, that are reported.
        by: what is sampled.
        every: measurements, of which one is known; 0: none is.
        depths: True if the depths of queues are measured.
        facts: True if it is measured who reads them.
        resync: True if measurements ask to be taken over.
    """

    share: float = 1.0
    by: Literal["message", "call"] = "message"
    every: int = 1
    depths: bool = True
    facts: bool = True
    resync: bool = False


EVENTS = Feed(every=0)
LEVELS = Feed(share=0.0)


def write_known(source: Path, target: Path, feed: Feed) -> None:
    """Write of a recording with events and measurements what a site knows."""
    seen: Counter[str] = Counter()
    with RecordingWriter(target) as writer:
        for chunk in open_recording(source):
            writer.write(_known(chunk.table(np.arange(len(chunk))), feed, seen))


def write_until(source: Path, target: Path, time: int, store: str) -> dict[str, Any]:
    """Write what was before a time, microseconds, and return the last measurement of the store in it."""
    last: dict[str, Any] = {}
    with RecordingWriter(target) as writer:
        for chunk in open_recording(source):
            table = chunk.table(np.arange(len(chunk)))
            table = table.filter(pc.less_equal(table["time"].cast(pa.int64()), time))
            own = table.filter(pc.equal(table["store"].cast(pa.string()), store))["measured"].to_pylist()
            last = json.loads(next((text for text in reversed(own) if text), json.dumps(last)))
            writer.write(table)
    return last


def _known(table: pa.Table, feed: Feed, seen: Counter[str]) -> pa.Table:
    ops, stores = (table[name].cast(pa.string()).to_pylist() for name in ("op", "store"))
    ids, texts = (table[name].cast(pa.string()).to_pylist() for name in ("msgid", "measured"))
    times = table["time"].cast(pa.int64()).to_pylist()
    keep = np.ones(len(ops), bool)
    for row, op in enumerate(ops):
        if op == "MEASURE":
            number, seen[stores[row]] = seen[stores[row]], seen[stores[row]] + 1
            keep[row] = feed.every > 0 and number % feed.every == 0
            texts[row] = json.dumps(_measured(json.loads(texts[row]), feed))
        elif feed.share < 1.0:
            key = ids[row] if feed.by == "message" else f"{times[row]}{op}{row}"
            keep[row] = op in {"PUT", "GET"} and zlib.crc32(str(key).encode()) < feed.share * 2**32
    table = _replaced(table, "measured", texts)
    if feed.share < 1.0:
        for name in ("seq", "uow"):
            table = _replaced(table, name, [None] * len(ops))
    return table.filter(pa.array(keep))


def _replaced(table: pa.Table, name: str, values: list[Any]) -> pa.Table:
    place = table.schema.get_field_index(name)
    return table.set_column(place, table.schema.field(place), pa.array(values, table.schema.field(place).type))


def _measured(measured: dict[str, Any], feed: Feed) -> dict[str, Any]:
    known = {name: value for name, value in measured.items() if name not in {"queues", "asked", "resync"}}
    names = {"name"} | (_DEPTHS if feed.depths else set()) | (_FACTS if feed.facts else set())
    if len(names) > 1 and "queues" in measured:
        known["queues"] = [{name: own[name] for name in names if name in own} for own in measured["queues"]]
        known["asked"] = measured["asked"]
    return known | ({"resync": True} if feed.resync else {})
