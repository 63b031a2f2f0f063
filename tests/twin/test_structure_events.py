"""Effects of each event on the messages of a structure (docs/events.md)."""

import pytest

from tests.kernels.driver import TwinDriver
from tests.support.workloads import DAY_US, HOUR_US, SECOND_US, START_US
from twin.units import as_text


def lengths_in_order(driver: TwinDriver, **get: object) -> list[int]:
    """Return the lengths of the messages in the order in which they are got."""
    values = []
    while driver.state()["messages"]:
        before = driver.state()["bytes"]
        values.append(before - driver.get(**get)["bytes"])
    return values


# -- which message


def test_the_next_message_is_of_the_highest_priority_then_the_oldest() -> None:
    driver = TwinDriver()
    for length, priority in ((1, 0), (2, 5), (3, 5), (4, 9)):
        driver.put(length, priority=priority)
    assert lengths_in_order(driver) == [4, 2, 3, 1]


def test_a_message_id_need_not_be_unique_and_belongs_to_its_queue() -> None:
    driver = TwinDriver()
    driver.put(1, msgid="X", queue="B.QUEUE")
    driver.put(2, msgid="X")
    driver.put(4, msgid="X", priority=1)
    assert driver.get(msgid="X")["bytes"] == 3
    assert driver.get(msgid="X")["bytes"] == 1
    assert driver.get(msgid="X")["unmatched_gets"] == 1


def test_an_expire_without_msgid_takes_the_oldest_whatever_its_priority() -> None:
    driver = TwinDriver()
    driver.put(1)
    driver.put(2, priority=9)
    assert driver.did("EXPIRE")["bytes"] == 2
    assert driver.did("EXPIRE", count=5)["unmatched_gets"] == 0
    assert driver.did("EXPIRE", msgid="unknown")["messages"] == 0


def test_clear_spares_uncommitted_messages_and_other_queues() -> None:
    driver = TwinDriver()
    driver.put(1)
    driver.get(uow="U")
    driver.put(2, uow="U")
    driver.put(4, queue="B.QUEUE")
    driver.put(8)
    assert driver.did("CLEAR")["bytes"] == 7


def test_an_alias_leads_to_its_queue_but_has_a_numbering_of_its_own() -> None:
    driver = TwinDriver()
    driver.put(7, queue="ALIAS.QUEUE", seq=1)
    state = driver.put(8, seq=1)
    assert (state["queues"], state["duplicates"]) == ([{"name": "A.QUEUE", "depth": 2, "bytes": 15}], 0)


def test_the_ten_deepest_queues_are_told_deepest_first() -> None:
    queues = tuple(f"Q{n:02d}" for n in range(12))
    driver = TwinDriver(queues=queues)
    for n, queue in enumerate(queues):
        driver.put(10, queue=queue, count=n + 1)
    assert [queue["name"] for queue in driver.state()["queues"]] == list(queues[:1:-1])
    assert driver.state()["queues"][0] == {"name": "Q11", "depth": 12, "bytes": 120}


# -- units of work


def test_storage_is_taken_at_the_put_and_freed_at_the_commit_of_the_get() -> None:
    driver = TwinDriver()
    assert driver.put(uow="U")["uncommitted"] == 1
    assert driver.did("COMMIT", uow="U")["uncommitted"] == 0
    state = driver.get(uow="V", qmgr="QM02")
    assert (state["messages"], state["ents_used"], state["uncommitted"]) == (1, 1, 1)
    assert driver.did("COMMIT", uow="V", qmgr="QM01")["messages"] == 1  # another unit: never seen
    assert driver.did("COMMIT", uow="V", qmgr="QM02", queue="B.QUEUE")["messages"] == 1
    assert driver.did("COMMIT", uow="V", qmgr="QM02")["messages"] == 0


def test_a_backout_frees_puts_and_puts_messages_back_at_their_age() -> None:
    driver = TwinDriver()
    for length in (1, 2, 4, 8):
        driver.put(length)
    driver.get(uow="U", count=3)
    driver.put(16, uow="U")
    assert driver.did("BACKOUT", uow="U")["bytes"] == 15
    assert lengths_in_order(driver) == [1, 2, 4, 8]


