"""`python -m tests.score.counted`: what people get, counted on recordings of our own.

It plays the first cases of the test set (330: ten of each scenario), prints the table of pages of every method, the
count of the stories' own stores, and one line per finding: each page about a store in which nothing fills, each filling
with more than one page or without any, each `full` that opened again within ten minutes of its end.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from tests.score.__main__ import WHOLE, cores, show_progress
from tests.score.cases import Split
from tests.score.recordings import Recorded, recorded, recordings_folder
from tests.score.work import score_all, scored_case
from twin.alerts.episodes import Alert
from twin.conditions import CLEARED, OPENED, Condition
from twin.errors import MqtwinError
from twin.records import Change, Incidents, read_alert_record
from twin.scoring import PAGING_METHODS, TWIN, StorePages, count_pages
from twin.scoring.alarms import CALM_FOR
from twin.scoring.table import number, page_table

_PIPE_WIDTH = 200  # characters per line if standard output is not a terminal


@dataclass(frozen=True, slots=True)
class CountedCase:
    """What people get in one case.

    Attributes:
        case: the case.
        pages: by method, in the order of the stores.
        calls: (store, condition, text) of each page of the twin.
        full_again: number of `full` alerts that opened within ten minutes of the end of another one.
    """

    case: Recorded
    pages: Mapping[str, Sequence[StorePages]]
    calls: tuple[tuple[str, str, str], ...]
    full_again: int

    @property
    def findings(self) -> list[str]:
        """The stores that got too many pages or too few, one line each."""
        lines = []
        for store in self.pages[TWIN]:
            if store.unheard or store.pages > store.fillings:
                calls = "; ".join(text for name, _, text in self.calls if name == store.store)
                what = f"{store.fillings} fillings, {store.unheard} unheard, {store.pages} pages, {store.false} false"
                beside = "" if store.store == self.case.store else " (beside the story)"
                lines.append(f"{self.case.name} seed {self.case.number}, {store.store}{beside}: {what}: {calls}")
        return lines


def count_case(number: int, split: Split, folder: Path) -> CountedCase:
    """Simulate a case unless it is there, play it, count the pages of every method."""
    case = recorded(number, split, folder)
    played, scored = scored_case(case)
    return CountedCase(case, scored.pages, tuple(_calls(played.alerts)), full_again(played.alerts))


def _calls(alerts: Iterable[Alert]) -> Iterable[tuple[str, str, str]]:
    """Return (store, condition, text) of each page."""
    incidents = Incidents()
    for record in (read_alert_record(alert.record()) for alert in alerts):
        for incident, change, _ in incidents.take(record):
            if change is Change.PAGED:
                data = record.data
                usage = "" if data.usage_pct is None else f" {data.usage_pct:.1f} %"
                yield incident.store, data.condition, f"{data.time[11:19]} {data.condition} {data.resource}{usage}"


def full_again(alerts: Iterable[Alert]) -> int:
    """Return the number of `full` alerts that opened within ten minutes of the end of one of the same resource."""
    ended: dict[tuple[str, str], int] = {}
    count = 0
    for alert in alerts:
        place = alert.store, alert.resource
        if alert.condition == Condition.FULL and alert.change == CLEARED:
            ended[place] = alert.time
        elif alert.condition == Condition.FULL and alert.change == OPENED:
            count += place in ended and alert.time - ended[place] <= CALM_FOR
    return count


def show(console: Console, cases: Sequence[CountedCase]) -> None:
    """Print the table, the count of the stories' own stores, the findings and their conditions."""
    by_method = {
        method: count_pages([store for case in cases for store in case.pages[method]]) for method in PAGING_METHODS
    }
    console.print(page_table(by_method))
    own = count_pages([store for case in cases for store in case.pages[TWIN] if store.store == case.case.store])
    console.print(
        f"the twin, the stories' own stores: {own.calm_pages} pages about {own.calm_stores} in which nothing fills "
        f"({number(own.per_calm_store)} each), {number(own.per_filling)} a filling of {own.fillings}, "
        f"{own.unheard} unheard, {own.again} called again, {number(own.per_page)} messages a page; "
        f"{sum(case.full_again for case in cases)} full again",
        soft_wrap=True,
    )
    conditions = Counter(condition for case in cases for _, condition, _ in case.calls)
    console.print("what called: " + ", ".join(f"{count} {name}" for name, count in conditions.most_common()))
    for case in cases:
        for line in case.findings:
            console.print(line, soft_wrap=True, highlight=False)


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.score.counted", description=__doc__)
    parser.add_argument("--split", choices=("tuning", "test"), default="test", help="which set of seeds")
    parser.add_argument("--cases", type=int, default=WHOLE, help=f"how many; by default {WHOLE}")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--processes", type=int, default=cores(), help="by default one a core")
    arguments = parser.parse_args()
    console = Console()
    if not console.is_terminal:
        console = Console(width=_PIPE_WIDTH)
    numbers = list(range(arguments.first, arguments.first + arguments.cases))
    folder = recordings_folder(fresh=False)
    try:
        with show_progress(console, len(numbers)) as done:
            cases = score_all(count_case, numbers, arguments.split, folder, arguments.processes, done)
    except MqtwinError as error:
        print(f"mqtwin score: {error}", file=sys.stderr)
        return 1
    show(console, cases)
    return 0


if __name__ == "__main__":
    sys.exit(main())
