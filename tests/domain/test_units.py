"""Messages backed out deep inside a queue. Units of work besides: tests/cases/stores/units.events."""

from kernels.heap import MAX_STEPS
from tests.naive.estates import ENTRY_AND_6_ELEMENTS
from tests.support.store_driver import NO_RULES, Open, StoreDriver


def back_out_inside(driver: StoreDriver) -> list[int]:
    """Back out messages far from both ends of a queue, each in its own unit; return their lengths."""
    count = 3 * MAX_STEPS
    for length in range(1, count + 1):
        driver.put(length, msgid=f"M{length}")
    inside = [count // 2 + step for step in (4, 0, 3, 1, 2)]
    for length in inside:
        driver.get(msgid=f"M{length}", uow=f"U{length}")
    for length in inside:
        driver.send("BACKOUT", uow=f"U{length}")
    return inside


def test_messages_backed_out_deep_inside_a_queue_stand_at_their_age(structure: Open) -> None:
    driver = structure(**NO_RULES)
    inside = back_out_inside(driver)
    for length in (inside[1], inside[2]):
        driver.get(msgid=f"M{length}")
    rest = set(range(1, 3 * MAX_STEPS + 1)) - {inside[1], inside[2]}
    assert driver.get_all() == sorted(rest)


def test_messages_backed_out_deep_inside_a_structure_with_scm_stand_at_their_age(scm_structure: Open) -> None:
    driver = scm_structure(size=100 * ENTRY_AND_6_ELEMENTS)  # nothing is in SCM
    inside = back_out_inside(driver)
    driver.get(msgid=f"M{inside[3]}")
    driver.rebuild(scm_max_size=None)
    assert driver.get_all() == sorted(set(range(1, 3 * MAX_STEPS + 1)) - {inside[3]})


def test_messages_backed_out_deep_inside_a_structure_go_to_scm_at_their_age(scm_structure: Open) -> None:
    driver = scm_structure(size=100 * ENTRY_AND_6_ELEMENTS)
    back_out_inside(driver)
    for _ in range(80):
        driver.put(100, priority=6)  # lower priorities move out first, the youngest of them first
    count = driver.wait(60)["scm"]["messages"]
    assert count > 2 * MAX_STEPS
    assert driver.lengths_in_scm() == list(range(3 * MAX_STEPS + 1 - count, 3 * MAX_STEPS + 1))
