"""Blocks, log records and checkpoints of a distributed queue manager's queue.

Sources: [IBM: In the Depths of a Queue; What's the point of logging?], quoted where used; docs/storage-model.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import kernels.queue_file
from tests.naive.queue_file import blocks_of_length
from tests.support.store_driver import KIB, Open

MINUTE = 60  # seconds
ONE_BLOCK = 148  # the longest message of one block: 512 less the descriptor of 364
STORE = "QM01/A.QUEUE"


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


def length_of(number: int) -> int:
    """Return the length of the longest message of a number of blocks."""
    return number * 512 - 364


# -- blocks, buffers, file


@pytest.mark.parametrize(("length", "number"), [(0, 1), (148, 1), (149, 2), (660, 2), (661, 3), (2048, 5)])
def test_a_message_is_fragmented_across_blocks_of_512_bytes(
    queue_file: Open, blocks_of: Callable[[int], int], length: int, number: int
) -> None:
    """Views of the Queue: "If a message is larger than 512 bytes it will be fragmented"."""
    assert blocks_of(length) == number
    assert blocks(queue_file().put(length))[3] == number


def test_the_buffers_are_64k_and_128k_doubled_on_64_bit(queue_file: Open) -> None:
    """In the Depths of a Queue: "The buffers default to 64k, and 128k for the NP and P buffers"."""
    state = queue_file(default_q_buffer_size=None, default_pq_buffer_size=None).send("CLEAR")
    assert blocks(state) == (256 + 512, 256 + 512, 0, 0, 0)
    assert 2 * 64 * KIB == 256 * 512


def test_messages_are_in_the_buffers_by_preference_and_overflow_to_the_file(queue_file: Open) -> None:
    driver = queue_file()  # 8 and 16 blocks
    assert blocks(driver.put(ONE_BLOCK, count=8)) == (24, 16, 0, 8, 0)
    assert blocks(driver.put(ONE_BLOCK + 1)) == (26, 16, 0, 10, 0)
    assert blocks(driver.put(ONE_BLOCK + 1, persistent=True, count=8)) == (26, 0, 0, 10, 16)
    state = driver.put(ONE_BLOCK, persistent=True)
    assert (blocks(state), state["file_bytes"]) == ((27, 0, 0, 10, 17), 3 * 512)


def test_a_message_is_whole_in_its_buffer_or_whole_in_the_file(queue_file: Open) -> None:
    """MQPUT Walkthrough: "in one of the queue buffers, otherwise it will be allocated in the queue file"."""
    driver = queue_file()
    driver.put(ONE_BLOCK, count=7)
    assert driver.put(length_of(2))["file_bytes"] == 2 * 512, "one block of the buffer is left"
    assert driver.put(ONE_BLOCK)["file_bytes"] == 2 * 512, "which a shorter message takes"
    assert driver.put(length_of(17), persistent=True)["file_bytes"] == 19 * 512
    assert driver.put(length_of(16), persistent=True)["file_bytes"] == 19 * 512, "it fits exactly"
    assert blocks(driver.get(count=8)) == (24 + 19, 7, 2, 1, 33)


def test_a_put_that_no_buffer_takes_needs_room_in_the_file_for_all_of_it(queue_file: Open) -> None:
    driver = queue_file(max_size=9 * 512)
    assert driver.put(length_of(9))["overfull_puts"] == 0
    assert driver.put(length_of(8))["overfull_puts"] == 0, "the buffer is empty"
    assert driver.put(ONE_BLOCK)["overfull_puts"] == 1
    assert queue_file(max_size=9 * 512).put(length_of(10))["overfull_puts"] == 1, "of 8 and 9 blocks"


def test_the_file_keeps_its_blocks_free_and_allocated_and_uses_them_again(queue_file: Open) -> None:
    driver = queue_file()
    driver.put(ONE_BLOCK, count=13)
    assert blocks(driver.get(count=13)) == (29, 24, 5, 0, 0)
    assert blocks(driver.put(ONE_BLOCK, count=11)) == (29, 16, 2, 11, 0)
    state = driver.put(ONE_BLOCK, count=3)
    assert (blocks(state), state["file_bytes"]) == ((30, 16, 0, 14, 0), 6 * 512)


def test_a_message_in_the_file_stays_there_when_its_buffer_has_room_again(queue_file: Open) -> None:
    """MQPUT Walkthrough: the DAP "allocates space for the new message", not for one that has its space."""
    driver = queue_file(max_size=100 * 512)
    driver.put(ONE_BLOCK, count=13)
    state = driver.get(count=7)  # of the buffer
    assert (blocks(state), state["usage_pct"]) == ((29, 23, 0, 6, 0), 5.0)
    assert blocks(driver.put(ONE_BLOCK, count=7)) == (29, 16, 0, 13, 0), "these are in the buffer"


def test_a_message_takes_the_next_free_blocks_although_they_are_not_adjacent(queue_file: Open) -> None:
    """Views of the Queue: space handles "may not be adjacent", the "next available free block will be allocated"."""
    driver = queue_file(default_q_buffer_size=0)
    for priority in (5, 0, 5, 0):
        driver.put(length_of(2), priority=priority)
    driver.get(count=2)  # those of priority 5: blocks 0, 1, 4 and 5 are free
    state = driver.put(length_of(3), uow="U")
    assert (blocks(state), state["file_bytes"]) == ((16 + 8, 16, 1, 7, 0), 8 * 512)
    assert blocks(driver.send("CLEAR")) == (16 + 5, 16, 2, 3, 0), "in use are blocks 0, 1 and 4"
    assert blocks(driver.send("BACKOUT", uow="U")) == (16 + 5, 16, 5, 0, 0)


def test_a_put_beyond_the_largest_file_is_kept_and_counted(queue_file: Open) -> None:
    driver = queue_file(max_size=4 * 512 + 511)
    state = driver.put(ONE_BLOCK, count=12)
    assert (state["overfull_puts"], state["usage_pct"], state["file_max_bytes"]) == (0, 100.0, 4 * 512)
    state = driver.put(ONE_BLOCK)
    assert (state["overfull_puts"], state["usage_pct"], state["file_bytes"]) == (1, 125.0, 5 * 512)


def test_a_put_that_its_buffer_takes_fits_although_the_file_is_full(queue_file: Open) -> None:
    """MQPUT Walkthrough: "If there is space, the message will be allocated in one of the queue buffers"."""
    driver = queue_file(max_size=4 * 512)
    driver.put(ONE_BLOCK, count=13)
    assert driver.put(ONE_BLOCK, persistent=True, count=16)["overfull_puts"] == 1
    assert driver.put(ONE_BLOCK, persistent=True)["overfull_puts"] == 2


def test_the_file_system_may_be_the_smaller_limit(queue_file: Open) -> None:
    assert queue_file(max_size=8192, file_system_size=4096).state()["file_max_bytes"] == 4096
    assert queue_file(max_size=4096, file_system_size=8192).state()["file_max_bytes"] == 4096
    assert queue_file().alter(file_system_size="1M")["file_max_bytes"] == 1 << 20


def test_an_altered_max_size_counts_from_then_on(queue_file: Open) -> None:
    driver = queue_file(max_size=100 * 512)
    driver.put(ONE_BLOCK, count=18)
    state = driver.alter(max_size=5 * 512)
    assert (state["file_max_bytes"], state["file_bytes"], state["usage_pct"]) == (5 * 512, 10 * 512, 200.0)
    assert driver.put(ONE_BLOCK)["overfull_puts"] == 1


def test_clear_truncates_the_file_to_what_is_needed(queue_file: Open) -> None:
    """Views of the Queue: "MQ will truncate the queue to a minimal size when a CLEAR QL command is issued"."""
    driver = queue_file()
    driver.put(ONE_BLOCK, count=13)
    driver.put(ONE_BLOCK, count=10, uow="U")
    driver.put(ONE_BLOCK, count=20)
    state = driver.send("CLEAR")
    assert (blocks(state), log(state), state["truncations"]) == ((24 + 15, 24, 5, 10, 0), (0, 0), 1)
    driver.send("COMMIT", uow="U")
    state = driver.send("CLEAR")
    assert (blocks(state), log(state), state["truncations"]) == ((24, 24, 0, 0, 0), (0, 0), 2)


def test_put_to_a_waiting_getter_touches_neither_queue_nor_log(queue_file: Open) -> None:
    """Put to a waiting getter: "without actually touching the MQ queue"."""
    state = queue_file().put(10_000, persistent=True, direct=True)
    assert (blocks(state), log(state)) == ((24, 24, 0, 0, 0), (0, 0))


# -- log


def test_each_persistent_put_get_and_expiry_writes_a_log_record(queue_file: Open) -> None:
    """In the Depths of a Queue: "Whenever a persistent message is put or got, at least one log record is written"."""
    driver = queue_file()
    driver.put(count=3)
    assert log(driver.put(persistent=True, count=3)) == (3, 0)
    assert log(driver.get(count=4)) == (4, 0)
    assert log(driver.send("EXPIRE")) == (5, 0)
    assert log(driver.get(count=5)) == (6, 0)
    assert log(driver.put(persistent=True)) == (8, 0)  # a get held aside takes it


def test_nonpersistent_messages_write_none_even_spilled_to_the_file(queue_file: Open) -> None:
    """What's the point of logging?: "Non-persistent messages, even those that are spilled to disk"."""
    state = queue_file().put(10_000, count=100)
    assert (state["log_records"], state["file_bytes"] > 0) == (0, True)


