"""Events at which a twin raises: a dead letter each, and all others count as if they had never been there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.estates import facility_estate, small_estate
from twin.estate import Estate, load_estate
from twin.events import Decoder, Reason
from twin.playback.replays import Player, replay
from twin.stores import measurement
from twin.stores.coupling_facility import CouplingFacilityTwin
from twin.stores.kind import StoreKind

STORE = "QSG1/APP1"
START_US = 1_795_176_000_000_000  # 2026-11-20T12:00:00Z
POISON = 13


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return load_estate(small_estate(tmp_path))


@pytest.fixture
def poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise at a measurement of 13 messages, once it is half taken over."""
    take = measurement._take_over

    def raising(store: StoreKind, measured: Any, new_fields: set[str], holding: Any) -> Any:
        alerts = take(store, measured, new_fields, holding)
        if measured.get("messages") == POISON:
            raise OverflowError("Python int too large to convert to C long")
        return alerts

    monkeypatch.setattr(measurement, "_take_over", raising)


def put(number: int) -> dict[str, Any]:
    time = START_US + number * 1_000_000
    return {"time": time, "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "seq": number, "length": 5000}


def measure(number: int, messages: int) -> dict[str, Any]:
    time = START_US + number * 1_000_000 + 1
    measured = {"messages": messages, "ents_used": messages, "resync": True}
    return {"time": time, "qmgr": "QM01", "op": "MEASURE", "store": STORE, "measured": measured}


def story(*poison: int, puts: int = 400) -> list[dict[str, Any]]:
    """Return puts with a sound measurement, and poison after some of them."""
    events = []
    for number in range(puts):
        events.append(put(number))
        if number == puts // 2:
            events.append(measure(number, 100))
        if number in poison:
            events.append(measure(number, POISON))
    return events


def recording(folder: Path, events: list[dict[str, Any]]) -> Path:
    path = folder / f"{len(events)}.ndjson"
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


@pytest.mark.parametrize("poison", [(0,), (399,), (50, 51, 52, 300)], ids=str)
@pytest.mark.parametrize("chunk", [None, 1, 37])
@pytest.mark.usefixtures("poisoned")
def test_an_event_at_which_a_twin_raises_is_a_dead_letter_and_no_other(
    tmp_path: Path, estate: Estate, poison: tuple[int, ...], chunk: int | None
) -> None:
    sound = replay(recording(tmp_path, story()), estate)
    events = story(*poison)
    replayed = replay(recording(tmp_path, events), estate, chunk_events=chunk)
    assert replayed.states == sound.states
    assert [alert.record() for alert in replayed.alerts] == [alert.record() for alert in sound.alerts]
    assert replayed.events == sound.events == 401
    assert replayed.reasons == {"undecodable": len(poison)}
    lines = [number for number, event in enumerate(events) if event.get("measured", {}).get("messages") == POISON]
    assert [reject.index for reject in replayed.rejects] == lines
    for reject, line in zip(replayed.rejects, lines, strict=True):
        assert reject.reason == Reason.UNDECODABLE
        assert reject.detail.startswith("OverflowError: Python int too large")
        assert json.loads(reject.value)["measured"] == events[line]["measured"]


@pytest.mark.usefixtures("poisoned")
def test_demands_are_counted_once_beside_what_raises(tmp_path: Path, estate: Estate) -> None:
    sound = replay(recording(tmp_path, story()), estate, demands=True)
    replayed = replay(recording(tmp_path, story(7, 200)), estate, demands=True)
    assert replayed.refusals == sound.refusals
    assert replayed.states == sound.states


@pytest.mark.usefixtures("poisoned")
def test_twins_that_a_player_was_given_are_restored_too(estate: Estate) -> None:
    decoder = Decoder(estate)
    first = decoder.json([json.dumps(event).encode() for event in story(puts=50)])
    before = Player(estate)
    before.feed(first)
    player = Player(estate, before.twins)
    player.feed(decoder.json([json.dumps(event).encode() for event in (put(50), measure(50, POISON), put(51))]))
    assert [reject.reason for reject in player.drain_rejects()] == [Reason.UNDECODABLE]
    whole = Player(estate)
    whole.feed(first)
    whole.feed(decoder.json([json.dumps(event).encode() for event in (put(50), put(51))]))
    assert player.states() == whole.states()


def test_a_full_memory_is_no_fault_of_an_event(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(measurement, "_take_over", raising)
    with pytest.raises(MemoryError):
        Player(estate).feed(Decoder(estate).json([json.dumps(measure(1, 1)).encode()]))


def test_what_a_shared_store_cannot_take_is_refused_when_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    estate = load_estate(facility_estate(tmp_path))
    (name,) = [name for name, store in estate.stores.items() if store.kind == CouplingFacilityTwin.kind]
    control = CouplingFacilityTwin._control

    def raising(self: CouplingFacilityTwin, event: Any) -> Any:
        alerts = control(self, event)
        if json.loads(event.content).get("storage_free") == POISON:
            raise OverflowError
        return alerts

    monkeypatch.setattr(CouplingFacilityTwin, "_control", raising)
    qmgr = next(route.qmgr for route in estate.routes if route.store == name)
    shared = {"time": START_US, "qmgr": qmgr, "op": "MEASURE", "store": name}
    events = [shared | {"measured": {"storage_free": free}} for free in (5_000_000, POISON, 4_000_000)]
    replayed = replay(recording(tmp_path, events), estate)
    assert [(reject.index, reject.reason) for reject in replayed.rejects] == [(1, Reason.UNDECODABLE)]
    (tmp_path / "sound").mkdir()
    assert replayed.states == replay(recording(tmp_path / "sound", [events[0], events[2]]), estate).states
