"""``mqtwin estate``."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

from cyclopts import App

from deploy.show.table import print_table
from deploy.show.warnings import print_warnings
from twin.estate import HEADINGS, load_estate, summary

estate = App(name="estate")


@estate.command
def check(file: Path, /) -> None:
    """Check an estate file, print warnings, and summarise its stores.

    An error in the file is one line on standard error, exit status 2.

    Args:
        file: Estate file (TOML).
    """
    loaded_estate = load_estate(file)
    print_warnings(loaded_estate.warnings)
    lines = [[str(value) for value in astuple(row)] for row in summary(loaded_estate)]
    print_table(HEADINGS, lines, right={"size", "queues"})
