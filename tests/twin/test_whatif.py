"""What-if: a store rolled forward with other settings and other traffic."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import twin
from tests.support.moments import QUEUE, after_rest, structure_at_rest
from twin.base.errors import UsageError
from twin.planning.advise import Promise, advise
from twin.planning.whatif import UNCHANGED, Moment, Traffic, at_moment, moment_of, what_if
from twin.stores.open import open_message_store
from twin.testing import Driver

STORE = "QSG1/APP1"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whatif") / "getter-outage.arrow"
    twin.simulate(twin.make_scenario("getter-outage"), twin.demo_estate(), path, seed=1)
    return path


@pytest.fixture(scope="module")
def filling(recording: Path) -> Moment:
    """The demo's structure 28 minutes before the first 2192."""
    return at_moment(recording, twin.demo_estate(), STORE, "2026-11-20T01:34:00Z")


@pytest.fixture(scope="module")
def resting(recording: Path) -> Moment:
    return at_moment(recording, twin.demo_estate(), STORE, "2026-11-20T00:25:00Z")


def test_unchanged_nothing_differs_and_the_truth_is_within_the_interval(filling: Moment):
    answer = what_if(filling)
    assert answer.before == answer.after
    assert answer.before.resource == "smds/QM01"
    assert answer.before.p10 is not None and answer.before.p90 is not None
    assert answer.before.p10 < 28 * 60 < answer.before.p90  # the first 2192 came at 02:01:51


def test_the_same_question_has_the_same_answer(filling: Moment):
    first = what_if(filling, {"offld2_th": 50}, Traffic(puts=1.5))
    assert what_if(filling, {"offld2_th": 50}, Traffic(puts=1.5)) == first


def test_a_what_if_changes_nothing(filling: Moment):
    state, header = filling.twin.state(), filling.twin.header()
    what_if(filling, {"size": "1G", "smds.QM01.size": "4G"}, Traffic(gets=0))
    assert filling.twin.state() == state and filling.twin.header() == header


def test_a_twin_from_a_checkpoint_answers_as_the_one_that_was_saved(recording: Path):
    """Nothing of it has changed since it was restored, so a copy made of what has changed would be empty."""
    saved = at_moment(recording, twin.demo_estate(), STORE, "2026-11-20T01:10:00Z")
    pages = dict(saved.twin.dirty_pages())
    restored = moment_of(
        saved.estate, open_message_store(saved.estate, STORE, None, saved.twin.header(), pages.items())
    )
    for threshold in (60, 50):
        question = {"offld1_th": threshold}, Traffic(gets=0)
        assert what_if(restored, *question) == what_if(saved, *question)


def test_a_what_if_leaves_the_pages_that_a_checkpoint_needs(recording: Path):
    moment = at_moment(recording, twin.demo_estate(), STORE, "2026-11-20T00:10:00Z")
    what_if(moment, {"offld1_th": 60})
    pages = dict(moment.twin.dirty_pages())
    restored = open_message_store(moment.estate, STORE, None, moment.twin.header(), pages.items())
    assert restored.state() == moment.twin.state()


FACILITY = '[coupling_facility.CF01]\nsize = "64G"\n{scm}\n---\nsize = "128M"\ncoupling_facility = "CF01"\n'


def test_scm_is_asked_for_only_where_the_coupling_facility_has_any(tmp_path: Path):
    without = structure_at_rest(tmp_path, FACILITY.format(scm=""), length=1_000, rate=10)
    with pytest.raises(UsageError, match=r"scm_max_size = 8G: CF01 has no SCM; expected: scm in \[coupling_facility"):
        what_if(without, {"scm_max_size": "8G"}, Traffic(gets=0))
    assert not any("scm_max_size" in plan.settings for plan in advise(without, Promise(hours=8), Traffic(gets=0)).plans)
    described = structure_at_rest(tmp_path, FACILITY.format(scm='scm = "16G"'), length=1_000, rate=10)
    answer = what_if(described, {"scm_max_size": "8G"}, Traffic(gets=0))
    assert answer.after.messages_that_fit > 2 * answer.before.messages_that_fit


RULES = """
[smds."QSG1/APP1/QM01"]
size = "64G"
---
size = "128M"
offload = "SMDS"
offld1_th = 80
offld1_sz = "0K"
"""


@pytest.mark.parametrize(("rate", "full_after"), [(70, 750), (100, 530)])
def test_offload_rules_act_in_time_in_a_structure_that_fills_in_minutes(tmp_path: Path, rate: int, full_after: int):
    moment = structure_at_rest(tmp_path, RULES, length=4_000, rate=rate)
    foreseen = what_if(moment, traffic=Traffic(gets=0)).after.p50
    driver = Driver(tmp_path / "estate.toml")
    after_rest(driver, STORE, length=4_000, rate=rate)
    seconds = 0
    while driver.state(STORE).usage_pct < 100:
        driver.put(QUEUE, length=4_000, count=10 * rate)
        driver.wait(seconds=10)
        seconds += 10
    assert seconds == full_after
    assert foreseen == pytest.approx(full_after, rel=0.12)


