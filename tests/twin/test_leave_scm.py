"""Leaving SCM: what is offered holds in the recording, a step less does not, and the peaks are those of the oracle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import twin
from tests.kernels.beside import oracle_record
from tests.naive.structure import Facility, NaiveStructure
from tests.support.profile import examples
from tests.support.traffic import write_lines
from tests.twin.test_advise_proof import Recorder
from twin.errors import UsageError
from twin.estate import Estate, Structure, load_estate
from twin.estate.settings import Settings, changed_config
from twin.planning.advise import STEPS, Promise
from twin.planning.leave_scm import GROWN, OFFLOADED, WITHOUT_SCM, Leaving, facility_sizes, leave_scm_now
from twin.planning.levers import sizes, with_size
from twin.planning.moment import at_moment
from twin.planning.proof import AS_IT_IS
from twin.planning.whatif import what_if
from twin.playback.samples import STEP
from twin.units import MIB

STORE = "QSG1/APP1"
DURING = "2026-01-01T00:20:00Z"  # while SCM is in use in `day`
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
{own}

[smds."QSG1/APP1/QM01"]
size = "2M"
max_size = "2M"

[queue."QSG1/A.QUEUE"]
structure = "APP1"
"""


def recorded(folder: Path, length: int, held: int, speed: int, own: str = "") -> tuple[Path, Estate]:
    """Return a recording of ten minutes at rest, an outage of the getter until messages are held, and its end.

    Args:
        folder: where it is written.
        length: bytes of a message.
        held: messages at the peak.
        speed: messages put in 10 seconds; the getter then takes three times as many.
        own: further attributes of the structure.
    """
    path = folder / "estate.toml"
    path.write_text(TOML.format(own=own), encoding="utf-8")
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


def holds(recording: Path, estate: Estate, changes: Settings, margin: float = 10.0) -> bool:
    """Return True if a whole replay refuses nothing and leaves the margin."""
    changed = replace(estate, stores={**estate.stores, STORE: changed_config(estate.stores[STORE], changes)})
    replayed = twin.replay(recording, changed, demands=True)
    usage = replayed.usage.to_pylist()
    return not replayed.refusals[STORE].replayed.full and max(row["usage_pct"] for row in usage) <= 100 - margin


