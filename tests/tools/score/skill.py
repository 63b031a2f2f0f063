"""Skill of predicted probabilities over many recordings: the scores of `tests.tools.score.chances`, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.tools.score.chances import (
    BIN_ENDS,
    COSTS,
    ChanceCounts,
    add_counts,
    climatology_brier,
    climatology_crps,
    economic_value,
    skill,
)
from tests.tools.score.judge import JudgedStore
from twin.forecast.outcomes import HORIZONS
from twin.reporting.tuning import Bounds, Figure, Resamples, figure, share
from twin.state.arrays import Array


@dataclass(frozen=True, slots=True)
class Reliability:
    """Outcome of predictions of about the same probability, of a 2192 within two hours."""

    count: int
    predicted: float  # mean probability
    observed: float  # share of those that a 2192 followed
    unknowable: float  # share of those that a 2192 followed and that were made before the filling began
    bounds: Bounds | None = None  # of the observed share


@dataclass(frozen=True, slots=True, kw_only=True)
class BrierScore:
    """Brier score of the probability of a 2192 within a horizon, and its parts; see `tests.tools.score.chances`."""

    horizon_s: int
    predictions: int
    came: int  # those that a 2192 followed
    score: float | None
    skill: float | None  # against climatology
    reliability: float | None
    resolution: float | None
    bounds: dict[str, Bounds] = field(default_factory=dict)  # by field


@dataclass(frozen=True, slots=True)
class LineSkill:
    """Skill of the twin's probabilities within a horizon against those of the best of some rules."""

    horizon_s: int
    rule: str
    skill: Figure


def _bins(counts: Sequence[ChanceCounts]) -> Array:
    """Return f8[recordings, HORIZONS, bins, 4], the bins of `ChanceCounts` of each recording."""
    return np.array([own.bins for own in counts]).reshape(-1, len(HORIZONS), len(BIN_ENDS), 4)


def reliability(drawn: Resamples, counts: Sequence[ChanceCounts]) -> tuple[Reliability, ...]:
    """Compute the reliability within the last of HORIZONS in bins of the predicted probability with ends BIN_ENDS.

    Empty bins are dropped.

    Args:
        drawn: the recordings.
        counts: those of each recording.
    """
    sums = drawn.total(_bins(counts)[:, -1])
    return tuple(
        Reliability(
            count=round(own[0, 0]),
            predicted=float(own[0, 3] / own[0, 0]),
            observed=float(own[0, 1] / own[0, 0]),
            unknowable=float(own[0, 2] / own[0, 0]),
            bounds=figure(share(own[:, 1], own[:, 0])).bounds,
        )
        for own in np.moveaxis(sums, 1, 0)
        if own[0, 0]
    )


def _brier(drawn: Resamples, counts: Sequence[ChanceCounts]) -> dict[str, Array]:
    """Return the Brier score and its parts, each f8[1 + resamples, HORIZONS]."""
    bins = drawn.total(_bins(counts))
    looks, came = bins[..., 0].sum(axis=-1), bins[..., 1].sum(axis=-1)
    mean, own_mean = share(came, looks), share(bins[..., 1], bins[..., 0])
    uncertainty = climatology_brier(mean)
    resolution = share(np.nansum(bins[..., 0] * (own_mean - mean[..., None]) ** 2, axis=-1), looks)
    if any(own.is_probability for own in counts):
        score = share(drawn.total(np.array([own.squares for own in counts])), looks)
        predicted = share(bins[..., 3], bins[..., 0])
        apart = share(np.nansum(bins[..., 0] * (predicted - own_mean) ** 2, axis=-1), looks)
    else:  # yes and no as the probability that they deserve
        score, apart = uncertainty - resolution, np.zeros_like(uncertainty)
    return {"score": score, "skill": skill(score, uncertainty), "reliability": apart, "resolution": resolution}


