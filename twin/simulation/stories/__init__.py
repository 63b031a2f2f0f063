"""Scenarios, one family per module. Importing this package registers all in SCENARIOS, module by module."""

from twin.simulation.stories import filling, mechanisms

__all__ = ["filling", "mechanisms", "other_kinds"]
