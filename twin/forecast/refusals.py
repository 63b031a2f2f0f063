"""Stores that refuse puts now: what is full needs no forecast. All who ask whether one does, ask here."""

from __future__ import annotations

from twin.conditions import Condition, Resource
from twin.forecast.outlook import Forecast, usage
from twin.forecast.view import ForecastView


def refusing(view: ForecastView, now: int) -> tuple[Resource, ...]:
    """Return the resources of a store for want of which puts are refused, the last one refused in front.

    Args:
        view: the store.
        now: event time, microseconds.
    """
    full = [
        resource for episode in view.episodes if episode.condition == Condition.FULL for resource in episode.resources
    ]
    if not full:
        return ()
    viewer = view.viewer()
    views = [viewer.resource(resource) for resource in full]
    refused = sorted((viewed for viewed in views if viewed.is_refusing(now)), key=lambda viewed: -viewed.last_full)
    return tuple(viewed.resource for viewed in refused)


def full_now(view: ForecastView, refused: tuple[Resource, ...], now: int) -> tuple[Forecast, ...]:
    """Return the forecasts of resources for want of which puts are refused: full now, for certain.

    Args:
        view: the store.
        refused: the resources, as `refusing` returns them.
        now: event time, microseconds.
    """
    fill = view.fill_model(int(view.tables.store.scalars[0]["tick"]))
    usages = {resource: 100 * usage(fill, number) for number, resource in enumerate(fill.resources)}
    return tuple(
        Forecast(
            store=view.name,
            time=now,
            resource=str(resource),
            usage_pct=round(usages.get(resource, 100.0), 3),
            p10=0.0,
            p50=0.0,
            p90=0.0,
            probability=1.0,
            first=resource == refused[0],
        )
        for resource in refused
    )
