"""`twin.tune`: the numbers of a replay with each setting, lines beside them, nights, and what it answers."""

from __future__ import annotations

from pathlib import Path

import pytest

import twin
from tests.support.acted import Site, simulate_outage
from twin.alerts.episodes import Alert
from twin.base.errors import UsageError
from twin.estate import Estate, ForecastSettings, load_estate
from twin.forecast.monitor import keeping_looks
from twin.playback.pages import TWIN
from twin.reporting.tuning import STRAIGHT, THRESHOLD, TunedCaller, Tuning, chosen

VALUES = (0.01, 1.5, 200.0)
NIGHT = "2026-11-19"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A structure that nobody touched, and that refused puts."""
    return simulate_outage(tmp_path_factory.mktemp("full"), "16M")


@pytest.fixture(scope="module")
def estate(site: Site) -> Estate:
    return load_estate(site.estate)


@pytest.fixture(scope="module")
def tuning(site: Site, estate: Estate) -> Tuning:
    return twin.tune([site.recording], estate, values=VALUES)


def facts_of(alerts: list[Alert]) -> list[tuple[object, ...]]:
    return [(alert.time, alert.alert_id, alert.change, alert.severity, alert.time_to_full_s) for alert in alerts]


def test_the_numbers_of_a_setting_are_those_of_a_replay_with_it(site: Site, estate: Estate, tuning: Tuning) -> None:
    for own in tuning.choices:
        assert own.needless_per_saved is not None
        [by_replay] = [
            caller
            for caller in twin.report(site.recording, chosen(estate, own.needless_per_saved)).callers
            if caller.name == TWIN
        ]
        counts = (own.pages, own.in_time, own.late, own.needless, own.undecided, own.fillings, own.missed)
        assert counts == (
            by_replay.pages,
            by_replay.in_time,
            by_replay.late,
            by_replay.false,
            by_replay.undecided,
            by_replay.fillings,
            by_replay.missed,
        )
    leads = [own.lead_p50_s or 0.0 for own in tuning.choices]
    assert leads == sorted(leads) and leads[0] < leads[-1]


def test_a_recording_that_is_played_again_says_the_same_by_looks_that_are_kept(site: Site, estate: Estate) -> None:
    alone = [facts_of(twin.replay(site.recording, chosen(estate, value), course=False).alerts) for value in VALUES]
    with keeping_looks():
        again = [facts_of(twin.replay(site.recording, chosen(estate, value), course=False).alerts) for value in VALUES]
    assert again == alone
    assert alone[0] != alone[-1]


def test_beside_the_settings_stand_the_lines_of_others_and_the_nights(tuning: Tuning) -> None:
    assert [own.name for own in tuning.lines] == [THRESHOLD, STRAIGHT]
    assert all(own.fillings == tuning.choices[0].fillings >= 1 for own in tuning.lines)
    [night] = tuning.nights
    assert (night.date, tuning.nights_played) == (NIGHT, 1)
    assert night.pages == tuple(own.pages for own in tuning.choices)
    assert night.needless == tuple(own.needless for own in tuning.choices)
    assert tuning.present == 1.5
    heard = [own.fillings - own.missed for own in tuning.choices]
    assert tuning.quietest == VALUES[heard.index(max(heard))]


def test_recordings_add_up_and_processes_change_nothing(site: Site, estate: Estate, tuning: Tuning) -> None:
    twice = twin.tune([site.recording, site.recording], estate, values=VALUES)

    def counts(own: TunedCaller) -> tuple[int, ...]:
        return own.pages, own.in_time, own.late, own.needless, own.fillings, own.missed

    for once, both in zip((*tuning.choices, *tuning.lines), (*twice.choices, *twice.lines), strict=True):
        assert counts(both) == tuple(2 * count for count in counts(once))
        assert (both.lead_p50_s, both.pages_a_month) == (once.lead_p50_s, once.pages_a_month)


@pytest.mark.nightly
def test_processes_change_nothing(site: Site, estate: Estate, tuning: Tuning) -> None:
    assert twin.tune([site.recording], estate, values=VALUES, processes=2) == tuning


def test_another_page_lead_is_tried_with_the_settings(site: Site, estate: Estate) -> None:
    [own] = twin.tune([site.recording], estate, values=[1.5], page_lead_s=600.0).choices
    assert (own.page_lead_s, own.needless_per_saved) == (600.0, 1.5)


def test_a_setting_of_the_estate_is_that_of_its_stores_without_one(tmp_path: Path) -> None:
    def needless(alerts: str, store: str = "") -> float:
        (tmp_path / "estate.toml").write_text(
            f'schema = 1\n{alerts}\n[queue_manager.QM01]\nplatform = "zos"\n[page_set."QM01/4"]\npages = 100\n{store}\n'
        )
        config = load_estate(tmp_path / "estate.toml").stores["QM01/PS04"]
        assert isinstance(config, ForecastSettings)
        return config.needless

    assert needless("") == 1.5
    assert needless("[alerts]\nneedless_per_saved = 3") == 3.0
    assert needless('[alerts]\npolicy = "quiet"') == 0.5
    assert needless('[alerts]\npolicy = "quiet"', "needless_per_saved = 2.5") == 2.5
    assert needless("[alerts]\nneedless_per_saved = 3", 'policy = "balanced"') == 1.5
    for alerts, store, wrong in (
        ('[alerts]\npolicy = "quiet"\nneedless_per_saved = 2', "", "keep one of them"),
        ("", 'policy = "quiet"\nneedless_per_saved = 2', "keep one of them"),
        ("[alerts]\nneedless = 2", "", "unknown key"),
        ("[alerts]\nneedless_per_saved = 0", "", "above 0"),
        ('[alerts]\npolicy = "loud"', "", "quiet, balanced"),
        ("alerts = 3", "", r"must be a table like \[alerts\]"),
    ):
        with pytest.raises(UsageError, match=wrong):
            needless(alerts, store)


def test_nothing_to_play_is_wrong_use(estate: Estate, site: Site) -> None:
    for recordings, values in (([], VALUES), ([site.recording], [])):
        with pytest.raises(UsageError, match="expected: "):
            twin.tune(recordings, estate, values=values)
