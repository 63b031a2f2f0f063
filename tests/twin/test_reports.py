"""Reports in any interleaving and any cutting give the same state and the same alerts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.profile import examples
from tests.support.shared import (
    FILES,
    GB,
    START,
    STRUCTURES,
    Shared,
    file_report,
    interleaved,
    shared_estate,
    structure_report,
)
from twin.alerts.episodes import Alert
from twin.estate import Estate
from twin.stores.reports import LAG_TICKS, Frontier, Report, receivers, sources_of


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    return shared_estate(tmp_path_factory.mktemp("shared"), ('scm_max_size = "1G"', 'scm_max_size = "2G"'))


# --- who reports to whom ---------------------------------------------------------------------------------------------


def test_structures_with_scm_report_to_their_coupling_facility(estate: Estate) -> None:
    assert list(sources_of(estate, "CF01")) == list(STRUCTURES)
    assert receivers(estate, estate.stores["QSG1/PLAIN"]) == ()


def test_queue_files_of_members_report_to_their_uniform_cluster_and_queue_manager(estate: Estate) -> None:
    assert list(sources_of(estate, "UC01")) == list(FILES)
    assert receivers(estate, estate.stores["UC01QM01/REQUEST"]) == ("UC01", "UC01QM01")
    assert list(sources_of(estate, "UC01QM01")) == ["UC01QM01/REQUEST"]


# --- the frontier ----------------------------------------------------------------------------------------------------


def test_a_tick_is_acted_on_when_every_source_has_passed_it() -> None:
    frontier = Frontier()
    frontier.take([file_report(FILES[0], 5)])
    assert frontier.bound(FILES[:2], FILES) < START
    frontier.take([file_report(FILES[1], 3)])
    assert frontier.bound(FILES[:2], FILES) == START + 3
    assert [report.tick for report in frontier.due(START + 3)] == [START + 3]


def test_a_silent_source_is_not_waited_for_when_another_is_a_day_ahead() -> None:
    frontier = Frontier()
    frontier.take([file_report(FILES[0], 5), file_report(FILES[1], 5, 5 + LAG_TICKS + 7)])
    assert frontier.bound(FILES[:2], FILES) == START + 5 + 7


def test_a_report_delivered_again_is_dropped() -> None:
    frontier = Frontier()
    frontier.take([file_report(FILES[0], 1), file_report(FILES[0], 2, 4), file_report(FILES[0], 2, 4)])
    frontier.take([file_report(FILES[0], 1), file_report(FILES[0], 5)])
    assert [report.tick - START for report in frontier.due(START + 9)] == [1, 2, 5]


def test_a_report_behind_what_was_acted_on_counts_as_late(estate: Estate) -> None:
    store = Shared(estate, "UC01")
    store.reports(*(file_report(name, 1, LAG_TICKS + 20) for name in FILES[:2]))
    store.reports(file_report(FILES[2], 1, puts=60, gets=60, depth=7))
    assert (store.state()["late_reports"], store.state()["depth"]) == (0, 0), "it waits for the next tick"
    store.reports(*(file_report(name, LAG_TICKS + 21, LAG_TICKS + 40) for name in FILES[:2]))
    assert store.state()["depth"] == 7, "its values count from the first tick not yet acted on"
    assert store.state()["late_reports"] == 1


# --- any interleaving, any cutting -----------------------------------------------------------------------------------


@st.composite
def file_sequences(draw: st.DrawFn) -> list[list[Report]]:
    """Return some minutes of three members whose load goes up and down; most ticks have a report of their own."""
    sequences = []
    for name in FILES:
        tick, reports = 1, []
        for puts, ticks, spans in draw(
            st.lists(
                st.tuples(st.sampled_from([0, 1000, 6000, 8600, 9900, 20_000]), st.integers(1, 40), st.booleans()),
                max_size=6,
            )
        ):
            if spans:
                reports.append(file_report(name, tick, tick + ticks - 1, puts, puts, puts // 10))
            else:
                reports += [file_report(name, tick + n, None, puts, puts, puts // 10) for n in range(ticks)]
            tick += ticks
        reports.append(file_report(name, tick, tick))
        sequences.append(reports)
    return sequences


@st.composite
def structure_sequences(draw: st.DrawFn) -> list[list[Report]]:
    """Two structures whose SCM fills and empties."""
    sequences = []
    for name in STRUCTURES:
        tick, reports = 1, []
        for used, size, ticks in draw(
            st.lists(st.tuples(st.integers(0, 12), st.sampled_from([1, 4, 7]), st.integers(1, 30)), max_size=10)
        ):
            reports.append(
                structure_report(
                    name, tick, tick + ticks - 1, size=size * GB, scm_used=used * GB // 4, aug_dynamic=used << 28
                )
            )
            tick += ticks
        reports.append(structure_report(name, tick, tick))
        sequences.append(reports)
    return sequences


def fed(estate: Estate, name: str, pieces: list[list[Report]], events: dict[int, Any]) -> tuple[list[Alert], Any]:
    """Alerts and state after those pieces, the store kept in its header only from one to the next.

    events: own events before the piece of that number, (seconds, operation, fields).
    """
    store = Shared(estate, name)
    for number, piece in enumerate(pieces):
        for seconds, op, fields in events.get(number, ()):
            store.event(seconds, op, **fields)
        store.reports(*piece)
        store.reopen()
    return store.alerts, store.state()


def check_any_order(estate: Estate, name: str, sequences: list[list[Report]], events: Any, data: st.DataObject) -> None:
    mixed = interleaved(sequences, data.draw(st.lists(st.integers(0, 2), max_size=200), label="order"))
    cuts = sorted({0, len(mixed), *data.draw(st.lists(st.integers(0, len(mixed)), max_size=12), label="cuts")})
    again = data.draw(st.lists(st.integers(0, len(mixed) - 1), max_size=6), label="delivered again")
    pieces = [mixed[start:end] + [mixed[i] for i in again if i < end] for start, end in pairwise(cuts)]
    item = fed(estate, name, [[report for sequence in sequences for report in sequence]], {0: events})
    assert fed(estate, name, pieces, {0: events}) == item
    assert item[1]["late_reports"] == 0


@given(sequences=file_sequences(), data=st.data())
@settings(max_examples=examples(50))
def test_a_uniform_cluster_says_the_same_in_any_order(estate: Estate, sequences: list[list[Report]], data: Any) -> None:
    members = {"attributes": {"queue_managers": ["UC01QM01", "UC01QM02"]}}
    events = [(400, "ALTER", members), (700, "MEASURE", {"measured": {"rate": 900, "depth": 100}})]
    check_any_order(estate, "UC01", sequences, events, data)


@given(sequences=structure_sequences(), data=st.data())
@settings(max_examples=examples(50))
def test_a_coupling_facility_says_the_same_in_any_order(
    estate: Estate, sequences: list[list[Report]], data: Any
) -> None:
    events = [(200, "MEASURE", {"measured": {"scm_used": GB}}), (300, "ALTER", {"attributes": {"scm": "6G"}})]
    check_any_order(estate, "CF01", sequences, events, data)
