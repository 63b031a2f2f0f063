"""Delivery of alerts: to every Alertmanager of a cluster, and to a command.

Each Alertmanager has a thread that sends the current content, never a backlog, as clients should [Alertmanager: High
availability]: a peer that was down receives whatever is open now and what has cleared lately. Alertmanager identifies
an alert by its labels, so an incident is one alert whose labels stay the same while its root changes; only a change of
urgency ends one alert and begins another in the same group. A command (mail, a webhook, a message on the z/OS console)
receives one alert at a time on its standard input, in the order of the topic, with the brief in MQTWIN_BRIEF. A command
that fails or hangs is retried with growing pauses, then abandoned, so that one alert cannot hold back the others.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from types import TracebackType
from typing import NamedTuple, Self

import msgspec
import structlog
from tenacity import (
    RetryCallState,
    RetryError,
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_when_event_set,
    wait_random_exponential,
)

from deploy.metrics.catalogue import store_labels
from deploy.show.terminal import printable
from streams.collecting.http import Requester, RequestError
from streams.kafka.topic_reader import AlertEntry
from twin.base.conditions import CRITICAL, FULL, INFO, PAGE, WARNING, WATCH, Pool, Resource
from twin.base.errors import MqtwinError, UsageError
from twin.base.units import as_seconds
from twin.records import URGENCIES, AlertRecord, Incident, Incidents
from twin.records.bounds import text_of
from twin.records.usage import RESOURCES

# Of Alertmanager.
_MAX_ALERTS = 64  # of one request
_HEADERS = {"Content-Type": "application/json"}
TIMEOUT_S = 10.0  # for the whole of a request
CLEARED_FOR_S = 300.0  # for which what is over is sent
_MAX_ANSWER_BYTES = 4096
_MAX_TEXT = 200  # characters of an answer in the log
_MIN_WAIT_S = 0.5
_MAX_WAIT_S = 30.0
_RETRIED = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
RESEND_S = 60.0  # between two deliveries of all open alerts
# After which Alertmanager ends an open alert that is not sent again: the time to start a bridge that died, before
# people are told that all is over.
OPEN_FOR_S = 3600.0
_MAX_S = 253_402_300_799.0  # the last second of the year 9999

ALERT_NAME = "MqtwinIncident"
# Severity by urgency: full is critical too, as the routes of a site know no other word.
_SEVERITIES: dict[str, str] = {WATCH: INFO, PAGE: WARNING, CRITICAL: CRITICAL, FULL: CRITICAL}

# A record of an alert does not have the kind of its store; scm and augmented also exist in structures with queues,
# whose names have a slash.
_SHARED = {Pool.SCM, Pool.AUGMENTED}

Identity = tuple[tuple[str, str], ...]  # labels, sorted

# Of a command.
BRIEF_VARIABLE = "MQTWIN_BRIEF"
_MAX_BRIEF = 2_000  # characters
_COMMAND_S = 60.0  # of one attempt
_PAUSES_S = (1.0, 5.0, 15.0, 60.0)  # before each further attempt
_LOOK_S = 0.1  # between two looks at the size of the output
_MAX_OUTPUT = 500  # characters of the command's output in the log
_MAX_PRINTED = 64 * 1024  # bytes of the output of one that succeeded
_MAX_OUTPUT_BYTES = 16 << 20  # with which it has failed

_log = structlog.get_logger("mqtwin.bridge")


def kind_of(store: str, resource: str) -> str:
    """Return the kind of a store from a resource; empty for a silent source, which any kind may have."""
    pool = Resource.parse(resource).pool
    if pool in _SHARED:
        return "structure" if "/" in store else "coupling_facility"
    return RESOURCES[pool].kind if pool in RESOURCES else ""


def identity(incident: Incident, kind: str, site: str = "") -> dict[str, str]:
    """Return the labels of an incident, without empty ones, which Alertmanager drops. The kind is "" where it is not
    known; without `site` it is as its alerts say.
    """
    urgency = URGENCIES[incident.urgency]
    labels = store_labels(incident.store, kind) | {
        "alertname": ALERT_NAME,
        "incident": incident.id,
        "severity": _SEVERITIES[urgency],
        "site": site or text_of(incident.root.data.site),
        "urgency": urgency,
    }
    return {name: value for name, value in sorted(labels.items()) if value}


def annotation_texts(incident: Incident) -> dict[str, str]:
    """Return what may change while an incident is open, as texts: what its root says, and its parts."""
    data = incident.root.data
    texts = {
        "summary": data.brief[0] if data.brief else f"{data.store} {', '.join(data.resources)}: {data.condition}",
        "brief": "\n".join(data.brief),
        "question": data.question,
        "alert_id": data.alert_id,
        "condition": data.condition,
        "resource": data.resource,
        "parts": "\n".join(f"{', '.join(part.data.resources)}: {part.data.condition}" for part in incident.parts),
        "cause": data.cause,
        "actions": "\n".join(data.instructions),
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


def opened_s(incident: Incident, written_s: float) -> float:
    """Return the event time at which an incident opened, but not later than its last record was written."""
    return min(as_seconds(incident.opened), written_s)


class RefusedError(MqtwinError):
    """An answer that another try would not change."""


class UnavailableError(MqtwinError):
    """No answer, or one that another try may change."""


class AlertmanagerBridge:
    """The sender to all peers. A context manager: within it a thread per peer sends. Without `site` that label of every
    alert is as the records say; everything is delivered again each `resend_s`.
    """

    def __init__(
        self,
        urls: Sequence[str],
        headers: dict[str, str] | None = None,
        *,
        site: str = "",
        resend_s: float = RESEND_S,
    ) -> None:
        self._sent = SentIncidents(site)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._resend_s = resend_s
        self._peers = [_Peer(url, self, {**_HEADERS, **(headers or {})}) for url in urls]

    def learn(self, entries: Sequence[AlertEntry]) -> None:
        """Apply records of the topic, in its order, and send nothing yet."""
        with self._lock:
            for entry in entries:
                self._sent.apply(entry)

    def apply(self, entries: Sequence[AlertEntry]) -> None:
        """Apply records of the topic, in its order, and wake the peers."""
        self.learn(entries)
        for peer in self._peers:
            peer.changed.set()

    def counts(self) -> dict[str, int]:
        """Return the numbers of open incidents, of peers, and of those that have not taken the last content."""
        with self._lock:
            incidents = self._sent.count
        waited_for = sum(peer.is_waited_for for peer in self._peers)
        return {"incidents_open": incidents, "peers": len(self._peers), "peers_waited_for": waited_for}

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
    def __init__(self, url: str, bridge: AlertmanagerBridge, headers: dict[str, str]) -> None:
        self.url, self.headers = url, headers
        self.changed = threading.Event()
        self.is_waited_for = False  # while it has not taken the present content
        self.thread = threading.Thread(target=bridge.serve, args=(self,), name=f"bridge {url}", daemon=True)


class PostableAlert(msgspec.Struct, frozen=True, rename="camel"):
    """An alert as Alertmanager's POST /api/v2/alerts takes it [Alertmanager: openapi.yaml]."""

    labels: dict[str, str]
    annotations: dict[str, str]
    starts_at: str
    ends_at: str


