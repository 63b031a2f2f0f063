"""Every metric of `mqtwin export`: name, kind, labels and help, and the field of a record that it is from.

Units are base units, one unit a metric [Prometheus: Metric and label naming]. Labels that mq_prometheus has too are
spelled as there, so that its metrics can be joined: qmgr, pageset (a decimal number), bufferpool, queue, platform="ZOS"
[mq-golang: mqmetric/usage.go].
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from twin.base.conditions import Pool, Resource

STORE = ("store", "kind", "qsg", "structure", "qmgr", "pageset", "queue", "platform")  # labels of every store's metrics
RESOURCE = (*STORE, "resource")

_PAGE_SET = re.compile(r"PS(\d+)")  # the second part of the name of a page set's store: QM01/PS04
ZOS = "ZOS"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric. A counter's name ends in `_total`."""

    name: str
    kind: Literal["gauge", "counter"]
    labels: tuple[str, ...]
    text: str


def _metrics(labels: tuple[str, ...], **texts: str) -> list[Metric]:
    return [_metric(f"mqtwin_{name}", labels, text) for name, text in texts.items()]


def _of_fields(labels: tuple[str, ...], **metrics: tuple[str, str]) -> dict[str, Metric]:
    """Return the metrics of fields of a record: each with its name and its text."""
    return {field: _metric(f"mqtwin_{name}", labels, text) for field, (name, text) in metrics.items()}


def _metric(name: str, labels: tuple[str, ...], text: str) -> Metric:
    return Metric(name, "counter" if name.endswith("_total") else "gauge", labels, text)


# Metrics by field of a record; a field that is absent or null has no sample, one in percent becomes a ratio.
OF_RESOURCE = _of_fields(
    RESOURCE,
    full_probability=(
        "full_probability",
        "Probability that a resource is full within the horizon of its forecast, 0 to 1.",
    ),
)
OF_HORIZON = _of_fields(
    (*STORE, "horizon"),
    looks=("forecast_looks", "Looks ahead of the last 30 days whose outcome is known; horizon in seconds."),
    brier=("forecast_brier_score", "Mean squared error of their probability to be full within the horizon."),
    climatology=(
        "forecast_climatology_score",
        "The same of a rule that always says the share of looks that full followed.",
    ),
)
OF_INTERVALS = _of_fields(
    STORE,
    count=("forecast_intervals", "Forecast intervals of the last 30 days whose store became full."),
    coverage=("forecast_coverage_ratio", "Share of them that contained the time of full, 0.8 if they are right."),
    width=("forecast_width_ratio", "Factor by which the next intervals are wider; 1: they stay as they are."),
)
OF_DEMAND = _of_fields(
    STORE,
    puts_per_s=(
        "demand_puts_per_second",
        "Messages that applications asked to put per second in the last 15 minutes, refused ones included.",
    ),
)
OF_STATE = _of_fields(
    STORE,
    messages=("store_messages", "Messages that hold storage."),
    bytes=("store_bytes", "Sum of the lengths of the messages held."),
    uncommitted=("uncommitted_messages", "Messages whose put or get is not yet committed."),
    drift_pct=(
        "drift_ratio",
        "Twin minus measurement, as a part of the total, of the worst resource; no sample before a MEASURE.",
    ),
    fidelity=(
        "fidelity_ratio",
        (
            "Share of the measurements of the last 24 hours that the twin matched within its tolerance; no sample "
            "before ten."
        ),
    ),
    gaps=("gaps", "Sequence numbers currently missing."),
    unmatched_gets=("unmatched_gets", "Gets whose message has not arrived."),
    size=("structure_bytes", "Current size of a structure."),
    ents_max=("entries", "List entries of a structure."),
    ents_used=("entries_used", "List entries in use."),
    elems_max=("elements", "Data elements of a structure."),
    elems_used=("elements_used", "Data elements in use."),
    offloaded_messages=("offloaded_messages", "Messages whose data are in a data set or in Db2."),
    scm_total=("scm_bytes", "Storage class memory that a structure may use, or that a coupling facility has."),
    scm_used=("scm_used_bytes", "Storage class memory in use."),
    augmented=("augmented_bytes", "Augmented space in use, fixed and dynamic."),
    storage_total=("storage_bytes", "Storage of a coupling facility."),
    storage_promised=(
        "storage_promised_bytes",
        "Storage that the structures of a coupling facility may have together.",
    ),
    storage_free=("storage_free_bytes", "Free storage of a coupling facility."),
    storage_measured=("storage_measured_free_bytes", "Free storage of a coupling facility as it was measured last."),
    pages_total=("pageset_pages", "Pages of a page set for messages."),
    pages_used=("pageset_pages_used", "Pages of a page set in use."),
    expansions=("pageset_expansions", "Expansions of a page set."),
    file_bytes=("queue_file_bytes", "Size of a queue file."),
    file_max_bytes=("queue_file_max_bytes", "Maximum size of a queue file."),
    members=("cluster_members", "Active members of a uniform cluster."),
    rate=("cluster_puts_per_second", "Messages put per second by all members."),
    capacity=("cluster_capacity_per_second", "Messages per second that the active members can deliver."),
    depth=("cluster_depth_messages", "Messages waiting in the queues of the members."),
    events=("events_total", "Events applied."),
    duplicates=("duplicate_events_total", "Events with a sequence number seen before."),
    full_puts=("full_puts_total", "Messages refused with 2192, or 2056 of a distributed queue manager."),
    overfull_puts=("overfull_puts_total", "Messages that the real system accepted and the model had no room for."),
    refused_alters=("refused_alters_total", "ALTER and REBUILD events that changed nothing."),
)
OF_BUFFER_POOL = _of_fields(
    (*STORE, "bufferpool"),
    buffer_pool_pct=("bufferpool_usage_ratio", "Usage of the buffer pool of a page set, as last measured, 0 to 1."),
)
OF_SCM = {"max": OF_STATE["scm_total"], "used": OF_STATE["scm_used"]}
OF_DATA_SET = _of_fields(
    STORE,
    blocks_total=("smds_blocks", "Blocks of the shared message data set of a queue manager."),
    blocks_used=("smds_blocks_used", "Blocks of the data set in use."),
)
OF_QUEUE = _of_fields(
    STORE,
    depth=("queue_messages", "Messages of one of the ten deepest queues of a store."),
    bytes=("queue_bytes", "Sum of the lengths of its messages."),
    getters=("queue_getters", "Handles open for input on it, as last measured."),
    puts_per_s=("queue_puts_per_second", "Messages that applications asked to put per second, of 15 to 30 minutes."),
    gets_per_s=("queue_gets_per_second", "Messages got per second, likewise; 0 once none was got for a minute."),
    drain_s=(
        "queue_drain_seconds",
        "Time in which its getters empty it as fast as they get now, if nothing more is put; +Inf: they do not get.",
    ),
    getters_wanted=(
        "queue_getters_wanted",
        "Handles open for input that empty it in five minutes while puts go on, each as fast as those of now.",
    ),
)

