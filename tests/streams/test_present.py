"""The present of a store from the topics: `streams.kafka.present`."""

from __future__ import annotations

import msgspec
import pytest

from streams.kafka.present import measurement_of
from twin.estate import Estate
from twin.events import Decoder
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
