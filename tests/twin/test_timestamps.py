"""Spans of time in words."""

import pytest

from twin.units import as_range


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (1440.0, 1860.0, "24 to 31 min"),
        (85.0, 130.0, "85 s to 2 min"),
        (590.0, 610.0, "10 min"),
        (3480.0, 6480.0, "58 min to 1.8 h"),
        (0.0, 12.0, "0 to 12 s"),
    ],
)
def test_a_range_says_its_unit_once_where_one_will_do(low: float, high: float, words: str) -> None:
    assert as_range(low, high) == words
