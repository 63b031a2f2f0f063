"""Sites known by levels: what a DISPLAY shows is believed, and an alert is open in time, whatever z/OS alters."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from deploy.cli import main
from deploy.console.model import ConsoleModel
from tests.support import seen
from tests.support.console_feed import TOPICS, state_record
from tests.support.level_sites import STORE, LevelSite, calm, climbing, falling, tried
from twin.alerts.episodes import Alert
from twin.base.errors import UsageError
from twin.estate import Site, load_estate
from twin.feeds.protocol import FeedOptions
from twin.feeds.site import SiteFile, record_site
from twin.planning.advise import Promise, advise
from twin.planning.proof import hindsight
from twin.planning.whatif import at_moment, what_if
from twin.playback.commission import commission
from twin.playback.replays import Replayed
from twin.playback.replays import replay as play_again
from twin.playback.timeline import Timeline
from twin.records import StructureState
from twin.reporting.report import report

CALLING = ("warning", "critical", "full")


def replay(site: LevelSite, folder: Path) -> tuple[Replayed, StructureState]:
    estate, recording = site.record(folder)
    replayed = play_again(recording, estate)
    state = replayed.states[STORE]
    assert isinstance(state, StructureState)
    assert replayed.dead_letters == 0
    return replayed, state


def open_at_the_end(alerts: list[Alert]) -> dict[str, Alert]:
    """Return the last record of each alert that is open, by condition."""
    last = {alert.alert_id: alert for alert in alerts}
    return {alert.condition: alert for alert in last.values() if alert.change != "cleared"}


def seconds(site: LevelSite, alert: Alert) -> float:
    """Return the seconds from the first DISPLAY to a record."""
    return (alert.time - site.start_us) / 1e6


def test_a_display_beats_an_alter_that_did_not_happen(tmp_path: Path) -> None:
    site = tried()
    replayed, state = replay(site, tmp_path)
    assert (state.ents_used, state.ents_max, state.size) == (238_211, 240_641, 512 << 20)
    assert state.sizes_measured == {} and state.drift_pct == 0.0
    alerts = open_at_the_end(replayed.alerts)
    assert alerts.keys() == {"threshold", "full-forecast"}
    assert alerts["full-forecast"].severity == "critical"
    assert state.first is not None and state.first.time_to_full_s is not None
    assert state.first.time_to_full_s.p10 < 146 < state.first.time_to_full_s.p90
    assert state.first.time_to_full_s.p50 == pytest.approx(146, rel=0.05)
    page = next(alert for alert in replayed.alerts if alert.severity in CALLING)
    assert 20 * 60 < site.full_s - seconds(site, page) < 40 * 60


def test_a_measured_total_beats_arithmetic(tmp_path: Path) -> None:
    """DISPLAY says 276,126 of 278,916, 99 %, where arithmetic has 240,641."""
    site = replace(tried(ents_max=278_916), auto_alter=False)
    replayed, state = replay(site, tmp_path)
    assert state.ents_max == 278_916
    threshold = next(alert for alert in replayed.alerts if alert.condition == "threshold")
    assert threshold.usage_pct == pytest.approx(80, abs=2)
    assert max(alert.usage_pct or 0 for alert in replayed.alerts) < 100


def test_the_cause_says_that_no_puts_are_reported(tmp_path: Path) -> None:
    replayed, _ = replay(tried(), tmp_path)
    assert all(
        alert.cause.endswith("Which queue fills it is not known: no puts and gets are reported.")
        for alert in replayed.alerts
        if alert.change != "cleared"
    )


def test_texts_are_in_the_zone_of_the_site_and_records_in_utc(tmp_path: Path) -> None:
    estate, recording = tried().record(tmp_path)
    plain = play_again(recording, estate).alerts
    local = play_again(recording, replace(estate, site=Site(zone="Asia/Tokyo"))).alerts
    assert [(own.alert_id, own.time, own.severity) for own in local] == [
        (own.alert_id, own.time, own.severity) for own in plain
    ]
    (utc,), (jst,) = (
        [own.brief[0] for own in alerts if own.brief[0].startswith("full ~")][:1] for alerts in (plain, local)
    )
    hours = [int(re.findall(r"^full ~(\d\d):\d\d [A-Z]+ \(in ", text)[0]) for text in (utc, jst)]
    assert (hours[1] - hours[0]) % 24 == 9 and " UTC (" in utc and " JST (" in jst
    assert seen.offences(text for own in local for text in (own.cause, *own.brief)) == []


SIZES = {"not allowed": "no", "allowed and not seen": "unseen", "allowed and seen": "seen"}


@pytest.mark.parametrize("alter", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("per_minute", [400, 1_000, 2_500, 5_000])
def test_a_structure_that_climbs_is_paged_in_time(tmp_path: Path, alter: str, per_minute: int) -> None:
    site = climbing(alter, per_minute)
    replayed, state = replay(site, tmp_path)
    last = site.levels[-1]
    assert (state.ents_used, state.ents_max, state.size) == (last.ents_used, last.ents_max, last.size)
    assert site.full_s is not None
    pages = [alert for alert in replayed.alerts if alert.severity in CALLING]
    assert pages and site.full_s - seconds(site, pages[0]) >= 2 * 60
    left = site.full_s - site.levels[-1].seconds
    assert state.first is not None and state.first.time_to_full_s is not None
    assert state.first.time_to_full_s.p10 < left < state.first.time_to_full_s.p90


def test_an_alter_that_is_seen_is_counted_on(tmp_path: Path) -> None:
    """While z/OS enlarges it at each 80 % nobody is called; at SIZE somebody is."""
    site = climbing("seen", 1_000)
    replayed, _ = replay(site, tmp_path)
    at_size = next(level.seconds for level in site.levels if level.size == site.size)
    pages = [seconds(site, alert) for alert in replayed.alerts if alert.severity in CALLING]
    assert pages and min(pages) > at_size - 1_800
    assert site.full_s is not None and min(pages) < site.full_s - 600


@pytest.mark.parametrize("alter", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("make", [calm, falling])
def test_nobody_is_called_for_a_structure_that_is_calm_or_falls(tmp_path: Path, alter: str, make) -> None:
    site = make(alter)
    replayed, state = replay(site, tmp_path)
    assert [alert for alert in replayed.alerts if alert.severity in CALLING] == []
    assert state.ents_used == site.levels[-1].ents_used


def test_what_if_and_advice_refuse_in_one_line(tmp_path: Path) -> None:
    site = tried()
    estate, recording = site.record(tmp_path)
    moment = at_moment(recording, estate, STORE)
    refusal = f"no puts of {STORE} are reported, and its measurements do not show them"
    with pytest.raises(UsageError, match=refusal):
        what_if(moment)
    with pytest.raises(UsageError, match=refusal):
        advise(moment, Promise(hours=2))
    with pytest.raises(UsageError, match=f"{STORE}: not all puts are reported; hindsight needs them"):
        hindsight(Timeline(recording, estate), STORE, site.start_us + 3_600_000_000, {"size": "1G"})
    for command in ("whatif", "advise"):
        arguments = [command, STORE, "--estate", str(tmp_path / "estate.toml"), "--recording", str(recording)]
        assert main(arguments) == 2


def test_puts_of_another_store_do_not_hide_a_level(tmp_path: Path) -> None:
    """Statistics of one structure in the same start: the other is still known by its DISPLAYs."""
    site = tried()
    site.record(tmp_path)
    text = (tmp_path / "estate.toml").read_text(encoding="utf-8")
    other = '\n[structure."MQP1/OTHER"]\nsize = "64M"\n[queue."MQP1/OTHER.IN"]\nstructure = "OTHER"\n'
    (tmp_path / "both.toml").write_text(text + other, encoding="utf-8")
    puts = [
        {"time": site.start_us + 60_000_000 * minute, "qmgr": "MQ1A", "op": "PUT", "queue": "OTHER.IN", "length": 100}
        for minute in range(140)
    ]
    (tmp_path / "puts.ndjson").write_bytes(b"".join(msgspec.json.encode(put) + b"\n" for put in puts))
    _, files = site.write(tmp_path)
    estate, recording = load_estate(tmp_path / "both.toml"), tmp_path / "both.arrow"
    record_site([*files, SiteFile("recording", tmp_path / "puts.ndjson")], recording, estate, FeedOptions())
    replayed = play_again(recording, estate)
    assert {"threshold", "full-forecast"} <= open_at_the_end(replayed.alerts).keys()
    assert replayed.states["MQP1/OTHER"].messages == 140


def few(count: int) -> LevelSite:
    return replace(tried(), levels=tried().levels[:count])


def test_a_state_says_how_many_levels_a_forecast_needs(tmp_path: Path) -> None:
    for count in (1, 3, 4):
        _, state = replay(few(count), tmp_path / str(count))
        assert state.levels is not None and (state.levels.known, state.levels.needed) == (count, 5)
        assert state.lacks_levels == f"not known yet, {count} of 5 levels"
        assert state.forecast is None
    _, state = replay(few(5), tmp_path / "5")
    assert state.levels is not None and state.levels.known == 5 and not state.lacks_levels


def test_too_few_levels_are_said_on_every_surface(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "not known yet, 3 of 5 levels"
    few(3).write(tmp_path)
    out = tmp_path / "site"
    files = [tmp_path / "policy.txt", tmp_path / "mq1a.joblog", f"mqsc:MQP1={tmp_path / 'qsg.mqsc'}"]
    assert main(["start", *map(str, files), "--group", "MQP1=MQ1A,MQ1B", "--no-console", "-o", str(out)]) == 0
    assert f"{STORE}: time to full {words}" in (out / "missing.txt").read_text(encoding="utf-8")
    assert f"not known: {STORE}: time to full {words}" in capsys.readouterr().err
    recording, estate = str(out / "recording.arrow"), str(out / "estate.toml")
    assert main(["replay", recording, "--estate", estate]) == 0
    printed = capsys.readouterr().err
    assert words in next(line for line in printed.splitlines() if line.startswith(STORE))
    assert f"{STORE}: time to full {words}" in printed
    assert main(["commission", "--recording", recording, "--estate", estate]) == 0
    assert f"{STORE}: time to full {words}" in capsys.readouterr().out
    state = play_again(recording, estate).states[STORE]
    model = ConsoleModel(TOPICS)
    model.fold([state_record(state)])
    (store,) = msgspec.json.decode(model.changes(0)[1])["stores"]
    assert store["not_known"] == words


def test_the_console_shows_what_display_shows(tmp_path: Path) -> None:
    _, state = replay(tried(), tmp_path)
    model = ConsoleModel(TOPICS)
    model.fold([state_record(state)])
    (store,) = msgspec.json.decode(model.changes(0)[1])["stores"]
    entries = next(resource for resource in store["resources"] if resource["name"] == "entries")
    assert (entries["total"], round(entries["pct"], 1), store.get("not_known")) == (240_641, 99.0, None)
    assert entries["usage"] == "99.0 % in use"


def test_commission_says_what_levels_alone_cannot_know(tmp_path: Path) -> None:
    site = replace(tried(ents_max=264_705), auto_alter=False)
    estate, recording = site.record(tmp_path)
    result = commission(recording, estate)
    checks, lacking = result.checks, [own.effect for own in result.not_shown if STORE in own.stores]
    reasons = {check.subject: check.reason for check in checks if check.store == STORE}
    assert "known by 29 measurements alone, no put or get of its 2 queues is reported" in reasons["coverage"]
    assert any("which queue fills a store" in effect and "what-if" in effect for effect in lacking)
    assert reasons["sizes"] == "ents_max: 264,705 measured, 240,641 in the model"
    assert "repeats 29 measurements" in reasons["fidelity"]
    assert not any(check.subject in ("units", "numbering") for check in checks)
    assert not any("heard" in check.reason and STORE in check.reason for check in checks)


def test_a_report_ends_with_the_last_measurement(tmp_path: Path) -> None:
    estate, recording = tried().record(tmp_path)
    (store,) = report(recording, estate).stores
    peak = next(peak for peak in store.peaks if peak.resource == "entries")
    assert peak.last_pct == pytest.approx(98.99, abs=0.01)
