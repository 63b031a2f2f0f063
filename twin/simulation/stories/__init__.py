"""The scenarios, a family a file; to import it is to have them all in SCENARIOS."""

from twin.simulation.stories import (
    chance,
    cluster,
    curves,
    filling,
    level,
    memory,
    moving,
    nights,
    private,
    sawteeth,
    undone,
)

__all__ = [
    "chance",
    "cluster",
    "curves",
    "filling",
    "level",
    "memory",
    "moving",
    "nights",
    "private",
    "sawteeth",
    "undone",
]
