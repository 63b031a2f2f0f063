"""Site of a scenario: a store of the estate with its queues and queue managers, and traffic on other stores.

Its capacity, the number of messages before the first 2192, is found by trial: the kernels decide, whatever rules, data
sets and sizes the estate has. A large structure is tried at a smaller scale, since pools and data sets are linear in
their sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels import EVENT
from kernels.event_loop import MQRC_STORAGE_MEDIUM_FULL
from kernels.layout import GET, PUT
from twin.base.errors import UsageError
from twin.capacity import bounds
from twin.estate import MAX_PAGES, Estate, MessageStoreConfig, PageSet, QueueFile, Smds, Structure
from twin.records import StateRecord, StructureState
from twin.simulation.arrivals import Curve, Flow, Traffic, constant, draw_lengths, draw_priorities
from twin.stores.message_store import MessageStore
from twin.stores.open import open_message_store

Array = npt.NDArray[Any]

_SHARES = (4, 3, 2, 1)  # of the first four queue managers in the calls; others make none
_MAX_OTHER_QUEUES = 3  # of the store
_MAX_OTHER_STORES = 3
_OTHER_SHARE = 0.25  # rate on other queues of the store, as a share of the story's
_OTHER_STORE_SHARE = 0.1  # rate on each other store
_MAX_TRIAL_BYTES = 1 << 30  # of a store that is tried at full size: about half a million entries
_PIECE = 1 << 14  # puts per piece
_PAGE = 4096  # bytes
_SAMPLE = 1 << 8  # puts between samples of the usage
_STEP_US = 5_000  # between demands when messages move to SCM meanwhile
_START_US = 1_700_000_000_000_000  # of all demands of a trial without SCM


Kinds = tuple[type[MessageStoreConfig], ...]
ALL_KINDS: Kinds = (Structure, PageSet, QueueFile)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Store and queue of a scenario.

    Attributes:
        estate: the estate.
        store: the store, as the estate describes it.
        queue: name of the queue.
        chance: random numbers for the random parts of a story.
    """

    estate: Estate
    store: MessageStoreConfig
    queue: str
    chance: np.random.Generator

    @classmethod
    def find(
        cls,
        estate: Estate,
        store: str | None = None,
        queue: str | None = None,
        chance: np.random.Generator | None = None,
        kinds: Kinds = ALL_KINDS,
    ) -> Site:
        """Find the site of a scenario.

        Args:
            estate: the estate.
            store: its name; by default the first one of the first kind that has queues.
            queue: its name; by default the first one of the store.
            chance: random numbers for the story.
            kinds: kinds of stores.

        Raises:
            UsageError: no such store of those kinds with queues, or no such queue.
        """
        stores = stores_of(estate, kinds)
        kind_names = " or ".join(kind.kind.replace("_", " ") for kind in kinds)
        if not stores:
            raise UsageError(f"{estate.source}: no {kind_names} has a queue; expected: describe one for a simulation")
        name = min(stores, key=lambda key: kinds.index(type(stores[key]))) if store is None else store
        if name not in stores:
            raise UsageError(f"store {name} cannot be simulated; expected: a {kind_names} with queues: {_all(stores)}")
        config = stores[name]
        queues = config.queues
        if queue is not None and queue not in queues:
            raise UsageError(f"{name} has no queue {queue}; expected: {_all(queues)}")
        return cls(
            estate=estate,
            store=config,
            queue=queue or queues[0],
            chance=np.random.default_rng(0) if chance is None else chance,
        )

    @property
    def queues(self) -> tuple[str, ...]:
        """Queues of the store."""
        return self.store.queues

    # --- the story -------------------------------------------------------------------------------------------------

    def puts(self, rate: Curve, traffic: Traffic, queue: str | None = None) -> list[Flow]:
        """Return puts to a queue (by default that of the story) by several queue managers. rate: messages/s in all."""
        return _share_out(self.estate, self.store, queue or self.queue, PUT, rate, traffic)

    def gets(self, rate: Curve, traffic: Traffic, queue: str | None = None) -> list[Flow]:
        """Return gets from a queue by several queue managers. rate: attempted gets per second in all."""
        return _share_out(self.estate, self.store, queue or self.queue, GET, rate, traffic)

    def put_and_get(
        self, rate: Curve, traffic: Traffic, seconds: float, *, queue: str | None = None, at_random: bool = False
    ) -> list[Flow]:
        """Return puts of which each is got `seconds` later, with `at_random` on average."""
        puts = self.puts(rate, traffic, queue)
        return [
            replace(flow, got_by=puts[-1 - i].route, got_after=seconds, got_at_random=at_random)
            for i, flow in enumerate(puts)
        ]

    def beside(self, rate: float, traffic: Traffic) -> list[Flow]:
        """Return harmless traffic on other queues of the store and on other stores. rate: messages/s of the story."""
        others = [queue for queue in self.queues if queue != self.queue][:_MAX_OTHER_QUEUES]
        flows: list[Flow] = []
        for queue in others:
            flows += self.put_and_drain(constant(rate * _OTHER_SHARE / len(others)), traffic, queue)
        stores = [config for name, config in stores_of(self.estate).items() if name != self.store.name]
        for config in stores[:_MAX_OTHER_STORES]:
            share = constant(rate * _OTHER_STORE_SHARE)
            flows += _put_and_drain(self.estate, config, config.queues[0], share, traffic)
        return flows

    def put_and_drain(self, rate: Curve, traffic: Traffic, queue: str) -> list[Flow]:
        """Return puts to a queue and gets at twice their rate."""
        return _put_and_drain(self.estate, self.store, queue, rate, traffic)

    def other_queue(self, story: str) -> str:
        """Return another queue of the store. Raise UsageError, naming the story, if there is none."""
        others = [queue for queue in self.queues if queue != self.queue]
        if not others:
            raise UsageError(f"{story}: {self.store.name} has only {self.queue}; expected: a store of two queues")
        return others[0]

    # --- capacity --------------------------------------------------------------------------------------------------

    def capacity(
        self,
        traffic: Traffic,
        rng: np.random.Generator,
        *,
        time: float = 0.0,
        got: float = 0.0,
        percent: float | None = None,
    ) -> Capacity:
        """Return the number of puts until the first 2192 of the store.

        Args:
            traffic: properties of the puts.
            rng: random numbers.
            time: time of the properties, seconds.
            got: share of the messages that are got meanwhile.
            percent: usage at which to stop instead of the first 2192.
        """
        flows = self.puts(constant(1.0), traffic)
        shares = np.array([float(flow.rate(np.zeros(1))[0]) for flow in flows])

        def draw(count: int) -> Array:
            """Return puts with the properties of `traffic` at that time, EVENT[count]."""
            events = np.zeros(count, EVENT)
            rows = np.searchsorted(np.cumsum(shares)[:-1], rng.random(count), side="right")
            events["route"] = np.array([flow.route for flow in flows])[rows]
            events["length"] = draw_lengths(traffic, np.full(count, time), rng)
            events["priority"] = draw_priorities(traffic, count, rng)
            return events

        return try_capacity(self.estate, self.store.name, draw, got, percent)

    def capacity_of_data_sets(self, story: str, traffic: Traffic, rng: np.random.Generator) -> int:
        """Return the puts until a data set has the first 2192. UsageError, with the story: the structure is full
        before.
        """
        capacity = self.capacity(traffic, rng)
        if not capacity.in_dataset:
            raise UsageError(
                f"{story}: {self.store.name} is full before its data sets are; expected: an estate whose [smds] "
                "have a small size and max_size, or whose structure has ds_expand = false"
            )
        return capacity.messages


