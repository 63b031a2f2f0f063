"""Page sets 01 to 99: short, long and very long messages, both packings, space map, delayed gets."""

from __future__ import annotations

import csv
import random
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels import page_set as kernel
from twin.base.errors import UsageError
from twin.estate.model import packs
from twin.sizing import at_max_depth, backlog_of, parse_mix, parse_rates, parse_seconds, plan_page_set
from twin.sizing.data_sets import (
    MAX_PAGES,
    PAGES_PER_TRACK,
    Cost,
    Extent,
    allocated_for,
    bytes_of,
    cost_of,
    kind_of,
    pages_of,
    places,
    usable_pages,
)

MIB = 1 << 20


def test_a_page_has_4057_bytes_of_which_a_short_message_may_use_3685():
    """Page sets 01 to 99, Short messages."""
    assert (kernel.SHORT, kernel.PAGE_SPACE) == (3685, 4057)
    assert (kind_of(3685), kind_of(3686)) == ("short", "long")
    assert cost_of(3685) == Cost(0, 4057)


@pytest.mark.parametrize(
    ("length", "n", "c"),
    [
        (3_686, 1, 23),  # 3686 + 352 = 4038
        (3_697, 1, 23),  # "the first page contains 3697 bytes of the message data"
        (3_698, 2, 26),
        (3_697 + 4_049, 2, 26),  # "subsequent pages, in 4049-byte segments"
        (3_698 + 4_049, 3, 29),
        (100_000, 25, 95),
        (4 * MIB, 1_036, 3_128),
    ],
)
def test_a_long_message_takes_n_pages_and_20_and_3n_bytes_of_control(length, n, c):
    """Page sets 01 to 99, Long messages: n = (L + 352) / 4049 rounded up, c = 20 + 3n, (n * 4096) + c bytes."""
    assert kind_of(length) == "long"
    assert cost_of(length) == Cost(n, c)
    assert bytes_of(length) == n * 4096 + c


@pytest.mark.parametrize(
    ("length", "cost"),
    [
        (8 * MIB, Cost(2 * 1037, 0)),
        (4 * MIB + 1, Cost(1037 + 1, 23)),  # the remainder is stored as a long message is, however short
        (4 * MIB + 3_685, Cost(1037 + 1, 23)),
        (9 * MIB, Cost(2 * 1037 + 260, 800)),  # 1 MB: 260 pages, 800 bytes of control
        (100 * MIB, Cost(25 * 1037, 0)),
    ],
)
def test_each_4_mb_of_a_very_long_message_take_1037_pages_and_the_rest_what_a_long_one_takes(length, cost):
    """Page sets 01 to 99, Very long messages."""
    assert kind_of(length) == "very long"
    assert cost_of(length) == cost


@pytest.mark.parametrize(("length", "pages"), [(0, 1), (3_685, 1), (3_686, 2), (3_698, 3), (4 * MIB, 1_037)])
def test_since_7_0_1_a_short_message_and_a_control_record_take_a_page_of_their_own(length, pages):
    """[fitted] A message of exactly 4 MB takes the 1037 pages that each 4 MB of a longer one take."""
    assert pages_of(length) == pages


@pytest.mark.parametrize(
    ("version", "packed"),
    [(None, False), ("7.0.1", False), ("9.4", False), ("7.1", False), ("7.0.0", True), ("7.0", True), ("6.0.0", True)],
)
def test_a_queue_manager_before_7_0_1_packs(version, packed):
    assert packs(version) is packed


def test_short_messages_share_a_page_as_far_as_whole_ones_fit_where_they_are_packed():
    """Page sets 01 to 99, Short messages: the next available space on the page, the rest is left unused."""
    thousand_bytes = parse_mix(["1000:300"])  # 1372 bytes each: two on a page
    assert plan_page_set(thousand_bytes, packed=True).pages == 150
    assert plan_page_set(thousand_bytes).pages == 300
    assert plan_page_set(thousand_bytes).documented_records == 150


