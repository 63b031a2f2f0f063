"""docs/foresight.md and its appendix: tables, targets and pictures, all from the figures of one run."""

from __future__ import annotations

import datetime as dt
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.tools.score import ablation, month, people, probabilities
from tests.tools.score.judge import Cause
from tests.tools.score.loads import SERIES
from tests.tools.score.oracle import ORACLE, ORACLE_WATCH
from tests.tools.score.score import METHODS, TWIN_WATCH
from tests.tools.score.table import NOTHING, ROWS, bounds_text, markdown, number, percent, percent_end, rows
from tests.tools.score.targets import Cell, sets_of_targets, targets
from tests.tools.score.work import (
    LOAD_SETS,
    CaseScore,
    Loads,
    classes,
    cold_and_warm,
    leads_beside_oracle,
    measured,
    scenarios,
    share_of_lead,
    with_oracle,
)
from twin.playback.pages import TWIN
from twin.reporting.tuning import LEAST_RECORDINGS, RESAMPLES

_BY_SCENARIO = ("recall", "precision", "recordings without a false alarm", "lead, p50", "enough lead")
_BY_SET = ("recall", "precision", "F1", "false alarms a store-day", "lead, p50", "enough lead", "error 30 min before")
_WEAK = ("static 80 %, structure", "static 85 %", "straight line, 6 h")  # rules, left out of tables of sets
_REAL_TEXT = """What is put are counts that a real system produced, series of the Numenta Anomaly Benchmark
([how](measuring.md#real-loads)). The forecast was tuned on the tuning series and never on the held-out series."""
ABLATED, ABLATED_REAL = "simulated loads", "real loads"
APPENDIX = "tests/tools/score/appendix.md"  # beside docs/: figures for who works on the forecast, no page of the site


@dataclass(frozen=True, slots=True)
class Run:
    """Origin of the figures. split: set of seeds; seconds: duration; ablations: Markdown tables by what was played."""

    command: str
    split: str
    seconds: float
    ablations: Mapping[str, str]


def write(
    run: Run,
    scores: Sequence[CaseScore],
    docs: Path,
    loads: Loads,
) -> Path:
    """Write the page and its appendix; return the path of the page. `tests.tools.score.pictures` draws its pictures.

    The section about an ordinary month, which another command writes, stays.
    """
    docs.mkdir(parents=True, exist_ok=True)
    path = docs / "foresight.md"
    page = [_head(run, scores), people.section(scores, loads, run.command)]
    page += [probabilities.value(scores, loads), _targets(scores, loads)]
    page += [people.part_between(path, month.BEGIN, month.END), _foot(run)]
    appendix = [
        _APPENDIX_HEAD,
        _compared(scores),
        _real(loads),
        _oracle(scores),
        _cold_and_warm(scores),
        _causes(scores),
        probabilities.by_horizon(scores, loads),
        probabilities.calibration(scores),
        *_tables(scores),
        _scenarios(scores),
        _ablation(run, docs.parent / APPENDIX),
        _foot(run),
    ]
    path.write_text(_joined(page), encoding="utf-8")
    links = re.sub(r"\]\((?=[a-z/-]+\.(md|svg))", "](../../../docs/", _joined(appendix))
    (docs.parent / APPENDIX).parent.mkdir(parents=True, exist_ok=True)
    (docs.parent / APPENDIX).write_text(links, encoding="utf-8")
    return path


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(filter(None, parts)) + "\n"


_APPENDIX_HEAD = """# Foresight: appendix

The figures behind [Foresight](foresight.md). Terms are defined in [Measuring](measuring.md)."""


def _head(run: Run, scores: Sequence[CaseScore]) -> str:
    events = sum(score.events for score in scores)
    hard = sum(score.case.hard for score in scores)
    fills = sum(score.fillings for score in scores)
    kinds = len(scenarios(scores))
    first, last = scores[0].case.number, scores[-1].case.number
    return f"""# Foresight

How early does an alert open, and is it right? {len(scores)} recordings of {kinds} scenarios were
simulated, {hard} of them of hard classes, on which a straight line fails: {events:,} events, {fills} fillings that
ended in 2192. The cases are numbers {first} to {last} of the {run.split} set; the forecast was tuned on the tuning set,
which shares no random number with it.

[Measuring](measuring.md) defines the terms, the other rules and the cases. `{APPENDIX}` has all other
figures: all rules, real loads, an oracle, probabilities, classes and scenarios.

In brackets: the interval that contains a figure with 95 % confidence, from {RESAMPLES:,} draws of as many recordings
([bootstrap](measuring.md#intervals-of-figures)); fewer than {LEAST_RECORDINGS} recordings have none."""


