"""From forecasts to alerts: when to look ahead, when to speak, when to be quiet again.

An alert opens when full is likely enough and near enough, and stays so for a hold time; it is updated when something a
person would act on has changed, and cleared when it has been unlikely, or far off, for longer. A store has one alert of
this condition at a time, about the resource that is full first: that resource may change, the episode does not.

Sources: hold times and dead bands cure chattering (ISA-18.2, EEMUA 191).
"""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec
import numpy as np

from kernels import meters, shares
from kernels.clock import SECOND, TICK
from kernels.resources import FIRST_DATA_SET_TIDE
from twin.alerts.episodes import CRITICAL, WARNING, Alert, Episode, Finding
from twin.forecast import flows, remedies
from twin.forecast.outlook import SECONDS, Forecast, Outlook, look_ahead, usage
from twin.forecast.view import ForecastView
from twin.units import as_text

CONDITION = "full-forecast"
_WORTH_CLIMB = 0.06  # share of a resource that a climb must have made before it is looked at
_FASTER = 3.0  # a climb may become so many times as fast as it was
_CALM_TICKS = 60  # ten minutes: a danger must be gone so long before its alert is cleared
_CALM_BELOW = 0.3  # of the probability at which an alert opens
_CALM_BEYOND = 2.5  # times the lead: so far off a danger is none
_HOLD = 0.04  # of the time left: so long a danger must be there before its alert opens
_LONGEST_HOLD = 6  # ticks
_CRITICAL_S = 600.0  # seconds left from which an alert is critical
_SOONER = 0.5  # of the time left by what was told last: less than that is worth telling
_KEPT = 4096  # forecasts kept until they are asked for


class Sight(msgspec.Struct, kw_only=True):
    """What a store remembers of its forecasts; in its header. Ticks and seconds."""

    due: int = 0  # tick from which to look again
    danger_since: int | None = None  # tick
    calm_since: int | None = None
    told: int = 0  # microseconds: when it would be full, as last told in an alert
    told_filler: str = ""
    full_puts: int = 0  # puts refused so far, as last looked; and the tick that brought the last of them
    refused_at: int | None = None
    last: tuple[Forecast, ...] = ()  # as last looked


