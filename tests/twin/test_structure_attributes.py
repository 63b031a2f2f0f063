"""Attributes of a structure after a restart of its twin, also with another estate (docs/estate.md)."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tests.kernels.beside import Decoding
from tests.naive.estates import ENTRY_AND_6_ELEMENTS, data_set
from tests.support.store_driver import KIB, NO_RULES
from tests.support.twin_driver import TwinDriver
from twin.base.errors import MqtwinError
from twin.estate import Structure
from twin.stores.open import open_message_store, open_store


def test_alter_and_rebuild_outlast_a_restart_of_the_twin() -> None:
    driver = TwinDriver(**NO_RULES)
    driver.put(1_000)
    driver.alter(offld1_th=0, offld1_sz=0, size=30 * ENTRY_AND_6_ELEMENTS)
    before = driver.state()
    assert driver.reopen().state() == before
    assert driver.put(1_000)["elems_used"] == 8


# -- another estate at the next start


def opened_with(driver: TwinDriver, **fields: Any) -> TwinDriver:
    """Open the twin again with an estate that describes its structure differently."""
    described = driver.decoding.estate.stores["QSG1/APP1"]
    assert isinstance(described, Structure)
    other = TwinDriver()
    other.decoding = Decoding(replace(described, **fields))
    other.pages = dict(driver.twin.dirty_pages())
    other.twin = open_store(other.decoding.estate, "QSG1/APP1", None, driver.twin.header(), other.pages.items())
    other.time = driver.time
    return other


def test_what_the_estate_says_differently_is_taken_over_the_rest_stays_as_events_left_it() -> None:
    driver = TwinDriver(**NO_RULES)
    driver.alter(offld1_th=0, offld1_sz=0)
    driver.put(1_000)
    other = opened_with(driver, offld3_th=0, offld3_sz=0)
    state = other.state()
    assert (state["offload_rule"], state["elems_max"], state["messages"]) == (3, 240, 1)
    assert other.twin.config.offld1_sz == 0


def test_a_new_size_in_the_estate_is_allocated_at_the_next_rebuild() -> None:
    driver = TwinDriver()
    driver.put(count=5)
    other = opened_with(driver, size=80 * ENTRY_AND_6_ELEMENTS)
    state = other.state()
    assert (state["ents_max"], state["policy_pending"]) == (40, {"size": 80 * ENTRY_AND_6_ELEMENTS})
    state = other.rebuild()
    assert (state["ents_max"], state["ents_used"], state["policy_pending"]) == (80, 5, None)


def test_a_new_ds_block_in_the_estate_waits_until_the_data_sets_are_empty() -> None:
    item = {"QM01": data_set(size=100_000, max_size=200_000), "QM02": data_set(size=100_000)}
    driver = TwinDriver(ds_block=16_384, smds=item)
    driver.put(65_000)
    other = opened_with(driver, ds_block=8_192)
    assert other.state()["smds"]["QM02"]["blocks_total"] == 6
    other.get()
    state = other.reopen().state()["smds"]
    assert state["QM02"]["blocks_total"] == 12
    other.put(200_000)
    assert other.state()["smds"]["QM01"]["blocks_total"] <= 200_000 // 8_192


def test_a_larger_data_set_in_the_estate_replaces_the_one_that_was_full() -> None:
    driver = TwinDriver(
        ds_block=8_192, smds={qmgr: data_set(size=80_000, max_size=80_000) for qmgr in ("QM01", "QM02")}
    )
    assert driver.put(70_000, count=2)["smds"]["QM01"]["status"] == "FAILED"
    larger = {"QM01": data_set(size=800_000), "QM02": data_set(size=80_000, max_size=80_000)}
    state = opened_with(driver, smds=larger).state()["smds"]["QM01"]
    assert (state["blocks_total"], state["status"], state["messages"]) == (97, "NORMAL", 2)


def test_new_queues_and_queue_managers_find_their_place_beside_the_old_ones() -> None:
    driver = TwinDriver(queues=("B.QUEUE",), queue_managers=("QM02",))
    driver.put(1, queue="B.QUEUE", qmgr="QM02", seq=5, msgid="X")
    smds = {qmgr: data_set(size=KIB**2) for qmgr in ("QM01", "QM02", "QM03")}
    other = opened_with(driver, queues=("A.QUEUE", "B.QUEUE"), queue_managers=("QM01", "QM02", "QM03"), smds=smds)
    other.put(2, qmgr="QM01")
    other.get(queue="B.QUEUE", qmgr="QM03", uow="U", msgid="X")
    state = other.put(4, queue="B.QUEUE", qmgr="QM02", seq=5)
    assert (state["duplicates"], state["bytes"], state["uncommitted"]) == (1, 3, 1)
    assert sorted(state["smds"]) == ["QM01", "QM02", "QM03"]
    assert other.reopen().state() == state


def test_messages_of_a_queue_that_left_the_estate_stay() -> None:
    driver = TwinDriver()
    driver.put(1, queue="A.QUEUE")
    driver.put(2, queue="B.QUEUE")
    other = opened_with(driver, queues=("B.QUEUE",))
    assert other.state()["queues"][0]["name"] == "A.QUEUE"
    assert other.get(queue="B.QUEUE")["bytes"] == 1


def test_state_of_another_version_or_kind_is_refused() -> None:
    driver = TwinDriver()
    estate = driver.decoding.estate
    with pytest.raises(MqtwinError, match="CF01 is a coupling_facility, which holds no messages"):
        open_message_store(estate, "CF01")
    header = msgspec.msgpack.decode(driver.twin.header())
    with pytest.raises(MqtwinError, match="version 99; this program reads"):
        open_store(estate, "QSG1/APP1", None, msgspec.msgpack.encode(header | {"version": 99}))
    with pytest.raises(MqtwinError, match=r"version 4; this program reads .* begin with a new checkpoint"):
        open_store(estate, "QSG1/APP1", None, msgspec.msgpack.encode({"version": 4, "kind": "structure", "own": {}}))
