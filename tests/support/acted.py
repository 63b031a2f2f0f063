"""A recording in which people act: a structure fills, is altered to a larger size in time, and holds what comes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import twin
from twin.events.fields import FIELD
from twin.recordings.files import open_recording

STORE = "QSG1/APP1"
ALTERED = "2026-11-20T01:02:00.000000Z"
_ESTATE = """\
schema = 1

[queue_sharing_group.QSG1]
queue_managers = ["QM01"]

[structure."QSG1/APP1"]
size = "64M"
init_size = "{init_size}"
cf_level = 4

[queue."QSG1/ORDERS"]
structure = "APP1"
"""


class Site(NamedTuple):
    """An estate file and its recording."""

    estate: Path
    recording: Path


def simulate_outage(folder: Path, init_size: str = "64M", hours: float = 5.0) -> Site:
    """Write an estate, INITSIZE 16M of SIZE 64M, and a recording of a getter's outage; return their paths.

    Args:
        folder: where to write.
        init_size: size that the structure really had: of 16M it refuses puts with 2192, of 64M it refuses none.
        hours: length of the recording.
    """
    simulated, estate, recording = folder / "simulated.toml", folder / "estate.toml", folder / f"of-{init_size}.ndjson"
    simulated.write_text(_ESTATE.format(init_size=init_size), encoding="utf-8")
    estate.write_text(_ESTATE.format(init_size="16M"), encoding="utf-8")
    story = twin.make_scenario("getter-outage", rate=1.5, settings={"hours": hours, "length": 3000, "spread": 0.5})
    twin.simulate(story, twin.load_estate(simulated), recording, seed=1)
    return Site(estate, recording)


def with_events(recording: Path, name: str, *events: Mapping[str, Any]) -> Path:
    """Write a recording with further events, each behind those of its time; return its path."""
    lines = [json.loads(line) for chunk in open_recording(recording) for line in chunk.lines()]
    lines += events
    lines.sort(key=lambda event: int(FIELD["time"].checked(event["time"])))  # stable
    path = recording.with_name(name)
    path.write_bytes(b"".join(json.dumps(event).encode() + b"\n" for event in lines))
    return path


def altered(time: str = ALTERED, op: str = "ALTER", **attributes: Any) -> dict[str, Any]:
    """Return the event of an ALTER or REBUILD, to 64M without attributes."""
    return {"time": time, "qmgr": "QM01", "op": op, "store": STORE, "attributes": attributes or {"size": "64M"}}
