"""Scoring: alarms of the twin and of common monitoring rules, compared with the fillings of recordings.

`play` replays a recording and records usage, alerts and forecasts. `score` judges the twin and every baseline with the
same functions. `measure` and `summarise` compute figures of many recordings.
"""

from twin.scoring.judge import Chance, JudgedStore, Point, WarnedFilling, judge
from twin.scoring.measures import Coverage, Measures, Reliability, coverage, measure, reliability
from twin.scoring.score import METHODS, TWIN, TWIN_WATCH, ScoredRecording, score, summarise
from twin.scoring.series import PlayedRecording, Series, play
from twin.scoring.truth import Filling, fillings

__all__ = [
    "METHODS",
    "TWIN",
    "TWIN_WATCH",
    "Chance",
    "Coverage",
    "Filling",
    "JudgedStore",
    "Measures",
    "PlayedRecording",
    "Point",
    "Reliability",
    "ScoredRecording",
    "Series",
    "WarnedFilling",
    "coverage",
    "fillings",
    "judge",
    "measure",
    "play",
    "reliability",
    "score",
    "summarise",
]
