"""Where a scenario plays: one store of the estate, its queues and queue managers, and what goes on beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels import EVENT
from kernels.layout import GET, PUT
from twin.errors import UsageError
from twin.estate import Estate, PageSet, QueueFile, Structure
from twin.simulation.arrivals import Curve, Flow, Traffic, constant, draw_lengths, draw_priorities
from twin.simulation.capacity import Capacity, try_capacity

Array = npt.NDArray[Any]

_SHARES = (4, 3, 2, 1)  # of the first four queue managers; the others make no calls
_OTHER_QUEUES = 3  # of the store, beside the one the story is about
_OTHER_STORES = 3
_OTHER_SHARE = 0.25  # of the story's rate that goes to other queues of the store; a tenth to each other store
_OTHER_STORE_SHARE = 0.1


MessageStoreConfig = Structure | PageSet | QueueFile
Kinds = tuple[type[MessageStoreConfig], ...]
ALL_KINDS: Kinds = (Structure, PageSet, QueueFile)
_NAMED = {Structure: "structure", PageSet: "page set", QueueFile: "queue file"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The store and the queue a scenario is about. chance: random numbers for what a story leaves open."""

    estate: Estate
    store: MessageStoreConfig
    queue: str
    chance: np.random.Generator

    @classmethod
    def of(
        cls,
        estate: Estate,
        store: str | None = None,
        queue: str | None = None,
        chance: np.random.Generator | None = None,
        kinds: Kinds = ALL_KINDS,
    ) -> Site:
        """By default the first store of the first kind there is that has queues, and its first queue.

        UsageError, naming what there is: no such store, not one of those kinds, no such queue.
        """
        possible = stores_of(estate, kinds)
        wanted = " or ".join(_NAMED[kind] for kind in kinds)
        if not possible:
            raise UsageError(f"{estate.source}: no {wanted} has a queue; right: describe one for a simulation")
        chosen = min(possible, key=lambda name: kinds.index(type(possible[name]))) if store is None else store
        if chosen not in possible:
            raise UsageError(f"store {chosen} cannot be simulated; right: a {wanted} with queues: {_all(possible)}")
        config = possible[chosen]
        queues = queues_of(config)
        if queue is not None and queue not in queues:
            raise UsageError(f"{chosen} has no queue {queue}; its queues are {_all(queues)}")
        return cls(
            estate=estate,
            store=config,
            queue=queue or queues[0],
            chance=np.random.default_rng(0) if chance is None else chance,
        )

    @property
    def queues(self) -> tuple[str, ...]:
        """Of the store."""
        return queues_of(self.store)

    # --- the story -------------------------------------------------------------------------------------------------

    def puts(self, rate: Curve, traffic: Traffic, queue: str | None = None) -> list[Flow]:
        """Puts to a queue (by default the story's) from several queue managers, `rate` messages a second in all."""
        return _shared_out(self.estate, self.store, queue or self.queue, PUT, rate, traffic)

    def gets(self, rate: Curve, traffic: Traffic, queue: str | None = None) -> list[Flow]:
        """Gets from a queue by several queue managers; rate: what they could get a second in all."""
        return _shared_out(self.estate, self.store, queue or self.queue, GET, rate, traffic)

    def kept(
        self, rate: Curve, traffic: Traffic, seconds: float, *, queue: str | None = None, at_random: bool = False
    ) -> list[Flow]:
        """Puts to a queue (by default the story's) of which each is got `seconds` later; at random: on average."""
        puts = self.puts(rate, traffic, queue)
        return [
            replace(flow, got_by=puts[-1 - at].route, got_after=seconds, got_at_random=at_random)
            for at, flow in enumerate(puts)
        ]

    def beside(self, rate: float, traffic: Traffic) -> list[Flow]:
        """What goes on harmlessly: other queues of the store, and other stores, all well served.

        rate: messages a second of the story.
        """
        others = [queue for queue in self.queues if queue != self.queue][:_OTHER_QUEUES]
        flows: list[Flow] = []
        for queue in others:
            flows += self.served(constant(rate * _OTHER_SHARE / len(others)), traffic, queue)
        stores = [config for name, config in stores_of(self.estate).items() if name != self.store.name]
        for config in stores[:_OTHER_STORES]:
            share = constant(rate * _OTHER_STORE_SHARE)
            flows += _served(self.estate, config, queues_of(config)[0], share, traffic)
        return flows

    def served(self, rate: Curve, traffic: Traffic, queue: str) -> list[Flow]:
        """Puts to a queue and getters that are twice as fast."""
        return _served(self.estate, self.store, queue, rate, traffic)

    def other_queue(self, story: str) -> str:
        """A queue of the store that the story is not about. UsageError, naming the story, where there is none."""
        others = [queue for queue in self.queues if queue != self.queue]
        if not others:
            raise UsageError(f"{story} needs a store of two queues; {self.store.name} has only {self.queue}")
        return others[0]

    # --- how much ----------------------------------------------------------------------------------------------------

    def capacity(
        self,
        traffic: Traffic,
        rng: np.random.Generator,
        *,
        at: float = 0.0,
        got: float = 0.0,
        percent: float | None = None,
    ) -> Capacity:
        """How many puts of that traffic, as it is `at` seconds, the store takes until its first 2192.

        got: share of them that are got meanwhile. percent: not until its first 2192, but until so much of it is used.
        """
        flows = self.puts(constant(1.0), traffic)
        shares = np.array([float(flow.rate(np.zeros(1))[0]) for flow in flows])

        def draw(count: int) -> Array:
            events = np.zeros(count, EVENT)
            chosen = np.searchsorted(np.cumsum(shares)[:-1], rng.random(count), side="right")
            events["route"] = np.array([flow.route for flow in flows])[chosen]
            events["length"] = draw_lengths(traffic, np.full(count, at), rng)
            events["priority"] = draw_priorities(traffic, count, rng)
            return events

        return try_capacity(self.estate, self.store.name, draw, got, percent)

    def capacity_of_data_sets(self, story: str, traffic: Traffic, rng: np.random.Generator) -> int:
        """How many puts of that traffic the data sets take until the first 2192.

        UsageError, naming the story, where the structure is full before any of them is.
        """
        capacity = self.capacity(traffic, rng)
        if not capacity.in_dataset:
            raise UsageError(
                f"{story}: {self.store.name} is full before its data sets are; right: an estate whose [smds] "
                "have a small size and max_size, or whose structure has ds_expand = false"
            )
        return capacity.messages


