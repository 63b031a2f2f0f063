"""Quiet ticks, which the event loop passes by itself, change the same as ticks that the twin runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from kernels import EVENT, event_loop, layout
from kernels.clock import HALF_HOUR_TICKS, TICK
from tests.kernels.beside import Decoding, contents, cut, header_of, records
from tests.support.twin_driver import TwinDriver
from tests.support.workloads import MINUTE_US, SECOND_US, START_US, random_workload
from twin.events import EventBlock
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


def test_ticks_without_anything_to_do_take_a_call_of_the_event_loop_each_half_hour(calls: list[int]) -> None:
    driver = TwinDriver()
    driver.put()
    calls.clear()
    beats = np.zeros(1000, EVENT)
    beats["time"], beats["op"], beats["seq"] = START_US + 30 * SECOND_US * np.arange(1, 1001), layout.HEARTBEAT, -1
    assert driver.twin.apply(EventBlock(driver.name, beats, {})) == []
    half_hours = (START_US + 30_000 * SECOND_US) // (HALF_HOUR_TICKS * TICK) - START_US // (HALF_HOUR_TICKS * TICK)
    assert calls == [*[event_loop.TICKED] * half_hours, event_loop.DONE]  # the forecast counts the puts of each
    assert driver.state()["events"] == 1001
