"""Who filled a store."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.by_hand import line
from tests.tools.score.samples import series
from tests.tools.score.truth import fillings


def test_who_filled_it_is_counted_in_what_filled():
    usage = line(60, (0, 0), (60, 100))
    holdings = np.zeros((121, 2, 3), np.int64)
    holdings[:, 0, 0] = np.arange(121) * 9  # A: many messages
    holdings[:, 1, 0] = np.arange(121)
    holdings[:, 1, 1] = np.arange(121) * 100  # B: all the elements
    [of_entries] = fillings(series(usage, usage / 2, refused=(60,), holdings=holdings))
    assert of_entries.grown[0] == ("A", pytest.approx(0.9))
    [of_elements] = fillings(series(usage / 2, usage, refused=(60,), holdings=holdings))
    assert of_elements.grown == (("B", 1.0),)
