"""Conditions of time alone: units of work in doubt, silent sources, queues that nobody reads; and ticks.

- In doubt: a unit of work that was prepared long ago and neither committed nor backed out. Sources: [IBM: WebSphere MQ
  internals, "Undo Phase"] (prepared transactions stay); docs/alerts.md, "Conditions".
- Ticks: z/OS queue managers remove expired messages at fixed intervals of event time (EXPRYINT). Sources:
  docs/storage-model.md#expiry.
- Silent sources: the heartbeat that reports one, the alert that it opens, and the event that clears it. Sources:
  docs/events.md, "Silent sources".
- Unread queues: the watch about one to which puts come and which no application has open for input. Described in
  docs/alerts.md, "Conditions".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import tzinfo
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from kernels import clock, layout, messages, scm, watch
from kernels.clock import SECOND
from kernels.layout import HEARTBEAT
from twin.alerts import texts
from twin.alerts.episodes import CALM_FOR, STEP, Alert, Episodes, Finding
from twin.alerts.findings import CALM_AFTER_FULL
from twin.alerts.readers import LONGER_ABSENCE, QueueFact
from twin.alerts.texts import Facts, Runbook
from twin.base.conditions import UNITS, Condition, Pool, Resource
from twin.base.units import as_count, as_local, as_span, as_text
from twin.estate import Estate, StoreConfig
from twin.forecast.fill_model import ForecastView
from twin.records import Action, Filler
from twin.state.arrays import Array
from twin.state.tables import Tables

if TYPE_CHECKING:
    from twin.events import EventBlock


# --- units of work in doubt -------------------------------------------------------------------------------------------
# A prepared unit holds its storage, and its log records, until its transaction manager ends it, also over a restart.

IN_DOUBT_LIMIT = 30 * 60 * clock.SECOND  # event time in doubt from which the alert opens [assumed]


class InDoubt(NamedTuple):
    """The unit in doubt for longest."""

    since: int  # time of its PREPARE, microseconds
    qmgr: int  # row of its queue manager
    units: int  # number of units in doubt


def oldest_in_doubt(store: layout.Store) -> InDoubt | None:
    """Return the unit in doubt for longest of those that hold messages; None: there is none."""
    scalars = store.scalars[0]
    if scalars["in_doubt"] == 0:
        return None
    units = store.units[: int(scalars["unit_high"])]
    holding = (units["used"] == 1) & (units["prepared_at"] != layout.NEVER) & (units["head"] != layout.NONE)
    rows = np.flatnonzero(holding)
    oldest = rows[np.lexsort((units["opened"][rows], units["prepared_at"][rows]))[0]]
    return InDoubt(int(units["prepared_at"][oldest]), int(units["qmgr"][oldest]), rows.size)


def in_doubt_tick(store: layout.Store) -> int | None:
    """Return the tick at which the oldest unit has been in doubt for long; None: there is none."""
    oldest = oldest_in_doubt(store)
    return None if oldest is None else -(-(oldest.since + IN_DOUBT_LIMIT) // clock.TICK)


def check_in_doubt(
    store: layout.Store, estate: Estate, name: str, qmgrs: Sequence[str], episodes: Episodes, now: int
) -> list[Alert]:
    """Open, update or clear the alert about units in doubt; return what is published."""
    episode = episodes.get(Condition.IN_DOUBT, UNITS)
    oldest = oldest_in_doubt(store)
    is_over = oldest is None or now - oldest.since < IN_DOUBT_LIMIT
    cleared = f"{name}: no unit of work in doubt for {as_span(IN_DOUBT_LIMIT / clock.SECOND)} or longer, alert cleared."
    alerts = (
        []
        if episode is None
        else episodes.settle(episode, lambda: _make_in_doubt(store, cleared, ()), now, is_over=is_over)
    )
    if oldest is None or is_over:
        return alerts
    finding = _in_doubt_finding(store, estate, name, qmgrs, oldest, now, episodes.runbook)
    if episode is None:
        return episodes.open(finding, now)
    is_worse = (finding.usage_pct or 0.0) >= episode.usage_pct + STEP
    return episodes.update(episode, finding, now) if is_worse else []


def _in_doubt_finding(
    store: layout.Store, estate: Estate, name: str, qmgrs: Sequence[str], oldest: InDoubt, now: int, runbook: Runbook
) -> Finding:
    qmgr = qmgrs[oldest.qmgr]
    messages = int(store.scalars[0]["in_doubt"])
    described = estate.queue_managers.get(qmgr)
    is_distributed = described is not None and described.platform == "distributed"
    facts = Facts().where(units=True, distributed=is_distributed).adding(qmgr=qmgr, store=name)
    return _make_in_doubt(
        store,
        f"{name}: {as_count(messages, 'message')} of {as_count(oldest.units, 'unit')} of work in doubt, the oldest, of"
        f" {qmgr}, prepared {as_span((now - oldest.since) / clock.SECOND)} ago and neither committed nor backed out.",
        runbook.actions(Condition.IN_DOUBT, facts),
    )


def _make_in_doubt(store: layout.Store, cause: str, actions: tuple[Action, ...]) -> Finding:
    scalars = store.scalars[0]
    return Finding(
        condition=Condition.IN_DOUBT,
        resource=UNITS,
        severity=Condition.IN_DOUBT.severity,
        usage_pct=round(100.0 * int(scalars["in_doubt"]) / max(1, int(scalars["messages"])), 3),
        cause=cause,
        runbook=actions,
    )


# --- ticks ------------------------------------------------------------------------------------------------------------

_CALM_TICKS = (CALM_AFTER_FULL + 3 * CALM_FOR) // clock.TICK + 2  # until nothing changes by time alone


def due_ticks(tables: Tables, until: int, episodes: Episodes, is_busy: Callable[[], bool]) -> Iterator[tuple[int, int]]:
    """Yield (tick before, tick) for every tick to run up to `until`, which is always the last one.

    The store is looked at again after each tick that was run.
    """
    scalars = tables.store.scalars[0]
    settled_tick = int(scalars["clock"]) // clock.TICK + _CALM_TICKS
    tick = int(scalars["tick"])
    while tick < until:
        before, busy = tick, is_busy()
        if busy:
            settled_tick = max(settled_tick, tick + _CALM_TICKS)
        if busy or (episodes.any_open and tick < settled_tick) or until == tick + 1:
            tick += 1
        elif (due := _next_due(tables.store, tick, episodes)) is not None and due < until:
            tick = due
            settled_tick = max(settled_tick, due + _CALM_TICKS)
        else:
            tick = until
        yield before, tick


def _next_due(store: layout.Store, tick: int, episodes: Episodes) -> int | None:
    """Return the first tick after `tick` at which time alone removes messages or opens an alert, or None."""
    due = []
    scan_tick = _next_scan_tick(store, tick)
    if scan_tick is not None:
        due.append(scan_tick)
    if episodes.get(Condition.IN_DOUBT, UNITS) is None:
        long_in_doubt = in_doubt_tick(store)
        if long_in_doubt is not None:
            due.append(max(tick + 1, long_in_doubt))
    return min(due, default=None)


# --- scans ----------------------------------------------------------------------------------------------------------


def scan_interval_us(estate: Estate, config: StoreConfig) -> int:
    """Return the microseconds between two scans of a store; 0: none. The members of a group scan for each other."""
    qmgrs = [estate.queue_managers.get(name) for name in config.queue_managers]
    intervals = [round(qmgr.expiry_scan_s * clock.SECOND) for qmgr in qmgrs if qmgr is not None]
    return min((interval for interval in intervals if interval > 0), default=0)


def _next_scan_tick(store: layout.Store, tick: int) -> int | None:
    """Return the first tick after `tick` whose scan removes messages, or None."""
    interval = int(store.params[0]["scan_us"])
    if not interval or store.scalars[0]["expiring"] == 0:
        return None
    expires = int(messages.next_expiry(store, tick * clock.TICK))
    if expires == layout.NEVER:
        return None
    scan = max(-(-expires // interval), tick * clock.TICK // interval + 1)
    return -(-scan * interval // clock.TICK)


def run_scans(store: layout.Store, before: int, tick: int) -> None:
    """Remove what has expired at the scans after the tick `before`, up to `tick`."""
    interval = int(store.params[0]["scan_us"])
    if not interval or store.scalars[0]["expiring"] == 0:
        return
    scan = tick * clock.TICK // interval
    if scan > before * clock.TICK // interval:
        messages.scan_expired(store, scan * interval)
        if store.scm[0]["enrolled"]:
            watch.move(store, tick * clock.TICK * scm.NANOSECONDS)


# --- silent sources ---------------------------------------------------------------------------------------------------
# The streaming job notes, by wall time, when each queue manager last sent an event. For a silent one it writes a
# HEARTBEAT with `measured.silent_s` to the events topic, for each of its stores. The twin's result depends on the
# records alone: the alert `source-silent` opens at such a heartbeat and clears at the next other event of that queue
# manager.


class SilenceChange(NamedTuple):
    """A row of a block at which a queue manager goes silent or is heard from again."""

    row: int
    qmgr: str
    is_silent: bool
    is_gone: bool = False  # True if it has left the estate; its alert clears at the store's next event


def watched_queue_managers(estate: Estate) -> dict[str, float]:
    """Return the seconds of silence after which to report a queue manager, by name, for those that have `silence_s`."""
    return {name: qmgr.silence_s for name, qmgr in estate.queue_managers.items() if qmgr.silence_s is not None}


def heartbeat(qmgr: str, store: str, time: int, silent_s: int) -> bytes:
    """Return the HEARTBEAT that reports silence, seconds since the last event, as JSON."""
    return msgspec.json.encode(
        {"time": as_text(time), "qmgr": qmgr, "op": "HEARTBEAT", "store": store, "measured": {"silent_s": silent_s}}
    )


def is_report(block: EventBlock) -> Array:
    """Return bool[n]: True for the rows that report silence, the only HEARTBEATs that have extras."""
    reports = np.zeros(len(block), np.bool_)
    rows = [row for row in block.extras if block.events[row]["op"] == HEARTBEAT]
    reports[rows] = True
    return reports


def find_silence_changes(
    block: EventBlock, qmgr_rows: Array, qmgrs: Sequence[str], members: Collection[str], episodes: Episodes
) -> list[SilenceChange]:
    """Return the rows, in order, at which queue managers (`qmgr_rows`: i8[n]) go silent or are heard from again."""
    reports = is_report(block)
    silent = {episode.resource.owner for episode in episodes if episode.condition == Condition.SOURCE_SILENT}
    candidates = silent | {qmgrs[row] for row in np.unique(qmgr_rows[reports])}
    changes = [
        SilenceChange(0, qmgr, is_silent=False, is_gone=True) for qmgr in silent.difference(members) if len(block)
    ]
    for qmgr in candidates.intersection(members):
        rows = np.flatnonzero(qmgr_rows == qmgrs.index(qmgr))
        is_silent = np.concatenate([[qmgr in silent], reports[rows]])
        changes += [
            SilenceChange(row, qmgr, bool(reports[row])) for row in rows[is_silent[1:] != is_silent[:-1]].tolist()
        ]
    return sorted(changes)


def make_silence_alerts(
    change: SilenceChange, event: np.void, content: bytes, episodes: Episodes, store: str, now: int
) -> list[Alert]:
    """Open or clear the alert of a queue manager; return what is published. A heartbeat's time is the wall clock."""
    source = Resource(Pool.SOURCE, change.qmgr)
    if change.is_silent:
        silent_s = msgspec.json.decode(content)["silent_s"]
        finding = _silent_finding(source, store, int(event["time"]), silent_s, episodes.zone, episodes.runbook)
        return episodes.open(finding, now)
    episode = episodes.get(Condition.SOURCE_SILENT, source)
    assert episode is not None
    cause = f"{change.qmgr}: events arrive again, alert cleared."
    if change.is_gone:
        cause = f"{change.qmgr}: the estate no longer has it as a user of {store}, alert cleared."
    return episodes.clear(episode, _silence_finding(source, cause, ()), now)


