"""Predictions of the time to full, and their value at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernels.clock import SECOND
from twin.forecast.outlook import Forecast
from twin.state.arrays import Array

STALE = 120 * SECOND  # age at which a prediction no longer counts


@dataclass(frozen=True, slots=True)
class Predictions:
    """Predictions of a method for one store. One without intervals has the same number for p10, p50 and p90."""

    times: Array  # i8[n], microseconds, ascending
    ahead: Array  # f8[n, 3], seconds until full if it becomes full: p10, p50, p90; inf: beyond the horizon
    chance: Array | None = None  # f8[n], probability of full within the horizon; None: none predicted

    def times_at(self, time: int) -> tuple[float, float, float]:
        """Return the seconds from `time` to full (p10, p50, p90) by the last prediction; inf without a recent one."""
        row = self._row(time)
        if row is None:
            return np.inf, np.inf, np.inf
        aged = (time - int(self.times[row])) / SECOND
        p10, p50, p90 = np.maximum(self.ahead[row] - aged, 0.0).tolist()
        return p10, p50, p90

    def chance_at(self, time: int) -> float:
        """Return the last predicted probability of full within the horizon; 0 without a recent prediction."""
        row = self._row(time)
        return 0.0 if row is None or self.chance is None else float(self.chance[row])

    @classmethod
    def from_forecasts(cls, forecasts: Sequence[Forecast]) -> Predictions:
        """Return the predictions of the twin for a store: those for the resource that is full first."""
        first = [forecast for forecast in forecasts if forecast.first]
        ahead = [(forecast.p10, forecast.p50, forecast.p90) for forecast in first]
        return cls(
            np.array([forecast.time for forecast in first], np.int64),
            np.array([[np.inf if s is None else s for s in quantiles] for quantiles in ahead], float).reshape(-1, 3),
            np.array([forecast.probability for forecast in first], float),
        )

    def _row(self, time: int) -> int | None:
        row = int(np.searchsorted(self.times, time, side="right")) - 1
        return None if row < 0 or time - int(self.times[row]) > STALE else row
