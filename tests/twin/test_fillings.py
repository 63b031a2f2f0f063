"""Fillings from refused puts and usage: what belongs together, and when it began."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.by_hand import line, series, time_at
from twin.playback.pages import fillings, onset


def minute_of_onset(usage: np.ndarray) -> float:
    return onset(usage) / 2


# -- onset


def test_a_climb_from_a_level_stretch_begins_at_its_end():
    usage = line(180, (0, 40), (120, 40), (180, 100))
    assert minute_of_onset(usage) == pytest.approx(123, abs=0.5)  # a twentieth of the 60 points: 3 minutes


def test_a_climb_that_begins_with_the_recording_begins_there():
    assert minute_of_onset(line(100, (0, 0), (100, 100))) == pytest.approx(5, abs=0.5)


def test_a_climb_after_a_fall_begins_at_the_trough():
    usage = line(120, (0, 20), (40, 80), (50, 10), (120, 100))
    assert minute_of_onset(usage) == pytest.approx(50 + 0.05 * 70, abs=0.5)


def test_a_fall_that_took_back_less_than_half_is_part_of_the_climb():
    usage = line(120, (0, 0), (50, 50), (60, 40), (120, 100))
    assert minute_of_onset(usage) == pytest.approx(5, abs=0.5)


def test_the_last_tooth_of_a_sawtooth_counts():
    usage = line(180, (0, 10), (50, 80), (60, 10), (110, 80), (120, 10), (180, 100))
    assert minute_of_onset(usage) == pytest.approx(123, abs=0.5)


def test_a_short_rest_does_not_divide_a_climb():
    usage = line(140, (0, 0), (60, 50), (80, 50), (140, 100))
    assert minute_of_onset(usage) == pytest.approx(6, abs=0.5)


def test_a_rest_as_long_as_what_follows_divides_it():
    usage = line(200, (0, 0), (60, 60), (160, 60), (200, 100))
    assert minute_of_onset(usage) == pytest.approx(162, abs=0.5)


def test_noise_on_a_level_is_no_climb():
    noise = np.random.default_rng(1).normal(0, 0.7, 361)
    usage = line(180, (0, 60), (140, 60), (180, 100)) + noise * (np.arange(361) < 360)
    assert minute_of_onset(usage) == pytest.approx(141, abs=2)


def test_the_level_before_is_no_higher_than_the_trough_behind_a_fall():
    usage = line(160, (0, 90), (100, 90), (110, 20), (160, 100))
    assert minute_of_onset(usage) == pytest.approx(112.5, abs=0.5)


# -- fillings


def test_without_a_refused_put_nothing_filled():
    assert fillings(series(line(60, (0, 0), (60, 99)))) == []


def test_first_and_last_2192_and_their_number():
    [filling] = fillings(series(line(60, (0, 0), (50, 100), (60, 100)), refused=(50.2, 52, 58)))
    assert (filling.first, filling.last, filling.refused) == (time_at(50.2), time_at(58), 3)
    assert filling.resource == "entries"
    assert filling.seconds == pytest.approx((50.2 - 2.5) * 60, abs=60)


def test_a_pause_with_usage_well_below_ends_a_filling():
    usage = line(120, (0, 0), (30, 100), (40, 50), (60, 100), (120, 100))
    result = fillings(series(usage, refused=(31, 32, 61, 62)))
    assert [(filling.first, filling.last) for filling in result] == [
        (time_at(31), time_at(32)),
        (time_at(61), time_at(62)),
    ]
    assert result[1].onset > time_at(40)


def test_a_pause_near_the_limit_ends_none():
    usage = line(120, (0, 0), (30, 100), (40, 92), (60, 100), (120, 100))
    assert len(fillings(series(usage, refused=(31, 61)))) == 1


def test_a_short_pause_ends_none():
    usage = line(120, (0, 0), (30, 100), (35, 50), (44, 100), (120, 100))
    assert len(fillings(series(usage, refused=(31, 45)))) == 1


def test_what_is_full_is_what_is_fullest():
    entries, elements = line(60, (0, 0), (60, 70)), line(60, (0, 30), (60, 100))
    [filling] = fillings(series(entries, elements, refused=(60,)))
    assert filling.resource == "elements"


def test_messages_that_piled_up_before_count_into_the_filling_of_a_data_set():
    entries = line(120, (0, 10), (60, 70), (120, 72))
    dataset = line(120, (0, 0), (60, 0), (120, 100))
    size = line(120, (0, 0), (120, 1000)).astype(np.int64)
    [filling] = fillings(
        series(entries, entries, dataset, refused=(120,), resources=("entries", "elements", "smds/QM01"), size=size)
    )
    assert filling.resource == "smds/QM01"
    assert filling.onset == time_at(6)
