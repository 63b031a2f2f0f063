"""Warnings and errors on standard error: one line each, which a terminal shows without a break in mid-word."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from deploy.show.wrapping import wrapped

_OBJECT = re.compile(r"[^\s,/\"]+/[^\s:,\"]+")  # the first name of a warning: QM01/PS04, QSG1/APP1/QM01
_MAX_ALIKE = 3  # warnings that differ in a name only are printed one by one up to this number
_MAX_NAMES = 8


def print_warnings(warnings: Iterable[str]) -> None:
    """Print warnings to standard error, one per line; many that differ in a name only are one line."""
    for warning in merged(warnings):
        print_line(f"mqtwin: warning: {warning}")


def merged(warnings: Iterable[str]) -> list[str]:
    """Return warnings in order; more than three that differ in the name of an object only are one with their names."""
    alike: dict[str, list[str]] = {}
    names: dict[str, list[str]] = {}
    for warning in warnings:
        match = _OBJECT.search(warning)
        text = warning.replace(match[0], "\0") if match else warning
        alike.setdefault(text, []).append(warning)
        names.setdefault(text, []).extend([match[0]] if match else [])
    lines: list[str] = []
    for text, same in alike.items():
        more = f" and {len(same) - _MAX_NAMES} more" if len(same) > _MAX_NAMES else ""
        together = ", ".join(names[text][:_MAX_NAMES]) + more
        # What the warning asks for, such as [smds."QSG1/APP1/QM01"], stands there for the first of them.
        line = text.replace("\0", together, 1).replace("\0", names[text][0]) if names[text] else ""
        lines += [line] if len(same) > _MAX_ALIKE and line else same
    return lines


def print_line(line: str) -> None:
    """Print a line to standard error; on a terminal it is wrapped between words."""
    print(wrapped(line, is_terminal=sys.stderr.isatty()), file=sys.stderr)
