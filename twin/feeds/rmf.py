"""RMF Monitor III: reports CFACT and CFOVER of the Distributed Data Server, and the page /metrics/m3, as measurements.

Columns by name: [IBM: RMF, XSL of the reports, in github.com/IBM/RMF]. Every value is text; one that does not apply is
blank, a small one may be `<0.1`. Rows of CFACT for the whole sysplex have `*ALL` as their system; rows of connectors
name the queue managers. No report with a structure of MQ was seen: their rows follow those of other list structures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import msgspec
from prometheus_client.parser import text_string_to_metric_families
from typing_extensions import override

from twin.base.decoding import UNREADABLE
from twin.base.errors import UsageError
from twin.events import Measured
from twin.feeds.intake import Complaint, Intake, Item, PassedOver, find_contradiction
from twin.feeds.measurements import (
    groups_of,
    member_of,
    parse_connector,
    store_of_policy_name,
    structures_by_policy_name,
    without_measurement,
)
from twin.feeds.metrics import OTHER_METRICS, Row, kind_of, measured_of
from twin.feeds.protocol import Asked, Feed, FeedOptions, Page, Requests

_MAX_TYPE = 20  # characters
_MAX_REPORTS = 1000  # (report, resource) whose last interval is kept
_MAX_MEMBERS = 10_000  # structures whose queue managers are kept
_SMALLEST_S = 1e8  # seconds; a smaller time is one in seconds that was read as milliseconds

STRUCTURE = (
    Row("CFAISTRS", "size"),
    Row("CFAILEL", "ents_max"),
    Row("CFAILEM", "ents_used"),
    Row("CFAIMAE", "elems_max"),
    Row("CFAICUE", "elems_used"),
)
STRUCTURE_SCM = (
    Row("CFAISSCM", "scm.max"),
    Row("CFAISSCP", "scm.used"),  # a percentage of CFAISSCM
    Row("CFAISLTC", "scm.ents"),
    Row("CFAISLMC", "scm.elems"),
)
FACILITY = (Row("CFOPTSF", "storage_free"),)
FACILITY_SCM = (
    Row("CFOPSCMS", "scm_total"),
    Row("CFOPSMSC", "scm_committed"),
    Row("CFOPSCMA", "scm_used"),  # what is not free
)
_M3_SIZE, _M3_FREE = "mvs_cf_storage_size_bytes", "mvs_cf_storage_available_bytes"
M3 = (Row(_M3_FREE, "storage_free"),)


class _Report(msgspec.Struct, rename="camel"):
    column_headers: dict[str, Any] = {}
    metric: dict[str, Any] = {}
    resource: dict[str, Any] = {}
    row: list[dict[str, Any]] = []
    time_data: dict[str, Any] = {}


class _Answer(msgspec.Struct):
    report: list[_Report] = []


class _BadReportError(ValueError):
    """A report that cannot be read; the message says why."""


_decoder = msgspec.json.Decoder(_Answer)

Columns = Mapping[str, str]  # values of a row


class DdsFeed(Feed):
    """Reader of the answers of a Distributed Data Server, one or more reports each."""

    reads = "answers with the reports CFACT and CFOVER"
    is_json = True

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        super().__init__(intake, options)
        self._stores = structures_by_policy_name(intake.estate)
        self._groups = groups_of(intake.estate)
        self._members: dict[str, str] = {}  # structure, name in z/OS -> a connected queue manager
        self._ends: dict[tuple[str, str], int] = {}  # (report, resource) -> end of the last interval

    @override
    def take(self, page: Page) -> Iterator[Item]:
        try:
            answer = _decoder.decode(bytes(page.data))
        except UNREADABLE as error:
            text = f"no JSON of RMF: {error}; expected: the reports CFACT and CFOVER"
            yield Complaint("unreadable", page.name, text)
            return
        for number, report in enumerate(answer.report):
            place = f"{page.name} report {number}"
            try:
                yield from self._report(report, place)
            except _BadReportError as error:
                yield Complaint("bad-report", place, str(error))
        if not answer.report:
            yield Complaint("no-report", page.name, "an answer without a report; expected: CFACT or CFOVER")

    def _report(self, report: _Report, place: str) -> Iterator[Item]:
        name = str(report.metric.get("id", ""))
        self.object_count += 1
        start, end = (_time(report.time_data, key) for key in ("utcStart", "utcEnd"))
        key = (name, str(report.resource.get("reslabel", "")))
        if self._ends.get(key, 0) >= end or (key not in self._ends and len(self._ends) >= _MAX_REPORTS):
            # the same interval again: the server was asked before it had a new one
            yield PassedOver("report of an earlier interval", name, is_counted=True)
            return
        rows = list(_rows(report))
        if not rows:
            raise _BadReportError(f"report {name or '?'} without a row; expected: CFACT or CFOVER")
        if name == "CFACT":
            self.expect("report CFACT", rows[0], place)
            yield from self._structures(rows, (start, end), place)
        elif name == "CFOVER":
            yield from self._facilities(rows, (start, end), place)
        else:
            raise _BadReportError(f"report {name or '?'}; expected: CFACT or CFOVER")
        self._ends[key] = end

    def _structures(self, rows: list[Columns], interval: tuple[int, int], place: str) -> Iterator[Item]:
        self._note_connectors(rows)
        measured: dict[str, Columns] = {}
        for row in rows:
            if row.get("CFAPSYS") != "*ALL":
                continue  # a part of the row of all systems
            if row.get("CFAPTYPE") != "LIST":
                yield PassedOver("structure of other types", row.get("CFAPTYPE", "")[:_MAX_TYPE] or "?")
                continue
            name = row.get("CFAPSTRU") or row.get("CFAISTRU", "")
            if name in measured:
                text = f"structure {name} has two instances, as in a rebuild; the active one is taken"
                yield Complaint("two-instances", place, text)
                if not row.get("CFAPSTAT", "").startswith("A"):
                    continue
            measured[name] = row
        for name, row in sorted(measured.items()):
            store = self._stores.get(name) or store_of_policy_name(name, self._groups)
            if store is None:
                yield PassedOver("structure of no group of the estate", name)
                continue
            self._see(store, row)
            columns = {column for column, value in row.items() if value}
            self.expect("structure", columns, place)
            if _integer(row, "CFAISSCM"):
                self.expect("structure with SCM", columns, place)
            content = _structure_measured(row)
            if wrong := find_contradiction(content, store, place):
                yield wrong
                continue
            qmgr = self._members.get(name) or member_of(self.intake.estate, store) or ""
            self.intake.cover("CFACT", qmgr, store, interval)
            yield {"time": interval[1], "qmgr": qmgr, "op": "MEASURE", "store": store, "measured": content}

    def _see(self, store: str, row: Columns) -> None:
        self.intake.facts.add(
            "structure",
            store,
            "CFACT",
            size=_integer(row, "CFAISTRX"),
            coupling_facility=row.get("CFAINAM") or None,
            scm_max_size=_integer(row, "CFAISSCM") or None,
        )

    def _note_connectors(self, rows: list[Columns]) -> None:
        """Keep a queue manager and the store of each structure that queue managers are connected to."""
        for row in rows:
            connector = parse_connector(row.get("CFAICNAM", ""))
            name = row.get("CFAISTRU", "")
            if connector is None or len(name) < 5:
                continue
            group, qmgr = connector
            if len(self._members) < _MAX_MEMBERS and (name not in self._members or qmgr < self._members[name]):
                self._members[name] = qmgr
            self.intake.facts.add_member(group, qmgr, "CFACT")
            store = store_of_policy_name(name, [group])
            if store is not None and len(self._stores) < _MAX_MEMBERS:
                self._stores.setdefault(name, store)

    def _facilities(self, rows: list[Columns], interval: tuple[int, int], place: str) -> Iterator[Item]:
        for row in rows:
            name = row.get("CFOPNAM", "")
            size, scm = _integer(row, "CFOPTSD"), _integer(row, "CFOPSCMS")
            if not name or size is None:
                text = "a row without CFOPNAM or CFOPTSD; expected: a coupling facility"
                yield Complaint("bad-row", place, text)
                continue
            columns = {column for column, value in row.items() if value}
            self.expect("coupling facility", columns, place)
            if scm:
                self.expect("coupling facility with SCM", columns, place)
            self.intake.facts.add("coupling_facility", name, "CFOVER", size=size, scm=scm or None)
            values: dict[str, float | None] = {own: _integer(row, own) for own in row}
            measured = measured_of(FACILITY, values)
            free, scm_free = values.get("CFOPTSF") or 0, values.get("CFOPSCMA")
            if scm:
                values["CFOPSCMA"] = None if scm_free is None else scm - scm_free
                measured |= measured_of(FACILITY_SCM, values)
            shares = {"free storage": {"used": free, "max": size}, "free SCM": {"used": scm_free or 0, "max": scm or 0}}
            yield from _facility_event(self.intake, "CFOVER", name, interval, place, measured, shares)


def _facility_event(
    intake: Intake,
    source: str,
    name: str,
    interval: tuple[int, int],
    place: str,
    measured: Measured,
    shares: Mapping[str, Mapping[str, float]],
) -> Iterator[Item]:
    """Yield the measurement of a coupling facility that the estate has a structure on. `source`: report, "": it has no
    interval; `shares`: parts of its storage, `used` and `max`, which must not contradict each other.
    """
    qmgr = member_of(intake.estate, name)
    if qmgr is None:
        yield from without_measurement(intake, name, interval[1])
        return
    if wrong := find_contradiction(shares, name, place):
        yield wrong
        return
    if source:
        intake.cover(source, qmgr, name, interval)
    yield {"time": interval[1], "qmgr": qmgr, "op": "MEASURE", "store": name, "measured": measured}


def _structure_measured(row: Columns) -> Measured:
    values: dict[str, float | None] = {own: _integer(row, own) for own in row}
    scm_max, scm_pct = values.get("CFAISSCM"), _number(row, "CFAISSCP")
    values["CFAISSCP"] = None if scm_max is None or scm_pct is None else round(scm_max * scm_pct / 100)
    return measured_of((*STRUCTURE, *STRUCTURE_SCM) if scm_max else STRUCTURE, values)


def _rows(report: _Report) -> Iterator[Columns]:
    """Yield the rows by name of column. _BadReportError: columns and values do not fit."""
    headers = report.column_headers.get("col")
    if not isinstance(headers, list) or not all(isinstance(header, dict) for header in headers):
        raise _BadReportError("columnHeaders without col; expected: the names of the columns")
    names = [str(header.get("value", "")) for header in headers]
    for row in report.row:
        values = row.get("col")
        if not isinstance(values, list) or len(values) != len(names):
            raise _BadReportError(f"row {row.get('refno', '?')} has not {len(names)} values, one for each column")
        yield dict(zip(names, (str(value).strip() for value in values), strict=True))


def _time(time_data: Mapping[str, Any], key: str) -> int:
    """Return a time such as 20260710090700, UTC, in microseconds. _BadReportError: it is not a time."""
    text = time_data.get(key)
    try:
        return round(datetime.strptime(str(text), "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()) * 1_000_000
    except ValueError:
        raise _BadReportError(f"timeData.{key} is {text}; expected: YYYYMMDDHHMMSS") from None


def _number(row: Columns, name: str) -> float | None:
    """Return a value of at least 0; None if it is blank or no number. `<0.1` counts as 0."""
    text = row.get(name, "")
    if text.startswith("<"):
        return 0.0
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 2**53 else None


def _integer(row: Columns, name: str) -> int | None:
    value = _number(row, name)
    return None if value is None else int(value)


# --- /metrics/m3 ------------------------------------------------------------------------------------------------------


class M3Feed(Feed):
    """Reader of RMF's OpenMetrics page: storage of coupling facilities [IBM: z/OS 3.2, OpenMetrics Endpoint].

    The name of its label was not seen: a label that has the name of a coupling facility of the estate counts, or else
    one that has "cf" in its own.
    """

    reads = "mvs_cf_storage_ of RMF's page /metrics/m3"

    @override
    def take(self, page: Page) -> Iterator[Item]:
        values: dict[str, dict[str, int]] = {}  # by coupling facility and metric
        times: dict[str, int] = {}
        try:
            for family in text_string_to_metric_families(bytes(page.data).decode()):
                for sample in family.samples:
                    if sample.name not in (_M3_SIZE, _M3_FREE):
                        yield PassedOver(OTHER_METRICS, kind_of(sample.name))
                        continue
                    self.object_count += 1
                    name = self._facility_of(sample.labels)
                    if name is not None and 0 <= sample.value < 2**53:
                        times[name] = _sample_time(sample.timestamp) or page.time or 0
                        values.setdefault(name, {})[sample.name] = int(sample.value)
        except Exception as error:  # noqa: BLE001 -- the parser raises many kinds
            text = f"no OpenMetrics: {type(error).__name__} {error}; expected: the page /metrics/m3"
            yield Complaint("unreadable", page.name, text)
        if not values:
            text = "no mvs_cf_storage_ of a coupling facility; expected: /metrics/m3 with its names"
            yield Complaint("no-metrics", page.name, text)
        for name, metrics in sorted(values.items()):
            facts = {what for what, metric in (("size", _M3_SIZE), ("free storage", _M3_FREE)) if metric in metrics}
            self.expect("coupling facility", facts, page.name)
            size, free = metrics.get(_M3_SIZE), metrics.get(_M3_FREE)
            self.intake.facts.add("coupling_facility", name, "m3", size=size)
            shares = {} if size is None else {"free storage": {"used": free or 0, "max": size}}
            if free is not None or member_of(self.intake.estate, name) is None:
                interval, measured = (times[name], times[name]), measured_of(M3, metrics)
                yield from _facility_event(self.intake, "", name, interval, page.name, measured, shares)

    def _facility_of(self, labels: Mapping[str, str]) -> str | None:
        """Return the coupling facility of a sample: one of the estate, else the label that is named for one."""
        estate = self.intake.estate
        for value in labels.values():
            if estate is not None and value in estate.stores and estate.stores[value].kind == "coupling_facility":
                return value
        return next((value for label, value in labels.items() if "cf" in label.lower() and value), None)


def _sample_time(timestamp: Any) -> int | None:
    """Return the time of a sample, microseconds. The parser takes the seconds of OpenMetrics for milliseconds."""
    if timestamp is None:
        return None
    seconds = float(timestamp)
    return round((seconds if seconds > _SMALLEST_S else seconds * 1000) * 1e6)


# --- what is asked of servers ----------------------------------------------------------------------------------------


def dds_requests(asked: Asked) -> Requests:
    """Return the requests for the latest reports of RMF's Distributed Data Server [IBM: z/OS 3.2, RMF, ddsapi]."""
    if asked.sysplex is None:
        raise UsageError("dds has reports of a sysplex; expected: --sysplex")
    resource = f",{asked.sysplex},SYSPLEX"
    queries = [urlencode({"report": report, "resource": resource}) for report in ("CFACT", "CFOVER")]
    addresses = [(f"{asked.url.rstrip('/')}/gpm/rmfm3.xml?{query}", "application/json") for query in queries]
    return lambda _start, _end: addresses
