"""SMF 74 subtype 4 and printed reports of RMF: what coupling facilities say of structures."""

from __future__ import annotations

from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.twin.feeds.samples import IN_USE, RMF_PRINT
from tests.twin.feeds.smf_made import END, MINUTE, facility, record, structure
from twin.estate import Estate, load_estate
from twin.events import Event
from twin.feeds import FeedOptions, Intake, Page, make_feed
from twin.feeds.importing import feed_events

ESTATE = """
schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[coupling_facility.CF01]
size = "4G"
scm = "16G"
[structure."QSG1/APP1"]
size = "2M"
scm_max_size = "8M"
coupling_facility = "CF01"
[structure."QSG1/APP2"]
size = "2M"
coupling_facility = "CF01"
"""
BEGIN = END - 15 * MINUTE
ZONE = timezone(timedelta(hours=1))
SHARED = Path(__file__).parents[4] / "shared" / "fixtures" / "night" / "rmf.txt"


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    path = tmp_path / "estate.toml"
    path.write_text(ESTATE, encoding="utf-8")
    return load_estate(path)


def read(name: str, data: bytes, estate: Estate | None, **options: Any) -> tuple[list[Event], Intake]:
    intake = Intake(estate)
    feed = make_feed(name, intake, FeedOptions(**options))
    return list(intake.sift(feed_events(feed, [Page(data, "input")]))), intake


def measured_by_store(events: list[Event]) -> dict[str, Any]:
    return {event["store"]: event["measured"] for event in events}


def test_structures_and_their_facility_are_measured_at_the_end_of_the_interval(estate: Estate) -> None:
    events, intake = read("smf", facility([structure("QSG1APP1"), structure("QSG1APP2", elements=600)]), estate)
    assert [(event["store"], event["time"], event["qmgr"]) for event in events] == [
        ("QSG1/APP1", END, "QM01"),
        ("QSG1/APP2", END, "QM01"),
        ("CF01", END, "QM01"),
    ]
    levels = {"ents_max": 100, "ents_used": 12, "elems_max": 600, "elems_used": 60, "size": 1 << 20}
    assert events[0]["measured"] == levels
    assert events[1]["measured"] == levels | {"elems_used": 600}
    assert events[2]["measured"] == {"storage_free": 400_000 * 4096}
    assert not intake.counts
    assert {cover.start for cover in intake.coverage.values()} == {BEGIN}


def test_without_a_clock_value_the_local_time_and_its_offset_say_when(estate: Estate) -> None:
    events, _ = read("smf", facility([structure("QSG1APP1")], has_clock=False), estate)
    assert {event["time"] for event in events} == {END}


def test_scm_is_that_of_the_structure_that_has_its_index(estate: Estate) -> None:
    structures = [structure("QSG1APP2"), structure("QSG1APP1", scm_index=1, scm_count=1)]
    scm = [{"max": 2048, "used": 512}]
    events, intake = read("smf", facility(structures, scm, scm_total=4_000_000, scm_free=3_000_000), estate)
    by_store = measured_by_store(events)
    assert by_store["QSG1/APP1"]["scm"] == {"max": 8 << 20, "used": 2 << 20} and "scm" not in by_store["QSG1/APP2"]
    assert by_store["CF01"] == {
        "storage_free": 400_000 * 4096,
        "scm_total": 4_000_000 * 4096,
        "scm_used": 1_000_000 * 4096,
    }
    assert not intake.counts


def test_scm_of_an_index_that_cannot_be_is_left_out_with_a_complaint(estate: Estate) -> None:
    data = facility([structure("QSG1APP1", scm_index=7, scm_count=1)], [{"max": 2048, "used": 512}])
    events, intake = read("smf", data, estate)
    assert "scm" not in events[0]["measured"] and set(intake.counts) == {"inconsistent"}


@pytest.mark.parametrize(
    "values",
    [{"elements": 601}, {"size": 1}, {"size_min": 300}, {"size_max": 255}, {"elements_max": 4097}, {"length": 236}],
)
def test_fields_that_contradict_each_other_are_not_taken(estate: Estate, values: dict[str, Any]) -> None:
    """The offsets of these are assumed."""
    events, intake = read("smf", facility([structure("QSG1APP1", **values)]), estate)
    assert events[0]["measured"] == {"ents_max": 100, "ents_used": 12}
    assert set(intake.counts) == {"inconsistent"}


def test_each_interval_counts_once_whoever_reports_it(estate: Estate) -> None:
    data = b"".join(
        facility([structure("QSG1APP1", entries=entries)], end=end, system=system)
        for entries, end, system in ((12, END, "SYSA"), (12, END, "SYSB"), (20, END + 15 * MINUTE, "SYSB"))
    )
    events, intake = read("smf", data, estate)
    assert [event["measured"]["ents_used"] for event in events if event["store"] == "QSG1/APP1"] == [12, 20]
    assert "report of an earlier interval" in intake.passed_over


