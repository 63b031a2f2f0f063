"""Scenarios that fill along a line or a curve, and the three of the demo side by side."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from typing_extensions import override

from twin.base.errors import UsageError
from twin.estate import Estate, PageSet, Structure
from twin.estate.planned import Plan
from twin.simulation.arrivals import Array, Curve, Flow, Traffic, between, constant
from twin.simulation.scenario import HOUR, START, Scenario, StoreScenario, lasting, parameter, scenario
from twin.simulation.site import Site, stores_of

_FULL_AT = 0.85  # first 2192 at the default rate, as a share of the time of filling
_LEVELS_AFTER_PCT = 80.0  # usage from which the second offload rule takes over by default
_FULL: dict[str, Any] = {"low": 0.01, "drawn": ((0.35, 0.95), (1.4, 3.0))}  # bounds and ranges of such a share


@scenario
@dataclass(frozen=True, kw_only=True)
class AcceleratingFill(StoreScenario):
    """Early on there is much time, by the slope; there is not."""

    name = "accelerating-fill"
    sentence = "The puts double and double again while the getters stay as they are: the structure fills ever faster."
    _phases = ("begin", "grows_for")

    begin: float = parameter(0.5, "hours until the puts begin to grow", drawn=((0.5, 2.0),))
    grows_for: float = parameter(3.0, "hours they grow", low=0.01, drawn=((2.0, 5.0),))
    times: float = parameter(
        6.0, "puts at the end of the growth, as a multiple of those before", low=1.5, drawn=((3.0, 12.0),)
    )
    reach: float = parameter(
        1.5,
        "of what fits: how much there would be at the end of the growth",
        low=0.01,
        drawn=((0.35, 0.7), (1.15, 2.5)),
    )

    _SLACK = 1.05  # what the getters can do, as a multiple of the puts before they grow

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        growing = (self.times - 1) / math.log(self.times)  # mean of the puts while they grow
        left = (growing - self._SLACK) * self.grows_for * HOUR
        return self.reach * site.capacity(self.traffic, rng).messages / left

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        begin, end = self.begin * HOUR, (self.begin + self.grows_for) * HOUR

        def puts(seconds: Array) -> Array:
            share = (seconds - begin) / (end - begin)
            return rate * np.where((share >= 0) & (share < 1), self.times ** np.clip(share, 0, 1), 1.0)

        gets = between(begin, end, rate * self._SLACK, rate * 4)
        return self._served(site, rate, puts, gets)


@scenario
@dataclass(frozen=True, kw_only=True)
class LevellingFill(StoreScenario):
    """A line says full at every moment of the first hours, and is wrong at every one."""

    name = "levelling-fill"
    sentence = "More is put than before, and each message is got after a while: it fills fast, then less, then no more."

    hours: float = parameter(6.0, "length of the recording, hours of event time", **lasting(6.0, 12.0))
    begin: float = parameter(0.5, "hours until more is put", drawn=((0.5, 2.0),))
    before: float = parameter(0.1, "puts before, as a share", high=1, drawn=((0.05, 0.3),))
    kept_for: float = parameter(1.0, "hours a message stays, on average", low=0.01, drawn=((0.7, 1.8),))
    level: float = parameter(
        0.6, "of what fits: how much there is in the end", low=0.01, high=10, drawn=((0.5, 0.85), (1.15, 1.8))
    )

    _SETTLED_AFTER = 4  # multiples of `kept_for` after which the level is reached

    @property
    @override
    def story_hours(self) -> float:
        return self.begin + self._SETTLED_AFTER * self.kept_for

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return self.level * site.capacity(self.traffic, rng).messages / (self.kept_for * HOUR)

    def levelling(self, site: Site, rate: float) -> list[Flow]:
        """Return the puts that increase to a rate, messages/s, and the gets of each message after a random time."""
        puts = between(0.0, self.begin * HOUR, rate * self.before, rate)
        return site.put_and_get(puts, self.traffic, self.kept_for * HOUR, at_random=True)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        return [*self.levelling(site, rate), *site.beside(rate, self.traffic)]


@scenario
@dataclass(frozen=True, kw_only=True)
class GetterOutage(StoreScenario):
    """The manuals' own story."""

    name = "getter-outage"
    sentence = "Steady puts and gets; the getter stops for two hours, then drains what has piled up."
    _phases = ("outage_after", "outage")

    outage_after: float = parameter(0.5, "hours until the getter stops", drawn=((0.3, 3.0),))
    outage: float = parameter(2.0, "hours the getter stands still", low=0.01, drawn=((0.75, 4.0),))
    getter_speed: float = parameter(
        3.0, "what the getter can do, as a multiple of the puts", low=1.0, drawn=((1.5, 4.0),)
    )
    full_at: float = parameter(
        _FULL_AT, "share of the outage after which the first 2192 comes; more than 1: it ends in time", **_FULL
    )

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return site.capacity(self.traffic, rng).messages / (self.full_at * self.outage * HOUR)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        begin = self.outage_after * HOUR
        getter = between(begin, begin + self.outage * HOUR, 0.0, rate * self.getter_speed)
        return self._served(site, rate, constant(rate), getter)


