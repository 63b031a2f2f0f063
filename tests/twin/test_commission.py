"""Commissioning on recordings whose truth is known: whole, with puts missing, and reduced to statistics."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec
import pytest

import twin
from tests.support.measured import (
    TOLERANCE_PCT,
    simulate_measured,
    without_measurements,
    without_puts,
    write_estate,
)
from tests.tools.degrade.statistics import degrade
from twin.feeds.protocol import FeedFact
from twin.playback.commission import Commission
from twin.playback.verdicts import (
    FIT_FIDELITY,
    LIMITED_FIDELITY,
    Check,
    Fitness,
    JobFigures,
    Latency,
    LimitUse,
    StoreCommission,
    check_job,
    check_names,
    check_stores,
    not_shown,
    worst,
)
from twin.records import ForecastScores, HorizonScore, IntervalScore, PageScore

STORE = "QSG1/APP1"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an estate and three recordings: good, bad and statistics."""
    folder = tmp_path_factory.mktemp("site")
    good = simulate_measured(folder)
    without_puts(good, folder / "bad.ndjson", 0.05)
    degrade(without_measurements(good, folder / "alone.ndjson"), folder / "statistics.ndjson", 900, 30.0)
    return folder


@cache
def judge(site: Path, name: str, hours: float | None = None) -> Commission:
    return twin.commission(site / f"{name}.ndjson", site / "estate.toml", hours=hours)


def verdicts(checks: Sequence[Check]) -> dict[str, Fitness]:
    """Return the least fit verdict by subject."""
    return {check.subject: worst([own for own in checks if own.subject == check.subject]) for check in checks}


def of_store(report: Commission) -> StoreCommission:
    (own,) = (store for store in report.stores if store.store == STORE)
    return own


def test_a_good_feed_is_fit(site: Path) -> None:
    report = judge(site, "good")
    assert set(verdicts(report.checks).values()) == {report.verdict} == {Fitness.FIT}
    store = of_store(report)
    assert [resource.resource for resource in store.fidelity] == ["elements", "entries", "smds/QM01", "smds/QM02"]
    for resource in store.fidelity:
        assert resource.matched == resource.measurements == resource.alignment.matched > 80
        assert (resource.apart, resource.alignment.lag, resource.alignment.distance_pct) == ((), 0, 0.0)
    assert (store.gaps, store.unmatched, store.silent_queues) == (0, 0, ())
    assert store.numbered == store.calls and store.counted == 0
    assert store.scores is not None


def test_a_twentieth_of_the_puts_missing_is_not_fit_and_says_why_and_when(site: Path) -> None:
    report = judge(site, "bad")
    assert report.verdict == Fitness.UNFIT
    assert verdicts(report.checks) == {
        "coverage": Fitness.UNFIT,
        "numbering": Fitness.UNFIT,
        "units": Fitness.FIT,
        "fidelity": Fitness.UNFIT,
        "forecasts": Fitness.FIT,
    }
    reasons = {check.subject: check.reason for check in report.checks if check.verdict == Fitness.UNFIT}
    assert "events missing by `seq`" in reasons["numbering"]
    assert "found no message: their puts are missing" in reasons["coverage"]
    assert reasons["fidelity"].startswith(("entries matched in", "elements matched in"))
    assert re.search(r"apart in hours from 2026-11-20 0[01]:00 to 2026-11-20 02:00", reasons["fidelity"])
    (remedy,) = (check.remedy for check in report.checks if check.subject == "fidelity")
    assert "numbers of `seq` are missing" in remedy

    sent, lost = of_store(judge(site, "good")), of_store(report)
    missing = sent.calls - lost.calls
    assert missing > 0.02 * sent.calls
    assert 0 <= missing - lost.gaps <= 8  # what is lost before the first or after the last of a queue is no gap
    (entries,) = (own for own in lost.fidelity if own.resource == "entries")
    for hour in entries.apart:
        own = [point for point in entries.points if as_hour(point.time) == hour.hour[:13]]
        assert hour.measurements == len(own)
        assert hour.matched == sum(abs(point.pct) <= TOLERANCE_PCT for point in own)
        assert hour.worst_pct < -TOLERANCE_PCT  # what was lost were puts: the twin holds less
    assert sum(hour.measurements - hour.matched for hour in entries.apart) == entries.measurements - entries.matched


def as_hour(time: int) -> str:
    from twin.base.units import as_text

    return as_text(time)[:13]


def test_statistics_alone_are_fit_with_limits_that_name_what_cannot_be_known(site: Path) -> None:
    report = judge(site, "statistics")
    assert report.verdict == Fitness.LIMITED
    reasons = {check.subject: check.reason for check in report.checks if check.verdict == Fitness.LIMITED}
    assert reasons.keys() == {"numbering", "units", "fidelity"}
    assert "have no `seq`: events that are missing cannot be seen" in reasons["numbering"]
    assert "stand for several messages: their lengths are means" in reasons["units"]
    assert reasons["fidelity"] == "no measurement has shown whether it holds what the store holds"
    assert all(check.remedy for check in report.checks if check.verdict != Fitness.FIT)


