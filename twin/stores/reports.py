"""Reports of message stores to the shared stores they belong to, and the order in which these process them.

A structure with storage class memory reports to its coupling facility; a queue file reports to its queue manager and,
if that is a member, to its uniform cluster. Each source reports at ticks of its own event time, and reports of
different sources arrive in any order. `Frontier` puts them into an order that depends on ticks alone, so that the
result does not depend on the order of arrival. Whether a source is silent or only read later, its reports cannot say:
who reads the events says when all of them have been read. Sources: docs/shared-stores.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Annotated

import msgspec

from kernels import layout, queue_file
from kernels.clock import FAR, SECOND, TICK
from kernels.json_scan import TIME_HIGH, TIME_LOW
from twin.estate import Estate, QueueFile, StoreConfig, Structure

# A source that falls silent is waited for until another one is five minutes of event time ahead: two for the way of its
# events, by which they may be read later than those of another source, and three of silence.
SKEW_TICKS = 2 * 60 * SECOND // TICK
SILENCE_TICKS = 3 * 60 * SECOND // TICK
LAG_TICKS = SKEW_TICKS + SILENCE_TICKS
# While a backlog is read, every source of the estate is waited for until another one is a day ahead.
BACKLOG_TICKS = FAR // TICK

Amount = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Tick = Annotated[int, msgspec.Meta(ge=TIME_LOW // TICK, le=TIME_HIGH // TICK)]  # event time in units of 10 s


class StructureValues(msgspec.Struct, frozen=True, tag="structure"):
    """Use of the coupling facility by a structure with SCM, bytes."""

    size: Amount
    """Allocated size."""
    scm_max: Amount
    """SCMMAXSIZE."""
    scm_used: Amount
    """SCM in use."""
    aug_fixed: Amount
    """Fixed augmented space."""
    aug_dynamic: Amount
    """Dynamic augmented space."""


class QueueFileValues(msgspec.Struct, frozen=True, tag="queue_file"):
    """Traffic of a queue of a uniform cluster's member since its last report."""

    puts: Amount
    """Messages put, including those put to a waiting getter."""
    gets: Amount
    """Messages got."""
    depth: Amount
    """Messages held."""


class LogValues(msgspec.Struct, frozen=True, tag="log"):
    """Log of a queue since its last report to its queue manager, and its file."""

    records: Amount
    """Log records, without those of the ends listed."""
    ends: bytes
    """Unit of work of each logged COMMIT or BACKOUT, 8 bytes each, little-endian; 1,024 at most."""
    in_file: Amount
    """Blocks up to the last one with data, which no buffer holds."""
    at_checkpoint: Amount
    """Blocks that a checkpoint leaves in the file at least."""
    file: Amount
    """Blocks of the file, as the queue knows it: without the checkpoints that other queues cause."""


Values = StructureValues | QueueFileValues | LogValues


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A report of one source: its values, which hold from `tick` to `passed`."""

    target: str  # the shared store
    source: str  # the message store
    tick: Tick  # the first tick after the events that led to the values
    passed: Tick  # the last tick at which the values hold
    values: Values | None  # None where the source no longer shares the target
    turns: int = 0  # how often the source's clock has gone back; its ticks start again each time


def queue_file_values(store: layout.Store) -> QueueFileValues:
    """Return the values a queue file reports: its traffic since the last call, which is reset, and its depth."""
    scalars = store.scalars[0]
    values = QueueFileValues(puts=int(scalars["puts"]), gets=int(scalars["gets"]), depth=int(scalars["messages"]))
    scalars["puts"] = scalars["gets"] = 0
    return values


def log_values(store: layout.Store) -> LogValues:
    """Return the values a queue file reports to its queue manager: its log since the last call, and its file."""
    use = store.file_use[0]
    ended = int(use["ended"])
    values = LogValues(
        records=int(use["log_records"]) - int(use["reported"]) - ended,
        ends=store.ends[:ended].astype("<u8").tobytes(),
        in_file=int(queue_file.content_end(store)),
        at_checkpoint=int(queue_file.needed_at_checkpoint(store)),
        file=int(use["file_blocks"]),
    )
    use["reported"], use["ended"] = use["log_records"], 0
    return values


def receivers(estate: Estate, config: StoreConfig) -> tuple[str, ...]:
    """Return the shared stores that a message store with these attributes reports to.

    A structure reports to its coupling facility if it has SCM, or if the estate gives it some that waits for a REBUILD:
    its facility expects it then.
    """
    match config:
        case Structure(coupling_facility=str(facility)) if facility in estate.stores:
            described = estate.stores.get(config.name, config)  # with SCM if a REBUILD is to bring some
            return (facility,) if config.scm_max_size or described.scm_max_size else ()
        case QueueFile(queue_manager=qmgr):
            return tuple(name for name in (estate.clusters.get(qmgr, ""), qmgr) if name in estate.stores)
    return ()


def sources_of(estate: Estate, name: str) -> dict[str, StoreConfig]:
    """Return the estate's message stores that report to a shared store, by name, sorted."""
    return {store.name: store for store in estate.stores.values() if name in receivers(estate, store)}


