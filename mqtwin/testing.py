"""Tools for tests: the names of `twin.testing`."""

from twin.testing import ABORT, EOF, PAUSE, Driver, Item, Signal

__all__ = ["ABORT", "EOF", "PAUSE", "Driver", "Item", "Signal"]
