"""`python -m tests.tools.score.people`: what people get, counted on recordings of our own.

It plays the first cases of the test set (330: ten of each scenario), prints the table of pages of every method and
one line per finding: each store with more pages than fillings, or with a filling that nobody heard of. `--write`
writes the tables of docs/foresight.md and README.md; so does `make score`, which takes four times as long.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rich.console import Console

from tests.tools.score.cases import Split
from tests.tools.score.judge import StorePages
from tests.tools.score.measures import PageCounts, count_pages
from tests.tools.score.recordings import Recorded, recorded, recordings_folder
from tests.tools.score.scenarios import HELD_OUT
from tests.tools.score.score import PAGING_METHODS
from tests.tools.score.table import PAGE_ROWS, markdown, page_rows, page_table, percent
from tests.tools.score.work import LOAD_SETS, OfCase, classes, cores, score_all, scored_case, show_progress
from twin.alerts.episodes import Alert
from twin.base.conditions import CLEARED, OPENED, Condition
from twin.base.errors import MqtwinError
from twin.base.units import as_count
from twin.playback.pages import CALM_FOR, TWIN
from twin.records import Change, Incidents, read_alert_record
from twin.reporting.tuning import RESAMPLES

ROOT = Path(__file__).resolve().parents[3]
WHOLE = 330  # cases of the test set in a whole run
BEGIN, END = "<!-- pages: begin -->", "<!-- pages: end -->"
TITLES = {
    "all": "All recordings",
    "steady": "Steady classes",
    "hard": "Hard classes",
    "held out": "Scenarios that the tuning set does not have",
}
_README_METHODS = {  # heading in README.md by method
    TWIN: "mqtwin",
    "static 80 %": "fixed line at 80 %",
    "straight line, 6 min": "straight line",
}
_README_ROWS = (
    "share that was right",
    "pages a filling",
    "pages a store in which nothing fills",
    "fillings unheard",
    "lead of a page, p50",
)
PIPE_WIDTH = 200  # characters per line if standard output is not a terminal


class OfPages(OfCase, Protocol):
    """Result of one case with its pages by method, in the order of the stores."""

    @property
    def pages(self) -> Mapping[str, Sequence[StorePages]]:
        """The pages of each store, by method."""


def counted(cases: Sequence[OfPages], method: str) -> PageCounts:
    """Return what people get of a method about the stores of the stories."""
    stores = [[store for store in case.pages[method] if store.store == case.case.store] for case in cases]
    return count_pages(stores, RESAMPLES)


def counted_beside(cases: Sequence[OfPages], method: str) -> PageCounts:
    """Return what people get of a method about the other stores, which hardly have traffic."""
    return count_pages([[store for store in case.pages[method] if store.store != case.case.store] for case in cases])


def by_method(cases: Sequence[OfPages]) -> dict[str, PageCounts]:
    """Return what people get of every method that pages, about the stores of the stories."""
    return {method: counted(cases, method) for method in PAGING_METHODS}


def section(cases: Sequence[OfPages], loads: Mapping[str, Sequence[OfPages]], command: str) -> str:
    """Return the section of docs/foresight.md: what people get of every method, of the twin by class, and by loads.

    Args:
        cases: the cases.
        loads: cases whose loads are real, by title of their set.
        command: the command that counted them.
    """
    unseen = classes(cases)["held out"]
    by_class = {TITLES[name].lower(): some for name, some in classes(cases).items() if some and name != "held out"}
    by_set = {name: counted(some, TWIN) for name, some in {**by_class, **loads}.items()}
    beside = counted_beside(cases, TWIN)
    others = f"{as_count(beside.stores, 'store')} with little traffic and {as_count(beside.fillings, 'filling')}"
    return f"""{BEGIN}
## What people get

