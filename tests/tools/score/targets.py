"""Targets of the forecast, with measured values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tests.tools.score.measures import Measures, PageCounts
from tests.tools.score.oracle import ORACLE
from tests.tools.score.people import counted
from tests.tools.score.score import TWIN_WATCH
from tests.tools.score.table import bounds_text, error, inside, number, number_of, percent, percent_end, share_of, span
from tests.tools.score.work import (
    LINE,
    LOAD_SETS,
    CaseScore,
    Loads,
    cold_and_warm,
    measured,
    scenarios,
    sets_of,
    share_of_lead,
    with_oracle,
)
from twin.playback.pages import TWIN
from twin.units import as_count

RECALL, CALM, LEAD, NAMED = 1.0, 0.98, 0.95, 0.95
REAL = tuple(LOAD_SETS)
WIDE = ("all", *REAL)  # sets that cover everything
PRECISION_AND_F1 = {"steady": 0.95, "hard": 0.92, "held out": 0.90, **dict.fromkeys(REAL, 0.90)}
WATCH_PRECISION, FALSE_WATCHES = 0.65, 0.3  # false ones a store-day
_SIMULATED_ERRORS = {60: 0.25, 30: 0.20, 15: 0.10, 5: 0.10}  # by minutes before
_REAL_ERRORS = {15: 0.15}
ERRORS = {"steady": _SIMULATED_ERRORS, "hard": _SIMULATED_ERRORS, **dict.fromkeys(REAL, _REAL_ERRORS)}  # by set
COVERED = (0.75, 0.85)
SHARE_OF_LEAD = 0.8  # of the oracle's
SKILL, SKILL_AT = 0.5, 3600  # of the Brier score against climatology, within seconds
LOOK_MS = 0.5
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
    """A target. met: None: nothing to measure; group: the set of recordings; "" where it is of no single one."""

    what: str
    aim: str
    measured: str
    met: bool | None
    group: str = ""

    @property
    def title(self) -> str:
        """The measure and its set."""
        return f"{self.what}, {self.group}" if self.group else self.what

    @property
    def outcome(self) -> str:
        """Reached or missed; empty where there is nothing to measure."""
        return "" if self.met is None else "reached" if self.met else "missed"


Sets = Mapping[str, Mapping[str, Measures]]
"""Measures by set of recordings, then by method."""


def targets(scores: Sequence[CaseScore], loads: Loads) -> list[Target]:
    """Return those of what was scored; a class, set or scenario without cases has none."""
    by_set = {name: some for name, some in sets_of(scores, loads).items() if some}
    sets = {name: measured(some) for name, some in by_set.items()}
    wide = {name: own for name, own in sets.items() if name in WIDE}
    return [
        *_of_people(scores, loads),
        *(not_later(by_set[name], name) for name in wide),
        *_of_alarms(wide, sets),
        *_of_scenarios(scores),
        *_of_leads(by_set, wide),
        *_of_times(sets),
        *(_at_most_of("reopened a filling", own[TWIN_WATCH], "reopened", REOPENED, name) for name, own in wide.items()),
        *_of_probabilities(sets),
        *_of_looks([score for some in (scores, *loads.values()) for score in some]),
        _at_least("filler named first is the one that fills", sets["all"][TWIN], "named", NAMED),
        *(_against(sets["hard"]) if "hard" in sets else []),
    ]


def _of_alarms(wide: Sets, sets: Sets) -> Iterator[Target]:
    for name, own in wide.items():
        watch = own[TWIN_WATCH]
        yield _at_least("recall of watch or page", watch, "recall", RECALL, name)
        yield _at_least("precision of watches", watch, "precision", WATCH_PRECISION, name)
        yield _at_most_of("false watches a store-day", watch, "false_per_day", FALSE_WATCHES, name)
    for what, field in (("precision", "precision"), ("F1", "f1")):
        for name, aim in PRECISION_AND_F1.items():
            if name in sets:
                yield _at_least(f"{what} of page", sets[name][TWIN], field, aim, name)


def _of_scenarios(scores: Sequence[CaseScore]) -> Iterator[Target]:
    if any(score.warm for score in scores):
        warm = cold_and_warm(scores)["warm"][TWIN]
        yield _at_least("precision of page, hard, warm", warm, "precision", WARM_PRECISION)
    cases, by_method = with_oracle(scores)
    if cases:
        ours, oracles = by_method[TWIN].f1 or 0.0, by_method[ORACLE].f1 or 0.0
        what = f"F1 of page where there is an oracle ({len(cases)} recordings)"
        reached = f"{number(ours)}; oracle: {number(oracles)}"
        yield Target(what, f"within {NEAR_ORACLE} of it", reached, ours >= oracles - NEAR_ORACLE)
    for name in HARMLESS:
        if name in scenarios(scores):
            calm = measured(scenarios(scores)[name])[TWIN]
            yield _at_least(f"recordings of {name} without a false page", calm, "calm", CALM)


def _of_leads(by_set: Mapping[str, Sequence[CaseScore]], wide: Sets) -> Iterator[Target]:
    for name, some in by_set.items():
        share = share_of_lead(some)
        if share.value is not None:
            text = percent(share.value) + bounds_text(share.bounds, percent_end)
            what = "lead of the first of both beside the oracle's, median"
            yield Target(what, f"at least {percent(SHARE_OF_LEAD)}", text, share.value >= SHARE_OF_LEAD, name)
    for name, own in wide.items():
        what = "lead of the first of both: 15 min, or 80 % of a shorter filling"
        yield _at_least(what, own[TWIN_WATCH], "enough_lead", LEAD, name)


def _of_times(sets: Sets) -> Iterator[Target]:
    for name, own in sets.items():
        for minutes, aim in ERRORS.get(name, {}).items():
            yield _error(name, own[TWIN], minutes, aim)
    for name, own in sets.items():
        covered = own[TWIN].interval.inside
        if name != "all" and covered is not None:
            met = COVERED[0] <= covered <= COVERED[1]
            yield Target("observed time within p10..p90", "75 to 85 %", inside(own[TWIN]), met, name)


def _of_probabilities(sets: Sets) -> Iterator[Target]:
    for name, own in sets.items():
        for brier in own[TWIN].brier:
            if name != "all" and brier.horizon_s == SKILL_AT and brier.skill is not None:
                text = number(brier.skill) + bounds_text(brier.bounds.get("skill"), number)
                what = "skill of the probability within 60 min against climatology"
                yield Target(what, f"at least {SKILL}", text, brier.skill >= SKILL, name)


def _of_looks(scores: Sequence[CaseScore]) -> Iterator[Target]:
    count, spent = sum(score.looks[0] for score in scores), sum(score.looks[1] for score in scores)
    if count:
        what = f"processor time of a look ahead, mean of {as_count(count, 'look')}"
        yield Target(what, f"at most {LOOK_MS} ms", f"{spent / count:.2f} ms", spent / count <= LOOK_MS)


def _of_people(scores: Sequence[CaseScore], loads: Loads) -> list[Target]:
    """Return the targets of what people get about the stores of the stories."""
    counts = counted(scores, TWIN)
    return [
        *(_calm(name, counted(some, TWIN)) for name, some in {"all": scores, **loads}.items()),
        _at_most(f"pages a filling ({counts.fillings} fillings)", counts.per_filling, FILLING_PAGES),
        _at_most("fillings unheard", counts.unheard, 0),
        _at_most("pages within ten minutes after another one of the store", counts.again, 0),
    ]


def _calm(name: str, counts: PageCounts) -> Target:
    return _at_most("pages a store in which nothing fills", counts.per_calm_store, CALM_PAGES, name)


def not_later(scores: Sequence[CaseScore], name: str) -> Target:
    """Return the target of the fillings in which a fixed line is right: none is paged later than by that line.

    Args:
        scores: the cases.
        name: their set.
    """
    behind = [seconds for score in scores for seconds in score.behind]
    target = _at_most(f"paged later than by {LINE}", sum(seconds > _SAMPLE_S for seconds in behind), 0, name)
    return replace(target, measured=f"{target.measured} of {len(behind)}")


def _at_most(what: str, value: float | None, aim: float, group: str = "") -> Target:
    reached = f"{value}" if isinstance(value, int) else number(value)
    return Target(what, f"at most {aim}" if aim else "none", reached, None if value is None else value <= aim, group)


def _at_least(what: str, measures: Measures, field: str, aim: float, group: str = "") -> Target:
    """Return the target of a measure that is a share of 1."""
    value = getattr(measures, field)
    met = None if value is None else value >= aim
    return Target(what, f"at least {percent(aim)}", share_of(field)(measures), met, group)


def _at_most_of(what: str, measures: Measures, field: str, aim: float, group: str = "") -> Target:
    """Return the target of a measure that is a number."""
    value = getattr(measures, field)
    return Target(what, f"at most {aim}", number_of(field)(measures), None if value is None else value <= aim, group)


def _error(name: str, measures: Measures, minutes: int, aim: float) -> Target:
    value, _ = measures.errors.get(minutes, (None, 0))
    met = None if value is None else value <= aim
    return Target(
        f"median error {minutes} min before", f"at most {100 * aim:.0f} %", error(measures, minutes), met, name
    )


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