def brier_scores(drawn: Resamples, counts: Sequence[ChanceCounts]) -> tuple[BrierScore, ...]:
    """Compute the Brier score within each horizon.

    Args:
        drawn: the recordings.
        counts: those of each recording.
    """
    totals = _bins(counts).sum(axis=(0, 2))
    parts = _brier(drawn, counts) if totals.any() else {}
    scores = []
    for column, horizon in enumerate(HORIZONS if parts else ()):
        figures = {name: figure(values[:, column]) for name, values in parts.items()}
        predictions, came = (round(total) for total in totals[column, :2])
        scores.append(
            BrierScore(
                horizon_s=horizon, predictions=predictions, came=came, **values_of(figures), bounds=bounds_of(figures)
            )
        )
    return tuple(scores)


def skill_against(
    twin: Sequence[Sequence[JudgedStore]],
    rules: Mapping[str, Sequence[Sequence[JudgedStore]]],
    resamples: int = 0,
) -> tuple[LineSkill, ...]:
    """Compute the skill of the twin's probabilities against those of the rule with the best Brier score, by horizon.

    Args:
        twin: the judged stores of each recording.
        rules: by rule, the judged stores of the same recordings.
        resamples: how many times the recordings are drawn again for bounds.
    """
    drawn = Resamples(len(twin), resamples)
    scores = {
        name: _brier(drawn, [add_counts(store.chances for store in recording) for recording in recordings])["score"]
        for name, recordings in {"": twin, **rules}.items()
    }
    ours = scores.pop("")
    skills = []
    for column, horizon in enumerate(HORIZONS):
        best = min(scores, key=lambda name: float(scores[name][0, column]))
        skills.append(LineSkill(horizon, best, figure(skill(ours[:, column], scores[best][:, column]))))
    return tuple(skills)


@dataclass(frozen=True, slots=True)
class Value:
    """Relative economic value of the twin's probabilities at a C/L, and of the rule that is best there."""

    cost: float
    value: Figure
    rule: str
    of_rule: Figure


def values_against(
    twin: Sequence[Sequence[JudgedStore]],
    rules: Mapping[str, Sequence[Sequence[JudgedStore]]],
    horizon: int,
    resamples: int = 0,
) -> tuple[Value, ...]:
    """Compute the value of the twin's probabilities within a horizon, and of the best rule, at each of COSTS.

    Args:
        twin: the judged stores of each recording.
        rules: by rule, the judged stores of the same recordings.
        horizon: index into HORIZONS.
        resamples: how many times the recordings are drawn again for bounds.
    """
    drawn = Resamples(len(twin), resamples)
    by_method = {}
    for name, recordings in {"": twin, **rules}.items():
        counts = [add_counts(store.chances for store in recording) for recording in recordings]
        bins = drawn.total(_bins(counts))[:, horizon]
        looks = bins[..., 0].sum(axis=-1)
        acts = drawn.total(np.array([own.acts for own in counts]))[:, horizon]
        every = np.broadcast_to(looks[:, None], acts.shape[:-1])
        acted, hits = (share(acts[..., column], every) for column in (0, 1))
        by_method[name] = economic_value(acted, hits, share(bins[..., 1].sum(axis=-1), looks))
    ours = by_method.pop("")
    values = []
    for column, cost in enumerate(COSTS):
        best = max(by_method, key=lambda name: float(by_method[name][0, column]))
        values.append(Value(cost, figure(ours[:, column]), best, figure(by_method[best][:, column])))
    return tuple(values)


def crps(drawn: Resamples, counts: Sequence[ChanceCounts]) -> dict[str, Figure]:
    """Compute the mean CRPS, seconds, and its skill against climatology; None where no probability is predicted.

    Args:
        drawn: the recordings.
        counts: those of each recording.
    """
    if not any(own.is_probability for own in counts):
        return {"crps": Figure(None), "crps_skill": Figure(None)}
    score, looks = drawn.total([own.crps for own in counts]), drawn.total([own.count for own in counts])
    reference = climatology_crps(drawn.total(np.array([own.waits for own in counts])))
    return {"crps": figure(share(score, looks)), "crps_skill": figure(skill(score, reference))}


def values_of(figures: Mapping[str, Figure]) -> dict[str, Any]:
    """Return the values of figures by name."""
    return {name: own.value for name, own in figures.items()}


def bounds_of(figures: Mapping[str, Figure]) -> dict[str, Bounds]:
    """Return the intervals of those figures that have one, by name."""
    return {name: own.bounds for name, own in figures.items() if own.bounds is not None}
