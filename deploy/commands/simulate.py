"""``mqtwin simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console
from rich.table import Table
from rich.text import Text

from deploy.options import parse_settings
from deploy.show.outcome import start_time, summary
from deploy.show.progress import shown
from deploy.show.warnings import warned
from twin.errors import UsageError
from twin.estate import load_estate
from twin.simulation import SCENARIOS, START, make_scenario, parameters
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
        _list()
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
    print(summary(outcome))


def _list() -> None:
    """A table on a terminal; elsewhere a scenario a line with tabs: name, sentence, parameters with their defaults."""
    console = Console()
    if not console.is_terminal:
        for name, kind in SCENARIOS.items():
            settings = " ".join(f"{key}={default:g}" for key, (default, _) in parameters(kind).items())
            print(name, kind.sentence, settings, sep="\t")
        return
    for name, kind in SCENARIOS.items():
        table = Table(box=None, show_header=False, padding=(0, 2))
        for key, (default, text) in parameters(kind).items():
            table.add_row(Text(f"  {key}"), Text(f"{default:g}"), Text(text))
        console.print(Text(name, style="bold"), Text(kind.sentence), table, sep="\n")
