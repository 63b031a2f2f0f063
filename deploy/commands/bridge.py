"""``mqtwin bridge``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Annotated, Literal
from urllib.parse import urlsplit

import structlog
from cyclopts import App, Parameter

from deploy.bridge.alertmanager import AlertmanagerBridge
from deploy.bridge.webhook import Notices, Webhook, new_client, read_signing_key
from deploy.options.common import KafkaOptions
from deploy.options.files import InputFile
from streams.collecting.http import bearer, check_url
from streams.host.signals import StopRequestedError, raise_on_stop
from streams.kafka.latest import AlertEntry, Latest
from streams.kafka.topic_reader import TopicReader
from streams.kafka.topics import Topics
from streams.log import NewsLog, configure_logging

bridge = App(name="bridge")

_events = structlog.get_logger("mqtwin.bridge")

_READ_SECONDS = 0.5
_Log = Literal["auto", "text", "json"]


@bridge.command
def alertmanager(
    *,
    kafka: KafkaOptions,
    url: Annotated[tuple[str, ...], Parameter(negative="")],
    token_file: InputFile | None = None,
    log: _Log = "auto",
) -> None:
    """Keep Alertmanager informed of the open incidents, one alert each, until Ctrl-C or SIGTERM.

    Open ones are sent at each change and every minute, those over for five minutes. Nothing is stored but the topic, so
    the bridge can be restarted, or run twice.

    Args:
        kafka: Kafka connection.
        url: Base URL of Alertmanager; repeat it for every peer of a cluster.
        token_file: File with a bearer token.
        log: Format of the log on standard error; auto: JSON unless that is a terminal.
    """
    urls = [check_url(address, "--token-file").rstrip("/") for address in url]
    headers = {} if token_file is None else bearer(token_file)
    _configure_log(log)
    with AlertmanagerBridge(urls, headers) as sender:
        _follow(kafka, sender.apply, urls, sender.counts, learn=sender.learn)


@bridge.command
def webhook(
    *,
    kafka: KafkaOptions,
    url: Annotated[str, Parameter(negative="")],
    secret_file: InputFile,
    all: Annotated[bool, Parameter(negative="")] = False,  # noqa: A002 -- the name of the option
    log: _Log = "auto",
) -> None:
    """Post incidents to a webhook when they become pages, get worse and are over, signed, until Ctrl-C or SIGTERM.

    At its start it posts the last such record of each incident that calls, or has ended within five minutes; the
    receiver recognises those it has by their id.

    Args:
        kafka: Kafka connection.
        url: Address of the webhook.
        secret_file: File with the secret of the signature, 24 bytes or more.
        all: Post each alert record, in the order of the topic; at the start the last one of each open alert.
        log: Format of the log on standard error; auto: JSON unless that is a terminal.
    """
    address, secret = check_url(url, "--secret-file").rstrip("/"), read_signing_key(secret_file)
    _configure_log(log)
    stop = threading.Event()
    with new_client() as client:
        sender = Webhook(address, secret, client, stop)
        notices = Notices()

        def deliver_all(entries: Sequence[AlertEntry]) -> None:
            for entry in entries:
                sender.deliver(entry.alert)

        def deliver_notices(entries: Sequence[AlertEntry]) -> None:
            for alert in notices.take(entries):
                sender.deliver(alert)

        if all:
            _follow(kafka, deliver_all, [address], sender.counts)
        else:
            _follow(kafka, deliver_notices, [address], sender.counts, learn=notices.learn)


def _follow(
    kafka: KafkaOptions,
    deliver: Callable[[Sequence[AlertEntry]], None],
    urls: Sequence[str],
    counts: Callable[[], dict[str, int]],
    *,
    learn: Callable[[Sequence[AlertEntry]], object] | None = None,
) -> None:
    """Read the alerts topic from its beginning, and deliver.

    The log says once what is read and where it is sent, and then at most each minute how many are open and sent.

    Args:
        kafka: Kafka connection.
        deliver: called once when the topic has been read to its end, with the last record of each alert, or with none
            if `learn` has got them, then with the new records in their order.
        urls: where it delivers; paths, which may be secrets, are not logged.
        counts: returns what was delivered, by name.
        learn: called with the records up to the end of the topic, in their order; None: they are of no interest.
    """
    topics = Topics(kafka.topic_prefix)
    latest = Latest(topics)
    try:
        with raise_on_stop(), TopicReader(kafka.client(), {topics.alerts: None}) as reader:
            if reader.missing:
                why = "`mqtwin stream` with the same --topic-prefix creates them"
                _events.warning("waiting for topics", topics=reader.missing, why=why)
            _events.info("bridging", reads=topics.alerts, sends_to=[_origin(url) for url in urls])
            news = NewsLog(_events, "bridging")
            is_started = False
            while True:
                applied = [latest.apply(record) for record in reader.read(_READ_SECONDS)]
                latest.forget_cleared()
                changes = [entry for entry in applied if entry is not None]
                if is_started:
                    if changes:
                        deliver(changes)
                else:
                    if learn is not None:
                        learn(changes)
                    if reader.is_caught_up:
                        is_started = True
                        deliver(list(latest.alerts.values()) if learn is None else ())
                if is_started:
                    still_open = sum(entry.is_open for entry in latest.alerts.values())
                    news.note(alerts_open=still_open, unreadable=latest.unreadable, **counts())
    except StopRequestedError:
        pass  # a signal is the usual end


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _configure_log(log: _Log) -> None:
    configure_logging(json_lines=None if log == "auto" else log == "json")
