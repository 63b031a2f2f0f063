"""Simulated traffic: scenarios played on an estate become recordings with their true 2192s.

`make_scenario` finds a scenario, `simulate` plays it into a recording, `play` into tables; `SCENARIOS` has them all.
`demo_estate` is the small estate that comes with the package. What happens is decided by the same kernels that the
twin uses, asked instead of told (twin.simulation.system).
"""

from twin.simulation import stories
from twin.simulation.estate import demo_estate, demo_estate_text
from twin.simulation.run import Outcome, Progress, play, serve_into, simulate
from twin.simulation.scenario import SCENARIOS, START, Scenario, make_scenario, parameters
from twin.simulation.system import RealSystem, StoreOutcome

__all__ = [
    "SCENARIOS",
    "START",
    "Outcome",
    "Progress",
    "RealSystem",
    "Scenario",
    "StoreOutcome",
    "demo_estate",
    "demo_estate_text",
    "make_scenario",
    "parameters",
    "play",
    "serve_into",
    "simulate",
    "stories",
]
