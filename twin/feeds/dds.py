"""RMF Monitor III reports CFACT and CFOVER, JSON of the Distributed Data Server, as measurements.

Columns by name: [IBM: RMF, XSL of the reports, in github.com/IBM/RMF]. Every value is text; one that does not apply is
blank, a small one may be `<0.1`. Rows of CFACT for the whole sysplex have `*ALL` as their system; rows of connectors
name the queue managers. No report with a structure of MQ was seen: their rows follow those of other list structures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
from typing_extensions import override

from twin.events import Event, Measured
from twin.events.measured import ScmMeasured
from twin.feeds.intake import Intake
from twin.feeds.protocol import Feed, FeedOptions, Page
from twin.feeds.stores import (
    groups_of,
    member_of,
    note_facility,
    parse_connector,
    store_of_policy_name,
    structures_by_policy_name,
)

_MAX_TYPE = 20  # characters
_MAX_REPORTS = 1000  # (report, resource) whose last interval is kept
_MAX_MEMBERS = 10_000  # structures whose queue managers are kept


_STRUCTURE: Mapping[Literal["size", "ents_max", "ents_used", "elems_max", "elems_used"], str] = {
    "size": "CFAISTRS",
    "ents_max": "CFAILEL",
    "ents_used": "CFAILEM",
    "elems_max": "CFAIMAE",
    "elems_used": "CFAICUE",
}
_SCM: Mapping[Literal["ents", "elems"], str] = {"ents": "CFAISLTC", "elems": "CFAISLMC"}


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

Row = Mapping[str, str]


class DdsFeed(Feed):
    """Reader of the answers of a Distributed Data Server, one or more reports each."""

    reads = "answers with the reports CFACT and CFOVER"

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        super().__init__(intake, options)
        self._stores = structures_by_policy_name(intake.estate)
        self._groups = groups_of(intake.estate)
        self._members: dict[str, str] = {}  # structure, name in z/OS -> a connected queue manager
        self._ends: dict[tuple[str, str], int] = {}  # (report, resource) -> end of the last interval

    @override
    def take(self, page: Page) -> Iterable[Event]:
        try:
            answer = _decoder.decode(bytes(page.data))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            text = f"no JSON of RMF: {error}; expected: the reports CFACT and CFOVER"
            self.intake.complain("unreadable", page.name, text)
            return
        for number, report in enumerate(answer.report):
            place = f"{page.name} report {number}"
            try:
                yield from self._report(report, place)
            except _BadReportError as error:
                self.intake.complain("bad-report", place, str(error))
        if not answer.report:
            self.intake.complain("no-report", page.name, "an answer without a report; expected: CFACT or CFOVER")

    def _report(self, report: _Report, place: str) -> Iterator[Event]:
        name = str(report.metric.get("id", ""))
        self.object_count += 1
        start, end = (_time(report.time_data, key) for key in ("utcStart", "utcEnd"))
        key = (name, str(report.resource.get("reslabel", "")))
        if self._ends.get(key, 0) >= end or (key not in self._ends and len(self._ends) >= _MAX_REPORTS):
            # the same interval again: the server was asked before it had a new one
            self.intake.pass_over("report of an earlier interval", name, is_counted=True)
            return
        rows = list(_rows(report))
        if name == "CFACT":
            yield from self._structures(rows, (start, end), place)
        elif name == "CFOVER":
            yield from self._facilities(rows, (start, end), place)
        else:
            raise _BadReportError(f"report {name or '?'}; expected: CFACT or CFOVER")
        self._ends[key] = end

    def _structures(self, rows: list[Row], interval: tuple[int, int], place: str) -> Iterator[Event]:
        self._note_connectors(rows)
        measured: dict[str, Row] = {}
        for row in rows:
            if row.get("CFAPSYS") != "*ALL":
                continue  # a part of the row of all systems
            if row.get("CFAPTYPE") != "LIST":
                self.intake.pass_over("structure of other types", row.get("CFAPTYPE", "")[:_MAX_TYPE] or "?")
                continue
            name = row.get("CFAPSTRU") or row.get("CFAISTRU", "")
            if name in measured:
                text = f"structure {name} has two instances, as in a rebuild; the active one is taken"
                self.intake.complain("two-instances", place, text)
                if not row.get("CFAPSTAT", "").startswith("A"):
                    continue
            measured[name] = row
        for name, row in sorted(measured.items()):
            store = self._stores.get(name) or store_of_policy_name(name, self._groups)
            if store is None:
                self.intake.pass_over("structure of no group of the estate", name)
                continue
            self._see(store, row)
            content = _structure_measured(row)
            if not self.intake.is_consistent(content, store, place):
                continue
            qmgr = self._members.get(name) or member_of(self.intake.estate, store) or ""
            self.intake.cover("CFACT", qmgr, store, interval)
            yield {"time": interval[1], "qmgr": qmgr, "op": "MEASURE", "store": store, "measured": content}

    def _see(self, store: str, row: Row) -> None:
        self.intake.facts.add(
            "structure",
            store,
            "CFACT",
            size=_integer(row, "CFAISTRX"),
            coupling_facility=row.get("CFAINAM") or None,
            scm_max_size=_integer(row, "CFAISSCM") or None,
        )

    def _note_connectors(self, rows: list[Row]) -> None:
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

    def _facilities(self, rows: list[Row], interval: tuple[int, int], place: str) -> Iterator[Event]:
        for row in rows:
            name = row.get("CFOPNAM", "")
            size, scm = _integer(row, "CFOPTSD"), _integer(row, "CFOPSCMS")
            if not name or size is None:
                self.intake.complain(
                    "bad-row", place, "a row without CFOPNAM or CFOPTSD; expected: a coupling facility"
                )
                continue
            self.intake.facts.add("coupling_facility", name, "CFOVER", size=size, scm=scm or None)
            qmgr = member_of(self.intake.estate, name)
            if qmgr is None:
                note_facility(self.intake, name, interval[1])
                continue
            storage_free, scm_free = _integer(row, "CFOPTSF"), _integer(row, "CFOPSCMA")
            measured: Measured = {}
            if storage_free is not None:
                measured["storage_free"] = storage_free
            if scm:
                measured["scm_total"] = scm
                committed = _integer(row, "CFOPSMSC")
                if committed is not None:
                    measured["scm_committed"] = committed
                if scm_free is not None:
                    measured["scm_used"] = scm - scm_free
            free = {"used": storage_free or 0, "max": size}, {"used": scm_free or 0, "max": scm or 0}
            if not self.intake.is_consistent({"free storage": free[0], "free SCM": free[1]}, name, place):
                continue
            self.intake.cover("CFOVER", qmgr, name, interval)
            yield {"time": interval[1], "qmgr": qmgr, "op": "MEASURE", "store": name, "measured": measured}


def _structure_measured(row: Row) -> Measured:
    measured: Measured = {}
    for field, column in _STRUCTURE.items():
        value = _integer(row, column)
        if value is not None:
            measured[field] = value
    scm_max, scm_pct = _integer(row, "CFAISSCM"), _number(row, "CFAISSCP")
    if scm_max:
        scm: ScmMeasured = {"max": scm_max}
        if scm_pct is not None:
            scm["used"] = round(scm_max * scm_pct / 100)
        for part, column in _SCM.items():
            value = _integer(row, column)
            if value is not None:
                scm[part] = value
        measured["scm"] = scm
    return measured


def _rows(report: _Report) -> Iterator[Row]:
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
    """Return a time such as 20260710090700, UTC, in microseconds. _BadReportError: it is none."""
    text = time_data.get(key)
    try:
        return round(datetime.strptime(str(text), "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()) * 1_000_000
    except ValueError:
        raise _BadReportError(f"timeData.{key} is {text}; expected: YYYYMMDDHHMMSS") from None


def _number(row: Row, name: str) -> float | None:
    """Return a value of at least 0; None if it is blank or no number. `<0.1` counts as 0."""
    text = row.get(name, "")
    if text.startswith("<"):
        return 0.0
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 2**53 else None


def _integer(row: Row, name: str) -> int | None:
    value = _number(row, name)
    return None if value is None else int(value)
