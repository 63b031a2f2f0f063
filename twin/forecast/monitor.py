"""From forecasts to alerts: when to look ahead, when to alert, when the danger is over.

An alert opens as a watch when full is likely enough and near enough, and stays so for a hold time. It becomes a page
when people must act to be in time, and full is as likely as the situation asks: whether rises like it have turned back,
and whether the queue that fills the store is read. It is updated when something a person would
act on has changed, and cleared when it has been unlikely, or far off, for longer. While gets exceed puts, or full is
unlikely, no record has a time until full, none is critical, and none asks for an action already taken. A store has one
alert of this condition at a time, about the resource that is full first: that resource may change, the episode does
not. Hold times and dead bands keep an alert from chattering [ISA-18.2, EEMUA 191].
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import NamedTuple, Self

import msgspec
import numpy as np

from kernels import regime
from kernels.clock import SECOND, TICK
from kernels.layout import NEVER
from kernels.meters import leads_to_full
from twin.alerts.episodes import Alert, Episode, Finding
from twin.base.conditions import CRITICAL, INFO, WARNING, Condition, Resource
from twin.base.units import as_text
from twin.estate.planned import Plan
from twin.forecast import flows, remedies, rises, rule, weeks
from twin.forecast import levels as by_levels
from twin.forecast.evidence import check, comment, doubt, evidence, of_model
from twin.forecast.fill_model import ForecastView
from twin.forecast.flows import Reading, Stop, how_read, note_stops, unread_share
from twin.forecast.levels import Levels, falling_since
from twin.forecast.outcomes import Outcomes
from twin.forecast.outlook import MIN_LEVELS, SECONDS, Forecast, Outlook, fullest, is_full, look_ahead, usage
from twin.forecast.plans import PlanMemory, Plans
from twin.forecast.rises import Puts, trust_rates, wandering
from twin.forecast.rule import full_now, refusing
from twin.forecast.weeks import Weeks
from twin.records import ForecastScores, LongForecast, MeasuredLevels, PageWords, ResourceForecast, StateForecast

_MIN_RISE = 0.06  # share of a resource that a rise must have made before it is looked at
_MAX_SPEED_UP = 3.0  # a rise may become this many times as fast as it was
_CALM_TICKS = round(rule.CALM_S / SECONDS)
_EASED_PROBABILITY = 0.3  # of full, below which no time until full is said
_EASED_TICKS = 12  # for which full must have been unlikely before its alert says so
_CRITICAL_S = 600.0  # time left from which an alert is critical
_UPDATE_RATIO = 0.5  # of the time left by the last record: less than that is an update
_MOST_TICKS = 6  # between two looks while planned work is under way: what is not as planned is soon seen
_MAX_KEPT = 4096  # forecasts kept until they are drained
_FULL_NOW = (0.0, 0.0, 0.0)  # seconds until full
_NO_TICK = 1 << 62  # behind every tick


class ForecastMemory(msgspec.Struct, kw_only=True):
    """Memory of a store's forecasts, kept in its header."""

    next_look: int = 0  # tick from which to look again
    danger_since: int | None = None  # tick since which full is likely and near; None: it is not
    calm_since: int | None = None  # tick since which the danger of the open alert is gone; None: it is not
    eased_since: int | None = None  # tick since which gets exceed puts or full is unlikely, in an alert
    announced_full_at_us: int = 0  # predicted full time in the last published alert, event time; 0: it said "full now"
    announced_filler: str = ""  # first filler in the last published alert
    full_puts: int = 0  # puts refused with 2192 as of the last tick
    refused_at: int | None = None  # tick of the last of them
    last: tuple[Forecast, ...] = ()  # forecasts of the last look
    levels: Levels = msgspec.field(default_factory=Levels)  # measured, of a store whose puts and gets nothing reports
    outcomes: Outcomes = msgspec.field(default_factory=Outcomes)  # outcomes of the forecasts, and of the store's pages
    puts: Puts = msgspec.field(default_factory=Puts)  # messages put in the last days, by half hours
    stops: tuple[Stop, ...] = ()  # getters that stopped
    asked: tuple[tuple[int, int], ...] = ()  # rises past the threshold at the last look: each is asked once
    # tick of the last measurement, of a store of whose puts and gets events report only a part: the flows since then
    # are not known. None: events report all.
    estimated_at: int | None = None
    plans: PlanMemory = msgspec.field(default_factory=PlanMemory)  # planned work
    weeks: Weeks = msgspec.field(default_factory=Weeks)  # shares in use by hours of the last four weeks


