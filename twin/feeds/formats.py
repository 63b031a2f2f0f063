"""The formats of feeds: what each gives, and where its reader is. docs/feeds.md has the same table."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from twin.errors import UsageError
from twin.feeds.intake import Intake
from twin.feeds.protocol import Feed, FeedOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format. The texts are cells of the table in docs/feeds.md."""

    name: str  # on the command line
    reader: str  # module and class
    data: str  # what it is called where it comes from
    granularity: str
    quantities: str
    lag: str
    unknown: str
    is_file: bool = True  # `mqtwin import` takes it
    is_live: bool = False  # `mqtwin collect` takes it


FORMATS: dict[str, Format] = {
    format_.name: format_
    for format_ in (
        Format(
            name="smf",
            reader="twin.feeds.smf:SmfFeed",
            data="SMF 115 and 116 records of MQ, from IFASMFDP, with or without RDW",
            granularity="STATIME or ACCTIME, 1 s to 30 min",
            quantities="page set pages, SMDS blocks and messages; with STATQ puts, gets and bytes per queue",
            lag="the interval",
            unknown="entries and elements of structures, priority, single message lengths",
        ),
        Format(
            name="display",
            reader="twin.feeds.display:DisplayFeed",
            data="texts of DISPLAY commands and consoles: job log, SYSLOG, OPERLOG, CSQUTIL, runmqsc",
            granularity="each DISPLAY, any second",
            quantities="entries and size of structures, SMDS blocks and messages, page set pages, queue files, depths",
            lag="none",
            unknown="puts and gets, elements of structures",
        ),
        Format(
            name="rest",
            reader="twin.feeds.mqsc_objects:RestFeed",
            data="answers of the REST interface to MQSC commands (runCommandJSON)",
            granularity="each DISPLAY, any second",
            quantities="as of `display`, without DISPLAY USAGE",
            lag="none",
            unknown="puts and gets, elements of structures, page sets",
        ),
        Format(
            name="amqsevt",
            reader="twin.feeds.amqsevt:AmqsevtFeed",
            data="JSON of amqsevt: statistics, accounting, activity trace and performance events (distributed)",
            granularity="every call (activity trace), or STATINT, by default 30 min",
            quantities="puts and gets with length, message id and unit of work; or counts and bytes per queue",
            lag="some seconds, or the interval",
            unknown="expired messages in an activity trace; file sizes; priority in statistics",
        ),
        Format(
            name="otlp",
            reader="twin.feeds.otlp:OtlpFeed",
            data="OpenTelemetry spans of MQ, from a collector's Kafka or file exporter, protobuf or JSON",
            granularity="each put and destructive get of a traced message",
            quantities="puts and gets; where the span has them message id, size and queue manager",
            lag="seconds",
            unknown="messages without trace context or not sampled, priority, persistence, expired messages",
            is_live=True,
        ),
        Format(
            name="dds",
            reader="twin.feeds.dds:DdsFeed",
            data="RMF Monitor III reports CFACT and CFOVER, JSON of the Distributed Data Server",
            granularity="MINTIME, usually 60 s",
            quantities="size, entries, elements and SCM of structures; storage and SCM of coupling facilities",
            lag="a minute",
            unknown="puts and gets, SMDS, page sets",
            is_live=True,
        ),
        Format(
            name="m3",
            reader="twin.feeds.prometheus:M3Feed",
            data="RMF's OpenMetrics page /metrics/m3",
            granularity="MINTIME, usually 60 s",
            quantities="storage of coupling facilities",
            lag="a minute",
            unknown="everything about structures: take `dds` too",
            is_live=True,
        ),
        Format(
            name="prometheus",
            reader="twin.feeds.prometheus:PrometheusFeed",
            data="mq_prometheus: its page, or a range query of Prometheus",
            granularity="the scrape, 10 to 60 s",
            quantities="page set pages, depth and size of queue files, puts and gets; bytes except on z/OS",
            lag="the scrape",
            unknown="structures, SMDS; on z/OS bytes and persistence",
            is_live=True,
        ),
        Format(
            name="mq_json",
            reader="twin.feeds.prometheus:MqJsonFeed",
            data="records of mq_json, an object per line or Kafka record",
            granularity="the collection, 10 to 60 s",
            quantities="as `prometheus`",
            lag="the collection",
            unknown="as `prometheus`",
            is_live=True,
        ),
        Format(
            name="odp",
            reader="twin.feeds.odp:OdpFeed",
            data="OMEGAMON Data Provider, product kmq, JSON rows in Kafka or a file",
            granularity="1 or 5 min",
            quantities="entries of structures in whole percents, SMDS, page set pages, puts and reads of queues",
            lag="1 or 5 min",
            unknown="elements, bytes of messages, persistence",
            is_live=True,
        ),
        Format(
            name="connect",
            reader="twin.feeds.connect:ConnectFeed",
            data="records of the Kafka Connect source for MQ, behind a streaming queue",
            granularity="each put",
            quantities="puts with size, message id, priority and persistence",
            lag="seconds",
            unknown="gets: measure the depth with another format",
            is_file=False,
            is_live=True,
        ),
    )
}


def make_feed(name: str, intake: Intake, options: FeedOptions | None = None) -> Feed:
    """Return the feed of a format.

    Args:
        name: name of the format.
        intake: takes its names, coverage and complaints.
        options: facts that the data lack.

    Raises:
        UsageError: there is no such format.
    """
    if name not in FORMATS:
        raise UsageError(f"{name}: no such format; expected: {', '.join(sorted(FORMATS))}")
    module, _, reader = FORMATS[name].reader.partition(":")
    feed: Feed = getattr(import_module(module), reader)(intake, options or FeedOptions())
    return feed
