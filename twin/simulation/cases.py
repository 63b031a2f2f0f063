"""Cases for the scorecard: stories without end, each drawn from its number, in two sets that share no random number.

`draw_case(7, "tuning")` is the same on every machine: a scenario with random parameters, an estate made for it, the
seed that its recording is simulated from. What truly happens is what the simulated system answers; nothing of a
forecast is known here. The numbers take the scenarios in turn, so that any stretch of numbers has all of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from kernels.layout import PUT
from twin.errors import UsageError
from twin.estate import Estate, load_estate
from twin.simulation.case_estate import LARGEST, SMALLEST, Drawing, draw_estate
from twin.simulation.draw import draw_in, draw_settings
from twin.simulation.run import play
from twin.simulation.scenario import HOUR, SCENARIOS, Scenario, StoreScenario, make_scenario, parameters

Split = Literal["tuning", "test"]
Class = Literal["steady", "hard"]

_SPLITS: tuple[Split, ...] = ("tuning", "test")
_EVENTS = (25_000.0, 140_000.0)  # of a case, about
_EVENTS_AT_LEAST, _EVENTS_AT_MOST = 15_000.0, 220_000.0  # else another case is drawn
_EVENTS_A_PUT = 2.2  # its get, and the ends of units of work
_LONGER = (1.1, 1.4)  # than the story needs
_HARD_IN_TURN = 2  # hard stories for each steady one
_TRIES = 30  # to draw a story that its estate can play
_FITS = 4  # steps to the size that makes the events as many as wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One recording of the scorecard, before it is simulated.

    class_: whether a straight line does well on it. estate_text: the estate as TOML. store: what the story is about;
    filler: the queue that fills it where it is filled. story: in words, with the numbers. seed: of `simulate`, `play`.
    """

    number: int
    split: Split
    scenario: Scenario
    class_: Class
    estate: Estate
    estate_text: str
    seed: int
    store: str
    filler: str
    story: str

    @property
    def name(self) -> str:
        """Like "test-0007-burst"."""
        return f"{self.split}-{self.number:04}-{self.scenario.name}"

    def play(self) -> Iterator[pa.Table]:
        """What happens, as `twin.simulation.play` gives it."""
        return play(self.scenario, self.estate, self.seed)


def draw_case(number: int, split: Split) -> Case:
    """The case of that number, from 0. UsageError: the number is negative, or there is no such split."""
    if split not in _SPLITS:
        raise UsageError(f"there are no cases of {split}; right: {' or '.join(_SPLITS)}")
    if number < 0:
        raise UsageError(f"the case is {number}; right: 0 or more")
    seed = len(_SPLITS) * number + _SPLITS.index(split)  # no two splits share one
    kind = _in_turn(number)
    rng = np.random.default_rng((0x6D7174, seed))
    for _ in range(_TRIES):
        drawing = draw_estate(kind.wants, kind.plays_on, rng)
        scenario = _draw_scenario(kind, drawing, rng)
        try:
            text, estate = _sized(scenario, drawing, draw_in(_EVENTS, rng), seed)
        except UsageError:
            continue  # this estate has not what the story needs: another is drawn
        return Case(
            number=number,
            split=split,
            scenario=scenario,
            class_="hard" if kind.hard else "steady",
            estate=replace(estate, source=f"case {split} {number}"),
            estate_text=text,
            seed=seed,
            store=drawing.store,
            filler=drawing.queue,
            story=_told(scenario),
        )
    raise UsageError(f"no estate was found for {kind.name} in {_TRIES} tries; right: ranges that can be played")


def _in_turn(number: int) -> type[StoreScenario]:
    """Which scenario a number has: two hard ones, a steady one, and so on."""
    kinds = [kind for kind in SCENARIOS.values() if issubclass(kind, StoreScenario)]  # storage that may fill
    hard = [kind for kind in kinds if kind.hard]
    steady = [kind for kind in kinds if not kind.hard]
    turn, place = divmod(number, _HARD_IN_TURN + 1)
    if place == _HARD_IN_TURN:
        return steady[turn % len(steady)]
    return hard[(turn * _HARD_IN_TURN + place) % len(hard)]


def _draw_scenario(kind: type[Scenario], drawing: Drawing, rng: np.random.Generator) -> Scenario:
    settings = dict(draw_settings(kind, rng))
    scenario = make_scenario(kind.name, store=drawing.store, queue=drawing.queue, settings=settings)
    settings["hours"] = max(scenario.hours, float(f"{scenario.told_after * draw_in(_LONGER, rng):.4g}"), 2.0)
    return make_scenario(kind.name, store=drawing.store, queue=drawing.queue, settings=settings)


def _sized(scenario: Scenario, drawing: Drawing, wanted: float, seed: int) -> tuple[str, Estate]:
    """The estate with the store of the size that brings about as many events as wanted, and its text.

    UsageError where no size brings nearly as many.
    """
    size = 4 * SMALLEST
    for _ in range(_FITS):
        text = drawing.text(size)
        estate = _loaded(text)
        events = _events_of(scenario, estate, seed)
        step = SMALLEST // 4
        better = int(np.clip(round(size * wanted / events / step) * step, SMALLEST, LARGEST))
        if better == size or 0.8 < wanted / events < 1.25:
            break
        size = better
    if not _EVENTS_AT_LEAST < events < _EVENTS_AT_MOST:
        raise UsageError(f"{scenario.name} brings about {events:.0f} events; right: another draw")
    return text, estate


def _events_of(scenario: Scenario, estate: Estate, seed: int) -> float:
    """How many events there will be, about."""
    _, flows = scenario.cast(estate, np.random.default_rng(seed))
    middles = np.arange(30.0, scenario.hours * HOUR, 60.0)
    puts = sum(float(np.maximum(flow.rate(middles), 0).sum()) * 60 for flow in flows if flow.op == PUT)
    return max(1.0, _EVENTS_A_PUT * puts)


def _loaded(text: str) -> Estate:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "estate.toml"
        path.write_text(text, encoding="utf-8")
        return load_estate(path)


def _told(scenario: Scenario) -> str:
    values = ", ".join(f"{name} {getattr(scenario, name):g}" for name in parameters(type(scenario)))
    return f"{scenario.sentence} {scenario.queue} of {scenario.store}: {values}."
