"""Three recordings, and fifty questions about them with known answers.

What is known is worked out beside the tools: by arithmetic on the events, by a replay up to a moment, by the functions
of what-if, advice and report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import twin
from tests.support.traffic import SECOND_US, START_US, write_estate, write_recording
from twin.alerts.episodes import Alert
from twin.base.units import as_microseconds, as_text
from twin.estate import Estate, load_estate
from twin.planning.advise import Promise, advise
from twin.planning.proof import hindsight
from twin.planning.whatif import Moment, Traffic, at_moment, what_if
from twin.playback.replays import Replayed, replay
from twin.playback.timeline import Timeline
from twin.records import AlertRecord, ResourceUsage, StateRecord, read_alert_record, resources_of
from twin.reporting.records import Report

APP1, APP2 = "QSG1/APP1", "QSG1/APP2"
_STEP = 10 * SECOND_US
_LENGTH = 2_000  # bytes, one page of 4 KB each where it is offloaded


def clock(text: str) -> str:
    """Return a time of the recordings, such as 12:20."""
    return f"2026-11-20T{text}:00Z"


def _fills() -> Iterator[dict[str, Any]]:
    """Getters of ORDERS are away from 12:15 to 12:28, and then take what waits; BILLS are got at once."""
    held = 0
    for step in range(40 * 6):
        common = {"time": START_US + step * _STEP, "qmgr": "QM01"}
        yield {**common, "op": "PUT", "queue": "ORDERS", "length": _LENGTH, "count": 10}
        held += 10
        if not 15 * 6 <= step < 28 * 6:
            got = min(held, 30)
            held -= got
            yield {**common, "op": "GET", "queue": "ORDERS", "count": got}
        yield {**common, "op": "PUT", "queue": "BILLS", "length": 500, "count": 10}
        yield {**common, "op": "GET", "queue": "BILLS", "count": 10}


def _pages() -> Iterator[dict[str, Any]]:
    """Nobody gets from LOCAL: two messages a second, each with a page of its own."""
    for step in range(7 * 6):
        yield {
            "time": START_US + step * _STEP,
            "qmgr": "QM01",
            "op": "PUT",
            "queue": "LOCAL",
            "length": 1_000,
            "count": 20,
        }


def _unread() -> Iterator[dict[str, Any]]:
    """From 12:05 on no application has ORDERS open for input."""
    for step in range(20 * 6):
        time = START_US + step * _STEP
        common = {"time": time, "qmgr": "QM01"}
        yield {**common, "op": "PUT", "queue": "ORDERS", "length": 200, "count": 2}
        is_read = step < 5 * 6
        if is_read:
            yield {**common, "op": "GET", "queue": "ORDERS", "count": 2}
        if step % 6 == 5:
            fact = {"name": "ORDERS", "getters": 2 if is_read else 0, "putters": 3}
            fact |= {"depth": 0 if is_read else 2 * (step - 5 * 6 + 1), "last_get": clock("12:04")}
            measured = {"asked": ["QM01", "QM02"], "queues": [fact]}
            yield {**common, "op": "MEASURE", "store": APP1, "measured": measured}


EVENTS: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {"fills": _fills, "pages": _pages, "unread": _unread}


class Known:
    """A recording, and what is known of it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.estate: Estate = load_estate(write_estate(folder))
        self.events = list(EVENTS[name]())
        self.path = write_recording(folder / f"{name}.ndjson", self.events)
        self.page_set = next(own.name for own in self.estate.stores.values() if own.kind == "page_set")
        self._states: dict[tuple[str, str], StateRecord] = {}

    @cached_property
    def replayed(self) -> Replayed:
        """The whole recording."""
        return replay(self.path, self.estate, course=False)

    @cached_property
    def report(self) -> Report:
        """Its report."""
        return twin.report(self.path, self.estate)

    def held(self, queue: str, until: str) -> int:
        """Return the messages put and not got, by the events alone."""
        signs = {"PUT": 1, "GET": -1, "MEASURE": 0}
        own = [event for event in self.events if event.get("queue") == queue]
        end = as_microseconds(until)
        return sum(signs[event["op"]] * event["count"] for event in own if event["time"] <= end)

    def moment(self, store: str, time: str) -> Moment:
        """Return the twin of a replay up to a time."""
        return at_moment(self.path, self.estate, store, time)

    def state(self, store: str, time: str) -> StateRecord:
        """Return its state record."""
        if (store, time) not in self._states:
            self._states[store, time] = self.moment(store, time).twin.state()
        return self._states[store, time]

    def fullest(self, store: str, time: str) -> ResourceUsage:
        """Return its fullest resource."""
        return max(resources_of(self.state(store, time)), key=lambda own: own.maximum_pct or 0.0)

    def alerts(self, until: str) -> list[AlertRecord]:
        """Return the last record of each alert that had opened by a time."""
        alerts: list[Alert] = self.replayed.alerts
        records = [read_alert_record(alert.record()) for alert in alerts if alert.time <= as_microseconds(until)]
        return list({record.data.alert_id: record for record in records}.values())

    def alert(self, condition: str, until: str) -> AlertRecord:
        """Return the last record of the first alert of a condition."""
        return next(record for record in self.alerts(until) if record.data.condition == condition)


