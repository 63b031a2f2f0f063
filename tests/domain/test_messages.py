"""Queues of a state record. Which message an event takes: tests/cases/stores/messages.events."""

from tests.support.store_driver import Open


def test_the_ten_deepest_queues_are_listed_deepest_first(structure: Open) -> None:
    queues = tuple(f"Q{n:02d}" for n in range(12))
    driver = structure(queues=queues)
    for n, queue in enumerate(queues):
        driver.put(10, queue=queue, count=n + 1)
    assert [queue["name"] for queue in driver.state()["queues"]] == list(queues[:1:-1])
    assert driver.state()["queues"][0].items() >= {"name": "Q11", "depth": 12, "bytes": 120}.items()
