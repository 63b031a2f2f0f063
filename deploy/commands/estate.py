"""``mqtwin estate``."""

from __future__ import annotations

import sys
from dataclasses import astuple
from pathlib import Path

from cyclopts import App

from deploy.show.table import print_table
from deploy.show.warnings import print_warnings
from twin.estate import HEADINGS, EstateError, load_estate, summary

_WRONG_USE = 2

estate = App(name="estate")


@estate.command
def check(file: Path, /) -> int:
    """Check an estate file, print warnings, and summarise its stores.

    Each error in the file and in the texts that it imports is one line on standard error, exit status 2.

    Args:
        file: Estate file (TOML).
    """
    try:
        loaded_estate = load_estate(file)
    except EstateError as error:
        for message in (str(error), *error.others):
            print(f"mqtwin: {message}", file=sys.stderr)
        return _WRONG_USE
    print_warnings(loaded_estate.warnings)
    lines = [[str(value) for value in astuple(row)] for row in summary(loaded_estate)]
    print_table(HEADINGS, lines, right={"size", "queues"})
    return 0
