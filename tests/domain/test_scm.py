"""Storage class memory behind a structure, rule by rule.

Sources: [IBM: How storage class memory works with IBM MQ for z/OS], here "the document"; docs/storage-model.md.
"""

from typing import Any

import pytest

from tests.naive.estates import ENTRY_AND_6_ELEMENTS, STORE
from tests.support.store_driver import GIB, KIB, MIB, NO_RULES, Open, StoreDriver

BLOCK = 4096
SMALL = 100  # bytes: 2 of the 6 elements an entry has, so entries run out first
SLOW = {"scm_prestage_rate": MIB, "scm_prefetch_rate": MIB}  # a block of 4 KB in 3,906.25 microseconds
MILLISECOND = 0.001


def open_structure(structure: Open, entries: int = 100, **fields: Any) -> StoreDriver:
    """Open a structure with SCM that has `entries`, 97 of 100: 88 are above 90 %, 67 are at most 70 %."""
    size = -(-entries * 100 // 97) * ENTRY_AND_6_ELEMENTS
    return structure(**(NO_RULES | {"size": size, "scm_max_size": GIB} | fields))


def filled(driver: StoreDriver, low: int = 60, high: int = 60) -> StoreDriver:
    """Put messages of priority 3, then of priority 6; 90 are in the structure."""
    for number in range(low):
        driver.put(number, priority=3)
    for number in range(high):
        driver.put(1000 + number, priority=6)
    return driver


def at_90_percent(scm_structure: Open, count: int = 34, **fields: Any) -> StoreDriver:
    """Open a structure with 34 of 38 entries and 68 of 232 elements in use, the most without pre-staging."""
    driver = scm_structure(**fields)
    driver.put(SMALL, count=count)
    return driver


def used_and_scm(state: dict[str, Any]) -> tuple[int, int]:
    """Return (entries in the structure, in SCM)."""
    return state["ents_used"], state["scm"]["ents"]


def moves(state: dict[str, Any]) -> tuple[int, ...]:
    """Return entries in use, messages in SCM, and counts of messages moved and read."""
    return state["ents_used"], *(state["scm"][name] for name in ("messages", "prestaged", "prefetched", "faults"))


# -- pre-staging: SCMALGORITHM of the document


def test_above_90_percent_messages_go_out_until_the_structure_is_at_90_percent(structure: Open) -> None:
    driver = open_structure(structure, 100)
    assert driver.state()["ents_max"] == 100
    for _ in range(90):
        assert driver.put(SMALL)["scm"]["messages"] == 0
    assert used_and_scm(driver.put(SMALL)) == (90, 1)
    for count in range(2, 50):
        assert used_and_scm(driver.put(SMALL)) == (90, count)
    assert driver.state()["messages"] == 139


def test_nothing_moves_up_to_90_percent_and_one_message_for_each_above(scm_structure: Open) -> None:
    driver = at_90_percent(scm_structure)
    assert moves(driver.wait(10)) == (34, 0, 0, 0, 0)
    assert moves(driver.put(100)) == (34, 1, 1, 0, 0)
    assert moves(driver.put(100, count=4)) == (37, 2, 2, 0, 0)  # one moves at once, the others in turn
    assert moves(driver.wait(1)) == (34, 5, 5, 0, 0)
    assert driver.state()["messages"] == 39
    assert driver.state()["overfull_puts"] == 0


def test_the_lowest_priority_goes_first_of_these_the_one_put_last(structure: Open) -> None:
    driver = open_structure(structure, 100)
    for number in range(60):
        driver.put(number, priority=(5, 2, 7)[number % 3])
    driver.put(99, count=35, priority=9)
    driver.wait(1)
    assert driver.lengths_in_scm() == [46, 49, 52, 55, 58]  # of priority 2, the last five of 1, 4, 7 ... 58


def test_the_lowest_priority_goes_first_and_of_it_the_one_put_last(scm_structure: Open) -> None:
    driver = scm_structure()
    for length in range(1, 18):
        driver.put(length, priority=5)
        driver.put(100 + length, priority=0 if length in {3, 7} else 9)
    for expected in ([107], [103, 107], [103, 107, 17], [103, 107, 16, 17]):  # in the order of the puts
        driver.put(99, priority=9)
        assert driver.lengths_in_scm() == expected
    driver.put(98, priority=0)
    assert driver.lengths_in_scm()[-1] == 98


def test_when_the_lowest_priority_is_all_out_the_next_one_goes(structure: Open) -> None:
    driver = open_structure(structure, 100)
    driver.put(1, count=3, priority=1)
    driver.put(4, count=90, priority=4)
    driver.put(3, count=5, priority=3)
    assert sorted(driver.lengths_in_scm()) == [1, 1, 1, 3]
    driver.wait(1)
    assert sorted(driver.lengths_in_scm()) == [1, 1, 1, 3, 3, 3, 3, 3]


def test_messages_of_high_priority_stay_however_late_they_come(structure: Open) -> None:
    driver = open_structure(structure, 100)
    driver.put(1, count=90, priority=0)
    for _ in range(80):
        driver.put(9, priority=9)
    assert driver.lengths_in_scm() == [1] * 80
    state = driver.get(count=80)
    assert state["scm"]["faults"] == 0


def test_a_message_of_low_priority_that_comes_last_goes_out_at_once(structure: Open) -> None:
    driver = open_structure(structure, 100)
    driver.put(5, count=90, priority=5)
    driver.put(1, priority=1)
    assert driver.lengths_in_scm() == [1]


def test_elements_count_as_entries_do(structure: Open) -> None:
    driver = open_structure(structure, 100)
    for _ in range(12):
        driver.put(10_000)  # 41 elements
    state = driver.put(10_000)  # 533 of 605
    assert (state["scm"]["messages"], state["elems_used"]) == (0, 533)
    state = driver.put(10_000)
    assert (state["scm"]["messages"], state["scm"]["elems"], state["elems_used"]) == (1, 41, 533)


def test_what_is_left_of_a_baseline_counts_too(structure: Open) -> None:
    driver = open_structure(structure, 100)
    driver.measure(ents_used=88, elems_used=0)
    assert used_and_scm(driver.put(SMALL, count=2)) == (90, 0)
    assert used_and_scm(driver.put(SMALL)) == (90, 1)


def test_a_structure_without_scm_moves_nothing(structure: Open) -> None:
    driver = structure(**NO_RULES)
    state = driver.put(SMALL, count=40)
    assert (state["scm"], state["ents_used"], state["alterable"]) == (None, 40, True)


# -- pre-fetching: SCMALGORITHM of the document


def test_at_or_below_70_percent_messages_come_back_the_oldest_first(structure: Open) -> None:
    driver = filled(open_structure(structure, 100))
    assert driver.lengths_in_scm() == list(range(30, 60))
    assert used_and_scm(driver.get(count=19)) == (71, 30)
    assert driver.lengths_in_scm() == list(range(30, 60))
    state = driver.get()
    assert (used_and_scm(state), state["scm"]["prefetched"], state["scm"]["faults"]) == ((71, 29), 1, 0)
    assert driver.lengths_in_scm() == list(range(31, 60))
    driver.get(count=10)
    driver.wait(1)
    assert driver.lengths_in_scm() == list(range(41, 60))


def test_at_or_below_70_percent_the_highest_priority_comes_back_first_and_of_it_the_oldest(scm_structure: Open) -> None:
    driver = scm_structure(**SLOW)
    driver.put(100, priority=9, count=34)
    for length, priority in ((1, 3), (2, 5), (3, 5), (4, 0)):
        driver.put(length, priority=priority)
    assert driver.lengths_in_scm() == [1, 2, 3, 4]
    driver.get(count=7)
    assert moves(driver.wait(1))[:2] == (27, 4)  # 27 of 38 are more than 70 %
    driver.get(count=2)
    assert driver.lengths_in_scm() == [1, 3, 4]
    driver.wait(60)
    assert (moves(driver.state())[:2], driver.lengths_in_scm()) == ((27, 2), [1, 4])
    driver.get(count=10)
    assert moves(driver.wait(60)) == (19, 0, 4, 4, 0)


def test_where_three_entries_are_all_one_that_would_go_out_again_stays_in_scm(structure: Open) -> None:
    """Two of three entries are at most 70 %, but all three are above 90 %: it would go back and forth for ever."""
    driver = open_structure(structure, 3, **SLOW)
    assert driver.state()["ents_max"] == 3
    driver.put(SMALL, count=3)
    assert moves(driver.wait(1)) == (2, 1, 1, 0, 0)
    assert moves(driver.get()) == (2, 0, 1, 1, 0)


def test_the_highest_priority_comes_back_first(structure: Open) -> None:
    driver = open_structure(structure, 100)
    driver.put(1, count=90, priority=0)
    driver.put(2, count=20, priority=2)
    driver.wait(1)
    driver.put(3, count=95, priority=9)
    driver.wait(1)
    assert sorted(driver.lengths_in_scm()) == [1] * 90 + [2] * 20 + [3] * 5
    driver.get(count=25)
    driver.wait(1)
    assert sorted(driver.lengths_in_scm()) == [1] * 90 + [2] * 19
    assert driver.state()["scm"]["prefetched"] == 6


def test_the_test_is_made_anew_for_each_message(structure: Open) -> None:
    """Check docs/storage-model.md: at 60 %, eleven come back, not all."""
    driver = filled(open_structure(structure, 100))
    driver.get(count=30)
    state = driver.wait(1)
    assert used_and_scm(state) == (71, 19)


def test_what_would_take_the_structure_above_90_percent_again_is_not_brought_back(structure: Open) -> None:
    driver = open_structure(structure, 100)
    driver.put(1, count=20, priority=9)
    driver.put(40_000, count=2)  # 158 elements each
    driver.put(60_000)  # 236: 592 of 605
    state = driver.wait(1)
    assert (driver.lengths_in_scm(), state["usage_pct"]) == ([60_000], round(100 * 356 / 605, 3))
    for _ in range(3):
        state = driver.wait(40 * 86_400)
    assert (state["scm"]["prestaged"], state["scm"]["prefetched"]) == (1, 0)


def test_what_would_take_the_structure_above_90_percent_is_not_brought_back(scm_structure: Open) -> None:
    driver = scm_structure()
    driver.put(32_768, priority=9)  # 130 of 232 elements
    driver.put(30_000, priority=1)  # 119 more
    assert driver.lengths_in_scm() == [30_000]
    assert moves(driver.wait(60))[:4] == (1, 1, 1, 0)  # 56 % are in use; with it there would be more than 90 %
    driver.get()
    assert moves(driver.state()) == (1, 0, 1, 1, 0)


# -- bandwidth (docs/storage-model.md)


def test_movement_takes_its_time_in_blocks_of_4_kb(structure: Open) -> None:
    driver = open_structure(structure, 100)
    start = driver.time + 1_000_000
    driver.put(SMALL, count=100, time=start)
    for after_us, moved in ((0, 1), (8, 1), (9, 2), (16, 2), (17, 3), (73, 9), (74, 10), (1_000_000, 10)):
        state = driver.send("HEARTBEAT", None, time=start + after_us, store=STORE)
        assert state["scm"]["prestaged"] == moved, after_us


def test_one_message_moves_at_a_time_at_the_speed_of_its_blocks(scm_structure: Open) -> None:
    driver = scm_structure(**SLOW)
    driver.put(100, count=38)
    assert moves(driver.wait(3.906 * MILLISECOND))[:2] == (37, 1)
    assert moves(driver.wait(0.001 * MILLISECOND))[:2] == (36, 2)
    assert moves(driver.wait(3.905 * MILLISECOND))[:2] == (36, 2)  # 7.8125 ms are not over yet
    assert moves(driver.wait(0.001 * MILLISECOND))[:2] == (35, 3)
    assert moves(driver.wait(60))[:2] == (34, 4)


def test_a_message_of_more_blocks_takes_longer(scm_structure: Open) -> None:
    driver = scm_structure(**SLOW)
    driver.put(32_768)
    driver.put(20_000, priority=0)  # 81 x 256 bytes: 6 blocks, 23.4375 ms
    driver.put(20_000, priority=0)
    assert moves(driver.wait(23.437 * MILLISECOND))[1] == 2  # a second has passed between the puts


@pytest.mark.parametrize(("rate", "attribute"), [(MIB, "scm_prestage_rate"), (2 * MIB, "scm_prestage_rate")])
def test_its_rate_is_an_attribute_of_the_estate(structure: Open, rate: int, attribute: str) -> None:
    driver = open_structure(structure, 100, **{attribute: rate})
    start = driver.time + 1_000_000
    driver.put(16 * 256, count=33, time=start)  # 18 elements, 2 blocks; 594 of 605
    block_us = BLOCK * 1_000_000 // rate
    for after_us, moved in ((2 * block_us - 1, 1), (2 * block_us + 1, 2), (60_000_000, 3)):
        state = driver.send("HEARTBEAT", None, time=start + after_us, store=STORE)
        assert state["scm"]["prestaged"] == moved, after_us


def test_pre_fetching_has_a_rate_of_its_own(structure: Open) -> None:
    driver = filled(open_structure(structure, 100, scm_prefetch_rate=MIB))
    driver.get(count=25)
    start = driver.time
    for after_us, moved in ((0, 1), (3_906, 1), (3_907, 2), (7_812, 2), (7_813, 3)):
        state = driver.send("HEARTBEAT", None, time=start + after_us, store=STORE)
        assert state["scm"]["prefetched"] == moved, after_us


# -- a get of a message that is in SCM has to wait


def test_a_get_of_a_message_in_scm_is_a_fault_of_its_blocks(structure: Open) -> None:
    driver = open_structure(structure, 100)
    driver.put(10_000, msgid="A", priority=1)
    driver.put(SMALL, count=90, priority=2)
    assert driver.lengths_in_scm() == [10_000]
    state = driver.get(msgid="A")
    assert (state["scm"]["faults"], state["scm"]["fault_wait_s"]) == (1, 3 * 275e-6)  # 42 times 256 bytes: 3 blocks
    assert (state["scm"]["messages"], state["scm"]["elems"], state["scm"]["used"]) == (0, 0, 0)
    assert used_and_scm(state) == (90, 0)


def test_a_get_of_a_message_in_scm_is_a_fault_that_waits_for_its_blocks(scm_structure: Open) -> None:
    driver = at_90_percent(scm_structure, 33)
    driver.put(100, msgid="A")
    driver.put(4096, msgid="B")  # 18 elements: 4,864 bytes, 2 blocks
    state = driver.get(msgid="B")
    assert (moves(state), state["scm"]["fault_wait_s"]) == ((34, 0, 1, 0, 1), 0.00055)
    state = driver.get(msgid="A")
    assert moves(state) == (33, 0, 1, 0, 1)


def test_the_wait_of_a_block_is_an_attribute_of_the_estate(structure: Open) -> None:
    driver = open_structure(structure, 100, scm_read_us=320)
    for number in range(91):
        driver.put(SMALL, msgid=str(number))
    assert driver.get(msgid="90")["scm"]["fault_wait_s"] == 320e-6


def test_a_get_in_a_unit_of_work_has_the_message_in_the_structure_until_it_ends(structure: Open) -> None:
    driver = open_structure(structure, 100)
    for number in range(95):
        driver.put(SMALL, msgid=str(number))
    state = driver.get(msgid="94", uow="U")
    assert (used_and_scm(state), state["scm"]["faults"]) == ((90, 5), 1)  # what came in pushed another one out
    state = driver.send("COMMIT", uow="U")
    assert (used_and_scm(state), state["messages"]) == ((89, 5), 94)


def test_a_message_whose_get_is_backed_out_moves_again_at_its_age(structure: Open) -> None:
    driver = open_structure(structure, 100)
    for number in range(95):
        driver.put(number, msgid=str(number), uow="P")
    driver.send("COMMIT", uow="P")
    assert driver.lengths_in_scm() == [90, 91, 92, 93, 94]
    driver.get(msgid="94", uow="U")
    assert driver.lengths_in_scm() == [89, 90, 91, 92, 93]
    driver.send("BACKOUT", uow="U")
    assert driver.lengths_in_scm() == [89, 90, 91, 92, 93]
    driver.put(1000)
    driver.put(1001)
    assert driver.lengths_in_scm() == [89, 90, 91, 92, 93, 1000, 1001]
    driver.put(9999, priority=5)
    assert driver.lengths_in_scm() == [89, 90, 91, 92, 93, 94, 1000, 1001]


def test_a_message_read_for_a_get_that_is_backed_out_stays_in_the_structure(scm_structure: Open) -> None:
    driver = at_90_percent(scm_structure)
    driver.put(100, msgid="B")
    assert moves(driver.get(msgid="B", uow="U"))[:2] == (34, 1)  # read, so another one has to go
    assert moves(driver.send("BACKOUT", uow="U")) == (34, 1, 2, 0, 1)


def test_uncommitted_puts_move_and_a_backout_takes_them_out_without_a_fault(structure: Open) -> None:
    driver = open_structure(structure, 100)
    driver.put(SMALL, count=90, priority=1)
    assert driver.put(SMALL, count=5, uow="U")["scm"]["messages"] == 1
    assert used_and_scm(driver.wait(1)) == (90, 5)
    state = driver.send("BACKOUT", uow="U")
    assert (used_and_scm(state), state["scm"]["faults"]) == ((90, 0), 0)


def test_an_uncommitted_put_moves_and_a_message_that_was_got_does_not(scm_structure: Open) -> None:
    driver = at_90_percent(scm_structure, 33)
    driver.put(1, uow="U")
    driver.put(2)
    assert driver.lengths_in_scm() == [2]
    driver.get(uow="V", priority=0)  # the oldest: it stays in use
    driver.put(3)
    assert driver.lengths_in_scm() == [2, 3]
    driver.put(4, count=40, priority=1)
    driver.wait(60)
    assert moves(driver.state())[:2] == (34, 42)  # all of priority 0 but what was got, and 7 of priority 1
    assert sorted(driver.lengths_in_scm()) == [1, 2, 3, *[4] * 7, *[100] * 32]


@pytest.mark.parametrize("op", ["EXPIRE", "CLEAR"])
def test_messages_that_expire_or_are_cleared_leave_scm_without_a_fault(structure: Open, op: str) -> None:
    driver = open_structure(structure, 100)
    driver.put(SMALL, count=95, queue="B.QUEUE", priority=4)
    driver.put(SMALL, count=3)
    driver.wait(1)
    assert sorted(driver.lengths_in_scm()) == [SMALL] * 8
    state = driver.send(op, **({"count": 3} if op == "EXPIRE" else {}))
    assert (state["scm"]["faults"], state["scm"]["messages"], state["ents_used"]) == (0, 5, 90)


def test_expire_and_clear_read_nothing(scm_structure: Open) -> None:
    driver = at_90_percent(scm_structure)
    driver.put(100, msgid="B")
    assert moves(driver.send("EXPIRE", msgid="B")) == (34, 0, 1, 0, 0)
    driver.put(100, msgid="C")
    assert moves(driver.send("CLEAR")) == (0, 0, 2, 0, 0)


def test_a_message_that_a_waiting_get_takes_is_in_neither_chain(structure: Open) -> None:
    driver = open_structure(structure, 100)
    driver.get(count=3)
    driver.put(SMALL, count=93)
    assert used_and_scm(driver.wait(1)) == (90, 0)


# -- bytes in SCM (docs/storage-model.md); SCMMAXSIZE of the document


def test_in_scm_entries_and_elements_take_256_bytes_each_their_sum_in_4_kb_blocks(structure: Open) -> None:
    driver = open_structure(structure, 100)
    for moved in range(1, 12):
        state = driver.put(SMALL, count=91 if moved == 1 else 1)  # 1 entry and 2 elements
        assert state["scm"]["used"] == -(-3 * 256 * moved // BLOCK) * BLOCK


def test_the_entry_of_an_offloaded_message_moves_too(structure: Open) -> None:
    driver = open_structure(structure, 100, offld1_th=0, offld1_sz=4 * KIB, offld2_sz="64K", offld3_sz="64K")
    driver.put(50_000)
    driver.put(SMALL, count=90, priority=1)
    state = driver.wait(1)
    assert driver.lengths_in_scm() == [50_000]
    assert (state["scm"]["elems"], state["offloaded_messages"], state["smds"]["QM01"]["messages"]) == (2, 1, 1)
    assert driver.get(count=91)["smds"]["QM01"]["messages"] == 0


def test_offload_rules_and_fullthreshold_look_at_what_is_in_the_structure(structure: Open) -> None:
    """SMF 74.4: thresholds are on counts that exclude what is in SCM."""
    driver = open_structure(structure, 100, offld3_th=91, offld3_sz=0)
    for _ in range(150):
        state = driver.put(SMALL)
    assert (state["usage_pct"], state["offload_rule"], state["messages"]) == (90.0, 0, 150)


def test_scmmaxsize_bounds_it(structure: Open) -> None:
    driver = open_structure(structure, 100, scm_max_size=2 * BLOCK)  # 10 messages of 3 times 256 bytes
    for _ in range(110):
        state = driver.put(SMALL)
    assert (used_and_scm(state), state["overfull_puts"]) == ((100, 10), 0)
    assert driver.put(SMALL)["overfull_puts"] == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"scm_max_size": 8192},
        {"scm_max_size": 12_287},
        {"facility_scm": 8192},
        {"left_for_augmented": 164},  # 2 % of 8,192 bytes
        {"left_for_augmented": 245},
    ],
)
def test_where_scm_or_augmented_space_has_no_room_nothing_moves_and_the_structure_fills(
    scm_structure: Open, fields: dict[str, int]
) -> None:
    driver = at_90_percent(scm_structure, **fields)
    for count in (4, 4, 2):  # 10 messages of 768 bytes are 7,680
        driver.put(100, count=count)
        driver.wait(1)
    state = driver.put(100)
    assert (moves(state)[:2], state["overfull_puts"]) == ((35, 10), 0)
    assert (state["scm"]["used"], state["scm"]["aug_dynamic"]) == (8192, 164)
    state = driver.put(100, count=4)
    assert (moves(state)[:2], state["overfull_puts"]) == ((39, 10), 1)


