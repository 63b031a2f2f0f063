"""The traffic that is measured: facts as collectors report them, made as tables of columns.

All queues go in step. A round of a queue is ten puts, ten gets and a commit: half of the calls come from each queue
manager, one put in ten is in a unit of work, gets name the message they took, every event is numbered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tests.tools.bench.site import QUEUE_MANAGERS, queues_of
from twin.events import ARROW_SCHEMA

START_US = 1_795_176_000_000_000  # 2026-11-20T12:00:00Z
STEP_US = 20  # 50,000 events a second of event time
_OPS = ("PUT", "GET", "COMMIT")
PUT, GET, COMMIT = range(3)
FILL = np.array([PUT])
DRAIN = np.array([GET])
STEADY = np.array([PUT, GET] * 9 + [PUT, COMMIT, GET])
_IN_UNIT = (18, 19)  # places in STEADY
_LENGTHS = (200, 20_000)  # bytes; log-normal around 2 KB between these

Array = npt.NDArray[Any]


class Traffic:
    """Events of all queues of some stores, continued with every call."""

    def __init__(self, stores: tuple[str, ...], seed: int = 1, *, step_us: int = STEP_US) -> None:
        self._random = np.random.default_rng(seed)
        self._step_us = step_us  # of event time from one event to the next
        self._clock = START_US
        self._names = [queue for store in stores for queue in queues_of(store)]
        self._held = [
            np.zeros(0, np.int64) for _ in self._names
        ]  # numbers of the messages on each queue, next one first
        self._puts = 0  # of each queue, so far
        self._units = 0
        self._seq = np.zeros(len(self._names) * len(QUEUE_MANAGERS), np.int64)

    @property
    def queues(self) -> int:
        """How many queues there are."""
        return len(self._names)

    @property
    def held(self) -> int:
        """Messages that all queues hold."""
        return sum(numbers.size for numbers in self._held)

    def go_on_at(self, step_us: int) -> None:
        """Set the event time between two events from now on, in microseconds."""
        self._step_us = step_us

    def shuffle(self) -> None:
        """From now on messages are taken in any order, instead of the oldest first."""
        self._held = [self._random.permutation(numbers) for numbers in self._held]

    def fill(self, messages: int) -> pa.Table:
        """Return puts of about this number of messages in total."""
        return self._events_of(FILL, messages // self.queues)

    def drain(self, messages: int) -> pa.Table:
        """Return gets of about this number of messages in total."""
        return self._events_of(DRAIN, messages // self.queues)

    def steady(self, events: int) -> pa.Table:
        """Return about this number of events, after which the number of messages held is as before."""
        return self._events_of(STEADY, max(1, events // (STEADY.size * self.queues)))

    def pieces(self, events: int, max_events: int = 200_000) -> Iterator[pa.Table]:
        """Yield `steady` in pieces of at most `max_events` events."""
        left = events
        while left > 0:
            table = self.steady(min(left, max_events))
            left -= table.num_rows
            yield table

    def _events_of(self, pattern: Array, rounds: int) -> pa.Table:
        """Rounds of a pattern. An event's place is (round * pattern + step) * queues + queue."""
        count = len(self._names)
        steps = np.tile(np.repeat(np.arange(pattern.size), count), rounds)
        round_of = np.repeat(np.arange(rounds), pattern.size * count)
        queue = np.tile(np.arange(count), rounds * pattern.size)
        op = pattern[steps]
        qmgr = (round_of + queue + (op == GET)) % len(QUEUE_MANAGERS)
        number = self._numbers(op, queue)
        in_unit = np.isin(steps, _IN_UNIT) if pattern is STEADY else np.zeros(op.size, np.bool_)
        unit = self._units + round_of * count + queue
        self._units += rounds * count
        times = self._clock + self._step_us * np.arange(op.size)
        self._clock += self._step_us * op.size
        is_put = op == PUT
        columns: dict[str, Any] = {
            "time": pa.array(times).cast(ARROW_SCHEMA.field("time").type),
            "qmgr": pa.DictionaryArray.from_arrays(pa.array(qmgr.astype(np.int16)), pa.array(QUEUE_MANAGERS)),
            "seq": pa.array(self._numbered(queue * len(QUEUE_MANAGERS) + qmgr)),
            "op": pa.DictionaryArray.from_arrays(pa.array(op.astype(np.int8)), pa.array(_OPS)),
            "queue": pa.DictionaryArray.from_arrays(pa.array(queue.astype(np.int32)), pa.array(self._names)),
            "msgid": _message_ids(queue, number),
            "length": pa.array(self._lengths(op.size), mask=~is_put),
            "priority": pa.array(self._random.integers(0, 10, op.size, np.int8), mask=~is_put),
            "persistent": pa.array(self._random.random(op.size) < 0.5, mask=~is_put),
            "uow": _texts(_digits(unit)[:, 4:], in_unit),
            "reason": pa.array(np.zeros(op.size, np.int32)),
        }
        for name in ARROW_SCHEMA.names:
            columns.setdefault(name, pa.nulls(op.size, ARROW_SCHEMA.field(name).type))
        return pa.table({name: columns[name] for name in ARROW_SCHEMA.names}, schema=ARROW_SCHEMA)

    def _numbers(self, op: Array, queue: Array) -> Array:
        """The number, within its queue, of the message each call puts or takes; -1: none."""
        number = np.full(op.size, -1, np.int64)
        for place in range(len(self._names)):
            puts = np.flatnonzero((op == PUT) & (queue == place))
            gets = np.flatnonzero((op == GET) & (queue == place))
            number[puts] = self._puts + np.arange(puts.size)
            waiting = np.concatenate([self._held[place], number[puts]])
            if gets.size > waiting.size:
                raise ValueError(f"{gets.size} gets of {waiting.size} messages")
            number[gets] = waiting[: gets.size]
            self._held[place] = waiting[gets.size :]
        self._puts += int(np.count_nonzero((op == PUT) & (queue == 0)))
        return number

    def _numbered(self, flow: Array) -> Array:
        order = np.argsort(flow, kind="stable")
        counts = np.bincount(flow, minlength=self._seq.size)
        firsts = np.repeat(self._seq - (np.cumsum(counts) - counts), counts)
        seq = np.empty(flow.size, np.int64)
        seq[order] = firsts + np.arange(flow.size)
        self._seq += counts
        return seq

    def _lengths(self, count: int) -> Array:
        return np.clip(self._random.lognormal(np.log(2_000), 0.8, count), *_LENGTHS).astype(np.int32)


