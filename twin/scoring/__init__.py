"""Scoring: alarms of the twin and of common monitoring rules, compared with the fillings of recordings.

`play` replays a recording and records usage, alerts and forecasts. `score` judges the twin and every baseline with the
same functions. `measure` and `summarise` compute figures of many recordings, `count_pages` and `summarise_pages` what
people get.
"""

from twin.scoring.judge import Chance, JudgedStore, Point, StorePages, WarnedFilling, judge, judge_pages
from twin.scoring.measures import (
    Coverage,
    Measures,
    PageCounts,
    Reliability,
    count_pages,
    coverage,
    measure,
    reliability,
)
from twin.scoring.score import (
    METHODS,
    PAGING_METHODS,
    TWIN,
    TWIN_WATCH,
    ScoredRecording,
    score,
    summarise,
    summarise_pages,
)
from twin.scoring.series import PlayedRecording, Series, play
from twin.scoring.truth import Filling, fillings

__all__ = [
    "METHODS",
    "PAGING_METHODS",
    "TWIN",
    "TWIN_WATCH",
    "Chance",
    "Coverage",
    "Filling",
    "JudgedStore",
    "Measures",
    "PageCounts",
    "PlayedRecording",
    "Point",
    "Reliability",
    "ScoredRecording",
    "Series",
    "StorePages",
    "WarnedFilling",
    "count_pages",
    "coverage",
    "fillings",
    "judge",
    "judge_pages",
    "measure",
    "play",
    "reliability",
    "score",
    "summarise",
    "summarise_pages",
]
