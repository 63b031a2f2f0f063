"""`python -m tests.score.ablation`: what each part of the forecast brings, by taking it away.

The first cases of the tuning set of those scenarios whose rises often turn back are played with one part of the model
switched off at a time: on the others most parts have nothing to do. `make score` writes the table into
docs/foresight.md.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from kernels.layout import Store
from kernels.meter_rows import RISE
from tests.score.cases import scenario_of
from tests.score.recordings import recorded, recordings_folder
from tests.score.work import scored_case
from twin.forecast import flows, laws, outlook, rises, rule
from twin.scoring import TWIN, TWIN_WATCH, JudgedStore, measure
from twin.scoring.table import markdown, number, percent, span
from twin.stores.warm_up import warm

TURNING = (
    "sawtooth",
    "drifting-sawtooth",
    "climbs-that-turn",
    "nightly-batch",
    "burst",
    "shifting-bursts",
    "levels-off-high",
)
CASES = 2  # of the tuning set, of each of these scenarios, for each part


def _whole() -> None:
    """Take nothing away."""


def _regimes_span_emptyings() -> None:
    flows._turned = lambda *_: 0  # type: ignore[assignment]


def _no_past_rises() -> None:
    past_of = rises.past_of

    def none_of(store: Store, rise: rises.Rise, *tide: int) -> rises.Past:
        past = past_of(store, rise, *tide)
        return replace(past, rows=past.rows[:0], alike=past.alike[:, :0])

    outlook.past_of = none_of  # type: ignore[attr-defined]


def _laws_are_not_scored() -> None:
    laws.foretold = lambda packed: np.zeros((*laws._PRIOR.shape, len(packed) // RISE.itemsize))  # type: ignore[assignment]


def _no_causes() -> None:
    laws._CAUSE_BANDWIDTH = 1e9


def _no_hours() -> None:
    laws._PRIOR[2], laws._PRIOR[:, 3] = -np.inf, -np.inf


def _ends_after_a_time_only() -> None:
    laws._PRIOR[:, 1:] = -np.inf


def _service_is_constant() -> None:
    flows._service = lambda *_: 0.0  # type: ignore[assignment]


def _no_youth_of_faster_rises() -> None:
    rises._lasted_at = lambda rise, *_: rise.age  # type: ignore[assignment]


def _pages_at_the_probability_alone() -> None:
    rule.is_worth_a_page = lambda danger, _: danger.probability >= rule.PAGE_PROBABILITY  # type: ignore[assignment]


def _as_sure_where_rises_turned() -> None:
    rule.SURE_PROBABILITY = rule.PAGE_PROBABILITY


def _as_likely_however_near() -> None:
    rule._NEAR_RATIO = 1.0


def _no_watches() -> None:
    rule.is_worth_a_page = lambda *_, **__: True  # type: ignore[assignment]


PARTS: dict[str, Callable[[], None]] = {
    "the whole model": _whole,
    "without: no regime spans an emptying": _regimes_span_emptyings,
    "without past rises": _no_past_rises,
    "without scores of the laws": _laws_are_not_scored,
    "without causes of rises": _no_causes,
    "without the hour of the day": _no_hours,
    "rises end after a time only": _ends_after_a_time_only,
    "without service that follows the backlog": _service_is_constant,
    "without the youth of faster rises": _no_youth_of_faster_rises,
    "without: surer where like rises turned back": _as_sure_where_rises_turned,
    "watches no sooner where little time is left": _as_likely_however_near,
    "pages at a probability alone": _pages_at_the_probability_alone,
    "every watch is a page": _no_watches,
}


def _start(part: str) -> None:
    PARTS[part]()
    warm()


def _play(number_and_folder: tuple[int, str]) -> dict[str, list[JudgedStore]]:
    number_of_case, folder = number_and_folder
    _, scored = scored_case(recorded(number_of_case, "tuning", Path(folder)))
    return {method: list(scored.judged[method]) for method in (TWIN, TWIN_WATCH)}


def _numbers_of(scenario: str, cases: int) -> list[int]:
    numbers = (number for number in itertools.count() if scenario_of(number, "tuning").name == scenario)
    return list(itertools.islice(numbers, cases))


def ablate(cases: int, folder: Path, processes: int) -> str:
    """Play the first cases of each scenario of `TURNING` once for each part, and return the table in Markdown.

    Args:
        cases: how many of each.
        folder: where recordings are kept.
        processes: at once.
    """
    numbers = (_numbers_of(name, cases) for name in TURNING)
    todo = [(number_of_case, str(folder)) for of_one in numbers for number_of_case in of_one]
    lines = []
    context = multiprocessing.get_context("spawn")
    for part in PARTS:
        with ProcessPoolExecutor(processes, mp_context=context, initializer=_start, initargs=(part,)) as pool:
            judged = list(pool.map(_play, todo))
        page, watch = (measure([stores[method] for stores in judged]) for method in (TWIN, TWIN_WATCH))
        cells = [percent(page.precision), percent(page.recall), number(page.f1), span(page.lead_p50)]
        lines.append([part, *cells, percent(watch.precision), percent(watch.recall), percent(watch.enough_lead)])
    head = ["", "page: precision", "recall", "F1", "lead, p50", "watch: precision", "recall", "enough lead"]
    return markdown(head, lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.score.ablation", description=__doc__)
    parser.add_argument("--cases", type=int, default=CASES, help=f"of each scenario; by default {CASES}")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    print(ablate(arguments.cases, recordings_folder(fresh=False), arguments.processes))


if __name__ == "__main__":
    main()
