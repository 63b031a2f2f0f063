"""A structure below its SIZE that fills since its getter stopped, driven by hand: its alerts propose to expand it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from twin.alerts.episodes import Alert
from twin.planning.whatif import Moment, moment_of
from twin.records import AlertRecord, read_alert_record
from twin.testing import Driver
from twin.testing.drivers import START

STORE = "QSG1/APP1"
REST_S, FILLING_S = 900, 660
TOML = """schema = 1

[coupling_facility.CF01]
size = "8G"

[queue_sharing_group.QSG1]
queue_managers = ["QM01"]

[queue_manager.QM01]
platform = "zos"

[structure."QSG1/APP1"]
coupling_facility = "CF01"
size = "8M"
init_size = "4M"
cf_level = 3

[queue."QSG1/ORDERS"]
structure = "APP1"
"""


class Filling(Driver):
    """The structure after 15 minutes at rest and 11 in which nobody gets.

    Attributes:
        path: its estate.
        lines: its events.
    """

    def __init__(self, folder: Path, begin_us: int | None = None) -> None:
        self.path = folder / "estate.toml"
        self.path.write_text(TOML, encoding="utf-8")
        self.lines: list[bytes] = []
        super().__init__(self.path, start=START if begin_us is None else begin_us)
        self.rest(REST_S)
        self.fill(FILLING_S)

    def rest(self, seconds: int) -> None:
        """Let the getter take what is put."""
        for _ in range(seconds // 10):
            self.put("ORDERS", length=2000, count=10)
            self.get("ORDERS", count=10)
            self.wait(seconds=10)

    def fill(self, seconds: int) -> None:
        """Let nobody get."""
        for _ in range(seconds // 10):
            self.put("ORDERS", length=2000, count=10)
            self.wait(seconds=10)

    def send(self, *events: Mapping[str, Any] | bytes) -> list[Alert]:
        """Apply events, and keep them."""
        self.lines += [event if isinstance(event, bytes) else msgspec.json.encode(event) for event in events]
        return super().send(*events)

    @property
    def moment(self) -> Moment:
        """The structure now."""
        return moment_of(self.estate, self._player.twins[STORE])

    def alert(self, action: str = "alter-size") -> AlertRecord:
        """Return the last record of an open alert that proposes an action."""
        last = {own.alert_id: own for own in self.alerts}
        proposing = [own for own in last.values() if action in {step.id for step in own.runbook}]
        return read_alert_record(proposing[-1].record())
