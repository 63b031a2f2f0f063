"""Rows of OMEGAMON Data Provider about MQ (product kmq), JSON, as measurements and counts.

Attributes: [IBM: z-open-data, odp-elastic-samples, bundle-mq]; no row of product kmq was seen. Percentages have whole
steps: entries are right to half a percent of the maximum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from typing_extensions import override

from twin.base.decoding import UNREADABLE
from twin.events import Measured
from twin.events.fields import DataSetMeasured, microseconds
from twin.feeds.intake import Complaint, Intake, Item, PassedOver, find_contradiction
from twin.feeds.json_pages import json_documents
from twin.feeds.measurements import member_of
from twin.feeds.metrics import Collected, MetricEvents, Row
from twin.feeds.protocol import Feed, FeedOptions, Page

_PRODUCT = "kmq"
_MAX_NAME = 40  # characters of the name of a table that is passed over
_PAGE_SETS, _QUEUES, _STRUCTURES, _DATA_SETS = "qmps_lh", "qmq_lh", "qsg_cfstr", "lh_smds"
METRICS = {
    _PAGE_SETS: (
        Row("allocated_data_pages", "pages_total"),
        Row("persistent_pages", "pages_persistent"),
        Row("non_persistent_pages", "pages_nonpersistent"),
    ),
    _QUEUES: (Row("messages_put", "mqput_mqput1_count"), Row("messages_read", "mqget_count")),
}


class _BadRowError(ValueError):
    """A row without what it needs; the message says what."""


class OdpFeed(Feed):
    """Reader of OMEGAMON Data Provider: a row per line or Kafka record. Rows of other products are passed over."""

    reads = "rows of OMEGAMON of the product kmq"
    is_json = True

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        super().__init__(intake, options)
        self._metrics = MetricEvents(self, "OMEGAMON", may_repeat=False)

    @override
    def take(self, page: Page) -> Iterator[Item]:
        for line, place in json_documents(page):
            try:
                row = msgspec.json.decode(line, type=dict[str, Any])
                table = str(row.get("table_name", "")).removeprefix(f"{_PRODUCT}.")
                if row.get("product_code") != _PRODUCT or table not in (*METRICS, _STRUCTURES, _DATA_SETS):
                    yield PassedOver("row of other tables", _table_of(row))
                    continue
                self.object_count += 1
                yield from self._row(table, row, _time(row), place)
            except UNREADABLE as error:
                yield Complaint("unreadable", place, f"no JSON: {error}; expected: a row of OMEGAMON")
            except _BadRowError as error:
                yield Complaint("bad-row", place, str(error))

    def _row(self, table: str, row: Mapping[str, Any], time: int, place: str) -> Iterator[Item]:
        if table in METRICS:
            collected = Collected(time, place)
            qmgr, is_queue = _qmgr(row, self.options), table == _QUEUES
            name = _text(row, "queue_name") if is_queue else str(int(_number(row, "page_set_id")))
            for attribute, metric, _ in METRICS[table]:
                collected.add("queue" if is_queue else "pageset", qmgr, name, metric, _number(row, attribute))
            yield from self._metrics.events(collected)
            return
        qmgr, store, measured, pct = self._structure(row) if table == _STRUCTURES else self._smds(row)
        if wrong := find_contradiction({"percentage": {"used": pct, "max": 100}}, store, place):
            yield wrong
        else:
            yield {"time": time, "qmgr": qmgr, "op": "MEASURE", "store": store, "measured": measured}

    def _structure(self, row: Mapping[str, Any]) -> tuple[str, str, Measured, float]:
        """Return queue manager, store, what is measured, and the percentage that it rests on."""
        store = f"{_text(row, 'qsg_name')}/{_text(row, 'cf_structure_name')}"
        maximum, pct = _number(row, "maximum_list_entries"), _number(row, "percent_list_entries_used")
        size = _number(row, "maximum_kilobytes_storage")
        self.intake.facts.add("structure", store, "OMEGAMON", size=int(size) * 1024)
        qmgr = member_of(self.intake.estate, store) or _qmgr(row, self.options)
        return qmgr, store, {"ents_max": int(maximum), "ents_used": round(maximum * pct / 100)}, pct

    def _smds(self, row: Mapping[str, Any]) -> tuple[str, str, Measured, float]:
        """Return the same of a shared message data set."""
        qmgr = _qmgr(row, self.options)
        group = self.intake.group_of(qmgr) or row.get("qsg_name")
        if not group:
            raise _BadRowError(f"{qmgr} is in no queue-sharing group of the estate; expected: [queue_sharing_group]")
        total, pct = _number(row, "total_blocks"), _number(row, "data_block_used_percent")
        dataset: DataSetMeasured = {
            "messages": int(_number(row, "message_count")),
            "blocks_total": int(total),
            "blocks_used": round(total * pct / 100),
        }
        return qmgr, f"{group}/{_text(row, 'cf_structure_name')}", {"smds": {qmgr: dataset}}, pct


def _table_of(row: Mapping[str, Any]) -> str:
    product, table = (str(row.get(name) or "?")[:_MAX_NAME] for name in ("product_code", "table_name"))
    return table if table.startswith(f"{product}.") else f"{product}.{table}"


def _time(row: Mapping[str, Any]) -> int:
    time = microseconds(str(row.get("write_time")))
    if time is None:
        raise _BadRowError(f"write_time is {row.get('write_time')}; expected: an RFC 3339 date-time")
    return time


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise _BadRowError(f"{name} is {value!r}; expected: a name")
    return value.strip()


def _number(row: Mapping[str, Any], name: str) -> float:
    value = row.get(name)
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            value = None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        raise _BadRowError(f"{name} is {row.get(name)!r}; expected: a number of at least 0")
    return float(value)


def _qmgr(row: Mapping[str, Any], options: FeedOptions) -> str:
    """Return the queue manager of a row: its name, or the middle of PLEX:NAME:TYPE."""
    name = row.get("mq_manager_name") or row.get("queue_manager_name")
    if isinstance(name, str) and name.strip():
        return name.strip()
    parts = str(row.get("managed_system", "")).split(":")
    if len(parts) > 1 and parts[1].strip():
        return parts[1].strip()
    if options.qmgr is None:
        raise _BadRowError("a row without mq_manager_name and managed_system; expected: one of them, or --qmgr")
    return options.qmgr
