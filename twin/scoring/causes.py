"""Causes of false alarms: what the store did after one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernels.clock import SECOND
from twin.scoring.alarms import Alarm
from twin.scoring.series import Series
from twin.scoring.truth import Filling, onset

EARLY = "opened before the filling began"
WITHDRAWN = "withdrawn before the 2192"
NEW = "turned back, the first time so high"
KNOWN = "turned back, as it had before"
LEVEL = "neither turned back nor filled"
CAUSES = (EARLY, WITHDRAWN, NEW, KNOWN, LEVEL)

_WATCHED = 7200 * SECOND  # time after an alarm in which a rise turns back, unless the alarm is open for longer
_FALLS = 0.5  # of the rise: a fall by more is a turn
_AS_HIGH = 0.9  # of the peak: an earlier peak of that height has been seen before


def cause_of(series: Series, alarm: Alarm, fillings: Sequence[Filling], *, withdrawn: bool) -> str:
    """Return the cause of a false alarm, one of CAUSES.

    Args:
        series: the store over time.
        alarm: the false alarm.
        fillings: fillings of the store.
        withdrawn: True if it opened in a filling and was cleared before the first 2192.
    """
    if withdrawn:
        return WITHDRAWN
    if any(alarm.is_open(filling.first) for filling in fillings):
        return EARLY
    usage = series.usage.max(axis=1, initial=0.0)
    opened = max(1, int(np.searchsorted(series.times, alarm.opened)))
    end = alarm.opened + _WATCHED if alarm.cleared is None else max(alarm.cleared, alarm.opened + _WATCHED)
    after = usage[opened : max(opened + 1, int(np.searchsorted(series.times, end)))]
    began = onset(usage[:opened])
    peak = int(np.argmax(after)) if after.size else 0
    height = float(after[peak]) if after.size else float(usage[-1])
    if after.size == 0 or float(after[peak:].min()) > height - _FALLS * (height - float(usage[began])):
        return LEVEL
    return KNOWN if float(usage[:began].max(initial=0.0)) >= _AS_HIGH * height else NEW
