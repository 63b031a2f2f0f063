"""`python -m tests.score.ablation`: what each part of the forecast brings, by taking it away.

Cases of the tuning set are played with one part of the model switched off at a time. The table goes to standard output
in Markdown, for docs/foresight.md's companion table in docs/forecast.md.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.score.cases import recorded
from tests.score.work import scored_case
from twin.forecast import flows, outlook, rises, rule
from twin.scoring import TWIN, TWIN_WATCH, JudgedStore, measure
from twin.scoring.table import markdown, number, percent
from twin.warm import warm

ROOT = Path(__file__).resolve().parents[2]


def _whole() -> None:
    """Take nothing away."""


def _regimes_span_emptyings() -> None:
    flows._turned = lambda *_: 0  # type: ignore[assignment]


def _no_past_rises() -> None:
    past_of = rises.past_of
    outlook.past_of = lambda store, rise: replace(  # type: ignore[attr-defined]
        past_of(store, rise), weights=np.zeros_like(past_of(store, rise).weights)
    )


def _no_causes() -> None:
    rises._CAUSE_BANDWIDTH = 1e9


def _ends_after_a_time_only() -> None:
    goes_on = rises.goes_on

    def by_time(rise: rises.Rise, past: rises.Past, *rest: object) -> object:
        same = np.full_like(past.tops, 1e9)
        return goes_on(rise, replace(past, tops=same, climbs=same), *rest)  # type: ignore[arg-type]

    outlook.goes_on = by_time  # type: ignore[attr-defined, assignment]


def _service_is_constant() -> None:
    flows._service = lambda *_: 0.0  # type: ignore[assignment]


def _no_youth_of_faster_rises() -> None:
    rises._lasted_at = lambda rise, *_: rise.age  # type: ignore[assignment]


def _pages_at_the_probability_alone() -> None:
    rule.is_worth_a_page = lambda probability, *_, **__: probability >= rule.PAGE_PROBABILITY  # type: ignore[assignment]


def _as_sure_where_rises_turned() -> None:
    rule.SURE_PROBABILITY = rule.PAGE_PROBABILITY


def _no_watches() -> None:
    rule.is_worth_a_page = lambda *_, **__: True  # type: ignore[assignment]


PARTS: dict[str, Callable[[], None]] = {
    "the whole model": _whole,
    "without: no regime spans an emptying": _regimes_span_emptyings,
    "without past rises": _no_past_rises,
    "without causes of rises": _no_causes,
    "rises end after a time only": _ends_after_a_time_only,
    "without service that follows the backlog": _service_is_constant,
    "without the youth of faster rises": _no_youth_of_faster_rises,
    "without: surer where like rises turned back": _as_sure_where_rises_turned,
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


def main() -> None:
    """Play the cases once for each part and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.score.ablation", description=__doc__)
    parser.add_argument("--cases", type=int, default=90, help="how many; by default 90")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    folder = ROOT / "build" / "score" / "ablation"
    folder.mkdir(parents=True, exist_ok=True)
    todo = [(number_of_case, str(folder)) for number_of_case in range(arguments.cases)]
    lines = []
    context = multiprocessing.get_context("spawn")
    for part in PARTS:
        with ProcessPoolExecutor(arguments.processes, mp_context=context, initializer=_start, initargs=(part,)) as pool:
            judged = list(pool.map(_play, todo))
        page, watch = (measure([stores[method] for stores in judged]) for method in (TWIN, TWIN_WATCH))
        cells = [percent(page.precision), percent(page.recall), number(page.f1)]
        cells += [percent(watch.precision), percent(watch.recall), percent(watch.enough_lead)]
        lines.append([part, *cells])
        print(" | ".join(lines[-1]), flush=True)
    head = ["", "page: precision", "recall", "F1", "watch: precision", "recall", "enough lead"]
    print("\n" + markdown(head, lines))


if __name__ == "__main__":
    main()