@scenario
@dataclass(frozen=True, kw_only=True)
class SlowConsumer(StoreScenario):
    """It fills from the difference of two rates, slowly and for long."""

    name = "slow-consumer"
    sentence = "The getter keeps up with only part of the puts for some hours, then catches up."
    _phases = ("slow_after", "slow_for")

    hours: float = parameter(6.0, "length of the recording, hours of event time", **lasting(2.0, 8.0))
    slow_after: float = parameter(0.5, "hours until the getter becomes slow", drawn=((0.3, 2.0),))
    slow_for: float = parameter(4.0, "hours it stays slow", low=0.01, drawn=((1.5, 6.0),))
    kept_up: float = parameter(0.5, "share of the puts the slow getter can take", high=0.99, drawn=((0.2, 0.85),))
    getter_speed: float = parameter(
        3.0, "what the getter can do else, as a multiple of the puts", low=1.0, drawn=((1.5, 4.0),)
    )
    full_at: float = parameter(
        _FULL_AT, "share of the slow hours after which the first 2192 comes; more than 1: they end in time", **_FULL
    )

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return site.capacity(self.traffic, rng, got=self.kept_up).messages / (self.full_at * self.slow_for * HOUR)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        begin = self.slow_after * HOUR
        getter = between(begin, begin + self.slow_for * HOUR, rate * self.kept_up, rate * self.getter_speed)
        return self._served(site, rate, constant(rate), getter)


@scenario
@dataclass(frozen=True, kw_only=True)
class Burst(StoreScenario):
    """Most bursts pass; the largest does not."""

    name = "burst"
    sentence = "Quiet traffic with ten-minute bursts of very different heights; the highest fills the structure."

    hours: float = parameter(6.0, "length of the recording, hours of event time", **lasting(2.0, 8.0))
    every: float = parameter(1.0, "hours from burst to burst", low=0.2, drawn=((0.8, 1.5),))
    highest: float = parameter(
        1.6, "of the highest burst: what is left ungot, as a multiple of what fits", drawn=((0.4, 0.8), (1.15, 2.2))
    )
    getter_speed: float = parameter(
        4.0, "what the getter can do, as a multiple of the quiet puts", low=1.0, drawn=((2.5, 5.0),)
    )

    @property
    @override
    def story_hours(self) -> float:
        return 4 * self.every + 1.0

    _FOR = 600.0  # seconds a burst lasts
    _EMPTIED_IN = 2400.0  # seconds in which the getter works off a full structure, at the default rate
    _HEIGHTS = (0.25, 0.5, 0.15, 1.0, 0.35)  # of one burst after the other, as parts of the highest

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return site.capacity(self.traffic, rng).messages / (self._EMPTIED_IN * (self.getter_speed - 1))

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        return self._served(site, rate, self._puts(rate), constant(rate * self.getter_speed))

    def _puts(self, rate: float) -> Curve:
        full = rate * self._EMPTIED_IN * (self.getter_speed - 1) / self._FOR  # per second more than the getter can do

        def curve(seconds: Array) -> Array:
            number = np.floor(seconds / (self.every * HOUR)).astype(np.int64) - 1  # none in the first stretch
            within = (seconds % (self.every * HOUR) < self._FOR) & (number >= 0)
            heights = self.highest * np.array(self._HEIGHTS)[number % len(self._HEIGHTS)]
            return np.where(within, rate * self.getter_speed + full * heights, rate)

        return curve


