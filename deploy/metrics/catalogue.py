"""Every metric of `mqtwin export`: name, kind, labels and help. A test compares it with docs/surfaces.md.

Units are base units, one unit a metric [Prometheus: Metric and label naming]. Labels that mq_prometheus has too are
spelled as there, so that its metrics can be joined: qmgr, pageset (a decimal number), bufferpool, queue, platform="ZOS"
[mq-golang: mqmetric/usage.go].
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from twin.conditions import Pool, Resource

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


def _gauges(labels: tuple[str, ...], **texts: str) -> list[Metric]:
    return [Metric(f"mqtwin_{name}", "gauge", labels, text) for name, text in texts.items()]


def _counters(labels: tuple[str, ...], **texts: str) -> list[Metric]:
    return [Metric(f"mqtwin_{name}_total", "counter", labels, text) for name, text in texts.items()]


CATALOGUE = {
    metric.name: metric
    for metric in (
        *_gauges(
            RESOURCE,
            usage_ratio="Usage of a resource, 0 to 1; above 1 after overfull puts.",
            full_probability="Probability that a resource is full within the horizon of its forecast, 0 to 1.",
        ),
        *_gauges(
            (*RESOURCE, "quantile"),
            time_to_full_seconds="Forecast time until a resource is full, if it becomes full within the horizon; "
            "+Inf if it does not.",
        ),
        *_gauges(
            (*STORE, "horizon"),
            forecast_looks="Looks ahead of the last 30 days whose outcome is known; horizon in seconds.",
            forecast_brier_score="Mean squared error of their probability to be full within the horizon.",
            forecast_climatology_score="The same of a rule that always says the share of looks that full followed.",
        ),
        *_gauges(
            STORE,
            forecast_intervals="Forecast intervals of the last 30 days whose store became full.",
            forecast_coverage_ratio="Share of them that contained the time of full, 0.8 if they are right.",
            forecast_width_ratio="Factor by which the next intervals are wider; 1: they stay as they are.",
        ),
        *_gauges(
            (*STORE, "outcome"),
            forecast_pages="Pages of the last 30 days: right, late (less than five minutes before full), false.",
        ),
        *_gauges(
            STORE,
            store_messages="Messages that hold storage.",
            store_bytes="Sum of the lengths of the messages held.",
            uncommitted_messages="Messages whose put or get is not yet committed.",
            drift_ratio="Twin minus measurement, as a part of the total, of the worst resource; no sample before a "
            "MEASURE.",
            fidelity_ratio="Share of the measurements of the last 24 hours that the twin matched within its tolerance; "
            "no sample before ten.",
            event_time_seconds="Latest event time of a store, seconds since 1970.",
            written_time_seconds="Wall time at which the job wrote the last state of a store, seconds since 1970.",
            demand_puts_per_second="Messages that applications asked to put per second in the last 15 minutes, refused "
            "ones included.",
            gaps="Sequence numbers currently missing.",
            unmatched_gets="Gets whose message has not arrived.",
            structure_bytes="Current size of a structure.",
            entries="List entries of a structure.",
            entries_used="List entries in use.",
            elements="Data elements of a structure.",
            elements_used="Data elements in use.",
            offloaded_messages="Messages whose data are in a data set or in Db2.",
            scm_bytes="Storage class memory that a structure may use, or that a coupling facility has.",
            scm_used_bytes="Storage class memory in use.",
            augmented_bytes="Augmented space in use, fixed and dynamic.",
            storage_bytes="Storage of a coupling facility.",
            storage_promised_bytes="Storage that the structures of a coupling facility may have together.",
            storage_free_bytes="Free storage of a coupling facility.",
            storage_measured_free_bytes="Free storage of a coupling facility as it was measured last.",
            pageset_pages="Pages of a page set for messages.",
            pageset_pages_used="Pages of a page set in use.",
            pageset_expansions="Expansions of a page set.",
            queue_file_bytes="Size of a queue file.",
            queue_file_max_bytes="Maximum size of a queue file.",
            cluster_members="Active members of a uniform cluster.",
            cluster_puts_per_second="Messages put per second by all members.",
            cluster_capacity_per_second="Messages per second that the active members can deliver.",
            cluster_depth_messages="Messages waiting in the queues of the members.",
        ),
        *_gauges(
            (*STORE, "unit"),
            demand_units_per_second="Elements, pages or blocks that these messages take per second.",
        ),
        *_gauges(
            (*STORE, "bufferpool"),
            bufferpool_usage_ratio="Usage of the buffer pool of a page set, as last measured, 0 to 1.",
        ),
        *_gauges(
            STORE,
            smds_blocks="Blocks of the shared message data set of a queue manager.",
            smds_blocks_used="Blocks of the data set in use.",
            queue_messages="Messages of one of the ten deepest queues of a store.",
            queue_bytes="Sum of the lengths of its messages.",
        ),
        *_counters(
            STORE,
            events="Events applied.",
            duplicate_events="Events with a sequence number seen before.",
            full_puts="Messages refused with 2192, or 2056 of a distributed queue manager.",
            overfull_puts="Messages that the real system accepted and the model had no room for.",
            refused_alters="ALTER and REBUILD events that changed nothing.",
        ),
        *_gauges(
            (*STORE, "resource", "condition", "severity", "level", "role"),
            alert_open="1 for each open alert.",
        ),
        *_gauges(
            STORE,
            incident_urgency="Worst urgency of the incident of a store until it is over, 2 again once refused puts "
            "succeed: 0 none, 1 watch, 2 page, 3 critical, 4 full.",
            incident_opened_time_seconds="Event time at which the incident of a store opened, seconds since 1970; no "
            "sample without one.",
        ),
        *_counters(("reason",), dead_letters="Dead letters since the start of the exporter, by reason."),
        *_counters((), unreadable_records="Records of the topics that are neither states nor alerts."),
        *_gauges((), exporter_ready="1 once the exporter has read its topics to their ends."),
        *_gauges(
            (),
            behind_records="Records per partition that the job has not yet read.",
            batch_duration_seconds="Duration of the job's last batch with data.",
            batch_time_seconds="End of the job's last batch with data, seconds since 1970.",
            beat_time_seconds="End of the job's last batch, or its last trigger without data, seconds since 1970.",
            job_start_time_seconds="Start of the job, seconds since 1970.",
            job_state_bytes="Memory of the job's state stores.",
            job_resident_bytes="Resident memory of Spark's JVM on the driver's machine.",
        ),
        *_gauges(("phase",), batch_phase_seconds="Parts of the job's last batch with data."),
        *_counters(
            (),
            job_batches="Batches with data since the start of the job.",
            job_records="Kafka records read since the start of the job.",
            job_events="Events since the start of the job, duplicates included.",
            job_alerts="Alert records written since the start of the job.",
            job_dead_letters="Dead letters written since the start of the job.",
        ),
        *_gauges(("version",), build_info="Always 1; version is that of the exporter."),
    )
}


def store_labels(store: str, kind: str) -> dict[str, str]:
    """Return the labels of a store; those that do not concern its kind are empty.

    Args:
        store: its name, such as QSG1/APP1 or QM01/PS04.
        kind: see docs/state.md.
    """
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
