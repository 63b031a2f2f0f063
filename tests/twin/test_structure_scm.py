"""Storage class memory behind a structure, rule by rule.

Sources: [IBM: How storage class memory works with IBM MQ for z/OS], here "the document"; docs/storage-model.md.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernels.layout import MARK_IN_SCM
from tests.kernels.driver import GIB, KIB, MIB, NO_RULES, TwinDriver, demands
from tests.naive.estates import ENTRY_AND_6_ELEMENTS, STORE
from twin.estate import CouplingFacility

BLOCK = 4096
PRESTAGE_US = 4096e6 / 500_000_000  # of a block
SMALL = 100  # bytes: 2 of the 6 elements an entry has, so entries run out first


def open_driver(entries: int = 100, **fields: Any) -> TwinDriver:
    """Open a twin with SCM whose structure has `entries`, 97 of 100: 88 are above 90 %, 67 are at most 70 %."""
    size = -(-entries * 100 // 97) * ENTRY_AND_6_ELEMENTS
    return TwinDriver(**(NO_RULES | {"size": size, "scm_max_size": GIB} | fields))


def on_facility(driver: TwinDriver, **fields: Any) -> TwinDriver:
    """Open the twin on a coupling facility of another size, or with other SCM."""
    facility = CouplingFacility(name="CF01", structures=(STORE,), queue_managers=("QM01", "QM02"), **fields)
    driver.decoding.estate = replace(driver.decoding.estate, stores={**driver.decoding.estate.stores, "CF01": facility})
    driver.twin = driver.decoding.twin()
    return driver


def lengths_in_scm(driver: TwinDriver) -> list[int]:
    """Lengths of the messages in SCM, in the order of their puts."""
    messages = driver.twin.tables.store.messages
    inside = messages[messages["marks"] & MARK_IN_SCM != 0]
    return [int(length) for length in inside["length"][np.argsort(inside["age"])]]


def used_and_scm(state: dict[str, Any]) -> tuple[int, int]:
    """Return (entries in the structure, in SCM)."""
    return state["ents_used"], state["scm"]["ents"]


# -- the seed, SCMALGORITHM: pre-staging


def test_above_90_percent_messages_go_out_until_the_structure_is_at_90_percent() -> None:
    driver = open_driver(100)
    assert driver.state()["ents_max"] == 100
    for _ in range(90):
        assert driver.put(SMALL)["scm"]["messages"] == 0
    assert used_and_scm(driver.put(SMALL)) == (90, 1)
    for count in range(2, 50):
        assert used_and_scm(driver.put(SMALL)) == (90, count)
    assert driver.state()["messages"] == 139


def test_the_lowest_priority_goes_first_of_these_the_one_put_last() -> None:
    driver = open_driver(100)
    for number in range(60):
        driver.put(number, priority=(5, 2, 7)[number % 3])
    driver.put(99, count=35, priority=9)
    driver.wait(1)
    assert lengths_in_scm(driver) == [46, 49, 52, 55, 58]  # of priority 2, the last five of 1, 4, 7 ... 58


def test_when_the_lowest_priority_is_all_out_the_next_one_goes() -> None:
    driver = open_driver(100)
    driver.put(1, count=3, priority=1)
    driver.put(4, count=90, priority=4)
    driver.put(3, count=5, priority=3)
    assert sorted(lengths_in_scm(driver)) == [1, 1, 1, 3]
    driver.wait(1)
    assert sorted(lengths_in_scm(driver)) == [1, 1, 1, 3, 3, 3, 3, 3]


def test_messages_of_high_priority_stay_however_late_they_come() -> None:
    driver = open_driver(100)
    driver.put(1, count=90, priority=0)
    for _ in range(80):
        driver.put(9, priority=9)
    assert lengths_in_scm(driver) == [1] * 80
    state = driver.get(count=80)
    assert state["scm"]["faults"] == 0


def test_a_message_of_low_priority_that_comes_last_goes_out_at_once() -> None:
    driver = open_driver(100)
    driver.put(5, count=90, priority=5)
    driver.put(1, priority=1)
    assert lengths_in_scm(driver) == [1]


def test_elements_count_as_entries_do() -> None:
    driver = open_driver(100)
    for _ in range(12):
        driver.put(10_000)  # 41 elements
    state = driver.put(10_000)  # 533 of 605
    assert (state["scm"]["messages"], state["elems_used"]) == (0, 533)
    state = driver.put(10_000)
    assert (state["scm"]["messages"], state["scm"]["elems"], state["elems_used"]) == (1, 41, 533)


def test_what_is_left_of_a_baseline_counts_too() -> None:
    driver = open_driver(100)
    driver.measure(ents_used=88, elems_used=0)
    assert used_and_scm(driver.put(SMALL, count=2)) == (90, 0)
    assert used_and_scm(driver.put(SMALL)) == (90, 1)


def test_a_structure_without_scm_moves_nothing() -> None:
    driver = TwinDriver(**NO_RULES)
    state = driver.put(SMALL, count=40)
    assert (state["scm"], state["ents_used"], state["alterable"]) == (None, 40, True)


# -- the seed, SCMALGORITHM: pre-fetching


def filled(driver: TwinDriver, low: int = 60, high: int = 60) -> TwinDriver:
    """Put messages of priority 3, then of priority 6; 90 are in the structure."""
    for number in range(low):
        driver.put(number, priority=3)
    for number in range(high):
        driver.put(1000 + number, priority=6)
    return driver


def test_at_or_below_70_percent_messages_come_back_the_oldest_first() -> None:
    driver = filled(open_driver(100))
    assert lengths_in_scm(driver) == list(range(30, 60))
    assert used_and_scm(driver.get(count=19)) == (71, 30)
    assert lengths_in_scm(driver) == list(range(30, 60))
    state = driver.get()
    assert (used_and_scm(state), state["scm"]["prefetched"], state["scm"]["faults"]) == ((71, 29), 1, 0)
    assert lengths_in_scm(driver) == list(range(31, 60))
    driver.get(count=10)
    driver.wait(1)
    assert lengths_in_scm(driver) == list(range(41, 60))


def test_the_highest_priority_comes_back_first() -> None:
    driver = open_driver(100)
    driver.put(1, count=90, priority=0)
    driver.put(2, count=20, priority=2)
    driver.wait(1)
    driver.put(3, count=95, priority=9)
    driver.wait(1)
    assert sorted(lengths_in_scm(driver)) == [1] * 90 + [2] * 20 + [3] * 5
    driver.get(count=25)
    driver.wait(1)
    assert sorted(lengths_in_scm(driver)) == [1] * 90 + [2] * 19
    assert driver.state()["scm"]["prefetched"] == 6


def test_the_test_is_made_anew_for_each_message() -> None:
    """Check docs/storage-model.md: at 60 %, eleven come back, not all."""
    driver = filled(open_driver(100))
    driver.get(count=30)
    state = driver.wait(1)
    assert used_and_scm(state) == (71, 19)


def test_what_would_take_the_structure_above_90_percent_again_is_not_brought_back() -> None:
    driver = open_driver(100)
    driver.put(1, count=20, priority=9)
    driver.put(40_000, count=2)  # 158 elements each
    driver.put(60_000)  # 236: 592 of 605
    state = driver.wait(1)
    assert (lengths_in_scm(driver), state["usage_pct"]) == ([60_000], round(100 * 356 / 605, 3))
    for _ in range(3):
        state = driver.wait(40 * 86_400)
    assert (state["scm"]["prestaged"], state["scm"]["prefetched"]) == (1, 0)


# -- bandwidth (docs/storage-model.md)


def test_movement_takes_its_time_in_blocks_of_4_kb() -> None:
    driver = open_driver(100)
    start = driver.time + 1_000_000
    driver.put(SMALL, count=100, time=start)
    for after_us, moved in ((0, 1), (8, 1), (9, 2), (16, 2), (17, 3), (73, 9), (74, 10), (1_000_000, 10)):
        state = driver.did("HEARTBEAT", None, time=start + after_us, store=STORE)
        assert state["scm"]["prestaged"] == moved, after_us


@pytest.mark.parametrize(("rate", "attribute"), [(MIB, "scm_prestage_rate"), (2 * MIB, "scm_prestage_rate")])
def test_its_rate_is_an_attribute_of_the_estate(rate: int, attribute: str) -> None:
    driver = open_driver(100, **{attribute: rate})
    start = driver.time + 1_000_000
    driver.put(16 * 256, count=33, time=start)  # 18 elements, 2 blocks; 594 of 605
    block_us = BLOCK * 1_000_000 // rate
    for after_us, moved in ((2 * block_us - 1, 1), (2 * block_us + 1, 2), (60_000_000, 3)):
        state = driver.did("HEARTBEAT", None, time=start + after_us, store=STORE)
        assert state["scm"]["prestaged"] == moved, after_us


def test_pre_fetching_has_a_rate_of_its_own() -> None:
    driver = filled(open_driver(100, scm_prefetch_rate=MIB))
    driver.get(count=25)
    start = driver.time
    for after_us, moved in ((0, 1), (3_906, 1), (3_907, 2), (7_812, 2), (7_813, 3)):
        state = driver.did("HEARTBEAT", None, time=start + after_us, store=STORE)
        assert state["scm"]["prefetched"] == moved, after_us


def test_puts_that_come_faster_than_the_mover_fill_the_structure() -> None:
    driver = open_driver(100, scm_prestage_rate=MIB)
    events = demands(1, [SMALL] * 200)
    events["time"] += np.arange(200) * 100  # one in 100 us, a movement takes 3.9 ms
    driver.twin.demand(events)
    refused = events["reason"] == 2192
    assert refused.sum() == 200 - 103  # one goes out at the 91st put, two more 3.9 and 7.8 ms later
    assert not refused[:101].any()


# -- the seed: a get of a message that is in SCM has to wait


def test_a_get_of_a_message_in_scm_is_a_fault_of_its_blocks() -> None:
    driver = open_driver(100)
    driver.put(10_000, msgid="A", priority=1)
    driver.put(SMALL, count=90, priority=2)
    assert lengths_in_scm(driver) == [10_000]
    state = driver.get(msgid="A")
    assert (state["scm"]["faults"], state["scm"]["fault_wait_s"]) == (1, 3 * 275e-6)  # 42 times 256 bytes: 3 blocks
    assert (state["scm"]["messages"], state["scm"]["elems"], state["scm"]["used"]) == (0, 0, 0)
    assert used_and_scm(state) == (90, 0)


def test_the_wait_of_a_block_is_an_attribute_of_the_estate() -> None:
    driver = open_driver(100, scm_read_us=320)
    for number in range(91):
        driver.put(SMALL, msgid=str(number))
    assert driver.get(msgid="90")["scm"]["fault_wait_s"] == 320e-6


def test_a_get_in_a_unit_of_work_has_the_message_in_the_structure_until_it_ends() -> None:
    driver = open_driver(100)
    for number in range(95):
        driver.put(SMALL, msgid=str(number))
    state = driver.get(msgid="94", uow="U")
    assert (used_and_scm(state), state["scm"]["faults"]) == ((90, 5), 1)  # what came in pushed another one out
    state = driver.did("COMMIT", uow="U")
    assert (used_and_scm(state), state["messages"]) == ((89, 5), 94)


def test_a_message_whose_get_is_backed_out_moves_again_at_its_age() -> None:
    driver = open_driver(100)
    for number in range(95):
        driver.put(number, msgid=str(number), uow="P")
    driver.did("COMMIT", uow="P")
    assert lengths_in_scm(driver) == [90, 91, 92, 93, 94]
    driver.get(msgid="94", uow="U")
    assert lengths_in_scm(driver) == [89, 90, 91, 92, 93]
    driver.did("BACKOUT", uow="U")
    assert lengths_in_scm(driver) == [89, 90, 91, 92, 93]
    driver.put(1000)
    driver.put(1001)
    assert lengths_in_scm(driver) == [89, 90, 91, 92, 93, 1000, 1001]
    driver.put(9999, priority=5)
    assert lengths_in_scm(driver) == [89, 90, 91, 92, 93, 94, 1000, 1001]


def test_uncommitted_puts_move_and_a_backout_takes_them_out_without_a_fault() -> None:
    driver = open_driver(100)
    driver.put(SMALL, count=90, priority=1)
    assert driver.put(SMALL, count=5, uow="U")["scm"]["messages"] == 1
    assert used_and_scm(driver.wait(1)) == (90, 5)
    state = driver.did("BACKOUT", uow="U")
    assert (used_and_scm(state), state["scm"]["faults"]) == ((90, 0), 0)


@pytest.mark.parametrize("op", ["EXPIRE", "CLEAR"])
def test_messages_that_expire_or_are_cleared_leave_scm_without_a_fault(op: str) -> None:
    driver = open_driver(100)
    driver.put(SMALL, count=95, queue="B.QUEUE", priority=4)
    driver.put(SMALL, count=3)
    driver.wait(1)
    assert sorted(lengths_in_scm(driver)) == [SMALL] * 8
    state = driver.did(op, **({"count": 3} if op == "EXPIRE" else {}))
    assert (state["scm"]["faults"], state["scm"]["messages"], state["ents_used"]) == (0, 5, 90)


def test_a_message_that_a_waiting_get_takes_is_in_neither_chain() -> None:
    driver = open_driver(100)
    driver.get(count=3)
    driver.put(SMALL, count=93)
    assert used_and_scm(driver.wait(1)) == (90, 0)


# -- bytes in SCM (docs/storage-model.md); the document, SCMMAXSIZE


def test_in_scm_entries_and_elements_take_256_bytes_each_their_sum_in_4_kb_blocks() -> None:
    driver = open_driver(100)
    for moved in range(1, 12):
        state = driver.put(SMALL, count=91 if moved == 1 else 1)  # 1 entry and 2 elements
        assert state["scm"]["used"] == -(-3 * 256 * moved // BLOCK) * BLOCK


def test_the_entry_of_an_offloaded_message_moves_too() -> None:
    driver = open_driver(100, offld1_th=0, offld1_sz=4 * KIB, offld2_sz="64K", offld3_sz="64K")
    driver.put(50_000)
    driver.put(SMALL, count=90, priority=1)
    state = driver.wait(1)
    assert lengths_in_scm(driver) == [50_000]
    assert (state["scm"]["elems"], state["offloaded_messages"], state["smds"]["QM01"]["messages"]) == (2, 1, 1)
    assert driver.get(count=91)["smds"]["QM01"]["messages"] == 0


def test_offload_rules_and_fullthreshold_look_at_what_is_in_the_structure() -> None:
    """SMF 74.4: thresholds are on counts that exclude what is in SCM."""
    driver = open_driver(100, offld3_th=91, offld3_sz=0)
    for _ in range(150):
        state = driver.put(SMALL)
    assert (state["usage_pct"], state["offload_rule"], state["messages"]) == (90.0, 0, 150)


def test_scmmaxsize_bounds_it() -> None:
    driver = open_driver(100, scm_max_size=2 * BLOCK)  # 10 messages of 3 times 256 bytes
    for _ in range(110):
        state = driver.put(SMALL)
    assert (used_and_scm(state), state["overfull_puts"]) == ((100, 10), 0)
    assert driver.put(SMALL)["overfull_puts"] == 1


def test_the_scm_of_the_coupling_facility_bounds_it_too() -> None:
    driver = on_facility(open_driver(100), size=64 * GIB, scm=BLOCK)
    driver.put(SMALL, count=100)
    assert driver.wait(1)["scm"] == {
        "max": BLOCK,
        "used": BLOCK,
        "ents": 5,
        "elems": 10,
        "messages": 5,
        "aug_fixed": 8 * MIB,
        "aug_dynamic": 82,
        "prestaged": 5,
        "prefetched": 0,
        "faults": 0,
        "fault_wait_s": 0.0,
    }


def test_a_coupling_facility_without_scm_gives_none() -> None:
    driver = on_facility(open_driver(100), size=64 * GIB)
    assert driver.put(SMALL, count=100)["scm"]["max"] == 0
    assert driver.wait(1)["scm"]["messages"] == 0


@pytest.mark.parametrize("known", [True, False])
def test_without_a_described_coupling_facility_only_scmmaxsize_bounds_it(known: bool) -> None:
    driver = open_driver(100, scm_max_size=BLOCK)
    if known:
        on_facility(driver, size=None)  # of its CFRM policy only
    else:
        stores = {name: store for name, store in driver.decoding.estate.stores.items() if name == STORE}
        stores[STORE] = replace(stores[STORE], coupling_facility=None)
        driver.decoding.estate = replace(driver.decoding.estate, stores=stores)
        driver.twin = driver.decoding.twin()
    driver.put(SMALL, count=100)
    assert driver.wait(1)["scm"]["messages"] == 5


def test_scm_that_shrinks_below_what_is_in_use_only_stops_movement_out() -> None:
    """Shrink it from outside, as a simulator of over-committed SCM does."""
    driver = filled(open_driver(100))
    driver.twin.tables.store.params["scm_max"] = BLOCK
    assert driver.put(SMALL)["scm"]["messages"] == 30
    state = driver.get(count=40)
    assert used_and_scm(driver.wait(1)) == (71, 10)
    assert state["scm"]["max"] == BLOCK


def test_scm_that_others_have_used_up_means_2192_before_scmmaxsize_is_reached() -> None:
    """Check SCMMAXSIZE of the document, of over-committed SCM."""
    driver = filled(open_driver(100))
    driver.twin.tables.store.params["scm_max"] = driver.state()["scm"]["used"]  # the rest is in use by other structures
    events = demands(1, [SMALL] * 20)
    events["time"] = driver.time + 1 + np.arange(20)
    driver.twin.demand(events)
    assert (events["reason"] == 2192).sum() == 20 - 10 - 2  # two more fit into the last block in use
    assert driver.twin.config.scm_max_size == GIB


# -- the seed: augmented space


def test_fixed_augmented_space_is_taken_before_scm_is_used_dynamic_comes_and_goes_with_the_data() -> None:
    driver = open_driver(100)
    assert (driver.state()["scm"]["aug_fixed"], driver.state()["scm"]["aug_dynamic"]) == (8 * MIB, 0)
    driver.put(SMALL, count=100)
    driver.wait(1)
    assert driver.state()["scm"]["aug_dynamic"] == 164  # 2 % of 2 blocks, rounded up
    driver.get(count=100)
    assert driver.state()["scm"]["aug_dynamic"] == 0


def test_augmented_space_comes_out_of_what_the_structures_leave_of_the_coupling_facility() -> None:
    driver = open_driver(100)
    size = driver.state()["size"]
    on_facility(driver, size=size + 8 * MIB + 82, scm=GIB)  # room for one block of SCM
    driver.put(SMALL, count=100)
    state = driver.wait(1)
    assert (state["scm"]["used"], state["ents_used"], state["size"]) == (BLOCK, 95, size)


def test_another_structure_with_scm_takes_its_part_of_the_coupling_facility() -> None:
    driver = open_driver(100)
    size = driver.state()["size"]
    on_facility(driver, size=2 * size + 16 * MIB + 81, scm=GIB)
    stores = driver.decoding.estate.stores
    other = replace(stores[STORE], name="QSG1/APP2", queues=(), size=2 * size, init_size=size)
    facility = replace(stores["CF01"], structures=(STORE, "QSG1/APP2"))
    driver.decoding.estate = replace(driver.decoding.estate, stores={**stores, "QSG1/APP2": other, "CF01": facility})
    driver.twin = driver.decoding.twin()
    driver.put(SMALL, count=100)
    assert driver.wait(1)["scm"]["messages"] == 0


def test_a_coupling_facility_out_of_storage_for_augmented_space_means_2192() -> None:
    driver = open_driver(100)
    on_facility(driver, size=driver.state()["size"], scm=GIB)
    events = demands(1, [SMALL] * 120)
    events["time"] += np.arange(120) * 1_000_000
    driver.twin.demand(events)
    assert (events["reason"] == 2192).sum() == 20
    assert driver.state()["scm"]["messages"] == 0


# -- REBUILD


def test_a_rebuild_brings_scm_and_all_messages_may_move() -> None:
    driver = TwinDriver(**(NO_RULES | {"size": 104 * ENTRY_AND_6_ELEMENTS}))
    for number in range(100):
        driver.put(number, priority=number % 2, uow="U" if number % 5 == 0 else None)
    driver.get(msgid=None, uow="G")  # 1, of priority 1, which does not move
    assert driver.rebuild(scm_max_size="1G")["ents_max"] == 100
    state = driver.wait(1)
    assert used_and_scm(state) == (90, 10)
    assert lengths_in_scm(driver) == list(range(80, 100, 2))
    assert driver.again().state() == state


def test_a_rebuild_that_takes_scm_away_brings_everything_back() -> None:
    driver = filled(open_driver(100))
    state = driver.rebuild(scm_max_size=None)
    assert (state["scm"], state["ents_used"], state["ents_max"], state["alterable"]) == (None, 120, 104, True)
    assert used_and_scm(driver.rebuild(scm_max_size="1G")) == (119, 1)
    state = driver.wait(1)
    assert (used_and_scm(state), state["scm"]["prestaged"]) == ((90, 30), 30)
    assert lengths_in_scm(driver) == list(range(30, 60))


def test_another_scmmaxsize_leaves_in_scm_what_is_there() -> None:
    driver = filled(open_driver(100))
    state = driver.rebuild(scm_max_size="8K")
    assert (used_and_scm(state), state["scm"]["max"]) == ((90, 30), 8192)


def test_an_estate_that_gives_scm_or_takes_it_away_is_followed_when_the_twin_is_opened() -> None:
    driver = filled(open_driver(100))
    with_scm = driver.decoding.estate
    without = replace(with_scm.stores[STORE], scm_max_size=None)
    driver.decoding.estate = replace(with_scm, stores={**with_scm.stores, STORE: without})
    state = driver.again().state()
    assert (state["scm"], state["ents_used"]) == (None, 120)
    driver.decoding.estate = with_scm
    assert used_and_scm(driver.again().wait(1)) == (119, 1)
    assert used_and_scm(driver.wait(1)) == (90, 30)


# -- MEASURE


def test_a_measurement_of_scm_shows_drift() -> None:
    driver = open_driver(100, scm_max_size=10 * BLOCK)
    driver.put(SMALL, count=100)
    driver.wait(1)
    assert driver.measure(scm={"used": None})["drift_pct"] is None
    assert driver.measure(scm={"used": 4 * BLOCK})["drift_pct"] == -20.0
    assert driver.measure(scm={"used": 2 * BLOCK, "faults": 3})["drift_pct"] == 0.0
