"""The oracle of a structure, against published tables and cases worked by hand."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.naive import NaiveStructure
from tests.naive.estates import ENTRY_AND_6_ELEMENTS, data_set, structure, write_estate
from tests.support.oracle_driver import OracleDriver
from tests.support.profile import examples
from tests.support.store_driver import NO_RULES
from tests.support.workloads import DAY_US, HOUR_US, SECOND_US, START_US, Workload, random_workload, workloads

# -- which message


def test_the_next_message_is_of_the_highest_priority_then_the_oldest() -> None:
    twin = OracleDriver()
    for length, priority in ((1, 0), (2, 5), (3, 5), (4, 9)):
        twin.put(length, priority=priority)
    for length in (4, 2, 3, 1):
        assert length in twin.lengths()
        twin.get()
        assert length not in twin.lengths()


def test_a_message_id_need_not_be_unique_and_belongs_to_its_queue() -> None:
    twin = OracleDriver()
    twin.put(1, msgid="X", queue="B.QUEUE")
    twin.put(2, msgid="X")
    twin.put(3, msgid="X", priority=1)
    twin.get(msgid="X")
    assert twin.lengths() == [1, 2]


def test_an_expire_without_msgid_takes_the_oldest_whatever_its_priority() -> None:
    twin = OracleDriver()
    twin.put(1)
    twin.put(2, priority=9)
    assert twin.send("EXPIRE")["bytes"] == 2
    assert twin.send("EXPIRE", count=5)["unmatched_gets"] == 0
    assert twin.send("EXPIRE", msgid="unknown")["messages"] == 0


def test_an_alias_leads_to_its_queue_but_has_a_numbering_of_its_own() -> None:
    twin = OracleDriver()
    twin.put(7, queue="ALIAS.QUEUE", seq=1)
    state = twin.put(8, seq=1)
    assert (state["queues"], state["duplicates"]) == ({"A.QUEUE": (2, 15)}, 0)


def test_a_failed_put_a_full_put_and_a_put_to_a_waiting_getter_store_nothing() -> None:
    twin = OracleDriver()
    twin.put(reason=2053)
    twin.put(reason=2192, count=7)
    state = twin.put(direct=True)
    assert (state["messages"], state["full_puts"], state["events"]) == (0, 7, 3)
    twin.put()
    state = twin.get(reason=2033)
    assert (state["messages"], state["unmatched_gets"]) == (1, 0)


# -- units of work


def test_storage_is_taken_at_the_put_and_freed_at_the_commit_of_the_get() -> None:
    twin = OracleDriver()
    assert twin.put(uow="U")["uncommitted"] == 1
    assert twin.send("COMMIT", uow="U")["uncommitted"] == 0
    state = twin.get(uow="V", qmgr="QM02")
    assert (state["messages"], state["ents_used"], state["uncommitted"]) == (1, 1, 1)
    assert twin.send("COMMIT", uow="V", qmgr="QM01")["messages"] == 1  # another unit: never seen
    assert twin.send("COMMIT", uow="V", qmgr="QM02", queue="B.QUEUE")["messages"] == 1
    assert twin.send("COMMIT", uow="V", qmgr="QM02")["messages"] == 0


def test_a_backout_frees_puts_and_puts_messages_back_at_their_age() -> None:
    twin = OracleDriver()
    twin.put(1)
    twin.put(2)
    twin.get(uow="U")
    twin.put(3, uow="U")
    assert twin.send("BACKOUT", uow="U")["bytes"] == 3
    twin.get()
    assert twin.lengths() == [2]


def test_a_commit_with_reason_2003_is_a_backout() -> None:
    twin = OracleDriver()
    twin.put(uow="U")
    assert twin.send("COMMIT", uow="U", reason=2219)["uncommitted"] == 1
    assert twin.send("COMMIT", uow="U", reason=2003)["messages"] == 0


def test_clear_spares_uncommitted_messages() -> None:
    twin = OracleDriver()
    twin.put(1)
    twin.get(uow="U")
    twin.put(2, uow="U")
    twin.put(3, queue="B.QUEUE")
    twin.put(4)
    assert twin.send("CLEAR")["bytes"] == 6


def test_a_restart_backs_out_the_units_of_its_queue_manager_and_shared_messages_stay() -> None:
    twin = OracleDriver()
    twin.put(1, persistent=False)
    twin.get(uow="U")
    twin.put(2, uow="U", queue="B.QUEUE")
    twin.put(3, uow="U", qmgr="QM02")
    state = twin.send("RESTART", None)
    assert (state["bytes"], state["uncommitted"]) == (4, 1)


# -- held gets


def test_a_get_before_its_put_takes_the_message_when_it_comes() -> None:
    twin = OracleDriver()
    assert twin.get(msgid="X")["unmatched_gets"] == 1
    assert twin.put(msgid="Y")["messages"] == 1
    state = twin.put(msgid="X")
    assert (state["messages"], state["unmatched_gets"]) == (1, 0)


def test_a_get_waits_for_an_uncommitted_put_even_of_its_own_unit() -> None:
    twin = OracleDriver()
    twin.put(msgid="X", uow="U")
    assert twin.get(msgid="X", uow="U")["unmatched_gets"] == 1
    state = twin.send("COMMIT", uow="U")
    assert (state["messages"], state["unmatched_gets"]) == (0, 0)


def test_a_message_taken_by_a_held_get_was_stored_and_may_have_been_too_much() -> None:
    twin = OracleDriver(**NO_RULES)
    twin.put(count=40, queue="B.QUEUE")
    twin.get()
    state = twin.put()
    assert (state["messages"], state["overfull_puts"]) == (40, 1)


def test_anonymous_gets_beyond_what_is_there_are_held_one_by_one() -> None:
    twin = OracleDriver()
    twin.put(count=2)
    assert twin.get(count=5)["unmatched_gets"] == 3
    state = twin.put(count=4)
    assert (state["messages"], state["unmatched_gets"]) == (1, 0)


def test_of_several_held_gets_the_first_takes_the_message() -> None:
    twin = OracleDriver()
    twin.get(msgid="X", uow="U")
    twin.get(uow="V")
    twin.put(msgid="X")
    assert [len(unit.operations) for unit in twin.units.open_units] == [1, 0]


def test_a_held_get_expires_after_an_hour_and_stays_counted() -> None:
    twin = OracleDriver()
    twin.get()
    twin.get(uow="U")
    twin.put(time=START_US + SECOND_US + HOUR_US)  # the first is an hour old now, the second a second less
    assert twin.state()["uncommitted"] == 1
    twin.get(msgid="X", uow="U")
    twin.send("BACKOUT", uow="U")
    state = twin.state()
    assert (state["messages"], state["unmatched_gets"]) == (1, 1)


def test_a_held_get_in_a_unit_waits_on_after_commit_and_is_dropped_by_backout() -> None:
    twin = OracleDriver()
    twin.get(uow="U")
    twin.get(uow="V")
    twin.send("COMMIT", uow="U")
    assert twin.send("BACKOUT", uow="V")["unmatched_gets"] == 1
    assert twin.put()["messages"] == 0


def test_a_get_backed_out_feeds_a_held_get_of_another() -> None:
    twin = OracleDriver()
    twin.put()
    twin.get(uow="U")
    twin.get(qmgr="QM02")
    state = twin.send("BACKOUT", uow="U")
    assert (state["messages"], state["unmatched_gets"]) == (0, 0)


# -- sequence numbers


def numbered(twin: OracleDriver, *numbers: int) -> tuple[int, int, int]:
    for seq in numbers:
        twin.put(seq=seq)
    state = twin.state()
    return state["events"], state["duplicates"], state["gaps"]


def test_numbering_starts_at_the_first_number_and_smaller_ones_are_late() -> None:
    assert numbered(OracleDriver(), 10, 11, 9, 9, 12) == (4, 1, 0)


def test_a_hole_is_a_gap_until_its_number_comes() -> None:
    assert numbered(OracleDriver(), 1, 5) == (2, 0, 3)
    assert numbered(OracleDriver(), 1, 5, 3, 3) == (3, 1, 2)


def test_only_the_last_4096_numbers_are_remembered() -> None:
    assert numbered(OracleDriver(), 0, 5000, 905, 904) == (3, 1, 4998)
    assert numbered(OracleDriver(), 0, 4096, 1, 0) == (3, 1, 4094)


def test_a_restart_begins_a_new_numbering_and_keeps_what_was_missing() -> None:
    twin = OracleDriver()
    numbered(twin, 1, 4)
    twin.send("RESTART", None)
    assert numbered(twin, 1, 2, 2) == (5, 1, 2)


def test_a_duplicate_moves_nothing_not_even_the_clock() -> None:
    twin = OracleDriver()
    before = twin.put(seq=1)
    after = twin.put(seq=1, time=START_US + HOUR_US)
    assert after == before | {"duplicates": 1}


# -- event time


def time_after(*times: int) -> int:
    twin = OracleDriver()
    for time in times:
        twin.send("HEARTBEAT", None, time=START_US + time)
    return int(twin.state()["time"]) - START_US


def test_the_clock_is_the_latest_time_and_a_day_ahead_is_believed() -> None:
    assert time_after(0, 5, 3) == 5
    assert time_after(0, DAY_US) == DAY_US


def test_a_time_far_ahead_is_believed_only_when_the_next_event_is_near_it() -> None:
    far = 40 * DAY_US
    assert time_after(0, far) == 0
    assert time_after(0, far, 1, far) == 1
    assert time_after(0, far, far - DAY_US) == far
    assert time_after(0, far, far + DAY_US) == far + DAY_US
    assert time_after(0, far, far + DAY_US + 1, far + DAY_US + 1) == far + DAY_US + 1


# -- ALTER and REBUILD


def test_altered_rules_count_from_then_on_and_stored_messages_keep_their_cost() -> None:
    twin = OracleDriver(**NO_RULES)
    twin.put(1000)
    assert twin.alter(offld1_th=0, offld1_sz="0K")["elems_used"] == 6
    assert twin.put(1000)["elems_used"] == 8
    assert twin.state()["elems_max"] == 240  # the ratio is that of the allocation
    assert twin.rebuild()["elems_max"] == 40 * ENTRY_AND_6_ELEMENTS // (695 + 512) * 2


def test_size_is_altered_between_the_used_and_the_policy_size() -> None:
    twin = OracleDriver(size=40 * ENTRY_AND_6_ELEMENTS, init_size=30 * ENTRY_AND_6_ELEMENTS)
    twin.put(count=25)
    assert twin.state()["ents_max"] == 30
    assert twin.alter(size=40 * ENTRY_AND_6_ELEMENTS)["ents_max"] == 40
    assert twin.alter(size=40 * ENTRY_AND_6_ELEMENTS + 1)["refused_alters"] == 1
    assert twin.alter(size=25 * ENTRY_AND_6_ELEMENTS)["ents_max"] == 25
    state = twin.alter(size=24 * ENTRY_AND_6_ELEMENTS, offld1_th=0)
    assert (state["ents_max"], state["refused_alters"], state["offload_rule"]) == (25, 2, 3)
    assert twin.attributes["offld1_th"] == 70


def test_policy_attributes_change_only_at_a_rebuild() -> None:
    twin = OracleDriver()
    assert twin.alter(init_size="64K")["refused_alters"] == 1
    assert twin.alter(scm_max_size="1G", offld1_th=10)["refused_alters"] == 2
    assert twin.alter(coupling_facility="CF02")["refused_alters"] == 3
    state = twin.rebuild(scm_max_size="1G", size="1M", init_size="512K")
    assert (state["size"], state["ents_max"], state["refused_alters"]) == (524_288, 235 * 97 // 100, 3)
    assert twin.rebuild(init_size="2M")["refused_alters"] == 4  # more than SIZE
    assert twin.rebuild(init_size=None, scm_max_size=None)["ents_max"] == 1024**2 // ENTRY_AND_6_ELEMENTS


def test_ds_block_is_altered_only_while_every_data_set_is_empty() -> None:
    twin = OracleDriver(ds_block=16_384, smds={"QM01": data_set(size=100_000), "QM02": data_set(size=100_000)})
    assert twin.state()["smds"]["QM01"]["blocks_total"] == 6
    twin.put(65_000, qmgr="QM02")
    assert twin.alter(ds_block="8K")["refused_alters"] == 1
    twin.get()
    expanded = twin.data_sets["QM02"].size // 8192
    state = twin.alter(ds_block="8K")
    assert (state["smds"]["QM01"]["blocks_total"], state["smds"]["QM02"]["blocks_total"]) == (12, expanded)


# -- MEASURE


def test_the_first_measure_sets_a_baseline_that_unmatched_gets_draw_down_evenly() -> None:
    twin = OracleDriver()
    twin.put(1000, count=2)
    twin.get(msgid="before the measure")
    state = twin.measure(ents_used=12, elems_used=45, smds={"QM01": {"blocks_used": 5, "pages_used": 30}})
    assert state["baseline"] == {
        "messages": 10,
        "entries": 10,
        "elements": 33,
        "smds": {"QM01": {"blocks": 4, "pages": 30, "messages": 0}},
    }
    assert (state["messages"], state["ents_used"], state["elems_used"], state["drift_pct"]) == (12, 12, 45, 0.0)
    state = twin.get(queue="B.QUEUE", count=3)
    assert (state["messages"], state["ents_used"], state["elems_used"]) == (9, 9, 45 - 33 * 3 // 10)
    assert (state["smds"]["QM01"]["blocks_used"], state["smds"]["QM01"]["pages_used"]) == (4, 21)
    assert twin.get(queue="B.QUEUE", count=100)["ents_used"] == 2


def test_drift_is_the_model_less_the_measured_of_the_worst_resource() -> None:
    twin = OracleDriver()  # 40 entries, 240 elements
    assert twin.put(1000, count=4)["drift_pct"] is None
    assert twin.measure(ents_used=2)["drift_pct"] == 5.0  # less than the model: no baseline
    assert twin.measure(ents_used=8, elems_used=0)["drift_pct"] == -10.0
    assert twin.state()["baseline"]["entries"] == 0


def test_what_is_left_of_the_baseline_counts_for_the_rules_and_for_fullness() -> None:
    twin = OracleDriver()
    assert twin.measure(ents_used=37)["offload_rule"] == 3
    assert twin.put(1000)["offloaded_messages"] == 1
    assert twin.put(count=3)["overfull_puts"] == 1


# -- random workloads


def invariants(twin: NaiveStructure) -> None:
    state = twin.state()
    assert state["messages"] >= sum(depth for depth, _ in state["queues"].values())
    assert state["bytes"] == sum(size for _, size in state["queues"].values())
    assert state["gaps"] >= 0
    open_operations = [message for unit in twin.units.open_units for _, message in unit.operations]
    assert len(open_operations) == len(set(open_operations)) == state["uncommitted"]
    for qmgr, smds in twin.data_sets.items():
        parts = [part for m in twin.messages if m.qmgr == qmgr for part in m.where]
        for block, pages in enumerate(smds.blocks):
            assert pages == sum(n for number, n in parts if number == block) <= smds.pages_per_block()


@settings(max_examples=examples(120), deadline=None)
@given(workloads())
def test_nothing_is_lost_or_counted_twice_in_random_workloads(workload: Workload) -> None:
    twin = NaiveStructure(workload.config, workload.aliases)
    for event in workload.events:
        twin.apply(event)
        invariants(twin)


@pytest.mark.parametrize("profile", ["mixed", "filling", "units", "held", "smds", "attributes"])
def test_long_workloads_repeat_and_reach_what_they_are_for(profile: str) -> None:
    workload = random_workload(7, 1500, profile)
    assert workload.events == random_workload(7, 1500, profile).events
    twin = NaiveStructure(workload.config, workload.aliases)
    for event in workload.events:
        twin.apply(event)
    invariants(twin)
    assert twin.events + twin.duplicates == 1500


def test_the_estate_of_a_workload_is_toml_with_its_aliases_as_mqsc(tmp_path: Path) -> None:
    path = write_estate(tmp_path, structure(init_size=65_536), {"ALIAS.QUEUE": "A.QUEUE"})
    described = tomllib.loads(path.read_text())
    assert described["structure"]["QSG1/APP1"]["init_size"] == 65_536
    assert described["smds"]["QSG1/APP1/QM02"] == {"size": 10 * 1024**2}
    assert "QALIAS(ALIAS.QUEUE)" in (tmp_path / described["import"][0]["mqsc"]).read_text()
