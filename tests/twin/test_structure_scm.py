"""Storage class memory behind a structure, rule by rule.

Seed: "How storage class memory works with IBM MQ for z/OS", here "the seed"; domain.md section 3; contract.md, 3 and 7.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernels.layout import MARK_IN_SCM
from tests.kernels.told import GIB, KIB, MIB, NO_RULES, Told, demands
from tests.naive.estates import ENTRY_AND_6_ELEMENTS, STORE
from twin.estate import CouplingFacility

BLOCK = 4096
PRESTAGE_US = 4096e6 / 500_000_000  # of a block
SMALL = 100  # bytes: 2 of the 6 elements an entry has, so entries run out first


def told_of(entries: int = 100, **fields: Any) -> Told:
    """A twin with SCM whose structure has so many entries, 97 of 100: 88 are above 90 %, 67 are at most 70 %."""
    size = -(-entries * 100 // 97) * ENTRY_AND_6_ELEMENTS
    return Told(**(NO_RULES | {"size": size, "scm_max_size": GIB} | fields))


def on_facility(told: Told, **fields: Any) -> Told:
    """The same on a coupling facility of another size, or with other SCM."""
    facility = CouplingFacility(name="CF01", structures=(STORE,), queue_managers=("QM01", "QM02"), **fields)
    told.decoding.estate = replace(told.decoding.estate, stores={**told.decoding.estate.stores, "CF01": facility})
    told.twin = told.decoding.twin()
    return told


def lengths_in_scm(told: Told) -> list[int]:
    """Lengths of the messages in SCM, in the order of their puts."""
    messages = told.twin.tables.store.messages
    inside = messages[messages["marks"] & MARK_IN_SCM != 0]
    return [int(length) for length in inside["length"][np.argsort(inside["age"])]]


def used_and_scm(state: dict[str, Any]) -> tuple[int, int]:
    """(entries in the structure, in SCM)."""
    return state["ents_used"], state["scm"]["ents"]


# -- the seed, SCMALGORITHM: pre-staging


def test_above_90_percent_messages_go_out_until_the_structure_is_at_90_percent() -> None:
    told = told_of(100)
    assert told.state()["ents_max"] == 100
    for _ in range(90):
        assert told.put(SMALL)["scm"]["messages"] == 0
    assert used_and_scm(told.put(SMALL)) == (90, 1)
    for count in range(2, 50):
        assert used_and_scm(told.put(SMALL)) == (90, count)
    assert told.state()["messages"] == 139


def test_the_lowest_priority_goes_first_of_these_the_one_put_last() -> None:
    told = told_of(100)
    for number in range(60):
        told.put(number, priority=(5, 2, 7)[number % 3])
    told.put(99, count=35, priority=9)
    told.wait(1)
    assert lengths_in_scm(told) == [46, 49, 52, 55, 58]  # of priority 2, the last five of 1, 4, 7 ... 58


def test_when_the_lowest_priority_is_all_out_the_next_one_goes() -> None:
    told = told_of(100)
    told.put(1, count=3, priority=1)
    told.put(4, count=90, priority=4)
    told.put(3, count=5, priority=3)
    assert sorted(lengths_in_scm(told)) == [1, 1, 1, 3]
    told.wait(1)
    assert sorted(lengths_in_scm(told)) == [1, 1, 1, 3, 3, 3, 3, 3]


def test_messages_of_high_priority_stay_however_late_they_come() -> None:
    told = told_of(100)
    told.put(1, count=90, priority=0)
    for _ in range(80):
        told.put(9, priority=9)
    assert lengths_in_scm(told) == [1] * 80
    state = told.get(count=80)
    assert state["scm"]["faults"] == 0


def test_a_message_of_low_priority_that_comes_last_goes_out_at_once() -> None:
    told = told_of(100)
    told.put(5, count=90, priority=5)
    told.put(1, priority=1)
    assert lengths_in_scm(told) == [1]


def test_elements_count_as_entries_do() -> None:
    told = told_of(100)
    for _ in range(12):
        told.put(10_000)  # 41 elements
    state = told.put(10_000)  # 533 of 605
    assert (state["scm"]["messages"], state["elems_used"]) == (0, 533)
    state = told.put(10_000)
    assert (state["scm"]["messages"], state["scm"]["elems"], state["elems_used"]) == (1, 41, 533)


def test_what_is_left_of_a_baseline_counts_too() -> None:
    told = told_of(100)
    told.measure(ents_used=88, elems_used=0)
    assert used_and_scm(told.put(SMALL, count=2)) == (90, 0)
    assert used_and_scm(told.put(SMALL)) == (90, 1)


def test_a_structure_without_scm_moves_nothing() -> None:
    told = Told(**NO_RULES)
    state = told.put(SMALL, count=40)
    assert (state["scm"], state["ents_used"], state["alterable"]) == (None, 40, True)


# -- the seed, SCMALGORITHM: pre-fetching


def filled(told: Told, low: int = 60, high: int = 60) -> Told:
    """So many messages of priority 3, then of priority 6; 90 are in the structure."""
    for number in range(low):
        told.put(number, priority=3)
    for number in range(high):
        told.put(1000 + number, priority=6)
    return told


def test_at_or_below_70_percent_messages_come_back_the_oldest_first() -> None:
    told = filled(told_of(100))
    assert lengths_in_scm(told) == list(range(30, 60))
    assert used_and_scm(told.get(count=19)) == (71, 30)
    assert lengths_in_scm(told) == list(range(30, 60))
    state = told.get()
    assert (used_and_scm(state), state["scm"]["prefetched"], state["scm"]["faults"]) == ((71, 29), 1, 0)
    assert lengths_in_scm(told) == list(range(31, 60))
    told.get(count=10)
    told.wait(1)
    assert lengths_in_scm(told) == list(range(41, 60))


def test_the_highest_priority_comes_back_first() -> None:
    told = told_of(100)
    told.put(1, count=90, priority=0)
    told.put(2, count=20, priority=2)
    told.wait(1)
    told.put(3, count=95, priority=9)
    told.wait(1)
    assert sorted(lengths_in_scm(told)) == [1] * 90 + [2] * 20 + [3] * 5
    told.get(count=25)
    told.wait(1)
    assert sorted(lengths_in_scm(told)) == [1] * 90 + [2] * 19
    assert told.state()["scm"]["prefetched"] == 6


def test_the_test_is_made_anew_for_each_message() -> None:
    """domain.md section 3: at 60 %, eleven come back, not all."""
    told = filled(told_of(100))
    told.get(count=30)
    state = told.wait(1)
    assert used_and_scm(state) == (71, 19)


def test_what_would_take_the_structure_above_90_percent_again_is_not_brought_back() -> None:
    told = told_of(100)
    told.put(1, count=20, priority=9)
    told.put(40_000, count=2)  # 158 elements each
    told.put(60_000)  # 236: 592 of 605
    state = told.wait(1)
    assert (lengths_in_scm(told), state["usage_pct"]) == ([60_000], round(100 * 356 / 605, 3))
    for _ in range(3):
        state = told.wait(40 * 86_400)
    assert (state["scm"]["prestaged"], state["scm"]["prefetched"]) == (1, 0)


# -- domain.md section 3: bandwidth


def test_movement_takes_its_time_in_blocks_of_4_kb() -> None:
    told = told_of(100)
    start = told.time + 1_000_000
    told.put(SMALL, count=100, time=start)
    for after_us, moved in ((0, 1), (8, 1), (9, 2), (16, 2), (17, 3), (73, 9), (74, 10), (1_000_000, 10)):
        state = told.did("HEARTBEAT", None, time=start + after_us, store=STORE)
        assert state["scm"]["prestaged"] == moved, after_us


@pytest.mark.parametrize(("rate", "attribute"), [(MIB, "scm_prestage_rate"), (2 * MIB, "scm_prestage_rate")])
def test_its_rate_is_an_attribute_of_the_estate(rate: int, attribute: str) -> None:
    told = told_of(100, **{attribute: rate})
    start = told.time + 1_000_000
    told.put(16 * 256, count=33, time=start)  # 18 elements, 2 blocks; 594 of 605
    block_us = BLOCK * 1_000_000 // rate
    for after_us, moved in ((2 * block_us - 1, 1), (2 * block_us + 1, 2), (60_000_000, 3)):
        state = told.did("HEARTBEAT", None, time=start + after_us, store=STORE)
        assert state["scm"]["prestaged"] == moved, after_us


def test_pre_fetching_has_a_rate_of_its_own() -> None:
    told = filled(told_of(100, scm_prefetch_rate=MIB))
    told.get(count=25)
    start = told.time
    for after_us, moved in ((0, 1), (3_906, 1), (3_907, 2), (7_812, 2), (7_813, 3)):
        state = told.did("HEARTBEAT", None, time=start + after_us, store=STORE)
        assert state["scm"]["prefetched"] == moved, after_us


def test_puts_that_come_faster_than_the_mover_fill_the_structure() -> None:
    told = told_of(100, scm_prestage_rate=MIB)
    events = demands(1, [SMALL] * 200)
    events["time"] += np.arange(200) * 100  # one in 100 us, a movement takes 3.9 ms
    told.twin.demand(events)
    refused = events["reason"] == 2192
    assert refused.sum() == 200 - 103  # one goes out at the 91st put, two more 3.9 and 7.8 ms later
    assert not refused[:101].any()


# -- the seed: a get of a message that is in SCM has to wait


def test_a_get_of_a_message_in_scm_is_a_fault_of_its_blocks() -> None:
    told = told_of(100)
    told.put(10_000, msgid="A", priority=1)
    told.put(SMALL, count=90, priority=2)
    assert lengths_in_scm(told) == [10_000]
    state = told.get(msgid="A")
    assert (state["scm"]["faults"], state["scm"]["fault_wait_s"]) == (1, 3 * 275e-6)  # 42 times 256 bytes: 3 blocks
    assert (state["scm"]["messages"], state["scm"]["elems"], state["scm"]["used"]) == (0, 0, 0)
    assert used_and_scm(state) == (90, 0)


def test_the_wait_of_a_block_is_an_attribute_of_the_estate() -> None:
    told = told_of(100, scm_read_us=320)
    for number in range(91):
        told.put(SMALL, msgid=str(number))
    assert told.get(msgid="90")["scm"]["fault_wait_s"] == 320e-6


def test_a_get_in_a_unit_of_work_has_the_message_in_the_structure_until_it_ends() -> None:
    told = told_of(100)
    for number in range(95):
        told.put(SMALL, msgid=str(number))
    state = told.get(msgid="94", uow="U")
    assert (used_and_scm(state), state["scm"]["faults"]) == ((90, 5), 1)  # what came in pushed another one out
    state = told.did("COMMIT", uow="U")
    assert (used_and_scm(state), state["messages"]) == ((89, 5), 94)


def test_a_message_whose_get_is_backed_out_moves_again_at_its_age() -> None:
    told = told_of(100)
    for number in range(95):
        told.put(number, msgid=str(number), uow="P")
    told.did("COMMIT", uow="P")
    assert lengths_in_scm(told) == [90, 91, 92, 93, 94]
    told.get(msgid="94", uow="U")
    assert lengths_in_scm(told) == [89, 90, 91, 92, 93]
    told.did("BACKOUT", uow="U")
    assert lengths_in_scm(told) == [89, 90, 91, 92, 93]
    told.put(1000)
    told.put(1001)
    assert lengths_in_scm(told) == [89, 90, 91, 92, 93, 1000, 1001]
    told.put(9999, priority=5)
    assert lengths_in_scm(told) == [89, 90, 91, 92, 93, 94, 1000, 1001]


def test_uncommitted_puts_move_and_a_backout_takes_them_out_without_a_fault() -> None:
    told = told_of(100)
    told.put(SMALL, count=90, priority=1)
    assert told.put(SMALL, count=5, uow="U")["scm"]["messages"] == 1
    assert used_and_scm(told.wait(1)) == (90, 5)
    state = told.did("BACKOUT", uow="U")
    assert (used_and_scm(state), state["scm"]["faults"]) == ((90, 0), 0)


@pytest.mark.parametrize("op", ["EXPIRE", "CLEAR"])
def test_messages_that_expire_or_are_cleared_leave_scm_without_a_fault(op: str) -> None:
    told = told_of(100)
    told.put(SMALL, count=95, queue="B.QUEUE", priority=4)
    told.put(SMALL, count=3)
    told.wait(1)
    assert sorted(lengths_in_scm(told)) == [SMALL] * 8
    state = told.did(op, **({"count": 3} if op == "EXPIRE" else {}))
    assert (state["scm"]["faults"], state["scm"]["messages"], state["ents_used"]) == (0, 5, 90)


def test_a_message_that_a_waiting_get_takes_is_in_neither_chain() -> None:
    told = told_of(100)
    told.get(count=3)
    told.put(SMALL, count=93)
    assert used_and_scm(told.wait(1)) == (90, 0)


# -- domain.md section 3: what it takes there; the seed, SCMMAXSIZE


def test_in_scm_entries_and_elements_take_256_bytes_each_their_sum_in_4_kb_blocks() -> None:
    told = told_of(100)
    for moved in range(1, 12):
        state = told.put(SMALL, count=91 if moved == 1 else 1)  # 1 entry and 2 elements
        assert state["scm"]["used"] == -(-3 * 256 * moved // BLOCK) * BLOCK


def test_the_entry_of_an_offloaded_message_moves_too() -> None:
    told = told_of(100, offld1_th=0, offld1_sz=4 * KIB, offld2_sz="64K", offld3_sz="64K")
    told.put(50_000)
    told.put(SMALL, count=90, priority=1)
    state = told.wait(1)
    assert lengths_in_scm(told) == [50_000]
    assert (state["scm"]["elems"], state["offloaded_messages"], state["smds"]["QM01"]["messages"]) == (2, 1, 1)
    assert told.get(count=91)["smds"]["QM01"]["messages"] == 0


def test_offload_rules_and_fullthreshold_look_at_what_is_in_the_structure() -> None:
    """SMF 74.4: thresholds are on counts that exclude what is in SCM."""
    told = told_of(100, offld3_th=91, offld3_sz=0)
    for _ in range(150):
        state = told.put(SMALL)
    assert (state["usage_pct"], state["offload_rule"], state["messages"]) == (90.0, 0, 150)


def test_scmmaxsize_bounds_it() -> None:
    told = told_of(100, scm_max_size=2 * BLOCK)  # 10 messages of 3 times 256 bytes
    for _ in range(110):
        state = told.put(SMALL)
    assert (used_and_scm(state), state["overfull_puts"]) == ((100, 10), 0)
    assert told.put(SMALL)["overfull_puts"] == 1


def test_the_scm_of_the_coupling_facility_bounds_it_too() -> None:
    told = on_facility(told_of(100), size=64 * GIB, scm=BLOCK)
    told.put(SMALL, count=100)
    assert told.wait(1)["scm"] == {
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
    told = on_facility(told_of(100), size=64 * GIB)
    assert told.put(SMALL, count=100)["scm"]["max"] == 0
    assert told.wait(1)["scm"]["messages"] == 0


@pytest.mark.parametrize("known", [True, False])
def test_without_a_described_coupling_facility_only_scmmaxsize_bounds_it(known: bool) -> None:
    told = told_of(100, scm_max_size=BLOCK)
    if known:
        on_facility(told, size=None)  # of its CFRM policy only
    else:
        stores = {name: store for name, store in told.decoding.estate.stores.items() if name == STORE}
        stores[STORE] = replace(stores[STORE], coupling_facility=None)
        told.decoding.estate = replace(told.decoding.estate, stores=stores)
        told.twin = told.decoding.twin()
    told.put(SMALL, count=100)
    assert told.wait(1)["scm"]["messages"] == 5


def test_scm_that_shrinks_below_what_is_in_use_only_stops_movement_out() -> None:
    """What a simulator of over-committed SCM does from outside."""
    told = filled(told_of(100))
    told.twin.tables.store.params["scm_max"] = BLOCK
    assert told.put(SMALL)["scm"]["messages"] == 30
    state = told.get(count=40)
    assert used_and_scm(told.wait(1)) == (71, 10)
    assert state["scm"]["max"] == BLOCK


def test_scm_that_others_have_used_up_means_2192_before_scmmaxsize_is_reached() -> None:
    """The seed, SCMMAXSIZE, of over-committed SCM."""
    told = filled(told_of(100))
    told.twin.tables.store.params["scm_max"] = told.state()["scm"]["used"]  # the rest is in use by other structures
    events = demands(1, [SMALL] * 20)
    events["time"] = told.time + 1 + np.arange(20)
    told.twin.demand(events)
    assert (events["reason"] == 2192).sum() == 20 - 10 - 2  # two more fit into the last block in use
    assert told.twin.config.scm_max_size == GIB


# -- the seed: augmented space


def test_fixed_augmented_space_is_taken_before_scm_is_used_dynamic_comes_and_goes_with_the_data() -> None:
    told = told_of(100)
    assert (told.state()["scm"]["aug_fixed"], told.state()["scm"]["aug_dynamic"]) == (8 * MIB, 0)
    told.put(SMALL, count=100)
    told.wait(1)
    assert told.state()["scm"]["aug_dynamic"] == 164  # 2 % of 2 blocks, rounded up
    told.get(count=100)
    assert told.state()["scm"]["aug_dynamic"] == 0


def test_augmented_space_comes_out_of_what_the_structures_leave_of_the_coupling_facility() -> None:
    told = told_of(100)
    size = told.state()["size"]
    on_facility(told, size=size + 8 * MIB + 82, scm=GIB)  # room for one block of SCM
    told.put(SMALL, count=100)
    state = told.wait(1)
    assert (state["scm"]["used"], state["ents_used"], state["size"]) == (BLOCK, 95, size)


def test_another_structure_with_scm_takes_its_part_of_the_coupling_facility() -> None:
    told = told_of(100)
    size = told.state()["size"]
    on_facility(told, size=2 * size + 16 * MIB + 81, scm=GIB)
    stores = told.decoding.estate.stores
    other = replace(stores[STORE], name="QSG1/APP2", queues=(), size=2 * size, init_size=size)
    facility = replace(stores["CF01"], structures=(STORE, "QSG1/APP2"))
    told.decoding.estate = replace(told.decoding.estate, stores={**stores, "QSG1/APP2": other, "CF01": facility})
    told.twin = told.decoding.twin()
    told.put(SMALL, count=100)
    assert told.wait(1)["scm"]["messages"] == 0


def test_a_coupling_facility_out_of_storage_for_augmented_space_means_2192() -> None:
    told = told_of(100)
    on_facility(told, size=told.state()["size"], scm=GIB)
    events = demands(1, [SMALL] * 120)
    events["time"] += np.arange(120) * 1_000_000
    told.twin.demand(events)
    assert (events["reason"] == 2192).sum() == 20
    assert told.state()["scm"]["messages"] == 0


# -- REBUILD


def test_a_rebuild_brings_scm_and_all_messages_may_move() -> None:
    told = Told(**(NO_RULES | {"size": 104 * ENTRY_AND_6_ELEMENTS}))
    for number in range(100):
        told.put(number, priority=number % 2, uow="U" if number % 5 == 0 else None)
    told.get(msgid=None, uow="G")  # 1, of priority 1, which does not move
    assert told.rebuild(scm_max_size="1G")["ents_max"] == 100
    state = told.wait(1)
    assert used_and_scm(state) == (90, 10)
    assert lengths_in_scm(told) == list(range(80, 100, 2))
    assert told.again().state() == state


def test_a_rebuild_that_takes_scm_away_brings_everything_back() -> None:
    told = filled(told_of(100))
    state = told.rebuild(scm_max_size=None)
    assert (state["scm"], state["ents_used"], state["ents_max"], state["alterable"]) == (None, 120, 104, True)
    assert used_and_scm(told.rebuild(scm_max_size="1G")) == (119, 1)
    state = told.wait(1)
    assert (used_and_scm(state), state["scm"]["prestaged"]) == ((90, 30), 30)
    assert lengths_in_scm(told) == list(range(30, 60))


def test_another_scmmaxsize_leaves_in_scm_what_is_there() -> None:
    told = filled(told_of(100))
    state = told.rebuild(scm_max_size="8K")
    assert (used_and_scm(state), state["scm"]["max"]) == ((90, 30), 8192)


def test_an_estate_that_gives_scm_or_takes_it_away_is_followed_when_the_twin_is_opened() -> None:
    told = filled(told_of(100))
    with_scm = told.decoding.estate
    without = replace(with_scm.stores[STORE], scm_max_size=None)
    told.decoding.estate = replace(with_scm, stores={**with_scm.stores, STORE: without})
    state = told.again().state()
    assert (state["scm"], state["ents_used"]) == (None, 120)
    told.decoding.estate = with_scm
    assert used_and_scm(told.again().wait(1)) == (119, 1)
    assert used_and_scm(told.wait(1)) == (90, 30)


# -- MEASURE


def test_a_measurement_of_scm_shows_drift() -> None:
    told = told_of(100, scm_max_size=10 * BLOCK)
    told.put(SMALL, count=100)
    told.wait(1)
    assert told.measure(scm={"used": None})["drift_pct"] is None
    assert told.measure(scm={"used": 4 * BLOCK})["drift_pct"] == -20.0
    assert told.measure(scm={"used": 2 * BLOCK, "faults": 3})["drift_pct"] == 0.0
