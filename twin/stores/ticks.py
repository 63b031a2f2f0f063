"""Which ticks a twin has to run: those at which time alone can change something; and the scans for expired messages.

z/OS queue managers remove expired messages at fixed intervals of event time (EXPRYINT). Sources:
docs/storage-model.md#expiry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kernels import clock, expiry, layout, scm, watch
from twin.alerts.episodes import CALM_FOR, Episodes
from twin.alerts.resource_view import CALM_AFTER_FULL
from twin.conditions import UNITS, Condition
from twin.estate import Estate, StoreConfig
from twin.state.tables import Tables
from twin.stores import in_doubt

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
        long_in_doubt = in_doubt.due_tick(store)
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
    expires = int(expiry.next_expiry(store, tick * clock.TICK))
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
        expiry.scan(store, scan * interval)
        if store.scm[0]["enrolled"]:
            watch.move(store, tick * clock.TICK * scm.NANOSECONDS)