def _foot(run: Run) -> str:
    machine = f"{os.cpu_count()} cores ({platform.machine()})"
    minutes = f"{run.seconds / 60:.1f} minutes"
    return f"Written by `{run.command}` on {_today()}, in {minutes} on {machine}. Do not edit it: run it again."


def _today() -> str:
    return dt.datetime.now(dt.UTC).date().isoformat()


def _targets(scores: Sequence[CaseScore], loads: Loads) -> str:
    """Return the targets, a column for each set that counts."""
    rows, sets = targets(scores, loads), list(sets_of_targets(scores, loads))
    lines = []
    for target in rows:
        cells = [target.cells[name] if name in target.cells else Cell(NOTHING, None) for name in sets]
        texts = [f"**{cell.measured}**" if cell.met is False else cell.measured for cell in cells]
        lines.append([target.what, target.aim, *texts])
    known = [cell.met for target in rows for cell in target.cells.values() if cell.met is not None]
    reached = sum(target.outcome == "reached" for target in rows)
    return f"""## Targets

Every set reaches {reached} of {len(rows)} targets; of their {len(known)} figures {sum(known)} are as they should be. In
bold: missed. In the sets "real", "queues" and "laws" what is put are
[counts that real systems produced](measuring.md#real-loads), of series that the forecast was not tuned on.

{markdown(["", "target", *sets], lines)}"""


def _compared(scores: Sequence[CaseScore]) -> str:
    """Return all rules over all recordings: what people get, and how well they forecast."""
    return f"""## Compared with other rules

What people get:

{people.of_all_rules(scores)}

Only alarms of `full-forecast` and `full` count here. {_counts(scores)}

{markdown(["", *METHODS], rows(measured(scores)))}"""


def _counts(scores: Sequence[CaseScore]) -> str:
    twin = measured(scores)[TWIN]
    return f"{twin.recordings} recordings, {twin.fillings} fillings, {twin.store_days:,.0f} store-days."


def _tables(scores: Sequence[CaseScore]) -> list[str]:
    """Return for each class but "all" a table of all rules."""
    parts = []
    for name, some in classes(scores).items():
        if some and name != "all":
            parts += [f"## {people.TITLES[name]}", _counts(some), _of_set(some)]
    return parts


def _of_set(scores: Sequence[CaseScore]) -> str:
    """Return a table of the rules that do best over some of the recordings, with the measures that say most."""
    by_method = {name: own for name, own in measured(scores).items() if name not in _WEAK}
    return markdown(["", *by_method], [row for row in rows(by_method) if row[0] in _BY_SET])


def _real(loads: Loads) -> str:
    """Return the results on loads of real systems, by set; "" where there are none."""
    parts = []
    for title, some in loads.items():
        series = ", ".join(SERIES[LOAD_SETS[title].split])
        parts += [f"### {title.capitalize()}", f"{series}. {_counts(some)}", _of_set(some)]
    if not parts:
        return ""
    return "\n\n".join(["## Loads of real systems", _REAL_TEXT, *parts])


def _scenarios(scores: Sequence[CaseScore]) -> str:
    """Return the twin's figures by scenario, beside those of the oracle where it can play recordings of it."""
    lines = []
    for name, some in scenarios(scores).items():
        by_method = measured(some)
        best = _best_baseline(
            {method: measures.f1 for method, measures in by_method.items() if method not in (TWIN, TWIN_WATCH)}
        )
        twin = by_method[TWIN]
        watch = by_method[TWIN_WATCH]
        cells = [percent(watch.enough_lead)]
        cells += [make(twin) for title, make in ROWS.items() if title in _BY_SCENARIO]
        cases, beside = with_oracle(some)
        cells += [percent(share) for share in (beside[ORACLE].recall, beside[ORACLE].precision)] if cases else ["", ""]
        lines.append([f"`{name}`", some[0].case.class_, str(len(some)), str(twin.fillings), *cells, best])
    head = [
        "the twin",
        "class",
        "recordings",
        "fillings",
        "watch: enough lead",
        *_BY_SCENARIO,
        "oracle: recall",
        "precision",
        "best F1 of a baseline",
    ]
    return "## By scenario\n\n" + markdown(head, lines)


def _best_baseline(f1: Mapping[str, float | None]) -> str:
    known = {name: value for name, value in f1.items() if value is not None}
    if not known:
        return "-"
    name = max(known, key=lambda name: known[name])
    return f"{known[name]:.2f} ({name})"


