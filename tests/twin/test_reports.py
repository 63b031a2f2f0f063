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
from twin.stores.reports import BACKLOG_TICKS, LAG_TICKS, SKEW_TICKS, Frontier, Report, receivers, sources_of


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


def frontier_of(*reports: Report, caught_up: bool = True) -> Frontier:
    """Return a frontier with reports to UC01, of which those are released that may be."""
    frontier = Frontier(caught_up=caught_up)
    take(frontier, *reports)
    return frontier


def take(frontier: Frontier, *reports: Report) -> None:
    frontier.take(reports)
    while frontier.release(FILES, FILES) is not None:
        pass


def bound(frontier: Frontier) -> int | None:
    """Return the last tick that may be processed, from `START`."""
    tick = frontier.bound(FILES, FILES)
    return None if tick is None else tick - START


def test_a_tick_is_acted_on_when_every_source_that_has_reported_has_passed_it() -> None:
    frontier = frontier_of(file_report(FILES[0], 5), file_report(FILES[1], 3))
    assert bound(frontier) == 3
    take(frontier, file_report(FILES[1], 5))
    assert bound(frontier) == 5
    assert [(report.source, report.tick - START) for report in frontier.due(START + 4)] == [(FILES[1], 3)]


def test_what_has_never_reported_is_no_source() -> None:
    assert bound(frontier_of(file_report(FILES[0], 1), file_report(FILES[0], 2))) == 2


def test_while_a_backlog_is_read_every_source_of_the_estate_is_waited_for() -> None:
    frontier = frontier_of(*(file_report(FILES[0], tick) for tick in range(1, 400)), caught_up=False)
    assert bound(frontier) is None
    take(frontier, file_report(FILES[1], 300), file_report(FILES[2], 200))
    assert bound(frontier) == 200
    take(frontier, file_report(FILES[0], BACKLOG_TICKS + 250))
    assert bound(frontier) == 250, "a day at most"


def test_a_source_that_falls_silent_is_waited_for_for_five_minutes() -> None:
    frontier = frontier_of(file_report(FILES[0], 1), file_report(FILES[1], 1))
    bounds = []
    for tick in range(2, 60):
        take(frontier, file_report(FILES[0], tick))
        bounds.append(bound(frontier))
    assert bounds[: LAG_TICKS - 2] == [1] * (LAG_TICKS - 2)
    assert max(tick - (bound or 0) for tick, bound in zip(range(2, 60), bounds, strict=True)) == LAG_TICKS - 1 == 29
    assert bounds[-1] == 59 - SKEW_TICKS, "known to be silent, it is waited for no longer than its events may take"


def test_a_source_heard_again_is_waited_for_again() -> None:
    frontier = frontier_of(file_report(FILES[0], 1), file_report(FILES[1], 1), file_report(FILES[0], 2, 100))
    take(frontier, file_report(FILES[1], 2, 100))
    assert bound(frontier) == 100
    take(frontier, file_report(FILES[0], 101, 110))
    assert bound(frontier) == 100


def test_what_a_source_says_after_a_silence_counts_and_is_not_late(estate: Estate) -> None:
    store = Shared(estate, "UC01")
    store.reports(file_report(FILES[0], 1), file_report(FILES[1], 1))
    for tick in range(2, 200):
        store.reports(file_report(FILES[0], tick, puts=600, gets=600))
    store.reports(file_report(FILES[1], 2, 199, puts=60, gets=60, depth=7))
    assert store.state().depth == 7
    assert store.state().members == 1, "its traffic was before the silence"
    assert store.state().late_reports == 0


def test_a_report_delivered_again_is_dropped() -> None:
    frontier = frontier_of(file_report(FILES[0], 1), file_report(FILES[0], 2, 4), file_report(FILES[0], 2, 4))
    take(frontier, file_report(FILES[0], 1), file_report(FILES[0], 5))
    assert [report.tick - START for report in frontier.due(START + 9)] == [1, 2, 5]


def test_a_report_behind_what_was_acted_on_counts_as_late(estate: Estate) -> None:
    store = Shared(estate, "UC01")
    store.reports(*(file_report(name, tick) for name in FILES[:2] for tick in range(1, 21)))
    store.reports(file_report(FILES[2], 18, puts=60, gets=60, depth=7))
    assert (store.state().late_reports, store.state().depth) == (1, 0), "it waits for the next tick"
    store.reports(*(file_report(name, 21) for name in FILES[:2]), file_report(FILES[2], 19, 21, depth=8))
    assert (store.state().late_reports, store.state().depth) == (1, 8)


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


def fed(
    estate: Estate, name: str, pieces: list[list[Report]], events: list[Any], *, backlog: bool
) -> tuple[list[Alert], Any]:
    """Alerts and state after own events, then pieces, the store kept in its header only from one to the next.

    backlog: that there are no more reports is known after the last piece only.
    """
    store = Shared(estate, name)
    for seconds, op, fields in events:
        store.event(seconds, op, **fields)
    for piece in pieces:
        store.reports(*piece, caught_up=not backlog)
        store.reopen()
    store.reports()
    return store.alerts, store.state()


def check_any_order(estate: Estate, name: str, sequences: list[list[Report]], events: Any, data: st.DataObject) -> None:
    """Assert that the order does not matter: within `SKEW_TICKS` as they come, within a day in a backlog."""
    item = fed(estate, name, [[report for sequence in sequences for report in sequence]], events, backlog=False)
    backlog = data.draw(st.booleans(), label="backlog")
    choices = data.draw(st.lists(st.integers(0, 2), max_size=200), label="order")
    mixed = interleaved(sequences, choices, BACKLOG_TICKS if backlog else SKEW_TICKS)
    cuts = {0, len(mixed), *data.draw(st.lists(st.integers(0, len(mixed)), max_size=12), label="cuts")}
    if not backlog:  # what has not reported before is not waited for: all sources are in the first piece
        known = max(mixed.index(sequence[0]) for sequence in sequences)
        cuts = {cut for cut in cuts if not 0 < cut <= known}
    again = data.draw(st.lists(st.integers(0, len(mixed) - 1), max_size=6), label="delivered again")
    pieces = [mixed[start:end] + [mixed[i] for i in again if i < end] for start, end in pairwise(sorted(cuts))]
    assert fed(estate, name, pieces, events, backlog=backlog) == item
    assert item[1].late_reports == 0


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
