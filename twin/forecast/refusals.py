"""Stores that refuse puts now: a full resource needs no forecast. This is the only check of whether a store does.

Also the time that a store has left if its traffic continues, just before and just after a change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from kernels import meter_rows
from kernels.clock import MINUTE_TICKS
from twin.conditions import Condition, Resource
from twin.forecast import flows
from twin.forecast.fill_model import FillModel
from twin.forecast.outlook import Forecast, look_closely, usage
from twin.forecast.view import ForecastView

LEFT_HOURS = 8  # for which a store is rolled forward when it is asked how long it has left


def refusing(view: ForecastView, now: int) -> tuple[Resource, ...]:
    """Return the full resources for which a store refuses puts, the last one refused in front."""
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
    """Return the forecasts of full resources for which puts are refused: full now, for certain."""
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


def is_same(fill: FillModel, other: FillModel) -> bool:
    """Return True if two models of one store have the same room and the same rules."""
    pairs = ((fill.scalars, other.scalars), (fill.offload, other.offload), (fill.sets, other.sets))
    return all(np.array_equal(mine, its) for mine, its in pairs)


def without_rest(fill: FillModel, before: FillModel, refused: Sequence[Resource]) -> FillModel:
    """Return a fill model without the room that is left in resources: puts are refused in spite of it.

    That room is too small for the next message, or the model counts too little. Only room added by settings counts.
    """
    scalars, sets = fill.scalars.copy(), fill.sets.copy()
    for resource in refused:
        if resource not in before.resources or resource not in fill.resources:
            continue
        number, place = before.resources.index(resource), fill.resources.index(resource)
        if place >= meter_rows.FIRST_DATA_SET:
            used, total = before.sets[number - meter_rows.FIRST_DATA_SET]
            sets[place - meter_rows.FIRST_DATA_SET, 0] += max(0.0, float(total - used))
        else:
            name = "ents" if place == meter_rows.ENTRIES else "space"
            scalars[name] += np.maximum(before.scalars[f"{name}_max"] - before.scalars[name], 0.0)
    return replace(fill, scalars=scalars, sets=sets)


@dataclass(frozen=True, slots=True)
class Left:
    """The time that a store has left if its traffic continues."""

    seconds: float | None  # median until any resource is full; inf: beyond `LEFT_HOURS`; None: traffic not known
    fill: FillModel  # its fill model
    refused: tuple[Resource, ...]  # the full resources for which puts are refused

    @classmethod
    def ask(cls, view: ForecastView, before: Left | None = None, changed_at: int = 0) -> Self:
        """Return what a store has left now. `before` a change: where it refused puts, only the room that the change
        made counts, and what changes nothing leaves as much. Puts refused before the tick `changed_at` count no more;
        0: nothing changed.
        """
        store = view.tables.store
        scalars = store.scalars[0]
        tick = int(scalars["tick"])
        fill = view.fill_model(tick)
        rolled, refused = fill, tuple[Resource, ...]()
        if before is not None:
            if is_same(fill, before.fill):
                return cls(before.seconds, fill, before.refused)
            refused = before.refused
            rolled = without_rest(fill, before.fill, refused) if refused else fill
        elif not changed_at and (refused := refusing(view, int(scalars["clock"]))):
            return cls(0.0, fill, refused)
        now = flows.present(store, tick, fill.weights, not_before=changed_at)
        if now is None:
            return cls(None, fill, refused)
        outlook = look_closely(store, view.name, rolled, now, tick, LEFT_HOURS * 60 * MINUTE_TICKS)
        return cls(float(np.quantile(outlook.full_at, 0.5, method="nearest")), fill, refused)