def _oracle(scores: Sequence[CaseScore]) -> str:
    cases, by_method = with_oracle(scores)
    if not cases:
        return ""
    page, oracle = by_method[TWIN], by_method[ORACLE]
    watch, oracle_watch = by_method[TWIN_WATCH], by_method[ORACLE_WATCH]
    lines = [
        [
            title,
            *map(percent, (page.recall, page.precision)),
            number(page.f1),
            *map(percent, (w.precision, w.enough_lead)),
        ]
        for title, p, w in (("twin", page, watch), ("oracle", oracle, oracle_watch))
    ]
    head = ["", "page: recall", "precision", "F1", "watch: precision", "watch: enough lead"]
    return f"""## Against an oracle

How good could a forecast be? The oracle knows a recording's scenario, its parameters and what the store holds, but no
random number of the future, and not which rise, stop or night is the dangerous one. It simulates the scenario again
many times, follows the simulations that resemble the store most, and alerts by the twin's rule, every 30 s; it looks as
far ahead as the twin. So it knows from the first minute what the twin has to learn. It exists for the scenarios whose
danger is a backlog: {len(cases)} recordings with {page.fillings} fillings. Real loads have none: nobody knows the law
of their future.

{markdown(head, lines)}

How much of the lead that could be had does the twin have? Each filling that the oracle foresaw: the twin's lead as a
share of the oracle's, 0 where the twin was silent, and the median of these.

{markdown(["", "fillings", "first of watch and page", "page"], _shares_of_lead(scores))}

![Lead of the twin beside that of the oracle, of each filling](images/foresight-oracle.svg)"""


def _shares_of_lead(scores: Sequence[CaseScore]) -> list[list[str]]:
    lines = []
    for name, some in classes(scores).items():
        first, page = share_of_lead(some), share_of_lead(some, TWIN, ORACLE)
        count = sum(map(len, leads_beside_oracle(some, TWIN_WATCH, ORACLE_WATCH)))
        if count:
            cells = [percent(own.value) + bounds_text(own.bounds, percent_end) for own in (first, page)]
            lines.append([people.TITLES[name], f"{count}", *cells])
    return lines


def _cold_and_warm(scores: Sequence[CaseScore]) -> str:
    played = [score for score in scores if score.warm]
    lines = []
    for title, by_method in cold_and_warm(scores).items() if played else ():
        page, watch = by_method[TWIN], by_method[TWIN_WATCH]
        cells = [percent(watch.recall), percent(watch.enough_lead), percent(page.recall), percent(page.precision)]
        lines.append([title, *cells, number(page.f1), ROWS["alarms per 100 store-days"](page), percent(page.calm)])
    head = ["", "watch: recall", "watch: enough lead", "page: recall", "precision", "F1", "pages per 100 store-days"]
    return f"""## Cold and warm

{len(played)} recordings of hard classes played twice: by stores that know nothing, and by stores that begin with what
`mqtwin warm` learned from a recording of the day before, of the same story without its danger.

{markdown([*head, "recordings without a false page"], lines)}"""


def _causes(scores: Sequence[CaseScore]) -> str:
    by_class = {name: measured(some)[TWIN].causes for name, some in classes(scores).items() if some}
    cases, by_method = with_oracle(scores)
    if cases:
        by_class["the oracle's recordings"] = by_method[TWIN].causes
        by_class["the oracle"] = by_method[ORACLE].causes
    lines = [[cause, *(str(causes.get(cause, 0)) for causes in by_class.values())] for cause in Cause]
    return f"""## False pages by cause

{markdown(["", *by_class], lines)}"""


_ABLATED, _ABLATED_TO = "<!-- parts: begin -->", "<!-- parts: end -->"


def _ablation(run: Run, appendix: Path) -> str:
    """Return what each part of the model brings; where a run did not measure it, as an earlier one did."""
    if not run.ablations:
        return people.part_between(appendix, _ABLATED, _ABLATED_TO)
    parts = [
        f"""{_ABLATED}
## What each part brings

Played with one part of the model switched off at a time: the first {ablation.CASES} recordings of the tuning set of
each of {len(ablation.TURNING)} scenarios whose rises turn back, and the first {ablation.REAL_CASES} real loads of the
tuning series."""
    ]
    for name, text in run.ablations.items():
        parts += [f"### {name.capitalize()}", text]
    return "\n\n".join([*parts, f"Measured on {_today()}.", _ABLATED_TO])
