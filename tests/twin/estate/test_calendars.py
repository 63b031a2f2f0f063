"""Planned work of iCalendar files."""

from pathlib import Path
from typing import Any

import pytest

from tests.twin.estate.test_planned import estate_of, us
from twin.base.errors import UsageError
from twin.estate.calendars import Calendar, read_calendar
from twin.estate.planned import Plan, planned_text, read_plan

NOW = us("2026-11-20T00:00:00+00:00")
OTHER = """
[structure."QSG1/APP2"]
coupling_facility = "CF01"
size = "64M"
[queue."QSG1/ORDERS"]
structure = "APP2"
"""
JOB = """SUMMARY:Settlement
CATEGORIES:Batch window,BATCH
DTSTART;TZID=Europe/Berlin:20261120T020000
DURATION:PT2H
RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR
X-MQTWIN-MESSAGES:250000
X-MQTWIN-LENGTH:2048"""
ONCE = """SUMMARY:Migration
DTSTART:20261121T210000Z
DTEND:20261122T030000Z
X-MQTWIN-STORE:QSG1/APP1
X-MQTWIN-GETTERS:away"""


def read(folder: Path, *events: str) -> Calendar:
    estate = estate_of(folder, OTHER)
    bodies = "".join(f"BEGIN:VEVENT\nUID:{place}@x\n{event}\nEND:VEVENT\n" for place, event in enumerate(events))
    file = folder / "jobs.ics"
    file.write_text(
        f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:x\n{bodies}END:VCALENDAR\n", encoding="utf-8", newline="\r\n"
    )
    return read_calendar(file, estate, NOW)


def test_an_event_that_names_a_queue_or_a_store_is_planned_work(tmp_path: Path) -> None:
    assert read(tmp_path, JOB, ONCE) == Calendar(
        [
            (
                "QSG1/APP1",
                {
                    "id": "Settlement",
                    "queue": "BATCH",
                    "from": "2026-11-20T02:00:00+01:00",
                    "rrule": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
                    "duration_s": 7200.0,
                    "messages": 250_000,
                    "length": 2048,
                },
            ),
            (
                "QSG1/APP1",
                {
                    "id": "Migration",
                    "from": "2026-11-21T21:00:00+00:00",
                    "until": "2026-11-22T03:00:00+00:00",
                    "getters": "away",
                },
            ),
        ],
        "",
    )


def test_the_text_for_the_estate_is_read_as_the_same_plan(tmp_path: Path) -> None:
    plans, _ = read(tmp_path, JOB.replace("Settlement", 'Night \\"A\\"'), ONCE)
    estate = estate_of(tmp_path, OTHER + "\n".join(planned_text(store, content) for store, content in plans))
    expected = [read_plan(content, estate.stores[store]) for store, content in plans]
    assert list(estate.planned["QSG1/APP1"]) == expected
    assert isinstance(expected[0], Plan) and expected[0].messages == 250_000


def test_a_cancelled_event_ends_the_plan_of_its_name(tmp_path: Path) -> None:
    [(_, content)], left_out = read(tmp_path, f"{JOB}\nSTATUS:CANCELLED")
    assert (content, left_out) == ({"id": "Settlement", "cancelled": True}, "")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("CATEGORIES:Batch window,BATCH", "CATEGORIES:Lunch"), "1 that names no store or queue of the estate"),
        (("TZID=Europe/Berlin", "TZID=America/New_York"), "Settlement: its times are of America/New_York; expected: a"),
        (("X-MQTWIN-MESSAGES:250000", "X-MQTWIN-MESSAGES:many"), "X-MQTWIN-MESSAGES:many; expected: a number"),
        (
            ("X-MQTWIN-MESSAGES:250000", "X-MQTWIN-MESSAGE:1"),
            "X-MQTWIN-MESSAGE: no such property; did you mean messages?",
        ),
        (("X-MQTWIN-MESSAGES:250000", "X-MQTWIN-NOTE:so"), "Settlement: it announces nothing; expected: messages, "),
        (
            ("DURATION", "X-MQTWIN-STORE:QSG1/APP3\nDURATION"),
            "X-MQTWIN-STORE:QSG1/APP3: no store of the estate; did you",
        ),
        (
            ("DURATION", "EXDATE;TZID=Europe/Berlin:20261125T020000\nDURATION"),
            "EXDATE beside RRULE is not read; expected",
        ),
        (("20261120T020000", "2026"), "Settlement: "),
        (("FREQ=WEEKLY", "FREQ=HOURLY"), "must be an RRULE such as FREQ=DAILY;BYHOUR=2, with FREQ of DAILY"),
    ],
)
def test_other_events_are_left_out_with_the_reason(tmp_path: Path, change: Any, problem: str) -> None:
    plans, left_out = read(tmp_path, JOB.replace(*change), ONCE)
    assert [content["id"] for _, content in plans] == ["Migration"]
    assert problem in left_out and "\n" not in left_out


def test_events_that_are_over_and_those_of_others_are_counted(tmp_path: Path) -> None:
    past = ONCE.replace("202611", "202610")
    plans, left_out = read(tmp_path, past, "SUMMARY:Lunch\nDTSTART:20261121T120000Z", past, ONCE, ONCE)
    assert len(plans) == 1
    counted, _, other = left_out.rpartition("; ")
    assert counted == "1 that names no store or queue of the estate; 2 that are over"
    assert other == "Migration: another event of QSG1/APP1 has its id"


def test_a_file_that_is_not_a_calendar_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "jobs.ics"
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_calendar(file, estate_of(tmp_path), NOW)
    file.write_text("hello", encoding="utf-8")
    with pytest.raises(UsageError, match="expected: an iCalendar file, which begins with BEGIN:VCALENDAR"):
        read_calendar(file, estate_of(tmp_path), NOW)
