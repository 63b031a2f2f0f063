"""Probabilities held against what came: small cases worked by hand, and the scores of scoringrules as an oracle."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from tests.support.by_hand import alarm, line
from tests.support.profile import examples
from tests.tools.score.chances import (
    _CELLS,
    COSTS,
    REACH_S,
    ChanceCounts,
    Chances,
    add_counts,
    chances_of,
    climatology_crps,
    count_chances,
    economic_value,
    interval_score,
    skill,
    survival_crps,
)
from tests.tools.score.judge import judge
from tests.tools.score.samples import filling, predict, series
from tests.tools.score.series import Predictions
from tests.tools.score.skill import brier_scores, crps, reliability, skill_against, values_against
from twin.forecast.outcomes import HORIZONS
from twin.reporting.tuning import Resamples

SERIES = series(line(600, (0, 0), (600, 0)))
FILLING = filling(100, 200, 210)
MIDDLES = (_CELLS[:-1] + _CELLS[1:]) / 2
SECONDS = st.floats(1.0, 7200.0)


def counts_of(within: list[float], came: list[float], *, begun: bool = True, yes_or_no: bool = False) -> ChanceCounts:
    """Return counts of a probability for every horizon, in a recording that has no end. came: seconds."""
    predicted = np.repeat(np.array(within, float)[:, None], len(HORIZONS), axis=1)
    cells = None if yes_or_no else np.repeat(predicted[:, :1], MIDDLES.size, axis=1)
    left = np.full(len(came), np.inf)
    return count_chances(Chances(predicted, cells, np.array(came, float), left, np.full(len(came), begun)))


# -- what is compared with what


def test_a_store_is_looked_at_every_five_minutes_in_which_it_is_not_full():
    predictions = predict(*((minute, 20, 30, 40, minute / 1000) for minute in range(600)))
    chances = chances_of(SERIES, (FILLING,), (), predictions)
    minutes = [*range(0, 200, 5), *range(215, 600, 5)]
    assert np.round(chances.within[:, -1] * 1000).tolist() == minutes
    assert (chances.came / 60).tolist() == [200 - minute if minute < 200 else np.inf for minute in minutes]
    assert (chances.left / 60).tolist() == [600 - minute for minute in minutes]
    assert chances.begun.tolist() == [100 <= minute < 200 for minute in minutes]


def test_an_outcome_counts_where_the_horizon_can_be_seen_whatever_came():
    late = filling(500, 560, 570)
    counts = count_chances(chances_of(SERIES, (FILLING, late), (), predict((0, 1, 1, 1, 0))))
    minutes = [m for m in range(0, 600, 5) if not (200 <= m <= 210 or 560 <= m <= 570)]
    for row, horizon in enumerate(HORIZONS):
        seen = [m for m in minutes if m + horizon / 60 <= 600]
        came = [m for m in seen if 0 < 200 - m <= horizon / 60 or 0 < 560 - m <= horizon / 60]
        assert counts.bins[row, :, :3].sum(axis=0).tolist() == [
            len(seen),
            len(came),
            sum(not (100 <= m < 200 or 500 <= m < 560) for m in came),
        ]


def test_where_nothing_was_said_the_chance_was_none():
    chances = chances_of(SERIES, (FILLING,), (), predict((0, 20, 30, 40, 0.5)))
    assert {round(chance, 6) for chance in chances.within[:, -1].tolist()} == {0.5, 0.0}


def test_a_chance_within_a_horizon_is_less_than_that_of_full_at_some_time():
    predictions = Predictions(np.zeros(1, np.int64), np.array([[3600.0, 7200.0, 14_400.0]]), np.array([0.8]))
    chances = predictions.chances_at(np.zeros(1, np.int64), 3600.0 * np.array([1, 2, 4, 24]))
    assert chances[0] == pytest.approx([0.08, 0.4, 0.72, 0.8], abs=1e-4)


def test_a_rule_says_yes_by_its_time_or_while_its_alarm_is_open():
    minutes = np.array([minute for minute in range(0, 600, 5) if not 200 <= minute <= 210])
    chances = chances_of(SERIES, (FILLING,), (alarm(120, 220), alarm(500, None)), None)
    assert chances.cells is None
    is_open = ((minutes >= 120) & (minutes < 220)) | (minutes >= 500)
    assert (chances.within == is_open[:, None]).all()
    times = Predictions(SERIES.times, np.full((len(SERIES.times), 3), 2000.0))
    assert chances_of(SERIES, (FILLING,), (), times).within[0].tolist() == [h >= 2000 for h in HORIZONS]


# -- scores


@settings(max_examples=examples(50))
@given(st.lists(st.tuples(SECONDS, SECONDS, SECONDS, SECONDS), min_size=1, max_size=8))
def test_interval_scores_are_those_of_scoringrules(rows):
    import scoringrules  # which compiles for seconds: not in every worker

    came = np.array([row[3] for row in rows])
    p10, p50, p90 = np.sort([row[:3] for row in rows], axis=1).T
    weights = {"w_median": 0.5, "w_alpha": np.array([0.1])}
    alpha = np.array([0.2])
    expected = scoringrules.weighted_interval_score(came, p50, p10[:, None], p90[:, None], alpha, **weights)
    assert interval_score(p10, p50, p90, came) == pytest.approx(np.asarray(expected))


@pytest.mark.parametrize("came", [90.0, 1800.0, 7200.0, 20_000.0, np.inf])
@pytest.mark.parametrize("probability", [0.3, 1.0])
def test_the_crps_is_that_of_an_ensemble_in_scoringrules(came, probability):
    import scoringrules

    now = np.zeros(1, np.int64)
    predictions = Predictions(now, np.array([[1200.0, 2400.0, 6000.0]]), np.array([probability]))
    members = np.geomspace(1.0, 1e6, 2001)
    reached = np.append(0.0, predictions.chances_at(now, members)[0])
    weights = np.append(np.diff(reached), 1.0 - reached[-1])
    expected = scoringrules.twcrps_ensemble(min(came, 1e7), np.append(members, 1e7), b=REACH_S, ens_w=weights)
    cells = predictions.chances_at(now, MIDDLES)
    assert survival_crps(cells, np.array([came]), np.array([np.inf]))[0] == pytest.approx(expected, rel=0.02)


def test_what_is_not_known_does_not_count_in_the_crps():
    cells = np.full((3, MIDDLES.size), 0.5)
    came, left = np.array([np.inf, np.inf, 100.0]), np.array([400.0, 1e9, 400.0])
    assert survival_crps(cells, came, left) == pytest.approx([100.0, REACH_S / 4, 100.0])


@settings(max_examples=examples(50))
@given(st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.6, 0.9, 1.0]), st.booleans()), min_size=1, max_size=60))
def test_the_brier_score_is_that_of_scoringrules_and_the_sum_of_its_parts(rows):
    import scoringrules

    predicted, came = [row[0] for row in rows], np.array([row[1] for row in rows], float)
    counts = [counts_of(predicted, np.where(came, 60.0, np.inf).tolist())]
    for score in brier_scores(Resamples(1), counts):
        uncertainty = float(came.mean() * (1 - came.mean()))
        assert (score.predictions, score.came) == (len(rows), came.sum())
        assert score.score == pytest.approx(np.mean(scoringrules.brier_score(came, np.array(predicted))))
        assert score.score == pytest.approx(score.reliability - score.resolution + uncertainty)
        if uncertainty:
            assert score.skill == pytest.approx(1 - score.score / uncertainty)
        else:
            assert score.skill is None


def test_a_rule_gets_the_probability_that_its_word_deserves():
    counts = [counts_of([1.0] * 4 + [0.0] * 6, [60.0, np.inf, np.inf, np.inf] + [np.inf] * 6, yes_or_no=True)]
    [*_, score] = brier_scores(Resamples(1), counts)
    assert (score.score, score.reliability) == (pytest.approx(4 * 0.25 * 0.75 / 10), 0.0)
    assert crps(Resamples(1), counts)["crps"].value is None


def test_climatology_says_what_comes_on_the_average():
    counts = [counts_of([0.25] * 4, [0.0, np.inf, np.inf, np.inf])]
    figures = crps(Resamples(1), counts)
    assert figures["crps"].value == pytest.approx(climatology_crps(counts[0].waits) / 4) == pytest.approx(5400.0)
    assert figures["crps_skill"].value == pytest.approx(0.0)
    assert np.isnan(skill(0.1, 0.0))


def test_value_is_what_acting_saves_of_what_could_be_saved():
    """By hand: a tenth comes. Told 0.3 before it and 0.3 once for nothing: acted on up to C/L 0.2."""
    chances = [0.3, 0.3] + [0.0] * 18
    came = [60.0, np.inf] + [np.inf] * 17 + [60.0]
    own = counts_of(chances, came)
    looks = own.bins[0, :, 0].sum()
    values = economic_value(own.acts[0, :, 0] / looks, own.acts[0, :, 1] / looks, own.bins[0, :, 1].sum() / looks)
    for cost, value in zip(COSTS, values, strict=True):
        acted, hits = (0.1, 0.05) if cost < 0.3 else (0.0, 0.0)
        reference = min(cost, 0.1)
        assert value == pytest.approx((reference - cost * acted - 0.1 + hits) / (reference - cost * 0.1))
    perfect = counts_of([1.0] * 4 + [0.0] * 16, [60.0] * 4 + [np.inf] * 16)
    shares = perfect.acts[0] / 20
    assert economic_value(shares[:, 0], shares[:, 1], np.array(0.2)) == pytest.approx(1.0)


def test_probabilities_are_held_against_how_often_it_came_and_what_came_unannounced_is_split():
    early = counts_of([0.0] * 4, [60.0, np.inf, np.inf, np.inf], begun=False)
    late = counts_of(
        [0.0] * 4 + [0.6, 0.6, 0.6, 0.7, 1.0], [60.0, 60.0, np.inf, np.inf, 60.0, 60.0, 60.0, np.inf, 60.0]
    )
    none, likely, sure = reliability(Resamples(1), [add_counts([early, late])])
    assert (none.count, none.predicted, none.observed, none.unknowable) == (8, 0.0, 3 / 8, 1 / 8)
    assert (likely.count, likely.observed, likely.unknowable) == (4, 0.75, 0.0)
    assert likely.predicted == pytest.approx(0.625)
    assert (sure.count, sure.observed, sure.bounds) == (1, 1.0, None)


def test_the_twin_is_held_against_the_rule_that_is_best_at_each_horizon():
    end = 450.0
    filled = filling(100, end, end)
    predicted = predict(*((minute, *[max(0.1, end - minute)] * 3, minute < end) for minute in range(600)))
    twin = [judge(SERIES, [filled], [], predicted, withdrawing_counts=True)]
    alarms = (alarm(350, 450), alarm(20, 40))
    good, bad = ([judge(SERIES, [filled], [own], None, withdrawing_counts=True)] for own in alarms)
    skills = skill_against([twin], {"bad": [bad], "good": [good]})
    for each in values_against([twin], {"bad": [bad], "good": [good]}, HORIZONS.index(3600)):
        assert each.rule == "good"
        # One of the twelve looks is an hour before: its probability is one half.
        assert each.value.value == pytest.approx(1.0 if each.cost < 0.5 else 11 / 12)
    assert [own.rule for own in skills] == ["good"] * len(HORIZONS)
    assert all(own.skill.value is not None and own.skill.value > 0.5 for own in skills)
