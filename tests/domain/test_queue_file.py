"""Blocks, log records and checkpoints of a distributed queue manager's queue.

Sources: [IBM: In the Depths of a Queue; What's the point of logging?], quoted where used; docs/storage-model.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import kernels.queue_file
from tests.naive.queue_file import blocks_of_length
from tests.support.store_driver import Open

ONE_BLOCK = 148  # the longest message of one block: 512 less the descriptor of 364


@pytest.fixture
def blocks_of(side: str) -> Callable[[int], int]:
    """Return the function that gives the blocks of a message by its length."""
    return {"oracle": blocks_of_length, "twin": kernels.queue_file.blocks_of}[side]


def blocks(state: dict[str, Any]) -> tuple[int, ...]:
    """Return the blocks: all, free, free and allocated, nonpersistent, persistent ("In the Depths of a Queue")."""
    values = tuple(state[f"blocks{name}"] for name in ("", "_free", "_allocated", "_nonpersistent", "_persistent"))
    assert values[0] == sum(values[1:])
    return values


def log(state: dict[str, Any]) -> tuple[int, int]:
    return state["log_records"], state["checkpoints"]


# -- blocks, buffers, file


@pytest.mark.parametrize(("length", "number"), [(0, 1), (148, 1), (149, 2), (660, 2), (661, 3), (2048, 5)])
def test_a_message_is_fragmented_across_blocks_of_512_bytes(
    queue_file: Open, blocks_of: Callable[[int], int], length: int, number: int
) -> None:
    """Views of the Queue: "If a message is larger than 512 bytes it will be fragmented"."""
    assert blocks_of(length) == number
    assert blocks(queue_file().put(length))[3] == number


# -- checkpoints and truncation


@pytest.mark.parametrize("ends_unit", [False, True])
def test_10000_log_records_bring_a_checkpoint_which_truncates(queue_file: Open, ends_unit: bool) -> None:
    """What's the point of logging?: "when 10000 log records have been written"."""
    driver = queue_file()
    driver.put(ONE_BLOCK, count=8 + 40)  # 40 blocks of the file
    driver.get(count=48)
    for _ in range(102):
        driver.put(ONE_BLOCK, persistent=True, count=49)
        driver.get(count=49)
    assert (log(driver.state()), driver.state()["blocks_allocated"]) == ((9_996, 0), 40)
    driver.put(ONE_BLOCK, persistent=True, uow="U")
    state = driver.put(ONE_BLOCK, persistent=True, count=2)
    assert (log(state), state["blocks_allocated"]) == ((9_999, 0), 40)
    state = driver.send("COMMIT", uow="U") if ends_unit else driver.put(ONE_BLOCK, persistent=True)
    in_buffer = 3 if ends_unit else 4  # persistent messages, which the checkpoint writes to the file
    assert (log(state), state["blocks_allocated"], state["truncations"]) == ((10_000, 1), in_buffer, 1)
