"""Indexes that are built again from a store's pages."""

import pytest

from tests.support.twin_driver import TwinDriver

pytestmark = pytest.mark.uncompiled

UNITS = 300  # more than the table has rows for at first


def test_a_reopened_store_finds_messages_and_held_gets_by_their_ids() -> None:
    driver = TwinDriver()
    driver.put(1, msgid="first")
    driver.put(2, msgid="second")
    driver.get(msgid="awaited")
    driver.reopen()
    assert driver.get(msgid="second")["bytes"] == 1
    state = driver.put(3, msgid="awaited")
    assert (state["bytes"], state["unmatched_gets"]) == (1, 0), "the held get took it"


def test_a_reopened_store_finds_hundreds_of_open_units() -> None:
    driver = TwinDriver()
    for number in range(UNITS):
        driver.put(1, uow=f"U{number}")
    driver.reopen()
    assert driver.state()["uncommitted"] == UNITS
    for number in range(0, UNITS, 2):
        driver.send("COMMIT", uow=f"U{number}")
    state = driver.state()
    assert (state["uncommitted"], state["messages"]) == (UNITS // 2, UNITS)
