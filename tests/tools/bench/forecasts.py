"""Cost of forecasts: the same filling stores through the real job, with and without forecasts; one forecast alone.

Without forecasts means `forecast_horizon_s` at its minimum of one minute, within which no store can be full. Flows
(kernels/meters.py) are metered in both.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from kernels.clock import SECOND, TICK
from streams.query.definition import JobSettings
from tests.tools.bench import site
from tests.tools.bench.rig import Rig, Say, Span, span
from tests.tools.bench.traffic import Traffic
from twin.estate import Estate, load_estate
from twin.events import ARROW, Decoder
from twin.forecast import monitor
from twin.stores.message_store import MessageStore
from twin.stores.open import open_message_store
from twin.stores.warm_up import warm

LEAST = 0.9  # of the throughput without: the target
EVENT_RATES = (50_000, 5_000)  # events a second of event time, all stores
ON, OFF = "on", "off"
SNAPSHOTS_LEAST = 0.95  # of the throughput without, with a snapshot after every batch: the target
_SNAPSHOT_HOURS = 0.05  # of event time: less than a batch has at the lower of EVENT_RATES
_CLIMB = 0.1  # of the events are puts that stay
_FULL_IN = 2_400  # seconds of event time at that pace, from empty to full
_BEFORE, _BEFORE_S = 0.15, 600  # share that is filled slowly beforehand, in seconds: flows are known after five minutes
_BYTES_EACH = 3_255  # of SIZE for a message of 2 KB
_PIECE = 100_000
_LOOKS = 50
_TURNS = (ON, OFF, OFF, ON)


@dataclass(frozen=True, slots=True)
class Size:
    """events: events of a batch; warm_up, measured: batches; rounds: runs with and runs without."""

    events: int
    warm_up: int
    measured: int
    rounds: int

    @property
    def all_events(self) -> int:
        """Of a topic."""
        return self.events * (self.warm_up + self.measured)


@dataclass(frozen=True, slots=True)
class Forecasts:
    """runs: by events a second of event time, then ON and OFF; looks: ahead by all stores in a run, likewise;
    look_ms: milliseconds of one, the median; snapshots: runs with a snapshot after every batch, ON, and without, OFF.
    """

    runs: dict[int, dict[str, list[Span]]]
    looks: dict[int, int]
    look_ms: float
    snapshots: dict[str, list[Span]]

    def rate(self, event_rate: int, which: str) -> float:
        """Events a second, the median of the runs."""
        return statistics.median(run.rate for run in self.runs[event_rate][which])

    def cpu_us(self, event_rate: int, which: str) -> float:
        """CPU microseconds an event, the median of the runs."""
        return statistics.median(run.cpu_us for run in self.runs[event_rate][which])

    def ratio(self, event_rate: int = EVENT_RATES[0]) -> float:
        """Throughput with forecasts, as a share of that without."""
        return self.rate(event_rate, ON) / self.rate(event_rate, OFF)

    def snapshots_ratio(self) -> float:
        """Throughput with a snapshot after every batch, as a share of that without."""
        on, off = (statistics.median(run.rate for run in self.snapshots[which]) for which in (ON, OFF))
        return on / off


SIZE = Size(1_000_000, 2, 5, 4)
QUICK = Size(400_000, 2, 3, 2)


def measure(rig: Rig, say: Say, *, quick: bool) -> Forecasts:
    """With and without in turn, so that what else the machine does falls on both."""
    warm()
    size = QUICK if quick else SIZE
    runs: dict[int, dict[str, list[Span]]] = {}
    looks: dict[int, int] = {}
    look_ms = 0.0
    snapshots: dict[str, list[Span]] = {ON: [], OFF: []}
    for event_rate in EVENT_RATES:
        prefix = f"bench-forecasts-{event_rate}"
        estates = {which: _estate(rig.folder, event_rate, which) for which in (ON, OFF)}
        say(f"forecasts: publishing {size.all_events:,} events, {event_rate:,} a second of event time")
        published = rig.publish(prefix, _climbing(size, event_rate), ARROW)
        records = max(1, round(published.records * size.events / published.events))
        runs[event_rate] = {ON: [], OFF: []}
        for number in range(2 * size.rounds):
            which = _TURNS[number % 4]
            say(f"forecasts {which}, {event_rate:,} events a second of event time, run {number // 2 + 1}")
            settings = replace(rig.settings(prefix, max_records=records), estate=estates[which])
            runs[event_rate][which].append(_run(rig, settings, size))
        say("forecasts: looks ahead")
        looks[event_rate], look_ms = _looks(estates[ON], size, event_rate)
        if event_rate == min(EVENT_RATES):
            for number in range(2 * size.rounds):
                which = _TURNS[number % 4]
                say(f"snapshots {which}, run {number // 2 + 1}")
                hours = _SNAPSHOT_HOURS if which == ON else 0.0
                settings = rig.settings(prefix, max_records=records, estate=estates[ON], snapshot_hours=hours)
                snapshots[which].append(_run(rig, settings, size))
    return Forecasts(runs, looks, look_ms, snapshots)


def _run(rig: Rig, settings: JobSettings, size: Size) -> Span:
    batches = rig.run_job(settings)
    return span(batches, len(batches) - size.measured, len(batches))


def _holds(event_rate: int) -> int:
    """Messages that a structure holds, about, so that it would be full in _FULL_IN."""
    return round(_CLIMB * event_rate * _FULL_IN / len(site.STORES))


def _estate(folder: Path, event_rate: int, which: str) -> Estate:
    """The stores of `site`, so large that they fill as fast as they should."""
    horizon = "" if which == ON else "forecast_horizon_s = 60\n"
    parts = ['schema = 1\n[queue_sharing_group.QSG1]\nqueue_managers = ["QM01", "QM02"]\n']
    for store in site.STORES:
        structure = store.partition("/")[2]
        parts.append(f'[structure."{store}"]\nsize = {_holds(event_rate) * _BYTES_EACH}\ncf_level = 5\n{horizon}')
        parts += [f'[smds."{store}/{qmgr}"]\nsize = "4G"\nsecondary = "1G"\n' for qmgr in site.QUEUE_MANAGERS]
        parts += [f'[queue."QSG1/{queue}"]\nstructure = "{structure}"\n' for queue in site.queues_of(store)]
    path = folder / f"forecasts-{which}.toml"
    path.write_text("".join(parts), encoding="utf-8")
    return load_estate(path)


def _climbing(size: Size, event_rate: int) -> Iterator[pa.Table]:
    before = round(_BEFORE * _holds(event_rate) * len(site.STORES))
    traffic = Traffic(site.STORES, step_us=_BEFORE_S * SECOND // before)
    yield traffic.fill(before)
    traffic.go_on_at(SECOND // event_rate)
    for _ in range(size.all_events // _PIECE):
        yield traffic.steady(round((1 - _CLIMB) * _PIECE))
        yield traffic.fill(round(_CLIMB * _PIECE))


def _looks(estate: Estate, size: Size, event_rate: int) -> tuple[int, float]:
    """How often the stores look ahead in a run; milliseconds of one look at its end."""
    decoder = Decoder(estate)
    twins = {name: open_message_store(estate, name) for name in site.STORES}
    looks = 0
    for table in _climbing(size, event_rate):
        for block in decoder.arrow_table(table).blocks(estate):
            twin = twins[block.store]
            twin.apply(block)
            looks += len({look.time for look in twin.drain_forecasts()})
    return looks, _look_ms(twins[site.STORES[0]])


def _look_ms(twin: MessageStore) -> float:
    tick = int(twin.tables.store.scalars["clock"][0]) // TICK
    durations = []
    for _ in range(_LOOKS):
        began = time.perf_counter()
        monitor.look(twin, tick)
        durations.append(1000 * (time.perf_counter() - began))
    return statistics.median(durations)
