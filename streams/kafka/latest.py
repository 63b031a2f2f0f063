"""The latest records of the topics that the job writes, folded for surfaces.

After a restart the same records give the same content.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec

from streams.kafka.subscribe import AlertRecord, decode_alert
from streams.kafka.topic_reader import TopicRecord
from streams.kafka.topics import Topics
from twin.conditions import CLEARED
from twin.errors import MqtwinError
from twin.events import Reason

OTHER_REASON = "other"  # of a dead letter whose reason is unknown here: written by a newer job, or by somebody else
_REASONS = tuple(str(reason) for reason in Reason)
_MAX_OPEN_ALERTS = 100_000  # a bound for memory: an estate of a thousand stores has some thousand resources


class StateEntry(msgspec.Struct, frozen=True):
    """A state record, see docs/state.md, and the time at which it was written: seconds since 1970, wall clock."""

    state: dict[str, Any]
    written_s: float


class AlertEntry(msgspec.Struct, frozen=True):
    """The last record of an alert, and the time at which it was written: seconds since 1970, wall clock."""

    alert: AlertRecord
    written_s: float

    @property
    def is_open(self) -> bool:
        """True until the alert has cleared."""
        return self.alert.change != CLEARED


class Latest:
    """The latest state of each store, the open alerts, the alerts cleared lately, and counts of dead letters.

    Args:
        topics: names of the topics.
        keep_cleared_s: seconds of wall time for which a cleared alert stays.
    """

    def __init__(self, topics: Topics, keep_cleared_s: float = 300.0) -> None:
        self._topics = topics
        self._keep_cleared_s = keep_cleared_s
        self.states: dict[str, StateEntry] = {}
        self.alerts: dict[str, AlertEntry] = {}  # by alert id, in the order of their first record
        self.dead_letters = dict.fromkeys((*_REASONS, OTHER_REASON), 0)
        self.unreadable = 0  # records that are neither states nor alerts

    def apply(self, record: TopicRecord) -> AlertEntry | None:
        """Apply a record of any of the topics; return the entry if it is an alert that changes something."""
        written_s = record.written_ms / 1000.0
        if record.topic == self._topics.dlq:
            self._count_letter(record)
        elif record.topic == self._topics.state:
            self.apply_state(record.key, record.value, written_s)
        elif record.topic == self._topics.alerts:
            return self.apply_alert(record.key, record.value, written_s)
        return None

    def apply_state(self, key: bytes, value: bytes | None, written_s: float) -> None:
        """Apply a record of the state topic; without a value it deletes the store."""
        if value is None:
            self.states.pop(key.decode(errors="replace"), None)
            return
        try:
            state = msgspec.json.decode(value, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError):
            state = {}
        if isinstance(state.get("store"), str) and isinstance(state.get("kind"), str):
            self.states[state["store"]] = StateEntry(state, written_s)
        else:
            self.unreadable += 1

    def apply_alert(self, key: bytes, value: bytes | None, written_s: float) -> AlertEntry | None:
        """Apply a record of the alerts topic; return None for a repeated one, a tombstone or an unreadable one."""
        if value is None:
            self.alerts.pop(key.decode(errors="replace"), None)
            return None
        alert = decode_alert(value)
        if alert is None:
            self.unreadable += 1
            return None
        entry = AlertEntry(alert, written_s)
        before = self.alerts.get(alert.data.alert_id)
        if before is not None and _number(before.alert) >= _number(alert):
            return None
        if before is None and len(self.alerts) >= _MAX_OPEN_ALERTS:
            raise MqtwinError(f"topic {self._topics.alerts}: more than {_MAX_OPEN_ALERTS:,} alerts are open")
        if entry.is_open or written_s > time.time() - self._keep_cleared_s:
            self.alerts[alert.data.alert_id] = entry
        else:
            self.alerts.pop(alert.data.alert_id, None)
        return entry

    def _count_letter(self, record: TopicRecord) -> None:
        reason = record.headers.get("reason")
        self.dead_letters[reason if reason in _REASONS else OTHER_REASON] += 1

    def forget_cleared(self) -> None:
        """Forget alerts that cleared more than `keep_cleared_s` ago; to be called periodically."""
        limit_s = time.time() - self._keep_cleared_s
        old = [alert_id for alert_id, entry in self.alerts.items() if not entry.is_open and entry.written_s <= limit_s]
        for alert_id in old:
            del self.alerts[alert_id]


def _number(alert: AlertRecord) -> int:
    """Return the number of a record in its episode: docs/alerts.md, Fields."""
    number = alert.id.rpartition("/")[2]
    return int(number) if number.isascii() and number.isdigit() else 0
