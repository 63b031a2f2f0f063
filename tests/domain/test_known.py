"""Usages that are known: what was neither counted nor measured is null, never 0 (docs/state.md)."""

from typing import Any

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


@pytest.mark.parametrize("op", ["PUT", "GET", "COMMIT", "BACKOUT", "PREPARE", "EXPIRE", "CLEAR"])
def test_one_operation_of_a_queue_counts_what_the_store_holds(structure: Open, op: str) -> None:
    state = structure().send(op, length=100, uow="unit")
    held = int(op == "PUT")
    assert (state["messages"], state["ents_used"], state["elems_used"]) == (held, held, 2 * held)
    assert state["smds"]["QM01"]["blocks_used"] == 1
    assert state["usage_pct"] is not None


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


def test_the_first_measurement_after_an_operation_is_the_last_that_sets_a_baseline(structure: Open) -> None:
    driver = structure()
    driver.measure(smds={"QM01": {"blocks_used": 5}})
    driver.put(100)
    state = driver.measure(ents_used=5)
    assert (state["ents_used"], state["drift_pct"], state["baseline"]["entries"]) == (1, -10.0, None)


def test_pages_without_operations_or_messages_measured_hold_an_estimate(page_set: Open) -> None:
    state = page_set().measure(pages_used=30)
    assert (state["messages"], state["messages_estimated"], state["pages_used"], state["pages_unused"]) == (
        *(None, 30, 30, 68),
    )
    assert (state["pages_persistent"], state["pages_nonpersistent"]) == (None, None)
    assert state["measured"] == ["pages_used"]


def test_estimated_messages_are_not_among_those_counted(page_set: Open) -> None:
    driver = page_set()
    driver.measure(pages_used=30)
    state = driver.put(100)
    assert (state["messages"], state["messages_estimated"]) == (1, 30)
    state = driver.get(queue="A.QUEUE", msgid="one of before")
    assert (state["messages"], state["messages_estimated"], state["pages_used"]) == (1, 29, 30)


def test_two_of_the_three_counts_of_pages_give_the_third(page_set: Open) -> None:
    state = page_set().measure(pages_persistent=4, pages_nonpersistent=3)
    assert (state["pages_used"], state["usage_pct"]) == (7, round(700 / 98, 3))
    state = page_set().measure(pages_used=9, pages_nonpersistent=3)
    assert (state["pages_persistent"], state["pages_nonpersistent"]) == (6, 3)


def test_a_page_set_of_which_only_the_buffer_pool_was_measured_is_unknown(page_set: Open) -> None:
    state = page_set().measure(buffer_pool_pct=70)
    assert (state["pages_used"], state["usage_pct"], state["messages"]) == (None, None, None)
    assert (state["measured"], state["baseline"]) == (["buffer_pool_pct"], None)
    assert page_set().state()["messages_estimated"] == 0


@pytest.mark.parametrize(
    ("measured", "known"),
    [
        ({"file_bytes": 512 * 40}, {"file_bytes", "blocks"}),
        ({"messages": 3}, {"messages"}),
        ({"blocks_persistent": 30}, {"blocks_persistent"}),
        (
            {"blocks_persistent": 30, "blocks_nonpersistent": 0},
            {"blocks_persistent", "blocks_nonpersistent", "blocks", "blocks_free", "blocks_allocated"}
            | {"file_bytes", "usage_pct"},
        ),
    ],
)
def test_a_queue_file_is_known_as_far_as_it_was_measured(
    queue_file: Open, measured: dict[str, Any], known: set[str]
) -> None:
    state = queue_file().measure(**measured)
    names = ("messages", "blocks", "blocks_free", "blocks_allocated", "blocks_persistent", "blocks_nonpersistent")
    assert {name for name in (*names, "file_bytes", "usage_pct") if state[name] is not None} == known


def test_storage_class_memory_is_known_when_operations_are_counted(scm_structure: Open) -> None:
    driver = scm_structure()
    state = driver.wait(1)
    assert [state["scm"][name] for name in ("used", "ents", "elems", "messages", "aug_dynamic")] == [None] * 5
    assert driver.send("CLEAR")["scm"]["used"] == 0
