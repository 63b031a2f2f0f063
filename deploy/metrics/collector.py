"""The exporter: samples of the metrics, from the latest records and the job's status, and its HTTP server.

- The samples of a store are made when its record arrives, so that a record of which they cannot be made costs nobody a
  scrape.
- The server answers /metrics, /healthz and /readyz. It reads nothing but the request's head. A connection has one
  deadline for request and answer, and their number is bounded, so slow clients cannot occupy it. Health is that of the
  exporter and, with a status file, of the job.
"""

from __future__ import annotations

import contextlib
import math
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseServer
from typing import Any

import msgspec
import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

import twin
from deploy.metrics.catalogue import (
    CATALOGUE,
    OF_BUFFER_POOL,
    OF_DATA_SET,
    OF_DEMAND,
    OF_HORIZON,
    OF_INTERVALS,
    OF_QUEUE,
    OF_RESOURCE,
    OF_SCM,
    OF_STATE,
    Metric,
    resource_labels,
    store_labels,
)
from streams.kafka.topic_reader import AlertEntry, Latest, StateEntry
from streams.query.status import MAX_BEAT_S, JobStatus, beat_limit_s
from twin.base.errors import UsageError
from twin.records import MessageStoreState, PageSetState, StateRecord, StructureState, resources_of

Sample = tuple[str, Mapping[str, str], float]  # name, labels, value

_log = structlog.get_logger("mqtwin.export")

_MILLISECONDS = 1000.0
_QUANTILES = {"p10": "0.1", "p50": "0.5", "p90": "0.9"}
_PHASES = {"run_ms": "run", "plan_ms": "plan", "offsets_ms": "offsets", "log_ms": "log", "commit_ms": "commit"}


def samples_of(entry: StateEntry) -> tuple[Sample, ...]:
    """Return the samples of a store, for `Latest(derive=...)`. Exception: the record does not have what they need."""
    return tuple((name, dict(labels), float(value)) for name, labels, value in state_samples(entry))


class TwinCollector(Collector):
    """The collector of all metrics of `CATALOGUE`. The lock is held while `latest`, which derives `samples_of`,
    changes. Without `site` that label is as the state records say.
    """

    def __init__(
        self,
        latest: Latest,
        lock: threading.Lock,
        status: Callable[[], JobStatus | None],
        is_ready: Callable[[], bool],
        site: str = "",
    ) -> None:
        self._latest, self._lock, self._status, self._is_ready = latest, lock, status, is_ready
        self._own_site = site
        self._has_complained = False  # of the status file, since it was last right

    def describe(self) -> Iterable[MetricFamily]:
        """Return every metric without samples, so that registering does not collect."""
        return list(_families(()).values())

    def collect(self) -> Iterable[MetricFamily]:
        """Return every metric with its samples."""
        with self._lock:
            states, alerts = list(self._latest.states.values()), list(self._latest.alerts.values())
            incidents = list(incident_samples(self._latest))
            letters, unreadable = dict(self._latest.dead_letters), self._latest.unreadable
            site = self._own_site or self._latest.site
        further = {"site": site} if site else {}
        families = _families(further)
        kinds = {entry.state.store: entry.state.kind for entry in states}
        own: list[Sample] = [
            ("unreadable_records_total", {}, unreadable),
            ("exporter_ready", {}, self._is_ready()),
            ("build_info", {"version": twin.__version__}, 1),
            *(("dead_letters_total", {"reason": reason}, count) for reason, count in letters.items()),
        ]
        samples = [*own, *self._job_samples()]
        for entry in states:
            samples += entry.derived
        samples += [alert_sample(entry, kinds) for entry in alerts if entry.is_open]
        samples += incidents
        unique = {}  # Prometheus refuses a page with the same sample twice, as of two episodes of one condition
        for name, labels, value in samples:
            metric = CATALOGUE[f"mqtwin_{name}"]
            unique[metric.name, tuple(labels.get(label, "") for label in metric.labels)] = value
        for (name, label_values), value in unique.items():
            families[name].add_metric((*label_values, *further.values()), value)
        return [family for family in families.values() if family.samples]

    def _job_samples(self) -> list[Sample]:
        """Return the job's own samples; none if its status file is of a version whose figures are others."""
        try:
            samples = [(name, labels, float(value)) for name, labels, value in job_samples(self._status())]
        except Exception as error:  # noqa: BLE001 -- another process wrote the file; the stores keep their metrics
            if not self._has_complained:
                _log.warning("no metrics of the job", why=f"its status file: {type(error).__name__}: {error}")
            self._has_complained = True
            return []
        self._has_complained = False
        return samples


