"""Records of the alerts topic for tests of bridges, and a fake receiver of HTTP requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import msgspec

from streams.kafka.topic_reader import AlertEntry
from streams.kafka.topics import TopicRecord
from twin.alerts.episodes import Alert
from twin.base.conditions import CLEARED, OPENED, WARNING
from twin.records import Action, Filler, Step, read_alert_record

DISPLAY = Step("See when it was last got from", "DISPLAY QSTATUS(ORDERS) TYPE(QUEUE) ALL")
GETTERS = Action(id="getters", summary="Start more getters on ORDERS", steps=(DISPLAY,), risk="none")
OPENED_US = 1_795_138_420_000_000  # 2026-11-20T01:33:40Z


def alert(change: str = OPENED, number: int = 0, **fields: Any) -> Alert:
    """Return a record of an alert; by default the opening of a full-forecast of a data set."""
    store = fields.get("store", "QSG1/APP1")
    resource = fields.get("resource", "smds/QM01")
    condition = fields.get("condition", "full-forecast")
    opened_us = fields.pop("opened_us", OPENED_US)
    defaults = {
        "alert_id": f"{store}/{condition}/{resource}/{opened_us}",
        "severity": WARNING,
        "store": store,
        "resource": resource,
        "condition": condition,
        "time": opened_us + number * 10_000_000,
        "usage_pct": 79.948 + number,
        "time_to_full_s": None if change == CLEARED else {"p10": 1316.3, "p50": 1641.2, "p90": 2120.3},
        "full_probability": None if change == CLEARED else 0.6924,
        "fillers": (Filler("ORDERS", 0.9998),),
        "cause": f"SMDS blocks of QM01: record {number}.",
        "runbook": () if change == CLEARED else (GETTERS, Action(id="volumes", summary="Add volumes")),
    }
    return Alert(change=change, number=number, **{**defaults, **fields})


def entry(change: str = OPENED, number: int = 0, *, written_s: float | None = None, **fields: Any) -> AlertEntry:
    """Return an alert as it is read from the topic, written now by default."""
    return AlertEntry(
        read_alert_record(alert(change, number, **fields).record()), time.time() if written_s is None else written_s
    )


def topic_record(topic: str, value: bytes | None, written_s: float | None = None, key: str = "") -> TopicRecord:
    """Return a record of a topic, written now by default."""
    return TopicRecord(topic, round(1000 * (time.time() if written_s is None else written_s)), value, {}, key.encode())


@dataclass
class Receiver:
    """A server that records requests. statuses: its answers, in order; then 200."""

    url: str
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    def json(self) -> list[Any]:
        """Return the decoded bodies."""
        return [msgspec.json.decode(body) for _, _, body in self.requests]

    @classmethod
    @contextmanager
    def run(cls, port: int = 0, *statuses: int) -> Iterator[Self]:
        """Serve within the block."""

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): text for name, text in self.headers.items()}
                receiver.requests.append((self.path, headers, body))
                self.send_response(receiver.statuses.pop(0) if receiver.statuses else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        receiver = cls(f"http://127.0.0.1:{server.server_address[1]}", statuses=list(statuses))
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
