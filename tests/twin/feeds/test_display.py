"""Texts of DISPLAY commands in their wrappings, and the JSON of REST."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone
from typing import ClassVar
from zoneinfo import ZoneInfo

import pytest

from tests.twin.feeds.read import read
from tests.twin.feeds.samples import (
    ALLOCATED,
    POLICY,
    RUNMQSC,
    SYSPRINT,
    USAGE_ROWS,
    numbered,
)
from twin.feeds import Page, measurements
from twin.units import as_text

NOON = 1_795_176_000_000_000  # 2026-11-20T12:00:00Z
JANUARY = 1_706_550_234_000_000  # 2024-01-29T17:43:54Z
USAGE = f"CSQI010I QM01 Page set usage ...\n{USAGE_ROWS}\n"
PAGES_OF_4 = {
    "pages_total": 1078,
    "pages_unused": 1070,
    "pages_persistent": 5,
    "pages_nonpersistent": 3,
    "pages_used": 8,
    "expansions": 2,
}
ENTRIES = {"ents_max": 14599, "ents_used": 6372, "size": 1 << 30, "usage_pct": 17}


def display(text, **options):
    return read("display", Page(text.encode(), "text", NOON), **options)


@pytest.mark.parametrize("wrapped", [numbered(USAGE), numbered(USAGE.replace("\n_ ", "\n  "))])
def test_page_set_usage_is_measured_with_and_without_underscores(estate, wrapped):
    events, intake = display(wrapped, estate=estate)
    assert [(event["time"], event["store"], event["measured"]) for event in events] == [
        (JANUARY, "QM01/PS04", PAGES_OF_4),
    ]
    assert [unknown.store for unknown in intake.unknown.values()] == ["QM01/PS00"]
    assert intake.facts.value("page_set", "QM01/4", "pages") == 1080


def test_entries_and_data_sets_of_a_structure_are_one_measurement(estate):
    """The blocks of the space map, total less data blocks, are in use."""
    events, intake = display(SYSPRINT, estate=estate)
    assert intake.facts.value("structure", "QSG1/APP1", "size") == 1 << 30
    measured = {event["store"]: event["measured"] for event in events}
    dataset = {"blocks_total": 9999, "blocks_used": 13, "messages": 123}
    assert measured == {"QM01/PS04": PAGES_OF_4, "QSG1/APP1": ENTRIES | {"smds": {"QM01": dataset}}}


def test_local_times_need_a_zone(estate):
    _, without = display(numbered(USAGE), estate=estate)
    assert dict(without.counts) == {"no-zone": 1}
    events, with_zone = display(numbered(USAGE), estate=estate, zone=timezone(timedelta(hours=1)))
    assert (events[0]["time"], with_zone.complaints) == (JANUARY - 3_600_000_000, [])


def test_a_time_of_day_after_midnight_is_of_the_next_day(estate):
    late = "23.59.58 STC08037  +CSQ9022I QM01 CSQMDRTC\n00.00.01 STC08037  +CSQI010I QM01 Page set usage ...  7\n"
    text = late + "".join(f"     7             {line}\n" for line in USAGE_ROWS.splitlines())
    events, _ = display(text, estate=estate, date="2026-11-19", zone=UTC)
    assert events[0]["time"] == NOON - 12 * 3_600_000_000 + 1_000_000


def test_the_command_prefix_names_the_queue_manager(estate):
    text = USAGE.replace("QM01", "!MQ1")
    events, _ = display(text, estate=estate, prefixes={"!MQ1": "QM01"})
    assert events[0]["qmgr"] == "QM01"
    _, without = display(text, estate=estate)
    assert {unknown.qmgr for unknown in without.unknown.values()} == {"MQ1"}
    assert display(text.replace("!MQ1", "!QM01"), estate=estate)[0][0]["qmgr"] == "QM01"


def test_page_sets_that_are_not_online_and_wrong_sums_are_left_out(estate):
    wrong = USAGE.replace("_  4     3     1078     1070", "_  4     3     1078     1071")
    events, intake = display(wrong, estate=estate)
    assert events == []
    assert intake.counts["inconsistent"] == 1
    offline = USAGE.replace("_  4     3     1078     1070          5          3", "_  4     3     NOT DEFINED")
    assert display(offline.replace("5          3 SYSTEM     2    NO", ""), estate=estate)[0] == []


def test_queue_files_of_runmqsc_are_measured_in_bytes(estate):
    """CURFSIZE and CURMAXFS are in MB."""
    events, intake = display(RUNMQSC, estate=estate)
    facts = {"queues": [{"name": "INVOICES", "depth": 17, "getters": 0}], "asked": ["QMD1"]}
    assert [(event["store"], event["measured"]) for event in events] == [
        ("QMD1/INVOICES", {"messages": 17, "file_bytes": 3 << 20, "file_max_bytes": 2088960 << 20, **facts}),
        ("QMD1/ORDERS", {"messages": 0, "file_bytes": 1 << 20, "file_max_bytes": 2088960 << 20}),
    ]
    assert intake.counts["bad-value"] == 0


def test_depths_are_the_messages_of_a_store_if_all_its_queues_are_shown(estate):
    pairs = "QSTATUS(LOCAL)\nTYPE(QUEUE)\nCURDEPTH(17)\n"
    text = f"CSQM201I QM01 CSQMDRTC  DISPLAY QSTATUS DETAILS\n{pairs} END QSTATUS DETAILS\n"
    events, _ = display(text, estate=estate)
    assert [(event["store"], event["measured"]) for event in events] == [("QM01/PS04", {"messages": 17})]


class TestFactsForAnEstate:
    DEFINITIONS: ClassVar[str] = """\
