"""Targets of the forecast, with measured values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.score.work import CaseScore, classes, measured, scenarios
from twin.scoring import TWIN, Measures
from twin.scoring.table import error, inside, number, percent, span

RECALL, PRECISION, CALM, LEAD, NAMED = 0.99, 0.95, 0.95, 0.90, 0.95
ERRORS = {60: 0.25, 30: 0.20, 15: 0.15, 5: 0.10}
COVERED = (0.75, 0.85)
REOPENED = 0.05
BETTER = 0.1  # of F1, than every baseline on the hard classes
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
    twin = by_class["all"][TWIN]
    results = [
        _at_least("recall of fillings that end in 2192", twin.recall, RECALL, "1.00, 0.99 at least"),
        _at_least("precision", twin.precision, PRECISION),
    ]
    for name in HARMLESS:
        if name in scenarios(scores):
            calm = measured(scenarios(scores)[name])[TWIN].calm
            results.append(_at_least(f"recordings of {name} without a false alarm", calm, CALM))
    results.append(_at_least("lead of 15 min, or of 80 % of a shorter filling", twin.enough_lead, LEAD))
    for name, measures in by_class.items():
        if name != "all":
            results += [_error(name, measures[TWIN], minutes) for minutes in ERRORS]
    covered = twin.interval.inside
    met = covered is not None and COVERED[0] <= covered <= COVERED[1]
    results += [
        Target("observed time within p10..p90", "75 to 85 %", inside(twin.interval), met),
        Target("reopened a filling", "at most 0.05", number(twin.reopened), (twin.reopened or 0.0) <= REOPENED),
        _at_least("filler named first is the one that fills", twin.named, NAMED),
    ]
    return results + (_against(by_class["hard"]) if "hard" in by_class else [])


def _at_least(what: str, value: float | None, aim: float, words: str = "") -> Target:
    return Target(what, words or f"at least {percent(aim)}", percent(value), value is not None and value >= aim)


def _error(name: str, measures: Measures, minutes: int) -> Target:
    value, count = measures.errors.get(minutes, (float("inf"), 0))
    what = f"median error {minutes} min before, {name} ({count} fillings)"
    return Target(what, f"at most {100 * ERRORS[minutes]:.0f} %", error(measures, minutes), value <= ERRORS[minutes])


def _against(hard: dict[str, Measures]) -> list[Target]:
    """Compared with the baselines, on the hard classes."""
    twin = hard[TWIN]
    others = {name: measures for name, measures in hard.items() if name != TWIN}
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
    lead = others[longest].lead_p50 or 0.0
    results.append(
        Target(
            "median lead on the hard classes above that of static thresholds and of any equally precise baseline",
            "longer",
            f"{span(twin.lead_p50)}; {longest}: {span(lead)}",
            (twin.lead_p50 or 0.0) > lead,
        )
    )
    return results
