"""Planned work of a store: what is announced, what is seen of it, and what is still to come.

A window of a plan that has begun is a run. Its puts are part of the present flows; what the forecast adds is when they
end: once as many messages are put as were announced, at the pace seen, or when the getters return. What is still ahead
is added to the flows. A run that is not as planned counts no more: the ordinary rules apply at once. Nothing is
learned from a run but how much of the store it took: docs/planned-work.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from typing import Any

import msgspec

from kernels import forecast, meter_rows, storage
from kernels.clock import MINUTE_TICKS, SECOND, TICK
from kernels.layout import NEVER, Store
from kernels.meter_rows import CLASSES, DATA_SETS, TOTAL_TIDE
from kernels.meters import class_of
from twin.alerts.readers import Readers
from twin.base.conditions import Condition, Resource
from twin.base.units import as_text
from twin.estate.planned import MAX_PLANS, Plan, Window
from twin.events import EventError, Reason
from twin.forecast.fill_model import FillModel, ForecastView
from twin.forecast.flows import MARK_TICKS, Flow
from twin.records import PlannedWork
from twin.state.arrays import Array

_EXCEEDED = 1.2  # times what was announced, from which more is put than planned
_REACHED_TICKS = 2 * MINUTE_TICKS  # for which puts may last once what was announced is put [assumed]
_SLOW = 0.05  # of the announced pace, below which nothing is put at present [assumed]
_MARKS = 6  # of a run, by minutes: its pace is that since the first of them
_LATELY = MINUTE_TICKS // 2  # least age of the mark from which the present pace is taken
_SLACK = 0.2  # of a window, in which a run may still put the rest of what is planned, if it will have by then [assumed]
_MORE = 1.05  # times what earlier runs put at most, from which one is not as planned if it lasts [assumed]
_LAST_RUNS = 5  # of which a plan remembers what they took
_FULL = 0.98  # share in use, from which a run does not say how many messages its plan puts [assumed]
_MARGIN = 1.1  # times what earlier runs took at most, which the next may take [assumed]
_GRACE = 60 * SECOND  # after its end, in which a run may stop or getters may return [assumed]
_TOLD_FOR = 3600 * SECOND  # after its end, for which alerts name a run [assumed]
_DAY = 86_400 * SECOND
_YEARS = 400 * _DAY  # in which a plan without a window has ended
_MOST_RUNS = 2 * MAX_PLANS
_MOST_ENDED = 32
_USUAL_LENGTH = 1024  # bytes, where nothing is known of the messages of a plan [assumed]


class Run(msgspec.Struct, kw_only=True):
    """A window of a plan that has begun."""

    plan: Plan  # the plan, as it was then
    start: int  # start, end: the window, microseconds
    end: int
    began: int  # tick at which the store saw it begin
    puts: int  # puts, depth: messages put to its queues by then, and held there
    depth: int
    share: float  # share in use then of what was fullest
    top: float  # the same at its highest
    seen: int = 0  # messages put in it so far
    # (tick, messages put, messages held) of the last minutes, oldest first
    marks: tuple[tuple[int, int, int], ...] = ()
    exceeded: float = 0.0  # times what was announced that earlier runs put at most; 0: none is known
    reached: int | None = None  # tick at which more was put than is planned; None: not yet
    is_broken: bool = False  # True once it is not as planned

    @property
    def announced(self) -> int | None:
        """The messages that it puts; None: their number is not announced."""
        return self.plan.announced(Window(self.start, self.end))

    @property
    def label(self) -> str:
        """How texts name it."""
        return self.plan.queue or self.plan.id

    def rest(self, announced: int) -> float:
        """Return the messages that it may still put, by what is announced and what earlier runs put."""
        return max(0.0, announced * max(1.0, self.exceeded) - self.seen)

    def is_over(self, now: int) -> bool:
        """Return True if its window has ended, and it is not about to put the rest of what is planned."""
        if now < self.end + _GRACE:
            return False
        announced, left = self.announced, self.end + round(_SLACK * (self.end - self.start)) - now
        if announced is None or self.plan.away or left <= 0 or not self.marks:
            return True
        tick = now // TICK
        pace, _ = self.pace(tick, self.marks[0][2])
        is_done = self.pace_now(tick) <= _SLOW * self.pace_announced(announced)
        return is_done or self.rest(announced) * TICK > pace * left

    def pace_announced(self, announced: int) -> float:
        """Return the messages a tick at which a window with that count is planned."""
        return announced / max(1.0, (self.end - self.start) / TICK)

    def pace(self, tick: int, depth: int) -> tuple[float, float]:
        """Return the messages a tick that its queues were put, and by which they have grown, in the last minutes."""
        first, seen, held = self.marks[0]
        ticks = max(1, tick - first)
        return (self.seen - seen) / ticks, (depth - held) / ticks

    def pace_now(self, tick: int) -> float:
        """Return the messages a tick that its queues were put in the last minute."""
        marked, seen, _ = next((mark for mark in reversed(self.marks) if tick - mark[0] >= _LATELY), self.marks[0])
        return (self.seen - seen) / max(1, tick - marked)


class Unfit(msgspec.Struct, frozen=True):
    """The window of a plan that the open alert is about. room: messages for which there was room; -1: any."""

    plan: str
    start: int
    room: int


class PlanMemory(msgspec.Struct, kw_only=True):
    """Memory of a store's plans, kept in its header."""

    plans: tuple[Plan, ...] = ()  # those of events, in the order of their ids
    cancelled: tuple[str, ...] = ()  # ids of plans of the estate that events have cancelled
    runs: list[Run] = []  # windows that have begun, and have not ended an hour ago
    took: dict[str, tuple[float, ...]] = {}  # percentages that the last runs of a plan took of the store, by its id
    put: dict[str, tuple[float, ...]] = {}  # times what was announced that they put, where that was near it
    ended: tuple[tuple[int, int], ...] = ()  # (first, last tick) of past runs while the store has not fallen
    covered: dict[str, int] = {}  # messages put by the last tick to the queues of runs, by queue
    credited: int = 0  # messages put in runs so far
    unfit: Unfit | None = None  # the window of the open alert; None: every one fits
    relieved: tuple[str, ...] = ()  # resources whose threshold was passed as planned


