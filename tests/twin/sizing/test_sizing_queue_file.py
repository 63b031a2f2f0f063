"""Queue files: blocks, buffers, overflow, memory. Source: WebSphere MQ internals (distributed)."""

from dataclasses import replace

import pytest

from tests.support.twin_driver import QueueFileDriver
from twin.base.errors import UsageError
from twin.base.units import KIB, MIB
from twin.estate import QueueFile
from twin.sizing import parse_mix, plan_queue_file

QUEUE = QueueFile(name="QMD1/INVOICES", queue_manager="QMD1", queue="INVOICES")
MILLION = 1_000_000


@pytest.mark.parametrize(("length", "blocks"), [(0, 1), (148, 1), (149, 2), (660, 2), (661, 3)])
def test_a_message_takes_blocks_of_512_bytes_with_its_descriptor_of_364(length, blocks):
    assert plan_queue_file(QUEUE, parse_mix([f"{length}:1"]), ()).blocks == blocks


def test_what_the_buffers_of_128k_and_256k_do_not_hold_is_in_the_file():
    """64k and 128k, doubled on 64-bit queue managers: 256 and 512 blocks."""
    mix = parse_mix(["148:600"])  # one block each
    assert plan_queue_file(QUEUE, mix, ()).overflow_blocks == 600 - 256
    assert plan_queue_file(QUEUE, (), mix).overflow_blocks == 600 - 512
    both = plan_queue_file(QUEUE, mix, mix)
    assert (both.nonpersistent_blocks, both.persistent_blocks, both.blocks) == (600, 600, 1200)
    assert both.file_bytes == 512 * ((600 - 256) + (600 - 512))
    assert plan_queue_file(QUEUE, parse_mix(["148:256"]), ()).file_bytes == 0


def test_a_message_is_whole_in_its_buffer_or_whole_in_the_file():
    """MQPUT Walkthrough: allocated "in one of the queue buffers, otherwise [...] in the queue file"."""
    assert plan_queue_file(QUEUE, parse_mix(["1K:2000"]), ()).overflow_blocks == 3 * (2000 - 256 // 3)
    assert plan_queue_file(QUEUE, parse_mix(["200000:1"]), ()).overflow_blocks == 392
    assert plan_queue_file(QUEUE, parse_mix(["4756:1", "148:255"]), ()).overflow_blocks == 10


def test_memory_is_60k_a_loaded_queue_its_buffers_and_32_bytes_a_message():
    plan = plan_queue_file(QUEUE, parse_mix(["148:1"]), (), queues=1_000)
    assert plan.memory_bytes == 1_000 * (60 * KIB + 128 * KIB + 256 * KIB + 32)
    assert plan.memory_bytes == pytest.approx(0.43 * 2**30, rel=0.02)
    many = plan_queue_file(QUEUE, parse_mix([f"148:{MILLION}"]), ())
    assert many.memory_bytes - (60 + 128 + 256) * KIB == 32 * MILLION


def test_the_twin_has_as_many_blocks_in_its_file():
    driver = QueueFileDriver(default_q_buffer_size=128 * KIB, default_pq_buffer_size=256 * KIB)
    driver.put(1_000, count=500, persistent=False)
    state = driver.put(2_000, count=700, persistent=True)
    plan = plan_queue_file(QUEUE, parse_mix(["1000:500"]), parse_mix(["2000:700"]))
    assert state["file_bytes"] == plan.file_bytes
    assert state["blocks_nonpersistent"] + state["blocks_persistent"] == plan.blocks


def test_a_file_that_cannot_take_all_is_warned_of():
    small = replace(QUEUE, max_size=MIB)
    plan = plan_queue_file(small, parse_mix(["1M:2"]), ())
    assert plan.used_pct > 100
    assert "the file may have 1M: 2056 comes before all messages fit" in plan.warnings


def test_messages_beyond_the_512_whose_details_are_cached_and_persistent_ones_are_warned_of():
    assert plan_queue_file(QUEUE, parse_mix(["2K:100"]), ()).warnings == ()
    assert "512 messages" in plan_queue_file(QUEUE, parse_mix(["2K:1000"]), ()).warnings[0]
    assert "inside syncpoint" in plan_queue_file(QUEUE, (), parse_mix(["2K:1"])).warnings[0]


def test_no_message_and_no_queue_are_wrong_use():
    with pytest.raises(UsageError):
        plan_queue_file(QUEUE, (), ())
    with pytest.raises(UsageError, match="0 queues; expected: at least 1"):
        plan_queue_file(QUEUE, parse_mix(["1K:1"]), (), queues=0)
