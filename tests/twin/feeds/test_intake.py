"""Intake of feeds: which events pass, what is kept aside, what is reported."""

from __future__ import annotations

import inspect
import re
from importlib import import_module

import pytest

from twin.base.errors import UsageError
from twin.estate import load_estate
from twin.feeds import FORMATS, Complaint, FeedOptions, Intake, PassedOver, make_feed
from twin.feeds.facts import EstateFacts
from twin.feeds.importing import behind_gaps, ends_of_gaps, sort_events
from twin.feeds.intake import MAX_EXAMPLES

START = 1_795_176_000_000_000


@pytest.fixture
def estate(tmp_path):
    path = tmp_path / "estate.toml"
    path.write_text(
        """
schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[structure."QSG1/APP1"]
size = "1G"
[queue."QSG1/ORDERS"]
structure = "APP1"
""",
        encoding="utf-8",
    )
    return load_estate(path)


def put(**fields):
    return {"time": START, "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 10} | fields


def test_events_of_unknown_names_are_put_aside_with_a_line_for_the_estate(estate):
    intake = Intake(estate)
    intake.facts.add_member("QSG1", "QM01", "test")
    intake.facts.add("queue", "QSG1/NEW", "test", structure="APP1")
    aside = []
    events = [put(), put(queue="NEW"), put(queue="NEW", time=START - 1), put(qmgr="QM09")]
    events.append({"time": START, "qmgr": "QM01", "op": "MEASURE", "store": "QM01/PS04", "measured": {"messages": 1}})
    assert list(intake.sift(events, aside.append)) == [put()]
    assert aside == events[1:]
    assert (intake.events, intake.aside) == (1, 4)
    assert intake.lines_for_unknown() == [
        'QM01/NEW: 2 events from 2026-11-20T11:59:59.999999Z; add [queue."QSG1/NEW"] structure = "APP1"',
        'QM01/QM01/PS04: 1 event from 2026-11-20T12:00:00.000000Z; add [page_set."QM01/4"] pages = ...',
        'QM09/ORDERS: 1 event from 2026-11-20T12:00:00.000000Z; add [queue."QM09/ORDERS"] storage_class = "..."',
    ]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"time": 1}, "event-bad-time"),
        ({"length": 1 << 40}, "event-bad-value"),
        ({"count": 0}, "event-bad-value"),
        ({"op": "MEASURE", "measured": {}}, "event-bad-value"),
    ],
)
def test_an_event_that_no_twin_would_take_is_a_complaint(estate, fields, code):
    intake = Intake(estate)
    assert list(intake.sift([put(**fields)])) == []
    assert dict(intake.counts) == {code: 1}


def test_without_an_estate_no_name_is_unknown():
    intake = Intake()
    assert list(intake.sift([put(qmgr="ANY")])) == [put(qmgr="ANY")]


def test_complaints_are_counted_and_the_first_of_each_code_kept():
    intake = Intake()
    for number in range(100):
        intake.complain("truncated", f"file, byte {number}", "record of 10 bytes; expected: 20")
    assert intake.counts["truncated"] == 100
    assert len(intake.complaints) == MAX_EXAMPLES
    assert str(intake.complaints[0]) == "file, byte 0: record of 10 bytes; expected: 20 (truncated)"


def test_a_complaint_is_one_line_whatever_a_damaged_name_holds():
    intake = Intake()
    intake.complain("partial", "page 1, byte 880: OTHER\n\x1b[2J\u2028", "its name is \r\x85")
    (complaint,) = intake.complaints
    assert str(complaint) == "page 1, byte 880: OTHER\\n\\x1b[2J\\u2028: its name is \\r\\x85 (partial)"


def test_what_a_feed_yields_is_counted_for_its_input(estate):
    intake = Intake(estate)
    intake.begin_input("page 1")
    items = [Complaint("foreign", "page 1", "what", 3), put(), PassedOver("record of other types", "SMF 30", 2, size=9)]
    assert list(intake.sift(items)) == [put()]
    (own,) = intake.inputs
    assert (own.not_understood, own.passed_over, intake.counts["foreign"]) == (3, 2, 3)
    assert intake.lines_for_passed_over() == ["2 records of other types, 9 bytes (2 of SMF 30)"]


def test_a_feed_yields_its_complaints():
    """So that what is around it can count them; none goes to the intake by itself."""
    for form in FORMATS.values():
        source = inspect.getsource(import_module(f"twin.feeds.{form.reader.partition(':')[0]}"))
        assert not re.search(r"\.(complain|pass_over)\(", source), form.name


def test_only_the_first_source_of_a_queue_counts_its_puts_and_gets():
    intake = Intake()
    assert intake.claim("QM01", "ORDERS", "QQST") is None
    assert intake.claim("QM01", "ORDERS", "QQST") is None
    assert intake.claim("QM01", "ORDERS", "WQ").code == "two-sources"
    assert intake.claim("QM02", "ORDERS", "WQ") is None


