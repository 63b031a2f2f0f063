"""Helpers of tests of shared stores: an estate with a coupling facility and a uniform cluster, reports, events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kernels.clock import TICK
from twin.alerts.episodes import Alert
from twin.estate import Estate, load_estate
from twin.events import Decoder
from twin.stores.open import SharedTwin, open_store
from twin.stores.reports import QueueFileValues, Report, StructureValues, Values

GB = 1 << 30
START_US = 1_795_176_000_000_000  # 2026-11-20T12:00:00Z
START = START_US // TICK
STRUCTURES = ("QSG1/APP1", "QSG1/APP2")
MEMBERS = ("UC01QM01", "UC01QM02", "UC01QM03")
FILES = tuple(f"{member}/REQUEST" for member in MEMBERS)

ESTATE = """
schema = 1
[coupling_facility.CF01]
size = "16G"
scm = "4G"
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[structure."QSG1/APP1"]
coupling_facility = "CF01"
size = "4G"
scm_max_size = "3G"
[structure."QSG1/APP2"]
coupling_facility = "CF01"
size = "2G"
init_size = "1G"
scm_max_size = "1G"
[structure."QSG1/PLAIN"]
coupling_facility = "CF01"
size = "2G"
[queue."QSG1/ORDERS"]
structure = "APP1"
[queue."QSG1/INVOICES"]
structure = "APP2"
[queue."QSG1/OTHER"]
structure = "PLAIN"
[uniform_cluster.UC01]
queue_managers = ["UC01QM01", "UC01QM02", "UC01QM03"]
messages_per_second = 1000
""" + "".join(
    f'[queue_manager.{member}]\nplatform = "distributed"\n[queue_file."{member}/REQUEST"]\n' for member in MEMBERS
)


def shared_estate(folder: Path, *changes: tuple[str, str]) -> Estate:
    """Return the estate, with texts replaced by others."""
    text = ESTATE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "shared.toml"
    path.write_text(text, encoding="utf-8")
    return load_estate(path)


def structure_report(source: str, tick: int, passed: int | None = None, **values: int) -> Report:
    """Return a report of a structure at a tick counted from `START`."""
    has = {"size": 4 * GB, "scm_max": 3 * GB, "scm_used": 0, "aug_fixed": 8 << 20, "aug_dynamic": 0} | values
    return _report("CF01", source, tick, passed, StructureValues(**has))


def file_report(
    source: str, tick: int, passed: int | None = None, puts: int = 0, gets: int = 0, depth: int = 0
) -> Report:
    """Return a report of a queue file at a tick counted from `START`."""
    return _report("UC01", source, tick, passed, QueueFileValues(puts=puts, gets=gets, depth=depth))


def leave_report(source: str, tick: int) -> Report:
    """Return the report of a structure that leaves its coupling facility."""
    return _report("CF01", source, tick, None, None)


def _report(target: str, source: str, tick: int, passed: int | None, values: Values | None) -> Report:
    last = tick if passed is None else passed
    return Report(target=target, source=source, tick=START + tick, passed=START + last, values=values)


class Shared:
    """A shared store that is fed by hand, and all alerts it brought. `reopen`: as a worker that has only its header."""

    def __init__(self, estate: Estate, name: str) -> None:
        self.estate = estate
        self.name = name
        self.twin: SharedTwin = self._opened(None)
        self.alerts: list[Alert] = []

    def _opened(self, header: bytes | None) -> SharedTwin:
        twin = open_store(self.estate, self.name, None, header)
        assert twin.tables is None
        return twin  # type: ignore[return-value]

    def reports(self, *reports: Report, caught_up: bool = True) -> list[Alert]:
        """Take reports as of one batch; return the alerts. caught_up: the topic was read to its end."""
        return self._collect(self.twin.take(reports, caught_up=caught_up))

    def event(self, seconds: float, op: str, **fields: Any) -> list[Alert]:
        """One event of its own."""
        qmgr = self.estate.stores[self.name].queue_managers[0]
        event = {"time": START_US + int(seconds * 1e6), "qmgr": qmgr, "op": op, "store": self.name} | fields
        decoded = Decoder(self.estate).json([msgspec.json.encode(event)])
        assert not decoded.rejects, decoded.rejects
        (block,) = decoded.blocks(self.estate)
        return self._collect(self.twin.apply(block))

    def _collect(self, alerts: list[Alert]) -> list[Alert]:
        self.alerts += alerts
        return alerts

    def reopen(self, estate: Estate | None = None) -> None:
        """Save the store and open it again, as after a restart. estate: a changed one."""
        self.estate = estate or self.estate
        self.twin = self._opened(self.twin.header())

    def state(self) -> Any:
        """Return the state record, of the kind of the store."""
        return self.twin.state()


def changes(alerts: Iterable[Alert]) -> list[tuple[str, str]]:
    """Return (condition, change) of alerts."""
    return [(alert.condition, alert.change) for alert in alerts]


def interleaved(sequences: Sequence[Sequence[Report]], choices: Iterable[int], skew: int) -> list[Report]:
    """Return the reports of several sources in another order, in which each source's order is kept.

    Args:
        sequences: reports of each source.
        choices: numbers that decide which source is next.
        skew: ticks; a report comes before all that have passed so much more.
    """
    order = iter(choices)
    positions = [0] * len(sequences)
    mixed = []
    while True:
        left = {n: sequence[positions[n]] for n, sequence in enumerate(sequences) if positions[n] < len(sequence)}
        if not left:
            return mixed
        first = min(report.passed for report in left.values())
        candidates = [n for n, report in left.items() if report.passed - first < skew]
        source = candidates[next(order, 0) % len(candidates)]
        mixed.append(left[source])
        positions[source] += 1
