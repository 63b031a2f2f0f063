"""Messages that expire are looked at only where one of them can have expired (kernels/messages.py)."""

from __future__ import annotations

import pytest

from kernels import messages
from kernels.clock import SECOND
from tests.support.twin_driver import QueueFileDriver, TwinDriver
from twin.stores.message_store import MessageStore

LARGE = {"size": 64 << 20}


def driver_with(count: int, expiry_s: float) -> TwinDriver:
    driver = TwinDriver(**LARGE)
    for _ in range(count):
        driver.put(expiry=expiry_s)
    return driver


def test_the_first_expiry_is_known_without_a_look_at_the_messages() -> None:
    driver = driver_with(20, 3600.0)
    store = driver.twin.tables.store
    assert driver.state()["expired_held"] == 0  # a new store does not know, and looks once
    first = int(store.messages["expires"][:20].min())
    assert int(messages.next_expiry(store, driver.time)) == int(store.params[0]["expires_from"]) == first
    store.messages["expires"][:20] = 1
    assert driver.state()["expired_held"] == 0


def test_an_earlier_expiry_moves_the_time_forward_and_a_look_at_the_rest_back() -> None:
    driver = driver_with(3, 3600.0)
    driver.state()
    driver.put(expiry=60.0)
    store = driver.twin.tables.store
    assert int(store.params[0]["expires_from"]) == driver.time + 60 * SECOND
    driver.wait(61)
    assert driver.state()["expired_held"] == 1
    for _ in range(4):
        driver.get()  # the last one meets the expired message, and waits
    driver.put(expiry=3600.0)  # is got at once
    driver.put(expiry=7200.0)
    assert driver.state()["expired_held"] == 0
    assert int(store.params[0]["expires_from"]) == driver.time + 7200 * SECOND


def test_an_uncommitted_message_that_has_expired_makes_no_scan_due(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = []
    run_tick = MessageStore._run_tick
    monkeypatch.setattr(
        MessageStore, "_run_tick", lambda self, before, tick: ticks.append(tick) or run_tick(self, before, tick)
    )
    driver = QueueFileDriver()
    driver.put(uow="U", expiry=10.0)
    driver.put(expiry=3600.0)
    driver.wait(80_000)  # less than a day, or the clock of one event is not believed
    assert driver.state()["messages"] == 1
    assert 0 < len(ticks) < 100