def _silent_finding(source: Resource, store: str, time: int, silent_s: int, zone: tzinfo, runbook: Runbook) -> Finding:
    """Return the finding that a queue manager is silent; time: time of the heartbeat, microseconds since 1970."""
    qmgr, since = source.owner, as_local(time - silent_s * SECOND, zone, seconds=True)
    return _silence_finding(
        source,
        f"{qmgr}: no event for {as_span(silent_s)}, since {since}. The twin shows {store} as of that time; the current"
        " usage is not known.",
        runbook.actions(Condition.SOURCE_SILENT, Facts(frozenset(("source",)), {"qmgr": qmgr, "store": store})),
    )


def _silence_finding(source: Resource, cause: str, actions: tuple[Action, ...]) -> Finding:
    return Finding(
        condition=Condition.SOURCE_SILENT,
        resource=source,
        severity=Condition.SOURCE_SILENT.severity,
        cause=cause,
        runbook=actions,
    )


# --- queues that nobody reads -----------------------------------------------------------------------------------------
# The watch opens at a MEASURE, when that lasts longer than it ever did for the queue, and is reviewed at ticks: after
# five minutes of one that grows, after longer of one to which little comes. It never pages: `full-forecast` does, where
# the store will be full.

_LEAST_GROWING = 300 * SECOND  # without a getter, of a queue that grows [assumed]
_GROWN, _GROWN_SHARE = 100, 0.01  # messages, or share of the store's bytes, from which it does [assumed]
_LEAST = 600 * SECOND  # without a getter, of a queue with a steady reader: restarts take less [assumed]
_LEAST_UNKNOWN = 3600 * SECOND  # the same of a queue that was not seen to be read for long [assumed]
_LATELY = 1800 * SECOND  # in which puts come, as rates by events are means of up to that [assumed]
_LATELY_GROWN = 60 * SECOND  # between two depths, of which the later must be larger
_MOST_OPEN = 20  # alerts of a store at a time, of its deepest queues: more are one trouble [assumed]


