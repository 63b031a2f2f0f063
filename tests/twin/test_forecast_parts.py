"""Queues apart (docs/forecast.md#method): a getter that stops shows in its queue before it shows in the sum."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernels.layout import NEVER, QUEUE
from kernels.regime import LAG, LEFT
from tests.naive.estates import ENTRY_AND_6_ELEMENTS
from tests.support.store_driver import NO_RULES
from tests.support.twin_driver import TwinDriver
from tests.support.workloads import SECOND_US
from twin.forecast import flows
from twin.forecast.flows import MOST_STOPS, Stop, note_stops, take_out

TICK_US = 10 * SECOND_US
WEIGHTS = np.full(12, 6.0)
BUSY, RISES = 60, 5  # messages a tick put to B.QUEUE, and by how much gets of it fall behind


class Two(TwinDriver):
    """A large structure with a busy queue, in bursts, whose getter falls behind, and A.QUEUE beside it."""

    def __init__(self, seed: int) -> None:
        super().__init__(**({"size": 100_000 * ENTRY_AND_6_ELEMENTS, "full_threshold": 0} | NO_RULES))
        self.rng = np.random.default_rng(seed)
        self.waiting = 0  # on A.QUEUE

    def go_on(self, minutes: float, puts: int, is_there: Callable[[int], bool]) -> None:
        """Apply minutes with `puts` a tick to A.QUEUE, all got at ticks at which its getter is there."""
        for number in range(round(minutes * 6)):
            self.time += TICK_US - self.time % TICK_US
            put, got = int(self.rng.negative_binomial(3, 3 / (3 + BUSY))), int(self.rng.poisson(BUSY - RISES))
            few = int(self.rng.poisson(puts))
            self.waiting += few
            for count, queue in ((put, "B.QUEUE"), (few, "A.QUEUE")):
                if count:
                    self.send("PUT", queue, time=self.time + SECOND_US, count=count, length=800)
            if got:
                self.send("GET", "B.QUEUE", time=self.time + 2 * SECOND_US, count=got)
            if is_there(number) and self.waiting:
                self.send("GET", time=self.time + 2 * SECOND_US, count=self.waiting)
                self.waiting = 0
        self.send("HEARTBEAT", None, time=self.time + 3 * SECOND_US, store="QSG1/APP1")

    @property
    def tick(self) -> int:
        return int(self.twin.tables.store.scalars["tick"][0])

    def stops(self, known: tuple[Stop, ...] = ()) -> tuple[Stop, ...]:
        return note_stops(self.twin.tables.store, self.tick, known)

    def net(self, stops: tuple[Stop, ...]) -> float:
        """Return the messages that a tick adds in the present regime."""
        now = flows.present(self.twin.tables.store, self.tick, WEIGHTS, stops)
        assert now is not None
        return now.net_messages


def always(_: int) -> bool:
    return True


def never(_: int) -> bool:
    return False


@pytest.mark.parametrize("seed", [1])
def test_a_getter_that_stopped_four_minutes_ago_is_in_the_flows(seed: int) -> None:
    """The store fills five times as fast as before; in the sum that is lost in the bursts of the other queue."""
    two = Two(seed)
    two.go_on(60, puts=20, is_there=always)
    assert two.stops() == ()
    two.go_on(4, puts=20, is_there=never)
    [stop] = stops = two.stops()
    assert stop.soon and stop.rate == pytest.approx(20, rel=0.1)
    assert two.net(stops) == pytest.approx(20 + RISES, rel=0.2)
    assert two.net(()) < 0.5 * (20 + RISES)


def test_it_is_forgotten_when_there_is_a_get_again() -> None:
    two = Two(1)
    two.go_on(60, puts=20, is_there=always)
    two.go_on(5, puts=20, is_there=never)
    known = two.stops()
    assert two.stops(known) == known != ()
    two.go_on(1, puts=20, is_there=always)
    assert two.stops(known) == ()


def test_a_stop_stays_known_when_its_samples_have_gone() -> None:
    two = Two(1)
    two.go_on(60, puts=20, is_there=always)
    two.go_on(5, puts=20, is_there=never)
    known = two.stops()
    two.go_on(40, puts=20, is_there=never)
    assert two.stops(known) == known != ()
    assert two.stops() == ()
    two.go_on(25, puts=20, is_there=never)
    assert two.stops(known) == ()  # no bin is as old


@pytest.mark.parametrize("period", [6, 30, 90])
def test_a_getter_that_comes_now_and_then_has_not_stopped(period: int) -> None:
    two, stopped = Two(3), 0
    two.go_on(40, puts=20, is_there=lambda number: number % period == 0)
    for minute in range(40):
        two.go_on(1, puts=20, is_there=lambda number, minute=minute: (6 * minute + number) % period == 0)
        stopped += two.stops() != ()
    assert stopped <= 4  # of forty: where both samples happened to come just after a get


def test_a_queue_that_nobody_puts_to_has_no_getter_that_stopped() -> None:
    two = Two(1)
    two.go_on(60, puts=20, is_there=always)
    two.go_on(10, puts=0, is_there=never)
    assert two.stops() == ()


def test_only_the_few_that_were_got_from_most_are_remembered() -> None:
    known = tuple(Stop(queue, 5, float(rate), 1, soon=True) for queue, rate in enumerate([3, 9, 4, 9, 5, 7]))
    queues = np.zeros(len(known), QUEUE)
    queues["got_at"] = 5
    store: Any = SimpleNamespace(
        queues=queues, params={"queues": np.array([len(known)])}, scalars={"steady_from": np.array([NEVER])}
    )
    remembered = note_stops(store, 6, known)
    assert [stop.queue for stop in remembered] == [1, 3, 4, 5]
    assert len(remembered) == MOST_STOPS


def test_late_gets_are_taken_out_of_what_left() -> None:
    """Of messages that waited for long the gets were counted as ones that left: 8 a bin, 5 by one getter."""
    bins, totals = np.zeros((10, 36)), np.zeros((10, 5))
    bins[:, 13], bins[:, 25] = 6.0, 2.0
    totals[:, LEFT], totals[:, LAG] = 8.0, 80.0
    take_out((Stop(0, 96, 5.0, 1, soon=False),), 100, bins, totals)
    assert bins[:6].sum(axis=1).tolist() == [3.0] * 6
    assert bins[6:].sum(axis=1).tolist() == [8.0] * 4
    assert totals[:, LEFT].tolist() == [3.0] * 6 + [8.0] * 4
    assert totals[:, LAG].tolist() == [30.0] * 6 + [80.0] * 4
