"""Storage class memory behind a structure, rule by rule.

Sources: [IBM: How storage class memory works with IBM MQ for z/OS], here "the document"; docs/storage-model.md.
"""

from typing import Any

from tests.naive.estates import ENTRY_AND_6_ELEMENTS
from tests.support.store_driver import GIB, NO_RULES, Open, StoreDriver


def open_structure(structure: Open, entries: int = 100, **fields: Any) -> StoreDriver:
    """Open a structure with SCM that has `entries`, 97 of 100: 88 are above 90 %, 67 are at most 70 %."""
    size = -(-entries * 100 // 97) * ENTRY_AND_6_ELEMENTS
    return structure(**(NO_RULES | {"size": size, "scm_max_size": GIB} | fields))


def used_and_scm(state: dict[str, Any]) -> tuple[int, int]:
    """Return (entries in the structure, in SCM)."""
    return state["ents_used"], state["scm"]["ents"]


# -- pre-staging: SCMALGORITHM of the document


def test_the_lowest_priority_goes_first_of_these_the_one_put_last(structure: Open) -> None:
    driver = open_structure(structure, 100)
    for number in range(60):
        driver.put(number, priority=(5, 2, 7)[number % 3])
    driver.put(99, count=35, priority=9)
    driver.wait(1)
    assert driver.lengths_in_scm() == [46, 49, 52, 55, 58]  # of priority 2, the last five of 1, 4, 7 ... 58


# -- ALTER, REBUILD


def test_a_rebuild_brings_scm_and_all_messages_may_move(structure: Open) -> None:
    driver = structure(**(NO_RULES | {"size": 104 * ENTRY_AND_6_ELEMENTS}))
    for number in range(100):
        driver.put(number, priority=number % 2, uow="U" if number % 5 == 0 else None)
    driver.get(msgid=None, uow="G")  # 1, of priority 1, which does not move
    assert driver.rebuild(scm_max_size="1G")["ents_max"] == 100
    state = driver.wait(1)
    assert used_and_scm(state) == (90, 10)
    assert driver.lengths_in_scm() == list(range(80, 100, 2))
