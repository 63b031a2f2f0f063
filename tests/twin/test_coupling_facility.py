"""Resources that the structures of a coupling facility share: docs/storage-model.md#what-several-stores-share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.support.shared import (
    GB,
    START_US,
    STRUCTURES,
    Shared,
    changes,
    leave_report,
    shared_estate,
    structure_report,
)
from twin.estate import Estate, load_estate
from twin.events import Decoder
from twin.playback.replays import Player, replay
from twin.recordings.files import RecordingWriter
from twin.records import ScmShare

MIB = 1 << 20
APP1, APP2 = STRUCTURES


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    """4 GB of SCM in 16 GB; the structures may use 3 and 1 GB of it."""
    return shared_estate(tmp_path)


@pytest.fixture
def facility(estate: Estate) -> Shared:
    return Shared(estate, "CF01")


def both(tick: int, passed: int | None = None, **values: int) -> list:
    """Return a report of APP1 with those values, one of APP2 that uses nothing."""
    return [
        structure_report(APP1, tick, passed, **values),
        structure_report(APP2, tick, passed, size=GB, scm_max=GB),
    ]


def test_before_any_report_the_estate_says_what_is_there(facility: Shared) -> None:
    state = facility.state()
    assert state.time is None
    assert state.scm_total == 4 * GB
    assert state.scm_committed == 4 * GB, "the sum of SCMMAXSIZE"
    assert state.scm_used is None, "no structure has counted it yet"
    assert state.augmented == 2 * 8 * MIB, "the fixed augmented space of two structures with SCM"
    allocated = 4 * GB + GB + 2 * GB  # APP2 at its INITSIZE, PLAIN without SCM
    assert state.storage_free == 16 * GB - allocated - 2 * 8 * MIB


def test_reports_say_what_is_used_now(facility: Shared) -> None:
    facility.reports(*both(1, scm_used=2 * GB, aug_dynamic=40 * MIB, size=5 * GB))
    state = facility.state()
    assert (state.scm_used, state.augmented) == (2 * GB, 56 * MIB)
    assert state.storage_free == 16 * GB - 5 * GB - GB - 2 * GB - 56 * MIB
    assert state.time == "2026-11-20T12:00:10.000000Z"
    assert facility.alerts == []


def test_scm_that_others_use_is_not_left_for_a_structure(facility: Shared) -> None:
    facility.reports(*both(1, scm_used=2 * GB, scm_max=3 * GB, size=4 * GB))
    used = {APP1: ScmShare(scm_used=2 * GB, scm_left=GB), APP2: ScmShare(scm_used=0, scm_left=GB)}
    assert facility.state().structures == used, "of its own SCMMAXSIZE"
    facility.reports(*both(2, scm_used=3 * GB + GB // 2, scm_max=8 * GB, size=4 * GB))
    left = {name: values.scm_left for name, values in facility.state().structures.items()}
    assert left == {APP1: GB // 2, APP2: GB // 2}, "of the 4 GB of the coupling facility"
    facility.reports(*both(3, scm_used=5 * GB, scm_max=8 * GB, size=4 * GB))
    assert {values.scm_left for values in facility.state().structures.values()} == {0}


# --- over-committed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scm", "over"), [("4G", False), ("4095M", True)])
def test_overcommitted_is_a_sum_of_scmmaxsize_above_the_scm(tmp_path: Path, scm: str, over: bool) -> None:
    facility = Shared(shared_estate(tmp_path, ('scm = "4G"', f'scm = "{scm}"')), "CF01")
    facility.reports(*both(1))
    assert changes(facility.alerts) == [("scm-overcommitted", "opened")] * over


def test_overcommitted_opens_once_and_names_sizes_structures_and_what_helps(tmp_path: Path) -> None:
    facility = Shared(shared_estate(tmp_path, ('scm = "4G"', 'scm = "2G"')), "CF01")
    facility.reports(*both(1))
    facility.reports(*both(2))
    (alert,) = facility.alerts
    assert alert.alert_id == f"CF01/scm-overcommitted/scm/{START_US + 10_000_000}"
    assert (alert.severity, alert.usage_pct, alert.resource) == ("info", 200.0, "scm")
    assert "SCM of CF01: 2 GB, its structures may use 4 GB (QSG1/APP1 3 GB, QSG1/APP2 1 GB)" in alert.cause
    assert any("SCMMAXSIZE" in action and "SETXCF START,REBUILD,STRNAME=QSG1APP1" in action for action in alert.actions)
    assert any("2 GB more SCM" in action and "D CF,CFNAME=CF01" in action for action in alert.actions)


def test_overcommitted_is_of_the_first_tick_of_any_structure(tmp_path: Path) -> None:
    """Wait for the other structure while a backlog is read: alerts must not depend on the order of reading."""
    estate = shared_estate(tmp_path, ('scm = "4G"', 'scm = "2G"'))
    early, late = both(1)[0], both(5)[1]
    for backlog in (False, True):
        facility = Shared(estate, "CF01")
        assert len(facility.reports(early, caught_up=not backlog)) == (not backlog)
        facility.reports(late, caught_up=not backlog)
        (alert,) = facility.alerts
        assert (alert.condition, alert.time) == ("scm-overcommitted", START_US + 10_000_000)


def test_more_scm_ends_it_after_a_minute(tmp_path: Path) -> None:
    facility = Shared(shared_estate(tmp_path, ('scm = "4G"', 'scm = "2G"')), "CF01")
    facility.reports(*both(1))
    facility.event(15, "ALTER", attributes={"scm": "8G"})
    facility.reports(*both(2, 30))
    assert changes(facility.alerts) == [("scm-overcommitted", "opened"), ("scm-overcommitted", "cleared")]
    assert facility.alerts[-1].time == START_US + 80_000_000, "over at 20 s, calm for 60 s"


def test_a_facility_known_by_its_policy_only_claims_nothing(tmp_path: Path) -> None:
    (tmp_path / "cfrm.txt").write_text(
        "DATA TYPE(CFRM) REPORT(YES)\nDEFINE POLICY NAME(P1) REPLACE(YES)\n"
        "CF NAME(CF01) TYPE(003931) MFG(IBM) PLANT(02) SEQUENCE(000000123456) PARTITION(0E) CPCID(00)\n"
        "STRUCTURE NAME(QSG1APP1) SIZE(4G) PREFLIST(CF01) SCMMAXSIZE(8G) SCMALGORITHM(KEYPRIORITY1)\n"
    )
    block = '[coupling_facility.CF01]\nsize = "16G"\nscm = "4G"\n'
    estate = shared_estate(tmp_path, (block, '[[import]]\ncfrm = "cfrm.txt"\n'))
    facility = Shared(estate, "CF01")
    facility.reports(*both(1, scm_used=GB))
    assert facility.alerts == []
    assert facility.state().storage_free is None
    assert facility.state().scm_used == GB


# --- exhausted -------------------------------------------------------------------------------------------------------


def test_scm_is_exhausted_when_the_sum_in_use_reaches_what_there_is(facility: Shared) -> None:
    facility.reports(*both(1, scm_used=4 * GB - 1))
    assert facility.alerts == []
    facility.reports(
        structure_report(APP1, 2, scm_used=3 * GB), structure_report(APP2, 2, scm_used=GB, size=GB, scm_max=GB)
    )
    (alert,) = facility.alerts
    assert (alert.condition, alert.resource, alert.severity, alert.usage_pct) == (
        "scm-exhausted",
        "scm",
        "info",
        100.0,
    )
    assert "SCM of CF01: all 4 GB in use (QSG1/APP1 3 GB, QSG1/APP2 1 GB)" in alert.cause
    assert any("QSG1/APP1" in action for action in alert.actions)


def test_it_clears_two_points_below_for_ten_minutes(facility: Shared) -> None:
    facility.reports(*both(1, scm_used=4 * GB))
    facility.reports(*both(2, 40, scm_used=4 * GB * 99 // 100))
    assert changes(facility.alerts) == [("scm-exhausted", "opened")]
    facility.reports(*both(41, 110, scm_used=4 * GB * 97 // 100))
    assert changes(facility.alerts)[-1] == ("scm-exhausted", "cleared")
    assert facility.alerts[-1].time == START_US + 1_010_000_000


def test_augmented_space_is_exhausted_when_no_storage_is_left_for_it(facility: Shared) -> None:
    free = facility.state().storage_free
    facility.reports(*both(1, aug_dynamic=free - 1))
    assert facility.alerts == [] and facility.state().storage_free == 1
    facility.reports(*both(2, aug_dynamic=free))
    (alert,) = facility.alerts
    assert (alert.condition, alert.resource, alert.usage_pct) == ("augmented-exhausted", "augmented", 100.0)
    assert "16 GB" in alert.cause and "D CF,CFNAME=CF01" in alert.actions[0]
    assert facility.state().storage_free == 0


# --- events of its own -----------------------------------------------------------------------------------------------


def test_an_alter_counts_at_the_first_tick_after_it(facility: Shared) -> None:
    facility.event(15, "ALTER", attributes={"size": "32G"})
    assert facility.state().storage_free < 16 * GB, "no structure has passed its time yet"
    facility.reports(*both(1))
    assert facility.state().storage_free < 16 * GB
    facility.reports(*both(2))
    assert facility.state().storage_free > 16 * GB


def test_heartbeats_are_counted(facility: Shared) -> None:
    facility.event(1, "HEARTBEAT")
    facility.event(2, "RESTART")
    state = facility.state()
    assert state.events == 2 and state.time == "2026-11-20T12:00:02.000000Z"


def test_without_structures_that_report_events_act_at_once(tmp_path: Path) -> None:
    text = ('scm_max_size = "3G"\n', ""), ('scm_max_size = "1G"\n', "")
    facility = Shared(shared_estate(tmp_path, *text), "CF01")
    facility.event(1, "ALTER", attributes={"size": "8G", "scm": None})
    state = facility.state()
    assert (state.storage_free, state.scm_total, state.augmented) == (GB, 0, 0)
    facility.event(2, "MEASURE", measured={"scm_used": 7})
    assert facility.state().baseline == {"scm_used": 7, "augmented": None}


def test_the_first_measurement_is_the_baseline_and_drift_stays_away(facility: Shared) -> None:
    facility.reports(*both(1, scm_used=GB))
    facility.event(15, "MEASURE", measured={"scm_used": 2 * GB})
    facility.reports(*both(2, scm_used=GB))
    state = facility.state()
    assert state.baseline == {"scm_used": GB, "augmented": None}
    assert (state.scm_used, state.drift_pct) == (2 * GB, 0.0)
    facility.event(25, "MEASURE", measured={"scm_used": GB + GB // 2})
    facility.reports(*both(3, scm_used=GB))
    assert facility.state().scm_used == GB + GB // 2, "what a later measurement does not find has been worked off"


def test_drift_opens_after_three_measurements_beyond_five_percent(facility: Shared) -> None:
    facility.reports(*both(1))
    facility.event(11, "MEASURE", measured={"scm_used": 0})
    for number in range(2, 5):
        facility.event(10 * number + 1, "MEASURE", measured={"scm_used": GB})
        facility.reports(*both(number))
        assert facility.alerts == []
    facility.reports(*both(5))
    (alert,) = facility.alerts
    assert (alert.condition, alert.resource, facility.state().drift_pct) == ("drift", "scm", -25.0)
    facility.event(55, "MEASURE", measured={"scm_used": 0})
    facility.reports(*both(6))
    assert changes(facility.alerts)[-1] == ("drift", "cleared")


# --- storage that structures may grow into ---------------------------------------------------------------------------


def growth(facility: Shared) -> dict[str, tuple[int, int, int | None]]:
    return {name: (own.size, own.size_max, own.growth_left) for name, own in facility.state().storage.items()}


def test_size_is_a_promise_that_the_structures_share(facility: Shared) -> None:
    """Of 16 GB 7 are allocated and 8 are promised; APP2 may have the one that it lacks to its SIZE."""
    state = facility.state()
    assert (state.storage_total, state.storage_measured) == (16 * GB, None)
    augmented = 2 * 8 * MIB + -(-4 * GB * 20_000 // 1_000_000)
    assert state.storage_promised == 4 * GB + 2 * GB + 2 * GB + augmented
    assert growth(facility) == {APP1: (4 * GB, 4 * GB, 0), APP2: (GB, 2 * GB, GB), "QSG1/PLAIN": (2 * GB, 2 * GB, 0)}


def test_what_is_left_is_what_the_facility_has_free(tmp_path: Path) -> None:
    facility = Shared(shared_estate(tmp_path, ('size = "16G"', 'size = "7500M"')), "CF01")
    free = 7500 * MIB - 7 * GB - 2 * 8 * MIB
    assert facility.state().storage_free == free
    assert growth(facility)[APP2] == (GB, 2 * GB, free), "not all of its SIZE"
    facility.reports(structure_report(APP1, 1, size=4 * GB), structure_report(APP2, 1, size=GB + 100 * MIB, scm_max=GB))
    assert growth(facility)[APP2] == (GB + 100 * MIB, 2 * GB, free - 100 * MIB)


def test_a_measurement_of_the_free_storage_counts_what_others_have_taken(facility: Shared) -> None:
    facility.reports(*both(1))
    facility.event(15, "MEASURE", measured={"storage_free": 300 * MIB})
    facility.reports(*both(2))
    assert facility.state().storage_measured == 300 * MIB
    assert growth(facility)[APP2] == (GB, 2 * GB, 300 * MIB)
    facility.reopen(facility.estate)
    assert facility.state().storage_measured == 300 * MIB


def test_facts_of_queues_measure_nothing_of_a_facility(facility: Shared) -> None:
    facility.reports(*both(1))
    facility.event(15, "MEASURE", measured={"queues": [{"name": "ORDERS", "getters": 0}], "asked": ["QM01"]})
    facility.reports(*both(2))
    assert (facility.state().baseline, facility.state().storage_measured) == (None, None)


def test_dump_space_is_not_free(tmp_path: Path) -> None:
    plain, dump = (
        Shared(shared_estate(tmp_path, ('size = "16G"', f'size = "16G"{more}')), "CF01").state()
        for more in ("", '\ndump_space = "2G"')
    )
    assert plain.storage_free - dump.storage_free == dump.storage_promised - plain.storage_promised == 2 * GB


def test_a_facility_of_unknown_size_leaves_nothing_known(tmp_path: Path) -> None:
    estate = shared_estate(tmp_path)
    nameless = replace(estate, stores={**estate.stores, "CF01": replace(estate.stores["CF01"], size=None)})
    facility = Shared(nameless, "CF01")
    assert facility.state().storage_total is None
    assert {left for _, _, left in growth(facility).values()} == {None}


# --- who shares it ---------------------------------------------------------------------------------------------------


def test_a_structure_that_took_leave_is_neither_counted_nor_waited_for(facility: Shared) -> None:
    facility.reports(*both(1, scm_used=GB))
    facility.reports(leave_report(APP1, 2), structure_report(APP2, 2, 500, scm_used=5, size=GB, scm_max=GB))
    state = facility.state()
    assert (state.scm_used, state.scm_committed) == (5, GB)
    facility.reports(structure_report(APP2, 501, scm_used=6, size=GB, scm_max=GB))
    assert facility.state().scm_used == 6


def test_a_structure_that_the_estate_has_no_more_is_forgotten(facility: Shared, tmp_path: Path) -> None:
    facility.reports(*both(1, scm_used=GB))
    facility.reopen(shared_estate(tmp_path, ('size = "4G"\nscm_max_size = "3G"', 'size = "4G"')))
    assert facility.state().scm_used == 0
    facility.reports(structure_report(APP2, 2, scm_used=7, size=GB, scm_max=GB))
    assert facility.state().scm_used == 7


def test_the_estate_wins_where_it_changed_and_events_where_not(facility: Shared, tmp_path: Path) -> None:
    facility.event(5, "ALTER", attributes={"size": "32G", "scm": "5G"})
    facility.reports(*both(1))
    facility.reopen(shared_estate(tmp_path, ('scm = "4G"', 'scm = "6G"')))
    assert facility.state().scm_total == 6 * GB
    assert facility.state().storage_free > 16 * GB


def test_structures_report_by_themselves_in_a_replay(estate: Estate) -> None:
    decoder, player = Decoder(estate), Player(estate)
    for second in range(0, 100, 5):
        events = [
            {"time": START_US + second * 1_000_000, "qmgr": "QM01", "op": "PUT", "queue": queue, "length": 100}
            for queue in ("ORDERS", "INVOICES", "OTHER")
        ]
        player.feed(decoder.json([msgspec.json.encode(event) for event in events]))
    state = player.states()["CF01"]
    assert state.time == "2026-11-20T12:01:30.000000Z"
    assert state.storage_free == 16 * GB - 7 * GB - 16 * MIB


def test_a_structure_moved_by_rebuild_takes_leave(tmp_path: Path) -> None:
    block = '[coupling_facility.CF02]\nsize = "8G"\nscm = "8G"\n[queue_sharing_group.QSG1]'
    estate = shared_estate(tmp_path, ("[queue_sharing_group.QSG1]", block))
    decoder, player = Decoder(estate), Player(estate)

    def feed(second: int, **event: object) -> None:
        event |= {"time": START_US + second * 1_000_000, "qmgr": "QM01"}
        player.feed(decoder.json([msgspec.json.encode(event)]))

    for second in range(0, 60, 5):
        feed(second, op="HEARTBEAT")
    feed(61, op="REBUILD", store=APP1, attributes={"coupling_facility": "CF02"})
    for second in range(62, 120, 5):
        feed(second, op="HEARTBEAT")
    states = player.states()
    assert states["CF01"].scm_committed == GB
    assert states["CF02"].scm_committed == 3 * GB
    assert states["CF01"].time >= "2026-11-20T12:01:40"


def test_a_structure_that_is_not_used_hides_nothing(tmp_path: Path) -> None:
    """AA fills its share of the SCM; BB exists and nothing is put to it: no event says so."""
    text = """
