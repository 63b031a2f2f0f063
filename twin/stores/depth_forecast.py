"""How long until a queue holds MAXDEPTH messages, at the rate at which its depth has grown.

A straight line, so its alert is a watch: the depth of a queue has no offload rules, and `queue-full` follows when the
limit is reached.

Sources: [IBM: MQ 9.1, MaxQDepth, q103290_] (a put at MAXDEPTH fails with 2053); [assumed] (the line, the growth from
which it is believed, when the alert is over); docs/alerts.md, "Conditions".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernels.clock import SECOND
from kernels.ticks import MARK, MIN_GROWTH_PCT
from twin.alerts.episodes import STEP, Alert, Episode, Episodes, Finding
from twin.alerts.fillers import growth, growth_span
from twin.alerts.resource_view import ResourceView
from twin.conditions import INFO, Condition, Pool, Resource
from twin.estate import ForecastSettings
from twin.records import Filler
from twin.state.arrays import Array
from twin.units import as_span

_CALM_LEAD_RATIO = 2.5  # of the lead: MAXDEPTH further off than this is no danger


def depth_lead_s(config: ForecastSettings) -> float:
    """Return the seconds before MAXDEPTH from which an alert opens: a line further ahead is not to be believed."""
    return min(config.forecast_lead_s, config.forecast_page_lead_s)


def seconds_left(queues: Array, span_s: float) -> Array:
    """Return f8[n], seconds until each queue holds MAXDEPTH messages; infinite if it does not grow or has no limit.

    Args:
        queues: QUEUE[n].
        span_s: seconds in which it has grown (see `twin.alerts.fillers.growth`).
    """
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
    lead_s: float,
    began: int | None,
    episodes: Episodes,
    now: int,
) -> list[Alert]:
    """Open, update or clear the alerts about queues that reach MAXDEPTH within the lead; return what is published.

    Args:
        queues: QUEUE[n].
        names: names of the queues by row.
        view_of: returns the view of the depth of a queue.
        lead_s: seconds before MAXDEPTH from which an alert opens.
        began: time of the store's first event, as for `growth_span`.
        episodes: the store's open alerts.
        now: event time of the tick, microseconds.
    """
    if not queues["max_depth"].any():
        return []
    span = growth_span(now, began)
    span_s, is_known = span / SECOND, span >= MARK  # of a store that began a moment ago the rate says nothing
    alerts: list[Alert] = []
    for row, left in enumerate(seconds_left(queues, span_s).tolist()):
        resource = Resource(Pool.QUEUE, names[row])
        episode = episodes.get(Condition.QUEUE_FULL_FORECAST, resource)
        if episode is not None:
            alerts += _review(episode, episodes, view_of(resource), left, span_s, lead_s, now)
        elif is_known and 0 < left <= lead_s:  # at MAXDEPTH `queue-full` is open
            alerts += episodes.open(_finding(view_of(resource), left, span_s), now)
    return alerts


def _review(
    episode: Episode, episodes: Episodes, view: ResourceView, left: float, span_s: float, lead_s: float, now: int
) -> list[Alert]:
    """Update an open alert where usage has risen, or clear it once MAXDEPTH has been far off for a while."""
    is_over = left > _CALM_LEAD_RATIO * lead_s
    cleared = episodes.settle(episode, lambda: _finding(view, None, span_s), now, is_over=is_over)
    has_risen = left > 0 and (view.usage_pct or 0.0) >= episode.usage_pct + 2 * STEP
    return episodes.update(episode, _finding(view, left, span_s), now) if has_risen and not is_over else cleared


def _finding(view: ResourceView, left: float | None, span_s: float) -> Finding:
    """Return the finding about a queue. left: seconds until MAXDEPTH; None: it is over."""
    what = "alert cleared"
    if left is not None:
        what = f"reached in {as_span(left)} if it grows as in the last {as_span(span_s)}, then puts fail with 2053"
    return Finding(
        condition=Condition.QUEUE_FULL_FORECAST,
        resource=view.resource,
        severity=INFO,
        usage_pct=view.usage_pct,
        fillers=(Filler(view.resource.owner, 1.0),),
        cause=f"{view.text}: {view.usage_pct:.1f} % of MAXDEPTH, {what}.",
        runbook=() if left is None else view.actions(()),
    )
