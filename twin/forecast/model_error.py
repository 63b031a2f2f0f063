"""How far the model of a store may be from what the store really holds, as measurements and lost events show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twin.forecast.outlook import fullest, usage

if TYPE_CHECKING:
    from twin.forecast.fill_model import FillModel
    from twin.forecast.view import ForecastView

_MAX_DOUBT = 1.0  # of a time to full, as a share of it [assumed]


def lost_share(view: ForecastView) -> float:
    """Return the share of the events that the model lacks, 0..1.

    It lacks those whose numbers are missing, and the puts of messages that were got; the larger share of both counts.
    """
    scalars = view.tables.store.scalars[0]
    shares = (
        int(lost) / max(1, int(lost) + int(known))
        for lost, known in ((scalars["gaps"], scalars["events"]), (scalars["unmatched_gets"], scalars["ages"]))
    )
    return max(shares)


def error_pct(view: ForecastView, fill: FillModel) -> float:
    """Return by how many percent of a store its model may be wrong.

    That is the drift that the last measurement showed. Without one, the model is taken to lack the same share of what
    the store holds as it lacks of the events [assumed].
    """
    if view.drift.pct is not None:
        return abs(view.drift.pct)
    return 100.0 * usage(fill, fullest(fill)) * lost_share(view)


def doubt(view: ForecastView, fill: FillModel) -> float:
    """Return the error of the time to full that this means, as a share of it: the error over the room left.

    It is 0 where the model may be wrong by no more than `drift_tolerance_pct`.
    """
    pct = error_pct(view, fill)
    if pct <= view.config.drift_tolerance_pct:
        return 0.0
    return float(min(_MAX_DOUBT, pct / max(100.0 * (1.0 - usage(fill, fullest(fill))), 1.0)))
