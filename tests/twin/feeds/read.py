"""Reading pages of a format in tests."""

from __future__ import annotations

from typing import Any

from twin.estate import Estate
from twin.feeds import Event, Feed, FeedOptions, Intake, Page, make_feed
from twin.feeds.importing import feed_events


def read(name: str, *pages: bytes | Page, estate: Estate | None = None, **options: Any) -> tuple[list[Event], Intake]:
    """Return the events of pages that the estate can take, and the intake."""
    intake = Intake(estate)
    feed = make_feed(name, intake, FeedOptions(**options))
    whole = [page if isinstance(page, Page) else Page(page, f"page {i}") for i, page in enumerate(pages)]
    return list(intake.sift(feed_events(feed, whole))), intake


def take(feed: Feed, *pages: Page, is_end: bool = True) -> list[Event]:
    """Return all events of pages, whatever the estate says; is_end: with those that the feed has held back."""
    events = [event for page in pages for event in feed.intake.account(feed.take(page))]
    return events + (list(feed.intake.account(feed.finish())) if is_end else [])


def total(events: list[Event], op: str, field: str = "count", **having: Any) -> int:
    """Return the sum of a field over events of an operation that have given values; `bytes` is count times length."""
    own = [e for e in events if e["op"] == op and all(e.get(name) == value for name, value in having.items())]
    if field == "bytes":
        return sum(event["count"] * event["length"] for event in own)
    return sum(event[field] for event in own)
