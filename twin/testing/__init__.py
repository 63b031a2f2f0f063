"""Tools for tests: the twins of an estate, driven by hand or by a script with pauses and crashes.

A name is imported when it is first used: pytest loads `twin.testing.pytest_plugin` in every session. Described in
docs/testing.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twin.testing.drivers import ABORT, EOF, PAUSE, Driver, Item, Signal

__all__ = ["ABORT", "EOF", "PAUSE", "Driver", "Item", "Signal"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("twin.testing.drivers"), name)
    globals()[name] = value
    return value
