"""``mqtwin export``."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from typing import Annotated

import structlog
from cyclopts import Parameter
from cyclopts.validators import Number
from prometheus_client import CollectorRegistry

from deploy.metrics.collector import Health, TwinCollector, metrics_server, samples_of
from deploy.options.common import MAX_SECONDS, InputFile, KafkaOptions, parse_address
from streams.host.signals import stop_requests
from streams.kafka.topic_reader import Latest, TopicReader
from streams.kafka.topics import TopicRecord
from streams.log import NewsLog, configure_logging
from streams.query.status import JobStatus, read_status
from twin.base.errors import MqtwinError

_READ_SECONDS = 0.5

_log = structlog.get_logger("mqtwin.export")


def export(
    *,
    kafka: KafkaOptions,
    listen: str = "127.0.0.1:9746",
    status_file: InputFile | None = None,
    max_beat: Annotated[float, Parameter(validator=Number(gt=0, lte=MAX_SECONDS))] = 120.0,
    site: str = "",
) -> None:
    """Serve the metrics of stores, alerts, dead letters and the job to Prometheus, until Ctrl-C or SIGTERM.

    Paths: /metrics; /healthz, alive; /readyz, alive and caught up. It reads topics and asks the job nothing.

    Args:
        kafka: Kafka connection.
        listen: Address to serve on, HOST:PORT; port 0: a free one. There is no login: keep it in a private network.
        status_file: File of `mqtwin stream --status-file`, for the job's own metrics and health.
        max_beat: Seconds without a batch or idle beat after which /healthz fails; at least ten triggers.
        site: Label `site` of every metric, in place of the name in the estate of the job.
    """
    host, port = parse_address(listen)
    configure_logging()
    topics = kafka.topics
    latest, lock = Latest(topics, derive=samples_of), threading.Lock()
    failures: list[Exception] = []  # of the server's thread

    def status() -> JobStatus | None:
        return None if status_file is None else read_status(status_file)

    with (
        stop_requests() as stop,
        # Dead letters are counted from now on: a counter over what retention leaves would go back at each restart.
        TopicReader(kafka.client(), {topics.state: None, topics.alerts: None, topics.dlq: 0}) as reader,
    ):

        def missing() -> list[str]:
            return [topic for topic in reader.missing if topic == topics.state]  # the others may be created later

        health = Health(
            status,
            has_status=status_file is not None,
            is_caught_up=lambda: reader.is_caught_up,
            missing=missing,
            unreadable=lambda: latest.unreadable,
            max_beat_s=max_beat,
        )
        registry = CollectorRegistry()
        registry.register(TwinCollector(latest, lock, status, lambda: reader.is_caught_up and not missing(), site))
        with metrics_server(host, port, registry, health, failures.append) as bound_port:
            print(f"mqtwin: metrics at http://{host}:{bound_port}/metrics", file=sys.stderr, flush=True)
            if reader.missing:
                print(
                    f"mqtwin: waiting for {', '.join(reader.missing)}: `mqtwin stream` with the same --topic-prefix"
                    " creates them",
                    file=sys.stderr,
                    flush=True,
                )
            _log.info("exporting", reads=[topics.state, topics.alerts, topics.dlq], serves=f"{host}:{bound_port}")
            news = NewsLog(_log, "exporting")
            while not stop.is_set():
                if failures:
                    raise MqtwinError(f"the server of the metrics has ended: {failures[0]}")
                records = reader.read(_READ_SECONDS)
                with lock:
                    _take(records, latest, news)
                health.on_read()


def _take(records: Iterable[TopicRecord], latest: Latest, news: NewsLog) -> None:
    for record in records:
        latest.apply(record)
    latest.forget_cleared()
    news.note(
        stores=len(latest.states),
        alerts_open=sum(entry.is_open for entry in latest.alerts.values()),
        incidents_open=sum(not incident.is_over for incident in latest.incidents.open()),
        dead_letters=sum(latest.dead_letters.values()),
        unreadable=latest.unreadable,
    )