def stores_of(estate: Estate, kinds: Kinds = ALL_KINDS) -> dict[str, MessageStoreConfig]:
    """The stores of those kinds that have queues, by name."""
    return {name: one for name, one in estate.stores.items() if isinstance(one, kinds) and queues_of(one)}


def queues_of(config: MessageStoreConfig) -> tuple[str, ...]:
    """The queues whose messages it holds."""
    return config.queues


def _shared_out(
    estate: Estate, store: MessageStoreConfig, queue: str, op: int, rate: Curve, traffic: Traffic
) -> list[Flow]:
    qmgrs = store.queue_managers[: len(_SHARES)]
    total = sum(_SHARES[: len(qmgrs)])
    return [
        Flow(route=estate.route_of_queue(qmgr, queue), op=op, rate=_times(rate, share / total), traffic=traffic)
        for qmgr, share in zip(qmgrs, _SHARES, strict=False)
    ]


def _served(estate: Estate, store: MessageStoreConfig, queue: str, rate: Curve, traffic: Traffic) -> list[Flow]:
    return [
        *_shared_out(estate, store, queue, PUT, rate, traffic),
        *_shared_out(estate, store, queue, GET, _times(rate, 2.0), traffic),
    ]


def _times(curve: Curve, factor: float) -> Curve:
    return lambda seconds: curve(seconds) * factor


def _all(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