def test_the_end_of_a_unit_writes_one_only_where_it_had_a_persistent_operation(queue_file: Open) -> None:
    """In the Depths of a Queue: "For a transaction containing only non-persistent message operations" there is none."""
    driver = queue_file()
    driver.put(uow="N")
    assert log(driver.send("COMMIT", uow="N")) == (0, 0)
    driver.put(persistent=True, uow="P")
    assert log(driver.send("BACKOUT", uow="P")) == (3, 0)  # with a compensation record
    driver.get(uow="G")
    assert log(driver.send("COMMIT", uow="G")) == (3, 0)
    driver.get(uow="H")  # held aside
    driver.put(persistent=True)  # taken in H
    assert log(driver.send("BACKOUT", uow="H")) == (7, 0)
    driver.put(persistent=True, uow="R")
    assert log(driver.send("RESTART", None, store=STORE)) == (10, 0)


def test_a_clear_writes_one_where_it_removed_persistent_messages(queue_file: Open) -> None:
    driver = queue_file()
    driver.put()
    assert log(driver.send("CLEAR")) == (0, 0)
    driver.put(persistent=True, count=3)
    assert log(driver.send("CLEAR")) == (4, 0)
    driver.put(persistent=True, uow="U")
    assert log(driver.send("CLEAR")) == (5, 0)


