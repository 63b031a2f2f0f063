"""Units of work of a structure: puts and gets until their commit or backout (docs/events.md)."""

from kernels.heap import MAX_STEPS
from tests.naive.estates import ENTRY_AND_6_ELEMENTS
from tests.support.store_driver import NO_RULES, Open, StoreDriver


def test_storage_is_taken_at_the_put_and_freed_at_the_commit_of_the_get(structure: Open) -> None:
    driver = structure()
    assert driver.put(uow="U")["uncommitted"] == 1
    assert driver.send("COMMIT", uow="U")["uncommitted"] == 0
    state = driver.get(uow="V", qmgr="QM02")
    assert (state["messages"], state["ents_used"], state["uncommitted"]) == (1, 1, 1)
    assert driver.send("COMMIT", uow="V", qmgr="QM01")["messages"] == 1  # another unit: never seen
    assert driver.send("COMMIT", uow="V", qmgr="QM02", queue="B.QUEUE")["messages"] == 1
    assert driver.send("COMMIT", uow="V", qmgr="QM02")["messages"] == 0


def test_a_backout_frees_puts_and_puts_messages_back_at_their_age(structure: Open) -> None:
    driver = structure()
    for length in (1, 2, 4, 8):
        driver.put(length)
    driver.get(uow="U", count=3)
    driver.put(16, uow="U")
    assert driver.send("BACKOUT", uow="U")["bytes"] == 15
    assert driver.get_all() == [1, 2, 4, 8]


def test_messages_committed_late_stand_at_the_age_of_their_put(structure: Open) -> None:
    driver = structure()
    driver.put(1, uow="U")
    driver.put(2)
    driver.put(4, uow="U")
    driver.put(8)
    driver.send("COMMIT", uow="U")
    assert driver.get_all() == [1, 2, 4, 8]


def test_a_commit_with_reason_2003_is_a_backout_and_one_with_another_reason_nothing(structure: Open) -> None:
    driver = structure()
    driver.put(uow="U")
    assert driver.send("COMMIT", uow="U", reason=2219)["uncommitted"] == 1
    assert driver.send("COMMIT", uow="U", reason=2003)["messages"] == 0


def test_a_restart_backs_out_the_units_of_its_queue_manager_and_shared_messages_stay(structure: Open) -> None:
    driver = structure()
    driver.put(1, persistent=False)
    driver.get(uow="U")
    driver.put(2, uow="U", queue="B.QUEUE")
    driver.put(4, uow="U", qmgr="QM02")
    state = driver.send("RESTART", None)
    assert (state["bytes"], state["uncommitted"]) == (5, 1)


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


def test_a_get_does_not_see_a_put_before_its_commit(structure: Open) -> None:
    """It is held aside until the commit makes the message visible, and takes another one that is visible before."""
    driver = structure()
    driver.put(1, uow="U", qmgr="QM02")
    state = driver.get()
    assert (state["messages"], state["unmatched_gets"]) == (1, 1)
    driver.put(2, uow="V", qmgr="QM02")
    state = driver.send("COMMIT", uow="V", qmgr="QM02")
    assert (state["bytes"], state["unmatched_gets"]) == (1, 0)
    assert driver.send("COMMIT", uow="U", qmgr="QM02")["bytes"] == 1