def test_locks_caches_other_groups_and_other_subtypes_are_passed_over(estate: Estate) -> None:
    structures = [structure("IRLMLOCK1", type=3), structure("DSNB1_GBP0", type=4), structure("ABCDLIST")]
    data = facility(structures) + facility([structure("QSG1APP1")], subtype=2)
    events, intake = read("smf", data, estate)
    assert [event["store"] for event in events] == ["CF01"]
    assert set(intake.passed_over) == {
        "structure of other types",
        "structure of no group of the estate",
        "record of other types",
    }


@pytest.mark.parametrize("cut", [60, 110, 140, 200])
def test_a_damaged_record_is_a_complaint(estate: Estate, cut: int) -> None:
    data = cut.to_bytes(2, "big") + facility([structure("QSG1APP1")])[2:cut]
    events, intake = read("smf", data, estate)
    assert not events and "damaged" in intake.counts


def test_records_of_mq_and_of_rmf_stand_in_one_file(estate: Estate) -> None:
    events, intake = read("smf", record(2, []) + facility([structure("QSG1APP1")]) + record(2, []), estate)
    assert len(events) == 2 and "record of other types" not in intake.passed_over


def test_a_structure_without_an_estate_is_a_fact_of_its_group() -> None:
    _, intake = read("smf", facility([structure("QSG1CSQ_ADMIN"), structure("QSG1APP1")]), None)
    assert intake.facts.memberless == {"QSG1"}
    assert intake.facts.value("structure", "QSG1/APP1", "size") == 2 << 20
    assert intake.facts.value("coupling_facility", "CF01", "size") == 1_000_000 * 4096


# --- printed reports -------------------------------------------------------------------------------------------------


def test_a_printed_report_has_the_levels_at_the_end_of_its_interval(estate: Estate) -> None:
    events, intake = read("rmf", RMF_PRINT.encode(), estate, zone=ZONE)
    measured = measured_by_store(events)
    assert {event["time"] for event in events} == {END}
    levels = {"size": 1 << 20, "ents_max": 100, "ents_used": 12, "elems_max": 600, "elems_used": 60}
    assert measured["QSG1/APP1"] == levels
    assert (measured["QSG1/APP2"]["elems_max"], measured["QSG1/APP2"]["size"]) == (7200, 2 << 20)
    assert not intake.counts and "structure of other types" in intake.passed_over


WRONG = {
    "a heading that is not known": (("DATA      LOCK", "DATUM     LOCK"), "bad-report"),
    "a column that is lost": (("0.0    32400    5.4", "       32400    5.4"), "bad-row"),
    "no line in use": ((IN_USE, "\n"), "bad-row"),
    "no number": (("12        60", "12       ***"), "bad-row"),
    "no date": (("DATE 11/20/2026", "DATE           "), "bad-report"),
    "more in use than there is": (("12        60", "12       601"), "inconsistent"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_as_expected_is_a_complaint_and_never_half_read(estate: Estate, name: str) -> None:
    (before, after), code = WRONG[name]
    assert before in RMF_PRINT
    events, intake = read("rmf", RMF_PRINT.replace(before, after, 1).encode(), estate, zone=ZONE)
    assert "QSG1/APP1" not in measured_by_store(events)
    assert code in intake.counts


def test_local_times_without_a_zone_are_a_complaint(estate: Estate) -> None:
    events, intake = read("rmf", RMF_PRINT.encode(), estate)
    assert set(intake.counts) == {"no-zone"} and {event["time"] for event in events} == {END + 60 * MINUTE}


def test_reports_of_other_resources_are_passed_over(estate: Estate) -> None:
    other = "1                        C P U   A C T I V I T Y\n    z/OS V3R1   DATE 11/20/2026\n"
    events, intake = read("rmf", (other + RMF_PRINT).encode(), estate, zone=ZONE)
    assert len(events) == 2 and list(intake.passed_over["report of other resources"].kinds) == ["CPU ACTIVITY"]


@pytest.mark.skipif(not SHARED.is_file(), reason="the design material is not here")
def test_the_head_of_a_report_of_the_night_is_read() -> None:
    events, intake = read("rmf", SHARED.read_bytes(), None, zone=ZONE)
    own = measured_by_store(events)["BKQ1/PAY"]
    assert (own["ents_used"], own["elems_used"], own["elems_max"]) == (146_000, 1_464_000, 2_166_000)
    assert intake.facts.memberless == {"BKQ1"}
