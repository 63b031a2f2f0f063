"""The demo in a terminal: a picture of each store and of the alerts, and at its end a comparison of rules.

The comparison counts what people get: pages, whatever their conditions, judged by the same function
(`twin.playback.pages`). The lines are checked every 30 seconds: fixed lines for entries and elements of a structure, as
DISPLAY CFSTATUS and D XCF,STR show them, and a straight line for every resource.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from deploy.show.alerts import CLEARED_STYLE, STYLES
from deploy.show.summaries import forecast_text, full_in
from deploy.show.terminal import Wrapped, command_line
from kernels.clock import SECOND
from twin.base.conditions import CLEARED, CRITICAL, ELEMENTS, ENTRIES, FULL, WARNING, WATCH, Condition, Pool
from twin.base.units import as_span, as_text
from twin.estate import Estate
from twin.estate.planned import Plan
from twin.playback.pages import (
    Alarm,
    Verdict,
    fillings,
    from_incidents,
    lead_of,
    page_verdicts,
    static_pages,
    straight_line_pages,
)
from twin.playback.timeline import Series, play_series
from twin.records import (
    NOT_MEASURED,
    AlertRecord,
    ResourceForecast,
    ResourceUsage,
    StructureState,
    fullest_of,
    read_alert_record,
    resources_of,
)
from twin.simulation import Outcome

_MAX_ALERTS = 5
_RANKS = {FULL: 0, CRITICAL: 1, WARNING: 2}  # of the severity of a page; a watch comes after them
_MIN_PROBABILITY = 0.5  # forecasts are coloured from this probability, the default for alerts too
_NEAR_S = 600.0  # forecasts are red from this time to full, the default for critical alerts too
_SLOW = 0.8  # share of the speed asked for below which the picture shows that of the job
_DETAILS_WIDTH = 38  # characters to the right of a bar, enough room on a terminal of 80 columns
_LINES_PCT = (80.0, 85.0)
_BEFORE_S = 900  # from the moment of `next_commands` to the first 2192


# --- the picture -----------------------------------------------------------------------------------------------------


def picture(
    states: Mapping[str, StructureState],
    alerts: Sequence[AlertRecord],
    total: int,
    speed: float,
    asked_speed: float | None = None,
) -> RenderableType:
    """Return the whole picture. A speed is event time over real time."""
    panels: list[RenderableType] = [_store_panel(name, states[name]) for name in sorted(states)]
    return Group(_heading(states, total, speed, asked_speed or speed), *panels, _alerts_panel(alerts))


def waiting_picture(seconds: float) -> RenderableType:
    """Return the picture before the first state record of each store. seconds: seconds to wait for it."""
    waiting = f"The first event of each structure is on its way through Kafka and Spark ({seconds:.0f} s)"
    text = f"{waiting}; then the story begins."
    return Panel(Wrapped(Text(text, style="dim")), title="mqtwin demo", title_align="left", border_style="blue")


def _heading(states: Mapping[str, StructureState], total: int, speed: float, asked_speed: float) -> RenderableType:
    applied = sum(state.events for state in states.values())
    time = min((state.time for state in states.values() if state.time is not None), default="")
    heading = Table.grid(expand=True)
    heading.add_column(no_wrap=True)
    heading.add_column(no_wrap=True, justify="right", style="dim")
    left = Text.assemble(("mqtwin demo", "bold"), "  ", (time[11:19], "cyan"))
    if speed < _SLOW * asked_speed:  # the job is slower than that
        left.append(f"  {speed:,.0f}x real time, asked {asked_speed:,.0f}x", "yellow")
    else:
        left.append(f"  {asked_speed:,.0f}x real time", "dim")
    heading.add_row(left, f"{applied:,} of {total:,} events")
    return heading


def _store_panel(name: str, state: StructureState) -> Panel:
    rows = Table.grid(padding=(0, 1), expand=True)
    rows.add_column(width=10, no_wrap=True)
    rows.add_column(ratio=1)
    rows.add_column(justify="right", width=6, no_wrap=True)
    rows.add_column(style="dim", width=_DETAILS_WIDTH, no_wrap=True)
    pools = [item for item in resources_of(state) if item.resource in (ENTRIES, ELEMENTS)]
    datasets = [item for item in resources_of(state) if item.resource.pool == Pool.SMDS]
    fullest = fullest_of(datasets)
    for usage in (*pools, *([] if fullest is None else [fullest])):  # one data set, so that three structures fit
        _add_bar(rows, usage, is_empty=usage is fullest and not state.smds[usage.resource.owner].pages_used)
    rule = f"offload rule {state.offload_rule}" if state.offload_rule else "no offload"
    refused = f", {state.full_puts:,} puts refused" if state.full_puts else ""
    messages = state.messages
    clock = f"{state.time[11:16]}  " if state.time else ""
    held = f"messages {NOT_MEASURED}" if messages is None else f"{messages:,} message{'' if messages == 1 else 's'}"
    title = f"{name}  {clock}{held}, {rule}{refused}"
    content = Group(rows, _forecast_line(state.first, state.lacks_levels, state.lacks_limits))
    return Panel(content, title=title, title_align="left", border_style="red" if state.full_puts else "blue")


def _forecast_line(first: ResourceForecast | None, lacking: str, assumed: str) -> Text:
    """Return the line of the forecast. It is there without a forecast too, so that the picture does not jump."""
    line = Text("forecast   ", style="bold", no_wrap=True, overflow="ellipsis")
    if first is None:
        return line.append(lacking or "no resource is rising", "not bold dim")
    times = first.time_to_full_s
    is_likely = times is not None and first.full_probability >= _MIN_PROBABILITY
    is_near = times is not None and is_likely and times.p50 <= _NEAR_S
    return line.append(
        forecast_text(first, assumed=assumed), "bold red" if is_near else "yellow" if is_likely else "not bold"
    )


def _add_bar(rows: Table, usage: ResourceUsage, *, is_empty: bool) -> None:
    if usage.used is None or usage.pct is None:
        rows.add_row(usage.label, "", "", NOT_MEASURED)
    elif is_empty:
        rows.add_row(usage.label, "", "", "empty")
    else:
        pct = usage.pct if usage.maximum_pct is None else usage.maximum_pct
        style = "green" if pct < 70 else "yellow" if pct < 90 else "red"
        used, total = int(usage.used), int(usage.total)
        bar = ProgressBar(total=max(1, total), completed=min(used, total), complete_style=style, finished_style="red")
        unit = "blocks" if usage.resource.pool == Pool.SMDS else ""
        details = f"{used:,} of {total:,} {unit}"
        if usage.can_grow:
            details = f"{details.rstrip()}, up to {usage.maximum:,.0f}"
        if usage.note:
            details += f", {usage.note.replace('(', ' ').rstrip(')')}"
        rows.add_row(usage.label, bar, Text(f"{pct:.1f}%", style=style), details)


def _alerts_panel(alerts: Sequence[AlertRecord]) -> Panel:
    """Return a line per alert in its latest state, open ones first, the worst of them first, then the newest.

    Below them is the brief of the first one.
    """
    latest: dict[str, AlertRecord] = {}
    opened: dict[str, str] = {}
    for alert in alerts:
        latest[alert.data.alert_id] = alert
        opened.setdefault(alert.data.alert_id, alert.data.time)
    open_count = sum(alert.change != CLEARED for alert in latest.values())
    title = f"alerts: {len(latest)}, open: {open_count} (opened, severity, resource, full at, usage, filler)"
    if not latest:
        return _alert_panel(title, Text("none yet", style="dim"))
    rows = Table.grid(padding=(0, 1))
    for _ in range(6):
        rows.add_column(no_wrap=True)
    newest_first = sorted(latest.values(), key=lambda alert: opened[alert.data.alert_id], reverse=True)
    ranked = sorted(newest_first, key=_rank)
    for alert in ranked[:_MAX_ALERTS]:
        rows.add_row(Text(opened[alert.data.alert_id][11:16], style="dim"), *_alert_cells(alert))
    worst = ranked[0].data
    what, *others = worst.brief or (worst.cause,)
    lines = (f"{worst.time[11:16]} {what}", *others)  # as of its last record: the forecast above is younger
    return _alert_panel(title, rows, *(Wrapped(Text(line, style="italic")) for line in lines))


def _rank(alert: AlertRecord) -> int:
    """Return the place of an alert: open ones by severity, then watches, then cleared ones."""
    if alert.change == CLEARED:
        return 4
    return 3 if alert.data.level == WATCH else _RANKS.get(alert.data.severity, 2)


def _alert_panel(title: str, *lines: RenderableType) -> Panel:
    return Panel(Group(*lines), title=title, title_align="left", border_style="magenta")


def _alert_cells(alert: AlertRecord) -> list[Text]:
    data, is_cleared = alert.data, alert.change == CLEARED
    word = "cleared" if is_cleared else WATCH if data.level == WATCH else data.severity
    filler = f"{data.fillers[0].queue} {data.fillers[0].share:.0%}" if data.fillers else ""
    return [
        Text(f" {word:<8} ", style=CLEARED_STYLE if is_cleared else STYLES.get(word, "bold")),
        Text(f"{data.store} {data.resource}", style="bold"),
        Text(data.condition + _full_at(alert), style="bold"),
        Text("" if data.usage_pct is None else f"{data.usage_pct:5.1f}%"),
        Text("" if is_cleared else filler, style="dim", overflow="ellipsis"),
    ]


def _full_at(alert: AlertRecord) -> str:
    """Return the predicted time of day when it is full, "" without a prediction. A time left would soon be outdated."""
    times = alert.data.time_to_full_s
    if times is None or alert.change == CLEARED:
        return ""
    time = datetime.fromisoformat(alert.data.time)
    return f" ~{time + timedelta(seconds=times.p50):%H:%M}"


# --- the comparison --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MethodResult:
    """How one method did in the run."""

    method: str
    pages: int  # number of incidents that called somebody
    false: int  # that no 2192 followed, or that were withdrawn before it
    leads_s: Mapping[str, tuple[float | None, ...]]  # from page to first 2192 of each filling, by store; None: missed

    @property
    def missed(self) -> int:
        """Number of fillings without a page before their first 2192."""
        return sum(lead is None for leads in self.leads_s.values() for lead in leads)


def compare(
    recording: Path,
    estate: Estate,
    alerts: Iterable[AlertRecord],
    planned: Mapping[str, tuple[Plan, ...]] | None = None,
) -> list[MethodResult]:
    """Return the results of other rules and of the twin's alerts. It replays the recording, without Kafka and Spark.
    The twin is told of the planned work by store in one more row.
    """
    played = play_series(recording, estate)
    records = list(alerts)
    methods: dict[str, Callable[[Series], list[Alarm]]] = {
        f"fixed line at {percent:.0f} %": partial(static_pages, percent=percent, structure_only=True)
        for percent in _LINES_PCT
    }
    methods["straight line"] = straight_line_pages
    methods["twin"] = lambda series: from_incidents(records, series.store)
    if planned:
        with_plan = play_series(recording, replace(estate, planned=planned)).alerts
        announced = [read_alert_record(alert.record()) for alert in with_plan]
        methods["twin, with a plan"] = lambda series: from_incidents(announced, series.store)
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
    """Return True if a `full-forecast` alert was open just before the first 2192, and the line that reports it."""
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
    """Return what to try next, each as (what it answers, command), about the store that was full first."""
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
    return time[11:19]
