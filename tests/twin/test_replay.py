"""A replay: the same alerts, states and dead letters, however a recording is stored and cut."""

from __future__ import annotations

import base64
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.profile import examples
from tests.support.traffic import BAD_LINES, START_US, lines_of, traffic, write_estate, write_lines, write_recording
from twin.base.errors import UsageError
from twin.estate import Estate, load_estate
from twin.events import Decoder
from twin.playback.replays import Replayed, dead_letter, play, replay
from twin.playback.samples import Applied, Observer
from twin.recordings import files as recordings

EVENTS = 3000


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    return load_estate(write_estate(tmp_path_factory.mktemp("estate")))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = lines_of(traffic(EVENTS))
    for number, bad in enumerate(BAD_LINES):
        lines.insert(number * 400, bad)
    lines[100:100] = [b"", b"  "]
    return write_lines(tmp_path_factory.mktemp("recording") / "traffic.ndjson", lines)


@pytest.fixture(scope="module")
def whole(estate: Estate, recording: Path) -> Replayed:
    return replay(recording, estate)


def test_traffic_that_fills_two_structures_gives_alerts_of_both(whole: Replayed) -> None:
    assert {alert.store for alert in whole.alerts} == {"QSG1/APP1", "QSG1/APP2"}
    assert {alert.change for alert in whole.alerts} >= {"opened", "cleared"}
    assert whole.events == EVENTS


def test_events_until_a_time_are_those_of_every_chunk(estate: Estate) -> None:
    """A topic of several partitions is recorded as it was read: one partition may be ahead by whole chunks."""
    lines = lines_of(traffic(EVENTS))
    halves = [Decoder(estate).ndjson(part) for part in (lines[EVENTS // 2 :], lines[: EVENTS // 2])]
    limit = int(halves[1].events["time"].max())
    assert int(halves[0].events["time"].min()) >= limit
    applied = Pieces()
    play(halves, estate, applied, until=limit - 1)
    expected = int((halves[1].events["time"] < limit).sum())
    assert sum(applied.sizes) == expected > 0


class Pieces(Observer):
    """Sizes of the pieces that were applied."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def after(self, applied: Applied) -> None:
        self.sizes.append(len(applied.piece))


def test_alerts_come_by_time_then_store(whole: Replayed) -> None:
    order = [(alert.time, alert.store) for alert in whole.alerts]
    assert order == sorted(order)


def test_states_are_those_of_the_stores_that_got_an_event(whole: Replayed, estate: Estate) -> None:
    concerned = {route.store for route in estate.routes if route.qmgr in ("QM01", "QM02")}  # by its heartbeats
    assert list(whole.states) == [name for name in estate.stores if name in concerned]
    assert all(state.store == name for name, state in whole.states.items())


def test_a_store_without_an_event_has_no_state(estate: Estate, tmp_path: Path) -> None:
    event = {"time": START_US, "qmgr": "QM01", "op": "PUT", "queue": "BILLS", "length": 1}
    replayed = replay(write_recording(tmp_path / "one.ndjson", [event]), estate)
    assert list(replayed.states) == ["QSG1/APP2"]


@settings(max_examples=examples(16))
@given(max_events=st.integers(1, EVENTS))
def test_any_cutting_of_the_events_gives_the_same(
    max_events: int, estate: Estate, recording: Path, whole: Replayed
) -> None:
    cut = replay(recording, estate, chunk_events=max_events)
    assert (cut.alerts, cut.states, cut.rejects, cut.events) == (
        whole.alerts,
        whole.states,
        whole.rejects,
        whole.events,
    )


@pytest.mark.parametrize("size", [200, 5_000])
def test_any_cutting_of_the_file_gives_the_same(
    size: int, estate: Estate, recording: Path, whole: Replayed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recordings, "_CHUNK_BYTES", size)
    cut = replay(recording, estate)
    assert (cut.alerts, cut.states, cut.rejects, cut.events) == (
        whole.alerts,
        whole.states,
        whole.rejects,
        whole.events,
    )


@pytest.mark.parametrize("suffix", [".ndjson.zst", ".arrow"])
def test_every_kind_of_recording_gives_the_same(suffix: str, estate: Estate, whole: Replayed, tmp_path: Path) -> None:
    other = replay(write_recording(tmp_path / f"traffic{suffix}", traffic(EVENTS)), estate)
    assert (other.alerts, other.states, other.rejects) == (whole.alerts, whole.states, [])


def test_a_dead_letter_names_its_line_empty_lines_counted(whole: Replayed, recording: Path) -> None:
    lines = recording.read_bytes().split(b"\n")
    assert [reject.value for reject in whole.rejects] == list(BAD_LINES)
    assert all(lines[reject.index] == reject.value for reject in whole.rejects)
    assert whole.dead_letters == len(BAD_LINES)


def test_a_dead_letter_is_text_or_base64_where_it_is_no_text(whole: Replayed) -> None:
    letters = [dead_letter(reject) for reject in whole.rejects]
    encoded = [msgspec.json.decode(msgspec.json.encode(letter)) for letter in letters]
    assert [list(fields) for fields in encoded[:5]] == [["reason", "detail", "index", "value"]] * 5
    assert letters[1].reason == "not-an-object" and letters[1].value == '["PUT"]'
    assert base64.b64decode(encoded[5]["value_base64"]) == BAD_LINES[5] and "value" not in encoded[5]


def test_dead_letters_may_go_elsewhere_as_they_come(estate: Estate, recording: Path, whole: Replayed) -> None:
    came = []
    replayed = replay(recording, estate, on_reject=came.append)
    assert came == whole.rejects and replayed.rejects == [] and replayed.dead_letters == len(BAD_LINES)


def test_what_is_no_recording_is_wrong_use(estate: Estate, recording: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.ndjson.zst"
    broken.write_bytes(recording.read_bytes()[:1000])
    for path in (tmp_path / "nowhere.ndjson", tmp_path / "name.csv", broken):
        with pytest.raises(UsageError):
            replay(path, estate)
