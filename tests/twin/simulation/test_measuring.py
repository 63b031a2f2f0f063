"""Measurements of the simulated queue managers: handles, ages and times of calls, levels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import twin
from kernels.layout import GET, PUT
from twin.estate import Estate
from twin.events import from_table
from twin.playback.replays import replay
from twin.recordings.files import RecordingWriter
from twin.simulation import Measuring, RealSystem, make_scenario
from twin.simulation.arrivals import Flow, Traffic, between, constant, demands
from twin.simulation.scenario import play
from twin.simulation.system import MeasuredSystem

START = 1_795_132_800_000_000
QUIET = Traffic(noise=0.0, unit_share=0.0)
STORY = make_scenario("getter-outage", settings={"hours": 0.5, "outage_after": 0.1, "outage": 0.4})


def measured(estate: Estate, flows: list[Flow], seconds: float = 300.0, **what: Any) -> list[dict[str, Any]]:
    """Return the measurements of QSG1/APP1, those of ORDERS under its name."""
    system = MeasuredSystem(RealSystem(estate, 7), estate, flows, START, seconds, Measuring(**what))
    tables = system.serve(demands(flows, START, seconds, np.random.default_rng(1)))
    events = [event for table in tables for event in from_table(table)]
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)
    return [
        event["measured"] | {queue["name"]: queue for queue in event["measured"]["queues"]} | {"time": event["time"]}
        for event in events
        if event["op"] == "MEASURE" and event["store"] == "QSG1/APP1"
    ]


def flows(estate: Estate, rate: Any, **gets: Any) -> list[Flow]:
    """Return puts by QM01, two a second, and gets by QM02."""
    put, get = (estate.route_of_queue(qmgr, "ORDERS") for qmgr in ("QM01", "QM02"))
    return [
        Flow(route=put, op=PUT, rate=constant(2.0), traffic=QUIET),
        Flow(route=get, op=GET, rate=rate, traffic=QUIET, **gets),
    ]


def test_a_getter_that_stopped_has_no_handle_and_what_it_left_grows_old(small: Estate) -> None:
    seen = measured(small, flows(small, between(120.0, 1e9, 0.0, 50.0)))
    assert [own["ORDERS"]["getters"] for own in seen] == [1, 1, 1, 0, 0, 0, 0, 0, 0]
    assert {own["ORDERS"]["putters"] for own in seen} == {1}
    assert {tuple(own["asked"]) for own in seen} == {("QM01", "QM02", "QM03")}
    late = seen[-1]["ORDERS"]
    assert late["last_get"][11:19] < "00:02:00"
    assert late["last_put"][11:19] > "00:04:20"
    assert 140 <= late["oldest_s"] <= 150
    assert 240 < late["depth"] < 360


@pytest.mark.parametrize(
    ("rate", "handles", "getters"),
    [(constant(0.5), None, 1), (constant(0.0), None, 0), (constant(0.0), constant(2.0), 2)],
    ids=["slow", "none", "hangs"],
)
def test_a_slow_getter_and_one_that_hangs_have_the_queue_open(
    small: Estate, rate: Any, handles: Any, getters: int
) -> None:
    seen = measured(small, flows(small, rate, handles=handles))
    assert {own["ORDERS"]["getters"] for own in seen} == {getters}
    assert seen[-1]["ORDERS"]["depth"] > 300


def test_whoever_gets_each_message_after_a_while_has_the_queue_open(small: Estate) -> None:
    put, get = (small.route_of_queue(qmgr, "ORDERS") for qmgr in ("QM01", "QM02"))
    seen = measured(small, [Flow(route=put, op=PUT, rate=constant(2.0), traffic=QUIET, got_by=get, got_after=1e4)])
    assert seen[-1]["ORDERS"]["getters"] == 1
    assert "last_get" not in seen[-1]["ORDERS"]


def test_measurements_come_at_their_interval_also_while_nobody_calls(small: Estate) -> None:
    quiet = [
        Flow(route=flow.route, op=flow.op, rate=between(0.0, 60.0, 1.0, 0.0)) for flow in flows(small, constant(0.0))
    ]
    seen = measured(small, quiet, every_s=60.0)
    assert [own["time"][11:19] for own in seen] == ["00:01:00", "00:02:00", "00:03:00", "00:04:00"]


def test_other_events_do_not_depend_on_what_is_measured(small: Estate) -> None:
    plain, seen = (
        [event for table in play(STORY, small, 3, measuring=what) for event in from_table(table)]
        for what in (None, Measuring(levels=True))
    )
    assert [event for event in seen if event["op"] != "MEASURE"] == plain
    assert len(seen) == len(plain) + 2 * 59


def test_levels_alone_are_those_of_the_system(small: Estate, tmp_path: Path) -> None:
    twin.simulate(STORY, small, tmp_path / "plain.arrow", 3)
    seen = [event for table in play(STORY, small, 3, measuring=Measuring(levels=True)) for event in from_table(table)]
    with RecordingWriter(tmp_path / "levels.ndjson") as writer:
        writer.write([event for event in seen if event["op"] == "MEASURE"])
    truth, levels = replay(tmp_path / "plain.arrow", small), replay(tmp_path / "levels.ndjson", small)
    assert levels.dead_letters == 0
    used, known = (played.states["QSG1/APP1"].usage_pct for played in (truth, levels))
    assert used > 30
    assert known == pytest.approx(used, abs=1.5)