def stores_of(estate: Estate, kinds: Kinds = ALL_KINDS) -> dict[str, MessageStoreConfig]:
    """Return the stores of some kinds that have queues, by name."""
    return {name: config for name, config in estate.stores.items() if isinstance(config, kinds) and config.queues}


def _share_out(
    estate: Estate, store: MessageStoreConfig, queue: str, op: int, rate: Curve, traffic: Traffic
) -> list[Flow]:
    qmgrs = store.queue_managers[: len(_SHARES)]
    total = sum(_SHARES[: len(qmgrs)])
    return [
        Flow(route=estate.route_of_queue(qmgr, queue), op=op, rate=_scale(rate, share / total), traffic=traffic)
        for qmgr, share in zip(qmgrs, _SHARES, strict=False)
    ]


def _put_and_drain(estate: Estate, store: MessageStoreConfig, queue: str, rate: Curve, traffic: Traffic) -> list[Flow]:
    return [
        *_share_out(estate, store, queue, PUT, rate, traffic),
        *_share_out(estate, store, queue, GET, _scale(rate, 2.0), traffic),
    ]


def _scale(curve: Curve, factor: float) -> Curve:
    return lambda seconds: curve(seconds) * factor


def _all(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


# --- capacity by trial -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Capacity:
    """Capacity of a store."""

    messages: int  # puts before the first 2192
    in_dataset: bool  # True if a data set had no room


def try_capacity(
    estate: Estate, store: str, draw: Callable[[int], Array], got: float = 0.0, percent: float | None = None
) -> Capacity:
    """Put until the first 2192, or until `percent` of entries or elements are in use. `got`: share of the messages,
    below 1, that are got meanwhile: old ones in the structure free more of it than new offloaded ones take. UsageError:
    no message fits.
    """
    config = estate.message_stores[store]
    scale = max(1, -(-_bytes_of(config) // _MAX_TRIAL_BYTES))
    twin = _open(estate, config, scale)
    count, demand_count, usage = 0, 0, 0.0
    while True:
        demands = _as_demands(draw(_PIECE if percent is None else _SAMPLE), got)
        if config.scm_max_size is not None:
            demands["time"] = _START_US + (demand_count + np.arange(demands.size)) * _STEP_US
            demand_count += demands.size
        twin.demand(demands)
        puts = demands[demands["op"] == PUT]
        refused = np.flatnonzero(puts["reason"] == MQRC_STORAGE_MEDIUM_FULL)
        if refused.size:
            count += int(refused[0])
            break
        before, usage = usage, twin.state().usage_pct or 0.0
        if percent is not None and usage >= percent:
            count += round(puts.size * (percent - before) / (usage - before))
            break
        count += puts.size
    if not count:
        raise UsageError(f"{store} refuses the first message; expected: a store, or a data set, of a larger size")
    return Capacity(count * scale, _has_room(twin.state()))


def _open(estate: Estate, config: MessageStoreConfig, scale: int) -> MessageStore:
    scaled = replace(estate, stores={**estate.stores, config.name: _scale_config(config, scale)})
    twin = open_message_store(scaled, config.name, forecasts=False)
    if isinstance(config, Structure):
        memory, storage = bounds(estate, config)
        params = twin.tables.store.params[0]
        params["scm_max"] = params["scm_most"] = memory // scale
        params["aug_max"] = storage // scale
    return twin


def _has_room(state: StateRecord) -> bool:
    """Return True if it is a structure that has room for an offloaded message."""
    if not isinstance(state, StructureState) or state.ents_used is None or state.elems_used is None:
        return False
    if state.ents_max is None or state.elems_max is None:
        return False
    return state.ents_used < state.ents_max and state.elems_used + 2 <= state.elems_max


def _as_demands(puts: Array, got: float) -> Array:
    """Return the puts, some of them followed by a get from the same queue."""
    owner = np.repeat(np.arange(puts.size), 1 + np.diff(np.floor(np.arange(puts.size + 1) * got).astype(np.int64)))
    demands = np.zeros(owner.size, EVENT)
    for name in ("route", "length", "priority"):
        demands[name] = puts[name][owner]
    demands["time"], demands["count"], demands["seq"] = _START_US, 1, -1
    demands["op"] = np.where(np.diff(owner, prepend=-1) != 0, PUT, GET)
    return demands


def _bytes_of(config: MessageStoreConfig) -> int:
    match config:
        case Structure():
            return (config.init_size or config.size) + (config.scm_max_size or 0)
        case QueueFile():
            return config.limit
    return _PAGE * (config.pages if config.expand == "NONE" else config.max_pages or MAX_PAGES)


def _scale_config(config: MessageStoreConfig, scale: int) -> MessageStoreConfig:
    """Return the config of a store, with its data sets and SCM, at 1/scale of its size."""
    match config:
        case QueueFile():
            return replace(config, max_size=config.limit // scale, file_system_size=None)
        case PageSet():
            return replace(
                config,
                pages=config.pages // scale,
                secondary_pages=None if config.secondary_pages is None else config.secondary_pages // scale,
                max_pages=(config.max_pages or MAX_PAGES) // scale,
            )
    return _scale_structure(config, scale)


def _scale_structure(structure: Structure, scale: int) -> Structure:
    def part(size: int | None) -> int | None:
        return None if size is None else size // scale

    smds = {
        qmgr: Smds(size=data_set.size // scale, secondary=part(data_set.secondary), max_size=part(data_set.max_size))
        for qmgr, data_set in structure.smds.items()
    }
    return replace(
        structure,
        size=structure.size // scale,
        init_size=part(structure.init_size),
        smds=smds,
        scm_max_size=part(structure.scm_max_size),
    )
