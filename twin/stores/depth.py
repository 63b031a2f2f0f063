"""The depth of one queue as a resource, and how long until it holds MAXDEPTH messages: then a put fails with 2053.

The forecast is a straight line, so its alert is a watch: the depth of a queue has no offload rules, and `queue-full`
follows when the limit is reached. Sources: [IBM: MQ 9.1, MaxQDepth, q103290_] (2053 at MAXDEPTH; storage may run out
before), [IBM: MQ 9.0, CurrentQDepth, q106410_] (what counts), [IBM: MQRC 2053, q041240_] (more getters, or a larger
MAXDEPTH); [assumed] (the line, the growth from which it is believed, when the alert is over); docs/alerts.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from typing_extensions import override

from kernels import layout, watch
from kernels.clock import SECOND
from kernels.ticks import MARK, MIN_GROWTH_PCT
from twin.alerts import texts
from twin.alerts.episodes import STEP, Alert, Episode, Episodes, Finding
from twin.alerts.fillers import growth, growth_span
from twin.alerts.resource_view import CALM_AFTER_FULL, HYSTERESIS_PCT, ResourceView
from twin.alerts.runbook import NOTHING, OURS, Facts, Runbook
from twin.conditions import Condition, Pool, Resource
from twin.estate import ForecastSettings
from twin.estate.attributes import MAX_DEPTH
from twin.records import Filler
from twin.state.arrays import Array
from twin.units import as_span, percent

_CALM_LEAD_RATIO = 2.5  # of the lead: beyond it MAXDEPTH is too far off to matter


class QueueDepth(ResourceView):
    """Messages on one queue against its MAXDEPTH. `store_usage`, percent: has a larger MAXDEPTH storage behind it?"""

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
        self.resource = resource  # the depth of that queue
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
        return growth(self._queues, "depth") * own, self._queues["depth"] * own

    @override
    def is_over(self, condition: str, now: int) -> bool:
        calm = self.last_full + CALM_AFTER_FULL <= now
        return calm and (not self._limit or self.usage_pct < 100.0 - HYSTERESIS_PCT)

    @override
    def describe(self, condition: str) -> str:
        if not self._limit:
            return f"{self.text}: {self._depth:,} messages, puts fail with 2053; its MAXDEPTH is not in the estate"
        fails = "puts fail" if self._is_refusing else "the next put fails"
        return f"{self.text}: {self._depth:,} of MAXDEPTH({self._limit}), {fails} with 2053"

    @override
    def facts(self, fillers: tuple[Filler, ...]) -> Facts:
        resource, usage = max(self._store_usage.items(), key=lambda entry: entry[1])
        is_shared = int(self._store.params[0]["kind"]) == layout.STRUCTURE
        room = f"{usage:.1f} % of {resource} of {self._store_name} in use"
        return depth_facts(self.resource, self._limit, room, self._store_name, is_shared=is_shared)


def depth_facts(resource: Resource, limit: int, room: str, store: str, *, is_shared: bool) -> Facts:
    """Return the facts about a queue that reaches MAXDEPTH, `limit` or 0: not known; `room`: of the store, in words."""
    facts = texts.queue_facts(resource.owner, is_shared=is_shared)
    return facts.where(queue=True, depth_known=limit, depth_can_grow=0 < limit < MAX_DEPTH).adding(
        store=store,
        resource=resource.label,
        room=room,
        max_depth=str(limit),
        larger_depth=str(min(2 * limit, MAX_DEPTH)),
    )


# --- the forecast ----------------------------------------------------------------------------------------------------


def depth_lead_s(config: ForecastSettings) -> float:
    """Return the seconds before MAXDEPTH from which an alert opens: a line is not reliable further ahead."""
    return min(config.forecast_lead_s, config.forecast_page_lead_s)


def seconds_left(queues: Array, span_s: float) -> Array:
    """Return f8[n], seconds until each queue holds MAXDEPTH messages by its growth in `span_s`, or inf."""
    limits = queues["max_depth"]
    grown = growth(queues, "depth")
    room = np.maximum(limits - (queues["depth"] - queues["uncommitted_gets"]), 0)
    grows = (limits > 0) & (100 * grown >= MIN_GROWTH_PCT * limits)
    left: Array = np.where(grows, room * span_s / np.maximum(grown, 1), np.inf)
    return left


def check(
    queues: Array,
    names: list[str],
    view_of: Callable[[Resource], ResourceView],
    with_reader: Callable[[Finding], Finding],
    lead_s: float,
    began: int | None,
    episodes: Episodes,
    now: int,
) -> list[Alert]:
    """Open, update or clear the alerts about queues that reach MAXDEPTH within `lead_s`; return what is published."""
    if not queues["max_depth"].any():
        return []
    span = growth_span(now, began)
    span_s, is_known = span / SECOND, span >= MARK  # of a store that began a moment ago the rate says nothing
    alerts: list[Alert] = []
    for row, left in enumerate(seconds_left(queues, span_s).tolist()):
        resource = Resource(Pool.QUEUE, names[row])
        episode = episodes.get(Condition.QUEUE_FULL_FORECAST, resource)
        if episode is not None:
            alerts += _review(episode, episodes, view_of(resource), with_reader, left, span_s, lead_s, now)
        elif is_known and 0 < left <= lead_s:  # at MAXDEPTH `queue-full` is open
            alerts += episodes.open(with_reader(_finding(view_of(resource), left, span_s, episodes.runbook)), now)
    return alerts


def _review(
    episode: Episode,
    episodes: Episodes,
    view: ResourceView,
    with_reader: Callable[[Finding], Finding],
    left: float,
    span_s: float,
    lead_s: float,
    now: int,
) -> list[Alert]:
    """Update an open alert where usage has risen, or clear it once MAXDEPTH has been far off for a while."""
    is_over = left > _CALM_LEAD_RATIO * lead_s
    cleared = episodes.settle(episode, lambda: _finding(view, None, span_s), now, is_over=is_over)
    has_risen = left > 0 and (view.usage_pct or 0.0) >= episode.usage_pct + 2 * STEP
    if has_risen and not is_over:
        return episodes.update(episode, with_reader(_finding(view, left, span_s, episodes.runbook)), now)
    return cleared


def _finding(view: ResourceView, left: float | None, span_s: float, runbook: Runbook = OURS) -> Finding:
    """Return the finding about a queue. left: seconds until MAXDEPTH; None: it is over."""
    what = "alert cleared"
    if left is not None:
        what = f"reached in {as_span(left)} if it grows as in the last {as_span(span_s)}, then puts fail with 2053"
    return Finding(
        condition=Condition.QUEUE_FULL_FORECAST,
        resource=view.resource,
        severity=Condition.QUEUE_FULL_FORECAST.severity,
        usage_pct=view.usage_pct,
        fillers=(Filler(view.resource.owner, 1.0),),
        cause=f"{view.text}: {view.usage_pct:.1f} % of MAXDEPTH, {what}.",
        runbook=() if left is None else view.actions(Condition.QUEUE_FULL_FORECAST, (), NOTHING, runbook),
    )
