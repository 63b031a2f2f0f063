"""Cases about who reads: getters that stop, return, hang, are slow or late, and queues that nobody reads.

Each case is one simulated recording with events, levels and facts (`twin.simulation.system`), from which the four
recordings are made that are compared: a store known by events or by levels only, without and with the facts of who
reads. So a pair has the same events. Loads and readers are ours, those of `tests.tools.score.loads` in the cases of
real loads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.tools.score import loads
from tests.tools.score.case_estate import Drawing, draw_estate
from tests.tools.score.cases import Split, draw_in, fit_size
from tests.tools.score.loads import Reader, RealLoad
from tests.tools.score.recordings import Recorded, hash_of, read_note, write_case
from twin.base.errors import UsageError
from twin.estate import PageSet, Structure
from twin.recordings.files import RecordingWriter, open_recording
from twin.simulation import Measuring
from twin.simulation.scenario import Range
from twin.simulation.site import ALL_KINDS, Site
from twin.state.arrays import Array

MEASURED = Measuring(levels=True)
FILLS, CALM, EITHER = "fills", "calm", "either"  # classes of the cases
_EVENTS = (17_000.0, 45_000.0)  # approximate number of a case
_FULL, _HARMLESS = (1.15, 1.35), (0.5, 0.92)  # of what the store holds: highest backlog
_DAY = 1_440  # minutes
_TRIES = 40
_TUNING_SEED = 0x726561

Rng = np.random.Generator


@dataclass(frozen=True, slots=True)
class Story:
    """Puts and gets by minute, a row a queue (`RealLoad`), and the highest backlog."""

    counts: tuple[Array, ...]
    readers: tuple[Reader, ...]
    reach: float


# --- loads -----------------------------------------------------------------------------------------------------------


def _steady(rng: Rng, minutes: int) -> Array:
    """Return a load that drifts by a tenth from hour to hour."""
    hours = np.arange(minutes // 60 + 2)
    return np.exp(0.1 * np.interp(np.arange(minutes) / 60, hours, rng.standard_normal(hours.size)))


def _by_day(rng: Rng, minutes: int) -> Array:
    """Return a load that follows the time of day."""
    return 1 + rng.uniform(0.2, 0.7) * np.sin(2 * np.pi * (np.arange(minutes) / _DAY + rng.random()))


def _bursty(rng: Rng, minutes: int) -> Array:
    counts = np.ones(minutes)
    begin = int(rng.integers(10, 60))
    while begin < minutes:
        lasts = int(rng.integers(5, 15))
        counts[begin : begin + lasts] *= rng.uniform(2, 5)
        begin += lasts + int(rng.integers(30, 120))
    return counts


def _load(rng: Rng, minutes: int) -> Array:
    kinds = (_steady, _by_day, _bursty)
    return kinds[int(rng.integers(len(kinds)))](rng, minutes)


def _quick(counts: Array, rng: Rng) -> Array:
    """Return the pace of a getter that keeps up, and has a few short stops: restarts, new releases."""
    pace = np.full(counts.size, rng.uniform(1.2, 2.0) * counts.max())
    for _ in range(int(rng.integers(1, 4))):
        begin = int(rng.integers(counts.size))
        pace[begin : begin + int(rng.integers(1, 10))] = 0.0
    return pace


# --- stories ---------------------------------------------------------------------------------------------------------


def _stopped(rng: Rng, *, hangs: bool = False, others: int = 0) -> Story:
    """Let the getter of the first queue stop for good."""
    before, rise = int(rng.integers(150, 361)), int(draw_in((45.0, 240.0), rng))
    counts = [_load(rng, before + rise) for _ in range(1 + others)]
    paces = [_quick(own, rng) for own in counts]
    paces[0][before - 30 :] = paces[0].max()
    paces[0][before:] = 0.0
    readers = [Reader(pace, hangs=hangs) for pace in paces]
    return Story(_together(counts, rng), tuple(readers), draw_in(_FULL, rng))


def _back(rng: Rng) -> Story:
    """Let the getter stop, and return before the store is full."""
    before, away = int(rng.integers(150, 361)), int(draw_in((30.0, 150.0), rng))
    counts = _load(rng, before + away + 90)
    pace = _quick(counts, rng)
    pace[before - 30 :] = pace.max()
    pace[before : before + away] = 0.0
    return Story((counts,), (Reader(pace),), draw_in(_HARMLESS, rng))


def _slow(rng: Rng) -> Story:
    """Let the getter become slow; in half of the cases it is quick again in time."""
    fills = rng.random() < 0.5
    before, rise = int(rng.integers(150, 361)), int(draw_in((60.0, 300.0), rng))
    counts = _load(rng, before + rise + (0 if fills else 60))
    pace = _quick(counts, rng)
    pace[before - 30 :] = pace.max()
    pace[before : before + rise] = rng.uniform(0.2, 0.8) * counts.mean()
    return Story((counts,), (Reader(pace),), draw_in(_FULL if fills else _HARMLESS, rng))


def _job(rng: Rng, *, comes: bool) -> Story:
    """Let a job be late once: it comes before the store is full, or never again."""
    every, runs = 60 * int(rng.integers(1, 3)), int(rng.integers(5, 9))
    lasts, due = max(6, every // 8), every * (runs + 1)
    reach = draw_in((0.72, 0.93) if comes else _FULL, rng)
    rise = round(every * rng.uniform(1.3, 1.8)) if comes else round(every * reach / rng.uniform(0.4, 0.65))
    minutes = due - every + rise + (2 * every if comes else 0)
    counts = _load(rng, minutes) if comes else _steady(rng, minutes)
    pace = np.zeros(minutes)
    quick = 1.5 * every / lasts * counts.max() + counts.max()
    for begin in range(every, due, every):
        pace[begin : begin + lasts] = quick
    if comes:
        begin = due - every + rise
        pace[begin : begin + 2 * lasts] = quick
        pace[begin + every : begin + every + lasts] = quick
    return Story((counts,), (Reader(pace),), reach)


def _never_read(rng: Rng) -> Story:
    """Put to a queue that nobody has ever read, beside one that is read."""
    minutes = int(draw_in((360.0, 840.0), rng))
    counts = [_load(rng, minutes) for _ in range(2)]
    return Story(
        _together(counts, rng), (Reader(np.zeros(minutes)), Reader(_quick(counts[1], rng))), draw_in(_FULL, rng)
    )


def _nobody_puts(rng: Rng) -> Story:
    """Leave messages on a queue that nobody reads and, soon, nobody puts to, beside one with bursts."""
    minutes = int(draw_in((480.0, 840.0), rng))
    left = np.zeros(minutes)
    left[: int(rng.integers(10, 40))] = rng.uniform(2, 4)
    bursts = _bursty(rng, minutes)
    readers = Reader(np.zeros(minutes)), Reader(np.full(minutes, rng.uniform(1.3, 2.0)))
    return Story((left, bursts), readers, draw_in((0.4, 0.85), rng))


def _bursts(rng: Rng) -> Story:
    """Put bursts that the getter works off in time."""
    counts = _bursty(rng, int(draw_in((600.0, 1_200.0), rng)))
    return Story((counts,), (Reader(np.full(counts.size, rng.uniform(1.3, 2.0))),), draw_in(_HARMLESS, rng))


def _nightly(rng: Rng) -> Story:
    """Fill from one to four, empty by a job that has the queue open from half past four only."""
    minutes = 3 * _DAY
    hour = np.arange(minutes) % _DAY / 60
    nights = np.repeat(rng.uniform(0.85, 1.0, 3), _DAY)
    counts = np.where((hour >= 1) & (hour < 4), nights, rng.uniform(0.01, 0.05))
    pace = np.where((hour >= 4.5) & (hour < 6.5), 3.0, 0.0)
    return Story((counts,), (Reader(pace),), draw_in((0.7, 0.93), rng))


def _sawtooth(rng: Rng) -> Story:
    """Empty the store every so often by a getter that has the queue open only then."""
    minutes, every, lasts = int(draw_in((600.0, 1_200.0), rng)), int(rng.integers(30, 91)), int(rng.integers(4, 11))
    counts = _steady(rng, minutes)
    pace = np.where(np.arange(minutes) % every >= every - lasts, 2.0 * every / lasts * counts.max(), 0.0)
    return Story((counts,), (Reader(pace),), draw_in((0.6, 0.9), rng))


def _triggered(rng: Rng) -> Story:
    """Read by a triggered program, which has the queue open for a minute every few minutes."""
    counts = _bursty(rng, int(draw_in((600.0, 1_200.0), rng)))
    every = int(rng.integers(3, 9))
    pace = np.where(np.arange(counts.size) % every == 0, every * rng.uniform(1.5, 2.5), 0.0)
    return Story((counts,), (Reader(pace),), draw_in((0.3, 0.8), rng))


def _together(counts: list[Array], rng: Rng) -> tuple[Array, ...]:
    """Return the counts of several queues with weights of chance, the first of at least a quarter."""
    weights = rng.dirichlet(np.full(len(counts), 4.0))
    weights[0] = max(weights[0], 0.25)
    return tuple(weight * own / own.mean() for weight, own in zip(weights, counts, strict=True))


STORIES: dict[str, tuple[Callable[[Rng], Story], str, str]] = {
    "stopped": (_stopped, FILLS, "the only getter stops for good"),
    "stopped-of-several": (
        lambda rng: _stopped(rng, others=2),
        FILLS,
        "the getter of one of three queues stops for good",
    ),
    "job-missing": (lambda rng: _job(rng, comes=False), FILLS, "a job on a timetable does not come any more"),
    "never-read": (_never_read, FILLS, "nobody has ever read the queue"),
    "hanging": (
        lambda rng: _stopped(rng, hangs=True),
        FILLS,
        "the getter hangs: it has the queue open and gets nothing",
    ),
    "slow": (_slow, EITHER, "the getter keeps up with a part, in half of the cases until it is full"),
    "getter-back": (_back, CALM, "the getter stops, and returns in time"),
    "job-late": (lambda rng: _job(rng, comes=True), CALM, "a job on a timetable comes late, and in time"),
    "nobody-puts": (_nobody_puts, CALM, "messages lie on a queue that nobody reads and nobody puts to"),
    "bursts": (_bursts, CALM, "bursts that are worked off"),
    "nightly": (_nightly, CALM, "a batch by night, emptied by a job in the morning"),
    "sawtooth": (_sawtooth, CALM, "a getter that has the queue open only now and then"),
    "triggered": (_triggered, CALM, "a triggered program has the queue open for a minute every few minutes"),
}
"""Stories by name: what makes one, its class and its sentence. The number of a case determines which, in turn."""
NAMES = tuple(STORIES)
WITHOUT_EVENT = ("bursts", "nightly", "sawtooth", "triggered")
"""Stories in which nothing out of the ordinary happens."""


def recorded_reader(number: int, split: Split, folder: Path) -> Recorded:
    """Return the case of a number as a recording, simulated unless it is there.

    Args:
        number: number of the case, from 0.
        split: its set.
        folder: folder of recordings.
    """
    note = folder / f"readers-{split}-{number:04}-{hash_of([Path(__file__), Path(loads.__file__)])}.json"
    if not note.is_file():
        note.write_bytes(msgspec.json.encode(_record(number, split, note.with_suffix(""))))
    return read_note(note)


def _record(number: int, split: Split, stem: Path) -> Recorded:
    name = NAMES[number % len(NAMES)]
    make, class_, sentence = STORIES[name]
    rng = np.random.default_rng((_TUNING_SEED, number, len(split)))
    for _ in range(_TRIES):
        story = make(rng)
        kinds = ALL_KINDS if len(story.counts) == 1 else (Structure, PageSet)
        drawing = draw_estate("any", kinds, rng)
        scenario = _scenario(story, rng, drawing)
        try:
            text, estate = fit_size(scenario, drawing, draw_in(_EVENTS, rng), number)
        except UsageError:
            continue  # too many or too few events, so another is drawn
        if len(Site.find(estate, drawing.store).queues) < len(story.counts):
            continue
        case = Recorded(
            number=number,
            split=split,
            scenario=name,
            class_=class_,
            store=drawing.store,
            filler=drawing.queue,
            story=f"{sentence}, {scenario.hours:g} hours; a backlog of {story.reach:.0%} of what is held.",
            stem=str(stem),
        )
        return write_case(case, text, scenario, MEASURED)
    raise UsageError(f"no estate was found for {name} {number} in {_TRIES} tries")


def _scenario(story: Story, rng: Rng, drawing: Drawing) -> RealLoad:
    mean = sum(counts.mean() for counts in story.counts)
    lengths: Range = (300.0, 3_000.0) if rng.random() < 0.5 else (3_000.0, 24_000.0)
    return RealLoad(
        store=drawing.store,
        queue=drawing.queue,
        hours=story.counts[0].size / 60,
        length=draw_in(lengths, rng),
        spread=draw_in((0.2, 1.2), rng),
        noise=0.2,
        counts=tuple(counts / mean for counts in story.counts),
        readers=tuple(replace(reader, pace=reader.pace / mean) for reader in story.readers),
        reach=story.reach,
    )


# --- what is known ---------------------------------------------------------------------------------------------------


def write_known(source: Path, target: Path, *, by_levels: bool, facts: bool) -> None:
    """Write the recording of a store that is known by levels only, or by events, with or without the facts.

    Args:
        source: a recording with events and the measurements of MEASURED.
        target: the recording to write.
        by_levels: True: only what is measured is kept; False: levels are not.
        facts: True: who reads is known.
    """
    with RecordingWriter(target) as writer:
        for table in _known(source, by_levels=by_levels, facts=facts):
            writer.write(table)


def _known(source: Path, *, by_levels: bool, facts: bool) -> Iterator[pa.Table]:
    for chunk in open_recording(source):
        table = chunk.table(np.arange(len(chunk)))
        is_measured = pc.equal(table["op"].cast(pa.string()), "MEASURE")
        if by_levels:
            table = table.filter(is_measured)
        elif not facts:
            table = table.filter(pc.invert(is_measured))
        column = table.schema.get_field_index("measured")
        texts = [None if text is None else _part(text, by_levels, facts) for text in table["measured"].to_pylist()]
        yield table.set_column(column, table.schema.field(column), pa.array(texts, table.schema.field(column).type))


def _part(text: str, levels: bool, facts: bool) -> str:
    measured: dict[str, Any] = msgspec.json.decode(text)
    part = {name: value for name, value in measured.items() if (facts if name in {"queues", "asked"} else levels)}
    return msgspec.json.encode(part).decode()
