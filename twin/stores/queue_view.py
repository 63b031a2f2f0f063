"""The depth of one queue as a resource: a put to a queue that holds MAXDEPTH messages fails with 2053.

Sources: [IBM: MQ 9.1, MaxQDepth, q103290_] (2053 at MAXDEPTH; storage may run out before), [IBM: MQ 9.0, CurrentQDepth,
q106410_] (what counts), [IBM: MQRC 2053, q041240_] (more getters, or a larger MAXDEPTH).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from typing_extensions import override

from kernels import layout, watch
from twin.alerts import fillers, texts
from twin.alerts.resource_view import CALM_AFTER_FULL, HYSTERESIS_PCT, ResourceView
from twin.alerts.texts import NOTHING
from twin.capacity.statements import alter_queue, display_queue
from twin.conditions import FULL, Resource
from twin.estate.attributes import MAX_DEPTH
from twin.records import Action, Filler, Step
from twin.state.arrays import Array
from twin.units import percent


class QueueDepth(ResourceView):
    """Messages on one queue against its MAXDEPTH.

    Args:
        store: arrays of the store.
        queues: QUEUE[n], the rows of its queues.
        row: row of the queue.
        resource: the depth of that queue.
        store_name: name of the store.
        store_usage: usage of the store by resource, percent; says whether a larger MAXDEPTH has storage behind it.
    """

    unit = "messages"

    def __init__(
        self,
        store: layout.Store,
        queues: Array,
        row: int,
        resource: Resource,
        store_name: str,
        store_usage: Mapping[Resource, float],
    ) -> None:
        super().__init__(store)
        self._queues = queues
        self._row = row
        self.resource = resource
        self._store_name = store_name
        self._store_usage = store_usage
        self.text = f"Depth of {resource.owner}"

    @property
    def _limit(self) -> int:
        return int(self._queues["max_depth"][self._row])

    @property
    def _depth(self) -> int:
        return int(watch.depth(self._store, self._row))

    @property
    def _is_refusing(self) -> bool:
        return self.last_full + CALM_AFTER_FULL > int(self._store.scalars[0]["clock"])

    @override
    def _read_usage_pct(self) -> float:
        """Percent of MAXDEPTH; 100 for a queue that refused a put and whose MAXDEPTH the estate does not give."""
        return percent(self._depth, self._limit, of_nothing=100.0)

    @property
    @override
    def last_full(self) -> int:
        return int(self._queues["last_full"][self._row])

    @override
    def by_queue(self) -> tuple[Array, Array]:
        own = np.zeros(self._queues.size, np.int64)
        own[self._row] = 1
        return fillers.growth(self._queues, "depth") * own, self._queues["depth"] * own

    @override
    def is_over(self, condition: str, now: int) -> bool:
        calm = self.last_full + CALM_AFTER_FULL <= now
        return calm and (not self._limit or self.usage_pct < 100.0 - HYSTERESIS_PCT)

    @override
    def severity(self, condition: str, before: str | None) -> str:
        return FULL

    @override
    def describe(self, condition: str) -> str:
        if not self._limit:
            return f"{self.text}: {self._depth:,} messages, puts fail with 2053; its MAXDEPTH is not in the estate"
        fails = "puts fail" if self._is_refusing else "the next put fails"
        return f"{self.text}: {self._depth:,} of MAXDEPTH({self._limit}), {fails} with 2053"

    @override
    def actions(self, ranked: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING) -> tuple[Action, ...]:
        resource, usage = max(self._store_usage.items(), key=lambda entry: entry[1])
        room = f"{usage:.1f} % of {resource} of {self._store_name} in use"
        is_shared = int(self._store.params[0]["kind"]) == layout.STRUCTURE
        return depth_actions(self.resource.owner, self._limit, effects, room, is_shared=is_shared)


def depth_actions(
    queue: str, limit: int, effects: Mapping[str, str], room: str, *, is_shared: bool
) -> tuple[Action, ...]:
    """Return the actions for a queue that reaches MAXDEPTH.

    Args:
        queue: its name.
        limit: its MAXDEPTH; 0: not known.
        effects: effect of each action.
        room: what the store has room for, as part of a sentence.
        is_shared: True for a shared queue.
    """
    look, undo = display_queue(queue, "MAXDEPTH"), None
    steps: tuple[Step, ...] = ()
    if 0 < limit < MAX_DEPTH:
        steps = (Step("Alter the queue", alter_queue(queue, f"MAXDEPTH({min(2 * limit, MAX_DEPTH)})")),)
        undo = alter_queue(queue, f"MAXDEPTH({limit})")
    elif not limit:
        steps = (Step("Look up its MAXDEPTH", look), Step("Alter the queue by ALTER QLOCAL with a larger MAXDEPTH"))
    raising = Action(
        id="max-depth",
        summary=f"Raise MAXDEPTH of {queue}",
        precondition=f"the store has room for more messages: {room}",
        steps=steps,
        undo=undo,
    )
    own = (Filler(queue, 1.0),)
    return (*texts.getter_actions(own, effects, is_shared=is_shared), *((raising,) if steps else ()))