def test_only_measurements_of_the_last_hours_count(site: Path) -> None:
    whole, last = of_store(judge(site, "bad")), of_store(judge(site, "bad", hours=1.0))
    assert {own.measurements for own in last.fidelity} == {30}
    assert (last.gaps, last.events) == (whole.gaps, whole.events)
    assert judge(site, "bad", hours=1.0).begin == "2026-11-20T01:59" + judge(site, "bad").end[16:]


def test_the_report_is_json_that_can_be_read_again(site: Path) -> None:
    report = judge(site, "bad")
    assert msgspec.json.decode(msgspec.json.encode(report), type=Commission) == report


def test_a_recording_without_events_is_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "nothing.ndjson"
    path.write_text("", encoding="utf-8")
    report = twin.commission(path, write_estate(tmp_path))
    assert (report.verdict, report.begin, report.end) == (Fitness.UNFIT, None, None)
    assert report.silent_queue_managers == ("QM01", "QM02")


# --- single checks ---------------------------------------------------------------------------------------------------


def a_store(**fields: object) -> StoreCommission:
    known = StoreCommission(
        store=STORE,
        kind="structure",
        events=1000,
        calls=1000,
        numbered=1000,
        counted=0,
        gaps=0,
        unmatched=0,
        gets=500,
        silent_queues=(),
        queues=1,
        tolerance_pct=None,
        fidelity=(),
        causes=(),
        scores=None,
    )
    return msgspec.structs.replace(known, **fields)


@pytest.mark.parametrize(
    ("gaps", "verdict"), [(0, Fitness.FIT), (1, Fitness.LIMITED), (10, Fitness.LIMITED), (11, Fitness.UNFIT)]
)
def test_a_missing_number_limits_and_more_than_a_hundredth_are_too_many(gaps: int, verdict: Fitness) -> None:
    assert verdicts(check_stores([a_store(gaps=gaps)]))["numbering"] == verdict


def test_a_silent_store_and_a_silent_queue_manager_limit() -> None:
    assert verdicts(check_stores([a_store(events=0, calls=0)]))["coverage"] == Fitness.LIMITED
    assert check_names([], 2, 0, 10)[0].verdict == Fitness.FIT
    assert check_names(["QM02"], 2, 0, 10)[0].verdict == Fitness.LIMITED
    assert check_names(["QM01", "QM02"], 2, 0, 0)[0].verdict == Fitness.UNFIT


@pytest.mark.parametrize(
    ("puts", "gets", "verdict"), [(20, 0, Fitness.LIMITED), (19, 0, Fitness.FIT), (20, 1, Fitness.FIT)]
)
def test_puts_of_a_store_without_any_get_limit(puts: int, gets: int, verdict: Fitness) -> None:
    assert verdicts(check_stores([a_store(puts=puts, gets=gets)]))["coverage"] == verdict


def test_a_sample_limits_and_says_the_share_of_each_queue(tmp_path: Path) -> None:
    estate, path = write_estate(tmp_path), tmp_path / "sample.ndjson"
    depth, events, base = 0, list[dict[str, object]](), {"qmgr": "QM01", "queue": "ORDERS", "length": 1000}
    for minute in range(6):
        time = (1_795_000_000 + 60 * minute) * 10**6
        events += [{**base, "time": time + number, "op": "PUT", "msgid": f"{minute}{number}"} for number in range(8)]
        depth += 40
        measured = {"messages": depth, "ents_used": depth, "queues": [{"name": "ORDERS", "depth": depth}]}
        events.append({"time": time + 10**6, "qmgr": "QM01", "op": "MEASURE", "store": STORE, "measured": measured})
    path.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))
    report = twin.commission(path, estate)
    assert of_store(report).seen == ("20 % of the puts of ORDERS are seen",)
    (check,) = (own for own in report.checks if own.subject == "coverage" and own.store == STORE)
    assert check.verdict == Fitness.LIMITED
    assert check.reason == "events are a sample: 20 % of the puts of ORDERS are seen"


@pytest.mark.parametrize(("unknown", "verdict"), [(1, Fitness.LIMITED), (100, Fitness.UNFIT)])
def test_names_that_the_estate_lacks(unknown: int, verdict: Fitness) -> None:
    assert worst(check_names([], 2, unknown, 1000)) == verdict


