"""The formats of feeds, and the reader of each. The table of docs/feeds.md describes them, in the same order."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from twin.errors import UsageError
from twin.feeds.intake import Intake
from twin.feeds.protocol import Feed, FeedOptions


@dataclass(frozen=True, slots=True)
class Format:
    """A format."""

    name: str  # on the command line
    reader: str  # module and class
    is_file: bool = True  # `mqtwin import` takes it
    is_live: bool = False  # `mqtwin collect` takes it


FORMATS: dict[str, Format] = {
    format_.name: format_
    for format_ in (
        Format("smf", "twin.feeds.smf:SmfFeed"),
        Format("display", "twin.feeds.display:DisplayFeed"),
        Format("rest", "twin.feeds.rest:RestFeed"),
        Format("amqsevt", "twin.feeds.amqsevt:AmqsevtFeed"),
        Format("otlp", "twin.feeds.otlp:OtlpFeed", is_live=True),
        Format("dds", "twin.feeds.dds:DdsFeed", is_live=True),
        Format("m3", "twin.feeds.prometheus:M3Feed", is_live=True),
        Format("prometheus", "twin.feeds.prometheus:PrometheusFeed", is_live=True),
        Format("mq_json", "twin.feeds.prometheus:MqJsonFeed", is_live=True),
        Format("odp", "twin.feeds.odp:OdpFeed", is_live=True),
        Format("connect", "twin.feeds.connect:ConnectFeed", is_file=False, is_live=True),
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
