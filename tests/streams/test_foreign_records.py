"""Records that somebody else wrote to the topics of states, alerts and dead letters: each costs itself only."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from deploy.show.alerts import alert_block, alert_line
from streams.kafka.notes import read_noted_alerts, read_notes
from streams.kafka.topic_reader import Latest
from streams.kafka.topics import RecordGuard, TopicRecord
from tests.support.alert_entries import alert, topic_record
from tests.support.console_feed import TOPICS, alert_event, page_set
from tests.tools.fuzz.records import RecordFuzzer, Surfaces, nested
from twin.records import Action, read_alert_record, read_state_record

STATE = page_set("QM01/PS09", 10, usage_pct=0.1)
ALERT = alert_event() | {"subject": "QM01/PS04", "time": "2026-11-20T12:00:00Z"}
ODD_STATES: dict[str, Any] = {
    "no time": {"time": "not a time"},
    "a number as time": {"time": 5},
    "a time of no calendar": {"time": "2026-13-45T99:99:99Z"},
    "a time of the year 2500": {"time": "2500-01-01T00:00:00Z"},
    "a time without its zone": {"time": "2026-11-20T12:00:00"},
    "a forecast of no time": {"forecast": {"time": "2026-02-30T00:00:00Z", "resources": []}},
    "events as text": {"events": "x"},
    "no data sets": {"kind": "structure", "smds": None},
    "empty SCM": {"scm": {}},
    "a forecast of texts": {"forecast": {"resources": ["x", "y"]}},
    "a forecast without times": {"forecast": {"resources": [{"resource": "pages", "full_probability": 1, "x": 1}]}},
    "a number of 400 digits": {"pages_used": 10**400},
    "a count of 70 bits": {"gaps": 2**70},
    "queues of numbers": {"queues": [1, 2]},
    "a queue of a text": {"queues": [{"name": "Q", "depth": "x", "bytes": 0}]},
}
ODD_ALERTS: dict[str, Any] = {
    "fillers as a number": {"fillers": 5},
    "a severity that is a list": {"severity": []},
    "times as a list": {"time_to_full_s": []},
    "actions as a number": {"actions": 7},
    "a runbook of a text": {"runbook": ["Look"]},
    "an id that is a number": {"alert_id": 7},
    "a time of no calendar": {"time": "2026-13-45T99:99:99Z"},
    "a time of other digits": {"time": "\u0662\u0660\u0662\u0666-11-20T12:00:00Z"},
    "a time of the year 0": {"time": "0000-01-01T00:00:00Z"},
    "a time without its zone": {"time": "2026-11-20T12:00:00"},
    "an incident of no time": {"incident": {"id": "i", "role": "root", "opened": "2026-11-31T00:00:00Z"}},
    "an action of no time": {"done": [{"id": "", "time": "never", "text": "x"}]},
    "usage of 400 digits": {"usage_pct": 10**400},
}


@pytest.fixture
def surfaces() -> Surfaces:
    return Surfaces()


def raw(topic: str, value: bytes) -> TopicRecord:
    return topic_record(topic, value)


def deep(record: dict[str, Any]) -> bytes:
    return nested(msgspec.json.encode(record), 3000)


@pytest.mark.parametrize("topic", [TOPICS.state, TOPICS.alerts])
def test_a_record_nested_3000_deep_is_counted_and_the_next_is_taken(surfaces: Surfaces, topic: str) -> None:
    record = STATE if topic == TOPICS.state else ALERT
    surfaces.take(raw(topic, deep(record)))
    assert surfaces.unreadable() == {"latest": 1, "console": 1, "alerts": topic == TOPICS.alerts}
    surfaces.take(raw(topic, msgspec.json.encode(record)))
    assert surfaces.unreadable() == {"latest": 1, "console": 1, "alerts": topic == TOPICS.alerts}
    surfaces.show()


def test_an_alert_id_whose_number_has_5000_digits_does_not_hide_the_alert(surfaces: Surfaces) -> None:
    event = msgspec.json.decode(alert().record())
    for identifier in (f"{event['data']['alert_id']}/{'9' * 5000}", event["id"]):
        surfaces.take(raw(TOPICS.alerts, msgspec.json.encode(event | {"id": identifier})))
    assert surfaces.latest.unreadable == 1
    assert [entry.alert.id for entry in surfaces.latest.alerts.values()] == [event["id"]]


@pytest.mark.parametrize("name", ODD_STATES)
def test_an_odd_field_of_a_state_costs_no_other_store_its_metrics(surfaces: Surfaces, name: str) -> None:
    surfaces.take(raw(TOPICS.state, msgspec.json.encode(page_set("QM01/PS01", 4_000, usage_pct=40))))
    surfaces.take(raw(TOPICS.state, msgspec.json.encode(STATE | ODD_STATES[name])))
    page = surfaces.show()
    assert 'mqtwin_pageset_pages_used{kind="page_set",pageset="1"' in page
    assert "QM01/PS01" in {store["store"] for store in surfaces.console_content()["stores"]}


@pytest.mark.parametrize(
    "name", ["a number as time", "no time", "events as text", "a number of 400 digits", "a count of 70 bits"]
)
def test_a_state_that_cannot_be_shown_is_counted_and_the_last_good_one_stays(surfaces: Surfaces, name: str) -> None:
    surfaces.take(raw(TOPICS.state, msgspec.json.encode(STATE)))
    surfaces.take(raw(TOPICS.state, msgspec.json.encode(STATE | ODD_STATES[name])))
    assert surfaces.latest.unreadable == surfaces.model.unreadable == 1
    assert "mqtwin_unreadable_records_total 1.0" in surfaces.show()
    (store,) = surfaces.console_content()["stores"]
    assert store["fields"]["pages_used"] == 10


@pytest.mark.parametrize("name", ODD_ALERTS)
def test_an_odd_field_of_an_alert_costs_that_alert(surfaces: Surfaces, name: str) -> None:
    odd = ALERT | {"data": ALERT["data"] | ODD_ALERTS[name]}
    surfaces.take(raw(TOPICS.state, msgspec.json.encode(STATE)))
    surfaces.take(raw(TOPICS.alerts, msgspec.json.encode(odd)))
    assert set(surfaces.unreadable().values()) == {1}
    surfaces.take(raw(TOPICS.alerts, alert().record()))
    surfaces.show()
    assert len(surfaces.latest.alerts) == len(surfaces.console_content()["incidents"]) == 1


def test_odd_records_are_left_out_of_what_a_command_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A note or alert that anybody may write must not end `mqtwin report`, at each run until retention removes it."""
    own = {"kind": "comment", "action": None, "text": "x", "who": "bob", "alert_id": alert().alert_id}
    notes = [own | {"time": time} for time in ("2026-13-45T99:99:99Z", "2026-11-20T12:00:00Z", "2500-01-01T00:00:00Z")]
    odd = [ALERT | {"data": ALERT["data"] | fields} for fields in ODD_ALERTS.values()]
    topics = {
        TOPICS.notes: [msgspec.json.encode(note) for note in notes],
        TOPICS.alerts: [*map(msgspec.json.encode, odd), alert().record()],
    }
    monkeypatch.setattr(
        "streams.kafka.notes.read_to_end", lambda _, topic: [raw(topic, value) for value in topics[topic]]
    )
    with capture_logs() as lines:
        assert [note.time for note in read_notes({}, TOPICS)] == ["2026-11-20T12:00:00Z"]
        assert list(read_noted_alerts({}, TOPICS)) == [alert().alert_id]
    assert max(line["unreadable"] for line in lines) >= len(odd) // 2


