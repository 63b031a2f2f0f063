"""The cost of each rule of the event loop: the loop compiled without it, beside the whole one, on the same events.

A loop without a rule is the production loop, compiled in a process of its own after functions of kernels were replaced
by ones that do nothing. Its machine code goes into `build/bench/rules`, never among that of mqtwin.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from kernels import (
    _compile,
    chains,
    clock,
    event_loop,
    ids,
    layout,
    messages,
    meters,
    page_set,
    pools,
    queue_file,
    scm,
    smds,
    storage,
    watch,
)
from tests.tools.bench import site
from tests.tools.bench.mechanisms import MECHANISMS, Calls
from tests.tools.bench.rig import Say
from tests.tools.bench.traffic import Traffic
from twin.events import Decoder, EventBlock
from twin.stores.message_store import MessageStore
from twin.stores.open import open_message_store
from twin.stores.warm_up import warm

HELD = 10_000  # messages
PLAIN, MIXED = "structure", "mixed traffic"
_MECHANISMS = {mechanism.name: mechanism for mechanism in MECHANISMS}
_SMDS, _SCM = "structure, data in SMDS", "structure, SCM at hand"
_PAGE_SET, _FILE = "page set", "queue file, persistent"
_BLOCK = 20_000  # events of a block
_CACHE = Path(__file__).resolve().parents[3] / "build" / "bench" / "rules"


# --- in place of functions of kernels: any arguments, no work --------------------------------------------------------


def _nothing(*_: Any) -> None:
    """Do nothing."""


def _no(*_: Any) -> bool:
    return False


def _yes(*_: Any) -> bool:
    return True


def _none(*_: Any) -> int:
    return layout.NONE


def _in_structure(_: layout.Store, length: int) -> tuple[int, int]:
    return pools.IN_STRUCTURE, pools.elements_of(length)


def _next_message(store: layout.Store, queue: int, _: np.uint64) -> int:
    """Return the next message of the queue, of priority 4 first, which all messages of plain traffic have."""
    row = chains.first(store, queue, 4)
    if row != layout.NONE:
        return row
    priority = chains.highest_priority(store, queue)
    return layout.NONE if priority == layout.NONE else chains.first(store, queue, priority)


# --- rules -----------------------------------------------------------------------------------------------------------


_Replaced = dict[Any, Callable[..., Any]]  # what stands in for a kernel


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule and what stands in for its functions. traffics: those that it is measured with."""

    name: str
    replaced: _Replaced
    traffics: tuple[str, ...] = (PLAIN, MIXED)


_STORAGE: _Replaced = {storage.charge_structure: _no, page_set.charge: _no, queue_file.charge: _no}
_STORAGE |= dict.fromkeys((storage.refund_structure, page_set.refund, queue_file.refund), _nothing)
_PLACEMENT: _Replaced = {
    pools.placement: _in_structure,
    pools.can_be_put: _yes,
    pools.has_room: _yes,
    messages.is_kept: _yes,
}
_SINGLE = (
    Rule("numbers: duplicates and gaps", {event_loop.is_duplicate: _no, event_loop.take_number: _nothing}),
    Rule("clock and ticks", {clock.turns_back: _no, clock.is_tick_due: _no, clock.move_clock: _nothing}),
    Rule("rows for what an event adds", {event_loop._has_rows: _yes}),
    Rule(
        "index of ids: a get takes the next message",
        {ids.find: _next_message, ids.enter: _nothing, ids.leave: _nothing},
    ),
    Rule("chains by priority and age", {chains.insert: _nothing, chains.remove: _nothing}),
    Rule("held gets", {ids.match_held_get: _none}),
    Rule("units of work", {ids.find_unit: _none, ids.find_or_open_unit: _none}),
    Rule("offload rules, room in the structure", _PLACEMENT),
    Rule("storage taken and given back", _STORAGE, (PLAIN, MIXED, _PAGE_SET, _FILE)),
    Rule("pages and blocks of SMDS", {smds.make_room: _yes, smds.place: _nothing, smds.release: _nothing}, (_SMDS,)),
    Rule("log of a queue file", {queue_file.log_operation: _nothing}, (_FILE,)),
    Rule(
        "order by age for SCM, its mover",
        {
            scm.append_to_order: _nothing,
            scm.advance: _nothing,
            scm.is_due: _no,
            scm.on_get: _nothing,
            scm.drop: _nothing,
        },
        (_SCM,),
    ),
    Rule("meters of flows", dict.fromkeys((meters.count_put, meters.count_removal, meters.count_get), _nothing)),
    Rule("counts by queue", dict.fromkeys((messages._join_queue, messages._leave_queue), _nothing)),
    Rule("conditions at every put", {watch.look: _no, watch.look_at_queue: _no}),
    Rule("pages marked as written", {layout.touch: _nothing, layout.touch_row: _nothing}),
)
ALL = Rule(
    "all of these but the index of ids",
    {name: other for rule in _SINGLE if ids.find not in rule.replaced for name, other in rule.replaced.items()},
)
RULES = (*_SINGLE, ALL)


