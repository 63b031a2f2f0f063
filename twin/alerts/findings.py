"""What a twin sees: is a condition there, how bad is it, who fills it, what helps.

Here is what all kinds of stores share; what a kind knows of its resources is in its subclass of `Viewer`. Sources:
contract sections 4 and 7; z/OS structure full monitoring (IXC585E at or above FULLTHRESHOLD, IXC586I below).
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

HYSTERESIS = 2  # percentage points below its mark at which a condition counts as over
CALM_FOR = 60 * SECOND  # event time a condition must be over before its alert is cleared
CALM_AFTER_FULL = 300 * SECOND  # the same after the last 2192: getters and putters come back in waves
CRITICAL_FROM = 95.0  # percent
CRITICAL_UNTIL = 90.0
_USED_UP = 99.0  # percent: below it a 2192 is not what the model expects
STEP = 5.0  # percentage points of usage that are worth telling again


class Viewer(ABC):
    """Findings about one store, from its arrays as they are now."""

    def __init__(self, config: Any, store: layout.Store, queues: Sequence[str]) -> None:
        self._config = config
        self._store = store
        self._names = queues
        self._queues: Array = store.queues[: len(queues)]

    # --- what a kind knows -----------------------------------------------------------------------------------------

    @abstractmethod
    def usage_pct(self, resource: str) -> float:
        """Percent of a resource in use."""

    @abstractmethod
    def mark_pct(self, condition: str, resource: str) -> float:
        """The percentage at which a condition begins; 0: it is not watched."""

    @abstractmethod
    def _exhausted(self, resource: str) -> bool:
        """Whether the next put finds no room: of few entries, blocks or pages the last one is more than 2 %."""

    @abstractmethod
    def _last_full(self, resource: str) -> int:
        """Time of the last put that the resource refused, NEVER."""

    @abstractmethod
    def _can_expand(self, resource: str) -> bool:
        """Whether a resource that may expand still can."""

    @abstractmethod
    def _by_queue(self, resource: str) -> tuple[Array, Array]:
        """(what each queue added lately, what it holds) of a resource, i8[queues]."""

    @abstractmethod
    def _unit(self, resource: str) -> str:
        """What a resource is counted in, in words."""

    @abstractmethod
    def _of(self, resource: str) -> str:
        """The resource in words: "entries of QSG1/APP1"."""

    @abstractmethod
    def _mark_name(self, resource: str) -> str:
        """What the mark of a threshold is called."""

    @abstractmethod
    def _why_not(self, resource: str) -> str:
        """Why a resource cannot expand, in words."""

    @abstractmethod
    def _actions(
        self, resource: str, ranked: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING
    ) -> tuple[str, ...]:
        """What helps where the resource runs out."""

    # --- findings --------------------------------------------------------------------------------------------------

    def is_over(self, condition: str, resource: str, now: int) -> bool:
        """Whether a condition no longer holds at `now`, with its hysteresis; before any time of calm."""
        mark = self.mark_pct(condition, resource)
        calm = self.usage_pct(resource) < mark - min(HYSTERESIS, mark / 2) or mark == 0
        if condition == Condition.FULL:
            return calm and not self._exhausted(resource) and self._last_full(resource) + CALM_AFTER_FULL <= now
        if condition == Condition.CANNOT_EXPAND:
            return calm or self._can_expand(resource)
        return calm

    def finding(self, condition: str, resource: str, severity_before: str | None) -> Finding:
        """What there is to say of a condition that holds. severity_before: as last published, None: not yet."""
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
            cause=f"{self._what(condition, resource, usage)}; {self._filled(resource, ranked, grown)}.",
            actions=self._actions(resource, ranked),
        )

    def who_fills(self, resource: str) -> tuple[Filler, ...]:
        """The queues that fill a resource, the first one most."""
        return fillers.fillers(*self._by_queue(resource), self._names)

    def foreseen(
        self,
        resource: str,
        severity: str,
        times: tuple[float, float, float],
        probability: float,
        effects: Mapping[str, str],
    ) -> Finding:
        """What there is to say of a resource that will be full in so many seconds (p10, p50, p90).

        effects: what each action would change, in words (see texts.py).
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
            cause=f"{usage:.1f} % of the {self._of(resource)} are in use; {texts.as_it_goes(times, probability)}, "
            f"and puts get 2192; {self._filled(resource, ranked, grown)}{self._served(ranked)}.",
            actions=self._actions(resource, ranked, effects),
        )

    def over(self, condition: str, resource: str, severity_before: str) -> Finding:
        """What there is to say of a condition that holds no more."""
        usage = self.usage_pct(resource)
        return Finding(
            condition=condition,
            resource=resource,
            severity=severity_before,
            usage_pct=usage,
            full_probability=None,
            fillers=fillers.fillers(*self._by_queue(resource), self._names),
            cause=f"It is over: {usage:.1f} % of the {self._of(resource)} are in use.",
            actions=(),
        )

    def severity(self, condition: str, usage: float, before: str | None) -> str:
        """How bad a condition is at a usage, in percent. before: as last published, None: not yet."""
        if condition == Condition.FULL:
            return FULL
        if condition == Condition.CANNOT_EXPAND or usage >= CRITICAL_FROM:
            return CRITICAL
        if before == CRITICAL and usage >= CRITICAL_UNTIL:
            return CRITICAL
        return WARNING

    def _filled(self, resource: str, ranked: tuple[Filler, ...], grown: Array) -> str:
        span = as_span(fillers.growth_span(int(self._store.scalars[0]["clock"])) / SECOND)
        return texts.filled_by(ranked, int(grown.sum()), self._unit(resource), span)

    def _served(self, ranked: tuple[Filler, ...]) -> str:
        """How the queue that fills most is served, as the end of a sentence."""
        if not ranked:
            return ""
        queue = self._queues[self._names.index(ranked[0].queue)]
        clock_now = int(self._store.scalars[0]["clock"])
        seconds = fillers.growth_span(clock_now) / SECOND
        puts, gets = (int(queue[name] - queue[f"{name}_before"]) / seconds for name in ("puts", "gets"))
        silent = None if not queue["gets"] else (clock_now - int(queue["got_at"]) * TICK) / SECOND
        return f"; {texts.served(ranked[0].queue, puts, gets, silent)}"

    def _what(self, condition: str, resource: str, usage: float) -> str:
        of = self._of(resource)
        if condition == Condition.FULL:
            recent = self._last_full(resource) + CALM_AFTER_FULL > int(self._store.scalars[0]["clock"])
            if recent and usage < _USED_UP:
                return f"Puts get 2192 while, by the model, {usage:.1f} % of the {of} are in use"
            got = "puts get 2192" if recent else "the next put gets 2192"
            return f"The {of} are used up ({usage:.1f} %): {got}"
        if condition == Condition.CANNOT_EXPAND:
            return f"{usage:.1f} % of the {of} are in use and it cannot expand ({self._why_not(resource)})"
        mark = self.mark_pct(condition, resource)
        return f"{usage:.1f} % of the {of} are in use, its {self._mark_name(resource)} is {mark:.0f} %"