def check(recording: Path, estate: Estate, leaving: Leaving) -> None:
    """Check that plans hold, and that none does with a size that is a step less."""
    moment = at_moment(recording, estate, STORE, leaving.time)
    hours = leaving.promise.hours * 3600
    for plan in leaving.plans:
        assert plan.settings["scm_max_size"] == 0
        assert holds(recording, estate, plan.settings)
        assert leaving.promise.is_kept(what_if(moment, plan.settings, horizon_s=hours).after)
        for name, now in sizes(moment.twin).items():
            planned = plan.settings.get(name)
            if name != "scm_max_size" and isinstance(planned, int) and planned > now:
                smaller = with_size(moment.twin.config, plan.settings, name, planned - now // STEPS)
                is_kept = leaving.promise.is_kept(what_if(moment, smaller, horizon_s=hours).after)
                assert not (is_kept and holds(recording, estate, smaller)), name


stories = st.tuples(st.sampled_from([1_000, 3_500, 12_000]), st.integers(2, 8), st.sampled_from([3, 8, 20]))


@pytest.mark.nightly
@settings(max_examples=examples(2), deadline=None)
@given(story=stories)
def test_plans_hold_and_a_step_less_does_not(
    tmp_path_factory: pytest.TempPathFactory, story: tuple[int, int, int]
) -> None:
    """`story`: bytes of a message; bytes held at the peak, MB; messages put in 10 seconds."""
    length, peak, speed = story
    recording, estate = recorded(tmp_path_factory.mktemp("scm"), length, peak * MIB // (length + 600), speed)
    leaving = twin.leave_scm(recording, estate, STORE)
    assume(leaving.uses)
    assert [trial.proof.title for trial in leaving.trials[:2]] == [AS_IT_IS, WITHOUT_SCM]
    assert [trial.proof.title for trial in leaving.trials[2:]] == [plan.title for plan in leaving.plans]
    assert leaving.plans or leaving.left_out
    check(recording, estate, leaving)
    for plan, trial in zip(leaving.plans, leaving.trials[2:], strict=True):
        assert trial.proof.refused == 0 and trial.proof.peak_pct <= 90 and trial.effect.faults == 0, plan.title


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Estate]:
    return recorded(tmp_path_factory.mktemp("scm"), 3_500, 900, 6)


@pytest.fixture(scope="module")
def leaving(day: tuple[Path, Estate]) -> Leaving:
    return twin.leave_scm(*day, STORE)


def test_a_larger_structure_or_data_sets_take_what_scm_held(leaving: Leaving) -> None:
    as_it_is, without, *planned = leaving.trials
    assert (as_it_is.proof.refused, as_it_is.effect.offloaded) == (0, 0) and as_it_is.effect.faults > 0
    assert without.proof.refused > 0 and without.effect.faults == 0
    assert leaving.plans[0].title == GROWN and leaving.plans[1].title.startswith(OFFLOADED)
    larger, offloaded = planned
    assert larger.effect.offloaded == 0 < offloaded.effect.offloaded
    assert leaving.plans[0].settings["size"] > leaving.plans[1].settings.get("size", MIB)  # type: ignore[operator]
    (use,) = leaving.uses
    assert use.began < use.peak_time < str(use.ended) and leaving.peak == use
    assert use.peak_bytes / (8 * MIB) * 100 == pytest.approx(max(as_it_is.course.usage["scm"]), abs=0.001)


def test_the_steps_are_in_the_order_in_which_they_can_be_done(leaving: Leaving) -> None:
    text = " ".join(leaving.plans[1].steps)
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
    assert "SCMMAXSIZE(" not in text + leaving.plans[1].cfrm + leaving.plans[0].cfrm


def test_the_messages_written_to_data_sets_are_those_of_the_oracle(day: tuple[Path, Estate], leaving: Leaving) -> None:
    """Counted by the rules in force before and after each sample, the messages of which are in doubt."""
    plan, trial = leaving.plans[1], leaving.trials[3]
    config = changed_config(day[1].stores[STORE], plan.settings)
    assert isinstance(config, Structure)
    oracle, exact, changes = NaiveStructure(config, {}, Facility(1 << 30, 0, 0)), 0, 0
    for line in day[0].read_bytes().splitlines():
        event = msgspec.json.decode(line)
        before = oracle_record(oracle)
        oracle.apply(event)
        after = oracle_record(oracle)
        changes += after["offload_rule"] != before["offload_rule"]
        if event["op"] == "PUT":
            exact += max(0, after["offloaded_messages"] - (before["offloaded_messages"] or 0))
    assert abs(trial.effect.offloaded - exact) <= 3 * 6 * changes
    assert exact > 100


@settings(max_examples=examples(4), deadline=None)
@given(story=stories, without=st.booleans())
def test_the_peaks_are_those_of_the_oracle(
    tmp_path_factory: pytest.TempPathFactory, story: tuple[int, int, int], without: bool
) -> None:
    """The slow oracle plays the same events, with SCM and without, sampled at the same times."""
    length, peak, speed = story
    recording, estate = recorded(tmp_path_factory.mktemp("scm"), length, peak * MIB // (length + 600) // 2, speed)
    config = estate.stores[STORE]
    if without:
        config = changed_config(config, {"scm_max_size": 0, "size": "16M"})
        estate = replace(estate, stores={**estate.stores, STORE: config})
    assert isinstance(config, Structure)
    oracle, samples = NaiveStructure(config, {}, Facility(1 << 30, 64 * MIB, 0)), {}
    for line in recording.read_bytes().splitlines():
        event = msgspec.json.decode(line)
        oracle.apply(event)
        samples[event["time"] // STEP] = oracle_record(oracle)
    usage = twin.replay(recording, estate, demands=True).usage.to_pylist()
    peaks = {
        name: max(row["usage_pct"] for row in usage if row["resource"] == name) for name in ("entries", "elements")
    }
    for name, short in (("entries", "ents"), ("elements", "elems")):
        expected = max(100 * record[f"{short}_used"] / record[f"{short}_max"] for record in samples.values())
        assert peaks[name] == pytest.approx(expected, abs=0.001)
    if not without:
        held = max(record["scm"]["used"] for record in samples.values())
        uses = twin.leave_scm(recording, estate, STORE).uses
        assert max((use.peak_bytes for use in uses), default=0) == held


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


def test_without_a_recording_the_next_hours_decide(day: tuple[Path, Estate]) -> None:
    leaving = leave_scm_now(at_moment(*day, STORE), Promise(hours=1))
    assert (leaving.trials, leaving.uses) == ((), ())
    assert leaving.plans[0].settings == {"scm_max_size": 0}
    held = leave_scm_now(at_moment(*day, STORE, DURING), Promise(hours=0.1))
    assert held.uses[0].peak_messages > 0 and held.plans[0].settings["size"] > MIB  # type: ignore[operator]


def test_a_coupling_facility_must_hold_all_of_them(day: tuple[Path, Estate], leaving: Leaving) -> None:
    larger, offloaded = facility_sizes(day[1], [leaving])
    assert (larger.facility, larger.title, larger.planned) == ("CF01", GROWN, (STORE,))
    assert larger.total == leaving.plans[0].settings["size"] and larger.is_enough
    assert offloaded.title == OFFLOADED and offloaded.total <= larger.total
    facility = replace(day[1].stores["CF01"], size=2 * MIB)  # type: ignore[type-var]
    small = replace(day[1], stores={**day[1].stores, "CF01": facility})
    assert not facility_sizes(small, [leaving])[0].is_enough


@pytest.mark.parametrize(
    ("store", "own", "margin", "message"),
    [
        ("QSG1/APP2", "", 10, "QSG1/APP2 is not in the estate; expected: a structure with SCMMAXSIZE: QSG1/APP1"),
        (STORE, "scm_max_size = 0", 10, "QSG1/APP1 has no SCM; expected: an estate with SCMMAXSIZE"),
        (STORE, "", 60, "margin of 60 percent; expected: 0 to 50"),
    ],
)
def test_what_cannot_be_asked(tmp_path: Path, store: str, own: str, margin: float, message: str) -> None:
    text = TOML.format(own=own)
    (tmp_path / "estate.toml").write_text(text.replace('scm_max_size = "8M"\n', "") if own else text, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        twin.leave_scm("none.ndjson", load_estate(tmp_path / "estate.toml"), store, margin_pct=margin)
