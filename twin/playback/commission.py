"""Commissioning: does the twin do what it promises, at this site and in this time? docs/commission.md.

A twin drifts from its store for four kinds of reasons: events were lost, never reported, cost more or less than the
model says, or belong to the backlog from before its start. The state record and the counts of puts and
gets of each queue show which of them it is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from kernels import OPS, layout
from kernels.clock import SECOND
from twin.base.conditions import Pool
from twin.base.units import as_count, as_text
from twin.estate import Estate, as_estate
from twin.events import Decoded, Measured
from twin.events.fields import has_levels, without_nulls
from twin.playback.fidelity import DriftPoint, DriftPoints, fidelity_of
from twin.playback.replays import play
from twin.playback.samples import Applied, Observer
from twin.playback.verdicts import (
    MANY_PUTS,
    Check,
    Fitness,
    JobFigures,
    NotShown,
    StoreCommission,
    check_job,
    check_names,
    check_stores,
    not_shown,
    worst,
)
from twin.records import StateRecord
from twin.state.arrays import Array
from twin.stores.message_store import MessageStore

_HOUR = 3600 * SECOND
_MEASURE = OPS.index("MEASURE")
_PUT, _GET = OPS.index("PUT"), OPS.index("GET")
_SAME_PCT = 1.0  # points of drift within which a resource agrees


class Commission(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a commissioning.

    Attributes:
        verdict: that of the least fit check.
        checks: by subject, of each the least fit first.
        begin, end: event times within which measurements count; null without an event.
        silent_queue_managers: those of the estate without an event, sorted.
        stores: by name, sorted: all of the estate.
        not_shown: what the feeds do not show, and which ones would.
        job: what only a running job has; null of a recording.
    """

    verdict: Fitness
    checks: tuple[Check, ...]
    begin: str | None
    end: str | None
    silent_queue_managers: tuple[str, ...]
    stores: tuple[StoreCommission, ...]
    not_shown: tuple[NotShown, ...] = ()
    job: JobFigures | None


def commission(
    recording: str | Path, estate: Estate | str | Path, *, hours: float | None = None, job: JobFigures | None = None
) -> Commission:
    """Return whether the twin does what it promises, by a recording with measurements (MEASURE events).

    Args:
        recording: the recording.
        estate: the estate, or its file.
        hours: event time before the end, within which measurements count; None: all. Events count from the first.
        job: what a running job shows of itself.

    Raises:
        UsageError: the file is missing, has an unknown suffix, or cannot be read to its end; the estate is wrong.

    Examples:
        >>> report = twin.commission("friday.arrow", "estate.toml")
        >>> report.verdict
        <Fitness.LIMITED: 'fit with limits'>
        >>> [check.reason for check in report.checks if check.subject == "numbering"]
        ['2 stores: no number of `seq` is missing']
    """
    described = as_estate(estate)
    seen = Observation(described)
    play(recording, described, seen)
    since = None if hours is None or seen.end_time is None else seen.end_time - round(hours * _HOUR)
    stores = [_store(described, name, seen, since) for name in described.stores]
    heard = {route.qmgr for route, events in zip(described.routes, seen.heard.tolist(), strict=True) if events}
    silent = sorted(described.queue_managers.keys() - heard)
    events = int(seen.heard.sum())
    checks = check_names(silent, len(described.queue_managers), seen.unknown, events) + check_stores(stores)
    checks += [] if job is None else check_job(job)
    begin = seen.begin if since is None or seen.begin is None else max(since, seen.begin)
    return Commission(
        verdict=worst(checks),
        checks=tuple(checks),
        begin=None if begin is None else as_text(begin),
        end=None if seen.end_time is None else as_text(seen.end_time),
        silent_queue_managers=tuple(silent),
        stores=tuple(stores),
        not_shown=tuple(not_shown(stores)),
        job=job,
    )


