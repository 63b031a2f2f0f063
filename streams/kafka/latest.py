"""The latest records of the topics that the job writes, folded for surfaces.

After a restart the same records give the same content.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import msgspec

from streams.kafka.topics import RecordGuard, TopicRecord, Topics
from twin.events import Reason
from twin.records import AlertRecord, Incidents, StateRecord, read_alert_record, read_state_record
from twin.records.bounds import text_of

OTHER_REASON = "other"  # of a dead letter whose reason is unknown here: written by a newer job, or by somebody else
_REASONS = tuple(str(reason) for reason in Reason)
_MAX_ENTRIES = 100_000  # of alerts and of stores, a bound for memory: a thousand stores have some thousand resources


class StateEntry(msgspec.Struct, frozen=True):
    """A state record and a surface's value derived from it. `written_s` is seconds since 1970, wall clock; `derived` is
    what `derive` of `Latest` returned.
    """

    state: StateRecord
    written_s: float
    derived: Any = None


class AlertEntry(msgspec.Struct, frozen=True):
    """The last record of an alert, and the time at which it was written: seconds since 1970, wall clock."""

    alert: AlertRecord
    written_s: float

    @property
    def is_open(self) -> bool:
        """True until the alert has cleared."""
        return self.alert.is_open


class Latest:
    """The latest state of each store, the open alerts, the alerts cleared lately, incidents, counts of dead letters.

    A record of another kind, or without a value from `derive`, is counted and changes nothing. Cleared alerts stay for
    `keep_cleared_s` of wall time. `derive` is called when a state record arrives.
    """

    def __init__(
        self,
        topics: Topics,
        keep_cleared_s: float = 300.0,
        derive: Callable[[StateEntry], Any] = lambda _: None,
    ) -> None:
        self._topics, self._keep_cleared_s, self._derive = topics, keep_cleared_s, derive
        self._guard = RecordGuard()
        self.states: dict[str, StateEntry] = {}
        self.alerts: dict[str, AlertEntry] = {}  # by alert id, in the order of their first record
        self.incidents = Incidents()
        self.dead_letters = dict.fromkeys((*_REASONS, OTHER_REASON), 0)
        self._site: tuple[float, str] = (0.0, "")  # of the state record that was written last, and when

    @property
    def unreadable(self) -> int:
        """Number of records that are neither states nor alerts."""
        return self._guard.unreadable

    @property
    def site(self) -> str:
        """Name of the site, by the state record that was written last; "": it has none."""
        return self._site[1]

    def apply(self, record: TopicRecord) -> AlertEntry | None:
        """Apply a record of any of the topics; return the entry if it is an alert that changes something."""
        return self._guard.take(record, self._apply)

    def _apply(self, record: TopicRecord) -> AlertEntry | None:
        if record.topic == self._topics.dlq:
            reason = record.headers.get("reason")
            self.dead_letters[reason if reason in _REASONS else OTHER_REASON] += 1
        elif record.topic == self._topics.state:
            self._apply_state(record)
        elif record.topic == self._topics.alerts:
            return self._apply_alert(record)
        return None

    def _apply_state(self, record: TopicRecord) -> None:
        """Apply a record of the state topic; without a value it deletes the store."""
        if record.value is None:
            self.states.pop(record.key.decode(errors="replace"), None)
            return
        entry = StateEntry(read_state_record(record.value), record.written_ms / 1000.0)
        store = entry.state.store
        if store not in self.states and len(self.states) >= _MAX_ENTRIES:
            raise ValueError(f"more than {_MAX_ENTRIES:,} stores")
        self.states[store] = msgspec.structs.replace(entry, derived=self._derive(entry))
        self._site = max(self._site, (entry.written_s, text_of(entry.state.site)), key=itemgetter(0))

    def _apply_alert(self, record: TopicRecord) -> AlertEntry | None:
        """Apply a record of the alerts topic; return None for a repeated one or a tombstone."""
        if record.value is None:
            alert_id = record.key.decode(errors="replace")
            self.alerts.pop(alert_id, None)
            self.incidents.forget_alert(alert_id)
            return None
        entry = AlertEntry(read_alert_record(record.value), record.written_ms / 1000.0)
        alert_id, number = entry.alert.data.alert_id, entry.alert.number
        before = self.alerts.get(alert_id)
        if before is not None and before.alert.number >= number:
            return None
        if before is None and len(self.alerts) >= _MAX_ENTRIES:
            raise ValueError(f"more than {_MAX_ENTRIES:,} alerts are open")
        if entry.is_open or entry.written_s > time.time() - self._keep_cleared_s:
            self.alerts[alert_id] = entry
        else:
            self.alerts.pop(alert_id, None)
        self.incidents.take(entry.alert)
        return entry

    def forget_cleared(self) -> None:
        """Forget alerts that cleared more than `keep_cleared_s` ago; to be called periodically."""
        limit_s = time.time() - self._keep_cleared_s
        old = [alert_id for alert_id, entry in self.alerts.items() if not entry.is_open and entry.written_s <= limit_s]
        for alert_id in old:
            del self.alerts[alert_id]
