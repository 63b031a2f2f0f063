"""A store's clock: event time only, and ticks on a fixed raster of it.

Source: contract section 7 ("An event more than 24 hours ahead of a store's clock does not move the clock, unless the
store's very next event lies within 24 hours of it: then both do."). A clock that a majority of later events contradicts
goes back: `support` counts the events within 24 hours of the clock less those further behind, since it last jumped.
Where nothing is left of it, the clock was wrong.
"""

from __future__ import annotations

from kernels._compile import kernel
from kernels.layout import NEVER, Store

SECOND = 1_000_000  # microseconds
TICK = 10 * SECOND  # whatever looks at the clock acts on this raster of event time
FAR = 24 * 3600 * SECOND
TRUST = 100  # by so many events must those contradict a clock that has just jumped
MAX_SUPPORT = 1_000_000


@kernel
def _is_far(clock: int, time: int) -> bool:
    return clock != NEVER and time > clock + FAR


@kernel
def clock_after(store: Store, time: int) -> int:
    """The clock, microseconds, as an event of that time leaves it that does not turn it back; changes nothing."""
    scalars = store.scalars[0]
    if scalars.far != NEVER and abs(time - scalars.far) <= FAR:
        return max(scalars.clock, scalars.far, time)
    if _is_far(scalars.clock, time):
        return scalars.clock
    return max(scalars.clock, time)


@kernel
def turns_back(store: Store, time: int) -> bool:
    """True if an event of that time leaves the clock without support: it goes back before the event."""
    scalars = store.scalars[0]
    return scalars.support <= 1 and scalars.clock != NEVER and time < scalars.clock - FAR


@kernel
def time_to_turn_to(store: Store, time: int) -> int:
    """The latest of the times that contradict the clock, of those within 24 hours of the last one, `time`."""
    back = store.scalars[0].back
    if back == NEVER or abs(time - back) > FAR:
        return time
    return max(back, time)


@kernel
def move_clock(store: Store, time: int) -> None:
    """Let an accepted event move the clock, or remember that it was too far ahead, or that it contradicts the clock."""
    scalars = store.scalars[0]
    after = clock_after(store, time)
    if scalars.clock == NEVER or (scalars.far != NEVER and abs(time - scalars.far) <= FAR):
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
