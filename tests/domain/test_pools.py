"""Entries and elements of a structure: how many messages it holds before it is full (docs/storage-model.md)."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.naive.pools import elements_of_length, pools_of_size
from tests.support.store_driver import GIB, KIB, MIB
from tests.support.twin_driver import TwinDriver, demands

MQRC_STORAGE_MEDIUM_FULL = 2192


def messages_that_twin_accepts(size: int, length: int) -> int:
    """Return the number of puts that the twin accepts as the real system would, before it answers 2192."""
    driver = TwinDriver(size=size, full_threshold=0, cf_level=3, offload="NONE")
    route = driver.decoding.estate.route_of_queue("QM01", "A.QUEUE")
    accepted = 0
    while True:
        events = demands(route, np.full(200_000, length))
        driver.twin.demand(events)
        accepted += int((events["reason"] == 0).sum())
        if events["reason"][-1] == MQRC_STORAGE_MEDIUM_FULL:
            assert driver.state()["messages"] == accepted
            return accepted


def messages_of_oracle_pools(size: int, length: int) -> int:
    """Return the number of messages for which the oracle's pools have entries and elements."""
    pools = pools_of_size(size, 6, {"scm_max_size": None})
    return min(pools.entries, pools.elements // elements_of_length(length))


@pytest.fixture
def messages_that_fit(side: str) -> Callable[[int, int], int]:
    """Return the function that gives the number of messages of a length in a structure of a size."""
    return {"oracle": messages_of_oracle_pools, "twin": messages_that_twin_accepts}[side]


@pytest.mark.parametrize(
    ("length", "published"),
    [
        (1_164, 1_900_000),
        (2_048, 1_150_000),
        (4_096, 650_000),
        (8_192, 340_000),
        (16_384, 175_000),
        (32_768, 90_000),
        (64_512, 45_000),
    ],
)
def test_a_4_gb_structure_holds_what_ibm_published_within_2_percent(
    messages_that_fit: Callable[[int, int], int], length: int, published: int
) -> None:
    assert messages_that_fit(4 * GIB, length) == pytest.approx(published, rel=0.02)


def test_200000_messages_of_1_kb_need_between_256_and_512_mb(messages_that_fit: Callable[[int, int], int]) -> None:
    assert messages_that_fit(256 * MIB, KIB) < 200_000 <= messages_that_fit(512 * MIB, KIB)
