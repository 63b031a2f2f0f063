"""Notes on alerts with a real broker: `mqtwin acted`, `acknowledge`, `judge`, the console's, and their topic."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from deploy.cli import main
from deploy.console.live import NoteTaker, TopicFeed
from deploy.console.model import MAX_NOTES_OF_ALERT, ConsoleModel
from streams.kafka.admin import _topic_settings, admin_client, prepare_topics
from streams.kafka.notes import read_notes
from streams.kafka.topics import Topics
from tests.streams.kafka_help import PATIENCE, everything, send
from tests.streams.test_subscribe import alert
from tests.support.alert_entries import topic_record
from twin.base.conditions import CLEARED, UPDATED
from twin.base.errors import UsageError
from twin.records import Note, new_note

ALERT = "QSG1/APP1/threshold/entries/1"
PAGE = "QSG1/APP1/full-forecast/entries/1795176000000000"
HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m"


def with_alert(topics: Topics, kafka: str) -> Topics:
    """Create topics, with one alert, whose runbook has the action `a`."""
    prepare_topics(topics, {"bootstrap.servers": kafka})
    send(kafka, topics.alerts, [alert(1).record()])
    return topics


@pytest.fixture
def topics(kafka: str, topic_prefix: str) -> Topics:
    return with_alert(Topics(topic_prefix), kafka)


@pytest.fixture(scope="module")
def unchanged(kafka: str) -> Topics:
    """Topics that no test writes to."""
    return with_alert(Topics(f"unchanged-{uuid.uuid4().hex[:8]}"), kafka)


def run(topics: Topics, kafka: str, *arguments: str) -> int:
    return main([*arguments, "--bootstrap-servers", kafka, "--topic-prefix", topics.prefix])


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_job_creates_the_topic_and_keeps_notes_for_more_than_a_year(topics: Topics, kafka: str) -> None:
    settings = _topic_settings(admin_client({"bootstrap.servers": kafka}), topics.notes)
    assert settings["cleanup.policy"] == "delete"
    assert int(settings["retention.ms"]) > 366 * 86_400_000
    assert topics.notes not in (*topics.read, *topics.out, *topics.rights)  # the job neither reads nor writes it


def test_who_acted_and_who_acknowledged_is_in_the_topic(
    topics: Topics, kafka: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(topics, kafka, "acknowledge", ALERT, "--who", "ann") == 0
    assert run(topics, kafka, "acted", ALERT, "a", "--who", "bob", "--comment", HOSTILE) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{ALERT} acknowledged by ann"
    assert second == f"{ALERT} a done by bob: <img src=x onerror=alert(1)>\\x1b[31m"  # no note steers a terminal
    written = everything(kafka, topics.notes)
    assert [record.key() for record in written] == [ALERT.encode()] * 2
    notes = read_notes({"bootstrap.servers": kafka}, topics)
    assert [(note.kind, note.action, note.who, note.text) for note in notes] == [
        ("acknowledged", None, "ann", None),
        ("acted", "a", "bob", HOSTILE),
    ]
    assert [msgspec.json.decode(record.value(), type=Note) for record in written] == notes


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["acted", ALERT, "b"], f"action b: alert {ALERT} has none of this id; expected: one of a"),
        (["acted", "X", "a"], f"alert X: there is no such alert; expected: {ALERT}"),
        (["acknowledge", "X"], f"alert X: there is no such alert; expected: {ALERT}"),
        (["acknowledge", ALERT, "--who", " "], "who = '' has 0 characters; expected: 1 to 64"),
        (["acknowledge", ALERT, "--comment", "x" * 501], "has 501 characters; expected: 1 to 500"),
        (["judge", ALERT, "useless"], "expected: one of condition full-forecast that calls or has called"),
    ],
    ids=["action", "acted", "acknowledge", "who", "comment", "judge"],
)
def test_a_note_about_nothing_is_one_line_and_status_2(
    arguments: list[str], expected: str, unchanged: Topics, kafka: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(unchanged, kafka, *arguments) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("mqtwin: ") and line.endswith(expected)
    assert everything(kafka, unchanged.notes) == []


def words_told(kafka: str, topics: Topics) -> list[tuple[bytes, dict[str, Any]]]:
    """Return the key and the content of the events of the topic, which are all NOTEs."""
    events = [(record.key(), msgspec.json.decode(record.value())) for record in everything(kafka, topics.events)]
    assert all(event["op"] == "NOTE" for _, event in events)
    return [(key, event["attributes"] | {"store": event["store"]}) for key, event in events]


def test_what_a_page_was_worth_is_a_note_for_people_and_an_event_for_its_store(
    topics: Topics, kafka: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page = msgspec.structs.replace(alert(1), alert_id=PAGE, condition="full-forecast")
    send(kafka, topics.alerts, [page.record()])
    assert run(topics, kafka, "judge", PAGE, "useless", "--who", "ann") == 0
    assert run(topics, kafka, "judge", PAGE, "none", "--who", "ann", "--comment", "a slip") == 0
    assert run(topics, kafka, "acted", PAGE, "a", "--who", "bob") == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{PAGE} useless by ann",
        f"{PAGE} word taken back by ann: a slip",
        f"{PAGE} a done by bob",
    ]
    model, client = ConsoleModel(topics), {"bootstrap.servers": kafka}
    with TopicFeed(client, topics, model):
        until(lambda: PAGE in model.noted_alerts())
        NoteTaker(client, topics, model).take({"alert_id": PAGE, "kind": "useless", "who": "cy"})
        NoteTaker(client, topics, model).take({"alert_id": PAGE, "kind": "comment", "who": "cy", "text": "x"})
    heard = {"opened": 1_795_176_000_000_000, "store": "QSG1/APP1"}
    words = ("useless", "none", "useful", "useless")
    assert words_told(kafka, topics) == [(b"QSG1/APP1", heard | {"word": word}) for word in words]
    kinds = [note.kind for note in read_notes(client, topics)]
    assert kinds == ["useless", "none", "acted", "useless", "comment"]


def test_an_alert_that_has_cleared_keeps_the_actions_that_it_had(
    topics: Topics, kafka: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cleared = json.loads(alert(2, CLEARED).record())
    cleared["data"]["runbook"] = []
    send(kafka, topics.alerts, [alert(3, UPDATED).record(), json.dumps(cleared).encode()])
    assert run(topics, kafka, "acted", ALERT, "a", "--who", "ann") == 0
    assert run(topics, kafka, "acted", "X", "a", "--who", "ann") == 2
    assert "there is no such alert, and none is open; expected: one that " in capsys.readouterr().err


def test_without_topics_a_note_names_the_missing_alert(
    kafka: str, topic_prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(Topics(topic_prefix), kafka, "acknowledge", ALERT, "--who", "ann") == 2
    assert "there is no such alert, and none is open; expected: one that " in capsys.readouterr().err


def test_a_note_of_the_page_reaches_every_console(topics: Topics, kafka: str) -> None:
    client = {"bootstrap.servers": kafka}
    models = [ConsoleModel(topics), ConsoleModel(topics)]
    with TopicFeed(client, topics, models[0]), TopicFeed(client, topics, models[1]):
        until(lambda: all(model.noted_alerts() for model in models))
        take = NoteTaker(client, topics, models[0]).take
        note = take({"alert_id": ALERT, "kind": "acted", "action": "a", "who": "ann", "text": HOSTILE})
        until(lambda: all(model.notes_on(ALERT) == [note] for model in models))
    send(kafka, topics.notes, [b"{}", msgspec.json.encode(note)])  # no note, and one that is delivered twice
    late = ConsoleModel(topics)
    with TopicFeed(client, topics, late):
        until(lambda: late.is_ready and late.unreadable == 1)
        assert late.notes_on(ALERT) == [note]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ([], "expected: an object with alert_id, kind, who, action, text"),
        ({"alert_id": ALERT, "kind": "acted", "action": "b", "who": "ann"}, "expected: one of a"),
        ({"alert_id": "X", "kind": "comment", "text": "x", "who": "ann"}, f"expected: {ALERT}"),
        ({"alert_id": ALERT, "kind": "comment", "who": "ann"}, "expected: a comment"),
        ({"alert_id": ALERT, "kind": "comment", "who": "ann", "text": 5}, "text"),
    ],
    ids=["list", "action", "alert", "no text", "number"],
)
def test_a_body_that_is_no_note_of_an_alert_is_refused(
    body: object, expected: str, unchanged: Topics, kafka: str
) -> None:
    model = ConsoleModel(unchanged)
    with TopicFeed({"bootstrap.servers": kafka}, unchanged, model):
        until(lambda: bool(model.noted_alerts()))
        with pytest.raises(UsageError, match=re.escape(expected)):
            NoteTaker({"bootstrap.servers": kafka}, unchanged, model).take(body)
    assert everything(kafka, unchanged.notes) == []


def test_notes_sent_at_once_are_counted_before_they_are_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    model, topics = ConsoleModel(Topics()), Topics()
    model.fold([topic_record(topics.alerts, alert(1).record())])
    written: list[Note] = []
    monkeypatch.setattr("deploy.console.live.write_note", lambda _, __, note: written.append(note))
    taker = NoteTaker({}, topics, model)
    body = {"alert_id": ALERT, "kind": "comment", "who": "ann"}

    def take(number: int) -> bool:
        try:
            taker.take({**body, "text": f"comment {number}"})
        except UsageError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(take, range(60))) == len(written) == MAX_NOTES_OF_ALERT
    model.fold([topic_record(topics.notes, msgspec.json.encode(note)) for note in written])
    assert model.notes_on(ALERT) == written and not take(61)


def test_an_alert_takes_a_bounded_number_of_notes(topics: Topics, kafka: str) -> None:
    notes = [new_note(ALERT, "comment", "ann", f"2026-11-20T12:00:{i:02}Z", text="x") for i in range(60)]
    send(kafka, topics.notes, [msgspec.json.encode(note) for note in notes])
    model = ConsoleModel(topics)
    with TopicFeed({"bootstrap.servers": kafka}, topics, model):
        until(lambda: model.notes_on(ALERT)[-1:] == notes[-1:] and bool(model.noted_alerts()))
        assert model.notes_on(ALERT) == notes[-MAX_NOTES_OF_ALERT:]
        with pytest.raises(UsageError, match=f"has {MAX_NOTES_OF_ALERT} notes; expected: at most {MAX_NOTES_OF_ALERT}"):
            NoteTaker({"bootstrap.servers": kafka}, topics, model).take(
                {"alert_id": ALERT, "kind": "comment", "text": "one more", "who": "ann"}
            )
