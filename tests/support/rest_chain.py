"""The chain of a site that is known by its REST interface, in one process: simulated queue managers, server, twin."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from pathlib import Path

import msgspec

from streams.collecting.http import HttpClient
from streams.collecting.mqweb import Mqweb
from tests.mqweb import MqwebServer
from tests.support.played_system import PlayedSystem
from twin.alerts.episodes import Alert
from twin.estate import Estate, load_estate
from twin.events import Decoder, Event
from twin.feeds import FeedOptions, Intake, Page, make_feed
from twin.feeds.importing import read_page, sort_key
from twin.playback.replays import Player
from twin.simulation import make_scenario

SECOND = 1_000_000
ESTATE = """
schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[queue_manager.QMD1]
platform = "distributed"
[structure."QSG1/APP1"]
size = "16M"
cf_level = 5
ds_block = "64K"
[structure."QSG1/BIG"]
size = "64M"
cf_level = 5
ds_block = "64K"
offld1_th = 0
offld1_sz = "0K"
[smds."QSG1/BIG/QM01"]
size = "24M"
max_size = "24M"
[smds."QSG1/BIG/QM02"]
size = "24M"
max_size = "24M"
[queue."QSG1/ORDERS"]
structure = "APP1"
[queue."QSG1/REPLIES"]
structure = "APP1"
[queue."QSG1/IMAGES"]
structure = "BIG"
[queue."QSG1/LABELS"]
structure = "BIG"
[page_set."QM01/4"]
pages = 10800
[storage_class."QM01/PS04"]
page_set = 4
[queue."QM01/AUDIT"]
storage_class = "PS04"
[queue."QM01/AUDIT.OLD"]
storage_class = "PS04"
[queue_file."QMD1/INVOICES"]
max_size = "64M"
"""
ASKED = ("QM01", "QM02", "QMD1")


class Twins:
    """The twins of an estate, and all their alerts, driven by events."""

    def __init__(self, estate: Estate) -> None:
        self.player = Player(estate)
        self.alerts: list[Alert] = []
        self._decoder = Decoder(estate)

    def feed(self, events: Sequence[Event]) -> list[Alert]:
        """Apply events in order; return the alerts that they gave."""
        if not events:
            return []
        decoded = self._decoder.json([msgspec.json.encode(event) for event in events])
        assert not decoded.rejects, decoded.rejects
        alerts = self.player.feed(decoded)
        self.alerts += alerts
        return alerts


class Chain(Twins):
    """The twins of an estate that follow the rounds of the client.

    Args:
        server: the server.
        system: its queue managers; their time is that of the client.
        qmgrs: queue managers to ask.
        answer_s: seconds of simulated time that an answer takes: what is shown later is newer.

    Attributes:
        complaints: failures that the client complained of, (code, place, text).
        events: those of the last round.
        pages: those of the last round.
    """

    def __init__(
        self, server: MqwebServer, system: PlayedSystem, qmgrs: Sequence[str], *, answer_s: float = 0.0
    ) -> None:
        super().__init__(system.estate)
        self.complaints: list[tuple[str, str, str]] = []
        self.events: list[Event] = []
        self.pages: list[Page] = []
        self.system = system
        self.intake = Intake(system.estate, resync=True)
        self._feed = make_feed("rest", self.intake, FeedOptions(zone=UTC))
        self._answer_us = round(answer_s * SECOND)
        self._mqweb = Mqweb(
            [server.url],
            qmgrs,
            HttpClient(),
            system.estate,
            complain=lambda *complaint: self.complaints.append(complaint),
            clock=lambda: system.time,
        )

    def round(self, *, has_definitions: bool = False) -> list[Alert]:
        """Ask for a round at the present time of the system, and apply what it shows."""
        steps = self._mqweb.steps(has_definitions=has_definitions)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                self.pages = end.value
                break
            if self._answer_us:
                self.system.play(self.system.time + self._answer_us)
        self.events = sorted(
            (event for page in self.pages for event in self.intake.sift(read_page(self._feed, page, page.name))),
            key=sort_key,
        )
        return self.feed(self.events)


def played(folder: Path, store: str, **settings: float) -> PlayedSystem:
    """Return the queue managers of an estate of each kind of store, where the getter of a store stops.

    Args:
        folder: for the file of the estate.
        store: name of that store.
        settings: parameters of the scenario.
    """
    path = folder / "estate.toml"
    path.write_text(ESTATE, encoding="utf-8")
    return PlayedSystem(load_estate(path), make_scenario("getter-outage", store=store, settings=settings))