Read = Callable[[Any], Any]  # of the decoded answer
Expected = Callable[[Known, Any], Any]  # of what is known, and the answer, which says of what moment it is


class Row(NamedTuple):
    """A question. arguments: those of the tool, or a function of a recording that returns them."""

    recording: str
    question: str
    tool: str
    arguments: dict[str, Any] | Callable[[Known], dict[str, Any]]
    read: Read
    expected: Expected


def _moment(time: str, **others: Any) -> dict[str, Any]:
    return {"time": clock(time), **others}


def _open(known: Known, until: str) -> set[str]:
    return {record.data.condition for record in known.alerts(until) if record.is_open}


def _same(text: str, known: set[str]) -> str:
    """Return a text that is known; else what is known, which it does not equal."""
    return text if text in known else str(known)


def _first_of(content: Any, name: str, **equal: Any) -> Any:
    (own,) = (item for item in content[name] if all(item[key] == value for key, value in equal.items()))
    return own


_SOON, _LATE = "12:19", "12:21"  # four and six minutes after the getters went
_DATA_SETS = {"smds.QM01.size": "64M", "smds.QM02.size": "64M"}
_PLAN = {"queue": "ORDERS", "from": clock("12:30"), "until": clock("12:35"), "messages": 2_000, "length": _LENGTH}


def _forecast_id(known: Known) -> dict[str, Any]:
    return _moment(_LATE, alert_id=known.alert("full-forecast", clock(_LATE)).data.alert_id)


def _rolled(known: Known, content: Any, *, store: str = APP1, **changes: Any) -> Any:
    return what_if(known.moment(store, content["as_of"]), **changes)


def _advice(known: Known, content: Any) -> Any:
    return advise(known.moment(APP1, content["as_of"]), Promise(hours=2.0, confidence=0.9))


def _planned(known: Known, content: Any) -> Any:
    from twin.estate.planned import read_plan

    moment = known.moment(APP1, content["as_of"])
    return what_if(moment, plan=read_plan({"id": "planned", **_PLAN}, moment.twin.config))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _pages_of(report: Report) -> int:
    return len(report.pages)


