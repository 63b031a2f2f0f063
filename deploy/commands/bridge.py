"""``mqtwin bridge``."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

import structlog
from cyclopts import App, Parameter

from deploy.bridge import AlertmanagerBridge
from deploy.options.common import Flag, KafkaOptions
from deploy.options.files import SecretFile
from streams.collecting.http import bearer, check_url
from streams.host.signals import until_stopped
from streams.kafka.latest import Latest
from streams.kafka.topic_reader import TopicReader
from streams.log import NewsLog, configure_logging

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
