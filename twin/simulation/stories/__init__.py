"""Scenarios, one family per module. Importing this package registers all in SCENARIOS."""

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
    turning,
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
    "turning",
    "undone",
]
