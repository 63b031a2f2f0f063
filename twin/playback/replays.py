"""Replay of a recording without Kafka and Spark, with the same alerts and states as the stream.

The command `mqtwin replay` is described in docs/commands.md.
"""

from __future__ import annotations

import atexit
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pyarrow as pa

from kernels.event_loop import MQRC_NO_MSG_AVAILABLE, MQRC_Q_FULL, MQRC_Q_SPACE_NOT_AVAILABLE, MQRC_STORAGE_MEDIUM_FULL
from kernels.layout import FLAG_HAS_MSGID, GET, PUT
from twin.alerts.episodes import Alert
from twin.base.conditions import CLEARED, PAGE
from twin.base.errors import UsageError
from twin.base.units import EventTime, as_count, as_text, event_us
from twin.estate import Estate, as_estate
from twin.estate.errors import known_hint
from twin.estate.planned import StoreHistory
from twin.events import Decoded, Decoder, EventBlock, Reject
from twin.events.decoded import merge
from twin.events.refusals import DETAIL_CHARACTERS
from twin.forecast.rises import kept_rises
from twin.playback.samples import (
    Alerts,
    Applied,
    Letters,
    Observer,
    Samples,
    Usage,
    count_events,
    forecast_table,
    usage_of,
    usage_table,
)
from twin.recordings.files import Chunk, open_recording
from twin.records import ReplayedLetter, StateRecord, StatesByKind
from twin.state.arrays import Array
from twin.stores.message_store import MessageStore
from twin.stores.open import Twin, open_store, reopened
from twin.stores.refusing import (
    OF_THE_MACHINE,
    Backup,
    Refused,
    apply_block,
    apply_others,
    event_text,
    refused_at_once,
    without,
)
from twin.stores.reports import Report
from twin.stores.warm_up import warm

if TYPE_CHECKING:
    from matplotlib.figure import Figure


STORE_FULL = (MQRC_STORAGE_MEDIUM_FULL, MQRC_Q_SPACE_NOT_AVAILABLE)  # reasons of puts that a full store refuses
_REFUSALS = (*STORE_FULL, MQRC_Q_FULL)


