"""Counts of an interval as events."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twin.feeds.intervals import Flows, Puts, events_of, net, peak_error, slices_of, spread

MINUTE = 60_000_000
START = 1_795_176_000_000_000


@st.composite
def flows(draw):
    counts = st.integers(0, 3_000_000)
    puts = []
    for persistent in (False, True):
        count = draw(counts)
        puts.append(Puts(count=count, bytes=draw(st.integers(0, 100_000)) * count, persistent=persistent))
    return Flows(
        qmgr="QM01",
        queue="ORDERS",
        start=START,
        end=START + draw(st.integers(1, 60)) * MINUTE,
        puts=tuple(puts),
        gets=draw(counts),
        expired=draw(st.integers(0, 5)),
    )


@given(flows(), st.sampled_from([1.0, 10.0, 60.0]))
def test_counts_and_bytes_are_exact(flow, slice_s):
    events = list(events_of(flow, slice_s))
    for group in flow.puts:
        own = [e for e in events if e["op"] == "PUT" and e.get("persistent", False) == group.persistent]
        assert sum(e["count"] for e in own) == group.count
        assert sum(e["count"] * e["length"] for e in own) == group.bytes
    assert sum(e["count"] for e in events if e["op"] == "GET") == flow.gets
    assert sum(e["count"] for e in events if e["op"] == "EXPIRE") == flow.expired
    assert all(1 <= e["count"] <= 1_000_000 for e in events)


@given(flows(), st.sampled_from([1.0, 10.0, 60.0]))
def test_events_are_in_order_and_within_the_interval(flow, slice_s):
    times = [event["time"] for event in events_of(flow, slice_s)]
    assert times == sorted(times)
    assert all(flow.start < time <= flow.end for time in times)


@given(st.integers(0, 10_000), st.sampled_from([1.0, 10.0, 60.0]))
def test_at_steady_rates_a_peak_is_too_high_by_the_puts_of_one_slice_at_most(count, slice_s):
    """There are as many gets as puts: the true depth is 0 or 1 all the time."""
    puts = (Puts(count=count, bytes=100 * count),)
    flow = Flows(qmgr="QM01", queue="ORDERS", start=START, end=START + 15 * MINUTE, puts=puts, gets=count)
    depth = peak = 0
    for event in events_of(flow, slice_s):
        depth += event["count"] * (1 if event["op"] == "PUT" else -1)
        peak = max(peak, depth)
    assert depth == 0
    assert peak <= peak_error(flow, slice_s)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=4), st.integers(0, 1_000_000))
def test_no_get_comes_before_its_put(counts, rolled_back):
    puts = tuple(Puts(count=n, bytes=101 * n, persistent=i > 1) for i, n in enumerate(counts))
    gets = max(0, sum(counts) - rolled_back)
    depth = 0
    flow = Flows(qmgr="QM01", queue="ORDERS", start=START, end=START + 15 * MINUTE, puts=puts, gets=gets)
    for event in events_of(flow, 10.0):
        depth += event["count"] * (1 if event["op"] == "PUT" else -1)
        assert depth >= 0


@given(st.integers(0, 10**9), st.integers(1, 1000), st.booleans())
def test_a_total_is_spread_evenly(total, slices, is_early):
    shares = spread(total, slices, is_early=is_early)
    assert sum(shares) == total
    assert max(shares) - min(shares) <= 1


def test_an_interval_has_a_slice_per_ten_seconds():
    assert slices_of(START, START + MINUTE, 10.0) == 6
    assert slices_of(START, START + 1, 10.0) == 1
    assert slices_of(START, START + 10**12, 1.0) == 1000


def test_puts_that_were_rolled_back_are_taken_from_all_alike_but_not_from_those_handed_over():
    puts = (Puts(count=60, bytes=6000), Puts(count=40, bytes=400, persistent=True), Puts(count=7, bytes=7, direct=True))
    assert [(group.count, group.bytes) for group in net(puts, 50)] == [(30, 3000), (20, 200), (7, 7)]
    assert [group.count for group in net(puts, 1000)] == [0, 0, 7]
    assert net((), 3) == ()
