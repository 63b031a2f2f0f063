"""Simulation: scenarios played on an estate, as recordings with their true 2192s.

`make_scenario` makes one of `SCENARIOS`, `simulate` plays it into a recording, `play` into tables. `demo_estate` is the
small estate of the package. The outcome is decided by the kernels of the twin, in their mode of demands instead of
facts (`twin.simulation.system`).
"""

from importlib.resources import as_file, files

from twin.estate import Estate, load_estate
from twin.simulation import stories
from twin.simulation.scenario import (
    SCENARIOS,
    START,
    Outcome,
    Progress,
    Scenario,
    make_scenario,
    parameters,
    play,
    scenarios,
    serve_into,
    simulate,
)
from twin.simulation.stories.filling import SideBySide
from twin.simulation.system import Measuring, RealSystem, StoreOutcome

__all__ = [
    "SCENARIOS",
    "START",
    "Measuring",
    "Outcome",
    "Progress",
    "RealSystem",
    "Scenario",
    "SideBySide",
    "StoreOutcome",
    "demo_estate",
    "demo_estate_text",
    "make_scenario",
    "parameters",
    "play",
    "scenarios",
    "serve_into",
    "side_by_side_estate",
    "side_by_side_estate_text",
    "simulate",
    "stories",
]

_DEMO = "demo.toml"
_SIDE_BY_SIDE = "side_by_side.toml"


def demo_estate() -> Estate:
    """Load the estate of demo.toml."""
    with as_file(files(__package__) / _DEMO) as path:
        return load_estate(path)


def side_by_side_estate() -> Estate:
    """Load the estate of side_by_side.toml, on which the scenario `SideBySide` plays."""
    with as_file(files(__package__) / _SIDE_BY_SIDE) as path:
        return load_estate(path)


def demo_estate_text() -> str:
    """Return the text of demo.toml."""
    return (files(__package__) / _DEMO).read_text(encoding="utf-8")


def side_by_side_estate_text() -> str:
    """Return the text of side_by_side.toml."""
    return (files(__package__) / _SIDE_BY_SIDE).read_text(encoding="utf-8")
