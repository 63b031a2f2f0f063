"""Units of work in doubt: the alert about one that was prepared long ago and neither committed nor backed out.

A prepared unit holds its storage, and its log records, until its transaction manager ends it, also over a restart.
Sources: [IBM: WebSphere MQ internals, "Undo Phase"] (prepared transactions stay); docs/alerts.md, "Conditions".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kernels import clock, layout
from twin.alerts.episodes import STEP, Alert, Episodes, Finding
from twin.alerts.runbook import Facts, Runbook
from twin.conditions import UNITS, Condition
from twin.estate import Estate
from twin.records import Action
from twin.units import as_count, as_span

LIMIT = 30 * 60 * clock.SECOND  # event time in doubt from which the alert opens [assumed]


class InDoubt(NamedTuple):
    """The unit in doubt for longest."""

    since: int  # time of its PREPARE, microseconds
    qmgr: int  # row of its queue manager
    units: int  # number of units in doubt


def find_oldest(store: layout.Store) -> InDoubt | None:
    """Return the unit in doubt for longest of those that hold messages; None: there is none."""
    scalars = store.scalars[0]
    if scalars["in_doubt"] == 0:
        return None
    units = store.units[: int(scalars["unit_high"])]
    holding = (units["used"] == 1) & (units["prepared_at"] != layout.NEVER) & (units["head"] != layout.NONE)
    rows = np.flatnonzero(holding)
    oldest = rows[np.lexsort((units["opened"][rows], units["prepared_at"][rows]))[0]]
    return InDoubt(int(units["prepared_at"][oldest]), int(units["qmgr"][oldest]), rows.size)


def due_tick(store: layout.Store) -> int | None:
    """Return the tick at which the oldest unit has been in doubt for long; None: there is none."""
    oldest = find_oldest(store)
    return None if oldest is None else -(-(oldest.since + LIMIT) // clock.TICK)


def check(
    store: layout.Store, estate: Estate, name: str, qmgrs: Sequence[str], episodes: Episodes, now: int
) -> list[Alert]:
    """Open, update or clear the alert about units in doubt; return what is published."""
    episode = episodes.get(Condition.IN_DOUBT, UNITS)
    oldest = find_oldest(store)
    is_over = oldest is None or now - oldest.since < LIMIT
    cleared = f"{name}: no unit of work in doubt for {as_span(LIMIT / clock.SECOND)} or longer, alert cleared."
    alerts = (
        [] if episode is None else episodes.settle(episode, lambda: _make(store, cleared, ()), now, is_over=is_over)
    )
    if oldest is None or is_over:
        return alerts
    finding = _finding(store, estate, name, qmgrs, oldest, now, episodes.runbook)
    if episode is None:
        return episodes.open(finding, now)
    is_worse = (finding.usage_pct or 0.0) >= episode.usage_pct + STEP
    return episodes.update(episode, finding, now) if is_worse else []


def _finding(
    store: layout.Store, estate: Estate, name: str, qmgrs: Sequence[str], oldest: InDoubt, now: int, runbook: Runbook
) -> Finding:
    qmgr = qmgrs[oldest.qmgr]
    messages = int(store.scalars[0]["in_doubt"])
    described = estate.queue_managers.get(qmgr)
    is_distributed = described is not None and described.platform == "distributed"
    facts = Facts().where(units=True, distributed=is_distributed).adding(qmgr=qmgr, store=name)
    return _make(
        store,
        f"{name}: {as_count(messages, 'message')} of {as_count(oldest.units, 'unit')} of work in doubt, the oldest, of"
        f" {qmgr}, prepared {as_span((now - oldest.since) / clock.SECOND)} ago and neither committed nor backed out.",
        runbook.actions(Condition.IN_DOUBT, facts),
    )


def _make(store: layout.Store, cause: str, actions: tuple[Action, ...]) -> Finding:
    scalars = store.scalars[0]
    return Finding(
        condition=Condition.IN_DOUBT,
        resource=UNITS,
        severity=Condition.IN_DOUBT.severity,
        usage_pct=round(100.0 * int(scalars["in_doubt"]) / max(1, int(scalars["messages"])), 3),
        cause=cause,
        runbook=actions,
    )
