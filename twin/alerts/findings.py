"""Findings of all kinds of stores: which condition holds, its severity, the queues that fill, and the actions.

What depends on the kind of store is in its subclass of `Viewer`. Conditions and thresholds are described in
docs/alerts.md. Source: [IBM: z/OS MVS Setting Up a Sysplex, structure full monitoring] (IXC585E at or above
FULLTHRESHOLD, IXC586I below it).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from kernels import layout
from kernels.clock import SECOND, TICK
from twin.alerts import fillers, texts
from twin.alerts.episodes import Filler, Finding
from twin.alerts.texts import NOTHING
from twin.conditions import CRITICAL, FULL, WARNING, Condition
from twin.state.arrays import Array
from twin.units import as_span

HYSTERESIS = 2  # percentage points below the threshold at which a condition is over
CALM_FOR = 60 * SECOND  # event time for which a condition must be over before its alert is cleared
CALM_AFTER_FULL = 300 * SECOND  # the same after the last 2192: getters and putters come back in waves
CRITICAL_FROM = 95.0  # percent
CRITICAL_UNTIL = 90.0  # percent
_EXPECTED_FULL = 99.0  # percent: below it the model does not expect a 2192
STEP = 5.0  # percentage points: change of usage that updates an alert


class Viewer(ABC):
    """Findings about one store, computed from its current arrays."""

    def __init__(self, config: Any, store: layout.Store, queues: Sequence[str]) -> None:
        self._config = config
        self._store = store
        self._names = queues
        self._queues: Array = store.queues[: len(queues)]

    # --- defined by each kind of store -----------------------------------------------------------------------------

    @abstractmethod
    def usage_pct(self, resource: str) -> float:
        """Return the usage of a resource, percent."""

    @abstractmethod
    def mark_pct(self, condition: str, resource: str) -> float:
        """Return the threshold of a condition, percent; 0 if the condition is not watched."""

    @abstractmethod
    def _exhausted(self, resource: str) -> bool:
        """Return True if the next put finds no room. With few entries, blocks or pages the last one is over 2 %."""

    @abstractmethod
    def _last_full(self, resource: str) -> int:
        """Return the time of the last put with 2192, microseconds, or NEVER."""

    @abstractmethod
    def _can_expand(self, resource: str) -> bool:
        """Return True if a resource that may expand still can."""

    @abstractmethod
    def _by_queue(self, resource: str) -> tuple[Array, Array]:
        """Return (recent growth, amount held) of a resource by queue, i8[queues] each."""

    @abstractmethod
    def _unit(self, resource: str) -> str:
        """Return the unit in which growth is counted: "pages"."""

    @abstractmethod
    def _of(self, resource: str) -> str:
        """Return the resource as the subject of a sentence: "Entries of QSG1/APP1"."""

    @abstractmethod
    def _mark_name(self, resource: str) -> str:
        """Return the name of the threshold: "FULLTHRESHOLD"."""

    @abstractmethod
    def _why_not(self, resource: str) -> str:
        """Return the reason why a resource cannot expand."""

    @abstractmethod
    def _actions(
        self, resource: str, ranked: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING
    ) -> tuple[str, ...]:
        """Return the actions that help when the resource runs out."""

    # --- findings --------------------------------------------------------------------------------------------------

    def is_over(self, condition: str, resource: str, now: int) -> bool:
        """Return True if a condition no longer holds at `now`, its hysteresis included, CALM_FOR not."""
        threshold = self.mark_pct(condition, resource)
        calm = self.usage_pct(resource) < threshold - min(HYSTERESIS, threshold / 2) or threshold == 0
        if condition == Condition.FULL:
            return calm and not self._exhausted(resource) and self._last_full(resource) + CALM_AFTER_FULL <= now
        if condition == Condition.CANNOT_EXPAND:
            return calm or self._can_expand(resource)
        return calm

    def finding(self, condition: str, resource: str, severity_before: str | None) -> Finding:
        """Return the finding of a condition that holds.

        Args:
            condition: a name of twin.conditions.Condition.
            resource: name of the resource.
            severity_before: severity last published; None before the first record.
        """
        usage = self.usage_pct(resource)
        grown, held = self._by_queue(resource)
        ranked = fillers.fillers(grown, held, self._names)
        return Finding(
            condition=condition,
            resource=resource,
            severity=self.severity(condition, usage, severity_before),
            usage_pct=usage,
            full_probability=1.0 if condition == Condition.FULL else None,
            fillers=ranked,
            cause=f"{self._what(condition, resource, usage)}. {self._filled(resource, ranked, grown)}.",
            actions=self._actions(resource, ranked),
        )

    def who_fills(self, resource: str) -> tuple[Filler, ...]:
        """Return the queues that fill a resource, the largest share first."""
        return fillers.fillers(*self._by_queue(resource), self._names)

    def foreseen(
        self,
        resource: str,
        severity: str,
        times: tuple[float, float, float],
        probability: float,
        effects: Mapping[str, str],
    ) -> Finding:
        """Return the finding of a resource that is forecast to be full.

        Args:
            resource: name of the resource.
            severity: of the finding.
            times: seconds until full, p10, p50, p90.
            probability: of full within the horizon, 0..1.
            effects: text of the effect of each action, by action (see texts.py).
        """
        usage = self.usage_pct(resource)
        grown, held = self._by_queue(resource)
        ranked = fillers.fillers(grown, held, self._names)
        return Finding(
            condition=Condition.FULL_FORECAST,
            resource=resource,
            severity=severity,
            usage_pct=usage,
            time_to_full_s={name: round(left, 1) for name, left in zip(("p10", "p50", "p90"), times, strict=True)},
            full_probability=round(probability, 4),
            fillers=ranked,
            cause=f"{self._of(resource)}: {usage:.1f} % in use, {texts.describe_forecast(times, probability)}."
            f" {self._filled(resource, ranked, grown)}{self._served(ranked)}.",
            actions=self._actions(resource, ranked, effects),
        )

    def over(self, condition: str, resource: str, severity_before: str) -> Finding:
        """Return the finding of a condition that no longer holds."""
        usage = self.usage_pct(resource)
        return Finding(
            condition=condition,
            resource=resource,
            severity=severity_before,
            usage_pct=usage,
            full_probability=None,
            fillers=fillers.fillers(*self._by_queue(resource), self._names),
            cause=f"{self._of(resource)}: {usage:.1f} % in use, alert cleared.",
            actions=(),
        )

    def severity(self, condition: str, usage: float, before: str | None) -> str:
        """Return the severity of a condition.

        Args:
            condition: a name of twin.conditions.Condition.
            usage: of the resource, percent.
            before: severity last published; None before the first record.
        """
        if condition == Condition.FULL:
            return FULL
        if condition == Condition.CANNOT_EXPAND or usage >= CRITICAL_FROM:
            return CRITICAL
        if before == CRITICAL and usage >= CRITICAL_UNTIL:
            return CRITICAL
        return WARNING

    def _filled(self, resource: str, ranked: tuple[Filler, ...], grown: Array) -> str:
        span = as_span(fillers.growth_span(int(self._store.scalars[0]["clock"])) / SECOND)
        return texts.describe_growth(ranked, int(grown.sum()), self._unit(resource), span)

    def _served(self, ranked: tuple[Filler, ...]) -> str:
        """Return the rates of the queue that fills most, as the end of a sentence."""
        if not ranked:
            return ""
        queue = self._queues[self._names.index(ranked[0].queue)]
        clock_now = int(self._store.scalars[0]["clock"])
        seconds = fillers.growth_span(clock_now) / SECOND
        puts, gets = (int(queue[name] - queue[f"{name}_before"]) / seconds for name in ("puts", "gets"))
        since_get = None if not queue["gets"] else (clock_now - int(queue["got_at"]) * TICK) / SECOND
        return f", {texts.describe_rates(puts, gets, since_get)}"

    def _what(self, condition: str, resource: str, usage: float) -> str:
        subject = self._of(resource)
        if condition == Condition.FULL:
            recent = self._last_full(resource) + CALM_AFTER_FULL > int(self._store.scalars[0]["clock"])
            if recent and usage < _EXPECTED_FULL:
                return f"{subject}: puts fail with 2192, but the twin counts only {usage:.1f} % in use"
            return f"{subject}: {usage:.1f} % in use, {'puts fail' if recent else 'the next put fails'} with 2192"
        if condition == Condition.CANNOT_EXPAND:
            return f"{subject}: {usage:.1f} % in use, cannot expand ({self._why_not(resource)})"
        threshold = self.mark_pct(condition, resource)
        return f"{subject}: {usage:.1f} % in use ({self._mark_name(resource)} {threshold:.0f} %)"
