"""Estate: stores, queue managers, queues, and the store that an event belongs to.

`load_estate` reads the TOML file (docs/estate.md) with the MQSC and CFRM texts that it imports.
"""

from twin.base.units import format_size, parse_size
from twin.estate.attributes import parse_attributes
from twin.estate.errors import EstateError, RoutingError, UnknownQueue, UnknownQueueManager, UnknownStore
from twin.estate.load import as_estate, load_estate
from twin.estate.model import (
    ALWAYS_OFFLOADED_ABOVE,
    MAX_PAGES,
    RULE_OFF,
    SMDS_MAX_SIZE,
    CouplingFacility,
    ForecastSettings,
    MessageStoreConfig,
    OffloadRule,
    PageSet,
    QueueFile,
    QueueManager,
    QueueManagerLog,
    Site,
    Smds,
    StoreConfig,
    Structure,
    UniformCluster,
    group_prefix,
    policy_name_of,
)
from twin.estate.routes import HEADINGS, Estate, Route, SummaryRow, summary

__all__ = [
    "ALWAYS_OFFLOADED_ABOVE",
    "HEADINGS",
    "MAX_PAGES",
    "RULE_OFF",
    "SMDS_MAX_SIZE",
    "CouplingFacility",
    "Estate",
    "EstateError",
    "ForecastSettings",
    "MessageStoreConfig",
    "OffloadRule",
    "PageSet",
    "QueueFile",
    "QueueManager",
    "QueueManagerLog",
    "Route",
    "RoutingError",
    "Site",
    "Smds",
    "StoreConfig",
    "Structure",
    "SummaryRow",
    "UniformCluster",
    "UnknownQueue",
    "UnknownQueueManager",
    "UnknownStore",
    "as_estate",
    "format_size",
    "group_prefix",
    "load_estate",
    "parse_attributes",
    "parse_size",
    "policy_name_of",
    "summary",
]
