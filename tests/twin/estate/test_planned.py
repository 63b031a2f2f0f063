"""[[planned]] of the estate, and the windows of time that follow from a plan."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.base.units import zone_of
from twin.estate import EstateError, load_estate
from twin.estate.planned import Cancelled, Plan, Window, read_plan
from twin.estate.routes import read_saved_estate, save_estate
from twin.events import Decoder

BERLIN = zone_of("Europe/Berlin")
HOUR_US = 3_600_000_000
ESTATE = """
schema = 1
[site]
zone = "Europe/Berlin"
[coupling_facility.CF01]
size = "64G"
[queue_sharing_group.QSG1]
queue_managers = ["QM01"]
[structure."QSG1/APP1"]
coupling_facility = "CF01"
size = "64M"
[queue."QSG1/BATCH"]
structure = "APP1"
"""
ONCE = {"id": "A", "from": "2026-11-20T02:00:00Z", "until": "2026-11-20T04:00:00Z", "messages": 250_000}
DAILY = {"id": "A", "rrule": "FREQ=DAILY;BYHOUR=2", "duration_s": 3600, "messages": 250_000}


def us(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1_000_000)


def estate_of(folder: Path, tables: str = "") -> Any:
    file = folder / "estate.toml"
    file.write_text(ESTATE + tables, encoding="utf-8")
    return load_estate(file)


@pytest.fixture(scope="module")
def estate(tmp_path_factory):
    return estate_of(tmp_path_factory.mktemp("estate"))


def plan_of(estate: Any, **parts: Any) -> Plan:
    plan = read_plan(parts, estate.stores["QSG1/APP1"])
    assert isinstance(plan, Plan)
    return plan


def test_a_plan_of_the_file_is_of_its_store_and_is_saved_with_the_estate(tmp_path: Path) -> None:
    table = """
