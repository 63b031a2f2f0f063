"""The simulated queue managers of a scenario, as a `System` whose state is the truth at any time of the story."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kernels.layout import GET, PUT
from tests.support.queue_managers import SECOND, Queue, System
from twin.estate import Estate
from twin.events import Measured
from twin.events.fields import MEASURED_COUNTS, MEASURED_SMDS
from twin.records import StateRecord, StructureState
from twin.simulation.arrivals import Flow, demands
from twin.simulation.scenario import HOUR, Scenario
from twin.simulation.system import RealSystem, StoreOutcome
from twin.stores.warm_up import warm

Array = npt.NDArray[Any]


class PlayedSystem(System):
    """Queue managers in which a scenario is played, up to the time that a test asks for.

    The levels are those of the stores that serve the demands (`twin.simulation.system`), not of a twin that follows the
    events. A queue manager has a queue open for input or output while its flow has a rate: once for each flow.

    Args:
        estate: the estate.
        scenario: what is played.
        seed: seed of the random numbers.

    Attributes:
        tables: the events so far, as tables of ARROW_SCHEMA, in order of time.
        end: when the story is over, microseconds.
    """

    def __init__(self, estate: Estate, scenario: Scenario, seed: int = 0) -> None:
        super().__init__(estate, scenario.start)
        warm()
        rng, flows = scenario.cast(estate, np.random.default_rng(seed))
        self.tables: list[pa.Table] = []
        self.start = scenario.start
        self.end = scenario.start + round(scenario.hours * HOUR * SECOND)
        self._flows: list[Flow] = list(flows)
        self._pieces = demands(flows, scenario.start, scenario.hours * HOUR, rng)
        self._waiting: Array | None = next(self._pieces, None)
        self._real = RealSystem(estate, tag=seed)
        self._put_at: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)  # by queue: time by message
        self._units: defaultdict[str, list[tuple[str, str, str, str | None, int]]] = defaultdict(list)

    @property
    def outcomes(self) -> Mapping[str, StoreOutcome]:
        """Refused puts and peaks so far, by store."""
        return self._real.outcomes

    def play(self, until: int) -> None:
        """Serve what is demanded before a time, microseconds, and set the state to that of the time."""
        for piece in self._before(until):
            table = self._real.serve(piece)
            self.tables.append(table)
            self._follow(table)
        self.time = until
        for name, twin in self._real._twins.items():
            self.levels[name] = levels_of(twin.state())
        self._open_queues((until - self.start) / SECOND)

    def _before(self, until: int) -> Iterator[Array]:
        while self._waiting is not None:
            cut = int(np.searchsorted(self._waiting["time"], until))
            if cut:
                yield self._waiting[:cut]
            if cut < self._waiting.size:
                self._waiting = self._waiting[cut:]
                return
            self._waiting = next(self._pieces, None)

    def _follow(self, table: pa.Table) -> None:
        """Keep depths, times and uncommitted messages: CURDEPTH has uncommitted puts and no uncommitted gets."""
        names = ("time", "qmgr", "op", "queue", "msgid", "uow", "reason")
        columns = [table.column(name).cast(pa.int64()) if name == "time" else table.column(name) for name in names]
        for time, qmgr, op, name, message, unit, reason in zip(
            *(column.to_pylist() for column in columns), strict=True
        ):
            if op in {"COMMIT", "BACKOUT"}:
                self._end(qmgr, unit, is_backout=op == "BACKOUT")
            if op not in {"PUT", "GET"} or reason:
                continue
            owner = self._owner(qmgr, name)
            queue, held = self.queue(owner, name), self._put_at[owner, name]
            put_at = time if op == "PUT" else held.pop(message, time)
            if op == "PUT":
                queue.depth, queue.last_put = queue.depth + 1, time
                held[message] = time
            else:
                queue.depth, queue.last_get = queue.depth - 1, time
            if unit is not None:
                self._units[unit].append((op, owner, name, message, put_at))
                queue.uncommitted[qmgr] = queue.uncommitted.get(qmgr, 0) + 1
        for (owner, name), held in self._put_at.items():
            self.queue(owner, name).oldest = next(iter(held.values()), None)

    def _end(self, qmgr: str, unit: str, *, is_backout: bool) -> None:
        """End a unit of work."""
        for op, owner, name, message, put_at in self._units.pop(unit, ()):
            queue = self.queue(owner, name)
            queue.uncommitted[qmgr] -= 1
            if is_backout and op == "PUT":
                queue.depth -= 1
                self._put_at[owner, name].pop(message or "", None)
            elif is_backout:
                queue.depth += 1
                self._put_at[owner, name] = {message or "": put_at, **self._put_at[owner, name]}  # it is old again

    def _owner(self, qmgr: str, queue: str) -> str:
        return self.owner(self.estate.stores[self.estate.routes[self.estate.queue_routes[qmgr, queue]].store])

    def _open_queues(self, seconds: float) -> None:
        """Set the handles of all queues to those of a time, seconds since the start."""
        for queue in self.queues.values():
            queue.getters, queue.putters = {}, {}
        for flow in self._flows:
            if float(flow.rate(np.array([seconds]))[0]) <= 0:
                continue
            if flow.op == PUT:
                self._handle(flow.route, is_getter=False)
            if flow.op == GET or flow.got_by is not None:
                self._handle(flow.route if flow.got_by is None else flow.got_by, is_getter=True)

    def _handle(self, place: int, *, is_getter: bool) -> None:
        route = self.estate.routes[place]
        assert route.queue is not None
        queue: Queue = self.queue(self._owner(route.qmgr, route.queue), route.queue)
        handles = queue.getters if is_getter else queue.putters
        handles[route.qmgr] = handles.get(route.qmgr, 0) + 1


def levels_of(state: StateRecord) -> Measured:
    """Return all that can be measured of a state record."""
    fields: dict[str, Any] = {name: getattr(state, name, None) for name in MEASURED_COUNTS}
    if isinstance(state, StructureState):
        fields["smds"] = {
            qmgr: {name: value for name in MEASURED_SMDS if (value := getattr(data_set, name)) is not None}
            for qmgr, data_set in state.smds.items()
        }
    return {name: value for name, value in fields.items() if value is not None}  # type: ignore[return-value]
