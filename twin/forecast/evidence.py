"""Evidence of a forecast: sentences with numbers that an operator can check; the model's error; planned work.

Planned work that does not fit: the watch about it before it begins, and what alerts about filling say of it. A window
is rolled through the rules of the store alone, on top of what is held now: docs/planned-work.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kernels.clock import MINUTE_TICKS, SECOND, TICK
from kernels.layout import NEVER
from kernels.meter_rows import CLASSES
from twin.alerts.episodes import Alert, Episode, Finding
from twin.alerts.texts import NOTHING
from twin.base.conditions import Condition, Resource
from twin.base.units import as_count, as_local, as_range, as_span
from twin.estate.planned import Plan, Window
from twin.forecast.fill_model import FillModel, ForecastView
from twin.forecast.flows import Flow, Futures, planned_trend, steps
from twin.forecast.outlook import SECONDS, Outlook, fullest, roll, usage
from twin.forecast.plans import Plans, Run, Unfit, counts, length_of, rows_of, size_of, with_space
from twin.forecast.rises import Past
from twin.records import Filler
from twin.state.arrays import Array

if TYPE_CHECKING:
    from twin.forecast.fill_model import FillModel, ForecastView


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


# --- planned work that does not fit -----------------------------------------------------------------------------------

_OTHER_ROOM = 0.2  # of the messages for which there was room, from which the alert is updated [assumed]
_LONGER = 0.02  # of the bins before a step: how long it is
_SETTLED_TICKS = 5 * MINUTE_TICKS  # after its beginning, from which a run has a pace of its own [assumed]


class NoFit(NamedTuple):
    """A window that does not fit."""

    plan: Plan
    window: Window
    resource: Resource
    full_at: int  # when the store is full, microseconds
    room: int  # messages of the window for which there is room; -1: it announces none


def check(plans: Plans, view: ForecastView, tick: int) -> list[Alert]:
    """Open, update or clear the alert about a window that does not fit, once a minute; return its records."""
    memory, now = plans.memory, tick * TICK
    if tick % MINUTE_TICKS:
        return []
    episode = next((alert for alert in view.episodes if alert.condition == Condition.PLAN_DOES_NOT_FIT), None)
    if episode is not None:
        return _review(plans, view, episode, tick)
    horizon = round(view.config.forecast_horizon_s * SECOND)
    for plan, window in sorted(plans.upcoming(now, horizon), key=lambda own: (own[1], own[0].id)):
        problem = fit(plans, view, plan, window, tick)
        if problem is not None:
            memory.unfit = Unfit(plan.id, window.start, problem.room)
            return view.episodes.open(_finding(plans, view, problem, now), now)
    return []


def _review(plans: Plans, view: ForecastView, episode: Episode, tick: int) -> list[Alert]:
    """Update the open alert where the room has changed, clear it where the window fits or is over."""
    memory, now, unfit = plans.memory, tick * TICK, plans.memory.unfit

    def make_cleared() -> Finding:
        return view.viewer().over(Condition.PLAN_DOES_NOT_FIT, episode.resource, episode.severity)

    is_there, problem = (False, None) if unfit is None else _look_again(plans, view, unfit, tick)
    if unfit is None or not is_there:
        memory.unfit = None
        return view.episodes.clear(episode, make_cleared(), now)
    cleared = view.episodes.settle(episode, make_cleared, now, is_over=problem is None)
    if cleared:
        memory.unfit = None
    if problem is None or abs(problem.room - unfit.room) <= _OTHER_ROOM * max(1, unfit.room):
        return cleared
    memory.unfit = Unfit(unfit.plan, unfit.start, problem.room)
    return view.episodes.update(episode, _finding(plans, view, problem, now), now)


def _look_again(plans: Plans, view: ForecastView, unfit: Unfit, tick: int) -> tuple[bool, NoFit | None]:
    """Return (True if the window is ahead or under way, that it still does not fit or None)."""
    now = tick * TICK
    for run in plans.active(now):
        if (run.plan.id, run.start) == (unfit.plan, unfit.start):
            return True, _fit_rest(view, run, tick)
    for plan, window in plans.upcoming(now, max(TICK, unfit.start - now)):
        if (plan.id, window.start) == (unfit.plan, unfit.start):
            return True, fit(plans, view, plan, window, tick)
    return False, None


# --- rolling a window alone -------------------------------------------------------------------------------------------


def fit(plans: Plans, view: ForecastView, plan: Plan, window: Window, tick: int) -> NoFit | None:
    """Return that a window does not fit on top of what the store holds; None: it fits."""
    if plans.took_less(view, plan):
        return None
    return fit_together(plans, view, [(plan, window)], tick)


def fit_together(plans: Plans, view: ForecastView, planned: Sequence[tuple[Plan, Window]], tick: int) -> NoFit | None:
    """Return which of some windows does not fit where all come on top of what the store holds; None: they fit."""
    begin, end = min(window.start for _, window in planned), max(window.end for _, window in planned)
    fill, flows = view.fill_model(tick), list[Flow]()
    for plan, window in planned:
        fill = with_space(view.tables.store, fill, length_of(view, plan))
        flows += plans.of_window(view, plan, window, tick, fill, since=begin)
    full = _roll(fill, flows)
    if full is None or full[0] > (end - begin) / TICK:
        return None
    full_at = begin + round(full[0] * TICK)
    begun = sorted((own for own in planned if own[1].start <= full_at), key=lambda own: (own[1], own[0].id))
    plan, window = next((own for own in begun if own[0].announced(own[1]) is not None), begun[0])
    announced = plan.announced(window)
    share = min(1.0, (full_at - window.start) / (window.end - window.start))
    return NoFit(plan, window, fill.resources[full[1]], full_at, -1 if announced is None else int(announced * share))


def _fit_rest(view: ForecastView, run: Run, tick: int) -> NoFit | None:
    """Return that what is still to come of a run does not fit; None: it fits."""
    fill, now, announced = view.fill_model(tick), tick * TICK, run.announced
    pace, growth = run.pace(tick, counts(view, run.plan)[1])
    size = size_of(view, run.plan)
    if announced is not None and pace > 0.0 and tick - run.began >= _SETTLED_TICKS:
        ends = run.rest(announced) / pace
        rate = max(0.0, growth)
    else:
        ends = (run.end - now) / TICK
        if ends <= 0.0:  # it may still stop
            return None
        rate = max(0.0, growth) if announced is None else run.rest(announced) / ends
    full = _roll(fill, [Flow(0.0, ends, rate, size)])
    if full is None or full[0] > ends:
        return None
    room = -1 if announced is None else run.seen + int(run.rest(announced) * full[0] / max(ends, 1e-9))
    return NoFit(run.plan, Window(run.start, run.end), fill.resources[full[1]], now + round(full[0] * TICK), room)


def _roll(fill: FillModel, flows: list[Flow]) -> tuple[float, int] | None:
    """Return (ticks until full, resource) of a store to which nothing but some flows come; None: it is never full."""
    ends = max((flow.end for flow in flows), default=0.0)
    if ends <= 0.0 or all(flow.rate <= 0.0 for flow in flows):
        return None
    lengths = steps(math.ceil(ends) + 1, 0, _LONGER)
    some = np.array(sorted({flow.size for flow in flows}), np.int64)
    trend, longest = np.zeros((lengths.size, 3 * some.size)), int(lengths.max())
    trend[:, : some.size] = planned_trend(flows, lengths, np.zeros(CLASSES))[0][:, some]
    drawn = Futures(
        classes=some,
        cumulated=np.zeros((longest + 2, 3 * some.size)),
        bins=1,
        trend=trend,
        lengths=lengths,
        starts=np.zeros((1, lengths.size), np.int64),
        extra=np.zeros((1, lengths.size)),
        larger=np.ones((1, fill.doubts.size)),
        block=longest,
        mix=np.zeros(some.size),
        pace=np.ones(1),
    )
    full_at, full_of = roll(fill, drawn)
    return None if full_of[0] < 0 else (float(full_at[0]), int(full_of[0]))


# --- texts ------------------------------------------------------------------------------------------------------------


def _finding(plans: Plans, view: ForecastView, problem: NoFit, now: int) -> Finding:
    plan, window, zone = problem.plan, problem.window, view.episodes.zone
    announced, label = plan.announced(window), plan.queue or plan.id
    begins, full = as_local(window.start, zone, now), as_local(problem.full_at, zone, now)
    resource = view.viewer().resource(problem.resource)
    amount = "its getters are away" if announced is None else f"{announced:,} announced, room for {problem.room:,}"
    meanwhile = "" if plan.away or announced is None else " if nothing is got meanwhile"
    fillers = (Filler(plan.queue, 1.0),) if plan.queue else ()
    return Finding(
        condition=Condition.PLAN_DOES_NOT_FIT,
        resource=problem.resource,
        severity=Condition.PLAN_DOES_NOT_FIT.severity,
        usage_pct=resource.usage_pct,
        fillers=fillers,
        headline=f"{label} at {begins} does not fit: full about {full}",
        why=f"{amount}{meanwhile}",
        cause=f"{label} at {begins} does not fit: {amount}; full about {full}{meanwhile}."
        f"{_last_runs(plans, plan)} {resource.text}: {resource.usage}.",
        runbook=resource.actions(Condition.PLAN_DOES_NOT_FIT, fillers, NOTHING, view.episodes.runbook),
    )


def _last_runs(plans: Plans, plan: Plan) -> str:
    """Return what the last runs of a plan took, as a sentence behind a blank; "": none is known."""
    took = plans.memory.took.get(plan.id, ())
    if not took:
        return ""
    low, high = round(min(took)), round(max(took))
    what = f"{low} %" if low == high else f"{low} to {high} %"
    return f" The last run took {what}." if len(took) == 1 else f" The last {as_count(len(took), 'run')} took {what}."


def comment(plans: Plans, view: ForecastView, queue: str, tick: int) -> str:
    """Return what is to be said of planned work where a store fills, most by `queue` or "", without a point, or ""."""
    for run in reversed(plans.memory.runs):
        if run.plan.queue in ("", queue):
            words = _words(view, run, tick)
            if words:
                return words
    return ""


def _words(view: ForecastView, run: Run, tick: int) -> str:
    """Return what is to be said of a run; "": nothing."""
    now, zone, announced, label = tick * TICK, view.episodes.zone, run.announced, run.label
    if run.is_broken and announced is not None and run.seen >= announced:
        return f"{label} has put {run.seen:,} of {announced:,} announced and does not stop"
    if run.is_broken and run.plan.allowed_pct is not None:
        return f"{label} was planned up to {run.plan.allowed_pct:g} %, which is passed"
    if now < run.end:
        return "" if announced is None else f"{label} has put {run.seen:,} of {announced:,} announced"
    rows = rows_of(view, run.plan)
    until = as_local(run.end, zone, now)
    got_at = max(rows["got_at"].tolist(), default=NEVER)
    if run.plan.away and got_at * TICK < run.end:
        return f"getters of {label} were planned back at {until}, no get since"
    if counts(view, run.plan)[0] > run.puts + run.seen and announced is not None:
        return f"{label} was planned until {until} and does not stop: {run.seen:,} of {announced:,} announced by then"
    return ""
