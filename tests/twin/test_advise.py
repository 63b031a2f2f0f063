"""Advice: plans that keep a promise, by the roll and by the simulated system itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import twin
from twin.advise import Advice, Promise, advise
from twin.errors import UsageError
from twin.estate import Estate, Smds, load_estate
from twin.simulation import Outcome
from twin.whatif import Moment, Traffic, at_moment, what_if

STORE = "QSG1/APP1"
NO_GETTERS = Traffic(gets=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("advise")


def simulated(estate: Estate, path: Path) -> Outcome:
    return twin.simulate(twin.make_scenario("getter-outage"), estate, path, seed=1)


@pytest.fixture(scope="module")
def resting(folder: Path) -> Moment:
    """The demo's structure five minutes before its getter stops, for two hours."""
    simulated(twin.demo_estate(), folder / "friday.arrow")
    return at_moment(folder / "friday.arrow", twin.demo_estate(), STORE, "2026-11-20T00:25:00Z")


@pytest.fixture(scope="module")
def advice(resting: Moment) -> Advice:
    return advise(resting, Promise(hours=2.2), NO_GETTERS)


def test_a_structure_that_fills_gets_plans_that_keep_the_promise(resting: Moment, advice: Advice):
    assert not advice.is_kept and advice.smaller == {}
    assert [plan.title for plan in advice.plans] == ["offload sooner, and larger", "larger"]
    for plan in advice.plans:
        assert what_if(resting, plan.settings, NO_GETTERS, 2.2 * 3600).after == plan.outcome
        assert plan.outcome.probability <= 0.1
        text = " ".join(plan.steps)
        assert "SETXCF START,REBUILD,STRNAME=QSG1APP1" in text and "RESET SMDS(QM01) CFSTRUCT(APP1)" in text


def test_no_size_of_a_plan_can_be_smaller_alone(resting: Moment, advice: Advice):
    plan = advice.plans[-1]
    for name, value in plan.settings.items():
        smaller = {**plan.settings, name: value - value // 8}
        assert what_if(resting, smaller, NO_GETTERS, 2.2 * 3600).after.probability > 0.1


def test_a_replay_with_the_plan_has_room_for_every_put(advice: Advice, folder: Path):
    """The outage lasts two hours; as it is, puts are refused 92 minutes after its beginning. Here all are stored."""
    with pa.ipc.open_file(folder / "friday.arrow") as reader:
        table = reader.read_all()
    number = table.schema.get_field_index("reason")
    accepted = table.set_column(
        number, table.schema.field(number), pa.nulls(len(table), table.schema.field(number).type)
    )
    with pa.ipc.new_file(folder / "accepted.arrow", accepted.schema) as writer:
        writer.write_table(accepted, max_chunksize=65_536)
    estate = twin.demo_estate()
    settings = advice.plans[-1].settings
    config = estate.stores[STORE]
    datasets = {
        qmgr: Smds(size=settings.get(f"smds.{qmgr}.size", dataset.max_size)) for qmgr, dataset in config.smds.items()
    }
    changed = replace(config, size=settings.get("size", config.size), smds=datasets)
    with_plan = replace(estate, stores={**estate.stores, STORE: changed})
    assert twin.replay(folder / "accepted.arrow", estate).states[STORE]["overfull_puts"] > 10_000
    assert twin.replay(folder / "accepted.arrow", with_plan).states[STORE]["overfull_puts"] == 0


def test_where_the_promise_is_kept_it_says_what_could_be_smaller(resting: Moment):
    advice = advise(resting, Promise(hours=1), NO_GETTERS)
    assert advice.is_kept and advice.plans == ()
    assert 0 < advice.smaller["size"] < 512 * 1024 * 1024
    for name, value in advice.smaller.items():
        assert what_if(resting, {name: value}, NO_GETTERS, 3600).after.probability <= 0.1


@pytest.mark.parametrize("options", [{"hours": 0}, {"hours": 25}, {"hours": 2, "confidence": 1.0}])
def test_a_promise_has_bounds(options: dict):
    with pytest.raises(UsageError, match="expected"):
        Promise(**options)


def test_initsize_goes_with_size(folder: Path, resting: Moment):
    text = Path(twin.__file__).parent.joinpath("simulation", "demo.toml").read_text(encoding="utf-8")
    path = folder / "initsize.toml"
    path.write_text(text.replace('size = "512M"', 'size = "512M"\ninit_size = "512M"'), encoding="utf-8")
    moment = at_moment(folder / "friday.arrow", load_estate(path), STORE, "2026-11-20T00:25:00Z")
    assert moment.tick == resting.tick
    plan = advise(moment, Promise(hours=2.2), NO_GETTERS).plans[-1]
    assert plan.settings["init_size"] == plan.settings["size"] > 512 * 1024 * 1024
    assert "INITSIZE(" in plan.steps[0]