class Reporter:
    """The reports of one message store since the last drain, at the end of each batch: not part of the store's state.

    turns: how often the store's clock has gone back.
    """

    def __init__(self, estate: Estate, config: StoreConfig, turns: int = 0) -> None:
        self._estate = estate
        self.turns = turns
        self._name = config.name
        self._targets = receivers(estate, config)
        # The target that the estate describes waits for reports: where a REBUILD has moved the structure to another
        # one, it is told so at the first tick.
        described = receivers(estate, estate.stores[config.name])
        self._waiting = [target for target in described if target not in self._targets]
        self._reports: list[Report] = []

    @property
    def is_due(self) -> bool:
        """True if the next tick has a report."""
        return bool(self._waiting or self._targets)

    def report(self, before: int, tick: int, get_values: Callable[[str], Values | None]) -> None:
        """Add a report of a tick to each store that the store shares; without any, `get_values` is not called."""
        for target in self._waiting:
            self._add(target, before + 1, tick, None)
        self._waiting.clear()
        for target in self._targets:
            values = get_values(target)
            if values is not None:
                self._add(target, before + 1, tick, values)

    def retarget(self, config: StoreConfig, tick: int) -> None:
        """Determine the target after a change of attributes; report to a former target that the store left it."""
        former, self._targets = self._targets, receivers(self._estate, config)
        for target in former:
            if target not in self._targets:
                self._add(target, tick + 1, tick + 1, None)

    def drain(self) -> list[Report]:
        """Return the reports since the last call, those to a shared store one after the other, in order."""
        reports, self._reports = self._reports, []
        return sorted(reports, key=lambda report: report.target)

    def _add(self, target: str, tick: int, passed: int, values: Values | None) -> None:
        self._reports.append(
            Report(target=target, source=self._name, tick=tick, passed=passed, values=values, turns=self.turns)
        )


