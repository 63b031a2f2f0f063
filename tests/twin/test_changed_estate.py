"""A store whose job was started again with another estate: what it holds, and what of it stays."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from twin.estate import SMDS_MAX_SIZE, Structure
from twin.events import Decoder
from twin.playback.replays import Player
from twin.records import StructureState
from twin.records.states import DataSetState
from twin.simulation import demo_estate
from twin.stores.open import Twin, reopened


def test_a_data_set_stays_as_it_was_when_its_queue_manager_leaves_the_estate() -> None:
    """Its messages are there still: with the default of 16 TB it would never fill, and have a space map of that."""
    estate, name = demo_estate(), "QSG1/APP1"
    config = estate.stores[name]
    assert isinstance(config, Structure) and config.smds["QM02"].size < SMDS_MAX_SIZE
    queue = next(own.reported for own in estate.routes if own.store == name and own.reported is not None)
    put = {"op": "PUT", "queue": queue, "length": 70_000, "uow": "u"}
    events = [put | {"time": 1_795_176_000_000_000 + number, "qmgr": f"QM0{number}"} for number in (1, 2)]
    player = Player(estate)
    player.feed(Decoder(estate).json([msgspec.json.encode(event) for event in events]))
    less = replace(config, queue_managers=("QM01",), smds={"QM01": config.smds["QM01"]}, offld1_th=config.offld1_th - 1)
    without = replace(
        estate,
        stores={**estate.stores, name: less},
        queue_managers={own: estate.queue_managers[own] for own in estate.queue_managers if own != "QM02"},
        routes=tuple(route for route in estate.routes if route.qmgr != "QM02"),
    )
    twin = player.twins[name]
    before = data_set_of(twin)
    for own in (without, without, estate):
        twin = reopened(twin, own)
        assert data_set_of(twin) == before and before.messages == 1
    assert twin.state().uncommitted == 2


def data_set_of(twin: Twin) -> DataSetState:
    state = twin.state()
    assert isinstance(state, StructureState)
    return state.smds["QM02"]
