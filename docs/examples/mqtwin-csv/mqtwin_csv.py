"""An example of what a distribution adds to mqtwin: levels of structures as CSV, alerts as CSV, a scenario."""

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from numpy.random import Generator

from mqtwin.feeds import LEVELS, Complaint, Event, Feed, Format, Item, Page
from mqtwin.records import AlertRecord
from mqtwin.simulation import HOUR, Flow, Site, StoreScenario, between, constant, parameter

HEADING = ["time", "qmgr", "structure", "entries"]  # times are RFC 3339 with their offset


class LevelsFeed(Feed):
    """A reader of lines `2026-11-20T01:00:00Z,QM01,QSG1/APP1,120000` below their heading."""

    reads = f"CSV with the columns {', '.join(HEADING)}"

    def take(self, page: Page) -> Iterator[Item]:
        """Yield a measurement for each line. One that is not understood is a complaint, and no error."""
        lines = bytes(page.data).decode("utf-8", "replace").splitlines()
        if not lines or lines[0].split(",") != HEADING:
            return
        for number, row in enumerate(csv.reader(lines[1:]), start=2):
            self.object_count += 1
            try:
                time, qmgr, store, entries = row
                moment = round(datetime.fromisoformat(time).timestamp() * 1e6)
                event: Event = {"time": moment, "qmgr": qmgr, "op": "MEASURE", "store": store}
                event["measured"] = {"ents_used": int(entries)}
            except ValueError as error:
                yield Complaint("bad-row", f"{page.name}, line {number}", f"{error}; expected: {', '.join(HEADING)}")
                continue
            yield event


FORMAT = Format(LevelsFeed, facts=(), gives=(LEVELS,))


@contextmanager
def open_csv(path: str) -> Iterator[Callable[[AlertRecord], None]]:
    """Yield what writes an alert as a line. path: the text behind `--sink csv:`."""
    with Path(path).open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        yield lambda alert: writer.writerow([alert.data.time, alert.change, alert.data.store, alert.data.cause])


@dataclass(frozen=True, kw_only=True)
class LunchBreak(StoreScenario):
    """Everybody who gets is at lunch."""

    name = "lunch-break"
    sentence = "Puts continue at noon, and nobody gets for an hour."
    lunch: float = parameter(1.0, "hours without a getter", low=0.1, high=3.0)

    def default_rate(self, site: Site, rng: Generator) -> float:
        """Return the messages/s with which the store is half full after lunch."""
        return 0.5 * site.capacity(self.traffic, rng).messages / (self.lunch * HOUR)

    def flows(self, site: Site, rate: float) -> list[Flow]:
        """Return the puts, and the gets, which have a gap."""
        gets = between(HOUR, (1 + self.lunch) * HOUR, 0.0, 2 * rate)
        return [*site.puts(constant(rate), self.traffic), *site.gets(gets, self.traffic)]
