"""A measured size wins at once; one that cannot be taken over is told, and opens a drift alert where it stays."""

import pytest

from tests.support.twin_driver import PageSetDriver, QueueFileDriver, TwinDriver


def test_a_data_set_of_another_size_has_the_measured_one() -> None:
    driver = TwinDriver()
    driver.put(100)
    for _ in range(3):
        state = driver.measure(smds={"QM01": {"blocks_used": 1, "blocks_total": 80}})
        assert state["smds"]["QM01"]["blocks_total"] == 80
    assert (state["sizes_measured"], driver.alerts, state["drift_pct"]) == ({}, [], 0.0)
    assert driver.reopen().state() == state


def test_a_small_difference_is_taken_over_too() -> None:
    driver = TwinDriver()
    for _ in range(4):
        state = driver.measure(ents_used=0, ents_max=41)
    assert (state["ents_max"], state["sizes_measured"], driver.alerts) == (41, {}, [])


def test_a_measurement_without_sizes_leaves_those_of_an_earlier_one() -> None:
    driver = TwinDriver()
    driver.measure(size=200_000)
    driver.measure(ents_used=0)
    state = driver.measure(ents_used=0)
    assert (state["size"], state["sizes_measured"], driver.alerts) == (200_000, {}, [])


@pytest.mark.parametrize(
    ("driver", "field"),
    [(PageSetDriver(), "pages_total"), (QueueFileDriver(), "file_max_bytes")],
    ids=["page set", "queue file"],
)
def test_sizes_of_private_stores_are_taken_over(driver: TwinDriver, field: str) -> None:
    for _ in range(3):
        state = driver.measure(**{field: 1 << 20})
    assert (state[field], state["sizes_measured"], driver.alerts) == (1 << 20, {}, [])


def test_a_maximum_beyond_its_file_system_is_told_with_both_values() -> None:
    driver = QueueFileDriver(file_system_size=1 << 20)
    for _ in range(3):
        state = driver.measure(file_max_bytes=2 << 20)
    assert state["sizes_measured"] == {"file": {"file_max_bytes": {"twin": 1 << 20, "measured": 2 << 20}}}
    (alert,) = driver.alerts
    assert (alert.condition, alert.resource) == ("drift", "file")
    assert "file_max_bytes is 1,048,576 in the twin, 2,097,152 measured." in alert.cause
    state = driver.measure(file_max_bytes=1 << 20)
    assert (driver.alerts[-1].change, state["sizes_measured"]) == ("cleared", {})
