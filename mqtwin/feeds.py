"""Names that a format of your own needs, of the modules below `twin.feeds`."""

from twin.events import Event
from twin.feeds.intake import Complaint, Item
from twin.feeds.protocol import DEFINITIONS, FLOWS, LEVELS, POLICY, Feed, Format, Page

__all__ = ["DEFINITIONS", "FLOWS", "LEVELS", "POLICY", "Complaint", "Event", "Feed", "Format", "Item", "Page"]
