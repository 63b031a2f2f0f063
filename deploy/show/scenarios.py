"""The list of scenarios of `mqtwin simulate`."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from twin.simulation import SCENARIOS, parameters


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
