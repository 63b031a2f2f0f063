"""The record of an alert: a CloudEvent 1.0 in structured mode, with the data of docs/alerts.md#fields."""

from typing import Any

import msgspec
import pytest
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from twin.alerts.episodes import Alert, Episode, Episodes, Finding
from twin.base.conditions import CLEARED, ENTRIES, FULL, INFO, OPENED, UPDATED, WARNING, Resource
from twin.records import PART, ROOT, Action, AlertRecord, Filler, Step, read_alert_record

GETTERS = Action(
    id="getters",
    summary="Start more getters",
    effect="then full in 54 min",
    steps=(Step("Look", "DISPLAY QSTATUS(Q)"), Step("Start it")),
)
STEPS = ["  1. Look: DISPLAY QSTATUS(Q)", "  2. Start it"]


def finding(**different: Any) -> Finding:
    fields: dict[str, Any] = {
        "condition": "threshold",
        "resource": ENTRIES,
        "severity": WARNING,
        "usage_pct": 80.0,
        "full_probability": None,
        "fillers": (Filler("A.QUEUE", 0.75), Filler("B.QUEUE", 0.25)),
        "cause": "80.0 % of the entries are in use.",
        "runbook": (GETTERS,),
        **different,
    }
    return Finding(**fields)


TIME = 1_795_176_000_000_123


def life() -> list[Alert]:
    """Open, update and clear an alert."""
    episodes = Episodes("QSG1/APP1", [])
    records = episodes.open(finding(), TIME)
    episode = episodes.get("threshold", ENTRIES)
    assert episode is not None
    records += episodes.update(episode, finding(usage_pct=90.0), TIME + 1)
    records += episodes.clear(episode, finding(usage_pct=70.0), TIME + 2)
    assert not episodes.any_open
    return records


@pytest.mark.parametrize("alert", life(), ids=[OPENED, UPDATED, CLEARED])
def test_a_record_is_a_cloud_event(alert: Alert) -> None:
    event = JSONFormat().read(CloudEvent, alert.record())  # checks what CloudEvents 1.0 requires
    assert event.get_specversion() == "1.0"
    assert event.get_type() == f"mqtwin.alert.{alert.change}"
    assert event.get_subject() == "QSG1/APP1"
    assert event.get_datacontenttype() == "application/json"
    assert event.get_data() == msgspec.json.decode(msgspec.json.encode(alert.data()))


def test_a_record_of_a_named_site_says_so_and_no_other_site_has_its_source_and_id() -> None:
    records = [Episodes("QSG1/APP1", site=site).open(finding(), TIME)[0].record() for site in ("", "prod", "Zürich 2")]
    events = [JSONFormat().read(CloudEvent, record) for record in records]
    assert [event.get_source() for event in events] == ["mqtwin", "mqtwin/prod", "mqtwin/Z%C3%BCrich%202"]
    assert len({event.get_id() for event in events}) == 1
    sites = [read_alert_record(record).data.site for record in records]
    assert sites == [msgspec.UNSET, "prod", "Zürich 2"]
    assert b'"site"' not in records[0]


def test_its_data_are_those_of_the_contract() -> None:
    opened, _, cleared = (alert.data() for alert in life())
    assert msgspec.to_builtins(opened) == {
        "alert_id": opened.alert_id,
        "status": "open",
        "done": (),
        "level": "page",
        "severity": "warning",
        "store": "QSG1/APP1",
        "resource": "entries",
        "condition": "threshold",
        "time": "2026-11-20T12:00:00.000123Z",
        "usage_pct": 80.0,
        "time_to_full_s": None,
        "full_probability": None,
        "fillers": ({"queue": "A.QUEUE", "share": 0.75}, {"queue": "B.QUEUE", "share": 0.25}),
        "cause": "80.0 % of the entries are in use.",
        "actions": ("Start more getters (then full in 54 min): 1. Look: DISPLAY QSTATUS(Q); 2. Start it",),
        "runbook": (
            {
                "id": "getters",
                "summary": "Start more getters",
                "effect": "then full in 54 min",
                "precondition": None,
                "steps": (
                    {"text": "Look", "statement": "DISPLAY QSTATUS(Q)"},
                    {"text": "Start it", "statement": None},
                ),
                "risk": None,
                "undo": None,
            },
        ),
        "evidence": (),
        "resources": ("entries",),
        "incident": {
            "id": "QSG1/APP1/1795176000000123",
            "role": "root",
            "opened": "2026-11-20T12:00:00.000123Z",
            "recovered": None,
        },
        "brief": ("80.0 % of the entries are in use", "DISPLAY QSTATUS(Q)"),
    }
    assert cleared.status == "cleared"