def check_unread(view: ForecastView, now: int, away: AbstractSet[str] = frozenset()) -> list[Alert]:
    """Open the alerts about unread queues at a measurement; return what is published. `away`: as planned; "": all."""
    rows = view.tables.store.queues[: len(view.queues)]
    unread = view.readers.unread(view.queues, rows, now)
    if not unread:
        return []
    longest = max((end - begin for fact in view.readers.facts.values() for begin, end in fact.absences), default=0)
    number = sum(episode.condition == Condition.QUEUE_UNREAD for episode in view.episodes)
    alerts: list[Alert] = []
    for row in sorted(unread, key=lambda row: (-_depth(unread[row], rows[row]), view.queues[row])):
        fact, resource = unread[row], Resource(Pool.QUEUE, view.queues[row])
        if (
            number >= _MOST_OPEN
            or not away.isdisjoint(("", view.queues[row]))
            or view.episodes.get(Condition.QUEUE_UNREAD, resource) is not None
        ):
            continue
        grows = _grows(fact, rows[row], view.config.total_bytes, now)
        if _is_unusual(fact, longest, now, grows=grows) and _is_put_to(fact, rows[row], now):
            number += 1
            alerts += view.episodes.open(_unread_finding(view, row, fact, now), now)
    return alerts


def review_unread(view: ForecastView, now: int) -> list[Alert]:
    """Clear the alerts about queues that are read again, empty, or not measured any more. now: microseconds."""
    alerts: list[Alert] = []
    rows = view.tables.store.queues
    for episode in view.episodes:
        if episode.condition != Condition.QUEUE_UNREAD:
            continue
        queue = episode.resource.owner
        row = rows[view.queues.index(queue)]
        fact = view.readers.facts.get(queue)
        is_known = fact is not None and fact.counts(now, fact.getters_at)
        is_unread = fact is not None and fact.known_getters(now, int(row["gets"])) == 0
        is_empty = fact is not None and not _depth(fact, row)
        why = "is empty" if is_empty else "is open for input again" if is_known else "is not measured any more"
        over = partial(_make_unread, queue, f"{queue} {why}, alert cleared.")
        alerts += view.episodes.settle(episode, over, now, is_over=is_empty or not is_unread)
    return alerts


