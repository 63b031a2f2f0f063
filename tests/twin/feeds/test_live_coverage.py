"""Sampled spans scaled by earlier statistics: `twin.feeds.intervals`."""

from __future__ import annotations

import pytest

from tests.support.estates import small_estate
from twin.estate import load_estate
from twin.feeds.intervals import MIN_SPANS, LiveCoverage

NOON = 1_795_176_000_000_000
QUARTER = 900_000_000  # microseconds


@pytest.fixture(scope="module")
def estate(tmp_path_factory):
    return load_estate(small_estate(tmp_path_factory.mktemp("estate")))


def span(window, number=0, op="PUT", **others):
    length = {"length": 100} if op == "PUT" else {}
    time = NOON + window * QUARTER + number * 1000
    return {"time": time, "qmgr": "QM01", "op": op, "queue": "ORDERS", "msgid": f"m{number}", **length, **others}


def counted(window, count, op="PUT"):
    return {"time": NOON + window * QUARTER, "qmgr": "QM02", "op": op, "queue": "ORDERS", "length": 90, "count": count}


def calls(events):
    return sum(event.get("count", 1) for event in events)


def test_spans_stand_for_the_calls_that_statistics_of_whole_windows_counted(estate):
    coverage, sentences = LiveCoverage(estate), []
    before = [*coverage.scale(span(window, number) for window in range(4) for number in range(40))]
    assert len(before) == 160
    coverage.learn([counted(window, 100) for window in range(4)], sentences.append)
    text = "ORDERS on QSG1/APP1: 80 spans of PUT, 200 counted by statistics, coverage 40.0 %: "
    assert sentences == [f"{text}a span counts as 2.50 from now on"]
    after = [*coverage.scale(span(4, number) for number in range(1000))]
    assert calls(after) == 2500
    assert sum("msgid" in event for event in after) == 1000
    assert all("msgid" not in event and event["length"] == 100 for event in after if "count" in event)
    assert {event.get("count", 1) for event in after} == {1, 2}


def test_puts_and_gets_have_shares_of_their_own(estate):
    coverage = LiveCoverage(estate)
    for window in range(3):
        [*coverage.scale(span(window, number, op) for op in ("PUT", "GET") for number in range(20))]
    coverage.learn([counted(1, 60), counted(1, 20, "GET")], lambda _: None)
    assert calls(coverage.scale([span(3, number) for number in range(20)])) == 60
    assert calls(coverage.scale([span(3, number, "GET") for number in range(20)])) == 20


def test_too_few_spans_or_more_than_were_counted_are_not_scaled_and_that_is_said(estate):
    for spans, count, words in ((MIN_SPANS - 1, 500, "too few spans"), (50, 40, "are not scaled")):
        coverage, sentences = LiveCoverage(estate), []
        for window in range(3):
            [*coverage.scale(span(window, number) for number in range(spans))]
        coverage.learn([counted(1, count)], sentences.append)
        assert words in sentences[0]
        assert calls(coverage.scale([span(4, number) for number in range(100)])) == 100


def test_what_is_known_continues_in_another_process(estate):
    first = LiveCoverage(estate)
    for window in range(3):
        [*first.scale(span(window, number) for number in range(20))]
    first.learn([counted(1, 80)], lambda _: None)
    assert first.known == {"QSG1/APP1\tORDERS\tPUT": (20, 80)}
    second = LiveCoverage(estate, first.known)
    assert calls(second.scale([span(9, number) for number in range(10)])) == 40


def test_other_events_pass_and_no_window_is_forgotten_too_late(estate):
    coverage = LiveCoverage(estate)
    measure = {"time": NOON, "qmgr": "QM01", "op": "MEASURE", "store": "QSG1/APP1", "measured": {"ents_used": 5}}
    assert [*coverage.scale([measure])] == [measure]
    for window in range(300):
        [*coverage.scale([span(window)])]
    assert len(coverage._spans.spans) <= 97