A page is an incident that called somebody, whatever its conditions; the pages of every rule are grouped alike
([definitions](report.md#pages-and-fillings)). First the {len(HELD_OUT)} scenarios that tuning never saw:
{_size(unseen)}.

{of_all_rules(unseen)}

All scenarios: {_size(cases)}. Beside them the recordings have {others}; about these the twin sent
{as_count(beside.pages, "page")}.

{markdown(["the twin", *by_set], page_rows(by_set))}

Counted by `{command}` on {dt.datetime.now(dt.UTC).date().isoformat()}.
{END}"""


def _size(cases: Sequence[OfPages]) -> str:
    own = counted(cases, TWIN)
    days = f"{own.store_days:,.0f} store-days"
    return f"{as_count(len(cases), 'recording')}, {as_count(own.fillings, 'filling')}, {days}"


def of_all_rules(cases: Sequence[OfPages]) -> str:
    """Return what people get of every method as a table in Markdown."""
    return markdown(["", *PAGING_METHODS], page_rows(by_method(cases)))


def readme_table(cases: Sequence[OfPages]) -> str:
    """Return the table of README.md in Markdown."""
    columns = by_method(cases)
    lines = [[name, *(PAGE_ROWS[name](columns[method]) for method in _README_METHODS)] for name in _README_ROWS]
    held_out = by_method(classes(cases)["held out"])
    cells = [percent(held_out[method].precision) for method in _README_METHODS]
    lines.insert(1, ["the same, in scenarios that the tuning set does not have", *cells])
    return markdown(["what people get", *_README_METHODS.values()], lines)


def write_readme(cases: Sequence[OfPages], path: Path) -> None:
    """Write the table of README.md between its marks."""
    write_between(path, f"{BEGIN}\n{readme_table(cases)}\n{END}")


def part_between(path: Path, begin: str, end: str) -> str:
    """Return what a file has between two marks, with them; "" without file or marks."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    _, first, rest = text.partition(begin)
    own, last, _ = rest.partition(end)
    return first + own + last if last else ""


def write_between(path: Path, text: str, begin: str = BEGIN, end: str = END) -> None:
    """Replace what a file has between two marks, and the marks, by a text. Raise MqtwinError without both."""
    before, first, rest = path.read_text(encoding="utf-8").partition(begin)
    _, last, after = rest.partition(end)
    if not first or not last:
        raise MqtwinError(f"{path.name} has no {begin} and {end}; expected: both, around the tables")
    path.write_text(before + text + after, encoding="utf-8")


@dataclass(frozen=True, slots=True)
class CountedCase:
    """Pages of one case.

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
    return _count(recorded(number, split, folder))


def _count(case: Recorded) -> CountedCase:
    played, scored = scored_case(case)
    return CountedCase(case, scored.pages, tuple(calls_of(played.alerts)), full_again(played.alerts))


def calls_of(alerts: Iterable[Alert]) -> Iterable[tuple[str, str, str]]:
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
            count += place in ended and alert.time - ended[place] < CALM_FOR
    return count


def show(console: Console, cases: Sequence[CountedCase]) -> None:
    """Print the table, the count of the stories' own stores, the findings and their conditions."""
    console.print(page_table(by_method(cases)))
    twin, beside = counted(cases, TWIN), counted_beside(cases, TWIN)
    console.print(
        f"the twin: {as_count(twin.calm_pages, 'page')} about {as_count(twin.calm_stores, 'store')} in which nothing "
        f"fills; {as_count(sum(case.full_again for case in cases), 'alert')} full again; beside the stories "
        f"{as_count(beside.pages, 'page')} about {as_count(beside.stores, 'store')}",
        soft_wrap=True,
    )
    conditions = Counter(condition for case in cases for _, condition, _ in case.calls)
    console.print("what called: " + ", ".join(f"{count} {name}" for name, count in conditions.most_common()))
    for case in cases:
        for line in case.findings:
            console.print(line, soft_wrap=True, highlight=False)


def _show_loads(console: Console, source: Path | None, split: Split, folder: Path) -> dict[str, list[CountedCase]]:
    """Return the counted cases of real loads of a split by title, and print them; say why if there are none."""
    if source is None or not source.is_dir():
        console.print(f"real loads: skipped, {'no --loads' if source is None else f'{source} is no folder'}")
        return {}
    loads = {}
    for title, own in LOAD_SETS.items():
        if own.split != split:
            continue
        cases = [_count(own.record(number, own.split, folder, source)) for number in range(own.cases)]
        console.print(f"{title}: {as_count(len(cases), 'recording')}")
        show(console, cases)
        loads[title] = cases
    return loads


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.score.people", description=__doc__)
    parser.add_argument("--split", choices=("tuning", "test"), default="test", help="which set of seeds")
    parser.add_argument("--cases", type=int, default=WHOLE, help=f"how many; by default {WHOLE}")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--processes", type=int, default=cores(), help="by default one a core")
    parser.add_argument("--loads", type=Path, help="folder of real counts, whose cases are counted as well")
    parser.add_argument("--write", action="store_true", help="write the tables of docs/foresight.md and README.md")
    arguments = parser.parse_args()
    console = Console()
    if not console.is_terminal:
        console = Console(width=PIPE_WIDTH)
    numbers = list(range(arguments.first, arguments.first + arguments.cases))
    folder = recordings_folder(fresh=False)
    try:
        with show_progress(console, len(numbers)) as done:
            cases = score_all(count_case, numbers, arguments.split, folder, arguments.processes, done)
    except MqtwinError as error:
        print(f"mqtwin score: {error}", file=sys.stderr)
        return 1
    show(console, cases)
    loads = _show_loads(console, arguments.loads, arguments.split, folder)
    if arguments.write:
        text = section(cases, loads, "python -m tests.tools.score.people --write")
        write_between(ROOT / "docs" / "foresight.md", text)
        write_readme(cases, ROOT / "README.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