@dataclass(slots=True, repr=False)
class Replayed(StatesByKind):
    """Results of a replay.

    Attributes:
        alerts: alert records by time, then store, then in the order of the store.
        states: last state record of each store, by its name; sorted.
        rejects: dead letters; `index` is the line or row, from 0. With `on_reject` there are none here.
        dead_letters: their number.
        reasons: number of dead letters by reason, most frequent first.
        first_reject: the first dead letter; None: there is none.
        events: number of accepted lines or rows, duplicates included.
        seconds: run time, without loading the kernels.
        samples: usage and forecasts over time, for `usage` and `forecasts`; None: with `course=False`.
        refusals: puts and refused puts as recorded and by this estate, by store; empty: without `demands=True`.
        sources: the recording, and the estate or its file.
        demands: True if puts were asked, so that the estate decided which were refused.
    """

    alerts: list[Alert] = field(default_factory=list)
    states: dict[str, StateRecord] = field(default_factory=dict)
    rejects: list[Reject] = field(default_factory=list)
    dead_letters: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    first_reject: Reject | None = None
    events: int = 0
    seconds: float = 0.0
    samples: Samples[Usage] | None = None
    refusals: dict[str, StoreRefusals] = field(default_factory=dict)
    sources: tuple[Path, Estate | Path] = (Path(), Path())
    demands: bool = False

    def __repr__(self) -> str:
        """Return the counts; the results themselves may be long."""
        counts = f"{self.events:,} events, {len(self.alerts):,} alerts, {len(self.states):,} stores"
        return f"Replayed({counts}, {self.dead_letters:,} dead letters)"

    @property
    def usage(self) -> pa.Table:
        """Usage over time: time, store, resource, usage_pct; a row per resource and 30 s of event time with events."""
        return usage_table(self._sampled())

    @property
    def forecasts(self) -> pa.Table:
        """Predictions over time: time, store, resource, usage_pct, p10_s, p50_s, p90_s, probability, is_first."""
        return forecast_table(self._sampled())

    @property
    def alert_table(self) -> pa.Table:
        """Alert records in their order, with the columns of docs/python.md; pandas and polars take the table."""
        return alert_table(self.alerts)

    def state(self, store: str) -> StateRecord:
        """Return the last state record of a store; `structure`, `page_set`, ... return it with the type of its kind.

        Args:
            store: its name.

        Raises:
            UsageError: the recording has no event of it.
        """
        if store not in self.states:
            raise UsageError(f"the recording has no event of {store}{known_hint(store, self.states)}")
        return self.states[store]

    def paged_before(self, store: str, time: EventTime) -> bool:
        """Return True if somebody was called about a store before a time; for an assertion.

        Args:
            store: its name.
            time: when it would have been too late, such as the first put that was refused.

        Raises:
            AssertionError: nobody was called by then; it says when the first page was, if there was one.
            UsageError: the recording has no event of the store, or `time` is not a time.
        """
        __tracebackhide__ = True
        self.state(store)
        try:
            limit = event_us(time)
        except ValueError as error:
            raise UsageError(f"time {error}") from None
        own = [alert for alert in self.alerts if alert.store == store and alert.change != CLEARED]
        first = min((alert.time for alert in own if alert.level == PAGE), default=None)
        if first is None:
            raise AssertionError(f"{store}: no page")
        if first >= limit:
            raise AssertionError(
                f"{store}: the first page is at {as_text(first)[:19]}Z, not before {as_text(limit)[:19]}Z"
            )
        return True

    def never_full(self, *stores: str) -> bool:
        """Return True if no put of a store was refused because the store was full; for an assertion.

        Args:
            *stores: names of stores; none: all.

        Raises:
            AssertionError: puts were refused; it says how many, and when the first was.
            UsageError: the replay was not made with `demands=True`, so that puts which were refused stay refused, or
                the recording has no event of a store.
        """
        __tracebackhide__ = True  # of pytest: a test that fails shows the line that asserts
        if not self.demands:
            wrong = "never_full() of a replay in which puts that were refused stay refused"
            raise UsageError(f"{wrong}; expected: demands=True, of replay() or of the marker recording")
        asked = [store for store, outcome in self.refusals.items() if outcome.replayed.puts]
        for store in stores or [""] * (not asked):
            if store not in asked:
                raise UsageError(f"the recording has no put of {store or 'any store'}{known_hint(store, asked)}")
        refused = {
            store: self.refusals[store].replayed for store in stores or asked if self.refusals[store].replayed.full
        }
        if refused:
            raise AssertionError("; ".join(f"{store}: {own.text}" for store, own in refused.items()))
        return True

    def plot(self, *stores: str) -> Figure:
        """Return a picture of usage and alerts over time, which a notebook shows. It needs matplotlib.

        Args:
            *stores: names of stores; none: the six that were fullest.

        Raises:
            UsageError: matplotlib is missing, a store has no usage, or `course` was False.
        """
        try:
            from twin.playback.pictures import draw_replay
        except ImportError:
            wrong = "plot() needs matplotlib, which is not installed"
            raise UsageError(f"{wrong}; expected: pip install 'mqtwin[pictures]'") from None
        return draw_replay(self.usage, self.alerts, stores)

    def explore(self) -> subprocess.Popen[bytes]:
        """Open every moment of the recording in the console, in a browser of this machine; see docs/console.md.

        Return the process that serves the page; it ends with this one, or when it is terminated.

        Raises:
            UsageError: the estate was no file.
        """
        recording, estate = self.sources
        if isinstance(estate, Estate):
            wrong = "explore() needs the estate as a file"
            raise UsageError(f'{wrong}; expected: replay("{recording}", "estate.toml")')
        command = [sys.executable, "-m", "deploy", "console", "--recording", str(recording), "--estate", str(estate)]
        process = subprocess.Popen([*command, "--listen", "127.0.0.1:0", "--open"])
        atexit.register(process.terminate)
        return process

    def _sampled(self) -> Samples[Usage]:
        if self.samples is None:
            raise UsageError("no course over time was kept; expected: replay(..., course=True)")
        return self.samples


