"""Drift over time: model against measured for each resource of each store of a recording, with its likely causes.

A twin drifts for four kinds of reasons: events were lost (`gaps`), never reported (`coverage`), cost more or less than
the model says (`rules`), or belong to the backlog from before its start (`baseline`). What tells them apart is in the
state record and in the counts of puts and gets of each queue.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kernels import OPS, layout
from twin.conditions import Pool
from twin.estate import Estate
from twin.events import Decoded
from twin.playback.replays import Player, decoded_chunks, play
from twin.records import StateRecord
from twin.state.arrays import Array
from twin.stores.message_store import MessageStore

MAX_POINTS = 10_000  # of a resource; then every second one is dropped
_MEASURE = OPS.index("MEASURE")
_PUT, _GET = OPS.index("PUT"), OPS.index("GET")
_SAME_PCT = 1.0  # points of drift within which a resource agrees
_MANY_PUTS = 20  # without a get, before gets are missed
_COUNTERS = ("gaps", "unmatched_gets", "overfull_puts", "full_puts", "refused_alters")


class Cause(StrEnum):
    """Kind of a reason for drift."""

    GAPS = "gaps"
    COVERAGE = "coverage"
    RULES = "rules"
    BASELINE = "baseline"


@dataclass(frozen=True, slots=True)
class DriftPoint:
    """Model and measurement of a resource at a time (microseconds since 1970), in its unit."""

    time: int
    model: float
    measured: float
    total: float

    @property
    def pct(self) -> float:
        """Model minus measurement, percent of the total."""
        return 100.0 * (self.model - self.measured) / self.total


@dataclass(slots=True)
class ResourceDrift:
    """Points of a resource in order of time; the first one set the baseline."""

    resource: str
    points: list[DriftPoint] = field(default_factory=list)
    _every: int = 1
    _skipped: int = 0

    def add(self, point: DriftPoint) -> None:
        """Append a point. Beyond MAX_POINTS every second one is dropped, but never the latest."""
        if len(self.points) >= MAX_POINTS:
            self.points = [*self.points[:-1:2], self.points[-1]]
            self._every *= 2
        if self._skipped and self.points:
            self.points.pop()  # the latest, which was kept only as such
        self.points.append(point)
        self._skipped = (self._skipped + 1) % self._every

    @property
    def last_pct(self) -> float:
        """Drift of the last measurement, percent of the total."""
        return self.points[-1].pct

    @property
    def worst(self) -> DriftPoint:
        """Point of the largest drift, either way."""
        return max(self.points, key=lambda point: abs(point.pct))


@dataclass(slots=True)
class StoreDrift:
    """Drift of a store.

    Attributes:
        tolerance_pct: drift beyond it counts for the alert.
        resources: by name, sorted.
        causes: kind and sentence of each likely cause.
        state: last state record.
    """

    store: str
    tolerance_pct: float
    resources: dict[str, ResourceDrift]
    causes: list[tuple[Cause, str]]
    state: StateRecord


@dataclass(slots=True)
class Observed:
    """Observations of a store while a recording is played.

    Attributes:
        resources: model and measurement by resource, as of after each measurement.
        tested: likewise, the model as of just before; without the measurements that tested nothing.
        sizes: (model, measured) by field: of the last measurement, or, where the twin takes them over, of the first.
    """

    resources: dict[str, ResourceDrift] = field(default_factory=dict)
    tested: dict[str, ResourceDrift] = field(default_factory=dict)
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)
    puts: Counter[str] = field(default_factory=Counter)
    gets: Counter[str] = field(default_factory=Counter)
    measurements: int = 0
    baseline: Mapping[str, object] | None = None


@dataclass(slots=True)
class Observation:
    """A recording, as its events and measurements show the twins.

    Attributes:
        stores: by name; those without an event are absent.
        states: last state records, by name.
        tolerances: percent, of the stores with a measurement, by name.
        unknown: events that name queues or stores which the estate lacks.
        heard: events by route of the estate.
        calls: operations on queues, by route.
        numbered: those of them with `seq`, by route.
        counted: those of them that stand for several messages, by route.
        begin, end: earliest and latest event time, microseconds; None without events.
    """

    stores: dict[str, Observed]
    states: dict[str, StateRecord]
    tolerances: dict[str, float]
    unknown: int
    heard: Array
    calls: Array
    numbered: Array
    counted: Array
    begin: int | None = None
    end: int | None = None

    def causes(self, store: str) -> list[tuple[Cause, str]]:
        """Return the likely causes of the drift of a store with a measurement, most certain first."""
        return _causes(self.stores[store], self.states[store], self.unknown)


def observe(path: str | Path, estate: Estate) -> Observation:
    """Play a recording and return what its events and measurements show. Arguments and errors as of `measure_drift`."""
    player = Player(estate)
    seen: defaultdict[str, Observed] = defaultdict(Observed)
    heard, calls, numbered, counted = np.zeros((4, len(estate.routes)), np.int64)
    result = Observation(seen, {}, {}, 0, heard, calls, numbered, counted)

    def count(chunks: Iterable[Decoded]) -> Iterator[Decoded]:
        for decoded in chunks:
            result.unknown += sum(str(reject.reason).startswith("unknown-") for reject in decoded.rejects)
            _count_calls(decoded, estate, seen)
            _count_events(decoded, result)
            yield decoded

    for piece, _ in play(count(decoded_chunks(path, estate)), player, _split_by_measure):
        last = len(piece) - 1
        if last in piece.extras and piece.events["op"][last] == _MEASURE:
            store = estate.routes[int(piece.events["route"][last])].store
            twin = player.twins[store]
            if isinstance(twin, MessageStore):
                _note(seen[store], twin, msgspec.json.decode(piece.extras[last]))
                result.tolerances[store] = twin.config.drift_tolerance_pct
    result.stores, result.states = dict(sorted(seen.items())), player.states()
    return result


def measure_drift(path: str | Path, estate: Estate) -> dict[str, StoreDrift]:
    """Play a recording and return the drift of each store with a measurement, by store name, sorted.

    Args:
        path: the recording.
        estate: the estate.

    Raises:
        UsageError: the file is missing, has an unknown suffix, or cannot be read to its end.
    """
    seen = observe(path, estate)
    return {
        name: StoreDrift(
            name, seen.tolerances[name], dict(sorted(own.resources.items())), seen.causes(name), seen.states[name]
        )
        for name, own in seen.stores.items()
        if own.measurements
    }


def _split_by_measure(decoded: Decoded) -> Iterator[Decoded]:
    """Split events behind each MEASURE."""
    return decoded.split((np.flatnonzero(decoded.events["op"] == _MEASURE) + 1).tolist())


def _count_calls(decoded: Decoded, estate: Estate, seen: defaultdict[str, Observed]) -> None:
    """Count the puts and gets that storage noticed, by store and queue."""
    events = decoded.events
    for op in (_PUT, _GET):
        rows = events[(events["op"] == op) & (events["reason"] == 0)]
        counts = np.bincount(rows["route"], np.maximum(rows["count"], 1), minlength=1) if rows.size else np.zeros(0)
        for index in np.flatnonzero(counts).tolist():
            route = estate.routes[index]
            counter = seen[route.store].puts if op == _PUT else seen[route.store].gets
            counter[route.queue or ""] += int(counts[index])


def _count_events(decoded: Decoded, seen: Observation) -> None:
    """Count the events of each route, and their times."""
    events, size = decoded.events, len(seen.heard)
    if not events.size:
        return
    begin, end = int(events["time"].min()), int(events["time"].max())
    seen.begin = begin if seen.begin is None else min(begin, seen.begin)
    seen.end = end if seen.end is None else max(end, seen.end)
    seen.heard += np.bincount(events["route"], minlength=size)
    calls = events[events["op"] <= layout.CLEAR]
    seen.calls += np.bincount(calls["route"], minlength=size)
    seen.numbered += np.bincount(calls["route"][calls["seq"] >= 0], minlength=size)
    seen.counted += np.bincount(calls["route"][calls["count"] > 1], minlength=size)


def _note(seen: Observed, twin: MessageStore, measured: dict[str, Any]) -> None:
    seen.measurements += 1
    state = twin.state()
    seen.baseline = state.baseline
    time = twin.clock
    for compared, resources in ((twin.compare(measured), seen.resources), (twin.tested, seen.tested)):
        for resource, (model, real, total) in compared.items():
            if total > 0:
                resources.setdefault(str(resource), ResourceDrift(str(resource))).add(
                    DriftPoint(time, model, real, total)
                )
    for size in twin.found_sizes:
        name = size.field if size.resource.pool != Pool.SMDS else f"{size.resource_text}, {size.field}"
        if not twin.is_believed or name not in seen.sizes:
            seen.sizes[name] = size.model, size.measured


def _causes(seen: Observed, state: StateRecord, unknown: int) -> list[tuple[Cause, str]]:
    """Return the likely causes of the drift of a store, most certain first."""
    last = {name: resource.last_pct for name, resource in seen.resources.items()}
    causes: list[tuple[Cause, str]] = []
    if state.gaps:
        causes.append((Cause.GAPS, f"{state.gaps:,} numbers of `seq` are missing: their events were lost"))
    if unknown:
        causes.append((Cause.COVERAGE, f"{unknown:,} events of the recording name queues or stores not in the estate"))
    worst = max(last.items(), key=lambda entry: abs(entry[1]), default=("", 0.0))
    for queue in sorted(seen.puts.keys() | seen.gets.keys()):
        puts, gets = seen.puts[queue], seen.gets[queue]
        # Gets that are missing leave the model above what is measured, puts below it.
        if puts >= _MANY_PUTS and not gets and worst[1] >= -_SAME_PCT:
            causes.append((Cause.COVERAGE, f"{queue}: {puts:,} puts and no get: its gets may not be reported"))
        elif gets >= _MANY_PUTS and not puts and worst[1] <= _SAME_PCT:
            causes.append((Cause.COVERAGE, f"{queue}: {gets:,} gets and no put: its puts may not be reported"))
    baseline = seen.baseline or {}
    messages = baseline.get("messages")
    held = messages if isinstance(messages, int) else 0
    unmatched = state.unmatched_gets
    if unmatched > held:
        text = f"{unmatched:,} gets found no message"
        text += f", {held:,} of them can be of the baseline" if held else ""
        causes.append((Cause.COVERAGE, f"{text}: puts were not reported, or events came out of order"))
    elif unmatched:
        text = f"{unmatched:,} of {held:,} messages of the baseline were got; each counts as an equal share of it"
        causes.append((Cause.BASELINE, text))
    elif held and any(abs(pct) > _SAME_PCT for pct in last.values()):
        text = f"none of the {held:,} messages of the baseline was got by an unmatched get"
        causes.append((Cause.BASELINE, text))
    causes += _rule_causes(seen, state, last)
    if not causes and abs(worst[1]) > _SAME_PCT:
        calls = "gets or expiries" if worst[1] > 0 else "puts"
        more = "more" if worst[1] > 0 else "less"
        text = f"the model has {more} {worst[0]} than measured, for no other reason: some {calls} are not reported"
        causes.append((Cause.COVERAGE, text))
    return causes


def _rule_causes(seen: Observed, state: StateRecord, last: Mapping[str, float]) -> list[tuple[Cause, str]]:
    causes: list[tuple[Cause, str]] = []
    for name, (model, real) in sorted(seen.sizes.items()):
        if model != real:
            causes.append((Cause.RULES, f"{name}: {real:,} measured, {model:,} in the model; compare the estate"))
    if state.overfull_puts:
        text = f"{state.overfull_puts:,} puts succeeded that did not fit by the model: it counts too much"
        causes.append((Cause.RULES, text))
    entries, elements = last.get("entries"), last.get("elements")
    if entries is not None and elements is not None and abs(entries) <= _SAME_PCT < abs(elements):
        text = (
            "entries agree, elements do not: lengths differ (headers, properties, means of statistics), or offloading"
        )
        causes.append((Cause.RULES, text))
    if state.refused_alters:
        causes.append((Cause.RULES, f"{state.refused_alters:,} ALTER were refused by the model"))
    return causes