class GrowingLengths(StoreScenario):
    """Scenario in which each message is got some time after its put, while messages grow."""

    kept_for: float  # hours a message stays
    full_at: float  # share of the recording at whose lengths the store would be full; more than 1: never

    @abstractmethod
    def length_at(self, seconds: Array) -> Array:
        """Return the mean length of messages, bytes, at each time, seconds since the beginning."""

    @property
    @override
    def traffic(self) -> Traffic:
        return replace(super().traffic, length=self.length_at)

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        capacity = site.capacity(self.traffic, rng, time=self.full_at * self.hours * HOUR)
        return capacity.messages / (self.kept_for * HOUR)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        beside = Traffic(length=constant(self.length))
        return [*site.put_and_get(constant(rate), self.traffic, self.kept_for * HOUR), *site.beside(rate, beside)]


@scenario
@dataclass(frozen=True, kw_only=True)
class GrowingMessageSize(GrowingLengths):
    """The depth stays; what a message takes does not, and the offload rules move it elsewhere."""

    name = "growing-message-size"
    sentence = "Every message is got an hour after its put, while messages grow across the offload sizes."

    hours: float = parameter(4.0, "length of the recording, hours of event time", **lasting(3.5, 10.0))
    length: float = parameter(
        1_000.0, "mean bytes of a message at the beginning", low=64, high=1_000_000, drawn=((300.0, 2_000.0),)
    )
    last_length: float = parameter(
        128_000.0, "mean bytes of a message at the end", low=64, high=1_000_000, drawn=((8_000.0, 128_000.0),)
    )
    spread: float = parameter(0.4, "of the lengths: standard deviation of their logarithm", high=3, drawn=((0.2, 0.8),))
    kept_for: float = parameter(1.0, "hours a message stays", low=0.01, drawn=((0.3, 1.0),))
    full_at: float = parameter(
        0.6,
        "share of the time at whose lengths the structure would be full; more than 1: never",
        low=0.01,
        drawn=((0.5, 0.85), (1.1, 1.4)),
    )

    @override
    def length_at(self, seconds: Array) -> Array:
        """Return lengths that grow by the same factor every hour."""
        return self.length * (self.last_length / self.length) ** (seconds / (self.hours * HOUR))


@scenario
@dataclass(frozen=True, kw_only=True)
class OneQueueHogging(StoreScenario):
    """Who gets 2192 is not who filled the structure."""

    name = "one-queue-hogging"
    sentence = "One queue of a shared structure is not got from; the busier, well served ones get 2192 with it."
    plays_on = (Structure, PageSet)
    _phases = ("served_again",)

    busier: float = parameter(
        2.0, "puts to the other queues, as a multiple of those to the hog", low=0.1, drawn=((0.5, 3.0),)
    )
    served_again: float = parameter(2.5, "hours until somebody gets from the hog", low=0.01, drawn=((1.0, 5.0),))
    full_at: float = parameter(
        _FULL_AT, "share of that time after which the first 2192 comes; more than 1: he comes in time", **_FULL
    )

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return site.capacity(self.traffic, rng).messages / (self.full_at * self.served_again * HOUR)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        """Raise UsageError if the structure has only one queue."""
        site.other_queue(self.name)
        others = [queue for queue in site.queues if queue != site.queue][:3]
        flows = [
            *site.puts(constant(rate), self.traffic),
            *site.gets(between(0, self.served_again * HOUR, 0.0, rate * 4), self.traffic),
        ]
        for queue in others:
            flows += site.put_and_drain(constant(rate * self.busier / len(others)), self.traffic, queue)
        return flows


@scenario
@dataclass(frozen=True, kw_only=True)
class SmdsCannotExpand(StoreScenario):
    """The structure looks empty; the data set is what fills."""

    name = "smds-cannot-expand"
    sentence = "The getter stops; messages of over 63 KB, always offloaded, fill a data set that cannot expand."
    plays_on = (Structure,)
    _phases = ("outage_after", "outage")

    length: float = parameter(
        100_000.0, "mean bytes of a message", low=64_513, high=1_000_000, drawn=((70_000.0, 200_000.0),)
    )
    spread: float = parameter(0.3, "of the lengths: standard deviation of their logarithm", high=3, drawn=((0.1, 0.5),))
    outage_after: float = parameter(0.5, "hours until the getter stops", drawn=((0.3, 2.0),))
    outage: float = parameter(2.0, "hours the getter stands still", low=0.01, drawn=((0.75, 4.0),))
    full_at: float = parameter(
        _FULL_AT, "share of the outage after which the first 2192 comes; more than 1: it ends in time", **_FULL
    )

    @property
    def traffic(self) -> Traffic:
        """Messages longer than the 63 KB that a structure holds."""
        return replace(super().traffic, shortest=64_513)

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        """Raise UsageError if the structure is full before any data set is."""
        return site.capacity_of_data_sets(self.name, self.traffic, rng) / (self.full_at * self.outage * HOUR)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        begin = self.outage_after * HOUR
        beside = replace(self.traffic, length=constant(2_000), shortest=64)
        gets = between(begin, begin + self.outage * HOUR, 0.0, rate * 3)
        return self._served(site, rate, constant(rate), gets, beside)


