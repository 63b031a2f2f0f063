"""Silent sources: the heartbeat that reports one, the alert that it opens, and the event that clears it.

The streaming job notes, by wall time, when each queue manager last sent an event. For a silent one it writes a
HEARTBEAT with `measured.silent_s` to the events topic, for each of its stores. The twin's result depends on the records
alone: the alert `source-silent` opens at such a heartbeat and clears at the next other event of that queue manager.
Sources: docs/events.md, "Silent sources".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from kernels.clock import SECOND
from kernels.layout import HEARTBEAT
from twin.alerts.episodes import Alert, Episodes, Finding
from twin.alerts.runbook import Facts, Runbook
from twin.conditions import Condition, Pool, Resource
from twin.estate import Estate
from twin.records import Action
from twin.state.arrays import Array
from twin.units import as_local, as_span, as_text

if TYPE_CHECKING:
    from twin.events import EventBlock


class Change(NamedTuple):
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


def find_changes(
    block: EventBlock, qmgr_rows: Array, qmgrs: Sequence[str], members: Collection[str], episodes: Episodes
) -> list[Change]:
    """Return the rows, in order, at which queue managers (`qmgr_rows`: i8[n]) go silent or are heard from again."""
    reports = is_report(block)
    silent = {episode.resource.owner for episode in episodes if episode.condition == Condition.SOURCE_SILENT}
    candidates = silent | {qmgrs[row] for row in np.unique(qmgr_rows[reports])}
    changes = [Change(0, qmgr, is_silent=False, is_gone=True) for qmgr in silent.difference(members) if len(block)]
    for qmgr in candidates.intersection(members):
        rows = np.flatnonzero(qmgr_rows == qmgrs.index(qmgr))
        is_silent = np.concatenate([[qmgr in silent], reports[rows]])
        changes += [Change(row, qmgr, bool(reports[row])) for row in rows[is_silent[1:] != is_silent[:-1]].tolist()]
    return sorted(changes)


def make_alerts(
    change: Change, event: np.void, content: bytes, episodes: Episodes, store: str, now: int
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
    return episodes.clear(episode, _finding(source, cause, ()), now)


def _silent_finding(source: Resource, store: str, time: int, silent_s: int, zone: tzinfo, runbook: Runbook) -> Finding:
    """Return the finding that a queue manager is silent; time: time of the heartbeat, microseconds since 1970."""
    qmgr, since = source.owner, as_local(time - silent_s * SECOND, zone, seconds=True)
    return _finding(
        source,
        f"{qmgr}: no event for {as_span(silent_s)}, since {since}. The twin shows {store} as of that time; the current"
        " usage is not known.",
        runbook.actions(Condition.SOURCE_SILENT, Facts(frozenset(("source",)), {"qmgr": qmgr, "store": store})),
    )


def _finding(source: Resource, cause: str, actions: tuple[Action, ...]) -> Finding:
    return Finding(
        condition=Condition.SOURCE_SILENT,
        resource=source,
        severity=Condition.SOURCE_SILENT.severity,
        cause=cause,
        runbook=actions,
    )
