"""Reports of message stores to the stores they share, and the order in which these act on them.

A structure with storage class memory reports to its coupling facility, a queue file of a member to its uniform cluster.
Each source makes its reports at ticks of its own event time; they meet in any order. `Frontier` brings them into one
order that depends on ticks alone, so that what a shared store says does not depend on how reports met.

Source: domain.md section 3 (storage class memory and storage for augmented space belong to the coupling facility) and
section 7 (rate and depth of all members); contract section 2 ("however the records are cut into batches").
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Annotated

import msgspec

from kernels import layout
from kernels.clock import FAR, TICK
from kernels.json_scan import TIME_HIGH, TIME_LOW
from twin.estate import Estate, QueueFile, StoreConfig, Structure, UniformCluster

# A source this far behind the most advanced one is not waited for: a day, as far as clocks may be apart (contract 7).
LAG_TICKS = FAR // TICK

Amount = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Tick = Annotated[int, msgspec.Meta(ge=TIME_LOW // TICK, le=TIME_HIGH // TICK)]  # event time in units of 10 s


class StructureValues(msgspec.Struct, frozen=True, tag="structure"):
    """What a structure with storage class memory takes of its coupling facility, in bytes."""

    size: Amount  # allocated
    scm_max: Amount  # SCMMAXSIZE
    scm_used: Amount
    aug_fixed: Amount
    aug_dynamic: Amount


class QueueFileValues(msgspec.Struct, frozen=True, tag="queue_file"):
    """What a queue of a uniform cluster's member carried since its last report, and what waits in it."""

    puts: Amount  # messages, those put to a waiting getter included
    gets: Amount
    depth: Amount  # messages held