@dataclass(frozen=True, kw_only=True)
class SideBySide(Scenario):
    """The demo: a climb that levels off, a data set that fills behind a flat structure, teeth of which one grows.

    A fixed line is wrong on each of its structures. It is not registered, as it is about three stores.
    """

    name = "side-by-side"
    sentence = (
        "Of three structures one levels off by its rules, one fills its data set, one has teeth until one goes on."
    )

    hours: float = parameter(6.0, "length of the recording, hours of event time", **lasting(5.0, 8.0))
    length: float = parameter(8_000.0, "mean bytes of a message", low=64, high=1_000_000)
    spread: float = parameter(0.3, "of the lengths: standard deviation of their logarithm", high=3)
    outage_after: float = parameter(0.5, "hours until the getters of the first two structures stop")
    outage: float = parameter(3.0, "hours they stand still", low=0.01)
    climb: float = parameter(40.0, "minutes of a tooth of the third structure", low=0.2)
    empty: float = parameter(15.0, "minutes in which its getter empties it", low=0.2)
    peak: float = parameter(0.9, "of what fits: how much there is at the end of a tooth", high=10)
    teeth: float = parameter(4.0, "teeth before the one that goes on", low=0)

    @override
    def cast(self, estate: Estate, rng: np.random.Generator) -> tuple[np.random.Generator, Sequence[Flow]]:
        trial, arrivals, chance = rng.spawn(3)
        sites = [Site.find(estate, name, None, chance, (Structure,)) for name in self._structures(estate)]
        flows = [*self._level(sites[0], trial), *self._data_set(sites[1], trial), *self._teeth(sites[2], trial)]
        return arrivals, flows

    def planned(self, estate: Estate) -> dict[str, tuple[Plan, ...]]:
        """Return plans of the third structure: in each tooth its getter is away, in the last one as in the others."""
        site = Site.find(estate, self._structures(estate)[2], None, None, (Structure,))
        begins = [START + round(1e6 * 60 * tooth * (self.climb + self.empty)) for tooth in range(int(self.teeth) + 1)]
        lasts = round(1e6 * 60 * self.climb)
        return {
            site.store.name: tuple(
                Plan(id=f"tooth-{tooth}", queue=site.queue, start=begin, end=begin + lasts, away=True)
                for tooth, begin in enumerate(begins)
            )
        }

    def _structures(self, estate: Estate) -> list[str]:
        """Return the names of the three structures. Raise UsageError where there are fewer."""
        names = list(stores_of(estate, (Structure,)))
        if len(names) < 3:
            raise UsageError(f"{self.name}: {estate.source} has {len(names)}; expected: three structures with queues")
        return names[:3]

    def _level(self, site: Site, rng: np.random.Generator) -> list[Flow]:
        """Climb fast until the rules offload, then hardly at all: the climb to 80 % takes a third of the outage."""
        messages = site.capacity(self.traffic, rng, percent=_LEVELS_AFTER_PCT).messages
        return self._outage(site, messages / (self.outage / 3 * HOUR))

    def _data_set(self, site: Site, rng: np.random.Generator) -> list[Flow]:
        messages = site.capacity_of_data_sets(self.name, self.traffic, rng)
        return self._outage(site, messages / (_FULL_AT * self.outage * HOUR))

    def _outage(self, site: Site, rate: float) -> list[Flow]:
        begin = self.outage_after * HOUR
        getter = between(begin, begin + self.outage * HOUR, 0.0, 4 * rate)
        return [*site.puts(constant(rate), self.traffic), *site.gets(getter, self.traffic)]

    def _teeth(self, site: Site, rng: np.random.Generator) -> list[Flow]:
        climb, period = self.climb * 60, (self.climb + self.empty) * 60
        rate = self.peak * site.capacity(self.traffic, rng).messages / climb
        end = self.teeth * period

        def gets(seconds: Array) -> Array:
            is_emptied = (seconds % period >= climb) & (seconds < end)
            return np.where(is_emptied, rate * (1 + 1.2 * self.climb / self.empty), 0.0)

        return [*site.puts(constant(rate), self.traffic), *site.gets(gets, self.traffic)]
