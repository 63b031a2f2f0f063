"""The measures of the scorecard, from judged stores made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.by_hand import STORE
from tests.tools.score.chances import add_counts
from tests.tools.score.judge import JudgedStore, Point, StorePages, WarnedFilling
from tests.tools.score.measures import Coverage, count_pages, coverage, measure
from tests.tools.score.samples import filling


def warned(lead: float | None = 60.0, *, fill: float = 100.0, **fields: Any) -> WarnedFilling:
    """lead: minutes; fill: minutes from the onset to the first 2192."""
    seconds = None if lead is None else lead * 60
    others = {"reopened": 0, "clear": None, "named": None} | fields
    return WarnedFilling(filling=filling(0, fill, fill + 10), lead=seconds, **others)


def store(*warnings: WarnedFilling, false: int = 0, days: float = 1.0, **fields: Any) -> JudgedStore:
    others: dict[str, Any] = {"alarms": 0, "withdrawn": 0, "early": 0, "undecided": 0, "points": [], "causes": ()}
    others["chances"] = add_counts([])
    return JudgedStore(store=STORE, days=days, warned=list(warnings), false=false, **(others | fields))


def test_recall_precision_and_f1():
    measures = measure([[store(warned(), warned(None), false=1)], [store(warned(), warned(), false=2)]])
    assert (measures.recordings, measures.fillings, measures.recalled, measures.false) == (2, 4, 3, 3)
    assert (measures.recall, measures.precision) == (0.75, 0.5)
    assert measures.f1 == pytest.approx(2 * 0.75 * 0.5 / 1.25)


def test_nothing_recalled_is_an_f1_of_nought():
    measures = measure([[store(warned(None))]])
    assert (measures.recall, measures.precision, measures.f1) == (0.0, None, 0.0)


def test_nothing_to_measure_is_none_and_no_nought():
    measures = measure([[store()]])
    assert (measures.recall, measures.precision, measures.f1, measures.lead_p50, measures.enough_lead) == (None,) * 5
    assert (measures.reopened, measures.clear_p50, measures.named, measures.errors) == (None, None, None, {})


def test_false_alarms_by_store_day_and_recordings_without_one():
    measures = measure([[store(false=3, days=0.5), store(days=1.5)], [store(days=2.0)]])
    assert measures.false_per_day == 3 / 4
    assert measures.calm == 0.5
    assert measures.store_days == 4.0


def test_leads_are_those_of_the_recalled():
    leads = [warned(minutes) for minutes in range(11)]
    measures = measure([[store(*leads, warned(None))]])
    assert (measures.lead_p10, measures.lead_p50) == (60.0, 300.0)


@pytest.mark.parametrize(
    ("lead", "fill", "enough"),
    [(15, 100, 1), (14.9, 100, 0), (8, 10, 1), (7.9, 10, 0), (14.9, 16, 0), (None, 10, 0), (12, 14.9, 1)],
)
def test_enough_lead_is_a_quarter_of_an_hour_or_four_fifths_of_a_shorter_filling(lead, fill, enough):
    assert measure([[store(warned(lead, fill=fill))]]).enough_lead == enough


def test_errors_are_medians_over_the_fillings_that_have_one():
    some = [{60: 0.1, 5: 0.3}, {60: np.inf, 5: 0.5}, {5: np.inf}, {60: 0.2}]
    measures = measure([[store(*(warned(errors=bin_) for bin_ in some))]])
    assert measures.errors == {60: (0.2, 3), 5: (0.5, 3)}


def test_reopened_cleared_and_named():
    some = (warned(reopened=2, clear=60.0, named=True), warned(clear=120.0, named=False), warned(named=True), warned())
    measures = measure([[store(*some)]])
    assert measures.reopened == 0.5
    assert measures.clear_p50 == 90.0
    assert measures.named == pytest.approx(2 / 3)


def test_an_interval_covers_what_lies_on_it_or_within():
    predicted = (100.0, 200.0, 300.0)
    measures = coverage([Point(*predicted, came) for came in (50, 100, 150, 250, 300, 301, 400, 220, 230, 240)])
    assert measures == Coverage(10, 0.1, 0.3, 0.2)
    assert measures.inside == pytest.approx(0.7)


def test_beyond_the_horizon_is_after_whatever_came():
    measures = coverage([Point(100.0, np.inf, np.inf, 3000.0), Point(np.inf, np.inf, np.inf, 3000.0)])
    assert measures == Coverage(2, 0.5, 1.0, 0.0)
    assert coverage([]).inside is None


def test_an_interval_score_is_the_error_of_a_single_time_and_later_than_two_hours_counts_as_two_hours():
    points = [Point(600.0, 600.0, 600.0, 900.0), Point(np.inf, np.inf, np.inf, 3600.0)]
    assert measure([[store(points=points)]]).interval_score == pytest.approx((300 + 3600) / 2)


def test_intervals_of_figures_are_there_from_ten_recordings_on_and_contain_them():
    recordings = [[store(warned(10 * i if i % 3 else None), false=i % 2, days=i)] for i in range(1, 31)]
    measures = measure(recordings, 200)
    assert measure(recordings[:9], 200).bounds == measure(recordings).bounds == {}
    for name in ("recall", "precision", "f1", "false_per_day", "lead_p10", "lead_p50", "enough_lead", "reopened"):
        low, high = measures.bounds[name]
        assert low <= getattr(measures, name) <= high
    assert measure(recordings, 200) == measures


def test_as_json_an_infinite_error_is_null():
    measures = measure([[store(warned(errors={60: np.inf, 5: 0.25}))]]).as_json()
    assert measures["errors"] == {"60": {"median": None, "fillings": 1}, "5": {"median": 0.25, "fillings": 1}}
    assert measures["recall"] == 1.0
    assert measures["interval"]["inside"] is None


# -- pages


def pages(count: int, *leads: float | None, **fields: Any) -> StorePages:
    """Return a store with a number of pages, and a filling for each lead in seconds."""
    others = {"false": 0, "undecided": 0, "again": 0, "notices": count, "unheard": 0, "days": 3.0} | fields
    return StorePages(store=STORE, fillings=len(leads), pages=count, leads=leads, **others)


def test_pages_are_counted_by_filling_and_by_store_in_which_nothing_fills():
    counts = count_pages(
        [
            [pages(3, 60.0, None, false=1, unheard=1, notices=8)],
            [pages(1, 180.0), pages(1, false=1, again=1)],
            [pages(0), pages(0)],
        ]
    )
    assert (counts.stores, counts.fillings, counts.calm_stores, counts.store_days) == (5, 3, 3, 15.0)
    assert (counts.pages, counts.right, counts.false, counts.undecided) == (5, 3, 2, 0)
    assert counts.precision == 0.6
    assert (counts.per_filling, counts.per_calm_store) == (pytest.approx(4 / 3), pytest.approx(1 / 3))
    assert (counts.per_month, counts.false_per_month) == (pytest.approx(10.0), pytest.approx(4.0))
    assert counts.per_page == pytest.approx(10 / 5)
    assert (counts.late, counts.unheard, counts.again, counts.lead_p50) == (1, 1, 1, 120.0)


def test_an_undecided_page_is_no_part_of_the_precision():
    counts = count_pages([[pages(3, 60.0, false=1, undecided=1)]])
    assert (counts.right, counts.precision) == (1, 0.5)


def test_without_stores_there_is_nothing_to_divide():
    counts = count_pages([])
    assert (counts.precision, counts.per_month, counts.per_filling, counts.per_calm_store) == (None,) * 4
    assert (counts.per_page, counts.lead_p50, counts.pages) == (None, None, 0)