def _is_unusual(fact: QueueFact, longest: int, now: int, *, grows: bool) -> bool:
    """Return True if a queue is unread for longer than ever; `grows`: since it is unread."""
    if fact.unread_since is None:
        return False
    own = max((end - begin for begin, end in fact.absences), default=0)
    least = max(_LEAST_GROWING if grows else _LEAST, LONGER_ABSENCE * own)
    if not own and not fact.is_steady and not grows:
        least = max(_LEAST_UNKNOWN, LONGER_ABSENCE * longest)
    absent = now - fact.unread_since
    return absent >= least if grows else absent > least


def _grows(fact: QueueFact, row: Array, total: int, now: int) -> bool:
    """Return True if a queue has grown by more than a few messages since it was found unread, and lately too."""
    if fact.unread_since is None:
        return False
    before = [depth for time, depth in fact.samples if time < now - _LATELY_GROWN]
    if fact.depth is not None and before and fact.depth <= before[-1]:
        return False
    if not row["puts"]:
        return (fact.depth or 0) - fact.unread_depth >= _GROWN
    grown = int(row["puts"]) - fact.puts
    return grown >= _GROWN or grown * int(row["bytes"]) >= _GROWN_SHARE * total * max(1, int(row["depth"]))


def _is_put_to(fact: QueueFact, row: Array, now: int) -> bool:
    """Return True if messages were put to an unread queue since it was found so, lately too, and it holds some."""
    lately = max(fact.unread_since or 0, now - _LATELY)
    is_put = int(row["puts"]) > max(fact.puts, int(row["puts_before"])) or (fact.last_put or 0) > lately
    depth = fact.depth or 0
    is_deeper = depth > fact.unread_depth and any(time >= lately and depth > earlier for time, earlier in fact.samples)
    return (is_put or is_deeper) and _depth(fact, row) > 0


def _depth(fact: QueueFact, row: Array) -> int:
    """Return the messages of a queue, as events have them, or else as they were measured. row: QUEUE."""
    return int(row["depth"]) if row["puts"] else fact.depth or 0


def _unread_finding(view: ForecastView, row: int, fact: QueueFact, now: int) -> Finding:
    queue, depth = view.queues[row], _depth(fact, view.tables.store.queues[row])
    sentence = texts.unread(queue, fact.unread_since or now, fact.asked, now, view.episodes.zone)
    cause = f"{sentence[0].upper()}{sentence[1:]}, longer than ever measured. {depth:,} messages wait, and puts come."
    facts = view.viewer().resource(Resource(Pool.QUEUE, queue)).facts(()).adding("unread")
    return _make_unread(queue, cause, view.episodes.runbook.actions(Condition.QUEUE_UNREAD, facts))


def _make_unread(queue: str, cause: str, runbook: tuple[Action, ...] = ()) -> Finding:
    return Finding(
        condition=Condition.QUEUE_UNREAD,
        resource=Resource(Pool.QUEUE, queue),
        severity=Condition.QUEUE_UNREAD.severity,
        fillers=(Filler(queue, 1.0),),
        cause=cause,
        runbook=runbook,
    )
