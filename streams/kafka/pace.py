"""How fast a recording is published: as fast as it goes, at a rate, or in step with its own event times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernels.clock import FAR

GRAIN = 0.02  # seconds: what is due within it is sent together

Times = npt.NDArray[Any]


class Slice(NamedTuple):
    """Rows from `start` up to `stop`, due `at` seconds after the first event."""

    start: int
    stop: int
    at: float


class Pace:
    """When each event is due.

    `speed`: event time goes so many times faster than real; `rate`: events a second; neither: at once.
    """

    def __init__(self, *, speed: float | None = None, rate: float | None = None) -> None:
        self._speed = speed
        self._rate = rate
        self._sent = 0
        self._first: int | None = None
        self._clock = 0
        self._far: int | None = None

    @property
    def is_free(self) -> bool:
        """Whether everything is due at once."""
        return self._speed is None and self._rate is None

    def slices(self, times: Times) -> Iterator[Slice]:
        """The next events, of times i8[n] in microseconds, cut where they are due later."""
        if not times.size:
            return
        if self._rate is not None:
            yield from self._at_rate(times.size, self._rate)
        elif self._speed is not None:
            yield from self._in_step(times, self._speed)
        else:
            yield Slice(0, times.size, 0.0)

    def _at_rate(self, count: int, rate: float) -> Iterator[Slice]:
        step = max(1, int(rate * GRAIN))
        for start in range(0, count, step):
            stop = min(count, start + step)
            yield Slice(start, stop, self._sent / rate)
            self._sent += stop - start

    def _in_step(self, times: Times, speed: float) -> Iterator[Slice]:
        if self._first is None:
            self._first = self._clock = int(times[0])
        due = (self._clocks(times) - self._first) / (1e6 * speed)
        cuts = np.flatnonzero(np.diff(np.floor(due / GRAIN))) + 1
        for start, stop in zip([0, *cuts], [*cuts, times.size], strict=True):
            yield Slice(int(start), int(stop), float(due[start]))

    def _clocks(self, times: Times) -> Times:
        """The clock at each event: the latest time so far, but a single time far ahead is passed over."""
        clocks = np.empty(times.size, np.int64)
        for row, time in enumerate(times.tolist()):
            if self._far is not None and abs(time - self._far) <= FAR:
                self._clock, self._far = max(self._clock, self._far, time), None
            elif time > self._clock + FAR:
                self._far = time
            else:
                self._clock, self._far = max(self._clock, time), None
            clocks[row] = self._clock
        return clocks
