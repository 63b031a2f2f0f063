"""Refused puts are demand: what the meters count, what forecasts, state records and texts say of it."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import messages, meter_rows, meters, pools, queue_file
from kernels.clock import SECOND
from kernels.layout import NEVER
from tests.naive.demand import NaivePut, demand
from tests.support.profile import examples
from twin.base.conditions import ELEMENTS, ENTRIES
from twin.estate import load_estate
from twin.forecast import remedies
from twin.forecast.outlook import Forecast
from twin.planning.whatif import Moment, Traffic, what_if
from twin.records import ElementDemand, TimeToFull
from twin.stores.message_store import MessageStore
from twin.testing import Driver

ESTATE = """
schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[queue_manager.QM01]
platform = "zos"
[queue_manager.QMD1]
platform = "distributed"
[structure."QSG1/APP1"]
cf_level = 5
size = "1M"
[queue."QSG1/ORDERS"]
structure = "APP1"
max_depth = 500
[page_set."QM01/4"]
pages = 200
[storage_class."QM01/DEFAULT"]
page_set = 4
[queue."QM01/LOCAL"]
storage_class = "DEFAULT"
[queue_file."QMD1/INVOICES"]
max_size = "1M"
"""
STORES = {"QSG1/APP1": "ORDERS", "QM01/PS04": "LOCAL", "QMD1/INVOICES": "INVOICES"}


@pytest.fixture
def driver(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    path = tmp_path_factory.mktemp("demand") / "estate.toml"
    path.write_text(ESTATE, encoding="utf-8")
    return Driver(load_estate(path))


def store_of(driver: Driver, name: str) -> MessageStore:
    store_twin = driver._player.twins[name]
    assert isinstance(store_twin, MessageStore)
    return store_twin


def read_demand(driver: Driver, name: str, since: int = 0) -> tuple[list[float], int]:
    """Return the demand of a store from a tick on, as `meters.read_demand` reads it, and the first tick."""
    store, read = store_of(driver, name).tables.store, np.full(meters.DEMAND, np.nan)
    first = meters.read_demand(store.bins, store.counts, int(store.scalars["bin"][0]), since, read)
    return read.tolist(), first


lengths = st.sampled_from([0, 140, 141, 2048, 4000, 20_000, 64_512, 70_000, 2_000_000])
puts = st.tuples(lengths, st.integers(1, 40), st.sampled_from([0, 0, 2192, 2056, 2053, 2030]), st.integers(0, 25))


@settings(max_examples=examples(100), deadline=None)
@given(asked=st.lists(puts, min_size=1, max_size=30), since=st.integers(0, 400))
def test_meters_count_every_put_as_the_oracle_does(
    tmp_path_factory: pytest.TempPathFactory, asked: list[tuple[int, int, int, int]], since: int
):
    path = tmp_path_factory.getbasetemp() / "demand.toml"
    path.write_text(ESTATE, encoding="utf-8")
    driver = Driver(load_estate(path))
    begin = driver.time // SECOND
    driver.send({"time": driver.time, "qmgr": "QMD1", "op": "HEARTBEAT"})
    driver.wait(seconds=20)
    asked_for: list[NaivePut] = []
    for length, count, reason, seconds in asked:
        asked_for.append(NaivePut(driver.time // SECOND, length, count, reason, float(queue_file.blocks_of(length))))
        driver.put("INVOICES", length=length, count=count, reason=reason)
        if seconds:
            driver.wait(seconds=seconds)
    first_tick = begin // 10 + since // 10
    read, first = read_demand(driver, "QMD1/INVOICES", first_tick)
    assert read == demand(asked_for, first_tick * 10)
    assert first == NEVER or first >= first_tick


@pytest.mark.parametrize(("name", "queue"), STORES.items())
@pytest.mark.parametrize("reason", [2192, 2056])
def test_refused_puts_are_counted_before_any_put_was_accepted(driver: Driver, name: str, queue: str, reason: int):
    driver.put(queue, length=3000, count=7, reason=reason)
    store = store_of(driver, name).tables.store
    assert store.messages.size < 64
    assert int(store.scalars["full_puts"][0]) == 7
    assert sum(read_demand(driver, name)[0]) == 7
    assert [alert.condition for alert in driver.alerts][:1] == ["full"]


def test_what_refused_puts_would_take_is_known_though_none_of_their_length_was_accepted(driver: Driver):
    for name, queue in STORES.items():
        driver.put(queue, length=9000, count=4, reason=2192)
        stocks = store_of(driver, name).tables.store.stocks
        each = stocks["puts_space"].sum() / stocks["puts"].sum()
        expected = {
            "QSG1/APP1": pools.elements_of(9000),
            "QM01/PS04": 4,  # three segments, and a page that records do not share
            "QMD1/INVOICES": queue_file.blocks_of(9000),
        }[name]
        assert each == pytest.approx(expected)
        assert stocks["held"].sum() == 0


def test_counts_do_not_overflow(driver: Driver):
    for _ in range(4):
        driver.put("LOCAL", length=100_000, count=1_000_000, reason=2053)
    read, _ = read_demand(driver, "QM01/PS04")
    assert read[meter_rows.CLASSES] == 4_000_000
    assert read[meter_rows.CLASSES + 1] == pytest.approx((2**31 - 1) / meter_rows.SPACE_PARTS)


# --- demand in the state record --------------------------------------------------------------------------------------


def test_the_demand_of_a_store_has_what_was_accepted_and_what_was_refused(driver: Driver):
    for _ in range(180):
        driver.put("ORDERS", length=3000, count=20)
        driver.put("ORDERS", length=3000, count=10, reason=2192)
        driver.put("ORDERS", length=3000, count=10, reason=2053)
        driver.put("LOCAL", length=3000, count=5, reason=2192)
        driver.put("INVOICES", length=3000, count=5, reason=2056)
        driver.wait(seconds=10)
    structure, page_set, file = (driver.state(name).demand for name in STORES)
    assert structure.puts_per_s == pytest.approx(4.0, rel=0.02)
    assert structure.elements_per_s == pytest.approx(4.0 * 2, rel=0.02)  # it is so full that all are offloaded
    assert page_set.puts_per_s == pytest.approx(0.5, rel=0.02) and page_set.pages_per_s == pytest.approx(0.5, rel=0.02)
    assert file.blocks_per_s == pytest.approx(0.5 * queue_file.blocks_of(3000), rel=0.02)


def test_a_demand_is_of_the_last_fifteen_minutes(driver: Driver):
    driver.put("ORDERS", length=3000, count=900, reason=2192)
    driver.wait(minutes=14)
    assert driver.state("QSG1/APP1").demand.puts_per_s == pytest.approx(900 / 840, rel=0.02)
    driver.wait(minutes=2)
    assert driver.state("QSG1/APP1").demand.puts_per_s == 0.0


def test_demand_of_offloaded_messages_is_what_stays_in_the_structure(tmp_path: Path):
    offloads = '[structure."QSG1/APP1"]\noffload = "SMDS"\noffld1_th = 0\noffld1_sz = "0K"'
    path = tmp_path / "estate.toml"
    path.write_text(ESTATE.replace('[structure."QSG1/APP1"]', offloads), encoding="utf-8")
    driver = Driver(load_estate(path))
    driver.put("ORDERS", length=30_000, count=10)
    driver.wait(seconds=10)
    assert driver.state("QSG1/APP1").demand == ElementDemand(puts_per_s=1.0, elements_per_s=2.0)


def test_a_store_of_which_nothing_was_counted_has_no_demand(driver: Driver):
    driver.measure("QSG1/APP1", ents_used=5, elems_used=60, messages=5)
    assert driver.state("QSG1/APP1").demand is None
    driver.get("ORDERS")
    assert driver.state("QSG1/APP1").demand == ElementDemand(puts_per_s=0.0, elements_per_s=0.0)


# --- a store that refuses puts ---------------------------------------------------------------------------------------


class Crisis:
    """A store of each kind that fills and then refuses puts.

    Args:
        folder: where its estate is written.
        name: the store.
        length: bytes of each message.
        rate: messages asked for in ten seconds.
        gets: messages got in ten seconds, fewer.
    """

    def __init__(self, folder: Path, name: str, length: int, rate: int, gets: int = 0) -> None:
        path = folder / "estate.toml"
        path.write_text(ESTATE.replace("max_depth = 500\n", ""), encoding="utf-8")
        self.driver, self.name, self.queue = Driver(load_estate(path)), name, STORES[name]
        self.length, self.rate, self.gets = length, rate, gets
        self.forecasts: dict[int, list[Forecast]] = {}
        self.refused = 0
        self.refused_since = 0  # microseconds

    @property
    def twin(self) -> MessageStore:
        return store_of(self.driver, self.name)

    @property
    def moment(self) -> Moment:
        return Moment(self.driver.estate, self.twin)

    def pass_ticks(self, ticks: int, *, puts: int | None = None) -> None:
        """Let puts be asked for and messages be got; a put that does not fit is refused, as by the real system."""
        for _ in range(ticks):
            for _ in range(self.rate if puts is None else puts):
                fits = not self.is_full()
                self.refused += not fits
                self.driver.put(self.queue, length=self.length, reason=0 if fits else 2192)
                if self.refused == 1 and not fits:
                    self.refused_since = int(self.twin.tables.store.scalars[0]["clock"])
            if self.gets:
                self.driver.get(self.queue, count=self.gets)
            self.driver.wait(seconds=10)
            for forecast in self.twin.drain_forecasts():
                self.forecasts.setdefault(forecast.time, []).append(forecast)

    def is_full(self) -> bool:
        store_twin = self.driver._player.twins.get(self.name)
        if store_twin is None:
            return False
        return not messages.fits(store_twin.tables.store, 0, self.length, False)

    def fill(self) -> None:
        """Let traffic run until puts have been refused for three minutes."""
        for _ in range(2000):
            self.pass_ticks(1)
            if self.refused:
                self.pass_ticks(18)
                return
        raise AssertionError("it never was full")


crises = st.tuples(
    st.sampled_from(list(STORES)), st.sampled_from([600, 3000, 9000, 30_000]), st.integers(2, 6), st.integers(0, 3)
)


@settings(max_examples=examples(40), deadline=None)
@given(crisis=crises)
def test_while_puts_are_refused_everything_says_full_now(
    tmp_path_factory: pytest.TempPathFactory, crisis: tuple[str, int, int, int]
):
    name, length, puts, gets = crisis
    story = Crisis(tmp_path_factory.mktemp("crisis"), name, length, 8 * puts, 2 * min(gets, puts - 1))
    story.fill()
    # Entries may be what refuses after elements were: messages that went out gave their elements back.
    full = {str(each) for episode in story.twin.episodes if episode.condition == "full" for each in episode.resources}
    later = {time: forecasts for time, forecasts in story.forecasts.items() if time > story.refused_since}
    assert len(later) >= 18
    for forecasts in later.values():
        assert {(each.probability, each.p10, each.p50, each.p90) for each in forecasts} == {(1.0, 0.0, 0.0, 0.0)}
        assert forecasts and {each.resource for each in forecasts} <= full
    state = story.driver.state(name)
    assert state.first.full_probability == 1.0 and state.first.time_to_full_s == TimeToFull(p10=0, p50=0, p90=0)
    answer = what_if(story.moment)
    assert answer.before == answer.after
    assert (answer.before.p10, answer.before.p50, answer.before.p90, answer.before.probability) == (0, 0, 0, 1)
    assert answer.before.messages_that_fit == 0
    assert answer.before.puts_per_s == pytest.approx(story.rate / 10, rel=0.05)


LARGER = {"QSG1/APP1": "size", "QM01/PS04": "pages", "QMD1/INVOICES": "max_size"}
SIZES = {"QSG1/APP1": 1 << 20, "QM01/PS04": 200, "QMD1/INVOICES": 1 << 20}
UNIT_BYTES = {"QM01/PS04": 1, "QMD1/INVOICES": 512}


@settings(max_examples=examples(40), deadline=None)
@given(crisis=crises, larger=st.sampled_from([1.05, 1.3, 2.0, 5.0]))
def test_a_larger_store_that_nobody_gets_from_is_full_when_the_demand_has_filled_what_was_added(
    tmp_path_factory: pytest.TempPathFactory, crisis: tuple[str, int, int, int], larger: float
):
    name, length, puts, _ = crisis
    story = Crisis(tmp_path_factory.mktemp("crisis"), name, length, 8 * puts)
    story.fill()
    size = int(SIZES[name] * larger) // 4096 * 4096 if name != "QM01/PS04" else int(200 * larger)
    settings = {LARGER[name]: size}
    once, fourfold = what_if(story.moment, settings), what_if(story.moment, settings, Traffic(puts=4))
    if name == "QSG1/APP1":
        grown, state = story.moment.with_settings(settings).state(), story.driver.state(name)
        full = {
            resource for episode in story.twin.episodes if episode.condition == "full" for resource in episode.resources
        }
        entries = grown.ents_max - (state.ents_max if ENTRIES in full else state.ents_used)
        elements = grown.elems_max - (state.elems_max if ELEMENTS in full else state.elems_used)
        seconds = min(entries / state.demand.puts_per_s, elements / state.demand.elements_per_s)
        # The larger size may leave an offload rule, which takes hold again up to a step late.
        soonest = min(seconds, elements / state.demand.puts_per_s / pools.elements_of(length))
    else:
        (per_s,) = story.driver.state(name).demand.units_per_s.values()
        soonest = seconds = (size - SIZES[name]) / UNIT_BYTES[name] / per_s
    assert once.after.probability == 1.0
    assert once.after.p50 <= 1.05 * seconds + 20
    assert once.after.p50 >= 0.7 * soonest - 20
    assert once.after.p90 <= 1.4 * seconds + 20
    for field in ("p10", "p50", "p90"):
        assert getattr(fourfold.after, field) <= getattr(once.after, field)


@settings(max_examples=examples(40), deadline=None)
@given(crisis=crises, larger=st.sampled_from([1.0, 1.1, 1.5]))
def test_more_puts_are_never_later(
    tmp_path_factory: pytest.TempPathFactory, crisis: tuple[str, int, int, int], larger: float
):
    name, length, puts, gets = crisis
    story = Crisis(tmp_path_factory.mktemp("crisis"), name, length, 8 * puts, 8 * min(gets, puts - 1) + 2)
    story.fill()
    size = int(SIZES[name] * larger) // 4096 * 4096 if name != "QM01/PS04" else int(200 * larger)
    settings = {} if larger == 1.0 else {LARGER[name]: size}
    outcomes = [what_if(story.moment, settings, Traffic(puts=factor)).after for factor in (1.0, 2.0, 4.0, 16.0)]
    for slower, faster in itertools.pairwise(outcomes):
        assert faster.probability >= slower.probability
        assert faster.puts_per_s == pytest.approx(2 * slower.puts_per_s, rel=1.0)
        for field in ("p10", "p50", "p90"):
            before, after = getattr(slower, field), getattr(faster, field)
            assert before is None or after <= before


@pytest.mark.parametrize("name", STORES)
def test_when_the_store_is_relieved_the_forecast_is_one_again(tmp_path: Path, name: str):
    story = Crisis(tmp_path, name, 3000, 24)
    story.fill()
    depth = story.driver.state(name).messages
    story.driver.get(story.queue, count=depth - depth // 10)
    story.pass_ticks(7, puts=0)  # a minute from the last refusal
    story.pass_ticks(6, puts=1)
    forecast = story.driver.state(name).first
    assert forecast is None or forecast.full_probability < 1.0
    assert what_if(story.moment).before.p50 != 0.0


def test_a_full_store_says_how_many_gets_it_needs(tmp_path: Path):
    story = Crisis(tmp_path, "QSG1/APP1", 3000, 24, 4)
    story.fill()
    story.pass_ticks(200)
    story.driver.alerts.clear()
    story.gets = 0
    fillers = story.twin.viewer().who_fills(ELEMENTS)
    tick = int(story.twin.tables.store.scalars["tick"][0])
    phrase = remedies.effects_when_full(story.twin, fillers, tick)["getters"]
    assert phrase == "needs 2 gets/s more; at the present rate it stays full"


def test_no_forecast_alert_opens_while_puts_are_refused_and_one_that_is_open_says_so_once(tmp_path: Path):
    story = Crisis(tmp_path, "QSG1/APP1", 3000, 2)
    story.fill()
    story.pass_ticks(400)
    about_full = [alert for alert in story.driver.alerts if alert.condition == "full-forecast"]
    first = min(alert.time for alert in story.driver.alerts if alert.condition == "full")
    afterwards = [alert for alert in about_full if alert.time > first]
    assert len(afterwards) == 1 and afterwards[0].change == "updated"
    assert afterwards[0].time_to_full_s == TimeToFull(p10=0, p50=0, p90=0) and afterwards[0].full_probability == 1.0
    assert "gets/s more" in afterwards[0].actions[0]
