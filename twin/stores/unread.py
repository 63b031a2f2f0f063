"""Queues that nobody reads: the watch about one to which puts come and which no application has open for input.

It opens at a MEASURE, when that lasts longer than it ever did for the queue, and is reviewed at ticks: after five
minutes of one that grows, after longer of one to which little comes. It never pages: `full-forecast` does, where the
store will be full. Described in docs/alerts.md, "Conditions".
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import partial

from kernels.clock import SECOND
from twin.alerts import texts
from twin.alerts.episodes import Alert, Finding
from twin.alerts.readers import LONGER, QueueFact
from twin.conditions import Condition, Pool, Resource
from twin.forecast.view import ForecastView
from twin.records import Action, Filler
from twin.state.arrays import Array

_LEAST_GROWING = 300 * SECOND  # without a getter, of a queue that grows [assumed]
_GROWN, _GROWN_SHARE = 100, 0.01  # messages, or share of the store's bytes, from which it does [assumed]
_LEAST = 600 * SECOND  # without a getter, of a queue with a steady reader: restarts take less [assumed]
_LEAST_UNKNOWN = 3600 * SECOND  # the same of a queue that was not seen to be read for long [assumed]
_LATELY = 1800 * SECOND  # in which puts come, as rates by events are means of up to that [assumed]
_LATELY_GROWN = 60 * SECOND  # between two depths, of which the later must be larger
_MOST_OPEN = 20  # alerts of a store at a time, of its deepest queues: more are one trouble [assumed]


def check(view: ForecastView, now: int, away: AbstractSet[str] = frozenset()) -> list[Alert]:
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
            alerts += view.episodes.open(_finding(view, row, fact, now), now)
    return alerts


def review(view: ForecastView, now: int) -> list[Alert]:
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
        over = partial(_make, queue, f"{queue} {why}, alert cleared.")
        alerts += view.episodes.settle(episode, over, now, is_over=is_empty or not is_unread)
    return alerts


def _is_unusual(fact: QueueFact, longest: int, now: int, *, grows: bool) -> bool:
    """Return True if a queue is unread for longer than ever; `grows`: since it is unread."""
    if fact.unread_since is None:
        return False
    own = max((end - begin for begin, end in fact.absences), default=0)
    least = max(_LEAST_GROWING if grows else _LEAST, LONGER * own)
    if not own and not fact.is_steady and not grows:
        least = max(_LEAST_UNKNOWN, LONGER * longest)
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


def _finding(view: ForecastView, row: int, fact: QueueFact, now: int) -> Finding:
    queue, depth = view.queues[row], _depth(fact, view.tables.store.queues[row])
    sentence = texts.unread(queue, fact.unread_since or now, fact.asked, now, view.episodes.zone)
    cause = f"{sentence[0].upper()}{sentence[1:]}, longer than ever measured. {depth:,} messages wait, and puts come."
    facts = view.viewer().resource(Resource(Pool.QUEUE, queue)).facts(()).adding("unread")
    return _make(queue, cause, view.episodes.runbook.actions(Condition.QUEUE_UNREAD, facts))


def _make(queue: str, cause: str, runbook: tuple[Action, ...] = ()) -> Finding:
    return Finding(
        condition=Condition.QUEUE_UNREAD,
        resource=Resource(Pool.QUEUE, queue),
        severity=Condition.QUEUE_UNREAD.severity,
        fillers=(Filler(queue, 1.0),),
        cause=cause,
        runbook=runbook,
    )
