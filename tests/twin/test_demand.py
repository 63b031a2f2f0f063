"""Refused puts are demand: what the meters count, what forecasts, state records and texts say of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import meter_rows, meters, pools, queue_file
from kernels.clock import SECOND
from kernels.layout import NEVER
from tests.naive.demand import NaivePut, demand
from tests.support.profile import examples
from twin.estate import load_estate
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
    found = driver._player.twins[name]
    assert isinstance(found, MessageStore)
    return found


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
    made: list[NaivePut] = []
    for length, count, reason, seconds in asked:
        made.append(NaivePut(driver.time // SECOND, length, count, reason, float(queue_file.blocks_of(length))))
        driver.put("INVOICES", length=length, count=count, reason=reason)
        if seconds:
            driver.wait(seconds=seconds)
    read = np.full(meters.DEMAND, np.nan)
    first_tick = begin // 10 + since // 10
    first = meters.read_demand(store_of(driver, "QMD1/INVOICES").tables.store, first_tick, read)
    assert read.tolist() == demand(made, first_tick * 10)
    assert first == NEVER or first >= first_tick


@pytest.mark.parametrize(("name", "queue"), STORES.items())
@pytest.mark.parametrize("reason", [2192, 2056])
def test_refused_puts_are_counted_before_any_put_was_accepted(driver: Driver, name: str, queue: str, reason: int):
    driver.put(queue, length=3000, count=7, reason=reason)
    store = store_of(driver, name).tables.store
    assert store.messages.size < 64
    assert int(store.scalars["full_puts"][0]) == 7
    read = np.empty(meters.DEMAND)
    meters.read_demand(store, 0, read)
    assert read.sum() == 7
    assert [alert.condition for alert in driver.alerts][:1] == ["full"]


def test_what_refused_puts_would_take_is_known_though_none_of_their_length_was_accepted(driver: Driver):
    for name, queue in STORES.items():
        driver.put(queue, length=9000, count=4, reason=2192)
        stocks = store_of(driver, name).tables.store.stocks
        each = stocks["puts_space"].sum() / stocks["puts"].sum()
        expected = {
            "QSG1/APP1": pools.elements_of(9000),
            "QM01/PS04": 3 + (20 + 9) / 4057,
            "QMD1/INVOICES": queue_file.blocks_of(9000),
        }[name]
        assert each == pytest.approx(expected)
        assert stocks["held"].sum() == 0


def test_counts_do_not_overflow(driver: Driver):
    for _ in range(4):
        driver.put("ORDERS", length=100_000, count=1_000_000, reason=2053)
    read = np.empty(meters.DEMAND)
    meters.read_demand(store_of(driver, "QSG1/APP1").tables.store, 0, read)
    assert read[meter_rows.CLASSES] == 4_000_000
    assert read[meter_rows.CLASSES + 1] == pytest.approx((2**31 - 1) / meter_rows.SPACE_PARTS)
