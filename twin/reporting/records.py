"""The report of a recording or of a job, as `mqtwin report --json` prints it: docs/report.md; its actions; comparisons.

- Report: times are RFC 3339, UTC. Usage is in percent of the largest size that a resource may have. A minute of 2192 is
  a minute of the clock in which a full store refused a put (2192, of distributed queue managers 2056).
- Actions: what people changed in a store while it was in danger, and what that was worth.
- Comparison: what the nights of some recordings would have been under each of two estates. See docs/testing.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from kernels.clock import SECOND
from kernels.layout import MEASURE, PUT
from twin.base.conditions import CLEARED, OPENED, PAGE
from twin.base.errors import UsageError
from twin.estate import Estate, as_estate
from twin.events import Decoded, EventBlock
from twin.playback.replays import (
    STORE_FULL,
    Player,
    Refusals,
    Replayed,
    as_demands,
    chunks_of,
    decoded_chunks,
    play,
    replay,
)
from twin.playback.samples import Applied, Observer
from twin.recordings.files import Chunk
from twin.records import DoneAction, ForecastScores, LongForecast, Note, StateForecast
from twin.state.arrays import Array
from twin.stores.changes import IS_CHANGE, StoreChange, Watched, read_change
from twin.stores.message_store import MessageStore
from twin.stores.open import Twin, open_message_store

PageVerdict = Literal["in time", "late", "false", "averted", "undecided"]


class Peak(msgspec.Struct, frozen=True, kw_only=True):
    """The highest usage of a resource in the period, its time, and the usage at the end."""

    resource: str
    usage_pct: float
    time: str
    last_pct: float


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """The growth of the daily peaks of the resource that is full first by it."""

    resource: str
    days: int  # number of days that were compared
    pct_per_day: float | None  # percentage points per day; None: no growth stands out from the differences between days
    days_left: float | None  # days until a daily peak is 100 %; None: never at this growth


class EndedRise(msgspec.Struct, frozen=True, kw_only=True):
    """A rise that ended in the period."""

    began: str
    ended: str
    data_set: str  # queue manager whose data set rose; "": the store in all
    usage_pct: float  # usage of the fullest resource at its end
    refused: int  # puts refused until the next rise began; 0: it turned back


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of the fullest resource over the period: the highest of each part of it. times: seconds since 1970."""

    times: tuple[float, ...]
    usage_pct: tuple[float, ...]


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """Measurements and missing events of a store since its first event."""

    measurements: int  # MEASURE events
    drift_pct: float | None  # twin minus the last measurement, percent of the total; None: none compared
    gaps: int  # gaps, duplicates, unmatched_gets, overfull_puts, refused_alters: as in the state record
    duplicates: int
    unmatched_gets: int
    overfull_puts: int
    refused_alters: int
    seen: tuple[str, ...] = ()  # sentences on which share of puts and gets events report, where that is a part


class StoreReport(msgspec.Struct, frozen=True, kw_only=True):
    """A store in the period."""

    store: str
    kind: str
    peaks: tuple[Peak, ...]  # by resource, the fullest first
    course: Course
    growth: Growth | None  # None: fewer than three whole days are known
    rises: tuple[EndedRise, ...]  # those that ended in the period, of the 32 that a store remembers
    minutes_full: int  # minutes of 2192
    coverage: Coverage
    scores: ForecastScores | None  # the job's own scores, of the last 30 days; None: none is settled
    forecast: StateForecast | None = None  # forecast of the last state; None: nothing rises, or it is not known
    long_forecast: LongForecast | UnsetType = UNSET  # long forecast of the last state; absent: it is not known


class SeenAction(DoneAction, frozen=True, kw_only=True):
    """An operator's action, as the events of a store show it; outside incidents its effect is not computed."""

    store: str
    alert_id: str  # the alert that last proposed it; "": none did. With `id` it names the action of that alert.


class Consequence(msgspec.Struct, frozen=True, kw_only=True):
    """The change by the actions in an incident: the store as it was, and its twin without any from the first on."""

    since: str  # since, until: what is compared: from the first action to two hours after the end of the incident
    until: str
    is_settled: bool  # False while these two hours have not passed
    minutes: int  # minutes, refused: minutes of 2192 and refused puts, as recorded
    refused: int
    minutes_untouched: int  # minutes_untouched, refused_untouched: the same of the untouched twin, same puts
    refused_untouched: int

    @property
    def minutes_avoided(self) -> int:
        """Minutes of 2192 that did not come."""
        return max(0, self.minutes_untouched - self.minutes)


