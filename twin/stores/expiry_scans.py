"""Scans for expired messages: z/OS queue managers remove them at fixed intervals of event time (EXPRYINT).

Sources: docs/storage-model.md#expiry.
"""

from __future__ import annotations

from kernels import clock, expiry, layout, scm, watch
from twin.estate import Estate, StoreConfig


def interval_us(estate: Estate, config: StoreConfig) -> int:
    """Return the microseconds between two scans of a store; 0: none. The members of a group scan for each other."""
    qmgrs = [estate.queue_managers.get(name) for name in config.queue_managers]
    intervals = [round(qmgr.expiry_scan_s * clock.SECOND) for qmgr in qmgrs if qmgr is not None]
    return min((interval for interval in intervals if interval > 0), default=0)


def next_tick(store: layout.Store, tick: int) -> int | None:
    """Return the first tick after `tick` whose scan removes messages, or None."""
    interval = int(store.params[0]["scan_us"])
    if not interval or store.scalars[0]["expiring"] == 0:
        return None
    expires = int(expiry.next_expiry(store, tick * clock.TICK))
    if expires == layout.NEVER:
        return None
    scan = max(-(-expires // interval), tick * clock.TICK // interval + 1)
    return -(-scan * interval // clock.TICK)


def run(store: layout.Store, before: int, tick: int) -> None:
    """Remove what has expired at the scans after the tick `before`, up to `tick`."""
    interval = int(store.params[0]["scan_us"])
    if not interval or store.scalars[0]["expiring"] == 0:
        return
    scan = tick * clock.TICK // interval
    if scan > before * clock.TICK // interval:
        expiry.scan(store, scan * interval)
        if store.scm[0]["enrolled"]:
            watch.move(store, tick * clock.TICK * scm.NANOSECONDS)
