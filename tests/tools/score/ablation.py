"""`python -m tests.tools.score.ablation`: what each part of the forecast brings, by taking it away.

The first cases of the tuning set of those scenarios whose rises often turn back are played with one part of the model
switched off at a time: on the others most parts have nothing to do. With real loads, so are the first of their tuning
set. `make score` writes the tables into tests/tools/score/appendix.md.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from kernels.layout import Store
from tests.tools.score.cases import scenario_of
from tests.tools.score.judge import JudgedStore
from tests.tools.score.loads import STORIES, recorded_load
from tests.tools.score.measures import measure
from tests.tools.score.recordings import Recorded, recorded, recordings_folder
from tests.tools.score.score import TWIN_WATCH
from tests.tools.score.table import markdown, number, percent, span
from tests.tools.score.work import cores, scored_case
from twin.forecast import flows, monitor, outlook, rises, rule
from twin.playback.pages import TWIN
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
REAL_CASES = len(STORIES)  # of the tuning set of real loads: of each reader


def _whole() -> None:
    """Take nothing away."""


def _regimes_span_emptyings() -> None:
    flows._turned = lambda *_: 0


def _no_past_rises() -> None:
    past_of = rises.past_of

    def none_of(store: Store, rise: rises.Rise, *tide: int) -> rises.Past:
        past = past_of(store, rise, *tide)
        return replace(past, rows=past.rows[:0], alike=past.alike[:, :0])

    outlook.past_of = none_of  # type: ignore[assignment, attr-defined]


def _no_causes() -> None:
    rises._CAUSE_BANDWIDTH = 1e9


def _no_paces() -> None:
    rises._ANY_PACE = 1.0


def _no_chance_beyond() -> None:
    vars(outlook)["chance_beyond_past"] = lambda *_: 0.0


def _no_stops() -> None:
    vars(monitor)["note_stops"] = lambda *_: ()


def _no_drift_of_puts() -> None:
    vars(monitor)["wandering"] = lambda _: None


def _no_rates_by_the_hour() -> None:
    vars(monitor)["trust_rates"] = lambda _: None


def _regimes_last() -> None:
    present = flows.present

    def lasting(*arguments: Any, **options: Any) -> flows.Regime | None:
        now = present(*arguments, **options)
        return None if now is None else replace(now, lasts=np.inf, whole=None)

    vars(flows)["present"] = lasting


def _service_is_constant() -> None:
    flows._service = lambda *_: 0.0


def _no_youth_of_faster_rises() -> None:
    rises._lasted_at = lambda rise, *_: rise.age


def _pages_at_the_probability_alone() -> None:
    vars(rule)["is_worth_a_page"] = lambda danger, *_: danger.probability >= rule.PAGE_PROBABILITY


def _not_asked_at_the_threshold() -> None:
    rises.past_threshold = lambda *_: ()


def _as_sure_where_rises_turned() -> None:
    vars(rule)["_NEEDED"] = {**rule._NEEDED, rule.Situation.TURNED: rule.PAGE_PROBABILITY}


def _as_sure_however_it_is_read() -> None:
    others = dict.fromkeys((rule.Situation.CLEAR, rule.Situation.KEEPING_UP), rule.PAGE_PROBABILITY)
    vars(rule)["_NEEDED"] = {**rule._NEEDED, **others}


def _as_likely_however_near() -> None:
    rule._NEAR_RATIO = 1.0


def _no_watches() -> None:
    rule.is_worth_a_page = lambda *_, **__: True


PARTS: dict[str, Callable[[], None]] = {
    "the whole model": _whole,
    "without: no regime spans an emptying": _regimes_span_emptyings,
    "without: regimes that do not last": _regimes_last,
    "without service that follows the backlog": _service_is_constant,
    "without getters that stop": _no_stops,
    "without the drift of puts": _no_drift_of_puts,
    "without rates by the hour": _no_rates_by_the_hour,
    "without past rises": _no_past_rises,
    "without causes of rises": _no_causes,
    "without paces of rises": _no_paces,
    "without the youth of faster rises": _no_youth_of_faster_rises,
    "without the chance beyond all rises": _no_chance_beyond,
    "without the question at the threshold": _not_asked_at_the_threshold,
    "without: surer where like rises turned back": _as_sure_where_rises_turned,
    "without: how the filling queue is read": _as_sure_however_it_is_read,
    "watches no sooner where little time is left": _as_likely_however_near,
    "pages at a probability alone": _pages_at_the_probability_alone,
    "every watch is a page": _no_watches,
}


@contextlib.contextmanager
def switched_off(part: str) -> Iterator[None]:
    """Play without a part of the model."""
    modules = (flows, monitor, outlook, rises, rule)
    before = [(vars(module), dict(vars(module))) for module in modules]
    arrays = [(value, value.copy()) for _, names in before for value in names.values() if isinstance(value, np.ndarray)]
    PARTS[part]()
    try:
        yield
    finally:
        for module, names in before:
            module.update(names)
        for value, copy in arrays:
            value[...] = copy


def _play(part: str, case: Recorded) -> dict[str, list[JudgedStore]]:
    with switched_off(part):
        _, scored = scored_case(case)
    return {method: list(scored.judged[method]) for method in (TWIN, TWIN_WATCH)}


def _numbers_of(scenario: str, cases: int) -> list[int]:
    numbers = (number for number in itertools.count() if scenario_of(number, "tuning").name == scenario)
    return list(itertools.islice(numbers, cases))


def ablate(cases: Sequence[Recorded], processes: int) -> str:
    """Play some cases once for each part, and return the table in Markdown.

    Args:
        cases: the cases.
        processes: at once.
    """
    lines = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=warm) as pool:
        played = {part: [pool.submit(_play, part, case) for case in cases] for part in PARTS}
        for part, results in played.items():
            judged = [result.result() for result in results]
            page, watch = (measure([stores[method] for stores in judged]) for method in (TWIN, TWIN_WATCH))
            cells = [percent(page.precision), percent(page.recall), number(page.f1), span(page.lead_p50)]
            cells += [percent(watch.precision), percent(watch.recall), percent(watch.enough_lead)]
            lines.append([part, *cells, number(page.crps_skill)])
    head = ["", "page: precision", "recall", "F1", "lead, p50", "watch: precision", "recall", "enough lead"]
    return markdown([*head, "skill of the CRPS"], lines)


def turning(folder: Path, cases: int = CASES) -> list[Recorded]:
    """Return the first cases of each scenario of `TURNING`. folder: where recordings are kept."""
    numbers = (number for name in TURNING for number in _numbers_of(name, cases))
    return [recorded(number, "tuning", folder) for number in numbers]


def real(folder: Path, source: Path) -> list[Recorded]:
    """Return the first cases of real loads of the tuning set.

    Args:
        folder: where recordings are kept.
        source: folder of the loads.
    """
    return [recorded_load(number, "tuning", folder, source) for number in range(REAL_CASES)]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.score.ablation", description=__doc__)
    parser.add_argument("--cases", type=int, default=CASES, help=f"of each scenario; by default {CASES}")
    parser.add_argument("--loads", type=Path, help="folder of real counts, whose cases are played as well")
    parser.add_argument("--processes", type=int, default=cores())
    arguments = parser.parse_args()
    folder = recordings_folder(fresh=False)
    print(ablate(turning(folder, arguments.cases), arguments.processes))
    if arguments.loads is not None:
        print(ablate(real(folder, arguments.loads), arguments.processes))


if __name__ == "__main__":
    main()
