"""Effects of an event on the messages of a structure: which message, and gets held aside (docs/events.md)."""

import pytest

from tests.support.store_driver import NO_RULES, Open
from tests.support.workloads import HOUR_US

# -- which message


def test_the_next_message_is_of_the_highest_priority_then_the_oldest(structure: Open) -> None:
    driver = structure()
    for length, priority in ((1, 0), (2, 5), (3, 5), (4, 9)):
        driver.put(length, priority=priority)
    assert driver.get_all() == [4, 2, 3, 1]


def test_a_message_id_need_not_be_unique_and_belongs_to_its_queue(structure: Open) -> None:
    driver = structure()
    driver.put(1, msgid="X", queue="B.QUEUE")
    driver.put(2, msgid="X")
    driver.put(4, msgid="X", priority=1)
    assert driver.get(msgid="X")["bytes"] == 3
    assert driver.get(msgid="X")["bytes"] == 1
    assert driver.get(msgid="X")["unmatched_gets"] == 1


def test_an_expire_without_msgid_takes_the_oldest_whatever_its_priority(structure: Open) -> None:
    driver = structure()
    driver.put(1)
    driver.put(2, priority=9)
    assert driver.send("EXPIRE")["bytes"] == 2
    assert driver.send("EXPIRE", count=5)["unmatched_gets"] == 0
    assert driver.send("EXPIRE", msgid="unknown")["messages"] == 0


def test_clear_spares_uncommitted_messages_and_other_queues(structure: Open) -> None:
    driver = structure()
    driver.put(1)
    driver.get(uow="U")
    driver.put(2, uow="U")
    driver.put(4, queue="B.QUEUE")
    driver.put(8)
    assert driver.send("CLEAR")["bytes"] == 7


def test_an_alias_leads_to_its_queue_but_has_a_numbering_of_its_own(structure: Open) -> None:
    driver = structure()
    driver.put(7, queue="ALIAS.QUEUE", seq=1)
    state = driver.put(8, seq=1)
    [queue] = state["queues"]
    assert (queue["name"], queue["depth"], queue["bytes"], state["duplicates"]) == ("A.QUEUE", 2, 15, 0)


def test_the_ten_deepest_queues_are_listed_deepest_first(structure: Open) -> None:
    queues = tuple(f"Q{n:02d}" for n in range(12))
    driver = structure(queues=queues)
    for n, queue in enumerate(queues):
        driver.put(10, queue=queue, count=n + 1)
    assert [queue["name"] for queue in driver.state()["queues"]] == list(queues[:1:-1])
    assert driver.state()["queues"][0].items() >= {"name": "Q11", "depth": 12, "bytes": 120}.items()


@pytest.mark.parametrize("op", ["PUT", "GET"])
def test_what_failed_stored_and_removed_nothing(structure: Open, op: str) -> None:
    driver = structure()
    driver.put()
    state = driver.send(op, reason=2053, **({"length": 5} if op == "PUT" else {}))
    assert (state["messages"], state["unmatched_gets"], state["full_puts"], state["events"]) == (1, 0, 0, 2)


def test_a_failed_put_a_full_put_and_a_put_to_a_waiting_getter_store_nothing(structure: Open) -> None:
    driver = structure()
    driver.put(reason=2053)
    driver.put(reason=2192, count=7)
    state = driver.put(direct=True)
    assert (state["messages"], state["full_puts"], state["events"]) == (0, 7, 3)
    driver.put()
    state = driver.get(reason=2033)
    assert (state["messages"], state["unmatched_gets"]) == (1, 0)


# -- gets held aside


def test_a_get_before_its_put_takes_the_message_when_it_comes(structure: Open) -> None:
    driver = structure()
    assert driver.get(msgid="X")["unmatched_gets"] == 1
    assert driver.put(msgid="Y")["messages"] == 1
    state = driver.put(msgid="X")
    assert (state["messages"], state["unmatched_gets"]) == (1, 0)


def test_a_get_waits_for_an_uncommitted_put_even_of_its_own_unit(structure: Open) -> None:
    driver = structure()
    driver.put(msgid="X", uow="U")
    assert driver.get(msgid="X", uow="U")["unmatched_gets"] == 1
    state = driver.send("COMMIT", uow="U")
    assert (state["messages"], state["unmatched_gets"]) == (0, 0)


def test_a_message_taken_by_a_held_get_was_stored_and_may_have_been_too_much(structure: Open) -> None:
    driver = structure(**NO_RULES)
    driver.put(count=40, queue="B.QUEUE")
    driver.get()
    state = driver.put()
    assert (state["messages"], state["overfull_puts"]) == (40, 1)


def test_anonymous_gets_beyond_what_is_there_are_held_one_by_one(structure: Open) -> None:
    driver = structure()
    driver.put(count=2)
    assert driver.get(count=5)["unmatched_gets"] == 3
    state = driver.put(count=4)
    assert (state["messages"], state["unmatched_gets"]) == (1, 0)


def test_of_several_held_gets_the_first_takes_the_message_by_id_or_not(structure: Open) -> None:
    for first, second in (({"msgid": "X"}, {}), ({}, {"msgid": "X"})):
        driver = structure()
        driver.get(uow="U", **first)
        driver.get(uow="V", **second)
        driver.put(msgid="X")
        assert driver.send("COMMIT", uow="V")["messages"] == 1
        assert driver.send("COMMIT", uow="U")["messages"] == 0


def test_a_get_backed_out_feeds_a_held_get_of_another(structure: Open) -> None:
    driver = structure()
    driver.put()
    driver.get(uow="U")
    driver.get(qmgr="QM02")
    state = driver.send("BACKOUT", uow="U")
    assert (state["messages"], state["unmatched_gets"]) == (0, 0)


def test_a_held_get_in_a_unit_waits_on_after_commit_and_is_dropped_by_backout(structure: Open) -> None:
    driver = structure()
    driver.get(uow="U")
    driver.get(uow="V")
    driver.send("COMMIT", uow="U")
    assert driver.send("BACKOUT", uow="V")["unmatched_gets"] == 1
    assert driver.put()["messages"] == 0


@pytest.mark.parametrize("keyed", [{}, {"msgid": "X"}])
def test_a_held_get_expires_after_an_hour_of_event_time_and_stays_counted(
    structure: Open, keyed: dict[str, str]
) -> None:
    driver = structure()
    driver.get(**keyed)
    held_at = driver.time
    driver.get(uow="U", **keyed)
    driver.put(time=held_at + HOUR_US, **keyed)  # the first is an hour old now, the second a second less
    state = driver.state()
    assert (state["uncommitted"], state["unmatched_gets"]) == (1, 1)
    driver.get(msgid="Y", uow="U")  # dropped by the backout, so no longer counted
    state = driver.send("BACKOUT", uow="U")
    assert (state["messages"], state["unmatched_gets"]) == (1, 1)


def test_an_expired_get_of_a_unit_stays_counted_after_its_backout(structure: Open) -> None:
    driver = structure()
    driver.get(uow="U")
    driver.wait(3_600)
    assert driver.send("BACKOUT", uow="U")["unmatched_gets"] == 1
