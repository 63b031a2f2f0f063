"""Stories of page sets, queue files and uniform clusters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.twin.simulation.recorded import Recorded
from twin.base.errors import UsageError
from twin.estate import Estate, UniformCluster, load_estate
from twin.playback.replays import replay
from twin.simulation import START, Outcome, make_scenario, simulate
from twin.simulation.stories.mechanisms import UniformClusterRamp, table

pytestmark = pytest.mark.nightly

MIXED = """\
schema = 1
[queue_manager.QM01]
platform = "zos"
version = "9.4"
[page_set."QM01/4"]
pages = 8000
expand = "{expand}"
secondary_pages = 400
max_pages = 12000
[storage_class."QM01/REMOTE"]
page_set = 4
[queue."QM01/LOCAL.REPLIES"]
storage_class = "REMOTE"
[queue."QM01/LOCAL.ORDERS"]
storage_class = "REMOTE"
[queue_manager.QMD1]
platform = "distributed"
[queue_file."QMD1/INVOICES"]
max_size = "32M"
"""

CLUSTER = "schema = 1\n[uniform_cluster.UC01]\nqueue_managers = [{members}]\nmessages_per_second = 21.07\n" + "".join(
    f'[queue_manager.UC01QM{number:02}]\nplatform = "distributed"\n[queue_file."UC01QM{number:02}/REQUEST"]\n'
    for number in range(1, 13)
)


@pytest.fixture
def mixed(tmp_path: Path) -> Estate:
    """Load a page set that cannot expand and a queue file."""
    path = tmp_path / "mixed.toml"
    path.write_text(MIXED.format(expand="NONE"), encoding="utf-8")
    return load_estate(path)


@pytest.fixture
def cluster(tmp_path: Path) -> Estate:
    """Load the twelve members of the published test, a thousand times slower."""
    path = tmp_path / "cluster.toml"
    members = ", ".join(f'"UC01QM{number:02}"' for number in range(1, 13))
    path.write_text(CLUSTER.replace("{members}", members), encoding="utf-8")
    return load_estate(path)


def play_story(
    name: str, estate: Estate, folder: Path, store: str | None = None, **settings: float
) -> tuple[Outcome, Path]:
    path = folder / "told.arrow"
    return simulate(make_scenario(name, store=store, settings=settings), estate, path, seed=1), path


def first_full_hours(outcome: Outcome, store: str) -> float:
    """Hours from the start to its first 2192."""
    assert outcome.first_full is not None
    assert outcome.first_full[1] == store
    return (outcome.first_full[0] - START) / 3.6e9


def test_a_page_set_that_cannot_expand_fills_while_the_getter_is_away(mixed: Estate, tmp_path: Path) -> None:
    outcome, path = play_story("page-set-expand-none", mixed, tmp_path)
    assert 1.5 < first_full_hours(outcome, "QM01/PS04") < 2.6
    assert outcome.stores["QM01/PS04"].peak_pct > 99
    replayed = replay(path, mixed)
    assert replayed.states["QM01/PS04"].full_puts == outcome.stores["QM01/PS04"].refused > 10
    assert replayed.states["QM01/PS04"].overfull_puts == 0
    assert replayed.states["QM01/PS04"].expansions == 0
    assert play_story("page-set-expand-none", mixed, tmp_path, full_at=1.5)[0].first_full is None


def test_a_page_set_that_expands_is_another_story(tmp_path: Path) -> None:
    (tmp_path / "user.toml").write_text(MIXED.format(expand="USER"), encoding="utf-8")
    expands = load_estate(tmp_path / "user.toml")
    with pytest.raises(UsageError, match='QM01/PS04 has expand = "USER"; expected: a page set with expand = "NONE"'):
        play_story("page-set-expand-none", expands, tmp_path)
    outcome, path = play_story("getter-outage", expands, tmp_path, store="QM01/PS04")
    assert 1.5 < first_full_hours(outcome, "QM01/PS04") < 2.6
    assert replay(path, expands).states["QM01/PS04"].expansions >= 9


def test_a_queue_file_grows_is_cut_back_and_grows_to_its_end(mixed: Estate, tmp_path: Path) -> None:
    outcome, path = play_story("queue-file-growth", mixed, tmp_path)
    assert first_full_hours(outcome, "QMD1/INVOICES") > 2.5
    first, between, _ = Recorded(path).depth("INVOICES", 1.0, 2.4, 4.0)
    assert first > 1_000 > 20 * between
    state = replay(path, mixed).states["QMD1/INVOICES"]
    assert state.truncations >= 2
    assert state.checkpoints >= state.truncations
    assert state.full_puts == outcome.stores["QMD1/INVOICES"].refused > 10
    assert state.overfull_puts == 0
    outcome, path = play_story("queue-file-growth", mixed, tmp_path, reach=0.6, hours=6)
    assert outcome.first_full is None
    assert replay(path, mixed).states["QMD1/INVOICES"].file_bytes < 1 << 20


def test_the_table_of_the_seed_is_the_ramp() -> None:
    rows = table(20_700, 12, 21_070)
    assert len(rows) == 23
    assert [(row.target, row.members) for row in rows[:4]] == [(20_700, 1), (41_400, 1), (41_400, 2), (62_100, 2)]
    assert (rows[-1].target, rows[-1].achieved, rows[-1].members) == (248_400, 248_400, 12)
    published = {1: 21_070, 3: 42_244, 5: 63_108, 11: 125_901, 21: 227_675}  # rows in which the members are short
    assert all(rows[i].achieved == pytest.approx(rate, rel=0.02) for i, rate in published.items())


def test_members_are_started_one_after_the_other_and_carry_what_they_can(cluster: Estate, tmp_path: Path) -> None:
    outcome, path = play_story("uniform-cluster-ramp", cluster, tmp_path)
    assert outcome.first_full is None
    recorded = Recorded(path)
    config = cluster.stores["UC01"]
    assert isinstance(config, UniformCluster)
    scenario = UniformClusterRamp()
    puts = recorded.op == "PUT"
    for place, row in enumerate(scenario.rows(config)):
        here = (recorded.hours >= place / 30) & (recorded.hours < (place + 1) / 30)
        assert (here & puts).sum() / 120 == pytest.approx(row.achieved, rel=0.15)
        assert np.unique(recorded.qmgr[here & puts]).size == row.members
        assert np.unique(recorded.qmgr[here]).size == row.members, "a member that does not run sends nothing"
    assert recorded.direct[puts].mean() == pytest.approx(0.9, abs=0.02)
    assert set(recorded.length[puts]) == {2048}
    assert not recorded.persistent[puts].any()
    replayed = replay(path, cluster)
    assert replayed.dead_letters == 0
    assert all(state.unmatched_gets == 0 for name, state in replayed.states.items() if name != "UC01")
    assert {alert.condition for alert in replayed.alerts if alert.store == "UC01"} == {"capacity"}


def test_a_ramp_needs_a_cluster_whose_members_have_the_queue(mixed: Estate, cluster: Estate, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no uniform cluster; expected: describe one"):
        play_story("uniform-cluster-ramp", mixed, tmp_path)
    with pytest.raises(UsageError, match="store UC02 is no uniform cluster; expected: UC01"):
        play_story("uniform-cluster-ramp", cluster, tmp_path, store="UC02")
    scenario = make_scenario("uniform-cluster-ramp", queue="REPLY")
    with pytest.raises(UsageError, match=r'UC01QM01 of UC01 has no such queue; expected: .queue_file."UC01QM01/REPLY"'):
        simulate(scenario, cluster, tmp_path / "x.arrow")