def _store(estate: Estate, name: str, seen: Observation, since: int | None) -> StoreCommission:
    config, state = estate.stores[name], seen.states.get(name)
    own = seen.stores.get(name, Observed())
    rows = [row for row, route in enumerate(estate.routes) if route.store == name]
    queues = sorted({estate.routes[row].queue or "" for row in rows} - {""})
    heard = {estate.routes[row].queue for row in rows if seen.calls[row]}
    held = 0 if state is None or state.baseline is None else state.baseline.get("messages")
    unmatched = 0 if state is None else state.unmatched_gets - (held if isinstance(held, int) else 0)
    tolerance_pct = seen.tolerances.get(name)
    fidelity = [
        measured
        for resource, drift in sorted(own.tested.items())
        if tolerance_pct is not None
        and (measured := fidelity_of(resource, drift.points, tolerance_pct, since)) is not None
    ]
    return StoreCommission(
        store=name,
        kind=config.kind,
        has_readers=own.has_readers,
        has_model=not config.known_by_levels,
        events=int(seen.heard[rows].sum()),
        calls=int(seen.calls[rows].sum()),
        numbered=int(seen.numbered[rows].sum()),
        counted=int(seen.counted[rows].sum()),
        gaps=0 if state is None else state.gaps,
        unmatched=max(0, unmatched),
        gets=own.gets.total(),
        puts=own.puts.total(),
        measurements=own.measurements,
        levels="" if state is None or state.first is not None else state.lacks_levels,
        sizes=tuple(
            f"{name}: {real:,} measured, {model:,} in the model"
            for name, (model, real) in sorted(own.sizes.items())
            if model != real
        ),
        seen=() if state is None else state.seen,
        silent_queues=tuple(queue for queue in queues if queue not in heard),
        queues=len(queues),
        tolerance_pct=tolerance_pct,
        fidelity=tuple(fidelity),
        causes=tuple(seen.causes(name)) if tolerance_pct is not None else (),
        scores=None if state is None else state.forecast_scores,
    )


# --- what is observed ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Observed:
    """Observations of a store while a recording is played."""

    # model and measurement by resource, the model as it was just before; without what tested nothing
    tested: dict[str, DriftPoints] = field(default_factory=dict)
    last_pct: dict[str, float] = field(default_factory=dict)  # drift after the last measurement, percent of the total
    # (model, measured) by field, of the first measurement
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)
    puts: Counter[str] = field(default_factory=Counter)
    gets: Counter[str] = field(default_factory=Counter)
    measurements: int = 0
    has_readers: bool = False
    baseline: Mapping[str, object] | None = None


class Observation(Observer):
    """A recording, as its events and measurements show the twins. By route of the estate it counts events (`heard`) and
    operations on queues (`calls`), of these those with `seq` (`numbered`) and those of several messages (`counted`).
    """

    def __init__(self, estate: Estate) -> None:
        self.stores: defaultdict[str, Observed] = defaultdict(Observed)  # by name; those without an event are absent
        self.states: dict[str, StateRecord] = {}  # last state records, by name
        self.tolerances: dict[str, float] = {}  # percent, of the stores with a measurement, by name
        self.unknown = 0  # events that name queues or stores which the estate lacks
        self.heard, self.calls, self.numbered, self.counted = np.zeros((4, len(estate.routes)), np.int64)
        # begin, end_time: earliest and latest event time, microseconds; None without events
        self.begin: int | None = None
        self.end_time: int | None = None
        self._estate = estate

    def causes(self, store: str) -> list[str]:
        """Return the likely causes of the drift of a store with a measurement, most certain first."""
        return _causes(self.stores[store], self.states[store], self.unknown)

    def cuts(self, decoded: Decoded) -> Iterable[int]:
        """Return the rows behind each MEASURE."""
        return (np.flatnonzero(decoded.events["op"] == _MEASURE) + 1).tolist()

    def after(self, applied: Applied) -> None:
        """Compare the twin with a measurement, which can only be the last event of a piece."""
        piece, last = applied.piece, len(applied.piece) - 1
        if last not in piece.extras or piece.events["op"][last] != _MEASURE:
            return
        store = self._estate.routes[int(piece.events["route"][last])].store
        twin = applied.twins[store]
        measured = without_nulls(msgspec.json.decode(piece.extras[last]))
        if any(queue.get("getters") is not None for queue in measured.get("queues", ())):
            self.stores[store].has_readers = True
        if isinstance(twin, MessageStore) and has_levels(measured):
            _note(self.stores[store], twin, measured)
            self.tolerances[store] = twin.config.drift_tolerance_pct

    def end_chunk(self, decoded: Decoded) -> None:
        """Count the events of a chunk."""
        self.unknown += sum(str(reject.reason).startswith("unknown-") for reject in decoded.rejects)
        if len(decoded):
            self._count_calls(decoded.events)
            self._count_events(decoded.events)

    def end(self, applied: Applied) -> None:
        """Keep the last state records."""
        self.states = {name: twin.state() for name, twin in applied.twins.items()}

    def _count_calls(self, events: Array) -> None:
        """Count the puts and gets that storage noticed, by store and queue. events: EVENT[n]."""
        for op in (_PUT, _GET):
            rows = events[(events["op"] == op) & (events["reason"] == 0)]
            counts = np.bincount(rows["route"], np.maximum(rows["count"], 1), minlength=1) if rows.size else np.zeros(0)
            for index in np.flatnonzero(counts).tolist():
                route = self._estate.routes[index]
                counter = self.stores[route.store].puts if op == _PUT else self.stores[route.store].gets
                counter[route.queue or ""] += int(counts[index])

    def _count_events(self, events: Array) -> None:
        size, begin, end = len(self.heard), int(events["time"].min()), int(events["time"].max())
        self.begin = begin if self.begin is None else min(begin, self.begin)
        self.end_time = end if self.end_time is None else max(end, self.end_time)
        self.heard += np.bincount(events["route"], minlength=size)
        calls = events[events["op"] <= layout.CLEAR]
        self.calls += np.bincount(calls["route"], minlength=size)
        self.numbered += np.bincount(calls["route"][calls["seq"] >= 0], minlength=size)
        self.counted += np.bincount(calls["route"][calls["count"] > 1], minlength=size)


