"""Requests of changes for tests: a page set whose alert proposes EXPAND(SYSTEM), the site's list, a topic in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tests.support.alert_entries import alert
from tests.support.console_feed import page_set
from tests.support.traffic import write_estate
from twin.base.errors import MqtwinError
from twin.base.units import as_text
from twin.estate import Estate, load_estate
from twin.planning.proposals import read_change
from twin.records import (
    Action,
    ActRecord,
    Acts,
    AlertRecord,
    Approved,
    Expectation,
    Requested,
    StateRecord,
    Step,
    read_act,
    read_alert_record,
    read_state_record,
)

NOW = 1_795_176_000_000_000  # 2026-11-20T12:00:00Z
STORE = "QM01/PS04"
EXPAND = "ALTER PSID(4) EXPAND(SYSTEM)"
ID = "0123456789abcdef"
ACTIONS = """
[[allow]]
kind = "alter-psid"
stores = ["QM01/*"]
per_hour = 2
[[allow]]
kind = "setxcf-alter"
stores = ["QSG1/APP*"]
bounds = { size = ["1M", "8M"] }
per_hour = 2
"""


def estate(folder: Path) -> Estate:
    """Return the estate of `tests.support.traffic`."""
    return load_estate(write_estate(folder))


def actions(folder: Path, text: str = ACTIONS) -> Path:
    """Write the site's list."""
    path = folder / "actions.toml"
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
    return path


def state(now: int = NOW, *, p50: float | None = 1800.0, **fields: Any) -> StateRecord:
    """Return the state of the page set. now: its event time; p50: seconds until full, None: not within the horizon."""
    times = None if p50 is None else {"p10": p50 * 2 / 3, "p50": p50, "p90": p50 * 4 / 3}
    first = {"resource": "pages", "usage_pct": 70.0, "full_probability": 0.8, "time_to_full_s": times}
    content = page_set(STORE, 7000, time=as_text(now), forecast={"time": as_text(now), "resources": [first]}, **fields)
    return read_state_record(msgspec.json.encode(content))


def alert_record(statement: str | None = EXPAND, **fields: Any) -> AlertRecord:
    """Return an alert of the page set that proposes a statement."""
    runbook = (Action(id="ps-expand", summary="Let the page set expand", steps=(Step("Alter it", statement),)),)
    content = {"store": STORE, "resource": "pages", "condition": "threshold", "runbook": runbook, **fields}
    return read_alert_record(alert(**content).record())


def outlook(p50: float | None = 1800.0) -> Expectation:
    """Return what is expected."""
    times = (None, None, None) if p50 is None else (p50 * 2 / 3, p50, p50 * 4 / 3)
    return Expectation(resource="pages", p10=times[0], p50=times[1], p90=times[2], probability=0.8)


def request(own: Estate, act_id: str = ID, now: int = NOW, **fields: Any) -> Requested:
    """Return a request of ann: that the page set expands."""
    change = read_change(EXPAND, own.stores[STORE])
    content: dict[str, Any] = {
        "id": act_id,
        "sha256": change.sha256,
        "time": as_text(now),
        "alert_id": alert_record().data.alert_id,
        "action": "ps-expand",
        "step": 1,
        "store": STORE,
        "kind": change.kind,
        "settings": change.settings,
        "present": {"expand": "USER"},
        "language": change.language,
        "target": change.target,
        "statement": change.statement,
        "undo": "ALTER PSID(4) EXPAND(USER)",
        "look": change.look,
        "who": "ann",
        "state_time": as_text(now),
        "size": 10_000,
        "forecast": outlook(),
        "before": outlook(),
        "after": outlook(None),
        "expires": as_text(now + 900_000_000),
    }
    return Requested(**{**content, **fields})


def approval(asked: Requested, who: str = "bob", now: int = NOW + 60_000_000, **fields: Any) -> Approved:
    """Return an approval of a request."""
    return Approved(**{"id": asked.id, "sha256": asked.sha256, "time": as_text(now), "who": who, **fields})


class MemoryLog:
    """The acts topic in memory, with what the job says, as `streams.kafka.notes.ActLog`.

    Attributes:
        records: the records.
        states, alerts: what the job says.
        on_write: called before a record is written, with it; may raise.
        on_written: called behind it.
    """

    def __init__(self, *records: ActRecord) -> None:
        self.records = list(records)
        self.states: dict[str, StateRecord] = {STORE: state()}
        own = alert_record()
        self.alerts: dict[str, AlertRecord] = {own.data.alert_id: own}
        self.on_write: Callable[[ActRecord], object] = bool
        self.on_written: Callable[[ActRecord], object] = bool
        self.lock = threading.RLock()

    def read(self) -> Acts:
        """Return the requests."""
        acts = Acts()
        for record in self.records:
            acts.take(record)
        return acts

    def write(self, record: ActRecord) -> Acts:
        """Write a record as JSON, and return the requests."""
        self.on_write(record)
        self.records.append(read_act(msgspec.json.encode(record)))
        self.on_written(record)
        acts = self.read()
        if not acts.has(record):
            raise MqtwinError(f"request {record.id}: another record came first; expected: read it again")
        return acts

    def present(self) -> tuple[dict[str, StateRecord], dict[str, AlertRecord]]:
        """Return the states and alerts."""
        return self.states, self.alerts
