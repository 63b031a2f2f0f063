"""The present of a store from the topics: `streams.kafka.present`."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from streams.kafka.present import measurement_of, read_present
from streams.kafka.topics import Topics
from tests.streams.past_help import MemoryReader, lines
from twin.estate import Estate
from twin.events import Decoder
from twin.playback.replays import Player
from twin.records import StructureState
from twin.simulation import demo_estate
from twin.stores.open import open_store
from twin.testing import Driver


@pytest.fixture(scope="module")
def estate() -> Estate:
    return demo_estate()


def test_a_twin_takes_the_measurement_of_a_state_record(estate: Estate) -> None:
    with Driver(estate) as driver:
        queue = next(route for route in estate.routes if route.queue is not None)
        driver.put(str(queue.reported), length=5000, count=100, qmgr=queue.qmgr)
        record = driver.state(queue.store)
    decoder = Decoder(estate)
    decoded = decoder.json([msgspec.json.encode(measurement_of(record, estate))])
    assert not decoded.rejects
    twin = open_store(estate, queue.store)
    for block in decoded.blocks(estate):
        twin.apply(block)
    state = twin.state()
    assert state.messages == record.messages == 100


def test_a_job_that_had_another_estate_is_noticed_by_its_record(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topic has all events, and the offload rules of today are others than those that the job had for them."""
    name = "QSG1/APP1"
    before = replace(estate, stores={**estate.stores, name: replace(estate.stores[name], offld1_th=0, offld1_sz=0)})  # type: ignore[type-var]
    queue = next(route for route in estate.routes if route.store == name and route.queue is not None)
    event = {"qmgr": queue.qmgr, "op": "PUT", "queue": queue.reported, "length": 1000}
    events = lines([event | {"time": 1_795_176_000_000_000 + number} for number in range(50)])
    record = played(before, events, name)
    assert record.usage_pct != played(estate, events, name).usage_pct
    monkeypatch.setattr("streams.kafka.present.EventReader", lambda *_, **__: MemoryReader([events]))
    for own, differs in ((before, False), (estate, True)):
        monkeypatch.setattr("streams.kafka.present.read_last_states", lambda *_: {name: record})
        present = read_present({}, Topics(), own, name)
        assert (present.lost, present.differs) == (0, differs)


def played(estate: Estate, events: list[bytes], name: str) -> StructureState:
    player = Player(estate)
    player.feed(Decoder(estate).json(events))
    state = player.states()[name]
    assert isinstance(state, StructureState)
    return state