def _note(seen: Observed, twin: MessageStore, measured: Measured) -> None:
    seen.measurements += 1
    state = twin.state()
    seen.baseline = state.baseline
    time = twin.clock
    for resource, (model, real, total) in twin.tested.items():
        if total > 0:
            point = DriftPoint(time, model, real, total)
            seen.tested.setdefault(str(resource), DriftPoints(str(resource))).add(point)
    for resource, (model, real, total) in twin.compare(twin.with_usage(measured)).items():
        if total > 0:
            seen.last_pct[str(resource)] = 100.0 * (model - real) / total
    for size in twin.found_sizes:
        name = size.field if size.resource.pool != Pool.SMDS else f"{size.resource_text}, {size.field}"
        seen.sizes.setdefault(name, (size.model, size.measured))


def _causes(seen: Observed, state: StateRecord, unknown: int) -> list[str]:
    """Return the likely causes of the drift of a store, most certain first."""
    last = seen.last_pct
    causes: list[str] = []
    if state.gaps:
        causes.append(f"{state.gaps:,} numbers of `seq` are missing: their events were lost")
    if unknown:
        causes.append(f"{as_count(unknown, 'event')} of the recording with a queue or store not in the estate")
    worst = max(last.items(), key=lambda entry: abs(entry[1]), default=("", 0.0))
    for queue in sorted(seen.puts.keys() | seen.gets.keys()):
        puts, gets = seen.puts[queue], seen.gets[queue]
        # Gets that are missing leave the model above what is measured, puts below it.
        if puts >= MANY_PUTS and not gets and worst[1] >= -_SAME_PCT:
            causes.append(f"{queue}: {puts:,} puts and no get: its gets may not be reported")
        elif gets >= MANY_PUTS and not puts and worst[1] <= _SAME_PCT:
            causes.append(f"{queue}: {gets:,} gets and no put: its puts may not be reported")
    baseline = seen.baseline or {}
    messages = baseline.get("messages")
    held = messages if isinstance(messages, int) else 0
    unmatched = state.unmatched_gets
    if unmatched > held:
        text = f"{unmatched:,} gets found no message"
        text += f", {held:,} of them can be of the baseline" if held else ""
        causes.append(f"{text}: puts were not reported, or events came out of order")
    elif unmatched:
        causes.append(
            f"{unmatched:,} of {held:,} messages of the baseline were got; each counts as an equal share of it"
        )
    elif held and any(abs(pct) > _SAME_PCT for pct in last.values()):
        causes.append(f"none of the {held:,} messages of the baseline was got by an unmatched get")
    causes += _rule_causes(seen, state, last)
    if not causes and abs(worst[1]) > _SAME_PCT:
        calls = "gets or expiries" if worst[1] > 0 else "puts"
        more = "more" if worst[1] > 0 else "less"
        text = f"the model has {more} {worst[0]} than measured, for no other reason: some {calls} are not reported"
        causes.append(text)
    return causes


def _rule_causes(seen: Observed, state: StateRecord, last: Mapping[str, float]) -> list[str]:
    causes: list[str] = []
    for name, (model, real) in sorted(seen.sizes.items()):
        if model != real:
            causes.append(f"{name}: {real:,} measured, {model:,} in the model; compare the estate")
    if state.overfull_puts:
        causes.append(f"{state.overfull_puts:,} puts succeeded that did not fit by the model: it counts too much")
    entries, elements = last.get("entries"), last.get("elements")
    if entries is not None and elements is not None and abs(entries) <= _SAME_PCT < abs(elements):
        causes.append(
            "entries agree, elements do not: lengths differ (headers, properties, means of statistics), or offloading"
        )
    if state.refused_alters:
        causes.append(f"{state.refused_alters:,} ALTER were refused by the model")
    return causes
