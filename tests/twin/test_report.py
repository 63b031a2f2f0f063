"""`twin.report`: pages as the scorecard counts them, periods, actions and what they were worth."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twin
from kernels.clock import SECOND
from tests.support.acted import ALTERED, STORE, Site, altered, simulate_outage, with_events
from tests.support.profile import examples
from tests.tools.score.measures import count_pages
from tests.tools.score.score import score
from tests.tools.score.series import play
from twin.base.units import as_text
from twin.playback.pages import TWIN
from twin.playback.samples import STEP
from twin.playback.timeline import Series
from twin.records import read_alert_record
from twin.reporting.records import IncidentReport, Report
from twin.reporting.report import growth_of

BEGIN = 1_795_132_800_000_000  # 2026-11-20T00:00:00Z
MINUTE = 60 * SECOND
MINUTES = 300  # of the recordings


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A structure that nobody touched, and that refused puts."""
    return simulate_outage(tmp_path_factory.mktemp("full"), "16M")


@pytest.fixture(scope="module")
def acted(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A structure that was altered to its SIZE eight minutes before it would have been full."""
    site = simulate_outage(tmp_path_factory.mktemp("acted"))
    return site._replace(recording=with_events(site.recording, "altered.ndjson", altered()))


@pytest.fixture(scope="module")
def reports(full: Site, acted: Site) -> dict[str, Report]:
    return {"full": report_of(full), "acted": report_of(acted)}


def report_of(site: Site, since: str | int | None = None, until: str | int | None = None) -> Report:
    return twin.report(site.recording, site.estate, since=since, until=until)


def test_alerts_that_somebody_else_wrote_end_no_report(full: Site) -> None:
    """A record that can be read may be of a store, resource or condition that there is not."""
    site, own = full, twin.replay(full.recording, full.estate, course=False).alerts[0]
    odd: list[dict[str, object]] = [{"store": "QSG9/NONE"}, {"store": "CF01"}, {"resource": "x/y"}, {"condition": "?"}]
    odd += [{"severity": "?"}, {"level": "?"}, {"time": "2000-01-01T00:00:00Z"}, {"time": "2100-12-31T23:59:59Z"}]
    records = []
    for number, fields in enumerate(odd):
        event = msgspec.json.decode(own.record())
        incident = {"id": f"i{number}", "role": "root", "opened": "2026-11-20T01:00:00+05:00"}
        event["data"] |= {"alert_id": f"a{number}", "incident": incident, **fields}
        records.append(read_alert_record(msgspec.json.encode(event | {"id": f"a{number}/0"})))
    before = twin.report(site.recording, site.estate)
    after = twin.report(site.recording, site.estate, alerts=records)
    assert (after.since, after.until, after.stores) == (before.since, before.until, before.stores)


# --- pages -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["full", "acted"])
def test_its_pages_are_those_that_the_scorecard_counts(
    name: str, full: Site, acted: Site, reports: dict[str, Report]
) -> None:
    site, morning = {"full": full, "acted": acted}[name], reports[name]
    scored = score(play(site.recording, twin.load_estate(site.estate)))
    counts = count_pages([scored.pages[TWIN]])
    verdicts = Counter(page.verdict for page in morning.pages)
    assert len(morning.pages) == counts.pages > 0
    assert verdicts["in time"] + verdicts["late"] == counts.right
    assert verdicts["false"] + verdicts["averted"] == counts.false
    assert sum(not filling.is_heard for filling in morning.fillings) == counts.unheard
    for caller in morning.callers:
        counted = count_pages([scored.pages[caller.name]])
        assert (caller.pages, caller.in_time + caller.late) == (counted.pages, counted.right)
        assert (caller.false, caller.undecided, caller.missed) == (counted.false, counted.undecided, counted.late)


def test_a_page_in_time_has_its_lead_and_the_minutes_of_2192(reports: dict[str, Report]) -> None:
    [page] = reports["full"].pages
    [filling] = reports["full"].fillings
    assert (page.verdict, filling.is_heard) == ("in time", True)
    assert page.paged is not None and page.lead_s is not None
    assert page.paged < filling.first < filling.last
    assert page.minutes_full == reports["full"].minutes_full > 60
    assert (page.consequence, page.minutes_avoided) == (None, 0)


def test_getters_that_come_back_are_an_action_without_minutes(reports: dict[str, Report]) -> None:
    """The scenario's getter is away from 00:30 to 02:30."""
    [page] = reports["full"].pages
    [back] = page.actions
    assert (back.text, back.id, back.time) == (
        "Getters of ORDERS have been back",
        "getters",
        "2026-11-20T02:30:00.000000Z",
    )
    assert back.alert_id.startswith(f"{STORE}/")
    assert (back.before_s, back.after_s) == (0.0, None)
    assert back.effect == "not full within 8.0 h instead of now"
    assert page.over is not None and back.time < page.over


def test_alerts_that_a_job_published_count_instead_of_those_of_the_replay(full: Site) -> None:
    replayed = twin.replay(full.recording, full.estate).alerts
    records = [read_alert_record(alert.record()) for alert in replayed]
    compacted = list({record.data.alert_id: record for record in records}.values())
    reported = [
        twin.report(full.recording, full.estate, alerts=alerts).incidents for alerts in (None, records, compacted)
    ]
    assert reported[0] == reported[1] == reported[2]
    nobody = twin.report(full.recording, full.estate, alerts=[])
    assert (nobody.incidents, [filling.is_heard for filling in nobody.fillings]) == ((), [False])


# --- rises -----------------------------------------------------------------------------------------------------------


def test_a_rise_counts_every_put_that_its_filling_refused(full: Site) -> None:
    """A put may be refused for a long message while the structure empties already."""
    long_put = {
        "time": "2026-11-20T02:55:00.000000Z", "qmgr": "QM01", "op": "PUT", "queue": "ORDERS",
        "length": 60_000, "reason": 2192,
    }  # fmt: skip
    morning = twin.report(with_events(full.recording, "long.ndjson", long_put), full.estate)
    [store] = morning.stores
    assert sum(rise.refused for rise in store.rises) == sum(filling.refused for filling in morning.fillings)
    assert morning.fillings[-1].last == long_put["time"]


# --- actions ---------------------------------------------------------------------------------------------------------


def test_a_size_raised_in_time_averts_what_the_page_said(reports: dict[str, Report]) -> None:
    [page] = reports["acted"].pages
    [action, _] = page.actions
    assert (action.text, action.time, action.id) == ("SIZE raised from 16M to 64M", ALTERED, "alter-size")
    assert action.alert_id.startswith(f"{STORE}/")
    assert action.before_s is not None and action.before_s < 600
    assert action.after_s is not None and action.after_s > 3600
    assert page.verdict == "averted"
    assert page.consequence is not None and page.consequence.is_settled
    assert (page.consequence.minutes, page.consequence.refused) == (0, 0)
    assert page.minutes_avoided == reports["acted"].minutes_avoided > 60


def test_a_change_of_no_size_avoids_nothing(full: Site) -> None:
    """The untouched twin refuses exactly what the recording refused: the same kernels decided it."""
    path = with_events(full.recording, "threshold.ndjson", altered(full_threshold=70))
    [page] = twin.report(path, full.estate).pages
    [action, _] = page.actions
    assert (action.text, action.id, action.alert_id) == ("FULLTHRESHOLD lowered from 80 to 70", "", "")
    own = page.consequence
    assert own is not None and own.minutes > 60
    assert (own.minutes, own.refused) == (own.minutes_untouched, own.refused_untouched)
    assert (page.minutes_avoided, page.verdict) == (0, "in time")


def test_a_refused_change_is_said_to_be_refused(full: Site) -> None:
    path = with_events(full.recording, "refused.ndjson", altered(size="1M"))
    [page] = twin.report(path, full.estate).pages
    [action, _] = page.actions
    assert (action.text, action.is_refused) == ("ALTER of SIZE refused", True)
    assert page.minutes_avoided == 0


def test_a_change_outside_incidents_has_no_consequence(full: Site) -> None:
    early = altered(time="2026-11-20T00:10:00Z", op="REBUILD", size="64M", init_size="32M")
    morning = twin.report(with_events(full.recording, "early.ndjson", early), full.estate)
    [action] = morning.actions
    assert action.text == "INITSIZE raised from 16M to 32M, SIZE raised from 16M to 32M"
    assert (action.id, action.before_s, action.after_s, action.effect) == ("cfrm-size", None, None, None)
    assert all(incident.consequence is None for incident in morning.incidents)


def test_a_queue_that_is_cleared_and_a_size_that_is_measured_are_actions(acted: Site) -> None:
    measured = {"qmgr": "QM01", "op": "MEASURE", "store": STORE}
    events = [
        {**measured, "time": "2026-11-20T00:50:00Z", "measured": {"size": 16 << 20}},
        {**measured, "time": "2026-11-20T01:00:00Z", "measured": {"size": 64 << 20}},
        {"time": "2026-11-20T01:04:00Z", "qmgr": "QM01", "op": "CLEAR", "queue": "ORDERS"},
    ]
    path = with_events(acted.recording.with_name("of-64M.ndjson"), "cleared.ndjson", *events)
    morning = twin.report(path, acted.estate)
    [page] = morning.pages
    texts = [action.text for action in page.actions]
    assert texts[0] == "SIZE raised from 16M to 64M, as measured"
    assert texts[1].startswith("ORDERS cleared of ")
    assert page.minutes_avoided > 0
    assert morning.stores[0].coverage.measurements == 2


# --- periods ---------------------------------------------------------------------------------------------------------


def test_the_same_recording_gives_the_same_bytes(acted: Site, reports: dict[str, Report]) -> None:
    assert msgspec.json.encode(report_of(acted)) == msgspec.json.encode(reports["acted"])
    assert msgspec.json.decode(msgspec.json.encode(reports["acted"]), type=Report) == reports["acted"]


@pytest.mark.nightly
@settings(max_examples=examples(15), deadline=None)
@given(name=st.sampled_from(["full", "acted"]), cut=st.integers(20, MINUTES - 1))
def test_two_periods_agree_with_the_whole_on_what_lies_inside_either(
    name: str, cut: int, full: Site, acted: Site, reports: dict[str, Report]
) -> None:
    site, whole = {"full": full, "acted": acted}[name], reports[name]
    time = BEGIN + cut * MINUTE
    first, second = report_of(site, until=time), report_of(site, since=time)
    for incident in whole.incidents:
        ends = incident.over if incident.consequence is None else incident.consequence.until
        if incident.opened >= as_text(time):
            assert incident in second.incidents and incident not in first.incidents
        elif ends is not None and ends < as_text(time):
            assert incident in first.incidents and incident not in second.incidents
    assert ids(first.incidents) | ids(second.incidents) == ids(whole.incidents)
    assert first.minutes_full + second.minutes_full == whole.minutes_full
    assert len(first.pages) + len(second.pages) == len(whole.pages)
    assert first.fillings == tuple(filling for filling in whole.fillings if filling.first < as_text(time)) or (
        first.fillings[0].first == whole.fillings[0].first  # it continues behind the cut
    )
    assert all(incident.minutes_avoided >= 0 for incident in (*first.incidents, *second.incidents))


def ids(incidents: tuple[IncidentReport, ...]) -> set[str]:
    return {incident.id for incident in incidents}


def test_an_incident_inside_a_period_is_the_same(acted: Site, reports: dict[str, Report]) -> None:
    [page] = reports["acted"].pages
    assert page.consequence is not None
    assert page in report_of(acted, since="2026-11-20T00:40:00Z").incidents
    assert page in report_of(acted, until="2026-11-20T04:55:00Z").incidents


def test_days_count_from_the_last_event(full: Site, reports: dict[str, Report]) -> None:
    today, yesterday = report_of(full, since="today"), report_of(full, since="yesterday")
    assert (today.since, yesterday.since) == ("2026-11-20T00:00:00.000000Z", "2026-11-19T00:00:00.000000Z")
    assert today.incidents == yesterday.incidents == reports["full"].incidents


@pytest.mark.parametrize(
    ("since", "until", "text"),
    [
        ("noon", None, "since: "),
        (None, "noon", "until: "),
        ("2026-11-21", None, "since 2026-11-21T00:00:00.000000Z: the last event is of 2026-11-20T"),
        (None, "2026-11-20", "has no event of this estate in that time"),
    ],
)
def test_a_wrong_period_is_named(full: Site, since: str | None, until: str | None, text: str) -> None:
    with pytest.raises(twin.UsageError, match=text):
        report_of(full, since, until)


# --- growth ----------------------------------------------------------------------------------------------------------


def series_of(daily_peaks: list[float]) -> Series:
    """Return a store whose usage is a peak at noon of each day, else 10 %."""
    per_day = 86_400 * SECOND // STEP
    usage = np.full((len(daily_peaks) * per_day, 2), 10.0)
    usage[per_day // 2 :: per_day, 0] = daily_peaks
    times = BEGIN + STEP * np.arange(1, len(usage) + 1)
    none = np.zeros(0, np.int64)
    return Series(
        store=STORE,
        times=times,
        resources=("elements", "entries"),
        usage=usage,
        size=np.zeros(len(usage), np.int64),
        refused=none,
        queue_full=none,
    )


@pytest.mark.parametrize(
    ("peaks", "days_left"), [([40, 50, 60], 4.0), ([40, 45, 50, 55, 60, 65], 7.0), ([60, 50, 40], None)]
)
def test_room_is_what_daily_peaks_have_left_at_their_growth(peaks: list[float], days_left: float | None) -> None:
    growth = growth_of(series_of(peaks))
    assert growth is not None
    assert (growth.resource, growth.days, growth.days_left) == ("elements", len(peaks), days_left)


def test_a_growth_within_the_differences_of_days_is_none() -> None:
    growth = growth_of(series_of([40, 70, 45, 72, 41, 71]))
    assert growth is not None and (growth.pct_per_day, growth.days_left) == (None, None)


def test_two_days_are_too_few() -> None:
    assert growth_of(series_of([40, 50])) is None


def test_a_recording_without_events_of_the_estate_is_named(tmp_path: Path, full: Site) -> None:
    path = tmp_path / "other.ndjson"
    path.write_bytes(b'{"time":1,"qmgr":"QM09","op":"PUT","queue":"NONE","length":1}\n')
    with pytest.raises(twin.UsageError, match="has no event of this estate"):
        twin.report(path, full.estate)
