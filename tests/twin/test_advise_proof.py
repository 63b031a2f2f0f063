"""Advice asked of a recording: nothing is offered with which more is refused in it than is claimed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import twin
from tests.support.profile import examples
from tests.support.traffic import write_lines
from tests.twin.test_demand import SIZES, Crisis, crises
from twin.alerts.episodes import Alert
from twin.base.errors import UsageError
from twin.estate import Estate, load_estate
from twin.estate.settings import Settings, changed_config
from twin.forecast.flows import is_known
from twin.planning.advise import Advice, Promise, advise
from twin.planning.proof import AS_IT_IS, Proven, prove
from twin.planning.whatif import Moment, at_moment, what_if
from twin.simulation import SideBySide
from twin.testing import Driver

SIMULATION = Path(twin.__file__).parent / "simulation"


def refused(recording: Path, estate: Estate, store: str, changes: Settings) -> int:
    """Return the messages refused where settings are in effect from the beginning, by a whole replay."""
    changed = changed_config(estate.stores[store], changes)
    estate = replace(estate, stores={**estate.stores, store: changed})
    return twin.replay(recording, estate, course=False, demands=True).refusals[store].replayed.full


def check(recording: Path, moment: Moment, proven: Proven) -> None:
    """Check that what is offered holds, by replays of the whole recording."""
    store, (as_it_is, *proofs) = proven.advice.store, proven.proofs
    assert (as_it_is.title, as_it_is.refused) == (AS_IT_IS, refused(recording, moment.estate, store, {}))
    offered = [(plan.title, plan.settings, 0) for plan in proven.advice.plans]
    offered += [(name, smaller, as_it_is.refused) for name, smaller in proven.advice.smaller.items()]
    assert [title for title, _, _ in offered] == [proof.title for proof in proofs]
    promise, traffic = proven.advice.promise, proven.advice.traffic
    for (_, changes, claimed), proof in zip(offered, proofs, strict=True):
        assert refused(recording, moment.estate, store, changes) == proof.refused <= min(claimed, as_it_is.refused)
        assert promise.is_kept(what_if(moment, changes, traffic, promise.hours * 3600).after)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recorded")


def simulated(folder: Path, described: str) -> Path:
    """Return the recording of the quick start, or that of the demo."""
    path, is_demo = folder / f"{described}.arrow", described == "side_by_side"
    if not path.exists():
        scenario = SideBySide() if is_demo else twin.make_scenario("getter-outage")
        twin.simulate(scenario, load_estate(SIMULATION / f"{described}.toml"), path, seed=int(is_demo))
    return path


@pytest.mark.parametrize(
    ("described", "store", "time"),
    [
        ("demo", "QSG1/APP1", "02:15"),
        ("demo", "QSG1/APP1", "02:30"),
        ("demo", "QSG1/APP1", "02:50"),
        ("side_by_side", "QSG1/APP3", "03:30"),
        ("side_by_side", "QSG1/APP3", "04:40"),
    ],
)
@pytest.mark.nightly
def test_in_the_crisis_and_after_it_only_what_holds_is_offered(folder: Path, described: str, store: str, time: str):
    recording = simulated(folder, described)
    moment = at_moment(recording, load_estate(SIMULATION / f"{described}.toml"), store, f"2026-11-20T{time}:00Z")
    proven = prove(recording, moment, advise(moment, Promise(hours=2)))
    assert proven.proofs[0].refused > 20_000
    assert proven.advice.plans or proven.advice.left_out
    check(recording, moment, proven)


class Recorder(Driver):
    """A driver that keeps its events."""

    def __init__(self, estate: Estate) -> None:
        super().__init__(estate)
        self.lines: list[bytes] = []

    def send(self, *events: Mapping[str, Any] | bytes) -> list[Alert]:
        self.lines += [event if isinstance(event, bytes) else msgspec.json.encode(event) for event in events]
        return super().send(*events)


def record(folder: Path, crisis: tuple[str, int, int, int]) -> tuple[Crisis, Path, int, int]:
    """Return (story, recording, time of the first refusal, end): a store fills, refuses puts and is emptied."""
    name, length, puts, gets = crisis
    story = Crisis(folder, name, length, 8 * puts, 2 * min(gets, puts - 1))
    recorder = story.driver = Recorder(story.driver.estate)
    story.fill()
    full_at = next(alert.time for alert in recorder.alerts if alert.condition == "full")
    story.gets = 2 * story.rate
    story.pass_ticks(60)
    return story, write_lines(folder / "crisis.ndjson", recorder.lines), full_at, recorder.time


@settings(max_examples=examples(25), deadline=None)
@given(crisis=crises, passed=st.sampled_from([0.3, 0.6, 0.9, 1.0]), hours=st.sampled_from([0.05, 0.3, 2.0]))
def test_nothing_is_offered_that_the_recording_refutes(
    tmp_path_factory: pytest.TempPathFactory, crisis: tuple[str, int, int, int], passed: float, hours: float
):
    """`passed`: share of the recording at the moment; behind `full_at` puts are refused."""
    story, recording, _, end = record(tmp_path_factory.mktemp("crisis"), crisis)
    estate, begin = story.driver.estate, twin.replay(recording, story.driver.estate).usage["time"][0].value
    moment = at_moment(recording, estate, story.name, int(begin + passed * (end - begin)))
    assume(is_known(moment.twin.tables.store, moment.tick))
    check(recording, moment, prove(recording, moment, advise(moment, Promise(hours=hours))))


@pytest.mark.parametrize("name", SIZES)
def test_a_plan_that_the_recording_refutes_is_enlarged_until_it_holds(tmp_path: Path, name: str):
    """Minutes ahead of the first refusal, a promise of a few minutes needs less than what comes later."""
    story, recording, full_at, _ = record(tmp_path, (name, 3000, 1, 0))
    moment = at_moment(recording, story.driver.estate, name, full_at - 120_000_000)
    advice = advise(moment, Promise(hours=0.05, confidence=0.5))
    small = advice.plans[-1]
    assert refused(recording, moment.estate, name, small.settings) > 0
    proven = prove(recording, moment, advice)
    (plan,) = (plan for plan in proven.advice.plans if plan.title == "larger")
    assert all(plan.settings[key] > value for key, value in small.settings.items() if isinstance(value, int))
    check(recording, moment, proven)


def test_what_no_size_makes_hold_is_left_out_with_its_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    story, recording, full_at, _ = record(tmp_path, ("QMD1/INVOICES", 3000, 1, 0))
    monkeypatch.setattr("twin.planning.proof._MAX_DOUBLINGS", 0)
    moment = at_moment(recording, story.driver.estate, story.name, full_at - 120_000_000)
    advice = advise(moment, Promise(hours=0.05, confidence=0.5))
    number = refused(recording, moment.estate, story.name, advice.plans[0].settings)
    proven = prove(recording, moment, advice)
    (as_it_is,) = proven.proofs
    assert proven.advice.plans == () and number > 0
    reason = f"{number:,} of {as_it_is.puts:,} refused in crisis.ndjson, {as_it_is.refused:,} as it is"
    assert proven.advice.left_out == (f"larger: {reason}",)


def test_a_recording_of_other_stores_proves_nothing(tmp_path: Path):
    story, recording, _, _ = record(tmp_path, ("QMD1/INVOICES", 3000, 1, 0))
    moment = Moment(story.driver.estate, story.twin)
    advice: Advice = advise(at_moment(recording, moment.estate, story.name), Promise(hours=1))
    other = write_lines(tmp_path / "other.ndjson", [b'{"time":"2026-11-20T12:00:00Z","qmgr":"QM01","op":"HEARTBEAT"}'])
    with pytest.raises(UsageError, match="has no event of QMD1/INVOICES"):
        prove(other, moment, advice)
