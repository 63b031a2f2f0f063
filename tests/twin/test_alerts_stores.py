"""Alerts of stores beyond the scripts of `tests/cases/stores`: changed rules, facts of views, a facility's space."""

from __future__ import annotations

from typing import Any

import pytest

from kernels import _compile
from kernels.watch import CANNOT_EXPAND, FULL, THRESHOLD
from tests.naive.estates import ENTRY_AND_6_ELEMENTS, data_set
from tests.support import uncompiled
from tests.support.mutation import mutated
from tests.support.store_driver import GIB, NO_RULES
from tests.support.twin_driver import PageSetDriver, QueueFileDriver, TwinDriver
from tests.support.workloads import SECOND_US
from tests.twin.test_structure_scm import on_facility
from twin.base.conditions import FILE, INFO, OPENED, PAGES
from twin.stores.page_set import PageSetTwin
from twin.stores.queue_file import QueueFileTwin


def test_every_bit_of_the_kernels_has_its_condition() -> None:
    assert set(PageSetTwin.conditions) == {THRESHOLD, CANNOT_EXPAND, FULL}
    assert set(QueueFileTwin.conditions) == {THRESHOLD, FULL}
    assert {resource for _, resource in PageSetTwin.conditions.values()} == {PAGES}
    assert {resource for _, resource in QueueFileTwin.conditions.values()} == {FILE}


def test_full_of_a_data_set_opens_whatever_its_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_compile._Kernel, "__call__", uncompiled._call)
    smds = {"QM01": data_set(size=100 * 8_192)}
    with mutated("kernels.watch", "smds.blocks_in_use(store, dataset) * 100 > smds.EXPAND_ABOVE * total", "False"):
        driver = TwinDriver(
            size=1_000 * ENTRY_AND_6_ELEMENTS,
            ds_block=8_192,
            ds_expand=False,
            offld1_th=0,
            offld1_sz=0,
            full_threshold=0,
            smds=smds,
        )
        driver.put(8_192, count=99)
        assert driver.alerts == []
        driver.put(8_192, reason=2192)
    assert driver.alert_changes() == [(OPENED, "full", "smds/QM01")]


def test_augmented_space_is_exhausted_before_scm_is() -> None:
    driver = TwinDriver(size=104 * ENTRY_AND_6_ELEMENTS, scm_max_size=GIB, **NO_RULES)
    on_facility(driver, size=driver.state()["size"] + (8 << 20) + 164, scm=GIB)
    for _ in range(101):
        driver.put(100)
    [alert] = [alert for alert in driver.alerts if alert.condition.endswith("exhausted")]
    assert (alert.condition, alert.resource) == ("augmented-exhausted", "augmented")
    assert (alert.severity, alert.usage_pct) == (INFO, 100.0)
    assert alert.actions[1].startswith("Free storage in CF01")


def test_a_page_set_is_full_for_the_shortest_message_only_when_its_last_page_is_filled() -> None:
    driver = PageSetDriver(version="6.0")
    driver.put(3313, count=98)  # 3,685 bytes each: 372 are left, what the shortest takes
    assert not driver.twin.view(PAGES).has_no_room
    driver.put(0)
    assert driver.twin.view(PAGES).has_no_room


def test_a_page_set_whose_volumes_are_full_is_moved_once_its_queues_are_closed() -> None:
    driver = PageSetDriver(expand="SYSTEM", max_pages=105)
    driver.put(count=89)
    move = driver.alerts[-1].runbook[-1]
    assert (move.id, move.steps[0].statement) == ("move-queue", "DISPLAY USAGE TYPE(PAGESET)")
    assert move.precondition is not None and "open" in move.precondition


def test_a_rise_that_fills_nothing_within_the_horizon_names_the_file_not_entries() -> None:
    driver = QueueFileDriver(max_size=10 << 20, forecast_horizon_s=7200.0)
    forecasts: list[dict[str, Any]] = []
    for _ in range(90):  # 20 of 20,480 blocks each tick: full after 2.6 hours, the horizon is two
        driver.time += 10 * SECOND_US
        driver.put(148, count=20, persistent=True)
        forecast = driver.state()["forecast"]
        forecasts += [] if forecast is None else forecast["resources"]
    assert min(each["full_probability"] for each in forecasts) == 0.0
    assert {each["resource"] for each in forecasts} == {"file"}
