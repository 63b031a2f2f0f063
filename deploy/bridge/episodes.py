"""Alertmanager's view of the open alerts: labels that never change, annotations that may.

Alertmanager identifies an alert by its labels. A changed label is another alert to it, so labels have only what is
fixed while an episode lasts. The one exception is the step from watch to page: people who sleep are woken by the
severity, so the alert of the watch ends when that of the page begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from deploy.metrics.catalogue import resource_labels, store_labels
from streams.kafka.latest import AlertEntry
from twin.conditions import CRITICAL, INFO, WARNING, WATCH, Condition, Pool, Resource
from twin.records import AlertData

RESEND_S = 60.0  # between two deliveries of all open alerts
OPEN_FOR_S = 240.0  # after which an open alert that is not sent again ends by itself
CLEARED_FOR_S = 300.0  # for which a cleared alert is sent
_MAX_S = 253_402_300_799.0  # the last second of the year 9999
_TIME_DIGITS = 18  # at most, of a time in microseconds
_QUANTILES = ("p10", "p50", "p90")

# Puts fail or nothing is left to expand. The current severity of the others is an annotation: it may go up and down.
_CRITICAL = {Condition.FULL, Condition.CANNOT_EXPAND, Condition.SCM_EXHAUSTED, Condition.AUGMENTED_EXHAUSTED}

# Kind of store by resource. A record of an alert does not have it; scm and augmented also exist in structures, whose
# names have a slash.
_KINDS: dict[str, str] = {
    Pool.PAGES: "page_set",
    Pool.FILE: "queue_file",
    Pool.BLOCKS: "queue_file",
    Pool.CAPACITY: "uniform_cluster",
}
_STRUCTURE = {Pool.ENTRIES, Pool.ELEMENTS, Pool.SMDS, Pool.SCM, Pool.AUGMENTED}

Identity = tuple[tuple[str, str], ...]  # labels, sorted


def severity_class(data: AlertData) -> str:
    """Return the severity of an alert as a label: info of a watch, warning or critical of a page, by condition."""
    if data.level == WATCH:
        return INFO
    return CRITICAL if data.condition in _CRITICAL else WARNING


def kind_of(store: str, resource: str) -> str:
    """Return the kind of a store from a resource; empty for a silent source, which any kind may have."""
    pool = Resource.parse(resource).pool
    if pool in _STRUCTURE:
        return "structure" if "/" in store else "coupling_facility"
    return _KINDS.get(pool, "")


def identity(data: AlertData) -> dict[str, str]:
    """Return the labels of an alert, without empty ones, which Alertmanager drops."""
    labels = store_labels(data.store, kind_of(data.store, data.resource)) | resource_labels(data.resource)
    labels |= {
        "alertname": "Mqtwin" + "".join(word.capitalize() for word in data.condition.split("-")),
        "condition": data.condition,
        "severity": severity_class(data),
    }
    return {name: value for name, value in sorted(labels.items()) if value}


def annotation_texts(data: AlertData) -> dict[str, str]:
    """Return what may change while an alert is open, as texts."""
    texts = {
        "summary": f"{data.store} {data.resource}: {data.condition}",
        "alert_id": data.alert_id,
        "cause": data.cause,
        "actions": "\n".join(data.actions),
        "current_severity": data.severity,
        "event_time": data.time,
        "fillers": ", ".join(f"{filler.queue} {100 * filler.share:.0f} %" for filler in data.fillers),
    }
    if data.usage_pct is not None:
        texts["usage"] = f"{data.usage_pct:.1f} %"
    if data.full_probability is not None:
        texts["full_probability"] = f"{data.full_probability:.2f}"
    times = data.time_to_full_s or {}
    texts |= {f"time_to_full_{name}": f"{times[name]:.0f} s" for name in _QUANTILES if name in times}
    return {name: text for name, text in texts.items() if text}


def opened_s(entry: AlertEntry) -> float:
    """Return the event time of the opening from the alert's id, but not later than the last record was written."""
    data = entry.alert.data
    digits = data.alert_id.removeprefix(f"{data.store}/{data.condition}/{data.resource}/").partition("/")[0]
    is_time = digits.isascii() and digits.isdigit() and len(digits) <= _TIME_DIGITS
    opened = int(digits) / 1e6 if is_time else entry.written_s
    return min(opened, entry.written_s)


class Episodes:
    """The alerts to send, by identity.

    An identity has one alert: the open one, otherwise the one that cleared last. Without this rule the end of an
    earlier episode would end a later one that has the same labels.
    """

    def __init__(self) -> None:
        self._ended: dict[Identity, tuple[AlertEntry, float]] = {}  # and when it ended, wall time
        self._open: dict[Identity, AlertEntry] = {}
        self._identities: dict[str, Identity] = {}  # of open alerts, by alert id

    def apply(self, entry: AlertEntry) -> None:
        """Apply a record: opened, updated or cleared."""
        data = entry.alert.data
        identified = tuple(identity(data).items())
        earlier = self._identities.pop(data.alert_id, None)
        if earlier is not None and earlier != identified and earlier in self._open:
            self._ended[earlier] = (self._open.pop(earlier), entry.written_s)  # from watch to page, or back
        if entry.is_open:
            self._ended.pop(identified, None)
            self._open[identified] = entry
            self._identities[data.alert_id] = identified
        else:
            current = self._open.get(identified)
            if current is None or current.alert.data.alert_id == data.alert_id:
                self._open.pop(identified, None)
                self._ended[identified] = (entry, entry.written_s)

    def payload(self, now_s: float) -> list[dict[str, Any]]:
        """Return the alerts to send at a wall time, JSON-ready, and forget those that ended long ago."""
        limit_s = now_s - CLEARED_FOR_S
        self._ended = {key: ended for key, ended in self._ended.items() if ended[1] > limit_s}
        alerts = [_message(key, entry, now_s + OPEN_FOR_S) for key, entry in self._open.items()]
        return alerts + [_message(key, entry, ended_s) for key, (entry, ended_s) in self._ended.items()]


def _message(identified: Identity, entry: AlertEntry, ends_s: float) -> dict[str, Any]:
    """Return an alert as Alertmanager's POST /api/v2/alerts takes it [Alertmanager: openapi.yaml]."""
    return {
        "labels": dict(identified),
        "annotations": annotation_texts(entry.alert.data),
        "startsAt": _rfc3339(min(opened_s(entry), ends_s)),
        "endsAt": _rfc3339(ends_s),
    }


def _rfc3339(seconds: float) -> str:
    """Return a time as text. Producers may write any time with a record; Alertmanager takes years 1970 to 9999."""
    return (
        datetime.fromtimestamp(min(max(seconds, 0.0), _MAX_S), UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def chunks(alerts: list[dict[str, Any]], size: int) -> Iterator[Iterable[dict[str, Any]]]:
    """Yield the alerts in lists of at most `size`."""
    for start in range(0, len(alerts), size):
        yield alerts[start : start + size]
