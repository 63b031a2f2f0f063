"""``mqtwin simulate``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console
from rich.table import Table
from rich.text import Text

from deploy.options.common import Flag, Repeated, open_estate, parse_settings, parse_time
from deploy.options.files import EstateFile, OutputFile
from deploy.show.progress import show_progress
from deploy.show.summaries import simulated_summary
from twin.errors import UsageError
from twin.simulation import SCENARIOS, START, make_scenario, parameters
from twin.simulation import simulate as run_simulation


def print_scenarios() -> None:
    """Print the scenarios with their parameters and defaults.

    On a terminal this is a table per scenario, elsewhere a line per scenario: name, sentence, parameters, separated by
    tabs.
    """
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


def simulate(
    scenario: str | None = None,
    /,
    *,
    estate: EstateFile | None = None,
    output: Annotated[OutputFile | None, Parameter(name=("--output", "-o"))] = None,
    seed: Annotated[int, Parameter(validator=Number(gte=0))] = 0,
    store: str | None = None,
    queue: str | None = None,
    rate: float | None = None,
    start: str | None = None,
    set_: Repeated = (),
    list_: Flag = False,
) -> None:
    """Simulate a scenario on an estate: a recording with its true 2192s. The same seed gives the same recording.

    Args:
        scenario: Scenario; --list shows them.
        estate: Estate file (TOML).
        output: Recording to write: .ndjson, .ndjson.zst or .arrow.
        seed: Seed of the random numbers.
        store: Store that fills. Default: the first structure, page set or queue file with queues.
        queue: Queue that grows. Default: the first of the store.
        rate: Puts per second to that queue. Default: enough for the scenario on that store.
        start: Time of the first event. Default: 2026-11-20T00:00:00Z.
        set_: Scenario parameter, NAME=NUMBER, such as hours=3; may be repeated. --list shows them.
        list_: Show the scenarios and their parameters, then stop.
    """
    if list_:
        print_scenarios()
        return
    if scenario is None or estate is None or output is None:
        raise UsageError("simulate: missing arguments; expected: SCENARIO --estate FILE -o RECORDING, or --list")
    settings = dict(parse_settings("--set", set_))
    start_us = START if start is None else parse_time("--start", start)
    chosen_scenario = make_scenario(scenario, store=store, queue=queue, rate=rate, start=start_us, settings=settings)
    loaded_estate = open_estate(estate)
    with show_progress(f"simulate {scenario}") as advance:
        outcome = run_simulation(chosen_scenario, loaded_estate, output, seed, lambda events, _: advance(None, events))
    print(simulated_summary(outcome, (loaded_estate.stores[name].kind for name in outcome.stores)))