class Plans:
    """The plans of one store. `described`: those of the estate."""

    def __init__(self, memory: PlanMemory, described: Sequence[Plan], zone: tzinfo) -> None:
        self.memory = memory  # what the store's header keeps
        self._described = tuple(described)
        self._zone = zone

    @property
    def known(self) -> tuple[Plan, ...]:
        """The plans that count: one of an event is in the place of one of the estate with its id."""
        if not self.memory.plans and not self.memory.cancelled:
            return self._described
        others = {*self.memory.cancelled, *(plan.id for plan in self.memory.plans)}
        return (*(plan for plan in self._described if plan.id not in others), *self.memory.plans)

    @property
    def are_due(self) -> bool:
        """True if there are plans, or something is left of them: then each tick counts."""
        memory = self.memory
        return bool(self._described or memory.plans or memory.runs or memory.ended or memory.unfit)

    def note(self, content: Mapping[str, Any], now: int) -> None:
        """Take the checked content of a PLAN event. `now`: microseconds. EventError: the store has as many as it may
        have.
        """
        memory = self.memory
        if content.get("cancelled"):
            name = str(content["id"])
            if any(plan.id == name for plan in self._described):
                memory.cancelled = tuple(sorted({*memory.cancelled, name}))
            memory.plans = tuple(plan for plan in memory.plans if plan.id != name)
            for run in memory.runs:
                if run.plan.id == name:
                    self._end(run, now)
            memory.runs = [run for run in memory.runs if run.plan.id != name]
            memory.took.pop(name, None)
            memory.put.pop(name, None)
            return
        plan = msgspec.convert(content, Plan)
        self._forget(now)
        others = tuple(own for own in memory.plans if own.id != plan.id)
        if len(others) + len(self._described) >= MAX_PLANS:
            raise EventError(Reason.BAD_PLAN, f"{MAX_PLANS} plans are kept of a store already; expected: cancel one")
        memory.cancelled = tuple(own for own in memory.cancelled if own != plan.id)
        memory.plans = tuple(sorted((*others, plan), key=lambda own: own.id))
        for run in memory.runs[:]:
            if run.plan.id == plan.id and run.marks:
                self._replace(run, plan, now)

    def _replace(self, run: Run, plan: Plan, now: int) -> None:
        """Go by another plan in a run under way; a run that it does not have ends."""
        window = next(
            (own for own in plan.windows(self._zone, run.start, run.start + 1) if own.start == run.start), None
        )
        if window is None or plan.queue != run.plan.queue:
            self._end(run, now)
            self.memory.runs.remove(run)
        else:
            run.plan, run.end, run.reached, run.is_broken = plan, window.end, None, False

    def _forget(self, now: int) -> None:
        """Forget the plans of events that have ended, and what plans took that are no more."""
        memory = self.memory
        memory.plans = tuple(plan for plan in memory.plans if not self._has_ended(plan, now))
        names = {plan.id for plan in self.known} | {run.plan.id for run in memory.runs}
        memory.took = {name: took for name, took in memory.took.items() if name in names}
        memory.put = {name: put for name, put in memory.put.items() if name in names}

    def _has_ended(self, plan: Plan, now: int) -> bool:
        """Return True if no window of a plan is ahead or under way."""
        if not plan.rrule:
            return plan.end is not None and plan.end <= now
        return not plan.windows(self._zone, now, now + 31 * _DAY) and not plan.windows(self._zone, now, now + _YEARS)

    # --- ticks --------------------------------------------------------------------------------------------------------

    def tick(self, view: ForecastView, tick: int) -> bool:
        """Follow the runs at a tick that has been metered; return True if one has turned out not to be as planned."""
        memory, store, now = self.memory, view.tables.store, tick * TICK
        share = _share(store)
        for plan in self.known:
            for window in plan.windows(self._zone, now, now + 1):
                if not any(run.plan.id == plan.id and run.start == window.start for run in memory.runs):
                    self._begin(view, plan, window, tick, share)
        self._credit(view, now)
        is_news = False
        for run in memory.runs[:]:
            if not run.is_over(now):
                is_news = self._follow(view, run, tick, share) or is_news
            elif run.marks:
                self._end(run, now)
                is_news = True
            elif now >= run.end + _TOLD_FOR:
                memory.runs.remove(run)
                self._forget(now)
        self._unlearn(store)
        return is_news

    def _begin(self, view: ForecastView, plan: Plan, window: Window, tick: int, share: float) -> None:
        puts, depth = counts(view, plan)
        run = Run(
            plan=plan,
            start=window.start,
            end=window.end,
            began=tick,
            puts=puts,
            depth=depth,
            share=share,
            top=share,
            marks=((tick, 0, depth),),
            exceeded=max(self.memory.put.get(plan.id, ()), default=0.0),
        )
        self.memory.runs = [*self.memory.runs, run][-_MOST_RUNS:]

    def _credit(self, view: ForecastView, now: int) -> None:
        """Count the puts to the queues of runs, each once."""
        memory, puts = self.memory, view.tables.store.queues["puts"]
        under_way = [run for run in memory.runs if run.marks and run.start <= now]
        names = {run.plan.queue for run in under_way if not run.is_broken}
        covered = {
            queue: int(puts[row]) for row, queue in enumerate(view.queues) if names and ("" in names or queue in names)
        }
        known = memory.covered
        memory.credited += sum(count - known[queue] for queue, count in covered.items() if queue in known)
        memory.covered = covered

    def _follow(self, view: ForecastView, run: Run, tick: int, share: float) -> bool:
        """Note what is seen of a run at a tick; return True if it turns out not to be as planned."""
        puts, depth = counts(view, run.plan)
        run.seen, run.top = max(0, puts - run.puts), max(run.top, share)
        if tick - run.marks[-1][0] >= MINUTE_TICKS:
            run.marks = (*run.marks, (tick, run.seen, depth))[-_MARKS:]
        announced, allowed = run.announced, run.plan.allowed_pct
        if announced is not None and run.seen >= announced * max(1.0, _MORE * run.exceeded) and run.reached is None:
            run.reached = tick
        if run.is_broken:
            return False
        if allowed is not None and 100.0 * share > allowed:
            run.is_broken = True
        elif announced is not None and run.reached is not None:
            lasts = tick - run.reached >= _REACHED_TICKS and run.pace_now(tick) > _SLOW * run.pace_announced(announced)
            run.is_broken = lasts or run.seen > _EXCEEDED * announced
        return run.is_broken

    def _end(self, run: Run, now: int) -> None:
        """End a run: remember what it took, and that the rise in it is not learned from."""
        memory = self.memory
        if run.marks and run.start <= now:
            if run.seen or run.plan.away:
                took = round(100.0 * (run.top - run.share), 1)
                memory.took[run.plan.id] = (*memory.took.get(run.plan.id, ()), took)[-_LAST_RUNS:]
            put = run.seen / (run.announced or math.inf)
            if 1.0 / _EXCEEDED <= put <= _EXCEEDED and run.top < _FULL:
                memory.put[run.plan.id] = (*memory.put.get(run.plan.id, ()), round(put, 3))[-_LAST_RUNS:]
            memory.ended = (*memory.ended, (run.began, min(now, run.end) // TICK))[-_MOST_ENDED:]
        run.marks = ()

    def _unlearn(self, store: Store) -> None:
        """Mark the kept rises that were planned, which then do not count, and forget runs that none can be of."""
        memory = self.memory
        spans = [*memory.ended, *((run.began, 1 << 62) for run in memory.runs if run.marks)]
        if not spans:
            return
        rises = store.rises[: min(meter_rows.RISES, int(store.tides[TOTAL_TIDE]["rises"]))]
        for begin, end in spans:
            planned = (rises["began"] < end) & (rises["ended"] > begin) & (rises["usage"] > 0.0)
            if planned.any():
                rises["usage"][planned] = 0.0
                store.rises_dirty[:] = 1
        rising = store.tides[(store.tides["rising"] == 1)]
        memory.ended = tuple(span for span in memory.ended if (rising["began"] < span[1]).any())

    def turn_back(self, tick: int) -> None:
        """Continue from an earlier tick: runs that lie ahead of it begin again."""
        self.memory.runs = [run for run in self.memory.runs if run.began <= tick]
        for run in self.memory.runs:
            run.marks = tuple((min(marked, tick), seen, depth) for marked, seen, depth in run.marks)
            run.reached = None if run.reached is None else min(run.reached, tick)
        self.memory.ended = tuple((min(begin, tick), min(end, tick)) for begin, end in self.memory.ended)

    # --- what is still to come ----------------------------------------------------------------------------------------

    def active(self, now: int) -> Iterator[Run]:
        """Yield the runs under way that are as planned. now: microseconds."""
        return (
            run
            for run in self.memory.runs
            if run.marks and run.start <= now and not run.is_broken and not run.is_over(now)
        )

    def upcoming(self, now: int, horizon: int) -> Iterator[tuple[Plan, Window]]:
        """Yield what begins after a time, microseconds, within a horizon of microseconds."""
        for plan in self.known:
            for window in plan.windows(self._zone, now + 1, now + horizon + 1):
                if window.start > now:
                    yield plan, window

    def ahead(self, view: ForecastView, tick: int, horizon: int, fill: FillModel) -> tuple[tuple[Flow, ...], FillModel]:
        """Return what plans add to the present flows within a horizon of ticks, and the fill model that knows it."""
        flows, now = list[Flow](), tick * TICK
        if not self.are_due:
            return (), fill
        for run in self.active(now):
            flows += self.of_run(view, run, tick, fill)
        for plan, window in self.upcoming(now, horizon * TICK):
            fill = with_space(view.tables.store, fill, length_of(view, plan))
            flows += self.of_window(view, plan, window, tick, fill)
        return tuple(flows), fill

    def of_run(self, view: ForecastView, run: Run, tick: int, fill: FillModel) -> list[Flow]:
        """Return what is still to come of a run, and when what it puts at present ends."""
        announced = run.announced
        pace, growth = run.pace(tick, counts(view, run.plan)[1])
        size = size_of(view, run.plan)
        left = (run.end - tick * TICK) / TICK
        if announced is None:
            return [Flow(left, math.inf, -growth, size, is_sure=run.plan.away)] if growth > 0 else []
        usual, remaining = run.pace_announced(announced), run.rest(announced)
        if pace > _SLOW * usual:
            if growth <= 0.0:
                return []
            return [Flow(remaining / pace, math.inf, -growth, size, is_sure=True)]
        stays = self._stays(run.plan, announced, fill)
        return [Flow(0.0, remaining / usual, usual * stays, size)] if remaining else []

    def of_window(
        self, view: ForecastView, plan: Plan, window: Window, tick: int, fill: FillModel, *, since: int | None = None
    ) -> list[Flow]:
        """Return the flows of a window that has not begun, rolled from `since`, microseconds; None: from the tick."""
        begins = (window.start - (tick * TICK if since is None else since)) / TICK
        ticks, announced = (window.end - window.start) / TICK, plan.announced(window)
        size, flows = size_of(view, plan), list[Flow]()
        if announced is not None:
            stays = self._stays(plan, announced, fill) if since is None else 1.0
            flows.append(Flow(begins, begins + ticks, announced * stays / ticks, size))
        if plan.away:
            rate = got(view, plan, tick)
            if rate > 0.0:
                flows.append(Flow(begins, begins + ticks, rate, size))
        return flows

    def _stays(self, plan: Plan, announced: int, fill: FillModel) -> float:
        """Return the share of the announced messages that stay, by what earlier runs took of the store at most."""
        took = self.memory.took.get(plan.id, ())
        if not took:
            return 1.0
        scalars = fill.scalars[0]
        each = float(fill.classes[class_of(plan.length or _USUAL_LENGTH), forecast.PUT_SPACE])
        whole = 100.0 * announced * max(each / scalars["space_max"], scalars["counts_ents"] / scalars["ents_max"])
        return float(min(1.0, max(0.0, _MARGIN * max(took) / max(whole, 1e-9))))

    def took_less(self, view: ForecastView, plan: Plan) -> bool:
        """Return True if the store has room for what earlier runs of a plan took, whatever is announced."""
        took = self.memory.took.get(plan.id, ())
        return bool(took) and 100.0 * _share(view.tables.store) + _MARGIN * max(took) < 100.0

    def away(self, now: int) -> set[str]:
        """Return the queues whose getters are away as planned; "": those of every queue."""
        return {run.plan.queue for run in self.active(now) if run.plan.away}

    def forget_absences(self, readers: Readers, now: int) -> None:
        """Let nothing be learned from absences of getters that were planned. now: microseconds."""
        plans = [plan for plan in self.known if plan.away]
        for name, fact in readers.facts.items() if plans else ():
            if fact.absences:
                own = [plan for plan in plans if plan.queue in ("", name)]
                fact.absences = [
                    (begin, end)
                    for begin, end in fact.absences
                    if end < now - _DAY or not any(plan.windows(self._zone, begin, end) for plan in own)
                ]

    def allows(self, view: ForecastView, condition: str, resource: Resource) -> bool:
        """Return True if a threshold that was passed is below the level that a run allows; it is armed again later."""
        if condition != Condition.THRESHOLD:
            return False
        now = int(view.tables.store.scalars["clock"][0])
        usage = view.viewer().resource(resource).usage_pct
        allowed = any(run.plan.allowed_pct is not None and usage <= run.plan.allowed_pct for run in self.active(now))
        if allowed:
            self.memory.relieved = tuple(sorted({*self.memory.relieved, str(resource)}))
        return allowed

    def take_relieved(self) -> tuple[Resource, ...]:
        """Return the resources whose threshold is to be armed again."""
        relieved, self.memory.relieved = self.memory.relieved, ()
        return tuple(map(Resource.parse, relieved))

    # --- the state record ---------------------------------------------------------------------------------------------

    def record(self, now: int) -> tuple[PlannedWork, ...]:
        """Return the runs of the last hour and what begins in the next 24 hours. now: microseconds."""
        if now == NEVER:
            return ()
        known = [(Window(run.start, run.end), run.plan, run) for run in self.memory.runs]
        ahead = [(window, plan, None) for plan, window in self.upcoming(now, _DAY)]
        ordered = sorted((*known, *ahead), key=lambda own: (own[0], own[1].id))
        return tuple(planned_record(window, plan, run, now) for window, plan, run in ordered[:MAX_PLANS])


def planned_record(window: Window, plan: Plan, run: Run | None, now: int) -> PlannedWork:
    """Return the record of a window. run: None while it has not begun. now: microseconds."""
    return PlannedWork(
        id=plan.id,
        queue=plan.queue or None,
        begins=as_text(window.start),
        ends=as_text(window.end),
        announced=plan.announced(window),
        seen=None if run is None else run.seen,
        getters_away=plan.away,
        status="planned" if run is None else "over" if now >= run.end else "exceeded" if run.is_broken else "running",
    )


# --- facts of a store -------------------------------------------------------------------------------------------------


def _share(store: Store) -> float:
    """Return the share in use of the resource that is fullest."""
    return float(store.tides["share"][: store.datasets.size + DATA_SETS].max())


def rows_of(view: ForecastView, plan: Plan) -> Array:
    """Return QUEUE[n], the queues of a plan: all of the store where it names none."""
    rows = view.tables.store.queues[: len(view.queues)]
    if not plan.queue:
        return rows
    return rows[[view.queues.index(plan.queue)]] if plan.queue in view.queues else rows[:0]


def counts(view: ForecastView, plan: Plan) -> tuple[int, int]:
    """Return the messages put so far to the queues of a plan, and those held there."""
    rows = rows_of(view, plan)
    return int(rows["puts"].sum()), int(rows["depth"].sum())


def got(view: ForecastView, plan: Plan, tick: int) -> float:
    """Return the messages a tick that were got from the queues of a plan since their sample before the last."""
    rows = rows_of(view, plan)
    since = tick // MARK_TICKS * MARK_TICKS - MARK_TICKS
    return float((rows["gets"] - rows["gets_before"]).sum()) / max(1, tick - since)


def length_of(view: ForecastView, plan: Plan) -> int:
    """Return the mean bytes of a message of a plan: as announced, else as its queues have now, else a usual one."""
    if plan.length is not None:
        return plan.length
    rows = rows_of(view, plan)
    depth = int(rows["depth"].sum())
    return int(rows["bytes"].sum()) // depth if depth else _USUAL_LENGTH


def size_of(view: ForecastView, plan: Plan) -> int:
    """Return the length class of the messages of a plan."""
    return int(class_of(length_of(view, plan)))


def with_space(store: Store, fill: FillModel, length: int) -> FillModel:
    """Return a fill model that knows what messages of a length take, where none of their class were put lately."""
    size = class_of(length)
    puts = store.stocks["puts"][CLASSES:]
    if float(puts[size::CLASSES].sum()) > 0.5:
        return fill
    classes = fill.classes.copy()
    classes[size, forecast.PUT_SPACE] = storage.space_of(store, length)
    return replace(fill, classes=classes)