def test_messages_committed_late_stand_at_the_age_of_their_put() -> None:
    driver = TwinDriver()
    driver.put(1, uow="U")
    driver.put(2)
    driver.put(4, uow="U")
    driver.put(8)
    driver.did("COMMIT", uow="U")
    assert lengths_in_order(driver) == [1, 2, 4, 8]


def test_a_commit_with_reason_2003_is_a_backout_and_one_with_another_reason_nothing() -> None:
    driver = TwinDriver()
    driver.put(uow="U")
    assert driver.did("COMMIT", uow="U", reason=2219)["uncommitted"] == 1
    assert driver.did("COMMIT", uow="U", reason=2003)["messages"] == 0


def test_a_restart_backs_out_the_units_of_its_queue_manager_and_shared_messages_stay() -> None:
    driver = TwinDriver()
    driver.put(1, persistent=False)
    driver.get(uow="U")
    driver.put(2, uow="U", queue="B.QUEUE")
    driver.put(4, uow="U", qmgr="QM02")
    state = driver.did("RESTART", None)
    assert (state["bytes"], state["uncommitted"]) == (5, 1)


@pytest.mark.parametrize("op", ["PUT", "GET"])
def test_what_failed_stored_and_removed_nothing(op: str) -> None:
    driver = TwinDriver()
    driver.put()
    state = driver.did(op, reason=2053, **({"length": 5} if op == "PUT" else {}))
    assert (state["messages"], state["unmatched_gets"], state["full_puts"], state["events"]) == (1, 0, 0, 2)


# -- gets held aside


def test_a_get_before_its_put_takes_the_message_when_it_comes() -> None:
    driver = TwinDriver()
    assert driver.get(msgid="X")["unmatched_gets"] == 1
    assert driver.put(msgid="Y")["messages"] == 1
    state = driver.put(msgid="X")
    assert (state["messages"], state["unmatched_gets"]) == (1, 0)


def test_a_get_waits_for_an_uncommitted_put_even_of_its_own_unit() -> None:
    driver = TwinDriver()
    driver.put(msgid="X", uow="U")
    assert driver.get(msgid="X", uow="U")["unmatched_gets"] == 1
    state = driver.did("COMMIT", uow="U")
    assert (state["messages"], state["unmatched_gets"]) == (0, 0)


def test_anonymous_gets_beyond_what_is_there_are_held_one_by_one() -> None:
    driver = TwinDriver()
    driver.put(count=2)
    assert driver.get(count=5)["unmatched_gets"] == 3
    state = driver.put(count=4)
    assert (state["messages"], state["unmatched_gets"]) == (1, 0)


def test_of_several_held_gets_the_first_takes_the_message_by_id_or_not() -> None:
    for first, second in (({"msgid": "X"}, {}), ({}, {"msgid": "X"})):
        driver = TwinDriver()
        driver.get(uow="U", **first)
        driver.get(uow="V", **second)
        driver.put(msgid="X")
        assert driver.did("COMMIT", uow="V")["messages"] == 1
        assert driver.did("COMMIT", uow="U")["messages"] == 0


def test_a_get_backed_out_feeds_a_held_get_of_another() -> None:
    driver = TwinDriver()
    driver.put()
    driver.get(uow="U")
    driver.get(qmgr="QM02")
    state = driver.did("BACKOUT", uow="U")
    assert (state["messages"], state["unmatched_gets"]) == (0, 0)


def test_a_held_get_in_a_unit_waits_on_after_commit_and_is_dropped_by_backout() -> None:
    driver = TwinDriver()
    driver.get(uow="U")
    driver.get(uow="V")
    driver.did("COMMIT", uow="U")
    assert driver.did("BACKOUT", uow="V")["unmatched_gets"] == 1
    assert driver.put()["messages"] == 0


@pytest.mark.parametrize("keyed", [{}, {"msgid": "X"}])
def test_a_held_get_expires_after_an_hour_of_event_time_and_stays_counted(keyed: dict[str, str]) -> None:
    driver = TwinDriver()
    driver.get(**keyed)
    held_at = driver.time
    driver.get(uow="U", **keyed)
    driver.put(time=held_at + HOUR_US, **keyed)  # the first is an hour old now, the second a second less
    state = driver.state()
    assert (state["uncommitted"], state["unmatched_gets"]) == (1, 1)
    assert driver.did("BACKOUT", uow="U")["messages"] == 1


