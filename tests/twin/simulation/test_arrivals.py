"""Arrivals: how many, when, and what calls look like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels import FLAG_HAS_UOW, FLAG_PERSISTENT
from kernels.layout import BACKOUT, COMMIT, GET, PUT
from twin.simulation.arrivals import Flow, LongUnit, Traffic, between, constant, demands, rising, steps

START = 1_795_132_800_000_000


def drawn(*flows: Flow, seconds: float = 3600.0, seed: int = 1, **options: Any) -> Any:
    return np.concatenate(list(demands(flows, START, seconds, np.random.default_rng(seed), **options)))


def test_as_many_messages_come_as_the_rate_says_units_of_work_included() -> None:
    calls = drawn(Flow(route=0, op=PUT, rate=constant(20), traffic=Traffic(unit_share=0.5)))
    assert (calls["op"] == PUT).sum() == pytest.approx(20 * 3600, rel=0.05)


def test_a_rate_of_nought_brings_nothing() -> None:
    calls = drawn(Flow(route=0, op=GET, rate=between(600, 1200, 0, 10)))
    seconds = (calls["time"] - START) / 1e6
    assert not ((seconds >= 601) & (seconds < 1200)).any()  # a unit of work may end a moment later
    assert (seconds < 600).any()
    assert (seconds >= 1200).any()


def test_counts_vary_more_than_those_of_a_poisson_process() -> None:
    calls = drawn(Flow(route=0, op=PUT, rate=constant(20), traffic=Traffic(unit_share=0)), seconds=36_000)
    counts = np.bincount((calls["time"] - START) // 10_000_000)
    assert counts.var() > 5 * counts.mean()
    steady = drawn(Flow(route=0, op=PUT, rate=constant(20), traffic=Traffic(unit_share=0, noise=0)), seconds=36_000)
    counts = np.bincount((steady["time"] - START) // 10_000_000)
    assert counts.var() == pytest.approx(counts.mean(), rel=0.15)


def test_all_flows_come_in_one_order_of_time_in_pieces_of_bounded_size() -> None:
    flows = [Flow(route=route, op=PUT, rate=constant(10)) for route in range(4)]
    pieces = list(demands(flows, START, 7200, np.random.default_rng(1), chunk=10_000))
    assert max(piece.size for piece in pieces) < 20_000
    times = np.concatenate(pieces)["time"]
    assert (np.diff(times) >= 0).all()
    assert times[0] >= START


def test_lengths_are_spread_around_their_mean_and_cut_at_both_ends() -> None:
    traffic = Traffic(length=constant(2_000), spread=0.8, shortest=100, longest=50_000)
    lengths = drawn(Flow(route=0, op=PUT, rate=constant(20), traffic=traffic))["length"]
    lengths = lengths[lengths > 0]
    assert lengths.mean() == pytest.approx(2_000, rel=0.05)
    assert lengths.min() >= 100
    assert lengths.max() <= 50_000
    assert np.median(lengths) < 1_700


def test_lengths_follow_their_mean_over_time() -> None:
    traffic = Traffic(length=lambda seconds: 1_000 + seconds, spread=0.1)
    puts = drawn(Flow(route=0, op=PUT, rate=constant(20), traffic=traffic))
    puts = puts[puts["op"] == PUT]
    assert puts["length"][:500].mean() < 1_100
    assert puts["length"][-500:].mean() > 4_400


def test_priorities_and_persistence_have_their_shares() -> None:
    traffic = Traffic(priorities=((0, 0.5), (7, 0.5)), persistent=0.25)
    puts = drawn(Flow(route=0, op=PUT, rate=constant(20), traffic=traffic))
    puts = puts[puts["op"] == PUT]
    assert set(puts["priority"].tolist()) == {0, 7}
    assert (puts["priority"] == 7).mean() == pytest.approx(0.5, abs=0.02)
    assert (puts["flags"] & FLAG_PERSISTENT != 0).mean() == pytest.approx(0.25, abs=0.02)


def test_every_unit_of_work_is_ended_once_after_its_last_call() -> None:
    traffic = Traffic(unit_share=0.5, backout_share=0.2)
    calls = drawn(*(Flow(route=route, op=PUT, rate=constant(5), traffic=traffic) for route in (0, 1)))
    inside = calls[calls["uow"] != 0]
    assert (inside["flags"] & FLAG_HAS_UOW != 0).all()
    ended = inside[inside["op"] >= COMMIT]
    assert np.unique(ended["uow"]).size == ended.size == np.unique(inside["uow"]).size
    assert (ended["op"] == BACKOUT).mean() == pytest.approx(0.2, abs=0.03)
    end_of = dict(zip(ended["uow"].tolist(), ended["time"].tolist(), strict=True))
    calls_inside = inside[inside["op"] == PUT]
    assert all(
        time <= end_of[unit] for unit, time in zip(calls_inside["uow"].tolist(), calls_inside["time"], strict=True)
    )
    assert np.unique(calls_inside["uow"] * 2 + calls_inside["route"].astype(np.uint64)).size == ended.size


def test_a_kept_message_is_got_after_its_time() -> None:
    calls = drawn(Flow(route=0, op=PUT, rate=constant(5), got_by=1, got_after=600.0), seconds=3600, chunk=500)
    puts, gets = calls[calls["op"] == PUT], calls[calls["op"] == GET]
    assert (gets["time"] == puts["time"][: gets.size] + 600_000_000).all()
    assert puts["time"][gets.size] >= START + 3_000_000_000
    assert (gets["route"] == 1).all()
    assert (np.diff(calls["time"]) >= 0).all()


def test_a_message_kept_for_a_random_time_is_got_after_it_on_average() -> None:
    flow = Flow(route=0, op=PUT, rate=constant(5), got_by=1, got_after=600.0, got_at_random=True)
    calls = drawn(flow, seconds=7200, chunk=500)
    assert (np.diff(calls["time"]) >= 0).all()
    puts, gets = ((calls["op"] == op).sum() for op in (PUT, GET))
    assert puts - gets == pytest.approx(5 * 600, rel=0.15)  # Little's law


def test_a_long_unit_of_work_has_all_calls_and_ends_once() -> None:
    unit = Flow(route=0, op=PUT, rate=constant(5), unit=LongUnit(until=1805.0, ended_by=BACKOUT))
    calls = drawn(unit, Flow(route=1, op=PUT, rate=constant(5)), chunk=1000)
    inside = calls[calls["route"] == 0]
    assert np.unique(inside["uow"]).size == 1
    assert (inside["flags"] & FLAG_HAS_UOW != 0).all()
    assert inside["op"][-1] == BACKOUT
    assert (inside["op"][:-1] == PUT).all()
    assert inside["time"][-1] == START + 1_805_000_000 > inside["time"][-2]
    assert inside["uow"][0] not in calls["uow"][calls["route"] == 1]


def test_a_rate_that_wanders_differs_from_one_half_hour_to_the_next_and_not_on_average() -> None:
    def counts(wander: float) -> Any:
        traffic = Traffic(noise=0, wander=wander, unit_share=0)
        calls = drawn(Flow(route=0, op=PUT, rate=constant(5), traffic=traffic), seconds=360_000)
        return np.bincount((calls["time"] - START) // 1_800_000_000)

    still, wandering = counts(0.0), counts(0.4)
    assert wandering.mean() == pytest.approx(still.mean(), rel=0.1)
    assert wandering.std() > 5 * still.std()


def test_curves_rise_and_step() -> None:
    seconds = np.array([0.0, 5.0, 10.0, 20.0])
    assert rising(4.0, 10.0)(seconds).tolist() == [0.0, 2.0, 4.0, 4.0]
    assert rising(4.0, 0.0)(seconds).tolist() == [4.0] * 4
    assert steps(np.array([0.0, 10.0]), np.array([1.0, 7.0]))(seconds).tolist() == [1.0, 1.0, 7.0, 7.0]


def test_the_same_seed_draws_the_same() -> None:
    flow = Flow(route=0, op=PUT, rate=constant(5))
    assert drawn(flow, seed=4).tolist() == drawn(flow, seed=4).tolist()
    assert drawn(flow, seed=4).tolist() != drawn(flow, seed=5).tolist()


def test_a_flow_draws_the_same_whoever_comes_after_it() -> None:
    flow, other = (Flow(route=route, op=PUT, rate=constant(5)) for route in (0, 1))
    alone = drawn(flow)
    together = drawn(flow, other)
    assert (together["time"][together["route"] == 0] == alone["time"]).all()
