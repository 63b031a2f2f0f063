"""The events before and after an archived checkpoint: a store of every kind, in the middle of everything at `HALF`.

Four times everything fills and drains, so that forecasts have rises to learn from; the fifth time it fills until SCM is
in use. There the checkpoint is written: units of work are open and in doubt, gets wait for their messages, a number of
a sequence is missing, spans are held back, alerts are open.
"""

from __future__ import annotations

from typing import Any

from tests.support.spans import request_of, requests_of_events

START_US = 1_795_176_000_000_000
STEP_US = 10_000_000
FILL, DRAIN, RISES = 100, 60, 4  # steps of a rise and of its fall; rises before the last one
HALF = RISES * (FILL + DRAIN) + 90
END = HALF + 150
SPAN_US = 5_000_000
LATE_US = 20_000_000  # how far spans are out of order
_MEMBERS = ("UC01QM01", "UC01QM02", "UC01QM03")
_STORES = ("QSG1/APP1", "QM01/PS04", "QMD1/INVOICES")


class _Events:
    """The events so far, numbered by queue manager and queue."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._numbers: dict[tuple[str, str], int] = {}

    def add(self, time: int, op: str, qmgr: str, queue: str, **fields: Any) -> None:
        """Add an event on a queue."""
        self.events.append(
            {"time": time, "qmgr": qmgr, "seq": self.leave_out(qmgr, queue), "op": op, "queue": queue, **fields}
        )

    def leave_out(self, qmgr: str, queue: str) -> int:
        """Return the next number of a sequence, which no other event gets."""
        number = self._numbers.get((qmgr, queue), 0)
        self._numbers[qmgr, queue] = number + 1
        return number


def make_events() -> list[dict[str, Any]]:
    """Return the events in their order, those of spans left out."""
    writer = _Events()
    for step in range(END):
        _add_flow(writer, step)
        if step % 6 == 0:
            writer.events += [
                {"time": _time(step, 9), "qmgr": qmgr, "op": "HEARTBEAT", "store": store}
                for store, qmgr in zip(_STORES, ("QM02", "QM01", "QMD1"), strict=True)
            ]
    by_step = {number: [] for number in range(END)}
    for event in writer.events:
        by_step[(event["time"] - START_US) // STEP_US].append(event)
    for step, event in _odd_events(writer):
        by_step[step].append(event)
    return [event for step in range(END) for event in sorted(by_step[step], key=lambda event: event["time"])]


def _time(step: int, second: int = 0) -> int:
    return START_US + step * STEP_US + second * 1_000_000


def _add_flow(writer: _Events, step: int) -> None:
    """Add the puts and gets of a step: every store fills, then drains to where it was; the last rise is higher."""
    cycle, phase = divmod(step, FILL + DRAIN)
    count = 3 + (cycle == RISES)
    drained = (phase - FILL) * FILL // DRAIN
    if phase < FILL:
        writer.add(_time(step), "PUT", "QM01", "ORDERS", length=60_000, count=count, priority=phase % 3)
        writer.add(_time(step, 1), "PUT", "QM01", "LOCAL.ORDERS", length=20_000, count=3 * count, persistent=True)
        writer.add(_time(step, 2), "PUT", "QMD1", "INVOICES", length=20_000, count=2 * count, persistent=step % 2 == 0)
        if phase % 4 == 0:
            writer.add(_time(step, 3), "PUT", "QM02", "PAYMENTS", length=100_000)
        if phase % 10 == 0:
            writer.add(_time(step, 4), "PUT", "QM02", "ORDERS", length=3_000, uow=f"unit-{step}", persistent=True)
            writer.add(_time(step, 6), "COMMIT", "QM02", "ORDERS", uow=f"unit-{step}")
    else:
        gets = (phase + 1 - FILL) * FILL // DRAIN - drained  # steps of the rise that this one takes back
        writer.add(_time(step), "GET", "QM02", "ORDERS", count=gets * count)
        writer.add(_time(step, 1), "GET", "QM01", "LOCAL.ORDERS", count=3 * gets * count)
        writer.add(_time(step, 2), "GET", "QMD1", "INVOICES", count=2 * gets * count)
        if phase % 2 == 0 and phase < FILL + FILL // 2:
            writer.add(_time(step, 3), "GET", "QM01", "PAYMENTS")
    for number, member in enumerate(_MEMBERS):
        served = 150 + 20 * number
        writer.add(_time(step, 7), "PUT", member, "REQUEST", length=500, count=served + phase // 8)
        writer.add(_time(step, 8), "GET", member, "REQUEST", count=served)


def _odd_events(writer: _Events) -> list[tuple[int, dict[str, Any]]]:
    """Return (step, event) of what the checkpoint is in the middle of, and of what ends it."""
    orders = {"qmgr": "QM02", "queue": "ORDERS"}
    awaited = "414d5120514d303120202020a1b2c3d4e5f60708"
    missing = writer.leave_out("QM01", "PAYMENTS")
    before, after = HALF - 1, HALF + 1
    measured = {"qmgr": "QM01", "op": "MEASURE", "store": "QM01/PS04", "measured": {"messages": 60, "pages_used": 400}}
    odd: list[dict[str, Any]] = [
        {"time": _time(3), **measured},
        {"time": _time(20), "qmgr": "QM01", "op": "ALTER", "store": "QSG1/APP1", "attributes": {"offld1_th": 60}},
        *({"time": _time(before - 9, i), **orders, "op": "PUT", "length": 9_000, "uow": "doubt"} for i in range(3)),
        {"time": _time(before - 8), **orders, "op": "PREPARE", "uow": "doubt"},
        {"time": _time(before - 2), **orders, "op": "PUT", "length": 4_000, "uow": "open"},
        {"time": _time(before - 2, 1), **orders, "op": "GET", "uow": "open"},
        {"time": _time(before - 1), **orders, "op": "GET", "msgid": awaited},
        {"time": _time(before, 1), "qmgr": "QM01", "queue": "PAYMENTS", "seq": missing + 1, "op": "PUT", "length": 5},
        {"time": _time(after, 1), "qmgr": "QM01", "queue": "PAYMENTS", "seq": missing + 1, "op": "PUT", "length": 5},
        {"time": _time(after, 2), "qmgr": "QM01", "queue": "PAYMENTS", "seq": missing, "op": "PUT", "length": 7},
        {"time": _time(after + 3), **orders, "op": "BACKOUT", "uow": "open"},
        {"time": _time(after + 5), **orders, "op": "PUT", "length": 800, "msgid": awaited},
        {"time": _time(after + 30), **orders, "op": "COMMIT", "uow": "doubt"},
        {"time": _time(after + 40), "qmgr": "QM02", "op": "RESTART", "store": "QSG1/APP1"},
    ]
    return [((event["time"] - START_US) // STEP_US, event) for event in odd]


def make_span_events() -> list[dict[str, Any]]:
    """Return the puts and gets of QSG1/APP2, which come as spans."""
    events: list[dict[str, Any]] = []
    for number in range(END * STEP_US // SPAN_US):
        event = {"time": START_US + number * SPAN_US, "queue": "AUDIT", "qmgr": ("QM01", "QM02")[number % 2]}
        if number % 3 == 2 and number > 60:
            events.append({**event, "op": "GET", "msgid": f"{number - 61:048x}"})
        else:
            events.append({**event, "op": "PUT", "msgid": f"{number:048x}", "length": 9_000 + number % 7})
    return events


def make_spans() -> tuple[list[bytes], int]:
    """Return the records of the topic of spans, and how many of them are before the checkpoint.

    The last one is an hour later: it waits itself, and lets go of all before it.
    """
    events = make_span_events()
    values = requests_of_events(events, 20, seed=3, late_us=LATE_US)
    last = {"time": events[-1]["time"] + 3_600_000_000, "op": "GET", "queue": "AUDIT", "qmgr": "QM01"}
    return [*values, request_of([last], len(events) + 1)], len(values) * HALF // END
