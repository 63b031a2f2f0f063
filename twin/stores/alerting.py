"""Alerts of a store that holds messages: when conditions fire, and at the end of a tick.

Kernels mark in `fired` which conditions have begun, and each is marked once until it is armed again: when its alert is
cleared. A tick looks at what is to come, and reviews the alerts that are open.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from kernels import clock, watch
from twin.alerts.episodes import STEP, Alert, Episode
from twin.alerts.resource_view import ResourceView
from twin.conditions import Condition, Pool, Resource
from twin.estate import Estate
from twin.forecast.monitor import ForecastMonitor
from twin.forecast.view import ForecastView
from twin.stores import depth_forecast, in_doubt

Fired = tuple[str, Resource]  # condition, and the resource that it is about

_DATASET_BITS: dict[int, str] = {  # in the order in which alerts of one event are published
    watch.DATASET_THRESHOLD: Condition.THRESHOLD,
    watch.DATASET_CANNOT_EXPAND: Condition.CANNOT_EXPAND,
    watch.DATASET_FULL: Condition.FULL,
}
_NOT_REVIEWED = (  # they have rules of their own
    *(Condition.DRIFT, Condition.FULL_FORECAST, Condition.SOURCE_SILENT, Condition.IN_DOUBT),
    *(Condition.SCM_OVERRUN, Condition.FAULT_WAIT, Condition.QUEUE_FULL_FORECAST),
)


class AlertedStore(ForecastView, Protocol):
    """A store as its alerts see it.

    Attributes:
        estate: the estate.
        began: time of the store's first event, as for `twin.alerts.fillers.growth_span`.
        monitor: its forecasts.
    """

    estate: Estate
    began: int | None
    monitor: ForecastMonitor

    @property
    def conditions(self) -> Mapping[int, Fired]:
        """Condition and resource by bit of scalars.fired, in the order in which alerts are published."""

    @property
    def qmgrs(self) -> list[str]:
        """Names of the queue managers by row."""

    def view(self, resource: Resource) -> ResourceView:
        """Return the view of a resource."""

    def is_relieved(self, condition: str, resource: Resource) -> bool:
        """Return True if a condition that fired ends by itself: no alert opens, and the store arms it again."""


def open_fired(view: AlertedStore, now: int | None = None) -> list[Alert]:
    """Open an alert for every condition that fired.

    Args:
        view: the store.
        now: event time, microseconds; None: the store's clock.
    """
    store = view.tables.store
    scalars, datasets, queues = store.scalars[0], store.datasets, store.queues[: len(view.queues)]
    if not scalars["fired"] and not datasets["fired"].any() and not queues["fired"].any():
        return []
    now = int(scalars["clock"]) if now is None else now
    fired = [condition for bit, condition in view.conditions.items() if int(scalars["fired"]) & bit]
    for row in np.flatnonzero(datasets["fired"]).tolist():
        bits, resource = int(datasets["fired"][row]), Resource(Pool.SMDS, view.qmgrs[row])
        fired += [(condition, resource) for bit, condition in _DATASET_BITS.items() if bits & bit]
    fired += [
        (Condition.QUEUE_FULL, Resource(Pool.QUEUE, view.queues[row]))
        for row in np.flatnonzero(queues["fired"]).tolist()
    ]
    scalars["fired"] = datasets["fired"] = queues["fired"] = 0
    viewer = view.viewer()
    return [
        view.episodes.open(viewer.finding(condition, resource, None), now)
        for condition, resource in fired
        if not view.is_relieved(condition, resource)
    ]


def arm(view: AlertedStore, condition: str, resource: Resource) -> None:
    """Allow a condition of a resource to fire again."""
    store = view.tables.store
    for bit, watched in view.conditions.items():
        if watched == (condition, resource):
            store.scalars[0]["armed"] |= np.uint32(bit)
    if resource.pool == Pool.SMDS:
        row = view.qmgrs.index(resource.owner)
        for bit, of_dataset in _DATASET_BITS.items():
            if of_dataset == condition:
                store.datasets["armed"][row] |= np.uint8(bit)
    elif resource.pool == Pool.QUEUE:
        store.queues["armed"][view.queues.index(resource.owner)] |= np.uint8(watch.QUEUE_FULL)
        store.queues_dirty[:] = 1


def check_tick(view: AlertedStore, tick: int) -> list[Alert]:
    """Return the alerts at the end of a tick that is sampled and metered."""
    now = tick * clock.TICK
    alerts = in_doubt.check(view.tables.store, view.estate, view.name, view.qmgrs, view.episodes, now)
    alerts += foresee(view, tick)
    for episode in view.episodes:
        if episode.condition not in _NOT_REVIEWED:
            alerts += _review(view, episode, now)
    return alerts


def foresee(view: AlertedStore, tick: int) -> list[Alert]:
    """Return the alerts about what is to come, at a tick that is sampled and metered."""
    rows = view.tables.store.queues[: len(view.queues)]
    lead_s, now = view.config.forecast_lead_s, tick * clock.TICK
    alerts = depth_forecast.check(rows, view.queues, view.view, lead_s, view.began, view.episodes, now)
    return alerts + view.monitor.tick(view, tick)


def _review(view: AlertedStore, episode: Episode, now: int) -> list[Alert]:
    """Clear an open alert whose condition has been over for long enough; update it where it got worse."""
    resource, viewer = episode.resource, view.viewer()
    of_resource = view.view(resource)
    is_over = of_resource.is_over(episode.condition, now)
    cleared = view.episodes.settle(
        episode, lambda: viewer.over(episode.condition, resource, episode.severity), now, is_over=is_over
    )
    if cleared:
        arm(view, episode.condition, resource)
    if is_over:
        return cleared
    severity = of_resource.severity(episode.condition, episode.severity)
    if severity == episode.severity and min(100.0, of_resource.usage_pct) < episode.usage_pct + STEP:
        return []
    finding = viewer.finding(episode.condition, resource, episode.severity)
    return [view.episodes.update(episode, finding, now)]
