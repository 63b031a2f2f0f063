"""Scores of the twin and of every baseline on one recording."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from twin.errors import UsageError
from twin.scoring.alarms import Alarm, from_alerts, from_condition
from twin.scoring.baselines import BASELINES
from twin.scoring.judge import JudgedStore, judge
from twin.scoring.measures import Measures, measure
from twin.scoring.series import PlayedRecording, Predictions, Series
from twin.scoring.truth import Filling, fillings
from twin.state.arrays import Array

TWIN = "twin"  # its pages
TWIN_WATCH = "twin, watch"  # its watches and pages: the first of both
METHODS = (TWIN, TWIN_WATCH, *(baseline.name for baseline in BASELINES))


@dataclass(frozen=True, slots=True)
class MethodOutput:
    """Alarms and predictions of a method for one store."""

    alarms: list[Alarm]
    predictions: Predictions | None


@dataclass(frozen=True, slots=True)
class ScoredRecording:
    """Scores of one recording."""

    fillings: Mapping[str, Sequence[Filling]]  # by store
    outputs: Mapping[str, Mapping[str, MethodOutput]]  # by method, then store
    judged: Mapping[str, Sequence[JudgedStore]]  # by method, in the order of the stores


Rule = Callable[[Series], Array]
"""A rule of one's own: bool[n], True at each sample of `Series.times` at which it raises an alarm."""


def score(
    played: PlayedRecording, *, withdrawing_counts: bool = True, rules: Mapping[str, Rule] | None = None
) -> ScoredRecording:
    """Judge the twin, every baseline and own rules on a recording.

    Args:
        played: the recording.
        withdrawing_counts: True if an alarm that clears before its 2192 is false, as in the hard classes.
        rules: own rules by name, which must not be that of a method.

    Raises:
        UsageError: a rule has the name of a method, or does not return a value for each sample.

    Examples:
        >>> from twin.scoring import play, score, summarise
        >>> played = play("friday.arrow", twin.load_estate("estate.toml"))
        >>> scored = score(played, rules={"70 %": lambda series: series.usage.max(axis=1) >= 70})
        >>> summarise([scored])["70 %"].recall
        1.0
    """
    own = dict(rules or {})
    taken_names = sorted(own.keys() & set(METHODS))
    if taken_names:
        raise UsageError(f"rule {taken_names[0]} is the name of a method; expected: another name")
    all_fillings = {name: fillings(series) for name, series in played.series.items()}
    outputs = {
        method: {name: _output(method, played, series) for name, series in played.series.items()} for method in METHODS
    } | {
        name: {store: _output_of_rule(name, rule, series) for store, series in played.series.items()}
        for name, rule in own.items()
    }
    judged = {
        method: [
            judge(
                played.series[name],
                all_fillings[name],
                output.alarms,
                output.predictions,
                withdrawing_counts=withdrawing_counts,
            )
            for name, output in by_store.items()
        ]
        for method, by_store in outputs.items()
    }
    return ScoredRecording(all_fillings, outputs, judged)


def summarise(scored: Sequence[ScoredRecording]) -> dict[str, Measures]:
    """Return the measures of every method, and of the rules that all have, over some recordings."""
    rules = [name for name in (scored[0].judged if scored else ()) if all(name in own.judged for own in scored)]
    names = (*METHODS, *(name for name in rules if name not in METHODS))
    return {method: measure([recording.judged[method] for recording in scored]) for method in names}


def _output_of_rule(name: str, rule: Rule, series: Series) -> MethodOutput:
    holds = np.asarray(rule(series), bool)
    if holds.shape != series.times.shape:
        wrong = f"rule {name} returned shape {holds.shape} for {series.store}"
        raise UsageError(f"{wrong}; expected: {series.times.shape}, a value for each of its times")
    return MethodOutput(from_condition(series.times, holds), None)


def _output(method: str, played: PlayedRecording, series: Series) -> MethodOutput:
    if method in (TWIN, TWIN_WATCH):
        alarms = from_alerts(played.alerts, series.store, watches=method == TWIN_WATCH)
        return MethodOutput(alarms, played.predictions[series.store])
    [baseline] = [known for known in BASELINES if known.name == method]
    return MethodOutput(*baseline.judge(series))
