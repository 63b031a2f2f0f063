"""Traffic of a run: random events of four stores, in slices, as records in each form, with the flaws of a plan."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tests.naive.estates import structure
from tests.naive.private_estates import Private
from tests.support.mixes import HOUR_US, MINUTE_US, MIXES, SECOND_US, Mix
from tests.support.workloads import EventMaker, random_steps
from tests.tools.fire.plan import Action, Flaw, Form
from twin.events import ARROW, JSON, NDJSON
from twin.events.convert import arrow_value, to_table

CONTENT_TYPES: dict[Form, str] = {"json": JSON, "ndjson": NDJSON, "arrow": ARROW}
EVENTS_A_RECORD = 40
HUGE_EVENTS = 5_000  # in a record, some 500 KB
EVENTS_A_STORE = 20_000  # that a run can publish; they take a second to make

_GROUP = """\
schema = 1

[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02", "QM03"]

[queue_manager.QM01]
platform = "zos"
version = "9.4"

[queue_manager.QMD1]
platform = "distributed"

[page_set."QM01/4"]
pages = {pages}

[storage_class."QM01/REMOTE"]
page_set = 4

[queue."QM01/LOCAL.A"]
storage_class = "REMOTE"

[queue."QM01/LOCAL.B"]
storage_class = "REMOTE"

[queue_file."QMD1/INVOICES"]
max_size = "4M"
"""
_STRUCTURE = """
[structure."QSG1/{name}"]
size = "{size}"
cf_level = 5
ds_block = "64K"
"""
_QUEUE = """
[queue."QSG1/{queue}"]
structure = "{name}"
"""
ESTATES = 4  # variants
# How time advances: mostly forward by less than a second, as each ten seconds cost a forecast; occasionally late
# events, a quiet minute, a quiet hour.
_TIMES = (
    *((0, True), (1, True), (1000, True), (SECOND_US // 10, True), (SECOND_US, True)) * 40,
    *((MINUTE_US, True), (MINUTE_US, True), (HOUR_US, True), (-1, False), (-SECOND_US, False), (-HOUR_US, False)),
)


class Record(NamedTuple):
    """A record of the events topic. events: that it counts as, accepted or dead-lettered."""

    key: str
    value: bytes
    form: Form
    events: int


def write_estate(folder: Path, number: int) -> Path:
    """Write a variant of the estate: 0 the first, 1 resized, 2 with a structure more, 3 with a queue moved."""
    text = _GROUP.format(pages=400 if number != 1 else 700)
    names = ["APP1", "APP2", *(["APP3"] if number == 2 else [])]
    for name in names:
        text += _STRUCTURE.format(name=name, size="6M" if number == 1 and name == "APP1" else "4M")
        for qmgr in ("QM01", "QM02", "QM03"):
            text += f'\n[smds."QSG1/{name}/{qmgr}"]\nsize = "4M"\nmax_size = "{"8M" if number == 1 else "6M"}"\n'
    moved = {"ORDERS": "APP1", "PAYMENTS": "APP2" if number == 3 else "APP1", "AUDIT": "APP2"}
    for queue, name in moved.items():
        text += _QUEUE.format(queue=queue, name=name)
    if number == 2:
        text += _QUEUE.format(queue="NEW", name="APP3")
    path = folder / f"estate-{number}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def _configs() -> tuple[tuple[str, str, Any], ...]:
    group = ("QM01", "QM02", "QM03")
    app1 = structure(name="QSG1/APP1", size=4 << 20, queue_managers=group, queues=("ORDERS", "PAYMENTS"))
    app2 = structure(name="QSG1/APP2", size=4 << 20, queue_managers=group, queues=("AUDIT",))
    pages = Private("page_set", "QM01/PS04", ("LOCAL.A", "LOCAL.B"), {"pages": 400})
    file = Private("queue_file", "QMD1/INVOICES", ("INVOICES",), {"max_size": "4M"}, queue_managers=("QMD1",))
    return (
        ("structure", "filling", app1),
        ("structure", "mixed", app2),
        ("page_set", "mixed", pages),
        ("queue_file", "mixed", file),
    )


def _mix(kind: str) -> Mix:
    return replace(MIXES[kind], times=_TIMES)


class Traffic:
    """The events of a seed, in the order in which they are published.

    Args:
        seed: seed of the plan.
        events_a_store: that it can publish.
    """

    def __init__(self, seed: int, events_a_store: int = EVENTS_A_STORE) -> None:
        self._draw = random.Random(f"traffic {seed}")
        self._streams = []
        for place, (kind, profile, config) in enumerate(_configs()):
            maker = EventMaker(config, _mix(kind))
            steps = random_steps(1000 * seed + place, events_a_store, profile, kind)
            self._streams.append((config.name, maker, steps))
        self._last: list[Record] = []
        self._moved: dict[str, str] = {}

    def use_estate(self, number: int) -> None:
        """Send the events of queues by the stores that a variant of the estate puts them in.

        What one store reads from two partitions has no order: producers take a queue along when it is moved.
        """
        self._moved = {"PAYMENTS": "QSG1/APP2"} if number == 3 else {}
        self._last = []

    def records(self, action: Action) -> list[Record]:
        """Return the records of an action, whose events come from all stores in turn."""
        events: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for number in range(action.events):
            store, maker, steps = self._streams[number % len(self._streams)]
            event = maker.event(next(steps))
            events[self._key_of(store, event)].append(event)
        stores = [encode(store, self._flawed(own, action.flaw), action.form) for store, own in events.items()]
        records = [record for row in zip_longest(*stores) for record in row if record is not None]
        if action.flaw == "repeat":
            records += self._last
        if action.flaw == "poison":
            records += [Record(store, value, "json", 1) for store in events for value in _POISON]
        if action.flaw == "huge":
            records += self._huge()
        self._last = records[-20:]
        return records

    def _flawed(self, events: list[dict[str, Any]], flaw: Flaw) -> list[dict[str, Any]]:
        if flaw == "shuffle":
            return self._draw.sample(events, len(events))
        if flaw == "clock":
            return [event | {"time": event["time"] + self._draw.choice((-HOUR_US, 0, HOUR_US))} for event in events]
        return events

    def _key_of(self, store: str, event: dict[str, Any]) -> str:
        return self._moved.get(event.get("queue") or "", store)

    def _huge(self) -> list[Record]:
        store, maker, steps = self._streams[0]
        events: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for _ in range(HUGE_EVENTS):
            event = maker.event(next(steps))
            events[self._key_of(store, event)].append(event)
        return [
            Record(key, b"\n".join(map(msgspec.json.encode, own)), "ndjson", len(own)) for key, own in events.items()
        ]


_POISON = (b"{", b'{"time": 1}', b"\xff\xfe", b'{"time": 5, "qmgr": "QM01", "op": "PUT", "queue": "NOBODY"}')


def encode(store: str, events: list[dict[str, Any]], form: Form) -> list[Record]:
    """Return the events of a store as records."""
    if form == "json":
        return [Record(store, msgspec.json.encode(event), form, 1) for event in events]
    pieces = [events[start : start + EVENTS_A_RECORD] for start in range(0, len(events), EVENTS_A_RECORD)]
    if form == "ndjson":
        return [Record(store, b"\n".join(map(msgspec.json.encode, piece)), form, len(piece)) for piece in pieces]
    return [Record(store, arrow_value(to_table(piece)), form, len(piece)) for piece in pieces]
