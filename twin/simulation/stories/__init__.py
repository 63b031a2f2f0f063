"""The scenarios, a family a file; to import it is to have them all in SCENARIOS."""

from twin.simulation.stories import chance, curves, filling, level, moving, nights, sawteeth, undone

__all__ = ["chance", "curves", "filling", "level", "moving", "nights", "sawteeth", "undone"]
