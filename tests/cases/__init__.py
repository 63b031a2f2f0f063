"""Cases as data: a user's files and what must come out of them; `tests/twin/feeds/test_cases.py` holds each folder.

`feeds/FORMAT/NAME/` has the files of a site, `in` or `in1`, `in2` in their order, and what a feed makes of them:
`events`, a line each in order of time, and `complaints`, with what else is said of the files. Where the data lack
facts, `options` has them, the fields of `FeedOptions` in TOML; these and `estate.toml` stand in the folder, or in one
above it. A case may have `facts`: what the files show of the estate. An `in` that begins with `= ` is a recording of
the REST interface: `= 12:00:30` begins a round, `> QM01 DISPLAY CFSTRUCT(*) ALL` is a request, a second after the one
before, and the lines below it are its answer. `python -m tests.cases FOLDER` writes what comes out today.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from twin.base.units import as_text
from twin.estate import Estate, load_estate
from twin.feeds import Event, Feed, FeedOptions, Intake, Page, make_feed
from twin.feeds.estate_import import estate_text
from twin.feeds.importing import feed_events, read_page, sort_key

FEEDS = Path(__file__).with_name("feeds")
NOON = 1_795_176_000_000_000  # 2026-11-20T12:00:00Z: when the first page was collected; each other one 30 s later
STEP = 30_000_000


def folders() -> list[Path]:
    """Return the folders of cases."""
    return sorted({path.parent for path in FEEDS.glob("*/*/in*")})


def pages_of(folder: Path) -> list[Page]:
    """Return the files of a case."""
    files = sorted(folder.glob("in*"))
    if len(files) == 1 and files[0].read_bytes().startswith(b"= "):
        return [page for text in files[0].read_text(encoding="utf-8").split("\n= ") for page in _round_of(text)]
    return [Page(path.read_bytes(), path.name, NOON + number * STEP) for number, path in enumerate(files)]


def _round_of(text: str) -> Iterator[Page]:
    """Yield the pages of a round: its time, then requests with their answers."""
    clock, *asked = text.removeprefix("= ").strip().split("\n> ")
    start = int(datetime.fromisoformat(f"2026-11-20T{clock}Z").timestamp()) * 1_000_000
    for number, exchange in enumerate(asked):
        words, _, answer = exchange.partition("\n")
        qmgr, _, command = words.partition(" ")
        headers = {"mqweb.round": str(start), "mqweb.command": command, "mqweb.qmgr": qmgr}
        if number == len(asked) - 1:
            headers["mqweb.last"] = "1"
        url = f"https://mqweb.site:9443/ibmmq/rest/v3/admin/action/qmgr/{qmgr}/mqsc"
        yield Page(answer.encode(), url, start + number * 1_000_000, headers)


def options_of(folder: Path) -> FeedOptions:
    """Return the facts that a case adds to its files."""
    path = next((own / "options" for own in (folder, folder.parent) if (own / "options").exists()), None)
    values: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8")) if path else {}
    if "zone" in values:
        zone = str(values["zone"])
        hours = zone.removeprefix("UTC")
        is_offset = zone.startswith("UTC")
        values["zone"] = timezone(timedelta(hours=int(hours or 0))) if is_offset else ZoneInfo(zone)
    return FeedOptions(**values)


def estate_of(folder: Path) -> Estate:
    """Return the estate of a case: that of the nearest folder which has one."""
    return _loaded(next(own / "estate.toml" for own in (folder, *folder.parents) if (own / "estate.toml").exists()))


@cache
def _loaded(path: Path) -> Estate:
    return load_estate(path)


def read(folder: Path, pages: Iterable[Page], *, is_stream: bool = False) -> tuple[list[Event], Intake, Feed]:
    """Return the events of pages in order of time, their intake and the feed. is_stream: pages continue each other."""
    intake = Intake(estate_of(folder))
    feed = make_feed(folder.parent.name, intake, options_of(folder))
    if not is_stream:
        return sorted(intake.sift(feed_events(feed, pages), is_end=True), key=sort_key), intake, feed
    own = (dataclasses.replace(page, stream="t/0/") for page in pages)
    events = [event for page in own for event in intake.sift(read_page(feed, page, "t"))]
    events += intake.sift(feed.finish(), is_end=True)
    return sorted(events, key=sort_key), intake, feed


def lines_of(events: Iterable[Event]) -> str:
    """Return events as JSON lines, with their time as text."""
    return "".join(f"{msgspec.json.encode(event | {'time': as_text(event['time'])}).decode()}\n" for event in events)


def complaints_of(intake: Intake) -> str:
    """Return everything that is said of the files, a line each."""
    return "".join(f"{line}\n" for line in _complaint_lines(intake))


def _complaint_lines(intake: Intake) -> Iterator[str]:
    yield from map(str, intake.complaints)
    for own in intake.coverage.values():
        until = f"until {as_text(own.end)}, {own.intervals} intervals of at most {own.longest_us / 1e6:g} s"
        counts = f"{own.puts} puts, {own.gets} gets, wrong by at most {own.peak_error} messages"
        yield f"covered: {own.qmgr} {own.name} by {own.source} {until}: {counts}"
    for title, lines in (
        ("passed over", intake.lines_for_passed_over()),
        ("not in the estate", intake.lines_for_unknown()),
        ("input", intake.lines_for_inputs()),
    ):
        yield from (f"{title}: {line}" for line in lines)


def outcome(folder: Path) -> dict[str, str]:
    """Return what comes out of a case, by the names of its files."""
    events, intake, _ = read(folder, pages_of(folder))
    return {"events": lines_of(events), "complaints": complaints_of(intake), "facts": estate_text(intake.facts).text}


def write(folder: Path) -> None:
    """Write what comes out of a case; `facts` only where it is there already."""
    for name, text in outcome(folder).items():
        path = folder / name
        if text and (name != "facts" or path.exists()):
            path.write_text(text, encoding="utf-8")
        elif path.exists() and name != "facts":
            path.unlink()
