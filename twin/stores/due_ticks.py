"""Which ticks the twin of a store has to run: those at which time alone can change something."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kernels import clock, layout
from twin.alerts.episodes import Episodes
from twin.alerts.resource_view import CALM_AFTER_FULL, CALM_FOR
from twin.conditions import Condition
from twin.state.tables import Tables
from twin.stores import expiry_scans, in_doubt

_CALM_TICKS = (CALM_AFTER_FULL + CALM_FOR) // clock.TICK + 2  # from the last change until time alone changes no alert


def due_ticks(tables: Tables, until: int, episodes: Episodes, is_busy: Callable[[], bool]) -> Iterator[tuple[int, int]]:
    """Yield (tick before, tick) for every tick to run up to `until`, which is always the last one.

    The store is looked at again after each tick that was run.

    Args:
        tables: the tables of the store, at their last tick.
        until: the present tick.
        episodes: open alerts.
        is_busy: True while each tick changes the store.
    """
    scalars = tables.store.scalars[0]
    settled_tick = (int(scalars["clock"]) + CALM_AFTER_FULL + CALM_FOR) // clock.TICK + 1
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
    scan_tick = expiry_scans.next_tick(store, tick)
    if scan_tick is not None:
        due.append(scan_tick)
    if episodes.get(Condition.IN_DOUBT, in_doubt.RESOURCE) is None:
        long_in_doubt = in_doubt.due_tick(store)
        if long_in_doubt is not None:
            due.append(max(tick + 1, long_in_doubt))
    return min(due, default=None)
