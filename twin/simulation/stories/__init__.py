"""Scenarios, one family per module. Importing this package registers all in SCENARIOS, module by module."""

from twin.simulation.stories import chance, cluster, filling, mechanisms, nights, private, turning, undone

__all__ = ["chance", "cluster", "filling", "mechanisms", "nights", "private", "turning", "undone"]