def _families(further: Iterable[str]) -> dict[str, Any]:
    """Return all metrics by name, without samples. further: labels that all of them have."""
    return {
        name: (CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily)(
            name, metric.text, labels=[*metric.labels, *further]
        )
        for name, metric in CATALOGUE.items()
    }


def state_samples(entry: StateEntry) -> Iterator[Sample]:
    """Yield the samples of a store from its state record. Names are without their prefix `mqtwin_`."""
    state = entry.state
    labels = store_labels(state.store, state.kind)
    yield "written_time_seconds", labels, entry.written_s
    if state.time is not None:
        yield "event_time_seconds", labels, datetime.fromisoformat(state.time).timestamp()
    yield from _fields_of(state, OF_STATE, labels)
    for queue in state.queues:
        yield from _fields_of(queue, OF_QUEUE, labels | {"queue": queue.name})
    yield from _coverage_samples(state, labels)
    match state:
        case StructureState():
            yield from _extension_samples(state, labels)
        case PageSetState():
            yield from _fields_of(state, OF_BUFFER_POOL, labels | {"bufferpool": str(state.buffer_pool)})
    for usage in resources_of(state):
        if usage.pct is not None:
            yield "usage_ratio", labels | resource_labels(usage.name), usage.pct / 100.0
    if isinstance(state, MessageStoreState) and state.demand is not None:
        yield from _fields_of(state.demand, OF_DEMAND, labels)
        for unit, rate in state.demand.units_per_s.items():
            yield "demand_units_per_second", {**labels, "unit": unit}, rate
    yield from _forecast_samples(state, labels)
    yield from _score_samples(state, labels)


def _fields_of(record: msgspec.Struct, metrics: Mapping[str, Metric], labels: Mapping[str, str]) -> Iterator[Sample]:
    """Yield the samples of the fields of a record, a percentage as a ratio; none of what was not measured."""
    for field, metric in metrics.items():
        value = getattr(record, field, None)
        if value is not None and value is not msgspec.UNSET:
            yield metric.name.removeprefix("mqtwin_"), labels, value / 100.0 if field.endswith("_pct") else value


def _coverage_samples(state: StateRecord, labels: Mapping[str, str]) -> Iterator[Sample]:
    for name, seen in (state.coverage or {}).items():
        for calls, share in (("puts", seen.puts_seen), ("gets", seen.gets_seen)):
            if share is not None:
                yield "seen_ratio", {**labels, "queue": name, "calls": calls}, share.share


def _extension_samples(state: StructureState, labels: Mapping[str, str]) -> Iterator[Sample]:
    for qmgr, dataset in state.smds.items():
        yield from _fields_of(dataset, OF_DATA_SET, {**labels, "qmgr": qmgr})
    if state.scm is None:
        return
    yield from _fields_of(state.scm, OF_SCM, labels)
    if state.scm.aug_dynamic is not None:
        yield "augmented_bytes", labels, state.scm.aug_fixed + state.scm.aug_dynamic


def _forecast_samples(state: StateRecord, labels: Mapping[str, str]) -> Iterator[Sample]:
    """Yield probability and times of each resource of the forecast. Without a forecast there are no samples."""
    for outlook in state.forecast.resources if state.forecast is not None else ():
        of_resource = {**labels, **resource_labels(outlook.resource)}
        yield from _fields_of(outlook, OF_RESOURCE, of_resource)
        times = outlook.time_to_full_s
        for field, quantile in _QUANTILES.items():
            time_s = math.inf if times is None else getattr(times, field)
            yield "time_to_full_seconds", of_resource | {"quantile": quantile}, time_s


