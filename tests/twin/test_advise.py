"""Advice: plans that keep a promise, by the roll and by the simulated system itself."""

from __future__ import annotations

from pathlib import Path

import pytest

import twin
from tests.support.moments import after_rest, structure_at_rest
from twin.base.errors import UsageError
from twin.estate import Estate, load_estate
from twin.estate.settings import changed_config, changed_text
from twin.planning.advise import Advice, Promise, advise, advise_members
from twin.planning.proof import AS_IT_IS, prove
from twin.planning.whatif import Moment, Traffic, at_moment, what_if
from twin.simulation import Outcome
from twin.stores.uniform_cluster import UniformClusterTwin
from twin.testing import Driver

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
        assert (
            "SETXCF START,REBUILD,STRNAME=QSG1APP1" in text and "ALTER SMDS(QM01) CFSTRUCT(APP1) DSEXPAND(YES)" in text
        )


def test_no_size_of_a_plan_can_be_smaller_alone(resting: Moment, advice: Advice):
    plan = advice.plans[-1]
    for name, value in plan.settings.items():
        smaller = {**plan.settings, name: value - value // 8}
        assert what_if(resting, smaller, NO_GETTERS, 2.2 * 3600).after.probability > 0.1


@pytest.mark.nightly
def test_the_recording_asked_again_with_a_plan_has_room_for_every_put(resting: Moment, advice: Advice, folder: Path):
    """The outage lasts two hours; as it is, puts are refused 92 minutes after its beginning. Here all are stored."""
    proven, (without, *with_plans) = prove(folder / "friday.arrow", resting, advice)
    assert proven == advice
    assert without.title == AS_IT_IS and without.refused == without.recorded > 10_000
    assert without.first_full is not None and max(without.usage_pct) == 100.0
    assert [proof.title for proof in with_plans] == [plan.title for plan in advice.plans]
    for proof in with_plans:
        assert (proof.refused, proof.first_full, proof.recorded) == (0, None, without.recorded)
        assert len(proof.times) == len(proof.usage_pct) > 100 and 50 < max(proof.usage_pct) < 100


def test_the_texts_of_a_plan_make_the_estate_that_was_rolled(advice: Advice, folder: Path):
    """The changed file alone, and the old file with the MQSC and CFRM texts: both are the plan's store."""
    described = Path(twin.__file__).parent / "simulation" / "demo.toml"
    estate = load_estate(described)
    for number, plan in enumerate(advice.plans):
        expected = changed_config(estate.stores[STORE], plan.settings)
        changed = folder / f"changed-{number}.toml"
        changed.write_text(changed_text(described, estate.stores[STORE], plan.settings, folder), encoding="utf-8")
        loaded = load_estate(changed)
        assert loaded.stores[STORE] == expected
        assert set(loaded.warnings) <= set(estate.warnings)
        (folder / f"{number}.cfrm").write_text("DATA TYPE(CFRM)\n" + plan.cfrm, encoding="utf-8")
        imports = f'\n[[import]]\ncfrm = "{number}.cfrm"\n'
        if plan.mqsc:
            (folder / f"{number}.mqsc").write_text(plan.mqsc, encoding="utf-8")
            imports += f'\n[[import]]\nmqsc = "{number}.mqsc"\nqueue_sharing_group = "QSG1"\n'
        text = described.read_text(encoding="utf-8").replace('size = "512M"\nfull_threshold = 80\n', "")
        sizes = {f"smds.{qmgr}.max_size": plan.settings.get(f"smds.{qmgr}.max_size") for qmgr in ("QM01", "QM02")}
        for value in sizes.values():
            text = text.replace('max_size = "256M"', f"max_size = {value}", 1)
        (folder / f"texts-{number}.toml").write_text(text + imports, encoding="utf-8")
        assert load_estate(folder / f"texts-{number}.toml").stores[STORE] == expected


def test_where_the_promise_is_kept_it_says_what_could_be_smaller(resting: Moment):
    advice = advise(resting, Promise(hours=1), NO_GETTERS)
    assert advice.is_kept and advice.plans == ()
    assert 0 < advice.smaller["size"]["size"] < 512 * 1024 * 1024
    for settings in advice.smaller.values():
        assert what_if(resting, settings, NO_GETTERS, 3600).after.probability <= 0.1


@pytest.mark.nightly
def test_a_smaller_data_set_takes_its_first_size_along_and_is_left_out_where_the_recording_refutes_it(
    resting: Moment, folder: Path
):
    """Half an hour of the present traffic needs next to nothing, the outage later in the recording does."""
    advice = advise(resting, Promise(hours=0.5))
    least = advice.smaller["smds.QM01.max_size"]
    assert least["smds.QM01.size"] == least["smds.QM01.max_size"] < 64 * 1024 * 1024
    proven, (without, *smaller) = prove(folder / "friday.arrow", resting, advice)
    assert [proof.title for proof in smaller] == list(proven.smaller)
    assert all(proof.refused <= without.refused for proof in smaller)
    assert any(reason.startswith("size smaller: ") for reason in proven.left_out)


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
    assert "INITSIZE(" in plan.steps[0] and "INITSIZE(" in plan.cfrm


# --- other kinds and settings ---------------------------------------------------------------------------------------


def test_data_sets_that_do_not_expand_are_let_to_or_copied(tmp_path: Path):
    tables = '[smds."QSG1/APP1/QM01"]\nsize = "64M"\nmax_size = "8G"\n---\n'
    own = 'size = "256M"\nds_expand = false\noffld1_th = 30\noffld1_sz = 0\noffld2_sz = "64K"\noffld3_sz = "64K"\n'
    moment = structure_at_rest(tmp_path, tables + own, length=20_000, rate=10)
    advice = advise(moment, Promise(hours=2), NO_GETTERS)
    assert advice.outcome.resource == "smds/QM01"
    expand, larger = advice.plans
    assert expand.title == "let data sets expand" and expand.mqsc == "ALTER CFSTRUCT(APP1) DSEXPAND(YES)\n"
    assert set(larger.settings) == {"smds.QM01.size"} and "RESET SMDS(QM01) CFSTRUCT(APP1)" in larger.steps[0]


def test_a_plan_that_brings_a_new_warning_is_left_out_with_it(tmp_path: Path):
    facility = '[coupling_facility.CF01]\nsize = "300M"\n\n[smds."QSG1/APP1/QM01"]\nsize = "64G"\n---\n'
    own = 'size = "256M"\ncoupling_facility = "CF01"\noffld1_sz = "64K"\noffld2_sz = "64K"\noffld3_sz = "64K"\n'
    moment = structure_at_rest(tmp_path, facility + own, length=20_000, rate=10)
    advice = advise(moment, Promise(hours=2), NO_GETTERS)
    assert [plan.title for plan in advice.plans] == ["offload sooner"]
    assert len(advice.left_out) == 1 and advice.left_out[0].startswith("larger: CF01: its structures may grow to")


@pytest.fixture
def private(tmp_path: Path) -> Driver:
    path = tmp_path / "private.toml"
    path.write_text(
        "schema = 1\n\n[queue_manager.QM01]\n\n"
        '[queue_manager.QMD1]\nplatform = "distributed"\n\n'
        '[page_set."QM01/4"]  # private queues\npages = 20000\nexpand = "NONE"\n\n'
        '[storage_class."QM01/REMOTE"]\npage_set = 4\n\n'
        '[queue."QM01/LOCAL"]\nstorage_class = "REMOTE"\n\n[queue_file."QMD1/BATCH"]\nmax_size = "100M"\n',
        encoding="utf-8",
    )
    return Driver(path)


def test_a_page_set_is_let_expand_or_copied_to_a_larger_one(private: Driver, tmp_path: Path):
    moment = after_rest(private, "QM01/PS04", length=3_000, rate=5, queue="LOCAL")
    advice = advise(moment, Promise(hours=2), NO_GETTERS)
    assert advice.outcome.resource == "pages" and not advice.is_kept
    expand, larger = advice.plans
    assert expand.settings == {"expand": "SYSTEM"} and expand.mqsc == "ALTER PSID(4) EXPAND(SYSTEM)\n"
    assert 36_000 < larger.settings["pages"] < 72_000 and "Copy the page set" in larger.steps[0]
    config = private.estate.stores["QM01/PS04"]
    for plan in advice.plans:
        changed = tmp_path / "changed.toml"
        changed.write_text(changed_text(tmp_path / "private.toml", config, plan.settings, tmp_path), encoding="utf-8")
        assert load_estate(changed).stores["QM01/PS04"] == changed_config(config, plan.settings)
        assert "# private queues" in changed.read_text(encoding="utf-8")
        assert set(load_estate(changed).warnings) <= set(private.estate.warnings)


@pytest.mark.parametrize(("puts", "members"), [(0.5, 1), (1.0, 2), (1.5, 3), (2.0, 4)])
def test_members_of_a_cluster_follow_the_load(tmp_path: Path, puts: float, members: int):
    """Three members of 1,000 messages/s each, two of which carry 1,600."""
    described = tmp_path / "cluster.toml"
    described.write_text(
        'schema = 1\n\n[uniform_cluster.UC01]\nqueue_managers = ["A", "B", "C"]\nmessages_per_second = 1000\n\n'
        + "".join(f'[queue_file."{name}/REQUEST"]\n' for name in "ABC"),
        encoding="utf-8",
    )
    driver = Driver(described)
    for _ in range(30):
        for name in "AB":
            driver.put("REQUEST", qmgr=name, length=100, count=8_000)
            driver.get("REQUEST", qmgr=name, count=8_000)
        driver.wait(seconds=10)
    cluster = driver._player.twins["UC01"]
    assert isinstance(cluster, UniformClusterTwin)
    advice = advise_members(cluster, puts)
    assert (advice.active, advice.members, advice.is_enough) == (2, members, members <= 2)
    assert 1_500 * puts < advice.load_per_s < 1_700 * puts and advice.carried_per_s == 2_000
    assert advice.start == (() if members <= 2 else ("C",))
    started = [] if members <= 2 else ["Start C; UC01 rebalances the connected applications: strmqm C"]
    assert list(advice.steps[:1]) == started
    assert len(advice.steps) == max(0, members - 2) and ("Create 1 more" in " ".join(advice.steps)) == (members == 4)


def test_a_queue_file_may_be_larger_or_smaller(private: Driver):
    moment = after_rest(private, "QMD1/BATCH", length=3_000, rate=5, queue="BATCH")
    advice = advise(moment, Promise(hours=6), NO_GETTERS)
    (larger,) = advice.plans
    assert larger.mqsc == f"ALTER QLOCAL(BATCH) MAXFSIZE({larger.settings['max_size'] >> 20})\n"
    modest = advise(moment, Promise(hours=1), NO_GETTERS)
    assert modest.is_kept and modest.smaller["max_size"]["max_size"] < 100 << 20


def test_a_changed_text_in_another_folder_names_its_imports_from_there(tmp_path: Path):
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "in" / "policy.txt").write_text("STRUCTURE NAME(QSG1APP1) SIZE(1G)\n", encoding="utf-8")
    described = tmp_path / "in" / "estate.toml"
    described.write_text(
        'schema = 1\n\n[[import]]\ncfrm = "policy.txt"  # of the site\n\n'
        '[queue_sharing_group.QSG1]\nqueue_managers = ["QM01"]\n\n[structure."QSG1/APP1"]\ncf_level = 5',
        encoding="utf-8",
    )
    config = load_estate(described).stores[STORE]
    text = changed_text(described, config, {"size": 2 << 30, "offld1_th": 60}, tmp_path / "out")
    assert 'cfrm = "../in/policy.txt"  # of the site' in text
    assert text.endswith('cf_level = 5\nsize = "2G"\noffld1_th = 60\n')
    (tmp_path / "out" / "estate.toml").write_text(text, encoding="utf-8")
    changed = load_estate(tmp_path / "out" / "estate.toml").stores[STORE]
    assert changed == changed_config(config, {"size": 2 << 30, "offld1_th": 60})


def test_an_estate_without_tables_of_its_own_cannot_be_changed(tmp_path: Path):
    described = tmp_path / "estate.toml"
    described.write_text(
        'schema = 1\nqueue_sharing_group.QSG1.queue_managers = ["QM01"]\n'
        'structure = {"QSG1/APP1" = {size = "1G", cf_level = 5}}\n',
        encoding="utf-8",
    )
    config = load_estate(described).stores[STORE]
    with pytest.raises(UsageError, match="tables of their own"):
        changed_text(described, config, {"size": 2 << 30}, tmp_path)