F, P, U = "fills", "pages", "unread"
ROWS = [
    Row(F, "where does this come from", "overview", {}, lambda a: a["source"], lambda k, _: f"recording {k.path.name}"),
    Row(F, "how many events are in it", "overview", {}, lambda a: a["events_count"], lambda k, _: len(k.events)),
    Row(F, "how many stores are there", "overview", {}, lambda a: a["stores_count"],
        lambda k, _: len(k.replayed.states)),
    Row(F, "until when does it last", "overview", {}, lambda a: a["last_moment"],
        lambda k, _: as_text(k.events[-1]["time"])),
    Row(F, "about which store was somebody called last", "overview", {}, lambda a: a["latest_calls"][0]["store"],
        lambda _, __: APP1),
    Row(F, "is an event refused", "overview", {}, lambda a: a["dead_letters_count"],
        lambda k, _: k.replayed.dead_letters),
    Row(F, "what is the most urgent store at 12:21", "stores", _moment(_LATE), lambda a: a["stores"][0]["store"],
        lambda _, __: APP1),
    Row(F, "why", "stores", _moment(_LATE), lambda a: a["stores"][0]["why"],
        lambda k, a: _same(a["stores"][0]["why"], {r.data.cause for r in k.alerts(clock(_LATE))})),
    Row(F, "when is it full", "stores", _moment(_LATE), lambda a: a["stores"][0]["full_in_p50_s"],
        lambda k, a: _rounded(k.state(APP1, a["as_of"]).rising.time_to_full_s.p50)),
    Row(F, "how probable is that", "stores", _moment(_LATE), lambda a: a["stores"][0]["full_probability_pct"],
        lambda k, a: _rounded(100 * k.state(APP1, a["as_of"]).rising.full_probability)),
    Row(F, "how full is its fullest resource", "stores", _moment(_LATE),
        lambda a: a["stores"][0]["usage_of_maximum_pct"],
        lambda k, a: _rounded(k.fullest(APP1, a["as_of"]).maximum_pct)),
    Row(F, "how many stores have had events", "stores", _moment(_LATE), lambda a: len(a["stores"]), lambda _, __: 2),
    Row(F, "does a store have an incident at 12:10", "stores", _moment("12:10", only_with_incident=True),
        lambda a: a["stores"], lambda _, __: []),
    Row(F, "how many messages does APP1 hold at 12:19", "store", _moment(_SOON, store=APP1),
        lambda a: a["messages_count"], lambda k, a: k.held("ORDERS", a["as_of"])),
    Row(F, "how many at 12:21", "store", _moment(_LATE, store=APP1), lambda a: a["messages_count"],
        lambda k, a: k.held("ORDERS", a["as_of"])),
    Row(F, "how many at the end", "store", {"store": APP1}, lambda a: a["messages_count"],
        lambda k, a: k.held("ORDERS", a["as_of"])),
    Row(F, "how many does APP2 hold", "store", _moment(_SOON, store=APP2), lambda a: a["messages_count"],
        lambda _, __: 0),
    Row(F, "how fast do applications put", "store", _moment(_SOON, store=APP1), lambda a: a["puts_wanted_per_s"],
        lambda k, a: _rounded(k.state(APP1, a["as_of"]).demand.puts_per_s)),
    Row(F, "which resources does it have", "store", _moment(_SOON, store=APP1),
        lambda a: [own["resource"] for own in a["resources"]],
        lambda k, a: [own.name for own in resources_of(k.state(APP1, a["as_of"]))]),
    Row(F, "how much of the entries is in use", "store", _moment(_SOON, store=APP1),
        lambda a: _first_of(a, "resources", resource="entries")["usage_pct"],
        lambda k, a: _rounded({own.name: own.pct for own in resources_of(k.state(APP1, a["as_of"]))}["entries"])),
    Row(F, "was a put refused", "store", {"store": APP1}, lambda a: a["refused_puts_count"],
        lambda k, _: k.replayed.states[APP1].full_puts),
    Row(F, "what is full first", "store", _moment(_LATE, store=APP1), lambda a: a["forecasts"][0]["resource"],
        lambda k, a: k.state(APP1, a["as_of"]).first.resource),
    Row(F, "which incidents are open at 12:21", "incidents", _moment(_LATE),
        lambda a: [own["store"] for own in a["incidents"]], lambda _, __: [APP1]),
    Row(F, "what is wrong", "incidents", _moment(_LATE), lambda a: a["incidents"][0]["condition"],
        lambda k, a: _same(a["incidents"][0]["condition"], _open(k, clock(_LATE)))),
    Row(F, "since when", "incidents", _moment(_LATE), lambda a: a["incidents"][0]["opened"],
        lambda k, _: k.alerts(clock(_LATE))[0].data.incident.opened),
    Row(F, "which were open at 12:10", "incidents", _moment("12:10"), lambda a: a["incidents"], lambda _, __: []),
    Row(F, "how many incidents were there in all", "incidents", {"closed": True}, lambda a: len(a["incidents"]),
        lambda k, _: len({record.data.incident.id for record in k.alerts(clock("12:59"))})),
    Row(F, "what is the evidence of the forecast", "alert", _forecast_id, lambda a: a["evidence"],
        lambda k, _: list(k.alert("full-forecast", clock(_LATE)).data.evidence)),
    Row(F, "what is the cause", "alert", _forecast_id, lambda a: a["cause"],
        lambda k, _: k.alert("full-forecast", clock(_LATE)).data.cause),
    Row(F, "which queue fills it", "alert", _forecast_id, lambda a: a["fillers"][0]["queue"], lambda _, __: "ORDERS"),
    Row(F, "what should be done first", "alert", _forecast_id, lambda a: a["actions"][0]["action_id"],
        lambda k, _: k.alert("full-forecast", clock(_LATE)).data.runbook[0].id),
    Row(F, "which statements does that have", "alert", _forecast_id,
        lambda a: [own["statement"] for own in a["actions"][0]["steps"]],
        lambda k, _: [own.statement for own in k.alert("full-forecast", clock(_LATE)).data.runbook[0].steps]),
    Row(F, "when is it full as it is", "what_if", _moment(_LATE, store=APP1), lambda a: a["before"]["full_in_p50_s"],
        lambda k, a: _rounded(_rolled(k, a).before.p50)),
    Row(F, "with twice the puts", "what_if", _moment(_LATE, store=APP1, puts_factor=2),
        lambda a: a["after"]["full_in_p50_s"],
        lambda k, a: _rounded(_rolled(k, a, traffic=Traffic(puts=2)).after.p50)),
    Row(F, "with larger data sets", "what_if", _moment(_LATE, store=APP1, set=_DATA_SETS),
        lambda a: a["after"]["full_probability_pct"],
        lambda k, a: _rounded(100 * _rolled(k, a, settings=_DATA_SETS).after.probability)),
    Row(F, "how many messages still fit", "what_if", _moment(_LATE, store=APP1),
        lambda a: a["before"]["messages_that_fit_count"], lambda k, a: _rolled(k, a).before.messages_that_fit),
    Row(F, "does planned work fit", "what_if", _moment(_LATE, store=APP1, plan=[_PLAN]),
        lambda a: a["after"]["full_probability_pct"],
        lambda k, a: _rounded(100 * _planned(k, a).after.probability)),
    Row(F, "what is the least change that helps", "advise", _moment(_LATE, store=APP1),
        lambda a: [plan["title"] for plan in a["plans"]],
        lambda k, a: [plan.title for plan in _advice(k, a).plans][: len(a["plans"])]),
    Row(F, "with which steps", "advise", _moment(_LATE, store=APP1), lambda a: a["plans"][0]["steps"],
        lambda k, a: list(_advice(k, a).plans[0].steps)),
    Row(F, "did anything have to change at 12:10", "advise", _moment("12:10", store=APP1),
        lambda a: a["nothing_has_to_change"], lambda _, __: True),
    Row(F, "would larger data sets have held", "hindsight", _moment(_SOON, store=APP1, set=_DATA_SETS),
        lambda a: a["refused_with_settings_count"],
        lambda k, a: hindsight(Timeline(k.path, k.estate), APP1, a["since"], _DATA_SETS).after.refused),
    Row(F, "how many pages were there", "report", {}, lambda a: a["pages_count"], lambda k, _: _pages_of(k.report)),
    Row(F, "what came closest", "report", {}, lambda a: a["stores"][0]["highest_pct"],
        lambda k, _: _rounded(max(own.peaks[0].usage_pct for own in k.report.stores))),
    Row(F, "how many entries do 4,000 messages need", "size", {"store": APP1, "messages": ["2000:4000"]},
        lambda a: a["lines"][0]["cells"][a["columns"].index("entries")], lambda _, __: "4,000"),
    Row(F, "how many pages of a data set", "size", {"store": APP1, "messages": ["2000:4000"], "data_set": True},
        lambda a: _cell(a, "4 KB pages used"), lambda _, __: "4,000"),
    Row(F, "where is planned work described", "documentation", {"words": "planned work recurrence"},
        lambda a: "planned-work.md" in {own["page"] for own in a["sections"]}, lambda _, __: True),
    Row(P, "how many messages are on the page set", "store", lambda k: {"store": k.page_set},
        lambda a: a["messages_count"], lambda k, a: k.held("LOCAL", a["as_of"])),
    Row(P, "how many pages do 500 messages need", "size", lambda k: {"store": k.page_set, "messages": ["1000:500"]},
        lambda a: _cell(a, "message pages"), lambda _, __: "500"),
    Row(U, "who reads ORDERS", "readers", {"store": APP1, "queue": "ORDERS"},
        lambda a: (a["queues"][0]["getters_count"], a["queues"][0]["putters_count"]), lambda _, __: (0, 3)),
    Row(U, "since when does nobody", "readers", {"store": APP1},
        lambda a: _first_of(a, "queues", queue="ORDERS")["unread_since"],
        lambda k, _: as_text(next(e["time"] for e in k.events if e["op"] == "MEASURE"
                                  and not e["measured"]["queues"][0]["getters"]))),
]  # fmt: skip


def _cell(content: Any, name: str) -> str:
    (cells,) = (line["cells"] for line in content["lines"] if line["cells"][0] == name)
    return str(cells[1])
