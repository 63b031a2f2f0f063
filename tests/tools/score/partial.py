"""Forecasts of a site that knows a part: the table of docs/feeds-joined.md.

`python -m tests.tools.score.partial [SITE ...]` replays the nights of tests/twin/test_partial_feeds.py until a put is
refused. It prints for each feed the error of the median half an hour before, and how long before the page comes.
"""

from __future__ import annotations

import sys

import pyarrow as pa
import pyarrow.compute as pc

import twin
from tests.support.partial_feeds import EVENTS, write_known, write_until
from tests.twin.test_partial_feeds import AHEAD_S, FEEDS, SITES, night
from twin.conditions import INFO, Condition

_SECOND = 10**6


def line(site: str, feed: str) -> str:
    """Return the row of a site and a feed: error half an hour before, and the lead of its page."""
    own = night(site)
    known, until = (own.recording.with_name(f"scored-{name}.arrow") for name in ("known", "until"))
    write_known(own.recording, known, EVENTS if feed == "events" else FEEDS[feed])
    write_until(known, until, own.first_full, own.store)
    replayed = twin.replay(until, own.estate)
    table, moment = replayed.forecasts, own.first_full - AHEAD_S * _SECOND
    is_known = pc.and_(pc.equal(table["store"], own.store), table["is_first"])
    table = table.filter(is_known)
    times = table["time"].cast(pa.int64()).to_pylist()
    rows = [(time, row) for time, row in zip(times, table.to_pylist(), strict=True) if time <= moment]
    error, resource = "not known", "-"
    if rows and (p50 := rows[-1][1]["p50_s"]) is not None:
        left = p50 - (moment - rows[-1][0]) / _SECOND
        error, resource = f"{100 * (left - AHEAD_S) / AHEAD_S:+.0f} %", rows[-1][1]["resource"]
    pages = [
        alert.time
        for alert in replayed.alerts
        if (alert.store, alert.condition) == (own.store, Condition.FULL_FORECAST) and alert.severity != INFO
    ]
    lead = f"{(own.first_full - pages[0]) / _SECOND / 60:.0f} min" if pages else "none"
    return f"| {site} | {feed} | {resource} | {error} | {lead} |"


if __name__ == "__main__":
    for name in sys.argv[1:] or SITES:
        for own_feed in ("events", *FEEDS):
            print(line(name, own_feed), flush=True)
