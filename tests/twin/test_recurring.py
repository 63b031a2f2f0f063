"""Work that recurs in recordings, proposed as planned work."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from tests.twin.estate.test_planned import BERLIN, estate_of
from twin.estate.planned import read_plan
from twin.planning.proof import Proposal, find_plans

STORE = "QSG1/APP1"
FIRST = datetime(2026, 11, 16, tzinfo=BERLIN)  # a Monday
QUEUES = '[queue."QSG1/ORDERS"]\nstructure = "APP1"\n'


def recorded(folder: Path, jobs: dict[int, int], *, of_days: int = 5, messages: int = 12_000) -> list[Proposal]:
    """Return what is found in days on which a job begins at a minute of the day; 20 minutes later its puts are got."""
    lines = []
    for day in range(of_days):
        midnight = FIRST + timedelta(days=day)
        moments = [(minute, "ORDERS", 10, 10) for minute in range(0, 1440, 5)]
        if day in jobs:
            moments += [(jobs[day] + minute, "BATCH", messages // 20, 0) for minute in range(1, 21)]
            moments += [(jobs[day] + 30 + minute, "BATCH", 0, messages // 20) for minute in range(20)]
        for minute, queue, puts, gets in sorted(moments):
            time = round((midnight.astimezone(UTC) + timedelta(minutes=minute)).timestamp()) * 1_000_000
            base = {"time": time, "qmgr": "QM01", "queue": queue}
            lines += [base | {"op": "PUT", "count": puts, "length": 800}] if puts else []
            lines += [base | {"op": "GET", "count": gets}] if gets else []
    path = folder / "days.ndjson"
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return find_plans([path], estate_of(folder, QUEUES))


def test_a_job_of_most_nights_is_proposed_with_the_hour_of_the_site(tmp_path: Path) -> None:
    [proposal] = recorded(tmp_path, {0: 130, 1: 134, 2: 128, 4: 130})
    assert (proposal.store, proposal.days, proposal.of_days) == (STORE, 4, 4)
    assert proposal.content["id"] == "BATCH 02:05" and proposal.content["queue"] == "BATCH"
    assert proposal.content["rrule"] == "FREQ=WEEKLY;BYDAY=MO,TU,WE,FR;BYHOUR=2;BYMINUTE=5;BYSECOND=0"
    assert proposal.content["duration_s"] in (1500, 1800, 2100) and proposal.content["messages"] == 12_000
    assert 5 < proposal.took_pct[0] <= proposal.took_pct[1] < 50
    estate = estate_of(tmp_path, QUEUES + proposal.text)
    assert estate.planned[STORE] == (read_plan(proposal.content, estate.stores[STORE]),)


def test_jobs_about_midnight_are_one_plan(tmp_path: Path) -> None:
    [proposal] = recorded(tmp_path, {0: 1438, 1: 1445, 2: 1437, 3: 1439})
    assert proposal.content["rrule"] == "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH;BYHOUR=23;BYMINUTE=55;BYSECOND=0"


@pytest.mark.parametrize("jobs", [{}, {0: 130, 1: 500, 2: 900}, {0: 130, 1: 130}], ids=["none", "any hour", "two days"])
def test_what_does_not_recur_is_not_proposed(tmp_path: Path, jobs: dict[int, int]) -> None:
    assert recorded(tmp_path, jobs, of_days=3) == []


def test_small_rises_are_not_proposed(tmp_path: Path) -> None:
    assert recorded(tmp_path, {0: 130, 1: 130, 2: 130}, of_days=3, messages=400) == []