[[planned]]
store = "QSG1/APP1"
id = "nightly"
queue = "BATCH"
rrule = "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=2"
duration_s = 7200
messages = 250_000
[[planned]]
store = "QSG1/APP1"
id = "migration"
from = 2026-11-21T22:00:00+01:00
until = 2026-11-22T04:00:00+01:00
getters = "away"
"""
    estate = estate_of(tmp_path, table)
    nightly, migration = estate.planned["QSG1/APP1"]
    assert (nightly.id, nightly.queue, nightly.messages) == ("nightly", "BATCH", 250_000)
    assert (migration.start, migration.away) == (us("2026-11-21T21:00:00+00:00"), True)
    digest, saved = save_estate(estate)
    assert read_saved_estate(saved, "x").planned == estate.planned
    assert save_estate(estate_of(tmp_path))[0] != digest
    assert b"planned" not in msgspec.json.encode(save_estate(estate_of(tmp_path))[1].hex())


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ('store = "QSG1/APP2"\nid = "A"', 'store = "QSG1/APP2": no store of the estate; did you mean QSG1/APP1?'),
        ('store = "CF01"\nid = "A"', "a coupling_facility is planned by its stores"),
        ('store = "QSG1/APP1"\nid = "A"\ncancelled = true', "cancelled is of PLAN events"),
        ('store = "QSG1/APP1"\nid = "A"\nfrom = 2026-11-21T22:00:00\nmessages = 1', "must be RFC 3339 with its zone"),
        ('store = "QSG1/APP1"', "id is missing"),
    ],
)
def test_a_wrong_plan_of_the_file_is_named_with_its_number(tmp_path: Path, table: str, problem: str) -> None:
    with pytest.raises(EstateError) as caught:
        estate_of(tmp_path, f"[[planned]]\n{table}\n")
    assert "estate.toml: planned[0]: " in str(caught.value) and problem in str(caught.value)


def test_two_plans_of_a_store_have_two_ids(tmp_path: Path) -> None:
    table = '[[planned]]\nstore = "QSG1/APP1"\nid = "A"\nrrule = "FREQ=DAILY"\nduration_s = 60\nmessages = 1\n'
    with pytest.raises(EstateError, match=r'planned\[1\]: id = "A": another plan of QSG1/APP1 has it'):
        estate_of(tmp_path, table * 2)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"id": None}, "id is missing; expected: a name of 1 to 64 characters"),
        ({"queue": "BATCHES"}, 'queue = "BATCHES": no queue of QSG1/APP1; did you mean BATCH?'),
        ({"mesages": 1}, 'unknown key "mesages"; did you mean messages?'),
        ({"messages": 0}, "messages = 0: must be an integer of 1 to "),
        ({"messages": True}, "messages = true: must be an integer"),
        ({"puts_per_s": -1}, "puts_per_s = -1: must be a number above 0"),
        ({"getters": "back"}, 'getters = "back": must be "away"'),
        ({"allowed_pct": 101}, "allowed_pct = 101: must be a number above 0, at most 100"),
        ({"from": "2026-11-20 02:00"}, "must be RFC 3339 with its zone"),
        ({"until": "2026-11-20T02:00:00Z"}, "until is not after from"),
        ({"until": "2026-12-20T02:00:00Z"}, "until is more than 14 days after from"),
        ({"until": None}, "from and until are missing; expected: both, or rrule and duration_s"),
        ({"duration_s": 5}, "duration_s without rrule"),
        ({"rrule": "FREQ=DAILY", "duration_s": 5}, "until beside rrule"),
        ({"messages": None}, "it announces nothing; expected: messages, puts_per_s, getters or allowed_pct"),
        ({"cancelled": True}, "must be absent beside cancelled"),
        ({"rrule": "FREQ=DAILY", "until": None}, "duration_s is missing, which rrule needs"),
    ],
)
def test_a_wrong_plan_of_an_event_is_a_dead_letter_with_its_reason(estate, changes, problem) -> None:
    plan = {key: value for key, value in (ONCE | changes).items() if value is not None}
    event = {"time": "2026-11-20T00:00:00Z", "qmgr": "QM01", "op": "PLAN", "store": "QSG1/APP1", "plan": plan}
    [reject] = Decoder(estate).json([msgspec.json.encode(event)]).rejects
    assert (reject.reason, reject.detail.startswith("PLAN of QSG1/APP1: ")) == ("bad-plan", True)
    assert problem in reject.detail


def test_a_plan_event_needs_store_and_plan_and_other_events_ignore_one(estate) -> None:
    event = {"time": "2026-11-20T00:00:00Z", "qmgr": "QM01", "op": "PLAN", "store": "QSG1/APP1"}
    put = {"time": 1_795_000_000_000_000, "qmgr": "QM01", "op": "PUT", "queue": "BATCH", "length": 1, "plan": 5}
    decoded = Decoder(estate).json(
        [msgspec.json.encode(own) for own in (event, put, put | {"queue": "\u00fc", "plan": {}})]
    )
    assert [(reject.record, reject.reason) for reject in decoded.rejects] == [
        (0, "missing-field"),
        (2, "unknown-queue"),
    ]
    assert "plan is missing, which PLAN needs" in decoded.rejects[0].detail


def test_a_plan_ends_by_its_id(estate) -> None:
    assert read_plan({"id": "A", "cancelled": True}, estate.stores["QSG1/APP1"]) == Cancelled("A")


def test_messages_are_announced_by_their_number_or_by_their_rate(estate) -> None:
    window = Window(0, 2 * HOUR_US)
    assert plan_of(estate, **ONCE).announced(window) == 250_000
    rate = {key: value for key, value in ONCE.items() if key != "messages"} | {"puts_per_s": 10}
    assert plan_of(estate, **rate).announced(window) == 72_000
    assert plan_of(estate, **(ONCE | {"messages": None, "getters": "away"})).announced(window) is None


# --- recurrences ------------------------------------------------------------------------------------------------------


def windows_of(plan: Plan, begin: str, end: str) -> list[str]:
    """Return the beginnings of windows in local time of Berlin."""
    windows = plan.windows(BERLIN, us(begin), us(end))
    return [f"{datetime.fromtimestamp(own.start / 1e6, BERLIN):%a %d %H:%M %z}" for own in windows]


def test_a_rule_is_of_local_time_on_both_sides_of_a_change_of_the_clocks(estate) -> None:
    plan = plan_of(estate, **DAILY)
    autumn = windows_of(plan, "2026-10-24T00:00+02:00", "2026-10-26T12:00+01:00")
    assert autumn == ["Sat 24 02:00 +0200", "Sun 25 02:00 +0200", "Mon 26 02:00 +0100"]  # it comes twice: the first
    spring = windows_of(plan, "2026-03-28T00:00+01:00", "2026-03-30T12:00+02:00")
    assert spring == ["Sat 28 02:00 +0100", "Sun 29 03:00 +0200", "Mon 30 02:00 +0200"]  # left out: its old offset


def test_a_window_under_way_counts_and_one_that_has_ended_does_not(estate) -> None:
    plan = plan_of(estate, **DAILY)
    assert windows_of(plan, "2026-11-20T02:30+01:00", "2026-11-20T02:31+01:00") == ["Fri 20 02:00 +0100"]
    assert windows_of(plan, "2026-11-20T03:00+01:00", "2026-11-21T02:00+01:00") == []


@pytest.mark.parametrize(
    ("rule", "begins", "expected"),
    [
        (
            "FREQ=WEEKLY;BYDAY=FR;BYHOUR=22;BYMINUTE=30",
            None,
            ["Fri 30 22:30 +0100", "Fri 06 22:30 +0100", "Fri 13 22:30 +0100"],
        ),
        ("RRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", None, ["Fri 30 00:00 +0100"]),
        ("FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=1,3", None, ["Sat 31 01:00 +0100", "Sat 31 03:00 +0100"]),
        (
            "FREQ=DAILY;INTERVAL=5",
            "2026-10-31T04:00:00+01:00",
            ["Sat 31 04:00 +0100", "Thu 05 04:00 +0100", "Tue 10 04:00 +0100"],
        ),
        ("FREQ=DAILY;COUNT=2", "2026-11-01T04:00:00+01:00", ["Sun 01 04:00 +0100", "Mon 02 04:00 +0100"]),
        (
            "FREQ=DAILY;UNTIL=20261101T030000Z;BYHOUR=4",
            None,
            ["Fri 30 04:00 +0100", "Sat 31 04:00 +0100", "Sun 01 04:00 +0100"],
        ),
        ("FREQ=YEARLY;BYMONTH=11;BYMONTHDAY=9", None, ["Mon 09 00:00 +0100"]),
    ],
)
def test_rules_of_rfc_5545(estate, rule, begins, expected) -> None:
    parts = DAILY | {"rrule": rule} | ({"from": begins} if begins else {})
    assert windows_of(plan_of(estate, **parts), "2026-10-30T00:00+01:00", "2026-11-14T00:00+01:00") == expected


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("every day", "must be an RRULE such as FREQ=DAILY;BYHOUR=2"),
        ("BYHOUR=2", "with FREQ of DAILY, WEEKLY, MONTHLY, YEARLY"),
        ("FREQ=MINUTELY", "with FREQ of DAILY"),
        ("FREQ=DAILY;BYEASTER=1", "without BYEASTER"),
        ("FREQ=DAILY;BYHOUR=1,2,3,4,5;BYMINUTE=1,2,3,4,5", "with at most 24 times a day"),
        ("FREQ=DAILY;BYHOUR=24", "with BYHOUR of 0 to 23"),
        ("FREQ=DAILY;BYHOUR=2;BYHOUR=3", "each part once"),
        ("FREQ=DAILY;INTERVAL=0", "with INTERVAL of 1 to 9999"),
        ("FREQ=WEEKLY;BYDAY=1MO", "with numbers of days in MONTHLY and YEARLY only"),
        ("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", "with days that its months have"),
        ("FREQ=DAILY;INTERVAL=7;BYDAY=MO", "with INTERVAL beside no days or months that it may never meet"),
        ("FREQ=MONTHLY;BYDAY=FR;BYSETPOS=9", "with BYSETPOS of 1 to 4 or -4 to -1"),
        ("FREQ=DAILY;UNTIL=tomorrow", "as RFC 5545 has it"),
        ("FREQ=WEEKLY;BYHOUR=2", "from is missing; expected: a time, as WEEKLY without a day counts from one"),
        ("FREQ=DAILY;COUNT=3", "from is missing; expected: a time, as COUNT=3 counts from one"),
        ("FREQ=DAILY;INTERVAL=2", "from is missing; expected: a time, as INTERVAL=2 counts from one"),
    ],
)
def test_a_rule_that_is_not_read_says_why(estate, rule, problem) -> None:
    with pytest.raises(EstateError) as caught:
        plan_of(estate, **(DAILY | {"rrule": rule}))
    assert problem in str(caught.value)


_DAYS = st.lists(st.sampled_from(["MO", "TU", "WE", "TH", "FR", "SA", "SU"]), min_size=1, max_size=3, unique=True)
_MONTH_DAYS = st.lists(st.integers(-31, 31).filter(bool), min_size=1, max_size=3)
_OPTIONS = {
    "BYHOUR": st.integers(0, 23),
    "BYMINUTE": st.integers(0, 59),
    "BYDAY": _DAYS.map(",".join),
    "BYMONTHDAY": _MONTH_DAYS.map(lambda days: ",".join(map(str, days))),
    "BYMONTH": st.integers(1, 12),
    "BYSETPOS": st.integers(-5, 5).filter(bool),
    "INTERVAL": st.integers(1, 40),
    "COUNT": st.integers(1, 40),
}


@given(
    freq=st.sampled_from(["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]),
    parts=st.dictionaries(st.sampled_from(sorted(_OPTIONS)), st.none(), max_size=4).flatmap(
        lambda own: st.fixed_dictionaries({name: _OPTIONS[name] for name in own})
    ),
    day=st.integers(0, 40_000),
)
def test_no_accepted_rule_takes_long_and_windows_are_the_same_however_the_time_is_cut(estate, freq, parts, day) -> None:
    rule = ";".join([f"FREQ={freq}", *(f"{name}={value}" for name, value in parts.items())])
    start = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(days=day % 9000)
    try:
        plan = plan_of(estate, **(DAILY | {"rrule": rule, "from": start.isoformat()}))
    except EstateError:
        return
    begun = time.process_time()
    begin = us(start.isoformat()) + day * 24 * HOUR_US // 9
    whole = plan.windows(BERLIN, begin, begin + 96 * HOUR_US)
    pieces = [
        own for hour in range(96) for own in plan.windows(BERLIN, begin + hour * HOUR_US, begin + (hour + 1) * HOUR_US)
    ]
    assert sorted(set(pieces)) == whole
    assert time.process_time() - begun < 3
