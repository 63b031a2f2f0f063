"""The last lines of the demo: when the forecast's alert opened, and how other rules would have done on the same run.

The table counts what people get: pages, whatever their conditions, judged by the same function
(`twin.playback.pages`). The lines are checked every 30 seconds: fixed lines for entries and elements of a structure, as
DISPLAY CFSTATUS and D XCF,STR show them, and a straight line for every resource.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from deploy.show.terminal import command_line
from deploy.show.usage import full_in
from kernels.clock import SECOND
from twin.conditions import CLEARED, Condition
from twin.estate import Estate
from twin.playback.fillings import fillings
from twin.playback.pages import (
    Alarm,
    Verdict,
    from_incidents,
    lead_of,
    page_verdicts,
    static_pages,
    straight_line_pages,
)
from twin.playback.series import Series, play
from twin.records import AlertRecord
from twin.simulation import Outcome
from twin.units import as_span, as_text

_LINES_PCT = (80.0, 85.0)
_BEFORE_S = 900  # from the moment of `next_commands` to the first 2192


@dataclass(frozen=True, slots=True)
class MethodResult:
    """How one method did in the run.

    Attributes:
        method: Its name.
        pages: Number of pages: incidents that called somebody.
        false: Number of those that no 2192 followed, or that were withdrawn before it.
        leads_s: Seconds from the page to the first 2192 of each filling, None if it was missed; by store.
    """

    method: str
    pages: int
    false: int
    leads_s: Mapping[str, tuple[float | None, ...]]

    @property
    def missed(self) -> int:
        """Number of fillings without a page before their first 2192."""
        return sum(lead is None for leads in self.leads_s.values() for lead in leads)


def compare(recording: Path, estate: Estate, alerts: Iterable[AlertRecord]) -> list[MethodResult]:
    """Return the results of other rules and of the twin's alerts. It replays the recording, without Kafka and Spark.

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
    methods["straight line"] = straight_line_pages
    methods["twin"] = lambda series: from_incidents(records, series.store)
    methods["twin, watches too"] = lambda series: from_incidents(records, series.store, watches=True)
    true_fillings = {name: fillings(series) for name, series in sorted(played.series.items())}
    results = []
    for method, pages_of in methods.items():
        verdicts: list[Verdict] = []
        leads_s: dict[str, tuple[float | None, ...]] = {}
        for name, own in true_fillings.items():
            pages = pages_of(played.series[name])
            verdicts += page_verdicts(played.series[name], own, pages)
            if own:
                leads_s[name] = tuple(lead_of(filling, pages) for filling in own)
        results.append(MethodResult(method, len(verdicts), verdicts.count(Verdict.FALSE), leads_s))
    return results


def comparison_lines(results: Iterable[MethodResult]) -> tuple[list[str], list[list[str]]]:
    """Return the headings and the lines of the comparison: method, pages, false, missed, minutes ahead by structure."""
    rows = list(results)
    stores = sorted(rows[0].leads_s)
    headings = ["in this run", "pages", "false", "missed", *(f"{store}: ahead" for store in stores)]
    lines = [
        [
            row.method,
            str(row.pages),
            str(row.false),
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
    files = command_line(["--estate", str(estate), "--recording", str(recording), "--at", time])
    report = command_line([str(recording.with_name("advice.html"))])
    again = command_line([str(recording), "--estate", str(estate)])
    return [
        (f"{store} at {time[11:16]}, if twice as much is put", f"{program} whatif {store} {files} --traffic puts=2"),
        ("what would have been enough, as a page to hand on", f"{program} advise {store} {files} --html {report}"),
        ("the same events as requests: change a size in the estate first", f"{program} replay {again} --demands"),
    ]


def _fixed_line(percent: float) -> Callable[[Series], list[Alarm]]:
    return lambda series: static_pages(series, percent, structure_only=True)


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
