"""``mqtwin simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from deploy.options import parse_settings, start_time
from deploy.show.progress import shown
from deploy.show.scenarios import print_scenarios
from deploy.show.summaries import simulated_summary
from deploy.show.warnings import warned
from twin.errors import UsageError
from twin.estate import load_estate
from twin.simulation import START, make_scenario
from twin.simulation import simulate as play


def simulate(
    scenario: str | None = None,
    *,
    estate: Path | None = None,
    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
    seed: Annotated[int, Parameter(validator=Number(gte=0))] = 0,
    store: str | None = None,
    queue: str | None = None,
    rate: float | None = None,
    hours: float | None = None,
    start: str | None = None,
    set_: Annotated[tuple[str, ...], Parameter(name="--set", negative="")] = (),
    list_: Annotated[bool, Parameter(name="--list", negative="")] = False,
) -> None:
    """A recording with its true 2192s: a scenario played on an estate. The same seed gives the same recording.

    Args:
        scenario: Which one; --list names them.
        estate: What exists, a TOML file.
        output: The recording, .ndjson, .ndjson.zst or .arrow.
        seed: Of the random numbers.
        store: The store it is about; by default the first structure, page set or queue file with queues.
        queue: The queue it is about; by default the store's first.
        rate: Puts a second to that queue; by default as many as make the story on that store.
        hours: Event time the recording lasts.
        start: Its first event's time; by default 2026-11-20T00:00:00Z.
        set_: A parameter of the scenario, NAME=NUMBER; may be repeated. --list names them.
        list_: Name the scenarios with their parameters, and do nothing else.
    """
    if list_:
        print_scenarios()
        return
    if scenario is None or estate is None or output is None:
        raise UsageError("simulate: SCENARIO --estate FILE -o RECORDING is right; --list names the scenarios")
    settings = dict(parse_settings("--set", set_))
    if hours is not None:
        settings["hours"] = str(hours)
    begin = START if start is None else start_time(start)
    chosen = make_scenario(scenario, store=store, queue=queue, rate=rate, start=begin, settings=settings)
    described = warned(load_estate(estate))
    with shown(f"simulate {scenario}") as advance:
        outcome = play(chosen, described, output, seed, lambda events, _: advance(None, events))
    print(simulated_summary(outcome))
