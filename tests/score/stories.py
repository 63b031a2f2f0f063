"""The pictures of the page: lead times, calibration, and one filling of several scenarios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.score.work import CaseScore, measured, scored_case
from twin.playback.pictures import save
from twin.scoring import METHODS, TWIN, WarnedFilling, pictures
from twin.scoring.table import span

MAX_STORIES = 6  # stories on the page


@dataclass(frozen=True, slots=True)
class Story:
    """file: file of its picture, in docs/images."""

    title: str
    text: str
    file: str


def draw(scores: Sequence[CaseScore], folder: Path) -> list[Story]:
    """Draws `foresight-*.svg` into a folder; the stories among them."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("foresight-*.svg"):
        old.unlink()
    by_method = measured(scores)
    leads = {method: [warned.lead for case in scores for warned in _warned(case, method)] for method in METHODS}
    save(pictures.leads(leads, by_method), folder / "foresight-leads.svg")
    save(pictures.calibration(by_method[TWIN]), folder / "foresight-calibration.svg")
    return [_draw(score, folder) for score in _chosen(scores)]


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
