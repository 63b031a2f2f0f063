"""Sizing: storage for a number of messages, by the rules of the twin and by those of IBM's documents.

`mqtwin size` prints the results; docs/sizing.md describes them.
"""

from twin.sizing.administration import AdministrationPlan, PublishedSize, plan_administration
from twin.sizing.cluster import ClusterLoad, ClusterPlan, Costs, batch_seconds, plan_cluster
from twin.sizing.data_sets import Extent
from twin.sizing.mix import Messages, Mix, Rate, at_max_depth, backlog_of, parse_mix, parse_rates, parse_seconds
from twin.sizing.page_set import PageSetPlan, plan_page_set
from twin.sizing.queue_file import QueueFilePlan, plan_queue_file
from twin.sizing.scm import ScmPlan, plan_scm
from twin.sizing.smds import SmdsPlan, plan_smds
from twin.sizing.structure import StructurePlan, bare_structure, plan_structure
from twin.sizing.threshold import ThresholdPlan, plan_threshold

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
