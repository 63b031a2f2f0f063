"""Gets held aside, and scans of a group. The rules of events: tests/cases/stores/messages.events, expiry.events."""

from dataclasses import replace

import pytest

from tests.support.twin_driver import TwinDriver


def test_expired_gets_give_back_their_memory_and_stay_counted() -> None:
    driver = TwinDriver()
    for _ in range(20):
        driver.get(count=10, qmgr="QM01")
        driver.get(msgid="never")
        driver.wait(3_600)
    assert driver.state()["unmatched_gets"] == 20 * 11
    assert driver.twin.tables.store.scalars[0]["held_high"] <= 2 * 11


@pytest.mark.parametrize(("intervals", "gone"), [((300, 20), 20), ((20, 300), 20), ((0, 40), 40), ((0, 0), None)])
def test_a_structure_has_the_scans_of_the_member_with_the_shortest_interval(
    intervals: tuple[float, float], gone: float | None
) -> None:
    driver = TwinDriver()
    estate = driver.decoding.estate
    members = dict(zip(("QM01", "QM02"), intervals, strict=True))
    changed = {name: replace(estate.queue_managers[name], expiry_interval_s=s) for name, s in members.items()}
    driver.decoding.estate = replace(estate, queue_managers={**estate.queue_managers, **changed})
    driver.twin = driver.decoding.twin()
    driver.put(expiry=1)  # at 1 s, of a time that is a scan of each interval
    if gone is None:
        assert driver.wait(86_400)["messages"] == 1
    else:
        assert driver.wait(gone - 2)["messages"] == 1
        assert driver.wait(1)["messages"] == 0
