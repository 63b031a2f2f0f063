"""Alignment of the traces of a twin and of its measurements."""

from __future__ import annotations

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.profile import examples
from twin.playback.fidelity import MAX_LAG, NEARNESS, align

TOLERANCE = 5.0
PCT = st.integers(0, 8).map(lambda number: 5.0 * number)


def naive_score(model: list[float], measured: list[float]) -> float:
    """Return the best score of any alignment within the band, by the definition."""

    @cache
    def best(row: int, column: int) -> float:
        if abs(column - row) > MAX_LAG:
            return float("-inf")
        if row == column == 0:
            return 0.0
        scores = []
        if row and column:
            distance = abs(model[row - 1] - measured[column - 1])
            scores.append(
                best(row - 1, column - 1) + (1 - NEARNESS * distance / TOLERANCE if distance <= TOLERANCE else -1)
            )
        if row:
            scores.append(best(row - 1, column) - 0.5)
        if column:
            scores.append(best(row, column - 1) - 0.5)
        return max(scores)

    return best(len(model), len(measured))


@settings(max_examples=examples(150), deadline=None)
@given(pairs=st.lists(st.tuples(PCT, PCT), max_size=9))
def test_as_many_match_as_in_the_best_alignment(pairs: list[tuple[float, float]]) -> None:
    model, measured = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    alignment = align(model, measured, TOLERANCE)
    paired = sum(abs(ours - other) <= TOLERANCE for ours, other in pairs)
    score = naive_score(model, measured)
    # Every sample is matched, mismatched with a partner (-1) or alone (-0.5 each): the same sum either way.
    distance = 0.0 if alignment.distance_pct is None else alignment.distance_pct * alignment.matched
    own = alignment.matched - NEARNESS * distance / TOLERANCE - (len(pairs) - alignment.matched)
    assert abs(own - score) < 1e-3
    assert score >= paired - NEARNESS * paired - (len(pairs) - paired) - 1e-9


def test_equal_traces_match_without_lag() -> None:
    trace = [float(number % 7) for number in range(50)]
    alignment = align(trace, trace, TOLERANCE)
    assert (alignment.matched, alignment.distance_pct, alignment.lag) == (50, 0.0, 0)


def test_a_twin_that_is_late_matches_with_its_lag() -> None:
    measured = [10.0 * (number % 9) for number in range(60)]
    late = [0.0, 0.0, *measured[:-2]]
    alignment = align(late, measured, TOLERANCE)
    assert (alignment.matched, alignment.lag) == (58, 2)
    assert align(measured, late, TOLERANCE).lag == -2


def test_beyond_the_largest_lag_nothing_is_looked_for() -> None:
    measured = [10.0 * number for number in range(30)]
    late = [-100.0] * (MAX_LAG + 1) + measured[: -MAX_LAG - 1]
    assert align(late, measured, TOLERANCE).matched == 0


def test_no_samples_match_nothing() -> None:
    alignment = align([], [], TOLERANCE)
    assert (alignment.matched, alignment.distance_pct, alignment.lag) == (0, None, 0)