schema = 1
[coupling_facility.CF01]
size = "1G"
scm = "8M"
[queue_sharing_group.QSG1]
queue_managers = ["QM01"]
""" + "".join(
        f'[structure."QSG1/{name}"]\ncoupling_facility = "CF01"\nsize = "20M"\nscm_max_size = "8M"\n'
        f'[queue."QSG1/{queue}"]\nstructure = "{name}"\n'
        for name, queue in (("AA", "ORDERS"), ("BB", "UNUSED"))
    )
    (tmp_path / "estate.toml").write_text(text, encoding="utf-8")
    estate = load_estate(tmp_path / "estate.toml")
    put = {"qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 1000}
    with RecordingWriter(tmp_path / "unused.ndjson") as writer:
        writer.write([put | {"time": START_US + i * 500_000, "msgid": f"m{i}"} for i in range(3 * 7200)])
    replayed = replay(tmp_path / "unused.ndjson", estate)
    state = replayed.states["CF01"]
    used = replayed.states["QSG1/AA"].scm.used
    assert state.scm_used == state.structures["QSG1/AA"].scm_used == used > 0
    assert state.structures["QSG1/AA"].scm_left == min(8 * MIB - used, state.scm_total - used)
    assert state.structures["QSG1/BB"] == ScmShare(scm_used=None, scm_left=None), "nothing is known of it"
    opened = next(alert for alert in replayed.alerts if alert.store == "CF01")
    assert (opened.condition, opened.change) == ("scm-overcommitted", "opened")
    assert opened.time == START_US + 10_000_000