def test_a_duplicate_writes_none(queue_file: Open) -> None:
    driver = queue_file()
    driver.put(persistent=True, seq=1)
    state = driver.put(persistent=True, seq=1)
    assert (log(state), state["duplicates"]) == ((1, 0), 1)


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


def test_time_brings_a_checkpoint_after_30_minutes_with_at_least_100_log_records(queue_file: Open) -> None:
    """What's the point of logging?: "every 30 minutes provided there are at least 100 log records"."""
    driver = queue_file()
    driver.put(ONE_BLOCK, count=48)
    driver.get(count=40)
    driver.put(ONE_BLOCK, persistent=True, count=99)
    assert log(driver.wait(31 * MINUTE)) == (99, 0)
    assert log(driver.put(ONE_BLOCK, persistent=True)) == (100, 0)
    state = driver.wait(10)
    assert (log(state), state["blocks_allocated"]) == ((100, 1), 16), "the buffer of 16 blocks is in the file too"
    driver.get(count=100)
    assert log(driver.wait(29 * MINUTE)) == (192, 1)
    assert log(driver.wait(MINUTE)) == (192, 1)  # 92 since the last


def test_30_minutes_begin_with_the_first_tick_and_end_at_a_tick(queue_file: Open) -> None:
    driver = queue_file()
    start = driver.time + 1
    driver.put(148, persistent=True, count=100, time=start)
    half_an_hour = driver.time - 1 + 10_000_000 + 30 * MINUTE * 1_000_000
    assert log(driver.send("HEARTBEAT", None, time=half_an_hour - 1)) == (100, 0)
    assert log(driver.send("HEARTBEAT", None, time=half_an_hour)) == (100, 1)


