"""Rows of OMEGAMON Data Provider about MQ (product kmq), JSON, as measurements and counts.

Attributes: [IBM: z-open-data, odp-elastic-samples, bundle-mq]; no row of product kmq was seen. Percentages have whole
steps: entries are right to half a percent of the maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from typing_extensions import override

from twin.events import Event, Measured
from twin.events.fields import microseconds
from twin.events.measured import DataSetMeasured
from twin.feeds.intake import Intake
from twin.feeds.json_pages import json_documents
from twin.feeds.metrics import Collected, MetricEvents
from twin.feeds.protocol import Feed, FeedOptions, Page
from twin.feeds.stores import group_of, member_of

_PRODUCT = "kmq"
_MAX_NAME = 40  # characters of the name of a table that is passed over


class _BadRowError(ValueError):
    """A row without what it needs; the message says what."""


class OdpFeed(Feed):
    """Reader of OMEGAMON Data Provider: a row per line or Kafka record. Rows of other products are passed over."""

    reads = "rows of OMEGAMON of the product kmq"

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        super().__init__(intake, options)
        self._metrics = MetricEvents("OMEGAMON", intake, options, may_repeat=False)
        self._tables: dict[str, Callable[[Mapping[str, Any], int, str], Iterator[Event]]] = {
            "qsg_cfstr": self._structure,
            "lh_smds": self._smds,
            "qmps_lh": self._page_set,
            "qmq_lh": self._queue,
        }

    @override
    def take(self, page: Page) -> Iterable[Event]:
        for line, place in json_documents(page):
            try:
                row = msgspec.json.decode(line, type=dict[str, Any])
                read = self._tables.get(str(row.get("table_name", "")).removeprefix(f"{_PRODUCT}."))
                if row.get("product_code") != _PRODUCT or read is None:
                    self.intake.pass_over("row of other tables", _table_of(row))
                    continue
                self.object_count += 1
                yield from read(row, _time(row), place)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                self.intake.complain("unreadable", place, f"no JSON: {error}; expected: a row of OMEGAMON")
            except _BadRowError as error:
                self.intake.complain("bad-row", place, str(error))

    def _structure(self, row: Mapping[str, Any], time: int, place: str) -> Iterator[Event]:
        store = f"{_text(row, 'qsg_name')}/{_text(row, 'cf_structure_name')}"
        maximum, pct = _number(row, "maximum_list_entries"), _number(row, "percent_list_entries_used")
        size = _number(row, "maximum_kilobytes_storage")
        measured: Measured = {"ents_max": int(maximum), "ents_used": round(maximum * pct / 100)}
        self.intake.facts.add("structure", store, "OMEGAMON", size=int(size) * 1024)
        if not self.intake.is_consistent(_percent(pct), store, place):
            return
        qmgr = member_of(self.intake.estate, store) or _qmgr(row, self.options)
        yield {"time": time, "qmgr": qmgr, "op": "MEASURE", "store": store, "measured": measured}

    def _smds(self, row: Mapping[str, Any], time: int, place: str) -> Iterator[Event]:
        qmgr = _qmgr(row, self.options)
        group = group_of(self.intake.estate, qmgr) or row.get("qsg_name")
        if not group:
            raise _BadRowError(f"{qmgr} is in no queue-sharing group of the estate; expected: [queue_sharing_group]")
        total, pct = _number(row, "total_blocks"), _number(row, "data_block_used_percent")
        dataset: DataSetMeasured = {
            "messages": int(_number(row, "message_count")),
            "blocks_total": int(total),
            "blocks_used": round(total * pct / 100),
        }
        store = f"{group}/{_text(row, 'cf_structure_name')}"
        if not self.intake.is_consistent(_percent(pct), store, place):
            return
        yield {"time": time, "qmgr": qmgr, "op": "MEASURE", "store": store, "measured": {"smds": {qmgr: dataset}}}

    def _page_set(self, row: Mapping[str, Any], time: int, place: str) -> Iterator[Event]:
        collected = Collected(time, place)
        qmgr, name = _qmgr(row, self.options), str(int(_number(row, "page_set_id")))
        for metric, attribute in (
            ("pages_total", "allocated_data_pages"),
            ("pages_persistent", "persistent_pages"),
            ("pages_nonpersistent", "non_persistent_pages"),
        ):
            collected.add("pageset", qmgr, name, metric, _number(row, attribute))
        yield from self._metrics.events(collected)

    def _queue(self, row: Mapping[str, Any], time: int, place: str) -> Iterator[Event]:
        collected = Collected(time, place)
        qmgr, name = _qmgr(row, self.options), _text(row, "queue_name")
        collected.add("queue", qmgr, name, "mqput_mqput1_count", _number(row, "messages_put"))
        collected.add("queue", qmgr, name, "mqget_count", _number(row, "messages_read"))
        yield from self._metrics.events(collected)


def _table_of(row: Mapping[str, Any]) -> str:
    product, table = (str(row.get(name) or "?")[:_MAX_NAME] for name in ("product_code", "table_name"))
    return table if table.startswith(f"{product}.") else f"{product}.{table}"


def _time(row: Mapping[str, Any]) -> int:
    time = microseconds(str(row.get("write_time")))
    if time is None:
        raise _BadRowError(f"write_time is {row.get('write_time')}; expected: an RFC 3339 date-time")
    return time


def _percent(pct: float) -> dict[str, dict[str, float]]:
    return {"percentage": {"used": pct, "max": 100}}


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
