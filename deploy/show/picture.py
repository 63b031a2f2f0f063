"""The demo's terminal picture: each store's entries, elements and data sets as bars, when it will be full, and
alerts as they come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from deploy.show.alerts import CLEARED, STYLES
from deploy.show.forecast import in_words
from streams.kafka.subscribe import AlertRecord

_SHOWN_ALERTS = 7
_LIKELY, _NEAR = 0.5, 600.0  # probability and seconds left from which a forecast is coloured, as alerts are by default
_DETAILS = 38  # characters beside a bar: the rest of an 80-column terminal is enough for it


def picture(
    states: Mapping[str, Mapping[str, Any]], alerts: Sequence[AlertRecord], total: int, speed: float
) -> RenderableType:
    """The whole picture.

    states: the latest record of each store; total: events of the recording; speed: of event time, 1 is real time.
    """
    return Group(_head(states, total, speed), *(_store(name, states[name]) for name in sorted(states)), _alerts(alerts))


def _head(states: Mapping[str, Mapping[str, Any]], total: int, speed: float) -> RenderableType:
    applied = sum(int(state["events"]) for state in states.values())
    clock = max((str(state["time"]) for state in states.values() if state["time"]), default="")
    head = Table.grid(expand=True)
    head.add_column(no_wrap=True)
    head.add_column(no_wrap=True, justify="right", style="dim")
    left = Text.assemble(("mqtwin demo", "bold"), "  getter outage  ", (clock[11:19], "cyan"))
    head.add_row(left, f"{applied:,} of {total:,} events, {speed:,.0f}x real time")
    return head


def _store(name: str, state: Mapping[str, Any]) -> Panel:
    rows = Table.grid(padding=(0, 1), expand=True)
    rows.add_column(width=10, no_wrap=True)
    rows.add_column(ratio=1)
    rows.add_column(justify="right", width=6, no_wrap=True)
    rows.add_column(style="dim", width=_DETAILS, no_wrap=True)
    _bar(rows, "entries", state["ents_used"], state["ents_max"])
    _bar(rows, "elements", state["elems_used"], state["elems_max"])
    for qmgr, dataset in sorted(state["smds"].items()):
        status = "" if dataset["status"] == "NORMAL" else f", EXPANDST {dataset['status']}"
        _bar(rows, f"SMDS {qmgr}", dataset["blocks_used"], dataset["blocks_total"], f"blocks{status}")
    rule = f"offload rule {state['offload_rule']}" if state["offload_rule"] else "no offload"
    refused = f", {state['full_puts']:,} puts refused with 2192" if state["full_puts"] else ""
    messages = int(state["messages"])
    title = f"{name}  {messages:,} message{'' if messages == 1 else 's'}, {rule}{refused}"
    seen = Group(rows, _forecast(state["forecast"]))
    return Panel(seen, title=title, title_align="left", border_style="red" if state["full_puts"] else "blue")


def _forecast(forecast: Mapping[str, Any] | None) -> Text:
    """A line even where nothing is foreseen: the picture does not jump."""
    found = Text("forecast   ", style="bold", no_wrap=True, overflow="ellipsis")
    if forecast is None:
        return found.append("nothing rises", "not bold dim")
    first = forecast["resources"][0]
    likely = first["time_to_full_s"] is not None and first["full_probability"] >= _LIKELY
    near = likely and first["time_to_full_s"]["p50"] <= _NEAR
    return found.append(in_words(forecast), "bold red" if near else "yellow" if likely else "not bold")


def _bar(rows: Table, name: str, used: int, most: int, what: str = "") -> None:
    share = used / max(1, most)
    style = "green" if share < 0.7 else "yellow" if share < 0.9 else "red"
    bar = ProgressBar(total=max(1, most), completed=min(used, most), complete_style=style, finished_style="red")
    rows.add_row(name, bar, Text(f"{share:.1%}", style=style), f"{used:,} of {most:,} {what}")


def _alerts(alerts: Sequence[AlertRecord]) -> Panel:
    """A line for each alert, as it was told last, the one opened last on top; below them what was told last of all."""
    latest: dict[str, AlertRecord] = {}
    opened: dict[str, str] = {}
    for alert in alerts:
        latest[alert.data.alert_id] = alert
        opened.setdefault(alert.data.alert_id, alert.data.time)
    still = sum(alert.change != "cleared" for alert in latest.values())
    title = f"alerts: {len(latest)}, open: {still} (since when, how bad, what, when full, how full, filled by)"
    if not latest:
        return _alert_panel(title, Text("none yet", style="dim"))
    rows = Table.grid(padding=(0, 1))
    for _ in range(6):
        rows.add_column(no_wrap=True)
    for alert_id, alert in list(reversed(latest.items()))[:_SHOWN_ALERTS]:
        rows.add_row(Text(opened[alert_id][11:16], style="dim"), *_alert_cells(alert))
    told = alerts[-1].data
    advice = [Text(f"-> {action}") for action in told.actions[:1]]
    return _alert_panel(title, rows, Text(f"{told.time[11:19]} {told.cause}", style="italic"), *advice)


def _alert_panel(title: str, *lines: RenderableType) -> Panel:
    return Panel(Group(*lines), title=title, title_align="left", border_style="magenta")


def _alert_cells(alert: AlertRecord) -> list[Text]:
    data, cleared = alert.data, alert.change == "cleared"
    word = "cleared" if cleared else data.severity
    filler = f"{data.fillers[0].queue} {data.fillers[0].share:.0%}" if data.fillers else ""
    return [
        Text(f" {word:<8} ", style=CLEARED if cleared else STYLES.get(word, "bold")),
        Text(f"{data.store} {data.resource}", style="bold"),
        Text(data.condition + _full_at(alert), style="bold"),
        Text("" if data.usage_pct is None else f"{data.usage_pct:5.1f}%"),
        Text("" if cleared else filler, style="dim", overflow="ellipsis"),
    ]


def _full_at(alert: AlertRecord) -> str:
    """The time of day at which it is full, where an alert foresees that; the time left would be out of date soon."""
    times = alert.data.time_to_full_s
    if times is None or alert.change == "cleared":
        return ""
    told = datetime.fromisoformat(alert.data.time)
    return f" ~{told + timedelta(seconds=times['p50']):%H:%M}"
