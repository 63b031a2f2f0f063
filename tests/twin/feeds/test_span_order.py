"""Spans each once and in the order of time: `twin.feeds.otlp`."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from twin.feeds.otlp import SpanOrder

SECOND = 1_000_000


def event(second, op="PUT", **others):
    return {"time": round(second * SECOND), "qmgr": "QM01", "op": op, "queue": "ORDERS", **others}


def key(number):
    return number.to_bytes(24, "big")


class Run:
    """Spans through an order, with its complaints."""

    def __init__(self, late_s=10.0, length=None, max_keys=100):
        self.order = SpanOrder(late_s, length, max_keys)
        self.events = []
        self.counts = Counter()

    def add(self, number, span):
        passed_on = self.order.add(key(number), span, lambda code, _: self.counts.update([code]))
        self.events += [] if passed_on is None else [passed_on]

    def release(self):
        self.events += self.order.due()


def test_events_wait_until_others_are_younger_and_come_in_order():
    run = Run()
    for number, second in enumerate((5, 3, 4, 12)):
        run.add(number, event(second, length=1))
        run.release()
    assert not run.events
    run.add(9, event(14.5, length=1))
    run.release()
    assert [entry["time"] / SECOND for entry in run.events] == [3, 4]
    run.events += run.order.rest()
    assert [entry["time"] / SECOND for entry in run.events] == [3, 4, 5, 12, 14.5]
    assert run.order.held == 0


def test_at_one_time_puts_come_before_gets():
    run = Run()
    run.add(1, event(1, "GET"))
    run.add(2, event(1, length=1))
    assert [entry["op"] for entry in run.order.rest()] == ["PUT", "GET"]


def test_a_span_is_known_as_long_as_it_is_among_the_last_ones():
    run = Run(max_keys=2)
    for number in (1, 1, 2, 3, 1):
        run.add(number, event(1, length=1))
    assert run.counts == {"duplicate": 1}
    assert run.order.held == 4


@pytest.mark.parametrize("seed", range(20))
def test_packing_anywhere_changes_nothing(seed):
    chance = random.Random(seed)
    spans = []
    for number in range(200):
        size = {"length": chance.randrange(5000)} if chance.random() < 0.7 else {}
        late = chance.choice((0, 0, 0, 3, 8, 40))
        spans.append((chance.randrange(number // 2, number + 1), event(100 + number - late, **size)))
    whole, packed = Run(), Run()
    for number, span in spans:
        for run in (whole, packed):
            run.add(number, span)
            run.release()
        if chance.random() < 0.2:
            data = packed.order.pack()
            packed.order = SpanOrder(10.0, None, 100)
            packed.order.unpack(data)
            assert packed.order.pack() == data
    assert packed.events == whole.events
    assert packed.counts == whole.counts
    assert {"duplicate", "late", "no-size"} <= whole.counts.keys()
    assert [*packed.order.rest()] == [*whole.order.rest()]