@dataclass(frozen=True, slots=True)
class Cost:
    """Nanoseconds of CPU an event with a rule and without it, medians of blocks measured in turn."""

    rule: str
    traffic: str
    whole: float
    without: float

    @property
    def saved(self) -> float:
        """Nanoseconds an event less without the rule."""
        return self.whole - self.without


@dataclass(frozen=True, slots=True)
class Rules:
    """The costs of rules; around: nanoseconds an event of the twin that calls the loop, by traffic."""

    costs: list[Cost]
    around: dict[str, float]

    def costs_of(self, traffic: str) -> list[Cost]:
        """The costs in a traffic, the dearest rule first."""
        return sorted((cost for cost in self.costs if cost.traffic == traffic), key=lambda cost: -cost.saved)

    def whole(self, traffic: str) -> float:
        """Nanoseconds an event of the whole loop."""
        return statistics.median(cost.whole for cost in self.costs_of(traffic))

    def bare(self, traffic: str) -> float:
        """Nanoseconds an event of the loop without any rule but the index of ids."""
        return next(cost.without for cost in self.costs_of(traffic) if cost.rule == ALL.name)


def measure(folder: Path, say: Say, *, quick: bool) -> Rules:
    """Measure each rule; a loop that is not compiled yet takes one to three minutes."""
    warm()
    repeats = 10 if quick else 40
    costs = []
    around: dict[str, float] = {}
    with _Loop(None, folder) as whole:
        for rule in RULES:
            say(f"the event loop without: {rule.name}")
            with _Loop(rule, folder) as without:
                for traffic in rule.traffics:
                    pairs = [(whole.block(traffic), without.block(traffic)) for _ in range(repeats + 1)][1:]
                    mine, other = (statistics.median(loop for loop, _ in column) for column in zip(*pairs, strict=True))
                    costs.append(Cost(rule.name, traffic, mine, other))
                    around[traffic] = statistics.median(rest for (_, rest), _ in pairs)
    return Rules(costs, around)


class _Loop:
    """A process with the event loop without a rule."""

    def __init__(self, rule: Rule | None, folder: Path) -> None:
        prepare = partial(_prepare, rule.name if rule else None, folder)
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), prepare)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    def block(self, traffic: str) -> tuple[float, float]:
        """Apply a block; return nanoseconds an event of the loop, and of the twin around it."""
        return self._pool.submit(_apply, traffic).result()


# --- in that process -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Source:
    """A store that holds HELD messages, and blocks of events for it."""

    twin: MessageStore
    blocks: Iterator[EventBlock]


_sources: dict[str, _Source] = {}
_clock = [0.0]  # seconds in the event loop


def _prepare(rule_name: str | None, folder: Path) -> None:
    """Fill the stores with the loop of mqtwin, then replace it by the one without a rule."""
    rule = next((rule for rule in RULES if rule.name == rule_name), None)
    warm()
    for traffic in rule.traffics if rule else {name: None for each in RULES for name in each.traffics}:
        _sources[traffic] = _mixed(folder) if traffic == MIXED else _of_mechanism(folder, traffic)
    loop = event_loop.apply
    if rule:
        for kernel, other in rule.replaced.items():
            _replace(kernel, _compile.kernel(other))
        content = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]
        _compile.CACHE_FOLDER = _CACHE / f"{_compile.CACHE_FOLDER.name}-{content}" / f"{RULES.index(rule):02}"
        loop = _compile.routine(event_loop.apply.py_func)  # type: ignore[attr-defined]  # a kernel
    event_loop.apply = _timed(loop)


def _replace(kernel: object, other: object) -> None:
    for module in [module for name, module in sys.modules.items() if name.startswith("kernels")]:
        for name in [name for name, value in vars(module).items() if value is kernel]:
            setattr(module, name, other)


def _timed(loop: Callable[..., Any]) -> Callable[..., Any]:
    def timed(*arguments: Any) -> Any:
        began = time.process_time()
        try:
            return loop(*arguments)
        finally:
            _clock[0] += time.process_time() - began

    return timed


def _of_mechanism(folder: Path, name: str) -> _Source:
    mechanism = _MECHANISMS[name]
    estate = mechanism.estate(folder, HELD)
    twin, calls = open_message_store(estate, mechanism.store), Calls(mechanism, estate)
    twin.apply(calls.puts(HELD))
    twin.apply(calls.in_turn())
    return _Source(twin, iter(calls.in_turn, None))


def _mixed(folder: Path) -> _Source:
    estate = site.load(folder)
    twin, decoder, traffic = open_message_store(estate, site.STORES[0]), Decoder(estate), Traffic(site.STORES[:1])
    for table in (traffic.fill(HELD), traffic.steady(_BLOCK)):
        for block in decoder.arrow_table(table).blocks(estate):
            twin.apply(block)
    blocks = iter(lambda: decoder.arrow_table(traffic.steady(_BLOCK)).blocks(estate)[0], None)
    return _Source(twin, blocks)


def _apply(traffic: str) -> tuple[float, float]:
    source = _sources[traffic]
    block = next(source.blocks)
    _clock[0], began = 0.0, time.process_time()
    source.twin.apply(block)
    seconds = time.process_time() - began
    return _clock[0] / len(block) * 1e9, (seconds - _clock[0]) / len(block) * 1e9