def test_without_scm_of_its_coupling_facility_a_structure_has_none(scm_structure: Open) -> None:
    state = at_90_percent(scm_structure, 38, facility_scm=None).wait(1)
    assert (moves(state)[:2], state["scm"]["max"], state["scm"]["aug_fixed"]) == ((38, 0), 0, 8 * 1024**2)


def test_the_scm_of_the_coupling_facility_bounds_it_too(scm_structure: Open) -> None:
    driver = open_structure(scm_structure, 100, facility_scm=BLOCK)
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


# -- over-committed SCM: "SCM is allocated when it is required", so others may leave a structure more than its share

SHARED = {"scm_max_size": 16 * BLOCK, "facility_scm": 16 * BLOCK, "others_scm": 16 * BLOCK}  # 42 messages, at most 85


def one_by_one(driver: StoreDriver, count: int) -> dict[str, Any]:
    """Put messages of 768 bytes in SCM, one after the other; return the last state."""
    for _ in range(count):
        state = driver.put(SMALL)
    return state


def test_a_structure_counts_on_its_share_of_over_committed_scm(scm_structure: Open) -> None:
    state = one_by_one(scm_structure(**SHARED), 80)
    assert (moves(state)[:2], state["scm"]["max"]) == ((38, 42), 8 * BLOCK)


