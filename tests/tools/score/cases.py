"""Cases of the scorecard: random stories by number, in two sets that share no random numbers.

`draw_case(7, "tuning")` is the same on every machine: a scenario with random parameters, an estate for it, and the seed
of its recording. The truth is the outcome of the simulated system, independent of any forecast. Consecutive numbers
take the scenarios in turn.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from kernels.layout import PUT
from tests.tools.score.case_estate import LARGEST, SMALLEST, Drawing, draw_estate
from tests.tools.score.scenarios import HELD_OUT, STEADY, STORIES, WANTS
from twin.base.errors import UsageError
from twin.estate import Estate, load_estate
from twin.simulation.scenario import HOUR, Range, Scenario, StoreScenario, parameters, play

Split = Literal["tuning", "test"]
Class = Literal["steady", "hard"]

_SPLITS: tuple[Split, ...] = ("tuning", "test")
EVENTS = (25_000.0, 140_000.0)  # approximate number of a case
_MIN_EVENTS, _MAX_EVENTS = 15_000.0, 220_000.0  # beyond them another case is drawn
_EVENTS_PER_PUT = 2.2  # with its get and the ends of units of work
_LENGTH_RATIO = (1.1, 1.4)  # of the recording and its story
_HARD_IN_TURN = 2  # hard stories per steady one
_TRIES = 30  # to draw a story that its estate can play
_WIDE_RATIO = 4.0  # a range whose ends differ by this factor is drawn evenly in the logarithm
_FITS = 4  # steps to the size that gives the number of events


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Recording of the scorecard, before it is simulated."""

    number: int
    split: Split
    scenario: Scenario
    class_: Class  # steady if a straight line predicts it well
    estate: Estate
    estate_text: str  # TOML
    seed: int  # of `simulate` and `play`
    store: str  # of the story
    filler: str  # queue that fills the store, if it fills
    story: str  # sentence with the parameters

    @property
    def name(self) -> str:
        """Name like "test-0007-burst"."""
        return f"{self.split}-{self.number:04}-{self.scenario.name}"

    def play(self) -> Iterator[pa.Table]:
        """Play the scenario; see `twin.simulation.play`."""
        return play(self.scenario, self.estate, self.seed)


def draw_case(number: int, split: Split) -> Case:
    """Draw the case of a number from 0. Raise UsageError for a negative number or an unknown split."""
    if split not in _SPLITS:
        raise UsageError(f"there are no cases of {split}; expected: {' or '.join(_SPLITS)}")
    if number < 0:
        raise UsageError(f"the case is {number}; expected: 0 or more")
    seed = len(_SPLITS) * number + _SPLITS.index(split)  # no two splits share one
    kind = scenario_of(number, split)
    rng = np.random.default_rng((0x6D7174, seed))
    for _ in range(_TRIES):
        drawing = draw_estate(WANTS.get(kind.name, "any"), kind.plays_on, rng)
        scenario = _draw_scenario(kind, drawing, rng)
        try:
            text, estate = fit_size(scenario, drawing, draw_in(EVENTS, rng), seed)
        except UsageError:
            continue  # this estate lacks something that the story needs, so another is drawn
        return Case(
            number=number,
            split=split,
            scenario=scenario,
            class_="steady" if kind.name in STEADY else "hard",
            estate=replace(estate, source=f"case {split} {number}"),
            estate_text=text,
            seed=seed,
            store=drawing.store,
            filler=drawing.queue,
            story=_describe(scenario),
        )
    raise UsageError(f"no estate was found for {kind.name} in {_TRIES} tries; expected: ranges that can be played")


def scenario_of(number: int, split: Split) -> type[StoreScenario]:
    """Return the scenario of a case: two hard ones, a steady one, and so on; no held-out one for tuning."""
    kinds = [kind for name, kind in STORIES.items() if split == "test" or name not in HELD_OUT]
    hard = [kind for kind in kinds if kind.name not in STEADY]
    steady = [kind for kind in kinds if kind.name in STEADY]
    turn, place = divmod(number, _HARD_IN_TURN + 1)
    if place == _HARD_IN_TURN:
        return steady[turn % len(steady)]
    return hard[(turn * _HARD_IN_TURN + place) % len(hard)]


def _draw_scenario(kind: type[StoreScenario], drawing: Drawing, rng: np.random.Generator) -> Scenario:
    settings: dict[str, Any] = dict(draw_settings(kind, rng))
    scenario = kind(store=drawing.store, queue=drawing.queue, **settings)
    settings["hours"] = max(scenario.hours, float(f"{scenario.story_hours * draw_in(_LENGTH_RATIO, rng):.4g}"), 2.0)
    return kind(store=drawing.store, queue=drawing.queue, **settings)


def fit_size(scenario: Scenario, drawing: Drawing, wanted_events: float, seed: int) -> tuple[str, Estate]:
    """Return text and estate with a store of a size that gives about `wanted_events` events.

    Raises:
        UsageError: no size does.
    """
    size = 4 * SMALLEST
    for _ in range(_FITS):
        text = drawing.text(size)
        estate = _load(text)
        events = _events_of(scenario, estate, seed)
        step = SMALLEST // 4
        better = int(np.clip(round(size * wanted_events / events / step) * step, SMALLEST, LARGEST))
        if better == size or 0.8 < wanted_events / events < 1.25:
            break
        size = better
    if not _MIN_EVENTS < events < _MAX_EVENTS:
        raise UsageError(f"{scenario.name} brings about {events:.0f} events; expected: another draw")
    return text, estate


def _events_of(scenario: Scenario, estate: Estate, seed: int) -> float:
    """Return the approximate number of events."""
    _, flows = scenario.cast(estate, np.random.default_rng(seed))
    middles = np.arange(30.0, scenario.hours * HOUR, 60.0)
    puts = sum(float(np.maximum(flow.rate(middles), 0).sum()) * 60 for flow in flows if flow.op == PUT)
    return max(1.0, _EVENTS_PER_PUT * puts)


def _load(text: str) -> Estate:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "estate.toml"
        path.write_text(text, encoding="utf-8")
        return load_estate(path)


def _describe(scenario: Scenario) -> str:
    values = ", ".join(f"{name} {getattr(scenario, name):g}" for name in parameters(type(scenario)))
    return f"{scenario.sentence} {scenario.queue} of {scenario.store}: {values}."


def draw_settings(kind: type[Scenario], rng: np.random.Generator) -> Mapping[str, float]:
    """Draw a value for every parameter with ranges, by name. Its ranges are equally likely."""
    settings: dict[str, float] = {}
    for parameter in fields(kind):
        ranges = parameter.metadata.get("drawn", ())
        if ranges:
            settings[parameter.name] = float(draw_in(ranges[int(rng.integers(len(ranges)))], rng))
    return settings


def draw_in(span: Range, rng: np.random.Generator) -> float:
    """Draw a number of a range, with four digits, so that a command line can repeat it."""
    low, high = span
    if isinstance(low, int) and isinstance(high, int):
        return int(rng.integers(low, high + 1))
    place = rng.random()
    value = low * (high / low) ** place if low > 0 and high / low >= _WIDE_RATIO else low + (high - low) * place
    return float(f"{value:.4g}")
