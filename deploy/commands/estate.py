"""``mqtwin estate``."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

from cyclopts import App

from deploy.show.table import show
from deploy.show.warnings import warned
from twin.estate import HEADINGS, load_estate, summary

estate = App(name="estate")


@estate.command
def check(file: Path, /) -> None:
    """Parse an estate, warn of what is unwise, and summarise its stores.

    Wrong text is one line on standard error, exit status 2.

    Args:
        file: The estate, a TOML file.
    """
    lines = [[str(value) for value in astuple(row)] for row in summary(warned(load_estate(file)))]
    show(HEADINGS, lines, right={"size", "queues"})
