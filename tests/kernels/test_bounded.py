"""Events within their documented ranges take bounded memory for messages, pages and held gets."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.beside import Decoding
from tests.kernels.proof import check_equal_states, check_same_results
from tests.naive import NaiveStore
from tests.support.mixes import MIXES
from tests.support.profile import examples
from tests.support.store_driver import GIB, MIB
from tests.support.twin_driver import PageSetDriver, QueueFileDriver, TwinDriver
from tests.support.workloads import random_workload, workloads
from twin.estate import Smds
from twin.stores import message_store

MILLION = 1_000_000


def rows(driver: TwinDriver) -> dict[str, int]:
    """Return the number of rows allocated, by table."""
    return driver.twin.tables.rows()


def test_puts_of_a_million_long_messages_take_the_rows_of_the_messages_alone() -> None:
    driver = TwinDriver(
        size=GIB, smds={"QM01": Smds(size=256 * MIB)}, queue_managers=("QM01",), ds_expand=False, ds_block=8192
    )
    state = driver.put(100 * MIB, count=300_000)
    assert state["messages"] == 300_000
    assert state["overfull_puts"] > 299_000
    assert state["smds"]["QM01"]["pages_used"] == 300_000 * 25_600
    assert state["smds"]["QM01"]["blocks_used"] > 300_000 * 12_800
    assert rows(driver)["blocks"] <= 1 << 19
    assert driver.send("CLEAR")["smds"]["QM01"]["pages_used"] == 0


def test_an_anonymous_get_of_a_million_is_one_row() -> None:
    driver = TwinDriver()
    before = rows(driver)["held"]
    for number in range(20):
        assert driver.get(count=MILLION)["unmatched_gets"] == (number + 1) * MILLION
    assert before < rows(driver)["held"] < 64  # a row for each of the 20 gets
    state = driver.put(count=1000)
    assert (state["messages"], state["unmatched_gets"]) == (0, 20 * MILLION - 1000)


def test_a_get_of_many_inside_a_unit_takes_message_by_message_and_is_dropped_by_the_backout() -> None:
    driver = TwinDriver()
    driver.get(count=5, uow="u")
    assert driver.put(count=2)["uncommitted"] == 2
    assert driver.state()["unmatched_gets"] == 3
    state = driver.send("BACKOUT", uow="u")
    assert (state["messages"], state["uncommitted"], state["unmatched_gets"]) == (2, 0, 0)


def test_a_get_of_many_waits_on_after_its_commit() -> None:
    driver = TwinDriver()
    driver.get(count=5, uow="u")
    driver.send("COMMIT", uow="u")
    state = driver.put(count=7)
    assert (state["messages"], state["unmatched_gets"]) == (2, 0)


@pytest.mark.uncompiled
def test_puts_beyond_the_limit_of_messages_are_counted_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_store, "MAX_KEPT_MESSAGES", 3)
    state = TwinDriver().put(count=5)
    assert (state["messages"], state["overfull_puts"]) == (3, 2)


@pytest.mark.parametrize("make", [TwinDriver, PageSetDriver, QueueFileDriver])
def test_any_number_of_puts_is_worked_off_in_bounded_memory(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_store, "MAX_KEPT_MESSAGES", 3000)
    driver = make()
    for number in range(10):
        state = driver.put(count=MILLION)
        assert state["messages"] <= 3000
        assert state["overfull_puts"] >= (number + 1) * (MILLION - 3000)
    assert rows(driver)["messages"] <= 4096
    assert driver.get(count=5000)["messages"] == 0


def test_a_limited_number_of_messages_that_did_not_fit_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_store, "MAX_KEPT_OVERFULL", 10)
    driver = TwinDriver()
    state = driver.put(count=MILLION)
    fits = state["messages"] - 10
    assert state["overfull_puts"] == MILLION - fits
    driver.get(count=state["messages"])
    assert driver.put(count=fits)["messages"] == fits, "there is room again"


@pytest.mark.parametrize("kind", MIXES)
@settings(max_examples=examples(50))
@given(data=st.data())
def test_twin_and_oracle_keep_the_same_messages(kind: str, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        max_messages, max_overfull = data.draw(st.integers(1, 40)), data.draw(st.integers(0, 5))
        patch.setattr(message_store, "MAX_KEPT_MESSAGES", max_messages)
        patch.setattr(message_store, "MAX_KEPT_OVERFULL", max_overfull)
        patch.setattr(NaiveStore, "max_messages", max_messages)
        patch.setattr(NaiveStore, "max_overfull", max_overfull)
        check_equal_states(data.draw(workloads("filling", kind=kind)), every=1)


@pytest.mark.parametrize("kind", MIXES)
def test_cuts_of_blocks_do_not_change_results_at_the_limits(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_store, "MAX_KEPT_MESSAGES", 40)
    monkeypatch.setattr(message_store, "MAX_KEPT_OVERFULL", 3)
    workload = random_workload(11, 400, "filling", kind)
    decoding = Decoding(workload.config, foresees=False)
    block, _ = decoding.block(workload.events)
    check_same_results(decoding, block, np.random.default_rng(5).integers(0, 400, 20).tolist())


def test_a_measurement_of_anything_is_bounded() -> None:
    limit, messages = 2**53 - 1, 2**31 - 1  # the largest numbers in an event
    data_set, pages = {"blocks_used": 1 << 31, "pages_used": 1 << 32}, 1 << 24  # the largest that there can be
    driver = TwinDriver()
    driver.measure(messages=messages, ents_used=limit, elems_used=limit, smds={"QM01": data_set})
    driver.put(reason=2192)
    assert all(0 < driver.get(count=MILLION)[name] < 1 << 49 for name in ("messages", "ents_used", "elems_used"))
    of_pages = PageSetDriver()
    of_pages.measure(messages=messages, pages_used=pages, pages_persistent=pages)
    assert 0 < of_pages.send("RESTART", None)["pages_used"] <= 1 << 32
    of_blocks = QueueFileDriver()
    of_blocks.measure(messages=messages, blocks_persistent=limit, blocks_nonpersistent=limit, file_bytes=limit)
    assert 0 < of_blocks.send("RESTART", None)["blocks_persistent"] <= 1 << 31