def test_control_records_of_long_messages_are_packed_with_short_ones():
    plan = plan_page_set(parse_mix(["20000:100"]), packed=True)  # n = 6, c = 38: 106 records on a page
    assert plan.pages == 100 * 6 + 1
    assert plan.documented_records == -(-100 * (6 * 4096 + 38) // 4096)
    assert plan_page_set(parse_mix(["20000:100"])).pages == 700


def test_the_queues_of_a_page_set_need_the_sum_of_what_each_needs():
    """Page sets 01 to 99: maximum depth of all the queues, and the average size of the messages of each."""
    of_each = [plan_page_set(parse_mix([mix])).pages for mix in ("500:1000", "10K:200", "5M:3")]
    assert plan_page_set(parse_mix(["500:1000", "10K:200", "5M:3"])).pages == sum(of_each)
    assert all(of_each)


def test_the_worst_case_is_every_queue_of_the_store_at_its_maxdepth():
    """Page sets 01 to 99: "the maximum depth of all queues that map to the page set, and the average size"."""
    mix, warnings = at_max_depth(("A", "B", "C"), {"A": 1000, "B": 200}, ["500", "B=10K"])
    assert [(part.length, part.count) for part in mix] == [(500, 1000), (10 << 10, 200)]
    assert warnings == ["no max_depth in the estate, so no messages counted: C"]
    assert plan_page_set(mix).pages == plan_page_set(parse_mix(["500:1000", "10K:200"])).pages


def test_a_queue_of_unlimited_depth_is_left_out_with_a_warning():
    mix, warnings = at_max_depth(("A", "B"), {"A": 1000, "B": 999_999_999}, ["500"])
    assert [(part.length, part.count) for part in mix] == [(500, 1000)]
    assert warnings == ["MAXDEPTH(999999999) is unlimited in practice, so no messages counted: B"]


@pytest.mark.parametrize(
    ("texts", "wrong"),
    [
        (["D=500"], "--at-max-depth D=500: no queue D of the store; expected: A, B"),
        (["A=500"], "--at-max-depth: no length of the messages of B; expected: LENGTH, or B=LENGTH"),
        (["A=x"], "--at-max-depth A=x; expected: a length in bytes"),
    ],
)
def test_what_is_wrong_in_a_worst_case_is_named(texts, wrong):
    with pytest.raises(UsageError, match=wrong):
        at_max_depth(("A", "B"), {"A": 1, "B": 1}, texts)


def test_gets_that_are_delayed_leave_all_that_is_put_on_the_page_set():
    """Page sets 01 to 99: "You must allow for the possibility that message gets might be delayed"."""
    backlog = backlog_of(parse_rates(["2048:50", "20000:0.5"]), parse_seconds("2h"))
    assert [(item.length, item.count) for item in backlog] == [(2048, 360_000), (20_000, 3_600)]
    plan = plan_page_set(parse_mix(["2048:1000"]) + backlog)
    assert plan.pages == 361_000 + 3_600 * 7


def test_at_least_two_pages_are_control_and_typically_less_than_1_percent():
    """Page sets 01 to 99, Calculating the storage requirement."""
    plan = plan_page_set(parse_mix(["100:1000"]))
    assert plan.control_pages == 2
    assert plan.control_pct < 1
    assert plan_page_set(parse_mix(["100:10"])).control_pages == 2


def test_the_largest_page_set_has_16_776_178_usable_pages():
    """[published] The maximum."""
    assert usable_pages(MAX_PAGES) == 16_776_178
    [only] = plan_page_set(parse_mix(["100:16776178"])).warnings  # 64 GB: beyond what VSAM has by default
    assert "extended addressability" in only
    assert "2 page sets" in plan_page_set(parse_mix(["100:16776179"])).warnings[0]


@given(st.integers(0, 20_000_000))
def test_the_fewest_pages_to_allocate_have_so_many_usable_and_one_less_has_not(pages):
    allocated = allocated_for(pages)
    assert usable_pages(allocated) >= pages
    assert allocated == 0 or usable_pages(allocated - 1) < pages


def test_usable_pages_of_real_page_sets_are_those_of_whole_tracks(shared):
    """SMF 115 QIS1 of MQ 10.0: eleven sizes, `Total_Pages` being the usable ones; data sets are whole tracks."""
    with (shared / "fixtures" / "smf" / "expected" / "SMF_MQ1000-QIS1.csv").open(encoding="utf-8") as file:
        measured = {int(row["Total_Pages"]) for row in csv.DictReader(file)} - {0}
    assert len(measured) == 11
    results = {}
    for usable in measured:
        tracks = next(tracks for tracks in range(1, 100_000) if usable_pages(tracks * PAGES_PER_TRACK) >= usable)
        results[usable] = tracks * PAGES_PER_TRACK
    assert {usable_pages(allocated) for allocated in results.values()} == measured
    assert results[50_035] == 50_040 and results[963_659] == 963_720
    cylinders = [Extent.of_pages(allocated) for usable, allocated in results.items() if usable > 70]
    assert all(extent.cylinders * 180 == extent.pages for extent in cylinders)


def test_a_page_set_that_does_not_expand_is_used_to_90_percent_at_most():
    plan = plan_page_set(parse_mix(["100:90000"]), allocated=100_080)
    assert 90_000 <= 0.9 * usable_pages(plan.unexpanded.pages) < 90_001
    assert plan.used_pct == pytest.approx(100 * 90_000 / 100_072)


@pytest.mark.parametrize("wrong", ["many", "2048:", "2048:0", "2048:-5", "-1:5", "2048:1e3", "200M:1", "1:2:3"])
def test_a_wrong_mix_is_answered_with_what_is_right(wrong):
    with pytest.raises(UsageError, match=r"--messages"):
        parse_mix([wrong])


@pytest.mark.parametrize("wrong", ["2048", "2048:0", "2048:x", "x:5", "2048:-1"])
def test_a_wrong_rate_is_answered_with_what_is_right(wrong):
    with pytest.raises(UsageError, match=r"--rate"):
        parse_rates([wrong])


def test_times_are_seconds_minutes_hours_days():
    assert [parse_seconds(text) for text in ("90", "90s", "3m", "2h", "1d")] == [90, 90, 180, 7_200, 86_400]
    with pytest.raises(UsageError, match=r"--delay 2 weeks"):
        parse_seconds("2 weeks")


def test_no_message_is_wrong_use():
    with pytest.raises(UsageError, match="no messages"):
        plan_page_set(())


# --- one after the other ---------------------------------------------------------------------------------------------


def naive_places(sizes, capacity):
    used, room = 0, 0
    for size in sizes:
        if size > room:
            begun = -(-size // capacity)
            used, room = used + begun, begun * capacity
        room -= size
    return used


@given(size=st.integers(1, 300), count=st.integers(1, 3_000), capacity=st.integers(1, 128))
def test_places_of_messages_of_one_size_are_exact(size, count, capacity):
    assert places([size], [count], capacity) == naive_places([size] * count, capacity)


@pytest.mark.parametrize(
    ("sizes", "counts", "capacity"),
    [((30, 40), (1, 1), 64), ((1, 16, 70), (5, 3, 1), 64), ((2_420, 38, 472), (10, 3, 1), 4_057), ((5, 1), (1, 99), 8)],
)
def test_places_of_a_mix_are_those_of_messages_in_random_order(sizes, counts, capacity):
    messages = [size for size, count in zip(sizes, counts, strict=True) for _ in range(count * 20_000)]
    random.Random(1).shuffle(messages)
    assert places(sizes, [count * 20_000 for count in counts], capacity) == pytest.approx(
        naive_places(messages, capacity), rel=0.01
    )


def test_no_message_takes_no_place():
    assert places([], [], 64) == 0


def by_the_document(length):
    """Return (pages, record) as Page sets 01 to 99 computes them, in fractions: no arithmetic of the twin's."""
    if length <= 3685:
        return 0, length + 352 + 20
    if length <= 4 * MIB:
        n = ceil(Fraction(length + 352, 4049))
        return n, 20 + 3 * n
    pieces = length // (4 * MIB)
    remainder = length - pieces * 4 * MIB
    n = ceil(Fraction(remainder + 352, 4049)) if remainder else 0  # "in the same way as a long message"
    return pieces * 1037 + n, 20 + 3 * n if remainder else 0


def test_three_messages_of_4_mb_and_a_byte_are_3115_records_by_the_document():
    """Page sets 01 to 99: 3 times 1038 pages and 23 bytes, over 4096."""
    assert plan_page_set(parse_mix([f"{4 * MIB + 1}:3"])).documented_records == 3_115


@given(st.integers(0, 104_857_600))
def test_the_twin_counts_pages_and_records_as_the_plan_does(length):
    assert kernel.pages_of(length) == cost_of(length) == by_the_document(length)


@given(st.integers(0, MAX_PAGES))
def test_the_twin_has_as_many_usable_pages_as_the_plan(allocated):
    assert kernel.usable_pages(allocated) == max(0, allocated - (1 + ceil(Fraction(allocated, 16_184))))
