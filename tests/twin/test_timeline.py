"""Every moment of a recording, opened again: it is that of a replay up to there."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twin
from kernels import OPS
from tests.support.profile import examples
from tests.support.traffic import traffic, write_estate, write_recording
from twin.base.errors import UsageError
from twin.base.units import as_microseconds
from twin.estate.settings import Settings
from twin.planning.whatif import Traffic, moment_of, twin_at, what_if
from twin.playback import timeline as module
from twin.playback.replays import as_demands, chunks_of, decoded_chunks
from twin.playback.timeline import Timeline
from twin.recordings.files import RecordingWriter, open_recording
from twin.stores.message_store import MessageStore

STORE = "QSG1/APP1"


@pytest.fixture(scope="module")
def friday(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("timeline") / "friday.arrow"
    twin.simulate(twin.make_scenario("getter-outage"), twin.demo_estate(), path, seed=1)
    return path


@pytest.fixture(scope="module")
def timeline(friday: Path) -> Timeline:
    return Timeline(friday, twin.demo_estate())


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Timeline:
    """A small recording of stores of several kinds."""
    folder = tmp_path_factory.mktemp("mixed")
    events = sorted(traffic(3000, seed=9), key=lambda event: event["time"])
    return Timeline(write_recording(folder / "mixed.ndjson", events), write_estate(folder))


def check_moment(timeline: Timeline, time: int) -> None:
    for store, record in timeline.states(time).items():
        opened = timeline.twin_at(store, time)
        replayed = twin_at(timeline.recording, timeline.estate, store, time)
        assert opened is not None
        if isinstance(opened, MessageStore):
            assert opened.header() == replayed.header()
            assert msgspec.json.encode(opened.state()) == record
        assert opened.state() == replayed.state()


@settings(max_examples=examples(75))
@given(share=st.floats(0, 1))
def test_a_moment_is_that_of_a_replay_up_to_there(mixed: Timeline, share: float):
    check_moment(mixed, mixed.times[round(share * (len(mixed.times) - 1))])


@pytest.mark.parametrize("share", [pytest.param(0.3, marks=pytest.mark.nightly), 0.6])
def test_a_moment_of_an_outage_is_that_of_a_replay_up_to_there(timeline: Timeline, share: float):
    check_moment(timeline, timeline.times[round(share * (len(timeline.times) - 1))])


@pytest.mark.parametrize(("share", "puts", "size"), [(0.45, 2.0, "400M"), (0.55, 0.5, "2G")])
def test_a_what_if_at_a_moment_is_that_of_the_recording(timeline: Timeline, share: float, puts: float, size: str):
    time = timeline.times[round(share * (len(timeline.times) - 1))]
    moments = (timeline.twin_at(STORE, time), twin_at(timeline.recording, timeline.estate, STORE, time))
    answers = []
    for own in moments:
        assert own is not None
        try:
            answers.append(what_if(moment_of(timeline.estate, own), {"size": size}, Traffic(puts=puts)))
        except UsageError as error:  # what it holds does not fit
            answers.append(str(error))
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("share", "changes"),
    [
        (0.5, {"size": "2G"}),
        *(
            pytest.param(share, changes, marks=pytest.mark.nightly)
            for share, changes in ((0.55, {"offld1_th": 30}), (0.6, {"smds.QM01.size": "900M"}), (0.5, {}))
        ),
    ],
)
def test_hindsight_is_the_recording_replayed_with_the_change(timeline: Timeline, share: float, changes: Settings):
    time, estate = timeline.times[round(share * (len(timeline.times) - 1))], timeline.estate
    result = twin.hindsight(timeline, STORE, time, changes)
    moment = moment_of(estate, twin_at(timeline.recording, estate, STORE, time))
    changed, refused, puts, recorded = moment.with_settings(changes), 0, 0, 0
    for decoded in chunks_of(decoded_chunks(timeline.recording, estate), estate, STORE):
        later = decoded.take(np.flatnonzero(decoded.events["time"] > time))
        for block in later.blocks(estate):
            is_put = block.events["op"] == OPS.index("PUT")
            recorded += int(block.events["count"][is_put & (block.events["reason"] == 2192)].sum())
            demands = as_demands(block)
            changed.apply(demands, demands=True)
            asked = demands.events[demands.events["op"] == OPS.index("PUT")]
            puts += int(asked["count"].sum())
            refused += int(asked["count"][asked["reason"] == 2192].sum())
    assert (result.after.refused, result.after.puts) == (refused, puts)
    assert result.before.recorded == recorded > 0
    assert changes or result.before.refused == refused
    assert (result.after.first_full is None) == (not refused)


def test_a_timeline_continues_with_twins_and_their_open_alerts(timeline: Timeline, friday: Path, tmp_path: Path):
    """The alerts that are open at a snapshot of a running job were opened before it."""
    place = next(i for i, alert in enumerate(timeline.alerts) if alert.condition == "full")
    begin = timeline.sample_before(timeline.alerts[place].time + 600_000_000)
    twins = {name: timeline.twin_at(name, begin) for name in timeline.states(begin)}
    lines = tmp_path / "rest.ndjson"
    with RecordingWriter(lines) as writer:
        for chunk in open_recording(friday):
            rows = [line for line in chunk.lines() if as_microseconds(msgspec.json.decode(line)["time"]) > begin]
            writer.write_lines(rows)
    rest = Timeline(lines, timeline.estate, twins={name: own for name, own in twins.items() if own}, begin=begin)
    assert rest.times[0] == begin and rest.states(begin) == timeline.states(begin)
    check = timeline.times[-1]
    assert rest.states(check) == timeline.states(check)
    before = {alert.alert_id: alert for alert in timeline.alerts_until(begin)}
    still_open = {key: own.record() for key, own in before.items() if own.change != "cleared"}
    assert still_open and {own.alert_id: own.record() for own in rest.alerts_until(begin)} == still_open
    later = [alert.record() for alert in timeline.alerts if alert.time > begin]
    assert [alert.record() for alert in rest.alerts if alert.time > begin] == later


@pytest.mark.parametrize(
    "limits",
    [
        {"MAX_COPIES": 2},
        *(
            pytest.param(limits, marks=pytest.mark.nightly)
            for limits in ({}, {"MAX_DECODED": 0}, {"MAX_SAMPLES": 8}, {"MAX_COPIED_BYTES": 1})
        ),
    ],
)
def test_bounds_change_how_long_a_moment_takes_and_not_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, int]
):
    for name, value in limits.items():
        monkeypatch.setattr(module, name, value)
    estate = twin.load_estate(write_estate(tmp_path))
    events = sorted(traffic(3000, seed=4), key=lambda event: event["time"])
    recording = write_recording(tmp_path / "mixed.ndjson", events)
    timeline = Timeline(recording, estate)
    assert len(timeline._copies._copies) <= module.MAX_COPIES
    assert sum(len(own.times) for own in timeline._states.by_store.values()) <= module.MAX_SAMPLES + len(
        timeline._states.by_store
    )
    messages = [name for name, config in estate.stores.items() if config.kind in ("structure", "page_set")]
    seen = 0
    for time in timeline.times[:: max(1, len(timeline.times) // 5)]:
        for store in set(messages) & timeline.states(time).keys():
            opened = timeline.twin_at(store, time)
            assert opened is not None
            assert opened.state() == twin_at(recording, estate, store, time).state()
            seen += 1
    assert seen


def test_alerts_are_those_of_the_replay_and_end_at_a_moment(friday: Path, timeline: Timeline):
    replayed = twin.replay(friday, twin.demo_estate(), course=False)
    assert [alert.record() for alert in timeline.alerts] == [alert.record() for alert in replayed.alerts]
    time = timeline.times[len(timeline.times) // 2]
    until = timeline.alerts_until(time)
    assert 0 < len(until) < len(timeline.alerts) and until[-1].time <= time < timeline.alerts[len(until)].time
    assert timeline.states(timeline.times[-1]) == {
        name: msgspec.json.encode(state) for name, state in replayed.states.items()
    }


def test_a_recording_without_an_event_of_the_estate_is_refused(tmp_path: Path):
    recording = tmp_path / "empty.ndjson"
    recording.write_text('{"op": "PUT"}\n', encoding="utf-8")
    with pytest.raises(UsageError, match="has no event of this estate; expected: "):
        Timeline(recording, twin.demo_estate())


def test_explore_needs_a_file_of_the_estate(friday: Path):
    with pytest.raises(UsageError, match=r"expected: replay\(.*estate.toml"):
        twin.replay(friday, twin.demo_estate(), course=False).explore()
