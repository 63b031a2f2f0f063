"""``mqtwin alerts``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console
from rich.text import Text

from deploy.options import KafkaOptions
from deploy.signals import StopRequestedError, stop_on_request
from streams.kafka.subscribe import AlertReader, AlertRecord, Filler, read_alerts
from streams.kafka.topics import Topics
from twin.conditions import CLEARED, CRITICAL, FULL, UPDATED, WARNING

_STYLES = {WARNING: "yellow", CRITICAL: "bold red", FULL: "bold white on red"}
_CLEARED = "green"


def alerts(
    *,
    kafka: KafkaOptions,
    json: Annotated[bool, Parameter(negative="")] = False,
    from_beginning: Annotated[bool, Parameter(negative="")] = False,
    until_idle: Annotated[float | None, Parameter(validator=Number(gt=0))] = None,
) -> None:
    """A subscriber in the terminal: alerts as they come, each once, until Ctrl-C or SIGTERM.

    In colour on a terminal (not where NO_COLOR is set), one line an alert elsewhere.

    Args:
        kafka: The broker, and how to reach it.
        json: Each alert as one line of JSON, as it is in the topic.
        from_beginning: Also the alerts that the topic holds already.
        until_idle: Stop when none came for so many seconds.
    """
    topics = Topics(kafka.topic_prefix)
    with AlertReader(kafka.client(), topics, from_beginning=from_beginning) as reader:
        if not reader.assigned:
            print(f"mqtwin: there is no topic {topics.alerts} yet: waiting for it", file=sys.stderr)
        try:
            with stop_on_request():
                _show(read_alerts(reader, until_idle), as_json=json)
        except StopRequestedError:
            pass  # the usual end
        if reader.unreadable:
            print(f"mqtwin: {reader.unreadable} records of {topics.alerts} are no alerts", file=sys.stderr)


def _show(alerts: Iterable[AlertRecord], *, as_json: bool) -> None:
    console = Console(soft_wrap=True)
    for alert in alerts:
        if as_json:
            print(alert.value.decode(), flush=True)
        elif console.is_terminal:
            console.print(in_colour(alert))
        else:
            print(in_one_line(alert), flush=True)


def in_one_line(alert: AlertRecord) -> str:
    """An alert on one line: when, what, how bad, where, how full, why, who fills it; two spaces between."""
    data = alert.data
    fillers = _filled_by(data.fillers)
    parts = [
        data.time,
        f"{alert.change:<7}",
        f"{data.severity:<8}",
        data.store,
        data.resource,
        data.condition,
        "-" if data.usage_pct is None else f"{data.usage_pct:.1f}%",
        data.cause,
    ]
    return "  ".join(parts) + (f"  [{fillers}]" if fillers else "")


def in_colour(alert: AlertRecord) -> Text:
    """An alert for a terminal: a coloured head, then cause, fillers and actions on lines of their own."""
    data = alert.data
    style = _CLEARED if alert.change == CLEARED else _STYLES.get(data.severity, "bold")
    text = Text.assemble(
        (f"{data.time} ", "dim"),
        (f" {alert.change if alert.change == 'cleared' else data.severity} ", style),
        (f" {data.store} ", "bold"),
        f"{data.resource} {data.condition}" + ("" if data.usage_pct is None else f" {data.usage_pct:.1f}%"),
    )
    if alert.change == UPDATED:
        text.append(" (updated)", "dim")
    if data.cause:
        text.append(f"\n    {data.cause}")
    if fillers := _filled_by(data.fillers):
        text.append(f"\n    filled by {fillers}")
    if alert.change != CLEARED:
        for action in data.actions:
            text.append(f"\n    -> {action}")
    return text


def _filled_by(fillers: Sequence[Filler]) -> str:
    """The queues that fill, with their shares; those that round to nothing are left out."""
    return ", ".join(f"{filler.queue} {filler.share:.0%}" for filler in fillers if round(100 * filler.share))
