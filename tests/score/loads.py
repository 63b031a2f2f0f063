"""Recordings of real loads: a day of counted requests is put into a structure, and a getter keeps a constant pace.

A load is a CSV file with a header and rows of time and count, five minutes apart, such as those of the Numenta Anomaly
Benchmark. The pace of the getter is the one at which the backlog of the day reaches a share of what the structure
holds: below 1 nothing fills, above 1 puts are refused.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from typing_extensions import override

from tests.score.recordings import Recorded
from twin.estate import load_estate
from twin.recordings.files import RecordingWriter
from twin.simulation.arrivals import Flow, constant, steps
from twin.simulation.run import play
from twin.simulation.scenario import HOUR, StoreScenario
from twin.simulation.site import Site
from twin.state.arrays import Array

SHARES = (0.6, 0.85, 1.3)  # of the structure's capacity that the backlog reaches
_STEP_S = 300.0  # of the counts
_DAY = round(24 * HOUR / _STEP_S)  # counts
_PEAK_AT = 2 / 3  # of the day: when the highest count comes
_CAPACITIES = 4.0  # that are put in the day
_STORE = "QSG1/APP1"
_ESTATE = f"""schema = 1

[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]

[structure."{_STORE}"]
size = "64M"
cf_level = 5
ds_block = "64K"

[smds."{_STORE}/QM01"]
size = "32M"
max_size = "64M"

[smds."{_STORE}/QM02"]
size = "32M"
max_size = "64M"

[queue."QSG1/ORDERS"]
structure = "APP1"
"""


@dataclass(frozen=True, kw_only=True)
class RealLoad(StoreScenario):
    """A day of counted requests.

    Attributes:
        counts: Requests per five minutes.
        share: Highest backlog of the day, as a share of what the store holds.
    """

    name = "real-load"
    sentence = "Real counts of requests are put; the getter keeps a constant pace."

    counts: tuple[float, ...] = ()
    share: float = 0.5

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return _CAPACITIES * site.capacity(self.traffic, rng).messages / (self.hours * HOUR)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        counts = np.array(self.counts)
        puts = steps(np.arange(counts.size) * _STEP_S, counts * rate / counts.mean())
        capacity = rate * self.hours * HOUR / _CAPACITIES
        pace = pace_of(counts / counts.sum() * _CAPACITIES, self.share) * capacity / _STEP_S
        return [*site.puts(puts, self.traffic), *site.gets(constant(pace), self.traffic)]


def pace_of(counts: Array, backlog: float) -> float:
    """Return the pace per step at which the highest backlog of f8[n] counts is `backlog`, by bisection."""
    low, high = 0.0, float(counts.max())
    for _ in range(60):
        middle = (low + high) / 2
        if highest_backlog(counts, middle) > backlog:
            low = middle
        else:
            high = middle
    return high


def highest_backlog(counts: Array, pace: float) -> float:
    """Return the highest backlog of f8[n] counts that are worked off at a pace per step."""
    backlog = highest = 0.0
    for count in counts.tolist():
        backlog = max(0.0, backlog + count - pace)
        highest = max(highest, backlog)
    return highest


def day_around_peak(path: Path) -> tuple[float, ...]:
    """Return the counts of the day around the highest one of a file."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        next(rows)
        counts = [max(0.0, float(row[1])) for row in rows]
    first = int(np.argmax(counts)) - round(_DAY * _PEAK_AT)
    first = max(0, min(first, len(counts) - _DAY))
    return tuple(counts[first : first + _DAY])


def recorded_load(path: Path, share: float, number: int, folder: Path) -> Recorded:
    """Return the recording of a load, simulated unless it is there."""
    digest = hashlib.blake2b(path.read_bytes() + _ESTATE.encode(), digest_size=6).hexdigest()
    load = Recorded(
        number=number,
        split="test",
        scenario=f"{path.stem}, {share:.0%}",
        class_="hard",
        store=_STORE,
        filler="ORDERS",
        story=f"A day of {path.stem}; the backlog reaches {share:.0%} of what the structure holds.",
        stem=str(folder / f"load-{digest}-{share:g}"),
    )
    load.estate.write_text(_ESTATE, encoding="utf-8")
    if not load.recording.is_file():
        day = RealLoad(counts=day_around_peak(path), share=share, hours=24.0, store=_STORE)
        unfinished = load.recording.with_suffix(".part.arrow")
        with RecordingWriter(unfinished) as writer:
            for table in play(day, load_estate(load.estate), seed=number):
                writer.write(table)
        unfinished.rename(load.recording)
    return load