def _score_samples(state: StateRecord, labels: Mapping[str, str]) -> Iterator[Sample]:
    """Yield the samples of what became of the forecasts and pages; none before anything is settled."""
    scores = state.forecast_scores
    if scores is None:
        return
    for score in scores.horizons:
        yield from _fields_of(score, OF_HORIZON, {**labels, "horizon": str(score.horizon_s)})
    yield from _fields_of(scores.intervals, OF_INTERVALS, labels)
    for outcome, pages in msgspec.to_builtins(scores.pages).items():
        yield "forecast_pages", {**labels, "outcome": outcome}, pages


def alert_sample(entry: AlertEntry, kinds: Mapping[str, str]) -> Sample:
    """Return the sample of an open alert."""
    data = entry.alert.data
    labels = store_labels(data.store, kinds.get(data.store, "")) | resource_labels(data.resource)
    labels |= {"condition": data.condition, "severity": data.severity, "level": data.level}
    return "alert_open", labels | {"role": data.incident.role}, 1


def incident_samples(latest: Latest) -> Iterator[Sample]:
    """Yield the samples of the incident of each store until it is over; of stores without one the urgency 0."""
    kinds = {store: entry.state.kind for store, entry in latest.states.items()}
    urgencies = dict.fromkeys(kinds, 0)
    opened: dict[str, str] = {}
    for incident in latest.incidents.open():  # the most urgent first
        if not incident.is_over:
            urgencies[incident.store] = max(1 + incident.urgency, urgencies.get(incident.store, 0))
            opened.setdefault(incident.store, incident.opened)
    for store, urgency in urgencies.items():
        yield "incident_urgency", store_labels(store, kinds.get(store, "")), urgency
    for store, text in opened.items():
        with suppress(ValueError, OverflowError):  # somebody else's text
            opened_s = datetime.fromisoformat(text).timestamp()
            yield "incident_opened_time_seconds", store_labels(store, kinds.get(store, "")), opened_s


def job_samples(status: JobStatus | None) -> Iterator[Sample]:
    """Yield the job's own samples; none without a status."""
    if status is None:
        return
    figures = status.figures
    yield "beat_time_seconds", {}, status.beat_s
    yield "job_start_time_seconds", {}, status.started_s
    yield "job_batches_total", {}, status.batches
    for name, total in status.sums.items():
        yield f"job_{name}_total", {}, total
    if status.behind is not None:
        yield "behind_records", {}, status.behind
    if status.batch_s is not None:
        yield "batch_time_seconds", {}, status.batch_s
    if "batch_ms" in figures:
        yield "batch_duration_seconds", {}, figures["batch_ms"] / _MILLISECONDS
    for field, phase in _PHASES.items():
        if field in figures:
            yield "batch_phase_seconds", {"phase": phase}, figures[field] / _MILLISECONDS
    for field, name in (("state_bytes", "job_state_bytes"), ("jvm_rss_bytes", "job_resident_bytes")):
        if field in figures:
            yield name, {}, figures[field]


# --- server -----------------------------------------------------------------------------------------------------------

_MAX_READ_SILENCE_S = 60.0  # of the loop that reads Kafka; a look-up of a topic may take ten seconds

_TEXT = "text/plain; charset=utf-8"
_MAX_REQUESTS = 16  # at a time; more are refused with 503
_MAX_CONNECTIONS = 64  # at a time; more are closed
_TIMEOUT_S = 10.0  # for a request to arrive and its answer to leave


