"""A resource of a store as alerts see it: how much is in use, whether a condition holds, who fills it, what helps.

Each kind of store has a class for each kind of resource. Sources: docs/alerts.md; [IBM: z/OS, Setting Up a Sysplex]
for structure full monitoring (IXC585E at or above FULLTHRESHOLD, IXC586I below).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from kernels import layout
from kernels.clock import SECOND
from twin.alerts.episodes import CRITICAL, FULL, WARNING, Filler
from twin.alerts.texts import NOTHING
from twin.state.arrays import Array

HYSTERESIS_PCT = 2  # percentage points below its threshold at which a condition counts as over
CALM_FOR = 60 * SECOND  # event time a condition must be over before its alert is cleared
CALM_AFTER_FULL = 300 * SECOND  # the same after the last 2192: getters and putters come back in waves
CRITICAL_FROM_PCT = 95.0
CRITICAL_UNTIL_PCT = 90.0
_USED_UP_PCT = 99.0  # below it a 2192 is not what the model expects


class ResourceView(ABC):
    """One resource, read from its store's arrays as they are.

    Attributes:
        name: the resource in alerts, "entries" or "smds/QM01".
        text: the resource in sentences, "entries of QSG1/APP1".
        unit: unit of its growth in sentences.
        threshold_name: its threshold in sentences.
    """

    name: str
    text: str
    unit: str
    threshold_name = "mark for expansion"

    def __init__(self, store: layout.Store) -> None:
        self._store = store

    @property
    @abstractmethod
    def usage_pct(self) -> float:
        """Percent in use."""

    @property
    def threshold_pct(self) -> float:
        """Percentage at which the condition "threshold" begins; 0: it is not watched."""
        return 0.0

    @property
    def is_exhausted(self) -> bool:
        """True if the next put finds no room: of few entries, blocks or pages the last one is more than 2 %."""
        return False

    @property
    def last_full(self) -> int:
        """Event time of the last put that the resource refused, microseconds; NEVER."""
        return layout.NEVER

    @property
    def can_expand(self) -> bool:
        """True if a resource that may expand still can."""
        return True

    @property
    def expansion_problem(self) -> str:
        """Why the resource cannot expand, in a sentence."""
        return "it has no extents"

    @abstractmethod
    def by_queue(self) -> tuple[Array, Array]:
        """Return (growth since the mark before the last, what is held), i8[queues]."""

    def growth_in_units(self, growth: Array) -> int:
        """Return the growth of all queues in the unit of sentences. growth: i8[queues], as `by_queue`."""
        return int(growth.sum())

    @abstractmethod
    def actions(self, fillers: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING) -> tuple[str, ...]:
        """Return what helps where the resource runs out.

        Args:
            fillers: the queues that fill it, the first one most.
            effects: what each remedy changes, as part of a sentence.
        """

    def actions_for(self, condition: str, fillers: tuple[Filler, ...]) -> tuple[str, ...]:  # noqa: ARG002 -- of most, all
        """Return what helps against a condition that holds."""
        return self.actions(fillers)

    # --- conditions ------------------------------------------------------------------------------------------------

    def is_over(self, condition: str, now: int) -> bool:
        """Return True if a condition no longer holds at `now`, with its hysteresis; before any time of calm."""
        threshold = 100.0 if condition == "full" else self.threshold_pct
        calm = self.usage_pct < threshold - min(HYSTERESIS_PCT, threshold / 2) or threshold == 0
        if condition == "full":
            return calm and not self.is_exhausted and self.last_full + CALM_AFTER_FULL <= now
        if condition == "cannot-expand":
            return calm or self.can_expand
        return calm

    def severity(self, condition: str, before: str | None) -> str:
        """Return how bad a condition is. before: severity as last published; None: not yet."""
        usage = self.usage_pct
        if condition == "full":
            return FULL
        if condition == "cannot-expand" or usage >= CRITICAL_FROM_PCT:
            return CRITICAL
        if before == CRITICAL and usage >= CRITICAL_UNTIL_PCT:
            return CRITICAL
        return WARNING

    def describe(self, condition: str) -> str:
        """Return a condition that holds as a sentence without its end."""
        usage = self.usage_pct
        if condition == "full":
            is_recent = self.last_full + CALM_AFTER_FULL > int(self._store.scalars[0]["clock"])
            if is_recent and usage < _USED_UP_PCT:
                return f"Puts get 2192 while, by the model, {usage:.1f} % of the {self.text} are in use"
            refusal = "puts get 2192" if is_recent else "the next put gets 2192"
            return f"The {self.text} are used up ({usage:.1f} %): {refusal}"
        if condition == "cannot-expand":
            return f"{usage:.1f} % of the {self.text} are in use and it cannot expand ({self.expansion_problem})"
        return f"{usage:.1f} % of the {self.text} are in use, its {self.threshold_name} is {self.threshold_pct:.0f} %"
