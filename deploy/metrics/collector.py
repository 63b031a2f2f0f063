"""Samples of the metrics, from the latest records and the job's status.

Those of a store are made when its record arrives, so that a record of which they cannot be made costs nobody a scrape.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec
import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector

import twin
from deploy.metrics.catalogue import CATALOGUE, resource_labels, store_labels
from streams.kafka.latest import AlertEntry, Latest, StateEntry
from streams.query.status import JobStatus
from twin.records import MessageStoreState, PageSetState, StateRecord, StructureState, resources_of

Sample = tuple[str, Mapping[str, str], float]  # name, labels, value

_log = structlog.get_logger("mqtwin.export")

_MILLISECONDS = 1000.0
_QUANTILES = {"p10": "0.1", "p50": "0.5", "p90": "0.9"}
_PHASES = {"run_ms": "run", "plan_ms": "plan", "offsets_ms": "offsets", "log_ms": "log", "commit_ms": "commit"}

# Metric by field of the state record; a field that is absent or null has no sample.
_FIELDS = {
    "messages": "store_messages",
    "bytes": "store_bytes",
    "uncommitted": "uncommitted_messages",
    "fidelity": "fidelity_ratio",
    "gaps": "gaps",
    "unmatched_gets": "unmatched_gets",
    "events": "events_total",
    "duplicates": "duplicate_events_total",
    "full_puts": "full_puts_total",
    "overfull_puts": "overfull_puts_total",
    "refused_alters": "refused_alters_total",
    # structure
    "size": "structure_bytes",
    "ents_max": "entries",
    "ents_used": "entries_used",
    "elems_max": "elements",
    "elems_used": "elements_used",
    "offloaded_messages": "offloaded_messages",
    # page set
    "pages_total": "pageset_pages",
    "pages_used": "pageset_pages_used",
    "expansions": "pageset_expansions",
    # queue file
    "file_bytes": "queue_file_bytes",
    "file_max_bytes": "queue_file_max_bytes",
    # coupling facility
    "scm_total": "scm_bytes",
    "scm_used": "scm_used_bytes",
    "augmented": "augmented_bytes",
    "storage_total": "storage_bytes",
    "storage_promised": "storage_promised_bytes",
    "storage_free": "storage_free_bytes",
    "storage_measured": "storage_measured_free_bytes",
    # uniform cluster
    "members": "cluster_members",
    "rate": "cluster_puts_per_second",
    "capacity": "cluster_capacity_per_second",
    "depth": "cluster_depth_messages",
}


def samples_of(entry: StateEntry) -> tuple[Sample, ...]:
    """Return the samples of a store, for `Latest(derive=...)`. Exception: the record does not have what they need."""
    return tuple((name, dict(labels), float(value)) for name, labels, value in state_samples(entry))


class TwinCollector(Collector):
    """The collector of all metrics of `CATALOGUE`.

    Args:
        latest: the latest records of the topics, which derives `samples_of`.
        lock: held while `latest` changes.
        status: returns the status of the job; None if it is not known.
        is_ready: True once the topics have been read to their ends.
    """

    def __init__(
        self,
        latest: Latest,
        lock: threading.Lock,
        status: Callable[[], JobStatus | None],
        is_ready: Callable[[], bool],
    ) -> None:
        self._latest = latest
        self._lock = lock
        self._status = status
        self._is_ready = is_ready
        self._has_complained = False  # of the status file, since it was last right

    def describe(self) -> Iterable[MetricFamily]:
        """Return every metric without samples, so that registering does not collect."""
        return list(_families().values())

    def collect(self) -> Iterable[MetricFamily]:
        """Return every metric with its samples."""
        with self._lock:
            states, alerts = list(self._latest.states.values()), list(self._latest.alerts.values())
            incidents = list(incident_samples(self._latest))
            letters, unreadable = dict(self._latest.dead_letters), self._latest.unreadable
        families = _families()
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
            families[name].add_metric(label_values, value)
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


def _families() -> dict[str, Any]:
    return {
        name: (CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily)(
            name, metric.text, labels=list(metric.labels)
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
    if state.drift_pct is not None:
        yield "drift_ratio", labels, state.drift_pct / 100.0
    for field, name in _FIELDS.items():
        value = getattr(state, field, None)
        if value is not None:
            yield name, labels, value
    for queue in state.queues:
        of_queue = labels | {"queue": queue.name}
        yield "queue_messages", of_queue, queue.depth
        yield "queue_bytes", of_queue, queue.bytes
    if isinstance(state, StructureState):
        yield from _extension_samples(state, labels)
    if isinstance(state, PageSetState) and state.buffer_pool_pct is not None:
        of_pool = labels | {"bufferpool": str(state.buffer_pool)}
        yield "bufferpool_usage_ratio", of_pool, state.buffer_pool_pct / 100.0
    for usage in resources_of(state):
        if usage.pct is not None:
            yield "usage_ratio", labels | resource_labels(usage.name), usage.pct / 100.0
    yield from _demand_samples(state, labels)
    yield from _forecast_samples(state, labels)
    yield from _score_samples(state, labels)


def _extension_samples(state: StructureState, labels: Mapping[str, str]) -> Iterator[Sample]:
    """Yield the samples of a structure's data sets and SCM; none of what was not measured."""
    for qmgr, dataset in state.smds.items():
        of_dataset = {**labels, "qmgr": qmgr}
        yield "smds_blocks", of_dataset, dataset.blocks_total
        if dataset.blocks_used is not None:
            yield "smds_blocks_used", of_dataset, dataset.blocks_used
    scm = state.scm
    if scm is None:
        return
    yield "scm_bytes", labels, scm.max
    if scm.used is not None:
        yield "scm_used_bytes", labels, scm.used
    if scm.aug_dynamic is not None:
        yield "augmented_bytes", labels, scm.aug_fixed + scm.aug_dynamic


def _demand_samples(state: StateRecord, labels: Mapping[str, str]) -> Iterator[Sample]:
    """Yield the samples of what applications ask to put; none where nothing was counted."""
    if not isinstance(state, MessageStoreState) or state.demand is None:
        return
    yield "demand_puts_per_second", labels, state.demand.puts_per_s
    for unit, rate in state.demand.units_per_s.items():
        yield "demand_units_per_second", {**labels, "unit": unit}, rate


def _forecast_samples(state: StateRecord, labels: Mapping[str, str]) -> Iterator[Sample]:
    """Yield probability and times of each resource of the forecast. Without a forecast there are no samples."""
    for outlook in state.forecast.resources if state.forecast is not None else ():
        of_resource = {**labels, **resource_labels(outlook.resource)}
        yield "full_probability", of_resource, outlook.full_probability
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
        of_horizon = {**labels, "horizon": str(score.horizon_s)}
        yield "forecast_looks", of_horizon, score.looks
        yield "forecast_brier_score", of_horizon, score.brier
        yield "forecast_climatology_score", of_horizon, score.climatology
    yield "forecast_intervals", labels, scores.intervals.count
    yield "forecast_width_ratio", labels, scores.intervals.width
    if scores.intervals.coverage is not None:
        yield "forecast_coverage_ratio", labels, scores.intervals.coverage
    for outcome, pages in msgspec.structs.asdict(scores.pages).items():
        yield "forecast_pages", {**labels, "outcome": outcome}, pages


def alert_sample(entry: AlertEntry, kinds: Mapping[str, str]) -> Sample:
    """Return the sample of an open alert.

    Args:
        entry: the alert.
        kinds: kind by store, from the state records.
    """
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