def test_a_put_accepted_with_the_share_used_up_shows_that_others_leave_more(scm_structure: Open) -> None:
    driver = scm_structure(**SHARED)
    one_by_one(driver, 80)
    state = driver.put(SMALL)
    assert (moves(state)[:2], state["scm"]["max"], state["overfull_puts"]) == ((34, 47), 16 * BLOCK, 0)
    state = one_by_one(driver, 38)
    assert (moves(state)[:2], state["overfull_puts"]) == ((34, 85), 0)
    state = one_by_one(driver, 5)
    assert (moves(state)[:2], state["overfull_puts"]) == ((39, 85), 1)  # beyond SCMMAXSIZE nothing may be


@pytest.mark.parametrize(
    "fields",
    [
        {"others_scm": 0, "facility_scm": 8 * BLOCK, "scm_max_size": 8 * BLOCK},
        {"left_for_augmented": 82 * 8},
    ],
)
def test_a_put_beyond_what_no_other_structure_has_shows_nothing(scm_structure: Open, fields: dict[str, int]) -> None:
    state = one_by_one(scm_structure(**(SHARED | fields)), 82)
    assert (state["ents_used"], state["scm"]["max"], state["overfull_puts"]) == (40, 8 * BLOCK, 2)


def test_a_put_refused_where_the_model_has_room_shows_that_no_more_scm_is_left(scm_structure: Open) -> None:
    driver = scm_structure(**SHARED)
    one_by_one(driver, 91)
    state = driver.put(SMALL, reason=2192)
    assert (moves(state)[:2], state["scm"]["max"]) == ((34, 57), 11 * BLOCK)
    state = one_by_one(driver, 5)  # one more fits into the last block
    assert (moves(state)[:2], state["scm"]["max"], state["overfull_puts"]) == ((38, 58), 11 * BLOCK, 0)
    state = driver.put(SMALL)
    assert (state["scm"]["max"], state["overfull_puts"]) == (16 * BLOCK, 0)