@dataclass(slots=True)
class Refusals:
    """Puts of a store, and those that were refused."""

    puts: int = 0  # messages asked to be put
    full: int = 0  # messages refused with 2192, of distributed queue managers 2056
    queue_full: int = 0  # messages refused with 2053
    first_full: int | None = None  # time of the first of `full`, microseconds since 1970; None: there is none

    @property
    def text(self) -> str:
        """The refused puts in words: `45,522 of 640,000 puts are refused, the first at 2026-11-20T02:01:51Z`."""
        first = "" if self.first_full is None else f", the first at {as_text(self.first_full)[:19]}Z"
        return f"{self.full:,} of {as_count(self.puts, 'put')} are refused{first}"

    def add(self, events: Array) -> None:
        """Count the refused puts among events, EVENT[n], in order of time."""
        puts = events[events["op"] == PUT]
        full = puts[np.isin(puts["reason"], STORE_FULL)]
        self.puts += int(puts["count"].sum())
        self.full += int(full["count"].sum())
        self.queue_full += int(puts["count"][puts["reason"] == MQRC_Q_FULL].sum())
        if self.first_full is None and full.size:
            self.first_full = int(full["time"][0])


@dataclass(slots=True)
class StoreRefusals:
    """Refusals of a store."""

    recorded: Refusals = field(default_factory=Refusals)  # as recorded
    replayed: Refusals = field(default_factory=Refusals)  # by the given estate in the replay
    unserved_gets: int = 0  # gets of the recording whose message was refused, or had not come


def as_demands(block: EventBlock) -> EventBlock:
    """Return a block whose refused puts are tried again, one message per event."""
    events = block.events
    single = (events["op"] != PUT) & ((events["op"] != GET) | (events["flags"] & FLAG_HAS_MSGID != 0))
    copies = np.where(single, 1, events["count"])
    rows = np.repeat(np.arange(events.size), copies)
    demands = np.ascontiguousarray(events[rows])
    is_first = np.diff(rows, prepend=-1) != 0
    is_copy = copies[rows] > 1
    demands["count"][is_copy] = 1
    demands["seq"][~is_first] = -1  # a number is taken once
    demands["reason"][(demands["op"] == PUT) & np.isin(demands["reason"], _REFUSALS)] = 0
    starts = np.cumsum(copies) - copies
    extras = {int(starts[row]): text for row, text in block.extras.items()}
    return EventBlock(block.store, demands, extras)


def _apply_demands(twin: MessageStore, block: EventBlock) -> list[Alert]:
    return twin.apply(as_demands(block), demands=True)


def count_unserved(events: Array) -> int:
    """Return the gets among events, EVENT[n] after they were applied, that found no message."""
    return int(((events["op"] == GET) & (events["reason"] == MQRC_NO_MSG_AVAILABLE)).sum())


