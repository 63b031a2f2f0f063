"""``mqtwin alerts``."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console

from deploy.options import KafkaOptions
from deploy.show.alerts import in_colour, in_one_line
from deploy.stopping import StopRequestedError, raise_on_stop
from streams.kafka.subscribe import AlertReader, AlertRecord, read_alerts
from streams.kafka.topics import Topics


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
            with raise_on_stop():
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
