"""`python -m tests.tools.score.facts`: what the facts of who reads bring, with and without them on the same events.

Plays each case of `tests.tools.score.readers` four times: the store known by events, or by levels every 30 seconds,
without and with the facts. Prints the tables; `--write` writes them into its page, with the picture.
"""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tests.tools.score.cases import Split
from tests.tools.score.judge import StorePages, judge_pages
from tests.tools.score.loads import recorded_load
from tests.tools.score.measures import PageCounts, count_pages
from tests.tools.score.people import PIPE_WIDTH, calls_of, write_between
from tests.tools.score.pictures import Line, draw_shares
from tests.tools.score.readers import MEASURED, NAMES, STORIES, WITHOUT_EVENT, recorded_reader, write_known
from tests.tools.score.recordings import Recorded, recordings_folder
from tests.tools.score.series import PlayedRecording, play
from tests.tools.score.table import PAGE_ROWS, bounds_text, markdown, number, percent, percent_end, span
from tests.tools.score.truth import Filling, fillings
from tests.tools.score.work import cores, scenarios, score_all, show_progress
from twin.base.conditions import OPENED
from twin.base.errors import MqtwinError
from twin.base.units import as_count
from twin.estate import load_estate
from twin.playback.pages import EARLY, HYSTERESIS, Alarm, from_incidents, lead_of, static
from twin.playback.pictures import GREY, INK, PLUM, save
from twin.records import read_alert_record
from twin.reporting.tuning import RESAMPLES, Figure, Resamples

SEEDS, CALM_SEEDS = 12, 7  # of each story, of each of WITHOUT_EVENT
LINE_PCT = 80.0
PICTURE = "scorecard-facts.svg"
WANTED_LEAD = 1_800.0  # seconds: no page need be earlier
SHORT = 0.8  # of a filling that takes less
_SAMPLE_S = 30.0  # between two samples
_SAME_S = 60.0  # by which two leads may differ that are the same: looks ahead are moved a little by measurements
UNREAD = "queue-unread"  # condition
BEGIN, END = "<!-- facts: begin -->", "<!-- facts: end -->"
FACTS = ", facts"
HORIZON_S = np.array([7_200.0])  # of a probability
REAL_CASES = 6  # of the tuning set of real loads: one of each reader

WAYS = {
    "events": (False, False),
    f"events{FACTS}": (False, True),
    "levels": (True, False),
    f"levels{FACTS}": (True, True),
}
"""How a store is known: by levels only, with the facts."""


@dataclass(frozen=True, slots=True)
class KnownStore:
    """Results of the store of a case as it was known in one way.

    Attributes:
        pages: pages.
        watches: incidents from their opening, whether they call or not.
        at_line: probability of 2192 within two hours each time the store passed LINE_PCT.
        unread: number of `queue-unread` alerts that opened.
        conditions: condition that called, a page.
        open_at_end: number of pages that were open at the end of the recording.
    """

    pages: StorePages
    watches: StorePages
    at_line: tuple[float, ...]
    unread: int
    conditions: tuple[str, ...]
    open_at_end: int


@dataclass(frozen=True, slots=True)
class FactsCase:
    """One case, known in every way.

    Attributes:
        case: the case.
        known: by way.
        lines: lead of a fixed line, seconds, by filling; None: it was not right.
        lasted: seconds of each filling.
        filled: by crossing of LINE_PCT, whether the store filled then.
        seconds: time of simulating and playing.
    """

    case: Recorded
    known: Mapping[str, KnownStore]
    lines: tuple[float | None, ...]
    lasted: tuple[float, ...]
    filled: tuple[bool, ...]
    seconds: float

    @property
    def due_leads(self) -> list[float]:
        """Lead that a page should have, by filling: half an hour, that of the line if less, or most of a short one."""
        pairs = zip(self.lines, self.lasted, strict=True)
        return [min(WANTED_LEAD, SHORT * lasted, WANTED_LEAD if line is None else line) for line, lasted in pairs]


def facts_case(number: int, split: Split, folder: Path, source: Path | None = None) -> FactsCase:
    """Record a case unless it is there, play it in every way, judge. source: folder of loads, for a case of these."""
    began = time.monotonic()
    if source is None:
        case = recorded_reader(number, split, folder)
    else:
        case = recorded_load(number, split, folder, source, measuring=MEASURED)
    estate = load_estate(case.estate)
    played: dict[str, PlayedRecording] = {}
    with tempfile.TemporaryDirectory(dir=folder) as place:
        for way, (by_levels, facts) in WAYS.items():
            known = Path(place) / "known.arrow"
            write_known(case.recording, known, by_levels=by_levels, facts=facts)
            played[way] = play(known, estate)
    truth = played["events"].series[case.store]
    filled = fillings(truth)
    lines = static(truth, LINE_PCT, hysteresis=HYSTERESIS)
    return FactsCase(
        case,
        {way: _judge(own, played["events"], filled, lines, case.store) for way, own in played.items()},
        tuple(_line_lead(filling, lines) for filling in filled),
        tuple(filling.seconds for filling in filled),
        tuple(any(own.onset - EARLY <= line.opened <= own.first for own in filled) for line in lines),
        time.monotonic() - began,
    )