CSQE005I QM01 CSQECONN Structure APP1 connected as
CSQEQSG1QM0102, version=DE928A95A9012381 00020001
CSQM201I QM01 CSQMDRTC  DISPLAY CFSTRUCT DETAILS
CFSTRUCT(APP1)
CFLEVEL(5)
OFFLOAD(SMDS)
OFFLD1TH(70)
OFFLD1SZ(32K)
DSBLOCK(256K)
DSEXPAND(YES)
 END CFSTRUCT DETAILS
CSQM201I QM01 CSQMDRTC  DISPLAY QUEUE DETAILS
QUEUE(ORDERS)
TYPE(QLOCAL)
QSGDISP(SHARED)
CFSTRUCT(APP1)
 END QUEUE DETAILS
CSQM201I QM01 CSQMDRTC  DISPLAY QMGR DETAILS
QMNAME(QM01)
PLATFORM(ZOS)
CMDLEVEL(940)
QSGNAME(QSG1)
 END QMGR DETAILS
"""

    def test_definitions_are_kept_by_their_names_in_the_estate(self):
        _, intake = display(self.DEFINITIONS)
        values = {name: fact.value for name, fact in intake.facts.objects["structure", "QSG1/APP1"].items()}
        assert values == {
            "cf_level": 5,
            "offload": "SMDS",
            "offld1_th": 70,
            "offld1_sz": 32768,
            "ds_block": 262144,
            "ds_expand": True,
        }
        assert intake.facts.value("queue", "QSG1/ORDERS", "structure") == "APP1"
        assert intake.facts.value("queue_manager", "QM01", "version") == "9.4"
        assert intake.facts.group_of("QM01") == "QSG1"

    def test_structures_of_the_sysplex_are_kept_if_allocated(self, estate):
        """A structure of the estate that is not allocated is reported, structures of others are not."""
        rows = ["QSG1APP1 -- -- NOT ALLOCATED", "QSG1APP2 02/17/96 17:03:49 ALLOCATED", "ISGLOCK -- -- NOT ALLOCATED"]
        heading = "IXC359I  11.09.26  DISPLAY XCF 376\nSTRNAME ALLOCATION TIME STATUS\n"
        _, intake = display(heading + "\n".join(rows), estate=estate)
        assert intake.counts["not-allocated"] == 1
        assert ("structure", "QSG1/APP2") in intake.facts.objects
        assert ("structure", "QSG1/APP1") not in intake.facts.objects

    def test_the_policy_of_a_structure_that_is_not_allocated_is_kept(self, estate):
        _, intake = display(POLICY, estate=estate)
        values = {name: fact.value for name, fact in intake.facts.objects["structure", "QSG1/APP1"].items()}
        assert values == {"size": 2 << 30, "init_size": 1536 << 20, "full_threshold": 85, "allow_auto_alter": True}

    def test_of_several_structures_each_has_its_policy_in_force_and_if_allocated_its_coupling_facility(self, estate):
        events, intake = display(ALLOCATED, estate=estate)
        first, second = (
            {name: fact.value for name, fact in intake.facts.objects["structure", f"QSG1/{structure}"].items()}
            for structure in ("APP1", "APP2")
        )
        assert first == {
            "size": 2 << 30,
            "init_size": 1536 << 20,
            "scm_max_size": 8 << 30,
            "full_threshold": 85,
            "allow_auto_alter": False,
            "coupling_facility": "CF01",
        }
        assert second == {"size": 512 << 20, "full_threshold": 80, "allow_auto_alter": True}
        assert events == []  # it shows no usage


class TestClocksThatAreSet:
    """Times of a log in a zone whose clocks are set: the log is in order."""

    BERLIN = ZoneInfo("Europe/Berlin")

    def log(self, day, *times):
        lines = [f"00.00.01 STC08037  ---- SUNDAY,     {day} ----"]
        for number, clock in enumerate(times, 1):
            lines.append(f"{clock} STC08037  CSQM401I QM01 CFSTATUS(APP1) ENTSMAX(10000) ENTSUSED({100 * number})")
        return "\n".join(lines)

    def used(self, estate, text):
        events, intake = display(text, estate=estate, zone=self.BERLIN)
        return [(as_text(event["time"])[:16], event["measured"]["ents_used"]) for event in events], intake

    def test_the_hour_that_comes_twice_has_two_passes(self, estate):
        times = ("01.30.00", "02.30.00", "02.50.00", "02.49.58", "02.10.00", "02.40.00", "03.10.00")
        measured, intake = self.used(estate, self.log("25 OCT 2026", *times))
        assert measured == [
            ("2026-10-24T23:30", 100),
            ("2026-10-25T00:30", 200),
            ("2026-10-25T00:49", 400),
            ("2026-10-25T00:50", 300),
            ("2026-10-25T01:10", 500),
            ("2026-10-25T01:40", 600),
            ("2026-10-25T02:10", 700),
        ]
        assert not intake.counts

    def test_dated_lines_have_two_passes_too(self, estate):
        times = ("02:30:00.10", "02:59:59.99", "02:00:00.00", "02:40:00.00", "03:10:00.00")
        lines = [
            f"N 0000000 SYS1     26298 {clock} STC00011 00000090  CSQM401I QM01 CFSTATUS(APP1) ENTSMAX(9) ENTSUSED({n})"
            for n, clock in enumerate(times, 1)
        ]
        measured, intake = self.used(estate, "\n".join(lines))
        assert [clock[11:] for clock, _ in measured] == ["00:30", "00:59", "01:00", "01:40", "02:10"]
        assert [used for _, used in measured] == [1, 2, 3, 4, 5]
        assert not intake.counts

    def test_an_hour_of_which_the_pass_is_not_known_is_a_complaint(self, estate):
        _, intake = self.used(estate, self.log("25 OCT 2026", "02.30.00", "03.10.00"))
        [complaint] = intake.complaints
        assert complaint.code == "twice-hour"
        assert "2026-10-25 02:30:00 comes twice in Europe/Berlin; the first is taken" in complaint.text

    def test_an_hour_that_does_not_exist_is_a_complaint(self, estate):
        _, intake = self.used(estate, self.log("28 MAR 2027", "01.30.00", "02.30.00", "02.31.00", "03.10.00"))
        [complaint] = intake.complaints
        assert complaint.code == "no-hour"
        assert "2027-03-28 02:30:00 does not exist in Europe/Berlin" in complaint.text

    @pytest.mark.parametrize("day", ["29 FEB 2027", "31 NOV 2026", "25 XYZ 2026"])
    def test_a_day_that_does_not_exist_is_a_complaint(self, estate, day):
        _, intake = self.used(estate, self.log(day, "12.30.00"))
        [complaint] = intake.complaints
        assert (complaint.code, complaint.text.split(";", maxsplit=1)[0]) == ("bad-date", f"{day} is not a date")

    @pytest.mark.parametrize("day", ["27366", "2027366", "2027-02-29"])
    def test_a_date_of_a_line_that_does_not_exist_is_one_complaint(self, estate, day):
        line = f"SYS1 {day} 10:00:01.44 CSQM401I QM01 CFSTATUS(APP1) ENTSMAX(9) ENTSUSED(1)"
        _, intake = self.used(estate, f"{line}\n{line}")
        assert intake.counts == {"bad-date": 1}


def test_sysprint_of_csqutil_has_its_time(estate):
    text = "CSQU001I CSQUTIL Queue Manager Utility - 2026-11-20 14:51:31\n"
    events, intake = display(f"{text}CSQM401I +QM01 CFSTATUS(APP1) ENTSMAX(9) ENTSUSED(1)\n", estate=estate, zone=UTC)
    assert as_text(events[0]["time"])[:19] == "2026-11-20T14:51:31"
    assert not intake.counts


def test_a_log_with_more_than_is_kept_loses_nothing(estate, monkeypatch):
    monkeypatch.setattr(measurements, "_MAX_STATUSES", 20)
    answer = "CSQM401I QM01 QSTATUS(LOCAL) TYPE(QUEUE) CURDEPTH({0}) IPPROCS(1)"
    lines = [f"12.{number // 60:02}.{number % 60:02} STC08037  {answer.format(number)}" for number in range(100)]
    events, _ = display("\n".join(lines), estate=estate, date="2026-11-20", zone=UTC)
    assert [event["measured"]["messages"] for event in events] == [*range(100)]
