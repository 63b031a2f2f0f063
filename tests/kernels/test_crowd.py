"""Structures with hundreds of units of work and held gets, and the pages that a twin writes."""

import numpy as np
import pytest

from tests.kernels.beside import Decoding, Event
from tests.kernels.proof import check_equal_states, check_marks, check_same_results
from tests.naive.estates import QUEUES, structure
from tests.support.workloads import MINUTE_US, START_US, Workload, random_workload

pytestmark = pytest.mark.nightly

CROWD = {"PUT": 0.6, "GET": 0.3, "COMMIT": 0.05, "BACKOUT": 0.03, "HEARTBEAT": 0.018, "RESTART": 0.002}


def crowd(seed: int, n: int) -> Workload:
    """Return a workload with hundreds of units, ids and held gets at a time, for which tables and indexes grow."""
    rng = np.random.default_rng(seed)
    config = structure(size=4_000_000, queues=QUEUES[:2], ds_block=8192, offld1_th=5, offld1_sz=1024)

    def event(number: int) -> Event:
        op = str(rng.choice(list(CROWD), p=list(CROWD.values())))
        fields: Event = {"time": START_US + number * MINUTE_US // 10, "qmgr": f"QM0{rng.integers(1, 3)}", "op": op}
        if op in ("HEARTBEAT", "RESTART"):
            return fields | {"store": config.name}
        fields |= {"queue": QUEUES[rng.integers(0, 2)]}
        if op in ("COMMIT", "BACKOUT"):
            return fields | {"uow": f"unit {rng.integers(0, 400)}"}
        if op == "PUT":
            fields |= {"length": int(rng.integers(0, 12_000)), "priority": int(rng.integers(0, 3))}
        if rng.integers(0, 2):
            fields |= {"uow": f"unit {rng.integers(0, 400)}"}
        if rng.integers(0, 3):
            fields |= {"msgid": f"message {rng.integers(0, 700)}"}
        return fields

    return Workload(config, {}, [event(number) for number in range(n)])


def test_twin_and_oracle_have_equal_states_with_hundreds_of_units_and_held_gets() -> None:
    check_equal_states(crowd(1, 3000), every=250)


def test_cuts_of_blocks_and_restarts_do_not_change_results_with_hundreds_of_units() -> None:
    workload = crowd(2, 4000)
    decoding = Decoding(workload.config)
    block, _ = decoding.block(workload.events)
    check_same_results(decoding, block, list(range(100, 4000, 170)))


def test_pages_of_a_snapshot_are_only_those_written_since_the_last() -> None:
    workload = random_workload(1, 1000, "filling")
    decoding = Decoding(workload.config)
    twin = decoding.twin()
    for start in (0, 500):
        twin.apply(decoding.block(workload.events[start : start + 500])[0])
        assert list(twin.dirty_pages())
        assert not list(twin.dirty_pages())
    twin.state()
    twin.header()
    assert not list(twin.dirty_pages())


def test_every_page_that_an_event_changes_is_marked_with_hundreds_of_units() -> None:
    check_marks(crowd(3, 4000))


def test_a_restored_twin_has_the_same_header_byte_for_byte_whatever_was_in_memory_before() -> None:
    decoding = Decoding(structure())
    twin = decoding.twin()
    header, pages = twin.header(), dict(twin.dirty_pages())
    for _ in range(50):
        garbage = [np.full(twin.tables.store.scalars.nbytes, 255, np.uint8) for _ in range(50)]
        del garbage
        assert decoding.twin(None, header, pages.items()).header() == header
