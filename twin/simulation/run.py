"""Playing a scenario on an estate: from demands to a recording of the events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from twin.estate import Estate, as_estate
from twin.recordings.files import RecordingWriter, suffix_of
from twin.simulation.arrivals import demands as draw_demands
from twin.simulation.measuring import MeasuredSystem, Measuring
from twin.simulation.scenario import HOUR, Scenario, make_scenario
from twin.simulation.system import RealSystem, StoreOutcome, tag_of
from twin.stores.warm_up import warm

Array = npt.NDArray[Any]
Progress = Callable[[int, int], None]
"""Called after every piece with the number of events so far and the event time, microseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a simulation.

    Attributes:
        events: their number.
        first, last: time of the first and the last event, microseconds since 1970; 0 without events.
        stores: what happened in the stores with traffic, by name.
    """

    events: int
    first: int
    last: int
    stores: Mapping[str, StoreOutcome]

    @property
    def first_full(self) -> tuple[int, str] | None:
        """(time, store) of the first put with 2192, or None."""
        outcomes = self.stores.items()
        return min(((o.first_full, name) for name, o in outcomes if o.first_full is not None), default=None)

    @property
    def fullest(self) -> str | None:
        """Store with the highest usage of entries or elements."""
        return max(self.stores, key=lambda name: self.stores[name].peak_pct, default=None)


def play(
    scenario: Scenario, estate: Estate, seed: int = 0, *, measuring: Measuring | None = None
) -> Iterator[pa.Table]:
    """Play a scenario and yield its events in order of time as tables of ARROW_SCHEMA, the same for the same seed. What
    is measured meanwhile changes no other event. UsageError: the estate lacks something that the scenario needs.
    """
    return _serve(RealSystem(estate, _tag(scenario, seed)), scenario, estate, seed, measuring)


def simulate(
    scenario: Scenario | str,
    estate: Estate | str | Path,
    recording: str | Path,
    seed: int = 0,
    progress: Progress | None = None,
    *,
    measuring: Measuring | None = None,
) -> Outcome:
    """Play a scenario into a recording. The same scenario, estate and seed give the same bytes.

    Memory grows with the length of the recording only by one or two bytes per put.

    Args:
        scenario: the scenario, or the name of one with its defaults.
        estate: the estate, or its file.
        recording: the file to write: .ndjson, .ndjson.zst or .arrow.
        seed: seed of the random numbers.
        progress: called after every piece.
        measuring: what is measured meanwhile; None: nothing.

    Raises:
        UsageError: no scenario of that name, the estate is wrong or lacks something that the scenario needs, or the
            recording cannot be written.

    Examples:
        >>> scenario = twin.make_scenario("burst", settings={"hours": 0.5})
        >>> outcome = twin.simulate(scenario, twin.demo_estate(), "monday.ndjson", seed=7)
        >>> outcome.stores["QSG1/APP1"].refused
        0
    """
    story = make_scenario(scenario) if isinstance(scenario, str) else scenario
    described = as_estate(estate)
    suffix_of(recording)
    system = RealSystem(described, _tag(story, seed))
    return _write(recording, system, _serve(system, story, described, seed, measuring), progress)


def serve_into(
    recording: str | Path, estate: Estate, tag: int, demands: Iterable[Array], progress: Progress | None = None
) -> Outcome:
    """Serve demands (see `RealSystem`) and write the events into a recording; on failure the previous content stays."""
    suffix_of(recording)
    system = RealSystem(estate, tag)
    return _write(recording, system, (system.serve(piece) for piece in demands), progress)


def _serve(
    system: RealSystem, scenario: Scenario, estate: Estate, seed: int, measuring: Measuring | None
) -> Iterator[pa.Table]:
    warm()
    rng = np.random.default_rng(seed)
    if measuring is None:
        yield from map(system.serve, scenario.demands(estate, rng))
        return
    arrivals, flows = scenario.cast(estate, rng)
    seconds = scenario.hours * HOUR
    measured = MeasuredSystem(system, estate, flows, scenario.start, seconds, measuring)
    yield from measured.serve(draw_demands(flows, scenario.start, seconds, arrivals))


def _write(recording: str | Path, system: RealSystem, tables: Iterator[pa.Table], progress: Progress | None) -> Outcome:
    table = next(tables, None)  # an error about the estate comes before there is a file
    first = last = 0
    with RecordingWriter(recording) as writer:
        while table is not None:
            if table.num_rows:
                times = table.column("time").cast(pa.int64())
                last = times[-1].as_py()
                first = first or times[0].as_py()
                writer.write(table)
            if progress is not None:
                progress(writer.events, last)
            table = next(tables, None)
    return Outcome(writer.events, first, last, system.outcomes)


def _tag(scenario: Scenario, seed: int) -> int:
    return tag_of(scenario.name, seed)
