"""The pictures of the page: lead times, calibration, and one filling of several scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from tests.tools.score import pictures
from tests.tools.score.bootstrap import Figure as Skill
from tests.tools.score.cases import Split
from tests.tools.score.judge import WarnedFilling
from tests.tools.score.oracle import ORACLE, ORACLE_WATCH
from tests.tools.score.score import METHODS, TWIN_WATCH
from tests.tools.score.table import span
from tests.tools.score.work import (
    CaseScore,
    classes,
    leads_beside_oracle,
    line_skills,
    measured,
    scored_case,
    sets_of,
)
from twin.playback.pages import TWIN
from twin.playback.pictures import GREY, INK, OLIVE, STYLE, save

MAX_STORIES = 6  # stories on the page
_SHORTEST, _LONGEST = 0.5, 300.0  # minutes that are drawn of a lead
_TICKS = (0.5, 2, 5, 15, 30, 60, 120, 240)


@dataclass(frozen=True, slots=True)
class Story:
    """file: file of its picture, in docs/images."""

    title: str
    text: str
    file: str


def draw(scores: Sequence[CaseScore], loads: Mapping[Split, Sequence[CaseScore]], folder: Path) -> list[Story]:
    """Draws `foresight-*.svg` into a folder; the stories among them. loads: real ones, by set."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("foresight-*.svg"):
        old.unlink()
    by_method = measured(scores)
    leads = {method: [warned.lead for case in scores for warned in _warned(case, method)] for method in METHODS}
    save(pictures.leads(leads, by_method), folder / "foresight-leads.svg")
    save(pictures.calibration(by_method[TWIN]), folder / "foresight-calibration.svg")
    sets = {name: some for name, some in sets_of(scores, loads).items() if some and name != "all"}
    save(
        pictures.skills({name: _skills(some) for name, some in sets.items()}, _AGAINST), folder / "foresight-skill.svg"
    )
    if any(ORACLE in score.judged for score in scores):
        save(_beside_oracle(scores), folder / "foresight-oracle.svg")
    return [_draw(score, folder) for score in _chosen(scores)]


_AGAINST = ("against climatology", "against the best rule at each horizon")


def _skills(scores: Sequence[CaseScore]) -> list[list[Skill]]:
    """Return the skill at each horizon, against climatology and against the best rule."""
    own = [Skill(brier.skill, brier.bounds.get("skill")) for brier in measured(scores)[TWIN].brier]
    return [own, [line.skill for line in line_skills(scores)]]


def _beside_oracle(scores: Sequence[CaseScore]) -> Figure:
    """Draw the lead of every filling that the oracle foresaw, of the twin and of the oracle."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 3.8), layout="constrained")
        panels = figure.subplots(1, 2)
        for axes, what, twin, oracle in zip(
            panels, ("first of watch and page", "page"), (TWIN_WATCH, TWIN), (ORACLE_WATCH, ORACLE), strict=True
        ):
            axes.axline((1, 1), (60, 60), color=GREY, linewidth=0.8, label="as early as the oracle")
            axes.axline((1, 0.8), (60, 48), color=GREY, linewidth=0.8, linestyle=":", label="80 % of it")
            for name, colour in (("steady", OLIVE), ("hard", INK)):
                some = classes(scores)[name]
                pairs = [pair for own in leads_beside_oracle(some, twin, oracle) for pair in own]
                ours, theirs = np.array(pairs).reshape(-1, 2).T / 60
                axes.plot(np.maximum(theirs, _SHORTEST), np.maximum(ours, _SHORTEST), ".", color=colour, label=name)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlim(_SHORTEST * 0.8, _LONGEST)
            axes.set_ylim(_SHORTEST * 0.8, _LONGEST)
            for set_ticks in (axes.set_xticks, axes.set_yticks):
                set_ticks(_TICKS, [f"{minutes:g}" for minutes in _TICKS])
            axes.set_title(what, fontsize=9, loc="left")
            axes.set_xlabel("lead of the oracle, minutes")
        panels[0].set_ylabel(f"lead of the twin, minutes ({_SHORTEST:g}: none)")
        panels[0].legend(fontsize=8, loc="upper left")
    return figure


def _warned(case: CaseScore, method: str) -> list[WarnedFilling]:
    return [warned for store in case.judged[method] for warned in store.warned]


def _chosen(scores: Sequence[CaseScore]) -> list[CaseScore]:
    """The first case of each hard scenario, in the order of the numbers: one that filled if there is one."""
    hard = [score for score in scores if score.case.hard]
    names = list(dict.fromkeys(score.case.scenario for score in hard))
    chosen = []
    for name in names[:MAX_STORIES]:
        some = [score for score in hard if score.case.scenario == name]
        chosen.append(next((score for score in some if score.fillings), some[0]))
    return sorted(chosen, key=lambda score: score.case.number)


def _draw(score: CaseScore, folder: Path) -> Story:
    case = score.case
    played, scored = scored_case(case)
    outputs = {method: scored.outputs[method][case.store] for method in METHODS}
    title = f"{case.scenario}, case {case.number}"
    figure = pictures.story(played.series[case.store], scored.fillings[case.store], outputs, f"{case.store}: {title}")
    file = f"foresight-{case.scenario}.svg"
    save(figure, folder / file)
    leads = ", ".join(f"{method} {span(warned.lead)}" for method in METHODS for warned in _warned(score, method)[:1])
    text = f"{case.story} Lead before the first 2192: {leads}." if leads else f"{case.story} No put was refused."
    return Story(title, text, file)
