"""The console's model: what it keeps, in which order, and how little."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from msgspec.structs import replace

from deploy.console import model as module
from deploy.console.model import ConsoleModel, commands_in
from deploy.console.points import History, Point, points_per_store
from streams.kafka.topics import TopicRecord
from tests.support.console_feed import (
    TOPICS,
    alert_event,
    alert_record,
    distant_forecast,
    letter_record,
    note_record,
    page_set,
    state_record,
)
from tests.support.twin_driver import ScmDriver
from twin.base.units import as_seconds, as_text, zone_of
from twin.records import Note, PageSetState, StructureState, new_note, resources_of

FILLING = {
    "time": "2026-11-20T12:00:00Z",
    "resources": [
        {
            "resource": "pages",
            "usage_pct": 40.0,
            "full_probability": 0.8,
            "time_to_full_s": {"p10": 500.0, "p50": 600.0, "p90": 900.0},
        }
    ],
}


def changes(model: ConsoleModel, since: int = 0) -> dict:
    return msgspec.json.decode(model.changes(since)[1])


def by_urgency(model: ConsoleModel) -> list[str]:
    stores = changes(model)["stores"]
    return [store["store"] for store in sorted(stores, key=lambda store: -store["urgency"])]


def test_open_alerts_come_first_then_time_left_then_usage():
    model = ConsoleModel(TOPICS)
    model.fold([state_record(page_set(name, used)) for name, used in (("QM01/PS01", 9_000), ("QM01/PS02", 100))])
    model.fold([state_record(page_set("QM01/PS03", 4_000, forecast=FILLING)), state_record(page_set("QM01/PS04", 10))])
    model.fold([alert_record(alert_event())])
    assert by_urgency(model) == ["QM01/PS04", "QM01/PS03", "QM01/PS01", "QM01/PS02"]
    model.fold([alert_record(alert_event(change="cleared"))])
    assert by_urgency(model) == ["QM01/PS03", "QM01/PS01", "QM01/PS02", "QM01/PS04"]


def part_of(incident: str, role: str = "part", opened: str = "2026-11-20T12:00:00.000000Z") -> dict[str, str]:
    return {"id": incident, "role": role, "opened": opened}


def test_the_page_has_the_planned_work_of_a_store_that_has_some():
    work = {"id": "A", "queue": None, "announced": 5, "seen": None, "getters_away": False, "status": "planned"}
    plans = [work | {"begins": "2026-11-20T12:00:00Z", "ends": "2026-11-20T13:00:00Z"}]
    model = ConsoleModel(TOPICS)
    model.fold([state_record(page_set("QM01/PS01", 1, plans=plans)), state_record(page_set("QM01/PS02", 1))])
    assert [store.get("plans") for store in changes(model)["stores"]] == [plans, None]


def test_a_watch_is_no_page():
    model = ConsoleModel(TOPICS)
    model.fold([state_record(page_set("QM01/PS04", 10))])
    model.fold([alert_record(alert_event(level="watch", severity="info"))])
    (store,), (incident,) = changes(model)["stores"], changes(model)["incidents"]
    assert (store["severity"], incident["severity"], incident["is_page"]) == ("info", "info", False)
    assert incident["root"]["level"] == "watch"


def test_an_alert_keeps_the_time_at_which_it_opened_and_the_fields_that_are_new_here():
    model = ConsoleModel(TOPICS)
    later = alert_event(change="updated", time="2026-11-20T12:10:00Z", evidence=["no get for 62 min"])
    model.fold([alert_record(alert_event()), alert_record(later), alert_record(later)])
    (incident,) = changes(model)["incidents"]
    alert = incident["root"]
    assert (alert["opened"], alert["time"]) == ("2026-11-20T12:00:00.000000Z", "2026-11-20T12:10:00Z")
    assert alert["evidence"] == ["no get for 62 min"]
    assert alert["actions"][0]["commands"] == ["DISPLAY QSTATUS(ORDERS) TYPE(QUEUE) ALL"]


def test_a_store_is_as_red_as_the_root_of_its_incident_and_no_part():
    model = ConsoleModel(TOPICS)
    root = alert_event(1, severity="warning", condition="full-forecast", incident=part_of("i1", "root"))
    part = alert_event(2, severity="info", level="watch", incident=part_of("i1"))
    more = alert_event(3, severity="critical", incident=part_of("i1"))
    model.fold([state_record(page_set("QM01/PS04", 10)), *map(alert_record, (root, part, more))])
    (store,), (incident,) = changes(model)["stores"], changes(model)["incidents"]
    assert store["severity"] == incident["severity"] == "warning"
    assert incident["root"]["alert_id"].endswith("/1")
    assert [alert["alert_id"][-1] for alert in incident["parts"]] == ["3", "2"]


def test_an_incident_shows_its_cleared_alerts_and_once_closed_the_worst_of_them():
    model = ConsoleModel(TOPICS)
    alerts = [
        alert_event(1, severity="full", condition="full", incident=part_of("i1", "root")),
        alert_event(2, severity="info", level="watch", incident=part_of("i1")),
    ]
    model.fold(list(map(alert_record, alerts)))
    later = {"time": "2026-11-20T12:10:00.000000Z"}
    full, watch = alert_event(1, "cleared", **alerts[0]["data"] | later), alerts[1]["data"]
    watch = alert_event(2, "updated", **watch | later | {"incident": part_of("i1", "root")})
    model.fold([alert_record(full), alert_record(watch)])
    (incident,) = changes(model)["incidents"]
    assert (incident["is_open"], incident["is_page"], incident["severity"]) == (True, False, "info")
    assert [incident["root"]["condition"]] + [alert["condition"] for alert in incident["cleared"]] == [
        "threshold",
        "full",
    ]
    model.fold([alert_record(alert_event(2, "cleared", **watch["data"] | {"time": "2026-11-20T12:20:00.000000Z"}))])
    (incident,) = changes(model)["incidents"]
    assert (incident["is_open"], incident["severity"], incident["time"]) == (False, "", "2026-11-20T12:20:00.000000Z")
    assert (incident["root"]["condition"], [alert["alert_id"][-1] for alert in incident["cleared"]]) == ("full", ["2"])


def test_a_closed_incident_stays_when_its_store_has_the_next_one():
    model = ConsoleModel(TOPICS)
    model.fold([alert_record(alert_event(1, incident=part_of("i1", "root")))])
    model.fold([alert_record(alert_event(1, "cleared", incident=part_of("i1", "root")))])
    model.fold([alert_record(alert_event(2, incident=part_of("i2", "root")))])
    assert [(incident["id"], incident["is_open"]) for incident in changes(model)["incidents"]] == [
        ("i1", False),
        ("i2", True),
    ]


def test_an_alert_that_passes_to_the_next_incident_leaves_the_former_one():
    model = ConsoleModel(TOPICS)
    watch = {"severity": "info", "level": "watch", "condition": "drift"}
    model.fold([alert_record(alert_event(1, incident=part_of("i1"), **watch))])
    version = model.version
    moved = alert_event(1, "updated", incident=part_of("i2"), **watch)
    model.fold([alert_record(alert_event(2, incident=part_of("i2", "root"))), alert_record(moved)])
    (incident,) = changes(model)["incidents"]
    assert (incident["id"], [alert["condition"] for alert in incident["parts"]]) == ("i2", ["drift"])
    assert changes(model, version)["forgotten"] == ["i1"]


def test_an_id_of_an_incident_that_another_store_uses_again_is_the_incident_of_that_store():
    model = ConsoleModel(TOPICS)
    model.fold([state_record(page_set(name, 10)) for name in ("QM01/PS04", "QM01/PS05")])
    own = {"incident": part_of("i1", "root")}
    model.fold([alert_record(alert_event(1, **own)), alert_record(alert_event(1, "cleared", **own))])
    model.fold([alert_record(alert_event(2, incident=part_of("i2", "root")))])
    model.fold([alert_record(alert_event(3, store="QM01/PS05", alert_id="QM01/PS05/threshold/pages/3", **own))])
    incidents = {incident["id"]: incident["store"] for incident in changes(model)["incidents"]}
    assert incidents == {"i1": "QM01/PS05", "i2": "QM01/PS04"}
    assert model.unreadable == 0


@pytest.mark.parametrize(
    ("used", "forecast", "full"),
    [
        (9_900, distant_forecast(probability=0.5), ["pages"]),
        (7_000, None, ["pages"]),  # nothing else says whether puts succeed
        (7_000, distant_forecast(), []),  # it drains, the alert waits ten minutes
        (7_000, "now", ["pages"]),  # the twin counts less than the store has: puts fail
    ],
)
def test_a_store_is_full_now_while_its_alert_is_open_and_puts_do_not_succeed_again(used, forecast, full):
    times = {"p10": 0.0, "p50": 0.0, "p90": 0.0}
    if forecast == "now":
        now = {"resource": "pages", "usage_pct": 70.0, "full_probability": 1.0, "time_to_full_s": times}
        forecast = {"time": "2026-11-20T12:00:00Z", "resources": [now]}
    model = ConsoleModel(TOPICS)
    model.fold([state_record(page_set("QM01/PS04", used, forecast=forecast))])
    assert changes(model)["stores"][0]["full"] == []
    model.fold([alert_record(alert_event(severity="full", condition="full"))])
    assert changes(model)["stores"][0]["full"] == full


def test_a_client_that_was_away_gets_the_latest_of_each_store_once():
    model = ConsoleModel(TOPICS)
    model.fold([state_record(page_set("QM01/PS01", 1)), state_record(page_set("QM01/PS02", 1))])
    version = model.version
    assert changes(model, version)["stores"] == []
    for used in range(2, 50):
        model.fold([state_record(page_set("QM01/PS02", used, time=f"2026-11-20T12:00:{used:02}Z"))])
    (store,) = changes(model, version)["stores"]
    assert (store["store"], store["fields"]["pages_used"]) == ("QM01/PS02", 49)


def test_history_is_bounded_and_keeps_beginning_and_end():
    history = History()
    for second in range(10_000):
        history.add(Point(float(second), {"pages": 1.0}, None), 480)
    times = history.columns()["times"]
    assert len(times) <= 480
    assert (times[0], times[-1]) == (0.0, 9_999.0)
    assert times == sorted(times)
    assert points_per_store(1) == 480 and points_per_store(5_000) == 60


@pytest.mark.parametrize(("max_points", "max_gap_s"), [(480, 540.0), (60, 4_320.0)])  # 540: a fortieth of the time
def test_history_keeps_every_peak_and_grows_no_thinner_with_age(max_points, max_gap_s):
    """Six hours of teeth, a sample every two seconds: a rise of an hour, a fall within a minute."""
    peaks = (86.8, 89.8, 91.3, 87.4, 99.2)
    history = History()
    for tooth, peak in enumerate(peaks):
        for second in range(0, 4_320, 2):
            level = peak * second / 3_600 if second <= 3_600 else max(2.0, peak * (1 - (second - 3_600) / 60))
            others = {"entries": level / 7, "smds/QM01": (second % 600) / 10}
            history.add(Point(tooth * 4_320.0 + second, {"elements": level, **others}, None), max_points)
    columns = history.columns()
    times, elements = columns["times"], columns["pct"]["elements"]
    assert len(times) <= max_points
    assert times == sorted(set(times)) and (times[0], times[-1]) == (0.0, 21_598.0)
    for tooth, peak in enumerate(peaks):
        own = [
            level for time, level in zip(times, elements, strict=True) if tooth * 4_320 <= time < (tooth + 1) * 4_320
        ]
        assert max(own) == peak
        assert min(own) <= 2.0
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert max(gaps) <= max_gap_s


def test_a_store_with_more_resources_than_points_is_bounded_too():
    history = History()
    for second in range(1_000):
        pct = {f"smds/QM{number:02}": float((second * (number + 3)) % 101) for number in range(40)}
        history.add(Point(float(second), pct, None), 60)
    assert len(history) <= 60 and history.columns()["times"][-1] == 999.0


def test_a_recording_that_begins_anew_begins_a_new_history():
    history = History()
    for second in (100.0, 110.0, 110.0, 5.0):
        history.add(Point(second, {"pages": second}, None), 480)
    assert history.columns()["times"] == [5.0]


def test_what_is_kept_has_a_bound(monkeypatch):
    monkeypatch.setattr(module, "MAX_STORES", 3)
    monkeypatch.setattr(module, "MAX_ALERTS", 4)
    monkeypatch.setattr(module, "MAX_REASONS", 2)
    model = ConsoleModel(TOPICS)
    model.fold([state_record(page_set(f"QM01/PS{number:02}", 1)) for number in range(10)])
    model.fold(
        [alert_record(alert_event(1, "cleared"))] + [alert_record(alert_event(number)) for number in range(2, 9)]
    )
    model.fold([letter_record(f"reason-{number}", number) for number in range(500)])
    everything = changes(model)
    assert len(everything["stores"]) == 3
    assert [incident["root"]["alert_id"][-1] for incident in everything["incidents"]] == ["5", "6", "7", "8"]
    assert sum(everything["letters"]["reasons"].values()) == 500
    assert len(everything["letters"]["reasons"]) == 3 and len(everything["letters"]["latest"]) == 200


def note(number: int, alert_id: str = "QM01/PS04/threshold/pages/1") -> Note:
    return new_note(alert_id, "comment", "ann", f"2026-11-20T12:{number:02}:00Z", text="x")


def shown_notes(model: ConsoleModel) -> dict[str, list[dict]]:
    return {own["root"]["alert_id"]: own["root"]["notes"] for own in changes(model)["incidents"]}


def test_a_note_changes_its_alert_and_may_be_read_before_it():
    model = ConsoleModel(TOPICS)
    model.fold([note_record(note(1)), note_record(note(1)), alert_record(alert_event())])
    version = model.version
    model.fold([note_record(note(2)), note_record(note(1))])
    (incident,) = changes(model, version)["incidents"]
    assert [own["time"] for own in incident["root"]["notes"]] == ["2026-11-20T12:01:00Z", "2026-11-20T12:02:00Z"]
    version = model.version
    model.fold([note_record(note(2)), note_record(note(3, "somebody-else"))])
    assert model.version == version
    model.fold([alert_record(alert_event(change="cleared", time="2026-11-20T12:30:00Z"))])
    (incident,) = changes(model, version)["incidents"]
    assert len(incident["root"]["notes"]) == 2


def test_notes_are_bounded_and_go_with_their_alert(monkeypatch):
    monkeypatch.setattr(module, "MAX_NOTES", 4)
    monkeypatch.setattr(module, "MAX_NOTES_OF_ALERT", 3)
    monkeypatch.setattr(module, "MAX_ALERTS", 2)
    model = ConsoleModel(TOPICS)
    alert_id = "QM01/PS04/threshold/pages/1"
    model.fold([alert_record(alert_event()), *(note_record(note(number)) for number in range(5))])
    assert model.notes_on(alert_id) == [note(2), note(3), note(4)]
    other = alert_event(2)["data"]["alert_id"]
    model.fold([alert_record(alert_event(2)), *(note_record(note(number, other)) for number in (5, 6))])
    assert (len(model.notes_on(alert_id)), len(model.notes_on(other))) == (0, 2)
    assert [len(notes) for _, notes in sorted(shown_notes(model).items())] == [0, 2]
    model.fold([note_record(note(7)), *(alert_record(alert_event(number)) for number in (3, 4))])
    assert model.notes_on(alert_id) == []


def test_notes_that_somebody_else_writes_hide_none_of_an_alert(monkeypatch):
    """Neither those on alerts that there are not, nor a time that lies ahead: the order is that of the topic."""
    monkeypatch.setattr(module, "MAX_NOTES", 10)
    monkeypatch.setattr(module, "MAX_EARLY_NOTES", 5)
    model = ConsoleModel(TOPICS)
    alert_id = "QM01/PS04/threshold/pages/1"
    ahead = [new_note(f"none/{i}", "comment", "eve", "2099-01-01T00:00:00Z", text="x") for i in range(100)]
    model.fold([alert_record(alert_event()), note_record(note(1)), *map(note_record, ahead), note_record(note(2))])
    assert model.notes_on(alert_id) == [note(1), note(2)]
    assert sum(len(model.notes_on(own.alert_id)) for own in ahead) == 5
    second = alert_event(2)["data"]["alert_id"]
    late = [new_note(second, "comment", "eve", "2099-01-01T00:00:00Z", text=str(i)) for i in range(9)]
    model.fold([alert_record(alert_event(2)), *map(note_record, late), note_record(note(3))])
    assert model.notes_on(alert_id)[-1:] == [note(3)]  # the last in the topic is shown, whatever its time
    model.fold([note_record(note(4, "QM01/PS04/threshold/pages/3")), alert_record(alert_event(3))])
    assert [own["time"] for own in shown_notes(model)["QM01/PS04/threshold/pages/3"]] == [note(4).time]


def test_a_note_costs_the_same_however_many_there_are():
    """Each looked at all of them: a million took minutes."""
    looked_at = 0

    class Counting(list):
        def __len__(self) -> int:
            nonlocal looked_at
            looked_at += 1
            return super().__len__()

    book = module._NoteBook(1_000)
    counts = []
    for _ in range(2):
        looked_at = 0
        for number in range(2_000):
            book.add(note(number % 60, f"alert {number}"))
            book._by_alert[f"alert {number}"] = Counting(book.notes_on(f"alert {number}"))
        counts.append(looked_at)
    assert counts[1] <= 2 * counts[0] <= 8_000


def test_a_client_learns_which_incidents_were_forgotten(monkeypatch):
    monkeypatch.setattr(module, "MAX_ALERTS", 2)
    model = ConsoleModel(TOPICS)
    model.fold([alert_record(alert_event(number)) for number in (1, 2)])
    version = model.version
    model.fold([alert_record(alert_event(3))])
    assert changes(model, version)["forgotten"] == ["QM01/PS04/threshold/pages/1"]


def test_an_incident_loses_the_alerts_that_were_forgotten(monkeypatch):
    monkeypatch.setattr(module, "MAX_ALERTS", 3)
    model = ConsoleModel(TOPICS)
    for number in range(1, 6):
        model.fold([alert_record(alert_event(number, incident=part_of("i1", "root" if number == 1 else "part")))])
    (incident,) = changes(model)["incidents"]
    assert {alert["alert_id"][-1] for alert in [incident["root"], *incident["parts"]]} == {"3", "4", "5"}


@pytest.mark.parametrize("value", [b"\xff", b"[]", b"{}", b'{"store":"QM01/PS01","kind":"page_set","time":3}'])
def test_a_record_that_cannot_be_read_is_counted_and_changes_nothing_else(value):
    model = ConsoleModel(TOPICS)
    for topic in (TOPICS.state, TOPICS.alerts):
        model.fold([TopicRecord(topic, 0, value, {})])
    model.fold([state_record(page_set("QM01/PS02", 1)), TopicRecord(TOPICS.alerts, 0, None, {})])
    everything = changes(model)
    assert everything["meta"]["unreadable"] == 2
    assert "QM01/PS02" in [store["store"] for store in everything["stores"]]


def test_two_hundred_stores_fit_in_one_answer_and_cost_little():
    model = ConsoleModel(TOPICS)
    model.fold([state_record(page_set(f"QM01/PS{number:03}", number)) for number in range(200)])
    version, content = model.changes(0)
    assert len(msgspec.json.decode(content)["stores"]) == 200
    assert len(content) < 200_000
    assert len(model.changes(version)[1]) < 1_000


@pytest.mark.parametrize(
    ("action", "commands"),
    [
        (
            "RESET SMDS(QM1) CFSTRUCT(B) ACCESS(DISABLED), copy the data, RESET SMDS(QM1) CFSTRUCT(B) ACCESS(ENABLED)",
            ["RESET SMDS(QM1) CFSTRUCT(B) ACCESS(DISABLED)", "RESET SMDS(QM1) CFSTRUCT(B) ACCESS(ENABLED)"],
        ),
        (
            "Raise SIZE in the CFRM policy, then SETXCF START,REBUILD,STRNAME=QSG1APP1",
            ["SETXCF START,REBUILD,STRNAME=QSG1APP1"],
        ),
        ("Contract another structure (SETXCF START,ALTER,STRNAME=...,SIZE=...) or wait", []),
        ("Display its SCM: D CF,CFNAME=CF01", ["D CF,CFNAME=CF01"]),
        ("Start more getters on ORDERS, or find out why its getters stopped", []),
    ],
)
def test_commands_are_found_in_the_words_of_an_action(action, commands):
    assert commands_in(action) == commands


def test_resources_of_a_structure_carry_mq_words_and_the_status_of_a_data_set():
    empty = msgspec.convert(ScmDriver().state(), StructureState)
    scm = replace(empty.scm, used=0, max=1024)
    failed = replace(empty.smds["QM01"], blocks_used=3, blocks_total=4, blocks_max=4, status="FAILED")
    state = replace(empty, ents_used=50, ents_max=100, elems_used=10, elems_max=100, smds={"QM01": failed}, scm=scm)
    entries, elements, data_set, scm = resources_of(state)
    assert (entries.pct, entries.unit) == (50.0, "entries (ENTSUSED)")
    assert elements.pct == 10.0 and scm.name == "scm"
    assert (data_set.name, data_set.pct, data_set.note) == ("smds/QM01", 75.0, "EXPANDST(FAILED)")


def test_the_usage_of_a_data_set_that_expands_is_of_its_present_size_beside_what_it_can_become():
    state = msgspec.convert(page_set("QM01/PS04", 30, pages_total=40, pages_max=120), PageSetState)
    [pages] = resources_of(state)
    [expanded] = resources_of(replace(state, pages_total=80))
    assert (pages.pct, pages.maximum_pct, pages.total, pages.maximum) == (75.0, 25.0, 40, 120)
    assert (expanded.pct, expanded.maximum_pct) == (37.5, 25.0)  # the history, as the forecast, is of the maximum


@pytest.mark.parametrize(
    ("total", "usage", "in_use", "amount", "label"),
    [
        (
            1_200,
            "100.0 % in use",
            "of pages in use, can grow to 1.3 times as many pages",
            "1,200 of 1,200 pages, can grow to 1,600",
            "pages, of what it can grow to",
        ),
        (1_600, "75.0 % in use", "of pages in use", "1,200 of 1,600 pages", "pages"),
    ],
)
def test_a_usage_is_of_the_present_size_beside_what_the_resource_can_grow_to(total, usage, in_use, amount, label):
    state = msgspec.convert(page_set("QM01/PS04", 1_200, pages_total=total, pages_max=1_600), PageSetState)
    [pages] = resources_of(state)
    assert (pages.text, pages.share_text, pages.amount_text, pages.maximum_label) == (
        usage,
        in_use,
        amount,
        label,
    )


def test_what_was_not_measured_has_no_usage_and_says_so():
    model = ConsoleModel(TOPICS)
    model.fold([state_record(page_set("QM01/PS04", None) | {"messages": None})])
    (store,) = changes(model)["stores"]
    [pages] = store["resources"]
    assert (pages["pct"], pages["maximum_pct"], pages["note"]) == (None, None, "not measured")
    assert (pages["usage"], pages["amount"]) == ("not measured", "")
    assert model.history("QM01/PS04")["pct"] == {}


def test_a_store_of_which_a_part_is_reported_says_which():
    share = {"share": 0.2, "low": 0.17, "high": 0.24}
    coverage = {"ORDERS": {"puts_seen": share, "gets_seen": None, "since": "2026-11-20T12:00:00Z"}}
    model = ConsoleModel(TOPICS)
    model.fold([state_record(page_set("QM01/PS04", 900, coverage=coverage))])
    (store,) = changes(model)["stores"]
    assert store["seen"] == "20 % of the puts of ORDERS are seen"


def test_a_store_of_a_kind_that_is_not_known_is_shown_without_resources():
    assert resources_of({"kind": "channel"}) == []


def foreseen(probability: float, **state) -> dict:
    times = {"p10": 900.0, "p50": 1091.0, "p90": 1500.0}
    first = {"resource": "pages", "usage_pct": 9.0, "full_probability": probability, "time_to_full_s": times}
    record = page_set("QM01/PS04", 900, forecast={"time": "2026-11-20T12:00:00Z", "resources": [first]}, **state)
    model = ConsoleModel(TOPICS)
    model.fold([state_record(record)])
    (store,) = changes(model)["stores"]
    return store


@pytest.mark.parametrize(("probability", "chance"), [(0.31, "not sure (31 %)"), (0.01, "unlikely (1 %)")])
def test_a_store_that_rises_says_so_where_it_is_not_likely_to_fill(probability: float, chance: str):
    assert foreseen(probability)["rises"] == f"rises, 18 min at this rate, {chance}"
    assert "rises" not in foreseen(0.5)


def test_the_page_is_told_the_zone_of_the_site_with_its_periods():
    now = as_seconds("2026-11-20T12:00:00Z")
    model = ConsoleModel(TOPICS, clock=lambda: now, zone=zone_of("Europe/Zurich"))
    periods = changes(model)["meta"]["zone"]
    begin, ahead, name = max(own for own in periods if own[0] <= now)
    assert (as_text(begin * 1_000_000)[:19], ahead, name) == ("2026-10-25T01:00:00", 3600, "CET")
    assert changes(ConsoleModel(TOPICS))["meta"]["zone"] == [[0, 0, "UTC"]]