Values = StructureValues | QueueFileValues


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One report. Nothing happened at the source from `tick` to `passed`: its events lie before `tick`."""

    target: str  # the shared store
    source: str  # the message store
    tick: Tick  # at which the values hold, and the first one after the events that made them
    passed: Tick  # the last tick at which they still hold
    values: Values | None  # None: the source shares this store no longer
    turns: int = 0  # how often the source's clock went back so far: ticks begin anew with each


def queue_file_values(store: layout.Store) -> QueueFileValues:
    """What a queue file reports: what it carried since the last call, and what it holds."""
    scalars = store.scalars[0]
    values = QueueFileValues(puts=int(scalars["puts"]), gets=int(scalars["gets"]), depth=int(scalars["messages"]))
    scalars["puts"] = scalars["gets"] = 0
    return values


def receiver(estate: Estate, config: StoreConfig) -> str | None:
    """The shared store that a message store with these attributes reports to; None where it shares nothing."""
    return _receiver(estate, config, _clusters(estate)) if isinstance(config, Structure | QueueFile) else None


def sources_of(estate: Estate, name: str) -> dict[str, StoreConfig]:
    """The message stores that report to a shared store, by name, sorted, as the estate has them."""
    clusters = _clusters(estate)
    return {store.name: store for store in estate.stores.values() if _receiver(estate, store, clusters) == name}


def _clusters(estate: Estate) -> dict[str, str]:
    """Uniform clusters by member. A queue manager is in one at most; the first by name where the estate says more."""
    clusters = [store for store in estate.stores.values() if isinstance(store, UniformCluster)]
    return {qmgr: cluster.name for cluster in reversed(clusters) for qmgr in cluster.queue_managers}


def _receiver(estate: Estate, config: StoreConfig, clusters: Mapping[str, str]) -> str | None:
    if isinstance(config, Structure) and config.scm_max_size is not None and config.coupling_facility in estate.stores:
        return config.coupling_facility
    return clusters.get(config.queue_manager) if isinstance(config, QueueFile) else None


class Reporter:
    """What one message store has reported since it was last asked. Nothing of it is state: a batch ends with asking."""

    def __init__(self, estate: Estate, config: StoreConfig, turns: int = 0) -> None:
        self._estate = estate
        self.turns = turns  # how often the store's clock went back
        self._name = config.name
        self._target = receiver(estate, config)
        self._made: list[Report] = []

    def report(self, before: int, tick: int, values: Callable[[], Values | None]) -> None:
        """At a tick; before: the tick acted at last; values: asked where it shares a store."""
        made = values() if self._target is not None else None
        if self._target is not None and made is not None:
            self._add(self._target, before + 1, tick, made)

    def retarget(self, config: StoreConfig, tick: int) -> None:
        """Its attributes are these now (opened, ALTER, REBUILD); tick: the one acted at last.

        It takes leave of what it shares no longer.
        """
        before, self._target = self._target, receiver(self._estate, config)
        if before is not None and before != self._target:
            self._add(before, tick + 1, tick + 1, None)

    def drain(self) -> list[Report]:
        """The reports since the last call, in order."""
        made, self._made = self._made, []
        return made

    def _add(self, target: str, tick: int, passed: int, values: Values | None) -> None:
        self._made.append(
            Report(target=target, source=self._name, tick=tick, passed=passed, values=values, turns=self.turns)
        )


class Frontier(msgspec.Struct, kw_only=True):
    """How far a shared store may act, and what waits for that. Part of the store's header.

    The reports of a source come in their order, perhaps again (at-least-once); those of different sources in any
    order. A tick may be acted on when every source has passed it; or, so that a silent one does not stall the others,
    when the most advanced source is a day of event time ahead.
    """

    passed: dict[str, int] = {}  # by source that has reported
    turns: dict[str, int] = {}  # by source whose clock has gone back: how often
    left: list[str] = []  # sources that took leave
    acted: int | None = None  # the last tick acted on
    waiting: list[Report] = []  # not yet acted on

    def take(self, reports: Iterable[Report]) -> None:
        """Take reports in; those delivered again change nothing.

        Where the clock of a source has gone back, what it reported of later ticks and waits is dropped: the next
        report says its values anew.
        """
        for report in reports:
            last, turns = self.passed.get(report.source), self.turns.get(report.source, 0)
            if report.turns < turns or (report.turns == turns and last is not None and report.tick <= last):
                continue
            if report.turns > turns:
                self.turns[report.source] = report.turns
                self.waiting = [one for one in self.waiting if one.source != report.source or one.tick < report.tick]
            self.passed[report.source] = report.passed
            if report.source in self.left:
                self.left.remove(report.source)
            if report.values is None:
                self.left.append(report.source)
            self.waiting.append(report)
        self.waiting.sort(key=lambda report: (report.tick, report.source), reverse=True)

    def forget(self, sources: Iterable[str]) -> None:
        """Drop sources that the estate has no more."""
        gone = set(sources)
        self.passed = {source: tick for source, tick in self.passed.items() if source not in gone}
        self.left = [source for source in self.left if source not in gone]
        self.waiting = [report for report in self.waiting if report.source not in gone]

    def bound(self, expected: Collection[str], known: Collection[str]) -> int | None:
        """The last tick that may be acted on; None where no source has reported.

        expected: the sources to wait for; known: those and the ones that need not be waited for. Any other that has
        reported and not taken leave is waited for too.
        """
        if not self.passed:
            return None
        most = max(self.passed.values())
        waited_for = {*expected, *(self.passed.keys() - set(known))}.difference(self.left)
        if not waited_for:
            return most
        return max(most - LAG_TICKS, min(self.passed.get(source, most - LAG_TICKS) for source in waited_for))

    def turn_back(self, expected: Collection[str], known: Collection[str]) -> bool:
        """Go back where no source is as far as what was acted on: clocks went back. Returns True if it did.

        expected, known: as for `bound`.
        """
        bound = self.bound(expected, known)
        if self.acted is None or bound is None or self.acted <= max(self.passed.values()):
            return False
        first = self.first_waiting()
        self.acted = bound if first is None else min(bound, first - 1)
        return True

    def first_waiting(self) -> int | None:
        """The first tick of a report not yet acted on."""
        return self.waiting[-1].tick if self.waiting else None

    def due(self, tick: int) -> list[Report]:
        """Take out the reports of that tick, and of ticks before it that came late, by tick and source."""
        found = []
        while self.waiting and self.waiting[-1].tick <= tick:
            found.append(self.waiting.pop())
        return found
