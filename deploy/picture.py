"""The demo's terminal picture: each store's entries, elements and data sets as bars, alerts as they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from streams.subscribe import AlertRecord

_STYLES = {"warning": "yellow", "critical": "bold red", "full": "bold white on red"}
_SHOWN_ALERTS = 9
_BAR_WIDTH = 40


def picture(
    states: Mapping[str, Mapping[str, Any]], alerts: Sequence[AlertRecord], total: int, speed: float
) -> RenderableType:
    """The whole picture. states: the latest record of each store; total: events of the recording; speed: of event time."""
    applied = sum(int(state["events"]) for state in states.values())
    clock = max((str(state["time"]) for state in states.values() if state["time"]), default="")
    head = Text.assemble(
        ("mqtwin demo ", "bold"),
        "a getter stops for two hours  ",
        (clock[:19].replace("T", " "), "cyan"),
        (f"  {speed:,.0f} times faster than real  {applied:,} of {total:,} events", "dim"),
    )
    stores = [_store(name, states[name]) for name in sorted(states)]
    return Group(head, *stores, _alerts(alerts))


def _store(name: str, state: Mapping[str, Any]) -> Panel:
    rows = Table.grid(padding=(0, 1))
    rows.add_column(width=12)
    rows.add_column(width=_BAR_WIDTH)
    rows.add_column(justify="right", width=8)
    rows.add_column(style="dim")
    _bar(rows, "entries", state["ents_used"], state["ents_max"])
    _bar(rows, "elements", state["elems_used"], state["elems_max"])
    for qmgr, dataset in sorted(state["smds"].items()):
        _bar(rows, f"SMDS {qmgr}", dataset["blocks_used"], dataset["blocks_total"], dataset["status"])
    rule = f"offload rule {state['offload_rule']}" if state["offload_rule"] else "no offload"
    refused = f", {state['full_puts']:,} puts refused with 2192" if state["full_puts"] else ""
    title = f"{name}  {state['messages']:,} messages, {rule}{refused}"
    return Panel(rows, title=title, title_align="left", border_style="red" if state["full_puts"] else "blue")


def _bar(rows: Table, name: str, used: int, most: int, said: str = "") -> None:
    share = used / max(1, most)
    style = "green" if share < 0.7 else "yellow" if share < 0.9 else "red"
    bar = ProgressBar(
        total=max(1, most), completed=min(used, most), width=_BAR_WIDTH, complete_style=style, finished_style="red"
    )
    rows.add_row(
        name, bar, Text(f"{share:.1%}", style=style), f"{used:,} of {most:,} {said if said != 'NORMAL' else ''}"
    )


def _alerts(alerts: Sequence[AlertRecord]) -> Panel:
    rows = Table.grid(padding=(0, 1))
    for alert in alerts[-_SHOWN_ALERTS:]:
        cleared = alert.change == "cleared"
        word = "cleared" if cleared else alert.data.severity
        rows.add_row(
            Text(alert.data.time[11:19], style="dim"),
            Text(f" {word} ", style="green" if cleared else _STYLES.get(word, "bold")),
            Text(f"{alert.data.store} {alert.data.resource} {alert.data.condition}", style="bold"),
            Text(alert.data.cause, overflow="ellipsis", no_wrap=True),
        )
    if not alerts:
        rows.add_row(Text("none yet", style="dim"))
    return Panel(rows, title=f"alerts ({len(alerts)})", title_align="left", border_style="magenta")
