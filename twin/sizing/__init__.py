"""Sizing: storage for a number of messages, by the rules of the twin and by those of IBM's documents.

`mqtwin size` prints the results; docs/sizing.md describes them.
"""

from twin.sizing.cluster import ClusterLoad, ClusterPlan, Costs, batch_seconds, plan_cluster
from twin.sizing.data_sets import (
    Extent,
    PageSetPlan,
    QueueFilePlan,
    SmdsPlan,
    plan_page_set,
    plan_queue_file,
    plan_smds,
)
from twin.sizing.mix import Messages, Mix, Rate, at_max_depth, backlog_of, parse_mix, parse_rates, parse_seconds
from twin.sizing.structure import (
    AdministrationPlan,
    PublishedSize,
    ScmPlan,
    StructurePlan,
    ThresholdPlan,
    bare_structure,
    plan_administration,
    plan_scm,
    plan_structure,
    plan_threshold,
)

__all__ = [
    "AdministrationPlan",
    "ClusterLoad",
    "ClusterPlan",
    "Costs",
    "Extent",
    "Messages",
    "Mix",
    "PageSetPlan",
    "PublishedSize",
    "QueueFilePlan",
    "Rate",
    "ScmPlan",
    "SmdsPlan",
    "StructurePlan",
    "ThresholdPlan",
    "at_max_depth",
    "backlog_of",
    "bare_structure",
    "batch_seconds",
    "parse_mix",
    "parse_rates",
    "parse_seconds",
    "plan_administration",
    "plan_cluster",
    "plan_page_set",
    "plan_queue_file",
    "plan_scm",
    "plan_smds",
    "plan_structure",
    "plan_threshold",
]
