"""Colours of pictures: each resource has its own, and neighbours can be told apart."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from matplotlib.colors import to_rgb

from twin.playback.pictures import GREY, INK, OLIVE, PLUM, RED, resource_colours

_LMS = np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]])
_LAB = np.array([[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]])


def oklab(colour: str) -> np.ndarray:
    """Return a colour as lightness and two hues, in which distance is as people see it (Ottosson 2020)."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return _LAB @ np.cbrt(_LMS @ linear)


def test_the_resources_of_a_usual_store_can_be_distinguished() -> None:
    names = ["entries", "elements", "smds/QM01", "smds/QM02", "smds/QM03", "smds/QM04", "scm"]
    colours = resource_colours(names)
    distances = {
        pair: float(np.linalg.norm(oklab(colours[pair[0]]) - oklab(colours[pair[1]])))
        for pair in combinations(names, 2)
    }
    assert min(distances.values()) > 0.1, min(distances, key=distances.__getitem__)


def test_no_two_resources_share_a_colour_and_none_has_that_of_something_else() -> None:
    names = ["entries", "elements", *(f"smds/QM{number:02}" for number in range(40))]
    colours = resource_colours(names)
    assert list(colours) == names
    assert len(set(colours.values()) | {INK, GREY, RED, PLUM, OLIVE}) == len(names) + 5
