"""Warnings on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable


def print_warnings(warnings: Iterable[str]) -> None:
    """Print warnings to standard error, one per line."""
    for warning in warnings:
        print(f"mqtwin: warning: {warning}", file=sys.stderr)
