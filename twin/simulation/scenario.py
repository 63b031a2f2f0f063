"""Scenarios: stories of demands on a store, with parameters, registered by name, and played on an estate.

Playing one leads from demands to a recording of the events.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from twin.base import hooks
from twin.base.errors import UsageError
from twin.base.hooks import WithAdded
from twin.base.units import EventTime, event_us
from twin.estate import Estate, as_estate
from twin.estate.errors import did_you_mean
from twin.recordings.files import RecordingWriter, suffix_of
from twin.simulation.arrivals import Curve, Flow, Traffic, constant, demands
from twin.simulation.arrivals import demands as draw_demands
from twin.simulation.site import ALL_KINDS, Kinds, Site
from twin.simulation.system import MeasuredSystem, Measuring, RealSystem, StoreOutcome, tag_of
from twin.stores.warm_up import warm

Array = npt.NDArray[Any]

START = 1_795_132_800_000_000  # 2026-11-20T00:00:00Z in microseconds, fixed so that recordings are reproducible
HOUR = 3600.0
_MAX_RATE = 1_000_000  # puts per second

T = TypeVar("T", bound="type[Scenario]")


Range = tuple[float, float]
"""(from, to); with two integers, whole numbers only."""


def parameter(
    default: float, text: str, *, low: float = 0.0, high: float = math.inf, drawn: tuple[Range, ...] = ()
) -> Any:
    """Return a field for a parameter of a scenario.

    Args:
        default: its default.
        text: its description.
        low: its minimum.
        high: its maximum.
        drawn: ranges for random stories (`tests.tools.score.cases`); without one they use the default.
    """
    metadata = {"default": default, "text": text, "low": low, "high": high, "drawn": drawn}
    return field(default=default, metadata=metadata)


def lasting(low: float, high: float) -> dict[str, Any]:
    """Return the bounds of a parameter that is the length of a recording, drawn from `low` to `high` hours."""
    return {"low": 0.01, "high": 24 * 366, "drawn": ((low, high),)}


@dataclass(frozen=True, kw_only=True)
class Scenario(ABC):
    """Scenario. Subclasses are frozen dataclasses whose fields are its parameters.

    Attributes:
        name: its name, by which `make_scenario` finds it.
        sentence: what happens in it.
        store: name of the store; None: the first one with queues.
        queue: name of the queue; None: the first one of the store.
        rate: messages/s put; None: the rate that plays the story on the store.
        start: event time of its beginning, microseconds since 1970.
        hours: length of the recording, hours of event time.
        length: mean bytes of a message.
        spread: standard deviation of the logarithm of the lengths.
        noise: variation of the rates in 10 seconds; 0: a Poisson process.
        wander: drift of the rates over tens of minutes.
    """

    name: ClassVar[str]
    sentence: ClassVar[str]
    _phases: ClassVar[tuple[str, ...]] = ()  # parameters, hours each, half an hour before the end of the story

    store: str | None = None
    queue: str | None = None
    rate: float | None = None
    start: int = START
    hours: float = parameter(4.0, "length of the recording, hours of event time", **lasting(2.0, 8.0))
    length: float = parameter(
        4_000.0, "mean bytes of a message", low=64, high=1_000_000, drawn=((300.0, 3_000.0), (3_000.0, 24_000.0))
    )
    spread: float = parameter(
        1.0, "of the lengths: standard deviation of their logarithm", high=3, drawn=((0.2, 0.6), (0.6, 1.2))
    )
    noise: float = parameter(
        0.3, "of the rates: how much they vary in 10 seconds; 0: a Poisson process", high=3, drawn=((0, 0), (0.2, 0.8))
    )
    wander: float = parameter(
        0.0, "of the rates: how much they drift over tens of minutes", high=3, drawn=((0, 0), (0.05, 0.2))
    )

    def demands(self, estate: Estate, rng: np.random.Generator) -> Iterator[Array]:
        """Yield the demands on the queues of an estate in order of time, EVENT[n], about 65,000 at a time.

        Raises:
            UsageError: the estate lacks something that the story needs.
        """
        arrivals, flows = self.cast(estate, rng)
        yield from demands(flows, self.start, self.hours * HOUR, arrivals)

    @abstractmethod
    def cast(self, estate: Estate, rng: np.random.Generator) -> tuple[np.random.Generator, Sequence[Flow]]:
        """Return the random numbers of the calls and the flows. Raise UsageError as `demands`."""

    @property
    def traffic(self) -> Traffic:
        """Properties of the messages of the story."""
        return Traffic(length=constant(self.length), spread=self.spread, noise=self.noise, wander=self.wander)

    @property
    def story_hours(self) -> float:
        """Hours until the end of the story: a shorter recording does not show it."""
        return sum(getattr(self, name) for name in self._phases) + 0.5 if self._phases else 0.0


class StoreScenario(Scenario):
    """Scenario about one store that holds messages."""

    plays_on: ClassVar[Kinds] = ALL_KINDS  # kinds of stores

    def cast(self, estate: Estate, rng: np.random.Generator) -> tuple[np.random.Generator, Sequence[Flow]]:
        """Return the random numbers of the calls and the flows. Raise UsageError as `demands`."""
        trial, arrivals, chance = rng.spawn(3)
        site = Site.find(estate, self.store, self.queue, chance, self.plays_on)
        rate = self.default_rate(site, trial) if self.rate is None else self.rate
        return arrivals, self.flows(site, rate)

    @abstractmethod
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        """Return the messages/s that play the story on a store."""

    @abstractmethod
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        """Return the flows at a rate of the story, messages/s."""

    def _served(self, site: Site, rate: float, puts: Curve, gets: Curve, beside: Traffic | None = None) -> list[Flow]:
        return [
            *site.puts(puts, self.traffic),
            *site.gets(gets, self.traffic),
            *site.beside(rate, self.traffic if beside is None else beside),
        ]


_own: dict[str, type[Scenario]] = {}


def _check(added: type[Scenario]) -> str:
    is_right = isinstance(added, type) and issubclass(added, Scenario) and hasattr(added, "sentence")
    return "" if is_right else "a class of twin.simulation.Scenario with a name and a sentence"


SCENARIOS: WithAdded[type[Scenario]] = WithAdded(hooks.SCENARIOS, _own, _check)


def scenario(kind: T) -> T:
    """Register a class of scenarios under its name."""
    _own[kind.name] = kind
    return kind


def parameters(kind: type[Scenario]) -> Mapping[str, tuple[float, str]]:
    """Return (default, description) of the parameters of a scenario by name."""
    return {item.name: (item.metadata["default"], item.metadata["text"]) for item in fields(kind) if item.metadata}


def scenarios() -> dict[str, str]:
    """Return a sentence about each scenario, by its name.

    Examples:
        >>> twin.scenarios()["getter-outage"]
        'Steady puts and gets; the getter stops for two hours, then drains what has piled up.'
    """
    return {name: kind.sentence for name, kind in SCENARIOS.items()}


def make_scenario(
    name: str,
    *,
    store: str | None = None,
    queue: str | None = None,
    rate: float | None = None,
    start: EventTime = START,
    settings: Mapping[str, float | str] | None = None,
) -> Scenario:
    """Make a scenario.

    Args:
        name: its name.
        store: store it is about; None: its default.
        queue: queue it is about; None: its default.
        rate: messages/s put; None: its default.
        start: event time of its beginning: RFC 3339, microseconds since 1970, or a datetime with a zone.
        settings: values of parameters by name, as numbers or text.

    Raises:
        UsageError: unknown scenario or parameter, not a number, or out of range.
    """
    kind = SCENARIOS.get(name)
    if kind is None:
        raise UsageError(f"there is no scenario {name}{_scenario_hint(name)}")
    if rate is not None and not 0 < rate <= _MAX_RATE:
        raise UsageError(f"the rate is {rate:g}; expected: messages per second, more than 0, at most {_MAX_RATE:,}")
    try:
        begin = event_us(start)
    except ValueError as error:
        raise UsageError(f"start {error}") from None
    values = {key: _number(kind, key, value) for key, value in (settings or {}).items()}
    return kind(store=store, queue=queue, rate=rate, start=begin, **values)


def _scenario_hint(name: str) -> str:
    return did_you_mean(name, SCENARIOS, 0.7) or f"; expected: {', '.join(SCENARIOS)}"


def _number(kind: type[Scenario], key: str, value: float | str) -> float:
    items = {item.name: item for item in fields(kind) if item.metadata}
    if key not in items:
        raise UsageError(f"{kind.name} has no parameter {key}; expected: {', '.join(items)}")
    item = items[key]
    low, high = item.metadata["low"], item.metadata["high"]
    expected = f"a number from {low:g}" + (f" to {high:g}" if high < math.inf else "")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not low <= number <= high or math.isinf(number):
        raise UsageError(f"{key} of {kind.name} is {value}; expected: {expected}")
    return number


# --- playing a scenario -----------------------------------------------------------------------------------------------

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
