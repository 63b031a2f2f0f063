"""The twin and every baseline on one recording, judged alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twin.scoring.alarms import Alarm, from_alerts
from twin.scoring.baselines import BASELINES
from twin.scoring.judge import Judged, judge
from twin.scoring.measures import Measures, measure
from twin.scoring.predictions import Predictions
from twin.scoring.series import Played, Series
from twin.scoring.truth import Filling, fillings

TWIN = "twin"
METHODS = (TWIN, *(baseline.name for baseline in BASELINES))


@dataclass(frozen=True, slots=True)
class Said:
    """What a method said of one store."""

    alarms: list[Alarm]
    predictions: Predictions | None


@dataclass(frozen=True, slots=True)
class Scored:
    """One recording. filled: by store; said and judged: by method; said by store, judged in the order of the stores."""

    filled: Mapping[str, Sequence[Filling]]
    said: Mapping[str, Mapping[str, Said]]
    judged: Mapping[str, Sequence[Judged]]


def score(played: Played, *, withdrawing_counts: bool = True) -> Scored:
    """Judge the twin and every baseline on what was played.

    withdrawing_counts: whether an alarm withdrawn before the 2192 it foretold is false: so on the hard classes.
    """
    filled = {name: fillings(series) for name, series in played.series.items()}
    said = {
        method: {name: _said(method, played, series) for name, series in played.series.items()} for method in METHODS
    }
    judged = {
        method: [
            judge(played.series[name], filled[name], one.alarms, one.predictions, withdrawing_counts=withdrawing_counts)
            for name, one in by_store.items()
        ]
        for method, by_store in said.items()
    }
    return Scored(filled, said, judged)


def summarise(scored: Sequence[Scored]) -> dict[str, Measures]:
    """The measures of every method over some recordings."""
    return {method: measure([one.judged[method] for one in scored]) for method in METHODS}


def _said(method: str, played: Played, series: Series) -> Said:
    if method == TWIN:
        return Said(from_alerts(played.alerts, series.store), played.predictions[series.store])
    [baseline] = [one for one in BASELINES if one.name == method]
    return Said(*baseline.judge(series))