def _judge(
    played: PlayedRecording, truth: PlayedRecording, filled: Sequence[Filling], lines: Sequence[Alarm], store: str
) -> KnownStore:
    series = truth.series[store]
    records = [read_alert_record(alert.record()) for alert in played.alerts]
    pages, watches = (from_incidents(records, store, watches=both) for both in (False, True))
    chances = played.predictions[store].chances_at(np.array([line.opened for line in lines], np.int64), HORIZON_S)
    opened = [alert for alert in played.alerts if alert.store == store and alert.change == OPENED]
    return KnownStore(
        judge_pages(series, filled, pages, withdrawing_counts=True),
        judge_pages(series, filled, watches, withdrawing_counts=True),
        tuple(chances[:, 0].tolist()),
        sum(alert.condition == UNREAD for alert in opened),
        tuple(condition for name, condition, _ in calls_of(played.alerts) if name == store),
        sum(page.cleared is None for page in pages),
    )


def _line_lead(filling: Filling, lines: Sequence[Alarm]) -> float | None:
    line = next((line for line in lines if line.is_open(filling.first)), None)
    return lead_of(filling, lines) if line is not None and line.opened >= filling.onset - EARLY else None


# --- figures ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """Figures of some cases as they were known in one way. None: nothing to divide by.

    Attributes:
        pages: counts of pages; watches: of incidents from their opening.
        fillings: number of them.
        in_time: share of the fillings with a page as early as wanted, or earlier; first_in_time: with a watch or page.
        first_lead: median lead of the first of both, seconds.
        lines: number of fillings in which the fixed line is right.
        later: those of them paged later than the line, or than half an hour ahead if that is later.
        at_line: median probability at the line, where the store filled; harmless: where it did not.
        watches_per_day, unread_per_day: number a store and day, of the stores in which nothing fills.
        earlier, worse: fillings paged earlier, and paged later or not at all, compared with the same way without facts.
        open_at_end: pages about stores in which nothing fills that are open at the end of the recording.
    """

    pages: PageCounts
    fillings: int
    in_time: Figure
    first_in_time: Figure
    first_lead: float | None
    lines: int
    later: int
    at_line: float | None
    harmless: float | None
    watches_per_day: float | None
    unread_per_day: float | None
    earlier: int
    worse: int
    open_at_end: int


def brought(cases: Sequence[FactsCase], way: str) -> Brought:
    """Return the figures of some cases."""
    known = [case.known[way] for case in cases]
    without = [case.known[way.removesuffix(FACTS)] for case in cases]
    count = [len(case.lasted) for case in cases]
    drawn = Resamples(len(cases), RESAMPLES)
    earlier = worse = later = 0
    for case, own, other in zip(cases, known, without, strict=True):
        leads = [_or_none(lead) for lead in own.pages.leads]
        pairs = zip(leads, case.lines, strict=True)
        later += sum(line is not None and lead < min(line, WANTED_LEAD) - _SAMPLE_S for lead, line in pairs)
        for lead, before in zip(leads, map(_or_none, other.pages.leads), strict=True):
            earlier += lead > before + _SAME_S
            worse += lead < before - _SAME_S
    at_line = [
        (chance, full)
        for case, own in zip(cases, known, strict=True)
        for chance, full in zip(own.at_line, case.filled, strict=True)
    ]
    calm = [own for own in known if not own.pages.fillings]
    days = sum(own.pages.days for own in calm)
    return Brought(
        pages=count_pages([[own.pages] for own in known], RESAMPLES),
        fillings=sum(count),
        in_time=drawn.ratio([_in_time(case, case.known[way].pages) for case in cases], count),
        first_in_time=drawn.ratio([_in_time(case, case.known[way].watches) for case in cases], count),
        first_lead=_median([lead for own in known for lead in own.watches.leads if lead is not None]),
        lines=sum(line is not None for case in cases for line in case.lines),
        later=later,
        at_line=_median([chance for chance, full in at_line if full]),
        harmless=_median([chance for chance, full in at_line if not full]),
        watches_per_day=sum(own.watches.pages for own in calm) / days if days else None,
        unread_per_day=sum(own.unread for own in calm) / days if days else None,
        earlier=earlier,
        worse=worse,
        open_at_end=sum(own.open_at_end for own in calm),
    )


def _in_time(case: FactsCase, calls: StorePages) -> int:
    """Return the number of fillings that were called as early as wanted."""
    leads = map(_or_none, calls.leads)
    return sum(lead >= want - _SAMPLE_S for lead, want in zip(leads, case.due_leads, strict=True))


def _or_none(lead: float | None) -> float:
    """Return a lead, below any other where there was no page."""
    return -1.0e9 if lead is None else lead


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None


# --- tables ----------------------------------------------------------------------------------------------------------


def _share(figure: Figure) -> str:
    return percent(figure.value) + bounds_text(figure.bounds, percent_end)


ROWS: Mapping[str, Callable[[Brought], str]] = {
    "fillings paged in time": lambda own: _share(own.in_time),
    "with a watch or page in time": lambda own: _share(own.first_in_time),
    "lead of the first of both, p50": lambda own: span(own.first_lead),
    "lead of a page, p50": lambda own: PAGE_ROWS["lead of a page, p50"](own.pages),
    "paged later than a right line": lambda own: f"{own.later} of {own.lines}",
    "paged earlier than without the facts": lambda own: f"{own.earlier}",
    "paged later than without the facts": lambda own: f"{own.worse}",
    "share of pages that was right": lambda own: PAGE_ROWS["share that was right"](own.pages),
    "pages a filling": lambda own: PAGE_ROWS["pages a filling"](own.pages),
    "pages a store in which nothing fills": lambda own: PAGE_ROWS["pages a store in which nothing fills"](own.pages),
    "of these open at the end": lambda own: f"{own.open_at_end}",
    "P at 80 %, where it filled, p50": lambda own: number(own.at_line),
    "P at 80 %, where it did not, p50": lambda own: number(own.harmless),
    "watches a calm store and day": lambda own: number(own.watches_per_day),
    "`queue-unread` a calm store and day": lambda own: number(own.unread_per_day),
}


def summary(cases: Sequence[FactsCase]) -> list[list[str]]:
    """Return a row a figure: its name, then a cell a way."""
    by_way = {way: brought(cases, way) for way in WAYS}
    return [[name, *(make(own) for own in by_way.values())] for name, make in ROWS.items()]


def by_story(cases: Sequence[FactsCase]) -> list[list[str]]:
    """Return a row a story in which something fills: by way the share in time, the median lead, and the false pages."""
    rows = []
    for name, some in scenarios(cases).items():
        by_way = [brought(some, way) for way in WAYS]
        if by_way[0].fillings:
            cells = [f"{percent(own.in_time.value)}, {span(own.pages.lead_p50)}, {own.pages.false}" for own in by_way]
            rows.append([name, str(by_way[0].fillings), *cells])
    return rows


def by_calm_story(cases: Sequence[FactsCase]) -> list[list[str]]:
    """Return a row a story in which nothing fills: by way the pages, watches and `queue-unread` alerts."""
    rows = []
    for name, some in scenarios(cases).items():
        calm = [case for case in some if not case.lasted]
        if calm:
            cells = []
            for way in WAYS:
                own = [case.known[way] for case in calm]
                watches, pages = (sum(known.pages for known in kind) for kind in _both(own))
                cells.append(f"{pages}, {watches}, {sum(known.unread for known in own)}")
            days = sum(case.known["events"].pages.days for case in calm)
            rows.append([name, str(len(calm)), f"{days:.1f}", *cells])
    return rows


def _both(own: Sequence[KnownStore]) -> tuple[list[StorePages], list[StorePages]]:
    return [known.watches for known in own], [known.pages for known in own]


# --- the page --------------------------------------------------------------------------------------------------------


def section(cases: Sequence[FactsCase], command: str) -> str:
    """Return the text of the page. command: what counted them."""
    filling = by_story(cases)
    stories = [f"| `{row[0]}` | {STORIES[row[0]][2]} |" for row in filling if row[0] in STORIES]
    real = sum(case.case.scenario not in STORIES for case in cases)
    of_real = f" and {as_count(real, 'real load')}" if real else ""
    return f"""{BEGIN}
