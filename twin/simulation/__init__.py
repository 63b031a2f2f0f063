"""Simulation: scenarios played on an estate, as recordings with their true 2192s.

`make_scenario` makes one of `SCENARIOS`, `simulate` plays it into a recording, `play` into tables. `demo_estate` is the
small estate of the package. The outcome is decided by the kernels of the twin, in their mode of demands instead of
facts (`twin.simulation.system`).
"""

from twin.simulation import stories
from twin.simulation.estate import demo_estate, demo_estate_text, side_by_side_estate, side_by_side_estate_text
from twin.simulation.run import Outcome, Progress, play, serve_into, simulate
from twin.simulation.scenario import SCENARIOS, START, Scenario, make_scenario, parameters, scenarios
from twin.simulation.side_by_side import SideBySide
from twin.simulation.system import RealSystem, StoreOutcome

__all__ = [
    "SCENARIOS",
    "START",
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
