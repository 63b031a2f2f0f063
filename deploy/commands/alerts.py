"""``mqtwin alerts``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console

from deploy.bridge.alert_command import AlertCommand
from deploy.options.common import KafkaOptions
from deploy.show.alerts import alert_block, alert_line
from streams.host.signals import StopRequestedError, raise_on_stop
from streams.kafka.subscribe import AlertReader, read_alerts
from streams.kafka.topics import Topics
from streams.log import configure_logging
from twin.records import AlertRecord


def alerts(
    *,
    kafka: KafkaOptions,
    json: Annotated[bool, Parameter(negative="")] = False,
    from_beginning: Annotated[bool, Parameter(negative="")] = False,
    until_idle: Annotated[float | None, Parameter(validator=Number(gt=0))] = None,
    exec: Annotated[str | None, Parameter(negative="")] = None,  # noqa: A002 -- the name of the option
) -> int:
    """Print alerts as they arrive, each once, until Ctrl-C or SIGTERM.

    On a terminal alerts are coloured, unless NO_COLOR is set. Elsewhere each alert is one line.

    Args:
        kafka: Kafka connection.
        json: Print each alert as one line of JSON, as in the topic.
        from_beginning: Also print the alerts already in the topic.
        until_idle: Stop after this many seconds without an alert.
        exec: Command to run for each alert, which gets it as JSON on standard input; retried if it fails.
    """
    command = None if exec is None else AlertCommand(exec)
    configure_logging()
    topics = Topics(kafka.topic_prefix)
    with AlertReader(kafka.client(), topics, from_beginning=from_beginning) as reader:
        if reader.is_waiting:
            print(f"mqtwin: topic {topics.alerts} does not exist yet: waiting for it", file=sys.stderr)
        try:
            with raise_on_stop():
                _print_alerts(_delivered(read_alerts(reader, until_idle), command), as_json=json)
        except StopRequestedError:
            pass  # a signal is the usual end
        if reader.unreadable:
            print(f"mqtwin: {reader.unreadable} records of {topics.alerts} are not alerts", file=sys.stderr)
    return 1 if command is not None and command.undelivered else 0


def _delivered(alerts: Iterable[AlertRecord], command: AlertCommand | None) -> Iterator[AlertRecord]:
    """Yield alerts, each after the command has got it."""
    for alert in alerts:
        if command is not None:
            command.deliver(alert)
        yield alert


def _print_alerts(alerts: Iterable[AlertRecord], *, as_json: bool) -> None:
    console = Console(soft_wrap=True)
    for alert in alerts:
        if as_json:
            print(alert.line, flush=True)
        elif console.is_terminal:
            console.print(alert_block(alert, console.width))
        else:
            print(alert_line(alert), flush=True)
