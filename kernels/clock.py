"""The clock of a store: the latest event time, and ticks on a fixed raster of it.

An event more than 24 hours ahead of the clock does not move it, unless the store's very next event lies within 24 hours
of that event: then both do. A clock that a majority of later events contradicts goes back: `support` counts the events
within 24 hours of the clock, minus those further behind, since the clock last jumped. A clock without support was
wrong. The comparisons with 24 hours are plain functions, for the clocks that Python keeps, and compiled for kernels.
The rule: docs/events.md#time.
"""

from __future__ import annotations

from kernels._compile import kernel
from kernels.layout import NEVER, Store

SECOND = 1_000_000  # microseconds
TICK = 10 * SECOND  # the raster of event time on which everything that depends on the clock acts
MINUTE_TICKS = 60 * SECOND // TICK
HALF_HOUR_TICKS = 30 * MINUTE_TICKS
FAR = 24 * 3600 * SECOND  # an event further from the clock than this does not move it alone
TRUST = 100  # the support of a clock that has just jumped, in events
MAX_SUPPORT = 1_000_000  # events


def is_far_ahead(clock: int, time: int) -> bool:
    """Return True if an event is too far ahead of the clock to move it alone. clock: NEVER before the first event."""
    return clock != NEVER and time > clock + FAR


def is_far_behind(clock: int, time: int) -> bool:
    """Return True if an event contradicts the clock. clock: NEVER before the first event."""
    return clock != NEVER and time < clock - FAR


def confirms_far(far: int, time: int) -> bool:
    """Return True if an event confirms the previous one, `far`, that was too far ahead; NEVER: it was not."""
    return far != NEVER and abs(time - far) <= FAR


def latest_behind(back: int, time: int) -> int:
    """Return the latest time that contradicts the clock, among those within 24 hours of the last one.

    Args:
        back: that time before the last one, or NEVER.
        time: the last one.
    """
    if back == NEVER or abs(time - back) > FAR:
        return time
    return max(back, time)


_is_far_ahead = kernel(is_far_ahead)
_is_far_behind = kernel(is_far_behind)
_confirms_far = kernel(confirms_far)
_latest_behind = kernel(latest_behind)


@kernel
def clock_after(store: Store, time: int) -> int:
    """Return the clock, microseconds, after an event of that time that does not turn it back, without moving it."""
    scalars = store.scalars[0]
    if _confirms_far(scalars.far, time):
        return max(scalars.clock, scalars.far, time)
    if _is_far_ahead(scalars.clock, time):
        return scalars.clock
    return max(scalars.clock, time)


@kernel
def is_tick_due(store: Store, time: int) -> bool:
    """Return True if an event of that time moves the clock over a tick, or is the first. It divides nothing."""
    tick = store.scalars[0].tick
    return bool(tick == NEVER or clock_after(store, time) >= (tick + 1) * TICK)


@kernel
def turns_back(store: Store, time: int) -> bool:
    """Return True if an event of that time leaves the clock without support: the clock goes back before the event."""
    scalars = store.scalars[0]
    return scalars.support <= 1 and _is_far_behind(scalars.clock, time)


@kernel
def time_to_turn_to(store: Store, time: int) -> int:
    """Return the latest time that contradicts the clock, among those within 24 hours of the last one, `time`."""
    return _latest_behind(store.scalars[0].back, time)


@kernel
def move_clock(store: Store, time: int) -> None:
    """Move the clock to an accepted event, or note that the event was too far ahead or contradicts the clock."""
    scalars = store.scalars[0]
    after = clock_after(store, time)
    if scalars.clock == NEVER or _confirms_far(scalars.far, time):
        scalars.far = NEVER
        scalars.back = NEVER
        scalars.support = store.params[0].trust
    elif _is_far_ahead(scalars.clock, time):
        scalars.far = time
    else:
        scalars.far = NEVER
        if _is_far_behind(scalars.clock, time):
            scalars.support -= 1
            scalars.back = time_to_turn_to(store, time)
        else:
            scalars.support = min(scalars.support + 1, MAX_SUPPORT)
    scalars.clock = after