class _Sent(msgspec.Struct, frozen=True):
    """Content sent of an incident. starts_s: when it opened; ends_s: wall time at which it ended, None while open."""

    labels: Identity
    annotations: dict[str, str]
    starts_s: float
    ends_s: float | None = None


class SentIncidents:
    """The incidents to send, by identity.

    An identity has one alert: the open one, otherwise the one that ended last. Without this rule the end of an
    earlier escalation would end one that came back.
    """

    def __init__(self, site: str = "") -> None:
        self._site = site
        self._incidents = Incidents()
        self._open: dict[str, _Sent] = {}  # by id of the incident
        self._ended: dict[Identity, _Sent] = {}
        self._begun_s: float | None = None  # wall time of the first payload

    @property
    def count(self) -> int:
        """Number of open incidents."""
        return len(self._open)

    def apply(self, entry: AlertEntry) -> None:
        """Apply a record: opened, updated or cleared."""
        for incident, _, _ in self._incidents.take(entry.alert):
            self._send(incident, entry.written_s)

    def _send(self, incident: Incident, written_s: float) -> None:
        """Send an incident as it is now, and end what it was."""
        earlier = self._open.pop(incident.id, None)
        if not incident.is_over:
            kinds = (kind_of(incident.store, alert.data.resource) for alert in incident.alerts.values())
            kind = next(filter(None, kinds), "") if earlier is None else dict(earlier.labels).get("kind", "")
            labels = tuple(identity(incident, kind, self._site).items())
            if earlier is not None and earlier.labels != labels:
                self._ended[earlier.labels] = msgspec.structs.replace(earlier, ends_s=written_s)
            self._ended.pop(labels, None)
            self._open[incident.id] = _Sent(labels, annotation_texts(incident), opened_s(incident, written_s))
        elif earlier is not None:
            texts = annotation_texts(incident) if incident.ended else earlier.annotations
            self._ended[earlier.labels] = msgspec.structs.replace(earlier, annotations=texts, ends_s=written_s)

    def payload(self, now_s: float) -> list[PostableAlert]:
        """Return the alerts to send at a wall time, and forget those that ended long ago.

        First also those that ended before this bridge began, which Alertmanager may still have as open. The time is in
        seconds since 1970.
        """
        if self._begun_s is None:
            self._begun_s = now_s
        is_new = now_s <= self._begun_s + CLEARED_FOR_S
        limit_s = now_s - (OPEN_FOR_S if is_new else CLEARED_FOR_S)
        self._ended = {key: sent for key, sent in self._ended.items() if (sent.ends_s or 0.0) > limit_s}
        return [_message(sent, now_s) for sent in (*self._open.values(), *self._ended.values())]


