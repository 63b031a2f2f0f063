"""How much of the puts and gets of a queue events report, by measured depths: a sample, a feed that dies or returns."""

from __future__ import annotations

from typing import Any

import pytest

from tests.naive.estates import ENTRY_AND_6_ELEMENTS
from tests.support.twin_driver import TwinDriver


class Seen:
    """A store whose queue has measured depths, of which events report each message, one in five, or none."""

    def __init__(self) -> None:
        self.driver = TwinDriver(size=200 * ENTRY_AND_6_ELEMENTS)
        self.depth = self.number = 0
        self.ids: list[str] = []

    def measure(self, depth: int, one_in: int = 0) -> dict[str, Any] | None:
        """Put or get up to a depth, and measure it; return the coverage. one_in: is reported; 0: none."""
        for number in range(abs(depth - self.depth)) if one_in else ():
            if number % one_in == 0 and depth > self.depth:
                self.number += 1
                self.ids.append(f"{self.number:04}")
                self.driver.put(1000, msgid=self.ids[-1])
            elif number % one_in == 0:
                self.driver.get(msgid=self.ids.pop(0))
        self.depth = depth
        self.driver.wait(30)
        state = self.driver.measure(messages=depth, ents_used=depth, queues=[{"name": "A.QUEUE", "depth": depth}])
        return state.get("coverage")


def shares(coverage: dict[str, Any] | None) -> tuple[float, float]:
    """Return the shares of the puts and gets of the queue that are seen."""
    assert coverage is not None
    return coverage["A.QUEUE"]["puts_seen"]["share"], coverage["A.QUEUE"]["gets_seen"]["share"]


def test_a_fifth_of_the_puts_and_gets_is_said_to_be_seen() -> None:
    site = Seen()
    coverage = [site.measure(depth, 5) for depth in (0, 40, 80, 120, 80, 40)][-1]
    assert coverage is not None
    assert shares(coverage) == pytest.approx((0.2, 0.2), abs=0.03)
    for own in (coverage["A.QUEUE"]["puts_seen"], coverage["A.QUEUE"]["gets_seen"]):
        assert own["low"] < 0.2 < own["high"] < 0.35
    assert coverage["A.QUEUE"]["since"] == "2026-11-20T12:01:10.000000Z"
    puts, gets = shares(coverage)
    words = {
        f"{100 * puts:.0f} % of the puts of A.QUEUE are seen",
        f"{100 * gets:.0f} % of the gets of A.QUEUE are seen",
    }
    assert set(site.driver.twin.state().seen) == words


@pytest.mark.parametrize("depths", [(40, 0, 40, 0), (12, 0, 12, 0), (30, 60, 90, 40)], ids=str)
@pytest.mark.parametrize("one_in", [1, 5])
def test_a_feed_that_dies_is_said_within_three_measurements_and_is_no_page(
    one_in: int, depths: tuple[int, ...]
) -> None:
    site = Seen()
    for _ in range(3):
        for depth in (0, 40, 80, 40, 0):
            before = site.measure(depth, one_in)
    assert (before is None) == (one_in == 1)
    for depth in depths[:3]:
        coverage = site.measure(depth)
    assert shares(coverage) == (0.0, 0.0)
    assert coverage == site.driver.reopen().state()["coverage"]
    assert shares(site.measure(depths[3])) == (0.0, 0.0)
    assert [alert.condition for alert in site.driver.alerts if alert.level == "page"] == []


def test_a_feed_that_returns_is_counted_anew() -> None:
    site = Seen()
    for depth in (0, 60, 20, 60, 20):
        site.measure(depth)
    coverage = [site.measure(depth, 1) for depth in (60, 100)][-1]
    assert coverage is not None and coverage["A.QUEUE"]["puts_seen"]["share"] == 1.0
