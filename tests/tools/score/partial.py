"""Forecasts of a site that knows a part: the tables of docs/feeds-joined.md and of README.md here.

`python -m tests.tools.score.partial [--seeds N] [--sites A,B]` simulates nights that fill a store and calm ones, thins
each to what a site knows, and replays it until a put is refused. All of it takes two cores about twenty minutes.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import twin
from tests.support.partial_feeds import EVENTS, Feed, write_known, write_until
from tests.twin.test_partial_feeds import AHEAD_S, FEEDS, SITES
from twin.base.conditions import INFO, Condition
from twin.simulation import Measuring

_SECOND = 10**6
_MINUTE_S = 60
_LATER_S = 120  # than the better of the feeds alone, from which a page counts as later
STORIES = {
    "structure": ("getter-outage", "slow-consumer", "accelerating-fill", "levelling-fill", "burst"),
    "data set": ("getter-outage", "slow-consumer", "smds-cannot-expand", "levelling-fill", "burst"),
    "scm": ("scm-fills-behind", "getter-outage", "burst"),
    "page set": ("page-set-expand-none", "getter-outage", "slow-consumer", "levelling-fill", "burst"),
    "queue file": ("getter-outage", "queue-file-growth", "slow-consumer", "levelling-fill", "burst"),
}
KNOWN = {"all events": EVENTS, **FEEDS, "1 % and levels": Feed(share=0.01)}
NOTHING = Feed(share=0.0, every=0)
_SUDDEN = {"burst"}  # stories that begin within half an hour of the refused put: before it nothing could be known


def alone(feed: Feed) -> tuple[Feed, Feed]:
    """Return the events of a feed without its measurements, and these without the events."""
    return Feed(share=feed.share, by=feed.by, every=0), replace(feed, share=0.0, by="message", resync=False)


@dataclass(frozen=True, slots=True)
class Played:
    """A night as a site with one feed saw it.

    Attributes:
        feed: what that site knew.
        night: site, story, seed.
        is_calm: True if no put was refused.
        error: error of the median time to full half an hour before, as a share of it; None: not known, or a calm night.
        held: True if that time was from p10 to p90.
        resource, queue: those that fill first, as known then.
        lead_s: from the first page to the refused put, 0: none came; of a calm night more than 0 if one came.
    """

    feed: Feed
    night: tuple[str, str, int]
    is_calm: bool
    error: float | None = None
    held: bool = False
    resource: str = ""
    queue: str = ""
    lead_s: float = 0.0


def play(night: tuple[str, str, int]) -> list[Played]:
    """Return what each feed showed of a night."""
    site, story, seed = night
    with tempfile.TemporaryDirectory(prefix="partial-") as name:
        folder = Path(name)
        (folder / "estate.toml").write_text(SITES[site][0])
        estate = twin.load_estate(folder / "estate.toml")
        recording = folder / "night.arrow"
        outcome = twin.simulate(twin.make_scenario(story), estate, recording, seed, measuring=Measuring(levels=True))
        store, first_full = next(
            ((name, own.first_full) for name, own in outcome.stores.items() if own.first_full is not None),
            (outcome.fullest or "", None),
        )
        known = folder / "known.arrow"
        rows = []
        parts = {part for feed in KNOWN.values() for part in (feed, *alone(feed))}
        for feed in parts - {NOTHING}:
            write_known(recording, known, feed)
            rows.append(_played(feed, night, known, estate, store, first_full))
        return rows


def _played(
    feed: Feed, night: tuple[str, str, int], known: Path, estate: twin.Estate, store: str, first_full: int | None
) -> Played:
    if first_full is None:
        pages = _pages(twin.replay(known, estate), store)
        return Played(feed, night, is_calm=True, lead_s=float(bool(pages)))
    until = known.with_name("until.arrow")
    write_until(known, until, first_full, store)
    replayed = twin.replay(until, estate)
    moment = first_full - AHEAD_S * _SECOND
    table = replayed.forecasts.filter(
        pc.and_(pc.equal(replayed.forecasts["store"], store), replayed.forecasts["is_first"])
    )
    times = table["time"].cast(pa.int64()).to_pylist()
    before = [(time, row) for time, row in zip(times, table.to_pylist(), strict=True) if time <= moment]
    pages = _pages(replayed, store)
    lead_s = (first_full - pages[0].time) / _SECOND if pages else 0.0
    queue = pages[0].fillers[0].queue if pages and pages[0].fillers else ""
    if not before or before[-1][1]["p50_s"] is None:
        return Played(feed, night, is_calm=False, queue=queue, lead_s=lead_s)
    time, row = before[-1]
    low, middle, high = (row[name] - (moment - time) / _SECOND for name in ("p10_s", "p50_s", "p90_s"))
    return Played(
        feed,
        night,
        is_calm=False,
        error=(middle - AHEAD_S) / AHEAD_S,
        held=low <= AHEAD_S <= high,
        resource=row["resource"],
        queue=queue,
        lead_s=lead_s,
    )


def _pages(replayed: twin.Replayed, store: str) -> list[twin.Alert]:
    return [
        alert
        for alert in replayed.alerts
        if (alert.store, alert.condition) == (store, Condition.FULL_FORECAST) and alert.severity != INFO
    ]


def by_site(rows: list[Played]) -> Iterable[str]:
    """Yield the table of errors and leads by feed and site: medians over the nights that fill."""
    yield "| what is known | " + " | ".join(SITES) + " |"
    yield "| --- |" + " ---: |" * len(SITES)
    for title, feed in KNOWN.items():
        cells = []
        for site in SITES:
            own = [row for row in rows if (row.feed, row.night[0], row.is_calm) == (feed, site, False)]
            errors = [abs(row.error) for row in own if row.error is not None and row.night[1] not in _SUDDEN]
            error = f"{100 * statistics.median(errors):.0f} %" if errors else "-"
            lead = f"{statistics.median(row.lead_s for row in own) / _MINUTE_S:.0f} min" if own else "-"
            cells.append(f"{error}, {lead}")
        yield f"| {title} | " + " | ".join(cells) + " |"


def by_feed(rows: list[Played]) -> Iterable[str]:
    """Yield the table of what has to hold by feed, over all sites."""
    played = {(row.feed, row.night): row for row in rows}
    yield "| what is known | resource right | queue right | from p10 to p90 | later than alone | calm nights paged |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for title, feed in KNOWN.items():
        full = [row for row in rows if row.feed == feed and not row.is_calm]
        calm = [row for row in rows if row.feed == feed and row.is_calm]
        truth = [played[EVENTS, row.night] for row in full]
        better = [max(played[part, row.night].lead_s for part in alone(feed) if part != NOTHING) for row in full]
        cells = [
            _share([row.resource == own.resource for row, own in zip(full, truth, strict=True) if own.resource]),
            _share([row.queue == own.queue for row, own in zip(full, truth, strict=True) if row.queue and own.queue]),
            _share([row.held for row in full if row.error is not None and row.night[1] not in _SUDDEN]),
            _share([row.lead_s < lead - _LATER_S for row, lead in zip(full, better, strict=True)]),
            _share([row.lead_s > 0 for row in calm]),
        ]
        yield f"| {title} | " + " | ".join(cells) + " |"


def _share(holds: list[bool]) -> str:
    return f"{sum(holds)} of {len(holds)}"


def main(arguments: list[str] | None = None, show: Callable[[str], object] = print) -> None:
    """Play the nights, and show both tables; progress is a line a night."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sites", default=",".join(SITES))
    chosen = parser.parse_args(arguments)
    nights = [
        (site, story, seed)
        for site in chosen.sites.split(",")
        for story, seed in product(STORIES[site], range(1, chosen.seeds + 1))
    ]
    rows: list[Played] = []
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for own in pool.map(play, nights):
            rows += own
            played = {row.feed: row for row in own}
            leads = ", ".join(
                f"{title} {row.lead_s / _MINUTE_S:.0f}" + ("" if row.error is None else f" ({row.error:+.0%})")
                for title, row in ((title, played[feed]) for title, feed in KNOWN.items())
            )
            show(f"<!-- {' '.join(map(str, own[0].night))}, {'calm' if own[0].is_calm else 'full'}: {leads} -->")
    for line in (*by_site(rows), "", *by_feed(rows)):
        show(line)


if __name__ == "__main__":
    main()
