"""The last lines of the demo: when the forecast's alert opened, and when a static threshold would have alerted.

The static threshold is that of the scorecard (twin/scoring/baselines.py) on the same recording: 80 % of the maximum
size of any resource, data sets of SMDS included, checked every 30 seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from deploy.show.forecast import full_in
from kernels.clock import SECOND
from streams.kafka.subscribe import AlertRecord
from twin.conditions import CLEARED, Condition
from twin.estate import Estate
from twin.scoring import play
from twin.scoring.baselines import BASELINES
from twin.simulation import Outcome
from twin.units import as_span, as_text

_STATIC = "static 80 %"  # a name in twin.scoring.baselines


@dataclass(frozen=True, slots=True)
class StaticAlarm:
    """An alarm of the static threshold.

    Attributes:
        opened_us: Microseconds since 1970.
        resource: The resource that reached the threshold.
        pct_at_first_2192: Usage of that resource at the first 2192, percent.
    """

    opened_us: int
    resource: str
    pct_at_first_2192: float


def static_alarm(recording: Path, estate: Estate, outcome: Outcome) -> StaticAlarm | None:
    """Return the static threshold's alarm that was open at the first 2192, else the first one after it, else None.

    This replays the recording, without Kafka and Spark.

    Args:
        recording: The recording.
        estate: Its estate.
        outcome: Outcome of the simulation that wrote the recording.
    """
    if outcome.first_full is None:
        return None
    full_at, store = outcome.first_full
    series = play(recording, estate).series[store]
    [baseline] = [baseline for baseline in BASELINES if baseline.name == _STATIC]
    alarms, _ = baseline.judge(series)
    alarm = next((alarm for alarm in alarms if alarm.is_open(full_at) or alarm.opened >= full_at), None)
    if alarm is None:
        return None
    column = int(np.argmax(series.usage[np.searchsorted(series.times, alarm.opened)]))
    pct = series.usage[np.searchsorted(series.times, full_at, side="right") - 1, column]
    return StaticAlarm(alarm.opened, series.resources[column], float(pct))


def judge_demo(outcome: Outcome, alerts: Iterable[AlertRecord], static: StaticAlarm | None) -> tuple[bool, list[str]]:
    """Return True if a `full-forecast` alert was open just before the first 2192, and the lines that report it.

    Args:
        outcome: Outcome of the simulation.
        alerts: Alerts of the job, in their order.
        static: Alarm of the static threshold, if any.
    """
    if outcome.first_full is None:
        return True, ["No put was refused with 2192: there was nothing to predict."]
    full_at, store = outcome.first_full
    first_2192 = f"the first 2192 ({_clock(as_text(full_at))} on {store})"
    alert = _opening(alerts, store, as_text(full_at))
    if alert is None:
        return False, [f"No full-forecast alert was open before {first_2192}.", _static_line(static, full_at)]
    lead_s = full_at / SECOND - datetime.fromisoformat(alert.data.time).timestamp()
    lead = f"The full-forecast alert opened {as_span(lead_s)} before {first_2192}"
    prediction = f"{_clock(alert.data.time)}: {_prediction(alert)}"
    return True, [f"{lead}. Its prediction at {prediction}.", _static_line(static, full_at)]


def _opening(alerts: Iterable[AlertRecord], store: str, time: str) -> AlertRecord | None:
    """Return the first record of the store's forecast alert that was open just before a time."""
    opened: dict[str, AlertRecord] = {}
    for alert in alerts:
        if alert.data.store != store or alert.data.condition != Condition.FULL_FORECAST or alert.data.time >= time:
            continue
        if alert.change == CLEARED:
            opened.pop(alert.data.alert_id, None)
        else:
            opened.setdefault(alert.data.alert_id, alert)
    return min(opened.values(), key=lambda alert: alert.data.time, default=None)


def _prediction(alert: AlertRecord) -> str:
    times, probability = alert.data.time_to_full_s, alert.data.full_probability
    if times is None or probability is None:  # a full-forecast alert has both
        return f"{alert.data.resource} will be full"
    return f"{alert.data.resource} full in {full_in(times, probability)}"


def _static_line(static: StaticAlarm | None, full_at: int) -> str:
    subject = "A static threshold of 80 %"
    if static is None:
        return f"{subject} would not have alerted."
    if static.opened_us >= full_at:
        delay = as_span((static.opened_us - full_at) / SECOND)
        return f"{subject} would have alerted {delay} after that 2192, on {static.resource}."
    lead = as_span((full_at - static.opened_us) / SECOND)
    time = _clock(as_text(static.opened_us))
    usage = f"{static.pct_at_first_2192:.1f} % in use at the first 2192"
    return f"{subject} would have alerted {lead} before that 2192 ({time}), on {static.resource} ({usage})."


def _clock(time: str) -> str:
    """Return the time of day of a timestamp: HH:MM:SS."""
    return time[11:19]