class _Summary(NamedTuple):
    """An outlook in the numbers that decide about alerts. times: seconds until full (p10, p50, p90); None: never."""

    outlook: Outlook
    tick: int
    probability: float
    times: tuple[float, float, float] | None
    first: int  # resource most likely to be full first, -1: none
    is_asked: bool = False  # see `rule.Danger`

    @classmethod
    def from_outlook(cls, outlook: Outlook, tick: int, *, is_asked: bool = False) -> Self:
        times = outlook.quantiles()
        times = None if times is None else _not_yet(times)
        return cls(outlook, tick, outlook.probability, times, outlook.first, is_asked)

    @property
    def resource(self) -> Resource:
        """The resource most likely to be full first; `first` must not be -1."""
        return self.outlook.fill.resources[self.first]


class _Eased(NamedTuple):
    """A danger that has eased: the resource, and how probable full still is. outlook: None where levels do not rise."""

    resource: Resource
    probability: float = 0.0
    outlook: Outlook | None = None


class ForecastMonitor:
    """The forecasts of one store, and its alerts about them."""

    def __init__(
        self, memory: ForecastMemory, *, enabled: bool, planned: Sequence[Plan] = (), zone: tzinfo = UTC
    ) -> None:
        """Continue from a memory. planned: plans of the store in the estate; zone: zone of the site."""
        self.memory = memory  # what the store's header keeps
        self.plans = Plans(memory.plans, planned, zone)  # planned work
        self.zone = zone  # zone of the site
        self.enabled = enabled  # False: only the meters are kept
        self.forecasts: deque[Forecast] = deque(maxlen=_MAX_KEPT)  # those made since they were last drained
        self._situation = ""  # of the page that is being written

    def record(self, view: ForecastView) -> StateForecast | None:
        """Return the `forecast` of the state record; None where nothing is predicted."""
        now = int(view.tables.store.scalars[0]["clock"])
        refused = refusing(view, now) if self.enabled else ()
        forecasts = full_now(view, refused, now) if refused else self.memory.last
        if not forecasts:
            return None
        resources = tuple(
            ResourceForecast(
                resource=forecast.resource,
                usage_pct=forecast.usage_pct,
                full_probability=forecast.probability,
                time_to_full_s=forecast.time_to_full_s,
            )
            for forecast in forecasts
        )
        return StateForecast(time=as_text(forecasts[0].time), resources=resources)

    def levels(self, view: ForecastView) -> MeasuredLevels | None:
        """Return the `levels` of the state record; None where puts are reported, or no level was."""
        levels = self.memory.levels
        now = int(view.tables.store.scalars[0]["clock"])
        if not self.enabled or not levels.ticks or not self.is_by_levels(view, now // TICK):
            return None
        return MeasuredLevels(
            known=levels.known,
            needed=MIN_LEVELS,
            last=as_text(levels.ticks[-1] * TICK),
            is_recent=levels.are_recent(now // TICK),
        )

    def scores(self, view: ForecastView) -> ForecastScores | None:
        """Return the `forecast_scores` of the state record; None before anything is settled."""
        return self.memory.outcomes.scores(int(view.tables.store.scalars[0]["clock"]))

    def note_alert(self, alert: Alert) -> None:
        """Take an alert record of the store, which may settle forecasts."""
        if self.enabled:
            self.memory.outcomes.note_alert(alert, self._situation)

    def words(self, view: ForecastView) -> tuple[PageWords, ...]:
        """Return the `words` of the state record; none where nobody has said what a page was worth."""
        outcomes = self.memory.outcomes
        counts = ((situation, *outcomes.words(situation)) for situation in rule.Situation)
        return tuple(
            PageWords(
                situation=situation.value,
                useful=useful,
                useless=useless,
                needed_pct=round(100.0 * rule.needed(situation, view.config, outcomes.worth), 1),
            )
            for situation, useful, useless in counts
            if useful + useless
        )

    def describe(self, params: np.void, horizon_s: float) -> None:
        """Write to a row of PARAMS which rises lead to a look. horizon_s: horizon of the forecasts, seconds."""
        params["look_rise"], params["look_pace"], params["look_ticks"] = _MIN_RISE, _MAX_SPEED_UP, horizon_s / SECONDS

    def long_record(self, view: ForecastView) -> LongForecast | None:
        """Return the `long_forecast` of the state record; None while fewer than two days are known."""
        return weeks.record(self.memory.weeks, self.plans, view, self.zone) if self.enabled else None

    def begin(self, now: int) -> None:
        """Begin at the first event of a store, or continue after its clock was turned back. now: microseconds."""
        self.memory.weeks.begin(now, self.zone)

    def attend(self, params: np.void, now: int) -> None:
        """Write to a row of PARAMS at which ticks the event loop has to stop for `tick`. now: clock, or NEVER."""
        memory = self.memory
        if not memory.weeks.due and now != NEVER:
            self.begin(now)
        params["due_from"] = memory.weeks.due if self.enabled and memory.weeks.due else _NO_TICK
        params["look_from"] = memory.next_look if self.enabled else _NO_TICK
        params["has_outlook"] = self.enabled and (memory.danger_since is not None or memory.last != ())
        params["seen_full_puts"] = memory.full_puts
        if self.enabled and self.plans.are_due:
            params["attended"] = True

    def take_noted(self, params: np.void) -> None:
        """Take the puts and shares by half hours that the event loop has noted in a row of PARAMS."""
        noted = int(params["noted"])
        if not noted:
            return
        if self.enabled:
            ticks, puts_noted = params["noted_ticks"][:noted].tolist(), params["noted_puts"][:noted].tolist()
            for tick, puts, shares in zip(ticks, puts_noted, params["noted_shares"].tolist(), strict=False):
                self.memory.puts.note(tick, puts - self.memory.plans.credited)
                self.memory.weeks.note(tick, *shares)
        params["noted"] = 0

    def take_shares(self, params: np.void) -> None:
        """Take the least and the largest share in use since the last note, from a row of PARAMS."""
        if not self.enabled:
            return
        hours = self.memory.weeks
        hours.low, hours.high = min(hours.low, float(params["low"])), max(hours.high, float(params["high"]))
        params["low"], params["high"] = np.inf, 0.0

    def resize(self, params: np.void, before: int, after: int) -> None:
        """Count the hours known in shares of another size of the resource that is fullest; 0: it is not known."""
        if self.enabled and before and after and before != after:
            self.take_shares(params)
            self.memory.weeks.scale(before / after)

    def look_soon(self) -> None:
        """Look again at the next tick."""
        self.memory.next_look = 0

    def tick(self, view: ForecastView, tick: int) -> list[Alert]:
        """Act at a tick that has been metered: look ahead where it is time; return the alerts.

        A tick at which there is no open alert about the forecast, nothing for `attend` to stop at and no put was
        refused since the last one may be left out; of the first of a half hour the puts are noted (`take_puts`).
        """
        store = view.tables.store
        full_puts = int(store.scalars["full_puts"][0])
        if full_puts != self.memory.full_puts:
            self.memory.full_puts, self.memory.refused_at = full_puts, tick
        if not self.enabled:
            return []
        is_planned = self.plans.are_due
        if is_planned and self.plans.tick(view, tick):  # what is not as planned is news
            self.memory.next_look, self.memory.asked = 0, ()
        self.memory.puts.note(tick, int(store.scalars["puts"][0]) + full_puts - self.memory.plans.credited)
        params = store.params[0]
        self.memory.weeks.note(tick, float(params["share"]), float(params["low"]), float(params["high"]))
        params["low"], params["high"] = np.inf, 0.0
        alerts = check(self.plans, view, tick) if is_planned else []
        if tick >= self.memory.weeks.due or self.memory.weeks.reviewed:
            alerts += weeks.check(self.memory.weeks, self.plans, view, tick, self.zone)
        return alerts + self._foresee(view, tick)

    def _foresee(self, view: ForecastView, tick: int) -> list[Alert]:
        """Look ahead where it is time; return the alerts of the forecast."""
        store = view.tables.store
        episode = next((episode for episode in view.episodes if episode.condition == Condition.FULL_FORECAST), None)
        if refused := refusing(view, tick * TICK):
            return self._note_full(view, episode, refused, tick)
        if episode is None and not leads_to_full(store, tick):
            self.memory.danger_since, self.memory.last = None, ()
            return []
        if tick < self.memory.next_look or self._waits(tick):
            return []
        outlook = self._look(view, tick)
        if outlook is None:
            return self._review_levels(view, episode, tick)
        is_planned = any(self.plans.active(tick * TICK))
        asked = rises.past_threshold(store, outlook.fill.tides, view.config.high_pct)
        is_asked = not is_planned and not set(asked) <= set(self.memory.asked) and not is_full(outlook.fill)
        summary = _Summary.from_outlook(outlook, tick, is_asked=is_asked)
        self.memory.asked = () if is_planned else asked
        self._note_look(view, summary)
        self.memory.last = _forecasts(view.name, summary, self.memory.outcomes)
        self.forecasts += self.memory.last
        median = None if summary.times is None else summary.times[1]
        ticks = _cadence(median, view.config.forecast_page_lead_s)
        self.memory.next_look = tick + (min(ticks, _MOST_TICKS) if is_planned else ticks)
        return self._maybe_open(view, summary) if episode is None else self._review(view, episode, summary)

    def _note_full(
        self, view: ForecastView, episode: Episode | None, refused: tuple[Resource, ...], tick: int
    ) -> list[Alert]:
        """Report a full resource, and update its forecast alert once, unless it empties; return its record."""
        memory = self.memory
        forecasts = full_now(view, refused, tick * TICK)
        self.forecasts += forecasts
        memory.danger_since = memory.calm_since = memory.eased_since = None
        memory.next_look, memory.last = tick + 1, forecasts
        if episode is None or not memory.announced_full_at_us or self.falling_since(view, refused[0], tick) is not None:
            return []
        outlook = self._look(view, tick)
        memory.last = forecasts  # `_look` forgets it where levels have ended
        if outlook is None or refused[0] not in outlook.fill.resources:
            return []
        summary = _Summary(outlook, tick, 1.0, _FULL_NOW, outlook.fill.resources.index(refused[0]))
        finding = self._finding(view, summary, _FULL_NOW, episode.severity)
        memory.announced_full_at_us = 0
        return view.episodes.update(episode, finding, tick * TICK)

    def can_foresee(self, view: ForecastView, tick: int) -> bool:
        """Return True if a forecast can or soon will be made at a tick: flows are known half a minute after a put.

        Of a store whose puts and gets nothing reports it takes some measured levels.
        """
        if not self.enabled:
            return False
        if self.is_by_levels(view, tick):
            return self._are_levels_known(view, tick)
        began = int(view.tables.store.scalars["steady_from"][0])
        return began == NEVER or tick - began < regime.MIN_BINS or flows.is_known(view.tables.store, tick)

    def is_by_levels(self, view: ForecastView, tick: int) -> bool:
        """Return True if measured levels say how a store fills, not its flows: those reported, and those estimated.

        So it is where no put was ever reported, and where each of the last measurements was taken over and none said
        how many messages there are.
        """
        if self.memory.estimated_at is not None:
            return False
        if int(view.tables.store.scalars["ages"][0]) == 0:
            return True
        levels = self.memory.levels
        return levels.takeovers >= MIN_LEVELS and levels.are_recent(tick)

    def note_levels(self, view: ForecastView, tick: int, *, is_taken: bool) -> None:
        """Keep the levels of a store that has just been measured. is_taken: the measurement was taken over."""
        if not self.enabled:
            return
        viewer, fill = view.viewer(), view.fill_model(tick)
        beyond = {
            str(resource): viewer.resource(resource).beyond_share
            for resource in fill.resources
            if view.beyond_pct(resource)
        }
        self.memory.levels.note(tick, fill, beyond, is_taken=is_taken)

    def _note_look(self, view: ForecastView, summary: _Summary) -> None:
        """Note a look to be settled, unless the store is full."""
        outcomes = self.memory.outcomes
        if is_full(summary.outlook.fill):
            outcomes.note_full(summary.tick * TICK)
        elif not any(episode.condition == Condition.FULL for episode in view.episodes):
            is_likely = summary.probability >= rule.likely(view.config)
            outcomes.note_look(summary.outlook, summary.tick, is_likely=is_likely)

    def _waits(self, tick: int) -> bool:
        """Return True if the next measurement, which is due, has to show what has happened since the last one."""
        memory = self.memory
        return memory.estimated_at is not None and tick > memory.estimated_at and memory.levels.are_recent(tick)

    def _look(self, view: ForecastView, tick: int) -> Outlook | None:
        if self.memory.estimated_at is not None and not self.memory.levels.are_recent(tick):
            outlook = None
        elif not self.is_by_levels(view, tick):
            rows = view.tables.store.queues
            unread = view.readers.unread(view.queues, rows, tick * TICK)
            self.memory.stops = note_stops(view.tables.store, tick, self.memory.stops, unread.keys())
            outlook = self._look_at_flows(view, tick)
            if outlook is None or not _is_refuted(view, outlook):
                return outlook
            outlook = None
        else:
            outlook = self._extend(view, tick)
        if outlook is None:
            self.memory.last = ()  # a forecast is no longer true once measurements have ended
        return outlook

    def _look_at_flows(self, view: ForecastView, tick: int) -> Outlook | None:
        """Return the outlook by flows, those of a sample up to the last measurement."""
        memory, is_sample = self.memory, self.memory.estimated_at is not None
        looked_at, counts, stops = memory.estimated_at or tick, memory.puts.counts, memory.stops
        looks, place = _looks.get(), _Place(view.name, tick, looked_at, counts, stops, is_sample)
        if looks is not None and place in looks:
            return looks[place]
        outlook = look(view, looked_at, counts, stops, is_sample=is_sample, plans=self.plans)
        if looks is not None:
            outlook = looks[place] = None if outlook is None else replace(outlook, drawn=None)
        return outlook

    def _extend(self, view: ForecastView, tick: int) -> Outlook | None:
        """Return the outlook of a store from its measured levels."""
        horizon = int(view.config.forecast_horizon_s / SECONDS)
        levels = self.memory.levels
        reading = Reading(unread_share(view, tick, levels.rise_began))
        return by_levels.look_ahead(view.name, view.fill_model(tick), levels, tick, horizon, reading)

    def turn_back(self, before: int, now: int) -> None:
        """Continue from an earlier time; predictions are forgotten."""
        memory, tick = self.memory, now // TICK
        memory.outcomes.turn_back(before, now)
        memory.puts.turn_back(tick)
        memory.weeks.turn_back(tick)
        self.begin(now)
        self.plans.turn_back(tick)
        memory.next_look, memory.last = min(memory.next_look, tick), ()
        for name in ("danger_since", "calm_since", "eased_since", "refused_at"):
            since = getattr(memory, name)
            if since is not None:
                setattr(memory, name, min(since, tick))
        if memory.announced_full_at_us > now:
            memory.announced_full_at_us = max(now, memory.announced_full_at_us - (before - now))

    # --- alerts ----------------------------------------------------------------------------------------------------

    def _maybe_open(self, view: ForecastView, summary: _Summary) -> list[Alert]:
        memory, config, times = self.memory, view.config, summary.times
        soon = summary.outlook.probability_within(rule.SOON_S)
        is_page = (
            summary.is_asked
            and times is not None
            and rule.is_worth_a_page(_danger(summary, times), config, memory.outcomes.worth)
        )
        if times is None or not (is_page or rule.is_danger(summary.probability, soon, times, config)):
            memory.danger_since = None
            return []
        if self.falling_since(view, summary.resource, summary.tick) is not None:
            return []  # no danger while it empties
        if memory.danger_since is None:
            memory.danger_since = summary.tick
        if not is_page and (summary.tick - memory.danger_since) * SECONDS < rule.hold_s(times):
            return []
        memory.danger_since = memory.calm_since = None
        return view.episodes.open(self._finding(view, summary, times, None), summary.tick * TICK)

    def _review(self, view: ForecastView, episode: Episode, summary: _Summary) -> list[Alert]:
        memory, config, tick, times = self.memory, view.config, summary.tick, summary.times
        refused = memory.refused_at is not None and tick - memory.refused_at < _CALM_TICKS
        is_calm = rule.is_calm(summary.probability, times, config) and not refused
        if is_calm and (cleared := self._settle(view, episode, tick)):
            return cleared
        if not is_calm:
            memory.calm_since = None
        if times is None or self._has_eased(view, summary, episode):
            eased = _Eased(_named(summary, episode), summary.probability, summary.outlook)
            return self._maybe_ease(view, episode, eased, tick)
        memory.eased_since = None
        if is_calm or summary.probability < rule.likely(config):
            return []  # it may be over soon: no update until it is, or until it is likely again
        severity = self._severity(view, summary, times, episode.severity)
        is_sooner = times[1] < _UPDATE_RATIO * (memory.announced_full_at_us / SECOND - tick * SECONDS)
        had_eased = episode.last is not None and (episode.last.has_eased or episode.last.time_to_full_s is None)
        has_changed = severity != episode.severity or is_sooner or had_eased
        if not has_changed and not self._has_other_filler(view, summary):
            return []
        return view.episodes.update(episode, self._finding(view, summary, times, episode.severity), tick * TICK)

    def _review_levels(self, view: ForecastView, episode: Episode | None, tick: int) -> list[Alert]:
        """Review an open alert where measured levels do not rise; without levels there is nothing to report."""
        if episode is None:
            return []
        if not self._are_levels_known(view, tick):
            last = episode.last_finding()  # one of a measurement alone has no time, and ends with it
            return self._settle(view, episode, tick) if last.time_to_full_s is None and not last.has_eased else []
        eased = _Eased(episode.last_finding().resource)
        return self._settle(view, episode, tick) or self._maybe_ease(view, episode, eased, tick)

    def _settle(self, view: ForecastView, episode: Episode, tick: int) -> list[Alert]:
        """Clear an open alert whose danger has been over for long enough; return its record."""
        memory = self.memory
        if view.nearly_full() is not None:
            memory.calm_since = None
            return []
        if memory.calm_since is None:
            memory.calm_since = tick
        if tick - memory.calm_since < _CALM_TICKS:
            return []
        memory.calm_since = memory.eased_since = None
        over = view.viewer().over(Condition.FULL_FORECAST, episode.resource, episode.severity)
        return view.episodes.clear(episode, over, tick * TICK)

    def falling_since(self, view: ForecastView, resource: Resource, tick: int) -> int | None:
        """Return the tick since which a resource empties; None: it does not."""
        is_by_levels = self.is_by_levels(view, tick)
        return falling_since(view, self.memory.levels, resource, tick, is_by_levels=is_by_levels)

    def _are_levels_known(self, view: ForecastView, tick: int) -> bool:
        levels = self.memory.levels
        return self.is_by_levels(view, tick) and levels.known == MIN_LEVELS and levels.are_recent(tick)

    def _has_eased(self, view: ForecastView, summary: _Summary, episode: Episode) -> bool:
        """Return True if no record may say when a resource will be full."""
        if summary.times is None or summary.probability < _EASED_PROBABILITY:
            return True
        return self.falling_since(view, _named(summary, episode), summary.tick) is not None

    def _maybe_ease(self, view: ForecastView, episode: Episode, eased: _Eased, tick: int) -> list[Alert]:
        """Say once that an open alert has eased, when it has for a while; return its record."""
        memory = self.memory
        if view.nearly_full() is not None:
            memory.eased_since = None
            return []
        if memory.eased_since is None:
            memory.eased_since = tick
        is_said = episode.last_finding().has_eased and episode.severity != CRITICAL
        hold = _EASED_TICKS if eased.probability < _EASED_PROBABILITY else _CALM_TICKS  # it may be a pause
        if is_said or tick - memory.eased_since < hold:
            return []
        return view.episodes.update(episode, self._eased_finding(view, episode, eased, tick), tick * TICK)

    def _eased_finding(self, view: ForecastView, episode: Episode, eased: _Eased, tick: int) -> Finding:
        """Return the finding about an alert that has eased. A page stays a page, and is not critical."""
        memory = self.memory
        memory.announced_full_at_us = tick * TICK
        since = self.falling_since(view, eased.resource, tick)
        return view.viewer().eased(
            eased.resource,
            INFO if episode.severity == INFO else WARNING,
            eased.probability,
            None if since is None else since * TICK,
            NEVER if memory.refused_at is None else memory.refused_at * TICK,
            () if eased.outlook is None else of_model(view, eased.outlook),
        )

    def refreshed(self, view: ForecastView, episode: Episode) -> Finding | None:
        """Return the finding about the open alert of the forecast as of now; None where nothing can be foreseen.

        Only the announced figures are stored: the time of the next look and the results of the last one do not change.
        """
        if not self.enabled:
            return None
        tick = int(view.tables.store.scalars[0]["tick"])
        outlook = self._outlook(view, tick, by_levels=self.is_by_levels(view, tick))
        nearly = view.nearly_full()
        if outlook is None:
            if nearly is not None:
                return msgspec.structs.replace(self._nearly_full(view, nearly, tick), severity=episode.severity)
            is_known = self._are_levels_known(view, tick)
            eased = _Eased(episode.last_finding().resource)
            return self._eased_finding(view, episode, eased, tick) if is_known else None
        summary = _Summary.from_outlook(outlook, tick)
        refused = refusing(view, int(view.tables.store.scalars[0]["clock"]))
        if refused and refused[0] in outlook.fill.resources:
            summary = _Summary(outlook, tick, 1.0, _FULL_NOW, outlook.fill.resources.index(refused[0]))
        if summary.times is None or self._has_eased(view, summary, episode):
            if nearly is not None:
                return msgspec.structs.replace(self._nearly_full(view, nearly, tick), severity=episode.severity)
            eased = _Eased(_named(summary, episode), summary.probability, outlook)
            return self._eased_finding(view, episode, eased, tick)
        finding = self._finding(view, summary, summary.times, episode.severity)
        return msgspec.structs.replace(finding, severity=episode.severity)

    def _outlook(self, view: ForecastView, tick: int, *, by_levels: bool) -> Outlook | None:
        """Return the outlook of a store, and remember nothing of it. by_levels: by its levels, not by its flows."""
        return self._extend(view, tick) if by_levels else self._look_at_flows(view, tick)

    def warn(self, view: ForecastView, tick: int) -> list[Alert]:
        """Return the page about a resource that was just measured to be nearly full and rising; none if it is open."""
        resource = view.nearly_full()
        if not self.enabled or resource is None or any(alert.condition == Condition.FULL for alert in view.episodes):
            return []
        self.memory.calm_since = self.memory.eased_since = None
        episode = next((alert for alert in view.episodes if alert.condition == Condition.FULL_FORECAST), None)
        if episode is not None and episode.severity != INFO and not episode.last_finding().has_eased:
            return []
        finding, now = self._nearly_full(view, resource, tick), int(view.tables.store.scalars[0]["clock"])
        self.memory.danger_since = None
        self.look_soon()
        return view.episodes.open(finding, now) if episode is None else view.episodes.update(episode, finding, now)

    def _nearly_full(self, view: ForecastView, resource: Resource, tick: int) -> Finding:
        """Return the page about a resource measured to be nearly full and rising, with its time where one is known.

        Where the twin has less of it than was measured, its flows know no time; levels may.
        """
        by_levels = self.is_by_levels(view, tick) or view.beyond_pct(resource) > 0
        outlook = self._outlook(view, tick, by_levels=by_levels)
        if outlook is not None and resource in outlook.fill.resources and not is_full(outlook.fill):
            number = outlook.fill.resources.index(resource)
            times, probability = outlook.quantiles(number), outlook.probability_of(number)
            if times is not None and probability >= _EASED_PROBABILITY:
                times = _not_yet(times)
                summary = _Summary(outlook, tick, probability, times, number)
                finding = self._finding(view, summary, times, WARNING)
                self._situation = ""
                return msgspec.structs.replace(finding, severity=CRITICAL if times[1] <= _CRITICAL_S else WARNING)
        self.memory.announced_full_at_us, self.memory.announced_filler = tick * TICK, ""
        self._situation = ""
        return view.viewer().nearly_full(resource, WARNING)

    def _has_other_filler(self, view: ForecastView, summary: _Summary) -> bool:
        """Return True if another queue fills most; checked every ten minutes, since it counts all messages."""
        return summary.tick % _CALM_TICKS == 0 and _first_filler(view, summary) != self.memory.announced_filler

    def _finding(
        self, view: ForecastView, summary: _Summary, times: tuple[float, float, float], severity_before: str | None
    ) -> Finding:
        self.memory.announced_full_at_us = summary.tick * TICK + round(times[1] * SECOND)
        self.memory.announced_filler = _first_filler(view, summary)
        viewer = view.viewer()
        effects = remedies.effects(
            summary.outlook, viewer.who_fills(summary.resource), view.config, is_full=times == _FULL_NOW
        )
        severity = self._severity(view, summary, times, severity_before)
        reasons = evidence(view, summary.outlook, self.memory.announced_filler, summary.tick)
        outcomes = self.memory.outcomes
        if times != _FULL_NOW:
            words = self._words_text(view, summary, times) if outcomes.calls else ""
            reasons = (*reasons, *filter(None, (outcomes.reason, words)))
        corrected = outcomes.widen(times)
        finding = viewer.foreseen(summary.resource, severity, corrected, summary.probability, effects, reasons)
        planned = comment(self.plans, view, self.memory.announced_filler, summary.tick)
        return finding if not planned else _beginning_with(planned, finding)

    def _severity(
        self, view: ForecastView, summary: _Summary, times: tuple[float, float, float], before: str | None
    ) -> str:
        """Return info for a watch; of a page warning, critical from ten minutes left. A page does not become a watch; a
        critical alert is a warning again at three times as much time left. `times`: seconds (p10, p50, p90).
        """
        danger, worth = _danger(summary, times), self.memory.outcomes.worth
        if before in (None, INFO) and not rule.is_worth_a_page(danger, view.config, worth):
            return INFO
        self._situation = str(rule.situation_of(danger, view.config, worth))
        until = _CRITICAL_S * 3 if before == CRITICAL else _CRITICAL_S
        return CRITICAL if times[1] <= until else WARNING

    def _words_text(self, view: ForecastView, summary: _Summary, times: tuple[float, float, float]) -> str:
        """Return what people said of pages in the situation of an outlook, as a sentence of evidence; "": nothing."""
        outcomes = self.memory.outcomes
        situation = rule.situation_of(_danger(summary, times), view.config, outcomes.worth)
        useful, useless = outcomes.words(situation)
        if not useful + useless:
            return ""
        count, what = (useless, "useless") if outcomes.worth(situation) < 1.0 else (useful, "useful")
        of_all = f"{count} of {useful + useless} such {'pages were' if useful + useless > 1 else 'page was'} {what}"
        return f"a page needs {100.0 * rule.needed(situation, view.config, outcomes.worth):.0f} % here: {of_all}"


class _Place(NamedTuple):
    """All that a look depends on where a recording is played again with other settings of alerts."""

    store: str
    tick: int
    looked_at: int
    counts: bytes
    stops: tuple[Stop, ...]
    is_sample: bool


_looks: ContextVar[dict[_Place, Outlook | None] | None] = ContextVar("kept looks", default=None)


@contextlib.contextmanager
def keeping_looks() -> Iterator[None]:
    """Keep the looks that are made meanwhile: where a recording is played again, they are not made again.

    No futures are kept, so that alerts come when they would, but name no effects of actions. Between two plays only
    settings of alerts may differ.
    """
    token = _looks.set({})
    try:
        yield
    finally:
        _looks.reset(token)


def _named(summary: _Summary, episode: Episode) -> Resource:
    return episode.last_finding().resource if summary.first < 0 else summary.resource


def _danger(summary: _Summary, times: tuple[float, float, float]) -> rule.Danger:
    """Return what decides whether an outlook is a page. times: seconds until full (p10, p50, p90)."""
    outlook = summary.outlook
    return rule.Danger(
        summary.probability,
        times,
        usage=usage(outlook.fill, summary.first),
        turned_before=outlook.past.turns_back,
        is_asked=summary.is_asked,
        is_clear=outlook.is_clear,
        keeps_up=outlook.keeps_up,
    )


def _is_refuted(view: ForecastView, outlook: Outlook) -> bool:
    """Return True if a model is full only by puts that the system accepted: there was room, and it knows no time."""
    return is_full(outlook.fill) and int(view.tables.store.scalars["overfull_held"][0]) > 0


def look(
    view: ForecastView,
    tick: int,
    counts: bytes = b"",
    stops: tuple[Stop, ...] = (),
    *,
    is_sample: bool = False,
    plans: Plans | None = None,
) -> Outlook | None:
    """Return the outlook of a store from a tick on; None while its flows are not known yet. `counts`: puts by half
    hours, as of `Puts`, or b""; `is_sample`: events report a part of the calls.
    """
    store = view.tables.store
    fill = view.fill_model(tick)
    horizon = int(view.config.forecast_horizon_s / SECONDS)
    planned, fill = ((), fill) if plans is None else plans.ahead(view, tick, horizon, fill)
    regime = flows.present(store, tick, fill.weights, stops)
    if regime is None:
        return None
    return look_ahead(
        store,
        view.name,
        fill,
        regime,
        tick,
        horizon,
        doubt(view, fill),
        longer=flows.LONGER,
        trusted=None if planned else trust_rates(counts),
        wanders=wandering(counts),
        reading=how_read(view, tick, is_sample=is_sample),
        planned=planned,
    )


def _beginning_with(sentence: str, finding: Finding) -> Finding:
    headline = finding.headline or finding.cause.partition(". ")[0].removesuffix(".")
    return msgspec.structs.replace(finding, headline=headline, why=sentence, cause=f"{sentence}. {finding.cause}")


def _not_yet(times: tuple[float, float, float]) -> tuple[float, float, float]:
    """Return the seconds until full of a store that refuses no put: it is not full now, however little is left."""
    p10, p50, p90 = times
    return p10, max(1.0, p50), max(1.0, p90)


def _first_filler(view: ForecastView, summary: _Summary) -> str:
    fillers = view.viewer().who_fills(summary.resource)
    return fillers[0].queue if fillers else ""


def _cadence(left: float | None, lead: float) -> int:
    """Return the ticks until the next look. left: seconds until full, None: never; lead: seconds of a page's lead."""
    if left is None or left > 8 * lead:
        return 12
    if left > 4 * lead:
        return 6
    return 1 if left <= 1.2 * lead else 3


def _forecasts(store: str, summary: _Summary, outcomes: Outcomes) -> tuple[Forecast, ...]:
    """Return a forecast for each resource that is full on some path, the first to be full in front.

    Where none is full on any path there is one, with probability 0: of the fullest resource. Intervals are corrected by
    the outcomes of earlier ones.
    """
    outlook = summary.outlook
    first = fullest(outlook.fill) if summary.first < 0 else summary.first
    forecasts = []
    for number, resource in enumerate(outlook.fill.resources):
        is_first = number == first
        times = summary.times if is_first else outlook.quantiles(number)
        if times is None and not is_first:
            continue
        corrected = None if times is None else outcomes.widen(_not_yet(times))
        p10, p50, p90 = (None, None, None) if corrected is None else (round(seconds, 1) for seconds in corrected)
        probability = summary.probability if is_first else outlook.probability_of(number)
        forecasts.append(
            Forecast(
                store=store,
                time=summary.tick * TICK,
                resource=str(resource),
                usage_pct=round(100 * usage(outlook.fill, number), 3),
                p10=p10,
                p50=p50,
                p90=p90,
                probability=round(probability, 4),
                first=is_first,
            )
        )
    return tuple(sorted(forecasts, key=lambda forecast: not forecast.first))