def test_more_puts_fill_sooner_and_more_gets_later(filling: Moment):
    times = [what_if(filling, traffic=traffic).after.p50 for traffic in (Traffic(puts=2), UNCHANGED, Traffic(gets=2))]
    assert None not in times and times == sorted(times)


def test_longer_messages_leave_room_for_fewer(filling: Moment):
    usual, longer = (what_if(filling, traffic=Traffic(lengths=lengths)).after for lengths in (1.0, 2.0))
    assert usual.messages_that_fit is not None and longer.messages_that_fit is not None
    assert longer.messages_that_fit == pytest.approx(usual.messages_that_fit / 2, rel=0.1)


def test_no_puts_fill_nothing(filling: Moment):
    outcome = what_if(filling, traffic=Traffic(puts=0)).after
    assert (outcome.resource, outcome.p50, outcome.probability, outcome.messages_that_fit) == (None, None, 0, None)


def test_at_rest_nothing_fills_and_without_getters_what_really_filled_first_does(resting: Moment):
    answer = what_if(resting, traffic=Traffic(gets=0))
    assert answer.before.resource is None
    assert answer.after.resource == "smds/QM01"  # as it did in the recording, 92 minutes after its getter stopped
    assert answer.after.p10 is not None and answer.after.p90 is not None
    assert answer.after.p10 < 92 * 60 < answer.after.p90


def test_messages_that_fit_are_those_that_the_twin_takes(resting: Moment):
    """The recording's structure took 135,000 messages until the first 2192, of the same mix."""
    fit = what_if(resting).before.messages_that_fit
    assert fit == pytest.approx(135_000, rel=0.15)


def test_a_larger_data_set_moves_the_danger_to_the_other(filling: Moment):
    answer = what_if(filling, {"smds.QM01.size": "1G"})
    assert (answer.before.resource, answer.after.resource) == ("smds/QM01", "smds/QM02")
    assert answer.before.p50 is not None and answer.after.p50 is not None
    assert answer.after.p50 > answer.before.p50


def test_a_smaller_structure_is_full_sooner(resting: Moment):
    usual, small = (what_if(resting, settings, Traffic(gets=0)).after.p50 for settings in ({}, {"size": "256M"}))
    assert usual is not None and small is not None and small < usual


def test_an_answer_takes_less_than_a_fifth_of_a_second(filling: Moment):
    what_if(filling, {"size": "1G"}, Traffic(puts=2))
    began = time.process_time()
    what_if(filling, {"size": "2G"}, Traffic(puts=3))
    assert time.process_time() - began < 0.2


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"offld9_th": 60}, "did you mean offld1_th"),
        ({"offld1_th": 101}, "integer of 0 to 100"),
        ({"smds.QM09.size": "1G"}, "no queue manager QM09"),
        ({"smds.QM01.sise": "1G"}, "no attribute sise"),
        ({"smds.QM01.size": "big"}, "smds.QM01.size = big"),
    ],
)
def test_a_wrong_setting_is_named(filling: Moment, settings: dict, expected: str):
    with pytest.raises(UsageError, match=expected):
        what_if(filling, settings)


@pytest.mark.parametrize("factor", [{"puts": -1}, {"gets": 101}, {"lengths": 0}, {"puts": float("nan")}])
def test_a_factor_has_bounds(factor: dict):
    with pytest.raises(UsageError, match="expected: a factor"):
        Traffic(**factor)


def test_a_moment_before_the_first_event_and_an_unknown_store_are_refused(recording: Path):
    estate = twin.demo_estate()
    with pytest.raises(UsageError, match="no event of QSG1/APP1 until 2026-11-19"):
        at_moment(recording, estate, STORE, "2026-11-19T00:00:00Z")
    with pytest.raises(UsageError, match="did you mean QSG1/APP1"):
        at_moment(recording, estate, "QSG1/APP3")
    with pytest.raises(UsageError, match="--at noon; expected: RFC 3339 with its zone"):
        at_moment(recording, estate, STORE, "noon")


def test_an_event_of_a_wrong_clock_does_not_end_the_moment(tmp_path: Path):
    estate, put = twin.demo_estate(), {"qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 100}
    seconds = [*range(10), 3_000, *range(10, 20)]
    lines = [json.dumps({**put, "time": f"2026-11-20T00:{s // 60:02}:{s % 60:02}Z"}) for s in seconds]
    path = tmp_path / "clock.ndjson"
    path.write_text("\n".join(lines), encoding="utf-8")
    moment = at_moment(path, estate, STORE, "2026-11-20T00:01:00Z")
    assert moment.twin.state().messages == 20


def test_traffic_of_a_few_seconds_is_no_traffic(recording: Path):
    moment = at_moment(recording, twin.demo_estate(), STORE, "2026-11-20T00:00:05Z")
    with pytest.raises(UsageError, match="its traffic is not known"):
        what_if(moment)
