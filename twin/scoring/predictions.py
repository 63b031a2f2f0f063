"""What was said of the time to full, and how to ask for it at a moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernels.clock import SECOND
from twin.forecast.outlook import Forecast
from twin.state.arrays import Array

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

    @classmethod
    def of(cls, forecasts: Sequence[Forecast]) -> Predictions:
        """Of the twin's forecasts of one store, in their order: of the resource that is full first, whichever it is."""
        first = [one for one in forecasts if one.first]
        ahead = [[np.inf if left is None else left for left in (one.p10, one.p50, one.p90)] for one in first]
        return cls(
            np.array([one.time for one in first], np.int64),
            np.array(ahead, float).reshape(-1, 3),
            np.array([one.probability for one in first], float),
        )

    def _row(self, time: int) -> int | None:
        row = int(np.searchsorted(self.times, time, side="right")) - 1
        return None if row < 0 or time - int(self.times[row]) > STALE else row
