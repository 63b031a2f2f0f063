"""Resources of a store for alerts: usage, conditions, the queues that fill, and actions. Described in docs/alerts.md.

Each kind of store has a class for each kind of resource. Source: [IBM: z/OS MVS Setting Up a Sysplex, structure full
monitoring] (IXC585E at or above FULLTHRESHOLD, IXC586I below it).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property

from kernels import layout
from kernels.clock import SECOND
from twin.alerts.episodes import CALM_FOR
from twin.alerts.runbook import NOTHING, OURS, Facts, Runbook
from twin.alerts.texts import since_refusal
from twin.conditions import CRITICAL, VARIES, WARNING, Condition, Resource
from twin.records import Action, Filler
from twin.state.arrays import Array
from twin.units import as_times, as_usage

HYSTERESIS_PCT = 2  # percentage points below the threshold at which a condition is over
CALM_AFTER_FULL = 300 * SECOND  # from the last 2192 until "full" is over: getters and putters come back in waves
CRITICAL_FROM_PCT = 95.0
NEARLY_FULL_PCT = 90.0
CRITICAL_UNTIL_PCT = 90.0
REFUSES_FROM_PCT = 98.0  # usage from which the last refusal still counts until it is CALM_AFTER_FULL ago
_REFUSES_FOR = 60 * SECOND  # from the last refusal, below that usage: the model may be wrong
_EXPECTED_FULL_PCT = 99.0  # below it the model does not expect a 2192
WATCHED_PCT = 80.0  # of a resource in use as measured, from which "threshold" holds [assumed]: FULLTHRESHOLD by default


class ResourceView(ABC):
    """One resource at one moment, read from its store's arrays."""

    resource: Resource
    text: str  # the resource as the subject of a sentence, "Entries of QSG1/APP1"
    unit: str  # unit of its growth in sentences
    present = "size"  # what its present size counts, in sentences
    has_fillers = True  # False if no queue can take any of it
    is_measured = False  # True if its usage was measured a short while ago
    beyond_pct = 0.0  # points by which that usage was above the twin's, 0 where it was not

    def __init__(self, store: layout.Store) -> None:
        self._store = store

    @cached_property
    def usage_pct(self) -> float:
        """Percent in use, at least as measured; read at its first use: a view is of one moment."""
        return self._read_usage_pct() + self.beyond_pct

    @property
    def beyond_share(self) -> float:
        """The points by which it was measured to be above the twin's, as a share of what it can grow to."""
        return self.beyond_pct / 100

    @property
    def maximum_pct(self) -> float:
        """Percent in use of what the resource can grow to."""
        return self.usage_pct

    @property
    def usage(self) -> str:
        """The usage in words, as DISPLAY has it."""
        return as_usage(self.usage_pct)

    @property
    def growth(self) -> str:
        """The words for what it can grow to; "": it is as large as it can be."""
        usage, maximum = self.usage_pct, self.maximum_pct
        if not maximum or f"{usage:.1f}" == f"{maximum:.1f}":
            return ""
        return f"can grow to {as_times(usage / maximum)} as many {self.present}"

    @property
    def growth_ahead(self) -> str:
        """The words for growth that its forecast counts, as the end of a sentence."""
        return f"; this counts that it {self.growth}" if self.growth else ""

    @abstractmethod
    def _read_usage_pct(self) -> float:
        """Return the percent in use."""

    @property
    def threshold_pct(self) -> float:
        """Percentage at which the condition "threshold" begins; 0: it is not watched."""
        return 0.0

    @property
    def watched_pct(self) -> float:
        """Percentage from which "threshold" opens: of what is measured no later than `WATCHED_PCT`; 0: it does not."""
        return min(self.threshold_pct or WATCHED_PCT, WATCHED_PCT) if self.is_measured else self.threshold_pct

    @property
    def is_below_own(self) -> bool:
        """True if it is only watched as measured: usage is below its own threshold, or it has none."""
        return self.threshold_pct == 0 or self.usage_pct < self.threshold_pct

    @property
    def threshold_name(self) -> str:
        """Its threshold in sentences."""
        return "expansion threshold"

    @property
    def consequence(self) -> str:
        """Consequence of its being full, as a sentence without its end."""
        return f"puts fail with {self.resource.reason}"

    @property
    def evidence(self) -> tuple[str, ...]:
        """Sentences with what an operator should know about `usage_pct`."""
        return ()

    @property
    def is_exhausted(self) -> bool:
        """True if the next put finds no room. With few entries, blocks or pages the last one is over 2 %."""
        return False

    @property
    def is_refuted(self) -> bool:
        """True if the system accepted puts for which the model had no room: there was room."""
        return bool(self._store.scalars[0]["overfull_held"])

    @property
    def has_no_room(self) -> bool:
        """True if the next put finds no room, as measured or by a model that no accepted put has refuted."""
        if self.is_measured and self.usage_pct >= 100.0 and (self.beyond_pct or not self.is_refuted):
            return True
        return self.is_exhausted and not self.is_refuted

    @property
    def last_full(self) -> int:
        """Event time of the last put that failed because this resource was exhausted, microseconds, or NEVER."""
        return layout.NEVER

    @property
    def last_refused(self) -> int:
        """Event time of the store's last refused put, microseconds, or NEVER."""
        return self.last_full

    def is_refusing(self, now: int) -> bool:
        """Return True if the store refuses puts at `now` (event time): the resource is exhausted and not relieved."""
        if self.last_full + CALM_AFTER_FULL <= now:
            return False
        return self.usage_pct >= REFUSES_FROM_PCT or self.is_exhausted or self.last_full + _REFUSES_FOR >= now

    @property
    def can_expand(self) -> bool:
        """True if a resource that may expand still can."""
        return True

    @property
    def expansion_problem(self) -> str:
        """Reason why the resource cannot expand."""
        return "it has no extents"

    @abstractmethod
    def by_queue(self) -> tuple[Array, Array]:
        """Return (recent growth, amount held) by queue, i8[queues] each."""

    def growth_in_units(self, growth: Array) -> int:
        """Return the growth of all queues in the unit of sentences. growth: i8[queues], as `by_queue`."""
        return int(growth.sum())

    @abstractmethod
    def facts(self, fillers: tuple[Filler, ...]) -> Facts:
        """Return what its runbook needs to know. fillers: the queues that fill it, the largest share first."""

    def actions(
        self, condition: str, fillers: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING, runbook: Runbook = OURS
    ) -> tuple[Action, ...]:
        """Return the actions for a condition. effects: effect of each action on the forecast, by action."""
        return runbook.actions(condition, self.facts(fillers), effects)

    # --- conditions ------------------------------------------------------------------------------------------------

    def is_over(self, condition: str, now: int) -> bool:
        """Return True if a condition no longer holds at `now`, its hysteresis included, CALM_FOR not."""
        of_condition: dict[str, float] = {Condition.FULL: 100.0, Condition.THRESHOLD: self.watched_pct}
        threshold = of_condition.get(condition, self.threshold_pct)
        calm = self.usage_pct < threshold - min(HYSTERESIS_PCT, threshold / 2) or threshold == 0
        if condition == Condition.FULL:
            is_calm = calm or (self.is_refuted and not self.has_no_room)
            return is_calm and not self.has_no_room and self.last_full + CALM_AFTER_FULL <= now
        if condition == Condition.CANNOT_EXPAND:
            return calm or self.can_expand
        return calm

    def calm_for(self, condition: str) -> int | None:
        """Return the microseconds for which a condition must be over before its alert is cleared; None: as usual.

        What was full and is still nearly full is soon full again: it is one alert.
        """
        return 3 * CALM_FOR if condition == Condition.FULL and self.usage_pct >= NEARLY_FULL_PCT else None

    def severity(self, condition: str, before: str | None) -> str:
        """Return the severity of a condition. before: severity last published; None before the first record."""
        usage, own = self.usage_pct, Condition(condition).severity
        if own != VARIES:
            return own
        if usage >= CRITICAL_FROM_PCT:
            return CRITICAL
        if before == CRITICAL and usage >= CRITICAL_UNTIL_PCT:
            return CRITICAL
        return WARNING

    def describe(self, condition: str) -> str:
        """Return a condition that holds as a sentence without its end."""
        usage, reason = f"{self.text}: {self.usage}", self.resource.reason
        if condition == Condition.FULL:
            is_recent = self.last_full + CALM_AFTER_FULL > int(self._store.scalars[0]["clock"])
            if is_recent and self.usage_pct < _EXPECTED_FULL_PCT:
                return f"{usage} by the twin, but puts fail with {reason}"
            if not is_recent and not self.has_no_room:
                return f"{usage}, was full, {since_refusal(self.last_refused, int(self._store.scalars[0]['clock']))}"
            return f"{usage}, {'puts fail' if is_recent else 'the next put fails'} with {reason}"
        if condition == Condition.CANNOT_EXPAND:
            return f"{usage}, cannot expand ({self.expansion_problem})"
        growth = f"; {self.growth}" if self.growth else ""
        if self.is_measured and self.is_below_own:
            return f"{usage} as measured; watched from {self.watched_pct:.0f} %{growth}"
        return f"{usage}; {self.threshold_name} {self.threshold_pct:.0f} %{growth}"
