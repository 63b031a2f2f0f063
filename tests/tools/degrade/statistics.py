"""A recording of single events reduced to the statistics of its intervals.

What QQST reports of each queue, queue manager and interval [IBM: SMF 115 subtype 216]: puts by persistence with their
bytes, gets, rolled-back puts and gets, expired messages, fast puts to a waiting getter. Everything else of the
recording (ALTER, MEASURE, RESTART and so on) is kept, but for units of work, whose ends statistics do not show.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from twin.events.fields import FIELD
from twin.feeds.importing import sort_events
from twin.feeds.intervals import Flows, Puts, backed_out_later, events_of, net
from twin.recordings.files import RecordingWriter, open_recording

_QUEUE_OPS = {"PUT", "GET", "COMMIT", "BACKOUT", "EXPIRE", "CLEAR", "PREPARE"}


@dataclass
class Counts:
    """Counts of a queue, queue manager and interval."""

    puts: dict[tuple[bool, bool], list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    gets: int = 0
    expired: int = 0
    rolled_back_puts: int = 0
    rolled_back_gets: int = 0
    cleared: bool = False


def degrade(source: Path, target: Path, interval_s: int, slice_s: float) -> int:
    """Write the recording that statistics of `source` give; return the number of its events."""
    intervals: dict[tuple[str, str, int], Counts] = defaultdict(Counts)
    units: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0])
    others: list[dict[str, Any]] = []
    step = interval_s * 1_000_000
    for chunk in open_recording(source):
        for line in chunk.lines():
            event = msgspec.json.decode(line)
            event["time"] = FIELD["time"].checked(event["time"])
            if event["op"] not in _QUEUE_OPS:
                others.append({name: value for name, value in event.items() if name != "seq"})
            elif not event.get("reason"):
                _count(event, intervals[event["qmgr"], event["queue"], event["time"] // step], units)
            elif event["op"] == "COMMIT" or event["op"] == "BACKOUT":
                _count(
                    {**event, "op": "BACKOUT"}, intervals[event["qmgr"], event["queue"], event["time"] // step], units
                )
    flows = (_flows(*key, counts, step) for key, counts in sorted(intervals.items()))
    spread = (event for interval in flows for event in events_of(interval, slice_s))
    with RecordingWriter(target) as writer:
        batch = list(sort_events([*others, *spread]))
        writer.write(batch)
    return len(batch)


def _count(event: dict[str, Any], counts: Counts, units: dict[tuple[str, str, str], list[int]]) -> None:
    op, number = event["op"], event.get("count", 1)
    unit = (event["qmgr"], event["queue"], event.get("uow") or "")
    if op == "PUT":
        group = counts.puts[bool(event.get("persistent")), bool(event.get("direct"))]
        group[0] += number
        group[1] += number * event["length"]
        if unit[2]:
            units[unit][0] += number
    elif op == "GET":
        counts.gets += number
        if unit[2]:
            units[unit][1] += number
    elif op == "EXPIRE":
        counts.expired += number
    elif op == "CLEAR":
        counts.cleared = True
    elif op in {"COMMIT", "BACKOUT"} and unit[2]:
        puts, gets = units.pop(unit, (0, 0))
        if op == "BACKOUT":
            counts.rolled_back_puts += puts
            counts.rolled_back_gets += gets


def _flows(qmgr: str, queue: str, number: int, counts: Counts, step: int) -> Flows:
    puts = tuple(
        Puts(count=count, bytes=size, persistent=persistent, direct=direct)
        for (persistent, direct), (count, size) in sorted(counts.puts.items())
    )
    return Flows(
        qmgr=qmgr,
        queue=queue,
        start=number * step,
        end=(number + 1) * step,
        puts=net(puts, counts.rolled_back_puts),
        gets=max(0, counts.gets - counts.rolled_back_gets),
        expired=counts.expired + backed_out_later(puts, counts.rolled_back_puts),
        cleared=counts.cleared,
    )