def test_a_put_refused_in_a_full_structure_confirms_its_share(scm_structure: Open) -> None:
    driver = scm_structure(**SHARED)
    one_by_one(driver, 80)
    state = driver.put(SMALL, reason=2192)
    assert (moves(state)[:2], state["scm"]["max"], state["full_puts"]) == ((38, 42), 8 * BLOCK, 1)


def test_once_nothing_is_in_scm_any_more_the_share_counts_again(scm_structure: Open) -> None:
    driver = scm_structure(**SHARED)
    one_by_one(driver, 85)
    assert driver.state()["scm"]["max"] == 16 * BLOCK
    driver.get(count=84)
    assert driver.wait(1)["scm"]["max"] == 8 * BLOCK
    assert one_by_one(driver, 79)["scm"]["max"] == 8 * BLOCK


def test_what_puts_have_shown_outlasts_a_rebuild(scm_structure: Open) -> None:
    driver = scm_structure(**SHARED)
    one_by_one(driver, 85)
    assert driver.rebuild()["scm"]["max"] == 16 * BLOCK
    assert driver.rebuild(scm_max_size=12 * BLOCK)["scm"]["max"] == 12 * BLOCK


def test_fixed_augmented_space_is_taken_before_scm_is_used_dynamic_comes_and_goes_with_the_data(
    structure: Open,
) -> None:
    driver = open_structure(structure, 100)
    driver.send("CLEAR")
    assert (driver.state()["scm"]["aug_fixed"], driver.state()["scm"]["aug_dynamic"]) == (8 * MIB, 0)
    driver.put(SMALL, count=100)
    driver.wait(1)
    assert driver.state()["scm"]["aug_dynamic"] == 164  # 2 % of 2 blocks, rounded up
    driver.get(count=100)
    assert driver.state()["scm"]["aug_dynamic"] == 0


