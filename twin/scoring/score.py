"""Scores of the twin and of every baseline on one recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twin.scoring.alarms import Alarm, from_alerts
from twin.scoring.baselines import BASELINES
from twin.scoring.judge import JudgedStore, judge
from twin.scoring.measures import Measures, measure
from twin.scoring.predictions import Predictions
from twin.scoring.series import PlayedRecording, Series
from twin.scoring.truth import Filling, fillings

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


def score(played: PlayedRecording, *, withdrawing_counts: bool = True) -> ScoredRecording:
    """Judge the twin and every baseline on a recording.

    Args:
        played: the recording.
        withdrawing_counts: True if an alarm that clears before its 2192 is false, as in the hard classes.
    """
    all_fillings = {name: fillings(series) for name, series in played.series.items()}
    outputs = {
        method: {name: _output(method, played, series) for name, series in played.series.items()} for method in METHODS
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
    """Return the measures of every method over some recordings."""
    return {method: measure([recording.judged[method] for recording in scored]) for method in METHODS}


def _output(method: str, played: PlayedRecording, series: Series) -> MethodOutput:
    if method in (TWIN, TWIN_WATCH):
        alarms = from_alerts(played.alerts, series.store, watches=method == TWIN_WATCH)
        return MethodOutput(alarms, played.predictions[series.store])
    [baseline] = [known for known in BASELINES if known.name == method]
    return MethodOutput(*baseline.judge(series))
