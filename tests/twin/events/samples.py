"""An estate, events for it, and the exact rules as an oracle."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from kernels import EVENT
from twin.events import Decoded, EventError, Reject
from twin.events.decoded import Exact, assemble
from twin.events.rules import Fields, Rules, parse

ESTATE = """
schema = 1
[[import]]
mqsc = "qsg1.mqsc"
queue_sharing_group = "QSG1"
[coupling_facility.CF01]
size = "64G"
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[structure."QSG1/APP1"]
coupling_facility = "CF01"
size = "1G"
cf_level = 5
[structure."QSG1/APP2"]
coupling_facility = "CF01"
size = "1G"
cf_level = 5
[page_set."QM01/4"]
pages = 20000
[storage_class."QM01/DEFAULT"]
page_set = 4
[queue."QM01/LOCAL.REPLIES"]
storage_class = "DEFAULT"
[queue_manager.QMD1]
platform = "distributed"
[queue_file."QMD1/INVOICES"]
max_size = "2T"
"""
MQSC = """
DEFINE QLOCAL(ORDERS) QSGDISP(SHARED) CFSTRUCT(APP1)
DEFINE QLOCAL(PAYMENTS) QSGDISP(SHARED) CFSTRUCT(APP1)
DEFINE QLOCAL(AUDIT) QSGDISP(SHARED) CFSTRUCT(APP2)
DEFINE QALIAS(ORDERS.IN) TARGET(ORDERS)
"""

PUT: dict[str, Any] = {
    "time": "2026-11-20T12:00:00.000123Z",
    "qmgr": "QM01",
    "seq": 1284,
    "op": "PUT",
    "queue": "ORDERS",
    "msgid": "414d5120514d303120202020a1b2c3d4e5f60708",
    "length": 2048,
    "priority": 4,
    "persistent": True,
    "uow": "c5a1",
    "reason": 0,
}
GET: dict[str, Any] = {"time": 1_795_176_000_000_000, "qmgr": "QM02", "op": "GET", "queue": "PAYMENTS"}


def text(event: object) -> bytes:
    return msgspec.json.encode(event)


def exactly(rules: Rules, values: list[bytes] | list[dict[str, Any]]) -> Decoded:
    """Apply the exact rules alone to JSON texts, or to fields by name: the oracle of every faster way."""
    count = len(values)
    exact = Exact()
    for place, value in enumerate(values):
        try:
            exact.add(place, rules.apply(parse(value) if isinstance(value, bytes) else Fields(**value)))
        except EventError as error:
            raw = value if isinstance(value, bytes) else b""
            exact.rejects.append(Reject(place, 0, error.reason, error.detail, raw))
    nothing = np.zeros(count, EVENT), np.zeros(count, np.uint8)
    return assemble(*nothing, np.arange(count, dtype=np.int32), np.zeros(count, np.int64), exact)


def assert_same(first: Decoded, other: Decoded) -> None:
    assert [(r.record, r.index, r.reason, r.detail, r.value) for r in first.rejects] == [
        (r.record, r.index, r.reason, r.detail, r.value) for r in other.rejects
    ]
    assert first.events.tolist() == other.events.tolist()
    assert first.record.tolist() == other.record.tolist()
    assert first.index.tolist() == other.index.tolist()
    assert first.extras == other.extras
