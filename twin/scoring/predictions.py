"""What was said of the time to full, and how to ask for it at a moment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernels.clock import SECOND
from twin.arrays import Array

STALE = 120 * SECOND  # a word older than that counts no more


@dataclass(frozen=True, slots=True)
class Predictions:
    """times: i8[n], microseconds, in order; ahead: f8[n, 3], seconds from then to full, p10, p50 and p90, inf: beyond
    the horizon. A method that gives no interval has one number three times.
    """

    times: Array
    ahead: Array
    has_interval: bool = True

    def at(self, time: int) -> tuple[float, float, float]:
        """Seconds from `time` to full by what was said last, aged since; inf where nothing was said lately."""
        row = int(np.searchsorted(self.times, time, side="right")) - 1
        if row < 0 or time - int(self.times[row]) > STALE:
            return np.inf, np.inf, np.inf
        aged = (time - int(self.times[row])) / SECOND
        p10, p50, p90 = np.maximum(self.ahead[row] - aged, 0.0).tolist()
        return p10, p50, p90
