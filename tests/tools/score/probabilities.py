"""The sections of docs/foresight.md about probabilities: their scores, their skill and their calibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.tools.score import people
from tests.tools.score.chances import COSTS
from tests.tools.score.table import (
    NOTHING,
    bounds_text,
    markdown,
    number,
    number_of,
    percent,
    percent_end,
    span,
    span_of,
)
from tests.tools.score.targets import VALUED_S, sets_of_targets
from tests.tools.score.work import CaseScore, Loads, line_skills, measured, sets_of, values
from twin.forecast.outcomes import HORIZONS
from twin.playback.pages import TWIN
from twin.reporting.tuning import Bounds


def by_horizon(scores: Sequence[CaseScore], loads: Loads) -> str:
    """Return the scores of the probabilities: by horizon, then by class."""
    lines = []
    for brier, line in zip(measured(scores)[TWIN].brier, line_skills(scores), strict=True):
        cells = [f"{brier.predictions:,}", percent(brier.came / brier.predictions if brier.predictions else None)]
        cells += [_bounded(brier.score, brier.bounds.get("score"), _three)]
        cells += [_bounded(brier.skill, brier.bounds.get("skill"), number)]
        cells += [line.rule, _bounded(*line.skill, number)]
        cells += [
            _bounded(getattr(brier, name), brier.bounds.get(name), _four) for name in ("reliability", "resolution")
        ]
        lines.append([f"within {span(brier.horizon_s)}", *cells])
    head = ["2192", "predictions", "came", "Brier score", "skill against climatology", "best rule", "skill against it"]
    by_set = []
    for name, some in sets_of(scores, loads).items():
        if not some:
            continue
        twin = measured(some)[TWIN]
        cells = [_bounded(brier.skill, brier.bounds.get("skill"), number) for brier in twin.brier]
        cells += [span_of("crps")(twin), number_of("crps_skill")(twin), span_of("interval_score")(twin)]
        by_set.append([people.TITLES.get(name, name.capitalize()), *cells])
    horizons = [f"skill within {span(seconds)}" for seconds in HORIZONS]
    return f"""## Probabilities

Every five minutes, the probability of a 2192 within some time beside whether it came. The Brier score is the mean
squared error of that probability; its skill is 1 without an error and 0 for who always says the share that came
(climatology). A rule of yes and no is given the probability that its yes and its no deserve in these recordings.
Reliability is what wrong probabilities cost, resolution what telling the recordings apart brings
([definitions](measuring.md#probabilities)).

{markdown([*head, "reliability", "resolution"], lines)}

CRPS: the same over all times up to eight hours, in time; interval score: of p10, p50 and p90 in the last hour of a
filling, in time; both the less the better.

{markdown(["", *horizons, "CRPS", "its skill", "interval score"], by_set)}"""


def value(scores: Sequence[CaseScore], loads: Loads) -> str:
    """Return what acting on the probabilities is worth beside the best rule, by set of recordings."""
    lines = []
    for name, some in sets_of_targets(scores, loads).items():
        own = values(some, HORIZONS.index(VALUED_S))
        lines.append([name, *(_bounded(*each.value, number) for each in own)])
        lines.append(["best rule", *(f"{number(each.of_rule.value)} {each.rule}" for each in own)])
    return f"""## What acting on it is worth

Who acts pays C, who does not and is full pays L. The value of a forecast within {span(VALUED_S)} is what acting on it
saves, as a share of what a perfect one saves over the better of acting always and never: 1 is perfect, 0 brings
nothing, less does harm. The twin's probability is acted on above C/L, a rule on its yes; the best rule at each C/L is
one of those above and of fixed lines at 70, 90 and 95 % ([definitions](measuring.md#probabilities)).

![Value of the twin and of the best rule, by C/L](images/foresight-value.svg)

{markdown(["C/L", *(f"{cost:g}" for cost in COSTS)], lines)}"""


def _bounded(value: float | None, bounds: Bounds | None, form: Callable[[float | None], str]) -> str:
    return form(value) + (bounds_text(bounds, form) if value is not None else "")


def _three(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"


def _four(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.4f}"


def calibration(scores: Sequence[CaseScore]) -> str:
    """Return the reliability of intervals and probabilities."""
    lines = [
        [
            percent(each.predicted),
            f"{each.count:,}",
            _precise(each.observed) + bounds_text(each.bounds, percent_end),
            _precise(each.unknowable),
            _precise(each.observed - each.unknowable),
        ]
        for each in measured(scores)[TWIN].reliability
    ]
    head = ["predicted probability, mean", "predictions", "2192 observed", "before the onset", "after it"]
    return f"""## Calibration

Left: for the predictions made every five minutes of the last hour of a filling, how often the 2192 occurred before p10,
p50 and p90. Right: for all predictions, every five minutes of every recording, how often a 2192 occurred within two
hours, by predicted probability.

![Calibration of the interval and of the probability](images/foresight-calibration.svg)

{markdown(head, lines)}

The last two columns split what was observed: a prediction made before the onset of the filling, when nobody could know,
and one made after it. At 0 % the latter are those that were missed."""


def _precise(share: float) -> str:
    return f"{100 * share:.1f} %"