def test_augmented_space_comes_out_of_what_the_structures_leave_of_the_coupling_facility(scm_structure: Open) -> None:
    driver = open_structure(scm_structure, 100, facility_scm=GIB, left_for_augmented=82)  # room for one block of SCM
    size = driver.state()["size"]
    driver.put(SMALL, count=100)
    state = driver.wait(1)
    assert (state["scm"]["used"], state["ents_used"], state["size"]) == (BLOCK, 95, size)


# -- ALTER, REBUILD


def test_only_size_and_ratio_cannot_be_altered_while_data_is_in_scm(scm_structure: Open) -> None:
    driver = at_90_percent(scm_structure, 35)
    assert driver.state()["alterable"] is False
    size = driver.state()["size"]
    state = driver.alter(size=size)
    assert (state["refused_alters"], state["size"]) == (1, size)
    state = driver.alter(offld1_th=0, offld1_sz=0)  # MQSC ALTER CFSTRUCT is always taken
    assert (state["refused_alters"], state["offload_rule"]) == (1, 1)
    driver.get(count=30)
    assert driver.wait(1)["alterable"] is True
    assert driver.alter(size=size)["refused_alters"] == 1


def test_a_rebuild_adds_scm_and_takes_it_away(structure: Open) -> None:
    driver = structure(offld1_sz=65_536, offld2_sz=65_536, offld3_sz=65_536)
    assert driver.put(100, count=38)["scm"] is None
    state = driver.rebuild(scm_max_size="1M")
    assert (state["ents_max"], moves(state)[:2]) == (38, (37, 1))
    assert moves(driver.wait(1))[:2] == (34, 4)
    state = driver.rebuild(scm_max_size=None)
    assert (state["ents_max"], state["ents_used"], state["scm"]) == (40, 38, None)
    assert moves(driver.rebuild(scm_max_size="1M")) == (37, 1, 1, 0, 0)


