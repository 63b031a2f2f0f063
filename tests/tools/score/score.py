"""Scores of the twin and of every baseline on one recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.tools.score.alarms import from_alerts
from tests.tools.score.baselines import BASELINES, OTHER_LINES
from tests.tools.score.judge import JudgedStore, StorePages, judge, judge_pages
from tests.tools.score.series import PlayedRecording, Predictions
from tests.tools.score.truth import Filling, fillings
from twin.playback.pages import Alarm, from_incidents
from twin.playback.timeline import Series
from twin.records import AlertRecord, read_alert_record

TWIN = "twin"  # its pages
TWIN_WATCH = "twin, watch"  # its watches and pages: the first of both
METHODS = (TWIN, TWIN_WATCH, *(baseline.name for baseline in BASELINES))
RIVALS = (*METHODS[2:], *(line.name for line in OTHER_LINES))  # rules that the twin is held against
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


def score(played: PlayedRecording, *, withdrawing_counts: bool = True) -> ScoredRecording:
    """Judge the twin and every baseline on a recording.

    Args:
        played: the recording.
        withdrawing_counts: True if an alarm that clears before its 2192 is false, as in the hard classes.
    """
    all_fillings = {name: fillings(series) for name, series in played.series.items()}
    records = [read_alert_record(alert.record()) for alert in played.alerts]
    outputs = {
        method: {name: _output(method, played, records, series) for name, series in played.series.items()}
        for method in (TWIN, TWIN_WATCH, *RIVALS)
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


def _output(method: str, played: PlayedRecording, records: Sequence[AlertRecord], series: Series) -> MethodOutput:
    if method in (TWIN, TWIN_WATCH):
        watches = method == TWIN_WATCH
        alarms = from_alerts(played.alerts, series.store, watches=watches)
        pages = from_incidents(records, series.store, watches=watches)
        return MethodOutput(alarms, played.predictions[series.store], pages)
    [baseline] = [known for known in (*BASELINES, *OTHER_LINES) if known.name == method]
    return MethodOutput(*baseline.judge(series), baseline.call(series))
