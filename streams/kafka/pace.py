"""The speed of publishing: as fast as possible, at a rate, or in step with the event times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernels.clock import confirms_far, is_far_ahead
from kernels.layout import NEVER

GRAIN_S = 0.02  # events due within it are sent together

Times = npt.NDArray[Any]


class Slice(NamedTuple):
    """Rows from `start` up to `stop`. due_s: after the first event."""

    start: int
    stop: int
    due_s: float


class Pace:
    """The schedule of a publication; without `speed` and `rate` everything is due at once.

    Args:
        speed: seconds of event time per second.
        rate: events per second.
    """

    def __init__(self, *, speed: float | None = None, rate: float | None = None) -> None:
        self._speed = speed
        self._rate = rate
        self._sent = 0
        self._held_s = 0.0
        self._first_us: int | None = None
        self._clock_us = 0
        self._far_us = NEVER  # the previous time, if it was too far ahead

    @property
    def is_free(self) -> bool:
        """True if everything is due at once."""
        return self._speed is None and self._rate is None

    def hold(self, seconds: float) -> None:
        """Move everything that follows back by a time that was spent elsewhere, such as waiting for a reader."""
        self._held_s += seconds

    def slices(self, times: Times) -> Iterator[Slice]:
        """Yield the next events, cut into slices that are due together.

        Args:
            times: i8[n]: event times, microseconds since 1970.
        """
        if not times.size:
            return
        if self._rate is not None:
            slices = self._slices_by_rate(times.size, self._rate)
        elif self._speed is not None:
            slices = self._slices_by_time(times, self._speed)
        else:
            slices = iter((Slice(0, times.size, 0.0),))
        for rows in slices:
            yield rows._replace(due_s=rows.due_s + self._held_s)

    def _slices_by_rate(self, count: int, rate: float) -> Iterator[Slice]:
        step = max(1, int(rate * GRAIN_S))
        for start in range(0, count, step):
            stop = min(count, start + step)
            yield Slice(start, stop, self._sent / rate)
            self._sent += stop - start

    def _slices_by_time(self, times: Times, speed: float) -> Iterator[Slice]:
        if self._first_us is None:
            self._first_us = self._clock_us = int(times[0])
        due_s = (self._clock_times(times) - self._first_us) / (1e6 * speed)
        cuts = np.flatnonzero(np.diff(np.floor(due_s / GRAIN_S))) + 1
        for start, stop in zip([0, *cuts], [*cuts, times.size], strict=True):
            yield Slice(int(start), int(stop), float(due_s[start]))

    def _clock_times(self, times: Times) -> Times:
        """Return the clock at each event, i8[n]: the latest time so far, except for a single time far ahead."""
        clock_times = np.empty(times.size, np.int64)
        for i, time in enumerate(times.tolist()):
            if confirms_far(self._far_us, time):
                self._clock_us, self._far_us = max(self._clock_us, self._far_us, time), NEVER
            elif is_far_ahead(self._clock_us, time):
                self._far_us = time
            else:
                self._clock_us, self._far_us = max(self._clock_us, time), NEVER
            clock_times[i] = self._clock_us
        return clock_times
