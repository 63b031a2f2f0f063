"""Plans of `mqtwin size` as tables or JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec
from rich.console import Console

from deploy.show.terminal import print_table, print_warnings
from twin.estate import format_size
from twin.sizing import Extent

_MQSC_COLUMNS = 72  # of a line of MQSC on z/OS [IBM: MQ, Building command scripts]


def pasteable(commands: str) -> str:
    """Return commands as they are entered: each on its own line, those of MQSC with + where a line would be too long.

    Args:
        commands: joined by ", then ".
    """
    lines: list[str] = []
    for command in commands.split(", then "):
        parts = [""]
        for word in command.split(" "):
            if parts[-1] and len(parts[-1]) + len(word) + len(" +") >= _MQSC_COLUMNS:
                parts.append(f"    {word}")
            else:
                parts[-1] += f" {word}" if parts[-1] else word
        lines.append(" +\n".join(parts))
    return "\n".join(lines)


def print_plan(
    plan: Any,
    headings: Sequence[str],
    lines: Iterable[Sequence[str]],
    warnings: Iterable[str] = (),
    optional: Collection[str] = (),
    commands: str | None = None,
    *,
    as_json: bool,
) -> None:
    """Print a plan, and its warnings on standard error.

    Args:
        plan: The plan, for JSON.
        headings: Headings of the table.
        lines: Cells of each row of the table.
        warnings: Warnings, one per line.
        optional: Headings of the columns that a narrow terminal leaves out.
        commands: Commands of the plan. A terminal shows them below the table, elsewhere they are its last line.
        as_json: True prints one JSON object instead of the table.
    """
    print_warnings(warnings)
    if as_json:
        print(msgspec.json.encode(plan).decode())
    elif commands is None or not Console().is_terminal:
        last = [] if commands is None else [["MQSC", commands]]
        print_table(headings, [*lines, *last], right=set(headings[1:]), optional=optional)
    else:
        print_table(headings, lines, right=set(headings[1:]), optional=optional)
        print(f"\n{pasteable(commands)}")


def extent_text(extent: Extent) -> str:
    """Return the size of a data set in the units in which an administrator allocates it."""
    return f"{extent.pages:,} records, {extent.cylinders:,} cylinders, {rounded_size(extent.bytes)}"


def rounded_size(size_bytes: int) -> str:
    """Return a size in at most five characters: exact if it fits (4G), else rounded to a tenth of a unit (3.9G)."""
    exact = format_size(size_bytes)
    if len(exact) <= 5:
        return exact
    for unit, shift in (("T", 40), ("G", 30), ("M", 20), ("K", 10)):
        if size_bytes >> shift:
            return f"{size_bytes / (1 << shift):.1f}{unit}"
    return exact