class Player:
    """Twins of an estate that apply a recording in pieces; the pieces do not change the results.

    A recording may have the events of one store hours behind those of another. So shared stores wait for all their
    sources, until `catch_up` says that what there is has been fed.
    """

    def __init__(
        self,
        estate: Estate,
        twins: Mapping[str, Twin] | None = None,
        *,
        earlier: Mapping[str, Twin] | None = None,
        demands: bool = False,
    ) -> None:
        """Continue with `twins`, by store name; those of other stores are opened at their first event.

        A twin of `earlier`, of an earlier estate, stays as it is until its next event, as in a job that was started
        again with another estate. `demands` takes puts as demands, those with 2192, 2056 or 2053 too: the estate
        decides which fit. Gets, ends of units of work and expiries happen as recorded; `refusals` then has the outcome.
        """
        self._estate = estate
        self._twins: dict[str, Twin] = dict(twins or {})
        self._earlier = dict(earlier or {})
        self._demands = demands
        self._caught_up = False
        self._backups: dict[str, Backup] = {}  # of twins that hold messages
        self._rejects: list[Reject] = []
        self.refusals: dict[str, StoreRefusals] = {}

    def feed(self, decoded: Decoded) -> list[Alert]:
        """Apply events and the resulting reports of shared stores, and return the alerts by store, in order.

        An event at which a twin raises is left out; `drain_rejects` has its dead letter.
        """
        alerts: list[Alert] = []
        reports: dict[str, list[Report]] = {}
        for block in decoded.blocks(self._estate):
            alerts += self._apply(block)
            for report in self._twin(block.store).drain_reports():
                reports.setdefault(report.target, []).append(report)
        for name, own_reports in sorted(reports.items()):
            alerts += self._twin(name).take(own_reports, caught_up=self._caught_up)
        return alerts

    def drain_rejects(self) -> list[Reject]:
        """Return the dead letters of events at which twins raised since the last call, in the order of the events."""
        rejects, self._rejects = self._rejects, []
        return sorted(rejects, key=lambda reject: (reject.record, reject.index))

    def _apply(self, block: EventBlock) -> list[Alert]:
        twin, refused = self._twin(block.store), refused_at_once(self._estate, block)
        if not isinstance(twin, MessageStore):
            self._reject(block, refused)
            return twin.apply(without(block, refused))
        backup = self._backups.get(block.store)
        if backup is None:
            backup = self._backups[block.store] = Backup()
            backup.renew(twin)
        backup.note(twin, block)
        apply = self._demand if self._demands else apply_block
        try:
            return apply(twin, block)
        except OF_THE_MACHINE:
            raise
        except Exception:
            again = _apply_demands if self._demands else apply_block
            refused = apply_others(backup.restored(twin, again), self._estate, block, again)[2]
            if not refused:
                raise
            self._reject(block, refused)
            twin = self._twins[block.store] = backup.restored(twin, again)
            alerts = apply(twin, without(block, refused))
            backup.renew(twin)
            return alerts

    def _reject(self, block: EventBlock, refused: Iterable[Refused]) -> None:
        for event in refused:
            record, index = block.place_of(event.row)
            text = event_text(block, event.row, self._estate)
            self._rejects.append(Reject(record, index, event.reason, event.detail[:DETAIL_CHARACTERS], text))

    def catch_up(self) -> list[Alert]:
        """Process what shared stores hold back for sources that say nothing; return the alerts by store, in order.

        To be called when all events that exist have been fed. Later events are taken as they come: of a source that
        has fallen silent, or was never heard of, nothing is expected any more.
        """
        self._caught_up = True
        return [alert for _, twin in sorted(self.twins.items()) for alert in twin.take((), caught_up=True)]

    def _demand(self, twin: MessageStore, block: EventBlock) -> list[Alert]:
        demands = as_demands(block)
        alerts = twin.apply(demands, demands=True)
        outcome = self.refusals.setdefault(block.store, StoreRefusals())
        outcome.recorded.add(block.events)
        outcome.replayed.add(demands.events)
        outcome.unserved_gets += count_unserved(demands.events)
        return alerts

    @property
    def twins(self) -> Mapping[str, Twin]:
        """The twins of all stores with an event or a report, by store name."""
        return {**self._earlier, **self._twins} if self._earlier else self._twins

    def _twin(self, name: str) -> Twin:
        twin = self._twins.get(name)
        if twin is None:
            before = self._earlier.pop(name, None)
            twin = open_store(self._estate, name) if before is None else reopened(before, self._estate)
            self._twins[name] = twin
        return twin

    def states(self) -> dict[str, StateRecord]:
        """Return the state records of all stores with an event or a report, by store name, sorted."""
        return {name: twin.state() for name, twin in sorted(self.twins.items())}