class Health:
    """Liveness and readiness. Without a beat for `max_beat_s`, at least ten triggers, the job counts as dead."""

    def __init__(
        self,
        status: Callable[[], JobStatus | None],
        *,
        has_status: bool,
        is_caught_up: Callable[[], bool],
        missing: Callable[[], Sequence[str]] = tuple,
        unreadable: Callable[[], int] = lambda: 0,
        max_beat_s: float = MAX_BEAT_S,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._status, self._has_status, self._is_caught_up, self._missing = status, has_status, is_caught_up, missing
        self._unreadable, self._max_beat_s, self._wall, self._monotonic = unreadable, max_beat_s, wall, monotonic
        self._read_s = monotonic()

    def on_read(self) -> None:
        """Record that the exporter has just read its topics."""
        self._read_s = self._monotonic()

    def not_live(self) -> list[str]:
        """Return the reasons why exporter or job count as dead; none if both are alive."""
        reasons = []
        silent_s = self._monotonic() - self._read_s
        if silent_s > _MAX_READ_SILENCE_S:
            reasons.append(f"the exporter has not read Kafka for {silent_s:.0f} s")
        if self._has_status:
            status = self._status()
            if status is None:
                reasons.append("the job has no status file")
            else:
                age_s = self._wall() - status.beat_s
                limit_s = beat_limit_s(status, self._max_beat_s)
                if age_s > limit_s:
                    reasons.append(f"the job's last beat was {age_s:.0f} s ago, limit {limit_s:.0f} s")
        return reasons

    def not_ready(self) -> list[str]:
        """Return the reasons why the metrics are not current; none if they are."""
        reasons = self.not_live()
        if not self._is_caught_up():
            reasons.append("the exporter has not read its topics to their ends")
        reasons += [f"{topic} does not exist yet" for topic in self._missing()]
        status = self._status() if self._has_status else None
        if status is not None and status.behind is None:
            reasons.append("the job has not finished a batch")
        if status is not None and status.behind:
            reasons.append(f"the job is {status.behind} records per partition behind")
        return reasons

    def notes(self) -> list[str]:
        """Return the notes of every readiness report: the number of records that could not be read, if any."""
        count = self._unreadable()
        return [f"{count} records of the topics are neither states nor alerts"] if count else []


@contextmanager
def metrics_server(
    host: str,
    port: int,
    registry: CollectorRegistry,
    health: Health,
    on_failure: Callable[[Exception], None] = lambda _: None,
) -> Iterator[int]:
    """Serve in the background within the block; yield the port. UsageError: the address cannot be bound."""
    slots = threading.BoundedSemaphore(_MAX_REQUESTS)

    class Handler(_Handler):
        def __init__(self, request: Any, client_address: Any, server: BaseServer) -> None:
            self.registry, self.health, self.slots = registry, health, slots
            super().__init__(request, client_address, server)

    try:
        server = _Server((host, port), Handler)
    except OSError as error:
        raise UsageError(f"--listen {host}:{port}: {error.strerror}; expected: a free address of this host") from error

    def serve() -> None:
        try:
            server.serve_forever()
        except Exception as error:  # noqa: BLE001 -- the main thread reports it
            on_failure(error)

    thread = threading.Thread(target=serve, name="metrics", daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    """A server with a bound on connections and a deadline for each; an error of one connection is one line."""

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self._places = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        super().__init__(*arguments)

    @override
    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    @override
    def process_request_thread(self, request: Any, client_address: Any) -> None:
        deadline = threading.Timer(_TIMEOUT_S, _end, [request])
        deadline.daemon = True
        deadline.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            deadline.cancel()
            self._places.release()

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.debug("a connection broke", exc_info=True)


def _end(connection: socket.socket) -> None:
    """End a connection, also one that another thread reads."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    timeout = _TIMEOUT_S
    server_version = "mqtwin"
    sys_version = ""
    registry: CollectorRegistry
    health: Health
    slots: threading.BoundedSemaphore

    def do_GET(self) -> None:
        """Answer a request."""
        if not self.slots.acquire(blocking=False):
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, b"too many requests at a time\n")
            return
        try:
            self._route(self.path.partition("?")[0])
        finally:
            self.slots.release()

    def _route(self, path: str) -> None:
        match path:
            case "/metrics":
                self._answer_metrics()
            case "/healthz":
                self._answer_health(self.health.not_live())
            case "/readyz":
                self._answer_health(self.health.not_ready(), self.health.notes())
            case _:
                self._answer(HTTPStatus.NOT_FOUND, _TEXT, b"/metrics, /healthz, /readyz\n")

    def _answer_metrics(self) -> None:
        encode, content_type = choose_encoder(self.headers.get("Accept", ""))
        try:
            page = encode(self.registry)
        except Exception as error:  # noqa: BLE001 -- a defect costs this scrape, and whoever asks hears of it
            _log.error("no metrics", why=f"{type(error).__name__}: {error}")
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, _TEXT, b"a defect of mqtwin export; its log says which\n")
            return
        self._answer(HTTPStatus.OK, content_type, page)

    def _answer_health(self, reasons: list[str], notes: list[str] | None = None) -> None:
        status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
        lines = [*(reasons or ["ok"]), *(notes or ())]
        self._answer(status, _TEXT, "".join(f"{line}\n" for line in lines).encode())

    def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: scrapes are routine."""
