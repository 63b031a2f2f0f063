"""Evidence of a forecast: sentences with numbers that an operator can check; and the error of the model behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernels.clock import MINUTE_TICKS
from kernels.layout import NEVER
from twin.forecast.outlook import SECONDS, Outlook, fullest, usage
from twin.forecast.rises import Past
from twin.state.arrays import Array
from twin.units import as_count, as_range, as_span

if TYPE_CHECKING:
    from twin.forecast.fill_model import FillModel
    from twin.forecast.view import ForecastView

_STOPPED_TICKS = 3 * MINUTE_TICKS  # without a get, of a queue that was got from
_COUNTS = 0.3  # weight from which a past rise is called alike
_NOW_DECIDES = 0.5  # weight of the expert that puts stay as they are, from which the others are not named
_ABOUT_AS_MANY = (0.8, 1.25)  # times the present puts


def evidence(view: ForecastView, outlook: Outlook, queue: str, tick: int) -> tuple[str, ...]:
    """Return why a store is believed to fill, or not: a sentence for each reason. `queue`: fills it most, or ""."""
    reasons = (_levels(outlook), _getters(view, queue, tick), _past(outlook), _hours(outlook), _service(outlook))
    return (*(reason for reason in reasons if reason), *of_model(view, outlook))


def of_model(view: ForecastView, outlook: Outlook) -> tuple[str, ...]:
    """Return a sentence about the reliability of the figures, where it is limited."""
    drift = _drift(view, outlook)
    return (drift,) if drift else ()


def _levels(outlook: Outlook) -> str:
    """Return which levels are extended, where no puts and gets are known."""
    levels = outlook.extended
    if levels is None:
        return ""
    span = as_span(levels.age * SECONDS)
    text = f"no puts and gets are reported: {levels.levels} measured levels of {span} are extended"
    return f"{text}, levelling off at {100 * levels.rests_at:.0f} %" if levels.rests_at < 1.0 else text


def _drift(view: ForecastView, outlook: Outlook) -> str:
    """Return how far the model is from what the store holds, where that is far or not known; levels have no model."""
    if outlook.extended is not None:
        return ""
    drift, tolerance_pct = view.drift, view.config.drift_tolerance_pct
    is_far = error_pct(view, outlook.fill) > tolerance_pct
    if drift.pct is None:
        unknown = "not checked against DISPLAY: the figures are the model's"
        lost = f"{100 * lost_share(view):.0f} % of the events are lost: the times are wider"
        return f"{unknown}; {lost}" if is_far else unknown
    if not is_far:
        return ""
    less = "more" if drift.pct > 0 else "less"
    return (
        f"the model holds {abs(drift.pct):.1f} points {less} of the {drift.resource} than was measured, "
        f"beyond {tolerance_pct:g}: the times are wider"
    )


def _getters(view: ForecastView, queue: str, tick: int) -> str:
    """Return since when nothing was got from a queue."""
    if queue not in view.queues or view.tables.store.scalars["ages"][0] == 0:
        return ""
    row = view.tables.store.queues[view.queues.index(queue)]
    got_at = int(row["got_at"])
    if got_at in (NEVER, 0):
        return f"nothing was ever got from {queue}"
    if tick - got_at < _STOPPED_TICKS:
        return ""
    return f"getters of {queue} stopped {as_span((tick - got_at) * SECONDS)} ago"


def _past(outlook: Outlook) -> str:
    """Return how earlier rises like the present one ended, or that it does not count."""
    if outlook.reading.is_unread:
        return "nobody reads what fills it: how earlier rises ended does not count"
    rise, past = outlook.rise, outlook.past
    now = f"this one has lasted {as_span(rise.age * SECONDS)}"
    alike = past.weights > _COUNTS
    harmless, refused = alike & ~past.refused, int((alike & past.refused).sum())
    if not alike.any():
        return f"no earlier rise like this one is known; {now}"
    parts = []
    if harmless.any():
        parts.append(_ended(past, harmless))
    if refused:
        parts.append(f"{as_count(refused, 'earlier rise')} ended in 2192")
    return f"{', '.join(parts)}; {now}"


def _ended(past: Past, chosen: Array) -> str:
    count = int(chosen.sum())
    usages = 100 * past.usages[chosen]
    lasted = past.lasted[chosen] * SECONDS
    spans = as_range(float(lasted.min()), float(lasted.max()))
    low, high = round(float(usages.min())), round(float(usages.max()))
    heights = f"{low} %" if low == high else f"{low} to {high} %"
    return f"{as_count(count, 'earlier rise')} like this ended after {spans} at {heights}"


def _hours(outlook: Outlook) -> str:
    """Return the puts expected from the same hours of earlier days, where these decide and differ from now.

    The hour is that at which the store is expected to be full, or else the end of the horizon.
    """
    drawn, times = outlook.drawn, outlook.quantiles()
    if drawn is None or drawn.expected is None:
        return ""
    hours, ends = drawn.expected, np.cumsum(drawn.lengths)
    step = int(np.searchsorted(ends, outlook.horizon if times is None else times[1] / SECONDS))
    step = min(step, ends.size - 1)
    factor = float(hours.factor[step])
    if hours.now[step] > _NOW_DECIDES or _ABOUT_AS_MANY[0] <= factor <= _ABOUT_AS_MANY[1]:
        return ""
    ahead, days = as_span(float(ends[step]) * SECONDS), as_count(hours.days, "earlier day")
    return f"by the hours of {days}, {factor:.1f} times as many puts as now are expected in {ahead}"


def _service(outlook: Outlook) -> str:
    """Return the level at which the backlog settles if gets follow it."""
    if not outlook.rests_at_pct:
        return ""
    if outlook.rests_at_pct > 100:
        times = outlook.rests_at_pct / 100
        return f"gets follow the backlog, but at the present rates it comes to rest only at {times:.1f} times what fits"
    return f"gets follow the backlog: at the present rates it comes to rest at {outlook.rests_at_pct:.0f} %"


# --- the error of the model: how far it may be from what the store really holds ---------------------------------------


_MAX_DOUBT = 1.0  # of a time to full, as a share of it [assumed]


def lost_share(view: ForecastView) -> float:
    """Return the share of the events that the model lacks, 0..1.

    Missing are events at gaps in the numbers, and puts of messages that were got; the larger of both shares counts.
    """
    scalars = view.tables.store.scalars[0]
    shares = (
        int(lost) / max(1, int(lost) + int(known))
        for lost, known in ((scalars["gaps"], scalars["events"]), (scalars["unmatched_gets"], scalars["ages"]))
    )
    return max(shares)


def error_pct(view: ForecastView, fill: FillModel) -> float:
    """Return the possible error of a store's model, percent of the store.

    It is the drift at the last measurement. Without one, the model is assumed to lack the same share of the content as
    of the events [assumed].
    """
    if view.drift.pct is not None:
        return abs(view.drift.pct)
    return 100.0 * usage(fill, fullest(fill)) * lost_share(view)


def doubt(view: ForecastView, fill: FillModel) -> float:
    """Return the resulting error of the time to full, as a share of it: the model's error over the room left.

    It is 0 where the model may be wrong by no more than `drift_tolerance_pct`.
    """
    pct = error_pct(view, fill)
    if pct <= view.config.drift_tolerance_pct:
        return 0.0
    return float(min(_MAX_DOUBT, pct / max(100.0 * (1.0 - usage(fill, fullest(fill))), 1.0)))
