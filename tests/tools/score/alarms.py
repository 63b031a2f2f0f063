"""Alarms of a forecast: alerts `full-forecast` and `full` of one store that are open at the same time are one alarm.

Entries and elements fill together, and `full` follows `full-forecast`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from twin.alerts.episodes import Alert
from twin.base.conditions import CLEARED, INFO, Condition
from twin.playback.pages import Alarm, merge

COUNTED = (Condition.FULL_FORECAST, Condition.FULL)  # conditions whose alerts are alarms


def from_alerts(alerts: Iterable[Alert], store: str, *, watches: bool = False) -> list[Alarm]:
    """Return the alarms of one store.

    Args:
        alerts: records of any stores, those of each store in order.
        store: name of the store.
        watches: True: a watch is an alarm; False: an alert is one from when it is a page.
    """
    alarms: dict[str, Alarm] = {}
    for alert in alerts:
        if alert.store != store or alert.condition not in COUNTED:
            continue
        if alert.change == CLEARED:
            if alert.alert_id in alarms:
                alarms[alert.alert_id] = replace(alarms[alert.alert_id], cleared=alert.time)
        elif alert.alert_id not in alarms and (watches or alert.severity != INFO):
            named = alert.fillers[0].queue if alert.fillers else None
            alarms[alert.alert_id] = Alarm(alert.time, None, named)
    return merge(alarms.values())
