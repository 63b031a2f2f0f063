"""`python -m tests.tools.score.month --loads FOLDER`: how often people are called in an ordinary month of a store.

Each store has 30 days of real counts that keep the rhythm of day and week, ordinary readers and ordinary troubles: a
reader restarts each night, is away for some minutes, a job leaves out a run, a Monday is busy, a batch is put by night.
In one store of three one thing fills it once; in the others nothing does. `--write` writes the figures into
docs/foresight.md and README.md.
"""

from __future__ import annotations

import argparse
import datetime as dt
import functools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import numpy as np
from rich.console import Console

from tests.tools.score import case_estate, laws, loads
from tests.tools.score.case_estate import Drawing, draw_estate
from tests.tools.score.cases import Split, draw_in, fit_size
from tests.tools.score.judge import StorePages
from tests.tools.score.laws import (
    SLOTS,
    Part,
    by_minute,
    by_the_clock,
    follow,
    hourly,
    lingering,
    weighed,
    with_queues,
)
from tests.tools.score.loads import SERIES, Reader, RealLoad
from tests.tools.score.people import ROOT, by_method, calls_of, counted, write_between
from tests.tools.score.recordings import Recorded, hash_of, read_note, recordings_folder, write_case
from tests.tools.score.table import MONTH_ROWS, markdown
from tests.tools.score.work import LINE, cores, score_all, scored_case, show_progress
from twin.base.errors import MqtwinError, UsageError
from twin.base.units import as_count
from twin.estate import PageSet, Structure
from twin.playback.pages import TWIN
from twin.simulation.scenario import HOUR, START
from twin.simulation.site import ALL_KINDS
from twin.state.arrays import Array

MONTH = "month"  # class of the cases
STORES = 12  # that are counted
BEGIN, END = "<!-- month: begin -->", "<!-- month: end -->"
DAY = 1_440  # minutes
DAYS = 30
_EVENTS = (300_000.0, 900_000.0)  # approximate number of a month
_SIZED_BY = 5  # parts of a month, of which the first is what an estate is sized by
_SMALLER = 8  # than in other cases a store is, since its traffic is so slow
_HIGHEST = 6.0  # counts, as a multiple of their mean; what is above is cut
_USUAL = (0.22, 0.85)  # of what the store holds: highest backlog of a month without a filling
_HELD = (1.5, 60.0)  # hours of the mean rate that the store holds
_FILLED_BY = 48 * 60  # minutes within which the store has to be full
_TRIES = 40
_SEED = 0x6D6F6E74

Rng = np.random.Generator


# --- an ordinary month -----------------------------------------------------------------------------------------------


def month_of(text: str, rng: Rng) -> Array:
    """Return a month of the counts of a file by minute, their mean 1.

    Each day is a day of the file of the same weekday, by chance, times a factor that drifts by some percent a day.
    """
    counts = by_the_clock(text).reshape(-1, SLOTS)
    first = datetime.fromisoformat(text.splitlines()[1].split(",")[0])
    weekday = (first + timedelta(days=0 if first.time() == dt.time() else 1)).weekday()
    begins = datetime.fromtimestamp(START / 1e6, dt.UTC).weekday()
    days = []
    for day in range(DAYS):
        alike = range((begins + day - weekday) % 7, len(counts), 7)
        if not alike:
            raise UsageError(f"a load has {len(counts)} days; expected: a week or more")
        days.append(counts[int(rng.choice(alike))])
    drift = np.exp(np.cumsum(rng.normal(0, 0.03, DAYS)))
    month = np.concatenate(days) * np.repeat(drift / drift.mean(), SLOTS)
    return by_minute(np.minimum(month, _HIGHEST * month.mean()))


def _busy_monday(counts: Array, rng: Rng) -> Array:
    """Return counts of which one Monday has more in its working hours."""
    begins = datetime.fromtimestamp(START / 1e6, dt.UTC).weekday()
    monday = (-begins % 7 + 7 * int(rng.integers(4))) * DAY
    counts = counts.copy()
    counts[monday + 8 * 60 : monday + 18 * 60] *= rng.uniform(1.3, 2.0)
    return counts