## What the facts of who reads bring

Each of {len(cases) - real} simulated cases of the tuning set{of_real} is one recording, played four times: the store
known by its events or only by its levels every {MEASURED.every_s:.0f} seconds, without and with the
[facts](../../../docs/events.md#queues-measured) of its queues at the same interval. So the columns differ in nothing
but what the twin was told.

{markdown(["", *WAYS], summary(cases))}

A page is **in time** half an hour ahead, or as early as a fixed line at {LINE_PCT:.0f} % if that is right and later,
or after a fifth of a filling that takes less. It is **later than a right line** if that line opened in the filling, was
open at the 2192, and the page came later than it and less than half an hour ahead. **P at 80 %** is the probability of
a 2192 within two hours when the store passes 80 %.

The facts are better here than anywhere: every queue manager answers, every time, at once. A getter that hangs or is
slow has the queue open, so the facts cannot help there. A job has it open only while it runs: there the twin has to
know the timetable before it may believe that nobody comes. Where a getter or a job that was missed returns in time
after all, the page about it counts as false: the facts say that nobody reads, not who is about to come. Some of the
rules of the facts were corrected on these cases.

By story: fillings paged in time, median lead of a page, false pages. The command prints those in which nothing fills,
too.

{markdown(["", "fillings", *WAYS], filling)}

![Share of fillings paged, by minutes before the first 2192, with and without the facts]({PICTURE})

| story | what happens |
| --- | --- |
{chr(10).join(stories)}

Counted by `{command}` on {datetime.now(UTC):%Y-%m-%d}.
{END}"""


def draw(cases: Sequence[FactsCase], path: Path) -> None:
    """Draw the lead of the page of every filling."""
    leads = {way: [lead for case in cases for lead in case.known[way].pages.leads] for way in WAYS}
    looks = zip(WAYS, ((GREY, "-"), (INK, "-"), (GREY, ":"), (PLUM, ":")), strict=True)
    save(draw_shares(leads, {way: Line(way, *look, 1.8) for way, look in looks}), path)


def show(console: Console, cases: Sequence[FactsCase], *, each: bool) -> None:
    """Print the tables. each: a line for every case, too."""
    for title, head, rows in (
        ("what the facts bring", ["", *WAYS], summary(cases)),
        ("in time, lead, false pages", ["", "fillings", *WAYS], by_story(cases)),
        ("nothing fills: pages, watches, queue-unread", ["", "stores", "days", *WAYS], by_calm_story(cases)),
    ):
        table = Table(*head, title=title, title_justify="left")
        for row in rows:
            table.add_row(*row)
        console.print(table)
    for case in cases if each else ():
        console.print(f"{case.case.number:4} {case.case.scenario} {case.case.store} {case.case.story}", soft_wrap=True)
        due = ", ".join(map(span, case.due_leads))
        for way, own in case.known.items():
            leads = ", ".join(span(lead) for lead in own.pages.leads)
            chances = ", ".join(number(chance) for chance in own.at_line)
            console.print(
                f"     {way:14} pages {own.pages.pages} false {own.pages.false} open {own.open_at_end} "
                f"[{', '.join(own.conditions)}] watches {own.watches.pages} unread {own.unread}; "
                f"lead {leads} of {due}; P {chances}",
                soft_wrap=True,
                highlight=False,
                markup=False,
            )


def _numbers(seeds: int) -> list[int]:
    """Return the numbers of the cases. seeds: cases of each story, but fewer of those without an event."""
    count = len(NAMES)
    few = min(CALM_SEEDS, seeds)
    return [n for n in range(seeds * count) if n // count < few or NAMES[n % count] not in WITHOUT_EVENT]


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.score.facts", description=__doc__)
    parser.add_argument("--split", choices=("tuning", "test"), default="tuning", help="which set of seeds")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"cases of each story; by default {SEEDS}")
    parser.add_argument("--only", action="append", choices=NAMES, help="this story; may be repeated")
    parser.add_argument("--loads", type=Path, help="folder of real counts, whose cases are played as well")
    parser.add_argument("--each", action="store_true", help="lines for every case")
    parser.add_argument("--write", action="store_true", help="write facts.md and its picture")
    parser.add_argument("--processes", type=int, default=cores(), help="by default one a core")
    arguments = parser.parse_args()
    console = Console()
    if not console.is_terminal:
        console = Console(width=PIPE_WIDTH)
    folder = recordings_folder(fresh=False)
    stories = set(arguments.only or NAMES)
    numbers = [number for number in _numbers(arguments.seeds) if NAMES[number % len(NAMES)] in stories]
    began = time.monotonic()
    runs = [(facts_case, numbers)]
    if arguments.loads is not None and not arguments.only:
        runs.append((functools.partial(facts_case, source=arguments.loads), list(range(REAL_CASES))))
    cases: list[FactsCase] = []
    try:
        for score_one, some in runs:
            with show_progress(console, len(some)) as done:
                cases += score_all(score_one, some, arguments.split, folder, arguments.processes, done)
    except MqtwinError as error:
        print(f"mqtwin score: {error}", file=sys.stderr)
        return 1
    show(console, cases, each=arguments.each)
    if arguments.write:
        folder_of_page = Path(__file__).parent
        command = f"python -m tests.tools.score.facts{' --loads FOLDER' if arguments.loads else ''} --write"
        draw(cases, folder_of_page / PICTURE)
        write_between(folder_of_page / "facts.md", section(cases, command), BEGIN, END)
    console.print(f"{len(cases)} cases in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