class Foresight:
    """The forecast of one store.

    sight: what it remembers; enabled: False keeps the meters only; forecasts: made since they were last drained.
    """

    def __init__(self, sight: Sight, *, enabled: bool) -> None:
        self.sight = sight
        self.enabled = enabled
        self.forecasts: deque[Forecast] = deque(maxlen=_KEPT)
        self._shares = np.zeros(0)

    def record(self) -> dict[str, Any] | None:
        """The `forecast` of the state record, JSON-ready; None where nothing is foreseen."""
        if not self.sight.last:
            return None
        return {
            "time": as_text(self.sight.last[0].time),
            "resources": [
                {
                    "resource": one.resource,
                    "usage_pct": one.usage_pct,
                    "full_probability": one.probability,
                    "time_to_full_s": None if one.p50 is None else {"p10": one.p10, "p50": one.p50, "p90": one.p90},
                }
                for one in self.sight.last
            ],
        }

    def tick(self, twin: ForecastView, before: int, tick: int) -> list[Alert]:
        """Act at one tick, the one acted at before given; meters first."""
        store = twin.tables.store
        sets = store.datasets.size
        space = int(store.scalars["bytes"][0])
        meters.begin_bin(store, tick, space)
        meters.end_slot(store, before, tick, sets, space)
        if self._shares.size != sets + FIRST_DATA_SET_TIDE:
            self._shares = np.zeros(sets + FIRST_DATA_SET_TIDE)
        climbed = shares.watch(store, tick, self._shares)
        self._note_refused(int(store.scalars["full_puts"][0]), tick)
        if not self.enabled:
            return []
        episode = next((one for one in twin.episodes if one.condition == CONDITION), None)
        if episode is None and (climbed < _WORTH_CLIMB or not self._may_fill(twin, tick)):
            self.sight.danger_since, self.sight.last = None, ()
            return []
        if tick < self.sight.due:
            return []
        outlook = self._look(twin, tick)
        if outlook is None:
            return []
        self.sight.last = _forecasts(twin, outlook, tick * TICK)
        self.forecasts += self.sight.last
        times = outlook.quantiles()
        self.sight.due = tick + _cadence(times[1] if times else None, twin.config.forecast_lead_s)
        if episode is None:
            return self._maybe_open(twin, outlook, tick)
        return self._review(twin, episode, outlook, tick)

    def turn_back(self, before: int, now: int) -> None:
        """Go on from an earlier time; before: the clock until now, microseconds. What was foreseen is forgotten."""
        sight, tick = self.sight, now // TICK
        sight.due, sight.last = min(sight.due, tick), ()
        for name in ("danger_since", "calm_since", "refused_at"):
            since = getattr(sight, name)
            if since is not None:
                setattr(sight, name, min(since, tick))
        if sight.told > now:
            sight.told = max(now, sight.told - (before - now))

    def _note_refused(self, full_puts: int, tick: int) -> None:
        if full_puts != self.sight.full_puts:
            self.sight.full_puts, self.sight.refused_at = full_puts, tick

    def _may_fill(self, twin: ForecastView, tick: int) -> bool:
        """Whether any resource could be full within the horizon, were it to climb some times as fast as it did."""
        tides = twin.tables.store.tides[: self._shares.size]
        age = np.maximum(1, tick - tides["began"])
        pace = np.maximum(self._shares - tides["low"], 0.0) / age * _FASTER
        return bool((self._shares + pace * (twin.config.forecast_horizon_s / SECONDS) >= 1.0).any())

    def _look(self, twin: ForecastView, tick: int) -> Outlook | None:
        store = twin.tables.store
        rules = twin.rules(tick)
        now = flows.present(store, tick, rules.weights)
        if now is None:
            return None
        horizon = int(twin.config.forecast_horizon_s / SECONDS)
        return look_ahead(store, twin.name, rules, now, tick, horizon)

    # --- alerts ----------------------------------------------------------------------------------------------------

    def _maybe_open(self, twin: ForecastView, outlook: Outlook, tick: int) -> list[Alert]:
        times = outlook.quantiles()
        lead = twin.config.forecast_lead_s
        if times is None or outlook.probability < twin.config.forecast_probability or times[1] > lead:
            self.sight.danger_since = None
            return []
        if self.sight.danger_since is None:
            self.sight.danger_since = tick
        if (tick - self.sight.danger_since) * SECONDS < min(_HOLD * times[1], _LONGEST_HOLD * SECONDS):
            return []
        self.sight.danger_since = self.sight.calm_since = None
        return [twin.episodes.open(self._finding(twin, outlook, None, tick), tick * TICK)]

    def _review(self, twin: ForecastView, episode: Episode, outlook: Outlook, tick: int) -> list[Alert]:
        times = outlook.quantiles()
        config = twin.config
        unlikely = outlook.probability < _CALM_BELOW * config.forecast_probability
        calm = times is None or unlikely or times[1] > _CALM_BEYOND * config.forecast_lead_s
        refused = self.sight.refused_at is not None and tick - self.sight.refused_at < _CALM_TICKS
        if calm and not refused:
            if self.sight.calm_since is None:
                self.sight.calm_since = tick
            if tick - self.sight.calm_since < _CALM_TICKS:
                return []
            self.sight.calm_since = None
            over = twin.viewer().over(CONDITION, episode.resource, episode.severity)
            return [twin.episodes.clear(episode, over, tick * TICK)]
        self.sight.calm_since = None
        if times is None or outlook.probability < config.forecast_probability:
            return []  # it may be over soon: no news until it is, or until it is likely again
        severity = _severity(times[1], episode.severity)
        sooner = times[1] < _SOONER * (self.sight.told / SECOND - tick * SECONDS)
        if severity == episode.severity and not sooner and not self._filler_changed(twin, outlook, tick):
            return []
        return [twin.episodes.update(episode, self._finding(twin, outlook, episode.severity, tick), tick * TICK)]

    def _filler_changed(self, twin: ForecastView, outlook: Outlook, tick: int) -> bool:
        """Whether another queue fills most, looked at every five minutes: who fills a data set is counted."""
        return tick % _CALM_TICKS == 0 and _first_filler(twin, outlook) != self.sight.told_filler

    def _finding(self, twin: ForecastView, outlook: Outlook, severity_before: str | None, tick: int) -> Finding:
        times = outlook.quantiles()
        assert times is not None
        resource = outlook.rules.resources[outlook.first]
        self.sight.told = tick * TICK + round(times[1] * SECOND)
        self.sight.told_filler = _first_filler(twin, outlook)
        viewer = twin.viewer()
        effects = remedies.effects(outlook, viewer.who_fills(resource), twin.config)
        severity = _severity(times[1], severity_before)
        return viewer.foreseen(resource, severity, times, outlook.probability, effects)


def _severity(left: float, before: str | None) -> str:
    """Critical from ten minutes left; warning again when there is half as much more."""
    until = _CRITICAL_S * 1.5 if before == CRITICAL else _CRITICAL_S
    return CRITICAL if left <= until else WARNING


def _first_filler(twin: ForecastView, outlook: Outlook) -> str:
    ranked = twin.viewer().who_fills(outlook.rules.resources[outlook.first])
    return ranked[0].queue if ranked else ""


def _cadence(left: float | None, lead: float) -> int:
    """Ticks until to look again."""
    if left is None or left > 4 * lead:
        return 6
    return 1 if left <= 1.2 * lead else 3


def _forecasts(twin: ForecastView, outlook: Outlook, time: int) -> tuple[Forecast, ...]:
    """One for each resource that is full on some path; the first to be full first."""
    found = []
    for at, resource in enumerate(outlook.rules.resources):
        times = outlook.quantiles(at)
        if times is None and at != max(0, outlook.first):
            continue
        first = at == max(0, outlook.first)
        known = outlook.quantiles() if first else times
        p10, p50, p90 = (None, None, None) if known is None else (round(one, 1) for one in known)
        found.append(
            Forecast(
                store=twin.name,
                time=time,
                resource=resource,
                usage_pct=round(100 * usage(outlook.rules, at), 3),
                p10=p10,
                p50=p50,
                p90=p90,
                probability=round(outlook.probability if first else outlook.of(at), 4),
                first=first,
            )
        )
    return tuple(sorted(found, key=lambda one: not one.first))
