"""Due times of events: all at once, at a rate, in step with the event times."""

from __future__ import annotations

import numpy as np
import pytest

from streams.kafka.publish import GRAIN_S, Pace, Slice

SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US
START_US = 1_795_176_000_000_000


def times(*seconds: float) -> np.ndarray:
    return np.array([START_US + int(s * SECOND_US) for s in seconds], np.int64)


def due_times(pace: Pace, *parts: np.ndarray) -> list[float]:
    """Return the due time of each event, in seconds."""
    return [rows.due_s for part in parts for rows in pace.slices(part) for _ in range(rows.stop - rows.start)]


def test_without_a_pace_all_events_are_one_slice_due_at_once() -> None:
    assert list(Pace().slices(times(0, 1, 2))) == [Slice(0, 3, 0.0)]
    assert Pace().is_free and not Pace(rate=1).is_free and not Pace(speed=1).is_free


def test_no_events_are_no_slice() -> None:
    assert list(Pace(speed=1).slices(times())) == []


def test_a_rate_spreads_events_whatever_their_times() -> None:
    pace = Pace(rate=10)
    assert due_times(pace, times(*[0] * 15), times(0)) == pytest.approx([n / 10 for n in range(16)])


def test_a_high_rate_groups_events_due_within_a_grain() -> None:
    slices = list(Pace(rate=100_000).slices(times(*[0] * 10_000)))
    assert {rows.stop - rows.start for rows in slices} == {int(100_000 * GRAIN_S)}


def test_speed_follows_event_times_across_chunks() -> None:
    assert due_times(Pace(speed=10), times(0, 1, 2), times(5)) == pytest.approx([0, 0.1, 0.2, 0.5])


def test_events_due_within_a_grain_are_one_slice() -> None:
    assert [(p.start, p.stop) for p in Pace(speed=1).slices(times(0, 0.001, 0.002, 1))] == [(0, 3), (3, 4)]


def test_a_late_event_is_due_at_once() -> None:
    assert due_times(Pace(speed=1), times(10, 3, 11)) == pytest.approx([0, 0, 1])


def test_a_single_event_far_ahead_delays_nothing() -> None:
    far = np.array([START_US, START_US + 40 * DAY_US, START_US + SECOND_US], np.int64)
    assert due_times(Pace(speed=1), far) == pytest.approx([0, 0, 1])


def test_two_events_far_ahead_move_the_clock() -> None:
    far = np.array([START_US, START_US + 2 * DAY_US, START_US + 2 * DAY_US], np.int64)
    assert due_times(Pace(speed=86_400), far) == pytest.approx([0, 0, 2])


@pytest.mark.parametrize("pace", [Pace(speed=1), Pace(rate=1), Pace()])
def test_a_time_for_which_the_publishing_was_held_is_not_made_up_for(pace: Pace) -> None:
    before = due_times(pace, times(0, 1, 2))
    pace.hold(30.0)
    [first] = due_times(pace, times(3))
    assert first == pytest.approx(30.0 + (0.0 if pace.is_free else before[-1] + 1.0))
