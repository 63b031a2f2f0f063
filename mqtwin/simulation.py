"""Names that a scenario of your own needs, of the modules below `twin.simulation`."""

from twin.simulation import Measuring, Outcome
from twin.simulation.arrivals import Flow, Traffic, between, constant
from twin.simulation.scenario import HOUR, StoreScenario, parameter, scenario
from twin.simulation.site import Site

__all__ = [
    "HOUR",
    "Flow",
    "Measuring",
    "Outcome",
    "Site",
    "StoreScenario",
    "Traffic",
    "between",
    "constant",
    "parameter",
    "scenario",
]
