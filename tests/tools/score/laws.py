"""Cases of the classes queues and laws: several real series in one store, and readers that change what they do.

In a case of the class queues three to six queues of one store have windows of real counts, each with a reader of its
own, and one of them does something odd. In a case of the class laws the reader of one queue follows, is saturated, is
away or comes by a timetable, and changes from one to another. Cases with an even number are sized so that the odd
event fills the store, the others so that it does not; the truth is the outcome of the simulated system.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from kernels.clock import SECOND
from tests.tools.score import case_estate, loads
from tests.tools.score.case_estate import Drawing, draw_estate
from tests.tools.score.cases import Split, draw_in, fit_size
from tests.tools.score.loads import SERIES, Reader, RealLoad
from tests.tools.score.recordings import Recorded, hash_of, read_note, write_case
from tests.tools.score.scenarios import Wants
from twin.base.errors import UsageError
from twin.estate import PageSet, Structure
from twin.simulation.scenario import HOUR, START
from twin.simulation.site import ALL_KINDS, Kinds
from twin.state.arrays import Array

Law = Literal["queues", "laws"]  # classes of the cases

QUEUES: Law = "queues"
LAWS: Law = "laws"
CASES = 20  # of each class and set that are scored where there are loads
STEP_S = 300  # of the counts
SLOTS = 288  # of the counts of a day
_FINE = 5  # minutes of a slot
_EVENTS = (25_000.0, 80_000.0)  # approximate number of a case, without gets of nothing
_HOURS = (14.0, 36.0)  # of a window
_HARMLESS, _FULL = (0.5, 0.92), (1.15, 1.8)  # of what the store holds: highest backlog
_LATEST = 40  # minutes before the end of the recording at which the odd event is over
_TRIES = 60
_SEED = {QUEUES: 0x71756575, LAWS: 0x6C617773}
_SITES: tuple[tuple[float, Wants, Kinds], ...] = (  # probability, needs and kinds of an estate that is not any
    (0.12, "fixed-smds", (Structure,)),
    (0.12, "scm", (Structure,)),
    (0.10, "no-expansion", (PageSet,)),
)

Rng = np.random.Generator


@dataclass(frozen=True, slots=True)
class Part:
    """One queue. counts: puts by minute; reader: who gets them; odd: minutes in which something is odd, or None."""

    counts: Array
    reader: Reader
    odd: tuple[int, int] | None = None

    @property
    def backlog(self) -> Array:
        """Messages that wait, by minute."""
        return self.reader.backlog(self.counts, 60.0)

    def scaled(self, factor: float) -> Part:
        """Return the part with all rates times a factor."""
        return replace(self, counts=self.counts * factor, reader=replace(self.reader, pace=self.reader.pace * factor))


# --- real counts -----------------------------------------------------------------------------------------------------


def by_the_clock(text: str) -> Array:
    """Return the counts of a file every five minutes from its first midnight to its last.

    A gap of more than an hour has the counts of the day before, a shorter one those of a straight line.
    """
    rows = list(csv.reader(text.splitlines()))[1:]
    times = np.array([datetime.fromisoformat(row[0]).replace(tzinfo=UTC).timestamp() for row in rows]) / STEP_S
    slots = np.arange(-(-times[0] // SLOTS) * SLOTS, times[-1] // SLOTS * SLOTS)
    counts = np.interp(slots, times, np.maximum(0.0, [float(row[1]) for row in rows]))
    after = np.searchsorted(times, slots, side="left").clip(1)
    for slot in np.flatnonzero(times[after] - times[after - 1] > HOUR / STEP_S).tolist():
        counts[slot] = counts[max(slot - SLOTS, slot % SLOTS)]
    return np.asarray(counts)


def by_minute(counts: Array) -> Array:
    """Return counts of every five minutes as counts of every minute, their mean 1."""
    return np.repeat(counts / counts.mean(), _FINE)


def _windows(series: Mapping[str, Array], count: int, slots: int, rng: Rng) -> tuple[int, list[str], list[Array]]:
    """Return the slot of the day at which windows of real counts begin, their series, and their counts by minute.

    All begin at the same time of day, and none of one series overlap while there is room. slots: their length.
    """
    first = int(rng.integers(SLOTS))
    days = {
        name: [int(day) for day in rng.permutation(max(0, (counts.size - first - slots) // SLOTS + 1))]
        for name, counts in series.items()
    }
    order = [str(name) for name in rng.permutation(sorted(series))]
    if short := [name for name in order if not days[name]]:
        raise UsageError(
            f"{short[0]} has {series[short[0]].size // SLOTS} days; expected: {slots // SLOTS + 2} or more"
        )
    places: list[tuple[str, int]] = []
    for turn in range(count):
        name = order[turn % len(order)]
        used = [day for other, day in places if other == name]
        free = [day for day in days[name] if all(abs(day - other) * SLOTS >= slots for other in used)]
        places.append((name, (free or days[name])[0]))
    windows = [series[name][day * SLOTS + first :][:slots] for name, day in places]
    return first, [name for name, _ in places], [by_minute(window) for window in windows]


# --- ordinary readers ------------------------------------------------------------------------------------------------


def hourly(counts: Array) -> Array:
    """Return the mean of every 60 minutes of counts by minute."""
    return np.convolve(counts, np.full(60, 1 / 60), "valid")


def follow(counts: Array, rng: Rng) -> Array:
    """Return the pace of a reader that keeps up with every hour."""
    return np.full(counts.size, rng.uniform(1.2, 2.5) * hourly(counts).max())


def restarting(counts: Array, rng: Rng) -> Reader:
    """Return a reader that keeps up and is away for some minutes now and then."""
    pace = follow(counts, rng)
    for _ in range(int(rng.integers(4))):
        _rest(pace, int(rng.integers(counts.size)), int(rng.integers(1, 15)))
    return Reader(pace)


def bounded(counts: Array, rng: Rng) -> Reader:
    """Return a reader with a limit that the highest hours exceed."""
    return Reader(np.full(counts.size, np.quantile(hourly(counts), rng.uniform(0.88, 0.99))))


def visiting(counts: Array, rng: Rng) -> Reader:
    """Return a job that comes every quarter of an hour to every two hours."""
    every = int(rng.choice([15, 30, 60, 120]))
    pace = np.zeros(counts.size)
    for begin in range(int(rng.integers(every)), counts.size, every):
        pace[begin : begin + max(3, every // 6)] = 12.0 * counts.max()
    return Reader(pace)


def lingering(counts: Array, rng: Rng) -> Reader:
    """Return a reader that gets each message after some minutes."""
    return Reader(np.zeros(counts.size), draw_in((240.0, 2_400.0), rng))


ORDINARY: tuple[Callable[[Array, Rng], Reader], ...] = (restarting, restarting, bounded, visiting, lingering)


def ordinary(counts: Array, rng: Rng) -> Reader:
    """Return an ordinary reader of some kind."""
    return ORDINARY[int(rng.integers(len(ORDINARY)))](counts, rng)


def _rest(pace: Array, begin: int, minutes: int) -> None:
    pace[begin : begin + minutes] = 0.0


def _begin(counts: Array, minutes: int, rng: Rng, earliest: float = 0.35) -> int:
    """Return the minute at which an odd event of that length begins."""
    latest = counts.size - minutes - _LATEST
    return int(min(latest, counts.size * rng.uniform(earliest, 0.8)))


# --- class queues: one of several does something odd -----------------------------------------------------------------


def _stops(counts: Array, rng: Rng) -> Part:
    """Let the reader stop."""
    away = round(draw_in((40.0, 360.0), rng))
    reader, begin = restarting(counts, rng), _begin(counts, away, rng)
    _rest(reader.pace, begin, away)
    return Part(counts, reader, (begin, begin + away))


def _saturates(counts: Array, rng: Rng) -> Part:
    """Let the reader become slower than the puts, at once or within an hour."""
    lasts = round(draw_in((90.0, 540.0), rng))
    reader, begin = restarting(counts, rng), _begin(counts, lasts, rng)
    slow = rng.uniform(0.2, 0.85) * counts[begin : begin + lasts].mean()
    falls = np.linspace(1.0, 0.0, int(rng.integers(2, 60)))[:lasts]
    reader.pace[begin : begin + lasts] = slow
    reader.pace[begin : begin + falls.size] += falls * (1.2 * counts[begin] + slow)
    return Part(counts, reader, (begin, begin + lasts))


def _job_away(counts: Array, rng: Rng) -> Part:
    """Let a job leave out runs."""
    every = int(rng.choice([20, 30, 60, 90, 120, 180]))
    runs = [*range(every // 2, counts.size - _LATEST, every)]
    left_out = int(rng.integers(1, 6 if every < 90 else 3))
    first = int(rng.integers(max(1, len(runs) // 3), max(2, len(runs) - left_out)))
    pace = np.zeros(counts.size)
    for run, begin in enumerate(runs):
        if not first <= run < first + left_out:
            pace[begin : begin + max(4, every // 5)] = 12.0 * counts.max()
    return Part(counts, Reader(pace), (runs[first], runs[first] + every * left_out))


def _burst(counts: Array, rng: Rng) -> Part:
    """Put several times as much for a while, to a reader with a limit."""
    lasts = round(draw_in((10.0, 90.0), rng))
    reader, begin = restarting(counts, rng), _begin(counts, lasts, rng)
    counts = counts.copy()
    counts[begin : begin + lasts] *= rng.uniform(1.5, 4.0) * reader.pace.max() / counts[begin : begin + lasts].mean()
    return Part(counts, reader, (begin, begin + lasts))


def _slow_hour(counts: Array, rng: Rng) -> Part:
    """Let the reader be slow for about an hour."""
    lasts = round(draw_in((30.0, 110.0), rng))
    reader, begin = restarting(counts, rng), _begin(counts, lasts, rng)
    reader.pace[begin : begin + lasts] = rng.uniform(0.05, 0.7) * counts[begin : begin + lasts].mean()
    return Part(counts, reader, (begin, begin + lasts))


# --- class laws: a reader that changes what it does ------------------------------------------------------------------


def _drifts(counts: Array, rng: Rng) -> Part:
    """Let the limit of a reader that keeps up fall for hours until it is below the puts."""
    lasts = round(draw_in((240.0, 720.0), rng))
    begin = _begin(counts, lasts, rng, 0.2)
    pace = follow(counts, rng)
    end = rng.uniform(0.4, 0.85) * counts[begin + lasts // 2 : begin + lasts].mean()
    pace[begin : begin + lasts] = np.geomspace(pace[begin], end, lasts)
    return Part(counts, Reader(pace), (begin, begin + lasts))


def _absences(counts: Array, rng: Rng, *, hangs: bool = False) -> Part:
    """Let a reader be away for times of chance with a heavy tail, then for several times the longest of them."""
    pace = follow(counts, rng)
    spans = np.minimum(rng.uniform(2, 8) * (1 + rng.pareto(rng.uniform(1.1, 2.0), int(rng.integers(4, 12)))), 60.0)
    long = round(min(spans.max() * rng.uniform(2.0, 6.0), 420.0))
    begin = _begin(counts, long, rng, 0.45)
    for span in spans.tolist():
        _rest(pace, int(rng.integers(max(1, begin - 60))), round(span))
    _rest(pace, begin, long)
    return Part(counts, Reader(pace, hangs=hangs), (begin, begin + long))


def _seldom(counts: Array, rng: Rng) -> Part:
    """Let a job come by a timetable, then half as often or less, then not for several times that."""
    every = int(rng.choice([20, 30, 45, 60, 90]))
    seldom = round(every * rng.uniform(1.5, 3.0))
    away = round(seldom * rng.uniform(2.0, 4.0))
    begin = _begin(counts, away, rng, 0.45)
    few = int(rng.integers(2, 5))
    visits = [*range(begin - few * seldom, begin, seldom)]
    visits += range(visits[0] - every, 0, -every)
    visits += range(begin - seldom + away, counts.size, every)
    pace = np.zeros(counts.size)
    for visit in visits:
        pace[max(0, visit) : max(0, visit + max(4, every // 6))] = 20.0 * counts.max()
    return Part(counts, Reader(pace), (begin, begin - seldom + away))


def _saturated_again(counts: Array, rng: Rng) -> Part:
    """Let a saturated reader recover, and be saturated again for longer."""
    first, second = round(draw_in((60.0, 180.0), rng)), round(draw_in((120.0, 480.0), rng))
    begin = _begin(counts, second, rng, 0.5)
    pace = follow(counts, rng)
    early = int(rng.uniform(0.1, 0.8) * max(1, begin - 2 * first))
    for start, lasts in ((early, first), (begin, second)):
        pace[start : start + lasts] = rng.uniform(0.3, 0.85) * counts[start : start + lasts].mean()
    return Part(counts, Reader(pace), (begin, begin + second))


def _hanging(counts: Array, rng: Rng) -> Part:
    """Let the reader hang now and then with the queue open, and be slow after each time."""
    part = _absences(counts, rng, hangs=True)
    still = part.reader.pace == 0
    after = np.flatnonzero(still[:-1] & ~still[1:]) + 1
    for minute in after.tolist():
        slow = part.reader.pace[minute : minute + int(rng.integers(5, 40))]
        slow[slow > 0] = rng.uniform(0.8, 1.6) * counts.mean()
    return part


Make = Callable[[Array, Rng], Part]
STORIES: Mapping[Law, tuple[Mapping[str, Make], Mapping[str, Make]]] = {  # that fill, and that do not, in turn
    QUEUES: (
        {"stops": _stops, "saturates": _saturates, "job-away": _job_away},
        {"burst": _burst, "absence": _stops, "slow-hour": _slow_hour},
    ),
    LAWS: 2
    * (
        {
            "drifts": _drifts,
            "absences": _absences,
            "seldom": _seldom,
            "saturated-again": _saturated_again,
            "hanging": _hanging,
        },
    ),
}


# --- cases -----------------------------------------------------------------------------------------------------------


def recorded_law(class_: Law, number: int, split: Split, folder: Path, source: Path) -> Recorded:
    """Return the case of a number as a recording, simulated unless it is there.

    Args:
        class_: class of the case.
        number: number of the case, from 0; those of each class are its own.
        split: its set.
        folder: folder of recordings.
        source: folder of the loads.
    """
    files = {name: source / f"{name}.csv" for name in SERIES[split]}
    made_by = [Path(str(module.__file__)) for module in (loads, case_estate)]
    note = folder / f"{class_}-{split}-{number:04}-{hash_of([*files.values(), Path(__file__), *made_by])}.json"
    if not note.is_file():
        series = {name: by_the_clock(file.read_text(encoding="utf-8")) for name, file in files.items()}
        note.write_bytes(msgspec.json.encode(_record(class_, number, split, note.with_suffix(""), series)))
    return read_note(note)


@dataclass(frozen=True, slots=True)
class Story:
    """Story of a case.

    Attributes:
        name: name of the odd event.
        reach: highest backlog, as a share of what the store holds.
        first: slot of the day at which it begins.
        series: names of the real series, one a queue.
        parts: the queues, that of the odd event first.
    """

    name: str
    reach: float
    first: int
    series: Sequence[str]
    parts: Sequence[Part]


def draw_story(class_: Law, number: int, series: Mapping[str, Array], rng: Rng) -> Story:
    """Draw what happens in the case of a number.

    Args:
        class_: class of the case.
        number: number of the case.
        series: real counts by the clock, by name of the series.
        rng: random numbers.

    Raises:
        UsageError: in no draw the odd event is what the highest backlog is from.
    """
    fills = number % 2 == 0
    makes = STORIES[class_][number % 2]
    name = [*makes][number // 2 % len(makes)]
    for _ in range(_TRIES):
        count = int(rng.integers(3, 7) if class_ == QUEUES else rng.integers(1, 3))
        slots = round(draw_in(_HOURS, rng) * HOUR / STEP_S)
        first, names, windows = _windows(series, count, slots, rng)
        parts = [makes[name](windows[0], rng), *(Part(own, ordinary(own, rng)) for own in windows[1:])]
        parts = weighed(parts, rng)
        if _is_odd(parts):
            return Story(name, draw_in(_FULL if fills else _HARMLESS, rng), first, names, parts)
    raise UsageError(f"{class_} {number} has no odd event in {_TRIES} draws; expected: other series")


def _record(class_: Law, number: int, split: Split, stem: Path, series: Mapping[str, Array]) -> Recorded:
    rng = np.random.default_rng((_SEED[class_], number, len(split)))
    for _ in range(_TRIES):
        story = draw_story(class_, number, series, rng)
        drawing = with_queues(_estate(len(story.parts), rng), len(story.parts))
        scenario = RealLoad(
            store=drawing.store,
            queue=drawing.queue,
            start=START + story.first * STEP_S * SECOND,
            hours=story.parts[0].counts.size / 60,
            length=draw_in((300.0, 3_000.0) if rng.random() < 0.5 else (3_000.0, 24_000.0), rng),
            spread=draw_in((0.2, 1.2), rng),
            noise=0.2,
            counts=tuple(part.counts for part in story.parts),
            readers=tuple(part.reader for part in story.parts),
            reach=story.reach,
        )
        try:
            text, _ = fit_size(scenario, drawing, draw_in(_EVENTS, rng), number)
        except UsageError:
            continue  # too many or too few events, so another is drawn
        what = f"{', '.join(story.series)}, {scenario.hours:g} hours; a backlog of {story.reach:.0%} of what is held."
        case = Recorded(
            number=number,
            split=split,
            scenario=f"{class_}-{story.name}",
            class_=class_,
            store=drawing.store,
            filler=drawing.queue,
            story=what,
            stem=str(stem),
        )
        return write_case(case, text, scenario)
    raise UsageError(f"no estate was found for {class_} {number} in {_TRIES} tries; expected: other series")


def weighed(parts: Sequence[Part], rng: Rng) -> list[Part]:
    """Return the parts with weights of chance, the first of at least a fifth."""
    weights = rng.dirichlet(np.full(len(parts), 3.0))
    weights[0] = max(weights[0], 0.2)
    return [part.scaled(weight / weights.sum()) for part, weight in zip(parts, weights.tolist(), strict=True)]


def _is_odd(parts: Sequence[Part]) -> bool:
    """Return True if the backlog is highest when the odd event of the first part is about to end, and its own."""
    assert parts[0].odd is not None
    begin, end = parts[0].odd
    own, total = parts[0].backlog, np.sum([part.backlog for part in parts], axis=0)
    return bool(begin < total.argmax() <= end + 30 and own[total.argmax()] > 0.5 * total.max())


def _estate(count: int, rng: Rng) -> Drawing:
    """Draw an estate. count: queues that its store is to have."""
    place, kinds = rng.random(), ALL_KINDS if count == 1 else (Structure, PageSet)
    for probability, wants, own in _SITES:
        if place < probability:
            return draw_estate(wants, own, rng)
        place -= probability
    return draw_estate("any", kinds, rng)


def with_queues(drawing: Drawing, count: int) -> Drawing:
    """Return a drawing whose store has queues for a story. count: how many; one where it is a queue file."""
    owner, store = drawing.store.split("/")
    holder = f'storage_class = "CLASS{int(store[2:])}"' if store.startswith("PS") else f'structure = "{store}"'
    queues = "".join(f'\n[queue."{owner}/MORE{number}"]\n{holder}\n' for number in range(1, count))
    return drawing if count == 1 else replace(drawing, text=lambda size: drawing.text(size) + queues)
