"""Facts that feeds show beside levels: the table that `mqtwin commission` prints, held against what readers yield."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.twin.feeds.conftest import ESTATE
from tests.twin.feeds.live_samples import LIVE_PAGES
from tests.twin.feeds.samples import PAGES
from twin.estate import load_estate
from twin.events import Event
from twin.feeds import FORMATS, FeedOptions, Intake, Page, make_feed
from twin.feeds.protocol import FeedFact, formats_with

_OPTIONS = FeedOptions(qmgr="QM01", queue="ORDERS", late_s=0.0)
_MINUTE = 60_000_000


def events_of(name: str, folder: Path) -> Iterator[Event]:
    path = folder / "estate.toml"
    path.write_text(ESTATE, encoding="utf-8")
    for pages in (PAGES.get(name, ()), LIVE_PAGES.get(name, ())):
        feed = make_feed(name, Intake(load_estate(path)), _OPTIONS)
        for number, data in enumerate(pages):
            page = Page(data, f"page {number}", 1_795_176_000_000_000 + number * _MINUTE)
            yield from (item for item in feed.take(page) if isinstance(item, dict))
        yield from (item for item in feed.finish() if isinstance(item, dict))


def shown_of(event: Event) -> Iterator[FeedFact]:
    if event["op"] in {"PUT", "GET"}:
        yield FeedFact.CALLS
    if event["op"] == "PUT" and "length" in event and "count" not in event:
        yield FeedFact.LENGTHS
    if "priority" in event:
        yield FeedFact.PRIORITIES
    if "uow" in event:
        yield FeedFact.UNITS
    if any("getters" in queue for queue in event.get("measured", {}).get("queues") or ()):
        yield FeedFact.READERS


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[FeedFact]]:
    folder = tmp_path_factory.mktemp("shown")
    return {name: {what for event in events_of(name, folder) for what in shown_of(event)} for name in FORMATS}


@pytest.mark.parametrize("name", FORMATS)
def test_what_a_reader_yields_is_in_the_table(name: str, facts: dict[str, set[FeedFact]]) -> None:
    assert facts[name] <= set(FORMATS[name].facts)


@pytest.mark.parametrize("what", FeedFact)
def test_what_the_table_has_is_yielded(what: FeedFact, facts: dict[str, set[FeedFact]]) -> None:
    assert {name for name, own in facts.items() if what in own} and formats_with(what)
