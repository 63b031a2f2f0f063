"""Feeds: data that sites already have, converted to events. Described in docs/feeds.md.

One reader per format, a subclass of `twin.feeds.protocol.Feed`: pages of bytes go in, events come out, and what is
known or wrong about them goes to its `Intake`. `twin.feeds.formats` lists the formats, `twin.feeds.importing` converts
files to a recording.
"""

from twin.events import Event
from twin.feeds.formats import FORMATS, Format, make_feed
from twin.feeds.intake import Complaint, Coverage, Intake, UnknownName
from twin.feeds.protocol import Feed, FeedOptions, Page

__all__ = [
    "FORMATS",
    "Complaint",
    "Coverage",
    "Event",
    "Feed",
    "FeedOptions",
    "Format",
    "Intake",
    "Page",
    "UnknownName",
    "make_feed",
]
