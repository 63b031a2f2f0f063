"""The oracle of a queue file, against cases worked by hand."""

import pytest

from tests.naive.queue_file import blocks_of_length
from tests.support.oracle_driver import OracleQueueFileDriver

FIELDS = ("blocks", "blocks_free", "blocks_allocated", "blocks_nonpersistent", "blocks_persistent")
MINUTE = 60


def blocks(state: dict[str, int]) -> tuple[int, ...]:
    values = tuple(state[name] for name in FIELDS)
    assert values[0] == sum(values[1:])
    return values


def log(state: dict[str, int]) -> tuple[int, int]:
    return state["log_records"], state["checkpoints"]


# -- blocks, buffers, file


@pytest.mark.parametrize(("length", "number"), [(0, 1), (148, 1), (149, 2), (660, 2), (661, 3), (2048, 5)])
def test_blocks_of_a_message(length: int, number: int) -> None:
    assert blocks_of_length(length) == number


def test_the_default_buffers_are_128_and_256_kb() -> None:
    state = OracleQueueFileDriver(default_q_buffer_size=128 * 1024, default_pq_buffer_size=256 * 1024).state()
    assert blocks(state) == (256 + 512, 256 + 512, 0, 0, 0)


def test_what_a_buffer_does_not_hold_is_in_the_file() -> None:
    twin = OracleQueueFileDriver()  # 8 and 16 blocks
    assert blocks(twin.put(148, count=8)) == (24, 16, 0, 8, 0)
    assert blocks(twin.put(149)) == (26, 16, 0, 10, 0)
    assert blocks(twin.put(149, persistent=True, count=8)) == (26, 0, 0, 10, 16)
    state = twin.put(148, persistent=True)
    assert (blocks(state), state["file_bytes"]) == ((27, 0, 0, 10, 17), 3 * 512)


def test_the_file_keeps_its_blocks_and_uses_them_again() -> None:
    twin = OracleQueueFileDriver()
    twin.put(148, count=13)
    assert blocks(twin.get(count=7)) == (29, 18, 5, 6, 0)
    assert blocks(twin.put(148, count=5)) == (29, 16, 2, 11, 0)
    state = twin.put(148, count=3)
    assert (blocks(state), state["file_bytes"]) == ((30, 16, 0, 14, 0), 6 * 512)


def test_a_put_beyond_the_largest_file_is_a_fact_kept_and_counted() -> None:
    twin = OracleQueueFileDriver(max_size=4 * 512 + 511)
    assert twin.put(148, count=12)["overfull_puts"] == 0
    state = twin.put(148)
    assert (state["overfull_puts"], state["file_bytes"]) == (1, 5 * 512)


def test_a_clear_truncates_the_file_to_what_is_needed() -> None:
    twin = OracleQueueFileDriver()
    twin.put(148, count=13)
    twin.put(148, count=10, uow="U")
    state = twin.send("CLEAR")
    assert (blocks(state), log(state)) == ((26, 16, 0, 10, 0), (0, 0))


def test_put_to_a_waiting_getter_touches_neither_queue_nor_log() -> None:
    state = OracleQueueFileDriver().put(10_000, persistent=True, direct=True)
    assert (blocks(state), log(state)) == ((24, 24, 0, 0, 0), (0, 0))


# -- log


def test_each_persistent_put_get_and_expiry_writes_a_log_record() -> None:
    twin = OracleQueueFileDriver()
    twin.put(count=3)
    assert log(twin.put(persistent=True, count=3)) == (3, 0)
    assert log(twin.get(count=4)) == (4, 0)
    assert log(twin.send("EXPIRE")) == (5, 0)
    assert log(twin.get(count=5)) == (6, 0)
    assert log(twin.put(persistent=True)) == (8, 0)  # a held get takes it


def test_the_end_of_a_unit_with_a_persistent_operation_writes_one_more() -> None:
    twin = OracleQueueFileDriver()
    twin.put(uow="N")
    assert log(twin.send("COMMIT", uow="N")) == (0, 0)
    twin.put(persistent=True, uow="P")
    assert log(twin.send("BACKOUT", uow="P")) == (2, 0)
    twin.get(uow="G")
    assert log(twin.send("COMMIT", uow="G")) == (2, 0)
    twin.get(uow="H")  # held
    twin.put(persistent=True)  # taken in H
    assert log(twin.send("BACKOUT", uow="H")) == (5, 0)
    twin.put(persistent=True, uow="R")
    assert log(twin.send("RESTART", None)) == (7, 0)


