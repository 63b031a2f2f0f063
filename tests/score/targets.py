"""Targets of the forecast, with measured values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.score.oracle import ORACLE
from tests.score.people import counted
from tests.score.work import (
    LINE,
    CaseScore,
    classes,
    cold_and_warm,
    measured,
    scenarios,
    with_oracle,
)
from twin.scoring import TWIN, TWIN_WATCH, Measures
from twin.scoring.table import error, inside, number, percent, span
from twin.units import as_count

RECALL, CALM, LEAD, NAMED, F1 = 0.99, 0.98, 0.90, 0.95, 0.90
PRECISION = {"steady": 0.95, "hard": 0.90, "held out": 0.90}
ERRORS = {60: 0.25, 30: 0.20, 15: 0.10, 5: 0.10}
COVERED = (0.75, 0.85)
TAIL = 0.13
REOPENED = 0.05
WARM_PRECISION = 0.95  # of page on hard classes with a day of history
NEAR_ORACLE = 0.05  # of F1
BETTER = 0.1  # of F1, than every baseline on the hard classes
CALM_PAGES, FILLING_PAGES = 0.1, 1.1  # pages a store in which nothing fills, and a filling
_SAMPLE_S = 30.0  # between two samples of the line
HARMLESS = ("nightly-batch", "flat-near-limit")
FIXED = ("static 80 %, structure", "static 80 %", "static 85 %")


@dataclass(frozen=True, slots=True)
class Target:
    what: str
    aim: str
    measured: str
    met: bool


def targets(scores: Sequence[CaseScore]) -> list[Target]:
    """Those of what was scored; a class or scenario without cases has none."""
    by_class = {name: measured(some) for name, some in classes(scores).items() if some}
    twin, watch = by_class["all"][TWIN], by_class["all"][TWIN_WATCH]
    results = [*_of_people(scores), not_later(scores), _at_least("recall of watch or page", watch.recall, RECALL)]
    for name, aim in PRECISION.items():
        if name in by_class:
            results.append(_at_least(f"precision of page, {name}", by_class[name][TWIN].precision, aim))
    if "hard" in by_class:
        results.append(_at_least("F1 of page, hard", by_class["hard"][TWIN].f1, F1))
    if any(score.warm for score in scores):
        warm = cold_and_warm(scores)["warm"][TWIN]
        results.append(_at_least("precision of page, hard, warm", warm.precision, WARM_PRECISION))
    cases, by_method = with_oracle(scores)
    if cases:
        ours, oracles = by_method[TWIN].f1 or 0.0, by_method[ORACLE].f1 or 0.0
        what = f"F1 of page where there is an oracle ({len(cases)} recordings)"
        reached = f"{number(ours)}; oracle: {number(oracles)}"
        results.append(Target(what, f"within {NEAR_ORACLE} of it", reached, ours >= oracles - NEAR_ORACLE))
    for name in HARMLESS:
        if name in scenarios(scores):
            calm = measured(scenarios(scores)[name])[TWIN].calm
            results.append(_at_least(f"recordings of {name} without a false page", calm, CALM))
    results.append(
        _at_least("lead of the first of both: 15 min, or 80 % of a shorter filling", watch.enough_lead, LEAD)
    )
    for name, measures in by_class.items():
        if name in ("steady", "hard"):
            results += [_error(name, measures[TWIN], minutes) for minutes in ERRORS]
    covered = twin.interval.inside
    tails = max(twin.interval.below or 0.0, twin.interval.above or 0.0)
    met = covered is not None and COVERED[0] <= covered <= COVERED[1] and tails <= TAIL
    results += [
        Target("observed time within p10..p90", "75 to 85 %, each tail at most 13 %", inside(twin.interval), met),
        Target("reopened a filling", "at most 0.05", number(watch.reopened), (watch.reopened or 0.0) <= REOPENED),
        _at_least("filler named first is the one that fills", twin.named, NAMED),
    ]
    return results + (_against(by_class["hard"]) if "hard" in by_class else [])


def _of_people(scores: Sequence[CaseScore]) -> list[Target]:
    """Return the targets of what people get about the stores of the stories."""
    counts = counted(scores, TWIN)
    return [
        _at_most(
            f"pages a store in which nothing fills ({counts.calm_stores} stores)", counts.per_calm_store, CALM_PAGES
        ),
        _at_most(f"pages a filling ({counts.fillings} fillings)", counts.per_filling, FILLING_PAGES),
        _at_most("fillings unheard", counts.unheard, 0),
        _at_most("pages within ten minutes after another one of the store", counts.again, 0),
    ]


def not_later(scores: Sequence[CaseScore]) -> Target:
    """Return the target of the fillings that a fixed line foretold: none is paged later than by that line."""
    behind = [seconds for score in scores for seconds in score.behind]
    what = f"paged later than by {LINE}, of {as_count(len(behind), 'filling')} in which it is right"
    return _at_most(what, sum(seconds > _SAMPLE_S for seconds in behind), 0)


def _at_most(what: str, value: float | None, aim: float) -> Target:
    reached = f"{value}" if isinstance(value, int) else number(value)
    return Target(what, f"at most {aim}" if aim else "none", reached, value is None or value <= aim)


def _at_least(what: str, value: float | None, aim: float, words: str = "") -> Target:
    return Target(what, words or f"at least {percent(aim)}", percent(value), value is not None and value >= aim)


def _error(name: str, measures: Measures, minutes: int) -> Target:
    value, count = measures.errors.get(minutes, (float("inf"), 0))
    what = f"median error {minutes} min before, {name} ({count} fillings)"
    return Target(what, f"at most {100 * ERRORS[minutes]:.0f} %", error(measures, minutes), value <= ERRORS[minutes])


def _against(hard: dict[str, Measures]) -> list[Target]:
    """Compared with the baselines, on the hard classes."""
    twin = hard[TWIN]
    others = {name: measures for name, measures in hard.items() if name not in (TWIN, TWIN_WATCH)}
    best = max(others, key=lambda name: others[name].f1 or 0.0)
    gain = (twin.f1 or 0.0) - (others[best].f1 or 0.0)
    results = [
        Target(
            "F1 on the hard classes above every baseline's",
            f"by {BETTER}",
            f"{number(twin.f1)}; {best}: {number(others[best].f1)}",
            gain >= BETTER,
        )
    ]
    rivals = [name for name in others if name in FIXED or (others[name].precision or 0.0) >= (twin.precision or 0.0)]
    longest = max(rivals, key=lambda name: others[name].lead_p50 or 0.0)
    lead, ours = others[longest].lead_p50 or 0.0, hard[TWIN_WATCH].lead_p50
    results.append(
        Target(
            "median lead on the hard classes above that of static thresholds and of any equally precise baseline",
            "longer",
            f"{span(ours)}; {longest}: {span(lead)}",
            (ours or 0.0) > lead,
        )
    )
    return results
