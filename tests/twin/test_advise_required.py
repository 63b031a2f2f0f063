"""Advice beside required settings: a structure that gives up its storage class memory (SCM)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twin
from tests.support.profile import examples
from tests.support.traffic import write_lines
from tests.twin.test_advise_proof import Recorder, refused
from twin.base.errors import UsageError
from twin.base.units import MIB
from twin.estate import Estate, load_estate
from twin.estate.settings import Settings, changed_config
from twin.planning.advise import ALONE, Promise, advise
from twin.planning.proof import AS_IT_IS, Proven, prove
from twin.planning.whatif import Moment, at_moment, what_if

STORE = "QSG1/APP1"
DURING = "2026-01-01T00:20:00Z"  # while SCM is in use in `day`
NO_SCM: Settings = {"scm_max_size": 0}
TOML = """schema = 1

[coupling_facility.CF01]
size = "1G"
scm = "64M"

[queue_sharing_group.QSG1]
queue_managers = ["QM01"]

[structure."QSG1/APP1"]
coupling_facility = "CF01"
size = "1M"
scm_max_size = "8M"
cf_level = 5
offld1_sz = "64K"
offld2_sz = "64K"
offld3_sz = "64K"

[smds."QSG1/APP1/QM01"]
size = "2M"
max_size = "2M"