def _message_ids(queue: Array, number: Array) -> pa.StringArray:
    """48 hexadecimal digits as MQ makes them: "AMQ ", 12 characters of a queue manager's name, 8 bytes of its own.

    The last 8 look random here, so that compression has no easier time than with real ones. Null where number is -1.
    """
    own = ((queue << 40) | np.maximum(number, 0)).astype(np.uint64) * np.uint64(
        0x9E37_79B9_7F4A_7C15
    )  # odd: none twice
    prefix = np.frombuffer(b"AMQ QM01        ".hex().encode(), np.uint8)
    digits = np.concatenate([np.broadcast_to(prefix, (number.size, prefix.size)), _digits(own)], axis=1)
    return _texts(digits, number >= 0)


def _digits(numbers: Array) -> Array:
    """Each number as 16 hexadecimal digits, u1[n, 16]."""
    letters = np.frombuffer(b"0123456789abcdef", np.uint8)
    octets = numbers.astype(">u8").view(np.uint8).reshape(-1, 8)
    return np.stack([letters[octets >> 4], letters[octets & 15]], axis=2).reshape(-1, 16)


def _texts(characters: Array, present: Array) -> pa.StringArray:
    """Texts of one width, null where not present. characters: u1[n, width] of ASCII; present: bool[n]."""
    offsets = np.zeros(present.size + 1, np.int32)
    np.cumsum(present * characters.shape[1], out=offsets[1:])
    data = np.ascontiguousarray(characters[present])
    valid = np.packbits(present, bitorder="little")
    return pa.StringArray.from_buffers(
        present.size, pa.py_buffer(offsets.tobytes()), pa.py_buffer(data.tobytes()), pa.py_buffer(valid.tobytes())
    )
