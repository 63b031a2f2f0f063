"""Usages that are known: what was neither counted nor measured is null, never 0 (docs/state.md)."""

import pytest

from tests.support.store_driver import Open

CONTENTS = ("messages", "bytes", "uncommitted", "in_doubt", "expired_held")


@pytest.mark.parametrize("op", ["HEARTBEAT", "RESTART", "ALTER"])
def test_what_touches_no_queue_counts_nothing(structure: Open, op: str) -> None:
    driver = structure()
    state = driver.send(op, None, attributes={"offld1_th": 60})
    assert [state[name] for name in (*CONTENTS, "ents_used", "elems_used", "usage_pct")] == [None] * 8
    assert (state["offloaded_messages"], state["elems_low"], state["elems_high"]) == (None, None, None)
    assert state["smds"]["QM01"]["blocks_used"] is None
    assert (state["measured"], state["events"], state["ents_max"]) == ([], 1, 40)


def test_data_sets_measured_alone_leave_the_structure_unknown(structure: Open) -> None:
    state = structure().measure(smds={"QM01": {"blocks_used": 5, "messages": 9}})
    assert (state["ents_used"], state["elems_used"], state["usage_pct"], state["messages"]) == (None, None, None, None)
    assert (state["smds"]["QM01"]["blocks_used"], state["smds"]["QM01"]["messages"]) == (5, 9)
    assert (state["smds"]["QM01"]["pages_used"], state["smds"]["QM02"]["blocks_used"]) == (None, None)
    assert state["measured"] == ["smds/QM01/blocks_used", "smds/QM01/messages"]
    blocks = {"blocks": 4, "pages": None, "messages": 9}
    assert state["baseline"] == {"messages": None, "entries": None, "elements": None, "smds": {"QM01": blocks}}


def test_a_later_measurement_of_a_store_without_operations_adds_what_it_measures_first(structure: Open) -> None:
    driver = structure()
    driver.measure(smds={"QM01": {"blocks_used": 5}})
    state = driver.measure(ents_used=20)
    assert (state["ents_used"], state["messages"], state["elems_used"]) == (20, 20, None)
    assert (state["usage_pct"], state["drift_pct"]) == (None, 0.0)
    state = driver.measure(elems_used=60, smds={"QM02": {"pages_used": 7}, "QM01": {"blocks_used": 9}})
    assert (state["ents_used"], state["elems_used"], state["usage_pct"]) == (20, 60, 50.0)
    assert (state["smds"]["QM01"]["blocks_used"], state["smds"]["QM02"]["pages_used"]) == (5, 7)
    assert state["measured"] == ["elems_used", "ents_used", "smds/QM01/blocks_used", "smds/QM02/pages_used"]
    assert state["baseline"]["smds"] == {
        "QM01": {"blocks": 4, "pages": None, "messages": None},
        "QM02": {"blocks": None, "pages": 7, "messages": None},
    }


def test_estimated_messages_are_not_among_those_counted(page_set: Open) -> None:
    driver = page_set()
    driver.measure(pages_used=30)
    state = driver.put(100)
    assert (state["messages"], state["messages_estimated"]) == (1, 30)
    state = driver.get(queue="A.QUEUE", msgid="one of before")
    assert (state["messages"], state["messages_estimated"], state["pages_used"]) == (1, 29, 30)
