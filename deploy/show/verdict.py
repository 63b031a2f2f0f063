"""What the demo ends with: how early the forecast's alert came, and when a fixed line would have come.

The line is that of the scorecard (twin/scoring/baselines.py), on the same recording: whatever fills, data sets of SMDS
included, at 80 % of what it may become, looked at every 30 seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from kernels.clock import SECOND
from streams.kafka.subscribe import AlertRecord
from twin.conditions import CLEARED, Condition
from twin.estate import Estate
from twin.scoring import play
from twin.scoring.baselines import BASELINES
from twin.simulation import Outcome
from twin.units import as_range, as_span, as_text

_LINE = "static 80 %"  # of twin.scoring.baselines


@dataclass(frozen=True, slots=True)
class Line:
    """When the fixed line was reached. resource: what reached it; at_full: percent of that in use at the first 2192."""

    opened: int  # microseconds since 1970
    resource: str
    at_full: float


def fixed_line(recording: Path, estate: Estate, outcome: Outcome) -> Line | None:
    """The line's alarm that was open at the first 2192 or, where none was, the first one after it; None: there is none.

    Plays the recording once more, without Kafka and Spark.
    """
    if outcome.first_full is None:
        return None
    full, store = outcome.first_full
    series = play(recording, estate).series[store]
    [baseline] = [one for one in BASELINES if one.name == _LINE]
    alarms, _ = baseline.judge(series)
    alarm = next((one for one in alarms if one.is_open(full) or one.opened >= full), None)
    if alarm is None:
        return None
    column = int(np.argmax(series.usage[np.searchsorted(series.times, alarm.opened)]))
    at_full = series.usage[np.searchsorted(series.times, full, side="right") - 1, column]
    return Line(alarm.opened, series.resources[column], float(at_full))


def verdict(outcome: Outcome, alerts: Iterable[AlertRecord], line: Line | None) -> tuple[bool, list[str]]:
    """Whether a `full-forecast` alert came before the first 2192 and was open then, and what there is to say of it."""
    if outcome.first_full is None:
        return True, ["No put was refused with 2192: there was nothing to warn of."]
    full, store = outcome.first_full
    refused = f"the first 2192 ({_clock(as_text(full))} on {store})"
    alert = _warning(alerts, store, as_text(full))
    if alert is None:
        return False, [f"No full-forecast alert was open before {refused}.", _compared(line, full)]
    lead = full / SECOND - datetime.fromisoformat(alert.data.time).timestamp()
    told = f"The full-forecast alert came {as_span(lead)} before {refused}: at {_clock(alert.data.time)} it said"
    return True, [f"{told} {_said(alert)}.", _compared(line, full)]


def _warning(alerts: Iterable[AlertRecord], store: str, full: str) -> AlertRecord | None:
    """The opening of the store's forecast alert that was open just before a time."""
    opened: dict[str, AlertRecord] = {}
    for alert in alerts:
        if alert.data.store != store or alert.data.condition != Condition.FULL_FORECAST or alert.data.time >= full:
            continue
        if alert.change == CLEARED:
            opened.pop(alert.data.alert_id, None)
        else:
            opened.setdefault(alert.data.alert_id, alert)
    return min(opened.values(), key=lambda alert: alert.data.time, default=None)


def _said(alert: AlertRecord) -> str:
    times, probability = alert.data.time_to_full_s, alert.data.full_probability
    if times is None or probability is None:  # no forecast is without them
        return f"{alert.data.resource} will be full"
    between = as_range(times["p10"], times["p90"])
    return f"{alert.data.resource} full in {as_span(times['p50'])} ({between}), {100 * probability:.0f} % likely"


def _compared(line: Line | None, full: int) -> str:
    would = "A static line at 80 % would"
    if line is None:
        return f"{would} not have come at all."
    if line.opened >= full:
        return f"{would} have come {as_span((line.opened - full) / SECOND)} after that 2192, for {line.resource}."
    when = (
        f"{would} have come {as_span((full - line.opened) / SECOND)} before that 2192 ({_clock(as_text(line.opened))})"
    )
    return f"{when}, for {line.resource}, of which {line.at_full:.1f} % were in use at the first 2192."


def _clock(time: str) -> str:
    return time[11:19]
