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


@pytest.mark.parametrize(
    ("driver", "field"),
    [(PageSetDriver(), "pages_total"), (QueueFileDriver(), "file_max_bytes")],
    ids=["page set", "queue file"],
)
def test_sizes_of_private_stores_are_taken_over(driver: TwinDriver, field: str) -> None:
    for _ in range(3):
        state = driver.measure(**{field: 1 << 20})
    assert (state[field], state["sizes_measured"], driver.alerts) == (1 << 20, {}, [])
