"""Findings about the conditions of a store: severity, cause, the queues that fill, and actions.

- They are described in docs/alerts.md. Each kind of store has a class for each kind of resource. Texts are of now: of a
  resource that falls none says when it will be full, or asks for getters that are back.
- Source: [IBM: z/OS MVS Setting Up a Sysplex, structure full monitoring] (IXC585E at or above FULLTHRESHOLD, IXC586I
  below it).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, tzinfo
from functools import cached_property
from typing import NamedTuple

import msgspec

from kernels import layout
from kernels.clock import SECOND, TICK
from kernels.layout import NEVER
from twin.alerts import texts
from twin.alerts.episodes import CALM_FOR, Finding
from twin.alerts.readers import Readers, growth_span, rank_fillers
from twin.alerts.texts import NOTHING, OURS, Facts, Runbook, since_refusal
from twin.base.conditions import CRITICAL, VARIES, WARNING, Condition, Pool, Resource
from twin.base.units import as_local, as_span, as_times, as_usage
from twin.records import GETTERS, Action, Filler, TimeToFull
from twin.state.arrays import Array

# --- resources --------------------------------------------------------------------------------------------------------

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


# --- stores -----------------------------------------------------------------------------------------------------------

_FEW = 100  # entries, below which nothing is said of those that no queue has
_MAX_NAMED = 3  # queues that the estate lacks


class Owned(NamedTuple):
    """Queues of a store in the estate, by which others are known. entries: returns the entries in use, or None."""

    queues: frozenset[str] = frozenset()
    entries: Callable[[], int | None] = lambda: None


_NOT_KNOWN = Owned()


class Viewer:
    """Findings about one store. `began` is as for `growth_span`; measured levels have risen since `rise_began`,
    microseconds, where they are all that is known; `by_levels`: measurements are taken over again and again, so that
    flows do not say what queues grow by.
    """

    def __init__(
        self,
        store: layout.Store,
        queues: Sequence[str],
        resource: Callable[[Resource], ResourceView],
        began: int | None,
        readers: Readers,
        rise_began: int = 0,
        zone: tzinfo = UTC,
        owned: Owned = _NOT_KNOWN,
        runbook: Runbook = OURS,
        *,
        by_levels: bool = False,
    ) -> None:
        self._store = store
        self._began = began
        self._readers = readers
        self._rise_began = rise_began
        self._by_levels = by_levels
        self._zone = zone
        self._owned = owned
        self._names = queues
        self.resource = resource  # returns the view of a resource
        self.runbook = runbook

    def finding(
        self,
        condition: str,
        resource: Resource,
        severity_before: str | None,
        effects: Callable[[tuple[Filler, ...]], Mapping[str, str]] = lambda _: NOTHING,
        falling_since: int | None = None,
    ) -> Finding:
        """Return the finding about a condition that holds. `severity_before` and `falling_since`, since when the
        resource empties, microseconds, are None before the first record, and where it does not.
        """
        view = self.resource(resource)
        growth, held = self._by_queue(view)
        fillers = self._ranked(growth, held)
        runbook = view.actions(condition, fillers, effects(fillers), self.runbook)
        sentence = view.describe(condition)
        headline = sentence
        if condition == Condition.FULL and self._is_full(view):
            headline = f"full now: {view.text}, puts fail with {resource.reason}"
        if falling_since is not None:
            headline = self._falling(view, falling_since)
            sentence += f", falling since {as_local(falling_since, self._zone)}"
            runbook = texts.without_getters(runbook)
        finding = Finding(
            condition=condition,
            resource=resource,
            severity=view.severity(condition, severity_before),
            usage_pct=view.usage_pct,
            full_probability=1.0 if condition == Condition.FULL and self._is_full(view) else None,
            fillers=fillers,
            has_eased=falling_since is not None,
            headline=headline,
            why=self._with_refusals(view, self._why(fillers, is_rising=falling_since is None)),
            cause=f"{sentence}. {self._filled(view, fillers, growth)}.{self._foreign(view)}",
            runbook=runbook,
            evidence=view.evidence,
        )
        return finding if falling_since is not None else self.with_reader(finding)

    def who_fills(self, resource: Resource) -> tuple[Filler, ...]:
        """Return the queues that fill a resource, the largest share first."""
        return self._ranked(*self._by_queue(self.resource(resource)))

    def foreseen(
        self,
        resource: Resource,
        severity: str,
        times: tuple[float, float, float],
        probability: float,
        effects: Mapping[str, str],
        evidence: tuple[str, ...] = (),
    ) -> Finding:
        """Return the finding about a resource that is forecast to be full: in `times`, seconds (p10, p50, p90)."""
        view = self.resource(resource)
        usage = view.usage_pct
        growth, held = self._by_queue(view)
        fillers = self._ranked(growth, held)
        p10, p50, p90 = (round(left, 1) for left in times)
        forecast = texts.describe_forecast(times, probability, view.consequence)
        now = int(self._store.scalars[0]["clock"])
        finding = Finding(
            condition=Condition.FULL_FORECAST,
            resource=resource,
            severity=severity,
            usage_pct=usage,
            time_to_full_s=TimeToFull(p10=p10, p50=p50, p90=p90),
            full_probability=round(probability, 4),
            fillers=fillers,
            headline=f"{texts.full_at(times, now, self._zone)}: {view.text}, {view.usage}",
            why=self._why(fillers, is_rising=True),
            cause=f"{view.text}: {view.usage}, {forecast}{view.growth_ahead}."
            f" {self._filled(view, fillers, growth)}{self._rates(fillers, is_rising=True)}.{self._foreign(view)}",
            runbook=view.actions(Condition.FULL_FORECAST, fillers, effects, self.runbook),
            evidence=(*evidence, *view.evidence),
        )
        return self.with_reader(finding)

    def nearly_full(self, resource: Resource, severity: str) -> Finding:
        """Return the finding about a resource that was measured to be nearly full and rising, of no known time."""
        view = self.resource(resource)
        growth, held = self._by_queue(view)
        fillers = self._ranked(growth, held)
        sentence = f"{view.text}: {view.usage} as measured, and rising"
        finding = Finding(
            condition=Condition.FULL_FORECAST,
            resource=resource,
            severity=severity,
            usage_pct=view.usage_pct,
            fillers=fillers,
            headline=f"nearly full and rising: {view.text}, {view.usage}",
            why=self._why(fillers, is_rising=True),
            cause=f"{sentence}; once it is full, {view.consequence}. {self._filled(view, fillers, growth)}."
            f"{self._foreign(view)}",
            runbook=view.actions(Condition.FULL_FORECAST, fillers, NOTHING, self.runbook),
            evidence=view.evidence,
        )
        return self.with_reader(finding)

    def with_reader(self, finding: Finding) -> Finding:
        """Return a finding that begins with who reads the queue that fills, where it is known that nobody does."""
        queue = finding.fillers[0].queue if finding.fillers else ""
        sentence, is_open = self._reader(queue)
        if not sentence:
            return finding
        facts = self.resource(finding.resource).facts(finding.fillers)
        reading = facts.adding("read_in_vain" if is_open else "unread")
        return msgspec.structs.replace(
            finding,
            headline=finding.headline or finding.cause.partition(". ")[0].removesuffix("."),
            why=sentence,
            cause=f"{sentence[0].upper()}{sentence[1:]}. {finding.cause}",
            runbook=texts.to_read(finding.runbook, self.runbook.action(GETTERS, finding.condition, reading)),
        )

    def _reader(self, queue: str) -> tuple[str, bool]:
        """Return that nobody reads a queue, as a sentence, and whether applications have it open; "": not known."""
        if queue not in self._readers.facts:
            return "", False
        fact, row = self._readers.facts[queue], self._store.queues[self._names.index(queue)]
        now, got = int(self._store.scalars[0]["clock"]), int(row["gets"])
        if fact.known_getters(now, got) == 0 and fact.unread_since is not None:
            return texts.unread(queue, fact.unread_since, fact.asked, now, self._zone), False
        last_get = fact.last_got(int(row["got_at"]) * TICK if got else 0)
        if not fact.known_getters(now, got) or not fact.is_read_in_vain(last_get):
            return "", True
        return texts.read_in_vain(queue, fact.getters or 0, last_get, now, self._zone), True

    def eased(
        self,
        resource: Resource,
        severity: str,
        probability: float,
        falling_since: int | None,
        refused: int,
        evidence: tuple[str, ...] = (),
    ) -> Finding:
        """Return the finding about a resource that was forecast to be full, and is not likely to be any more."""
        view = self.resource(resource)
        growth, held = self._by_queue(view)
        fillers = self._ranked(growth, held)
        now = int(self._store.scalars[0]["clock"])
        since = "" if refused == NEVER else f", {texts.since_refusal(refused, now)}"
        is_rising = falling_since is None
        if falling_since is None:
            chance = f"full is unlikely now (probability {100 * probability:.0f} %)"
            headline, sentence = f"unlikely to fill: {view.text}, {view.usage}", f"{view.usage}, {chance}{since}"
        else:
            headline = self._falling(view, falling_since)
            sentence = f"falling since {as_local(falling_since, self._zone)}: {view.usage}{since}"
        return Finding(
            condition=Condition.FULL_FORECAST,
            resource=resource,
            severity=severity,
            usage_pct=view.usage_pct,
            full_probability=round(probability, 4),
            fillers=fillers,
            has_eased=True,
            headline=headline,
            why="; ".join(filter(None, (since.removeprefix(", "), self._why(fillers, is_rising=is_rising)))),
            cause=f"{view.text}: {sentence}. {self._filled(view, fillers, growth)}"
            f"{self._rates(fillers, is_rising=is_rising)}.{self._foreign(view)}",
            runbook=()
            if falling_since is not None
            else view.actions(Condition.FULL_FORECAST, fillers, NOTHING, self.runbook),
            evidence=(*evidence, *view.evidence),
        )

    def over(self, condition: str, resource: Resource, severity_before: str) -> Finding:
        """Return the finding about a condition that no longer holds."""
        view = self.resource(resource)
        return Finding(
            condition=condition,
            resource=resource,
            severity=severity_before,
            usage_pct=view.usage_pct,
            fillers=self.who_fills(resource),
            headline=f"over: {view.text}, {view.usage}",
            cause=f"{view.text}: {view.usage}, alert cleared.",
        )

    def _is_full(self, view: ResourceView) -> bool:
        """Return True if the next put finds no room, or one did not a short while ago."""
        return view.has_no_room or view.is_refusing(int(self._store.scalars[0]["clock"]))

    def _with_refusals(self, view: ResourceView, why: str) -> str:
        """Return a second line that begins with when a put was last refused, if one was and none is now."""
        now = int(self._store.scalars[0]["clock"])
        if view.last_refused == NEVER or self._is_full(view):
            return why
        return "; ".join(filter(None, (texts.since_refusal(view.last_refused, now), why)))

    def _falling(self, view: ResourceView, since: int) -> str:
        """Return the first line about a resource that empties. since: microseconds."""
        return f"falling since {as_local(since, self._zone, since)}: {view.text}, {view.usage}"

    def _by_queue(self, view: ResourceView) -> tuple[Array, Array]:
        """Return (growth, amount held) by queue, i8[queues]; in messages where depths are all that is known."""
        if self._has_depths and view.resource.pool != Pool.QUEUE:
            return self._readers.depths(self._names, self._rise_began, int(self._store.scalars[0]["clock"]))
        return view.by_queue()

    def _ranked(self, growth: Array, held: Array) -> tuple[Filler, ...]:
        """Return the queues that fill; none where most messages are of queues that no measurement names."""
        return () if self._unnamed else rank_fillers(growth, held, self._names)

    @cached_property
    def _unnamed(self) -> int:
        """Entries of queues that no measurement names, if they are more than all others; else 0."""
        if not self._has_depths or not self._owned.queues:
            return 0
        now = int(self._store.scalars[0]["clock"])
        depths = {name: fact.depth for name in self._names if (fact := self._readers.recent(name, now)) is not None}
        if None in depths.values() or not self._owned.queues <= depths.keys():
            return 0
        known, held = sum(filter(None, depths.values())), self._owned.entries() or 0
        return held - known if held > 2 * known + _FEW else 0

    def _foreign(self, view: ResourceView) -> str:
        """Return the sentence about what is of queues that the estate lacks, behind a blank; "": nothing is known."""
        unit = "messages" if view.resource.pool in (Pool.PAGES, Pool.QUEUE) else "entries"
        if self._unnamed:
            return f" {self._unnamed:,} {unit} are of queues that the estate lacks."
        now = int(self._store.scalars[0]["clock"])
        others = set(self._readers.facts) - self._owned.queues if self._owned.queues else set()
        facts = {name: fact for name in others if (fact := self._readers.recent(name, now)) is not None and fact.depth}
        names = sorted(facts, key=lambda name: (-(facts[name].depth or 0), name))
        if not names:
            return ""
        more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        total = sum(fact.depth or 0 for fact in facts.values())
        named = ", ".join(names[:_MAX_NAMED]) + more
        return f" {total:,} {unit} are of queues that the estate lacks: {named}."

    @property
    def _has_depths(self) -> bool:
        """True if measured depths are all that is known of the queues."""
        scalars = self._store.scalars[0]
        is_unknown = not scalars["ages"] and not scalars["unmatched_gets"]
        return bool(self._readers.facts) and (is_unknown or self._by_levels)

    def _filled(self, view: ResourceView, fillers: tuple[Filler, ...], growth: Array) -> str:
        """Return the clause about the queue that fills most."""
        if self._unnamed:
            return texts.UNKNOWN_FILLER
        if self._has_depths and view.has_fillers and fillers:
            span = as_span((int(self._store.scalars[0]["clock"]) - self._rise_began) / SECOND)
            return texts.describe_growth(fillers, int(growth.sum()), "messages", span)
        span = as_span(growth_span(int(self._store.scalars[0]["clock"]), self._began) / SECOND)
        if not view.has_fillers:
            return "What takes it is not measured"
        scalars = self._store.scalars[0]
        is_reported = bool(scalars["ages"] or scalars["unmatched_gets"])
        grown = view.growth_in_units(growth)
        return texts.describe_growth(fillers, grown, view.unit, span, is_reported=is_reported)

    def _why(self, fillers: tuple[Filler, ...], *, is_rising: bool) -> str:
        """Return the queue that fills most with its rates, as a line; "" where none is known."""
        rates = self._rates(fillers, is_rising=is_rising).removeprefix(", ")
        return f"{fillers[0].queue}: {rates}" if rates else ""

    def _rates(self, fillers: tuple[Filler, ...], *, is_rising: bool) -> str:
        """Return the rates of the queue that fills most, as the end of a sentence.

        They are means of 15 to 30 minutes. Means that say the opposite of the last minutes, `is_rising`, are left out.
        """
        if not fillers or self._has_depths:
            return ""
        queue = self._store.queues[self._names.index(fillers[0].queue)]
        clock = int(self._store.scalars[0]["clock"])
        seconds = growth_span(clock, self._began) / SECOND
        puts, gets = (int(queue[name] - queue[f"{name}_before"]) / seconds for name in ("puts", "gets"))
        since_get = None if not queue["gets"] else (clock - int(queue["got_at"]) * TICK) / SECOND
        if is_rising != (puts >= gets) and (since_get or 0) < 60:
            return ""
        return f", {texts.describe_rates(puts, gets, since_get)}"