CATALOGUE = {
    metric.name: metric
    for metric in (
        *_metrics(RESOURCE, usage_ratio="Usage of a resource, 0 to 1; above 1 after overfull puts."),
        *OF_RESOURCE.values(),
        *_metrics(
            (*RESOURCE, "quantile"),
            time_to_full_seconds="Forecast time until a resource is full, if it becomes full within the horizon; "
            "+Inf if it does not.",
        ),
        *OF_HORIZON.values(),
        *OF_INTERVALS.values(),
        *_metrics(
            (*STORE, "outcome"),
            forecast_pages="Pages of the last 30 days: right, late (less than five minutes before full), false, saved.",
        ),
        *_metrics(
            STORE,
            event_time_seconds="Latest event time of a store, seconds since 1970.",
            written_time_seconds="Wall time at which the job wrote the last state of a store, seconds since 1970.",
        ),
        *OF_STATE.values(),
        *OF_DEMAND.values(),
        *_metrics(
            (*STORE, "unit"),
            demand_units_per_second="Elements, pages or blocks that these messages take per second.",
        ),
        *OF_BUFFER_POOL.values(),
        *OF_DATA_SET.values(),
        *OF_QUEUE.values(),
        *_metrics(
            (*STORE, "calls"),
            seen_ratio="Share of the puts, or gets, of a queue that events report, where measurements show a sample.",
        ),
        *_metrics(
            (*STORE, "resource", "condition", "severity", "level", "role"),
            alert_open="1 for each open alert.",
        ),
        *_metrics(
            STORE,
            incident_urgency="Worst urgency of the incident of a store until it is over, 2 again once refused puts "
            "succeed: 0 none, 1 watch, 2 page, 3 critical, 4 full.",
            incident_opened_time_seconds="Event time at which the incident of a store opened, seconds since 1970; no "
            "sample without one.",
        ),
        *_metrics(("reason",), dead_letters_total="Dead letters since the start of the exporter, by reason."),
        *_metrics(
            (),
            unreadable_records_total="Records of the topics that are neither states nor alerts.",
            exporter_ready="1 once the exporter has read its topics to their ends.",
            behind_records="Records per partition that the job has not yet read.",
            batch_duration_seconds="Duration of the job's last batch with data.",
            batch_time_seconds="End of the job's last batch with data, seconds since 1970.",
            beat_time_seconds="End of the job's last batch, or its last trigger without data, seconds since 1970.",
            job_start_time_seconds="Start of the job, seconds since 1970.",
            job_state_bytes="Memory of the job's state stores.",
            job_resident_bytes="Resident memory of Spark's JVM on the driver's machine.",
        ),
        *_metrics(("phase",), batch_phase_seconds="Parts of the job's last batch with data."),
        *_metrics(
            (),
            job_batches_total="Batches with data since the start of the job.",
            job_records_total="Kafka records read since the start of the job.",
            job_events_total="Events since the start of the job, duplicates included.",
            job_alerts_total="Alert records written since the start of the job.",
            job_dead_letters_total="Dead letters written since the start of the job.",
        ),
        *_metrics(("version",), build_info="Always 1; version is that of the exporter."),
    )
}


def store_labels(store: str, kind: str) -> dict[str, str]:
    """Return the labels of a store; those that do not concern its kind are empty."""
    owner, _, name = store.partition("/")
    labels = dict.fromkeys(("qsg", "structure", "qmgr", "pageset", "queue", "platform"), "")
    match kind:
        case "structure":
            # one of another program has no queue-sharing group
            labels |= {"qsg": owner if name else "", "structure": name or owner, "platform": ZOS}
        case "page_set":
            number = _PAGE_SET.fullmatch(name)
            labels |= {"qmgr": owner, "pageset": str(int(number[1])) if number else name, "platform": ZOS}
        case "queue_file":
            labels |= {"qmgr": owner, "queue": name}
        case "queue_manager":
            labels |= {"qmgr": owner}
        case "coupling_facility":
            labels |= {"platform": ZOS}
    return {"store": store, "kind": kind, **labels}


def resource_labels(resource: str) -> dict[str, str]:
    """Return the labels of a resource: `resource`, and `qmgr` of a data set (smds/QM01) or source (source/QM01)."""
    pool, owner = Resource.parse(resource)
    return {"resource": resource, "qmgr": owner} if pool in (Pool.SMDS, Pool.SOURCE) else {"resource": resource}
