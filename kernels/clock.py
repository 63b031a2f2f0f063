"""The clock of a store: the latest event time, and ticks on a fixed raster of it.

An event more than 24 hours ahead of the clock does not move it, unless the store's very next event lies within 24 hours
of that event: then both do. A clock that a majority of later events contradicts goes back: `support` counts the events
within 24 hours of the clock, minus those further behind, since the clock last jumped. A clock without support was
wrong.

The rule: docs/events.md#time.
"""

from __future__ import annotations

from kernels._compile import kernel
from kernels.layout import NEVER, Store

SECOND = 1_000_000  # microseconds
TICK = 10 * SECOND  # the raster of event time on which everything that depends on the clock acts
MINUTE_TICKS = 60 * SECOND // TICK
FAR = 24 * 3600 * SECOND  # an event further from the clock than this does not move it alone
TRUST = 100  # the support of a clock that has just jumped, in events
MAX_SUPPORT = 1_000_000  # events


@kernel
def _is_far(clock: int, time: int) -> bool:
    return clock != NEVER and time > clock + FAR


@kernel
def _confirms_far(far: int, time: int) -> bool:
    """Return True if the previous event was too far ahead and this one lies within 24 hours of it."""
    return far != NEVER and abs(time - far) <= FAR


@kernel
def clock_after(store: Store, time: int) -> int:
    """Return the clock, microseconds, after an event of that time that does not turn it back, without moving it."""
    scalars = store.scalars[0]
    if _confirms_far(scalars.far, time):
        return max(scalars.clock, scalars.far, time)
    if _is_far(scalars.clock, time):
        return scalars.clock
    return max(scalars.clock, time)


@kernel
def turns_back(store: Store, time: int) -> bool:
    """Return True if an event of that time leaves the clock without support: the clock goes back before the event."""
    scalars = store.scalars[0]
    return scalars.support <= 1 and scalars.clock != NEVER and time < scalars.clock - FAR


@kernel
def time_to_turn_to(store: Store, time: int) -> int:
    """Return the latest time that contradicts the clock, among those within 24 hours of the last one, `time`."""
    back = store.scalars[0].back
    if back == NEVER or abs(time - back) > FAR:
        return time
    return max(back, time)


@kernel
def move_clock(store: Store, time: int) -> None:
    """Move the clock to an accepted event, or note that the event was too far ahead or contradicts the clock."""
    scalars = store.scalars[0]
    after = clock_after(store, time)
    if scalars.clock == NEVER or _confirms_far(scalars.far, time):
        scalars.far = NEVER
        scalars.back = NEVER
        scalars.support = store.params[0].trust
    elif _is_far(scalars.clock, time):
        scalars.far = time
    else:
        scalars.far = NEVER
        if time >= scalars.clock - FAR:
            scalars.support = min(scalars.support + 1, MAX_SUPPORT)
        else:
            scalars.support -= 1
            scalars.back = time_to_turn_to(store, time)
    scalars.clock = after