def test_at_a_checkpoint_persistent_data_in_the_buffer_reaches_the_file(queue_file: Open) -> None:
    """What's the point of logging?: "Every now and again the log and data are brought into line"."""
    driver = queue_file(default_pq_buffer_size=512 * 512)
    driver.put(ONE_BLOCK, count=8)
    driver.put(ONE_BLOCK, persistent=True, count=400)
    assert driver.state()["file_bytes"] == 0
    state = driver.wait(31 * MINUTE)
    assert (log(state), state["file_bytes"]) == ((400, 1), 400 * 512), "nonpersistent data stays in its buffer"
    assert state["usage_pct"] == 0.0, "the blocks are those of the buffer"


def test_of_nonpersistent_messages_alone_there_is_no_checkpoint(queue_file: Open) -> None:
    """Views of the Queue: "If all message operations are for non-persistent messages then checkpoints could be" few."""
    driver = queue_file()
    driver.put(10_000, count=200)
    driver.get(count=200)
    state = driver.wait(600 * MINUTE)
    assert (log(state), state["blocks_allocated"]) == ((0, 0), 200 * 21)


@pytest.mark.parametrize(
    ("in_file", "needed", "kept_free"),
    [(100, 69, 31), (100, 68, 0), (3300, 3268, 32), (3300, 3267, 0), (3201, 3168, 0), (3200, 3168, 0)],
)
def test_a_file_is_truncated_that_is_oversized_by_both_1_percent_and_16_kb(
    queue_file: Open, in_file: int, needed: int, kept_free: int
) -> None:
    """Views of the Queue: "truncates the queue file if it is oversized by both 1% and 16KB". 16 KB are 32 blocks."""
    driver = queue_file()
    driver.put(length_of(in_file))
    driver.get()
    for number in (16, 16, 16, 2):
        driver.put(ONE_BLOCK, persistent=True, count=number)
        driver.get(count=number)
    state = driver.put(length_of(needed))
    assert (log(state), state["blocks_allocated"]) == ((100, 0), in_file - needed)
    state = driver.wait(31 * MINUTE)
    assert (log(state), state["blocks_allocated"]) == ((100, 1), kept_free)


def test_a_truncation_stops_at_the_last_block_in_use(queue_file: Open) -> None:
    """Views of the Queue: the "required size" of a file goes as far as its last message, wherever the others were."""
    driver = queue_file()
    driver.put(ONE_BLOCK, count=8)
    driver.put(ONE_BLOCK, count=217)
    driver.get(count=8 + 216)  # all but the last
    for _ in range(2):
        driver.put(ONE_BLOCK, persistent=True, priority=9, count=50)
        driver.get(count=50)
    state = driver.wait(31 * MINUTE)
    assert (log(state), blocks(state), state["truncations"]) == ((200, 1), (24 + 217, 24, 216, 1, 0), 0)
    driver.get()
    driver.put(ONE_BLOCK, persistent=True, count=50)
    driver.get(count=50)
    state = driver.wait(31 * MINUTE)
    assert (log(state), blocks(state), state["truncations"]) == ((300, 2), (24, 24, 0, 0, 0), 1)


# -- the life of messages


def test_messages_are_got_by_priority_then_age(queue_file: Open) -> None:
    """In the Depths of a Queue: ten message chains, "one for each message priority"."""
    driver = queue_file()
    for number, priority in enumerate((0, 9, 4, 9)):
        driver.put(length_of(number + 1), priority=priority, uow="U" if number == 2 else None)
    assert [blocks(driver.get())[3] for _ in range(3)] == [
        1 + 3 + 4,
        1 + 3,
        3,
    ]  # blocks left; the third is not committed


def test_a_put_takes_its_blocks_before_the_commit_and_a_get_keeps_them_until_it(queue_file: Open) -> None:
    """MQPUT Walkthrough: space is allocated at the put; MQCMIT Walkthrough: changes become visible at the commit."""
    driver = queue_file()
    state = driver.put(ONE_BLOCK, uow="U", count=3)
    assert (blocks(state)[3], state["uncommitted"], state["queues"][0]["depth"]) == (3, 3, 3)
    assert driver.send("COMMIT", uow="U")["uncommitted"] == 0
    state = driver.get(uow="V", count=2)
    assert (blocks(state)[3], state["uncommitted"]) == (3, 2)
    assert blocks(driver.send("COMMIT", uow="V"))[3] == 1
    driver.put(ONE_BLOCK, uow="W")
    assert blocks(driver.send("BACKOUT", uow="W"))[3] == 1


