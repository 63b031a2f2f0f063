"""Sorting events by time in bounded memory: sorted runs in temporary files, merged."""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO

import msgspec

from twin.feeds.intake import Event

RUN_EVENTS = 200_000  # events in memory
_RANKS = {"PUT": 0, "GET": 1, "MEASURE": 9}  # at one time a measurement comes last: it says what is there after it
_OTHER_RANK = 5

_Key = tuple[int, int]


def sort_key(event: Event) -> _Key:
    """Return the position of an event: its time, then puts before gets before others, measurements last."""
    return event["time"], _RANKS.get(event["op"], _OTHER_RANK)


def in_order(events: Iterable[Event], run_events: int = RUN_EVENTS) -> Iterator[Event]:
    """Yield events by time; those of one time and rank in the order they came.

    Args:
        events: in any order.
        run_events: number of events in memory; more of them go to temporary files.
    """
    files: list[IO[bytes]] = []
    run: list[Event] = []
    try:
        for event in events:
            run.append(event)
            if len(run) >= run_events:
                files.append(_write(sorted(run, key=sort_key)))
                run = []
        run.sort(key=sort_key)
        yield from heapq.merge(*map(_read, files), run, key=sort_key)  # stable: of equals the earlier run first
    finally:
        for file in files:
            file.close()


def _write(run: list[Event]) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115  (read back and closed by `in_order`)
    encoder = msgspec.json.Encoder()
    for event in run:
        file.write(encoder.encode(event) + b"\n")
    file.seek(0)
    return file


def _read(file: IO[bytes]) -> Iterator[Event]:
    decoder = msgspec.json.Decoder(Event)
    for line in file:
        yield decoder.decode(line)
