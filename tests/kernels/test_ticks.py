"""Quiet ticks, which the event loop passes by itself, change the same as ticks that the twin runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from kernels import EVENT, event_loop, layout
from kernels.clock import TICK
from tests.kernels.beside import Decoding, contents, cut, header_of, records
from tests.support.twin_driver import TwinDriver
from tests.support.workloads import MINUTE_US, SECOND_US, START_US, random_workload
from twin.events import EventBlock
from twin.state.tables import TABLES
from twin.stores.reports import Reporter

SPARSE = tuple((step, True) for step in (0, 3 * SECOND_US, 15 * SECOND_US, 50 * SECOND_US, 7 * MINUTE_US))
WORKLOADS = (
    *((kind, "mixed") for kind in ("structure", "scm", "page_set", "queue_file")),
    *(("structure", "held"), ("queue_file", "checkpoints")),
)


@pytest.fixture
def calls() -> Iterator[list[int]]:
    """Count the calls of the event loop by what they returned."""
    reasons: list[int] = []
    apply = event_loop.apply

    def counted(*args: Any) -> tuple[int, int]:
        row, reason = apply(*args)
        reasons.append(reason)
        return row, reason

    with patch.object(event_loop, "apply", counted):
        yield reasons


def outcome(kind: str, profile: str) -> tuple[list[bytes], dict[str, Any], dict[str, bytes]]:
    """Return the alerts, the header and the rows after a workload, cut into blocks."""
    workload = random_workload(3, 200, profile, kind, SPARSE)
    decoding = Decoding(workload.config)
    block, _ = decoding.block(workload.events)
    twin = decoding.twin()
    alerts = [alert for piece in cut(block, 50, 51, 120) for alert in twin.apply(piece)]
    return records(alerts), header_of(twin), contents(twin.tables)


@pytest.mark.parametrize(("kind", "profile"), WORKLOADS)
@patch("twin.stores.reports.receivers", new=lambda *_: ())  # a queue file that reports has no quiet ticks
@pytest.mark.nightly
def test_quiet_ticks_change_what_ticks_of_the_twin_change(kind: str, profile: str, calls: list[int]) -> None:
    quiet = outcome(kind, profile)
    stops = calls.count(event_loop.TICK_DUE)
    calls.clear()
    with patch.object(Reporter, "is_due", True):
        attended = outcome(kind, profile)
    assert quiet == attended
    assert (calls.count(event_loop.TICK_DUE) > stops) == (kind != "scm")  # with SCM no tick is quiet


def beats(driver: TwinDriver, step: int) -> EventBlock:
    """Return a thousand heartbeats, `step` microseconds of event time apart."""
    events = np.zeros(1000, EVENT)
    events["time"], events["op"], events["seq"] = START_US + step * np.arange(1, 1001), layout.HEARTBEAT, -1
    events["route"] = driver.decoding.estate.route_of_queue("QM01", "A.QUEUE")
    return EventBlock(driver.name, events, {})


def test_ticks_without_anything_to_do_take_one_call_of_the_event_loop(calls: list[int]) -> None:
    driver = TwinDriver()
    driver.put()
    calls.clear()
    assert driver.twin.apply(beats(driver, 30 * SECOND_US)) == []
    assert calls == [event_loop.DONE]
    assert driver.state()["events"] == 1001


def test_puts_are_noted_by_half_hours_until_there_is_no_room_for_notes(calls: list[int]) -> None:
    driver = TwinDriver()
    driver.put()
    calls.clear()
    block = beats(driver, 30 * MINUTE_US)
    driver.twin.apply(block)
    fridays = 2  # beyond the first two days
    assert calls == [*[event_loop.TICKED] * (1000 // layout.NOTED + fridays), event_loop.DONE]
    assert driver.twin.monitor.memory.puts.by_half_hour()[-3:] == [0, 0, 0]


@pytest.mark.parametrize("step", [7 * MINUTE_US, 45 * MINUTE_US])
def test_noted_puts_are_those_of_a_twin_that_sees_every_half_hour(step: int) -> None:
    whole, cut = TwinDriver(), TwinDriver()
    for driver in (whole, cut):
        driver.put()
    events = beats(whole, step).events[:100]
    events["op"][::4], events["op"][1::4] = layout.PUT, layout.GET
    events["count"], events["length"] = 1, 100
    whole.twin.apply(EventBlock(whole.name, events.copy(), {}))
    for row in range(events.size):
        cut.twin.apply(EventBlock(cut.name, events[row : row + 1].copy(), {}))
    assert whole.twin.monitor.memory.puts == cut.twin.monitor.memory.puts
    assert header_of(whole.twin)["forecasts"]["weeks"] == header_of(cut.twin)["forecasts"]["weeks"]
    assert sum(whole.twin.monitor.memory.puts.by_half_hour()[1:]) > 15


def test_bins_without_counts_are_not_written_again() -> None:
    driver = TwinDriver()
    driver.put()
    events = beats(driver, TICK).events
    counts = TABLES["counts"].number
    driver.twin.apply(EventBlock(driver.name, events[:500], {}))  # longer than the ring of bins
    assert counts in {page >> 32 for page, _ in driver.twin.dirty_pages()}
    driver.twin.apply(EventBlock(driver.name, events[500:], {}))
    assert counts not in {page >> 32 for page, _ in driver.twin.dirty_pages()}
    assert not driver.twin.tables.store.counts.any()
