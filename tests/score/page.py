"""docs/foresight.md: tables, targets and pictures, all from the figures of one run."""

from __future__ import annotations

import datetime as dt
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.score.stories import Story
from tests.score.targets import targets
from tests.score.work import CaseScore, classes, measured, scenarios
from twin.scoring import METHODS, TWIN, TWIN_WATCH
from twin.scoring.table import ROWS, markdown, percent, rows

_BY_SCENARIO = ("recall", "precision", "recordings without a false alarm", "lead, p10", "lead, p50", "enough lead")
_LEGEND = """Lines: usage of each resource. Grey: a filling; red: puts are refused. Whiskers on the 100 % line: the
twin's forecast, from p10 to p90 with a dot at p50. Bars below: open alarms of each rule."""


@dataclass(frozen=True, slots=True)
class Run:
    """How the figures came about. split: whose seeds; seconds: it took."""

    command: str
    split: str
    seconds: float


def write(run: Run, scores: Sequence[CaseScore], stories: Sequence[Story], docs: Path) -> Path:
    """The page; its pictures are drawn by `tests.score.stories`. Returns where it is."""
    parts = [_head(run, scores), _targets(scores), _tables(scores), _scenarios(scores), _calibration(scores)]
    parts.append(_stories(stories))
    docs.mkdir(parents=True, exist_ok=True)
    path = docs / "foresight.md"
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path


def _head(run: Run, scores: Sequence[CaseScore]) -> str:
    events = sum(score.events for score in scores)
    hard = sum(score.case.hard for score in scores)
    fills = sum(score.fillings for score in scores)
    kinds = len(scenarios(scores))
    first, last = scores[0].case.number, scores[-1].case.number
    date = dt.datetime.now(dt.UTC).date().isoformat()
    machine = f"{os.cpu_count()} cores ({platform.machine()})"
    return f"""# Foresight

Written by `{run.command}` on {date}, in {run.seconds / 60:.1f} minutes on {machine}.
Do not edit it: run it again.

How early does an alert open, and is it right? {len(scores)} recordings of {kinds} scenarios were
simulated, {hard} of them of hard classes, on which a straight line fails: {events:,} events, {fills} fillings that
ended in 2192. The cases are numbers {first} to {last} of the {run.split} set; the forecast was tuned on the tuning set,
which shares no random number with it.

[Scorecard](scorecard.md) defines the terms, the other rules and the cases."""


def _targets(scores: Sequence[CaseScore]) -> str:
    rows_of_targets = targets(scores)
    lines = [
        [target.what, target.aim, target.measured, "yes" if target.met else "**no**"] for target in rows_of_targets
    ]
    return "## Targets\n\n" + markdown(["", "target", "measured", "met"], lines)


def _tables(scores: Sequence[CaseScore]) -> str:
    titles = {
        "all": "All recordings",
        "steady": "Steady classes",
        "hard": "Hard classes",
        "held out": "Scenarios that the tuning set does not have",
    }
    parts = ["## Compared with other rules"]
    for name, some in classes(scores).items():
        if some:
            by_method = measured(some)
            twin = by_method[TWIN]
            head = f"{twin.recordings} recordings, {twin.fillings} fillings, {twin.store_days:,.0f} store-days."
            parts += [f"### {titles[name]}", head, markdown(["", *METHODS], rows(by_method))]
    parts.append("![Share of fillings predicted, by minutes before the first 2192](images/foresight-leads.svg)")
    return "\n\n".join(parts)


def _scenarios(scores: Sequence[CaseScore]) -> str:
    lines = []
    for name, some in scenarios(scores).items():
        by_method = measured(some)
        best = _best_baseline(
            {method: measures.f1 for method, measures in by_method.items() if method not in (TWIN, TWIN_WATCH)}
        )
        twin = by_method[TWIN]
        watch = by_method[TWIN_WATCH]
        cells = [percent(watch.recall), percent(watch.enough_lead)]
        cells += [make(twin) for title, make in ROWS.items() if title in _BY_SCENARIO]
        lines.append([f"`{name}`", some[0].case.class_, str(len(some)), str(twin.fillings), *cells, best])
    head = [
        "the twin",
        "class",
        "recordings",
        "fillings",
        "watch: recall",
        "watch: enough lead",
        *_BY_SCENARIO,
        "best F1 of a baseline",
    ]
    return "## By scenario\n\n" + markdown(head, lines)


def _best_baseline(f1: Mapping[str, float | None]) -> str:
    known = {name: value for name, value in f1.items() if value is not None}
    if not known:
        return "-"
    name = max(known, key=lambda name: known[name])
    return f"{known[name]:.2f} ({name})"


def _calibration(scores: Sequence[CaseScore]) -> str:
    twin = measured(scores)[TWIN]
    lines = [[percent(each.predicted), f"{each.count:,}", percent(each.observed)] for each in twin.reliability]
    return f"""## Calibration

Left: for the predictions made every five minutes of the last hour of a filling, how often the 2192 occurred before p10,
p50 and p90. Right: for all predictions, every five minutes of every recording, how often a 2192 occurred within two
hours, by predicted probability.

![Calibration of the interval and of the probability](images/foresight-calibration.svg)

{markdown(["predicted probability, mean", "predictions", "2192 observed"], lines)}"""


def _stories(stories: Sequence[Story]) -> str:
    parts = ["## Examples", _LEGEND]
    for story in stories:
        parts += [f"### {story.title}", story.text, f"![{story.title}](images/{story.file})"]
    return "\n\n".join(parts)
