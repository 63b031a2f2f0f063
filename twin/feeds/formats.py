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


FORMATS: dict[str, Format] = {}  # by name


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