def test_forecasts_worse_than_the_frequency_or_too_sure_limit() -> None:
    def verdict_of(brier: float, inside: int, looks: int = 40) -> Fitness:
        scores = ForecastScores(
            days=3,
            horizons=(HorizonScore(horizon_s=900, looks=looks, full=4, brier=brier, climatology=0.09, bins=()),),
            intervals=IntervalScore(count=40, inside=inside, coverage=inside / 40, width=1.0),
            pages=PageScore(right=1, late=0, false=0),
        )
        return verdicts(check_stores([a_store(scores=scores)]))["forecasts"]

    assert verdict_of(0.05, 32) == Fitness.FIT
    assert verdict_of(0.10, 32) == Fitness.LIMITED
    assert verdict_of(0.10, 32, looks=5) == Fitness.FIT
    assert verdict_of(0.05, 20) == Fitness.LIMITED


@pytest.mark.parametrize(
    ("latency", "verdict"),
    [
        (Latency(records=9, p50_s=0.3, p99_s=1.2), Fitness.FIT),
        (Latency(records=9, p50_s=0.3, p99_s=30.0), Fitness.LIMITED),
        (Latency(records=9, p50_s=0.3, p99_s=90.0), Fitness.UNFIT),
        (Latency(records=9, p50_s=9e5, p99_s=9e5), Fitness.LIMITED),
        (None, Fitness.LIMITED),
    ],
)
def test_latency(latency: Latency | None, verdict: Fitness) -> None:
    assert verdicts(check_job(JobFigures(latency=latency)))["latency"] == verdict


@pytest.mark.parametrize(
    ("p99_s", "verdict"), [(1.0, Fitness.FIT), (60.0, Fitness.FIT), (890.0, Fitness.LIMITED), (9e5, None)]
)
def test_a_feed_of_long_intervals_limits_the_twin(p99_s: float, verdict: Fitness | None) -> None:
    """However fast the job is; of history nothing is said a second time."""
    fast = Latency(records=9, p50_s=0.3, p99_s=1.2)
    lateness = Latency(records=9, p50_s=p99_s / 2, p99_s=p99_s)
    _, *checks = (
        check for check in check_job(JobFigures(latency=fast, lateness=lateness)) if check.subject == "latency"
    )
    assert [check.verdict for check in checks] == ([] if verdict is None else [verdict])
    if verdict == Fitness.LIMITED:
        assert checks[0].reason == "events are known p50 7 min, p99 15 min after they happened"
        assert checks[0].remedy is not None and "STATIME" in checks[0].remedy


@pytest.mark.parametrize(("used", "verdict"), [(80, Fitness.FIT), (85, Fitness.LIMITED), (95, Fitness.UNFIT)])
def test_limits_of_the_job(used: int, verdict: Fitness) -> None:
    use = LimitUse(noun="descriptors", used=used, limit=100, remedy="raise it")
    job = JobFigures(latency=None, limits=(use,), behind=0, beat_age_s=1.0)
    assert verdicts(check_job(job))["job"] == verdict
    assert verdicts(check_job(msgspec.structs.replace(job, beat_age_s=700.0)))["job"] == Fitness.UNFIT


def test_the_line_below_which_a_twin_is_not_fit_is_that_of_the_alert() -> None:
    from twin.stores.drift import LOW_FIDELITY

    assert LIMITED_FIDELITY == LOW_FIDELITY < FIT_FIDELITY


@pytest.mark.parametrize(
    ("fields", "lacking"),
    [
        (
            {"calls": 0, "measurements": 9},
            ["puts and gets", "the length of each message", "priorities", "units of work"],
        ),
        ({"counted": 1000}, ["the length of each message", "priorities", "units of work"]),
        ({}, []),
    ],
)
def test_what_the_feeds_of_a_store_do_not_show(fields: dict[str, object], lacking: list[str]) -> None:
    assert [own.what for own in not_shown([a_store(**fields, has_readers=True)])] == lacking
    *_, readers = not_shown([a_store(**fields), a_store(store="QSG1/APP2", **fields, has_readers=True)])
    assert (readers.what, readers.stores) == ("who has queues open", (STORE,))
    assert readers.formats == ("smf", "display", "rest")


def test_of_a_store_without_an_event_nothing_is_said() -> None:
    assert not_shown([a_store(events=0, calls=0), a_store(kind="coupling_facility")]) == []


def test_measurements_of_queues_show_who_reads_them(tmp_path: Path) -> None:
    measured = {"ents_used": 5, "ents_max": 100, "queues": [{"name": "ORDERS", "getters": 0}]}
    event = {"time": "2026-11-20T00:00:00Z", "qmgr": "QM01", "op": "MEASURE", "store": STORE, "measured": measured}
    path = tmp_path / "levels.ndjson"
    path.write_bytes(msgspec.json.encode(event) + b"\n")
    report = twin.commission(path, write_estate(tmp_path))
    assert [own.what for own in report.not_shown] == [what for what in FeedFact if what != FeedFact.READERS]
