"""The published case of a million messages, put into the twin: a structure that fills, and is full at the end.

Source: [IBM: Specifying offload options for shared messages], Capacity: 1 million messages must fit from OFFLD3TH on,
in 4 GB with 80 %, in 10 GB with 92 %. Structure, messages and rate are a 64th of these.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.support.store_driver import GIB, KIB
from tests.support.twin_driver import TwinDriver, demands
from tests.support.workloads import SECOND_US

SCALE = 64
STEP_US = SCALE * 1_000  # a thousand puts per second
STEP = 50  # puts between two looks at the usage


@cache
def accepted(size: int, threshold: int, before: int, *, auto_alter: bool = False, second: int = 0) -> int:
    """Return how many messages fit from OFFLD3TH on, of the whole case.

    Args:
        size: SIZE, bytes.
        threshold: OFFLD3TH, percent.
        before: bytes of each message that stood there before.
        auto_alter: ALLOWAUTOALT.
        second: second of the minute in which the first message is put.
    """
    driver = TwinDriver(size=size // SCALE, offld3_th=threshold, smds={}, allow_auto_alter=auto_alter)
    driver.twin.monitor.enabled = False
    route = driver.decoding.estate.route_of_queue("QM01", "A.QUEUE")
    puts, fit = 0, 0
    while True:
        is_offloading = driver.state()["offload_rule"] == 3
        events = demands(route, np.full(STEP, 9 * KIB if is_offloading else before))
        events["time"] += np.arange(puts, puts + STEP) * STEP_US + second * SECOND_US
        puts += STEP
        driver.twin.demand(events)
        if events["reason"].any():
            return (fit + int(np.argmax(events["reason"] != 0))) * SCALE
        fit += STEP if is_offloading else 0


@pytest.mark.parametrize(
    ("size", "threshold", "before", "fit"),
    [
        *((4 * GIB, 80, 1_000, 383_131), (4 * GIB, 80, 2_048, 999_131), (4 * GIB, 80, 4_096, 1_148_441)),
        *((4 * GIB, 80, 8 * KIB, 1_146_849), (4 * GIB, 80, 32 * KIB, 1_146_145)),
        *((10 * GIB, 92, 1_000, 384_827), (10 * GIB, 92, 2_048, 1_153_377)),
    ],
)
def test_a_million_messages_fit_where_those_before_had_2_kb_and_fewer_where_they_were_smaller(
    size: int, threshold: int, before: int, fit: int
) -> None:
    """Small messages use up the entries first: "one of these may run out"."""
    assert accepted(size, threshold, before) == pytest.approx(fit, rel=0.01)


@pytest.mark.parametrize("second", [0, 20, 30])
def test_automatic_alter_makes_the_published_case_34_to_59_percent_worse_from_2_kb_on(second: int) -> None:
    """At 80 % it sets the ratio to what stands there, just before every message becomes one of 2 elements.

    How much worse depends on the second of the minute, because it looks once a minute, and not where at most 5 % of one
    pool would be left.
    """
    for before in (2_048, 4_096):
        less = 1 - accepted(4 * GIB, 80, before, auto_alter=True, second=second) / accepted(4 * GIB, 80, before)
        assert 0.34 < less < 0.595


def test_automatic_alter_helps_where_messages_before_were_small() -> None:
    assert accepted(4 * GIB, 80, 1_000, auto_alter=True) > 1.63 * accepted(4 * GIB, 80, 1_000)
