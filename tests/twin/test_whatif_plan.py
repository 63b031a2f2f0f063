"""What-if and advice about planned work: does it fit on top of what the store holds, and what would make it fit?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.moments import QUEUE, structure_at_rest
from twin.base.errors import UsageError
from twin.estate.planned import Plan, read_plan
from twin.planning.advise import Promise, advise
from twin.planning.whatif import Moment, Traffic, what_if

TABLES = '[coupling_facility.CF01]\nsize = "64G"\n---\ncoupling_facility = "CF01"\nsize = "64M"\n'
DAY_US = 86_400_000_000


@pytest.fixture(scope="module")
def moment(tmp_path_factory: pytest.TempPathFactory) -> Moment:
    """A structure whose getters keep up with ten puts a second; above 80 % it offloads what is put."""
    return structure_at_rest(tmp_path_factory.mktemp("plan"), TABLES, length=6_144, rate=10)


def plan(moment: Moment, begins: str, ends: str, **parts: Any) -> Plan:
    times = {"from": f"2026-01-03T{begins}:00Z", "until": f"2026-01-04T{ends}:00Z"}
    own = read_plan({"id": "MIGRATION", "queue": QUEUE, **times, **parts}, moment.twin.config)
    assert isinstance(own, Plan)
    return own


def test_planned_work_fits_or_is_full_at_a_time_with_room_for_a_part(moment: Moment) -> None:
    few, many = (plan(moment, "22:00", "04:00", messages=count, length=6_144) for count in (1_000, 100_000))
    fits, full = (what_if(moment, plan=own).before for own in (few, many))
    assert (fits.probability, fits.resource, fits.p50, fits.messages_that_fit) == (0.0, None, None, 1_000)
    assert full.probability == 1.0 and full.resource == "elements" and full.p50 is not None
    assert full.messages_that_fit is not None and 15_000 < full.messages_that_fit < 30_000
    answer = what_if(moment, plan=many)
    begins_s = (many.start - int(moment.twin.clock)) / 1e6
    assert full.p50 == pytest.approx(begins_s + 6 * 3600 * full.messages_that_fit / 100_000, abs=2)
    assert [(work.id, work.announced, work.status) for work in answer.planned] == [("MIGRATION", 100_000, "planned")]
    assert answer.after == answer.before


def test_a_larger_store_has_room_for_more_of_it(moment: Moment) -> None:
    many = plan(moment, "22:00", "04:00", messages=100_000, length=6_144)
    answer = what_if(moment, {"size": "128M"}, plan=many)
    assert 1.8 < answer.after.messages_that_fit / answer.before.messages_that_fit < 2.3


def test_getters_that_are_away_longer_than_a_job_lasts_are_a_plan_beside_it(moment: Moment) -> None:
    job = plan(moment, "22:00", "04:00", messages=5_000, length=6_144)
    away = plan(moment, "22:00", "23:00", id="AWAY", getters="away")
    assert what_if(moment, plan=job).before.probability == 0.0
    both = what_if(moment, plan=[job, away]).before
    alone = what_if(moment, plan=away).before
    assert both.p50 is not None and alone.p50 is not None and both.p50 < alone.p50
    assert alone.messages_that_fit is None


def test_advice_is_the_least_change_with_which_it_fits(moment: Moment) -> None:
    many = plan(moment, "22:00", "04:00", messages=60_000, length=6_144)
    advice = advise(moment, Promise(hours=2), plan=many)
    assert not advice.is_kept and [work.id for work in advice.planned] == ["MIGRATION"]
    larger = next(own for own in advice.plans if own.title == "larger")
    assert larger.outcome.probability == 0.0
    size = larger.settings["size"]
    assert isinstance(size, int)
    assert what_if(moment, {"size": size - (64 << 20) // 32}, plan=many).after.probability == 1.0
    few = plan(moment, "22:00", "04:00", messages=1_000, length=6_144)
    assert advise(moment, Promise(hours=2), plan=few).smaller["size"]["size"] < 64 << 20


def test_planned_work_needs_a_window_ahead_and_no_other_traffic(moment: Moment) -> None:
    old = Plan(id="OLD", start=int(moment.twin.clock) - DAY_US, end=int(moment.twin.clock) - 1, messages=1)
    with pytest.raises(
        UsageError, match=r"plan OLD has no window that begins after 2026-01-01T00:1.*; expected: one ahead"
    ):
        what_if(moment, plan=old)
    with pytest.raises(UsageError, match="1 plans beside a change of traffic; expected: one of the two"):
        what_if(moment, traffic=Traffic(gets=0), plan=plan(moment, "22:00", "04:00", messages=1))
    nightly = Plan(id="N", rrule="FREQ=DAILY;BYHOUR=2", duration_s=60.0, messages=1)
    assert what_if(moment, plan=nightly).planned[0].begins == "2026-01-01T02:00:00.000000Z"
