"""Many cases scored at once, a process a core."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from kernels.clock import SECOND
from tests.tools.score.cases import Case, Split, draw_case
from tests.tools.score.judge import JudgedStore, StorePages, judge
from tests.tools.score.laws import CASES as LAW_CASES
from tests.tools.score.laws import LAWS, QUEUES, recorded_law
from tests.tools.score.loads import CASES as REAL_CASES
from tests.tools.score.loads import REAL, recorded_load
from tests.tools.score.measures import Measures, measure
from tests.tools.score.oracle import ORACLE, ORACLE_WATCH, foresee
from tests.tools.score.recordings import Recorded, recorded
from tests.tools.score.scenarios import HELD_OUT
from tests.tools.score.score import METHODS, RIVALS, TWIN_WATCH, ScoredRecording, score
from tests.tools.score.series import PlayedRecording, play
from tests.tools.score.skill import LineSkill, Value, skill_against, values_against
from tests.tools.score.warm import warmed
from twin.estate import load_estate
from twin.forecast import monitor
from twin.forecast.outlook import Outlook
from twin.playback.pages import EARLY, TWIN
from twin.reporting.tuning import RESAMPLES, Figure, Resamples
from twin.stores.warm_up import warm

LINE = "static 80 %"  # than which no page may be later, where it is right
WARM_CASES = 110  # of the first ones, the hard ones are played with a day of history, too


class OfCase(Protocol):
    """Result of one case."""

    @property
    def case(self) -> Recorded:
        """The case that was played."""


Result = TypeVar("Result", bound=OfCase)


@dataclass(frozen=True, slots=True)
class CaseScore:
    """One case.

    Attributes:
        judged: by method; of the oracle, too, where it has one.
        pages: by method.
        warm: by method of the twin, of stores that begin with a day of history; empty: not played so.
        behind: by how many seconds each filling was paged later than by LINE, where that was right; below 0: earlier.
        events: in its recording.
        seconds: seconds of simulating, and of playing and judging.
        looks: looks ahead, and the milliseconds of processor time that they took together.
    """

    case: Recorded
    judged: Mapping[str, Sequence[JudgedStore]]
    pages: Mapping[str, Sequence[StorePages]]
    warm: Mapping[str, Sequence[JudgedStore]]
    behind: Sequence[float]
    events: int
    seconds: tuple[float, float]
    looks: tuple[int, float]

    @property
    def fillings(self) -> int:
        """Number of fillings of its stores."""
        return sum(len(store.warned) for store in self.judged[METHODS[0]])


def score_case(number: int, split: Split, folder: Path) -> CaseScore:
    """Simulate a case unless it is there, play it, judge every method."""
    began = time.monotonic()
    case = recorded(number, split, folder)
    simulated = time.monotonic()
    with timed_looks() as looks:
        played, scored = scored_case(case)
    judged, warm_judged = dict(scored.judged), {}
    drawn = draw_case(number, split)
    judged |= _judged_oracle(case, drawn, played, scored)
    if case.hard and number < WARM_CASES:
        again = play(case.recording, warmed(drawn, case.stem))
        rescored = score(again, withdrawing_counts=True)
        warm_judged = {method: rescored.judged[method] for method in (TWIN, TWIN_WATCH)}
    seconds = (simulated - began, time.monotonic() - simulated)
    counted = len(looks), sum(looks)
    return CaseScore(case, judged, scored.pages, warm_judged, behind_line(scored), played.events, seconds, counted)


def score_load(number: int, split: Split, folder: Path, source: Path, record: RecordLoad) -> CaseScore:
    """Record a case of real loads unless it is there, play it, judge every method.

    Args:
        number: number of the case.
        split: its set.
        folder: folder of recordings.
        source: folder of the loads.
        record: what records a case of its class.
    """
    began = time.monotonic()
    case = record(number, split, folder, source)
    simulated = time.monotonic()
    with timed_looks() as looks:
        played, scored = scored_case(case)
    seconds = (simulated - began, time.monotonic() - simulated)
    counted = len(looks), sum(looks)
    return CaseScore(case, scored.judged, scored.pages, {}, behind_line(scored), played.events, seconds, counted)


@contextlib.contextmanager
def timed_looks() -> Iterator[list[float]]:
    """Measure each look ahead of the forecast: a list of milliseconds of processor time that grows with each."""
    spent: list[float] = []
    look = monitor.look

    def timed(*arguments: Any, **options: Any) -> Outlook | None:
        began = time.thread_time()
        outlook = look(*arguments, **options)
        spent.append(1000 * (time.thread_time() - began))
        return outlook

    monitor.look = timed
    try:
        yield spent
    finally:
        monitor.look = look


def behind_line(scored: ScoredRecording) -> list[float]:
    """Return by how many seconds each filling was paged later than by LINE, where LINE opened in it; inf: not paged."""
    behind = []
    for store, filled in scored.fillings.items():
        lines, pages = scored.outputs[LINE][store].alarms, scored.outputs[TWIN][store].pages
        for filling in filled:
            line = next((line for line in lines if line.is_open(filling.first)), None)
            if line is not None and line.opened >= filling.onset - EARLY:
                page = next((page for page in pages if page.is_open(filling.first)), None)
                behind.append(float("inf") if page is None else (page.opened - line.opened) / SECOND)
    return behind


def _judged_oracle(
    case: Recorded, drawn: Case, played: PlayedRecording, scored: ScoredRecording
) -> dict[str, list[JudgedStore]]:
    """Return the oracle's results by method; empty where it has none. Stores beside the story's have no alarms."""
    foreseen = foresee(drawn, played.series[case.store], scored.fillings[case.store])
    if foreseen is None:
        return {}
    return {
        method: [
            judge(
                series,
                scored.fillings[name],
                alarms if name == case.store else [],
                None,
                withdrawing_counts=case.class_ != "steady",
            )
            for name, series in played.series.items()
        ]
        for method, alarms in ((ORACLE, foreseen.pages), (ORACLE_WATCH, foreseen.watches))
    }


def scored_case(case: Recorded) -> tuple[PlayedRecording, ScoredRecording]:
    """All that was seen and said of a case."""
    played = play(case.recording, load_estate(case.estate))
    return played, score(played, withdrawing_counts=case.class_ != "steady")


def score_all(
    score_one: Callable[[int, Split, Path], Result],
    numbers: Sequence[int],
    split: Split,
    folder: Path,
    processes: int,
    progress: Callable[[Result], None],
) -> list[Result]:
    """Return the results of cases, in the order of their numbers.

    Args:
        score_one: what is done with each, such as `score_case`.
        numbers: the cases.
        split: their set.
        folder: folder of recordings.
        processes: number of processes.
        progress: called with each result.
    """
    warm()  # compile, where it must be, once and not in every process
    if processes == 1:
        return list(_one_by_one(score_one, numbers, split, folder, progress))
    done: list[Result] = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=warm) as pool:
        futures = [pool.submit(score_one, number, split, folder) for number in numbers]
        try:
            for future in as_completed(futures):
                done.append(future.result())
                progress(done[-1])
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return sorted(done, key=lambda score: score.case.number)


def cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def show_progress(console: Console, cases: int) -> Iterator[Callable[[OfCase], None]]:
    """How many are done: a bar on a terminal, a line every tenth of them elsewhere."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("cases", total=cases)
        began, finished = time.monotonic(), 0

        def done(score: OfCase) -> None:
            nonlocal finished
            finished += 1
            progress.update(task, advance=1, description=score.case.scenario)
            if not console.is_terminal and (finished == cases or finished % max(1, cases // 10) == 0):
                print(f"{time.monotonic() - began:5.0f} s  {finished} of {cases} cases", flush=True)

        yield done


def _one_by_one(
    score_one: Callable[[int, Split, Path], Result],
    numbers: Sequence[int],
    split: Split,
    folder: Path,
    progress: Callable[[Result], None],
) -> Iterator[Result]:
    for number in numbers:
        score = score_one(number, split, folder)
        progress(score)
        yield score


def measured(scores: Sequence[CaseScore]) -> dict[str, Measures]:
    """Return the measures of every method over some cases, with their intervals."""
    key = tuple(id(score) for score in scores)
    if key not in _measured:
        by_method = {method: measure([score.judged[method] for score in scores], RESAMPLES) for method in METHODS}
        _measured[key] = list(scores), by_method
    return _measured[key][1]


_measured: dict[tuple[int, ...], tuple[list[CaseScore], dict[str, Measures]]] = {}
"""By the cases, which live as long as their ids are here: the tables of a page ask for the same measures again."""


def line_skills(scores: Sequence[CaseScore]) -> tuple[LineSkill, ...]:
    """Return the skill of the twin's probabilities against those of the best rule, by horizon."""
    return skill_against([score.judged[TWIN] for score in scores], _rules(scores), RESAMPLES)


def values(scores: Sequence[CaseScore], horizon: int) -> tuple[Value, ...]:
    """Return the value of the twin's probabilities, and of the best rule, by C/L. horizon: index into HORIZONS."""
    return values_against([score.judged[TWIN] for score in scores], _rules(scores), horizon, RESAMPLES)


def _rules(scores: Sequence[CaseScore]) -> dict[str, list[list[JudgedStore]]]:
    """Return the judged stores of each case, by rule."""
    return {name: [[*score.judged[name]] for score in scores] for name in RIVALS}


def with_oracle(scores: Sequence[CaseScore]) -> tuple[list[CaseScore], dict[str, Measures]]:
    """Return the cases that have an oracle, and the measures of the twin and of the oracle over them."""
    some = [score for score in scores if ORACLE in score.judged]
    methods = (TWIN, TWIN_WATCH, ORACLE, ORACLE_WATCH)
    return some, {method: measure([score.judged[method] for score in some], RESAMPLES) for method in methods}


Leads = tuple[float, float]
"""Lead of the twin, 0 if it was silent, and of the oracle, seconds."""


def leads_beside_oracle(scores: Sequence[CaseScore], twin: str, oracle: str) -> list[list[Leads]]:
    """Return the leads of the fillings that the oracle foresaw, by case that has an oracle.

    Args:
        scores: the cases.
        twin, oracle: the methods that are compared.
    """
    return [
        [
            (ours.lead or 0.0, theirs.lead)
            for own, other in zip(score.judged[twin], score.judged[oracle], strict=True)
            for ours, theirs in zip(own.warned, other.warned, strict=True)
            if theirs.lead
        ]
        for score in scores
        if oracle in score.judged
    ]


def share_of_lead(scores: Sequence[CaseScore], twin: str = TWIN_WATCH, oracle: str = ORACLE_WATCH) -> Figure:
    """Return the median share that the twin's lead has of the oracle's."""
    leads = leads_beside_oracle(scores, twin, oracle)
    return Resamples(len(leads), RESAMPLES).quantile([[ours / theirs for ours, theirs in own] for own in leads], 0.5)


def cold_and_warm(scores: Sequence[CaseScore]) -> dict[str, dict[str, Measures]]:
    """Return the measures of the twin by method, cold and warm, over the cases that were played both ways."""
    some = [score for score in scores if score.warm]
    return {
        "cold": {method: measure([score.judged[method] for score in some]) for method in (TWIN, TWIN_WATCH)},
        "warm": {method: measure([score.warm[method] for score in some]) for method in (TWIN, TWIN_WATCH)},
    }


def scenarios(scores: Sequence[Result]) -> dict[str, list[Result]]:
    """The cases by scenario, in the order in which they come first."""
    return {
        name: [score for score in scores if score.case.scenario == name]
        for name in dict.fromkeys(score.case.scenario for score in scores)
    }


def classes(scores: Sequence[Result]) -> dict[str, list[Result]]:
    """All cases, the steady ones, the hard ones, and those of scenarios that the tuning set does not have."""
    return {
        "all": list(scores),
        "steady": [score for score in scores if score.case.class_ == "steady"],
        "hard": [score for score in scores if score.case.hard],
        "held out": [score for score in scores if score.case.scenario in HELD_OUT],
    }


RecordLoad = Callable[[int, Split, Path, Path], Recorded]
"""Of a number, a set, a folder of recordings and one of loads."""


@dataclass(frozen=True, slots=True)
class LoadSet:
    """Set of cases whose loads are real. record: what records one; cases: how many are scored."""

    class_: str
    split: Split
    record: RecordLoad
    cases: int

    @property
    def title(self) -> str:
        """Its name in tables, such as `real, tuning series`."""
        series = "tuning series" if self.split == "tuning" else "held-out series"
        return f"{self.class_}, {series}"


LOAD_SETS: Mapping[str, LoadSet] = {
    own.title: own
    for class_, record, cases in (
        (REAL, recorded_load, REAL_CASES),
        (QUEUES, functools.partial(recorded_law, QUEUES), LAW_CASES),
        (LAWS, functools.partial(recorded_law, LAWS), LAW_CASES),
    )
    for own in (LoadSet(class_, "tuning", record, cases), LoadSet(class_, "test", record, cases))
}
"""By title, such as "real, tuning series"."""

Loads = Mapping[str, Sequence[CaseScore]]
"""Cases whose loads are real, by title of their set."""


def sets_of(scores: Sequence[CaseScore], loads: Loads) -> dict[str, Sequence[CaseScore]]:
    """Return the classes and the sets of real loads by name."""
    return {**classes(scores), **loads}
