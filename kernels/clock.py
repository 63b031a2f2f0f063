"""A store's clock: event time only, and ticks on a fixed raster of it.

Source: contract section 7 ("An event more than 24 hours ahead of a store's clock does not move the clock, unless the
store's very next event lies within 24 hours of it: then both do.").
"""

from __future__ import annotations

from kernels._compile import kernel
from kernels.layout import NEVER, Store

SECOND = 1_000_000  # microseconds
TICK = 10 * SECOND  # whatever looks at the clock acts on this raster of event time
FAR = 24 * 3600 * SECOND


@kernel
def _is_far(clock: int, time: int) -> bool:
    return clock != NEVER and time > clock + FAR


@kernel
def clock_after(store: Store, time: int) -> int:
    """The clock, microseconds, as an event of that time leaves it; changes nothing."""
    scalars = store.scalars[0]
    if scalars.far != NEVER and abs(time - scalars.far) <= FAR:
        return max(scalars.clock, scalars.far, time)
    if _is_far(scalars.clock, time):
        return scalars.clock
    return max(scalars.clock, time)


@kernel
def move_clock(store: Store, time: int) -> None:
    """Let an accepted event move the clock, or remember that it was too far ahead."""
    scalars = store.scalars[0]
    after = clock_after(store, time)
    together = scalars.far != NEVER and abs(time - scalars.far) <= FAR
    if not together and _is_far(scalars.clock, time):
        scalars.far = time
    else:
        scalars.far = NEVER
    scalars.clock = after
