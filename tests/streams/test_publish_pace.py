"""Due times of events: all at once, at a rate, in step with the event times."""

from __future__ import annotations

import numpy as np
import pytest

from streams.kafka.pace import GRAIN_S, Pace, Slice

SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US
START_US = 1_795_176_000_000_000


def times(*seconds: float) -> np.ndarray:
    return np.array([START_US + int(s * SECOND_US) for s in seconds], np.int64)


def due_times(pace: Pace, *parts: np.ndarray) -> list[float]:
    """Return the due time of each event, in seconds."""
    return [rows.due_s for part in parts for rows in pace.slices(part) for _ in range(rows.stop - rows.start)]


def test_as_fast_as_it_goes_is_one_piece_due_at_once() -> None:
    assert list(Pace().slices(times(0, 1, 2))) == [Slice(0, 3, 0.0)]
    assert Pace().is_free and not Pace(rate=1).is_free and not Pace(speed=1).is_free


def test_no_events_are_no_piece() -> None:
    assert list(Pace(speed=1).slices(times())) == []


def test_a_rate_spreads_events_whatever_their_times() -> None:
    pace = Pace(rate=10)
    assert due_times(pace, times(*[0] * 15), times(0)) == pytest.approx([n / 10 for n in range(16)])


def test_a_high_rate_sends_what_is_due_within_a_grain_together() -> None:
    pieces = list(Pace(rate=100_000).slices(times(*[0] * 10_000)))
    assert {piece.stop - piece.start for piece in pieces} == {int(100_000 * GRAIN_S)}


def test_speed_keeps_step_with_event_times_over_pieces() -> None:
    assert due_times(Pace(speed=10), times(0, 1, 2), times(5)) == pytest.approx([0, 0.1, 0.2, 0.5])


def test_what_is_due_within_a_grain_goes_together() -> None:
    assert [(p.start, p.stop) for p in Pace(speed=1).slices(times(0, 0.001, 0.002, 1))] == [(0, 3), (3, 4)]


def test_a_late_event_waits_for_nothing() -> None:
    assert due_times(Pace(speed=1), times(10, 3, 11)) == pytest.approx([0, 0, 1])


def test_one_event_far_ahead_holds_nothing_up() -> None:
    far = np.array([START_US, START_US + 40 * DAY_US, START_US + SECOND_US], np.int64)
    assert due_times(Pace(speed=1), far) == pytest.approx([0, 0, 1])


def test_two_events_far_ahead_are_the_time_now() -> None:
    far = np.array([START_US, START_US + 2 * DAY_US, START_US + 2 * DAY_US], np.int64)
    assert due_times(Pace(speed=86_400), far) == pytest.approx([0, 0, 2])
