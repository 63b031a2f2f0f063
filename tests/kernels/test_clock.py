"""A clock that a majority of later events contradicts goes back, and stored future times become the present."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import clock
from tests.kernels.beside import Decoding
from tests.kernels.proof import check_equal_states, check_marks, check_same_results
from tests.naive.clock import NaiveClock
from tests.naive.estates import aliases_of
from tests.support.mixes import DAY_US, HOUR_US, MINUTE_US, MIXES, SECOND_US
from tests.support.profile import IS_LARGE, examples
from tests.support.twin_driver import TwinDriver
from tests.support.workloads import START_US, EventMaker, Workload, random_workload, steps
from twin.base.units import as_text

pytestmark = pytest.mark.uncompiled

FORECAST_EVENTS = 300 if IS_LARGE else 100
YEAR_2099 = 4_102_444_799_000_000
BACK_AND_FORTH = (
    *((0, True), (SECOND_US, True), (MINUTE_US, True), (10 * MINUTE_US, True), (HOUR_US, True)) * 4,
    *((25 * HOUR_US, True), (-25 * HOUR_US, True), (-25 * HOUR_US, True), (3 * DAY_US, True), (-3 * DAY_US, True)),
    *((30 * HOUR_US, False), (-30 * HOUR_US, False), (-3 * DAY_US, False)),
)


@pytest.fixture
def trust_of_three(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let three events turn a clock back."""
    monkeypatch.setattr(clock, "TRUST", 3)
    monkeypatch.setattr(NaiveClock, "trust", 3)
    return None


def back_and_forth(kind: str, seed: int, n: int) -> Workload:
    return random_workload(seed, n, "mixed", kind, BACK_AND_FORTH)


def turns(workload: Workload) -> int:
    """Return how often the clock of a twin goes back in a workload."""
    decoding = Decoding(workload.config, foresees=False)
    twin = decoding.twin()
    twin.apply(decoding.block(workload.events)[0])
    return int(twin.tables.store.scalars[0]["turns"])


def test_two_wrong_clocks_do_no_lasting_harm() -> None:
    driver = TwinDriver()
    driver.put()
    for _ in range(2):
        driver.send("HEARTBEAT", None, store=driver.decoding.name, time=YEAR_2099)
    driver.time = START_US
    for _ in range(clock.TRUST - 1):
        assert driver.put()["time"] == as_text(YEAR_2099)
    assert driver.put()["time"] == as_text(driver.time)
    assert driver.wait(3600)["time"] == as_text(driver.time)


def test_a_backlog_does_not_turn_a_clock_that_as_many_events_support() -> None:
    driver = TwinDriver()
    for _ in range(50):
        driver.put()
    now = driver.time
    for _ in range(clock.TRUST + 48):
        driver.put(time=now - 3 * DAY_US)
    assert driver.state()["time"] == as_text(now)


def test_ticks_come_again_and_alerts_of_the_same_time_have_another_id() -> None:
    driver = TwinDriver()
    full = {"reason": 2192, "time": START_US + HOUR_US}
    driver.put(**full)
    driver.wait(2 * HOUR_US / SECOND_US)
    assert [change for change, *_ in driver.alert_changes()] == ["opened", "updated", "cleared"]
    for _ in range(2):
        driver.send("HEARTBEAT", None, store=driver.decoding.name, time=YEAR_2099)
    for _ in range(clock.TRUST):
        driver.send("HEARTBEAT", None, store=driver.decoding.name, time=START_US)
    driver.put(**full)
    driver.wait(2 * HOUR_US / SECOND_US)
    assert [change for change, *_ in driver.alert_changes()] == ["opened", "updated", "cleared"] * 2
    assert len({(alert.alert_id, alert.number) for alert in driver.alerts}) == 6


def test_a_get_held_in_the_future_waits_an_hour_of_the_clock_that_went_back() -> None:
    driver = TwinDriver()
    for _ in range(2):
        driver.send("HEARTBEAT", None, store=driver.decoding.name, time=YEAR_2099)
    driver.get(time=YEAR_2099)
    for number in range(clock.TRUST + 2):
        driver.send("HEARTBEAT", None, store=driver.decoding.name, time=START_US + number)
    driver.wait(3601)
    assert driver.put()["messages"] == 1


@pytest.mark.usefixtures("trust_of_three")
@pytest.mark.parametrize("kind", MIXES)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_twin_and_oracle_have_equal_states_when_clocks_go_back(kind: str, data: st.DataObject) -> None:
    mix = replace(MIXES[kind], times=BACK_AND_FORTH)
    config = data.draw(mix.configs)
    maker = EventMaker(config, mix)
    events = [maker.event(step) for step in data.draw(steps("mixed", 60, kind))]
    check_equal_states(Workload(config, aliases_of(config), events), every=1)


@pytest.mark.usefixtures("trust_of_three")
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", MIXES)
@pytest.mark.nightly
def test_twin_and_oracle_have_equal_states_for_hundreds_of_events_when_clocks_go_back(kind: str, seed: int) -> None:
    workload = back_and_forth(kind, seed, 400)
    check_equal_states(workload, every=10)
    assert turns(workload) > 2


@pytest.mark.usefixtures("trust_of_three")
@pytest.mark.parametrize("foresees", [False, pytest.param(True, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("kind", MIXES)
def test_cuts_of_blocks_do_not_change_results_when_clocks_go_back(kind: str, foresees: bool) -> None:
    workload = back_and_forth(kind, 3, FORECAST_EVENTS)
    decoding = Decoding(workload.config, foresees=foresees)
    block, _ = decoding.block(workload.events)
    check_same_results(decoding, block, np.random.default_rng(5).integers(0, FORECAST_EVENTS, 20).tolist())
    assert turns(workload) > 0


@pytest.mark.usefixtures("trust_of_three")
@pytest.mark.parametrize("kind", MIXES)
def test_every_page_that_changes_is_marked_when_clocks_go_back(kind: str) -> None:
    check_marks(back_and_forth(kind, 4, 200))
