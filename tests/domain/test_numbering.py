"""Sequence numbers and event time of a structure (docs/events.md)."""

from tests.support.store_driver import Open, StoreDriver
from tests.support.workloads import DAY_US, HOUR_US, SECOND_US, START_US
from twin.units import as_text

# -- sequence numbers


def numbered(driver: StoreDriver, *numbers: int) -> tuple[int, int, int]:
    """Put messages with these sequence numbers; return (events, duplicates, gaps)."""
    for seq in numbers:
        driver.put(seq=seq)
    state = driver.state()
    return state["events"], state["duplicates"], state["gaps"]


def test_numbering_starts_at_the_first_number_and_smaller_ones_are_late(structure: Open) -> None:
    assert numbered(structure(), 10, 11, 9, 9, 12) == (4, 1, 0)


def test_a_hole_is_a_gap_until_its_number_comes(structure: Open) -> None:
    assert numbered(structure(), 1, 5) == (2, 0, 3)
    assert numbered(structure(), 1, 5, 3, 3) == (3, 1, 2)


def test_only_the_last_4096_numbers_are_remembered(structure: Open) -> None:
    assert numbered(structure(), 0, 5_000, 905, 904) == (3, 1, 4_998)
    assert numbered(structure(), 0, 4_096, 1, 0) == (3, 1, 4_094)


def test_a_number_comes_round_to_the_place_of_one_4096_before_it(structure: Open) -> None:
    assert numbered(structure(), 7, 7 + 4_096, 7 + 4_096, 8) == (3, 1, 4_094)
    assert numbered(structure(), *range(100), 99 + 4_095, *range(100, 110)) == (111, 0, 4_094 - 10)


def test_the_largest_number_there_is_wraps_nothing(structure: Open) -> None:
    highest = 2**63 - 1
    assert numbered(structure(), 5, highest, highest, highest - 1) == (3, 1, highest - 5 - 2)


def test_a_restart_begins_a_new_numbering_of_that_queue_manager_and_keeps_what_was_missing(structure: Open) -> None:
    driver = structure()
    numbered(driver, 1, 4)
    driver.put(seq=1, qmgr="QM02")
    driver.send("RESTART", None)
    assert numbered(driver, 1, 2, 2) == (6, 1, 2)
    assert driver.put(seq=1, qmgr="QM02")["duplicates"] == 2


def test_a_duplicate_moves_nothing_not_even_the_clock(structure: Open) -> None:
    driver = structure()
    before = driver.put(seq=1)
    assert driver.put(seq=1, time=START_US + HOUR_US) == before | {"duplicates": 1}


# -- event time


def time_after(structure: Open, *times: int) -> str:
    """Return the clock of a structure after HEARTBEATs at these times."""
    driver = structure()
    for time in times:
        driver.send("HEARTBEAT", None, time=START_US + time)
    return str(driver.state()["time"])


def test_the_clock_is_the_latest_time_and_a_day_ahead_is_believed(structure: Open) -> None:
    assert structure().state()["time"] is None
    assert time_after(structure, 0, 5, 3) == as_text(START_US + 5)
    assert time_after(structure, 0, DAY_US) == as_text(START_US + DAY_US)


def test_a_time_far_ahead_is_believed_only_when_the_next_event_is_near_it(structure: Open) -> None:
    far = 40 * DAY_US
    for times, clock in (
        ((0, far), 0),
        ((0, far, 1, far), 1),
        ((0, far, far - DAY_US), far),
        ((0, far, far + DAY_US), far + DAY_US),
        ((0, far, far + DAY_US + 1), 0),
        ((0, far, far + DAY_US + 1, far + DAY_US + 1), far + DAY_US + 1),
    ):
        assert time_after(structure, *times) == as_text(START_US + clock)


def test_a_late_event_counts_but_does_not_turn_the_clock_back(structure: Open) -> None:
    driver = structure()
    driver.put()
    state = driver.put(time=driver.time - 30 * DAY_US)
    assert (state["messages"], state["time"]) == (2, as_text(START_US + SECOND_US))