def _message(sent: _Sent, now_s: float) -> PostableAlert:
    ends_s = now_s + OPEN_FOR_S if sent.ends_s is None else sent.ends_s
    return PostableAlert(
        labels=dict(sent.labels),
        annotations=sent.annotations,
        starts_at=_rfc3339(min(sent.starts_s, ends_s)),
        ends_at=_rfc3339(ends_s),
    )


def _rfc3339(seconds: float) -> str:
    """Return a time as text. Producers may write any time with a record; Alertmanager takes years 1970 to 9999."""
    return (
        datetime.fromtimestamp(min(max(seconds, 0.0), _MAX_S), UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def post(client: Requester, url: str, body: bytes, headers: dict[str, str]) -> None:
    """Send a request once. What follows the status of an answer is of use for the log only. RefusedError: the answer is
    final, such as 400. UnavailableError: another try may help.
    """
    try:
        answer = client.ask("POST", url, headers, content=body, max_bytes=_MAX_ANSWER_BYTES)
    except RequestError as error:
        raise UnavailableError(f"{url}: {error}") from error
    if HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
        return
    text = f"{url}: {answer.status} {' '.join(answer.body.decode(errors='replace')[:_MAX_TEXT].split())}"
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR or answer.status in _RETRIED:
        raise UnavailableError(text)
    raise RefusedError(text)


def send_until_delivered(send: Callable[[], None], stop: threading.Event) -> bool:
    """Call `send` until it returns, with growing waits; return False if `stop` is set first. It raises UnavailableError
    for another try; any other error is passed on.
    """
    retries = Retrying(
        retry=retry_if_exception_type(UnavailableError),
        wait=wait_random_exponential(multiplier=_MIN_WAIT_S, min=_MIN_WAIT_S, max=_MAX_WAIT_S),
        stop=stop_when_event_set(stop),
        sleep=sleep_using_event(stop),
        before_sleep=_log_retry,
    )
    try:
        retries(send)
    except RetryError:
        return False
    return True


def _log_retry(state: RetryCallState) -> None:
    """Log the first, second, fourth, eighth ... failed try in a row; the others say nothing new."""
    tries = state.attempt_number
    if tries & (tries - 1) == 0 and state.outcome is not None:
        _log.warning("not delivered, trying again", why=str(state.outcome.exception()), tries=tries)


class Ended(NamedTuple):
    """The end of a command."""

    problem: str | None  # None: it ended with 0
    status: int | None  # negative after a signal; None: it did not start
    text: str  # what it printed, cut


class Command:
    """A command that gets JSON on its standard input, of ``--exec``. No shell runs it; after `timeout_s` it is ended.
    UsageError: the command is empty, a quote is open, or there is no such program.
    """

    def __init__(self, command: str, timeout_s: float) -> None:
        try:
            self._arguments = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"--exec {command}: {error}; expected: a command and its arguments") from None
        program = shutil.which(self._arguments[0]) if self._arguments else None
        if program is None:
            raise UsageError(f"--exec {command!r}: no such program; expected: a command and its arguments")
        self._timeout_s = timeout_s

    def run(self, value: bytes, variables: Mapping[str, str]) -> Ended:
        """Run the command once. variables: further variables of its environment."""
        try:
            with tempfile.TemporaryFile() as value_file, tempfile.TemporaryFile() as output:
                value_file.write(value)
                value_file.seek(0)
                with subprocess.Popen(
                    self._arguments,
                    stdin=value_file,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **variables},
                ) as child:
                    try:
                        problem = self._wait(child, output.fileno())
                    finally:
                        child.kill()  # one that has ended is left alone
                output.seek(0)
                text = output.read(_MAX_PRINTED).decode(errors="replace")
        except OSError as error:
            return Ended(f"it cannot be started: {error.strerror}", None, "")
        if problem is None and child.returncode != 0:
            problem = f"exit status {child.returncode}: {' '.join(text.split())[:_MAX_OUTPUT]}"
        return Ended(problem, child.returncode, text)

    def _wait(self, child: subprocess.Popen[bytes], output: int) -> str | None:
        """Wait until the command has ended; return why it must be ended, None if it has.

        Its output is a file and not a pipe: processes that it leaves behind may hold a pipe open long after its end.
        """
        deadline_s = time.monotonic() + self._timeout_s
        while time.monotonic() < deadline_s:
            with suppress(subprocess.TimeoutExpired):
                child.wait(min(_LOOK_S, self._timeout_s))
                return None
            if os.fstat(output).st_size > _MAX_OUTPUT_BYTES:
                return f"more than {_MAX_OUTPUT_BYTES >> 20} MB of output"
        return f"no end after {self._timeout_s:g} s"


