"""Spans of time in words."""

import pytest

from twin.base.units import as_count, as_estimate, as_range, as_span, percent

pytestmark = pytest.mark.uncompiled


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (1440.0, 1860.0, "24 to 31 min"),
        (85.0, 130.0, "85 to 130 s"),
        (45.0, 1860.0, "45 s to 31 min"),
        (590.0, 610.0, "10 min"),
        (3480.0, 6480.0, "58 min to 1.8 h"),
        (3480.0, 36_000.0, "58 min to 10.0 h"),
        (0.0, 12.0, "0 to 12 s"),
    ],
)
def test_a_range_has_one_unit_unless_it_is_wide(low: float, high: float, words: str) -> None:
    assert as_range(low, high) == words


@pytest.mark.parametrize(
    ("times", "middle", "interval"),
    [
        ((1260.0, 1680.0, 2220.0), "28 min", "21 to 37 min"),
        ((4860.0, 6480.0, 6840.0), "1.8 h", "1.4 to 1.9 h"),
        ((3480.0, 5000.0, 6480.0), "83 min", "58 min to 1.8 h"),
        ((9000.0, 14_400.0, 21_600.0), "4.0 h", "2.5 to 6.0 h"),
        ((20.0, 60.0, 95.0), "60 s", "20 to 95 s"),
        ((0.0, 1500.0, 3600.0), "25 min", "0 to 60 min"),
        ((3000.0, 36_000.0, 72_000.0), "10.0 h", "0.8 to 20.0 h"),
        ((4860.0, 6480.0, None), "1.8 h", "1.4 h to later"),
        ((4860.0, None, None), "later", "81 min to later"),
    ],
)
def test_a_time_and_its_interval_have_the_same_unit(
    times: tuple[float, float | None, float | None], middle: str, interval: str
) -> None:
    assert as_estimate(*times) == (middle, interval)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.0, "0 s"), (89.0, "89 s"), (90.0, "2 min"), (5399.0, "90 min"), (5400.0, "1.5 h")]
)
def test_a_span_has_two_digits_at_least(seconds: float, words: str) -> None:
    assert as_span(seconds) == words


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 events"), (1, "1 event"), (2, "2 events"), (2_000, "2,000 events")], ids=str
)
def test_a_count_has_the_plural_of_its_noun(number: int, text: str) -> None:
    assert as_count(number, "event") == text


def test_a_percentage_of_nothing_is_what_the_caller_says() -> None:
    assert (percent(1, 3), percent(5, 4)) == (33.333, 125.0)
    assert (percent(0, 0), percent(7, 0, of_nothing=100.0)) == (0.0, 100.0)
