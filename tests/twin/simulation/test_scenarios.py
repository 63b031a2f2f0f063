"""Scenarios: what each of them is about, on a structure that some ten thousand messages fill."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels.layout import PUT
from tests.support.estates import small_estate
from twin.base.errors import UsageError
from twin.estate import Estate, Structure, load_estate
from twin.events import from_table
from twin.playback.replays import replay
from twin.recordings.files import open_recording
from twin.simulation import SCENARIOS, START, Outcome, demo_estate, make_scenario, parameters, play, simulate
from twin.simulation.arrivals import Traffic, constant
from twin.simulation.scenario import StoreScenario
from twin.simulation.site import Site

CLOSE = {"flat-near-limit"}  # and harmless
FAR = {"offload-stops-growth", "levelling-fill"}  # as harmless
OF_SCM = {"scm-fills-behind", "scm-over-committed", "priority-inversion"}
HERE = [  # those that play on a structure without SCM
    name
    for name, kind in SCENARIOS.items()
    if issubclass(kind, StoreScenario) and Structure in kind.plays_on and name not in OF_SCM
]
HOUR = 3_600_000_000


def first_full_hours(outcome: Outcome) -> float:
    """Hours from the start to the first 2192."""
    assert outcome.first_full is not None
    return (outcome.first_full[0] - START) / HOUR


class Played(dict[str, tuple[Outcome, Path]]):
    """Outcome and recording of each scenario, which is simulated when it is first asked for."""

    def __init__(self, estate: Estate, folder: Path) -> None:
        super().__init__()
        self.estate = estate
        self.folder = folder

    def __missing__(self, name: str) -> tuple[Outcome, Path]:
        path = self.folder / f"{name}.arrow"
        self[name] = simulate(make_scenario(name), self.estate, path, seed=1), path
        return self[name]


@pytest.fixture(scope="module")
def played(small: Estate, tmp_path_factory: pytest.TempPathFactory) -> Played:
    return Played(small, tmp_path_factory.mktemp("played"))


def of_night(names: Iterable[str], by_day: str) -> list[Any]:
    """Return names in order as parameters of which all but one are nightly."""
    return [pytest.param(name, marks=() if name == by_day else pytest.mark.nightly) for name in sorted(names)]


@pytest.mark.parametrize("name", sorted(set(HERE) - CLOSE - FAR))
@pytest.mark.nightly
def test_what_stops_slows_or_grows_ends_in_2192_of_the_structure_it_is_about(played: Played, name: str) -> None:
    outcome, _ = played[name]
    assert outcome.first_full is not None
    assert outcome.first_full[1] == "QSG1/APP1"
    assert outcome.stores["QSG1/APP1"].refused > 10
    assert all(item.refused == 0 for store, item in outcome.stores.items() if store != "QSG1/APP1")


@pytest.mark.parametrize("name", of_night(FAR, "short-outages"))
def test_what_only_looks_like_a_fill_ends_in_no_2192(played: Played, name: str) -> None:
    outcome, _ = played[name]
    assert outcome.first_full is None
    assert outcome.fullest == "QSG1/APP1"
    assert outcome.stores["QSG1/APP1"].peak_pct > 50


@pytest.mark.parametrize("name", of_night(CLOSE, "sawtooth"))
def test_what_is_harmless_comes_close_and_ends_in_no_2192(played: Played, name: str) -> None:
    outcome, _ = played[name]
    assert outcome.first_full is None
    assert outcome.fullest == "QSG1/APP1"
    assert outcome.stores["QSG1/APP1"].peak_pct > 88


@pytest.mark.parametrize("name", HERE)
@pytest.mark.nightly
def test_the_twin_finds_nothing_impossible_in_what_is_simulated(played: Played, small: Estate, name: str) -> None:
    outcome, path = played[name]
    replayed = replay(path, small)
    assert replayed.events == outcome.events
    assert replayed.dead_letters == 0
    for store, state in replayed.states.items():
        wrong = {key: getattr(state, key) for key in ("duplicates", "gaps", "unmatched_gets", "overfull_puts")}
        assert wrong == dict.fromkeys(wrong, 0), store
        assert state.full_puts == outcome.stores[store].refused


def test_the_getter_outage_is_full_late_in_the_outage_and_drains_after_it(played: Played, small: Estate) -> None:
    outcome, path = played["getter-outage"]
    assert 1.5 < first_full_hours(outcome) < 2.45
    assert replay(path, small).states["QSG1/APP1"].messages < 200


def test_the_slow_consumer_is_full_before_it_catches_up(played: Played) -> None:
    assert 2.0 < first_full_hours(played["slow-consumer"][0]) < 4.5


def test_only_the_highest_burst_fills(played: Played) -> None:
    assert 4.0 < first_full_hours(played["burst"][0]) < 4.2


def test_growing_messages_make_the_rules_move_the_danger_into_the_data_sets(
    played: Played,
) -> None:
    structure = played["growing-message-size"][0].stores["QSG1/APP1"]
    assert structure.offload_rule >= 2
    assert structure.peak_pct < 90
    assert structure.peak_smds_pct["QM01"] > 99


def test_a_data_set_that_cannot_expand_fills_while_the_structure_looks_empty(
    played: Played,
) -> None:
    structure = played["smds-cannot-expand"][0].stores["QSG1/APP1"]
    assert structure.peak_pct < 5
    assert structure.peak_smds_pct["QM01"] > 97


def test_the_hog_is_one_queue_and_others_get_2192_with_it(played: Played) -> None:
    outcome, path = played["one-queue-hogging"]
    refused: dict[str, int] = {}
    depth: dict[str, int] = {}
    for event in _events(path):
        queue = event["queue"]
        if event["reason"] == 2192:
            refused[queue] = refused.get(queue, 0) + 1
        elif event["time"] < "2026-11-20T01:30" and event["op"] in {"PUT", "GET"}:
            depth[queue] = depth.get(queue, 0) + (1 if event["op"] == "PUT" else -1)
    assert refused["PAYMENTS"] > 100
    assert depth["ORDERS"] > 10 * abs(depth["PAYMENTS"])
    assert first_full_hours(outcome) < 2.5


def _events(path: Path) -> list[dict[str, object]]:
    rows = []
    for chunk in open_recording(path):
        rows += from_table(chunk.table(np.arange(len(chunk))))
    return rows


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others(small: Estate, tmp_path: Path) -> None:
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        simulate(make_scenario("getter-outage", settings={"hours": 1}), small, tmp_path / f"{name}.arrow", seed)
    first, second, other = ((tmp_path / f"{name}.arrow").read_bytes() for name in "abc")
    assert first == second
    assert first != other


def test_the_demo_crosses_all_three_rules_fills_its_data_sets_and_ends_in_2192(tmp_path: Path) -> None:
    outcome = simulate(make_scenario("getter-outage"), demo_estate(), tmp_path / "demo.arrow", seed=1)
    structure = outcome.stores["QSG1/APP1"]
    assert structure.offload_rule == 3
    assert structure.peak_smds_pct["QM01"] > 99
    assert 1.5 < first_full_hours(outcome) < 2.5
    assert 500_000 < outcome.events < 2_000_000
    assert outcome.stores["QSG1/APP2"].peak_pct < 5


def test_a_rate_store_queue_and_start_may_be_chosen(small: Estate) -> None:
    scenario = make_scenario(
        "getter-outage", store="QSG1/APP2", queue="AUDIT", rate=5.0, start=START + HOUR, settings={"hours": "0.5"}
    )
    events = [event for table in play(scenario, small) for event in from_table(table)]
    puts = [event for event in events if event["queue"] == "AUDIT" and event["op"] == "PUT"]
    assert len(puts) == pytest.approx(5 * 1800, rel=0.1)
    assert {event["qmgr"] for event in events} == {"QM01", "QM02", "QM03"}
    assert {event["queue"] for event in events} == {"AUDIT", "ORDERS"}
    assert events[0]["time"].startswith("2026-11-20T01:00:")
    assert events[-1]["time"].startswith("2026-11-20T01:29:")


def test_what_fits_is_tried_at_a_smaller_scale_where_the_structure_is_large(tmp_path: Path) -> None:
    estate = load_estate(small_estate(tmp_path, size="4G", smds="16M"))
    structure = estate.stores["QSG1/APP1"]
    assert isinstance(structure, Structure)
    traffic = Traffic(length=constant(1_000), spread=0.0)
    site = Site.find(estate)
    whole = site.capacity(traffic, np.random.default_rng(1)).messages
    assert whole == pytest.approx(1_925_131 * 0.9, rel=0.1)  # some beyond 90 %, as far as the data sets have room


def test_getters_leave_more_room_than_they_take_where_offloaded_messages_come(small: Estate) -> None:
    site, traffic = Site.find(small), Traffic()
    still = site.capacity(traffic, np.random.default_rng(1)).messages
    served = site.capacity(traffic, np.random.default_rng(1), got=0.5).messages
    assert served > 1.5 * still


def test_puts_come_from_several_queue_managers_in_different_shares(small: Estate) -> None:
    flows = Site.find(small).puts(constant(90.0), Traffic())
    rates = [float(flow.rate(np.zeros(1))[0]) for flow in flows]
    assert [small.routes[flow.route].qmgr for flow in flows] == ["QM01", "QM02", "QM03"]
    assert rates == pytest.approx([40.0, 30.0, 20.0])
    assert all(flow.op == PUT for flow in flows)


# --- wrong use -------------------------------------------------------------------------------------------------------


def test_an_unknown_scenario_is_answered_with_those_there_are() -> None:
    with pytest.raises(
        UsageError, match=r"there is no scenario outage; expected: .*getter-outage, slow-consumer, burst"
    ):
        make_scenario("outage")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"outage": "two"}, "outage of getter-outage is two; expected: a number from 0.01"),
        ({"outage": "nan"}, "outage of getter-outage is nan"),
        ({"outage": "inf"}, "outage of getter-outage is inf"),
        ({"hours": -1}, "hours of getter-outage is -1; expected: a number from 0.01 to 8784"),
        (
            {"depth": 1},
            "getter-outage has no parameter depth; expected: hours, length, spread, noise, wander, outage_after",
        ),
        ({"store": 1}, "getter-outage has no parameter store"),
    ],
    ids=["word", "nan", "infinite", "range", "unknown", "no-number"],
)
def test_a_wrong_parameter_is_answered_with_what_is_right(settings: dict[str, float | str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_scenario("getter-outage", settings=settings)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf"), 1e300], ids=str)
def test_a_rate_is_more_than_nought(rate: float) -> None:
    with pytest.raises(UsageError, match="expected: messages per second, more than 0"):
        make_scenario("burst", rate=rate)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"store": "QSG1/APP9"}, "store QSG1/APP9 cannot be simulated; expected: .*: QSG1/APP1, QSG1/APP2"),
        ({"queue": "AUDIT"}, "QSG1/APP1 has no queue AUDIT; expected: ORDERS, PAYMENTS"),
    ],
    ids=["store", "queue"],
)
def test_a_store_or_queue_that_is_not_there_is_answered_with_those_that_are(
    small: Estate, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        simulate(make_scenario("getter-outage", **options), small, tmp_path / "x.arrow")  # type: ignore[arg-type]
    assert not (tmp_path / "x.arrow").exists()


def test_the_hog_needs_others_beside_it(small: Estate, tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match="one-queue-hogging: QSG1/APP2 has only AUDIT; expected: a store of two queues"
    ):
        simulate(make_scenario("one-queue-hogging", store="QSG1/APP2"), small, tmp_path / "x.arrow")


def test_data_sets_that_expand_without_limit_are_reported_before_anything_is_written(tmp_path: Path) -> None:
    path = small_estate(tmp_path)
    path.write_text(path.read_text().replace('max_size = "16M"', 'secondary = "16M"'))
    with pytest.raises(UsageError, match="is full before its data sets are; expected: an estate whose"):
        simulate(make_scenario("smds-cannot-expand"), load_estate(path), tmp_path / "x.arrow")
    assert not (tmp_path / "x.arrow").exists()


def test_a_recording_is_named_as_one(small: Estate, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no recording by its name"):
        simulate(make_scenario("burst"), small, tmp_path / "x.csv")


def test_a_recording_that_fails_is_not_left_behind(small: Estate, tmp_path: Path) -> None:
    def fail(_: int, __: int) -> None:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        simulate(make_scenario("getter-outage"), small, tmp_path / "x.arrow", progress=fail)
    assert not (tmp_path / "x.arrow").exists()


def test_every_scenario_says_in_one_sentence_what_happens_and_explains_its_parameters() -> None:
    for kind in SCENARIOS.values():
        assert kind.sentence.endswith(".")
        assert "\n" not in kind.sentence
        assert {"hours", "length", "spread", "noise", "wander"} <= set(parameters(kind))
        assert all(text for _, text in parameters(kind).values())
