"""What was said of the time to full, and how to ask for it at a moment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernels.clock import SECOND
from twin.arrays import Array

STALE = 120 * SECOND  # a word older than that counts no more


@dataclass(frozen=True, slots=True)
class Predictions:
    """times: i8[n], microseconds, in order; ahead: f8[n, 3], seconds from then to full, should it become so: p10, p50
    and p90, inf: beyond the horizon; chance: f8[n], the probability of full within the horizon, None where a method
    gives neither that nor an interval: it has one number three times.
    """

    times: Array
    ahead: Array
    chance: Array | None = None

    def at(self, time: int) -> tuple[float, float, float]:
        """Seconds from `time` to full by what was said last, aged since; inf where nothing was said lately."""
        row = self._row(time)
        if row is None:
            return np.inf, np.inf, np.inf
        aged = (time - int(self.times[row])) / SECOND
        p10, p50, p90 = np.maximum(self.ahead[row] - aged, 0.0).tolist()
        return p10, p50, p90

    def chance_at(self, time: int) -> float:
        """The probability of full within the horizon as said last; 0 where nothing was said lately."""
        row = self._row(time)
        return 0.0 if row is None or self.chance is None else float(self.chance[row])

    def _row(self, time: int) -> int | None:
        row = int(np.searchsorted(self.times, time, side="right")) - 1
        return None if row < 0 or time - int(self.times[row]) > STALE else row
