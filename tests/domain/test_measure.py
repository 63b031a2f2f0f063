"""MEASURE: the baseline, what draws it down, and the drift (docs/events.md)."""

from tests.naive.estates import data_set
from tests.support.store_driver import Open


def test_the_first_measure_sets_a_baseline_that_unmatched_gets_draw_down_evenly(structure: Open) -> None:
    driver = structure()
    driver.put(1_000, count=2)
    driver.get(msgid="before the measure")
    state = driver.measure(ents_used=12, elems_used=45, smds={"QM01": {"blocks_used": 5, "pages_used": 30}})
    assert state["baseline"] == {
        "messages": 10,
        "entries": 10,
        "elements": 33,
        "smds": {"QM01": {"blocks": 4, "pages": 30, "messages": None}},
    }
    assert (state["messages"], state["ents_used"], state["elems_used"], state["drift_pct"]) == (12, 12, 45, 0.0)
    state = driver.get(queue="B.QUEUE", count=3)
    assert (state["messages"], state["ents_used"], state["elems_used"]) == (9, 9, 45 - 33 * 3 // 10)
    assert (state["smds"]["QM01"]["blocks_used"], state["smds"]["QM01"]["pages_used"]) == (4, 21)
    assert driver.get(queue="B.QUEUE", count=100)["ents_used"] == 2


def test_there_is_no_baseline_and_no_drift_before_a_measure(structure: Open) -> None:
    state = structure().put()
    assert (state["baseline"], state["drift_pct"]) == (None, None)


def test_what_the_model_holds_beyond_the_measured_is_no_baseline(structure: Open) -> None:
    driver = structure()
    driver.put(count=4)
    assert driver.measure(ents_used=2)["baseline"]["entries"] == 0
    assert driver.state()["ents_used"] == 4


def test_a_put_that_meets_a_held_get_of_before_gives_the_baseline_its_message_back(structure: Open) -> None:
    driver = structure()
    driver.measure(ents_used=10)
    assert driver.get()["messages"] == 9
    assert driver.put()["messages"] == 10


def test_what_is_left_of_the_baseline_counts_for_the_rules_and_for_fullness(structure: Open) -> None:
    driver = structure()  # 40 entries
    assert driver.measure(ents_used=37)["offload_rule"] == 3
    assert driver.put(1_000)["offloaded_messages"] == 1
    assert driver.put(count=3)["overfull_puts"] == 1


def test_what_is_left_of_the_blocks_measured_makes_a_data_set_expand(structure: Open) -> None:
    item = {"QM01": data_set(size=10 * 8_192, secondary=10 * 8_192)}
    driver = structure(ds_block=8_192, offld1_th=0, offld1_sz=0, smds=item, queue_managers=("QM01",))
    driver.measure(smds={"QM01": {"blocks_used": 9}})
    state = driver.put(1_000)["smds"]["QM01"]
    assert (state["blocks_used"], state["blocks_total"]) == (10, 20)


def test_drift_is_the_model_less_the_measured_in_percent_of_the_total_of_the_worst_resource(structure: Open) -> None:
    driver = structure()  # 40 entries, 240 elements
    assert driver.put(1_000, count=4)["drift_pct"] is None
    assert driver.measure(ents_used=2)["drift_pct"] == 5.0
    assert driver.measure(ents_used=8, elems_used=0)["drift_pct"] == -10.0
    assert driver.state()["baseline"]["entries"] == 0
    assert driver.measure(ents_used=4, elems_used=0)["drift_pct"] == 10.0
    assert driver.measure(messages=4)["drift_pct"] == 10.0  # nothing to compare: as it was


def test_a_data_set_without_a_block_has_no_drift(structure: Open) -> None:
    driver = structure(ds_block=8_192, smds={"QM01": data_set(size=20_000)}, queue_managers=("QM01",))
    assert driver.alter(ds_block="32K")["smds"]["QM01"]["blocks_total"] == 0
    assert driver.measure(smds={"QM01": {"blocks_used": 5}})["drift_pct"] is None


def test_null_is_absent(structure: Open) -> None:
    driver = structure()
    state = driver.measure(ents_used=3, elems_used=None, smds=None)
    assert state["baseline"] == {"messages": 3, "entries": 3, "elements": None, "smds": {}}
    assert driver.measure(ents_used=None, smds={"QM01": {"blocks_used": None, "pages_used": 3}})["drift_pct"] == 0.0