def test_a_clear_writes_one_where_it_removed_persistent_messages() -> None:
    twin = OracleQueueFileDriver()
    twin.put()
    assert log(twin.send("CLEAR")) == (0, 0)
    twin.put(persistent=True, count=3)
    assert log(twin.send("CLEAR")) == (4, 0)
    twin.put(persistent=True, uow="U")
    assert log(twin.send("CLEAR")) == (5, 0)


# -- checkpoints


def test_the_10000th_log_record_brings_a_checkpoint_that_truncates() -> None:
    twin = OracleQueueFileDriver()
    twin.put(148, count=8 + 40)  # 40 blocks of the file
    twin.get(count=40)
    for _ in range(9):
        twin.put(148, persistent=True, count=16)
        twin.get(count=24)
        twin.put(148, count=8)
    written = twin.state()["log_records"]
    assert blocks(twin.state())[2] == 40
    twin.put(148, persistent=True, uow="U")
    for _ in range(10_000 - written - 2):
        twin._log()
    assert log(twin.state()) == (9_999, 0)
    state = twin.send("COMMIT", uow="U")
    assert (log(state), blocks(state)[2]) == ((10_000, 1), 0)


def test_time_brings_a_checkpoint_after_30_minutes_with_at_least_100_log_records() -> None:
    twin = OracleQueueFileDriver()
    twin.put(148, count=48)  # at second 1: the first tick is at second 10
    twin.get(count=40)
    twin.put(148, persistent=True, count=99)
    assert log(twin.wait(31 * MINUTE)) == (99, 0)
    assert log(twin.put(148, persistent=True)) == (100, 0)
    state = twin.wait(10)
    assert (log(state), state["blocks_allocated"]) == ((100, 1), 0)
    twin.get(count=100)
    assert log(twin.wait(29 * MINUTE)) == (192, 1)


def test_30_minutes_begin_with_the_first_tick_and_end_at_a_tick() -> None:
    twin = OracleQueueFileDriver()
    start = twin.time + 1
    twin.put(148, persistent=True, count=100, time=start)
    half_an_hour = twin.time - 1 + 10_000_000 + 30 * MINUTE * 1_000_000
    assert log(twin.send("HEARTBEAT", None, time=half_an_hour - 1)) == (100, 0)
    assert log(twin.send("HEARTBEAT", None, time=half_an_hour)) == (100, 1)


@pytest.mark.parametrize(
    ("in_file", "needed", "kept_free"),
    [(100, 69, 31), (100, 68, 0), (3300, 3268, 32), (3201, 3168, 0)],
)
def test_a_checkpoint_truncates_what_is_oversized_by_both_1_percent_and_16_kb(
    in_file: int, needed: int, kept_free: int
) -> None:
    twin = OracleQueueFileDriver()
    twin.put(length_of(8 + in_file))
    twin.get()
    for number in (16, 16, 16, 2):
        twin.put(148, persistent=True, count=number)
        twin.get(count=number)
    state = twin.put(length_of(8 + needed))
    assert (log(state), state["blocks_allocated"]) == ((100, 0), in_file - needed)
    state = twin.wait(31 * MINUTE)
    assert (log(state), state["blocks_allocated"]) == ((100, 1), kept_free)


def length_of(number: int) -> int:
    """Return the length of the longest message of `number` blocks."""
    return number * 512 - 364


# -- restart


def test_nonpersistent_messages_are_gone_after_a_restart_and_the_file_stays() -> None:
    twin = OracleQueueFileDriver()
    twin.put(148, count=13)
    twin.put(148, count=3, persistent=True)
    state = twin.send("RESTART", None)
    assert (blocks(state), log(state)) == ((29, 21, 5, 0, 3), (3, 0))


# -- MEASURE


def test_what_comes_back_to_the_baseline_is_in_the_file() -> None:
    twin = OracleQueueFileDriver(default_q_buffer_size=0)
    twin.measure(blocks_nonpersistent=30, messages=10)
    assert blocks(twin.get()) == (46, 16, 3, 27, 0)
    assert blocks(twin.send("CLEAR")) == (43, 16, 0, 27, 0)
    assert blocks(twin.put(148)) == (46, 16, 0, 30, 0)  # the held get takes it and no longer draws the baseline down
