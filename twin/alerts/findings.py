"""Findings about the conditions of a store: severity, cause, the queues that fill, and actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kernels import layout
from kernels.clock import SECOND, TICK
from twin.alerts import texts
from twin.alerts.episodes import Finding
from twin.alerts.fillers import growth_span, rank_fillers
from twin.alerts.resource_view import ResourceView
from twin.conditions import Condition, Resource
from twin.records import Filler, TimeToFull
from twin.state.arrays import Array
from twin.units import as_span


class Viewer:
    """Findings about one store.

    Args:
        store: its arrays.
        queues: names of its queues by row.
        resource: returns the view of a resource.
        began: time of the store's first event, as for `growth_span`.
    """

    def __init__(
        self,
        store: layout.Store,
        queues: Sequence[str],
        resource: Callable[[Resource], ResourceView],
        began: int | None,
    ) -> None:
        self._store = store
        self._began = began
        self._names = queues
        self.resource = resource

    def finding(
        self,
        condition: str,
        resource: Resource,
        severity_before: str | None,
        effects: Callable[[tuple[Filler, ...]], Mapping[str, str]] = lambda _: texts.NOTHING,
    ) -> Finding:
        """Return the finding about a condition that holds.

        Args:
            condition: a `Condition`.
            resource: the resource.
            severity_before: severity last published; None before the first record.
            effects: returns the effect of each action, by action, for the queues that fill.
        """
        view = self.resource(resource)
        growth, held = view.by_queue()
        fillers = rank_fillers(growth, held, self._names)
        return Finding(
            condition=condition,
            resource=resource,
            severity=view.severity(condition, severity_before),
            usage_pct=view.usage_pct,
            full_probability=1.0 if condition == Condition.FULL else None,
            fillers=fillers,
            cause=f"{view.describe(condition)}. {self._filled(view, fillers, growth)}.",
            runbook=view.actions_for(condition, fillers, effects(fillers)),
            evidence=view.evidence,
        )

    def who_fills(self, resource: Resource) -> tuple[Filler, ...]:
        """Return the queues that fill a resource, the largest share first."""
        return rank_fillers(*self.resource(resource).by_queue(), self._names)

    def foreseen(
        self,
        resource: Resource,
        severity: str,
        times: tuple[float, float, float],
        probability: float,
        effects: Mapping[str, str],
        evidence: tuple[str, ...] = (),
    ) -> Finding:
        """Return the finding about a resource that is forecast to be full.

        Args:
            resource: the resource.
            severity: severity of the alert.
            times: seconds until full (p10, p50, p90).
            probability: probability of full within the horizon, 0..1.
            effects: effect of each action on the forecast, by action (see texts.py).
            evidence: sentences that say why.
        """
        view = self.resource(resource)
        usage = view.usage_pct
        growth, held = view.by_queue()
        fillers = rank_fillers(growth, held, self._names)
        p10, p50, p90 = (round(left, 1) for left in times)
        return Finding(
            condition=Condition.FULL_FORECAST,
            resource=resource,
            severity=severity,
            usage_pct=usage,
            time_to_full_s=TimeToFull(p10=p10, p50=p50, p90=p90),
            full_probability=round(probability, 4),
            fillers=fillers,
            cause=f"{view.text}: {view.usage}, {texts.describe_forecast(times, probability, view.consequence)}."
            f" {self._filled(view, fillers, growth)}{self._rates(fillers)}.",
            runbook=view.actions(fillers, effects),
            evidence=(*evidence, *view.evidence),
        )

    def over(self, condition: str, resource: Resource, severity_before: str) -> Finding:
        """Return the finding about a condition that no longer holds."""
        view = self.resource(resource)
        usage = view.usage_pct
        return Finding(
            condition=condition,
            resource=resource,
            severity=severity_before,
            usage_pct=usage,
            fillers=self.who_fills(resource),
            cause=f"{view.text}: {view.usage}, alert cleared.",
        )

    def _filled(self, view: ResourceView, fillers: tuple[Filler, ...], growth: Array) -> str:
        span = as_span(growth_span(int(self._store.scalars[0]["clock"]), self._began) / SECOND)
        if not view.has_fillers:
            return "What takes it is not measured"
        scalars = self._store.scalars[0]
        if not fillers and not scalars["ages"] and not scalars["unmatched_gets"]:
            return "Which queue fills it is not known: no puts and gets are reported"
        return texts.describe_growth(fillers, view.growth_in_units(growth), view.unit, span)

    def _rates(self, fillers: tuple[Filler, ...]) -> str:
        """Return the rates of the queue that fills most, as the end of a sentence."""
        if not fillers:
            return ""
        queue = self._store.queues[self._names.index(fillers[0].queue)]
        clock = int(self._store.scalars[0]["clock"])
        seconds = growth_span(clock, self._began) / SECOND
        puts, gets = (int(queue[name] - queue[f"{name}_before"]) / seconds for name in ("puts", "gets"))
        since_get = None if not queue["gets"] else (clock - int(queue["got_at"]) * TICK) / SECOND
        return f", {texts.describe_rates(puts, gets, since_get)}"
