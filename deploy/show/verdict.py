"""The last lines of the demo: when the forecast's alert opened, and how fixed lines would have done on the same run.

The fixed lines are those of the scorecard (twin/scoring/baselines.py) on the same recording: entries and elements of a
structure, as DISPLAY CFSTATUS and D XCF,STR show them, checked every 30 seconds. Calls, misses and leads of all are
judged by the same function.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from deploy.show.usage import full_in
from kernels.clock import SECOND
from twin.conditions import CLEARED, PAGE, Condition
from twin.estate import Estate
from twin.records import AlertRecord
from twin.scoring import Series, fillings, judge, play
from twin.scoring.alarms import COUNTED, Alarm, merge
from twin.scoring.baselines import static
from twin.simulation import Outcome
from twin.units import as_span, as_text

_LINES_PCT = (80.0, 85.0)
_BEFORE_S = 900  # from the moment of `next_commands` to the first 2192


@dataclass(frozen=True, slots=True)
class MethodResult:
    """How one method did in the run.

    Attributes:
        method: Its name.
        false_calls: Number of calls that no 2192 followed, or that were withdrawn before it.
        leads_s: Seconds from the call to the first 2192 of each filling, None if it was missed; by store.
    """

    method: str
    false_calls: int
    leads_s: Mapping[str, tuple[float | None, ...]]

    @property
    def missed(self) -> int:
        """Number of fillings without a call before their first 2192."""
        return sum(lead is None for leads in self.leads_s.values() for lead in leads)


def compare(recording: Path, estate: Estate, alerts: Iterable[AlertRecord]) -> list[MethodResult]:
    """Return the results of fixed lines and of the twin's alerts. It replays the recording, without Kafka and Spark.

    Args:
        recording: The recording.
        estate: Its estate.
        alerts: Alerts of the job, in their order.
    """
    played = play(recording, estate)
    records = list(alerts)
    methods: dict[str, Callable[[Series], list[Alarm]]] = {
        f"fixed line at {percent:.0f} %": _fixed_line(percent) for percent in _LINES_PCT
    }
    methods["twin, pages"] = lambda series: _alarms(records, series.store, watches=False)
    methods["twin, watches too"] = lambda series: _alarms(records, series.store, watches=True)
    results = []
    for method, alarms_of in methods.items():
        false_calls, leads_s = 0, dict[str, tuple[float | None, ...]]()
        for name, series in sorted(played.series.items()):
            judged = judge(series, fillings(series), alarms_of(series), None, withdrawing_counts=True)
            false_calls += judged.false
            if judged.warned:
                leads_s[name] = tuple(warned.lead for warned in judged.warned)
        results.append(MethodResult(method, false_calls, leads_s))
    return results


def comparison_lines(results: Iterable[MethodResult]) -> tuple[list[str], list[list[str]]]:
    """Return the headings and the lines of the comparison: method, false calls, missed, minutes ahead by structure."""
    rows = list(results)
    stores = sorted(rows[0].leads_s)
    headings = ["in this run", "false calls", "missed", *(f"{store}: ahead" for store in stores)]
    lines = [
        [
            row.method,
            str(row.false_calls),
            f"{row.missed} of {sum(map(len, row.leads_s.values()))}",
            *(
                ", ".join("missed" if lead is None else as_span(lead) for lead in row.leads_s[store])
                for store in stores
            ),
        ]
        for row in rows
    ]
    return headings, lines


def judge_demo(outcome: Outcome, alerts: Iterable[AlertRecord]) -> tuple[bool, str]:
    """Return True if a `full-forecast` alert was open just before the first 2192, and the line that reports it.

    Args:
        outcome: Outcome of the simulation.
        alerts: Alerts of the job, in their order.
    """
    if outcome.first_full is None:
        return True, "No put was refused with 2192: there was nothing to predict."
    full_at, store = outcome.first_full
    first_2192 = f"the first 2192 ({_clock(as_text(full_at))} on {store})"
    alert = _opening(alerts, store, as_text(full_at))
    if alert is None:
        return False, f"No full-forecast alert was open before {first_2192}."
    lead_s = full_at / SECOND - datetime.fromisoformat(alert.data.time).timestamp()
    lead = f"The full-forecast alert opened {as_span(lead_s)} before {first_2192}"
    return True, f"{lead}. Its prediction at {_clock(alert.data.time)}: {_prediction(alert)}."


def next_commands(program: str, outcome: Outcome, estate: Path, recording: Path) -> list[tuple[str, str]]:
    """Return what to try next, each as (what it answers, command), about the store that was full first.

    Args:
        program: How this program is called.
        outcome: Outcome of the simulation.
        estate: Estate file.
        recording: The recording.
    """
    full_at, store = outcome.first_full or (outcome.last, outcome.fullest)
    time = as_text(max(outcome.first, full_at - _BEFORE_S * SECOND))[:19] + "Z"
    files = f"--estate {shlex.quote(str(estate))} --recording {shlex.quote(str(recording))} --at {time}"
    report = shlex.quote(str(recording.with_name("advice.html")))
    again = f"{shlex.quote(str(recording))} --estate {shlex.quote(str(estate))}"
    return [
        (f"{store} at {time[11:16]}, if twice as much is put", f"{program} whatif {store} {files} --traffic puts=2"),
        ("what would have been enough, as a page to hand on", f"{program} advise {store} {files} --html {report}"),
        ("the same events as requests: change a size in the estate first", f"{program} replay {again} --demands"),
    ]


def _fixed_line(percent: float) -> Callable[[Series], list[Alarm]]:
    return lambda series: static(series, percent, structure_only=True)


def _alarms(alerts: Iterable[AlertRecord], store: str, *, watches: bool) -> list[Alarm]:
    """Return the alarms that the alerts of a store are, from when they are pages; with `watches` from the opening."""
    alarms: dict[str, Alarm] = {}
    for alert in alerts:
        data = alert.data
        if data.store != store or data.condition not in COUNTED:
            continue
        if alert.change == CLEARED:
            if data.alert_id in alarms:
                alarms[data.alert_id] = Alarm(alarms[data.alert_id].opened, _microseconds(data.time))
        elif data.alert_id not in alarms and (watches or data.level == PAGE):
            alarms[data.alert_id] = Alarm(_microseconds(data.time), None)
    return merge(alarms.values())


def _microseconds(time: str) -> int:
    return round(datetime.fromisoformat(time).timestamp() * SECOND)


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


def _clock(time: str) -> str:
    """Return the time of day of a timestamp: HH:MM:SS."""
    return time[11:19]
