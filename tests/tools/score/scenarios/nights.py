"""Scenarios by time of day: similar nights and days with one exception."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from twin.base.errors import UsageError
from twin.simulation.arrivals import Array, Flow, constant
from twin.simulation.scenario import HOUR, StoreScenario, lasting, parameter
from twin.simulation.site import Site


@dataclass(frozen=True, kw_only=True)
class NightlyBatch(StoreScenario):
    """Every night up to nine tenths, every morning down: no reason to wake anybody, but for the one night that is."""

    name = "nightly-batch"
    sentence = "A batch fills most of the structure from 01:00 to 04:00 and drains it by 07:00, night after night."

    hours: float = parameter(72.0, "length of the recording, hours of event time", **lasting(72.0, 120.0))
    peak: float = parameter(
        93.0, "percent of the structure in use at the end of the batch", high=100, drawn=((75, 93),)
    )
    first: float = parameter(1.0, "height of the first night, as a share of the others", high=10, drawn=((0.6, 0.85),))
    varies: float = parameter(0.0, "by how much nights differ: share of the height", high=1, drawn=((0.0, 0.08),))
    bad_night: float = parameter(
        0, "number of a night, from 1, that brings more than fits; 0: none", drawn=((0, 0), (2, 4))
    )
    bad_by: float = parameter(
        1.2, "what the bad night brings, as a multiple of what fits", low=0.01, drawn=((1.15, 1.8),)
    )
    by_day: float = parameter(0.03, "puts beside the batch, as a share of the batch's", drawn=((0.01, 0.05),))

    @property
    @override
    def story_hours(self) -> float:
        return 24 * self.bad_night

    _BEGIN, _END, _DRAINED = 1.0, 4.0, 7.0  # o'clock, UTC

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return site.capacity(self.traffic, rng, percent=self.peak).messages / ((self._END - self._BEGIN) * HOUR)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        first = (self.start // 1_000_000) % 86_400  # seconds of the day when it starts
        heights = 1 + self.varies * site.chance.uniform(-1.0, 0.0, math.ceil(self.hours / 24) + 1)
        heights[0] *= self.first
        if 0 < self.bad_night <= heights.size:
            fits = site.capacity(self.traffic, site.chance).messages
            heights[round(self.bad_night) - 1] = self.bad_by * fits / (rate * (self._END - self._BEGIN) * HOUR)

        def puts(seconds: Array) -> Array:
            day, hour = np.divmod(seconds + first, 86_400)
            hour = hour / HOUR
            height = heights[day.astype(np.int64)]
            return rate * np.where((hour >= self._BEGIN) & (hour < self._END), height, self.by_day)

        def gets(seconds: Array) -> Array:
            hour = (seconds + first) % 86_400 / HOUR
            by_day = np.where((hour >= self._BEGIN) & (hour < self._END), 0.0, 5 * self.by_day)
            return rate * np.where((hour >= self._END) & (hour < self._DRAINED), 1.3, by_day)

        return [
            *site.puts(puts, self.traffic),
            *site.gets(gets, self.traffic),
            *site.beside(rate * self.by_day, self.traffic),
        ]


@dataclass(frozen=True, kw_only=True)
class DayAndNight(StoreScenario):
    """Every evening there is a backlog, every morning none."""

    name = "day-and-night"
    sentence = "More comes by day than the getters can do, less by night: a backlog until the evening, day after day."

    hours: float = parameter(72.0, "length of the recording, hours of event time", **lasting(72.0, 110.0))
    swing: float = parameter(
        0.6, "of the puts: by how much they rise by day and fall by night, as a share", high=1, drawn=((0.6, 0.9),)
    )
    load: float = parameter(
        0.85, "puts on average, as a share of what the getters can do", low=0.01, high=0.99, drawn=((0.82, 0.92),)
    )
    peak: float = parameter(0.75, "of what fits: how much there is in the evening", high=10, drawn=((0.4, 0.8),))
    busy_day: float = parameter(0, "number of a day, from 1, on which more comes; 0: none", drawn=((0, 0), (2, 4)))
    busier: float = parameter(1.3, "puts of that day, as a multiple of the others'", low=0.01, drawn=((1.2, 1.5),))

    _HIGHEST = 14.0  # o'clock, UTC

    @property
    @override
    def story_hours(self) -> float:
        return 24 * self.busy_day

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        """Raise UsageError if the getters keep up all day."""
        seconds = np.arange(0.0, 86_400.0, 60.0)
        left = np.cumsum(self._by_clock(seconds) - 1 / self.load) * 60
        backlog = float((left - np.minimum.accumulate(left)).max())
        if backlog <= 0:
            raise UsageError(f"{self.name} needs days on which the getters fall behind; expected: swing > 1 / load - 1")
        return self.peak * site.capacity(self.traffic, rng).messages / backlog

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        first = (self.start // 1_000_000) % 86_400  # seconds of the day when it starts

        def puts(seconds: Array) -> Array:
            day, clock = np.divmod(seconds + first, 86_400)
            return rate * self._by_clock(clock) * np.where(day + 1 == self.busy_day, self.busier, 1.0)

        return [
            *site.puts(puts, self.traffic),
            *site.gets(constant(rate / self.load), self.traffic),
            *site.beside(rate * 0.2, self.traffic),
        ]

    def _by_clock(self, clock: Array) -> Array:
        """Return the rate of puts as a multiple of the mean. clock: f8[n], seconds of the day."""
        return 1 + self.swing * np.cos((clock / HOUR - self._HIGHEST) / 24 * 2 * np.pi)