def test_single_calls_have_no_missing_intervals():
    intake = Intake()
    for second in (0, 7):
        time = START + second * 1_000_000
        intake.cover("OTLP", "QM01", "ORDERS", (time, time), puts=1)
    assert intake.coverage["OTLP", "QM01", "ORDERS"].gaps_us == 0


def test_coverage_sums_intervals_and_finds_what_is_missing():
    intake = Intake()
    for start, end in ((0, 60), (60, 120), (180, 240)):
        intake.cover("QQST", "QM01", "ORDERS", (start * 10**6, end * 10**6), puts=5, gets=4, peak_error=start)
    (cover,) = intake.coverage.values()
    assert (cover.intervals, cover.puts, cover.gets, cover.peak_error) == (3, 15, 12, 180)
    assert (cover.longest_us, cover.gaps_us) == (60_000_000, 60_000_000)


@pytest.mark.parametrize(
    ("minutes", "gaps"),
    [
        ([(0, 15), (15, 30)], []),
        ([(0, 15), (30, 45)], [(15, 30)]),
        ([(30, 45), (0, 15)], [(15, 30)]),
        ([(0, 15), (30, 45), (15, 30)], []),
        ([(0, 15), (45, 60), (20, 30)], [(15, 20), (30, 45)]),
        ([(0, 15), (15, 30), (0, 30)], []),
        ([(0, 15), (15.5, 30)], []),  # clocks of collectors
    ],
)
def test_time_that_nobody_has_reported_is_known_in_any_order(minutes, gaps):
    intake = Intake()
    for start, end in minutes:
        intake.note_reported("QQST", "QM01", (int(start * 60e6), int(end * 60e6)))
    assert sorted(intake.reported["QQST", "QM01"].gaps) == [(low * 60_000_000, high * 60_000_000) for low, high in gaps]


def test_a_measurement_behind_a_gap_in_the_counts_is_taken_over(estate):
    intake = Intake(estate)
    for start, end in ((0, 15), (30, 45)):
        interval = (int(start * 60e6), int(end * 60e6))
        intake.cover("QQST", "QM01", "ORDERS", interval, puts=1)
        intake.note_reported("QQST", "QM01", interval)
    measured = ({"ents_used": 5, "ents_max": 9}, {"queues": [{"name": "ORDERS", "depth": 5}]})
    events = [
        {"time": int(minute * 60e6), "qmgr": "QM01", "op": "MEASURE", "store": store, "measured": dict(own)}
        for minute in (10, 20, 31, 36)
        for store in ("QSG1/APP1", "QM01/PS04")
        for own in measured
    ]
    seen = [event for event in behind_gaps(events, ends_of_gaps([intake], estate)) if event["measured"].get("resync")]
    assert [(event["time"], event["store"]) for event in seen] == [(31 * 60_000_000, "QSG1/APP1")]


def test_dynamic_queues_are_one_row_of_what_was_covered():
    intake = Intake()
    for number in range(14):
        intake.cover("QSTATS", "QMD1", f"AMQ.65A1B2C3{number:08X}", (0, 60 * 10**6), puts=number, gets=1)
    [cover] = intake.coverage.values()
    assert (cover.name, cover.puts, cover.gets, cover.gaps_us) == ("dynamic queues", 91, 14, 0)


@pytest.mark.parametrize("run_events", [1, 3, 1000])
def test_events_are_sorted_by_time_in_memory_of_any_size(run_events):
    events = [put(time=START + (n * 7) % 11, length=n) for n in range(50)]
    events += [put(time=START, op="MEASURE"), put(time=START, op="GET"), put(time=START, length=99)]
    ordered = list(sort_events(events, run_events))
    at_start = [event for event in ordered if event["time"] == START]
    assert [event["time"] for event in ordered] == sorted(event["time"] for event in events)
    assert [event["op"] for event in at_start] == ["PUT"] * 6 + ["GET", "MEASURE"]
    assert [event["length"] for event in at_start[:6]] == [0, 11, 22, 33, 44, 99]


def test_facts_are_lines_of_an_estate():
    seen = EstateFacts()
    seen.add_member("QSG1", "QM02", "a")
    seen.add_member("QSG1", "QM01", "b")
    seen.add("queue_manager", "QMD1", "c", platform="distributed")
    assert seen.value("queue_sharing_group", "QSG1", "queue_managers") == ["QM01", "QM02"]
    assert seen.group_of("QM01") == "QSG1"
    assert seen.group_of("QM09") is None
    assert seen.line_for("QMD1", "Q", None) == '[queue_file."QMD1/Q"]'
    assert seen.line_for("QM01", None, "QSG1/APP1") == '[structure."QSG1/APP1"] size = "..."'
    assert seen.line_for("QM01", None, None) == "[queue_manager.QM01]"


def test_an_unknown_format_is_an_error_that_lists_the_formats():
    with pytest.raises(UsageError, match="no such format"):
        make_feed("cobol", Intake(), FeedOptions())
