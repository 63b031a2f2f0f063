"""Events in the order of time: all of a file, and spans while they come.

The events of files are sorted in bounded memory, by sorted runs in temporary files. A collector of spans delivers
batches late, out of order and, after a retry, twice [OpenTelemetry: Collector, Exporter Helper]. So events of spans are
held until others are `late_s` younger, and a span is known by trace id and span id among the last ones. One that comes
later than that is passed on at once, with a complaint: the twin takes it at its own clock.

The result is a function of the records in their order. `SpanOrder.pack` keeps all of it, so that a process can go on
where another ended.
"""

from __future__ import annotations

import heapq
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import IO

import msgspec

from twin.events import Event

RUN_EVENTS = 200_000  # events in memory
_RANKS = {"PUT": 0, "GET": 1, "MEASURE": 9}  # at one time a measurement comes last: it says what is there after it
_OTHER_RANK = 5
MAX_KEYS = 200_000  # spans that are remembered
MAX_HELD = 200_000  # spans that wait for older ones
MAX_AHEAD_US = 86_400_000_000  # beyond the others: a wrong clock, which must not make the others late
MAX_MEANS = 10_000  # queues whose mean length is kept
DEFAULT_LENGTH = 1024  # bytes of a message whose size neither its span nor an earlier one of the queue tells [assumed]
_KEY_BYTES = 8

_Key = tuple[int, int]


def sort_key(event: Event) -> _Key:
    """Return the position of an event: its time, then puts before gets before others, measurements last."""
    return event["time"], _RANKS.get(event["op"], _OTHER_RANK)


def sort_events(events: Iterable[Event], run_events: int = RUN_EVENTS) -> Iterator[Event]:
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


# --- spans ------------------------------------------------------------------------------------------------------------

Complain = Callable[[str, str], None]
"""Called with the code and the text of a complaint."""

_Held = tuple[int, int, bytes, int, Event]  # heap: time, put before get, key, number, event


class _Memory(msgspec.Struct, array_like=True):
    """Packed form of a `SpanOrder`. means: messages and bytes by queue; keys: oldest first, without separators."""

    latest: int
    passed: int
    number: int
    keys: bytes
    held: list[_Held]
    means: dict[str, list[int]]


class SpanOrder:
    """Events of spans from one or more queues that are waiting, and the spans that came before.

    Attributes:
        latest: microseconds, of all spans.
        passed: microseconds; no event up to here is held.
    """

    def __init__(self, late_s: float, length: int | None, max_keys: int = MAX_KEYS) -> None:
        """Start without spans.

        Args:
            late_s: seconds by which a span may come later than younger ones.
            length: bytes of a message whose size its span does not tell; None: the mean of the queue.
            max_keys: number of spans that are remembered.
        """
        self._late_us = round(late_s * 1e6)
        self._late_s = late_s
        self._length = length
        self._max_keys = max_keys
        self._keys: OrderedDict[bytes, None] = OrderedDict()
        self._held: list[_Held] = []
        self._means: dict[str, list[int]] = {}
        self._number = 0
        self.latest = 0
        self.passed = 0

    @property
    def held(self) -> int:
        """Number of events that wait."""
        return len(self._held)

    def add(self, key: bytes, event: Event, complain: Complain) -> Event | None:
        """Take the event of a span; a PUT without a length gets one.

        Args:
            key: trace id and span id.
            event: a PUT or GET.
            complain: takes what is wrong: `duplicate`, `no-size`, `ahead`, `late`.

        Returns:
            The event, if it is not to be held; else None.
        """
        short = blake2b(key, digest_size=_KEY_BYTES).digest()
        if short in self._keys:
            complain("duplicate", f"span {key[16:].hex()} of trace {key[:16].hex()} again")
            return None
        self._keys[short] = None
        if len(self._keys) > self._max_keys:
            self._keys.popitem(last=False)
        if event["op"] == "PUT":
            event = {**event, "length": self._length_of(event, complain)}
        time: int = event["time"]
        if self.latest and time > self.latest + MAX_AHEAD_US:
            text = f"a span of {event['queue']} is {(time - self.latest) / 1e6:.0f} s ahead of those before it"
            complain("ahead", f"{text}; expected: at most a day")
            return event
        if time < self.passed:
            text = f"a span of {event['queue']} is {(self.latest - time) / 1e6:.0f} s late; expected: at most "
            complain("late", text + f"{self._late_s:g} s, --late")
            return event
        self.latest = max(self.latest, time)
        heapq.heappush(self._held, (time, int(event["op"] == "GET"), key, self._number, event))
        self._number += 1
        return None

    def due(self) -> Iterator[Event]:
        """Yield, and no longer hold, the events that wait no more; call it after each record."""
        limit = self.latest - self._late_us
        while self._held and (self._held[0][0] <= limit or len(self._held) > MAX_HELD):
            yield self._pop()

    def rest(self) -> Iterator[Event]:
        """Yield, and no longer hold, all events, at the end of the input."""
        while self._held:
            yield self._pop()

    def pack(self) -> bytes:
        """Return everything that is kept, as bytes."""
        return msgspec.msgpack.encode(
            _Memory(self.latest, self.passed, self._number, b"".join(self._keys), self._held, self._means)
        )

    def unpack(self, data: bytes) -> None:
        """Go on from what `pack` returned."""
        memory = msgspec.msgpack.decode(data, type=_Memory)
        starts = range(0, len(memory.keys), _KEY_BYTES)
        self._keys = OrderedDict.fromkeys(memory.keys[start : start + _KEY_BYTES] for start in starts)
        self._held, self._means, self._number = list(memory.held), memory.means, memory.number
        self.latest, self.passed = memory.latest, memory.passed

    def _pop(self) -> Event:
        time, _, _, _, event = heapq.heappop(self._held)
        self.passed = max(self.passed, time)
        return event

    def _length_of(self, event: Event, complain: Complain) -> int:
        queue = event["queue"]
        mean = self._means.get(queue)
        length: int | None = event.get("length")
        if length is not None:
            if mean is None and len(self._means) < MAX_MEANS:
                mean = self._means[queue] = [0, 0]
            if mean is not None:
                mean[0] += 1
                mean[1] += length
            return length
        if self._length is not None:
            length = self._length
        elif mean is not None:
            length = mean[1] // mean[0]
        else:
            length = DEFAULT_LENGTH
        text = f"a span of {queue} tells no size, {length} bytes are assumed; expected: --length, or statistics"
        complain("no-size", text)
        return length
