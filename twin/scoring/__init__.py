"""The scorecard: alarms of the twin and of other people's rules, held against what really happened.

`play` takes a recording through the twin and keeps what was seen; `score` judges the twin and every baseline on it by
the same functions; `measure` and `summarise` make figures of many.
"""

from twin.scoring.judge import Chance, Judged, Point, Warned, judge
from twin.scoring.measures import Coverage, Measures, Reliability, coverage, measure, reliability
from twin.scoring.score import METHODS, TWIN, Scored, score, summarise
from twin.scoring.series import Played, Series, play
from twin.scoring.truth import Filling, fillings

__all__ = [
    "METHODS",
    "TWIN",
    "Chance",
    "Coverage",
    "Filling",
    "Judged",
    "Measures",
    "Played",
    "Point",
    "Reliability",
    "Scored",
    "Series",
    "Warned",
    "coverage",
    "fillings",
    "judge",
    "measure",
    "play",
    "reliability",
    "score",
    "summarise",
]
