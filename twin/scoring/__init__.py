"""Scoring: alarms of the twin and of common monitoring rules, compared with the fillings of recordings.

`play` replays a recording and records usage, alerts and forecasts. `score` judges the twin and every baseline with the
same functions. `measure` and `summarise` compute figures of many recordings, `count_pages` and `summarise_pages` what
people get.
"""

from twin.scoring.judge import JudgedStore, Point, StorePages, WarnedFilling, judge, judge_pages
from twin.scoring.measures import Coverage, Measures, PageCounts, count_pages, coverage, measure
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
from twin.scoring.skill import BrierScore, LineSkill, Reliability, skill_against
from twin.scoring.truth import Filling, fillings

__all__ = [
    "METHODS",
    "PAGING_METHODS",
    "TWIN",
    "TWIN_WATCH",
    "BrierScore",
    "Coverage",
    "Filling",
    "JudgedStore",
    "LineSkill",
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
    "score",
    "skill_against",
    "summarise",
    "summarise_pages",
]
