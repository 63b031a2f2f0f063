"""A scenario played on an estate: from demands to a recording of what happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from twin.estate import Estate
from twin.recordings import RecordingWriter, suffix_of
from twin.simulation.scenario import Scenario
from twin.simulation.system import RealSystem, StoreOutcome, tag_of
from twin.warm import warm

Array = npt.NDArray[Any]
Progress = Callable[[int, int], None]
"""Told after every piece: events so far, event time (microseconds since 1970)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a recording holds. first, last: event times, microseconds since 1970; stores: those with traffic."""

    events: int
    first: int
    last: int
    stores: Mapping[str, StoreOutcome]

    @property
    def first_full(self) -> tuple[int, str] | None:
        """When and where the first put got 2192; None: none did."""
        found = [(one.first_full, name) for name, one in self.stores.items() if one.first_full is not None]
        return min(found, default=None)

    @property
    def fullest(self) -> str | None:
        """The store with the highest usage of entries or elements."""
        return max(self.stores, key=lambda name: self.stores[name].peak_pct, default=None)


def play(scenario: Scenario, estate: Estate, seed: int = 0) -> Iterator[pa.Table]:
    """What happens, in the order of time, as tables of ARROW_SCHEMA: the same bytes for the same seed.

    UsageError where the estate has not what the scenario needs.
    """
    system = RealSystem(estate, _tag(scenario, seed))
    return (system.serve(demands) for demands in _demands(scenario, estate, seed))


def simulate(
    scenario: Scenario, estate: Estate, recording: str | Path, seed: int = 0, progress: Progress | None = None
) -> Outcome:
    """Play a scenario into a recording. Memory does not grow with its length, but for a byte or two a put.

    The same scenario, estate and seed give the same bytes. UsageError: as `play`; a recording that cannot be written.
    """
    return serve_into(recording, estate, _tag(scenario, seed), _demands(scenario, estate, seed), progress)


def serve_into(
    recording: str | Path, estate: Estate, tag: int, demands: Iterable[Array], progress: Progress | None = None
) -> Outcome:
    """Let the real system's stand-in answer demands (see RealSystem) and write what happened.

    tag: a number that goes into the message ids. What was written of a recording that fails is removed.
    """
    path = Path(recording)
    suffix_of(path)
    system = RealSystem(estate, tag)
    tables = (system.serve(piece) for piece in demands)
    table = next(tables, None)  # before there is a file: what the estate lacks is told by now
    first = last = 0
    try:
        with RecordingWriter(path) as writer:
            while table is not None:
                if table.num_rows:
                    times = table.column("time").cast(pa.int64())
                    last = times[-1].as_py()
                    first = first or times[0].as_py()
                    writer.write(table)
                if progress is not None:
                    progress(writer.events, last)
                table = next(tables, None)
            events = writer.events
    except BaseException:
        if path.is_file():
            path.unlink()
        raise
    return Outcome(events, first, last, system.outcomes)


def _demands(scenario: Scenario, estate: Estate, seed: int) -> Iterator[Array]:
    warm()
    yield from scenario.demands(estate, np.random.default_rng(seed))


def _tag(scenario: Scenario, seed: int) -> int:
    return tag_of(scenario.name, seed)
