"""Blocks, log records and checkpoints of the twin of a queue file beyond the scripts of `tests/cases/stores`.

Sources: [IBM: In the Depths of a Queue; What's the point of logging?], quoted where used; docs/storage-model.md.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.twin_driver import QueueFileDriver

pytestmark = pytest.mark.uncompiled

ONE_BLOCK = 148  # the longest message of one block: 512 less the descriptor of 364


def blocks(state: dict[str, Any]) -> tuple[int, ...]:
    """Return the blocks: all, free, free and allocated, nonpersistent, persistent ("In the Depths of a Queue")."""
    values = tuple(state[f"blocks{name}"] for name in ("", "_free", "_allocated", "_nonpersistent", "_persistent"))
    assert values[0] == sum(values[1:])
    return values


def log(state: dict[str, Any]) -> tuple[int, int]:
    return state["log_records"], state["checkpoints"]


# -- checkpoints and truncation


def test_a_log_record_comes_before_what_it_makes_free() -> None:
    """MQGET and MQCMIT Walkthrough: the log record is written, then the changes are made."""
    driver = QueueFileDriver()
    driver.put(ONE_BLOCK, persistent=True, count=9_999)
    state = driver.get()
    assert (log(state), blocks(state)[2], state["truncations"]) == ((10_000, 1), 16, 0)
    driver = QueueFileDriver()
    driver.put(ONE_BLOCK, persistent=True, count=5_000)
    driver.get(uow="U", count=4_999)
    state = driver.send("COMMIT", uow="U")
    assert (log(state), blocks(state)[2], state["truncations"]) == ((10_000, 1), 4_999, 0)


# -- restart, the estate, MEASURE


def test_buffers_that_the_estate_makes_smaller_overflow() -> None:
    """Tuning Queue Buffers: DefaultQBufferSize and DefaultPQBufferSize."""
    driver = QueueFileDriver()
    driver.put(ONE_BLOCK, count=8)
    driver.put(ONE_BLOCK, count=10, persistent=True)
    saved = driver.twin.header(), dict(driver.twin.dirty_pages()).items()
    smaller = QueueFileDriver(default_q_buffer_size=4 * 512, default_pq_buffer_size=0)
    smaller.twin = smaller.decoding.twin(None, *saved)
    state = smaller.state()
    assert (blocks(state), state["file_bytes"]) == ((4 + 14, 0, 0, 8, 10), 14 * 512)
