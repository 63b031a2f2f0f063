"""Records for the console without Kafka: those of a simulated recording, and made-up stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import twin
from deploy.console.answers import Answers
from streams.kafka.topics import TopicRecord, Topics
from twin.base.errors import UsageError
from twin.estate import Estate
from twin.events import Decoded
from twin.planning.whatif import Moment as TwinMoment
from twin.playback.replays import play
from twin.playback.samples import Applied, Observer
from twin.records import Note, StateRecord
from twin.simulation import Scenario

TOPICS = Topics()
_STATE_PERIOD_US = 60_000_000
# 48 characters, as the names of its queues have.
_LONG_QMGR = f"QMGR.PAYMENTS.{'X' * 34}"
_GROUPS = ("QSG1", "QSG2", "QM01", _LONG_QMGR)
_URGENT = {0: 0.0, 1: 600.0, 6: 3_000.0, 3: 6_000.0}  # number of a store: seconds until it is full
RUNBOOK: dict[str, Any] = {
    "id": "enlarge",
    "summary": "Copy the data set of QM01 to a larger one",
    "effect": "full in 3 h instead of 28 min",
    "precondition": "the storage group has 2 GB",
    "steps": [
        {
            "text": "Take it away from the queue manager",
            "statement": "RESET SMDS(QM01) CFSTRUCT(APP1) ACCESS(DISABLED)",
        },
        {"text": "Copy it", "statement": "//COPY EXEC PGM=IDCAMS\n  REPRO INDATASET(A) OUTDATASET(B)"},
        {"text": "Look at it", "statement": None},
    ],
    "risk": None,
    "undo": "ACCESS(ENABLED) with the old one",
}


@dataclass(frozen=True)
class FixedAnswers(Answers):
    """Answers that tests make up."""

    to_what_if: Callable[[Any], Any] = dict
    problem_text: str = ""

    def moment(self, store: str, time_s: float | None) -> AbstractContextManager[TwinMoment]:
        """Raise UsageError: there is no twin."""
        raise UsageError(f"{store} at {time_s}: there is no twin")

    def problem(self) -> str:
        """Return why there is no answer; empty: there is one."""
        return self.problem_text

    def what_if(self, content: Any) -> Any:
        """Return the answer that the test gave."""
        return self.to_what_if(content)


class Moment(NamedTuple):
    """A record and its event time as in records."""

    time: str
    record: TopicRecord


def state_record(state: StateRecord | dict[str, Any], written_ms: int = 1_795_000_000_000) -> TopicRecord:
    """Return a record of the state topic. written_ms: its time, milliseconds since 1970."""
    return TopicRecord(TOPICS.state, written_ms, msgspec.json.encode(state), {})


def alert_record(event: dict[str, Any] | bytes, written_ms: int = 1_795_000_000_000) -> TopicRecord:
    """Return a record of the alerts topic. written_ms: as of `state_record`."""
    value = event if isinstance(event, bytes) else msgspec.json.encode(event)
    return TopicRecord(TOPICS.alerts, written_ms, value, {})


def letter_record(reason: str = "unknown-op", offset: int = 4711) -> TopicRecord:
    """Return a record of the dead letter topic."""
    headers = {"reason": reason, "detail": 'op is "PEEK"', "topic": "mqtwin.events", "partition": "0"}
    return TopicRecord(
        TOPICS.dlq, 1_795_000_000_000, b'{"op":"PEEK"}', {**headers, "offset": str(offset), "index": "0"}
    )


def page_set(name: str, used: int | None, **fields: Any) -> dict[str, Any]:
    """Return the state record of a page set of 10,000 pages."""
    pages = {"pages_total": 10_000, "pages_max": 10_000, "pages_used": used, "status": "NORMAL"}
    parts = {
        "pages_persistent": used,
        "pages_nonpersistent": 0,
        "pages_unused": 10_000 - (used or 0),
        "usage_pct": None,
    }
    buffers = {"expansions": 0, "buffer_pool": 0, "buffer_pool_pct": None, "buffer_pool_writes": None}
    return {**_common(name, "page_set", used), **pages, **parts, **buffers, **fields}


def distant_forecast(time: str = "2026-11-20T12:00:00Z", probability: float = 0.0) -> dict[str, Any]:
    """Return the forecast of a page set that becomes full with a probability, beyond the times that a forecast has."""
    return {
        "time": time,
        "resources": [
            {"resource": "pages", "usage_pct": 70.0, "full_probability": probability, "time_to_full_s": None}
        ],
    }


def coupling_facility(name: str, **fields: Any) -> dict[str, Any]:
    """Return the state record of a coupling facility without SCM."""
    none = dict.fromkeys(("scm_total", "scm_committed", "scm_used", "storage_free", "augmented", "late_reports"), 0)
    return {**_common(name, "coupling_facility", None), **none, "structures": {}, **fields}


def _common(name: str, kind: str, held: int | None) -> dict[str, Any]:
    """Return the fields of every state record. held: messages, a byte each."""
    common = {"time": "2026-11-20T12:00:00.000000Z", "messages": held, "bytes": held, "queues": [], "events": held or 1}
    common |= dict.fromkeys(("uncommitted", "in_doubt", "expired_held", "duplicates", "gaps", "unmatched_gets"), 0)
    common |= dict.fromkeys(("full_puts", "queue_full_puts", "overfull_puts", "refused_alters"), 0)
    known = {"baseline": None, "forecast": None, "drift_pct": None, "fidelity": None}
    return {"store": name, "kind": kind, **common, **known}


def alert_event(number: int = 1, change: str = "opened", **data: Any) -> dict[str, Any]:
    """Return an alert about a page set, by default a warning of its threshold."""
    alert_id = f"QM01/PS04/threshold/pages/{number}"
    content = {
        "alert_id": alert_id,
        "status": "cleared" if change == "cleared" else "open",
        "severity": "warning",
        "store": "QM01/PS04",
        "resource": "pages",
        "condition": "threshold",
        "time": "2026-11-20T12:00:00.000000Z",
        "usage_pct": 91.5,
        "time_to_full_s": None,
        "full_probability": None,
        "fillers": [{"queue": "ORDERS", "share": 0.97}],
        "cause": "Pages of QM01/PS04: 91.5 % in use.",
        "actions": ["Look at the queue: DISPLAY QSTATUS(ORDERS) TYPE(QUEUE) ALL"],
        **data,
    }
    envelope = {"type": f"mqtwin.alert.{change}", "subject": content["store"], "time": content["time"]}
    return {"id": f"{alert_id}/{change}", **envelope, "data": content}


def two_hundred_stores(written_ms: int = 1_795_000_000_000) -> list[TopicRecord]:
    """Return the records of 200 page sets in four groups, one of them with names of 97 characters.

    One is full now, three are full in 10, 50 and 100 min; each of the four calls for somebody.
    """
    moment = "2026-11-20T12:01:00Z"
    records = []
    for number in range(200):
        group, seconds = _GROUPS[number % 4], _URGENT.get(number)
        name = f"{group}/{'REQUESTS.' + 'Y' * 36 if group == _LONG_QMGR else 'APP'}{number // 4:03}"
        times = {"p10": (seconds or 0) / 2, "p50": seconds, "p90": 2 * (seconds or 0)}
        first = {"resource": "pages", "usage_pct": 88.0, "time_to_full_s": times, "full_probability": 0.8}
        forecast = distant_forecast(moment) if seconds is None else {"time": moment, "resources": [first]}
        used = 10_000 if seconds == 0 else 500 + 97 * number % 6_000
        records.append(state_record(page_set(name, used, time=moment, forecast=forecast), written_ms))
        if seconds is not None:
            severity, condition = ("full", "full") if seconds == 0 else ("critical", "full-forecast")
            own = {"store": name, "severity": severity, "condition": condition, "runbook": [RUNBOOK]}
            records.append(alert_record(alert_event(number, alert_id=f"{name}/1", **own), written_ms))
    return records


def note_record(note: Note) -> TopicRecord:
    """Return a record of the notes topic."""
    return TopicRecord(TOPICS.notes, 1_795_000_000_000, msgspec.json.encode(note), {})


def demo_story(folder: Path) -> list[Moment]:
    """Return what the job writes of the example recording: its getter stops for two hours, and QSG1/APP1 fills."""
    return story(folder, twin.make_scenario("getter-outage"), twin.demo_estate())


def story(folder: Path, scenario: Scenario, estate: Estate) -> list[Moment]:
    """Return what the job writes of a scenario with seed 1: every alert, and a state record a minute."""
    recording = folder / f"{scenario.name}.arrow"
    twin.simulate(scenario, estate, recording, seed=1)
    written = _Written()
    play(recording, estate, written)
    return written.moments


class InPieces(Observer):
    """An observer of pieces of 500 events."""

    def cuts(self, decoded: Decoded) -> Iterable[int]:
        """Return the rows before which events are cut, each 500."""
        return range(500, len(decoded), 500)


class _Written(InPieces):
    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self._last_us = 0

    def after(self, applied: Applied) -> None:
        for alert in applied.alerts:
            record = alert_record(alert.record())
            self.moments.append(Moment(msgspec.json.decode(alert.record())["time"], record))
        now_us = int(applied.piece.events["time"].max(initial=0))
        if now_us - self._last_us >= _STATE_PERIOD_US:
            self._last_us = now_us
            states = (twin.state() for _, twin in sorted(applied.twins.items()))
            self.moments += [Moment(str(state.time), state_record(state)) for state in states]