def replay(
    path: str | Path,
    estate: Estate | str | Path,
    *,
    course: bool = True,
    demands: bool = False,
    chunk_events: int | None = None,
    on_reject: Callable[[Reject], None] | None = None,
    on_chunk: Callable[[Chunk, int], None] | None = None,
) -> Replayed:
    """Replay a recording (`.ndjson`, `.ndjson.zst`, `.arrow`) through the twins of an estate.

    Args:
        path: the recording.
        estate: the estate, or its file; see `twin.estate.load_estate`.
        course: True keeps usage and forecasts over time, for `Replayed.usage` and `Replayed.forecasts`.
        demands: True takes the puts of the recording as demands, so that the estate decides which are refused; the
            outcome is in `Replayed.refusals`. Gets happen as recorded.
        chunk_events: maximum number of events to apply at once; None: a chunk of the recording. The results are the
            same.
        on_reject: called with each dead letter, which `Replayed.rejects` then lacks.
        on_chunk: called after each chunk, with the chunk and the number of events so far.

    Raises:
        UsageError: the file is missing, has an unknown suffix, or cannot be read to its end; the estate is wrong.

    Examples:
        >>> replayed = twin.replay("friday.arrow", "estate.toml")
        >>> replayed
        Replayed(972,206 events, ... alerts, 2 stores, 0 dead letters)
        >>> replayed.states["QSG1/APP1"].full_puts
        45522
        >>> replayed.usage.column_names
        ['time', 'store', 'resource', 'usage_pct']
    """
    described = as_estate(estate)
    warm()
    replayed = Replayed(samples=Samples(described, usage_of) if course else None, demands=demands)
    replayed.sources = Path(path), estate if isinstance(estate, Estate) else Path(estate)
    reasons: Counter[str] = Counter()
    on_dead_letter = replayed.rejects.append if on_reject is None else on_reject

    def note(reject: Reject) -> None:
        replayed.first_reject = replayed.first_reject or reject
        reasons[str(reject.reason)] += 1
        on_dead_letter(reject)

    alerts, letters, player = Alerts(), Letters(note), Player(described, demands=demands)
    observers: list[Observer] = [alerts, letters, _Pieces(chunk_events)]
    observers += [] if replayed.samples is None else [replayed.samples]
    began = time.monotonic()
    play(path, described, *observers, player=player, on_chunk=on_chunk)
    replayed.seconds = time.monotonic() - began
    replayed.alerts, replayed.states = alerts.alerts, player.states()
    replayed.events, replayed.dead_letters = letters.events, letters.dead_letters
    replayed.reasons = dict(reasons.most_common())
    replayed.refusals = dict(sorted(player.refusals.items()))
    return replayed


class _Pieces(Observer):
    """Cuts chunks into pieces of at most some events; None: it does not."""

    def __init__(self, max_events: int | None) -> None:
        self._max_events = max_events

    def cuts(self, decoded: Decoded) -> Iterable[int]:
        """Return the rows at which a piece begins."""
        return range(0, len(decoded), self._max_events or len(decoded) or 1)


def play(
    source: str | Path | Iterable[Decoded],
    estate: Estate,
    *observers: Observer,
    player: Player | None = None,
    until: int | None = None,
    on_chunk: Callable[[Chunk, int], None] | None = None,
) -> Player:
    """Apply all events of a source to the twins of an estate, watched by observers; return the player.

    The pieces in which events are applied are those that all observers together ask for; they change no result.
    `until`: time of the last events played, microseconds, None: all are. Every chunk is played up to it: a topic of
    several partitions is recorded as it was read, so a later one may have earlier events. UsageError: the file is
    missing, has an unknown suffix, or cannot be read to its end.
    """
    warm()
    player = Player(estate) if player is None else player
    for chunk in decoded_chunks(source, estate, on_chunk) if isinstance(source, (str, Path)) else source:
        decoded = chunk
        events = decoded if until is None else decoded.until(until)
        for piece in events.split(sorted({row for observer in observers for row in observer.cuts(events)})):
            for observer in observers:
                observer.before(piece, player.twins)
            applied = Applied(piece, player.feed(piece), player.twins)
            for observer in observers:
                observer.after(applied)
        if refused := player.drain_rejects():
            decoded = chunk.refusing(refused)
        for observer in observers:
            observer.end_chunk(decoded)
    last = Applied(merge(()), player.catch_up(), player.twins)
    for observer in observers:
        observer.end(last)
    return player


