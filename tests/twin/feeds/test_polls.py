"""Exporters that repeat values between two polls, and collections in several parts: `twin.feeds.metrics`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tests.twin.feeds.read import read, take, total
from twin.estate import Estate
from twin.events import Event
from twin.feeds import FORMATS, FeedOptions, Intake, Page, make_feed

SECOND = 1_000_000
START = 1_795_687_200  # seconds
QUEUE = {"qmgr": "QM01", "queue": "LOCAL", "platform": "ZOS"}
Sample = Mapping[str, float]


def mq_json(second: float, *points: tuple[str, Mapping[str, str], Sample]) -> bytes:
    entries = [{"objectType": kind, "tags": dict(tags), "metrics": dict(values)} for kind, tags, values in points]
    return json.dumps({"collectionTime": {"epoch": START + second}, "points": entries}).encode() + b"\n"


def exposition(second: float, values: Sample, labels: Mapping[str, str] = QUEUE) -> Page:
    text = ",".join(f'{name}="{value}"' for name, value in labels.items())
    lines = [f"ibmmq_queue_{name}{{{text}}} {value:g}" for name, value in values.items()]
    return Page("\n".join([*lines, ""]).encode(), f"scrape {second:g}", round((START + second) * SECOND))


def range_query(series: Mapping[str, Iterable[tuple[float, float]]]) -> bytes:
    result = []
    for name, values in series.items():
        labels = {"__name__": f"ibmmq_queue_{name}"} | QUEUE
        result.append({"metric": labels, "values": [[START + second, str(value)] for second, value in values]})
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


def counts(puts: float, gets: float, depth: float = 0) -> dict[str, float]:
    return {"mqput_mqput1_count": puts, "mqget_count": gets, "depth": depth}


def camel(values: Sample) -> dict[str, float]:
    names = {"mqput_mqput1_count": "mqputMqput1Count", "mqget_count": "mqgetCount", "depth": "depth"}
    return {names[name]: value for name, value in values.items()}


def pages_of(name: str, samples: Iterable[tuple[float, Sample]]) -> list[bytes | Page]:
    """Return samples (second, values) as pages of a format: of `range` as an answer of Prometheus."""
    samples = list(samples)
    if name == "mq_json":
        return [b"".join(mq_json(second, ("queue", QUEUE, camel(values))) for second, values in samples)]
    if name == "prometheus":
        return [exposition(second, values) for second, values in samples]
    return [range_query({metric: [(s, v[metric]) for s, v in samples] for metric in samples[0][1]})]


def totals_of(
    name: str, estate: Estate, samples: Iterable[tuple[float, Sample]], **options: Any
) -> tuple[int, int, list[Event]]:
    events, intake = read(
        "prometheus" if name == "range" else name, *pages_of(name, samples), estate=estate, length=1, **options
    )
    assert intake.counts.keys() <= {"no-size"}
    return total(events, "PUT"), total(events, "GET"), events


POLLS = [counts(0, 0, 5), counts(30, 28, 7), counts(42, 40, 9), counts(30, 30, 9), counts(18, 10, 17)]
EVERY_WAY = pytest.mark.parametrize("name", ["mq_json", "prometheus", "range"])


@EVERY_WAY
@pytest.mark.parametrize(("scrape", "poll"), [(10, 30), (10, 60), (15, 30), (30, 30)])
def test_a_poll_counts_once_however_often_it_is_written(estate: Estate, name: str, scrape: int, poll: int) -> None:
    samples = [(second, POLLS[second // poll]) for second in range(0, 5 * poll, scrape)]
    puts, gets, events = totals_of(name, estate, samples)
    assert (puts, gets) == (120, 108)
    assert max(event["time"] for event in events) == (START + 4 * poll) * SECOND


@EVERY_WAY
def test_two_polls_with_equal_values_are_two(estate: Estate, name: str) -> None:
    """The interval is known from the changes before; no later than one collection after the second poll."""
    polls = [counts(0, 0), counts(5, 5), counts(6, 5), counts(7, 7), counts(7, 7), counts(7, 7), counts(1, 2)]
    samples = [(second, polls[second // 30]) for second in range(0, 210, 10)]
    puts, gets, _ = totals_of(name, estate, samples)
    assert (puts, gets) == (5 + 6 + 3 * 7 + 1, 5 + 5 + 3 * 7 + 2)


def test_equal_values_at_the_end_count_when_the_next_poll_is_over(estate: Estate) -> None:
    polls = [counts(0, 0), counts(5, 5), counts(6, 5), counts(7, 7), counts(7, 7)]
    samples = [(second, polls[second // 30]) for second in range(0, 150, 10)]
    assert [totals_of("mq_json", estate, samples[:end])[0] for end in (13, 14)] == [18, 25]


def test_a_series_that_is_missing_in_a_scrape_is_no_poll(estate: Estate) -> None:
    other = {**QUEUE, "queue": "ORDERS"}
    pages = []
    for second in range(0, 150, 10):
        parts = [] if second in {50, 100} else [("queue", QUEUE, camel(POLLS[second // 30]))]
        pages.append(mq_json(second, *parts, ("queue", other, camel(counts(second // 30, second // 30)))))
    events, _ = read("mq_json", *pages, estate=estate, length=1)
    assert (total(events, "PUT", queue="LOCAL"), total(events, "GET", queue="LOCAL")) == (120, 108)
    assert total(events, "PUT", queue="ORDERS") == 1 + 2 + 3 + 4


def test_values_that_change_too_early_for_the_option_are_no_poll(estate: Estate) -> None:
    samples = [(second, POLLS[second // 30] | {"oldest_message_age": float(second)}) for second in range(0, 150, 10)]
    for name in ("prometheus", "range"):
        assert totals_of(name, estate, samples, poll_s=30.0)[:2] == (120, 108)


@EVERY_WAY
def test_a_late_poll_is_not_taken_for_two(estate: Estate, name: str) -> None:
    times = [0, 30, 60, 100, 130]
    samples = [(second, POLLS[sum(second >= time for time in times) - 1]) for second in range(0, 160, 10)]
    assert totals_of(name, estate, samples)[:2] == (120, 108)


@EVERY_WAY
def test_the_option_gives_the_poll_interval_from_the_first_poll_on(estate: Estate, name: str) -> None:
    polls = [counts(7, 7), counts(7, 7), counts(7, 7), counts(1, 2)]
    samples = [(second, polls[second // 30]) for second in range(0, 120, 10)]
    assert totals_of(name, estate, samples, poll_s=30.0)[:2] == (7 + 7 + 1, 7 + 7 + 2)
    assert totals_of(name, estate, samples)[:2] == (1, 2)


def test_a_silent_night_does_not_stretch_the_first_interval(estate: Estate) -> None:
    hours = 6 * 3600
    samples: list[tuple[float, Sample]] = [(second, counts(0, 0, 3)) for second in range(0, hours, 10)]
    samples += [(hours, counts(30, 30, 3)), (hours + 10, counts(30, 30, 3))]
    puts, _, events = totals_of("mq_json", estate, samples)
    assert puts == 30
    assert min(event["time"] for event in events if event["op"] == "PUT") > (START + hours - 601) * SECOND


def test_what_a_gap_hid_is_not_made_up(estate: Estate) -> None:
    """RESET QSTATS counts on while nobody asks: the first poll after a gap has it all."""
    polls = [counts(0, 0), counts(5, 5), counts(6, 5), counts(7, 7)]
    samples: list[tuple[float, Sample]] = [(second, polls[second // 30]) for second in range(0, 120, 10)]
    changed = [*samples, (7200, counts(500, 500)), (7210, counts(500, 500))]
    assert totals_of("mq_json", estate, changed)[:2] == (518, 517)
    years = 1e9
    equal = [*samples, (years, polls[-1]), (years + 1, polls[-1]), (years + 2, polls[-1])]
    assert totals_of("mq_json", estate, equal)[:2] == (18, 17)


def test_a_distributed_queue_manager_may_have_equal_counts_again_and_again(estate: Estate) -> None:
    labels = {"qmgr": "QMD1", "queue": "INVOICES", "platform": "UNIX"}
    pages = [exposition(second, counts(3, 3), labels) for second in range(0, 50, 10)]
    events, _ = read("prometheus", *pages, estate=estate, length=1)
    assert total(events, "PUT") == 12


def test_the_interval_that_was_inferred_is_said(estate: Estate) -> None:
    samples = [(second, POLLS[second // 30]) for second in range(0, 150, 10)]
    _, intake = read("mq_json", *pages_of("mq_json", samples), estate=estate, length=1)
    (note,) = intake.notes
    assert note == (
        "QM01: its values change every 30 s at the least, taken as the poll interval of its collector; "
        "--poll-s sets another"
    )


# --- one collection in several parts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_one_page", [True, False])
def test_points_of_one_collection_belong_together_and_the_last_of_a_queue_counts(
    estate: Estate, is_one_page: bool
) -> None:
    invoices, orders = ({"qmgr": "QMD1", "queue": name, "platform": "UNIX"} for name in ("INVOICES", "ORDERS"))
    parts = [
        mq_json(0, ("queue", invoices, camel(counts(0, 0)))),
        mq_json(0, ("queue", orders, camel(counts(0, 0)))),
        mq_json(10, ("queue", invoices, camel(counts(1, 1)))),
        mq_json(10, ("queue", orders, camel(counts(5, 4)))),
        mq_json(10, ("queue", invoices, camel(counts(8, 6)))),
    ]
    pages = [b"".join(parts)] if is_one_page else parts
    events, intake = read("mq_json", *pages, estate=estate, length=1)
    assert intake.counts.keys() == {"no-size"}
    assert total(events, "PUT", queue="INVOICES") == 8
    assert total(events, "PUT", queue="ORDERS") == 5
    assert total(events, "GET") == 10


def test_an_answer_of_a_server_waits_for_nothing(estate: Estate) -> None:
    samples = [(second, POLLS[second // 30]) for second in range(0, 150, 10)]
    feed = make_feed("prometheus", Intake(estate), FeedOptions(length=1))
    (answer,) = pages_of("range", samples)
    assert isinstance(answer, bytes)
    page = Page(answer, "http://x", headers={"content-type": "application/json"})
    events = take(feed, page, is_end=False)
    assert total(events, "PUT") == 120


def test_a_record_of_mq_json_is_held_until_a_younger_one_comes(estate: Estate) -> None:
    assert FORMATS["mq_json"].is_live
    feed = make_feed("mq_json", Intake(estate), FeedOptions(length=1))
    first, second = (mq_json(s, ("queue", QUEUE, camel(counts(s, s)))) for s in (10, 20))
    assert take(feed, Page(first, "t/0@1"), is_end=False) == []
    assert (feed.passed, feed.page_latest) == (0, (START + 10) * SECOND)
    take(feed, Page(second, "t/0@2"), is_end=False)
    assert (feed.passed, feed.page_latest) == ((START + 10) * SECOND, (START + 20) * SECOND)
    assert total(take(feed), "PUT") == 20
    assert feed.passed == (START + 20) * SECOND


def test_a_queue_without_bytes_is_one_complaint(estate: Estate) -> None:
    samples = [(second, POLLS[second // 30]) for second in range(0, 150, 10)]
    _, intake = read("mq_json", *pages_of("mq_json", samples), estate=estate)
    assert dict(intake.counts) == {"no-size": 1}


def test_records_of_mq_json_may_go_over_several_lines(estate: Estate) -> None:
    samples = [(second, POLLS[second // 30]) for second in range(0, 150, 10)]
    (lines,) = pages_of("mq_json", samples)
    assert isinstance(lines, bytes)
    records = [json.loads(line) for line in lines.splitlines()]
    expected, _ = read("mq_json", lines, estate=estate, length=1)
    for separator in ("\n", "\n\n"):
        text = separator.join(json.dumps(record, indent=2) for record in records)
        assert read("mq_json", text.encode(), estate=estate, length=1)[0] == expected
    events, intake = read("mq_json", json.dumps(records[0], indent=2).encode()[:-1], estate=estate)
    assert (events, intake.counts["unreadable"]) == ([], 1)
