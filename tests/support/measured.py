"""Recordings with measurements: what the twin of a whole recording holds is what the real system holds."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

import twin
from streams.kafka.present import measurement_of
from twin.estate import Estate, load_estate
from twin.events import Decoder
from twin.events.fields import FIELD
from twin.feeds.importing import sort_events
from twin.playback.replays import Player
from twin.playback.samples import step_cuts
from twin.recordings.files import RecordingWriter, open_recording

TOLERANCE_PCT = 2  # of the estate
ESTATE = f"""
schema = 1
[coupling_facility.CF01]
size = "1G"
[queue_sharing_group.QSG1]
queue_managers = ["QM01", "QM02"]
[queue_manager.QM01]
platform = "zos"
[queue_manager.QM02]
platform = "zos"
[structure."QSG1/APP1"]
coupling_facility = "CF01"
size = "6M"
cf_level = 5
offload = "SMDS"
drift_tolerance_pct = {TOLERANCE_PCT}
[smds."QSG1/APP1/QM01"]
size = "64M"
[smds."QSG1/APP1/QM02"]
size = "64M"
[queue."QSG1/ORDERS"]
structure = "APP1"
[queue."QSG1/ORDERS.REPLY"]
structure = "APP1"
"""


def write_estate(folder: Path) -> Path:
    """Write the estate of a structure; a measurement matches within 2 % of the total."""
    path = folder / "estate.toml"
    path.write_text(ESTATE, encoding="utf-8")
    return path


def simulate_measured(folder: Path, hours: float = 3.0, every_s: int = 120) -> Path:
    """Write a recording in which the getter stops for two hours and the structure fills, measured at intervals."""
    estate = load_estate(write_estate(folder))
    plain, path = folder / "plain.ndjson", folder / "good.ndjson"
    twin.simulate(twin.make_scenario("getter-outage", settings={"hours": hours}), estate, plain, seed=1)
    with RecordingWriter(path) as writer:
        writer.write(sort_events([*_events(plain), *_measurements(plain, estate, every_s)]))
    return path


def without_puts(source: Path, target: Path, share: float) -> Path:
    """Write a recording of which a share of the puts is missing; their `seq` are used up."""
    chance = random.Random(5)
    with RecordingWriter(target) as writer:
        writer.write([event for event in _events(source) if event["op"] != "PUT" or chance.random() >= share])
    return target


def ending_now(source: Path, target: Path) -> Path:
    """Write a recording as if its last event were of this second."""
    events = list(_events(source))
    later = int(time.time()) * 1_000_000 - max(int(event["time"]) for event in events)
    with RecordingWriter(target) as writer:
        writer.write([event | {"time": event["time"] + later} for event in events])
    return target


def without_measurements(source: Path, target: Path) -> Path:
    """Write a recording without its measurements."""
    with RecordingWriter(target) as writer:
        writer.write([event for event in _events(source) if event["op"] != "MEASURE"])
    return target


def _events(path: Path) -> Iterator[dict[str, Any]]:
    for chunk in open_recording(path):
        for line in chunk.lines():
            event = msgspec.json.decode(line)
            yield event | {"time": FIELD["time"].checked(event["time"])}


def _measurements(path: Path, estate: Estate, every_s: int) -> Iterator[Any]:
    """Yield a MEASURE of each store with events at intervals: what a twin of the whole recording holds then."""
    player, decoder = Player(estate), Decoder(estate)
    for chunk in open_recording(path):
        decoded = chunk.decode(decoder)
        for piece in decoded.split(step_cuts(decoded, every_s * 1_000_000)):
            player.feed(piece)
            yield from (measurement_of(state, estate) for state in player.states().values())