def _troubled(pace: Array, counts: Array, rng: Rng) -> Reader:
    """Let a reader restart each night, be away for some minutes now and then, and slow once or twice."""
    night, lasts = round(rng.uniform(1, 5) * 60), int(rng.integers(1, 6))
    for begin in range(night, pace.size, DAY):
        pace[begin : begin + lasts] = 0.0
    for _ in range(int(rng.poisson(4))):
        begin = int(rng.integers(pace.size))
        pace[begin : begin + round(min(8 * np.exp(0.9 * rng.standard_normal()), 75))] = 0.0
    for _ in range(int(rng.integers(1, 3))):
        begin, long = int(rng.integers(pace.size)), int(rng.integers(15, 75))
        pace[begin : begin + long] = rng.uniform(0.3, 0.9) * counts[begin : begin + long].mean()
    return Reader(pace)


def _following(counts: Array, rng: Rng) -> Part:
    return Part(counts, _troubled(follow(counts, rng), counts, rng))


def _limited(counts: Array, rng: Rng) -> Part:
    """Return a queue whose reader has a limit that few hours of a month exceed."""
    pace = np.full(counts.size, np.quantile(hourly(counts), rng.uniform(0.97, 0.999)))
    return Part(counts, _troubled(pace, counts, rng))


def _by_job(counts: Array, rng: Rng) -> Part:
    """Return a queue that a job empties by a timetable; it leaves out a run once or twice a month."""
    every = int(rng.choice([15, 30, 60, 120]))
    begins = [*range(int(rng.integers(every)), counts.size, every)]
    left_out = {*rng.integers(len(begins), size=int(rng.integers(1, 3))).tolist()}
    pace = np.zeros(counts.size)
    for run, begin in enumerate(begins):
        if run not in left_out:
            pace[begin : begin + max(3, every // 6)] = 12.0 * hourly(counts).max()
    return Part(counts, Reader(pace))


def _batch(counts: Array, rng: Rng) -> Part:
    """Return a queue to which a batch is put on each night of a working day, and which a job empties after it."""
    puts, pace = np.full(counts.size, 0.02), np.zeros(counts.size)
    begins = datetime.fromtimestamp(START / 1e6, dt.UTC).weekday()
    night, lasts, after = round(rng.uniform(0, 2) * 60), int(rng.integers(30, 120)), int(rng.integers(20, 120))
    for day in range(DAYS):
        begin = day * DAY + night
        if (begins + day) % 7 < 5:
            puts[begin : begin + lasts] = rng.uniform(0.7, 1.2)
        late = int(rng.integers(15, 60)) if rng.random() < 0.07 else 0
        pace[begin + lasts + after + late :][:120] = 3.0
    return Part(puts / puts.mean(), Reader(pace / puts.mean()))


def _lingering(counts: Array, rng: Rng) -> Part:
    return Part(counts, lingering(counts, rng))


_QUEUES = (_following, _following, _limited, _by_job, _batch, _lingering)


@dataclass(frozen=True, slots=True)
class Month:
    """Month of a store. series: names; parts: its queues; reach: highest backlog, as a share of what is held."""

    series: Sequence[str]
    parts: Sequence[Part]
    reach: float


def draw_month(number: int, texts: Mapping[str, str], rng: Rng) -> Month:
    """Draw the month of the store of a number; every third one fills once. texts: loads by name.

    Raises:
        UsageError: no draw is of a store of an ordinary size.
    """
    usual = draw_in(_USUAL, rng)
    for _ in range(_TRIES):
        count = int(rng.integers(1, 4))
        names = [str(name) for name in rng.permutation(sorted(texts) * count)[:count]]
        makes = [_following, *(_QUEUES[int(rng.integers(len(_QUEUES)))] for _ in names[1:])]
        months = [_busy_monday(month_of(texts[name], rng), rng) for name in names]
        parts = weighed([make(counts, rng) for make, counts in zip(makes, months, strict=True)], rng)
        held = total_backlog(parts).max() / usual
        filled = _until_full(parts, held, rng) if number % 3 == 1 else parts[0]
        if filled is not None and _HELD[0] <= held / HOUR <= _HELD[1]:
            parts = [filled, *parts[1:]]
            return Month(names, parts, total_backlog(parts).max() / held)
    raise UsageError(f"no store of an ordinary size was drawn in {_TRIES} tries; expected: other loads")


def total_backlog(parts: Sequence[Part]) -> Array:
    """Return what the queues hold together after every minute, in seconds of the mean rate."""
    return np.asarray(np.sum([part.backlog for part in parts], axis=0))


def _until_full(parts: Sequence[Part], held: float, rng: Rng) -> Part | None:
    """Return the first queue with a reader that stops, or is slow, until the store has been full for a while.

    None: it never was within _FILLED_BY. held: what the store holds, in seconds of the mean rate.
    """
    part, before, others = parts[0], parts[0].backlog, total_backlog(parts) - parts[0].backlog
    for _ in range(_TRIES):
        begin = int(rng.integers(10, 26)) * DAY + int(rng.integers(6, 20)) * 60
        slow = float(rng.choice([0.0, rng.uniform(0.2, 0.6)])) * part.counts.mean()
        odd = slice(begin, begin + _FILLED_BY)
        levels = before[begin] + 60 * np.cumsum(part.counts[odd] - slow)
        levels -= np.minimum(0.0, np.minimum.accumulate(levels))
        full = np.flatnonzero(levels + others[odd] > 1.1 * held)
        if full.size:
            end = begin + int(full[0]) + int(rng.integers(5, 40))
            pace = part.reader.pace.copy()
            pace[begin:end] = slow
            return replace(part, reader=replace(part.reader, pace=pace), odd=(begin, end))
    return None


# --- recordings ------------------------------------------------------------------------------------------------------


def recorded_month(number: int, split: Split, folder: Path, source: Path) -> Recorded:
    """Return the month of a number as a recording, simulated unless it is there.

    Args:
        number: number of the store, from 0.
        split: its set.
        folder: folder of recordings.
        source: folder of the loads.
    """
    files = {name: source / f"{name}.csv" for name in SERIES[split]}
    made_by = [Path(str(module.__file__)) for module in (laws, loads, case_estate)]
    note = folder / f"month-{split}-{number:04}-{hash_of([*files.values(), Path(__file__), *made_by])}.json"
    if not note.is_file():
        texts = {name: file.read_text(encoding="utf-8") for name, file in files.items()}
        note.write_bytes(msgspec.json.encode(_record(number, split, note.with_suffix(""), texts)))
    return read_note(note)


def _record(number: int, split: Split, stem: Path, texts: Mapping[str, str]) -> Recorded:
    rng = np.random.default_rng((_SEED, number, len(split)))
    for _ in range(_TRIES):
        try:
            month = draw_month(number, texts, rng)
            count = len(month.parts)
            drawing = _small(
                with_queues(draw_estate("any", ALL_KINDS if count == 1 else (Structure, PageSet), rng), count)
            )
            scenario = RealLoad(
                store=drawing.store,
                queue=drawing.queue,
                hours=24.0 * DAYS,
                length=draw_in((1_000.0, 24_000.0), rng),
                spread=draw_in((0.2, 1.2), rng),
                noise=0.2,
                counts=tuple(part.counts for part in month.parts),
                readers=tuple(part.reader for part in month.parts),
                reach=month.reach,
            )
            first = replace(scenario, hours=scenario.hours / _SIZED_BY)
            text, _ = fit_size(first, drawing, draw_in(_EVENTS, rng) / _SIZED_BY, number)
        except UsageError:
            continue  # too many or too few events, or what does not fill, so another is drawn
        case = Recorded(
            number=number,
            split=split,
            scenario=MONTH,
            class_=MONTH,
            store=drawing.store,
            filler=drawing.queue,
            story=f"{', '.join(month.series)}, a month; a backlog of {month.reach:.0%} of what is held.",
            stem=str(stem),
        )
        return write_case(case, text, scenario)
    raise UsageError(f"no estate was found for month {number} in {_TRIES} tries; expected: other series")


def _small(drawing: Drawing) -> Drawing:
    return replace(drawing, text=lambda size: drawing.text(size // _SMALLER))


# --- counting --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CountedMonth:
    """Pages of a month. pages: by method, in the order of the stores; calls: a text of each page of the twin."""

    case: Recorded
    pages: Mapping[str, Sequence[StorePages]]
    calls: Sequence[str]
    events: int


def count_month(number: int, split: Split, folder: Path, source: Path) -> CountedMonth:
    """Simulate a month unless it is there, play it, count the pages of every method."""
    case = recorded_month(number, split, folder, source)
    played, scored = scored_case(case)
    calls = [text for store, _, text in calls_of(played.alerts) if store == case.store]
    return CountedMonth(case, scored.pages, calls, played.events)


def section(months: Sequence[CountedMonth], command: str) -> str:
    """Return the section of docs/foresight.md about an ordinary month, in Markdown.

    Args:
        months: the stores.
        command: the command that counted them.
    """
    counts = by_method(months)
    lines = [[name, *(make(own) for own in counts.values())] for name, make in MONTH_ROWS.items()]
    events = sum(month.events for month in months) / len(months)
    return f"""{BEGIN}
## An ordinary month

{as_count(len(months), "store")} of 30 days each, {events:,.0f} events a month: real loads with their rhythm of day and
week, readers that restart each night, absences of minutes, a job that leaves out a run, a busy Monday. One thing fills
every third store once; nothing fills the others ([how](measuring.md#an-ordinary-month)).

{markdown(["", *counts], lines)}

Counted by `{command}` on {dt.datetime.now(dt.UTC).date().isoformat()}.
{END}"""


def readme_line(months: Sequence[CountedMonth]) -> str:
    """Return the sentence of README.md about an ordinary month, in a line that other text may begin."""
    own, line = (counted(months, method) for method in (TWIN, LINE))
    calls = [MONTH_ROWS[name] for name in ("pages a store and month", "of these for nothing")]
    twin, fixed = ([make(counts) for make in calls] for counts in (own, line))
    return (
        f"{BEGIN}In an ordinary month a store has {twin[0]} pages, {twin[1]} of them for nothing; "
        f"with a fixed line at 80 % {fixed[0]} and {fixed[1]} "
        f"([{as_count(own.stores, 'store')}](docs/foresight.md#an-ordinary-month), "
        f"{as_count(own.fillings, 'filling')}).{END}"
    )


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.score.month", description=__doc__)
    parser.add_argument("--loads", type=Path, required=True, help="folder of real counts")
    parser.add_argument("--split", choices=("tuning", "test"), default="test", help="whose series")
    parser.add_argument("--stores", type=int, default=STORES, help=f"how many; by default {STORES}")
    parser.add_argument("--processes", type=int, default=cores(), help="by default one a core")
    parser.add_argument("--write", action="store_true", help="write into docs/foresight.md and README.md")
    arguments = parser.parse_args()
    console = Console()
    count_one = functools.partial(count_month, source=arguments.loads)
    folder, numbers = recordings_folder(fresh=False), range(arguments.stores)
    try:
        with show_progress(console, len(numbers)) as done:
            months = score_all(count_one, numbers, arguments.split, folder, arguments.processes, done)
    except (MqtwinError, OSError) as error:
        print(f"mqtwin score: {error}", file=sys.stderr)
        return 1
    print(section(months, "python -m tests.tools.score.month --loads FOLDER"))
    for month in months:
        [own] = [store for store in month.pages[TWIN] if store.store == month.case.store]
        what = f"{own.fillings} fillings, {own.pages} pages, {own.false} false, {month.events:,} events"
        print(f"{month.case.name} {own.store}: {month.case.story} {what}: {'; '.join(month.calls)}")
    if arguments.write:
        text = section(months, "python -m tests.tools.score.month --loads FOLDER --write")
        write_between(ROOT / "docs" / "foresight.md", text, BEGIN, END)
        write_between(ROOT / "README.md", readme_line(months), BEGIN, END)
    return 0


if __name__ == "__main__":
    sys.exit(main())
