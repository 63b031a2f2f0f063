"""Many cases scored at once, a process a core."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from tests.score.cases import Recorded, recorded
from twin.estate import load_estate
from twin.scoring import JudgedStore, Measures, PlayedRecording, ScoredRecording, measure, play, score
from twin.scoring.score import METHODS
from twin.simulation import SCENARIOS
from twin.simulation.cases import Split
from twin.warm import warm


@dataclass(frozen=True, slots=True)
class CaseScore:
    """One case. judged: by method; events: in its recording; seconds: of simulating, and of playing and judging."""

    case: Recorded
    judged: Mapping[str, Sequence[JudgedStore]]
    events: int
    seconds: tuple[float, float]

    @property
    def fillings(self) -> int:
        return sum(len(store.warned) for store in self.judged[METHODS[0]])


def score_case(number: int, split: Split, folder: Path) -> CaseScore:
    """Simulate a case unless it is there, play it, judge every method."""
    began = time.monotonic()
    case = recorded(number, split, folder)
    simulated = time.monotonic()
    played, scored = scored_case(case)
    return CaseScore(case, scored.judged, played.events, (simulated - began, time.monotonic() - simulated))


def scored_case(case: Recorded) -> tuple[PlayedRecording, ScoredRecording]:
    """All that was seen and said of a case."""
    played = play(case.recording, load_estate(case.estate))
    return played, score(played, withdrawing_counts=case.hard)


def score_all(
    numbers: Sequence[int], split: Split, folder: Path, processes: int, progress: Callable[[CaseScore], None]
) -> list[CaseScore]:
    """Those cases, in the order of their numbers. progress: told of each as it is done."""
    warm()  # compile, where it must be, once and not in every process
    if processes == 1:
        return list(_one_by_one(numbers, split, folder, progress))
    done: list[CaseScore] = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=warm) as pool:
        futures = [pool.submit(score_case, number, split, folder) for number in numbers]
        try:
            for future in as_completed(futures):
                done.append(future.result())
                progress(done[-1])
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return sorted(done, key=lambda score: score.case.number)


def _one_by_one(
    numbers: Sequence[int], split: Split, folder: Path, progress: Callable[[CaseScore], None]
) -> Iterator[CaseScore]:
    for number in numbers:
        score = score_case(number, split, folder)
        progress(score)
        yield score


def measured(scores: Sequence[CaseScore]) -> dict[str, Measures]:
    """The measures of every method over some cases."""
    return {method: measure([score.judged[method] for score in scores]) for method in METHODS}


def scenarios(scores: Sequence[CaseScore]) -> dict[str, list[CaseScore]]:
    """The cases by scenario, in the order in which they come first."""
    return {
        name: [score for score in scores if score.case.scenario == name]
        for name in dict.fromkeys(score.case.scenario for score in scores)
    }


def classes(scores: Sequence[CaseScore]) -> dict[str, list[CaseScore]]:
    """All cases, the steady ones, the hard ones, and those of scenarios that the tuning set does not have."""
    return {
        "all": list(scores),
        "steady": [score for score in scores if not score.case.hard],
        "hard": [score for score in scores if score.case.hard],
        "held out": [score for score in scores if SCENARIOS[score.case.scenario].held_out],
    }
