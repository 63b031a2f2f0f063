"""Storage class memory of a twin: demands, coupling facilities, other estates. Rules: scm.events.

Sources: [IBM: How storage class memory works with IBM MQ for z/OS], here "the document"; docs/storage-model.md.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.naive.estates import ENTRY_AND_6_ELEMENTS, STORE
from tests.support.store_driver import GIB, MIB, NO_RULES
from tests.support.twin_driver import ScmDriver, TwinDriver, demands
from twin.base.conditions import Condition
from twin.estate import CouplingFacility
from twin.stores.open import open_store
from twin.stores.reports import StructureValues

pytestmark = pytest.mark.uncompiled

BLOCK = 4096
SMALL = 100  # bytes: 2 of the 6 elements an entry has, so entries run out first


def open_driver(entries: int = 100, **fields: Any) -> TwinDriver:
    """Open a twin with SCM whose structure has `entries`, 97 of 100: 88 are above 90 %, 67 are at most 70 %."""
    size = -(-entries * 100 // 97) * ENTRY_AND_6_ELEMENTS
    return TwinDriver(**(NO_RULES | {"size": size, "scm_max_size": GIB} | fields))


def on_facility(driver: TwinDriver, **fields: Any) -> TwinDriver:
    """Open the twin on a coupling facility of another size, or with other SCM."""
    facility = CouplingFacility(name="CF01", structures=(STORE,), queue_managers=("QM01", "QM02"), **fields)
    driver.decoding.estate = replace(driver.decoding.estate, stores={**driver.decoding.estate.stores, "CF01": facility})
    driver.twin = driver.decoding.twin()
    return driver


def used_and_scm(state: dict[str, Any]) -> tuple[int, int]:
    """Return (entries in the structure, in SCM)."""
    return state["ents_used"], state["scm"]["ents"]


def filled(driver: TwinDriver, low: int = 60, high: int = 60) -> TwinDriver:
    """Put messages of priority 3, then of priority 6; 90 are in the structure."""
    for number in range(low):
        driver.put(number, priority=3)
    for number in range(high):
        driver.put(1000 + number, priority=6)
    return driver


# -- bandwidth (docs/storage-model.md)


def test_puts_that_come_faster_than_the_mover_fill_the_structure() -> None:
    driver = open_driver(100, scm_prestage_rate=MIB)
    events = demands(driver.decoding.estate.route_of_queue("QM01", "A.QUEUE"), [SMALL] * 200)
    events["time"] += np.arange(200) * 100  # one in 100 us, a movement takes 3.9 ms
    driver.twin.demand(events)
    refused = events["reason"] == 2192
    assert refused.sum() == 200 - 103  # one goes out at the 91st put, two more 3.9 and 7.8 ms later
    assert not refused[:101].any()


# -- bytes in SCM (docs/storage-model.md); the document, SCMMAXSIZE


@pytest.mark.parametrize("known", [True, False])
def test_without_a_described_coupling_facility_only_scmmaxsize_bounds_it(known: bool) -> None:
    driver = open_driver(100, scm_max_size=BLOCK)
    if known:
        on_facility(driver, size=None)  # of its CFRM policy only
    else:
        stores = {name: store for name, store in driver.decoding.estate.stores.items() if name == STORE}
        stores[STORE] = replace(stores[STORE], coupling_facility=None)
        driver.decoding.estate = replace(driver.decoding.estate, stores=stores)
        driver.twin = driver.decoding.twin()
    driver.put(SMALL, count=100)
    assert driver.wait(1)["scm"]["messages"] == 5


def test_scm_that_shrinks_below_what_is_in_use_only_stops_movement_out() -> None:
    """Shrink it from outside, as a simulator of over-committed SCM does."""
    driver = filled(open_driver(100))
    driver.twin.tables.store.params["scm_max"] = BLOCK
    assert driver.put(SMALL)["scm"]["messages"] == 30
    state = driver.get(count=40)
    assert used_and_scm(driver.wait(1)) == (71, 10)
    assert state["scm"]["max"] == BLOCK


def test_scm_that_others_have_used_up_means_2192_before_scmmaxsize_is_reached() -> None:
    """Check SCMMAXSIZE of the document, of over-committed SCM."""
    driver = filled(open_driver(100))
    driver.twin.tables.store.params["scm_max"] = driver.state()["scm"]["used"]  # the rest is in use by other structures
    events = demands(driver.decoding.estate.route_of_queue("QM01", "A.QUEUE"), [SMALL] * 20)
    events["time"] = driver.time + 1 + np.arange(20)
    driver.twin.demand(events)
    assert (events["reason"] == 2192).sum() == 20 - 10 - 2  # two more fit into the last block in use
    assert driver.twin.config.scm_max_size == GIB


def test_scm_over_committed_by_a_structure_that_holds_nothing_is_there_for_the_other_one() -> None:
    """Of 1,000 entries 900 stay in use, and 8 MB of SCM take the rest, though the share is 4 MB."""
    driver = ScmDriver(
        size=1031 * ENTRY_AND_6_ELEMENTS,
        full_threshold=95,
        **dict.fromkeys(("scm_max_size", "facility_scm", "others_scm"), 8 * MIB),
    )
    assert (driver.state()["ents_max"], driver.state()["scm"]["max"]) == (1000, 4 * MIB)
    for _ in range(5_580):
        driver.put(1_164)
    state = driver.state()
    assert used_and_scm(state) == (900, 4_680)
    assert (state["usage_pct"], state["overfull_puts"], state["scm"]["max"]) == (90.0, 0, 8 * MIB)
    assert Condition.FULL not in {alert.condition for alert in driver.alerts}
    assert driver.reopen().state() == state


def test_a_rebuild_on_another_coupling_facility_forgets_what_was_shown_on_the_last_one() -> None:
    driver = ScmDriver(scm_max_size=16 * BLOCK, facility_scm=16 * BLOCK, others_scm=16 * BLOCK)
    for _ in range(82):
        driver.put(SMALL)
    assert driver.state()["scm"]["max"] == 16 * BLOCK
    stores = driver.decoding.estate.stores
    cf02 = replace(stores["CF01"], name="CF02", scm=8 * BLOCK)
    driver.decoding.estate = replace(driver.decoding.estate, stores={**stores, "CF02": cf02})
    driver.reopen()
    driver.rebuild(coupling_facility="CF02")
    assert driver.state()["scm"]["max"] == 4 * BLOCK


# -- the seed: augmented space


def test_another_structure_with_scm_takes_its_part_of_the_coupling_facility() -> None:
    driver = open_driver(100)
    size = driver.state()["size"]
    on_facility(driver, size=2 * size + 16 * MIB + 81, scm=GIB)
    stores = driver.decoding.estate.stores
    other = replace(stores[STORE], name="QSG1/APP2", queues=(), size=2 * size, init_size=size)
    facility = replace(stores["CF01"], structures=(STORE, "QSG1/APP2"))
    driver.decoding.estate = replace(driver.decoding.estate, stores={**stores, "QSG1/APP2": other, "CF01": facility})
    driver.twin = driver.decoding.twin()
    driver.put(SMALL, count=100)
    assert driver.wait(1)["scm"]["messages"] == 0


def test_a_coupling_facility_out_of_storage_for_augmented_space_means_2192() -> None:
    driver = open_driver(100)
    on_facility(driver, size=driver.state()["size"], scm=GIB)
    events = demands(driver.decoding.estate.route_of_queue("QM01", "A.QUEUE"), [SMALL] * 120)
    events["time"] += np.arange(120) * 1_000_000
    driver.twin.demand(events)
    assert (events["reason"] == 2192).sum() == 20
    assert driver.state()["scm"]["messages"] == 0


# -- REBUILD


def test_a_rebuild_that_brings_scm_outlasts_a_restart_of_the_twin() -> None:
    driver = TwinDriver(**(NO_RULES | {"size": 104 * ENTRY_AND_6_ELEMENTS}))
    for number in range(100):
        driver.put(number, priority=number % 2, uow="U" if number % 5 == 0 else None)
    driver.get(msgid=None, uow="G")  # 1, of priority 1, which does not move
    assert driver.rebuild(scm_max_size="1G")["ents_max"] == 100
    state = driver.wait(1)
    assert driver.reopen().state() == state


def described(driver: TwinDriver, **attributes: Any) -> TwinDriver:
    """Open the twin again with other attributes in the estate, as a job that starts with a changed file does."""
    estate = driver.decoding.estate
    changed = replace(estate.stores[STORE], **attributes)  # type: ignore[arg-type]
    driver.decoding.estate = replace(estate, stores={**estate.stores, STORE: changed})
    return driver.reopen()


def test_an_estate_that_gives_scm_or_takes_it_away_waits_for_a_rebuild() -> None:
    """The document: "the structure must be rebuilt, or deallocated so that they can take effect"."""
    driver = filled(open_driver(100))
    state = described(driver, scm_max_size=None).state()
    assert (state["policy_pending"], state["ents_max"], used_and_scm(state)) == ({"scm_max_size": None}, 100, (90, 30))
    state = driver.rebuild()
    assert (state["policy_pending"], state["scm"], state["ents_used"]) == (None, None, 120)
    state = described(driver, scm_max_size=GIB).wait(1)
    assert (state["policy_pending"], state["scm"], state["ents_max"]) == ({"scm_max_size": GIB}, None, 104)
    assert driver.rebuild()["policy_pending"] is None
    assert used_and_scm(driver.wait(1)) == (90, 30)


def test_a_size_of_a_new_policy_waits_over_restarts_and_the_old_policy_counts() -> None:
    driver = TwinDriver(**(NO_RULES | {"size": 40 * ENTRY_AND_6_ELEMENTS}))
    size = driver.state()["size"]
    state = described(driver, size=2 * size, init_size=size + 1000, full_threshold=70).state()
    pending = {"init_size": size + 1000, "size": 2 * size}
    assert (state["policy_pending"], state["size"]) == (pending, size)
    assert driver.reopen().alter(size=size + 1)["refused_alters"] == 1  # SIZE is still the old one
    assert driver.state()["policy_pending"] == pending
    assert driver.twin.config.full_threshold == 70
    state = driver.rebuild(init_size=size + 500)
    assert (state["policy_pending"], state["size"], driver.twin.config.size) == (None, size + 500, 2 * size)


def test_a_policy_that_is_taken_back_no_longer_waits() -> None:
    driver = TwinDriver(**(NO_RULES | {"size": 40 * ENTRY_AND_6_ELEMENTS}))
    size = driver.state()["size"]
    assert described(driver, size=2 * size).state()["policy_pending"] == {"size": 2 * size}
    assert described(driver, size=size).state()["policy_pending"] is None


def test_a_rebuild_that_is_refused_leaves_the_policy_waiting() -> None:
    driver = TwinDriver(**(NO_RULES | {"size": 40 * ENTRY_AND_6_ELEMENTS}))
    size = driver.state()["size"]
    described(driver, size=2 * size)
    state = driver.rebuild(init_size=3 * size)
    assert (state["refused_alters"], state["policy_pending"]) == (1, {"size": 2 * size})


def test_a_structure_whose_scm_is_pending_keeps_its_storage_and_has_no_augmented_space() -> None:
    size = 104 * ENTRY_AND_6_ELEMENTS
    driver = TwinDriver(**(NO_RULES | {"size": size}))
    driver.put()
    described(driver, scm_max_size=GIB)
    driver.wait(10)
    reports = driver.twin.drain_reports()
    assert [(report.target, report.values) for report in reports] == [("CF01", StructureValues(size, 0, 0, 0, 0))]
    facility = open_store(driver.decoding.estate, "CF01")
    total = facility.config.size
    facility.take(reports)
    state = facility.state()
    assert (total - state.storage_free, state.augmented, state.scm_committed) == (size, 0, 0)
    driver.reopen().wait(10)
    driver.rebuild()
    driver.wait(10)
    facility.take(driver.twin.drain_reports())
    state = facility.state()
    assert (total - state.storage_free, state.augmented, state.scm_committed) == (size + 8 * MIB, 8 * MIB, GIB)


# -- over-committed SCM


def over_committed(**fields: Any) -> tuple[TwinDriver, TwinDriver]:
    """Return the twins of two structures, of 100 entries, with SCMMAXSIZE 1 MB each on a facility that has 1 MB."""
    first = open_driver(100, scm_max_size=MIB, **fields)
    estate = first.decoding.estate
    config = estate.stores[STORE]
    other = replace(config, name="QSG1/APP2", queues=())  # type: ignore[arg-type]
    facility = replace(estate.stores["CF01"], structures=(STORE, "QSG1/APP2"), scm=MIB)  # type: ignore[arg-type]
    stores = {**estate.stores, "QSG1/APP2": other, "CF01": facility}
    drivers = first, open_driver(100, scm_max_size=MIB, **fields)
    for driver in drivers:  # the second one is of the same name: only its numbers count
        driver.decoding.estate = replace(estate, stores=stores)
        driver.twin = driver.decoding.twin()
    return drivers


def test_together_structures_have_no_more_scm_than_their_facility() -> None:
    """The document: "Never over-commit": "unexpected MQRC_STORAGE_MEDIUM_FULL" of the one or the other."""
    states = []
    for driver in over_committed():
        driver.put(20_000, count=31)
        states.append(driver.wait(10))
    assert [state["scm"]["max"] for state in states] == [MIB // 2] * 2
    assert sum(state["scm"]["used"] for state in states) <= MIB
    assert all(state["overfull_puts"] == 0 for state in states)


def test_a_count_beyond_its_share_shows_that_others_leave_a_structure_more() -> None:
    driver, _ = over_committed()
    driver.put(20_000, count=60)
    state = driver.wait(10)
    assert state["scm"]["max"] == MIB
    assert state["overfull_puts"] > 0  # of more than all of SCMMAXSIZE


def test_the_alert_of_exhausted_scm_says_that_it_is_a_share() -> None:
    driver, _ = over_committed()
    driver.put(20_000, count=32)
    driver.wait(10)
    alert = next(alert for alert in driver.alerts if alert.condition == "scm-exhausted")
    assert alert.cause.startswith(f"SCM of {STORE} (its share of CF01): 508 KB of 512 KB in use")


# -- expiry


def test_a_scan_by_any_member_of_the_group_makes_room_and_messages_come_back() -> None:
    driver = open_driver(100)
    estate = driver.decoding.estate
    scanning = replace(estate.queue_managers["QM02"], expiry_interval_s=60.0)
    driver.decoding.estate = replace(estate, queue_managers={**estate.queue_managers, "QM02": scanning})
    driver.twin = driver.decoding.twin()
    for _ in range(60):
        driver.put(SMALL, priority=9, expiry=90)
    for _ in range(60):
        driver.put(SMALL)
    state = driver.state()  # at 120 s: the scan then took those put in the first 30 s, and room brought messages back
    assert (sum(used_and_scm(state)), state["messages"], state["expired_held"]) == (90, 90, 0)
    assert state["scm"]["prefetched"] > 0
    state = driver.wait(3600)
    assert (used_and_scm(state), state["messages"], state["expired_held"]) == ((60, 0), 60, 0)