def test_an_expired_message_holds_its_blocks_until_it_is_removed(queue_file: Open) -> None:
    """MQGET Walkthrough: "Expired messages can often be discarded at this stage"."""
    driver = queue_file()
    driver.put(ONE_BLOCK)
    assert blocks(driver.wait(24 * 60 * MINUTE))[3] == 1
    assert blocks(driver.send("EXPIRE"))[3] == 0


# -- restart, MEASURE


def test_after_a_restart_persistent_messages_are_there_and_the_file_is_as_large(queue_file: Open) -> None:
    driver = queue_file()
    driver.put(ONE_BLOCK, count=13)
    driver.put(ONE_BLOCK, count=3, persistent=True)
    state = driver.send("RESTART", None, store=STORE)
    assert (blocks(state), log(state), state["messages"]) == ((29, 21, 5, 0, 3), (3, 0), 3)


def test_after_a_restart_units_of_work_are_backed_out(queue_file: Open) -> None:
    """Phases of Restart Recovery: transactions that were not prepared are rolled back."""
    driver = queue_file()
    driver.put(ONE_BLOCK, persistent=True)
    driver.get(uow="G")
    driver.put(ONE_BLOCK, persistent=True, uow="P", count=2)
    state = driver.send("RESTART", None, store=STORE)
    assert (state["messages"], state["uncommitted"], blocks(state)[4]) == (1, 0, 1)


def test_a_measured_backlog_overflows_to_the_file_and_is_drawn_down(queue_file: Open) -> None:
    driver = queue_file()
    state = driver.measure(blocks_persistent=40, blocks_nonpersistent=10, messages=25, file_bytes=30 * 512)
    assert state["baseline"] == {
        "messages": 25,
        "blocks_persistent": 40,
        "blocks_nonpersistent": 10,
        "file_bytes": 30 * 512,
    }
    assert (blocks(state), state["file_bytes"]) == ((24 + 30, 0, 4, 10, 40), 30 * 512)
    assert blocks(driver.get(count=5)) == (54, 0, 14, 8, 32)
    assert blocks(driver.send("RESTART", None, store=STORE)) == (54, 8, 14, 0, 32)


def test_what_comes_back_to_the_baseline_is_in_the_file(queue_file: Open) -> None:
    """Redo a get that drew the baseline down finds its message after all."""
    driver = queue_file(default_q_buffer_size=0, default_pq_buffer_size=0)
    driver.measure(blocks_nonpersistent=20, messages=2)
    driver.get(uow="U")
    driver.send("CLEAR")
    assert blocks(driver.state()) == (10, 0, 0, 10, 0)
    assert blocks(driver.send("BACKOUT", uow="U")) == (20, 0, 0, 20, 0)


def test_a_put_that_meets_a_held_get_gives_the_baseline_its_blocks_back_in_the_file(queue_file: Open) -> None:
    driver = queue_file(default_q_buffer_size=0)
    driver.measure(blocks_nonpersistent=30, messages=10)
    assert blocks(driver.get()) == (46, 16, 3, 27, 0)
    assert blocks(driver.send("CLEAR")) == (43, 16, 0, 27, 0)
    assert blocks(driver.put(ONE_BLOCK)) == (46, 16, 0, 30, 0)  # the held get no longer draws the baseline down


def test_drift_is_of_blocks_and_of_the_file(queue_file: Open) -> None:
    driver = queue_file()
    driver.put(ONE_BLOCK, count=16)
    driver.measure(messages=16)
    state = driver.measure(blocks_nonpersistent=12, file_bytes=8 * 512)
    assert state["drift_pct"] == pytest.approx(100 * 4 / 32)
    state = driver.measure(blocks_nonpersistent=16, file_bytes=0)
    assert state["drift_pct"] == pytest.approx(100 * 8 / 32)
