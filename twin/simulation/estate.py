"""Estates of examples: of one story that fills in two hours, and of the three stories of `mqtwin demo`."""

from __future__ import annotations

from importlib.resources import as_file, files

from twin.estate import Estate, load_estate

DEMO = "demo.toml"
SIDE_BY_SIDE = "side_by_side.toml"


def demo_estate() -> Estate:
    """Load the estate of demo.toml."""
    with as_file(files(__package__) / DEMO) as path:
        return load_estate(path)


def side_by_side_estate() -> Estate:
    """Load the estate of side_by_side.toml, on which the scenario `SideBySide` plays."""
    with as_file(files(__package__) / SIDE_BY_SIDE) as path:
        return load_estate(path)


def demo_estate_text() -> str:
    """Return the text of demo.toml."""
    return (files(__package__) / DEMO).read_text(encoding="utf-8")


def side_by_side_estate_text() -> str:
    """Return the text of side_by_side.toml."""
    return (files(__package__) / SIDE_BY_SIDE).read_text(encoding="utf-8")