class IncidentReport(msgspec.Struct, frozen=True, kw_only=True):
    """An incident that was open in the period."""

    id: str
    store: str
    opened: str  # when its first alert opened
    paged: str | None  # when it called people; None: it never did
    over: str | None  # when nobody had to do anything any more; None: not yet
    urgency: str  # the worst that it was: watch, page, critical or full
    condition: str  # condition, resource, cause: those of the first alert as urgent as that
    resource: str
    cause: str
    # on its page, as the scorecard judges; a false one is averted if the untouched twin refuses
    verdict: PageVerdict | None
    lead_s: float | None  # seconds from the page to the first 2192; None: no page before one
    minutes_full: int  # minutes of 2192 while it was open
    actions: tuple[SeenAction, ...]  # what people did while it was open, in order of time
    consequence: Consequence | None  # what the changes among them changed; None without any
    notes: tuple[Note, ...]  # of people on its alerts, in order: who acknowledged it, what they did, comments

    @property
    def minutes_avoided(self) -> int:
        """Minutes of 2192 that the actions avoided; 0 without any."""
        return 0 if self.consequence is None else self.consequence.minutes_avoided


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A filling of a store. is_heard: False if no page was open at any of its refused puts."""

    store: str
    resource: str
    first: str
    last: str
    refused: int
    is_heard: bool


class CallerCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Pages of the twin, or of a line on usage, in the period."""

    name: str  # "twin", or the name of the line on the scorecard
    pages: int  # number; in_time, late, false, undecided: by verdict of the scorecard, which knows no averted ones
    in_time: int
    late: int
    false: int
    undecided: int
    fillings: int  # number that began to refuse puts in the period; missed: those without a page before
    missed: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a period.

    Attributes:
        since, until: the period.
        events: events until its end.
        dead_letters: those of the recording that were refused.
        stores: those that hold messages and had an event, by name.
        incidents: in order of their opening.
        fillings: those that began to refuse puts in the period, in order of time.
        actions: changes outside incidents.
        callers: the twin and lines on usage.
    """

    since: str
    until: str
    events: int
    dead_letters: int
    stores: tuple[StoreReport, ...]
    incidents: tuple[IncidentReport, ...]
    fillings: tuple[Refusal, ...]
    actions: tuple[SeenAction, ...]
    callers: tuple[CallerCounts, ...]

    @property
    def minutes_full(self) -> int:
        """Minutes of 2192 of all stores together."""
        return sum(store.minutes_full for store in self.stores)

    @property
    def minutes_avoided(self) -> int:
        """Minutes of 2192 that actions avoided, of all incidents together."""
        return sum(incident.minutes_avoided for incident in self.incidents)

    @property
    def pages(self) -> tuple[IncidentReport, ...]:
        """The incidents that called people in the period."""
        return tuple(
            incident for incident in self.incidents if incident.paged is not None and incident.paged >= self.since
        )


# --- actions ----------------------------------------------------------------------------------------------------------
# What a change is and how much longer the store had after it is said by `twin.stores.changes`. The store's events are
# played once more. At the first change of an incident a copy of the twin continues without any change; the puts of the
# recording are made to it as demands (`twin.playback.replays.as_demands`), so that it refuses what does not fit.

MINUTE = 60 * SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedChange:
    """A change of a store in a recording."""

    index: int  # line or row of its event in the recording, from 0
    store: str
    time: int  # microseconds since 1970
    change: StoreChange


class ChangeLog(Observer):
    """The changes in a recording, collected while it is played."""

    def __init__(self, estate: Estate) -> None:
        self.changes: list[RecordedChange] = []  # in the order of the recording
        self.measurements: dict[str, int] = {}  # MEASURE events by store
        self._estate = estate
        self._sizes: dict[str, int | None] = {}  # last measured SIZE, by store

    def after(self, applied: Applied) -> None:
        """Add the changes of a piece."""
        piece = applied.piece
        for row in IS_CHANGE[piece.events["op"]].nonzero()[0].tolist():
            event, route = piece.events[row], self._estate.routes[int(piece.events["route"][row])]
            if event["op"] == MEASURE:
                self.measurements[route.store] = self.measurements.get(route.store, 0) + 1
            content, config = piece.extras.get(row, b"{}"), self._estate.stores[route.store]
            change, self._sizes[route.store] = read_change(
                event, content, route.reported or "", config, self._sizes.get(route.store)
            )
            if change is not None:
                self.changes.append(
                    RecordedChange(
                        index=int(piece.index[row]), store=route.store, time=int(event["time"]), change=change
                    )
                )


@dataclass(frozen=True, slots=True)
class Window:
    """The time of an incident with changes. Times in microseconds since 1970."""

    incident: str
    opened: int  # opened, over: when changes belong to it
    over: int
    until: int  # until when the untouched twin is played

    def has(self, change: RecordedChange) -> bool:
        """Return True if a change belongs to it."""
        return self.opened <= change.time <= self.over


@dataclass(slots=True)
class Untouched:
    """The twin of a store without the changes of an incident, and the times of the puts that it refuses."""

    window: Window
    twin: MessageStore
    since: int  # microseconds
    refused: list[Array] = field(default_factory=list)  # i8[n] each, microseconds

    def feed(self, block: EventBlock) -> None:
        """Apply events up to the end of the window; puts are demands."""
        demands = as_demands(block)
        self.twin.apply(demands, demands=True)
        self.twin.drain_reports()
        puts = demands.events[demands.events["op"] == PUT]
        is_refused = np.isin(puts["reason"], STORE_FULL) & (puts["time"] <= self.window.until)
        self.refused.append(puts["time"][is_refused].copy())

    @property
    def refused_at(self) -> Array:
        """Times of the refused puts, i8[n], microseconds."""
        return np.concatenate([np.zeros(0, np.int64), *self.refused])


class Traced(Observer):
    """The changes of a store, applied, and beside it its untouched twins."""

    def __init__(
        self, estate: Estate, store: str, changes: Sequence[RecordedChange], windows: Sequence[Window]
    ) -> None:
        """Begin before the first event. Arguments as of `trace`."""
        self.effects: dict[int, DoneAction | None] = {}  # effect of each change, by index; None of duplicates
        self.untouched: dict[str, Untouched] = {}  # untouched twins by incident
        self._estate = estate
        self._store = store
        self._changes = {change.index: change for change in changes}
        self._windows = windows
        self._watched: Watched | None = None

    def cuts(self, decoded: Decoded) -> Iterable[int]:
        """Return the rows that let each change be a piece of its own."""
        rows = np.flatnonzero(np.isin(decoded.index, list(self._changes)))
        return sorted({*rows.tolist(), *(rows + 1).tolist()})

    def before(self, piece: Decoded, twins: Mapping[str, Twin]) -> None:
        """Copy the twin at the first change of an incident, and apply the piece to untouched twins."""
        change, twin = self._changes.get(int(piece.index[0])), self._twin(twins)
        if change is not None:
            window = next((window for window in self._windows if window.has(change)), None)
            self._watched = Watched(twin, change.change, is_timed=window is not None)
            if window is not None and window.incident not in self.untouched:
                self.untouched[window.incident] = Untouched(window, _copy(self._estate, twin), change.time)
        for untouched in self.untouched.values():
            own = piece.until(untouched.window.until)
            if len(own) and (change is None or not untouched.window.has(change)):
                untouched.feed(own.blocks(self._estate)[0])

    def after(self, applied: Applied) -> None:
        """Note the effect of a change."""
        if self._watched is not None:
            change = self._changes[int(applied.piece.index[0])]
            self.effects[change.index] = self._watched.done(self._twin(applied.twins), change.time)
            self._watched = None

    def _twin(self, twins: Mapping[str, Twin]) -> MessageStore:
        twin = twins[self._store]
        assert isinstance(twin, MessageStore)
        return twin


def trace(
    recording: str | Path,
    estate: Estate,
    store: str,
    changes: Sequence[RecordedChange],
    windows: Sequence[Window],
    until: int,
) -> Traced:
    """Play the events of a store with its changes, and beside them its untouched twins."""
    traced, player = Traced(estate, store, changes, windows), Player(estate, {store: open_message_store(estate, store)})
    play(chunks_of(decoded_chunks(recording, estate), estate, store), estate, traced, player=player, until=until)
    return traced


def _copy(estate: Estate, twin: MessageStore) -> MessageStore:
    return open_message_store(estate, twin.name, twin.tables.copied_arrays(), twin.header(), None, forecasts=False)


def minutes(times: Array) -> int:
    """Return the number of minutes of the clock in which some times lie. times: i8[n], microseconds."""
    return int(np.unique(times // MINUTE).size)


# --- two estates compared ---------------------------------------------------------------------------------------------


class StoreNight(msgspec.Struct, frozen=True, kw_only=True):
    """A store in a recording, by one estate."""

    alerts: int  # number of alerts that opened
    first_page: int | None  # when somebody was first called, microseconds since 1970; None: nobody was
    refused: int  # number of messages that were refused because the store was full
    first_full: int | None  # when the first of them was, microseconds since 1970; None: none was
    head_room_pct: float | None  # least free percentage of the fullest resource; None: usage not known
    fullest: str | None  # that resource; None likewise


class ComparedNight(msgspec.Struct, frozen=True, kw_only=True):
    """A recording, by two estates.

    Attributes:
        recording: name of its file.
        stores: the store before and after, by name; None: that estate takes no event of it.
        dead_letters: events that the estate before, and the one after, refuses.
    """

    recording: str
    stores: dict[str, tuple[StoreNight | None, StoreNight | None]]
    dead_letters: tuple[int, int]

    @property
    def changed(self) -> dict[str, tuple[StoreNight | None, StoreNight | None]]:
        """The stores that are not the same under both."""
        return {name: sides for name, sides in self.stores.items() if sides[0] != sides[1]}


def compare(
    old: Estate | str | Path,
    new: Estate | str | Path,
    recordings: Iterable[str | Path],
    on_chunk: Callable[[Chunk, int], None] | None = None,
) -> list[ComparedNight]:
    """Replay recordings under two estates. Puts count as requests: each estate refuses its own.

    Args:
        old: the estate as it is, or its file.
        new: the changed one, or its file.
        recordings: files (`.ndjson`, `.ndjson.zst`, `.arrow`).
        on_chunk: as for `replay`.

    Raises:
        UsageError: an estate is wrong, a file is missing, has an unknown suffix, or cannot be read to its end, or
            neither estate takes an event of it.
    """
    estates = as_estate(old), as_estate(new)
    nights = []
    for path in recordings:
        replays = [replay(path, estate, demands=True, on_chunk=on_chunk) for estate in estates]
        before, after = map(_stores, replays)
        if not before and not after:
            raise UsageError(f"{path} has no event that either estate takes; expected: a recording of these stores")
        names = sorted({*before, *after})
        nights.append(
            ComparedNight(
                recording=Path(path).name,
                stores={name: (before.get(name), after.get(name)) for name in names},
                dead_letters=(replays[0].dead_letters, replays[1].dead_letters),
            )
        )
    return nights


def _stores(replayed: Replayed) -> dict[str, StoreNight]:
    peaks = replayed.usage.group_by(["store", "resource"]).aggregate([("usage_pct", "max")]).to_pylist()
    nights = {}
    for name in replayed.states:
        own = [alert for alert in replayed.alerts if alert.store == name]
        pages = [alert.time for alert in own if alert.level == PAGE and alert.change != CLEARED]
        outcome = replayed.refusals.get(name)
        refused = Refusals() if outcome is None else outcome.replayed
        known = [row for row in peaks if row["store"] == name and row["usage_pct_max"] is not None]
        peak = max(known, key=lambda row: (row["usage_pct_max"], row["resource"]), default=None)
        nights[name] = StoreNight(
            alerts=sum(alert.change == OPENED for alert in own),
            first_page=min(pages, default=None),
            refused=refused.full,
            first_full=refused.first_full,
            head_room_pct=None if peak is None else round(max(0.0, 100 - peak["usage_pct_max"]), 1),
            fullest=None if peak is None else peak["resource"],
        )
    return nights
