"""``mqtwin alerts`` and ``mqtwin bridge``: the incidents of stores, printed as they change, or sent to Alertmanager."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Literal
from urllib.parse import urlsplit

import structlog
from cyclopts import App, Parameter
from cyclopts.validators import Number
from rich.console import Console

from deploy.bridge import AlertCommand, AlertmanagerBridge
from deploy.options.common import MAX_SECONDS, Flag, KafkaOptions, SecretFile, open_sink, parse_zone
from deploy.show.alerts import alert_block, alert_line, incident_block, incident_line, is_shown
from deploy.show.document import ZONE
from streams.collecting.http import bearer, check_url
from streams.host.signals import until_stopped
from streams.kafka.topic_reader import AlertReader, Latest, TopicReader, read_alerts
from streams.log import NewsLog, configure_logging
from twin.records import AlertRecord, IncidentChange, Incidents


def alerts(
    *,
    kafka: KafkaOptions,
    json: Flag = False,
    all: Flag = False,  # noqa: A002 -- the name of the option
    from_beginning: Flag = False,
    until_idle: Annotated[float | None, Parameter(validator=Number(gt=0, lte=MAX_SECONDS))] = None,
    exec: Annotated[str | None, Parameter(negative="")] = None,  # noqa: A002 -- the name of the option
    zone: str | None = None,
    sink: str | None = None,
) -> int:
    """Print the incidents of stores as they change, until Ctrl-C or SIGTERM: what is wrong, its parts below it.

    On a terminal they are coloured, unless NO_COLOR is set. Elsewhere each change is one line.

    Args:
        kafka: Kafka connection.
        json: Print JSON instead of text: each alert record as one line, as in the topic.
        all: Print each alert record, and run the command for each.
        from_beginning: Also read the alerts already in the topic.
        until_idle: Stop after this many seconds without an alert.
        exec: Command to run when an incident becomes a page, gets worse, when puts succeed again and when it is over,
            with the alert as JSON on standard input and its brief in MQTWIN_BRIEF; retried if it fails.
        zone: Zone of the times that are printed: Europe/Berlin, or +01:00. Default: UTC. Those in causes are in the
            zone of the job's estate.
        sink: Where each alert record goes besides, NAME or NAME:TEXT, of an installed distribution: docs/hooks.md.
    """
    command = None if exec is None else AlertCommand(exec)
    if zone is not None:
        ZONE.set(parse_zone(zone))
    configure_logging()
    topics = kafka.topics
    with (
        open_sink(sink) as deliver,
        AlertReader(kafka.client(), topics, from_beginning=from_beginning) as reader,
    ):
        if reader.is_waiting:
            print(f"mqtwin: topic {topics.alerts} does not exist yet: waiting for it", file=sys.stderr)
        with until_stopped():
            read = _delivered(read_alerts(reader, until_idle), command, deliver, every_record=all)
            if json:
                for alert, _ in read:
                    print(alert.line, flush=True)
            else:
                _print_alerts(read, every_record=all)
        if reader.unreadable:
            print(f"mqtwin: {reader.unreadable} records of {topics.alerts} are not alerts", file=sys.stderr)
    return 1 if command is not None and command.undelivered else 0


def _delivered(
    alerts: Iterable[AlertRecord],
    command: AlertCommand | None,
    deliver: Callable[[AlertRecord], object],
    *,
    every_record: bool,
) -> Iterator[tuple[AlertRecord, list[IncidentChange]]]:
    """Yield alerts and what they change, each after the command has got what people are told."""
    incidents = Incidents()
    for alert in alerts:
        changes = incidents.take(alert)
        deliver(alert)
        if command is not None:
            for notice in [alert] if every_record else [change.record for change in changes if change.is_notice]:
                command.deliver(notice)
        yield alert, changes


def _print_alerts(read: Iterable[tuple[AlertRecord, list[IncidentChange]]], *, every_record: bool) -> None:
    console = Console(soft_wrap=True)
    width = console.width if console.is_terminal else None
    for alert, changes in read:
        if every_record:
            texts = [alert_line(alert) if width is None else alert_block(alert, width)]
        else:
            visible = [change for change in changes if is_shown(change)]
            texts = [incident_line(change) if width is None else incident_block(change, width) for change in visible]
        for text in texts:
            if isinstance(text, str):
                print(text, flush=True)
            else:
                console.print(text)


# --- mqtwin bridge ----------------------------------------------------------------------------------------------------

bridge = App(name="bridge")

_events = structlog.get_logger("mqtwin.bridge")

_READ_SECONDS = 0.5


@bridge.command
def alertmanager(
    *,
    kafka: KafkaOptions,
    url: Annotated[tuple[str, ...], Parameter(negative="")],
    site: str = "",
    token_file: SecretFile | None = None,
    allow_http: Flag = False,
    log: Literal["auto", "text", "json"] = "auto",
) -> None:
    """Keep Alertmanager informed of the open incidents, one alert each, until Ctrl-C or SIGTERM.

    Open ones are sent at each change and every minute, those over for five minutes. Nothing is stored but the topic, so
    the bridge can be restarted, or run twice.

    Args:
        kafka: Kafka connection.
        url: Base URL of Alertmanager; repeat it for every peer of a cluster.
        site: Label `site` of every alert, in place of the name in the estate of the job.
        token_file: File with a bearer token.
        allow_http: Send the token by http, too, in clear to another machine.
        log: Format of the log on standard error; auto: JSON unless that is a terminal.
    """
    has_secret = token_file is not None and not allow_http
    urls = [check_url(address, "--token-file", has_secret=has_secret).rstrip("/") for address in url]
    headers = {} if token_file is None else bearer(token_file)
    configure_logging(json_lines=None if log == "auto" else log == "json")
    with AlertmanagerBridge(urls, headers, site=site) as sender:
        _follow(kafka, sender, urls)


def _follow(kafka: KafkaOptions, sender: AlertmanagerBridge, urls: list[str]) -> None:
    """Read the alerts topic from its beginning, and send nothing before its end is reached.

    The log says once what is read and where it is sent, and then at most each minute how many are open and sent. It
    names no paths of the addresses, which may be secrets.
    """
    topics = kafka.topics
    latest = Latest(topics)
    with until_stopped(), TopicReader(kafka.client(), {topics.alerts: None}) as reader:
        if reader.missing:
            why = "`mqtwin stream` with the same --topic-prefix creates them"
            _events.warning("waiting for topics", topics=reader.missing, why=why)
        _events.info(
            "bridging", reads=topics.alerts, sends_to=["{0.scheme}://{0.netloc}".format(urlsplit(url)) for url in urls]
        )
        news = NewsLog(_events, "bridging")
        is_started = False
        while True:
            applied = [latest.apply(record) for record in reader.read(_READ_SECONDS)]
            latest.forget_cleared()
            changes = [entry for entry in applied if entry is not None]
            if not is_started:
                sender.learn(changes)
                if reader.is_caught_up:
                    is_started = True
                    sender.apply(())
            elif changes:
                sender.apply(changes)
            if is_started:
                still_open = sum(entry.is_open for entry in latest.alerts.values())
                news.note(alerts_open=still_open, unreadable=latest.unreadable, **sender.counts())