def test_an_expired_get_of_a_unit_stays_counted_after_its_backout() -> None:
    driver = TwinDriver()
    driver.get(uow="U")
    driver.wait(3_600)
    assert driver.did("BACKOUT", uow="U")["unmatched_gets"] == 1


def test_expired_gets_give_back_their_memory_and_stay_counted() -> None:
    driver = TwinDriver()
    for _ in range(20):
        driver.get(count=10, qmgr="QM01")
        driver.get(msgid="never")
        driver.wait(3_600)
    assert driver.state()["unmatched_gets"] == 20 * 11
    assert driver.twin.tables.store.scalars[0]["held_high"] <= 2 * 11


# -- sequence numbers


def numbered(driver: TwinDriver, *numbers: int) -> tuple[int, int, int]:
    for seq in numbers:
        driver.put(seq=seq)
    state = driver.state()
    return state["events"], state["duplicates"], state["gaps"]


def test_numbering_starts_at_the_first_number_and_smaller_ones_are_late() -> None:
    assert numbered(TwinDriver(), 10, 11, 9, 9, 12) == (4, 1, 0)


def test_a_hole_is_a_gap_until_its_number_comes() -> None:
    assert numbered(TwinDriver(), 1, 5) == (2, 0, 3)
    assert numbered(TwinDriver(), 1, 5, 3, 3) == (3, 1, 2)


def test_only_the_last_4096_numbers_are_remembered() -> None:
    assert numbered(TwinDriver(), 0, 5_000, 905, 904) == (3, 1, 4_998)
    assert numbered(TwinDriver(), 0, 4_096, 1, 0) == (3, 1, 4_094)


def test_a_number_comes_round_to_the_place_of_one_4096_before_it() -> None:
    assert numbered(TwinDriver(), 7, 7 + 4_096, 7 + 4_096, 8) == (3, 1, 4_094)
    assert numbered(TwinDriver(), *range(100), 99 + 4_095, *range(100, 110)) == (111, 0, 4_094 - 10)


def test_the_largest_number_there_is_wraps_nothing() -> None:
    highest = 2**63 - 1
    assert numbered(TwinDriver(), 5, highest, highest, highest - 1) == (3, 1, highest - 5 - 2)


def test_a_restart_begins_a_new_numbering_of_that_queue_manager_and_keeps_what_was_missing() -> None:
    driver = TwinDriver()
    numbered(driver, 1, 4)
    driver.put(seq=1, qmgr="QM02")
    driver.did("RESTART", None)
    assert numbered(driver, 1, 2, 2) == (6, 1, 2)
    assert driver.put(seq=1, qmgr="QM02")["duplicates"] == 2


def test_a_duplicate_moves_nothing_not_even_the_clock() -> None:
    driver = TwinDriver()
    before = driver.put(seq=1)
    assert driver.put(seq=1, time=START_US + HOUR_US) == before | {"duplicates": 1}


# -- event time


def time_after(*times: int) -> str:
    driver = TwinDriver()
    for time in times:
        driver.did("HEARTBEAT", None, store="QSG1/APP1", time=START_US + time)
    return str(driver.state()["time"])


def test_the_clock_is_the_latest_time_and_a_day_ahead_is_believed() -> None:
    assert TwinDriver().state()["time"] is None
    assert time_after(0, 5, 3) == as_text(START_US + 5)
    assert time_after(0, DAY_US) == as_text(START_US + DAY_US)


def test_a_time_far_ahead_is_believed_only_when_the_next_event_is_near_it() -> None:
    far = 40 * DAY_US
    for times, clock in (
        ((0, far), 0),
        ((0, far, 1, far), 1),
        ((0, far, far - DAY_US), far),
        ((0, far, far + DAY_US), far + DAY_US),
        ((0, far, far + DAY_US + 1), 0),
        ((0, far, far + DAY_US + 1, far + DAY_US + 1), far + DAY_US + 1),
    ):
        assert time_after(*times) == as_text(START_US + clock)


def test_a_late_event_counts_but_does_not_turn_the_clock_back() -> None:
    driver = TwinDriver()
    driver.put()
    state = driver.put(time=driver.time - 30 * DAY_US)
    assert (state["messages"], state["time"]) == (2, as_text(START_US + SECOND_US))