class Frontier(msgspec.Struct, kw_only=True):
    """The reports that a shared store has not processed, and the last tick it may process. Part of the store's header.

    The reports of a source arrive in order, possibly more than once; those of different sources arrive in any order.
    They are released in the order of the last tick that each has passed: when every source has passed it, or when the
    most advanced one is `SKEW_TICKS` ahead. A tick may be processed when the released reports of every source have
    passed it, except of those that are `SILENCE_TICKS` behind the most advanced one: these are silent, and what they
    report when they are heard again counts at the first tick not yet processed. So the result depends on the reports
    alone, as long as those of no source are read more than `SKEW_TICKS` behind those of another. While a backlog is
    read they may be; then every source of the estate is waited for until it has passed, or until another one is
    `BACKLOG_TICKS` ahead.
    """

    last_ticks: dict[str, int] = {}  # the last tick passed, by source that has reported
    turns: dict[str, int] = {}  # how often the clock has gone back, by source
    leaving: list[str] = []  # sources whose last report says that they no longer share the store
    waiting: list[Report] = []  # reports not yet released, the latest first
    released_ticks: dict[str, int] = {}  # the last tick passed, by source that has a released report
    former_sources: list[str] = []  # sources of `leaving` whose last report is released
    processed_tick: int | None = None  # the last tick processed
    pending: list[Report] = []  # reports released and not yet processed, the latest first
    caught_up: bool = False  # True if the events that exist have been read, as last reported

    def take(self, reports: Iterable[Report]) -> None:
        """Add reports; those delivered again are ignored.

        Where the clock of a source has gone back, its unprocessed reports of later ticks are dropped: its next report
        has the current values.
        """
        for report in reports:
            source = report.source
            last_tick, turns = self.last_ticks.get(source), self.turns.get(source, 0)
            if report.turns < turns or (report.turns == turns and last_tick is not None and report.tick <= last_tick):
                continue
            if report.values is None and source in self.leaving:
                continue  # said again, by a twin that was opened again
            if report.turns > turns:
                self._turn(report)
            self.last_ticks[source] = report.passed
            if source in self.leaving:
                self.leaving.remove(source)
            if report.values is None:
                self.leaving.append(source)
            self.waiting.append(report)
        self.waiting.sort(key=_release_order, reverse=True)

    def _turn(self, report: Report) -> None:
        """Go back with the clock of a source, to its first report after that."""
        self.turns[report.source] = report.turns
        self.waiting = [other for other in self.waiting if other.source != report.source or other.tick < report.tick]
        self.pending = [other for other in self.pending if other.source != report.source or other.tick < report.tick]
        if report.source in self.released_ticks:
            self.released_ticks[report.source] = min(self.released_ticks[report.source], report.tick - 1)

    def forget(self, sources: Iterable[str]) -> None:
        """Drop sources that are no longer in the estate."""
        dropped = set(sources)
        self.last_ticks = {source: tick for source, tick in self.last_ticks.items() if source not in dropped}
        self.released_ticks = {source: tick for source, tick in self.released_ticks.items() if source not in dropped}
        self.leaving = [source for source in self.leaving if source not in dropped]
        self.former_sources = [source for source in self.former_sources if source not in dropped]
        self.waiting = [report for report in self.waiting if report.source not in dropped]
        self.pending = [report for report in self.pending if report.source not in dropped]

    def release(self, expected: Collection[str], known: Collection[str]) -> list[Report] | None:
        """Release the next reports, all that end at one tick; return None where there are none to release, else the
        late ones: they were read after others that had passed more ticks, and theirs have been processed.

        `expected` sources are waited for, and so is any other that has reported, until it leaves, unless it is `known`.
        """
        if not self.waiting or self.waiting[-1].passed > self._complete_tick(expected, known):
            return None
        passed, late = self.waiting[-1].passed, []
        is_behind = passed < max(self.released_ticks.values(), default=passed)
        while self.waiting and self.waiting[-1].passed == passed:
            report = self.waiting.pop()
            source = report.source
            self.released_ticks[source] = max(passed, self.released_ticks.get(source, passed))
            if source in self.former_sources:
                self.former_sources.remove(source)
            if report.values is None:
                self.former_sources.append(source)
            if is_behind and self.processed_tick is not None and report.tick <= self.processed_tick:
                late.append(report)
            self.pending.append(report)
        self.pending.sort(key=lambda report: (report.tick, report.source), reverse=True)
        return late

    def _complete_tick(self, expected: Collection[str], known: Collection[str]) -> int:
        """Return the tick up to which all reports have arrived; see `release`."""
        max_tick = max(self.last_ticks.values())
        awaited = {*expected, *(self.last_ticks.keys() - set(known))}.difference(self.leaving)
        if self.caught_up:
            awaited &= self.last_ticks.keys()
        earliest = max_tick - (SKEW_TICKS if self.caught_up else BACKLOG_TICKS)
        return max(earliest, min((self.last_ticks.get(source, earliest) for source in awaited), default=max_tick))

    def bound(self, expected: Collection[str], known: Collection[str]) -> int | None:
        """Return the last tick that may be processed; None where no report has been released. Args: as of `release`."""
        if not self.released_ticks:
            return None
        max_tick = max(self.released_ticks.values())
        ticks = {source: tick for source, tick in self.released_ticks.items() if source not in self.former_sources}
        awaited = ticks.keys() & {*expected, *(ticks.keys() - set(known))}
        heard = [ticks[source] for source in awaited if ticks[source] > max_tick - SILENCE_TICKS]
        return max(max_tick - SILENCE_TICKS, min(heard, default=max_tick))

    def turn_back(self, expected: Collection[str], known: Collection[str]) -> bool:
        """Set the processed tick back where the clocks of all sources are behind it; return True if it was set back."""
        bound = self.bound(expected, known)
        if self.processed_tick is None or bound is None or self.processed_tick <= max(self.last_ticks.values()):
            return False
        self.processed_tick = min([bound, *(report.tick - 1 for report in (*self.pending, *self.waiting))])
        return True

    def first_pending_tick(self) -> int | None:
        """Return the first tick that has a pending report."""
        return self.pending[-1].tick if self.pending else None

    def due(self, tick: int) -> list[Report]:
        """Remove and return the pending reports of ticks up to `tick`, sorted by tick and source."""
        reports = []
        while self.pending and self.pending[-1].tick <= tick:
            reports.append(self.pending.pop())
        return reports


def _release_order(report: Report) -> tuple[int, int, str]:
    return report.passed, report.tick, report.source