def learn(
    recordings: Sequence[str | Path], estate: Estate, on_chunk: Callable[[Chunk, int], None] | None = None
) -> dict[str, StoreHistory]:
    """Return what the stores of an estate remember after some recordings, the oldest first, each played from empty
    stores: how rises ended, and puts by the hour.

    A store remembers the history of its estate, too, if it still has room for it. UsageError: a file is missing, has an
    unknown suffix, or cannot be read to its end.
    """
    letters = Letters()
    for path in recordings:
        player = play(decoded_chunks(path, estate, on_chunk, letters.events), estate, letters)
        learned = {
            name: StoreHistory(kept_rises(twin.tables.store, twin.qmgrs), twin.monitor.memory.puts.as_history())
            for name, twin in player.twins.items()
            if isinstance(twin, MessageStore)
        }
        known = {name: past for name, past in learned.items() if past != StoreHistory()}
        estate = replace(estate, history={**estate.history, **known})
    return dict(estate.history)


def decoded_chunks(
    path: str | Path, estate: Estate, on_chunk: Callable[[Chunk, int], None] | None = None, events: int = 0
) -> Iterator[Decoded]:
    """Yield the events of a recording in decoded chunks. UsageError: no such file or suffix, or it ends too early."""
    decoder = Decoder(estate)
    for chunk in open_recording(path):
        decoded = chunk.decode(decoder)
        yield decoded
        events += count_events(decoded)
        if on_chunk is not None:
            on_chunk(chunk, events)


def chunks_of(chunks: Iterable[Decoded], estate: Estate, store: str) -> Iterator[Decoded]:
    """Yield the events of a store in each chunk. estate: by which they were decoded."""
    is_own = np.array([route.store == store for route in estate.routes])
    for decoded in chunks:
        yield decoded.take(np.flatnonzero(is_own[decoded.events["route"]]))


_ALERT_COLUMNS = {
    "time": pa.timestamp("us", tz="UTC"),
    **dict.fromkeys(("store", "resource", "condition", "change", "level", "severity"), pa.string()),
    **dict.fromkeys(("usage_pct", "p10_s", "p50_s", "p90_s", "probability"), pa.float64()),
    **dict.fromkeys(("filler", "cause", "alert_id"), pa.string()),
}


def alert_table(alerts: Iterable[Alert]) -> pa.Table:
    """Return alert records as a table: a row each, in their order.

    The columns are time, store, resource, condition, change, level, severity, usage_pct (percent), p10_s, p50_s and
    p90_s (seconds until full, null without a forecast), probability, filler (the queue that fills most), cause and
    alert_id.
    """
    rows = []
    for alert in alerts:
        times = alert.time_to_full_s
        rows.append(
            {
                **{name: getattr(alert, name) for name in _ALERT_COLUMNS if hasattr(alert, name)},
                **{f"{name}_s": getattr(times, name, None) for name in ("p10", "p50", "p90")},
                "probability": alert.full_probability,
                "filler": alert.fillers[0].queue if alert.fillers else None,
            }
        )
    return pa.Table.from_pylist(rows, schema=pa.schema(list(_ALERT_COLUMNS.items())))


def dead_letter(reject: Reject) -> ReplayedLetter:
    """Return the record of a reject."""
    is_cut = reject.length > len(reject.value)
    letter = ReplayedLetter(str(reject.reason), reject.detail, reject.index, reject.length if is_cut else None)
    try:
        return msgspec.structs.replace(letter, value=reject.value.decode())
    except UnicodeDecodeError:
        return msgspec.structs.replace(letter, value_base64=reject.value)
