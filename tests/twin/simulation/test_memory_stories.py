"""Stories of storage class memory: it fills behind a structure, it is shared, it takes what is needed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.twin.simulation.recorded import Recorded
from twin.base.errors import UsageError
from twin.estate import Estate, load_estate
from twin.playback.replays import replay
from twin.simulation import START, Outcome, make_scenario, simulate
from twin.simulation.site import Site

pytestmark = pytest.mark.nightly

ESTATE = """\
schema = 1
[coupling_facility.CF01]
size = "4G"
scm = "{scm}"
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[structure."QSG1/APP1"]
coupling_facility = "CF01"
size = "16M"
scm_max_size = "24M"
offload = "SMDS"
offld1_sz = "64K"
offld2_sz = "64K"
offld3_sz = "64K"
[structure."QSG1/APP2"]
coupling_facility = "CF01"
size = "16M"
scm_max_size = "24M"
offld1_sz = "64K"
offld2_sz = "64K"
offld3_sz = "64K"
[queue."QSG1/ORDERS"]
structure = "APP1"
[queue."QSG1/PAYMENTS"]
structure = "APP1"
[queue."QSG1/AUDIT"]
structure = "APP2"
"""
SMDS = "".join(
    f'[smds."QSG1/{structure}/{qmgr}"]\nsize = "16M"\n' for structure in ("APP1", "APP2") for qmgr in ("QM01", "QM02")
)
FIRST, SECOND = "QSG1/APP1", "QSG1/APP2"


def estate_of(folder: Path, scm: str) -> Estate:
    path = folder / f"scm-{scm}.toml"
    path.write_text(ESTATE.replace("{scm}", scm) + SMDS, encoding="utf-8")
    return load_estate(path)


def play_story(name: str, estate: Estate, folder: Path, **settings: float) -> tuple[Outcome, Path]:
    path = folder / "told.arrow"
    return simulate(make_scenario(name, settings=settings), estate, path, seed=1), path


def hours(outcome: Outcome, store: str = FIRST) -> float:
    """From the start to the first 2192 of the store."""
    full = outcome.stores[store].first_full
    assert full is not None
    return (full - START) / 3.6e9


def test_scm_fills_behind_a_structure_that_is_held_at_90_percent(tmp_path: Path) -> None:
    estate = estate_of(tmp_path, "48M")
    outcome, path = play_story("scm-fills-behind", estate, tmp_path)
    assert 1.5 < hours(outcome) < 2.6
    assert outcome.stores[FIRST].peak_scm_pct > 99
    half = [alert for alert in replay(path, estate).alerts if alert.store == FIRST and alert.usage_pct > 92]
    assert all((alert.time - START) / 3.6e9 > hours(outcome) - 0.4 for alert in half)
    in_time, _ = play_story("scm-fills-behind", estate, tmp_path, full_at=1.6)
    assert in_time.first_full is None
    assert 20 < in_time.stores[FIRST].peak_scm_pct < 90
    assert in_time.stores[FIRST].peak_pct < 91


def test_what_is_got_waits_in_scm_for_what_nobody_gets(tmp_path: Path) -> None:
    estate = estate_of(tmp_path, "48M")
    outcome, path = play_story("priority-inversion", estate, tmp_path, full_at=1.5)
    assert outcome.first_full is None
    assert outcome.stores[FIRST].faults > 500
    assert outcome.stores[FIRST].peak_scm_pct > 10
    recorded = Recorded(path)
    before, after = recorded.depth("PAYMENTS", 1.0, 2.8)
    assert after == pytest.approx(before, rel=0.3)  # the others are got as they always are
    assert 1.5 < hours(play_story("priority-inversion", estate, tmp_path)[0]) < 3.0


def test_two_structures_with_room_run_out_of_the_scm_they_share(tmp_path: Path) -> None:
    shared = estate_of(tmp_path, "24M")
    outcome, path = play_story("scm-over-committed", shared, tmp_path)
    assert 1.0 < min(hours(outcome, store) for store in (FIRST, SECOND) if outcome.stores[store].refused) < 2.5
    peaks = [outcome.stores[store].peak_scm_pct for store in (FIRST, SECOND)]
    assert max(peaks) < 90  # neither has used up its SCMMAXSIZE
    assert 95 < sum(peaks) <= 100.5
    states = replay(path, shared).states
    assert states[FIRST].full_puts == outcome.stores[FIRST].refused
    alone, _ = play_story("scm-over-committed", shared, tmp_path, reach=0.4)
    assert alone.first_full is None


def test_scm_that_is_enough_for_both_is_another_story(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match="expected: two structures on CF01 whose SCMMAXSIZE is more than its SCM together"
    ):
        play_story("scm-over-committed", estate_of(tmp_path, "48M"), tmp_path)


@pytest.mark.parametrize(("size", "scm"), [("4G", "48M"), ("4G", "12M"), ("72M", "48M")])
def test_a_structure_is_tried_at_a_smaller_scale_with_what_its_facility_has_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str, scm: str
) -> None:
    """A facility with less SCM than SCMMAXSIZE, or with hardly any storage for augmented space, bounds both trials."""
    text = (ESTATE.replace("{scm}", scm) + SMDS).replace('size = "4G"', f'size = "{size}"').replace("16M", "32M")
    (tmp_path / "estate.toml").write_text(text, encoding="utf-8")
    site = Site.find(load_estate(tmp_path / "estate.toml"), FIRST)
    traffic = make_scenario("scm-fills-behind").traffic
    whole = site.capacity(traffic, np.random.default_rng(1)).messages
    monkeypatch.setattr("twin.simulation.site._MAX_TRIAL_BYTES", 8 << 20)
    assert site.capacity(traffic, np.random.default_rng(1)).messages == pytest.approx(whole, rel=0.05)


@pytest.mark.parametrize("name", ["scm-fills-behind", "priority-inversion", "scm-over-committed"])
def test_a_structure_without_scm_is_reported(small: Estate, tmp_path: Path, name: str) -> None:
    with pytest.raises(
        UsageError, match="QSG1/APP1 has no storage class memory; expected: a structure with scm_max_size"
    ):
        play_story(name, small, tmp_path)
