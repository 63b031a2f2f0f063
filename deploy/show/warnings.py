"""Warnings and errors on standard error: one line each, which a terminal shows without a break in mid-word."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable


def print_warnings(warnings: Iterable[str]) -> None:
    """Print warnings to standard error, one per line."""
    for warning in warnings:
        print_line(f"mqtwin: warning: {warning}")


def print_line(line: str) -> None:
    """Print a line to standard error; on a terminal it is wrapped between words."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        line = textwrap.fill(line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    print(line, file=sys.stderr)