def test_an_action_is_lines_for_a_person_with_what_to_know_before() -> None:
    whole = msgspec.structs.replace(GETTERS, precondition="it is late", risk="it costs", undo="ALTER QLOCAL(Q)")
    assert whole.lines == [
        "Start more getters (then full in 54 min)",
        "if it is late",
        "1. Look: DISPLAY QSTATUS(Q)",
        "2. Start it",
        "risk: it costs",
        "way back: ALTER QLOCAL(Q)",
    ]


def test_an_early_record_without_a_runbook_is_read_with_its_sentences() -> None:
    record = msgspec.json.decode(life()[0].record())
    del record["data"]["runbook"]
    data = msgspec.convert(record, AlertRecord).data
    assert (data.runbook, data.instructions) == ((), list(data.actions))
    assert life()[0].data().instructions == ["Start more getters (then full in 54 min)", *STEPS]


def test_an_episode_has_one_alert_id_and_each_of_its_records_an_id_of_its_own() -> None:
    assert len({alert.alert_id for alert in life()}) == 1
    assert [alert.number for alert in life()] == [0, 1, 2]
    ids = [msgspec.json.decode(alert.record())["id"] for alert in life()]
    assert len(set(ids)) == 3
    assert ids == [msgspec.json.decode(alert.record())["id"] for alert in life()]


def test_episodes_of_other_times_resources_and_conditions_have_other_ids() -> None:
    episodes = Episodes("QSG1/APP1", [])
    ids = {
        episodes.open(finding(resource=Resource.parse(resource), condition=condition), time)[-1].alert_id
        for resource in ("entries", "elements", "smds/QM01")
        for condition in ("threshold", "full")
        for time in (TIME, TIME + 1)
    }
    assert len(ids) == 12


def test_an_alert_clears_once_its_condition_has_been_over_for_ten_minutes_without_a_break():
    episodes = Episodes("QSG1/APP1", [])
    episodes.open(finding(), TIME)
    episode = episodes.get("threshold", ENTRIES)
    assert episode is not None

    def settle(second: int, *, is_over: bool) -> list[Alert]:
        return episodes.settle(episode, finding, TIME + second * 1_000_000, is_over=is_over)

    assert settle(10, is_over=True) == []
    assert settle(600, is_over=False) == []
    assert settle(610, is_over=True) == []
    assert settle(1209, is_over=True) == []
    (cleared,) = settle(1210, is_over=True)
    assert (cleared.change, cleared.number, cleared.time) == (CLEARED, 1, TIME + 1_210_000_000)
    assert not episodes.any_open


def test_the_open_alerts_of_an_earlier_version_are_an_incident_and_the_worst_is_its_root() -> None:
    def early(condition: str, severity: str) -> Episode:
        return Episode(
            alert_id=f"QSG1/APP1/{condition}/entries/{TIME}",
            condition=condition,
            resource_text="entries",
            published=1,
            severity=severity,
            usage_pct=100.0,
        )

    episodes = Episodes("QSG1/APP1", [early("threshold", WARNING), early("full", FULL)])
    [opened] = episodes.open(finding(condition="drift", severity=INFO), TIME + 1)
    assert (opened.change, opened.incident.role) == (OPENED, PART)
    threshold = episodes.get("threshold", ENTRIES)
    full = episodes.get("full", ENTRIES)
    assert threshold is not None and full is not None
    [updated] = episodes.update(threshold, finding(), TIME + 2)
    [worst] = episodes.update(full, finding(condition="full", severity=FULL), TIME + 3)
    assert (updated.incident.role, worst.incident.role) == (PART, ROOT)
    assert {alert.incident.id for alert in (opened, updated, worst)} == {f"QSG1/APP1/{TIME + 1}"}