[queue."QSG1/A.QUEUE"]
structure = "APP1"
"""


def recorded(folder: Path, length: int, held: int, speed: int) -> tuple[Path, Estate]:
    """Return a recording of ten minutes at rest, an outage of the getter until messages are held, and its end.

    Args:
        folder: where it is written.
        length: bytes of a message.
        held: messages at the peak.
        speed: messages put in 10 seconds; the getter then takes three times as many.
    """
    path = folder / "estate.toml"
    path.write_text(TOML, encoding="utf-8")
    driver = Recorder(load_estate(path))
    left = 0
    for ticks, puts, gets in ((60, speed, speed), (held // speed, speed, 0), (held // speed, speed, 3 * speed)):
        for _ in range(ticks):
            driver.put("A.QUEUE", length=length, count=puts)
            left += puts
            got = min(left, gets)
            if got:
                driver.get("A.QUEUE", count=got)
                left -= got
            driver.wait(seconds=10)
    return write_lines(folder / "day.ndjson", driver.lines), driver.estate


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Estate]:
    return recorded(tmp_path_factory.mktemp("scm"), 3_500, 900, 6)


def peak_pct(recording: Path, estate: Estate, changes: Settings) -> float:
    """Return the fullest that a resource is in a whole replay."""
    changed = replace(estate, stores={**estate.stores, STORE: changed_config(estate.stores[STORE], changes)})
    return max(row["usage_pct"] for row in twin.replay(recording, changed, demands=True).usage.to_pylist())


def check(recording: Path, moment: Moment, proven: Proven, margin_pct: float) -> None:
    """Check that each plan has the required settings, keeps the promise, and leaves the margin in the recording."""
    advice, (as_it_is, alone, *proofs) = proven.advice, proven.proofs
    assert (as_it_is.title, alone.title) == (AS_IT_IS, ALONE)
    assert alone.refused == refused(recording, moment.estate, STORE, NO_SCM)
    assert [proof.title for proof in proofs] == [plan.title for plan in advice.plans if plan.title != ALONE]
    for plan in advice.plans:
        assert plan.settings["scm_max_size"] == 0
        assert refused(recording, moment.estate, STORE, plan.settings) == 0
        assert peak_pct(recording, moment.estate, plan.settings) <= 100 - margin_pct
        assert advice.promise.is_kept(what_if(moment, plan.settings, horizon_s=advice.promise.hours * 3600).after)


stories = st.tuples(st.sampled_from([1_000, 3_500, 12_000]), st.integers(2, 8), st.sampled_from([3, 8, 20]))


@pytest.mark.nightly
@settings(max_examples=examples(2), deadline=None)
@given(story=stories, passed=st.sampled_from([0.4, 0.7, 1.0]), margin=st.sampled_from([0.0, 10.0, 30.0]))
def test_plans_without_scm_hold_and_leave_the_margin(
    tmp_path_factory: pytest.TempPathFactory, story: tuple[int, int, int], passed: float, margin: float
) -> None:
    """`story`: bytes of a message; bytes held at the peak, MB; messages put in 10 seconds."""
    length, peak, speed = story
    recording, estate = recorded(tmp_path_factory.mktemp("scm"), length, peak * MIB // (length + 600), speed)
    times = twin.replay(recording, estate).usage["time"]
    moment = at_moment(recording, estate, STORE, int(times[0].value + passed * (times[-1].value - times[0].value)))
    proven = prove(recording, moment, advise(moment, Promise(hours=0.5), required=NO_SCM), margin)
    assert proven.advice.plans or proven.advice.left_out
    check(recording, moment, proven, margin)


def test_a_larger_structure_or_data_sets_take_what_scm_held(day: tuple[Path, Estate]) -> None:
    moment = at_moment(*day, STORE)
    advice = advise(moment, Promise(hours=1), required=NO_SCM)
    assert advice.is_kept and advice.plans[0].title == ALONE  # at the end of the day nothing is in SCM
    assert advice.plans[0].settings == NO_SCM and advice.smaller == {}
    proven = prove(day[0], moment, advice, 10.0)
    larger, offloaded = proven.advice.plans
    assert (larger.title, offloaded.title) == ("larger", "offload sooner, and larger")
    assert larger.settings["size"] > offloaded.settings.get("size", MIB)  # type: ignore[operator]
    assert proven.proofs[0].refused == 0 < proven.proofs[1].refused
    check(day[0], moment, proven, 10.0)


def test_the_steps_are_in_the_order_in_which_they_can_be_done(day: tuple[Path, Estate]) -> None:
    moment = at_moment(*day, STORE)
    plan = prove(day[0], moment, advise(moment, Promise(hours=1), required=NO_SCM)).advice.plans[1]
    text = " ".join(plan.steps)
    order = [
        "OFFLD3TH",
        "Wait until no data is in SCM",
        "D XCF,STR,STRNAME=QSG1APP1",
        "remove SCMALGORITHM and SCMMAXSIZE",
        "SETXCF START,POLICY,TYPE=CFRM",
        "SETXCF START,REBUILD,STRNAME=QSG1APP1",
        "no change of the policy is pending",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "SCMMAXSIZE(" not in text + plan.cfrm


def test_where_required_settings_are_enough_nothing_else_is_offered(tmp_path: Path) -> None:
    recording, estate = recorded(tmp_path, 1_000, 60, 6)
    moment = at_moment(recording, estate, STORE)
    proven = prove(recording, moment, advise(moment, Promise(hours=1), required=NO_SCM))
    (plan,) = proven.advice.plans
    assert (plan.title, plan.settings) == (ALONE, NO_SCM) and "Take SCM out of QSG1APP1" in " ".join(plan.steps)
    check(recording, moment, proven, 0.0)


def test_what_is_in_scm_and_does_not_fit_makes_the_structure_full(day: tuple[Path, Estate]) -> None:
    moment = at_moment(*day, STORE, DURING)
    advice = advise(moment, Promise(hours=0.1), required=NO_SCM)
    assert (advice.outcome.p50, advice.outcome.probability, advice.is_kept) == (0.0, 1.0, False)
    assert advice.plans[0].settings["size"] > MIB  # type: ignore[operator]


def test_required_sizes_stay_and_others_change_beside_them(day: tuple[Path, Estate]) -> None:
    moment = at_moment(*day, STORE, DURING)
    required: Settings = {"scm_max_size": 0, "size": 4 * MIB}
    for plan in advise(moment, Promise(hours=2), required=required).plans:
        assert plan.settings.items() >= required.items()


@settings(max_examples=examples(2), deadline=None)
@given(story=stories, passed=st.sampled_from([0.4, 0.7, 1.0]))
def test_what_if_without_scm_is_the_recording_replayed_without_it(
    tmp_path_factory: pytest.TempPathFactory, story: tuple[int, int, int], passed: float
) -> None:
    length, peak, speed = story
    recording, estate = recorded(tmp_path_factory.mktemp("scm"), length, peak * MIB // (length + 600), speed)
    changes: Settings = {"scm_max_size": 0, "size": "16M"}
    changed = replace(estate, stores={**estate.stores, STORE: changed_config(estate.stores[STORE], changes)})
    times = twin.replay(recording, estate).usage["time"]
    time = int(times[0].value + passed * (times[-1].value - times[0].value))
    asked = what_if(at_moment(recording, estate, STORE, time), changes).after
    replayed = what_if(at_moment(recording, changed, STORE, time)).before
    exact = ("resource", "messages_that_fit", "puts_per_s")
    assert [getattr(asked, name) for name in exact] == [getattr(replayed, name) for name in exact]
    assert asked.probability == pytest.approx(replayed.probability, abs=0.02)
    for name in ("p10", "p50", "p90"):  # the course up to the moment was looked at as shares of another size
        seconds, others = getattr(asked, name), getattr(replayed, name)
        assert seconds == pytest.approx(others, rel=0.01) if seconds and others else asked.probability < 0.92
    assert asked == what_if(at_moment(recording, estate, STORE, time), {**changes, "scm_max_size": None}).after


def test_wrong_requirements_and_margins_are_named(day: tuple[Path, Estate]) -> None:
    moment = at_moment(*day, STORE)
    with pytest.raises(UsageError, match="did you mean scm_max_size"):
        advise(moment, Promise(hours=1), required={"scm_max": 0})
    advice = advise(moment, Promise(hours=1), required=NO_SCM)
    with pytest.raises(UsageError, match="margin of 60 percent; expected: 0 to 50"):
        prove(day[0], moment, advice, 60)
