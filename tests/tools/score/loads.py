"""Cases of the class real: counts that a real system produced are put, and readers of our own get them.

A load is a CSV file with a header and rows of time and count, five minutes apart, such as those of the Numenta Anomaly
Benchmark. Window, reader, size and estate of a case come from its number. The rate is the one at which the backlog
reaches a share of what the store holds: below 1 nothing fills, above 1 puts are refused, as far as the store is as
simple as a sum. The truth is the outcome of the simulated system.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import msgspec
import numpy as np
from typing_extensions import override

from kernels.clock import SECOND
from tests.tools.score import case_estate
from tests.tools.score.case_estate import draw_estate
from tests.tools.score.cases import EVENTS, Split, draw_in, fit_size
from tests.tools.score.recordings import Recorded, hash_of, read_note, write_case
from twin.base.errors import UsageError
from twin.estate import Structure
from twin.simulation.arrivals import Curve, Flow, constant, steps
from twin.simulation.scenario import HOUR, START, StoreScenario
from twin.simulation.site import ALL_KINDS, Site
from twin.simulation.system import Measuring
from twin.state.arrays import Array

REAL = "real"  # class of the cases
SERIES: dict[Split, tuple[str, ...]] = {  # names of the files; those of the test set are not for tuning
    "tuning": ("Twitter_volume_AAPL", "elb_request_count_8c0756", "Twitter_volume_KO"),
    "test": ("Twitter_volume_GOOG", "occupancy_6005"),
}
CASES = 24  # of each set that are scored where there are loads
_STEP_S = 300.0  # of the counts
_FINE = 5  # parts of a step in which backlogs are computed
_HOURS = (12.0, 36.0)  # of a window
_HARMLESS, _FULL = (0.45, 0.92), (1.1, 1.8)  # of what the store holds: highest backlog, by equal chance
_SMOOTH = 12  # counts whose mean a reader is sized by
_TRIES = 40


@dataclass(frozen=True, slots=True)
class Reader:
    """Gets from one queue. pace: messages/s that it can get over time; stays_s: seconds that a message stays, or 0.

    It has the queue open while its pace is above 0; where it `hangs`, always.
    """

    pace: Array
    stays_s: float = 0.0
    hangs: bool = False

    def backlog(self, puts: Array, step_s: float) -> Array:
        """Return the backlog after every step. puts: f8[n], messages per second."""
        levels, level = np.empty(puts.size), 0.0
        pace = self.pace.tolist()
        for i, put in enumerate(puts.tolist()):
            leaves = level / self.stays_s if self.stays_s else pace[i]
            level = max(0.0, level + (put - leaves) * step_s)
            levels[i] = level
        return levels


@dataclass(frozen=True, kw_only=True)
class RealLoad(StoreScenario):
    """Windows of real counts, each put to a queue.

    Attributes:
        counts: messages/s in parts of a step, one row a queue, their mean together 1.
        readers: one a queue.
        reach: highest backlog, as a share of what the store holds.
    """

    name = "real-load"
    sentence = "Counts that a real system produced are put."

    counts: tuple[Array, ...] = ()
    readers: tuple[Reader, ...] = ()
    reach: float = 0.5

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        pairs = zip(self.readers, self.counts, strict=True)
        highest = np.sum([reader.backlog(counts, _STEP_S / _FINE) for reader, counts in pairs], axis=0).max()
        return self.reach * site.capacity(self.traffic, rng).messages / float(highest)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        flows: list[Flow] = []
        others = [queue for queue in site.queues if queue != site.queue]
        for queue, counts, reader in zip((site.queue, *others), self.counts, self.readers, strict=False):
            puts = _curve(counts * rate)
            if reader.stays_s:
                flows += site.put_and_get(puts, self.traffic, reader.stays_s, queue=queue, at_random=True)
            else:
                gets = site.gets(_curve(reader.pace * rate), self.traffic, queue)
                flows += site.puts(puts, self.traffic, queue)
                flows += [replace(flow, handles=constant(1.0)) for flow in gets] if reader.hangs else gets
        return flows


def _curve(values: Array) -> Curve:
    return steps(np.arange(values.size) * (_STEP_S / _FINE), values)


# --- readers ---------------------------------------------------------------------------------------------------------


def _limited(counts: Array, rng: np.random.Generator) -> Reader:
    """Return a reader whose pace the load exceeds at times."""
    return Reader(np.full(counts.size, np.quantile(_smooth(counts), rng.uniform(0.55, 0.9))))


def _away(counts: Array, rng: np.random.Generator) -> Reader:
    """Return a quick reader that stays away now and then, and once for long."""
    pace = np.full(counts.size, rng.uniform(1.5, 3.0) * _smooth(counts).max())
    spans = [*rng.uniform(10, 70, int(rng.integers(1, 6))), rng.uniform(80, 300)]
    begins = rng.random(len(spans)) * (counts.size - _minutes(90))
    begins[-1] = counts.size * rng.uniform(0.3, 0.75)
    for begin, span in zip(begins.astype(int).tolist(), spans, strict=True):
        pace[begin : begin + _minutes(span)] = 0.0
    return Reader(pace)


def _job(counts: Array, rng: np.random.Generator) -> Reader:
    """Return a job that comes every few hours, and may leave out a run."""
    every = _minutes(60 * rng.choice([1, 2, 3, 4]))
    left_out = int(rng.integers(2, max(3, counts.size // every))) if rng.random() < 0.5 else -1
    pace = np.zeros(counts.size)
    for run, begin in enumerate(range(every // 2, counts.size, every)):
        if run != left_out:
            pace[begin : begin + every // 4] = 8.0 * counts.max()
    return Reader(pace)


def _slower(counts: Array, rng: np.random.Generator) -> Reader:
    """Return a reader that is slow for some hours."""
    pace = np.full(counts.size, 1.3 * _smooth(counts).max())
    begin = int(counts.size * rng.uniform(0.2, 0.6))
    pace[begin : begin + _minutes(60 * rng.uniform(2, 8))] = rng.uniform(0.3, 0.85) * counts.mean()
    return Reader(pace)


def _staying(counts: Array, rng: np.random.Generator) -> Reader:
    """Return a reader that gets each message after a while."""
    return Reader(np.zeros(counts.size), draw_in((1_200.0, 7_200.0), rng))


READERS: dict[str, Callable[[Array, np.random.Generator], Reader]] = {
    "limited": _limited,
    "away": _away,
    "job": _job,
    "slower": _slower,
    "staying": _staying,
}
QUEUES = "queues"  # two of them, with readers of any kind
STORIES = (*READERS, QUEUES)  # in turn


def _smooth(counts: Array) -> Array:
    size = _SMOOTH * _FINE
    return np.convolve(counts, np.full(size, 1 / size), "valid")


def _minutes(span: float) -> int:
    """Return parts of a step."""
    return max(1, round(span * 60 * _FINE / _STEP_S))


# --- cases -----------------------------------------------------------------------------------------------------------


def recorded_load(
    number: int, split: Split, folder: Path, source: Path, *, measuring: Measuring | None = None
) -> Recorded:
    """Return the case of a number as a recording, simulated unless it is there.

    Args:
        number: number of the case, from 0.
        split: its set.
        folder: folder of recordings.
        source: folder of the loads.
        measuring: what is measured meanwhile; None: nothing.
    """
    files = {name: source / f"{name}.csv" for name in SERIES[split]}
    code = hash_of([*files.values(), Path(__file__), Path(case_estate.__file__)])
    note = folder / f"real-{'measured-' if measuring else ''}{split}-{number:04}-{code}.json"
    if not note.is_file():
        texts = {name: file.read_text(encoding="utf-8") for name, file in files.items()}
        note.write_bytes(msgspec.json.encode(_record(number, split, note.with_suffix(""), texts, measuring)))
    return read_note(note)


def _record(number: int, split: Split, stem: Path, texts: Mapping[str, str], measuring: Measuring | None) -> Recorded:
    story = STORIES[number % len(STORIES)]
    rng = np.random.default_rng((0x7265616C, number, len(split)))
    for _ in range(_TRIES):
        drawing = draw_estate("any", (Structure,) if story == QUEUES else ALL_KINDS, rng)
        names = [str(name) for name in rng.choice(sorted(texts), 1 + (story == QUEUES))]
        load = _draw_load(story, [texts[name] for name in names], rng)
        scenario = replace(load, store=drawing.store, queue=drawing.queue)
        try:
            text, _ = fit_size(scenario, drawing, draw_in(EVENTS, rng), number)
        except UsageError:
            continue  # too many or too few events, so another is drawn
        case = Recorded(
            number=number,
            split=split,
            scenario=f"real-{story}",
            class_=REAL,
            store=drawing.store,
            filler=drawing.queue,
            story=f"{' and '.join(names)}, {load.hours:g} hours; a backlog of {load.reach:.0%} of what is held.",
            stem=str(stem),
        )
        return write_case(case, text, scenario, measuring)
    raise UsageError(f"no estate was found for real load {number} in {_TRIES} tries")


def _draw_load(story: str, texts: Sequence[str], rng: np.random.Generator) -> RealLoad:
    hours = draw_in(_HOURS, rng)
    windows = [_window(text, hours, rng) for text in texts]
    weights = rng.dirichlet(np.full(len(windows), 3.0))
    counts = tuple(weight * values / values.mean() for weight, (_, values) in zip(weights, windows, strict=True))
    kinds = [story] if story in READERS else rng.choice([*READERS], len(counts)).tolist()
    return RealLoad(
        start=START + round(windows[0][0] * SECOND),
        hours=hours,
        length=draw_in((300.0, 3_000.0) if rng.random() < 0.5 else (3_000.0, 24_000.0), rng),
        spread=draw_in((0.2, 1.2), rng),
        noise=0.2,
        counts=counts,
        readers=tuple(READERS[kind](values, rng) for kind, values in zip(kinds, counts, strict=True)),
        reach=draw_in(_HARMLESS if rng.random() < 0.5 else _FULL, rng),
    )


def _window(text: str, hours: float, rng: np.random.Generator) -> tuple[float, Array]:
    """Return the time of day at which a window of a file begins, seconds, and its counts in parts of a step."""
    rows = list(csv.reader(text.splitlines()))[1:]
    length = round(hours * HOUR / _STEP_S)
    first = int(rng.integers(len(rows) - length))
    began = datetime.fromisoformat(rows[first][0])
    counts = np.array([max(0.0, float(row[1])) for row in rows[first : first + length]])
    return began.hour * HOUR + began.minute * 60, np.repeat(counts, _FINE)
