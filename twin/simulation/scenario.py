"""What a scenario is: a story of demands on one store, with parameters, found by its name."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from twin.errors import UsageError
from twin.estate import Estate
from twin.simulation.arrivals import Flow, Traffic, constant, demands
from twin.simulation.site import ALL_KINDS, Kinds, Site

Array = npt.NDArray[Any]

START = 1_795_132_800_000_000  # 2026-11-20T00:00:00Z in microseconds: fixed, so that recordings can be made again
HOUR = 3600.0

Wants = Literal["any", "rules", "fixed-smds", "two-stores", "no-expansion", "scm", "scm-over-committed"]

T = TypeVar("T", bound="type[Scenario]")


Range = tuple[float, float]
"""From, to. Two integers: whole numbers only."""


def parameter(
    default: float, text: str, *, low: float = 0.0, high: float = math.inf, drawn: tuple[Range, ...] = ()
) -> Any:
    """A field of a scenario that may be set: its default, what it says, the range it must be in.

    drawn: ranges from one of which a random story takes it (twin.simulation.draw); none: it takes the default.
    """
    told = {"default": default, "text": text, "low": low, "high": high, "drawn": drawn}
    return field(default=default, metadata=told)


def lasting(low: float, high: float) -> dict[str, Any]:
    """What a parameter says that is the length of a recording: drawn from so many hours to so many."""
    return {"low": 0.01, "high": 24 * 366, "drawn": ((low, high),)}


@dataclass(frozen=True, kw_only=True)
class Scenario(ABC):
    """A story. Subclasses are frozen dataclasses whose fields are its parameters.

    store: what it is about, by default the first with queues; queue: by default its first one. rate: messages a second
    that are put to it, by default as many as make the story on that store. hard: a straight line does badly on it.
    """

    name: ClassVar[str]
    sentence: ClassVar[str]
    hard: ClassVar[bool] = True

    store: str | None = None
    queue: str | None = None
    rate: float | None = None
    start: int = START  # microseconds since 1970
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
        """What is asked of the estate's queues, in the order of time: EVENT[n], some 65,000 at a time.

        UsageError where the estate has not what the story needs.
        """
        arrivals, flows = self.cast(estate, rng)
        yield from demands(flows, self.start, self.hours * HOUR, arrivals)

    @abstractmethod
    def cast(self, estate: Estate, rng: np.random.Generator) -> tuple[np.random.Generator, Sequence[Flow]]:
        """Who calls, and the random numbers that their calls come from. UsageError as `demands`."""

    @property
    def traffic(self) -> Traffic:
        """What the story's messages look like."""
        return Traffic(length=constant(self.length), spread=self.spread, noise=self.noise, wander=self.wander)

    @property
    def told_after(self) -> float:
        """Hours after which the story is told: no shorter recording shows its end."""
        return 0.0


class StoreScenario(Scenario):
    """A story about one store that holds messages.

    plays_on: kinds of stores; wants: the estate that makes its story (twin.simulation.case_estate).
    """

    plays_on: ClassVar[Kinds] = ALL_KINDS
    wants: ClassVar[Wants] = "any"

    def cast(self, estate: Estate, rng: np.random.Generator) -> tuple[np.random.Generator, Sequence[Flow]]:
        """Who calls, and the random numbers that their calls come from. UsageError as `demands`."""
        trial, arrivals, chance = rng.spawn(3)
        site = Site.of(estate, self.store, self.queue, chance, self.plays_on)
        rate = self.default_rate(site, trial) if self.rate is None else self.rate
        return arrivals, self.flows(site, rate)

    @abstractmethod
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        """Messages a second that make the story on that store."""

    @abstractmethod
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        """Who calls, at that rate of the story."""


SCENARIOS: dict[str, type[Scenario]] = {}


def scenario(kind: T) -> T:
    """Enters a class of scenarios under its name."""
    SCENARIOS[kind.name] = kind
    return kind


def parameters(kind: type[Scenario]) -> Mapping[str, tuple[float, str]]:
    """The numbers of a scenario that may be set: name -> (default, what it says)."""
    return {one.name: (one.metadata["default"], one.metadata["text"]) for one in fields(kind) if one.metadata}


def make_scenario(
    name: str,
    *,
    store: str | None = None,
    queue: str | None = None,
    rate: float | None = None,
    start: int = START,
    settings: Mapping[str, float | str] | None = None,
) -> Scenario:
    """The scenario of that name. settings: parameter -> number, or its text.

    UsageError, naming what would be right: no such scenario, no such parameter, not a number, out of range.
    """
    kind = SCENARIOS.get(name)
    if kind is None:
        raise UsageError(f"there is no scenario {name}; right: {', '.join(SCENARIOS)}")
    if rate is not None and not 0 < rate < math.inf:
        raise UsageError(f"the rate is {rate:g}; right: messages a second, more than 0")
    values = {key: _number(kind, key, value) for key, value in (settings or {}).items()}
    return kind(store=store, queue=queue, rate=rate, start=start, **values)


def _number(kind: type[Scenario], key: str, value: float | str) -> float:
    known = {one.name: one for one in fields(kind) if one.metadata}
    if key not in known:
        raise UsageError(f"{kind.name} has no parameter {key}; right: {', '.join(known)}")
    one = known[key]
    low, high = one.metadata["low"], one.metadata["high"]
    right = f"a number from {low:g}" + (f" to {high:g}" if high < math.inf else "")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not low <= number <= high or math.isinf(number):
        raise UsageError(f"{key} of {kind.name} is {value}; right: {right}")
    return number
