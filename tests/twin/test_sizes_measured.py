"""A measured size that differs from the twin's is told: both values in the record, and a drift alert where it stays."""

import pytest

from tests.support.twin_driver import PageSetDriver, QueueFileDriver, TwinDriver


def test_a_data_set_of_another_size_opens_drift_with_both_values() -> None:
    driver = TwinDriver()
    driver.put(100)
    for number in range(1, 4):
        state = driver.measure(smds={"QM01": {"blocks_used": 1, "blocks_total": 80}})
        assert state["sizes_measured"] == {"smds/QM01": {"blocks_total": {"twin": 40, "measured": 80}}}
        assert len(driver.alerts) == (number == 3)
    (alert,) = driver.alerts
    assert (alert.condition, alert.resource, state["drift_pct"]) == ("drift", "smds/QM01", 0.0)
    assert "blocks_total is 40 in the twin, 80 measured." in alert.cause
    assert driver.reopen().state() == state
    state = driver.measure(smds={"QM01": {"blocks_used": 1, "blocks_total": 40}})
    assert (driver.alerts[-1].change, state["sizes_measured"]) == ("cleared", {})


def test_a_small_difference_is_in_the_record_and_no_alert() -> None:
    driver = TwinDriver()
    for _ in range(4):
        state = driver.measure(ents_used=0, ents_max=41)
    assert state["sizes_measured"] == {"entries": {"ents_max": {"twin": 40, "measured": 41}}}
    assert driver.alerts == []


def test_a_measurement_without_sizes_does_not_end_what_an_earlier_one_said() -> None:
    driver = TwinDriver()
    driver.measure(size=200_000)
    driver.measure(ents_used=0)
    state = driver.measure(ents_used=0)
    assert list(state["sizes_measured"]) == ["elements"]
    assert [alert.resource for alert in driver.alerts] == ["elements"]


@pytest.mark.parametrize(
    ("driver", "field", "resource"),
    [(PageSetDriver(), "pages_total", "pages"), (QueueFileDriver(), "file_max_bytes", "file")],
    ids=["page set", "queue file"],
)
def test_sizes_of_private_stores_are_compared(driver: TwinDriver, field: str, resource: str) -> None:
    for _ in range(3):
        state = driver.measure(**{field: 7})
    assert state["sizes_measured"][resource][field]["measured"] == 7
    assert [alert.resource for alert in driver.alerts] == [resource]
