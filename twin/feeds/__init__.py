"""Feeds: data that sites already have, converted to events. Described in docs/feeds.md.

One reader per format, a subclass of `twin.feeds.protocol.Feed`: pages of bytes go in, events and complaints come out.
`FORMATS` lists the formats, `twin.feeds.importing` converts files to a recording.
"""

from twin.events import Event
from twin.feeds.intake import Complaint, Coverage, Intake, Item, PassedOver, UnknownName
from twin.feeds.protocol import FORMATS, Feed, FeedOptions, Format, Page, make_feed

__all__ = [
    "FORMATS",
    "Complaint",
    "Coverage",
    "Event",
    "Feed",
    "FeedOptions",
    "Format",
    "Intake",
    "Item",
    "Page",
    "PassedOver",
    "UnknownName",
    "make_feed",
]
