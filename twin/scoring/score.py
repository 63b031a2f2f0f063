"""Scores of the twin and of every baseline on one recording."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from twin.errors import UsageError
from twin.records import AlertRecord, read_alert_record
from twin.scoring.alarms import CALM_FOR, Alarm, from_alerts, from_condition, from_incidents, merge
from twin.scoring.baselines import BASELINES
from twin.scoring.bootstrap import RESAMPLES
from twin.scoring.judge import JudgedStore, StorePages, judge, judge_pages
from twin.scoring.measures import Measures, PageCounts, count_pages, measure
from twin.scoring.series import PlayedRecording, Predictions, Series
from twin.scoring.truth import Filling, fillings
from twin.state.arrays import Array

TWIN = "twin"  # its pages
TWIN_WATCH = "twin, watch"  # its watches and pages: the first of both
METHODS = (TWIN, TWIN_WATCH, *(baseline.name for baseline in BASELINES))
PAGING_METHODS = tuple(method for method in METHODS if method != TWIN_WATCH)  # a watch is no page


@dataclass(frozen=True, slots=True)
class MethodOutput:
    """Alarms, predictions and pages of a method for one store."""

    alarms: list[Alarm]
    predictions: Predictions | None
    pages: list[Alarm]


@dataclass(frozen=True, slots=True)
class ScoredRecording:
    """Scores of one recording."""

    fillings: Mapping[str, Sequence[Filling]]  # by store
    outputs: Mapping[str, Mapping[str, MethodOutput]]  # by method, then store
    judged: Mapping[str, Sequence[JudgedStore]]  # by method, in the order of the stores
    pages: Mapping[str, Sequence[StorePages]]  # by method, in the order of the stores


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
    records = [read_alert_record(alert.record()) for alert in played.alerts]
    outputs = {
        method: {name: _output(method, played, records, series) for name, series in played.series.items()}
        for method in METHODS
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
    pages = {
        method: [
            judge_pages(played.series[name], all_fillings[name], output.pages, withdrawing_counts=withdrawing_counts)
            for name, output in by_store.items()
        ]
        for method, by_store in outputs.items()
    }
    return ScoredRecording(all_fillings, outputs, judged, pages)


def summarise(scored: Sequence[ScoredRecording]) -> dict[str, Measures]:
    """Return the measures of every method, and of the rules that all have, over some recordings."""
    return {
        method: measure([recording.judged[method] for recording in scored], RESAMPLES) for method in _methods(scored)
    }


def summarise_pages(scored: Sequence[ScoredRecording]) -> dict[str, PageCounts]:
    """Return what people get of every method, and of the rules that all have, over some recordings."""
    return {
        method: count_pages([recording.pages[method] for recording in scored], RESAMPLES)
        for method in _methods(scored)
        if method != TWIN_WATCH
    }


def _methods(scored: Sequence[ScoredRecording]) -> list[str]:
    rules = [name for name in (scored[0].judged if scored else ()) if all(name in own.judged for own in scored)]
    return [*METHODS, *(name for name in rules if name not in METHODS)]


def _output_of_rule(name: str, rule: Rule, series: Series) -> MethodOutput:
    holds = np.asarray(rule(series), bool)
    if holds.shape != series.times.shape:
        wrong = f"rule {name} returned shape {holds.shape} for {series.store}"
        raise UsageError(f"{wrong}; expected: {series.times.shape}, a value for each of its times")
    alarms = from_condition(series.times, holds)
    return MethodOutput(alarms, None, merge(alarms, CALM_FOR))


def _output(method: str, played: PlayedRecording, records: Sequence[AlertRecord], series: Series) -> MethodOutput:
    if method in (TWIN, TWIN_WATCH):
        watches = method == TWIN_WATCH
        alarms = from_alerts(played.alerts, series.store, watches=watches)
        pages = from_incidents(records, series.store, watches=watches)
        return MethodOutput(alarms, played.predictions[series.store], pages)
    [baseline] = [known for known in BASELINES if known.name == method]
    return MethodOutput(*baseline.judge(series), baseline.call(series))
