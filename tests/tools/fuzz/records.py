"""Records with odd values for surfaces: `python -m tests.tools.fuzz.records --records 100000`.

A surface may say that it cannot read a record. It may not raise an error, neither when the record arrives nor when what
it keeps is shown or sent.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, generate_latest

from deploy.bridge import SentIncidents
from deploy.console.model import ConsoleModel
from deploy.metrics.collector import TwinCollector, samples_of
from deploy.show.alerts import alert_block, alert_line, incident_block, incident_line
from streams.kafka.topic_reader import Latest
from streams.kafka.topics import RecordGuard, TopicRecord, Topics
from tests.support.alert_entries import alert
from tests.support.surfaces import filling
from tests.tools.fuzz.damage import damaged
from twin.base.conditions import CLEARED, UPDATED
from twin.records import AlertRecord, Incidents, read_alert_record

TOPICS = Topics()
DEPTH = 3000  # of nesting, beyond what a decoder follows
VALUES = (b'"9e99"', b"1e308", b"9" * 400, b"-1", b"[]", b"{}", b'"x"', b"null", b"true", b'{"p50":"x"}', b"[1]")
TIMES_MS = (0, 1_795_000_000_000, 9 * 10**17, -5)


def nested(record: bytes, depth: int) -> bytes:
    """Return a JSON object with one more field: lists in lists."""
    return record.rstrip()[:-1] + b',"y":' + b"[" * depth + b"]" * depth + b"}"


class Surfaces:
    """Every surface that reads the topics, as its command puts it together."""

    def __init__(self) -> None:
        self.latest = Latest(TOPICS, derive=samples_of)
        self.model = ConsoleModel(TOPICS)
        self.subscriber = RecordGuard()
        self.sent = SentIncidents()
        self.incidents = Incidents()
        self._registry = CollectorRegistry()
        self._registry.register(TwinCollector(self.latest, threading.Lock(), lambda: None, lambda: True))

    def take(self, record: TopicRecord) -> None:
        """Let each surface take a record."""
        entry = self.latest.apply(record)
        self.latest.forget_cleared()
        if entry is not None:
            self.sent.apply(entry)
        self.model.fold([record])
        if record.topic == TOPICS.alerts and record.value is not None:
            decoded = self.subscriber.take(record, _decoded)
            if decoded is not None:
                alert_line(decoded)
                alert_block(decoded, 80)
                for change in self.incidents.take(decoded):
                    assert "\n" not in incident_line(change)
                    incident_block(change, 80)
                assert "\n" not in decoded.line

    def show(self) -> str:
        """Return the page of metrics, after all others have shown what they keep."""
        msgspec.json.encode(self.sent.payload(time.time()))
        self.console_content()
        self.model.beat()
        return generate_latest(self._registry).decode()

    def console_content(self) -> dict[str, Any]:
        """Return what the console sends to a new client."""
        content: dict[str, Any] = msgspec.json.decode(self.model.changes(0)[1])
        return content

    def unreadable(self) -> dict[str, int]:
        """Return the count of each surface."""
        return {
            "latest": self.latest.unreadable,
            "console": self.model.unreadable,
            "alerts": self.subscriber.unreadable,
        }


def _decoded(record: TopicRecord) -> AlertRecord:
    return read_alert_record(record.value or b"")


@cache
def samples() -> tuple[tuple[str, bytes], ...]:
    """Return (topic, value) of good records: states of every kind of store, alerts, dead letters."""
    with tempfile.TemporaryDirectory() as folder:
        driver = filling(Path(folder))
    states = [(TOPICS.state, msgspec.json.encode(state)) for state in driver.states().values()]
    alerts = [(TOPICS.alerts, own.record()) for own in driver.alerts]
    alerts += [
        (TOPICS.alerts, alert(change, number, store=store).record())
        for store in ("QSG1/APP1", "QM01/PS04")
        for number, change in enumerate(("opened", UPDATED, CLEARED))
    ]
    return (*states, *alerts, (TOPICS.dlq, b'{"op":"PEEK"}'))


class RecordFuzzer:
    """Plays records: each is a function of its number.

    surfaces: that take them.
    """

    def __init__(self, surfaces: Surfaces) -> None:
        self._surfaces = surfaces
        self._values = [value for _, value in samples()]

    def play(self, number: int) -> None:
        """Play a record, and show everything after some of them."""
        rng = Random(number)
        topic, value = rng.choice(samples())
        match rng.randrange(10):
            case 0:
                value = nested(value, rng.choice((1, 50, DEPTH)))
            case 1 | 2 | 3:
                value = _odd(rng, value)
            case 4 | 5 | 6 | 7:
                value = damaged(rng, value, self._values)
        headers = {"reason": rng.choice(("not-json", "x" * 5000, "\0")), "detail": "d"}
        written_ms = rng.choice(TIMES_MS)
        key = rng.choice((b"", b"\xff", b"QM01/PS04"))
        self._surfaces.take(TopicRecord(topic, written_ms, value if rng.random() > 0.01 else None, headers, key))
        if number % 20 == 0:
            self._surfaces.show()


def _odd(rng: Random, value: bytes) -> bytes:
    """Return a record with the value of some field replaced."""
    places = [place + 1 for place in range(len(value) - 1) if value[place : place + 1] == b":"]
    if not places:
        return value
    start = rng.choice(places)
    end = min((end for mark in b",}" if (end := value.find(mark, start)) > 0), default=len(value))
    return value[:start] + rng.choice(VALUES) + value[end:]


def main() -> int:
    """Return the exit status: 1 if a surface raised an error."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.fuzz.records", description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first record")
    arguments = parser.parse_args()
    failures, surfaces = 0, Surfaces()
    for number in range(arguments.first, arguments.first + arguments.records):
        try:
            RecordFuzzer(surfaces).play(number)
        except Exception as error:  # noqa: BLE001 -- whatever it is, it is reported
            failures += 1
            print(f"record {number}: {type(error).__name__}: {error}", flush=True)
            surfaces = Surfaces()
    print(
        f"{arguments.records:,} records, {failures} failures, {surfaces.unreadable()} unreadable by the last surfaces"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