def test_a_rebuild_brings_scm_and_all_messages_may_move(structure: Open) -> None:
    driver = structure(**(NO_RULES | {"size": 104 * ENTRY_AND_6_ELEMENTS}))
    for number in range(100):
        driver.put(number, priority=number % 2, uow="U" if number % 5 == 0 else None)
    driver.get(msgid=None, uow="G")  # 1, of priority 1, which does not move
    assert driver.rebuild(scm_max_size="1G")["ents_max"] == 100
    state = driver.wait(1)
    assert used_and_scm(state) == (90, 10)
    assert driver.lengths_in_scm() == list(range(80, 100, 2))


def test_a_rebuild_that_takes_scm_away_brings_everything_back(structure: Open) -> None:
    driver = filled(open_structure(structure, 100))
    state = driver.rebuild(scm_max_size=None)
    assert (state["scm"], state["ents_used"], state["ents_max"], state["alterable"]) == (None, 120, 104, True)
    assert used_and_scm(driver.rebuild(scm_max_size="1G")) == (119, 1)
    state = driver.wait(1)
    assert (used_and_scm(state), state["scm"]["prestaged"]) == ((90, 30), 30)
    assert driver.lengths_in_scm() == list(range(30, 60))


def test_another_scmmaxsize_leaves_in_scm_what_is_there(structure: Open) -> None:
    driver = filled(open_structure(structure, 100))
    state = driver.rebuild(scm_max_size="8K")
    assert (used_and_scm(state), state["scm"]["max"]) == ((90, 30), 8192)


# -- MEASURE


def test_a_measurement_of_scm_shows_drift(structure: Open) -> None:
    driver = open_structure(structure, 100, scm_max_size=10 * BLOCK)
    driver.put(SMALL, count=100)
    driver.wait(1)
    assert driver.measure(scm={"used": None})["drift_pct"] is None
    assert driver.measure(scm={"used": 4 * BLOCK})["drift_pct"] == -20.0
    assert driver.measure(scm={"used": 2 * BLOCK, "faults": 3})["drift_pct"] == 0.0