class AlertCommand(Command):
    """The command of ``mqtwin alerts --exec``."""

    def __init__(
        self, command: str, *, timeout_s: float = _COMMAND_S, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Split a command as a shell would, and find its program. Args and errors: as of `Command`."""
        super().__init__(command, timeout_s)
        self._sleep = sleep
        self.undelivered = 0  # alerts given up after the last attempt

    def deliver(self, alert: AlertRecord) -> bool:
        """Run the command with an alert as JSON on its standard input until it ends with 0; False: given up."""
        lines = filter(None, (*alert.data.brief, alert.data.question))
        brief = "\n".join(map(printable, lines))[:_MAX_BRIEF]
        for attempt, pause_s in enumerate((*_PAUSES_S, None), 1):
            problem = self._run(alert.line.encode() + b"\n", brief)
            if problem is None:
                _log.info("alert delivered", id=alert.id, attempt=attempt)
                return True
            if pause_s is not None:
                _log.warning("alert not delivered yet", id=alert.id, attempt=attempt, why=problem, again_in_s=pause_s)
                self._sleep(pause_s)
        self.undelivered += 1
        _log.error("alert given up", id=alert.id, attempts=len(_PAUSES_S) + 1, why=problem)
        return False

    def _run(self, value: bytes, brief: str) -> str | None:
        """Run the command once; return what went wrong, None if it ended with 0. Its output goes to standard error."""
        ended = self.run(value, {BRIEF_VARIABLE: brief})
        if ended.problem is None:
            print(ended.text, end="", file=sys.stderr, flush=True)
        return ended.problem