def test_two_open_episodes_of_one_condition_are_one_sample(surfaces: Surfaces) -> None:
    for opened_us in (1, 2):
        surfaces.take(raw(TOPICS.alerts, alert(opened_us=1_795_138_420_000_000 + opened_us).record()))
    assert surfaces.show().count("\nmqtwin_alert_open{") == 1


def test_an_alert_that_moves_to_another_store_is_refused(surfaces: Surfaces, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it was kept it would be looked for in the wrong store when it is forgotten."""
    monkeypatch.setattr("deploy.console.model.MAX_ALERTS", 1)
    for number, store in ((1, "QM01/PS04"), (1, "QM01/PS05"), (2, "QM01/PS04"), (3, "QM01/PS06")):
        event = alert_event(number, store=store)
        surfaces.model.fold([raw(TOPICS.alerts, msgspec.json.encode(event | {"id": f"{number}/{store}"}))])
    assert surfaces.model.unreadable == 1
    assert [content["store"] for content in surfaces.console_content()["incidents"]] == ["QM01/PS06"]


def test_the_log_has_few_lines_of_many_unreadable_records() -> None:
    guard = RecordGuard()
    with capture_logs() as lines:
        for _ in range(1000):
            guard.take(raw(TOPICS.state, b"\xff"), lambda record: read_state_record(record.value or b""))
    assert (guard.unreadable, len(lines)) == (1000, 10)
    assert lines[-1]["unreadable"] == 512 and lines[-1]["topic"] == TOPICS.state


def test_what_is_kept_of_foreign_stores_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.kafka.topic_reader._MAX_ENTRIES", 3)
    latest = Latest(TOPICS)
    for number in range(5):
        latest.apply(raw(TOPICS.state, msgspec.json.encode(page_set(f"QM01/PS{number}", 1))))
        latest.apply(raw(TOPICS.alerts, alert(store=f"QM01/PS{number}").record()))
    assert (len(latest.states), len(latest.alerts), latest.unreadable) == (3, 3, 4)


def test_control_characters_of_an_alert_do_not_reach_a_terminal() -> None:
    record = read_alert_record(
        alert(cause="up\x1b]0;title\x07", store="Q\u009bS", runbook=(Action(id="a", summary="a\nb"),)).record()
    )
    for text in (alert_line(record), alert_block(record, 80).plain.replace("\n", "")):
        assert text.isprintable() and "up\\x1b]0;title\\x07" in text and "Q\\x9bS" in text


def test_an_alert_is_one_line_of_json_whatever_its_record_looks_like() -> None:
    own = alert().record()
    assert read_alert_record(own).line.encode() == own
    foreign = own[:-1] + ',\n"y":"\u009b2J","z":"'.encode() + b'\xff"\n}'
    line = read_alert_record(foreign).line
    assert line.isprintable() and '"y":"\\u009b2J"' in line
    assert msgspec.json.decode(line)["id"] == msgspec.json.decode(own)["id"]


def test_records_with_odd_values_end_no_surface(surfaces: Surfaces) -> None:
    fuzzer = RecordFuzzer(surfaces)
    for number in range(600):
        fuzzer.play(number)
    assert surfaces.latest.unreadable > 50 and surfaces.model.unreadable > 50
