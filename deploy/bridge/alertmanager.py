"""Delivery of alerts to every Alertmanager of a cluster.

Each peer has a thread that always sends the current content, never a queue: a peer that was away gets what is open now
and what has cleared lately. Alertmanager asks for exactly that of its clients: send to all peers, send again
[Alertmanager: High availability].

Alertmanager identifies an alert by its labels. A changed label is another alert to it, so labels have only what is
fixed while an episode lasts. The one exception is the step from watch to page: people who sleep are woken by the
severity, so the alert of the watch ends when that of the page begins.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

import msgspec
import structlog

from deploy.bridge.sending import TIMEOUT_S, RefusedError, post, send_until_delivered
from deploy.metrics.catalogue import resource_labels, store_labels
from streams.collecting.http import Requester
from streams.kafka.latest import AlertEntry
from twin.conditions import CRITICAL, INFO, WARNING, WATCH, Condition, Pool, Resource
from twin.records import AlertData

_MAX_ALERTS = 64  # of one request
_HEADERS = {"Content-Type": "application/json"}
RESEND_S = 60.0  # between two deliveries of all open alerts
OPEN_FOR_S = 240.0  # after which an open alert that is not sent again ends by itself
CLEARED_FOR_S = 300.0  # for which a cleared alert is sent
_MAX_S = 253_402_300_799.0  # the last second of the year 9999
_TIME_DIGITS = 18  # at most, of a time in microseconds

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

_log = structlog.get_logger("mqtwin.bridge")

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
    times = {} if data.time_to_full_s is None else msgspec.structs.asdict(data.time_to_full_s)
    texts |= {f"time_to_full_{name}": f"{seconds:.0f} s" for name, seconds in times.items()}
    return {name: text for name, text in texts.items() if text}


def opened_s(entry: AlertEntry) -> float:
    """Return the event time of the opening from the alert's id, but not later than the last record was written."""
    data = entry.alert.data
    digits = data.alert_id.removeprefix(f"{data.store}/{data.condition}/{data.resource}/").partition("/")[0]
    is_time = digits.isascii() and digits.isdigit() and len(digits) <= _TIME_DIGITS
    opened = int(digits) / 1e6 if is_time else entry.written_s
    return min(opened, entry.written_s)


class AlertmanagerBridge:
    """The sender to all peers. A context manager: within it a thread per peer sends.

    Args:
        urls: base URLs of the peers.
        headers: headers of every request, for a login.
        resend_s: seconds between two deliveries of everything.
    """

    def __init__(
        self, urls: Sequence[str], headers: dict[str, str] | None = None, *, resend_s: float = RESEND_S
    ) -> None:
        self._sent = SentAlerts()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._resend_s = resend_s
        self._peers = [_Peer(url, self, {**_HEADERS, **(headers or {})}) for url in urls]

    def apply(self, entries: Sequence[AlertEntry]) -> None:
        """Apply records of the topic, in its order, and wake the peers."""
        with self._lock:
            for entry in entries:
                self._sent.apply(entry)
        for peer in self._peers:
            peer.changed.set()

    def counts(self) -> dict[str, int]:
        """Return the numbers of peers, and of those that have not taken the last content."""
        return {"peers": len(self._peers), "peers_waited_for": sum(peer.is_waited_for for peer in self._peers)}

    def payload(self) -> list[PostableAlert]:
        """Return the alerts to send now."""
        with self._lock:
            return self._sent.payload(time.time())

    def __enter__(self) -> Self:
        for peer in self._peers:
            peer.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        for peer in self._peers:
            peer.changed.set()
        for peer in self._peers:
            if peer.thread.is_alive():
                peer.thread.join(TIMEOUT_S)

    def serve(self, peer: _Peer) -> None:
        """Send to a peer at each change and every `resend_s`, until the end of the context."""
        with Requester(TIMEOUT_S) as client:
            is_first = True
            while not self._stop.is_set():
                peer.changed.wait(None if is_first else self._resend_s)
                if self._stop.is_set():
                    return
                is_first = False
                peer.is_waited_for = True
                try:
                    if send_until_delivered(lambda: self._send(client, peer), self._stop):
                        peer.is_waited_for = False
                        _log.debug("delivered", to=peer.url)
                except Exception as error:  # noqa: BLE001 -- this thread never ends in silence: the next content is sent
                    _log.error("not delivered", to=peer.url, why=f"{type(error).__name__}: {error}")

    def _send(self, client: Requester, peer: _Peer) -> None:
        """Send the current content once, in requests of bounded size."""
        peer.changed.clear()  # before the content is read: what changes from here on is sent again
        alerts = self.payload()
        for start in range(0, len(alerts), _MAX_ALERTS):
            body = msgspec.json.encode(alerts[start : start + _MAX_ALERTS])
            try:
                post(client, f"{peer.url}/api/v2/alerts", body, peer.headers)
            except RefusedError as error:  # Alertmanager takes the alerts of a request that it can; so do the next ones
                _log.error("refused", why=str(error))


class _Peer:
    """An Alertmanager.

    Args:
        url: base URL.
        bridge: that serves it.
        headers: headers of every request.
    """

    def __init__(self, url: str, bridge: AlertmanagerBridge, headers: dict[str, str]) -> None:
        self.url = url
        self.headers = headers
        self.changed = threading.Event()
        self.is_waited_for = False  # while it has not taken the present content
        self.thread = threading.Thread(target=bridge.serve, args=(self,), name=f"bridge {url}", daemon=True)


class PostableAlert(msgspec.Struct, frozen=True, rename="camel"):
    """An alert as Alertmanager's POST /api/v2/alerts takes it [Alertmanager: openapi.yaml]."""

    labels: dict[str, str]
    annotations: dict[str, str]
    starts_at: str
    ends_at: str


class SentAlerts:
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

    def payload(self, now_s: float) -> list[PostableAlert]:
        """Return the alerts to send at a wall time, and forget those that ended long ago."""
        limit_s = now_s - CLEARED_FOR_S
        self._ended = {key: ended for key, ended in self._ended.items() if ended[1] > limit_s}
        alerts = [_message(key, entry, now_s + OPEN_FOR_S) for key, entry in self._open.items()]
        return alerts + [_message(key, entry, ended_s) for key, (entry, ended_s) in self._ended.items()]


def _message(identified: Identity, entry: AlertEntry, ends_s: float) -> PostableAlert:
    """Return an alert that ends at a time, seconds since 1970."""
    return PostableAlert(
        labels=dict(identified),
        annotations=annotation_texts(entry.alert.data),
        starts_at=_rfc3339(min(opened_s(entry), ends_s)),
        ends_at=_rfc3339(ends_s),
    )


def _rfc3339(seconds: float) -> str:
    """Return a time as text. Producers may write any time with a record; Alertmanager takes years 1970 to 9999."""
    return (
        datetime.fromtimestamp(min(max(seconds, 0.0), _MAX_S), UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )
